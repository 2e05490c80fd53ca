//! `Retry` and `Catch`.

use std::sync::Arc;

use super::check::{Node, briefly};
use super::fields::check_members;
use super::limits::{ATTEMPTS_MAX, DELAY_SECONDS_MAX, HANDLERS_MAX, SECONDS_MAX};
use super::mistake::shown;
use super::reader::{Reader, Scope};
use super::state::{Catcher, Handlers, QueryLanguage, Retrier};
use super::values::{assign, payload, result_path};

/// The name that stands for every error but those that cannot be handled by it.
pub(crate) const ALL: &str = "States.ALL";

/// Names with the reserved prefix.
const RESERVED: [&str; 16] = [
    ALL,
    "States.BranchFailed",
    "States.DataLimitExceeded",
    "States.ExceedToleratedFailureThreshold",
    "States.HeartbeatTimeout",
    "States.IntrinsicFailure",
    "States.ItemReaderFailed",
    "States.NoChoiceMatched",
    "States.ParameterPathFailure",
    "States.Permissions",
    "States.QueryEvaluationError",
    "States.ResultPathMatchFailure",
    "States.ResultWriterFailed",
    "States.Runtime",
    "States.TaskFailed",
    "States.Timeout",
];

/// `IntervalSeconds`, `MaxAttempts` and `BackoffRate` where they are not given (States Language, "Retrying after error").
const INTERVAL_SECONDS: u64 = 1;
const ATTEMPTS: u32 = 3;
const BACKOFF_RATE: f64 = 2.0;

/// Both fields of a state.
pub(crate) fn read(reader: &mut Reader<'_>, node: &Node<'_>, scope: &Scope<'_>) -> Option<Handlers> {
    let retriers = each(reader, node.get("Retry"), "retrier", |reader, node, last, _| retrier(reader, node, last));
    let catchers = each(reader, node.get("Catch"), "catcher", |reader, node, last, at| catcher(reader, node, last, at, scope));
    Some(Handlers { retriers: retriers?, catchers: catchers? })
}

/// Reads an array of handlers; an empty one is none. The reader of one is told whether it is the last, and its index.
fn each<T>(
    reader: &mut Reader<'_>,
    field: Option<Node<'_>>,
    of: &str,
    read: impl Fn(&mut Reader<'_>, &Node<'_>, bool, usize) -> Option<T>,
) -> Option<Vec<T>> {
    let Some(field) = field else { return Some(Vec::new()) };
    let Some(given) = field.value.as_array() else {
        reader.checker.report(&field, format!("expected an array of {of}s, found {}", briefly(field.value)), None);
        return None;
    };
    if given.len() > HANDLERS_MAX {
        reader.checker.report(&field, format!("{} {of}s; a state has at most {HANDLERS_MAX}", given.len()), None);
        return None;
    }
    let read: Vec<_> = field.elements().enumerate().map(|(at, node)| read(reader, &node, at + 1 == given.len(), at)).collect();
    read.into_iter().collect()
}

fn retrier(reader: &mut Reader<'_>, node: &Node<'_>, last: bool) -> Option<Retrier> {
    reader.checker.object(node)?;
    let known = ["ErrorEquals", "IntervalSeconds", "MaxAttempts", "BackoffRate", "MaxDelaySeconds", "JitterStrategy", "Comment"];
    check_members(&mut reader.checker, node, "a retrier", &known);
    let errors = errors(reader, node, "retrier", last);
    let mut whole = |field: &str, least, most, default| match node.get(field) {
        Some(field) => reader.checker.integer(&field, least, most),
        None => Some(default),
    };
    let interval_s = whole("IntervalSeconds", 1, SECONDS_MAX, INTERVAL_SECONDS);
    let attempts = whole("MaxAttempts", 0, ATTEMPTS_MAX, u64::from(ATTEMPTS));
    let delay_max_s = whole("MaxDelaySeconds", 1, DELAY_SECONDS_MAX - 1, 0);
    if let (Some(interval), Some(delay), Some(field)) = (interval_s, delay_max_s, node.get("MaxDelaySeconds"))
        && delay <= interval
    {
        let message = format!("MaxDelaySeconds ({delay}) is not above IntervalSeconds ({interval})");
        reader.checker.report(&field, message, Some("give a larger number".to_owned()));
    }
    let backoff_rate = backoff_rate(reader, node);
    let full_jitter = match node.get("JitterStrategy") {
        None => Some(false),
        Some(field) => match field.value.as_str() {
            Some("FULL") => Some(true),
            Some("NONE") => Some(false),
            _ => {
                reader.checker.report(
                    &field,
                    format!("unknown strategy {}", briefly(field.value)),
                    Some("give \"FULL\" or \"NONE\"".to_owned()),
                );
                None
            }
        },
    };
    Some(Retrier {
        errors: errors?,
        interval_s: interval_s?,
        attempts: u32::try_from(attempts?).unwrap_or(u32::MAX),
        backoff_rate: backoff_rate?,
        delay_max_s: delay_max_s.filter(|delay| *delay > 0),
        full_jitter: full_jitter?,
    })
}

fn backoff_rate(reader: &mut Reader<'_>, node: &Node<'_>) -> Option<f64> {
    let Some(field) = node.get("BackoffRate") else { return Some(BACKOFF_RATE) };
    let rate = field.value.as_f64().filter(|rate| *rate >= 1.0);
    if rate.is_none() {
        let message = format!("expected a number of at least 1.0, found {}", briefly(field.value));
        reader.checker.report(&field, message, Some("with 1.0 the interval does not grow".to_owned()));
    }
    rate
}

fn catcher(reader: &mut Reader<'_>, node: &Node<'_>, last: bool, at: usize, scope: &Scope<'_>) -> Option<Catcher> {
    reader.checker.object(node)?;
    let known: &[&str] = match scope.language {
        QueryLanguage::JsonPath => &["ErrorEquals", "Next", "ResultPath", "Assign", "Comment"],
        QueryLanguage::Jsonata => &["ErrorEquals", "Next", "Output", "Assign", "Comment"],
    };
    check_members(&mut reader.checker, node, "a catcher", known);
    let errors = errors(reader, node, "catcher", last);
    let next = match node.get("Next") {
        Some(field) => reader.target(&field, scope),
        None => {
            reader.checker.report(
                node,
                "a catcher needs \"Next\"",
                Some("give the name of the state that handles the error".to_owned()),
            );
            None
        }
    };
    let assign = assign(reader, node.get("Assign"), &format!("Catch[{at}]/Assign"), scope);
    let result_path =
        result_path(&mut reader.checker, node.get("ResultPath").filter(|_| scope.language == QueryLanguage::JsonPath));
    let output = match scope.language {
        QueryLanguage::JsonPath => Some(None),
        QueryLanguage::Jsonata => payload(reader, node.get("Output"), &format!("Catch[{at}]/Output"), scope.language),
    };
    Some(Catcher { errors: errors?, next: next?, result_path: result_path?, assign: assign?, output: output? })
}

/// `ErrorEquals`.
fn errors(reader: &mut Reader<'_>, node: &Node<'_>, of: &str, last: bool) -> Option<Vec<Arc<str>>> {
    let Some(field) = node.get("ErrorEquals") else {
        reader.checker.report(
            node,
            format!("a {of} needs \"ErrorEquals\""),
            Some("give an array of error names, such as [\"States.ALL\"]".to_owned()),
        );
        return None;
    };
    let given = reader.checker.filled_array(&field, "error name")?;
    let mut names = Vec::with_capacity(given.len());
    for node in field.elements() {
        let Some(name) = reader.checker.string(&node) else { continue };
        if name.starts_with("States.") && !name.starts_with("States.Http.") && !RESERVED.contains(&name) {
            let help = reader
                .checker
                .suggestions
                .did_you_mean(name, RESERVED)
                .unwrap_or_else(|| "names that start with States. are reserved".to_owned());
            reader.checker.report(&node, format!("there is no error \"{}\"", shown(name)), Some(help));
        } else if name == ALL && given.len() > 1 {
            reader.checker.report(
                &node,
                "\"States.ALL\" stands alone in \"ErrorEquals\"",
                Some("remove the other names".to_owned()),
            );
        } else if name == ALL && !last {
            let message = format!("the {of} with \"States.ALL\" is the last one");
            reader.checker.report(&node, message, Some(format!("move the {of} to the end")));
        }
        names.push(Arc::from(name));
    }
    (names.len() == given.len()).then_some(names)
}
