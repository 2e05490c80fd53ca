//! Transitions: a frame enters a state, leaves it, fails, is caught or tried again, and ends.

use std::sync::Arc;

use serde_json::Value;

use super::event::Action;
use super::execution::Status;
use super::failure::{Failure, Fault, name};
use super::flow::{Assigned, Exit, checked_variables, combined};
use super::frame::{Frame, Phase};
use super::history::{Details, HistoryKind};
use super::ids::TimerId;
use super::limits::{VARIABLES_BYTES_MAX, VARIABLES_MAX};
use super::run::{Run, after};
use crate::data::json_bytes;
use crate::data::limits::VALUE_DEPTH_MAX;
use crate::definition::state::{Catcher, Retrier};
use crate::definition::{Kind, Next, QueryLanguage, State, StateIndex};

impl Run<'_> {
    /// Carries a ready frame on by one transition.
    pub(super) fn enter(&mut self, slot: u32) {
        let Some(state) = self.state(slot) else {
            return self
                .end(Status::Failed, Failure::given(Some(name::RUNTIME), Some("The execution is of another definition.")));
        };
        let now_ms = self.now_ms;
        let Some(frame) = self.execution.frames.get_mut(slot) else { return };
        if let (Kind::Map(map), Phase::Ended(_)) = (&state.kind, &frame.phase) {
            if let Phase::Ended(ended) = std::mem::replace(&mut frame.phase, Phase::Ready)
                && let Err(fault) = self.start_writer(slot, state, map, *ended)
            {
                self.fail(slot, fault);
            }
            return;
        }
        if matches!(frame.phase, Phase::Ready) {
            frame.entered_ms = now_ms;
            frame.entered = frame.entered.wrapping_add(1);
            frame.retries.clear();
            frame.before_event = frame.last_event;
            let id = self.note_in(slot, entered(&state.kind), |_, frame| Details {
                name: Some(Arc::clone(&state.name)),
                input: Some(Arc::clone(&frame.input)),
                ..Details::default()
            });
            if let Some(frame) = self.execution.frames.get_mut(slot) {
                frame.entered_event = id;
            }
        }
        if let Err(fault) = self.attempt(slot, state) {
            self.fail(slot, fault);
        }
    }

    /// Does what the state does, for the first time or again.
    fn attempt(&mut self, slot: u32, state: &State) -> Result<(), Fault> {
        match &state.kind {
            Kind::Pass { result } => self.pass(slot, state, result.as_ref()),
            Kind::Task(task) => self.start_task(slot, state, task),
            Kind::Choice { rules, default } => self.choose(slot, state, rules, *default),
            Kind::Wait(until) => self.wait(slot, state, until),
            Kind::Succeed => {
                let exit = self.exit_unchanged(slot, state)?;
                self.leave(slot, state, exit, Next::End);
                Ok(())
            }
            Kind::Fail { error, cause } => {
                let input = self.input(slot);
                let error = error.as_ref().map(|text| self.view(slot, state, &input).text("Error", text)).transpose()?;
                let cause = cause.as_ref().map(|text| self.view(slot, state, &input).text("Cause", text)).transpose()?;
                Err(Fault::plain(Failure::given(error.as_deref(), cause.as_deref())))
            }
            Kind::Parallel { branches, .. } => self.start_branches(slot, state, branches),
            Kind::Map(map) => self.start_map(slot, state, map),
        }
    }

    fn pass(&mut self, slot: u32, state: &State, result: Option<&Arc<Value>>) -> Result<(), Fault> {
        let exit = if state.language == QueryLanguage::Jsonata {
            self.exit_unchanged(slot, state)?
        } else {
            let effective = self.effective_input(slot, state)?;
            let given = self.given(slot, state, &effective)?;
            self.exit_with(slot, state, result.cloned().unwrap_or(given))?
        };
        self.leave(slot, state, exit, state.next);
        Ok(())
    }

    /// Leaves a state for the next one, or ends the frame.
    pub(super) fn leave(&mut self, slot: u32, state: &State, exit: Exit, next: Next) {
        let Exit { output, assigned } = exit;
        self.note_in(slot, exited(&state.kind), |_, _| Details {
            name: Some(Arc::clone(&state.name)),
            output: Some(Arc::clone(&output)),
            assigned: assigned.clone(),
            ..Details::default()
        });
        if !assigned.is_empty() && !self.assign(slot, assigned) {
            let cause = format!("The variables are more than {VARIABLES_MAX}, or larger than {VARIABLES_BYTES_MAX} bytes.");
            return self.fail_frame(slot, Fault::plain(Fault::found(name::DATA_LIMIT, cause).failure));
        }
        let Some(frame) = self.execution.frames.get_mut(slot) else { return };
        frame.token = None;
        match next {
            Next::State(state) => {
                frame.state = state;
                frame.input = output;
                frame.phase = Phase::Ready;
                let id = frame.id;
                self.execution.ready.push_back(id);
            }
            Next::End => self.end_frame(slot, output),
        }
    }

    /// Gives variables their values. False if they are too many or too large.
    fn assign(&mut self, slot: u32, assigned: Assigned) -> bool {
        let Some(frame) = self.execution.frames.get_mut(slot) else { return true };
        for (name, value) in assigned {
            let Ok(bytes) = json_bytes(&value, VARIABLES_BYTES_MAX, VALUE_DEPTH_MAX) else { return false };
            frame.variable_bytes = frame.variable_bytes.saturating_add(bytes);
            match frame.variables.iter_mut().find(|(own, _)| *own == name) {
                Some((_, old)) => {
                    let freed = json_bytes(old, VARIABLES_BYTES_MAX, VALUE_DEPTH_MAX).unwrap_or(0);
                    frame.variable_bytes = frame.variable_bytes.saturating_sub(freed);
                    *old = value;
                }
                None => frame.variables.push((name, value)),
            }
        }
        frame.variables.len() <= VARIABLES_MAX && self.execution.frames.variable_bytes() <= VARIABLES_BYTES_MAX
    }

    /// A frame has come to the end of its machine.
    fn end_frame(&mut self, slot: u32, output: Arc<Value>) {
        let Some(frame) = self.execution.frames.get(slot) else { return };
        let (parent, number, last) = (frame.parent, frame.number, frame.last_event);
        match parent {
            None => self.succeed(output, last),
            Some(parent) => {
                self.execution.frames.remove(slot);
                self.child_succeeded(parent, number, output, last);
            }
        }
    }

    /// A state has failed: tries it again, goes to a catcher, or ends the frame with the error.
    pub(super) fn fail(&mut self, slot: u32, mut fault: Fault) {
        let Some(state) = self.state(slot) else { return };
        let Some(frame) = self.execution.frames.get(slot) else { return };
        if fault.prefixed {
            let cause = fault.failure.cause.as_deref().unwrap_or_default();
            let entered = frame.entered_event;
            fault.failure.cause = Some(
                format!(
                    "An error occurred while executing the state '{}' (entered at the event id #{entered}). {cause}",
                    state.name
                )
                .into(),
            );
        }
        if fault.evaluation {
            self.forget_entering(slot, &state.kind);
            self.note_in(slot, HistoryKind::EvaluationFailed, |_, _| Details {
                error: fault.failure.error.clone(),
                cause: fault.failure.cause.clone(),
                location: fault.location.clone().filter(|location| !location.is_empty()),
                state: Some(Arc::clone(&state.name)),
                ..Details::default()
            });
        }
        if let Some(handlers) = state.kind.handlers() {
            if let Some(at) = handlers.retriers.iter().position(|retrier| fault.matches(&retrier.errors))
                && let Some(retrier) = handlers.retriers.get(at)
                && self.retry(slot, retrier, at)
            {
                return;
            }
            self.note_failed(slot, state, &fault.failure);
            if let Some(catcher) = handlers.catchers.iter().find(|catcher| fault.matches(&catcher.errors)) {
                return self.caught(slot, state, catcher, fault.failure);
            }
        }
        self.fail_frame(slot, Fault { missed: fault.missed, ..Fault::plain(fault.failure) });
    }

    /// An evaluation that fails at once follows the event before the state was entered, but in a Wait: so Step Functions numbers it.
    fn forget_entering(&mut self, slot: u32, kind: &Kind) {
        if let Some(frame) = self.execution.frames.get_mut(slot)
            && frame.last_event == frame.entered_event
            && !matches!(kind, Kind::Wait(_))
        {
            frame.last_event = frame.before_event;
        }
    }

    /// `ParallelStateFailed` and `MapStateFailed`.
    fn note_failed(&mut self, slot: u32, state: &State, failure: &Failure) {
        let kind = match &state.kind {
            Kind::Parallel { .. } => HistoryKind::ParallelStateFailed,
            Kind::Map(_) => HistoryKind::MapStateFailed,
            _ => return,
        };
        if failure.name() != name::RUNTIME {
            self.note_in(slot, kind, |_, _| Details::default());
        }
    }

    /// Sets the timer of a retrier. False if it has no attempts left.
    fn retry(&mut self, slot: u32, retrier: &Retrier, at: usize) -> bool {
        let Some(frame) = self.execution.frames.get_mut(slot) else { return false };
        if frame.retries.len() <= at {
            frame.retries.resize(at + 1, 0);
        }
        let Some(used) = frame.retries.get_mut(at) else { return false };
        if *used >= retrier.attempts {
            return false;
        }
        let delay_ms = delay_ms(retrier, *used);
        *used = used.saturating_add(1);
        frame.token = None;
        let delay_ms = if retrier.full_jitter { (self.random)() % delay_ms.saturating_add(1) } else { delay_ms };
        let timer = TimerId(self.execution.number(slot));
        if let Some(frame) = self.execution.frames.get_mut(slot) {
            frame.phase = Phase::Backoff { timer };
        }
        let at_ms = self.now_ms.saturating_add(i64::try_from(delay_ms).unwrap_or(i64::MAX));
        self.actions.push(Action::SetTimer { timer, at_ms });
        true
    }

    /// Goes to the state that a catcher names.
    fn caught(&mut self, slot: u32, state: &State, catcher: &Catcher, failure: Failure) {
        match self.caught_exit(slot, state, catcher, &failure) {
            Ok(exit) => self.leave(slot, state, exit, Next::State(catcher.next)),
            // A mistake in a catcher is not caught by the same state.
            Err(fault) => {
                let cause = fault.failure.cause.as_deref().unwrap_or_default();
                let entered = self.execution.frames.get(slot).map_or(0, |frame| frame.entered_event);
                let cause = format!(
                    "An error occurred while executing the state '{}' (entered at the event id #{entered}). {cause}",
                    state.name
                );
                self.fail_frame(slot, Fault::plain(Failure { error: fault.failure.error, cause: Some(cause.into()) }));
            }
        }
    }

    fn caught_exit(&mut self, slot: u32, state: &State, catcher: &Catcher, failure: &Failure) -> Result<Exit, Fault> {
        let error = Arc::new(failure.output());
        let input = self.input(slot);
        if state.language == QueryLanguage::Jsonata {
            let mut view = self.view(slot, state, &input).with_error(&error);
            let values = catcher.assign.as_ref().map(|assign| view.payload(assign)).transpose()?;
            let output = catcher
                .output
                .as_ref()
                .map(|output| view.payload(output))
                .transpose()?
                .map_or_else(|| Arc::clone(&error), Arc::new);
            let assigned = checked_variables(values)?;
            return Ok(Exit { output: self.bounded(state, output)?, assigned });
        }
        let assigned = self.assigned(slot, state, catcher.assign.as_ref(), &error)?;
        let output = combined(&catcher.result_path, &input, error)?;
        Ok(Exit { output: self.bounded(state, output)?, assigned })
    }

    /// A frame ends with an error.
    pub(super) fn fail_frame(&mut self, slot: u32, fault: Fault) {
        let Some(frame) = self.execution.frames.get(slot) else { return };
        match frame.parent {
            None => self.end(Status::Failed, fault.failure),
            Some(parent) => self.child_failed(parent, slot, fault),
        }
    }

    /// A frame goes on at a state: after its timer, or from a Wait.
    pub(super) fn again(&mut self, slot: u32) {
        let Some(frame) = self.execution.frames.get_mut(slot) else { return };
        frame.phase = Phase::Retry;
        let id = frame.id;
        self.execution.ready.push_back(id);
    }

    /// The state that a Choice takes, by that rule or by default.
    pub(super) fn taken(&mut self, slot: u32, state: &State, exit: Exit, (rule, next): (Option<usize>, StateIndex)) {
        if let (Some(guide), Some(frame)) = (&mut self.guide, self.execution.frames.get(slot)) {
            guide.went(frame.state, rule);
        }
        self.leave(slot, state, exit, Next::State(next));
    }

    /// A timer some seconds from now.
    pub(super) fn timer(&mut self, slot: u32, seconds: u64) -> TimerId {
        let timer = TimerId(self.execution.number(slot));
        self.actions.push(Action::SetTimer { timer, at_ms: after(self.now_ms, seconds) });
        timer
    }
}

/// `IntervalSeconds * BackoffRate ^ used`, at most `MaxDelaySeconds`, in milliseconds.
fn delay_ms(retrier: &Retrier, used: u32) -> u64 {
    let grown = retrier.interval_s as f64 * retrier.backoff_rate.powi(i32::try_from(used).unwrap_or(i32::MAX));
    let most = retrier.delay_max_s.unwrap_or(crate::definition::limits::DELAY_SECONDS_MAX) as f64;
    // Below 2^53: exact enough for milliseconds.
    (grown.min(most) * 1_000.0) as u64
}

const fn entered(kind: &Kind) -> HistoryKind {
    match kind {
        Kind::Task(_) => HistoryKind::TaskStateEntered,
        Kind::Pass { .. } => HistoryKind::PassStateEntered,
        Kind::Choice { .. } => HistoryKind::ChoiceStateEntered,
        Kind::Wait(_) => HistoryKind::WaitStateEntered,
        Kind::Succeed => HistoryKind::SucceedStateEntered,
        Kind::Fail { .. } => HistoryKind::FailStateEntered,
        Kind::Parallel { .. } => HistoryKind::ParallelStateEntered,
        Kind::Map(_) => HistoryKind::MapStateEntered,
    }
}

const fn exited(kind: &Kind) -> HistoryKind {
    match kind {
        Kind::Task(_) => HistoryKind::TaskStateExited,
        Kind::Pass { .. } => HistoryKind::PassStateExited,
        Kind::Choice { .. } => HistoryKind::ChoiceStateExited,
        Kind::Wait(_) => HistoryKind::WaitStateExited,
        Kind::Succeed | Kind::Fail { .. } => HistoryKind::SucceedStateExited,
        Kind::Parallel { .. } => HistoryKind::ParallelStateExited,
        Kind::Map(_) => HistoryKind::MapStateExited,
    }
}

/// What is said of a state that is given up while it is waited for.
pub(super) const fn aborted(frame: &Frame, kind: &Kind) -> Option<HistoryKind> {
    match (kind, &frame.phase) {
        (Kind::Task(_), _) => Some(HistoryKind::TaskStateAborted),
        (Kind::Wait(_), _) => Some(HistoryKind::WaitStateAborted),
        (Kind::Parallel { .. }, _) => Some(HistoryKind::ParallelStateAborted),
        (Kind::Map(_), _) => Some(HistoryKind::MapStateAborted),
        _ => None,
    }
}
