//! What clients see, and what deployed functions may have: scopes and grants.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError};

use super::Deployer;
use crate::deploy::catalogue::{Catalogue, Info, Origin};
use crate::deploy::grants::{Grants, Look};
use crate::deploy::loading::{self, Stored};
use crate::deploy::scope::Scope;
use crate::invoke::function::Function;

impl Deployer {
    /// One function of a scope, with its settings.
    #[must_use]
    pub fn info_in(&self, scope: &Scope, name: &str) -> Option<Info> {
        let catalogue = self.catalogue();
        catalogue.check_name_in(scope, name).ok()?;
        let info = catalogue.info(name)?;
        drop(catalogue);
        Some(self.with_tier(info))
    }

    /// The functions of a scope.
    #[must_use]
    pub fn list_in(&self, scope: &Scope) -> Vec<Info> {
        let list = self.catalogue().list_in(scope);
        list.into_iter().map(|info| self.with_tier(info)).collect()
    }

    /// A function of a scope, as it is served.
    #[must_use]
    pub fn current_in(&self, scope: &Scope, name: &str) -> Option<Arc<Function>> {
        let catalogue = self.catalogue();
        catalogue.check_name_in(scope, name).ok()?;
        catalogue.functions().find(|function| function.name() == name).cloned()
    }

    /// The deployed functions whose folders or secrets are somewhere else by these grants, or whose secrets have changed, loaded once more.
    pub(super) fn load_anew(&self, grants: &Grants) -> HashMap<String, Stored> {
        let is_stale = |catalogue: &Catalogue, name: &str| {
            catalogue.get(name).is_some_and(|entry| match grants.look(&entry.config) {
                Look::Same => !entry.config.secrets.is_empty() && !entry.has_the_secrets_of(&entry.config),
                Look::Otherwise(_) => true,
                Look::Refused(_) => false,
            })
        };
        let names: Vec<String> = {
            let catalogue = self.catalogue();
            catalogue.names(Origin::Deployed).filter(|name| is_stale(&catalogue, name)).map(str::to_owned).collect()
        };
        let Some(store) = &self.store else {
            for name in names {
                tracing::warn!(
                    function = name,
                    "its grants or its secrets have changed, and without state_dir the server has no module to load it anew; deploy it again"
                );
            }
            return HashMap::new();
        };
        let found = |name: String| {
            let found = loading::stored(store, &name, false, grants, &self.compiler)?;
            Some((name, found))
        };
        names.into_iter().filter_map(found).collect()
    }

    /// What deployed functions may have.
    pub(super) fn grants(&self) -> Arc<Grants> {
        // What it protects is replaced as a whole.
        Arc::clone(&self.grants.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
