//! What waits of one tenant where functions do not matter, by rank.

use std::collections::VecDeque;

use crate::task::Task;

/// Tasks in the order in which they run.
#[derive(Debug, Default)]
pub(crate) struct RunQueue {
    tasks: VecDeque<(u64, Task)>,
    started: usize,
}

impl RunQueue {
    /// How many there are.
    pub(crate) fn waiting(&self) -> usize {
        self.tasks.len()
    }

    /// Those of them that have begun.
    pub(crate) const fn started(&self) -> usize {
        self.started
    }

    /// Adds one; among equals, what has begun stays first.
    pub(crate) fn add(&mut self, rank: u64, task: Task) {
        let is_before = |other: u64| if task.started { other < rank } else { other <= rank };
        let behind_all = self.tasks.back().is_none_or(|(last, _)| is_before(*last));
        let at = if behind_all { self.tasks.len() } else { self.tasks.partition_point(|(other, _)| is_before(*other)) };
        self.tasks.insert(at, (rank, task));
        self.started += usize::from(task.started);
    }

    /// The next one; where no more may begin, of those that have begun.
    pub(crate) fn first(&self, is_full: bool) -> Option<&Task> {
        self.iter().find(|task| !is_full || task.started)
    }

    /// Takes the first that is wanted.
    pub(crate) fn take(&mut self, wanted: impl Fn(&Task) -> bool) -> Option<Task> {
        let at = self.tasks.iter().position(|(_, task)| wanted(task))?;
        self.take_at(at)
    }

    /// Takes the one that would wait longest, of those that have begun or not.
    pub(crate) fn take_last(&mut self, started: bool) -> Option<Task> {
        let at = self.tasks.iter().rposition(|(_, task)| task.started == started)?;
        self.take_at(at)
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Task> {
        self.tasks.iter().map(|(_, task)| task)
    }

    fn take_at(&mut self, at: usize) -> Option<Task> {
        let (_, task) = self.tasks.remove(at)?;
        self.started -= usize::from(task.started);
        Some(task)
    }
}
