//! Whose functions a client of the admin API sees and changes: all, or those of one tenant. What is another tenant's is to such a client as what does not exist.

use std::sync::Arc;

use awsm_abi::text;

use super::catalogue::{Catalogue, CatalogueError, Info, Origin};
use super::deployer::DeployError;
use crate::config::FunctionConfig;

/// Whose functions a client sees and changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// Those of all tenants.
    #[default]
    All,
    /// Those of one.
    Tenant(Arc<str>),
    /// None.
    Nothing,
}

/// The client that changes something.
#[derive(Clone, Debug, Default)]
pub struct Client {
    /// The author that is kept with the version, as the client names it.
    pub author: Option<String>,
    /// What it may change.
    pub scope: Scope,
}

/// Why a client that has one tenant may not make a change.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// The function would be another tenant's.
    #[error("settings.tenant: your token is for tenant `{}`: leave the setting out", text::name(.0))]
    Tenant(Arc<str>),
    /// A name or a route is not to be had. It does not say whose it is.
    #[error("{what} is not free: choose another one")]
    Taken {
        /// The name or the route.
        what: String,
    },
    /// The setting is the operator's.
    #[error("settings.{0}: can only be changed with the token of `admin_token`: leave it as it is")]
    Setting(&'static str),
}

impl Scope {
    /// Whether what belongs to that tenant is in it.
    #[must_use]
    pub fn has(&self, tenant: &str) -> bool {
        match self {
            Scope::All => true,
            Scope::Tenant(own) => **own == *tenant,
            Scope::Nothing => false,
        }
    }

    /// The tenant that it is for, if it is for one.
    #[must_use]
    pub fn tenant(&self) -> Option<&Arc<str>> {
        match self {
            Scope::Tenant(tenant) => Some(tenant),
            Scope::All | Scope::Nothing => None,
        }
    }
}

impl Catalogue {
    /// Whether a name is in it: all that has the name, served or quarantined. A name that nothing has is.
    pub(super) fn has_name_in(&self, scope: &Scope, name: &str) -> bool {
        let served = self.get(name).is_none_or(|entry| scope.has(&entry.config.tenant));
        // Where settings cannot be read, it is not known whose they are.
        let is_own = |origin| {
            let quarantined = self.quarantined().get(name, origin).map(|quarantined| &quarantined.what);
            quarantined.is_none_or(|what| *scope == Scope::All || what.has_settings && scope.has(&what.config.tenant))
        };
        served && is_own(Origin::Config) && is_own(Origin::Deployed)
    }

    /// The functions in it, as operators see them.
    pub(super) fn list_in(&self, scope: &Scope) -> Vec<Info> {
        let mut list = self.list();
        list.retain(|info| scope.has(&info.tenant) && self.has_name_in(scope, &info.name));
        list
    }

    /// Whether a function is in it.
    ///
    /// # Errors
    /// When it is not: as of one that does not exist.
    pub(super) fn check_name_in(&self, scope: &Scope, name: &str) -> Result<(), CatalogueError> {
        if self.has_name_in(scope, name) { Ok(()) } else { Err(CatalogueError::Unknown(name.to_owned())) }
    }

    /// Whether a client may deploy a function with these settings, in place of what has its name. Looks at nothing but whose all of that is.
    ///
    /// # Errors
    /// Why not.
    pub(super) fn check_deployed_in(&self, scope: &Scope, config: &FunctionConfig) -> Result<(), DeployError> {
        let tenant = match scope {
            Scope::All => return Ok(()),
            Scope::Nothing => return Err(CatalogueError::Unknown(config.name.clone()).into()),
            Scope::Tenant(tenant) => tenant,
        };
        if !self.has_name_in(scope, &config.name) {
            return Err(Denied::Taken { what: format!("the name `{}`", text::name(&config.name)) }.into());
        }
        if config.tenant != **tenant {
            return Err(Denied::Tenant(Arc::clone(tenant)).into());
        }
        let deployed = self.get(&config.name).map(|entry| (&entry.config, entry.origin));
        let quarantined =
            self.quarantined().get(&config.name, Origin::Deployed).map(|other| (&other.what.config, Origin::Deployed));
        let present = deployed.or(quarantined).filter(|(_, origin)| *origin == Origin::Deployed).map(|(config, _)| config);
        let fresh = FunctionConfig::new(config.name.clone(), config.path.clone());
        let present = present.unwrap_or(&fresh);
        if config.listen != present.listen {
            return Err(Denied::Setting("listen").into());
        }
        // Such code could read and write all memory of the server.
        if config.allow_unchecked && !present.allow_unchecked {
            return Err(Denied::Setting("allow_unchecked").into());
        }
        match self.route_of_others(config) {
            Some(route) => Err(Denied::Taken { what: format!("the route {route}") }.into()),
            None => Ok(()),
        }
    }

    /// A route of that function at which another tenant or the server itself answers now.
    fn route_of_others(&self, config: &FunctionConfig) -> Option<String> {
        let site = config.site();
        let others = self.entries().map(|entry| &entry.config);
        let quarantined =
            self.quarantined().iter().filter(|(_, _, other)| other.held.is_some()).map(|(.., other)| &other.what.config);
        let functions = others.chain(quarantined).filter(|other| other.tenant != config.tenant && other.site() == site);
        let workflows = self.workflows().iter().map(|workflow| &workflow.config);
        let workflows = workflows.filter(|other| other.tenant != config.tenant && other.site() == site);
        let taken: Vec<String> = functions
            .flat_map(FunctionConfig::routes)
            .chain(workflows.map(|workflow| workflow.route()))
            .chain(self.paths_of_the_server(site))
            .collect();
        // All that nothing else has is not one tenant's: the others could deploy nothing any more.
        config.routes().into_iter().find(|route| route == "/*" || taken.iter().any(|taken| covers(taken, route)))
    }
}

/// Whether requests for `route` are for `taken`, as long as nothing else has them.
fn covers(taken: &str, route: &str) -> bool {
    match taken.strip_suffix('*') {
        Some(prefix) => route.strip_suffix('*').unwrap_or(route).starts_with(prefix),
        None => taken == route,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_covers_what_is_below_it() {
        for (taken, route) in
            [("/a", "/a"), ("/a/*", "/a/b"), ("/a/*", "/a/b/*"), ("/a/*", "/a/*"), ("/*", "/a"), ("/a/*", "/a/")]
        {
            assert!(covers(taken, route), "{taken} {route}");
        }
        for (taken, route) in
            [("/a", "/b"), ("/a", "/a/b"), ("/a/*", "/ab"), ("/a/*", "/a"), ("/a/b", "/a/*"), ("/a/b/*", "/a/*"), ("/a", "/a/*")]
        {
            assert!(!covers(taken, route), "{taken} {route}");
        }
    }

    #[test]
    fn a_scope_has_its_tenant() {
        let blue = Scope::Tenant("blue".into());
        assert!(blue.has("blue") && !blue.has("red") && !blue.has("") && Scope::All.has("red") && !Scope::Nothing.has("red"));
    }
}
