//! One step: takes an event in, carries frames on, and collects actions.

use std::sync::Arc;

use serde_json::Value;

use super::event::{Action, Event, Outcome};
use super::execution::{Execution, Status};
use super::failure::{Failure, name};
use super::frame::{Frame, Phase};
use super::guide::Guide;
use super::history::{Details, HistoryEvent, HistoryKind};
use super::ids::{EXECUTION_SLOT, FrameId, TimerId, number};
use crate::definition::{Definition, MachineIndex, State};

/// Where a step gets random numbers from.
pub type Random<'a> = dyn FnMut() -> u64 + 'a;

/// A step that is being carried out.
pub(super) struct Run<'a> {
    pub(super) definition: &'a Definition,
    pub(super) execution: &'a mut Execution,
    pub(super) now_ms: i64,
    pub(super) random: &'a mut Random<'a>,
    pub(super) actions: &'a mut Vec<Action>,
    /// What is asked which way Choices go.
    pub(super) guide: Option<&'a mut dyn Guide>,
}

impl<'a> Run<'a> {
    pub(super) fn event(&mut self, event: Event) {
        match event {
            Event::Started { input } => self.start(input),
            Event::Redriven => self.redrive(),
            Event::Restarted { state, input } => self.restart(&state, input),
            Event::Paused if matches!(self.execution.status, Status::New | Status::Running) => self.execution.paused = true,
            Event::Resumed => self.unpause(),
            _ if self.execution.status != Status::Running => {}
            Event::Paused => {}
            Event::Continue => {}
            Event::TaskStarted { task } => self.task_started(task),
            Event::TaskSubmitted { task, output } => self.task_submitted(task, output),
            Event::TaskSucceeded { task, output } => self.task_succeeded(task, output),
            Event::TaskFailed { task, error, cause } => {
                self.task_failed(task, &Failure::given(error.as_deref(), cause.as_deref()))
            }
            Event::Heartbeat { task } => self.heartbeat(task),
            Event::TimerFired { timer } if self.execution.paused => self.hold(timer),
            Event::TimerFired { timer } => self.timer_fired(timer),
            Event::CallbackSucceeded { token, output } => self.callback_succeeded(&token, output),
            Event::CallbackFailed { token, error, cause } => {
                self.callback_failed(&token, &Failure::given(error.as_deref(), cause.as_deref()))
            }
            Event::CallbackHeartbeat { token } => self.callback_heartbeat(&token),
            Event::Stopped { error, cause } => self.stop(Failure::given(error.as_deref(), cause.as_deref())),
        }
    }

    /// Carries ready frames on, each by one transition in turn, until none is ready or the step has used its transitions.
    pub(super) fn drain(&mut self) {
        if self.execution.paused {
            return;
        }
        let mut left = self.execution.limits.transitions_per_step.max(1);
        while let Some(id) = self.execution.ready.pop_front() {
            let Some(slot) = self.execution.frames.find(id) else { continue };
            if left == 0 {
                self.execution.ready.push_front(id);
                self.actions.push(Action::Yield);
                return;
            }
            left -= 1;
            if self.execution.recording && self.execution.events >= self.execution.limits.history_events {
                let cause = format!(
                    "The execution reached the maximum number of history events ({}).",
                    self.execution.limits.history_events
                );
                self.end(Status::Failed, Failure { error: Some(name::RUNTIME.into()), cause: Some(cause.into()) });
                return;
            }
            self.enter(slot);
        }
    }

    fn start(&mut self, input: Value) {
        if self.execution.status != Status::New {
            return;
        }
        self.execution.status = Status::Running;
        self.execution.started_ms = self.now_ms;
        let input = Arc::new(input);
        self.note(0, HistoryKind::ExecutionStarted, |run| Details {
            input: Some(Arc::clone(&input)),
            role: Some(Arc::clone(&run.execution.about.role)),
            ..Details::default()
        });
        if !self.fits(&input) {
            return self.end(
                Status::Failed,
                Failure::given(Some(name::DATA_LIMIT), Some("The input of the execution is larger than the limit.")),
            );
        }
        // Not before: what is too deep could not be read again.
        self.execution.input = Arc::clone(&input);
        self.set_deadline();
        self.spawn(None, 0, Definition::top(), input, None, 0);
    }

    fn set_deadline(&mut self) {
        if let Some(timeout_s) = self.definition.timeout_s {
            self.execution.serial = self.execution.serial.wrapping_add(1);
            let timer = TimerId(number(self.execution.serial, EXECUTION_SLOT));
            self.execution.deadline = Some(timer);
            self.actions.push(Action::SetTimer { timer, at_ms: after(self.now_ms, timeout_s) });
        }
    }

    fn redrive(&mut self) {
        if !matches!(self.execution.status, Status::Failed | Status::TimedOut | Status::Aborted) {
            return;
        }
        let Some(halted) = self.execution.halted.take() else { return };
        self.resume(Details::default());
        let last_event = self.execution.events;
        self.execution.stand(|id| Frame { id, phase: Phase::Ready, retries: Vec::new(), token: None, last_event, ..*halted });
    }

    /// An execution that has ended goes on.
    pub(super) fn resume(&mut self, details: Details) {
        self.execution.status = Status::Running;
        self.execution.redrives = self.execution.redrives.saturating_add(1);
        let redrives = Some(self.execution.redrives);
        self.note(0, HistoryKind::ExecutionRedriven, |_| Details { redrives, ..details });
        self.set_deadline();
    }

    fn stop(&mut self, failure: Failure) {
        self.end(Status::Aborted, failure);
    }

    /// A new frame at the start of a machine. False if there are too many, or the machine is of another definition.
    pub(super) fn spawn(
        &mut self,
        parent: Option<u32>,
        number: u32,
        machine: MachineIndex,
        input: Arc<Value>,
        item: Option<Arc<Value>>,
        last_event: u64,
    ) -> bool {
        let Some(start) = self.definition.machine(machine).map(|machine| machine.start) else { return false };
        if self.execution.frames.len() >= self.execution.limits.frames.min(EXECUTION_SLOT as usize) {
            return false;
        }
        let slot = self.execution.frames.next_slot();
        let id = FrameId(self.execution.number(slot));
        let frame = Frame::new(id, machine, start, input, self.now_ms, last_event);
        self.execution.frames.insert(Frame { parent, number, item, ..frame });
        self.execution.ready.push_back(id);
        true
    }

    /// The state in which a frame stands.
    pub(super) fn state(&self, slot: u32) -> Option<&'a State> {
        self.definition.state(self.execution.frames.get(slot)?.state)
    }

    /// Ends the execution with an error, by its time, or because it was stopped.
    pub(super) fn end(&mut self, status: Status, failure: Failure) {
        let last = self.top().map_or(0, |frame| frame.last_event);
        if status != Status::Failed {
            self.cancel_all();
        }
        self.halt();
        self.execution.status = status;
        let details = |run: &Self| {
            let _ = run;
            Details { error: failure.error.clone(), cause: failure.cause.clone(), ..Details::default() }
        };
        match status {
            Status::TimedOut => self.note(last, HistoryKind::ExecutionTimedOut, details),
            Status::Aborted => self.note(0, HistoryKind::ExecutionAborted, details),
            _ => self.note(last, HistoryKind::ExecutionFailed, details),
        };
        let outcome = match status {
            Status::TimedOut => Outcome::TimedOut,
            Status::Aborted => Outcome::Aborted(failure),
            _ => Outcome::Failed(failure),
        };
        self.finish(outcome);
    }

    /// Ends the execution with its output.
    pub(super) fn succeed(&mut self, output: Arc<Value>, last: u64) {
        self.keep_variables();
        self.execution.status = Status::Succeeded;
        self.note(last, HistoryKind::ExecutionSucceeded, |_| Details { output: Some(Arc::clone(&output)), ..Details::default() });
        self.finish(Outcome::Succeeded(output));
    }

    fn finish(&mut self, outcome: Outcome) {
        self.cancel_all();
        self.execution.frames.clear();
        self.execution.ready.clear();
        self.execution.paused = false;
        self.execution.held.clear();
        if let Some(timer) = self.execution.deadline.take() {
            self.actions.push(Action::CancelTimer { timer });
        }
        self.actions.push(Action::Ended(outcome));
    }

    fn top(&self) -> Option<&Frame> {
        // The whole has the first slot: it is there before all others, and until the end.
        self.execution.frames.get(0)
    }

    /// Keeps where the whole stands, for a redrive.
    fn halt(&mut self) {
        let halted = self.top().map(|frame| Box::new(Frame { phase: Phase::Ready, ..frame.clone() }));
        self.execution.halted = halted;
    }

    /// Keeps the variables of the whole, if there are any, for a restart: its input is given anew.
    fn keep_variables(&mut self) {
        let Some(top) = self.execution.frames.get_mut(0).filter(|top| !top.variables.is_empty()) else { return };
        let variables = std::mem::take(&mut top.variables);
        let kept = Frame::new(top.id, top.machine, top.state, Arc::default(), top.entered_ms, top.last_event);
        let kept = Frame { variables, variable_bytes: top.variable_bytes, ..kept };
        self.execution.halted = Some(Box::new(kept));
    }

    fn cancel_all(&mut self) {
        for slot in self.execution.frames.below(None) {
            self.cancel(slot);
        }
    }

    /// Gives up what a frame waits for.
    pub(super) fn cancel(&mut self, slot: u32) {
        let Some(frame) = self.execution.frames.get_mut(slot) else { return };
        match std::mem::replace(&mut frame.phase, Phase::Ready) {
            Phase::Waiting { timer } | Phase::Backoff { timer } => self.actions.push(Action::CancelTimer { timer }),
            Phase::Task(pending) => {
                self.actions.push(Action::CancelTask { task: pending.task });
                let timers = pending.timeout.into_iter().chain(pending.heartbeat);
                self.actions.extend(timers.map(|timer| Action::CancelTimer { timer }));
            }
            phase @ (Phase::Ready | Phase::Retry | Phase::Parallel(_) | Phase::Map(_) | Phase::Ended(_)) => frame.phase = phase,
        }
    }

    /// An event of the history after `previous`. Counts it in any case, and gives its number.
    pub(super) fn note(&mut self, previous: u64, kind: HistoryKind, details: impl FnOnce(&Self) -> Details) -> u64 {
        self.execution.events = self.execution.events.saturating_add(1);
        let id = self.execution.events;
        if self.execution.recording {
            let details = details(self);
            self.actions.push(Action::History(Box::new(HistoryEvent { id, previous, timestamp_ms: self.now_ms, kind, details })));
        }
        id
    }

    /// An event of the history in a frame, after its last one.
    pub(super) fn note_in(&mut self, slot: u32, kind: HistoryKind, details: impl FnOnce(&Self, &Frame) -> Details) -> u64 {
        let previous = self.execution.frames.get(slot).map_or(0, |frame| frame.last_event);
        let id = self.note(previous, kind, |run| {
            run.execution.frames.get(slot).map_or_else(Details::default, |frame| details(run, frame))
        });
        if let Some(frame) = self.execution.frames.get_mut(slot) {
            frame.last_event = id;
        }
        id
    }
}

/// A time so many seconds later.
pub(super) fn after(now_ms: i64, seconds: u64) -> i64 {
    now_ms.saturating_add(i64::try_from(seconds.saturating_mul(1_000)).unwrap_or(i64::MAX))
}
