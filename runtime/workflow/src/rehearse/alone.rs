//! A state alone: an execution that stands at it, as if all before it had been done.
//!
//! The machine starts executions at the first state only. Here an execution is halted before its first state, by a history that has no room, and written down as a
//! checkpoint. Where it was halted is moved to the state that is asked for; then the checkpoint is read again. A state inside of a branch becomes the top of the execution.

use serde_json::{Map, Value, json};

use crate::definition::{Definition, StateIndex};
use crate::machine::{About, Action, Event, Execution, Limits, Outcome, step};

/// An execution that enters `state` with the next step, one transition a step: so that the state after it is entered, and nothing more.
///
/// # Errors
/// The input is larger than an execution may take; or checkpoints have another form than this code knows.
pub(super) fn execution(
    definition: &Definition,
    state: StateIndex,
    input: &Value,
    variables: &Map<String, Value>,
    start_ms: i64,
    about: About,
) -> Result<Execution, String> {
    let full = Limits { history_events: 0, ..Limits::default() };
    let mut execution = Execution::new(definition, about, full, true);
    let mut actions = Vec::new();
    step(definition, &mut execution, Event::Started { input: input.clone() }, start_ms, &mut || 0, &mut actions);
    moved(definition, state, variables, &execution).ok_or_else(|| match actions.pop() {
        Some(Action::Ended(Outcome::Failed(failure))) if failure.error.as_deref() != Some("States.Runtime") => {
            failure.cause.as_deref().unwrap_or("The input is refused.").to_owned()
        }
        _ => "this is a bug of the test runner: report it, and test the whole workflow".to_owned(),
    })
}

/// The halted execution at another state.
fn moved(definition: &Definition, state: StateIndex, variables: &Map<String, Value>, execution: &Execution) -> Option<Execution> {
    let mut checkpoint = serde_json::to_value(execution).ok()?;
    let mut frame = checkpoint.get_mut("halted")?.take();
    let id = frame.get("id")?.clone();
    let variables: Vec<_> = variables.iter().map(|(name, value)| json!([name, value])).collect();
    let of_frame =
        [("state", json!(state)), ("machine", json!(definition.state(state)?.machine)), ("variables", json!(variables))];
    for (name, value) in of_frame {
        *frame.get_mut(name)? = value;
    }
    let limits = Limits { transitions_per_step: 1, ..Limits::default() };
    let of_execution = [
        ("limits", serde_json::to_value(limits).ok()?),
        ("status", json!("Running")),
        ("ready", json!([id])),
        ("events", json!(0)),
    ];
    for (name, value) in of_execution {
        // A member that is not there would be passed over in silence.
        *checkpoint.get_mut(name)? = value;
    }
    *checkpoint.get_mut("frames")?.get_mut("slots")? = json!([frame]);
    serde_json::from_value(checkpoint).ok()
}
