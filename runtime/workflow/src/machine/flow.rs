//! How data flows through a state: from its input to what it hands over, from its result to its output and variables.
//!
//! JSONPath: `InputPath`, `Parameters`, work, `ResultSelector`, `ResultPath`, `OutputPath`; `Assign` sees the raw result. JSONata: `Arguments`, work, `Assign` and `Output`.
//! Everything that leaves a state is measured, unless it is the very value that came in.

use std::sync::Arc;

use serde_json::Value;

use super::failure::Fault;
use super::run::Run;
use crate::data::json_bytes;
use crate::data::limits::VALUE_DEPTH_MAX;
use crate::definition::payload::{Payload, ResultPath};
use crate::definition::state::Flow;
use crate::definition::{QueryLanguage, State};

/// Variables with their values.
pub(super) type Assigned = Vec<(Arc<str>, Arc<Value>)>;

/// What a state gives when it is left.
pub(super) struct Exit {
    pub(super) output: Arc<Value>,
    pub(super) assigned: Assigned,
}

impl Run<'_> {
    /// What the frame's state was given.
    pub(super) fn input(&self, slot: u32) -> Arc<Value> {
        self.execution.frames.get(slot).map(|frame| Arc::clone(&frame.input)).unwrap_or_default()
    }

    /// The input after `InputPath`.
    pub(super) fn effective_input(&mut self, slot: u32, state: &State) -> Result<Arc<Value>, Fault> {
        let input = self.input(slot);
        let selected = self.view(slot, state, &input).selection(&state.flow.input_path)?;
        Ok(selected.map_or(input, Arc::new))
    }

    /// What a state hands over: `Parameters` or `Arguments`, or else its input.
    pub(super) fn given(&mut self, slot: u32, state: &State, effective: &Arc<Value>) -> Result<Arc<Value>, Fault> {
        match &state.flow.payload {
            None => Ok(Arc::clone(effective)),
            Some(payload) => {
                let given = self.view(slot, state, effective).payload(payload)?;
                self.bounded(state, Arc::new(given))
            }
        }
    }

    /// The exit of a state that has no result: its input, after what the flow says.
    pub(super) fn exit_unchanged(&mut self, slot: u32, state: &State) -> Result<Exit, Fault> {
        let Flow { assign, output, .. } = &state.flow;
        if state.language == QueryLanguage::Jsonata {
            let input = self.input(slot);
            return self.exit_as(slot, state, &input, None, assign.as_ref(), output.as_ref());
        }
        self.exit_assigning(slot, state, assign.as_ref())
    }

    /// The exit of a state in JSONPath that has no result, with its own `Assign` or that of a rule.
    pub(super) fn exit_assigning(&mut self, slot: u32, state: &State, assign: Option<&Payload>) -> Result<Exit, Fault> {
        let input = self.input(slot);
        let effective = self.effective_input(slot, state)?;
        let assigned = self.assigned(slot, state, assign, &effective)?;
        let selected = self.view(slot, state, &effective).selection(&state.flow.output_path)?;
        let output = selected.map_or(effective, Arc::new);
        Ok(Exit { output: self.bounded_from(state, output, &input)?, assigned })
    }

    /// The exit of a state with a result.
    pub(super) fn exit_with(&mut self, slot: u32, state: &State, result: Arc<Value>) -> Result<Exit, Fault> {
        let Flow { result_selector, result_path, output_path, assign, output, .. } = &state.flow;
        if state.language == QueryLanguage::Jsonata {
            let default = Arc::clone(&result);
            return self.exit_as(slot, state, &default, Some(&result), assign.as_ref(), output.as_ref());
        }
        let assigned = self.assigned(slot, state, assign.as_ref(), &result)?;
        let selected = match result_selector {
            None => result,
            Some(selector) => Arc::new(self.view(slot, state, &result).payload(selector)?),
        };
        let input = self.input(slot);
        let combined = combined(result_path, &input, selected)?;
        let selected = self.view(slot, state, &combined).selection(output_path)?;
        let output = selected.map_or(combined, Arc::new);
        Ok(Exit { output: self.bounded_from(state, output, &input)?, assigned })
    }

    /// The exit of a state in JSONata: `Output`, or else the default.
    pub(super) fn exit_as(
        &mut self,
        slot: u32,
        state: &State,
        default: &Arc<Value>,
        result: Option<&Arc<Value>>,
        assign: Option<&Payload>,
        output: Option<&Payload>,
    ) -> Result<Exit, Fault> {
        let input = self.input(slot);
        let mut view = self.view(slot, state, &input).with_result(result.map(|result| &**result));
        let values = assign.map(|assign| view.payload(assign)).transpose()?;
        let output = output.map(|output| view.payload(output)).transpose()?.map_or_else(|| Arc::clone(default), Arc::new);
        let assigned = checked_variables(values)?;
        Ok(Exit { output: self.bounded_from(state, output, &input)?, assigned })
    }

    /// `Assign` of JSONPath, with `$` as given.
    pub(super) fn assigned(
        &mut self,
        slot: u32,
        state: &State,
        assign: Option<&Payload>,
        input: &Value,
    ) -> Result<Assigned, Fault> {
        let values = assign.map(|assign| self.view(slot, state, input).payload(assign)).transpose()?;
        checked_variables(values)
    }

    /// Whether a value is within the limits of size and depth.
    pub(super) fn fits(&self, value: &Value) -> bool {
        json_bytes(value, self.execution.limits.data_bytes, VALUE_DEPTH_MAX).is_ok()
    }

    /// A value that a state gives, if it is within the limits.
    pub(super) fn bounded(&self, state: &State, value: Arc<Value>) -> Result<Arc<Value>, Fault> {
        if self.fits(&value) { Ok(value) } else { Err(Fault::too_large(&state.name)) }
    }

    /// As [`bounded`](Self::bounded), without a look at a value that was let in already.
    fn bounded_from(&self, state: &State, value: Arc<Value>, input: &Arc<Value>) -> Result<Arc<Value>, Fault> {
        if Arc::ptr_eq(&value, input) { Ok(value) } else { self.bounded(state, value) }
    }
}

/// `ResultPath`: the result in the input.
pub(super) fn combined(path: &ResultPath, input: &Arc<Value>, result: Arc<Value>) -> Result<Arc<Value>, Fault> {
    match path {
        ResultPath::Replace => Ok(result),
        ResultPath::Discard => Ok(Arc::clone(input)),
        ResultPath::At(path) => Ok(Arc::new(path.write((**input).clone(), Arc::unwrap_or_clone(result))?)),
    }
}

/// Values of variables by name.
pub(super) fn checked_variables(values: Option<Value>) -> Result<Assigned, Fault> {
    match values {
        None => Ok(Vec::new()),
        Some(Value::Object(members)) => Ok(members.into_iter().map(|(name, value)| (Arc::from(name), Arc::new(value))).collect()),
        Some(_) => Err(Fault::runtime("The field 'Assign' must give an object of variables.")),
    }
}
