//! Functions that are not served for what is wrong with them: their paths are held for them, and operators see why.
//!
//! One is kept for each name and each place where a function of that name may be defined.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Map;

use super::catalogue::{Info, Origin, State};
use crate::config::FunctionConfig;
use crate::http::{Held, Place, Router};

/// A function that cannot be served.
#[derive(Clone, Debug)]
pub struct Unusable {
    /// Its settings. Where they cannot be read, what of them is likely, or else the defaults: for its paths.
    pub config: FunctionConfig,
    /// Whether they are its settings.
    pub has_settings: bool,
    /// What is wrong.
    pub reason: String,
}

impl Unusable {
    /// One whose settings are known.
    #[must_use]
    pub fn new(config: &FunctionConfig, reason: impl ToString) -> Unusable {
        // On one line, as lists of what is wrong have it: compilers and backtraces say more than that.
        let reason = reason.to_string().lines().map(str::trim).collect::<Vec<_>>().join("; ");
        Unusable { config: config.clone(), has_settings: true, reason }
    }
}

/// A function that is quarantined.
#[derive(Debug)]
pub struct Quarantined {
    /// What it is, and why.
    pub what: Unusable,
    /// Tells it from one that was quarantined under this name before or after it.
    pub version: u64,
    /// Its paths; none while an earlier version of it is served.
    pub held: Option<Vec<Arc<Held>>>,
}

impl Quarantined {
    /// It as operators see it.
    #[must_use]
    pub fn info(&self, origin: Origin) -> Info {
        let config = &self.what.config;
        Info {
            name: config.name.clone(),
            route: config.shown_routes(),
            listen: config.listen.clone(),
            methods: config.methods.clone(),
            tenant: config.tenant.clone(),
            origin,
            state: State::Quarantined,
            problem: Some(self.what.reason.clone()),
            version: None,
            digest: None,
            code_bytes: None,
            tier: None,
            optimised: None,
            phases: Vec::new(),
            canary: None,
            given_up: None,
            retired: 0,
            settings: Map::new(),
        }
    }
}

/// All of them.
#[derive(Debug, Default)]
pub struct Quarantine(BTreeMap<(String, Origin), Quarantined>);

impl Quarantine {
    /// The one of that name, as `origin` says it.
    #[must_use]
    pub fn get(&self, name: &str, origin: Origin) -> Option<&Quarantined> {
        self.0.get(&(name.to_owned(), origin))
    }

    /// Puts one in the place of that of its name, if there is one.
    pub fn put(&mut self, origin: Origin, quarantined: Quarantined) {
        self.0.insert((quarantined.what.config.name.clone(), origin), quarantined);
    }

    /// Removes one.
    pub fn remove(&mut self, name: &str, origin: Origin) -> Option<Quarantined> {
        self.0.remove(&(name.to_owned(), origin))
    }

    /// All, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Origin, &Quarantined)> {
        self.0.iter().map(|((name, origin), quarantined)| (name.as_str(), *origin, quarantined))
    }

    /// Holds their paths.
    pub fn hold(&self, router: &mut Router) {
        // The configuration's come last: of two that have a path it counts.
        for wanted in [Origin::Deployed, Origin::Config] {
            for (_, _, quarantined) in self.iter().filter(|(_, origin, _)| *origin == wanted) {
                for held in quarantined.held.iter().flatten() {
                    router.add(quarantined.what.config.site(), &held.pattern, Place::Quarantined(Arc::clone(held)));
                }
            }
        }
    }
}
