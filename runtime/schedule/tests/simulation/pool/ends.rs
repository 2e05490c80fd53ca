//! How invocations end, and what must be true when they do.

use std::collections::VecDeque;
use std::rc::Rc;

use sledge_schedule::{Demand, Phase, Why};

use super::gates::Wanted;
use super::side::Job;
use super::{IO, Pool, Seen, Thread, Violation, WAKE_MAX};
use crate::plan::HOST_MAX;

impl Pool<'_> {
    pub(super) fn killed(&mut self, worker: usize, job: Job, why: Why) -> Result<(), Violation> {
        let index = job.index;
        let (slack, longest_run) = (self.slack(), self.longest_run());
        let invocation = &mut self.invocations[index];
        if invocation.blocked.take().is_some() {
            invocation.end_wait(self.now);
        }
        let (now, deadline) = (self.now, invocation.deadline);
        match why {
            Why::Deadline => {
                self.seen.fault("deadline");
                if now < deadline {
                    return Err(format!("invocation {index} is killed before its deadline"));
                }
                let since = deadline.max(invocation.entered);
                if now > since + slack {
                    return Err(format!(
                        "invocation {index} is killed {} us after its deadline, {} may be",
                        (now - since) / 1_000,
                        slack / 1_000
                    ));
                }
            }
            Why::Cpu => {
                self.seen.fault("processor time");
                let cpu_max = self.plan.functions[invocation.function].cpu_max;
                if invocation.cpu < cpu_max || invocation.cpu > cpu_max + longest_run {
                    return Err(format!("invocation {index} is killed for {} us of {}", invocation.cpu / 1_000, cpu_max / 1_000));
                }
            }
            Why::Overload => {
                self.seen.fault("overload");
                if invocation.started {
                    return Err(format!("invocation {index} is shed, and has begun"));
                }
            }
            Why::Unwanted => {
                if invocation.demand() != Demand::Unwanted {
                    return Err(format!("invocation {index} is given up, and was not"));
                }
            }
            Why::Stopping => {
                self.seen.fault("killed at the end");
                if self.world.borrow().requests.phase() != Phase::Killing {
                    return Err(format!("invocation {index} is ended while the server serves"));
                }
            }
        }
        self.workers[worker].to_answer += 1;
        self.over(worker, job)
    }

    /// The longest that a guest is run: a late tick comes in a host call.
    pub(super) fn longest_run(&self) -> u64 {
        self.plan.quantum + self.plan.quantum / 8 + HOST_MAX + 1_000
    }

    /// How long after its deadline an invocation may still be there: its worker sleeps or runs another, hands it off in vain, looks after connections meanwhile.
    pub(super) fn slack(&self) -> u64 {
        6 * (self.longest_run() + 10 * IO) + 2 * WAKE_MAX
    }

    /// An invocation is over.
    pub(super) fn over(&mut self, worker: usize, mut job: Job) -> Result<(), Violation> {
        job.is_over = true;
        let (index, runs) = (job.index, job.runs);
        let invocation = &mut self.invocations[index];
        if std::mem::replace(&mut invocation.is_over, true) {
            return Err(format!("invocation {index} ends twice"));
        }
        if invocation.demand() == Demand::Speculative {
            self.seen.fault("speculative and over");
        }
        self.checks.left(worker, index, invocation.tenant);
        let gate = Rc::clone(&invocation.gate);
        if !gate.wanted.follows {
            let Wanted { concurrency_max, queue_max, .. } = gate.wanted;
            let taken_max = concurrency_max.zip(queue_max).map(|(running, waiting)| running + waiting);
            self.checks.gate(index, gate.running.get(), concurrency_max.unwrap_or(usize::MAX))?;
            self.checks.gate(index, gate.taken.get(), taken_max.unwrap_or(usize::MAX))?;
        }
        if self.invocations[index].started {
            self.learn(index);
        }
        let _ = self.world.borrow().requests.leave();
        self.leave(&gate, runs);
        self.ended(index);
        Ok(())
    }

    /// The consequences of an invocation's end for others.
    pub(super) fn ended(&mut self, index: usize) {
        let invocation = &mut self.invocations[index];
        let (caller, callees) = (invocation.caller, std::mem::take(&mut invocation.callees));
        for callee in callees {
            if !self.invocations[callee].is_over {
                self.seen.fault("callee of what ended");
                self.close(callee);
            }
        }
        if let Some((caller, wait)) = caller
            && self.invocations[caller].wait == wait
            && !self.invocations[caller].is_over
        {
            self.invocations[caller].wait_is_done = true;
            self.wake_task(caller);
        }
        let world = self.world.borrow();
        let is_last = world.requests.count() == 0 && world.requests.phase() != Phase::Serving;
        drop(world);
        if is_last {
            (0..self.plan.workers).for_each(|worker| self.wake(worker));
        }
    }

    /// What was dropped has waited at a gate, and its client has gone; nothing else is ever dropped.
    pub(super) fn note_dropped(&mut self) -> Result<(), Violation> {
        let dropped = std::mem::take(&mut self.world.borrow_mut().dropped);
        for index in dropped {
            let invocation = &mut self.invocations[index];
            if invocation.started || invocation.is_over || !invocation.closed.get() {
                return Err(format!("invocation {index} is dropped"));
            }
            invocation.is_over = true;
            self.seen.fault("gone at the gate");
            self.ended(index);
        }
        Ok(())
    }

    pub(super) fn note_moves(&mut self) {
        let moves = std::mem::take(&mut self.world.borrow_mut().moves);
        for (index, place) in moves {
            self.checks.moved(index, self.invocations[index].tenant, place);
        }
    }

    /// What is left when nothing happens any more.
    pub(super) fn end(mut self) -> Result<Seen, Violation> {
        if let Some(index) = self.invocations.iter().position(|invocation| !invocation.is_over) {
            let invocation = &self.invocations[index];
            let (started, blocked) = (invocation.started, invocation.blocked);
            return Err(format!("invocation {index} is lost: started: {started}, blocked: {blocked:?}"));
        }
        if let Some(worker) = self.workers.iter().position(|worker| !matches!(worker.thread, Thread::Left)) {
            return Err(format!("worker {worker} does not leave"));
        }
        let world = self.world.borrow();
        let is_empty = world.model.injector.is_empty() && world.model.queues.iter().all(VecDeque::is_empty);
        if !is_empty || world.requests.count() > 0 {
            return Err(format!("{} requests are left", world.requests.count()));
        }
        if let Some(gate) = self.gates.iter().find(|gate| gate.running.get() + gate.taken.get() > 0) {
            return Err(format!("a gate is left with {} that run and {} taken", gate.running.get(), gate.taken.get()));
        }
        self.seen.stolen = self.workers.iter_mut().map(|worker| worker.scheduler.take_stolen() as usize).sum();
        Ok(self.seen)
    }
}
