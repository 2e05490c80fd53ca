//! What is speculative, beside what is asked for: when it runs, and what becomes of it when it is asked for.

use std::time::{Duration, Instant};

use super::{Action, BLOCKED_MAX, Core, Event, GIVEN_MAX, IO_INTERVAL, STARTED_MAX};
use crate::slack::Slack;
use crate::task::{Rank, Task, TaskId};

impl Core {
    /// Whether there is anything speculative, waiting, blocked or running.
    pub(crate) fn has_speculative(&self) -> bool {
        self.slack.as_ref().is_some_and(|slack| !slack.is_empty())
    }

    /// Those.
    pub(crate) fn speculative(&self) -> Vec<TaskId> {
        self.slack.iter().flat_map(|slack| slack.ids()).collect()
    }

    /// Whether what runs is speculative.
    pub(crate) fn runs_speculative(&self) -> bool {
        self.running.is_some_and(|task| task.is_speculative)
    }

    /// Tasks that wait for their turn and are asked for.
    pub(crate) const fn waiting_asked(&self) -> usize {
        self.waiting
    }

    /// Where a speculative task stands: to be said before it waits for its turn.
    pub(crate) fn announce_rank(&mut self, id: TaskId, rank: Rank) {
        self.slack().rank(id, rank);
    }

    pub(super) fn slack(&mut self) -> &mut Slack {
        self.slack.get_or_insert_default()
    }

    /// Whether a speculative task that has just arrived may run at once: nothing waits at all.
    pub(super) fn may_run_speculative_at_once(&mut self, task: Task) -> bool {
        let free = self.waiting() == 0 && !self.is_full() && self.at_once < IO_INTERVAL;
        if free {
            (self.running, self.running_at_once) = (Some(task), true);
        }
        free
    }

    /// What runs is speculative, and has ended or is suspended.
    pub(super) fn charge_speculative(&mut self, task: &Task, ran: Duration) {
        if std::mem::take(&mut self.running_at_once) {
            self.at_once += ran;
        }
        self.slack().ran(task.tenant, ran);
    }

    /// It is over: the worker's connections come first.
    pub(super) fn speculative_is_over(&mut self, id: TaskId) {
        let slack = self.slack();
        slack.forget(id);
        slack.answered = true;
    }

    /// That one is asked for from now on: it arrives as any other, now or when what it waits for is done.
    pub(super) fn ask(&mut self, id: TaskId, now: Instant) {
        let Some(slack) = self.slack.as_mut().filter(|slack| slack.has(id)) else { return };
        let waiting = slack.take(id);
        slack.forget(id);
        if let Some(task) = waiting {
            return self.note(Event::Arrived(Task { is_speculative: false, ..task }), now);
        }
        // Nothing was noted of its microtasks until now.
        if let (Some(task), Some(classes)) = (self.blocked.ask(id), &mut self.classes) {
            classes.arrived(&task);
        }
    }

    /// That one is not wanted any more: it is ended next.
    pub(super) fn give_up(&mut self, id: TaskId) {
        let Some(slack) = self.slack.as_mut().filter(|slack| slack.has(id)) else { return };
        if slack.take(id).or_else(|| self.blocked.remove(id)).is_some() {
            slack.forget(id);
            slack.unwanted.push_back(id);
        }
    }

    /// The next one that is to be ended since it is not wanted, or since its deadline has passed.
    pub(super) fn next_unwanted(&mut self) -> Option<TaskId> {
        let slack = self.slack.as_mut()?;
        let id = slack.unwanted.pop_front();
        slack.ends |= id.is_some();
        id
    }

    pub(super) fn next_late_speculative(&mut self, now: Instant) -> Option<TaskId> {
        let slack = self.slack.as_mut()?;
        let task = slack.take_late(now)?;
        slack.forget(task.id);
        slack.ends = true;
        Some(task.id)
    }

    /// Nothing is to be run now that is asked for: the next one that is not. What connections do before it runs is charged to no function.
    pub(super) fn next_speculative(&mut self, now: Instant) -> Action {
        let is_time_up = self.turn_began.is_some_and(|began| now.saturating_duration_since(began) >= IO_INTERVAL);
        let started = self.started;
        // Sandboxes of both kinds count: those that are asked for may begin nevertheless.
        let are_blocked = self.blocked.count() >= BLOCKED_MAX;
        let Some(slack) = self.slack.as_mut().filter(|slack| slack.waiting() > 0) else { return Action::Wait };
        // What has ended may have brought something that is asked for.
        if self.answered || slack.answered || is_time_up {
            return Action::Io;
        }
        if !slack.may_run {
            return Action::Slacken;
        }
        let is_full = are_blocked || started + slack.started() >= STARTED_MAX;
        match slack.next(is_full) {
            Some(task) => {
                self.running = Some(task);
                Action::Run(task.id)
            }
            None => Action::Wait,
        }
    }

    /// Another worker has nothing to do at all: it gets some of this, too. One task stays here.
    pub(super) fn wanted_speculative(&mut self) {
        let others = self.waiting;
        let Some(slack) = &mut self.slack else { return };
        let not_begun = slack.waiting() - slack.started();
        slack.to_give = not_begun.div_ceil(2).clamp(1, GIVEN_MAX).min((slack.waiting() + others).saturating_sub(1));
    }

    /// One that another worker may have: the last one. Of the started at most one a quantum.
    pub(super) fn give_speculative(&mut self, now: Instant) -> Option<TaskId> {
        let may_give_started = self.gave_started.is_none_or(|gave| now.saturating_duration_since(gave) >= self.quantum);
        let slack = self.slack.as_mut().filter(|slack| slack.to_give > 0)?;
        slack.to_give -= 1;
        let given = slack.take_last(false).or_else(|| if may_give_started { slack.take_last(true) } else { None });
        let Some(task) = given else {
            slack.to_give = 0;
            return None;
        };
        slack.forget(task.id);
        if task.started {
            self.gave_started = Some(now);
        }
        Some(task.id)
    }
}
