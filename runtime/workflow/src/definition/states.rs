//! The parts of a state that its type has: what follows, data, and its own work.

use std::sync::Arc;

use serde_json::Value;

use super::check::Node;
use super::fields::{CHOICE, FAIL, MAP, PARALLEL, PASS, SUCCEED, TASK, Types, WAIT};
use super::limits::{BRANCHES_MAX, SECONDS_MAX};
use super::mistake::shown;
use super::payload::{Number, Text};
use super::reader::{Reader, Scope};
use super::resource::{Resource, function_name, workflow_name};
use super::state::{Flow, Kind, Next, QueryLanguage, Task, Until};
use super::values::{Range, assign, number, path, payload, result_path, selection, template, text};
use super::{choice, handlers, map};
use crate::data::{Expression as PathExpression, Timestamp};

/// `Next` or `End`.
pub(crate) fn next(reader: &mut Reader<'_>, node: &Node<'_>, name: &str, types: Types, scope: &Scope<'_>) -> Option<Next> {
    if [CHOICE, SUCCEED, FAIL].contains(&types) {
        return Some(Next::End);
    }
    match (node.get("Next"), node.get("End")) {
        (Some(next), None) => reader.target(&next, scope).map(Next::State),
        (None, Some(end)) if *end.value == Value::Bool(true) => Some(Next::End),
        (None, Some(end)) => {
            reader.checker.report(&end, "\"End\" can only be true", Some("give \"End\": true, or \"Next\"".to_owned()));
            None
        }
        (Some(_), Some(end)) => {
            reader.checker.report_key(&end, "\"Next\" and \"End\" exclude each other", Some("remove one of them".to_owned()));
            None
        }
        (None, None) => {
            let help = "give the name of the next state in \"Next\", or \"End\": true";
            reader.checker.report(node, format!("a {name} state needs \"Next\" or \"End\""), Some(help.to_owned()));
            None
        }
    }
}

/// What a state does with data.
pub(crate) fn flow(reader: &mut Reader<'_>, node: &Node<'_>, types: Types, scope: &Scope<'_>) -> Option<Flow> {
    if types == FAIL {
        return Some(Flow::default());
    }
    let assign = assign(reader, node.get("Assign"), "Assign", scope);
    if scope.language == QueryLanguage::Jsonata {
        let given = if types == MAP { Some(None) } else { payload(reader, node.get("Arguments"), "Arguments", scope.language) };
        let output = payload(reader, node.get("Output"), "Output", scope.language);
        return Some(Flow { payload: given?, assign: assign?, output: output?, ..Flow::default() });
    }
    // A Map's `Parameters` is the old name of `ItemSelector`.
    let given = if types == MAP { Some(None) } else { payload(reader, node.get("Parameters"), "Parameters", scope.language) };
    let input_path = selection(&mut reader.checker, node.get("InputPath"));
    let result_selector = payload(reader, node.get("ResultSelector"), "ResultSelector", scope.language);
    let result_path = result_path(&mut reader.checker, node.get("ResultPath"));
    let output_path = selection(&mut reader.checker, node.get("OutputPath"));
    Some(Flow {
        input_path: input_path?,
        payload: given?,
        result_selector: result_selector?,
        result_path: result_path?,
        output_path: output_path?,
        assign: assign?,
        output: None,
    })
}

/// A state's own work.
pub(crate) fn kind(reader: &mut Reader<'_>, node: &Node<'_>, types: Types, scope: &Scope<'_>) -> Option<Kind> {
    match types {
        TASK => task(reader, node, scope).map(|task| Kind::Task(Box::new(task))),
        PASS => Some(Kind::Pass { result: node.get("Result").map(|result| Arc::new(result.value.clone())) }),
        CHOICE => choice::read(reader, node, scope),
        WAIT => wait(reader, node, scope).map(Kind::Wait),
        SUCCEED => Some(Kind::Succeed),
        FAIL => {
            let error = text(reader, node, "Error", scope.language);
            let cause = text(reader, node, "Cause", scope.language);
            Some(Kind::Fail { error: error?, cause: cause? })
        }
        PARALLEL => parallel(reader, node, scope),
        _ => map::read(reader, node, scope).map(|map| Kind::Map(Box::new(map))),
    }
}

fn task(reader: &mut Reader<'_>, node: &Node<'_>, scope: &Scope<'_>) -> Option<Task> {
    let resource = resource(reader, node);
    if let Some(credentials) = node.get("Credentials") {
        let help = "this server has no roles: remove the field, and give the function its rights in the server's configuration";
        reader.checker.report_key(&credentials, "\"Credentials\" is not supported", Some(help.to_owned()));
    }
    let range = |field| Range { field, least: 1, most: SECONDS_MAX, fraction: false };
    let timeout = number(reader, node, range("TimeoutSeconds"), scope.language);
    let heartbeat = number(reader, node, range("HeartbeatSeconds"), scope.language);
    if let (Some(Some(Number::Literal(timeout))), Some(Some(Number::Literal(heartbeat)))) = (&timeout, &heartbeat)
        && heartbeat >= timeout
        && let Some(field) = node.get("HeartbeatSeconds")
    {
        let message = format!("HeartbeatSeconds ({heartbeat}) is not below TimeoutSeconds ({timeout})");
        reader.checker.report(&field, message, Some("give a smaller number".to_owned()));
    }
    let handlers = handlers::read(reader, node, scope);
    let (resource, written) = resource?;
    check_arguments(reader, node, &resource, scope);
    Some(Task { resource: Arc::new(resource), written, timeout: timeout?, heartbeat: heartbeat?, handlers: handlers? })
}

/// Whether `Parameters` or `Arguments` have what the resource asks for, as far as that can be seen without an input.
fn check_arguments(reader: &mut Reader<'_>, node: &Node<'_>, resource: &Resource, scope: &Scope<'_>) {
    let field = if scope.language == QueryLanguage::JsonPath { "Parameters" } else { "Arguments" };
    let Some(given) = node.get(field) else { return };
    let Some(members) = given.value.as_object() else { return };
    for name in resource.required() {
        let computed = scope.language == QueryLanguage::JsonPath && members.contains_key(&format!("{name}.$"));
        if !computed && !members.contains_key(*name) {
            reader.checker.report(
                &given,
                format!("\"{field}\" of this resource needs \"{name}\""),
                Some(format!("give \"{name}\"")),
            );
        }
    }
    let literal = |name: &str| given.get(name).filter(|value| !value.value.as_str().is_some_and(|text| text.starts_with("{%")));
    let refused = match resource {
        Resource::LambdaInvoke { .. } => {
            literal("FunctionName").and_then(|name| Some((function_name(name.value.as_str()?).err()?, name)))
        }
        Resource::StartExecution { .. } => {
            literal("StateMachineArn").and_then(|name| Some((workflow_name(name.value.as_str()?).err()?, name)))
        }
        _ => None,
    };
    if let Some((error, at)) = refused {
        reader.checker.report(&at, error.message, Some(error.help));
    }
}

/// `Resource` of a Task.
fn resource(reader: &mut Reader<'_>, node: &Node<'_>) -> Option<(Resource, Arc<str>)> {
    let Some(field) = node.get("Resource") else {
        reader.checker.report(
            node,
            "a Task state needs \"Resource\"",
            Some("give \"fn:NAME\" for a function of this server".to_owned()),
        );
        return None;
    };
    let text = reader.checker.string(&field)?;
    match Resource::parse(text) {
        Ok(Resource::KeyValue { operation }) if operation.is_of_bucket() => {
            let help = "use kv:get in a Task, or give this resource to \"ItemReader\" of a Map";
            reader.checker.report(&field, format!("\"{text}\" is no resource of a Task"), Some(help.to_owned()));
            None
        }
        Ok(resource) => Some((resource, text.into())),
        Err(error) => {
            reader.checker.report(&field, format!("\"{}\": {}", shown(text), error.message), Some(error.help));
            None
        }
    }
}

fn wait(reader: &mut Reader<'_>, node: &Node<'_>, scope: &Scope<'_>) -> Option<Until> {
    let given: Vec<_> =
        ["Seconds", "SecondsPath", "Timestamp", "TimestampPath"].into_iter().filter(|field| node.get(field).is_some()).collect();
    let help = || Some("give one of Seconds, SecondsPath, Timestamp, TimestampPath".to_owned());
    match given.as_slice() {
        [] => {
            reader.checker.report(node, "a Wait state needs to know how long it waits", help());
            None
        }
        ["Seconds" | "SecondsPath"] => {
            let range = Range { field: "Seconds", least: 0, most: SECONDS_MAX, fraction: false };
            number(reader, node, range, scope.language)?.map(Until::Seconds)
        }
        ["Timestamp"] if scope.language == QueryLanguage::Jsonata => match text(reader, node, "Timestamp", scope.language)?? {
            Text::Literal(literal) => timestamp(reader, &node.get("Timestamp")?, &literal),
            other => Some(Until::TimestampFrom(other)),
        },
        ["Timestamp"] => {
            let field = node.get("Timestamp")?;
            let text = reader.checker.string(&field)?;
            timestamp(reader, &field, text)
        }
        ["TimestampPath"] => path(&mut reader.checker, &node.get("TimestampPath")?)
            .map(|path| Until::TimestampFrom(Text::Path(PathExpression::Path(path)))),
        _ => {
            reader.checker.report(node, format!("{} exclude each other", given.join(" and ")), help());
            None
        }
    }
}

fn timestamp(reader: &mut Reader<'_>, node: &Node<'_>, text: &str) -> Option<Until> {
    match Timestamp::parse(text) {
        Ok(timestamp) => Some(Until::Timestamp(timestamp)),
        Err(_) => {
            let message = format!("\"{}\" is not a timestamp of RFC 3339", shown(text));
            reader.checker.report(node, message, Some("write it as 2030-01-31T12:00:00Z".to_owned()));
            None
        }
    }
}

fn parallel(reader: &mut Reader<'_>, node: &Node<'_>, scope: &Scope<'_>) -> Option<Kind> {
    let handlers = handlers::read(reader, node, scope);
    let Some(field) = node.get("Branches") else {
        reader.checker.report(node, "a Parallel state needs \"Branches\"", Some("give an array of state machines".to_owned()));
        return None;
    };
    let given = reader.checker.filled_array(&field, "branch")?;
    if given.len() > BRANCHES_MAX {
        let message = format!("{} branches; a Parallel state has at most {BRANCHES_MAX}", given.len());
        reader.checker.report(&field, message, Some("use a Map state".to_owned()));
        return None;
    }
    let branches: Vec<_> = field.elements().map(|branch| reader.inner(&branch, scope)).collect();
    Some(Kind::Parallel { branches: branches.into_iter().collect::<Option<_>>()?, handlers: handlers? })
}

/// A template field of a nested object, by the language: `Parameters` or `Arguments`.
pub(crate) fn arguments(
    reader: &mut Reader<'_>,
    node: &Node<'_>,
    language: QueryLanguage,
) -> Option<Option<super::payload::Payload>> {
    match (language, node.get("Parameters"), node.get("Arguments")) {
        (QueryLanguage::JsonPath, Some(field), _) => {
            template(&mut reader.checker, &field).map(|template| Some(super::payload::Payload::Template(template)))
        }
        (QueryLanguage::Jsonata, _, Some(field)) => payload(reader, Some(field), "Arguments", language),
        _ => Some(None),
    }
}
