//! Definitions with stand-ins for what this server does not have: Maps in distributed mode run inline, tasks of other services are tasks of ours (with the answers that
//! were recorded), roles of other accounts are left out.

use serde_json::{Map, Value};

use super::scope::of_resource;

/// A definition as this server takes it.
pub(crate) fn definition(text: &str) -> String {
    let mut definition = serde_json::from_str(text).expect("scripts/states-definitions gives JSON");
    if change(&mut definition) { definition.to_string() } else { text.to_owned() }
}

/// Puts stand-ins in place; whether there was something to be done.
fn change(value: &mut Value) -> bool {
    match value {
        Value::Object(members) => {
            let own = change_members(members);
            // All of them, not up to the first.
            own | (members.values_mut().filter_map(|member| change(member).then_some(())).count() > 0)
        }
        Value::Array(elements) => elements.iter_mut().filter_map(|element| change(element).then_some(())).count() > 0,
        _ => false,
    }
}

fn change_members(members: &mut Map<String, Value>) -> bool {
    let mut changed = false;
    if members.get("Mode") == Some(&Value::from("DISTRIBUTED")) {
        members.insert("Mode".to_owned(), Value::from("INLINE"));
        members.remove("ExecutionType");
        changed = true;
    }
    match members.get("Type").and_then(Value::as_str) {
        Some("Map") => changed |= members.remove("Label").is_some(),
        Some("Task") => {
            changed |= members.remove("Credentials").is_some();
            let resource = members.get("Resource").and_then(Value::as_str).unwrap_or_default();
            if of_resource(resource).is_some() {
                let other = if resource.ends_with(".waitForTaskToken") {
                    "fn:other.waitForTaskToken"
                } else if resource.ends_with(".sync") || resource.ends_with(".sync:2") {
                    "workflow:other.sync"
                } else {
                    "workflow:other.start"
                };
                members.insert("Resource".to_owned(), Value::from(other));
                changed = true;
            }
        }
        _ => {}
    }
    changed
}
