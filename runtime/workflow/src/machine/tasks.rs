//! Tasks: their start, their end, their deadlines and callbacks.

use std::sync::Arc;

use serde_json::Value;

use super::event::{Action, Purpose, StartTask};
use super::failure::{Failure, Fault};
use super::flow::Exit;
use super::frame::{Pending, Phase};
use super::history::{Details, HistoryKind};
use super::ids::{TaskId, slot_of};
use super::run::{Run, after};
use crate::definition::payload::Number;
use crate::definition::state::Task;
use crate::definition::{Kind, Resource, State, whole};

/// What a task is asked for, and what the history calls it.
pub(super) struct Asked<'s> {
    pub(super) resource: &'s Arc<Resource>,
    pub(super) written: Option<&'s Arc<str>>,
    pub(super) input: Arc<Value>,
    pub(super) timeout_s: Option<u64>,
    pub(super) heartbeat_s: Option<u64>,
    pub(super) purpose: Purpose,
}

impl Run<'_> {
    /// Asks for the work of a Task.
    pub(super) fn start_task(&mut self, slot: u32, state: &State, task: &Task) -> Result<(), Fault> {
        // Without the context object nothing could give the token of an execution that is waited for.
        if task.resource.has_callback() || (state.uses_context && task.resource.takes_callback()) {
            let token = self.new_token(slot);
            if let Some(frame) = self.execution.frames.get_mut(slot) {
                frame.token = Some(token);
            }
        }
        let effective = self.effective_input(slot, state)?;
        let timeout_s = self.seconds(slot, state, &effective, "TimeoutSeconds", task.timeout.as_ref())?;
        let heartbeat_s = self.seconds(slot, state, &effective, "HeartbeatSeconds", task.heartbeat.as_ref())?;
        let input = self.given(slot, state, &effective)?;
        let asked = Asked {
            resource: &task.resource,
            written: Some(&task.written),
            input,
            timeout_s,
            heartbeat_s,
            purpose: Purpose::Work,
        };
        self.ask(slot, state, asked);
        Ok(())
    }

    /// Asks for a piece of work.
    pub(super) fn ask(&mut self, slot: u32, state: &State, asked: Asked<'_>) {
        let Asked { resource, written, input, timeout_s, heartbeat_s, purpose } = asked;
        match purpose {
            Purpose::Work => self.note_scheduled(slot, resource, written, &input, timeout_s, heartbeat_s),
            Purpose::Read | Purpose::Write => self.note_stored_scheduled(slot, resource, purpose, &input),
        }
        let task = TaskId(self.execution.number(slot));
        let position = self.execution.frames.position(slot);
        let deadline_ms = timeout_s.map(|seconds| after(self.now_ms, seconds));
        let timeout = timeout_s.map(|seconds| self.timer(slot, seconds));
        let heartbeat = heartbeat_s.map(|seconds| self.timer(slot, seconds));
        let Some(frame) = self.execution.frames.get_mut(slot) else { return };
        frame.phase = Phase::Task(Pending { task, purpose, timeout, heartbeat, heartbeat_s, started: false, submitted: false });
        self.actions.push(Action::StartTask(StartTask {
            task,
            position,
            state: Arc::clone(&state.name),
            resource: Arc::clone(resource),
            input,
            token: frame.token.clone(),
            deadline_ms,
            heartbeat_s,
            attempt: frame.attempt(),
            purpose,
        }));
    }

    fn note_scheduled(
        &mut self,
        slot: u32,
        resource: &Resource,
        written: Option<&Arc<str>>,
        input: &Arc<Value>,
        timeout_s: Option<u64>,
        heartbeat_s: Option<u64>,
    ) {
        if resource.is_lambda() {
            self.note_in(slot, HistoryKind::LambdaFunctionScheduled, |_, _| Details {
                resource: written.cloned(),
                input: Some(Arc::clone(input)),
                timeout_s,
                ..Details::default()
            });
        } else {
            self.note_in(slot, HistoryKind::TaskScheduled, |run, _| Details {
                // The fourth part of an ARN.
                region: run.execution.about.id.split(':').nth(3).map(Arc::from),
                parameters: Some(Arc::clone(input)),
                timeout_s,
                heartbeat_s,
                ..of(resource)
            });
        }
    }

    /// A token that cannot be guessed, which names its execution and frame.
    fn new_token(&mut self, slot: u32) -> Arc<str> {
        let number = self.execution.number(slot);
        let (high, low) = ((self.random)(), (self.random)());
        format!("{}{number:x}.{high:016x}{low:016x}", self.execution.about.token_prefix).into()
    }

    /// Seconds of `TimeoutSeconds` or `HeartbeatSeconds`.
    fn seconds(
        &mut self,
        slot: u32,
        state: &State,
        effective: &Value,
        field: &str,
        number: Option<&Number>,
    ) -> Result<Option<u64>, Fault> {
        let Some(number) = number else { return Ok(None) };
        let value = self.view(slot, state, effective).number(number)?;
        match whole(&value).filter(|seconds| (1..=crate::definition::limits::SECONDS_MAX).contains(seconds)) {
            Some(seconds) => Ok(Some(seconds)),
            None => Err(match number {
                Number::Query(expression) => super::evaluate::unexpected(expression, "positive integer", &value),
                Number::Path(path) => Fault::runtime(format!(
                    "The {field}Path parameter does not reference a positive integer: {} == {value}",
                    path.as_str()
                )),
                Number::Literal(_) => Fault::runtime(format!("The {field} field is not a positive integer: {value}")),
            }),
        }
    }

    /// The slot of the frame that waits for that task.
    pub(super) fn waits_for(&self, task: TaskId) -> Option<u32> {
        let slot = slot_of(task.0);
        match &self.execution.frames.get(slot)?.phase {
            Phase::Task(pending) if pending.task == task => Some(slot),
            _ => None,
        }
    }

    pub(super) fn pending(&mut self, slot: u32) -> Option<&mut Pending> {
        match &mut self.execution.frames.get_mut(slot)?.phase {
            Phase::Task(pending) => Some(pending),
            _ => None,
        }
    }

    pub(super) fn task_started(&mut self, task: TaskId) {
        let Some(slot) = self.waits_for(task) else { return };
        self.mark_started(slot);
    }

    /// Notes that a task was begun, if that was not noted before.
    fn mark_started(&mut self, slot: u32) {
        let Some(pending) = self.pending(slot) else { return };
        let purpose = pending.purpose;
        if std::mem::replace(&mut pending.started, true) {
            return;
        }
        match purpose {
            Purpose::Work => {
                self.note_task(slot, HistoryKind::LambdaFunctionStarted, HistoryKind::TaskStarted, Details::default());
            }
            Purpose::Read | Purpose::Write => self.note_stored(slot, purpose, HistoryKind::TaskStarted, Details::default()),
        }
    }

    /// An event of a task, by whether it is a function's or a service's.
    pub(super) fn note_task(&mut self, slot: u32, lambda: HistoryKind, service: HistoryKind, details: Details) {
        let Some(Kind::Task(task)) = self.state(slot).map(|state| &state.kind) else { return };
        if task.resource.is_lambda() {
            self.note_in(slot, lambda, |_, _| details);
        } else {
            self.note_in(slot, service, |_, _| Details {
                resource: of(&task.resource).resource,
                resource_type: of(&task.resource).resource_type,
                ..details
            });
        }
    }

    pub(super) fn task_succeeded(&mut self, task: TaskId, output: Value) {
        let Some(slot) = self.waits_for(task) else { return };
        self.mark_started(slot);
        if matches!(self.state(slot).map(|state| &state.kind), Some(Kind::Task(own)) if own.resource.has_callback()) {
            self.mark_submitted(slot, output);
        } else {
            self.ended_well(slot, output);
        }
    }

    pub(super) fn task_submitted(&mut self, task: TaskId, output: Value) {
        let Some(slot) = self.waits_for(task) else { return };
        self.mark_started(slot);
        self.mark_submitted(slot, output);
    }

    /// Notes that a task was taken on, if it is a service's and that was not noted before.
    fn mark_submitted(&mut self, slot: u32, output: Value) {
        let Some(Kind::Task(task)) = self.state(slot).map(|state| &state.kind) else { return };
        let Some(pending) = self.pending(slot) else { return };
        if !std::mem::replace(&mut pending.submitted, true) && !task.resource.is_lambda() {
            let details = Details { output: Some(Arc::new(output)), ..Details::default() };
            self.note_task(slot, HistoryKind::TaskSubmitted, HistoryKind::TaskSubmitted, details);
        }
    }

    pub(super) fn callback_succeeded(&mut self, token: &str, output: Value) {
        let Some(slot) = self.execution.slot_of_token(token) else { return };
        self.mark_started(slot);
        self.ended_well(slot, output);
    }

    /// A task has given its result.
    fn ended_well(&mut self, slot: u32, output: Value) {
        let Some(state) = self.state(slot) else { return };
        let Some(pending) = self.end_task(slot) else { return };
        let output = Arc::new(output);
        let exit = match (pending.purpose, &state.kind) {
            (Purpose::Work, Kind::Task(task)) => self.worked(slot, state, task, output),
            (Purpose::Read, Kind::Map(map)) => match self.items_read(slot, state, map, output) {
                Ok(()) => return,
                Err(fault) => Err(fault),
            },
            (Purpose::Write, Kind::Map(_)) => self.results_written(slot, state, output),
            _ => return,
        };
        match exit {
            Ok(exit) => self.leave(slot, state, exit, state.next),
            Err(fault) => self.fail(slot, fault),
        }
    }

    fn worked(&mut self, slot: u32, state: &State, task: &Task, output: Arc<Value>) -> Result<Exit, Fault> {
        if !self.fits(&output) {
            let what = if task.resource.is_lambda() { &*task.written } else { task.resource.service().0 };
            let fault = Fault { of_task: true, ..Fault::too_large(what) };
            let details =
                Details { error: fault.failure.error.clone(), cause: fault.failure.cause.clone(), ..Details::default() };
            self.note_task(slot, HistoryKind::LambdaFunctionFailed, HistoryKind::TaskFailed, details);
            return Err(fault);
        }
        let details = Details { output: Some(Arc::clone(&output)), ..Details::default() };
        self.note_task(slot, HistoryKind::LambdaFunctionSucceeded, HistoryKind::TaskSucceeded, details);
        self.exit_with(slot, state, output)
    }

    pub(super) fn task_failed(&mut self, task: TaskId, failure: &Failure) {
        if let Some(slot) = self.waits_for(task) {
            self.mark_started(slot);
            self.ended_badly(slot, failure);
        }
    }

    pub(super) fn callback_failed(&mut self, token: &str, failure: &Failure) {
        if let Some(slot) = self.execution.slot_of_token(token) {
            self.mark_started(slot);
            self.ended_badly(slot, failure);
        }
    }

    /// A task has failed.
    fn ended_badly(&mut self, slot: u32, failure: &Failure) {
        let Some(pending) = self.end_task(slot) else { return };
        let details = Details { error: failure.error.clone(), cause: failure.cause.clone(), ..Details::default() };
        let failure = match pending.purpose {
            Purpose::Work => {
                self.note_task(slot, HistoryKind::LambdaFunctionFailed, HistoryKind::TaskFailed, details);
                failure.clone()
            }
            purpose => {
                self.note_stored(slot, purpose, HistoryKind::TaskFailed, details);
                super::stored::failure(purpose, failure)
            }
        };
        self.fail(slot, Fault::plain(failure));
    }

    /// Takes a task out of its frame, and drops its timers.
    pub(super) fn end_task(&mut self, slot: u32) -> Option<Pending> {
        let frame = self.execution.frames.get_mut(slot)?;
        match std::mem::replace(&mut frame.phase, Phase::Ready) {
            Phase::Task(pending) => {
                let timers = pending.timeout.into_iter().chain(pending.heartbeat);
                self.actions.extend(timers.map(|timer| Action::CancelTimer { timer }));
                Some(pending)
            }
            other => {
                frame.phase = other;
                None
            }
        }
    }
}

/// `resource` and `resourceType` of a service's events.
pub(super) fn of(resource: &Resource) -> Details {
    let (resource_type, action) = resource.service();
    Details { resource: Some(action.into()), resource_type: Some(resource_type), ..Details::default() }
}
