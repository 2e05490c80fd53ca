//! Requests on their way to a worker: through the server's count and their function's gate.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use sledge_schedule::{Demand, FunctionId, Gate, InFlight, Microtask, Rank, Task, TaskId, TenantId, Used};

use super::side::Job;
use super::{Due, Invocation, Pool};
use crate::plan::{Ahead, Part};

/// A function's gate, and what the simulation counts itself.
pub(super) struct Limits {
    pub(super) gate: Gate<Job>,
    pub(super) wanted: Wanted,
    pub(super) running: Cell<usize>,
    pub(super) taken: Cell<usize>,
}

/// What is said of a function's gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) follows: bool,
    pub(super) concurrency_max: Option<usize>,
    pub(super) queue_max: Option<usize>,
}

impl Limits {
    /// The gate of a function, or of its next version in the place of the one before: what that one has learned is kept.
    pub(super) fn new(wanted: Wanted, workers: usize, before: Option<&Limits>) -> Rc<Limits> {
        let Wanted { follows, concurrency_max, queue_max } = wanted;
        let learned = before.and_then(|before| before.gate.in_flight()).unwrap_or_else(|| InFlight::new(workers));
        let gate = if follows { Gate::following(learned, queue_max) } else { Gate::new(concurrency_max, queue_max) };
        Rc::new(Limits { gate, wanted, running: Cell::new(0), taken: Cell::new(0) })
    }

    /// The most that may run, as the gate says it of itself where it follows.
    fn running_max(&self) -> usize {
        let Wanted { follows, concurrency_max, .. } = self.wanted;
        let limit = if follows { self.gate.limit() } else { concurrency_max };
        limit.unwrap_or(usize::MAX)
    }
}

impl Pool<'_> {
    /// No request comes any more when the server drains and all that came are read.
    pub(super) fn close_when_read(&mut self) {
        let mut world = self.world.borrow_mut();
        if world.drains && world.unread == 0 {
            world.drains = false;
            let is_last = world.requests.close_source();
            drop(world);
            if is_last {
                (0..self.plan.workers).for_each(|worker| self.wake(worker));
            }
        }
    }

    /// Admits a request, as a connection's task does. The job, if it may run.
    pub(super) fn read(&mut self, request: usize) -> Option<Job> {
        let (function, script, leaves, no_memory, ahead) = self.unread[request].clone();
        let deadline = self.now + self.plan.functions[function].deadline;
        let index = self.admit(function, script, deadline, None)?;
        self.invocations[index].no_memory = no_memory;
        if let Some(leaves) = leaves {
            self.at(self.now + leaves, Due::Leaves(index));
        }
        self.at(deadline, Due::Late(index));
        // What holds a place that others may wait for is not begun ahead.
        if let Some(Ahead { root, path, settled }) = ahead.filter(|_| !self.gates[function].gate.is_limited()) {
            self.invocations[index].claim = Some((Rc::default(), Rank::new(root, path)));
            self.checks.begun_ahead(index);
            if let Some((after, is_asked)) = settled {
                self.at(self.now + after, Due::Settled(index, is_asked));
            }
        }
        self.enter(index)
    }

    /// A place for one more invocation.
    pub(super) fn admit(
        &mut self,
        function: usize,
        script: Vec<Part>,
        deadline: u64,
        caller: Option<(usize, u64)>,
    ) -> Option<usize> {
        let limits = Rc::clone(&self.gates[function]);
        let now = self.time(self.now);
        if !limits.gate.take(|| now) {
            self.seen.fault("function full");
            return None;
        }
        limits.taken.set(limits.taken.get() + 1);
        // As any panic, one here is a violation.
        let taken_max = limits.wanted.queue_max.map_or(usize::MAX, |queue_max| limits.running_max().saturating_add(queue_max));
        assert!(limits.taken.get() <= taken_max, "{} are taken in place of {taken_max}", limits.taken.get());
        let has_room = self.world.borrow().requests.enter();
        if !has_room {
            let _ = self.world.borrow().requests.leave();
            self.seen.fault("server full");
            self.leave(&limits, false);
            return None;
        }
        self.seen.admitted += 1;
        let of_caller = caller.and_then(|(caller, _)| self.invocations[caller].claim.clone());
        let claim = of_caller.filter(|_| !limits.gate.is_limited());
        if claim.as_ref().is_some_and(|(claim, _)| claim.demand() == Demand::Speculative) {
            self.checks.begun_ahead(self.invocations.len());
        }
        self.invocations.push(Invocation {
            function,
            tenant: self.plan.functions[function].tenant,
            age: self.seen.admitted as u64,
            deadline,
            cpu: 0,
            waited: 0,
            entered: 0,
            is_over: false,
            started: false,
            no_memory: false,
            script: script.into(),
            closed: Rc::default(),
            claim,
            gate: limits,
            caller,
            callees: Vec::new(),
            blocked: None,
            blocked_since: 0,
            blocked_until: None,
            pends: false,
            wait: 0,
            wait_is_done: false,
        });
        Some(self.invocations.len() - 1)
    }

    /// Lets an admitted invocation run, or leaves it at its function's gate.
    pub(super) fn enter(&mut self, index: usize) -> Option<Job> {
        let invocation = &self.invocations[index];
        let task = Task {
            id: TaskId(0),
            tenant: TenantId(invocation.tenant),
            function: FunctionId(invocation.function as u32),
            age: invocation.age,
            arrived: self.time(self.now),
            deadline: self.time(invocation.deadline),
            cpu_max: Duration::from_nanos(self.plan.functions[invocation.function].cpu_max),
            cpu: Duration::ZERO,
            started: false,
            level: 0,
            class: 0,
            is_speculative: false,
            weight: self.plan.functions[invocation.function].weight,
        };
        let job = Job {
            index,
            task,
            microtask: Microtask::default(),
            runs: false,
            claim: invocation.claim.clone(),
            closed: Rc::clone(&invocation.closed),
            limits: Rc::clone(&invocation.gate),
            world: Rc::clone(&self.world),
            is_over: false,
        };
        let job = invocation.gate.gate.enter(job)?;
        self.entered(&job);
        Some(job)
    }

    pub(super) fn entered(&mut self, job: &Job) {
        let now = self.now;
        let invocation = &mut self.invocations[job.index];
        invocation.entered = now;
        if job.runs {
            let gate = &invocation.gate;
            gate.running.set(gate.running.get() + 1);
            let (running, running_max) = (gate.running.get(), gate.running_max());
            assert!(running <= running_max, "invocation {} is let in: {running} run in place of {running_max}", job.index);
        }
    }

    /// Gives a place at a gate back; what runs in its stead is injected.
    pub(super) fn leave(&mut self, limits: &Rc<Limits>, ran: bool) {
        limits.taken.set(limits.taken.get() - 1);
        limits.running.set(limits.running.get() - usize::from(ran));
        let mut next = limits.gate.leave(ran);
        while let Some(job) = next {
            self.entered(&job);
            self.inject(job);
            next = limits.gate.next();
        }
    }

    /// An invocation that ran is over: its gate takes note of what it used.
    pub(super) fn learn(&mut self, index: usize) {
        let Invocation { cpu, waited, ref gate, .. } = self.invocations[index];
        if !gate.gate.follows() {
            return;
        }
        let before = gate.running_max();
        let used = Used { busy: Duration::from_nanos(cpu), idle: Duration::from_nanos(waited) };
        gate.gate.learn(used, self.time(self.now));
        let max = gate.running_max();
        assert!(max >= self.plan.workers, "{max} may run on {} workers", self.plan.workers);
        if max > before {
            self.seen.fault("limit rises");
        }
        // It is still one of those that run.
        if max < before && gate.running.get() > max + 1 {
            self.seen.fault("limit falls below what runs");
        }
    }

    pub(super) fn inject(&mut self, job: Job) {
        self.world.borrow_mut().model.inject(job);
    }
}
