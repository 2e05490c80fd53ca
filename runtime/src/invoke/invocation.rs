//! One invocation of a function: its identity, what it runs, until when, and where its time went.
//!
//! It is the same from its admission to its reply: in a gate's line, in a worker's queue, in its sandbox. What a worker adds when it has one is
//! [`Started`](super::work::Started).

use std::cmp::Ordering;
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{fmt, mem};

use bytes::Bytes;

use super::Admission;
use super::ahead::account::Account;
use super::caller::{Caller, DEPTH_MAX};
use super::function::Function;
use super::urgency::Urgency;
use crate::host::{Body, RequestHead};
use crate::kv::Space;
use crate::memo::callees::Callees;
use crate::memo::flight::handles::Follower;
use crate::memo::flight::patience;
use crate::reply::{Answer, Parent, Record, ReplyTo};
use crate::schedule::gate::Entrant;
use crate::schedule::{Demand, Rank, Task, TaskId};
use crate::speculate::Speculation;
use crate::telemetry::Trace;
use crate::txn::Transaction;
use sledge_sandbox::Share;

/// For how much longer than its deadline the reply of a transaction is waited for.
const COMMIT_GRACE: Duration = Duration::from_secs(1);

/// An invocation of a function.
#[derive(Debug)]
pub struct Invocation {
    /// Its place among all others.
    pub identity: Identity,
    /// What to run.
    pub function: Arc<Function>,
    /// What it is given.
    pub input: Input,
    /// Where the reply goes.
    pub reply: ReplyTo,
    /// When it must be answered.
    pub deadline: Instant,
    /// Where its time went.
    pub times: Times,
    /// Its place among the requests that the server takes.
    pub admission: Admission,
    /// By what its client knows it, where requests have ids.
    pub request_id: Option<Arc<str>>,
    /// Its place in a trace, if there are any.
    pub trace: Option<Arc<Trace>>,
    /// The transaction of its caller, which it joins; or the one that was opened for it.
    pub joins: Option<Arc<Transaction>>,
    /// Where it tells what it did, if its caller is looked at.
    pub tells: Option<Arc<Callees>>,
    /// Where it leaves what is to be counted and learned when it is known whether its caller's run counts, if something of that is.
    pub account: Option<Arc<Account>>,
    /// Whether it is asked for, if it was begun ahead, or what has called it was.
    pub urgency: Option<Arc<Urgency>>,
    /// What its sandbox has of the memory for what was begun ahead, if it was.
    pub(crate) memory_ahead: Option<Share>,
    /// How often it has run and was stale: what it has read was changed before its commit.
    pub stale: u32,
    /// It waits for the run of an equal request, in place of running.
    pub follows: Option<Box<Follows>>,
}

/// A wait for the run of an equal request.
#[derive(Debug)]
pub struct Follows {
    pub(crate) follower: Follower,
    /// Since when.
    pub(crate) since: Instant,
    /// When it runs itself.
    pub(crate) until: Instant,
}

/// What an invocation is given.
#[derive(Debug, Default)]
pub struct Input {
    /// What the request says beside its body, for a function that asks.
    pub head: Option<Box<RequestHead>>,
    /// Its standard input.
    pub body: Body,
}

impl Input {
    /// That of a call without a request: a body.
    #[must_use]
    pub fn of(body: Bytes) -> Input {
        let mut input = Input::default();
        input.body.push(body);
        input
    }
}

/// How often a transaction runs again; before that comes its deadline, as a rule.
const STALE_MAX: u32 = 1_000;
/// Bytes of a body that is kept for the case that a transaction runs again. One with a larger body runs once, and fails where it conflicts.
pub const KEPT_BODY_BYTES_MAX: usize = 4 << 20;

impl Input {
    /// What an invocation runs with that may run again with the same. Whether it can.
    fn again(&mut self) -> (Input, bool) {
        match self.body.again(KEPT_BODY_BYTES_MAX) {
            Some(body) => (Input { head: self.head.clone(), body }, true),
            None => (mem::take(self), false),
        }
    }
}

impl Invocation {
    /// What it runs with, and its transaction, if it has one: of its own, as a part of its caller's, or the column of a pipeline that was opened for it.
    pub(crate) fn begin(&mut self) -> (Input, Option<Arc<Transaction>>) {
        if self.joins.is_none() && self.function.isolation.is_none() {
            return (mem::take(&mut self.input), None);
        }
        let (input, can_again) = self.input.again();
        if !can_again {
            self.stale = STALE_MAX;
        }
        let transaction = match (&self.joins, &self.function.isolation) {
            (Some(given), _) => Some(Transaction::of_call(given)),
            // Nor does one recall anything that could not run again.
            (None, Some(isolation)) if self.runs_again() => Some(Transaction::begin_again(isolation)),
            (None, Some(isolation)) => Some(match (&self.function.ahead, &self.function.kv) {
                (Some(tables), Some(Space::Redis(_))) => {
                    Transaction::begin_expecting(isolation, Arc::<Speculation>::clone(tables))
                }
                _ => Transaction::begin(isolation),
            }),
            (None, None) => None,
        };
        (input, transaction)
    }

    /// Says in the request's head, if it has one, where it stands in its trace.
    pub(crate) fn tell_trace(&mut self) {
        if let (Some(trace), Some(head)) = (&self.trace, &mut self.input.head) {
            trace.context().inject(&mut head.headers);
        }
    }

    /// From now on it waits for the run of an equal request: until the time at which it runs itself.
    pub(crate) fn follow(&mut self, follower: Follower, now: Instant) {
        self.times.taken = now;
        self.follows = Some(Box::new(Follows { follower, since: now, until: patience(now, self.deadline) }));
    }

    /// It waits no longer; what it waited for, if it did.
    pub(crate) fn end_follow(&mut self, now: Instant) -> Option<Follower> {
        let Follows { follower, since, until } = *self.follows.take()?;
        self.times.blocked += until.min(now).saturating_duration_since(since);
        Some(follower)
    }

    /// It is kept for later: where its reply goes to the taker, the taker has to wait for that. A worker ends what it has at its deadline. It alone knows whether a commit was on its way by then, so
    /// that the client of a transaction waits a moment longer for what the worker says.
    pub fn make_way(&mut self) -> Option<Answer> {
        let grace = if self.function.isolation.is_some() { COMMIT_GRACE } else { Duration::ZERO };
        self.reply.make_way(self.deadline + grace)
    }

    /// Whether it was stale, so that this is not its first run.
    pub(crate) const fn runs_again(&self) -> bool {
        self.stale != 0
    }

    /// It was stale, and is to run again if it may.
    pub(crate) const fn may_run_again(&mut self) -> bool {
        self.stale = self.stale.saturating_add(1);
        self.stale <= STALE_MAX
    }

    /// One that was admitted and is complete at `now`. Its caller is the function that calls it, by which of that invocation's host calls, if a function does.
    /// In a box: it is handed on several times before it runs.
    #[must_use]
    pub fn new(
        function: Arc<Function>,
        admission: Admission,
        caller: Option<(Arc<Caller>, u32)>,
        input: Input,
        now: Instant,
    ) -> Box<Invocation> {
        let deadline = now + function.deadline;
        let identity = Identity { sequence: admission.sequence, caller, is_speculative: false };
        let times = Times::new(now);
        let reply = ReplyTo::Nowhere;
        Box::new(Invocation {
            identity,
            function,
            input,
            reply,
            deadline,
            times,
            admission,
            request_id: None,
            trace: None,
            joins: None,
            tells: None,
            account: None,
            urgency: None,
            memory_ahead: None,
            stale: 0,
            follows: None,
        })
    }

    /// What the scheduler's core needs to know, under a number of the worker's. `started`: whether it has a sandbox.
    pub(crate) fn task(&self, id: TaskId, started: bool) -> Task {
        let Invocation { function, times, .. } = self;
        Task {
            id,
            tenant: function.tenant,
            function: function.number,
            age: self.identity.sequence,
            arrived: times.arrived,
            deadline: self.deadline,
            cpu_max: function.cpu_max,
            cpu: times.cpu,
            started,
            level: 0,
            class: 0,
            is_speculative: self.demand() == Demand::Speculative,
            weight: function.weight,
        }
    }

    /// Whether it is asked for.
    pub(crate) fn demand(&self) -> Demand {
        self.urgency.as_ref().map_or(Demand::Asked, |urgency| urgency.demand())
    }

    /// Where it stands as long as that is not known.
    pub(crate) fn rank(&self) -> Rank {
        self.urgency.as_ref().map_or_else(Rank::default, |urgency| urgency.rank())
    }

    /// What it calls and waits for is as urgent as it is, unless that holds a place which others may wait for.
    pub(crate) fn urges(&self, callee: &mut Invocation) {
        if !callee.function.gate.is_limited() {
            callee.urgency.clone_from(&self.urgency);
        }
    }

    /// What is known of it before it runs.
    #[must_use]
    pub fn record(&self) -> Record {
        Record { sequence: self.identity.sequence, parent: self.identity.parent(), ..Record::default() }
    }

    /// What is known of it at `end`, after it ran.
    #[must_use]
    pub fn record_at(&self, end: Instant) -> Record {
        let Times { cpu: running, blocked, .. } = self.times;
        Record { ready: self.times.ready_until(end), running, blocked, ..self.record() }
    }
}

impl Entrant for Box<Invocation> {
    fn let_in(&mut self) {
        self.admission.runs = true;
    }

    fn is_gone(&self) -> bool {
        self.reply.is_closed()
    }
}

/// What identifies an invocation.
#[derive(Clone, Debug)]
pub struct Identity {
    /// Its number among all that were admitted.
    pub sequence: u64,
    /// Its caller and by which host call that called it, from 1; none for an outermost one.
    caller: Option<(Arc<Caller>, u32)>,
    /// Whether it was begun before it was called, and may turn out not to be wanted: nothing of it may be seen until it is adopted.
    pub is_speculative: bool,
}

impl Identity {
    /// The sequence of the outermost invocation, on whose behalf it runs.
    #[must_use]
    pub fn root(&self) -> u64 {
        self.caller.as_ref().map_or(self.sequence, |(caller, _)| caller.root)
    }

    /// Its position below its root.
    #[must_use]
    pub fn path(&self) -> Path {
        let mut path = Path { steps: [0; DEPTH_MAX as usize], len: 0 };
        let mut at = self.caller.as_ref();
        for step in &mut path.steps {
            let Some((caller, host_call)) = at else { break };
            *step = *host_call;
            path.len += 1;
            at = caller.above.as_ref();
        }
        path.steps[..path.len].reverse();
        path
    }

    /// From where it was called, if a function did.
    #[must_use]
    pub fn parent(&self) -> Option<Parent> {
        self.caller.as_ref().map(|(caller, host_call)| Parent { sequence: caller.sequence, host_call: *host_call })
    }

    /// Whether a function called it.
    #[must_use]
    pub const fn is_call(&self) -> bool {
        self.caller.is_some()
    }

    /// What its callees know of it. `function`: what it runs, `deadline`: until when.
    pub(crate) fn caller(&self, function: &Function, deadline: Instant) -> Caller {
        Caller::new(function.number, self.sequence, deadline, self.caller.clone())
    }

    /// The invocation that called it, if one did.
    pub(crate) fn above(&self) -> Option<&Caller> {
        self.caller.as_ref().map(|(caller, _)| &**caller)
    }
}

/// Where an invocation is below its outermost one: the host calls that lead to it, each the number in its caller. Of one root, callers come before
/// those that they call, and those in the order of the calls (a Dewey path).
#[derive(Clone, Copy)]
pub struct Path {
    steps: [u32; DEPTH_MAX as usize],
    len: usize,
}

impl Path {
    /// The host calls, from the outermost.
    #[must_use]
    pub fn steps(&self) -> &[u32] {
        &self.steps[..self.len]
    }
}

impl PartialEq for Path {
    fn eq(&self, other: &Path) -> bool {
        self.steps() == other.steps()
    }
}

impl Eq for Path {}

impl PartialOrd for Path {
    fn partial_cmp(&self, other: &Path) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Path {
    fn cmp(&self, other: &Path) -> Ordering {
        self.steps().cmp(other.steps())
    }
}

impl fmt::Debug for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, step) in self.steps().iter().enumerate() {
            write!(f, "{}{step}", if index == 0 { "" } else { "." })?;
        }
        Ok(())
    }
}

/// When an invocation reached which part of its life, and how long it took. What was not reached yet has the time of what was reached last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// When it was complete.
    pub arrived: Instant,
    /// When a worker took it.
    pub taken: Instant,
    /// When it had its sandbox.
    pub ready: Instant,
    /// How long getting that took.
    pub instantiated: Duration,
    /// For how long it ran, host calls included.
    pub cpu: Duration,
    /// For how long it waited for something else than its turn.
    pub blocked: Duration,
}

impl Times {
    /// Of one that has just arrived.
    #[must_use]
    pub const fn new(now: Instant) -> Times {
        let (instantiated, cpu, blocked) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
        Times { arrived: now, taken: now, ready: now, instantiated, cpu, blocked }
    }

    /// For how long it waited for a worker.
    #[must_use]
    pub fn queued(&self) -> Duration {
        self.taken.saturating_duration_since(self.arrived)
    }

    /// Time since a worker took it, getting a sandbox included.
    #[must_use]
    pub fn since_taken(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.taken)
    }

    /// For how long it could have run until `now` and did not.
    #[must_use]
    pub fn ready_until(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.arrived).saturating_sub(self.cpu + self.blocked)
    }
}

#[cfg(test)]
mod tests {
    use std::path;

    use serde_json::json;

    use super::*;
    use crate::config;
    use crate::invoke::function::Home;
    use crate::invoke::{Dispatcher, by_hand};
    use crate::reply;
    use crate::schedule::{FunctionId, TenantId};
    use crate::txn::pipeline::{Dewey, Pipeline};
    use crate::txn::{Isolation, Outside};

    const MS: Duration = Duration::from_millis(1);

    /// An invocation of a function, called by another's sixth host call.
    fn invocation(now: Instant) -> Box<Invocation> {
        let settings = json!({ "deadline_ms": 900, "cpu_ms_max": 30, "weight": 3 });
        let config = config::function("settings", "f", path::Path::new("f.wasm"), settings).unwrap();
        let home = Home { tenant: TenantId(4), number: FunctionId(5), ..Home::alone() };
        let function = Arc::new(Function::new(by_hand::loaded(&config), home));
        let (dispatcher, _deques) = Dispatcher::new(1, 1, 10, false);
        let admission = dispatcher.admit(&function).unwrap();
        let caller = Arc::new(Caller::new(FunctionId(9), 70, now, None));
        Invocation::new(function, admission, Some((caller, 6)), Input::default(), now)
    }

    #[test]
    fn the_order_knows_what_it_is_and_what_it_has_used() {
        let now = Instant::now();
        let mut invocation = invocation(now);
        let task = Task {
            id: TaskId(8),
            tenant: TenantId(4),
            function: FunctionId(5),
            age: 1,
            arrived: now,
            deadline: now + 900 * MS,
            cpu_max: 30 * MS,
            cpu: Duration::ZERO,
            started: false,
            level: 0,
            class: 0,
            is_speculative: false,
            weight: 3,
        };
        assert_eq!(invocation.task(TaskId(8), false), task);
        invocation.times.cpu = 4 * MS;
        assert_eq!(invocation.task(TaskId(8), true), Task { cpu: 4 * MS, started: true, ..task });
    }

    #[test]
    fn a_transaction_runs_again_a_thousand_times_and_one_whose_body_is_not_kept_does_not() {
        let settings = json!({ "isolation": "serializable" });
        let config = config::function("settings", "f", path::Path::new("f.wasm"), settings).unwrap();
        let function = Arc::new(Function::new(by_hand::loaded(&config), Home::alone()));
        let (dispatcher, _deques) = Dispatcher::new(1, 1, 10, false);
        let outer = Transaction::begin(function.isolation.as_ref().unwrap());
        let nothing = Transaction::join(&outer).footprint(1 << 10).unwrap();
        for (body_bytes, times) in [(0, 1_000), (KEPT_BODY_BYTES_MAX, 1_000), (KEPT_BODY_BYTES_MAX + 1, 0)] {
            let admission = dispatcher.admit(&function).unwrap();
            let input = Input::of(vec![0; body_bytes].into());
            let mut invocation = Invocation::new(Arc::clone(&function), admission, None, input, Instant::now());
            for time in 0..times {
                let (input, transaction) = invocation.begin();
                assert!(input.body.into_bytes().len() == body_bytes);
                // What has been wrong once, or must not be, goes by nothing that may be wrong.
                assert_eq!(transaction.unwrap().recall(&nothing, None), time == 0);
                assert!(invocation.may_run_again(), "{body_bytes}");
            }
            let (input, transaction) = invocation.begin();
            assert_eq!((input.body.into_bytes().len(), transaction.unwrap().recall(&nothing, None)), (body_bytes, false));
            assert!(!invocation.may_run_again() && !invocation.may_run_again(), "{body_bytes}");
        }
    }

    #[test]
    fn its_record_says_where_it_comes_from_and_where_its_time_went() {
        let now = Instant::now();
        let mut invocation = invocation(now);
        assert!(invocation.identity.is_call() && !identity(1, None).is_call());
        let record = Record { sequence: 1, parent: Some(Parent { sequence: 70, host_call: 6 }), ..Record::default() };
        assert_eq!(invocation.record(), record);
        (invocation.times.cpu, invocation.times.blocked) = (4 * MS, 10 * MS);
        let at_end = Record { ready: 6 * MS, running: 4 * MS, blocked: 10 * MS, ..record };
        assert_eq!(invocation.record_at(now + 20 * MS), at_end);
    }

    #[test]
    fn a_gate_lets_it_in_and_sees_when_its_client_has_gone() {
        let now = Instant::now();
        let mut invocation = invocation(now);
        assert!(!invocation.admission.runs && !invocation.is_gone(), "an invocation without a receiver has no client");
        invocation.let_in();
        assert!(invocation.admission.runs);
        let (reply, answer) = reply::channel(now);
        invocation.reply = reply;
        assert!(!invocation.is_gone());
        drop(answer);
        assert!(invocation.is_gone());
    }

    fn identity(sequence: u64, caller: Option<(&Arc<Caller>, u32)>) -> Identity {
        let caller = caller.map(|(caller, host_call)| (Arc::clone(caller), host_call));
        Identity { sequence, caller, is_speculative: false }
    }

    fn calls(identity: &Identity) -> Arc<Caller> {
        Arc::new(Caller::new(FunctionId(7), identity.sequence, Instant::now(), identity.caller.clone()))
    }

    #[test]
    fn a_path_leads_from_the_root_and_orders_as_the_calls_would_run() {
        let root = identity(10, None);
        assert_eq!((root.root(), root.path().steps(), root.parent()), (10, &[][..], None));
        let from_root = calls(&root);
        let (second, third) = (identity(12, Some((&from_root, 2))), identity(11, Some((&from_root, 3))));
        let below = identity(14, Some((&calls(&second), 40)));
        assert_eq!((below.root(), below.path().to_string().as_str()), (10, "2.40"));
        assert_eq!(below.parent(), Some(Parent { sequence: 12, host_call: 40 }));
        let in_order = [root.path(), second.path(), below.path(), third.path()];
        assert!(in_order.is_sorted_by(|before, after| before < after), "{in_order:?}");
        assert!(second.path() == second.path() && second.path() != third.path());
        assert_eq!((format!("{:?}", below.path()), root.path().to_string()), ("2.40".to_owned(), String::new()));
    }

    #[test]
    fn a_run_takes_the_column_that_was_opened_for_it_and_what_it_calls_is_a_part_of_that() {
        let isolation = Isolation { contention: Arc::default(), outside: Outside::Refused };
        let pipeline = Pipeline::new(None, Arc::default());
        let (_, column) = pipeline.open(Dewey::new(&[1]), &isolation).unwrap();
        let begun = [(); 2].map(|()| {
            let mut invocation = invocation(Instant::now());
            invocation.joins = Some(Arc::clone(&column));
            invocation.begin().1.unwrap()
        });
        assert_eq!(begun.map(|transaction| Arc::ptr_eq(&transaction, &column)), [true, false]);
    }

    #[test]
    fn the_longest_chain_has_its_whole_path() {
        let mut last = identity(1, None);
        for step in 1..DEPTH_MAX {
            last = identity(u64::from(step) + 1, Some((&calls(&last), step)));
        }
        assert!(!calls(&last).may_call(FunctionId(9), 4), "nothing is longer");
        assert_eq!(last.path().steps(), (1..DEPTH_MAX).collect::<Vec<_>>());
    }

    #[test]
    fn times_add_up() {
        let now = Instant::now();
        let at = |ms| now + Duration::from_millis(ms);
        let mut times = Times::new(now);
        assert_eq!((times.queued(), times.ready_until(at(5))), (Duration::ZERO, Duration::from_millis(5)));
        (times.taken, times.cpu, times.blocked) = (at(3), Duration::from_millis(4), Duration::from_millis(10));
        let sum = times.ready_until(at(20)) + times.cpu + times.blocked;
        assert_eq!((times.queued(), times.since_taken(at(20)), sum), (at(3) - now, at(17) - now, at(20) - now));
    }
}
