//! What the schedulers of all workers share, in simulated time.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use sledge_schedule::demand::{Changes, Claim};
use sledge_schedule::gate::Entrant;
use sledge_schedule::{Demand, Microtask, Phase, Rank, Requests, Rest, Shared, Task, TaskId, Work};

use super::gates::Limits;
use crate::model::Model;

/// An invocation on its way through queues: what the scheduler is given. It cannot be copied.
pub(crate) struct Job {
    pub(crate) index: usize,
    pub(super) task: Task,
    /// What it does when it goes on.
    pub(super) microtask: Microtask,
    pub(super) runs: bool,
    /// Whether it is asked for, if it was begun ahead.
    pub(super) claim: Option<(Rc<Claim>, Rank)>,
    pub(super) closed: Rc<Cell<bool>>,
    pub(super) limits: Rc<Limits>,
    pub(super) world: Rc<RefCell<World>>,
    /// Whether it came to its end.
    pub(super) is_over: bool,
}

impl Drop for Job {
    fn drop(&mut self) {
        // A simulation that has failed is dropped wherever it stands.
        if !self.is_over
            && let Ok(mut world) = self.world.try_borrow_mut()
        {
            // Its place is given back at once, as an admission's is.
            self.limits.taken.set(self.limits.taken.get() - 1);
            let _ = world.requests.leave();
            world.dropped.push(self.index);
        }
        if !self.is_over {
            drop(self.limits.gate.leave(self.runs));
        }
    }
}

impl Work for Job {
    fn task(&self, id: TaskId) -> Task {
        Task { id, is_speculative: self.demand() == Demand::Speculative, ..self.task }
    }

    fn microtask(&self) -> Microtask {
        self.microtask
    }

    fn demand(&self) -> Demand {
        self.claim.as_ref().map_or(Demand::Asked, |(claim, _)| claim.demand())
    }

    fn rank(&self) -> Rank {
        self.claim.as_ref().map_or_else(Rank::default, |(_, rank)| *rank)
    }
}

impl Entrant for Job {
    fn let_in(&mut self) {
        self.runs = true;
    }

    fn is_gone(&self) -> bool {
        self.closed.get()
    }
}

/// What all workers share.
pub(crate) struct World {
    pub(crate) model: Model<Job>,
    /// Of what is asked for.
    pub(super) changes: Changes,
    pub(super) requests: Requests,
    /// Whether it takes no more.
    pub(super) drains: bool,
    /// Requests that a connection has not read.
    pub(super) unread: usize,
    /// Where jobs went, since that was last looked at: index, worker.
    pub(super) moves: Vec<(usize, Place)>,
    /// Jobs that were dropped before their end, since that was last looked at.
    pub(super) dropped: Vec<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The scheduler or the hands of a worker.
    Worker(usize),
    /// Nowhere in particular.
    Elsewhere,
}

/// One worker's side of that.
pub(crate) struct Side {
    pub(super) world: Rc<RefCell<World>>,
    pub(super) index: usize,
}

impl Side {
    fn moved(&self, index: usize, place: Place) {
        self.world.borrow_mut().moves.push((index, place));
    }
}

impl Shared for Side {
    type Work = Job;

    fn workers(&self) -> usize {
        self.world.borrow().model.queues.len()
    }

    fn has_injected(&self) -> bool {
        !self.world.borrow().model.injector.is_empty()
    }

    fn take_injected(&mut self) -> Vec<Job> {
        let jobs = self.world.borrow_mut().model.take_injected(|job| job.demand() == Demand::Asked);
        jobs.iter().for_each(|job| self.moved(job.index, Place::Worker(self.index)));
        jobs
    }

    fn push(&mut self, job: Job) {
        self.moved(job.index, Place::Elsewhere);
        self.world.borrow_mut().model.queues[self.index].push_back(job);
    }

    fn pop(&mut self) -> Option<Job> {
        let job = self.world.borrow_mut().model.queues[self.index].pop_front()?;
        self.moved(job.index, Place::Worker(self.index));
        Some(job)
    }

    fn is_queue_empty(&self) -> bool {
        self.world.borrow().model.queues[self.index].is_empty()
    }

    fn steal(&mut self) -> usize {
        self.world.borrow_mut().model.steal(self.index)
    }

    fn set_backlog(&mut self, backlog: bool) {
        self.world.borrow_mut().model.set_backlog(self.index, backlog);
    }

    fn others(&self) -> Rest {
        self.world.borrow().model.others(self.index)
    }

    fn busy(&mut self) {
        self.world.borrow_mut().model.rest[self.index] = Rest::Busy;
    }

    fn try_idle(&mut self) -> bool {
        self.world.borrow_mut().model.try_rest(self.index, Rest::Idle)
    }

    fn try_slack(&mut self) -> bool {
        self.world.borrow_mut().model.try_rest(self.index, Rest::Slack)
    }

    fn changes(&self) -> u64 {
        self.world.borrow().changes.count()
    }

    fn phase(&self) -> Phase {
        self.world.borrow().requests.phase()
    }

    fn is_finished(&self) -> bool {
        self.world.borrow().requests.is_over()
    }
}
