//! What goes to another worker.

use std::time::Instant;

use super::Core;
use crate::group::Group;
use crate::policy::Policy;
use crate::run_queue::RunQueue;
use crate::task::TaskId;

impl Core {
    /// One that another worker may have: the one that would wait here longest. Of the started at most one a quantum.
    pub(super) fn give(&mut self, now: Instant) -> Option<TaskId> {
        let may_give_started = self.gave_started.is_none_or(|gave| now.saturating_duration_since(gave) >= self.quantum);
        let started = self.waiting == self.started;
        if started && !may_give_started {
            return None;
        }
        let task = if self.policy == Policy::RoundRobin {
            let count = |group: &Group| if started { group.started() } else { group.waiting() - group.started() };
            let last = self.give_from.filter(|index| self.groups.get(*index).is_some_and(|group| count(group) > 0));
            let most = || (0..).zip(&self.groups).max_by_key(|(_, group)| count(group)).map(|(index, _)| index);
            let index = last.or_else(most)?;
            self.give_from = Some(index);
            self.groups.get_mut(index)?.take_last(started)?
        } else {
            let count = |queue: &RunQueue| if started { queue.started() } else { queue.waiting() - queue.started() };
            self.tenants.iter_mut().max_by_key(|tenant| count(&tenant.queue))?.queue.take_last(started)?
        };
        if task.started {
            self.gave_started = Some(now);
        }
        self.removed(&task);
        self.gone(&task);
        Some(task.id)
    }
}
