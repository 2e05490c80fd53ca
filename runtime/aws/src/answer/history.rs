//! Events of a history without data, for `includeExecutionData: false`.

use serde_json::Value;

/// Members of an event's details that are data of the execution.
const DATA: &[&str] =
    &["assignedVariables", "assignedVariablesDetails", "input", "inputDetails", "output", "outputDetails", "parameters"];

/// Takes inputs, outputs and variables out of an event of a history. `parameters` stays as an empty text, since the model requires the member.
pub fn without_data(event: &mut Value) {
    let Some(members) = event.as_object_mut() else {
        return;
    };
    for details in members.values_mut().filter_map(Value::as_object_mut) {
        let had_parameters = details.contains_key("parameters");
        details.retain(|name, _| !DATA.contains(&name.as_str()));
        if had_parameters {
            details.insert("parameters".to_owned(), Value::from(""));
        }
    }
}
