//! Entries: an execution begins, or goes on after its end, at a state that the caller names.
//!
//! What a state reads of the states before it is given: its input, and variables. It makes no difference to the state and those after it whether the others have run.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::execution::{About, Execution, Status};
use super::frame::{Frame, Variable};
use super::history::Details;
use super::ids::FrameId;
use super::limits::{Limits, VARIABLES_BYTES_MAX, VARIABLES_MAX};
use super::run::Run;
use crate::data::json_bytes;
use crate::data::limits::VALUE_DEPTH_MAX;
use crate::definition::{Definition, StateIndex, shown};

/// Why an execution cannot begin or go on at a state.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    /// The definition has no such state.
    #[error("the workflow has no such state; name one of its states")]
    NoState,
    /// The state is part of a branch or of an iteration.
    #[error("the state \"{}\" lies inside of a Parallel or Map; name a state of the top level", shown(.0))]
    Inside(Arc<str>),
    /// The input exceeds [`Limits::data_bytes`], or is nested too deeply.
    #[error("the input has more than {0} bytes of JSON, or more than {VALUE_DEPTH_MAX} levels; give a smaller one")]
    Input(usize),
    /// The variables exceed [`VARIABLES_MAX`] or [`VARIABLES_BYTES_MAX`], or are nested too deeply.
    #[error(
        "the variables are more than {VARIABLES_MAX}, larger than {VARIABLES_BYTES_MAX} bytes, or have more than {VALUE_DEPTH_MAX} levels; give fewer"
    )]
    Variables,
    /// The execution has not begun, or goes on.
    #[error("the execution has not ended; wait for its end, or stop it")]
    NotEnded,
    /// The execution was started with another definition, or written in another form.
    #[error("the execution is of another version of the workflow; start a new one")]
    OtherDefinition,
}

/// Where an execution begins, and with what.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The state: see [`Definition::find`].
    pub state: StateIndex,
    /// What it is given. `$$.Execution.Input` is the same.
    pub input: Value,
    /// The variables that it sees.
    pub variables: Map<String, Value>,
    /// When it begins, in milliseconds since 1970.
    pub start_ms: i64,
}

impl Execution {
    /// An execution that stands before a state, as if all before it had been done: the next step, with [`Event::Continue`](super::Event::Continue), enters it. A state
    /// inside of a branch or iteration becomes the top of the execution, which ends where the branch does.
    ///
    /// The history begins with the entering of the state. `TimeoutSeconds` of the whole does not count.
    ///
    /// # Errors
    /// There is no such state, or the input or the variables exceed a limit.
    pub fn at(definition: &Definition, about: About, limits: Limits, recording: bool, entry: Entry) -> Result<Self, EntryError> {
        let Entry { state, input, variables, start_ms } = entry;
        let machine = definition.state(state).ok_or(EntryError::NoState)?.machine;
        if !within(&input, limits) {
            return Err(EntryError::Input(limits.data_bytes));
        }
        let (variables, variable_bytes) = measured(variables)?;
        let mut execution = Self::new(definition, about, limits, recording);
        let input = Arc::new(input);
        execution.status = Status::Running;
        execution.input = Arc::clone(&input);
        execution.started_ms = start_ms;
        execution.stand(|id| Frame { variables, variable_bytes, ..Frame::new(id, machine, state, input, start_ms, 0) });
        Ok(execution)
    }

    /// The state at which [`Event::Restarted`](super::Event::Restarted) lets the execution go on.
    ///
    /// # Errors
    /// The execution has not ended or is of another definition; there is no such state at the top level; the input exceeds a limit. The event would change nothing.
    pub fn restartable(&self, definition: &Definition, state: &str, input: &Value) -> Result<StateIndex, EntryError> {
        if !self.fits(definition) {
            return Err(EntryError::OtherDefinition);
        }
        if matches!(self.status, Status::New | Status::Running) {
            return Err(EntryError::NotEnded);
        }
        let index = definition.find(state).ok_or(EntryError::NoState)?;
        let found = definition.state(index).ok_or(EntryError::NoState)?;
        if found.machine != Definition::top() {
            return Err(EntryError::Inside(Arc::clone(&found.name)));
        }
        if !within(input, self.limits) {
            return Err(EntryError::Input(self.limits.data_bytes));
        }
        Ok(index)
    }

    /// Makes a frame the whole of an execution that has none.
    pub(super) fn stand(&mut self, frame: impl FnOnce(FrameId) -> Frame) {
        let id = FrameId(self.number(self.frames.next_slot()));
        self.frames.insert(frame(id));
        self.ready.push_back(id);
    }
}

impl Run<'_> {
    /// [`Event::Restarted`](super::Event::Restarted).
    pub(super) fn restart(&mut self, state: &str, input: Value) {
        let Ok(index) = self.execution.restartable(self.definition, state, &input) else { return };
        let (variables, variable_bytes) =
            self.execution.halted.take().map(|halted| (halted.variables, halted.variable_bytes)).unwrap_or_default();
        let input = Arc::new(input);
        let name = self.definition.state(index).map(|state| Arc::clone(&state.name));
        self.resume(Details { state: name, input: Some(Arc::clone(&input)), ..Details::default() });
        let (now_ms, last_event) = (self.now_ms, self.execution.events);
        self.execution.stand(|id| Frame {
            variables,
            variable_bytes,
            ..Frame::new(id, Definition::top(), index, input, now_ms, last_event)
        });
    }
}

fn within(input: &Value, limits: Limits) -> bool {
    json_bytes(input, limits.data_bytes, VALUE_DEPTH_MAX).is_ok()
}

/// Variables as a frame holds them, with their bytes.
fn measured(variables: Map<String, Value>) -> Result<(Vec<Variable>, usize), EntryError> {
    if variables.len() > VARIABLES_MAX {
        return Err(EntryError::Variables);
    }
    let mut bytes = 0_usize;
    let mut measured = Vec::with_capacity(variables.len());
    for (name, value) in variables {
        let left = VARIABLES_BYTES_MAX.saturating_sub(bytes);
        bytes = bytes.saturating_add(json_bytes(&value, left, VALUE_DEPTH_MAX).map_err(|_| EntryError::Variables)?);
        measured.push((Arc::from(name), Arc::new(value)));
    }
    Ok((measured, bytes))
}
