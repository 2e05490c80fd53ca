//! Invocations on their way through the scheduler, and what workers share: the server's own exchange, driven by one thread.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Wake;

use crossbeam_deque::Worker as Deque;
use sledge_schedule::gate::Entrant;
use sledge_schedule::{Exchange, Phase, Rest, Shared, Task, TaskId, Work};

/// An invocation's place, and which of those that had it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) slot: u32,
    pub(super) generation: u32,
}

/// What the scheduler is given of an invocation.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) key: Key,
    pub(super) task: Task,
    /// Whether its gate has let it in.
    pub(super) runs: bool,
}

impl Work for Job {
    fn task(&self, id: TaskId) -> Task {
        Task { id, ..self.task }
    }
}

impl Entrant for Job {
    fn let_in(&mut self) {
        self.runs = true;
    }

    fn is_gone(&self) -> bool {
        false
    }
}

/// The workers that are to be woken, as bits.
pub(super) type Woken = Arc<AtomicU64>;

/// How the exchange wakes one.
pub(super) struct Bell {
    pub(super) woken: Woken,
    pub(super) worker: usize,
}

impl Wake for Bell {
    fn wake(self: Arc<Bell>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Bell>) {
        // There is one thread.
        self.woken.fetch_or(1 << self.worker, Ordering::Relaxed);
    }
}

/// A worker's side of what all share.
pub(super) struct Side {
    pub(super) exchange: Rc<Exchange<Job>>,
    pub(super) index: usize,
    pub(super) deque: Deque<Job>,
    /// Whether it helps others, and lets them help.
    pub(super) steals: bool,
}

impl Shared for Side {
    type Work = Job;

    fn workers(&self) -> usize {
        self.exchange.workers()
    }

    fn has_injected(&self) -> bool {
        self.exchange.has_injected()
    }

    fn take_injected(&mut self) -> Vec<Job> {
        self.exchange.take_injected(|_| true)
    }

    fn push(&mut self, job: Job) {
        self.deque.push(job);
    }

    fn pop(&mut self) -> Option<Job> {
        self.deque.pop()
    }

    fn is_queue_empty(&self) -> bool {
        self.deque.is_empty()
    }

    fn steal(&mut self) -> usize {
        if self.steals {
            self.exchange.steal(self.index, &self.deque);
        }
        self.deque.len()
    }

    fn set_backlog(&mut self, backlog: bool) {
        self.exchange.set_backlog(self.index, backlog);
    }

    fn others(&self) -> Rest {
        if self.steals { self.exchange.others(self.index) } else { Rest::Busy }
    }

    fn busy(&mut self) {
        self.exchange.busy(self.index);
    }

    fn try_idle(&mut self) -> bool {
        self.exchange.try_idle(self.index)
    }

    fn try_slack(&mut self) -> bool {
        self.exchange.try_slack(self.index)
    }

    fn changes(&self) -> u64 {
        0
    }

    fn phase(&self) -> Phase {
        Phase::Serving
    }

    fn is_finished(&self) -> bool {
        false
    }
}
