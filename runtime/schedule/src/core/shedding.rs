//! What is not begun any more, since it cannot be expected to meet its deadline.

use std::time::{Duration, Instant};

use super::Core;
use crate::group::Group;
use crate::policy::Policy;
use crate::task::Task;

impl Core {
    /// Whether an arrival has no chance to meet its deadline: all workers together would take too long for what is older of its function.
    pub(super) fn is_hopeless(&self, task: &Task, now: Instant) -> bool {
        let groups = self.of_function(task.function);
        let Some(group) = groups.first().filter(|_| groups.iter().any(|group| group.waiting() > 0)) else { return false };
        let backlog: Duration = groups.iter().map(Group::backlog).sum();
        let at_best = backlog / self.workers + self.needed(task, group);
        task.deadline.saturating_duration_since(now) < at_best
    }

    /// Whether a task whose turn has come cannot be expected to meet its deadline, beside what else is to be run.
    pub(super) fn is_doomed(&self, task: &Task, now: Instant) -> bool {
        let Some(group) = self.of_function(task.function).first() else { return false };
        let needed = self.needed(task, group);
        let left = task.deadline.saturating_duration_since(now);
        // Other functions have their turns meanwhile, for as long as they have something to run.
        if left >= needed * u32::try_from(self.active + 1).unwrap_or(u32::MAX) {
            return false;
        }
        let others = self.groups.chunks(self.groups_each).zip(0..).filter(|(_, index)| *index != task.function.0);
        let beside: Duration = others.map(|(other, _)| other.iter().map(Group::backlog).sum::<Duration>().min(needed)).sum();
        left < needed + beside
    }

    /// The time without which a task is not begun: what it is expected to take, and as much again in case it takes longer, but so little that a task which has not waited
    /// always is. Nothing where nothing is known, or under a policy that does not care.
    pub(super) fn needed(&self, task: &Task, group: &Group) -> Duration {
        if self.policy != Policy::RoundRobin || group.expected().is_zero() {
            return Duration::ZERO;
        }
        let whole = task.deadline.saturating_duration_since(task.arrived);
        let expected = group.expected().min(whole / 2);
        expected + expected.max(2 * self.quantum).min((whole - expected) / 4)
    }
}
