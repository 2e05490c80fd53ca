//! Started sandboxes that wait, in the order in which their time comes.

use std::collections::BTreeSet;
use std::time::Instant;

use super::core::{Task, TaskId};

/// The blocked tasks of one worker.
#[derive(Debug, Default)]
pub struct Blocked {
    order: BTreeSet<(Instant, TaskId)>,
    /// When the time of each comes, and the task, by its number.
    tasks: Vec<Option<(Instant, Task)>>,
}

impl Blocked {
    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.order.len()
    }

    /// When the next one's time comes.
    #[must_use]
    pub fn next(&self) -> Option<Instant> {
        self.order.first().map(|(at, _)| *at)
    }

    /// One more, until that time.
    pub fn add(&mut self, at: Instant, task: Task) {
        let index = task.id.0 as usize;
        if self.tasks.len() <= index {
            self.tasks.resize(index + 1, None);
        }
        self.order.insert((at, task.id));
        self.tasks[index] = Some((at, task));
    }

    /// Takes out the first one.
    pub fn pop(&mut self) -> Option<Task> {
        let (_, id) = self.order.pop_first()?;
        self.tasks[id.0 as usize].take().map(|(_, task)| task)
    }

    /// Takes out that one, if it is among them.
    pub fn remove(&mut self, id: TaskId) -> Option<Task> {
        let (at, task) = self.tasks.get_mut(id.0 as usize)?.take()?;
        self.order.remove(&(at, id));
        Some(task)
    }

    /// Whether that one is among them.
    #[cfg(test)]
    pub(super) fn contains(&self, id: TaskId) -> bool {
        self.tasks.get(id.0 as usize).is_some_and(Option::is_some)
    }
}
