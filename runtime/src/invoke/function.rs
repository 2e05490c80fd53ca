//! A loaded function: the template of its sandboxes, its imports resolved, and how a request is run with them.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard, Weak};
use std::time::Duration;

use hyper::header::HeaderValue;
use sledge_sandbox::{Budget, Template, prefetch};

use super::Gate;
use super::caller::CYCLES_MAX;
use super::kept::Own;
use super::loaded::{Labels, Loaded};
use super::program::Program;
use super::tier::Tier;
use crate::config::{AsynchronousConfig, CallSpeculation, Concurrency, Instance, Isolation, OutsideEffects};
use crate::health::Health;
use crate::host::{Drawn, FunctionLog, Process};
use crate::kv::Space;
use crate::kv::outbox::Outbox;
use crate::memo::callees::Version;
use crate::memo::{self, Memo};
use crate::outcome::Failure;
use crate::schedule::{FunctionId, InFlight, TenantId};
use crate::speculate::Speculation;
use crate::txn::{self, Outside, contention::Contention};
use crate::upstream::Roots;

/// The functions of one tenant, by name; those that are quarantined lead nowhere.
#[derive(Debug, Default)]
pub struct Neighbours(RwLock<HashMap<Box<str>, Option<Weak<Function>>>>);

impl Neighbours {
    /// The function of that name, as it is served now.
    ///
    /// # Errors
    /// When there is none, or it is quarantined.
    pub fn find(&self, name: &str) -> Result<Arc<Function>, Failure> {
        // Single insertions and removals, which cannot be half done.
        let functions = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let function = functions.get(name).ok_or(Failure::NotFound)?;
        function.as_ref().ok_or(Failure::Quarantined)?.upgrade().ok_or(Failure::NotFound)
    }

    /// Whether that holds for any function that is served.
    #[must_use]
    pub fn any(&self, holds: impl Fn(&Function) -> bool) -> bool {
        let functions = self.0.read().unwrap_or_else(PoisonError::into_inner);
        functions.values().flatten().filter_map(Weak::upgrade).any(|function| holds(&function))
    }

    /// Puts a function in the place of the one of its name, if there is one.
    pub fn put(&self, function: &Arc<Function>) {
        self.functions().insert(function.name().into(), Some(Arc::downgrade(function)));
    }

    /// Removes a function, unless another has taken its place.
    pub fn remove(&self, function: &Arc<Function>) {
        let mut functions = self.functions();
        if functions.get(function.name()).is_some_and(|there| there.as_ref().map(Weak::as_ptr) == Some(Arc::as_ptr(function))) {
            functions.remove(function.name());
        }
    }

    /// A function that calls that name learns that it is quarantined, unless it is served.
    pub fn quarantine(&self, name: &str) {
        self.functions().entry(name.into()).or_insert(None);
    }

    /// The name is quarantined no longer.
    pub fn release(&self, name: &str) {
        let mut functions = self.functions();
        if functions.get(name).is_some_and(Option::is_none) {
            functions.remove(name);
        }
    }

    fn functions(&self) -> RwLockWriteGuard<'_, HashMap<Box<str>, Option<Weak<Function>>>> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a function gets from the server that serves it.
#[derive(Debug)]
pub struct Home {
    /// Whose it is.
    pub tenant: TenantId,
    /// Its number among the server's functions.
    pub number: FunctionId,
    /// Its number among all versions of all functions that the server has had, each tier of a version counted for itself: tables are kept by it, since code of another tier may compute other bits of a
    /// NaN.
    pub version: u64,
    /// The number by which operators know the version.
    pub shown_version: u64,
    /// BLAKE3 of the file it was made from, where it was made from one.
    pub digest: Option<blake3::Hash>,
    /// The server's workers.
    pub workers: usize,
    /// The functions that it may call.
    pub neighbours: Arc<Neighbours>,
    /// What its sandboxes may use together with others'; none for all that there is.
    pub budget: Option<Arc<Budget>>,
    /// What its tenant has in the key-value store, if there is one.
    pub kv: Option<Space>,
    /// The keys over which its tenant's transactions conflict.
    pub contention: Arc<Contention>,
    /// What executions of its tenant go by that go ahead of themselves, if there is something of that.
    pub speculation: Option<Arc<Speculation>>,
    /// Where its transactions leave requests to other servers, if there is something that sends them.
    pub outbox: Option<Outbox>,
    /// The roots to be believed about servers that it asks; none for the system's.
    pub roots: Option<Arc<Roots>>,
    /// Where it is said what is wrong with it while it is served, if that is said anywhere.
    pub health: Option<Arc<Health>>,
    /// The version before it, as far as this one keeps its limits.
    pub before: Before,
}

/// What two versions of a function have in common.
#[derive(Debug, Default)]
pub struct Before {
    /// The gate, if the limits are the same: so both together keep them.
    pub gate: Option<Arc<Gate>>,
    /// What is known of its requests, where as many run as is right for what they do: another gate goes on with that.
    pub in_flight: Option<InFlight>,
    /// The log, if as many lines go into it.
    pub log: Option<Arc<FunctionLog>>,
    /// By what its numbers are known, if nothing of that has changed.
    pub labels: Option<Arc<Labels>>,
}

impl Home {
    /// That of a function which no server serves and which has no neighbours: `sledge run`, measurements.
    #[must_use]
    pub fn alone() -> Home {
        Home {
            tenant: TenantId(0),
            number: FunctionId(0),
            version: 0,
            shown_version: 0,
            digest: None,
            workers: 1,
            neighbours: Arc::default(),
            budget: None,
            kv: None,
            contention: Arc::default(),
            speculation: None,
            outbox: None,
            roots: None,
            health: None,
            before: Before::default(),
        }
    }
}

/// A function, ready to be invoked from any thread.
pub struct Function {
    /// What its sandboxes begin as.
    pub template: Template,
    /// What an invocation runs in one.
    pub program: Program,
    /// Name, arguments and environment.
    pub process: Arc<Process>,
    /// The reply's content type.
    pub content_type: HeaderValue,
    /// Time from a request's arrival to its reply.
    pub deadline: Duration,
    /// The most processor time of a request.
    pub cpu_max: Duration,
    /// Whose it is.
    pub tenant: TenantId,
    /// Its share among the functions of its tenant.
    pub weight: u32,
    /// Whether it begins before a request's body is complete.
    pub streams_body: bool,
    /// Whether it asks what a request says beside its body.
    pub reads_head: bool,
    /// For how long an instance of it is used.
    pub instance: Instance,
    /// The instance that it keeps, if it does.
    pub(super) own: Own,
    /// The store without which it cannot work, if it imports one and there is one.
    pub kv: Option<Space>,
    /// How calls are carried out whose clients do not wait for the reply, where they may ask for that.
    pub asynchronous: Option<AsynchronousConfig>,
    /// What its requests have in common, where each is a transaction.
    pub isolation: Option<txn::Isolation>,
    /// For how long a request that it has left behind is sent again.
    pub outbox_age_max: Duration,
    /// Whether it may start before everything before it is committed, as a transaction of an execution that speculates.
    pub speculative: bool,
    /// What its runs did, and the answers that are given again, where the configuration asks for that.
    pub memo: Option<Arc<Memo>>,
    /// By what it is predicted what its runs call, where that is begun with them.
    pub ahead: Option<Arc<Speculation>>,
    /// Whether replies that are known stand for runs of what it calls.
    pub skips: bool,
    /// The functions that it may call.
    pub neighbours: Arc<Neighbours>,
    /// Its number among the server's functions.
    pub number: FunctionId,
    /// Its number among all versions of all functions that the server has had, each tier of a version counted for itself: what tables are kept by.
    pub version: u64,
    /// The number by which operators know the version.
    pub shown_version: u64,
    /// How far its code is optimised.
    pub tier: Tier,
    /// What its initialisation has drawn of the clock and of random numbers, where that is to be drawn again.
    pub(super) drawn: Drawn,
    /// BLAKE3 of the file it was made from, where it was made from one: what durable executions are pinned to.
    pub digest: Option<blake3::Hash>,
    /// How many requests are taken and run at the same time.
    pub gate: Arc<Gate>,
    /// What its numbers are called by.
    pub labels: Arc<Labels>,
    /// What it writes to its standard error.
    pub log: Arc<FunctionLog>,
    /// Whether another version has taken its place, or none: it ends what it began, and keeps nothing for later.
    pub retired: AtomicBool,
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Function").field("name", &self.name()).field("stages", &self.program.stages).finish_non_exhaustive()
    }
}

impl Function {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.process.name
    }

    /// A function in its place.
    #[must_use]
    pub fn new(loaded: Loaded, home: Home) -> Function {
        let Loaded { template, program, mut process, labels, content_type, streams_body, deadline, cpu_max, tier, drawn, .. } =
            loaded;
        let Home { tenant, number, version, shown_version, digest, workers, neighbours, budget, kv, contention, outbox, .. } =
            home;
        let Home { speculation, roots, health, before, .. } = home;
        let outside = match loaded.effects {
            OutsideEffects::Refuse => Outside::Refused,
            OutsideEffects::Split => Outside::Split,
            OutsideEffects::Outbox => outbox.map_or(Outside::Refused, Outside::Outbox),
        };
        let isolation = (loaded.isolation == Isolation::Serializable).then_some(txn::Isolation { contention, outside });
        let goes_ahead = isolation.as_ref().is_some_and(|isolation| !matches!(isolation.outside, Outside::Split));
        let ahead = speculation.filter(|_| goes_ahead && loaded.speculation >= CallSpeculation::Calls);
        if let (Some(upstream), Some(roots)) = (&mut process.upstream, &roots) {
            *upstream = Arc::new(upstream.with_roots(roots));
        }
        if let (Some(edges), Some(roots)) = (&mut process.edges, &roots) {
            *edges = Arc::new(edges.with_roots(roots));
        }
        process.kv.clone_from(&kv);
        let memo = loaded.memo.map(|settings| {
            let of = memo::Of { function: process.name.clone(), version: shown_version, health, budget: budget.clone() };
            Memo::new(of, settings)
        });
        Function {
            memo,
            template: budget.map_or_else(|| template.clone(), |budget| template.within(&budget)),
            kv: kv.filter(|_| program.imports.use_store()),
            reads_head: program.imports.read_head(),
            program,
            process: Arc::new(process),
            content_type,
            streams_body,
            instance: loaded.instance,
            own: Own::default(),
            deadline: tier.allowing(deadline),
            cpu_max: tier.allowing(cpu_max),
            tenant,
            weight: loaded.weight,
            asynchronous: loaded.asynchronous,
            isolation,
            outbox_age_max: loaded.outbox_age_max,
            speculative: loaded.speculative,
            skips: ahead.is_some() && loaded.speculation >= CallSpeculation::Skips,
            ahead,
            neighbours,
            number,
            version,
            shown_version,
            tier,
            drawn: if tier == Tier::First { drawn } else { Drawn::default() },
            digest,
            gate: before.gate.unwrap_or_else(|| Arc::new(gate(loaded.concurrency, loaded.queue_max, workers, before.in_flight))),
            labels: before.labels.unwrap_or_else(|| Arc::new(labels)),
            log: before.log.unwrap_or_else(|| Arc::new(FunctionLog::new(loaded.log_lines_per_s_max))),
            retired: AtomicBool::new(false),
        }
    }

    /// Whether a run of it can begin before it is known that it is wanted, and be dropped as if it had never been.
    #[must_use]
    pub fn can_be_dropped(&self) -> bool {
        let is_held = self.isolation.as_ref().is_some_and(|isolation| !matches!(isolation.outside, Outside::Split));
        is_held && self.speculative && self.instance == Instance::Call && !self.streams_body
    }

    /// Whether its transactions leave requests to other servers behind.
    #[must_use]
    pub fn has_outbox(&self) -> bool {
        self.isolation.as_ref().is_some_and(|isolation| matches!(isolation.outside, Outside::Outbox(_)))
    }

    /// How a call knows it.
    #[must_use]
    pub fn callee(&self) -> Version {
        (self.name().into(), self.version)
    }

    /// How often it may be among functions that wait for each other. One that keeps its instance cannot be called by what it waits for.
    #[must_use]
    pub(crate) fn cycles_max(&self) -> usize {
        if self.instance == Instance::Application { 1 } else { CYCLES_MAX }
    }

    /// Has the caches fetch what an invocation of it reads, while something else is done.
    pub(crate) fn prefetch(&self) {
        self.program.prefetch();
        prefetch(&*self.process);
        prefetch(&*self.log);
    }
}

/// A gate for those limits, which goes on with what is known already where it follows that.
fn gate(concurrency: Option<Concurrency>, queue_max: Option<usize>, workers: usize, known: Option<InFlight>) -> Gate {
    match concurrency {
        None => Gate::new(None, None),
        Some(Concurrency::Max(max)) => Gate::new(Some(max), queue_max),
        Some(Concurrency::Auto) => Gate::following(known.unwrap_or_else(|| InFlight::new(workers)), queue_max),
    }
}
