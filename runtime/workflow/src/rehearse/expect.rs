//! What a case expects, and what of it has not come true.

use serde_json::Value;

use super::difference::{differences, shown};
use super::event::{self, Noteds, Wanted};
use super::form::{Form, Node};
use super::limits::AFTER_SECONDS_MAX;

/// The names of how an execution ends, as Step Functions has them.
const STATUSES: [&str; 4] = ["SUCCEEDED", "FAILED", "TIMED_OUT", "ABORTED"];

/// What a case expects. What is none is not compared.
#[derive(Debug, Default)]
pub(super) struct Expect {
    output: Option<Value>,
    error: Option<String>,
    cause: Option<String>,
    status: Option<String>,
    elapsed_ms: Option<i64>,
    next: Option<Option<String>>,
    history: Option<Vec<String>>,
    calls: Vec<(String, u64)>,
    events: Vec<(String, Vec<Wanted>)>,
    /// The states that it names, each with its path.
    pub(super) states: Vec<(String, String)>,
}

/// How a case ended.
#[derive(Debug)]
pub(super) struct Ending {
    pub(super) status: &'static str,
    pub(super) output: Option<Value>,
    pub(super) error: Option<String>,
    pub(super) cause: Option<String>,
    /// Of a state alone: the state after it; none at the end.
    pub(super) next: Option<String>,
}

/// What was seen of a case besides its end.
pub(super) struct Seen<'s> {
    pub(super) elapsed_ms: i64,
    pub(super) history: &'s [&'static str],
    pub(super) events: &'s Noteds,
    pub(super) calls: &'s dyn Fn(&str) -> u64,
}

/// Reads `expect`; `alone` if the case is about one state.
pub(super) fn read(form: &mut Form<'_>, node: &Node<'_>, alone: bool) -> Option<Expect> {
    let known = ["output", "error", "cause", "status", "elapsed_s", "next", "history", "events", "calls"];
    if !form.object(node, &known) {
        return None;
    }
    let mut expect = Expect {
        output: node.get("output").map(|output| output.value.clone()),
        error: node.get("error").and_then(|error| form.string(&error).map(str::to_owned)),
        cause: node.get("cause").and_then(|cause| form.string(&cause).map(str::to_owned)),
        elapsed_ms: node.get("elapsed_s").and_then(|elapsed| form.seconds_ms(&elapsed, AFTER_SECONDS_MAX)),
        ..Expect::default()
    };
    if let Some(status) = node.get("status") {
        expect.status = form.string(&status).map(str::to_owned);
        if expect.status.as_deref().is_some_and(|status| !STATUSES.contains(&status)) {
            form.expected(&status, &format!("one of {}", STATUSES.join(", ")));
        }
    }
    read_states(form, node, alone, &mut expect);
    let says = known.iter().any(|key| {
        node.get(key).is_some_and(|value| !matches!(*key, "calls" | "events") || value.value != &serde_json::json!({}))
    });
    if !says {
        let help = format!("give at least one of {}", known.join(", "));
        form.report(&node.path, "nothing is expected: the case cannot fail", Some(help));
    }
    if let (Some(_), Some(error)) = (node.get("output"), node.get("error").or(node.get("cause"))) {
        let help = "an execution gives one or the other: remove one of them";
        form.report(&error.path, "an error beside an output", Some(help.to_owned()));
    }
    Some(expect)
}

/// `next`, `history`, `events` and `calls`: what is about states and events.
fn read_states(form: &mut Form<'_>, node: &Node<'_>, alone: bool, expect: &mut Expect) {
    if let Some(next) = node.get("next") {
        if !alone {
            let help = "give \"state\" in the case, or compare \"output\" or \"history\"";
            form.report(&next.path, "\"next\" is about a state alone", Some(help.to_owned()));
        }
        expect.next = match next.value {
            Value::Null => Some(None),
            Value::String(name) => {
                expect.states.push((next.path.clone(), name.clone()));
                Some(Some(name.clone()))
            }
            _ => {
                form.expected(&next, "the name of a state, or null for the end");
                None
            }
        };
    }
    if let Some(history) = node.get("history") {
        if !history.value.is_array() {
            form.expected(&history, "an array of types of events");
        }
        expect.history = history.elements().map(|kind| form.string(&kind).map(str::to_owned)).collect();
    }
    if let Some(events) = node.get("events") {
        expect.events = event::read(form, &events, &mut expect.states);
    }
    if let Some(calls) = node.get("calls") {
        if !calls.value.is_object() {
            form.expected(&calls, "an object of numbers by state");
        }
        for (state, count) in calls.members() {
            expect.states.push((count.path.clone(), state.to_owned()));
            expect.calls.extend(form.whole(&count).map(|count| (state.to_owned(), count)));
        }
    }
}

impl Expect {
    /// What has not come true.
    pub(super) fn compare(&self, ending: &Ending, seen: &Seen<'_>) -> Vec<String> {
        let mut out = Vec::new();
        self.compare_ending(ending, &mut out);
        if let Some(expected) = self.elapsed_ms.filter(|expected| *expected != seen.elapsed_ms) {
            out.push(format!("expected {} of virtual time, found {}", seconds(expected), seconds(seen.elapsed_ms)));
        }
        if let Some(expected) = self.next.as_ref().filter(|expected| **expected != ending.next) {
            let named = |name: &Option<String>| name.as_ref().map_or("the end".to_owned(), |name| format!("\"{name}\""));
            out.push(format!("expected {} to be next, found {}", named(expected), named(&ending.next)));
        }
        if let Some(expected) = &self.history {
            out.extend(history(expected, seen.history));
        }
        out.extend(event::compare(&self.events, seen.events));
        for (state, expected) in &self.calls {
            let found = (seen.calls)(state);
            if found != *expected {
                out.push(format!("expected {} of the task of \"{state}\", found {found}", times(*expected)));
            }
        }
        out
    }

    fn compare_ending(&self, ending: &Ending, out: &mut Vec<String>) {
        let failed = || {
            let texts: Vec<_> = ending.error.iter().chain(&ending.cause).map(String::as_str).collect();
            if texts.is_empty() { String::new() } else { format!(": {}", texts.join(": ")) }
        };
        // A case that says nothing of a failure expects success: otherwise one that fails early would pass by what it has not done.
        let silent = self.error.is_none() && self.cause.is_none() && self.history.is_none() && self.events.is_empty();
        let status = self.status.as_deref().or((silent || self.output.is_some()).then_some("SUCCEEDED"));
        if let Some(expected) = status.filter(|expected| *expected != ending.status) {
            out.push(format!("expected the status {expected}, found {}{}", ending.status, failed()));
            if expected == "SUCCEEDED" {
                return;
            }
        }
        if let Some(expected) = &self.output {
            match &ending.output {
                Some(found) => out.extend(differences(expected, found).into_iter().map(|line| format!("output: {line}"))),
                None => out.push(format!("expected an output, found {}{}", ending.status, failed())),
            }
        }
        for (what, expected, found) in [("error", &self.error, &ending.error), ("cause", &self.cause, &ending.cause)] {
            let Some(expected) = expected else { continue };
            if let (None, Some(output)) = (found, &ending.output) {
                out.push(format!("expected the {what} \"{expected}\", found the output {}", shown(output)));
            } else if Some(expected) != found.as_ref() {
                let found = found.as_ref().map_or("none".to_owned(), |found| format!("\"{found}\""));
                out.push(format!("expected the {what} \"{expected}\", found {found}"));
            }
        }
    }
}

/// Where two histories part.
fn history(expected: &[String], found: &[&str]) -> Option<String> {
    let at = (0..expected.len().max(found.len())).find(|at| expected.get(*at).map(String::as_str) != found.get(*at).copied())?;
    let named = |name: Option<&str>| name.unwrap_or("the end").to_owned();
    Some(format!(
        "history[{at}]: expected {}, found {}",
        named(expected.get(at).map(String::as_str)),
        named(found.get(at).copied())
    ))
}

fn seconds(ms: i64) -> String {
    format!("{} s", ms as f64 / 1_000.0)
}

fn times(count: u64) -> String {
    format!("{count} call{}", if count == 1 { "" } else { "s" })
}
