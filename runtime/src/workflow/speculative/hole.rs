//! Outputs that are not there yet, as values that can be handed on: each text, number and list of what a function has answered the last time is a mark.
//!
//! What a state makes of marks is a guess as any other. A task is asked for again when the output is there, and a run that was begun with another input is dropped then. So a mark that a state has turned into
//! something else does no harm.

use serde_json::{Map, Value};

/// Not a text that functions answer. One that does nevertheless is not run ahead, no more.
const MARK: &str = "\u{1}sledge:not-there-yet\u{1}";
/// How deep values are looked into: deeper than they can be.
const DEPTH_MAX: usize = 256;

/// An output of the same shape of which nothing is known.
pub(super) fn of_shape(last: &Value) -> Value {
    match last {
        Value::Object(members) => {
            Value::Object(members.iter().map(|(name, value)| (name.clone(), of_shape(value))).collect::<Map<_, _>>())
        }
        _ => Value::String(MARK.to_owned()),
    }
}

/// Whether something in a value is not there yet.
pub(super) fn is_in(value: &Value) -> bool {
    is_within(value, DEPTH_MAX)
}

fn is_within(value: &Value, depth: usize) -> bool {
    let Some(depth) = depth.checked_sub(1) else { return true };
    match value {
        Value::String(text) => text.contains(MARK),
        Value::Array(values) => values.iter().any(|value| is_within(value, depth)),
        Value::Object(members) => members.iter().any(|(name, value)| name.contains(MARK) || is_within(value, depth)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_mark_is_found_wherever_it_has_gone() {
        let shape = of_shape(&json!({ "ok": true, "user": { "id": 7, "tags": ["a"] } }));
        let mark = &shape["ok"];
        assert!(mark.is_string() && shape["user"]["id"] == *mark && shape["user"]["tags"] == *mark);
        assert!(is_in(&shape) && is_in(&json!([1, [{ "a": mark }]])));
        assert!(is_in(&Value::String(format!("Dear {}", mark.as_str().unwrap_or_default()))));
        assert!(!is_in(&json!({ "ok": true, "user": { "id": 7, "tags": ["a"] } })));
    }
}
