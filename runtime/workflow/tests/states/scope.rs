//! Which executions are replayed: rules about the test's file, what was recorded, and the definition. The first that applies is counted.

use serde_json::Value;

use super::suite::{Execution, REFUSED};

/// In the text of a definition with a Map in distributed mode.
pub(crate) const DISTRIBUTED: &str = "\"DISTRIBUTED\"";

/// What of an execution is in scope.
pub(crate) enum Scope {
    /// Its events and its end.
    Whole,
    /// Its events and its end, with stand-ins for tasks of other services: resources are not compared.
    StandIn,
    /// Its end: of a Map in distributed mode the history tells of a run of executions, whose own histories were not recorded; this server has no such mode and runs it inline.
    End,
    /// That the definition is refused; not with which words.
    Refusal,
    /// Nothing, by a rule.
    Out(String),
}

/// What of an execution is in scope.
pub(crate) fn of(execution: &Execution) -> Scope {
    match rule(execution) {
        Some(rule) => Scope::Out(rule),
        None if execution.end == REFUSED => Scope::Refusal,
        None if execution.definition.contains(DISTRIBUTED) || execution.events.is_empty() => Scope::End,
        None if has_other_tasks(&serde_json::from_str(&execution.definition).unwrap_or_default()) => Scope::StandIn,
        None => Scope::Whole,
    }
}

/// The rule by which an execution is out of scope; none if it is in scope.
fn rule(execution: &Execution) -> Option<String> {
    let file = execution.file.as_str();
    let of_file = [
        ("test_state/", "API TestState"),
        ("local_mocking/", "mocked configuration of LocalStack"),
        ("logs/", "logging"),
        ("express/test_express_async", "logging: the end is in a log only"),
        ("activities/", "activities"),
    ];
    if let Some((_, rule)) = of_file.iter().find(|(prefix, _)| file.starts_with(prefix)) {
        return Some((*rule).to_owned());
    }
    if execution.end.is_null() && execution.events.is_empty() {
        let rule = if file.starts_with("test_sfn_api") {
            "API: neither a history nor an output"
        } else {
            "neither a history nor an output"
        };
        return Some(rule.to_owned());
    }
    if !execution.has_test {
        return Some("the test is not in the sources any more".to_owned());
    }
    if execution.definition.is_empty() {
        return Some(match service_of(file) {
            Some(service) => format!("service {service}"),
            None => "deployed by CloudFormation: the test has no definition".to_owned(),
        });
    }
    if execution.events.len() == 1 {
        return Some("recorded before its first state".to_owned());
    }
    let definition: Value = serde_json::from_str(&execution.definition).ok()?;
    if execution.end == REFUSED {
        return of_refusal(execution, &definition);
    }
    of_definition(&definition).or_else(|| {
        let is_told = !execution.events.is_empty() && !execution.definition.contains(DISTRIBUTED);
        (!is_told && has_task(&definition)).then(|| "what tasks answered was not recorded".to_owned())
    })
}

/// Of definitions that Step Functions refuses: this server refuses some of them for other reasons, and has no limits of express executions.
fn of_refusal(execution: &Execution, definition: &Value) -> Option<String> {
    if execution.file.starts_with("test_sfn_api_express") || execution.name.contains("type_express") {
        Some("refused: limits of express executions".to_owned())
    } else if execution.definition.contains(DISTRIBUTED) {
        Some("refused: labels of Maps in distributed mode".to_owned())
    } else {
        has_other_tasks(definition).then(|| "refused: tasks of other services or with roles".to_owned())
    }
}

/// Of tests whose definitions are made by stand-ins for AWS.
fn service_of(file: &str) -> Option<&str> {
    file.strip_prefix("services/test_")?.strip_suffix("_task_service")
}

/// The first thing in a definition that this server does not have.
fn of_definition(value: &Value) -> Option<String> {
    match value {
        Value::Object(members) => {
            if members.contains_key("ItemReader") || members.contains_key("ResultWriter") {
                return Some("Map with items or results in S3".to_owned());
            }
            let resource = members.get("Resource").and_then(Value::as_str).unwrap_or_default();
            if members.get("Type") == Some(&Value::from("Task")) && resource.contains(":activity:") {
                return Some("activities".to_owned());
            }
            members.values().find_map(of_definition)
        }
        Value::Array(elements) => elements.iter().find_map(of_definition),
        _ => None,
    }
}

/// Whether a definition has tasks of other services, or with roles of other accounts.
fn has_other_tasks(value: &Value) -> bool {
    match value {
        Value::Object(members) => {
            let is_task = members.get("Type") == Some(&Value::from("Task"));
            let other = members.get("Resource").and_then(Value::as_str).and_then(of_resource).is_some();
            (is_task && (other || members.contains_key("Credentials"))) || members.values().any(has_other_tasks)
        }
        Value::Array(elements) => elements.iter().any(has_other_tasks),
        _ => false,
    }
}

fn has_task(value: &Value) -> bool {
    match value {
        Value::Object(members) => members.get("Type") == Some(&Value::from("Task")) || members.values().any(has_task),
        Value::Array(elements) => elements.iter().any(has_task),
        _ => false,
    }
}

pub(crate) fn of_resource(resource: &str) -> Option<String> {
    let parts: Vec<&str> = resource.split(':').collect();
    match parts.as_slice() {
        ["arn", _, "lambda", ..] => None,
        ["arn", _, "states", _, _, "lambda", action] if action.starts_with("invoke") => None,
        ["arn", _, "states", _, _, "states", action, ..] if action.starts_with("startExecution") => None,
        ["arn", _, "states", _, _, "aws-sdk", service, ..] => Some(format!("service aws-sdk:{service}")),
        ["arn", _, "states", _, _, service, ..] => Some(format!("service {service}")),
        _ => Some("a resource without a service".to_owned()),
    }
}
