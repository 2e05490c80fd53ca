//! Started sandboxes that wait, in the order in which their time comes.

use std::collections::BTreeSet;
use std::time::Instant;

use crate::task::{Task, TaskId};

/// The blocked tasks of one worker.
#[derive(Debug, Default)]
pub(crate) struct Blocked {
    order: BTreeSet<(Instant, TaskId)>,
    /// When the time of each comes, and the task, by its number.
    tasks: Vec<Option<(Instant, Task)>>,
    /// How many of them are speculative.
    speculative: usize,
}

impl Blocked {
    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.order.len()
    }

    /// How many of these are asked for.
    pub(crate) fn asked(&self) -> usize {
        self.order.len() - self.speculative
    }

    /// When the next one's time comes.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.order.first().map(|(at, _)| *at)
    }

    /// One more, until that time.
    pub(crate) fn add(&mut self, at: Instant, task: Task) {
        let index = task.id.0 as usize;
        if self.tasks.len() <= index {
            self.tasks.resize(index + 1, None);
        }
        self.order.insert((at, task.id));
        self.speculative += usize::from(task.is_speculative);
        self.tasks[index] = Some((at, task));
    }

    /// Takes out the first one.
    pub(crate) fn pop(&mut self) -> Option<Task> {
        let (_, id) = self.order.pop_first()?;
        let (_, task) = self.tasks[id.0 as usize].take()?;
        self.speculative -= usize::from(task.is_speculative);
        Some(task)
    }

    /// Takes out that one, if it is among them.
    pub(crate) fn remove(&mut self, id: TaskId) -> Option<Task> {
        let (at, task) = self.tasks.get_mut(id.0 as usize)?.take()?;
        self.order.remove(&(at, id));
        self.speculative -= usize::from(task.is_speculative);
        Some(task)
    }

    /// That one is asked for from now on, if it is among them. The task.
    pub(crate) fn ask(&mut self, id: TaskId) -> Option<Task> {
        let (_, task) = self.tasks.get_mut(id.0 as usize)?.as_mut()?;
        self.speculative -= usize::from(std::mem::take(&mut task.is_speculative));
        Some(*task)
    }

    /// Whether that one is among them.
    #[cfg(test)]
    pub(crate) fn contains(&self, id: TaskId) -> bool {
        self.tasks.get(id.0 as usize).is_some_and(Option::is_some)
    }
}
