//! Changes of what is served, one after the other. Each is prepared aside, and then happens as a whole or not at all; but of a configuration, at the
//! start and at SIGHUP, and of what was deployed earlier, what is wrong with one function concerns that one only: it is quarantined.

mod gradual;
mod granted;

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use serde::Serialize;
use serde_json::Value;
use sledge_sandbox::Budget;

use super::canary::Progress;
use super::catalogue::{Candidate, Catalogue, CatalogueError, Info, Origin};
use super::grants::{Grants, Look, NotGranted};
use super::history::{Deployed, History, Version};
use super::loading::{self, Stored};
use super::pinned::Pinned;
use super::publish::{Publisher, Subscription};
use super::quarantine::Unusable;
use super::reconfigure::Reload;
use super::scope::{Client, Denied, Scope};
use super::store::{Contents, Store, StoreError};
use super::tiers::{MODULES_BYTES_MAX, Tiers};
use crate::compile::{Compiler, MODULE_MAGIC};
use crate::config::{self, Config, ConfigError, FunctionConfig, SettingChange};
use crate::health::{Health, Subject};
use crate::host::FunctionLog;
use crate::invoke::function::Function;
use crate::invoke::loaded::Loaded;
use crate::invoke::tier::Tier;
use crate::kv::{self, Store as KvStore};
use crate::load::{self, OpenError};
use crate::memory;
use crate::metrics::text::{ExecutionCounts, Gauges};
use crate::upstream::{self, RootsError};
use crate::workflow::durable::{ENDS, status_name};
use crate::workflow::{self, Executions, Workflow};

/// Why a change did not happen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeployError {
    /// The settings are wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// It asks for what its tenant is not granted.
    #[error(transparent)]
    NotGranted(#[from] NotGranted),
    /// The client may not make it.
    #[error(transparent)]
    Denied(#[from] Denied),
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
    /// There are functions to serve, and none can be.
    #[error("none of the functions can be served:{}", .0.iter().map(|(name, why)| format!("\n{name}: {why}")).collect::<String>())]
    Nothing(Vec<(Subject, String)>),
    /// The settings that would stay cannot be read.
    #[error(
        "the settings of `{name}` cannot be read ({why}): give all settings with --reset and --set (admin API: `?reset=true`), or restore the file \
         and send SIGHUP"
    )]
    NoSettings {
        /// The function.
        name: String,
        /// Why not.
        why: String,
    },
    /// No versions are kept.
    #[error(
        "versions of functions are kept in `state_dir`, and the server has none: set it in the configuration, or serve with --state-dir"
    )]
    NoVersions,
    /// There is no such version of it.
    #[error("`{name}` has no version {version}; it has {}", known.iter().map(u64::to_string).collect::<Vec<_>>().join(", "))]
    UnknownVersion {
        /// The function.
        name: String,
        /// Which.
        version: u64,
        /// Those that there are.
        known: Vec<u64>,
    },
    /// It has no version before the present one.
    #[error("`{0}` has no version before the one that is served")]
    First(String),
    /// That version is the present one.
    #[error("version {version} of `{name}` is the one that is served")]
    Present {
        /// The function.
        name: String,
        /// Which.
        version: u64,
    },
    /// Others change it all the time.
    #[error("other clients keep changing the settings of `{0}`; deploy it again")]
    Changing(String),
    /// There is no thread for what watches a gradual deployment.
    #[error("the server has no thread to watch the gradual deployment: {0}")]
    Thread(#[source] io::Error),
    /// The server stops.
    #[error("the server is stopping")]
    Stopping,
}

/// How often a deployment is prepared again because the settings were changed meanwhile on which it builds.
const PREPARATIONS_MAX: usize = 4;

/// What a change came to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Change {
    /// Functions that there were not before.
    pub added: Vec<String>,
    /// Functions of which there is a new version.
    pub replaced: Vec<String>,
    /// Functions that are served no longer.
    pub removed: Vec<String>,
    /// Functions of which there is no version that can be served, or no next one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub quarantined: Vec<String>,
    /// Whether other paths have moved, or elsewhere.
    #[serde(skip)]
    pub redirects: bool,
    /// Whether the server sends files of other folders.
    #[serde(skip)]
    pub folders: bool,
    /// Whether workflows are others.
    #[serde(skip)]
    pub workflows: bool,
    /// What the new version of a function that was deployed is given other values.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<SettingChange>,
    /// Number of the new version of a function that was deployed, where versions are kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    /// The version of which the new one is a copy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rollback_to: Option<u64>,
    /// The tier by which a function that was deployed is served at first, where optimised code is to follow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tier: Option<&'static str>,
    /// The gradual deployment that is under way from now on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub canary: Option<Progress>,
    /// The gradual deployment that was given up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub given_up: Option<Progress>,
}

/// What differs between two versions of a function.
#[derive(Clone, Debug, Serialize)]
pub struct Difference {
    /// The one.
    pub from: Version,
    /// The other.
    pub to: Version,
    /// Settings that differ.
    pub changes: Vec<SettingChange>,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Change { added, replaced, removed, quarantined, redirects, folders, workflows, .. } = self;
        let parts = [("added", added), ("replaced", replaced), ("removed", removed), ("quarantined", quarantined)];
        let mut parts = parts.iter().filter(|(_, names)| !names.is_empty()).peekable();
        if parts.peek().is_none() && !redirects && !folders && !workflows {
            return f.write_str("nothing has changed");
        }
        let mut others = [("redirects changed", redirects), ("folders changed", folders), ("workflows changed", workflows)]
            .into_iter()
            .filter(|(_, is)| **is)
            .peekable();
        while let Some((what, _)) = others.next() {
            f.write_str(what)?;
            if others.peek().is_some() || parts.peek().is_some() {
                f.write_str("; ")?;
            }
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
    /// Held during a change, which waits for disks and threads: what was last reported of functions and their files.
    changes: Mutex<BTreeSet<Subject>>,
    /// Held for moments, also by requests that ask what there is.
    catalogue: Mutex<Catalogue>,
    publisher: Publisher,
    store: Option<Store>,
    health: Arc<Health>,
    stopping: AtomicBool,
    pinned: Pinned,
    /// What deployed functions may have. Exchanged within a change.
    grants: Mutex<Arc<Grants>>,
    tiers: Tiers,
}

impl Deployer {
    /// Loads all functions of a configuration that was checked, and those that were deployed to an earlier server. Those that cannot be served are
    /// quarantined.
    ///
    /// # Errors
    /// When the configuration has functions, and none at all can be served.
    pub fn new(config: &Config, compiler: Compiler) -> Result<Deployer, DeployError> {
        let functions = |compiler: &Compiler| {
            let functions = config.functions.iter().enumerate();
            functions.map(|(index, function)| loading::configured(&config.key(index), function, compiler)).collect()
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
        functions: impl FnOnce(&Compiler) -> Vec<Result<Candidate, Box<Unusable>>>,
    ) -> Result<Deployer, DeployError> {
        let compiler = compiler.with_tiers(config.tiers == config::Tiers::On);
        let store = config.state_dir.as_deref().map(|folder| Store::open(folder, config.versions_max)).transpose()?;
        let budget = Budget::new(config.memory_total_bytes_max.unwrap_or_else(memory::total_bytes_default));
        let health = Arc::new(Health::default());
        let roots = upstream::roots(config.http_ca_file.as_deref())?;
        let open = |kv| KvStore::open(kv, config.kv_limits(), &health, || roots.to_pem());
        let kv = config.kv.as_deref().map(open).transpose()?.map(|kv| kv.sharing(config.kv_sharing()));
        let addresses = config.functions.iter().filter_map(FunctionConfig::site).collect();
        let mut catalogue = Catalogue::new(config.worker_count(), budget, kv, roots, addresses).reporting(&health);
        for function in functions(&compiler) {
            match function {
                Ok(candidate) => drop(catalogue.put(candidate, Origin::Config)),
                Err(unusable) => drop(catalogue.quarantine(*unusable, Origin::Config, false)),
            }
        }
        catalogue.set_redirects(loading::redirects(config));
        catalogue.set_folders(loading::folders(config, catalogue.budget(), &health));
        catalogue.set_workflows(loading::workflows(config));
        catalogue.set_schedules(loading::schedules(config));
        let grants = Grants::new(&config.grants);
        let contents = store.as_ref().map(Store::contents).transpose()?.unwrap_or_default();
        for name in &contents.functions {
            let is_shadowed = catalogue.get(name).is_some();
            let found = store.as_ref().and_then(|store| loading::stored(store, name, is_shadowed, &grants, &compiler));
            found.into_iter().for_each(|found| loading::settle(&mut catalogue, found));
        }
        if !config.functions.is_empty() && catalogue.is_empty() {
            return Err(DeployError::Nothing(catalogue.problems().into_iter().collect()));
        }
        catalogue.set_offers(loading::offers(config));
        let publisher = Publisher::new(catalogue.router());
        let (catalogue, changes, stopping) = (Mutex::new(catalogue), Mutex::default(), AtomicBool::new(false));
        let (pinned, tiers, grants) = (Pinned::new(config), Tiers::default(), Mutex::new(Arc::new(grants)));
        let deployer = Deployer { compiler, changes, catalogue, publisher, store, health, stopping, pinned, tiers, grants };
        deployer.report(&mut deployer.change());
        Ok(deployer)
    }

    /// The functions of an address that cannot be listened on are quarantined, for as long as this server runs.
    ///
    /// # Errors
    /// When no function is left.
    pub fn refuse_address(&self, address: SocketAddr, why: &impl fmt::Display) -> Result<(), DeployError> {
        let reason = format!("listen: cannot listen on {address}: {why}; free the address, then restart the server");
        let mut change = self.change();
        let retired = self.catalogue().refuse_address(address, &reason);
        self.publish(retired, &mut change);
        let catalogue = self.catalogue();
        if catalogue.is_empty() { Err(DeployError::Nothing(catalogue.problems().into_iter().collect())) } else { Ok(()) }
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
        let list = self.catalogue().list();
        list.into_iter().map(|info| self.with_tier(info)).collect()
    }

    /// With what becomes of its optimised code.
    pub(super) fn with_tier(&self, info: Info) -> Info {
        if info.tier != Tier::First.name() {
            return info;
        }
        let version = self.catalogue().get(&info.name).map(|entry| entry.function().version);
        Info { optimised: version.and_then(|version| self.tiers.told(version)), ..info }
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

    /// Durable executions of workflows, where there is a store.
    #[must_use]
    pub fn executions(&self) -> Option<Executions> {
        self.catalogue().executions().cloned()
    }

    /// The workflows, as operators see them.
    #[must_use]
    pub fn workflows(&self) -> Vec<workflow::Info> {
        self.catalogue().workflows().iter().map(|workflow| workflow.info()).collect()
    }

    /// The workflow of that name.
    #[must_use]
    pub fn workflow(&self, tenant: &str, name: &str) -> Option<Arc<Workflow>> {
        let catalogue = self.catalogue();
        let is_it = |workflow: &&Arc<Workflow>| workflow.config.tenant == tenant && workflow.config.name == name;
        catalogue.workflows().iter().find(is_it).cloned()
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
        let dropped =
            |function: &Arc<Function>| ([function.name().to_owned(), function.labels.tenant.clone()], function.log.dropped());
        Gauges {
            functions: catalogue.len() as u64,
            retired: catalogue.retired() as u64,
            memory_bytes_used: catalogue.budget().bytes_used(),
            memory_bytes_max: catalogue.budget().bytes_max(),
            compilations,
            compile,
            log_lines_dropped: catalogue.functions().map(dropped).collect(),
            concurrency_limits: catalogue.concurrency_limits(),
            memo_bytes: catalogue.memo_bytes(),
            phases: catalogue.phases(),
            executions: catalogue.executions().map(|executions| {
                let counted = executions.counted();
                let mut ended = ENDS.map(|status| (status_name(status), 0));
                ended.iter_mut().zip(counted.ended).for_each(|((_, count), now)| *count = now);
                ExecutionCounts { open: counted.open, queued: counted.queued, ended }
            }),
            ahead: catalogue.ahead(),
            execution_bytes: catalogue
                .executions()
                .map(|executions| executions.bytes().into_iter().map(|(tenant, bytes)| (tenant.to_string(), bytes)).collect())
                .unwrap_or_default(),
            kv_commits: catalogue.kv().map(|kv| kv.commits().counts()),
            kv_reads: catalogue.kv().and_then(|kv| kv.shared()?.read_counts()),
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
        self.tiers.stop();
        // A change that has begun is complete before this returns.
        let _change = self.change();
        self.stopping.store(true, Ordering::Relaxed);
    }

    /// Closes the key-value store, when no request runs any more.
    pub fn close_store(&self) {
        let catalogue = self.catalogue();
        if let Some(kv) = catalogue.kv() {
            kv.close();
        }
    }

    /// Serves `module`, which must be WebAssembly in binary form, under `name`; instead of what was deployed under that name, if anything, and
    /// with the settings of that, but for those that are `given`. With `reset` those that are not given are the defaults. The client's author is kept with the version.
    ///
    /// # Errors
    /// When settings or module are wrong, or the client may not deploy it. Then nothing has changed.
    pub fn deploy(&self, name: &str, given: &Value, reset: bool, module: &[u8], client: Client) -> Result<Change, DeployError> {
        let Client { author, scope } = client;
        let prepared =
            |candidate, told: &mut Told<'_>| self.put(candidate, module, Deployed { author, ..Deployed::default() }, told);
        self.prepare(name, given, reset, module, &scope, prepared)
    }

    /// Compiles and loads a version with the settings that it comes to, and has `serve` serve it.
    fn prepare(
        &self,
        name: &str,
        given: &Value,
        reset: bool,
        module: &[u8],
        scope: &Scope,
        serve: impl FnOnce(Candidate, &mut Told<'_>) -> Result<Change, DeployError>,
    ) -> Result<Change, DeployError> {
        for _ in 0..PREPARATIONS_MAX {
            // Long before anything is compiled for nothing; what counts is the second look.
            let config = self.settled(name, given, reset, scope)?;
            self.catalogue().check_deployed(&config)?;
            if !module.starts_with(MODULE_MAGIC) {
                return Err(DeployError::Function { name: name.to_owned(), source: OpenError::NoModule });
            }
            let candidate = loading::candidate(&config, module, &self.compiler);
            let candidate = candidate.map_err(|source| DeployError::Function { name: name.to_owned(), source })?;

            let mut told = self.change();
            self.check_running()?;
            if self.settled(name, given, reset, scope)? == config {
                return serve(candidate, &mut told);
            }
        }
        Err(DeployError::Changing(name.to_owned()))
    }

    /// Keeps a version for the next server, if that is wanted; its number.
    fn keep(
        &self,
        config: &FunctionConfig,
        module: &[u8],
        digest: &blake3::Hash,
        what: Deployed,
    ) -> Result<Option<u64>, DeployError> {
        let Some(store) = &self.store else { return Ok(None) };
        #[expect(
            clippy::disallowed_methods,
            reason = "operators read it on their clocks; the order of versions is that of their numbers"
        )]
        let now = SystemTime::now();
        let deployed_at = Some(humantime::format_rfc3339_seconds(now).to_string());
        Ok(store.put(config, module, digest, Deployed { deployed_at, ..what })?)
    }

    /// The settings that a deployment comes to at this time, if the client may make it.
    fn settled(&self, name: &str, given: &Value, reset: bool, scope: &Scope) -> Result<FunctionConfig, DeployError> {
        let present = {
            let catalogue = self.catalogue();
            // What another tenant's function has is not even looked at.
            if reset || !catalogue.has_name_in(scope, name) { None } else { deployed(&catalogue, name)? }
        };
        let mut settings = present.map_or_else(|| given.clone(), |present| config::merged(&present, given.clone()));
        if let (Some(tenant), Value::Object(entries)) = (scope.tenant(), &mut settings)
            && entries.get("tenant").is_none_or(Value::is_null)
        {
            entries.insert("tenant".to_owned(), (**tenant).into());
        }
        let config = config::function("settings", name, Path::new(&format!("{name}.wasm")), settings)?;
        self.catalogue().check_deployed_in(scope, &config)?;
        config::check_function("settings", &config)?;
        Ok(self.grants().apply(config)?)
    }

    /// The versions of a function that was deployed.
    ///
    /// # Errors
    /// When they are not kept or cannot be read, or there is no such function.
    pub fn versions(&self, name: &str, scope: &Scope) -> Result<History, DeployError> {
        let _change = self.change();
        self.history(name, scope)
    }

    /// What differs between two versions of a function: the present one and that before it, where none is given.
    ///
    /// # Errors
    /// As for [`Deployer::versions`], and where there is no such version.
    pub fn difference(&self, name: &str, from: Option<u64>, to: Option<u64>, scope: &Scope) -> Result<Difference, DeployError> {
        let history = self.versions(name, scope)?;
        let to = match to {
            Some(to) => find(&history, name, to)?,
            None => history.present().ok_or_else(|| CatalogueError::Unknown(name.to_owned()))?,
        };
        let from = match from {
            Some(from) => find(&history, name, from)?,
            None => history.before().ok_or_else(|| DeployError::First(name.to_owned()))?,
        };
        let config = |version: &Version| {
            let settings = Value::Object(version.what.settings.clone());
            config::function("settings", name, Path::new(&format!("{name}.wasm")), settings)
        };
        let changes = config::differences(&config(from)?, &config(to)?);
        Ok(Difference { from: from.clone(), to: to.clone(), changes })
    }

    /// Serves an earlier version of a deployed function again, code and settings, as its next version; without a number that before the present one. Where a version is being
    /// deployed gradually, that is given up, and without a number nothing else happens. What functions have stored is not changed.
    ///
    /// # Errors
    /// As for [`Deployer::versions`]; when there is no such version, or it cannot be served. Then nothing has changed.
    pub fn roll_back(&self, name: &str, to: Option<u64>, client: Client) -> Result<Change, DeployError> {
        let Client { author, scope } = client;
        if to.is_none()
            && let Some(change) = self.give_up(name, &scope)?
        {
            return Ok(change);
        }
        let history = self.versions(name, &scope)?;
        let version = match to {
            Some(to) => find(&history, name, to)?,
            None => history.before().ok_or_else(|| DeployError::First(name.to_owned()))?,
        };
        let number = version.version;
        if history.present() == Some(version) {
            return Err(DeployError::Present { name: name.to_owned(), version: number });
        }
        let store = self.store.as_ref().ok_or(DeployError::NoVersions)?;
        let (config, module) = store.version(name, version)?;
        let config = self.grants().apply(config)?;
        self.catalogue().check_deployed_in(&scope, &config)?;
        self.catalogue().check_deployed(&config)?;
        let candidate = loading::candidate(&config, &module, &self.compiler);
        let candidate = candidate.map_err(|source| DeployError::Function { name: name.to_owned(), source })?;

        let mut change = self.change();
        self.check_running()?;
        // It may have been removed meanwhile, and the grants may be others.
        self.history(name, &scope)?;
        self.catalogue().check_deployed_in(&scope, &config)?;
        if self.grants().look(&config) != Look::Same {
            return Err(DeployError::Changing(name.to_owned()));
        }
        let what = Deployed { author, rollback_to: Some(number), ..Deployed::default() };
        self.put(candidate, &module, what, &mut change)
    }

    /// The versions of a function that was deployed. Within a change.
    fn history(&self, name: &str, scope: &Scope) -> Result<History, DeployError> {
        {
            let catalogue = self.catalogue();
            catalogue.check_name_in(scope, name)?;
            let is_deployed = catalogue.get(name).map(|entry| entry.origin == Origin::Deployed);
            if is_deployed != Some(true) && catalogue.quarantined().get(name, Origin::Deployed).is_none() {
                let name = name.to_owned();
                let is_configured = is_deployed.is_some() || catalogue.quarantined().get(&name, Origin::Config).is_some();
                return Err(if is_configured { CatalogueError::Configured(name) } else { CatalogueError::Unknown(name) }.into());
            }
        }
        let history = self.store.as_ref().ok_or(DeployError::NoVersions)?.versions(name)?;
        Ok(match scope.tenant() {
            Some(tenant) => history.of(tenant),
            None => history,
        })
    }

    /// Serves what was prepared, and keeps it as the next version, of which that is `what` beside. Within a change.
    fn put(&self, mut candidate: Candidate, module: &[u8], what: Deployed, told: &mut Told<'_>) -> Result<Change, DeployError> {
        let config = candidate.config.clone();
        let rollback_to = what.rollback_to;
        let present = {
            let catalogue = self.catalogue();
            catalogue.check_deployed(&config)?;
            // Where they could not be read, they are not there to be compared.
            deployed(&catalogue, &config.name).unwrap_or_default()
        };
        candidate.version = self.keep(&config, module, &candidate.digest, what)?;
        let version = candidate.version;
        let tier = first_tier(&candidate);
        if tier.is_some() && self.store.is_none() {
            let is_room = self.catalogue().module_bytes().saturating_add(module.len()) <= MODULES_BYTES_MAX;
            candidate.module = is_room.then(|| module.into());
        }
        let before = self.catalogue().put(candidate, Origin::Deployed);
        let settings = present.as_ref().map(|present| config::differences(present, &config)).unwrap_or_default();
        let names = vec![config.name];
        let change = match present {
            None if before.is_empty() => Change { added: names, version, rollback_to, tier, ..Change::default() },
            _ => Change { replaced: names, settings, version, rollback_to, tier, ..Change::default() },
        };
        self.publish(before, told);
        // Not what they are: a variable of its environment may be a secret.
        let keys = change.settings.iter().map(|setting| setting.key.as_str()).collect::<Vec<_>>().join(", ");
        tracing::info!(%change, settings = keys, version, rollback_to, "deployed");
        Ok(change)
    }

    /// Serves a deployed function no longer, or has one forgotten that is quarantined.
    ///
    /// # Errors
    /// When there is none, or it stands in the configuration.
    pub fn remove(&self, name: &str, scope: &Scope) -> Result<Change, DeployError> {
        let mut told = self.change();
        self.check_running()?;
        let before = {
            let mut catalogue = self.catalogue();
            catalogue.check_name_in(scope, name)?;
            match catalogue.release(name, Origin::Deployed) {
                Some(_) => Vec::new(),
                None => catalogue.remove(name, Origin::Deployed)?,
            }
        };
        if let Some(store) = &self.store {
            // It is gone for this server in any case; the next one would have it again.
            if let Err(error) = store.remove(name) {
                tracing::error!(function = name, %error, "removed, but the function will return after a restart");
            }
        }
        self.publish(before, &mut told);
        let change = Change { removed: vec![name.to_owned()], ..Change::default() };
        tracing::info!(%change, "deployed");
        Ok(change)
    }

    /// Serves the functions of a configuration that was checked, instead of those of the one before. Those whose settings, secrets and file are the
    /// same stay as they are. Of one that cannot be loaded the version that is served stays; where there is none, it is quarantined. Deployed ones
    /// that are quarantined are tried again.
    ///
    /// # Errors
    /// When the server stops.
    pub fn reload(&self, config: &Config) -> Result<Change, DeployError> {
        if let Some(kv) = self.catalogue().kv() {
            kv.retry();
        }
        let mut loaded = Vec::new();
        for (index, function) in config.functions.iter().enumerate() {
            if !self.is_served_already(function) {
                let address = self.catalogue().check_address(function);
                let found = match address {
                    Ok(()) => loading::configured(&config.key(index), function, &self.compiler),
                    Err(error) => Err(Box::new(Unusable::new(function, error))),
                };
                loaded.push(found);
            }
        }
        let grants = Arc::new(Grants::new(&config.grants));
        let (again, anew) = (self.try_again(&grants), self.load_anew(&grants));
        let (offers, folders, workflows) =
            (loading::offers(config), loading::folders(config, &self.budget(), &self.health), loading::workflows(config));

        let mut told = self.change();
        self.check_running()?;
        let mut catalogue = self.catalogue();
        let mut reload = Reload::new(&mut catalogue, self.store.is_some());
        reload.remove_all_but(&config.functions);
        let (good, bad): (Vec<_>, Vec<_>) = loaded.into_iter().partition(Result::is_ok);
        let bad: Vec<Unusable> = bad.into_iter().filter_map(Result::err).map(|unusable| *unusable).collect();
        for function in config.functions.iter().filter(|function| bad.iter().all(|bad| bad.config.name != function.name)) {
            reload.make_way(function);
        }
        good.into_iter().flatten().for_each(|candidate| reload.put(candidate));
        bad.into_iter().for_each(|unusable| reload.keep_or_quarantine(unusable));
        reload.answer_itself(loading::redirects(config), folders, workflows);
        reload.keep(loading::schedules(config));
        reload.grant(&grants, anew);
        again.into_iter().for_each(|(name, version, found)| reload.restore(&name, version, found));
        let (change, retired) = reload.end();
        catalogue.set_offers(offers);
        drop(catalogue);
        *self.grants.lock().unwrap_or_else(PoisonError::into_inner) = grants;
        self.publish(retired, &mut told);
        Ok(change)
    }

    /// Whether that is what is served.
    fn is_served_already(&self, function: &FunctionConfig) -> bool {
        let Ok(bytes) = load::read(&function.path) else { return false };
        let digest = blake3::hash(&bytes);
        let catalogue = self.catalogue();
        let entry = catalogue.get(&function.name).filter(|entry| entry.origin == Origin::Config);
        entry.is_some_and(|entry| entry.digest == digest && entry.config == *function && entry.has_the_secrets_of(function))
    }

    /// The deployed functions that are quarantined, with the number by which that is known, as they are on disk now.
    fn try_again(&self, grants: &Grants) -> Vec<(String, u64, Option<Stored>)> {
        let Some(store) = &self.store else { return Vec::new() };
        let quarantined = |catalogue: &Catalogue| -> Vec<(String, u64)> {
            let deployed = catalogue.quarantined().iter().filter(|(_, origin, _)| *origin == Origin::Deployed);
            deployed.map(|(name, _, quarantined)| (name.to_owned(), quarantined.version)).collect()
        };
        let names = quarantined(&self.catalogue());
        names
            .into_iter()
            .map(|(name, version)| (name.clone(), version, loading::stored(store, &name, false, grants, &self.compiler)))
            .collect()
    }

    fn publish(&self, retired: Vec<Arc<Function>>, told: &mut Told<'_>) {
        let templates = retired.iter().map(|function| function.template.clone()).collect();
        let router = self.catalogue().router();
        self.publisher.publish(router, templates);
        // Here, and not on a worker, ends what has no request any more.
        drop(retired);
        self.look_for_firsts();
        self.report(told);
    }

    /// Serves optimised code in the place of the first tier of a version. Its number, its history, its gate and its quotas stay.
    pub(super) fn exchange(&self, first: &Arc<Function>, loaded: Loaded) -> Result<(), String> {
        let mut told = self.change();
        self.check_running().map_err(|error| error.to_string())?;
        let retired = self.catalogue().optimise(first, loaded).map_err(|error| error.to_string())?;
        self.publish(vec![retired], &mut told);
        tracing::info!(function = first.name(), version = first.shown_version, "optimised code is served");
        Ok(())
    }

    /// Reports what is wrong with functions and their files now, and what no longer is.
    fn report(&self, told: &mut Told<'_>) {
        let mut problems = self.catalogue().problems();
        let contents = self.store.as_ref().map(Store::contents).transpose();
        match contents.map(Option::unwrap_or_default) {
            Ok(Contents { strange, .. }) => {
                let why = "is not named after a function; remove it, or rename it to NAME.json and send SIGHUP";
                problems.extend(strange.into_iter().map(|file| (Subject::StateFile(file), why.to_owned())));
            }
            Err(error) => drop(problems.insert(Subject::StateFile(String::new()), error.to_string())),
        }
        let now: BTreeSet<Subject> = problems.keys().cloned().collect();
        told.difference(&now).for_each(|subject| self.health.clear(subject));
        problems.into_iter().for_each(|(subject, reason)| self.health.report(subject, reason));
        **told = now;
    }

    /// Versions that were loaded for executions are called no more.
    pub(super) fn retire_pinned(&self, functions: Vec<Arc<Function>>) {
        let mut told = self.change();
        functions.iter().for_each(|function| self.catalogue().retire_beside(function));
        self.publish(functions, &mut told);
    }

    pub(super) const fn tiers(&self) -> &Tiers {
        &self.tiers
    }

    pub(super) const fn pinned(&self) -> &Pinned {
        &self.pinned
    }

    pub(super) const fn compiler(&self) -> &Compiler {
        &self.compiler
    }

    pub(super) const fn store(&self) -> Option<&Store> {
        self.store.as_ref()
    }

    fn check_running(&self) -> Result<(), DeployError> {
        if self.stopping.load(Ordering::Relaxed) { Err(DeployError::Stopping) } else { Ok(()) }
    }

    /// One after the other.
    fn change(&self) -> Told<'_> {
        // What it protects is replaced as a whole.
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn catalogue(&self) -> MutexGuard<'_, Catalogue> {
        // What can panic under this lock would be a bug; what is served is then as it was, or as it was to be.
        self.catalogue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The tier by which it is served at first, where optimised code is to follow.
fn first_tier(candidate: &Candidate) -> Option<&'static str> {
    candidate.loaded.tier().name().filter(|_| candidate.loaded.tier() == Tier::First)
}

/// The version of that number.
fn find<'h>(history: &'h History, name: &str, version: u64) -> Result<&'h Version, DeployError> {
    let known = || history.versions().iter().map(|known| known.version).collect();
    history.get(version).ok_or_else(|| DeployError::UnknownVersion { name: name.to_owned(), version, known: known() })
}

/// The right to change something, and what was reported when it was last changed.
type Told<'a> = MutexGuard<'a, BTreeSet<Subject>>;

/// The settings of a function that was deployed, served or quarantined; none where there is no such function.
fn deployed(catalogue: &Catalogue, name: &str) -> Result<Option<FunctionConfig>, DeployError> {
    if let Some(entry) = catalogue.get(name).filter(|entry| entry.origin == Origin::Deployed) {
        return Ok(Some(entry.config.clone()));
    }
    match catalogue.quarantined().get(name, Origin::Deployed).map(|quarantined| &quarantined.what) {
        None => Ok(None),
        Some(what) if what.has_settings => Ok(Some(what.config.clone())),
        Some(what) => Err(DeployError::NoSettings { name: name.to_owned(), why: what.reason.clone() }),
    }
}
