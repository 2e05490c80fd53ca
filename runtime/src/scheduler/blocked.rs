//! Started sandboxes that wait, in the order in which their time comes.

use std::collections::BTreeMap;
use std::time::Instant;

use super::core::{Task, TaskId};

/// The blocked tasks of one worker.
#[derive(Debug, Default)]
pub struct Blocked {
    tasks: BTreeMap<(Instant, TaskId), Task>,
    /// When the time of each comes, by its number.
    times: Vec<Option<Instant>>,
}

impl Blocked {
    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.tasks.len()
    }

    /// When the next one's time comes.
    #[must_use]
    pub fn next(&self) -> Option<Instant> {
        self.tasks.first_key_value().map(|((at, _), _)| *at)
    }

    /// One more, until that time.
    pub fn add(&mut self, at: Instant, task: Task) {
        let index = task.id.0 as usize;
        if self.times.len() <= index {
            self.times.resize(index + 1, None);
        }
        self.times[index] = Some(at);
        self.tasks.insert((at, task.id), task);
    }

    /// Takes out the first one.
    pub fn pop(&mut self) -> Option<Task> {
        let ((_, id), task) = self.tasks.pop_first()?;
        self.times[id.0 as usize] = None;
        Some(task)
    }

    /// Takes out that one, if it is among them.
    pub fn remove(&mut self, id: TaskId) -> Option<Task> {
        let at = self.times.get_mut(id.0 as usize)?.take()?;
        self.tasks.remove(&(at, id))
    }
}
