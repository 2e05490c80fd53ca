//! Versions of functions that durable executions are pinned to, and that are not served any more: loaded beside the served one, reachable by no route.
//!
//! A pinned version has the settings, the grants and the gate of the function as it is served now: operators tighten limits for good reasons. So it is loaded anew when the served function is
//! replaced. A function that was removed, or is quarantined without a version that is served, has none.

#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use blake3::Hash;

use super::catalogue::Origin;
use super::deployer::Deployer;
use super::kept::{Kept, Source};
use super::loading;
use crate::config::{Config, FunctionConfig};
use crate::invoke::function::Function;
use crate::workflow::keeper::{Keeper, NotKept};

/// Versions that are loaded; beyond that those go that were called the longest time ago.
const LOADED_MAX: usize = 64;
/// A version is unloaded that no task has called for so long.
const IDLE: Duration = Duration::from_secs(600);

/// How often a version is loaded again since the served one was replaced meanwhile.
const ATTEMPTS_MAX: usize = 4;

/// A version: tenant, function, digest.
type Key = (String, String, Hash);
/// Held while the version is loaded, so that it is loaded once.
type Slot = Arc<Mutex<Option<Version>>>;

/// A version that is loaded.
#[derive(Debug)]
struct Version {
    function: Arc<Function>,
    /// The one whose settings it has.
    served: Weak<Function>,
    used: Instant,
}

/// What a deployer knows of pinned versions.
#[derive(Debug)]
pub(super) struct Pinned {
    kept: Kept,
    loaded: Mutex<HashMap<Key, Slot>>,
    /// Versions that were replaced: their idle sandboxes are given back with the next sweep.
    replaced: Mutex<Vec<Arc<Function>>>,
}

impl Pinned {
    pub(super) fn new(config: &Config) -> Pinned {
        Pinned { kept: Kept::new(config), loaded: Mutex::default(), replaced: Mutex::default() }
    }

    fn slot(&self, key: &Key) -> Slot {
        Arc::clone(self.loaded().entry(key.clone()).or_default())
    }

    fn loaded(&self) -> MutexGuard<'_, HashMap<Key, Slot>> {
        // Single insertions and removals, which cannot be half done.
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes out what is not needed, or has been idle; and beyond [`LOADED_MAX`] what was used the longest time ago. What is being loaded stays.
    fn unload(&self, needed: &HashSet<Hash>) -> Vec<Arc<Function>> {
        let mut gone = std::mem::take(&mut *self.replaced.lock().unwrap_or_else(PoisonError::into_inner));
        let mut loaded = self.loaded();
        let mut used = Vec::new();
        loaded.retain(|key, slot| {
            let Ok(mut slot) = slot.try_lock() else { return true };
            let is_wanted =
                |version: &Version| needed.contains(&key.2) && version.used.elapsed() < IDLE && version.served.strong_count() > 0;
            if slot.as_ref().is_some_and(is_wanted) {
                used.extend(slot.as_ref().map(|version| version.used));
                return true;
            }
            gone.extend(slot.take().map(|version| version.function));
            false
        });
        used.sort_unstable();
        if let Some(last) = used.len().checked_sub(LOADED_MAX + 1).and_then(|index| used.get(index)) {
            loaded.retain(|_, slot| {
                let Ok(mut slot) = slot.try_lock() else { return true };
                if slot.as_ref().is_some_and(|version| version.used > *last) {
                    return true;
                }
                gone.extend(slot.take().map(|version| version.function));
                false
            });
        }
        gone
    }
}

impl Deployer {
    /// Durable executions that begin from now on are pinned to the versions of functions with which they begin.
    pub fn pin_executions(self: &Arc<Self>) {
        if let Some(executions) = self.executions() {
            // Weak: the deployer has the executions.
            executions.pin_with(Arc::new(Keeping(Arc::downgrade(self))));
        }
    }

    /// Where the file of a function is.
    fn source(&self, name: &str, digest: &Hash) -> Result<Source, NotKept> {
        let entry = self.catalogue().get(name).map(|entry| (entry.origin, entry.config.path.clone()));
        match entry {
            Some((Origin::Config, path)) => Ok(Source { path, is_lasting: false }),
            Some((Origin::Deployed, _)) => match self.store() {
                Some(store) => Ok(Source { path: store.module(name, digest), is_lasting: true }),
                None => {
                    let why =
                        "it was deployed to a server without `state_dir`, which keeps no modules; set that in the configuration";
                    Err(NotKept::Impossible(why.to_owned()))
                }
            },
            None => Err(NotKept::Impossible("it is not served any more".to_owned())),
        }
    }

    /// The function that is served, with its settings.
    fn served(&self, tenant: &str, name: &str) -> Result<(FunctionConfig, Weak<Function>), String> {
        let catalogue = self.catalogue();
        let entry = catalogue.get(name).filter(|entry| entry.config.tenant == tenant);
        entry
            .map(|entry| (entry.config.clone(), Arc::downgrade(entry.function())))
            .ok_or_else(|| "the function is not served now".to_owned())
    }

    /// A version, loaded if it is not.
    fn pinned_version(&self, key: &Key) -> Result<Arc<Function>, String> {
        let slot = self.pinned().slot(key);
        let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        for _ in 0..ATTEMPTS_MAX {
            let (config, served) = self.served(&key.0, &key.1)?;
            if let Some(version) = slot.as_mut().filter(|version| version.served.ptr_eq(&served)) {
                version.used = Instant::now();
                return Ok(Arc::clone(&version.function));
            }
            if let Some(function) = self.load_beside(&key.2, &config, &served)? {
                let version = Version { function: Arc::clone(&function), served, used: Instant::now() };
                let before = slot.replace(version).map(|version| version.function);
                self.pinned().replaced.lock().unwrap_or_else(PoisonError::into_inner).extend(before);
                return Ok(function);
            }
        }
        Err("the function is replaced all the time".to_owned())
    }

    /// Loads a version with the settings of the one that is served; none if that was replaced meanwhile.
    fn load_beside(
        &self,
        digest: &Hash,
        config: &FunctionConfig,
        served: &Weak<Function>,
    ) -> Result<Option<Arc<Function>>, String> {
        let bytes = self.pinned().kept.read(digest)?;
        let candidate = loading::candidate_in_one_tier(config, &bytes, self.compiler()).map_err(|error| error.to_string())?;
        let mut catalogue = self.catalogue();
        let is_served = catalogue.get(&config.name).is_some_and(|entry| Arc::as_ptr(entry.function()) == served.as_ptr());
        if !is_served {
            return Ok(None);
        }
        let function = catalogue.beside(candidate);
        tracing::info!(function = config.name, %digest, "loaded beside the version that is served, for executions that are pinned to it");
        Ok(Some(function))
    }

    fn sweep_pinned(&self, needed: &HashSet<Hash>, all: bool) {
        let mut kept = needed.clone();
        if !all {
            kept.extend(self.catalogue().functions().filter_map(|function| function.digest));
        }
        if let Err(error) = self.pinned().kept.sweep(&kept) {
            tracing::warn!(%error, "versions of functions that no execution needs cannot be removed now");
        }
    }
}

/// The deployer, for executions.
#[derive(Debug)]
struct Keeping(Weak<Deployer>);

impl Keeping {
    fn deployer(&self) -> Result<Arc<Deployer>, String> {
        self.0.upgrade().ok_or_else(|| "the server is stopping".to_owned())
    }
}

impl Keeper for Keeping {
    fn keep(&self, function: &Arc<Function>) -> Result<(), NotKept> {
        let deployer = self.deployer().map_err(NotKept::Impossible)?;
        let digest = function.digest.ok_or_else(|| NotKept::Impossible("it was made of no file".to_owned()))?;
        if deployer.pinned().kept.has(&digest) {
            return Ok(());
        }
        let source = deployer.source(function.name(), &digest)?;
        deployer.pinned().kept.keep(&digest, &source)
    }

    fn has(&self, digest: &Hash) -> bool {
        self.deployer().is_ok_and(|deployer| deployer.pinned().kept.has(digest))
    }

    fn load(&self, tenant: &str, name: &str, digest: &Hash) -> Result<Arc<Function>, String> {
        self.deployer()?.pinned_version(&(tenant.to_owned(), name.to_owned(), *digest))
    }

    fn sweep(&self, needed: &HashSet<Hash>, all: bool) {
        if let Ok(deployer) = self.deployer() {
            deployer.sweep_pinned(needed, all);
        }
    }

    fn unload(&self, needed: &HashSet<Hash>) {
        let Ok(deployer) = self.deployer() else { return };
        let gone = deployer.pinned().unload(needed);
        if !gone.is_empty() {
            deployer.retire_pinned(gone);
        }
    }
}
