//! The functions that are served, by name. Says what a change would be; knows no threads.

mod firsts;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap, hash_map};
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use awsm_abi::text;
use serde::Serialize;
use serde_json::{Map, Value};
use sledge_sandbox::Budget;

pub use self::firsts::{First, NotOptimised};
use super::canary::{self, Canary, Progress};
use super::quarantine::{Quarantine, Quarantined, Unusable};
use crate::config::{self, CallSpeculation, FUNCTIONS_MAX, FunctionConfig, OutsideEffects};
use crate::grpc::Offer;
use crate::health::{Health, Subject};
use crate::host::Strings;
use crate::http::canary::{Counts, Share};
use crate::http::{Folder, Held, Place, Redirect, Route, Router, Site};
use crate::invoke::function::{Before, Function, Home, Neighbours};
use crate::invoke::loaded::{Labels, Loaded};
use crate::invoke::tier::Tier;
use crate::kv::Store;
use crate::memo;
use crate::phases::Phase;
use crate::schedule::{FunctionId, TenantId};
use crate::speculate::Speculation;
use crate::txn::contention::Contention;
use crate::upstream::Roots;
use crate::workflow::durable::timetable::Scheduled;
use crate::workflow::{Defined, Executions, Reach, Stories, Workflow, Workflows};

/// Where a function is defined: nothing else may change it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The configuration and the command line.
    Config,
    /// The admin API.
    Deployed,
}

/// Why a change is none.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CatalogueError {
    /// There is no such function.
    #[error("there is no function `{}`", text::name(.0))]
    Unknown(String),
    /// It is to be deployed gradually, and no version of it is served.
    #[error(
        "no version of `{0}` is served that could answer the other requests: deploy it without --percent (admin API: `?percent=`)"
    )]
    Alone(String),
    /// It is to be deployed gradually, and would answer other requests.
    #[error(
        "settings.{key}: a version that is deployed gradually answers the requests of the one that is served: deploy `{name}` without --percent to change `{key}`"
    )]
    Elsewhere {
        /// The function.
        name: String,
        /// The setting that differs.
        key: &'static str,
    },
    /// It is not being deployed gradually.
    #[error("no version of `{0}` is being deployed gradually; `sledge deploy --percent` begins that")]
    NoCanary(String),
    /// It is the configuration's.
    #[error("`{0}` is in the configuration: change it there and send SIGHUP")]
    Configured(String),
    /// It was deployed.
    #[error("`{0}` was deployed through the admin API: remove it first (`sledge remove {0}`)")]
    Deployed(String),
    /// Its route is that of one that is quarantined.
    #[error("route {route} belongs to `{other}`, which is quarantined: fix or remove that function first")]
    Held {
        /// The route.
        route: String,
        /// Whose it is.
        other: String,
    },
    /// Its route is another's.
    #[error("route {route} belongs to `{other}`")]
    Route {
        /// The route.
        route: String,
        /// Whose it is.
        other: String,
    },
    /// Its route is a redirect.
    #[error("route {0} is a redirect of the configuration: give the function another route, or remove the redirect there")]
    Redirect(String),
    /// Its route is that of a folder.
    #[error("route {0} is a folder of the configuration: give the function another route, or remove the folder there")]
    Folder(String),
    /// Its route is that of a workflow.
    #[error("route {0} is a workflow of the configuration: give the function another route, or remove the workflow there")]
    Workflow(String),
    /// Its address is not there.
    #[error("the server does not listen on {0}: it opens addresses when it starts, for functions of the configuration")]
    Address(SocketAddr),
    /// There are too many.
    #[error("the server has {FUNCTIONS_MAX} functions already")]
    Full,
}

/// A function as operators see it.
#[derive(Clone, Debug, Serialize)]
pub struct Info {
    /// Its name.
    pub name: String,
    /// Path of its requests.
    pub route: String,
    /// Its own address, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listen: Option<String>,
    /// Methods it answers.
    pub methods: Vec<String>,
    /// Whose it is.
    pub tenant: String,
    /// Where it is defined.
    pub origin: Origin,
    /// Whether it is served.
    pub state: State,
    /// What is wrong with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// Counts the deployments of a function whose versions are kept, otherwise the functions that this server has loaded: the larger, the later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    /// BLAKE3 of the file it was made from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Bytes of its machine code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code_bytes: Option<usize>,
    /// How far its code is optimised, where there is more than one tier: `first` or `optimised`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tier: Option<&'static str>,
    /// While its first tier is served: what becomes of the optimised code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub optimised: Option<String>,
    /// The phases that it declares.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<Phase>,
    /// Its gradual deployment, if one is under way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub canary: Option<Progress>,
    /// Why the last gradual deployment was given up, until the next deployment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub given_up: Option<String>,
    /// Earlier versions that still have requests.
    pub retired: usize,
    /// Its [settings](config::settings), where they are asked for.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub settings: Map<String, Value>,
}

/// Whether a function is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Requests are answered by it.
    Served,
    /// Something is wrong with it: requests are answered with 503.
    Quarantined,
}

/// A function that is served.
#[derive(Debug)]
pub struct Entry {
    /// Its settings.
    pub config: FunctionConfig,
    /// Hash of the file it was made from.
    pub digest: blake3::Hash,
    /// Where it is defined.
    pub origin: Origin,
    version: u64,
    function: Arc<Function>,
    /// Its module, until its optimised code is there, where no file has that.
    module: Option<Arc<[u8]>>,
    /// One for each path of its requests.
    routes: Vec<Arc<Route>>,
    /// Its next version, while that is being deployed gradually.
    canary: Option<Canary>,
    /// Why the last one was given up.
    given_up: Option<String>,
}

impl Entry {
    /// Its number.
    #[must_use]
    pub const fn version(&self) -> u64 {
        self.version
    }

    /// What is served.
    #[must_use]
    pub const fn function(&self) -> &Arc<Function> {
        &self.function
    }

    /// Whether secrets are still what they were when this was loaded.
    pub fn has_the_secrets_of(&self, config: &FunctionConfig) -> bool {
        let env = config.environment().map(Strings::from_iter);
        env.is_ok_and(|env| env == self.function.process.env)
    }
}

impl Entry {
    /// What a next version with those settings keeps of this one.
    fn kept_by(&self, config: &FunctionConfig, next: &Loaded) -> Before {
        let function = &self.function;
        let limits = |config: &FunctionConfig| (config.concurrency(), config.queue_max);
        // Another tenant does not see what this one's wrote.
        let has_same_log = self.config.log_lines_per_s_max == config.log_lines_per_s_max && self.config.tenant == config.tenant;
        Before {
            gate: (limits(&self.config) == limits(config)).then(|| Arc::clone(&function.gate)),
            in_flight: function.gate.in_flight(),
            log: has_same_log.then(|| Arc::clone(&function.log)),
            labels: (*function.labels == next.labels).then(|| Arc::clone(&function.labels)),
        }
    }
}

/// All of them.
#[derive(Debug)]
pub struct Catalogue {
    entries: BTreeMap<String, Entry>,
    /// Names by where requests come in. While a configuration is put in the place of another, two may have been at one: the one put last counts.
    places: HashMap<(Option<SocketAddr>, String), String>,
    quarantine: Quarantine,
    /// Numbers for the scheduler; kept by those that were removed, so that one of the same name finds its own again.
    functions: Numbers,
    tenants: Numbers,
    workers: usize,
    budget: Arc<Budget>,
    kv: Option<Store>,
    roots: Arc<Roots>,
    /// Where functions say what is wrong with them while they are served.
    health: Option<Arc<Health>>,
    /// By tenant.
    neighbours: HashMap<String, Arc<Neighbours>>,
    /// The keys over which transactions conflict, by tenant.
    contention: HashMap<String, Arc<Contention>>,
    /// What executions go by that go ahead of themselves, by tenant.
    speculation: HashMap<String, Arc<Speculation>>,
    stories: HashMap<String, Arc<Stories>>,
    /// Addresses that functions have to themselves.
    addresses: BTreeSet<SocketAddr>,
    /// What applications offer, and where.
    offers: Vec<(Site, Arc<Offer>)>,
    /// Paths that have moved, and where.
    redirects: Vec<(Site, Arc<Redirect>)>,
    /// Workflows, and what they reach by tenant.
    workflows: Vec<Arc<Workflow>>,
    reachable_workflows: HashMap<String, Arc<Workflows>>,
    /// Durable executions, where there is a store.
    executions: Option<Executions>,
    /// Folders whose files the server sends.
    folders: Vec<(Site, Arc<Folder>)>,
    version: u64,
    /// Versions that were replaced or removed, until they are gone.
    retired: Vec<(String, Weak<Function>)>,
    /// When there are so many, those are looked for that are gone.
    retired_max: usize,
}

const RETIRED_MIN: usize = 16;

/// A function that is loaded and not served yet.
#[derive(Debug)]
pub struct Candidate {
    /// Its settings.
    pub config: FunctionConfig,
    /// Hash of the file it was made from.
    pub digest: blake3::Hash,
    /// Its number among the [versions](super::history) of its function, where they are kept.
    pub version: Option<u64>,
    /// What it was made to.
    pub loaded: Loaded,
    /// The module, where its optimised code is to follow and no file has it.
    pub module: Option<Arc<[u8]>>,
}

impl Catalogue {
    /// Without functions; so many workers run them, all share `budget`, those of a tenant what it has in `kv`, and some may have one of these addresses to themselves;
    /// `roots` are for the servers that they ask.
    #[must_use]
    pub fn new(
        workers: usize,
        budget: Arc<Budget>,
        kv: Option<Store>,
        roots: Arc<Roots>,
        addresses: BTreeSet<SocketAddr>,
    ) -> Catalogue {
        let (functions, tenants) = (Numbers::default(), Numbers::default());
        let executions = kv.as_ref().map(Executions::of);
        Catalogue {
            entries: BTreeMap::new(),
            places: HashMap::new(),
            quarantine: Quarantine::default(),
            functions,
            tenants,
            workers,
            budget,
            kv,
            roots,
            health: None,
            neighbours: HashMap::new(),
            contention: HashMap::new(),
            speculation: HashMap::new(),
            stories: HashMap::new(),
            addresses,
            offers: Vec::new(),
            redirects: Vec::new(),
            workflows: Vec::new(),
            reachable_workflows: HashMap::new(),
            executions,
            folders: Vec::new(),
            version: 0,
            retired: Vec::new(),
            retired_max: RETIRED_MIN,
        }
    }

    /// With where its functions say what is wrong with them while they are served.
    #[must_use]
    pub fn reporting(mut self, health: &Arc<Health>) -> Catalogue {
        self.health = Some(Arc::clone(health));
        self
    }

    /// Addresses that functions have to themselves.
    #[must_use]
    pub const fn addresses(&self) -> &BTreeSet<SocketAddr> {
        &self.addresses
    }

    /// What all functions share.
    #[must_use]
    pub const fn budget(&self) -> &Arc<Budget> {
        &self.budget
    }

    /// The key-value store, if there is one.
    #[must_use]
    pub const fn kv(&self) -> Option<&Store> {
        self.kv.as_ref()
    }

    /// Durable executions, where there is a store.
    #[must_use]
    pub const fn executions(&self) -> Option<&Executions> {
        self.executions.as_ref()
    }

    /// The function of that name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Entry> {
        self.entries.get(name)
    }

    /// All of them.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.values()
    }

    /// Paths there that have moved, and those of files.
    pub fn paths_of_the_server(&self, site: Site) -> impl Iterator<Item = String> {
        let redirects = self.redirects.iter().filter(move |(other, _)| *other == site);
        let folders = self.folders.iter().filter(move |(other, _)| *other == site);
        let redirects = redirects.map(|(_, redirect)| redirect.pattern.to_string());
        redirects.chain(folders.map(|(_, folder)| folder.pattern().to_owned()))
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Names of all that `origin` says.
    pub fn names(&self, origin: Origin) -> impl Iterator<Item = &str> {
        self.entries.iter().filter(move |(_, entry)| entry.origin == origin).map(|(name, _)| name.as_str())
    }

    /// Whether a function with these settings could be added, or take the place of one.
    ///
    /// # Errors
    /// When another says what it is, or has its route.
    pub fn check(&self, config: &FunctionConfig, origin: Origin) -> Result<(), CatalogueError> {
        match self.entries.get(&config.name) {
            Some(entry) if entry.origin != origin => return Err(not_yours(&config.name, entry.origin)),
            None if self.entries.len() >= FUNCTIONS_MAX => return Err(CatalogueError::Full),
            _ => {}
        }
        self.check_address(config)?;
        if let Some(error) = self.taken(config) {
            return Err(error);
        }
        match self.other_at(config).next() {
            Some((route, other)) => Err(CatalogueError::Route { route, other: other.to_owned() }),
            None => Ok(()),
        }
    }

    /// Whether that could be deployed, those that are quarantined considered, too.
    ///
    /// # Errors
    /// As for [`Catalogue::check`], and when one of these has its name or its route.
    pub fn check_deployed(&self, config: &FunctionConfig) -> Result<(), CatalogueError> {
        self.check(config, Origin::Deployed)?;
        if self.quarantine.get(&config.name, Origin::Config).is_some() {
            return Err(CatalogueError::Configured(config.name.clone()));
        }
        let held = self.quarantine.iter().filter(|(name, _, quarantined)| quarantined.held.is_some() && *name != config.name);
        for (other, _, quarantined) in held {
            let theirs: Vec<_> = places(&quarantined.what.config).collect();
            if let Some((_, route)) = places(config).find(|place| theirs.contains(place)) {
                return Err(CatalogueError::Held { route, other: other.to_owned() });
            }
        }
        Ok(())
    }

    /// Other functions that are where that one is to be, with the route.
    fn other_at(&self, config: &FunctionConfig) -> impl Iterator<Item = (String, &str)> {
        places(config).filter_map(|place| {
            let other = self.places.get(&place).filter(|other| **other != config.name)?;
            Some((place.1, other.as_str()))
        })
    }

    /// A route of that function at which the server itself answers.
    fn taken(&self, config: &FunctionConfig) -> Option<CatalogueError> {
        places(config).find_map(|(site, route)| {
            if self.redirects.iter().any(|(other, redirect)| *other == site && *redirect.pattern == *route) {
                return Some(CatalogueError::Redirect(route));
            }
            if self.workflows.iter().any(|workflow| workflow.config.site() == site && workflow.config.route() == route) {
                return Some(CatalogueError::Workflow(route));
            }
            let is_folder = self.folders.iter().any(|(other, folder)| *other == site && folder.pattern() == route);
            is_folder.then_some(CatalogueError::Folder(route))
        })
    }

    /// Whether the server listens where the function is to be answered.
    ///
    /// # Errors
    /// When it does not.
    pub fn check_address(&self, config: &FunctionConfig) -> Result<(), CatalogueError> {
        let unknown = config.site().filter(|address| !self.addresses.contains(address));
        unknown.map_or(Ok(()), |address| Err(CatalogueError::Address(address)))
    }

    /// The scheduler's numbers for a tenant and its function. A function that moves to another tenant is another one there.
    fn numbers(&mut self, tenant: &str, name: &str) -> (TenantId, FunctionId) {
        let own = self.functions.number(&format!("{tenant}\0{name}"));
        let tenant = self.tenants.number(tenant).unwrap_or(NUMBERS_MAX);
        // Functions without a number of their own share one in their tenant: the order knows functions of one tenant only.
        (TenantId(tenant), FunctionId(own.unwrap_or(NUMBERS_MAX + tenant)))
    }

    /// The scheduler's number for the first tier of a function.
    fn first_number(&mut self, tenant: &str, name: &str, own: FunctionId) -> FunctionId {
        self.functions.number(&format!("{tenant}\0{name}\0first")).map_or(own, FunctionId)
    }

    /// Adds a function that was [checked](Catalogue::check), or puts it in the place of the one with its name. What is served no longer by that: the version before, and one
    /// that was being deployed gradually.
    pub fn put(&mut self, candidate: Candidate, origin: Origin) -> Vec<Arc<Function>> {
        self.release(&candidate.config.name, origin);
        let (config, digest, version) = (candidate.config.clone(), candidate.digest, candidate.version);
        let module = candidate.module.clone();
        let function = self.running(candidate);
        function.neighbours.put(&function);
        let version = version.unwrap_or(function.version);
        let reach = self.reach(&config.tenant);
        let routes = canary::routes(&config, &function, None, &self.budget, &reach);
        let (places, name): (Vec<_>, _) = (places(&config).collect(), config.name.clone());
        let entry = Entry { config, digest, origin, version, function, module, routes, canary: None, given_up: None };
        let before = self.entries.insert(name.clone(), entry).map(|entry| self.retire(entry));
        self.places.extend(places.into_iter().map(|place| (place, name.clone())));
        before.unwrap_or_default()
    }

    /// Has a function run in this server, as the next version of the one with its name if there is one.
    fn running(&mut self, candidate: Candidate) -> Arc<Function> {
        let Candidate { config, digest, version, loaded, .. } = candidate;
        let before = self.entries.get(&config.name).map_or_else(Before::default, |entry| entry.kept_by(&config, &loaded));
        self.start(&config, digest, version, loaded, before)
    }

    /// The same, which has that in common with what it follows.
    fn start(
        &mut self,
        config: &FunctionConfig,
        digest: blake3::Hash,
        version: Option<u64>,
        loaded: Loaded,
        before: Before,
    ) -> Arc<Function> {
        self.version += 1;
        let (tenant, number) = self.numbers(&config.tenant, &config.name);
        // What is learned of unoptimised code says nothing of optimised code, which goes on with what was known before.
        let number = if loaded.tier() == Tier::First { self.first_number(&config.tenant, &config.name, number) } else { number };
        let neighbours = self.neighbours.entry(config.tenant.clone()).or_default();
        let executions = self.executions.as_ref().filter(|_| config.effects == OutsideEffects::Outbox);
        let is_ahead = config.speculation >= CallSpeculation::Calls;
        let speculation = is_ahead.then(|| tables_of(&mut self.speculation, &config.tenant, &self.budget));
        let home = Home {
            outbox: executions.map(|executions| executions.outbox(&config.tenant)),
            tenant,
            number,
            version: self.version,
            shown_version: version.unwrap_or(self.version),
            digest: Some(digest),
            workers: self.workers,
            neighbours: Arc::clone(neighbours),
            budget: Some(Arc::clone(&self.budget)),
            kv: self.kv.as_ref().map(|kv| kv.space(&config.tenant)),
            contention: Arc::clone(self.contention.entry(config.tenant.clone()).or_default()),
            speculation,
            roots: Some(Arc::clone(&self.roots)),
            health: self.health.clone(),
            before,
        };
        Arc::new(Function::new(loaded, home))
    }

    /// Another version of a function that is served, with its settings and its limits. No route leads to it, and no function finds it by its name.
    pub fn beside(&mut self, candidate: Candidate) -> Arc<Function> {
        self.running(candidate)
    }

    /// Such a version is called no more.
    pub fn retire_beside(&mut self, function: &Arc<Function>) {
        let name = function.name().to_owned();
        drop(self.retire_function(&name, function));
    }

    /// Settings of the versions that are being deployed gradually.
    pub fn canaries(&self) -> impl Iterator<Item = &FunctionConfig> {
        self.entries.values().filter_map(|entry| Some(&entry.canary.as_ref()?.config))
    }

    /// Lets a part of the requests of a deployed function go to its next version. What is served no longer by that: the one to which they went before.
    ///
    /// # Errors
    /// When nothing of that name is served, it is the configuration's, or it would answer other requests.
    pub fn try_out(
        &mut self,
        candidate: Candidate,
        module: Arc<[u8]>,
        author: Option<String>,
        (share, counts): (Share, Arc<Counts>),
    ) -> Result<Vec<Arc<Function>>, CatalogueError> {
        let name = candidate.config.name.clone();
        self.check_gradual(&candidate.config)?;
        let (config, digest, version) = (candidate.config.clone(), candidate.digest, candidate.version);
        let function = self.running(candidate);
        let version = version.unwrap_or(function.version);
        let canary = Canary { config, digest, module, author, version, function, share, counts };
        let before = self.set_canary(&name, Some(canary));
        Ok(before.map(|before| self.retire_function(&name, &before.function)).into_iter().collect())
    }

    /// Whether that can be deployed gradually.
    ///
    /// # Errors
    /// As for [`try_out`](Catalogue::try_out).
    pub fn check_gradual(&self, config: &FunctionConfig) -> Result<(), CatalogueError> {
        let name = || config.name.clone();
        let entry = self.entries.get(&config.name).ok_or_else(|| CatalogueError::Alone(name()))?;
        if entry.origin != Origin::Deployed {
            return Err(CatalogueError::Configured(name()));
        }
        Canary::differs_in(&entry.config, config).map_or(Ok(()), |key| Err(CatalogueError::Elsewhere { name: name(), key }))
    }

    /// What is being deployed gradually under that name.
    ///
    /// # Errors
    /// When nothing is.
    pub fn canary(&self, name: &str) -> Result<&Canary, CatalogueError> {
        let entry = self.entries.get(name).ok_or_else(|| CatalogueError::Unknown(name.to_owned()))?;
        entry.canary.as_ref().ok_or_else(|| CatalogueError::NoCanary(name.to_owned()))
    }

    /// From now on so many of a hundred requests go to the canary. Its counts go on.
    ///
    /// # Errors
    /// When there is none.
    pub fn set_percent(&mut self, name: &str, percent: u8) -> Result<(), CatalogueError> {
        self.canary(name)?;
        if let Some(mut canary) = self.set_canary(name, None) {
            canary.share.percent = percent;
            self.set_canary(name, Some(canary));
        }
        Ok(())
    }

    /// Serves the canary whole, by that number. What is served no longer by that.
    ///
    /// # Errors
    /// When there is none.
    pub fn promote(&mut self, name: &str, version: Option<u64>) -> Result<Vec<Arc<Function>>, CatalogueError> {
        self.canary(name)?;
        let Some(canary) = self.set_canary(name, None) else { return Ok(Vec::new()) };
        let reach = self.reach(&canary.config.tenant);
        let Some(entry) = self.entries.get_mut(name) else { return Ok(Vec::new()) };
        let before = std::mem::replace(&mut entry.function, canary.function);
        entry.module = (entry.function.tier == Tier::First).then_some(canary.module);
        entry.routes = canary::routes(&canary.config, &entry.function, None, &self.budget, &reach);
        entry.version = version.unwrap_or(canary.version);
        (entry.config, entry.digest) = (canary.config, canary.digest);
        entry.function.neighbours.put(&entry.function);
        Ok(vec![self.retire_function(name, &before)])
    }

    /// Gives a canary up, perhaps for a reason that operators are to see. What is served no longer by that.
    ///
    /// # Errors
    /// When there is none.
    pub fn give_up(&mut self, name: &str, why: Option<String>) -> Result<Vec<Arc<Function>>, CatalogueError> {
        self.canary(name)?;
        let canary = self.set_canary(name, None);
        if let Some(entry) = self.entries.get_mut(name) {
            entry.given_up = why;
        }
        Ok(canary.map(|canary| self.retire_function(name, &canary.function)).into_iter().collect())
    }

    /// Exchanges what is being deployed gradually, with the routes; what it was.
    fn set_canary(&mut self, name: &str, canary: Option<Canary>) -> Option<Canary> {
        let tenant = self.entries.get(name)?.config.tenant.clone();
        let reach = self.reach(&tenant);
        let entry = self.entries.get_mut(name)?;
        let before = std::mem::replace(&mut entry.canary, canary);
        entry.given_up = None;
        entry.routes = canary::routes(&entry.config, &entry.function, entry.canary.as_ref(), &self.budget, &reach);
        before
    }

    /// Removes a function that `origin` says; what is served no longer by that.
    ///
    /// # Errors
    /// When there is none, or it is another's.
    pub fn remove(&mut self, name: &str, origin: Origin) -> Result<Vec<Arc<Function>>, CatalogueError> {
        match self.entries.get(name) {
            None => return Err(CatalogueError::Unknown(name.to_owned())),
            Some(entry) if entry.origin != origin => return Err(not_yours(name, entry.origin)),
            Some(_) => {}
        }
        let entry = self.entries.remove(name).ok_or_else(|| CatalogueError::Unknown(name.to_owned()))?;
        Ok(self.retire(entry))
    }

    fn retire(&mut self, entry: Entry) -> Vec<Arc<Function>> {
        let (name, function) = (&entry.config.name, &entry.function);
        let canary = entry.canary.as_ref().map(|canary| self.retire_function(name, &canary.function));
        let retired = self.retire_function(name, function);
        let quarantined = [Origin::Config, Origin::Deployed].map(|origin| self.quarantine.get(name, origin));
        if quarantined.into_iter().flatten().any(|quarantined| quarantined.what.config.tenant == entry.config.tenant) {
            function.neighbours.quarantine(name);
        }
        for place in places(&entry.config) {
            if let hash_map::Entry::Occupied(place) = self.places.entry(place)
                && *place.get() == entry.config.name
            {
                place.remove();
            }
        }
        std::iter::once(retired).chain(canary).collect()
    }

    /// A version is served no longer.
    fn retire_function(&mut self, name: &str, function: &Arc<Function>) -> Arc<Function> {
        // Relaxed: threads learn of it by what is published afterwards.
        function.retired.store(true, Ordering::Relaxed);
        function.neighbours.remove(function);
        self.speculation.values().for_each(|known| known.forget_function(function.version));
        if self.retired.len() >= self.retired_max {
            self.retired.retain(|(_, function)| function.strong_count() > 0);
            self.retired_max = RETIRED_MIN.max(2 * self.retired.len());
        }
        self.retired.push((name.to_owned(), Arc::downgrade(function)));
        Arc::clone(function)
    }

    /// Quarantines a function, which is served no longer, if it was; unless that version is to be `kept`.
    pub fn quarantine(&mut self, unusable: Unusable, origin: Origin, kept: bool) -> Vec<Arc<Function>> {
        let FunctionConfig { name, tenant, .. } = unusable.config.clone();
        self.release(&name, origin);
        let before = if kept { Vec::new() } else { self.remove(&name, origin).unwrap_or_default() };
        let labels = Arc::new(Labels { function: name.clone(), tenant: tenant.clone(), phases: None });
        let (_, number) = self.numbers(&tenant, &name);
        let held = |path: String| Arc::new(Held { pattern: path.into(), number, labels: Arc::clone(&labels) });
        self.version += 1;
        let held = (!kept).then(|| unusable.config.routes().into_iter().map(held).collect());
        self.quarantine.put(origin, Quarantined { what: unusable, version: self.version, held });
        if !kept {
            self.neighbours.entry(tenant).or_default().quarantine(&name);
        }
        before
    }

    /// What there was to be said of a quarantined function is over; it may become a function that is served.
    pub fn release(&mut self, name: &str, origin: Origin) -> Option<Quarantined> {
        let quarantined = self.quarantine.remove(name, origin)?;
        let tenant = &quarantined.what.config.tenant;
        // Another one of the name, defined elsewhere, may be quarantined still.
        let is_held = |other: &Quarantined| other.held.is_some() && other.what.config.tenant == *tenant;
        let others = [Origin::Config, Origin::Deployed].map(|origin| self.quarantine.get(name, origin));
        if !others.into_iter().flatten().any(is_held)
            && let Some(neighbours) = self.neighbours.get(tenant)
        {
            neighbours.release(name);
        }
        Some(quarantined)
    }

    /// The functions that are quarantined.
    #[must_use]
    pub const fn quarantined(&self) -> &Quarantine {
        &self.quarantine
    }

    /// What is wrong with functions, in words: one text for each name.
    #[must_use]
    pub fn problems(&self) -> BTreeMap<Subject, String> {
        let mut problems: BTreeMap<Subject, String> = BTreeMap::new();
        for (name, _, quarantined) in self.quarantine.iter() {
            let text = problems.entry(Subject::Function(name.to_owned())).or_default();
            *text = if text.is_empty() { String::new() } else { format!("{text}; ") } + &quarantined.what.reason;
        }
        for workflow in &self.workflows {
            if let Some(problem) = workflow.problem() {
                problems.insert(Subject::Workflow(workflow.config.name.clone()), problem.to_owned());
            }
        }
        problems.extend(
            self.folders.iter().filter_map(|(_, folder)| folder.problem()).map(|(subject, why)| (subject, why.to_owned())),
        );
        problems
    }

    /// An address that the server cannot have: what was to be answered there is quarantined.
    pub fn refuse_address(&mut self, address: SocketAddr, reason: &str) -> Vec<Arc<Function>> {
        self.addresses.remove(&address);
        let there = self.entries.values().filter(|entry| entry.config.site() == Some(address));
        let there: Vec<_> = there.map(|entry| (Unusable::new(&entry.config, reason), entry.origin)).collect();
        there.into_iter().flat_map(|(unusable, origin)| self.quarantine(unusable, origin, false)).collect()
    }

    /// Deployed functions that have the name or the route of that one.
    pub fn in_the_way_of(&self, config: &FunctionConfig) -> Vec<FunctionConfig> {
        let mut names: Vec<&str> = self.other_at(config).map(|(_, other)| other).collect();
        names.push(&config.name);
        names.sort_unstable();
        names.dedup();
        let others = names.into_iter().filter_map(|name| self.entries.get(name));
        others.filter(|entry| entry.origin == Origin::Deployed).map(|entry| entry.config.clone()).collect()
    }

    /// Deployed functions that have a route at which the server itself answers, with that.
    pub fn in_the_way_of_the_server(&self) -> Vec<(FunctionConfig, CatalogueError)> {
        let deployed = self.entries.values().filter(|entry| entry.origin == Origin::Deployed);
        deployed.filter_map(|entry| Some((entry.config.clone(), self.taken(&entry.config)?))).collect()
    }

    /// Whether another function, of the configuration, has the route of that one.
    #[must_use]
    pub fn has_configured_at(&self, config: &FunctionConfig) -> bool {
        let mut others = self.other_at(config).filter_map(|(_, other)| self.entries.get(other));
        others.any(|entry| entry.origin == Origin::Config)
    }

    /// Says what applications offer from now on, in place of what they did before.
    pub fn set_offers(&mut self, offers: Vec<(Site, Arc<Offer>)>) {
        self.offers = offers;
    }

    /// Says which paths have moved from now on, in place of those that had before. Whether that is another thing.
    pub fn set_redirects(&mut self, redirects: Vec<(Site, Arc<Redirect>)>) -> bool {
        let is_new = self.redirects != redirects;
        self.redirects = redirects;
        is_new
    }

    /// What workflows of a tenant reach.
    fn reach(&mut self, tenant: &str) -> Reach {
        let stories = self.stories.entry(tenant.to_owned()).or_insert_with(|| Stories::new(Some(Arc::clone(&self.budget))));
        let reach = Reach {
            stories: Arc::clone(stories),
            speculation: tables_of(&mut self.speculation, tenant, &self.budget),
            functions: Arc::clone(self.neighbours.entry(tenant.to_owned()).or_default()),
            workflows: Arc::clone(self.reachable_workflows.entry(tenant.to_owned()).or_default()),
            kv: self.kv.as_ref().map(|kv| kv.space(tenant)),
            contention: Arc::clone(self.contention.entry(tenant.to_owned()).or_default()),
            roots: Arc::clone(&self.roots),
            executions: self.executions.clone(),
        };
        if let Some(executions) = &self.executions {
            executions.know(tenant, &reach);
        }
        reach
    }

    /// Runs that were begun ahead, by tenant and by what became of them; of tenants with such runs.
    #[must_use]
    pub fn ahead(&self) -> Vec<([String; 2], u64)> {
        let used = self
            .speculation
            .iter()
            .map(|(tenant, known)| (tenant, known.runs()))
            .filter(|(_, runs)| runs.iter().any(|(_, count)| *count > 0));
        let all = used.flat_map(|(tenant, runs)| runs.map(|(result, count)| ([tenant.clone(), result.to_owned()], count)));
        let mut all: Vec<_> = all.collect();
        all.sort_unstable();
        all
    }

    /// Says what is started without requests from now on, and when.
    pub fn set_schedules(&mut self, schedules: Vec<Arc<Scheduled>>) {
        for scheduled in &schedules {
            self.reach(&scheduled.config.tenant);
        }
        if let Some(executions) = &self.executions {
            executions.keep(schedules);
        }
    }

    /// Says which workflows clients can start from now on, in place of those before. Whether that is another thing.
    pub fn set_workflows(&mut self, workflows: Vec<Defined>) -> bool {
        let is_new = workflows.len() != self.workflows.len()
            || workflows.iter().zip(&self.workflows).any(|((config, definition), before)| !before.is(config, definition));
        if is_new {
            let new = |(config, definition): Defined| {
                let reach = self.reach(&config.tenant);
                let workflow = Arc::new(Workflow::new(config, definition, reach));
                workflow.register();
                workflow
            };
            let new = workflows.into_iter().map(new).collect();
            let before = std::mem::replace(&mut self.workflows, new);
            self.forget(&before);
        }
        is_new
    }

    /// Drops what is known of the definitions of these workflows that are not served any more.
    fn forget(&self, before: &[Arc<Workflow>]) {
        let of = |workflow: &Arc<Workflow>| Some((workflow.config.tenant.clone(), workflow.definition()?.fingerprint()));
        let served: BTreeSet<_> = self.workflows.iter().filter_map(of).collect();
        for (tenant, fingerprint) in before.iter().filter_map(of).filter(|of| !served.contains(of)) {
            if let Some(known) = self.speculation.get(&tenant) {
                known.forget_workflow(fingerprint);
            }
        }
    }

    /// The workflows, as operators see them.
    #[must_use]
    pub fn workflows(&self) -> &[Arc<Workflow>] {
        &self.workflows
    }

    /// Says which folders' files the server sends from now on, in place of those before. Whether that is another thing.
    pub fn set_folders(&mut self, folders: Vec<(Site, Folder)>) -> bool {
        let before = std::mem::take(&mut self.folders);
        let others = || before.iter().map(|(_, folder)| folder);
        self.folders = folders.into_iter().map(|(site, folder)| (site, Arc::new(folder.in_place_of(others())))).collect();
        self.folders != before
    }

    /// The routes to all functions and files, and away from paths that have moved.
    #[must_use]
    pub fn router(&self) -> Router {
        let mut router = Router::default();
        self.offers.iter().for_each(|(site, offer)| router.offer(*site, Arc::clone(offer)));
        // What is served comes before what is not, where both have a path.
        self.quarantine.hold(&mut router);
        for entry in self.entries.values() {
            for route in &entry.routes {
                router.add(entry.config.site(), &route.pattern, Place::Served(Arc::clone(route)));
            }
        }
        // A path may be held for a function that is quarantined because of these.
        self.redirects.iter().for_each(|(site, redirect)| router.redirect(*site, Arc::clone(redirect)));
        for workflow in &self.workflows {
            router.workflow(workflow.config.site(), &workflow.config.route(), Arc::clone(workflow));
        }
        self.folders.iter().for_each(|(site, folder)| router.folder(*site, Arc::clone(folder)));
        router
    }

    /// One function with its settings, as operators see it.
    #[must_use]
    pub fn info(&self, name: &str) -> Option<Info> {
        let info = self.list().into_iter().find(|info| info.name == name)?;
        let quarantined = || self.quarantine.get(name, info.origin).filter(|quarantined| quarantined.what.has_settings);
        let config = self.get(name).map(|entry| &entry.config).or_else(|| Some(&quarantined()?.what.config));
        Some(Info { settings: config.map(config::settings).unwrap_or_default(), ..info })
    }

    /// All functions, as operators see them.
    #[must_use]
    pub fn list(&self) -> Vec<Info> {
        let mut retired: HashMap<&str, usize> = HashMap::new();
        for (name, _) in self.retired.iter().filter(|(_, function)| function.strong_count() > 0) {
            *retired.entry(name).or_default() += 1;
        }
        let problem = |name: &str, origin| self.quarantine.get(name, origin).map(|quarantined| quarantined.what.reason.clone());
        let info = |entry: &Entry| Info {
            name: entry.config.name.clone(),
            route: entry.config.shown_routes(),
            listen: entry.config.listen.clone(),
            methods: entry.config.methods.clone(),
            tenant: entry.config.tenant.clone(),
            origin: entry.origin,
            state: State::Served,
            problem: problem(&entry.config.name, entry.origin),
            version: Some(entry.version),
            digest: Some(entry.digest.to_hex().to_string()),
            code_bytes: Some(entry.function.template.artifact().code_bytes()),
            tier: entry.function.tier.name(),
            optimised: None,
            phases: phases_of(&entry.function).to_vec(),
            canary: entry.canary.as_ref().map(Canary::progress),
            given_up: entry.given_up.clone(),
            retired: retired.get(entry.config.name.as_str()).copied().unwrap_or(0),
            settings: Map::new(),
        };
        let is_served = |name: &str, origin| self.entries.get(name).is_some_and(|entry| entry.origin == origin);
        let quarantined = self.quarantine.iter().filter(|(name, origin, _)| !is_served(name, *origin));
        let mut all: Vec<Info> = self.entries.values().map(info).collect();
        all.extend(quarantined.map(|(_, origin, quarantined)| quarantined.info(origin)));
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    /// The functions that are served.
    pub fn functions(&self) -> impl Iterator<Item = &Arc<Function>> {
        self.entries.values().map(|entry| &entry.function)
    }

    /// The phases that functions declare: function, tenant and phase, processor time expected in seconds, part of a core.
    #[must_use]
    pub fn phases(&self) -> Vec<([String; 3], Option<f64>, f64)> {
        let named = |function: &Arc<Function>, phase: &Phase| {
            let names = [function.name().to_owned(), function.labels.tenant.clone(), phase.name.clone()];
            (names, phase.cpu_us.map(|cpu_us| cpu_us as f64 / 1e6), f64::from(phase.cpu_percent) / 100.0)
        };
        self.functions().flat_map(|function| phases_of(function).iter().map(move |phase| named(function, phase))).collect()
    }

    /// How many requests of functions may run at the same time, where that is limited: function, tenant and number.
    #[must_use]
    pub fn concurrency_limits(&self) -> Vec<([String; 2], u64)> {
        let limit = |function: &Arc<Function>| {
            let limit = function.gate.limit()?;
            Some(([function.name().to_owned(), function.labels.tenant.clone()], limit as u64))
        };
        self.functions().filter_map(limit).collect()
    }

    /// Bytes of the tables of answers: function, tenant and number.
    #[must_use]
    pub fn memo_bytes(&self) -> Vec<([String; 2], u64)> {
        let bytes = |function: &Arc<Function>| {
            let memo = function.memo.as_ref()?;
            Some(([function.name().to_owned(), function.labels.tenant.clone()], memo.bytes() as u64))
        };
        self.functions().filter_map(bytes).collect()
    }

    /// Versions that were replaced or removed and still have requests.
    #[must_use]
    pub fn retired(&self) -> usize {
        self.retired.iter().filter(|(_, function)| function.strong_count() > 0).count()
    }
}

fn phases_of(function: &Function) -> &[Phase] {
    function.process.phases.as_ref().map_or(&[], |phases| phases.as_slice())
}

/// Where its requests come in.
fn places(config: &FunctionConfig) -> impl Iterator<Item = (Option<SocketAddr>, String)> + use<> {
    let site = config.site();
    config.routes().into_iter().map(move |route| (site, route))
}

/// What is predicted by in a tenant.
fn tables_of(all: &mut HashMap<String, Arc<Speculation>>, tenant: &str, budget: &Arc<Budget>) -> Arc<Speculation> {
    let new = || Speculation::new(memo::key::secret(), Some(Arc::clone(budget)));
    Arc::clone(all.entry(tenant.to_owned()).or_insert_with(new))
}

fn not_yours(name: &str, origin: Origin) -> CatalogueError {
    match origin {
        Origin::Config => CatalogueError::Configured(name.to_owned()),
        Origin::Deployed => CatalogueError::Deployed(name.to_owned()),
    }
}

/// Names that have numbers, from zero on without gaps: the scheduler keeps tables by them.
#[derive(Debug, Default)]
struct Numbers(HashMap<String, u32>);

/// Names that have numbers of their own; those that come later share one.
const NUMBERS_MAX: u32 = 100_000;

impl Numbers {
    fn number(&mut self, name: &str) -> Option<u32> {
        if let Some(number) = self.0.get(name) {
            return Some(*number);
        }
        let next = u32::try_from(self.0.len()).ok().filter(|next| *next < NUMBERS_MAX)?;
        self.0.insert(name.to_owned(), next);
        Some(next)
    }
}
