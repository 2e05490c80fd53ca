//! What holds at every event of a simulation.

use sledge_schedule::{Demand, Policy};

use crate::plan::{HOST_MAX, Plan};
use crate::pool::{Invocation, Place, Violation, WAKE_MAX, Worker, World};

/// An invocation that has used less stands in the first level of its function, whatever the others use.
const FIRST_QUANTA: u64 = 3;
/// No invocation of any plan computes for longer, so that a worker with nothing else to do begins another one after that time.
const HELD_MAX: u64 = 200_000_000;
/// More tenants than any plan has.
const TENANTS: usize = 3;

pub(crate) struct Checks {
    policy: Policy,
    has_classes: bool,
    limits: bool,
    quantum: u64,
    longest_run: u64,
    /// Where each invocation is.
    places: Vec<Place>,
    /// Invocations that wait or run, by worker.
    present: Vec<Vec<usize>>,
    /// Those that are speculative, by worker: none of the others.
    speculative: Vec<Vec<usize>>,
    /// By number: whether it is speculative.
    is_speculative: Vec<bool>,
    /// The same, by worker and tenant: how many.
    tenants: Vec<[usize; TENANTS]>,
    /// What each tenant has used of a worker, and its connections.
    used: Vec<[u64; TENANTS]>,
    io: Vec<u64>,
    /// By worker and two tenants: what they had used, and the connections, since when both always had something to run.
    since: Vec<[[(i64, u64); TENANTS]; TENANTS]>,
    /// Since when a worker sleeps while there is something to be had elsewhere.
    idle_since: Option<u64>,
    /// By worker: since when it runs only what is speculative while another has more to do that is asked for than it can.
    slack_since: Vec<Option<u64>>,
    /// By worker: since when it sleeps and begins none of what it has.
    held_since: Vec<Option<u64>>,
}

impl Checks {
    pub(crate) fn new(plan: &Plan) -> Checks {
        Checks {
            policy: plan.policy,
            has_classes: plan.classes.is_some(),
            limits: plan.classes.is_some_and(|classes| classes.settings().limits),
            quantum: plan.quantum,
            longest_run: plan.quantum + plan.quantum / 8 + HOST_MAX + 1_000,
            places: Vec::new(),
            present: vec![Vec::new(); plan.workers],
            speculative: vec![Vec::new(); plan.workers],
            is_speculative: Vec::new(),
            tenants: vec![[0; TENANTS]; plan.workers],
            used: vec![[0; TENANTS]; plan.workers],
            io: vec![0; plan.workers],
            since: vec![[[(0, 0); TENANTS]; TENANTS]; plan.workers],
            idle_since: None,
            slack_since: vec![None; plan.workers],
            held_since: vec![None; plan.workers],
        }
    }

    /// An invocation is begun ahead.
    pub(crate) fn begun_ahead(&mut self, index: usize) {
        self.is_speculative.resize(self.is_speculative.len().max(index + 1), false);
        self.is_speculative[index] = true;
    }

    /// It is asked for, or not wanted any more: it has its turn as any other.
    pub(crate) fn settled(&mut self, index: usize, tenant: u32) {
        let place = self.places.get(index).copied().unwrap_or(Place::Elsewhere);
        if let Place::Worker(worker) = place {
            self.left(worker, index, tenant);
        }
        self.is_speculative[index] = false;
        self.moved(index, tenant, place);
    }

    fn has(&self, index: usize) -> bool {
        self.is_speculative.get(index).copied().unwrap_or(false)
    }

    /// An invocation is somewhere else.
    pub(crate) fn moved(&mut self, index: usize, tenant: u32, place: Place) {
        if self.places.len() <= index {
            self.places.resize(index + 1, Place::Elsewhere);
        }
        if let Place::Worker(worker) = self.places[index] {
            self.left(worker, index, tenant);
        }
        self.places[index] = place;
        if self.has(index) {
            if let Place::Worker(worker) = place {
                self.speculative[worker].push(index);
            }
        } else if let Place::Worker(worker) = place {
            self.present[worker].push(index);
            let tenant = tenant as usize;
            self.tenants[worker][tenant] += 1;
            if self.tenants[worker][tenant] == 1 {
                for other in 0..TENANTS {
                    self.begin(worker, tenant, other);
                }
            }
        }
    }

    fn begin(&mut self, worker: usize, one: usize, other: usize) {
        let used = &self.used[worker];
        let io = self.io[worker];
        self.since[worker][one][other] = (used[one] as i64 - used[other] as i64, io);
        self.since[worker][other][one] = (used[other] as i64 - used[one] as i64, io);
    }

    /// An invocation waits or runs no longer on that worker.
    pub(crate) fn left(&mut self, worker: usize, index: usize, tenant: u32) {
        if self.has(index)
            && let Some(at) = self.speculative[worker].iter().position(|present| *present == index)
        {
            self.speculative[worker].swap_remove(at);
            self.places[index] = Place::Elsewhere;
        }
        if let Some(at) = self.present[worker].iter().position(|present| *present == index) {
            self.present[worker].swap_remove(at);
            self.tenants[worker][tenant as usize] -= 1;
            self.places[index] = Place::Elsewhere;
        }
    }

    /// A worker looked after its connections for so long.
    pub(crate) fn io(&mut self, worker: usize, took: u64) {
        self.io[worker] += took;
    }

    /// A worker ran something of a tenant: of two that have something to run, none gets more than the other by more than a few runs. What has not begun may be held, and then
    /// its tenant wants nothing.
    pub(crate) fn ran(
        &mut self,
        worker: usize,
        tenant: u32,
        (ran, was_speculative): (u64, bool),
        invocations: &[Invocation],
    ) -> Result<(), Violation> {
        if ran > self.longest_run {
            return Err(format!("a run of {} us", ran / 1_000));
        }
        // That is no part of its share.
        if was_speculative {
            return Ok(());
        }
        let tenant = tenant as usize;
        self.used[worker][tenant] += ran;
        for other in (0..TENANTS).filter(|other| *other != tenant) {
            let started = |index: &usize| invocations[*index].started && invocations[*index].tenant as usize == other;
            let may_be_held = self.limits && !self.present[worker].iter().any(started);
            if self.tenants[worker][other] == 0 || self.tenants[worker][tenant] == 0 || may_be_held {
                self.begin(worker, tenant, other);
                continue;
            }
            let (difference, io) = self.since[worker][tenant][other];
            let more = self.used[worker][tenant] as i64 - self.used[worker][other] as i64 - difference;
            let bound = 4 * self.longest_run + 2 * (self.io[worker] - io);
            if more > bound as i64 {
                return Err(format!(
                    "tenant {tenant} has used {} us more than tenant {other}, which waits on worker {worker}",
                    more / 1_000
                ));
            }
        }
        Ok(())
    }

    /// A worker runs something.
    pub(crate) fn begins(&mut self, worker: usize) {
        self.held_since[worker] = None;
    }

    /// An invocation is run in a turn: nothing of its function and level that is older waits there. Classes come before age: their order is tested in the core.
    pub(crate) fn order(&self, worker: usize, index: usize, invocations: &[Invocation]) -> Result<(), Violation> {
        let this = &invocations[index];
        let is_short = |invocation: &Invocation| invocation.cpu <= FIRST_QUANTA * self.quantum;
        if self.policy != Policy::RoundRobin || self.has_classes || !is_short(this) {
            return Ok(());
        }
        let older = self.present[worker].iter().find(|other| {
            let other = &invocations[**other];
            other.function == this.function && other.age < this.age && is_short(other)
        });
        match older {
            Some(older) => Err(format!("invocation {index} is run before {older}, which is older")),
            None => Ok(()),
        }
    }

    /// What is speculative is run only where nothing waits that is asked for and may begin, and of a tenant's the first.
    pub(crate) fn slack(&self, worker: usize, index: usize, invocations: &[Invocation]) -> Result<(), Violation> {
        let this = &invocations[index];
        if this.demand() != Demand::Speculative {
            return Ok(());
        }
        let may_be_held = |other: usize| self.limits && !invocations[other].started;
        if let Some(asked) = self.present[worker].iter().find(|other| **other != index && !may_be_held(**other)) {
            return Err(format!("invocation {index} is speculative, and is run before {asked}, which is asked for"));
        }
        let is_before = |other: &&usize| {
            let other = &invocations[**other];
            other.tenant == this.tenant && other.place() < this.place() && other.demand() == Demand::Speculative
        };
        match self.speculative[worker].iter().find(is_before) {
            Some(earlier) => Err(format!("invocation {index} is run before {earlier}, which stands before it")),
            None => Ok(()),
        }
    }

    /// A gate keeps its limits.
    pub(crate) fn gate(&self, index: usize, count: usize, count_max: usize) -> Result<(), Violation> {
        if count > count_max {
            return Err(format!("at the end of invocation {index} its gate has {count} in place of {count_max}"));
        }
        Ok(())
    }

    /// No worker sleeps while it has something to run itself, ever; nor while others have what is injected, handed off, or not started, for longer than it takes these to
    /// hand it off. What has started is handed off one a quantum, so of that there may be more for a while.
    pub(crate) fn sleepers(
        &mut self,
        now: u64,
        workers: &[Worker],
        world: &World,
        invocations: &[Invocation],
    ) -> Result<(), Violation> {
        let mut one_sleeps = false;
        for (index, worker) in workers.iter().enumerate().filter(|(_, worker)| worker.sleeps()) {
            if worker.holds() {
                if !self.speculative[index].is_empty() {
                    return Err(format!("worker {index} sleeps, and has what is speculative to run"));
                }
                self.holds(now, index, invocations)?;
                continue;
            }
            one_sleeps = true;
            if worker.waiting() > 0 || worker.has_unread() || !world.model.queues[index].is_empty() {
                return Err(format!("worker {index} sleeps, and has something to run"));
            }
        }
        let has_work = one_sleeps
            && (!world.model.injector.is_empty()
                || world.model.queues.iter().any(|queue| !queue.is_empty())
                || workers.iter().zip(self.present.iter().zip(&self.speculative)).any(|(worker, (present, ahead))| {
                    worker.waiting() > 2 && (has_not_started(present, invocations) || has_not_started(ahead, invocations))
                }));
        let bound = 4 * self.longest_run + 2 * WAKE_MAX + 200_000;
        let is_asked = |index: usize| invocations[index].demand() == Demand::Asked;
        // What is held is asked for, and may not begin.
        let asked_waits = !self.limits
            && workers.iter().any(Worker::is_slack)
            && (world.model.injector.iter().any(|job| is_asked(job.index))
                || world.model.queues.iter().flatten().any(|job| is_asked(job.index))
                || self.present.iter().any(|present| present.len() > 3 && has_not_started(present, invocations)));
        for (index, worker) in workers.iter().enumerate() {
            if !asked_waits || !worker.is_slack() {
                self.slack_since[index] = None;
            } else if now - *self.slack_since[index].get_or_insert(now) > 2 * bound {
                // Others are asked for what they have once a turn, and idle workers come first: twice as long as for these.
                return Err(format!(
                    "worker {index} runs what is speculative, and others have more to do that is asked for than they can"
                ));
            }
        }
        if !has_work {
            self.idle_since = None;
            return Ok(());
        }
        let since = *self.idle_since.get_or_insert(now);
        if now - since > bound {
            let each =
                workers.iter().zip(&world.model.queues).map(|(worker, queue)| (worker.sleeps(), worker.waiting(), queue.len()));
            return Err(format!(
                "a worker sleeps for {} us while others have more to do than they can: {} injected; sleeps, waiting and handed off by worker: {:?}",
                (now - since) / 1_000,
                world.model.injector.len(),
                each.collect::<Vec<_>>()
            ));
        }
        Ok(())
    }
}

impl Checks {
    /// A worker sleeps, and does not begin what it has: nothing of that has begun, and sooner or later it begins something nevertheless.
    fn holds(&mut self, now: u64, worker: usize, invocations: &[Invocation]) -> Result<(), Violation> {
        if !self.has_classes {
            return Err(format!("worker {worker} holds something back, and there are no classes"));
        }
        if let Some(index) = self.present[worker].iter().find(|index| invocations[**index].started) {
            return Err(format!("worker {worker} sleeps, and invocation {index} has begun and waits there"));
        }
        let since = *self.held_since[worker].get_or_insert(now);
        if now - since > HELD_MAX {
            return Err(format!("worker {worker} sleeps for {} us and begins nothing of what it has", (now - since) / 1_000));
        }
        Ok(())
    }
}

/// Whether more than one of them has not started.
fn has_not_started(present: &[usize], invocations: &[Invocation]) -> bool {
    present.iter().filter(|index| !invocations[**index].started).count() > 1
}
