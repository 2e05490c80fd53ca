//! What workers share, as a specification: plain queues and flags, changed by one thread, one operation after the other.

use std::collections::VecDeque;

/// How many are moved from one queue to another at a time.
const BATCH_MAX: usize = 32;

/// Injector, queues, idle workers, backlogs; and whom to wake.
#[derive(Debug)]
pub(crate) struct Model<W> {
    pub(crate) injector: VecDeque<W>,
    pub(crate) queues: Vec<VecDeque<W>>,
    pub(crate) idle: Vec<bool>,
    pub(crate) backlog: Vec<bool>,
    /// Workers to be woken, in the order in which that was said.
    pub(crate) wakes: Vec<usize>,
}

impl<W> Model<W> {
    pub(crate) fn new(workers: usize) -> Model<W> {
        Model {
            injector: VecDeque::new(),
            queues: (0..workers).map(|_| VecDeque::new()).collect(),
            idle: vec![false; workers],
            backlog: vec![false; workers],
            wakes: Vec::new(),
        }
    }

    pub(crate) fn inject(&mut self, work: W) {
        self.injector.push_back(work);
        self.wake_one();
    }

    pub(crate) fn take_injected(&mut self) -> Vec<W> {
        let count = self.injector.len().div_ceil(self.queues.len());
        self.injector.drain(..count).collect()
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

    pub(crate) fn others_are_idle(&self, index: usize) -> bool {
        self.idle.iter().enumerate().any(|(other, idle)| other != index && *idle)
    }

    pub(crate) fn try_idle(&mut self, index: usize) -> bool {
        self.mark_idle(index);
        self.stay_idle(index)
    }

    /// The first half of that: from now on the worker may be woken.
    pub(crate) fn mark_idle(&mut self, index: usize) {
        self.idle[index] = true;
    }

    /// The second half: it looks once more.
    pub(crate) fn stay_idle(&mut self, index: usize) -> bool {
        let others = self.backlog.iter().enumerate().any(|(other, backlog)| other != index && *backlog);
        let stays = self.injector.is_empty() && !others;
        if !stays {
            self.idle[index] = false;
        }
        stays
    }

    fn wake_one(&mut self) {
        if let Some(index) = self.idle.iter().position(|idle| *idle) {
            self.idle[index] = false;
            self.wakes.push(index);
        }
    }
}
