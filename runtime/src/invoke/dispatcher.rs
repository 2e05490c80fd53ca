//! What requests share until they are over: how many there are, what they are expected to take, and whether the server is stopping.

#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use crossbeam_deque::Worker as Deque;
use sledge_sandbox::{Budget, Pools, Sandbox, Share, Template};

use super::Gate;
use super::busy::Busy;
use super::function::Function;
use super::invocation::{Invocation, Times};
use super::urgency::Root;
use super::work::Work;
use crate::outcome::Failure;
use crate::reply::{Answer, ReplyTo};
use crate::schedule::demand::Changes;
use crate::schedule::{Exchange, Phase, Requests, Used, Woken};
use crate::speculate::depth::Load;
use crate::watch::Watcher;

/// The part of the memory of all sandboxes that those of runs may have which were begun ahead.
const MEMORY_AHEAD_PART: u64 = 4;

/// Admits requests and hands them to workers.
pub struct Dispatcher {
    exchange: Exchange<Work>,
    requests: Requests,
    /// Requests admitted so far.
    sequence: AtomicU64,
    /// What the admitted requests are expected to need of the workers until their deadlines, and how much there is; none if the configuration does not ask.
    /// In millionths of a worker.
    load: AtomicU64,
    load_max: Option<u64>,
    /// What interrupts workers whose guests run without ticks; none where there are none.
    watcher: OnceLock<Arc<Watcher>>,
    /// Every worker's idle sandboxes.
    pools: Arc<Pools>,
    /// What sandboxes of runs may have that are begun ahead.
    memory_ahead: OnceLock<Arc<Budget>>,
    busy: Busy,
    /// Of what is asked for, of all that was begun ahead.
    changes: Arc<Changes>,
    /// Whether there was a request or a change of what is served since the server last came to rest.
    stirred: AtomicBool,
}

impl fmt::Debug for Dispatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Dispatcher { exchange, requests, .. } = self;
        f.debug_struct("Dispatcher").field("exchange", exchange).field("requests", requests).finish_non_exhaustive()
    }
}

impl Dispatcher {
    /// The dispatcher of so many workers, with the queue of each, in order; requests come through as many threads as `sources` says. `keeps_promises`
    /// says whether it takes only as many requests as it can be expected to answer by their deadlines.
    #[must_use]
    pub fn new(workers: usize, sources: usize, requests_max: usize, keeps_promises: bool) -> (Arc<Dispatcher>, Vec<Deque<Work>>) {
        let (exchange, deques) = Exchange::new(workers);
        let dispatcher = Dispatcher {
            exchange,
            requests: Requests::new(sources, requests_max),
            sequence: AtomicU64::new(0),
            load: AtomicU64::new(0),
            load_max: keeps_promises.then_some(workers as u64 * LOAD_UNIT),
            watcher: OnceLock::new(),
            pools: Pools::new(workers),
            memory_ahead: OnceLock::new(),
            busy: Busy::default(),
            changes: Arc::default(),
            stirred: AtomicBool::new(false),
        };
        (Arc::new(dispatcher), deques)
    }

    /// The queues between workers.
    #[must_use]
    pub fn exchange(&self) -> &Exchange<Work> {
        &self.exchange
    }

    /// How busy the workers are.
    #[must_use]
    pub fn workload(&self, now: Instant) -> Load {
        let workers = self.exchange.workers();
        Load { percent: self.busy.percent(workers, now), waiting: self.exchange.backlogs(), workers }
    }

    /// Counts a sandbox among those of runs that were begun ahead; an error where these have as much as they may have together, so that what is asked for finds some. They keep it while they wait for their turns.
    pub(crate) fn reserve_ahead(&self, sandbox: &Sandbox, template: &Template) -> Result<Option<Share>, Failure> {
        let Some(budget) = template.budget() else { return Ok(None) };
        let ahead = self.memory_ahead.get_or_init(|| Budget::new(budget.bytes_max() / MEMORY_AHEAD_PART));
        ahead.reserve(sandbox.reserved_bytes()).map(Some).ok_or(Failure::NoMemory)
    }

    /// How often it has changed what is asked for, of all that was begun ahead.
    #[must_use]
    pub fn changes(&self) -> &Arc<Changes> {
        &self.changes
    }

    /// What runs are begun ahead for that begins now, behind all that is admitted.
    #[must_use]
    pub fn root(&self) -> Root {
        // Relaxed: a number that orders nothing else.
        Root { sequence: self.sequence.load(Ordering::Relaxed), changes: Arc::clone(&self.changes) }
    }

    /// A worker was woken that may run what is speculative without ticks: then it is interrupted.
    pub(crate) fn interrupt(&self, woken: Woken) {
        if let (Woken::Slack(index), Some(watcher)) = (woken, self.watcher()) {
            watcher.disturb(index);
        }
    }

    /// Has workers interrupted by that one from now on.
    pub fn watch_with(&self, watcher: Arc<Watcher>) {
        let _ = self.watcher.set(watcher);
    }

    /// What interrupts workers.
    #[must_use]
    pub fn watcher(&self) -> Option<&Arc<Watcher>> {
        self.watcher.get()
    }

    /// Wakes that worker from any thread, whatever it does. What it is to look at was made known before.
    pub fn rouse(&self, index: usize) {
        self.exchange.wake(index);
        if let Some(watcher) = self.watcher() {
            watcher.disturb(index);
        }
    }

    /// The same of all of them.
    fn rouse_all(&self) {
        self.exchange.wake_all();
        if let Some(watcher) = self.watcher() {
            watcher.disturb_all();
        }
    }

    /// Every worker's idle sandboxes.
    #[must_use]
    pub fn pools(&self) -> &Arc<Pools> {
        &self.pools
    }

    /// A place for one more request of `function`.
    ///
    /// # Errors
    /// When the function or the server has as many as it takes, or is expected not to be done in time.
    pub fn admit(self: &Arc<Dispatcher>, function: &Function) -> Result<Admission, Failure> {
        if function.kv.as_ref().is_some_and(|kv| !kv.is_open()) {
            return Err(Failure::NoStore);
        }
        let gate = &function.gate;
        if !gate.take(Instant::now) {
            return Err(Failure::FunctionBusy);
        }
        // From here on, dropping this gives back what was taken.
        let gate = gate.is_limited().then(|| Arc::clone(gate));
        let mut admission = Admission { dispatcher: Arc::clone(self), gate, runs: false, load: 0, sequence: 0 };
        if !self.requests.enter() {
            return Err(Failure::Busy);
        }
        // Relaxed: numbers that order nothing else.
        admission.sequence = self.sequence.fetch_add(1, Ordering::Relaxed) + 1;
        if let Some(load_max) = self.load_max {
            admission.load = load(function);
            if self.load.fetch_add(admission.load, Ordering::Relaxed) + admission.load > load_max {
                return Err(Failure::Overload);
            }
        }
        Ok(admission)
    }

    /// Requests admitted and not over.
    #[must_use]
    pub fn requests(&self) -> usize {
        self.requests.count()
    }

    /// Says that something was done.
    pub(crate) fn stir(&self) {
        // Relaxed, here and below: the worker that looks does so only long after. Written only where it changes, since all workers do.
        if !self.is_stirred() {
            self.stirred.store(true, Ordering::Relaxed);
        }
    }

    /// Whether the server has still to come to rest.
    pub(crate) fn is_stirred(&self) -> bool {
        self.stirred.load(Ordering::Relaxed)
    }

    /// Whether nothing is to be done and nothing idle is kept any more: true once for each time that it comes to that.
    pub(crate) fn comes_to_rest(&self) -> bool {
        let is_at_rest = self.requests() == 0 && (0..self.exchange.workers()).all(|worker| self.pools.idle(worker) == 0);
        is_at_rest && self.stirred.swap(false, Ordering::Relaxed)
    }

    /// Says that through one of the sources no more requests will come.
    pub fn close_source(&self) {
        if self.requests.close_source() {
            self.rouse_all();
        }
    }

    /// Whether there is nothing more to do, now and ever.
    pub(crate) fn is_over(&self) -> bool {
        self.requests.is_over()
    }

    /// How far the server is with stopping.
    #[must_use]
    pub fn phase(&self) -> Phase {
        self.requests.phase()
    }

    /// Goes on with stopping, and tells every worker.
    pub fn advance(&self, phase: Phase) {
        self.requests.advance(phase);
        self.rouse_all();
    }

    /// Begins an invocation, which runs now or when it may: at its function's gate, then where `nearest` takes it. Everything that is invoked comes in
    /// here. What is called is answered by its caller's deadline at the latest.
    pub fn begin<I: Intake>(&self, mut invocation: Box<Invocation>, nearest: I) -> Answer {
        if let Some(caller) = invocation.identity.above() {
            invocation.deadline = invocation.deadline.min(caller.deadline);
        }
        invocation.reply = ReplyTo::Taker;
        // At a gate it may have to wait.
        let later = if invocation.admission.gate.is_some() { invocation.make_way() } else { None };
        let Some(invocation) = self.pass_gate(invocation) else { return later.unwrap_or_else(Answer::lost) };
        let mut answer = nearest.take(invocation).or(later).unwrap_or_else(Answer::lost);
        if I::KEEPS_DEADLINES {
            answer.leave_deadline_to_worker();
        }
        answer
    }

    /// The same of one whose reply is not wanted: it may outlive its caller.
    pub fn begin_unanswered(&self, mut invocation: Box<Invocation>, nearest: impl Intake) {
        invocation.reply = ReplyTo::Nowhere;
        if let Some(invocation) = self.pass_gate(invocation) {
            nearest.take(invocation);
        }
    }

    /// An invocation that may run; one that may not yet is kept until then.
    fn pass_gate(&self, invocation: Box<Invocation>) -> Option<Box<Invocation>> {
        debug_assert!(std::ptr::eq(self, &raw const *invocation.admission.dispatcher));
        match invocation.admission.gate.clone() {
            Some(gate) => gate.enter(invocation),
            None => Some(invocation),
        }
    }

    /// Queues an invocation for the worker that has time first.
    fn inject(&self, invocation: Box<Invocation>) {
        match (self.exchange.inject(Work::Job(invocation)), self.watcher()) {
            (Woken::None, Some(watcher)) => watcher.disturb_any(),
            (woken, _) => self.interrupt(woken),
        }
    }

    /// Whether it is asked what requests can be expected to take.
    pub(crate) fn keeps_promises(&self) -> bool {
        self.load_max.is_some()
    }
}

/// Takes invocations that may run: a worker, or all of them.
pub trait Intake {
    /// Whether what is taken is in a worker's order at once, which ends it when its deadline comes.
    const KEEPS_DEADLINES: bool;

    /// Runs it, or has it run. What answers it, if its reply goes to the [taker](ReplyTo::Taker).
    fn take(self, invocation: Box<Invocation>) -> Option<Answer>;
}

/// For the worker that has time first.
impl Intake for &Dispatcher {
    const KEEPS_DEADLINES: bool = false;

    fn take(self, mut invocation: Box<Invocation>) -> Option<Answer> {
        let answer = invocation.make_way();
        self.inject(invocation);
        answer
    }
}

/// One worker's time, in the units in which load is counted.
const LOAD_UNIT: u64 = 1_000_000;

/// The part of a worker's time until its deadline that a request is expected to need.
fn load(function: &Function) -> u64 {
    let part = function.gate.expected().as_secs_f64() / function.deadline.as_secs_f64();
    // What needs all of it or more is taken by a worker that has nothing else.
    (part.min(1.0) * LOAD_UNIT as f64) as u64
}

/// A request's place among those that the server and its function take; given back when it is dropped.
#[derive(Debug)]
pub struct Admission {
    dispatcher: Arc<Dispatcher>,
    /// Of functions with limits.
    gate: Option<Arc<Gate>>,
    /// Whether the gate has let it in.
    pub(crate) runs: bool,
    load: u64,
    /// Its number among all that were admitted.
    pub(crate) sequence: u64,
}

impl Admission {
    /// It is over, and used that: its gate takes note of it where it follows that.
    pub(crate) fn learn(&self, times: &Times, now: Instant) {
        if let Some(gate) = self.gate.as_ref().filter(|gate| gate.follows()) {
            gate.learn(Used { busy: times.cpu, idle: times.blocked }, now);
        }
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        let dispatcher = &self.dispatcher;
        if let Some(gate) = &self.gate {
            let mut next = gate.leave(self.runs);
            while let Some(invocation) = next {
                dispatcher.inject(invocation);
                next = gate.next();
            }
        }
        if self.load != 0 {
            dispatcher.load.fetch_sub(self.load, Ordering::Relaxed);
        }
        dispatcher.stir();
        if dispatcher.requests.leave() {
            dispatcher.rouse_all();
        }
    }
}
