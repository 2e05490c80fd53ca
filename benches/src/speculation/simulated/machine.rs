//! Cores in simulated time: what computes takes one, what waits takes none. Times are milliseconds.
//!
//! What is to compute waits in one queue, in the order in which it came, and computes for a quantum at a time. A core that had nothing to do takes some time to come back to it.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};

use super::QUANTUM_MS;

/// The part of the cores' time that was used is that of the last so many milliseconds.
const PERIOD_MS: f64 = 20.0;

/// Names what computes.
pub(super) type Token = usize;

/// What happens next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Happens<D> {
    /// That has computed all that it had to, for which it took so long.
    Computed(Token, f64),
    /// Something is due.
    Due(D),
}

#[derive(Debug)]
enum What<D> {
    /// A core is done, if it was not interrupted.
    Core(usize, u64),
    Due(D),
}

#[derive(Debug)]
struct Event<D> {
    at: f64,
    sequence: u64,
    what: What<D>,
}

impl<D> PartialEq for Event<D> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<D> Eq for Event<D> {}

impl<D> PartialOrd for Event<D> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<D> Ord for Event<D> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.at.total_cmp(&other.at).then(self.sequence.cmp(&other.sequence))
    }
}

/// Something to compute.
#[derive(Debug, Clone, Copy)]
struct Job {
    token: Token,
    left: f64,
    /// What it took until now.
    took: f64,
}

#[derive(Debug, Clone, Copy)]
struct Core {
    job: Option<Job>,
    began: f64,
    epoch: u64,
    /// Since when it has nothing to do.
    free_since: f64,
}

/// The cores, and what is due.
#[derive(Debug)]
pub(super) struct Machine<D> {
    pub(super) now: f64,
    events: BinaryHeap<Reverse<Event<D>>>,
    sequence: u64,
    queue: VecDeque<Job>,
    cores: Vec<Core>,
    wake_ms: f64,
    /// Processor time of all cores.
    pub(super) used: f64,
    /// How often a core came back from having nothing to do.
    pub(super) wakes: u64,
    /// When it was looked how busy they are, what they had used by then, and the part that was used before.
    seen: (f64, f64, f64),
}

impl<D> Machine<D> {
    /// Idle cores, which take so long to come back.
    pub(super) fn new(cores: usize, wake_ms: f64) -> Machine<D> {
        let core = Core { job: None, began: 0.0, epoch: 0, free_since: f64::NEG_INFINITY };
        Machine {
            now: 0.0,
            events: BinaryHeap::new(),
            sequence: 0,
            queue: VecDeque::new(),
            cores: vec![core; cores],
            wake_ms,
            used: 0.0,
            wakes: 0,
            seen: (0.0, 0.0, 0.0),
        }
    }

    /// That computes for so long, as soon as a core has time.
    pub(super) fn compute(&mut self, token: Token, ms: f64) {
        self.queue.push_back(Job { token, left: ms, took: 0.0 });
    }

    /// That is due so much later.
    pub(super) fn later(&mut self, ms: f64, due: D) {
        self.push(self.now + ms, What::Due(due));
    }

    /// That computes no more. What it took for what it had begun to compute.
    pub(super) fn stop(&mut self, token: Token) -> f64 {
        if let Some(at) = self.queue.iter().position(|job| job.token == token) {
            return self.queue.remove(at).map_or(0.0, |job| job.took);
        }
        let now = self.now;
        let Some(core) = self.cores.iter_mut().find(|core| core.job.is_some_and(|job| job.token == token)) else { return 0.0 };
        let took = now - core.began;
        core.epoch += 1;
        core.free_since = now;
        self.used += took;
        core.job.take().map_or(0.0, |job| job.took) + took
    }

    /// The part of the cores' time that was used lately, from 0 to 1.
    pub(super) fn busy(&mut self) -> f64 {
        let (at, used, busy) = self.seen;
        let passed = (self.now - at) * self.cores.len() as f64;
        if self.now - at < PERIOD_MS {
            return busy;
        }
        let now_used =
            self.used + self.cores.iter().filter(|core| core.job.is_some()).map(|core| self.now - core.began).sum::<f64>();
        let busy = (now_used - used) / passed;
        self.seen = (self.now, now_used, busy);
        busy
    }

    /// What happens next, if something does.
    pub(super) fn next(&mut self) -> Option<Happens<D>> {
        loop {
            self.begin();
            let Reverse(Event { at, what, .. }) = self.events.pop()?;
            self.now = at;
            let (index, epoch) = match what {
                What::Due(due) => return Some(Happens::Due(due)),
                What::Core(index, epoch) => (index, epoch),
            };
            let core = &mut self.cores[index];
            let Some(mut job) = core.job.take_if(|_| core.epoch == epoch) else { continue };
            let took = at - core.began;
            core.free_since = at;
            self.used += took;
            job.took += took;
            if job.left <= 0.0 {
                return Some(Happens::Computed(job.token, job.took));
            }
            self.queue.push_back(job);
        }
    }

    fn push(&mut self, at: f64, what: What<D>) {
        self.sequence += 1;
        self.events.push(Reverse(Event { at, sequence: self.sequence, what }));
    }

    /// Cores without work take some.
    fn begin(&mut self) {
        while !self.queue.is_empty() {
            let now = self.now;
            // One that was busy until now comes first: it need not come back.
            let free = self.cores.iter().enumerate().filter(|(_, core)| core.job.is_none());
            let Some(index) = free.max_by(|(_, a), (_, b)| a.free_since.total_cmp(&b.free_since)).map(|(index, _)| index) else {
                return;
            };
            let Some(mut job) = self.queue.pop_front() else { return };
            let burst = job.left.min(QUANTUM_MS);
            job.left -= burst;
            let core = &mut self.cores[index];
            let comes_back = core.free_since < now;
            self.wakes += u64::from(comes_back);
            let takes = burst + if comes_back { self.wake_ms } else { 0.0 };
            core.epoch += 1;
            (core.job, core.began) = (Some(job), now);
            let epoch = core.epoch;
            self.push(now + takes, What::Core(index, epoch));
        }
    }
}
