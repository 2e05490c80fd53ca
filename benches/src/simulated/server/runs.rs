//! Guests that run, and what comes of that.

use std::time::Duration;

use sledge_schedule::{Event, TaskId, Used};

use super::parts::{From, Invocation, Item, Run, Thread, Worker};
use super::{Due, Server};
use crate::simulated::model::{Between, Nanoseconds};
use crate::simulated::side::{Job, Key};

/// Between two ticks of a guest that runs alone.
const ALONE: Nanoseconds = 5_000_000;

impl Server<'_> {
    /// Runs a guest for a quantum, or without ticks where nothing else waits.
    pub(super) fn run(&mut self, worker: usize, id: TaskId, job: Job, at_once: bool) {
        let Worker { scheduler, items, .. } = &self.workers[worker];
        let Invocation { left, was_preempted, .. } = self.invocations[job.key.slot as usize];
        let is_alone = !at_once && was_preempted && items.is_empty() && scheduler.is_alone();
        let slice = if is_alone { ALONE } else { self.settings.quantum.as_nanos() as Nanoseconds };
        let computed = left.min(slice);
        let ran = computed + if left > slice { self.settings.costs.tick } else { 0 };
        self.begin(worker, Thread::Runs(Run { id, job, ran, computed, is_alone, at_once }), ran);
    }

    /// A run is over: what comes of it.
    pub(super) fn run_ends(&mut self, worker: usize, run: Run) -> Event<Job> {
        let Run { id, mut job, ran, computed, at_once, .. } = run;
        let invocation = &mut self.invocations[job.key.slot as usize];
        invocation.left -= computed;
        invocation.cpu += ran;
        invocation.was_preempted = invocation.left > 0;
        let (time, key) = (Duration::from_nanos(ran), job.key);
        job.task.cpu += time;
        job.task.started = true;
        if invocation.was_preempted {
            return Event::Preempted { ran: time, work: job };
        }
        let Some(between) = self.functions[invocation.function].between.get(invocation.burst).copied() else {
            self.leave(&job);
            if matches!(self.invocations[key.slot as usize].from, From::Caller(_)) {
                self.reply(key, true);
                return Event::Returned { ran: time };
            }
            let this = &mut self.workers[worker];
            if at_once {
                // The reply is written in the same breath.
                this.items.push_front(Item::Reply(key));
                this.ready += 1;
            } else {
                this.items.push_back(Item::Reply(key));
            }
            return Event::Ended { ran: time };
        };
        (invocation.blocked, invocation.since) = (Some((worker, id)), self.now);
        match between {
            Between::Waits(takes) => self.workers[worker].items.push_back(Item::Send(key, takes)),
            Between::Calls(function) => {
                let callee = self.admit(function, From::Caller(key));
                if let Some(callee) = self.enter(callee) {
                    self.step(worker, Event::Arrived(callee));
                }
            }
        }
        Event::Blocked { ran: time, until: None, work: job }
    }

    /// An invocation is over: its place at its function's gate is another's.
    pub(super) fn leave(&mut self, job: &Job) {
        let Invocation { function, cpu, waited, .. } = self.invocations[job.key.slot as usize];
        let now = self.time();
        let gate = &self.gates[function];
        if gate.follows() && job.task.started {
            gate.learn(Used { busy: Duration::from_nanos(cpu), idle: Duration::from_nanos(waited) }, now);
        }
        let mut next = gate.leave(job.runs);
        while let Some(job) = next {
            self.inject(job);
            next = self.gates[function].next();
        }
    }

    /// What an invocation came to is told to its client, or to its caller.
    pub(super) fn reply(&mut self, key: Key, is_answered: bool) {
        let invocation = &mut self.invocations[key.slot as usize];
        invocation.generation += 1;
        invocation.blocked = None;
        let (from, function) = (invocation.from, invocation.function);
        self.free.push(key.slot);
        match from {
            From::Client { due, number, client } => {
                let received = self.now + self.settings.costs.away;
                let took = (received - due) as f64 + self.functions[function].noise(&mut self.random);
                self.record.received(function, number, is_answered.then_some(took), received);
                if self.requests.sends_again() {
                    self.at(received, Due::Comes(client));
                }
            }
            From::Caller(caller) => {
                let waiting = &self.invocations[caller.slot as usize];
                // It may have been ended meanwhile.
                if let Some((worker, _)) = waiting.blocked.filter(|_| waiting.generation == caller.generation) {
                    self.give(worker, Item::Returned(caller));
                }
            }
        }
    }
}
