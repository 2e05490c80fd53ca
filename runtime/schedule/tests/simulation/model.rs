//! What workers share, as a specification: plain queues and flags, changed by one thread, one operation after the other.

use std::collections::VecDeque;

use crate::Rest;

/// How many are moved from one queue to another at a time.
const BATCH_MAX: usize = 32;

/// Injector, queues, idle workers, backlogs; and whom to wake.
#[derive(Debug)]
pub(crate) struct Model<W> {
    pub(crate) injector: VecDeque<W>,
    pub(crate) queues: Vec<VecDeque<W>>,
    pub(crate) rest: Vec<Rest>,
    pub(crate) backlog: Vec<bool>,
    /// Workers to be woken, in the order in which that was said.
    pub(crate) wakes: Vec<usize>,
}

impl<W> Model<W> {
    pub(crate) fn new(workers: usize) -> Model<W> {
        Model {
            injector: VecDeque::new(),
            queues: (0..workers).map(|_| VecDeque::new()).collect(),
            rest: vec![Rest::Busy; workers],
            backlog: vec![false; workers],
            wakes: Vec::new(),
        }
    }

    pub(crate) fn inject(&mut self, work: W) {
        self.injector.push_back(work);
        self.wake_one();
    }

    pub(crate) fn take_injected(&mut self, counts: impl Fn(&W) -> bool) -> Vec<W> {
        let share = self.injector.len().div_ceil(self.queues.len());
        let (mut taken, mut counted) = (Vec::new(), 0);
        while counted < share
            && let Some(work) = self.injector.pop_front()
        {
            counted += usize::from(counts(&work));
            taken.push(work);
        }
        taken
    }

    /// Moves half of the first queue with a backlog, at least one of it. What was moved.
    pub(crate) fn steal(&mut self, index: usize) -> usize {
        let workers = self.queues.len();
        for other in (index + 1..workers).chain(0..index).filter(|other| *other != index) {
            if !self.backlog[other] {
                continue;
            }
            let count = self.queues[other].len().div_ceil(2).min(BATCH_MAX);
            if count == 0 {
                self.backlog[other] = false;
                continue;
            }
            let moved: Vec<W> = self.queues[other].drain(..count).collect();
            self.queues[index].extend(moved);
            return count;
        }
        0
    }

    pub(crate) fn set_backlog(&mut self, index: usize, backlog: bool) {
        self.backlog[index] = backlog;
        if backlog && self.queues.len() > 1 {
            self.wake_one();
        }
    }

    pub(crate) fn others(&self, index: usize) -> Rest {
        let others = self.rest.iter().enumerate().filter(|(other, _)| *other != index);
        others.map(|(_, rest)| *rest).max().unwrap_or_default()
    }

    pub(crate) fn try_rest(&mut self, index: usize, rest: Rest) -> bool {
        self.mark(index, rest);
        self.stays(index)
    }

    /// The first half of that: from now on the worker may be woken.
    pub(crate) fn mark(&mut self, index: usize, rest: Rest) {
        self.rest[index] = rest;
    }

    /// The second half: it looks once more.
    pub(crate) fn stays(&mut self, index: usize) -> bool {
        let others = self.backlog.iter().enumerate().any(|(other, backlog)| other != index && *backlog);
        let stays = self.injector.is_empty() && !others;
        if !stays {
            self.rest[index] = Rest::Busy;
        }
        stays
    }

    fn wake_one(&mut self) {
        let most = [Rest::Idle, Rest::Slack].into_iter().find_map(|rest| self.rest.iter().position(|other| *other == rest));
        if let Some(index) = most {
            self.rest[index] = Rest::Busy;
            self.wakes.push(index);
        }
    }
}
