//! Timers: signs of life of tasks, and what happens when a timer runs out.

use super::event::Action;
use super::execution::Status;
use super::failure::{Failure, Fault, name};
use super::frame::Phase;
use super::history::{Details, HistoryKind};
use super::ids::{EXECUTION_SLOT, TaskId, TimerId, slot_of};
use super::run::Run;

impl Run<'_> {
    pub(super) fn heartbeat(&mut self, task: TaskId) {
        if let Some(slot) = self.waits_for(task) {
            self.beat(slot);
        }
    }

    pub(super) fn callback_heartbeat(&mut self, token: &str) {
        if let Some(slot) = self.execution.slot_of_token(token) {
            self.beat(slot);
        }
    }

    /// Sets the timer for the next sign of life in place of the old one.
    fn beat(&mut self, slot: u32) {
        let Some(pending) = self.pending(slot) else { return };
        let (Some(old), Some(seconds)) = (pending.heartbeat, pending.heartbeat_s) else { return };
        self.actions.push(Action::CancelTimer { timer: old });
        let timer = self.timer(slot, seconds);
        if let Some(pending) = self.pending(slot) {
            pending.heartbeat = Some(timer);
        }
    }

    /// A timer has run out: of the whole, of a Wait, of a retrier, or of a task.
    pub(super) fn timer_fired(&mut self, timer: TimerId) {
        let slot = slot_of(timer.0);
        if slot == EXECUTION_SLOT {
            if self.execution.deadline == Some(timer) {
                self.execution.deadline = None;
                self.end(Status::TimedOut, Failure::named(name::TIMEOUT));
            }
            return;
        }
        let Some(state) = self.state(slot) else { return };
        let Some(frame) = self.execution.frames.get_mut(slot) else { return };
        match &mut frame.phase {
            Phase::Waiting { timer: own } if *own == timer => {
                frame.phase = Phase::Ready;
                self.waited(slot, state);
            }
            Phase::Backoff { timer: own } if *own == timer => self.again(slot),
            Phase::Task(pending) if pending.timeout == Some(timer) => {
                pending.timeout = None;
                self.timed_out(slot, false);
            }
            Phase::Task(pending) if pending.heartbeat == Some(timer) => {
                pending.heartbeat = None;
                self.timed_out(slot, true);
            }
            _ => {}
        }
    }

    /// A timer has run out of an execution that is paused: it fires later, if it is still wanted then.
    pub(super) fn hold(&mut self, timer: TimerId) {
        let slot = slot_of(timer.0);
        let is_wanted = if slot == EXECUTION_SLOT {
            self.execution.deadline == Some(timer)
        } else {
            self.execution.frames.get(slot).is_some_and(|frame| match &frame.phase {
                Phase::Waiting { timer: own } | Phase::Backoff { timer: own } => *own == timer,
                Phase::Task(pending) => pending.timeout == Some(timer) || pending.heartbeat == Some(timer),
                _ => false,
            })
        };
        if is_wanted && !self.execution.held.contains(&timer) {
            self.execution.held.push(timer);
        }
    }

    /// [`Event::Resumed`](super::Event::Resumed).
    pub(super) fn unpause(&mut self) {
        self.execution.paused = false;
        for timer in std::mem::take(&mut self.execution.held) {
            // The first one may have ended the execution.
            if self.execution.status == Status::Running {
                self.timer_fired(timer);
            }
        }
    }

    fn timed_out(&mut self, slot: u32, missed: bool) {
        let Some(pending) = self.end_task(slot) else { return };
        self.actions.push(Action::CancelTask { task: pending.task });
        let failure = Failure::named(name::TIMEOUT);
        let details = Details { error: failure.error.clone(), ..Details::default() };
        self.note_task(slot, HistoryKind::LambdaFunctionTimedOut, HistoryKind::TaskTimedOut, details);
        self.fail(slot, Fault { missed, ..Fault::plain(failure) });
    }
}
