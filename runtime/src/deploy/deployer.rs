//! Changes of what is served, one after the other. Each is prepared aside, and then happens as a whole or not at all.

use std::collections::HashSet;
use std::fmt;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use serde::Serialize;
use serde_json::Value;
use sledge_sandbox::Budget;

use super::catalogue::{Candidate, Catalogue, CatalogueError, Info, Origin};
use super::publish::{Publisher, Subscription};
use super::store::{Store, StoreError};
use crate::compile::{Compiler, MODULE_MAGIC};
use crate::config::{self, Config, ConfigError, FunctionConfig};
use crate::function::Function;
use crate::health::Health;
use crate::host::FunctionLog;
use crate::kv::{self, Store as KvStore};
use crate::load::{self, OpenError};
use crate::memory;
use crate::metrics::text::Gauges;
use crate::upstream::{self, RootsError};

/// Why a change did not happen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeployError {
    /// The settings are wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// It does not fit to what there is.
    #[error(transparent)]
    Catalogue(#[from] CatalogueError),
    /// A function cannot be loaded.
    #[error("function `{name}`: {source}")]
    Function {
        /// Its name.
        name: String,
        /// Why not.
        source: OpenError,
    },
    /// There is no key-value store.
    #[error(transparent)]
    Kv(#[from] kv::OpenError),
    /// There are no certificates to believe.
    #[error(transparent)]
    Roots(#[from] RootsError),
    /// It cannot be kept for the next server.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The server stops.
    #[error("the server is stopping")]
    Stopping,
}

/// What a change came to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Change {
    /// Functions that there were not before.
    pub added: Vec<String>,
    /// Functions of which there is a new version.
    pub replaced: Vec<String>,
    /// Functions that are served no longer.
    pub removed: Vec<String>,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Change { added, replaced, removed } = self;
        let parts = [("added", added), ("replaced", replaced), ("removed", removed)];
        let mut parts = parts.iter().filter(|(_, names)| !names.is_empty()).peekable();
        if parts.peek().is_none() {
            return f.write_str("nothing has changed");
        }
        for (index, (what, names)) in parts.enumerate() {
            write!(f, "{}{what} {}", if index > 0 { "; " } else { "" }, names.join(", "))?;
        }
        Ok(())
    }
}

/// What is served, and the one place where it is changed.
#[derive(Debug)]
pub struct Deployer {
    compiler: Compiler,
    /// Held during a change, which waits for disks and threads.
    changes: Mutex<()>,
    /// Held for moments, by those who ask what there is, too.
    catalogue: Mutex<Catalogue>,
    publisher: Publisher,
    store: Option<Store>,
    health: Arc<Health>,
    stopping: AtomicBool,
}

impl Deployer {
    /// Loads all functions of a configuration that was checked, and those that were deployed to an earlier server.
    ///
    /// # Errors
    /// At the first function that cannot be loaded.
    pub fn new(config: &Config, compiler: Compiler) -> Result<Deployer, DeployError> {
        let functions = |compiler: &Compiler| -> Result<Vec<Candidate>, DeployError> {
            config.functions.iter().map(|function| candidate(function, &read(function)?, compiler)).collect()
        };
        Deployer::with_functions(config, compiler, functions)
    }

    /// The same with functions that are loaded otherwise, instead of the configuration's.
    ///
    /// # Errors
    /// As for [`Deployer::new`].
    pub fn with_functions(
        config: &Config,
        compiler: Compiler,
        functions: impl FnOnce(&Compiler) -> Result<Vec<Candidate>, DeployError>,
    ) -> Result<Deployer, DeployError> {
        let store = config.state_dir.as_deref().map(Store::open).transpose()?;
        let budget = Budget::new(config.memory_total_bytes_max.unwrap_or_else(memory::total_bytes_default));
        let health = Arc::new(Health::default());
        let kv = config.kv.as_deref().map(|file| KvStore::open(file, config.kv_limits(), &health)).transpose()?;
        let roots = upstream::roots(config.http_ca_file.as_deref())?;
        let addresses = config.functions.iter().filter_map(FunctionConfig::site).collect();
        let mut catalogue = Catalogue::new(budget, kv, roots, addresses);
        for candidate in functions(&compiler)? {
            catalogue.check(&candidate.config, Origin::Config)?;
            catalogue.put(candidate, Origin::Config);
        }
        for function in store.iter().flat_map(Store::functions) {
            let function = function?;
            catalogue.check(&function, Origin::Deployed)?;
            let candidate = candidate(&function, &read(&function)?, &compiler)?;
            catalogue.put(candidate, Origin::Deployed);
        }
        let publisher = Publisher::new(catalogue.router());
        let (catalogue, changes, stopping) = (Mutex::new(catalogue), Mutex::default(), AtomicBool::new(false));
        Ok(Deployer { compiler, changes, catalogue, publisher, store, health, stopping })
    }

    /// What is wrong with what is served.
    #[must_use]
    pub fn health(&self) -> &Arc<Health> {
        &self.health
    }

    /// Addresses that functions have to themselves.
    #[must_use]
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.catalogue().addresses().iter().copied().collect()
    }

    /// For one more thread that answers requests.
    #[must_use]
    pub fn subscribe(&self) -> Subscription {
        self.publisher.subscribe()
    }

    /// All functions.
    #[must_use]
    pub fn list(&self) -> Vec<Info> {
        self.catalogue().list()
    }

    /// Versions that were replaced and still have requests.
    #[must_use]
    pub fn retired(&self) -> usize {
        self.catalogue().retired()
    }

    /// What all functions share.
    #[must_use]
    pub fn budget(&self) -> Arc<Budget> {
        Arc::clone(self.catalogue().budget())
    }

    /// What a function wrote to its standard error.
    #[must_use]
    pub fn log(&self, name: &str) -> Option<Arc<FunctionLog>> {
        self.catalogue().functions().find(|function| function.name() == name).map(|function| Arc::clone(&function.log))
    }

    /// What is known here for [the metrics](crate::metrics).
    #[must_use]
    pub fn gauges(&self) -> Gauges {
        let catalogue = self.catalogue();
        let (compilations, compile) = self.compiler.counts();
        let dropped = |function: &Arc<Function>| (function.name().to_owned(), function.log.dropped());
        Gauges {
            functions: catalogue.len() as u64,
            retired: catalogue.retired() as u64,
            memory_bytes_used: catalogue.budget().bytes_used(),
            memory_bytes_max: catalogue.budget().bytes_max(),
            compilations,
            compile,
            log_lines_dropped: catalogue.functions().map(dropped).collect(),
            phases: catalogue.phases(),
            kv_commits: catalogue.kv().map(|kv| kv.commits().counts()),
            problems: self.health.problems_now().into_iter().map(|problem| problem.subject).collect(),
            ..Gauges::default()
        }
    }

    /// Whether deployed functions outlive this server.
    #[must_use]
    pub const fn is_lasting(&self) -> bool {
        self.store.is_some()
    }

    /// From now on nothing changes any more.
    pub fn stop(&self) {
        // A change that has begun is complete before this returns.
        let _change = self.change();
        self.stopping.store(true, Ordering::Relaxed);
    }

    /// Serves `module`, which must be WebAssembly in binary form, under `name`; instead of what was deployed under that name, if anything.
    ///
    /// # Errors
    /// When settings or module are wrong. Then nothing has changed.
    pub fn deploy(&self, name: &str, settings: Value, module: &[u8]) -> Result<Change, DeployError> {
        let config = config::function("settings", name, Path::new(&format!("{name}.wasm")), settings)?;
        config::check_function("settings", &config)?;
        // Long before anything is compiled for nothing; what counts is the second look.
        self.catalogue().check(&config, Origin::Deployed)?;
        if !module.starts_with(MODULE_MAGIC) {
            return Err(DeployError::Function { name: name.to_owned(), source: OpenError::NoModule });
        }
        let candidate = candidate(&config, module, &self.compiler)?;

        let _change = self.change();
        self.check_running()?;
        self.catalogue().check(&config, Origin::Deployed)?;
        if let Some(store) = &self.store {
            store.put(&config, module, &candidate.digest)?;
        }
        let before = self.catalogue().put(candidate, Origin::Deployed);
        let names = vec![name.to_owned()];
        let change = match &before {
            Some(_) => Change { replaced: names, ..Change::default() },
            None => Change { added: names, ..Change::default() },
        };
        self.publish(before.into_iter().collect());
        tracing::info!(%change, "deployed");
        Ok(change)
    }

    /// Serves a deployed function no longer.
    ///
    /// # Errors
    /// When there is none, or it stands in the configuration.
    pub fn remove(&self, name: &str) -> Result<Change, DeployError> {
        let _change = self.change();
        self.check_running()?;
        let before = self.catalogue().remove(name, Origin::Deployed)?;
        if let Some(store) = &self.store {
            // It is gone for this server in any case; the next one would have it again.
            if let Err(error) = store.remove(name) {
                tracing::error!(function = name, %error, "removed, but it will be back after a restart");
            }
        }
        self.publish(vec![before]);
        let change = Change { removed: vec![name.to_owned()], ..Change::default() };
        tracing::info!(%change, "deployed");
        Ok(change)
    }

    /// Serves the functions of a configuration that was checked, instead of those of the one before. Those whose settings, secrets and
    /// file are the same stay as they are.
    ///
    /// # Errors
    /// At the first function that cannot be loaded. Then nothing has changed.
    pub fn reload(&self, config: &Config) -> Result<Change, DeployError> {
        if let Some(kv) = self.catalogue().kv() {
            kv.retry();
        }
        let mut candidates = Vec::new();
        for function in &config.functions {
            let bytes = read(function)?;
            let digest = blake3::hash(&bytes);
            let is_same = |catalogue: &Catalogue| {
                let entry = catalogue.get(&function.name).filter(|entry| entry.origin == Origin::Config);
                entry.is_some_and(|entry| {
                    entry.digest == digest && entry.config == *function && entry.has_the_secrets_of(function)
                })
            };
            if !is_same(&self.catalogue()) {
                candidates.push(candidate(function, &bytes, &self.compiler)?);
            }
        }

        let _change = self.change();
        self.check_running()?;
        let mut catalogue = self.catalogue();
        // Routes may go from one configured function to another: these were compared with each other before.
        config.functions.iter().try_for_each(|function| catalogue.check_configured(function))?;
        let named: HashSet<&str> = config.functions.iter().map(|function| function.name.as_str()).collect();
        let gone: Vec<String> = catalogue.names(Origin::Config).filter(|name| !named.contains(name)).map(str::to_owned).collect();
        let (mut change, mut retired) = (Change::default(), Vec::new());
        for name in gone {
            retired.push(catalogue.remove(&name, Origin::Config)?);
            change.removed.push(name);
        }
        for candidate in candidates {
            let name = candidate.config.name.clone();
            match catalogue.put(candidate, Origin::Config) {
                Some(before) => {
                    retired.push(before);
                    change.replaced.push(name);
                }
                None => change.added.push(name),
            }
        }
        drop(catalogue);
        if change != Change::default() {
            self.publish(retired);
        }
        Ok(change)
    }

    fn publish(&self, retired: Vec<Arc<Function>>) {
        let templates = retired.iter().map(|function| function.template.clone()).collect();
        let router = self.catalogue().router();
        self.publisher.publish(router, templates);
        // Here, and not on a worker, ends what has no request any more.
        drop(retired);
    }

    fn check_running(&self) -> Result<(), DeployError> {
        if self.stopping.load(Ordering::Relaxed) { Err(DeployError::Stopping) } else { Ok(()) }
    }

    /// One after the other.
    fn change(&self) -> MutexGuard<'_, ()> {
        // It protects nothing that could be half changed.
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn catalogue(&self) -> MutexGuard<'_, Catalogue> {
        // What can panic under this lock would be a bug; what is served is then as it was, or as it was to be.
        self.catalogue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read(config: &FunctionConfig) -> Result<Vec<u8>, DeployError> {
    load::read(&config.path).map_err(|source| DeployError::Function { name: config.name.clone(), source })
}

fn candidate(config: &FunctionConfig, bytes: &[u8], compiler: &Compiler) -> Result<Candidate, DeployError> {
    let began = Instant::now();
    let function = load::function_of(bytes, config, compiler);
    let function = function.map_err(|source| DeployError::Function { name: config.name.clone(), source })?;
    tracing::info!(function = config.name, route = config.route(), took = ?began.elapsed(), "loaded");
    Ok(Candidate { config: config.clone(), digest: blake3::hash(bytes), function })
}
