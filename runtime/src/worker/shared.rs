//! What workers share, from the side of one of them.

use std::sync::Arc;

use crate::invoke::work::Work;
use crate::invoke::{Dispatcher, WorkDeque};
use crate::schedule::{Demand, Phase, Rest, Shared, Work as _};

/// A worker's place among the dispatcher's workers, and its queue.
pub(super) struct Place {
    dispatcher: Arc<Dispatcher>,
    index: usize,
    deque: WorkDeque,
}

impl Place {
    /// The place of the dispatcher's worker with that index, which owns `deque`.
    #[must_use]
    pub(super) const fn new(dispatcher: Arc<Dispatcher>, index: usize, deque: WorkDeque) -> Place {
        Place { dispatcher, index, deque }
    }
}

impl Shared for Place {
    type Work = Work;

    fn workers(&self) -> usize {
        self.dispatcher.exchange().workers()
    }

    fn has_injected(&self) -> bool {
        self.dispatcher.exchange().has_injected()
    }

    fn take_injected(&mut self) -> Vec<Work> {
        self.dispatcher.exchange().take_injected(|work| work.demand() == Demand::Asked)
    }

    fn push(&mut self, work: Work) {
        self.deque.push(work);
    }

    fn pop(&mut self) -> Option<Work> {
        self.deque.pop()
    }

    fn is_queue_empty(&self) -> bool {
        self.deque.is_empty()
    }

    fn steal(&mut self) -> usize {
        self.dispatcher.exchange().steal(self.index, &self.deque);
        self.deque.len()
    }

    fn set_backlog(&mut self, backlog: bool) {
        let woken = self.dispatcher.exchange().set_backlog(self.index, backlog);
        self.dispatcher.interrupt(woken);
    }

    fn others(&self) -> Rest {
        self.dispatcher.exchange().others(self.index)
    }

    fn busy(&mut self) {
        self.dispatcher.exchange().busy(self.index);
    }

    fn try_idle(&mut self) -> bool {
        self.dispatcher.exchange().try_idle(self.index)
    }

    fn try_slack(&mut self) -> bool {
        self.dispatcher.exchange().try_slack(self.index)
    }

    fn changes(&self) -> u64 {
        self.dispatcher.changes().count()
    }

    fn phase(&self) -> Phase {
        self.dispatcher.phase()
    }

    fn is_finished(&self) -> bool {
        self.dispatcher.is_over()
    }
}
