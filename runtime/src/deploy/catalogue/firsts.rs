//! Versions that are served by their first tier, and the exchange of that for optimised code.

use std::sync::Arc;

use super::{Catalogue, Entry, Origin};
use crate::config::FunctionConfig;
use crate::deploy::canary::{self, Canary};
use crate::invoke::function::{Before, Function};
use crate::invoke::loaded::Loaded;
use crate::invoke::tier::Tier;

/// Why optimised code does not take the place of a first tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotOptimised {
    /// The version is not served any more.
    #[error("the version is not served any more")]
    Gone,
    /// A secret has changed since the version was loaded.
    #[error(
        "a secret in its environment has changed since it was loaded: send SIGHUP, or deploy it again, to serve it with the new one"
    )]
    Secrets,
}

/// A version that is served by its first tier.
#[derive(Clone, Debug)]
pub struct First {
    /// Its settings.
    pub config: FunctionConfig,
    /// Hash of its module.
    pub digest: blake3::Hash,
    /// Where it is defined.
    pub origin: Origin,
    /// The module, where no file has it.
    pub module: Option<Arc<[u8]>>,
    /// What is served.
    pub function: Arc<Function>,
}

impl Catalogue {
    /// Bytes of the modules that are held in memory until the optimised code of their functions is there, those of canaries excepted.
    #[must_use]
    pub fn module_bytes(&self) -> usize {
        self.entries.values().filter_map(|entry| entry.module.as_ref()).map(|module| module.len()).sum()
    }

    /// The versions that are served by their first tier, in the order in which they came.
    #[must_use]
    pub fn firsts(&self) -> Vec<First> {
        let is_first = |function: &Arc<Function>| function.tier == Tier::First;
        let mut firsts = Vec::new();
        for Entry { config, digest, origin, module, function, canary, .. } in self.entries.values() {
            let (origin, digest) = (*origin, *digest);
            if is_first(function) {
                firsts.push(First {
                    config: config.clone(),
                    digest,
                    origin,
                    module: module.clone(),
                    function: Arc::clone(function),
                });
            }
            if let Some(Canary { config, digest, module, function, .. }) =
                canary.as_ref().filter(|canary| is_first(&canary.function))
            {
                let (config, module, function) = (config.clone(), Some(Arc::clone(module)), Arc::clone(function));
                firsts.push(First { config, digest: *digest, origin, module, function });
            }
        }
        firsts.sort_by_key(|first| first.function.version);
        firsts
    }

    /// Puts optimised code in the place of the first tier of a version, which stays what it is: its number, its settings, its gate, its log, and whether it is a canary. What is served no longer by
    /// that.
    ///
    /// # Errors
    /// When that is not served any more, or its environment is another one now.
    pub fn optimise(&mut self, first: &Arc<Function>, loaded: Loaded) -> Result<Arc<Function>, NotOptimised> {
        let name = first.name().to_owned();
        let entry = self.entries.get(&name).ok_or(NotOptimised::Gone)?;
        let is_served = Arc::ptr_eq(&entry.function, first);
        let canary = entry.canary.as_ref().filter(|canary| Arc::ptr_eq(&canary.function, first));
        let (config, digest) = match canary {
            Some(canary) => (canary.config.clone(), canary.digest),
            None if is_served => (entry.config.clone(), entry.digest),
            None => return Err(NotOptimised::Gone),
        };
        if loaded.process().env != first.process.env {
            return Err(NotOptimised::Secrets);
        }
        let before = Before {
            gate: Some(Arc::clone(&first.gate)),
            in_flight: None,
            log: Some(Arc::clone(&first.log)),
            labels: Some(Arc::clone(&first.labels)),
        };
        first.gate.begin_anew(self.workers);
        let function = self.start(&config, digest, Some(first.shown_version), loaded, before);
        let reach = self.reach(&config.tenant);
        let Some(entry) = self.entries.get_mut(&name) else { return Err(NotOptimised::Gone) };
        if is_served {
            function.neighbours.put(&function);
            (entry.function, entry.module) = (function, None);
        } else if let Some(canary) = &mut entry.canary {
            canary.function = function;
        }
        entry.routes = canary::routes(&entry.config, &entry.function, entry.canary.as_ref(), &self.budget, &reach);
        Ok(self.retire_function(&name, first))
    }
}
