//! The context object: `$$` in JSONPath, `$states.context` in JSONata.

use serde_json::{Map, Value};

use super::execution::Execution;
use super::frame::Frame;
use crate::data::Timestamp;
use crate::definition::State;

/// An item that is about to become an iteration, or is one: its number and itself.
pub(super) type Item<'a> = (u32, &'a Value);

/// The context object of a state in a frame; `item` goes before the item of the iteration in which the frame lies.
pub(super) fn context(execution: &Execution, slot: u32, frame: &Frame, state: &State, item: Option<Item<'_>>) -> Value {
    let about = &execution.about;
    let mut of_execution = Map::new();
    of_execution.insert("Id".to_owned(), Value::from(&*about.id));
    of_execution.insert("Input".to_owned(), (*execution.input).clone());
    of_execution.insert("Name".to_owned(), Value::from(&*about.name));
    of_execution.insert("RoleArn".to_owned(), Value::from(&*about.role));
    of_execution.insert("StartTime".to_owned(), time(execution.started_ms));
    // As in Step Functions, express executions that are waited for have none.
    if !about.is_express() {
        of_execution.insert("RedriveCount".to_owned(), Value::from(execution.redrives));
    }
    let mut of_machine = Map::new();
    of_machine.insert("Id".to_owned(), Value::from(&*about.machine_id));
    of_machine.insert("Name".to_owned(), Value::from(&*about.machine_name));
    let mut of_state = Map::new();
    of_state.insert("Name".to_owned(), Value::from(&*state.name));
    of_state.insert("EnteredTime".to_owned(), time(frame.entered_ms));
    // As in Step Functions, only states that can be tried again have it.
    if state.kind.handlers().is_some() {
        of_state.insert("RetryCount".to_owned(), Value::from(frame.retries.iter().map(|count| u64::from(*count)).sum::<u64>()));
    }
    let mut context = Map::new();
    context.insert("Execution".to_owned(), Value::Object(of_execution));
    context.insert("StateMachine".to_owned(), Value::Object(of_machine));
    context.insert("State".to_owned(), Value::Object(of_state));
    let around = || execution.frames.chain(slot).find_map(|frame| frame.item.as_deref().map(|item| (frame.number, item)));
    if let Some((index, value)) = item.or_else(around) {
        let mut of_item = Map::new();
        of_item.insert("Index".to_owned(), Value::from(index));
        of_item.insert("Value".to_owned(), value.clone());
        let mut of_map = Map::new();
        of_map.insert("Item".to_owned(), Value::Object(of_item));
        context.insert("Map".to_owned(), Value::Object(of_map));
    }
    if let Some(token) = &frame.token {
        let mut of_task = Map::new();
        of_task.insert("Token".to_owned(), Value::from(&**token));
        context.insert("Task".to_owned(), Value::Object(of_task));
    }
    Value::Object(context)
}

/// As text: `2030-01-31T12:00:00.000Z`; null for times that have no such text.
fn time(ms: i64) -> Value {
    Timestamp::from_unix_ms(ms).map_or(Value::Null, |time| Value::from(time.to_string()))
}
