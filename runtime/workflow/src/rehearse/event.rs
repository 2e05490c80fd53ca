//! `expect.events`: the events of each branch and iteration in their order, whatever the order among branches.
//!
//! ```text
//!   "events": { "top": ["ExecutionStarted", "MapStateEntered Each", {"type": "MapStateExited", "state": "Each", "output": [...]}], "Each[0]": [...] }
//! ```
//!
//! Events that only say that something beside was given up (`...Aborted`) are left out: when these come depends on what runs beside.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::difference::{cut, differences};
use super::form::{Form, Node};
use super::limits::{PLACES_TOLD_MAX, VALUE_CHARS_MAX};
use crate::machine::HistoryKind;

/// An event that was seen.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Noted {
    pub(super) kind: &'static str,
    /// The state that it names.
    pub(super) state: Option<Arc<str>>,
    pub(super) output: Option<Arc<Value>>,
}

/// An event that is expected.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Wanted {
    pub(super) kind: String,
    pub(super) state: Option<String>,
    pub(super) output: Option<Value>,
}

/// Events by place, in their order.
pub(super) type Noteds = BTreeMap<String, Vec<Noted>>;

/// Whether events of that type are among those by place.
pub(super) fn is_kept(kind: HistoryKind) -> bool {
    kind == HistoryKind::ExecutionAborted || !kind.name().ends_with("Aborted")
}

/// Reads `events`, and notes the states that it names.
pub(super) fn read(form: &mut Form<'_>, node: &Node<'_>, states: &mut Vec<(String, String)>) -> Vec<(String, Vec<Wanted>)> {
    if !node.value.is_object() {
        form.expected(node, "an object of arrays by branch: \"top\", \"State[0]\"");
    }
    let mut all = Vec::new();
    for (place, list) in node.members() {
        if !list.value.is_array() {
            form.expected(&list, "an array of events");
        }
        let wanted = list.elements().filter_map(|event| wanted(form, &event, states));
        all.push((place.to_owned(), wanted.collect()));
    }
    all
}

fn wanted(form: &mut Form<'_>, node: &Node<'_>, states: &mut Vec<(String, String)>) -> Option<Wanted> {
    let wanted = if let Some(text) = node.value.as_str() {
        let (kind, state) = text.split_once(' ').map_or((text, None), |(kind, state)| (kind, Some(state.to_owned())));
        Wanted { kind: kind.to_owned(), state, output: None }
    } else {
        if !form.object(node, &["type", "state", "output"]) {
            return None;
        }
        let Some(kind) = node.get("type") else {
            form.report(&node.path, "\"type\" is missing", Some("give the type of the event".to_owned()));
            return None;
        };
        let state = node.get("state").and_then(|state| form.string(&state).map(str::to_owned));
        let output = node.get("output").map(|output| output.value.clone());
        Wanted { kind: form.string(&kind)?.to_owned(), state, output }
    };
    if HistoryKind::named(&wanted.kind).is_none() {
        let shown = cut(&wanted.kind, VALUE_CHARS_MAX);
        form.report(
            &node.path,
            format!("there is no event \"{shown}\""),
            Some("give a type such as TaskStateEntered".to_owned()),
        );
    }
    states.extend(wanted.state.iter().map(|state| (node.path.clone(), state.clone())));
    Some(wanted)
}

impl Wanted {
    /// As a test file has it.
    pub(super) fn to_json(&self) -> Value {
        match (&self.state, &self.output) {
            (None, None) => json!(self.kind),
            (Some(state), None) => json!(format!("{} {state}", self.kind)),
            (None, Some(output)) => json!({ "type": self.kind, "output": output }),
            (Some(state), Some(output)) => json!({ "type": self.kind, "state": state, "output": output }),
        }
    }

    /// Whether that is the event, whatever its output.
    pub(super) fn is(&self, noted: &Noted) -> bool {
        self.kind == noted.kind && (self.state.is_none() || self.state.as_deref() == noted.state.as_deref())
    }

    fn name(&self) -> String {
        named(&self.kind, self.state.as_deref())
    }
}

fn named(kind: &str, state: Option<&str>) -> String {
    state.map_or_else(|| kind.to_owned(), |state| format!("{kind} \"{}\"", cut(state, VALUE_CHARS_MAX)))
}

/// Where the events of each place part, and what outputs differ before that.
pub(super) fn compare(expected: &[(String, Vec<Wanted>)], found: &Noteds) -> Vec<String> {
    let mut out = Vec::new();
    for (place, wanted) in expected {
        if out.len() >= PLACES_TOLD_MAX {
            out.push("there are more differences of events".to_owned());
            break;
        }
        let noted = found.get(place).map(Vec::as_slice).unwrap_or_default();
        out.extend(differing_output(place, wanted, noted));
        let parts = (0..wanted.len().max(noted.len())).find(|at| match (wanted.get(*at), noted.get(*at)) {
            (Some(wanted), Some(noted)) => !wanted.is(noted),
            _ => true,
        });
        if let Some(at) = parts {
            let end = || "the end".to_owned();
            let wanted = wanted.get(at).map_or_else(end, Wanted::name);
            let noted = noted.get(at).map_or_else(end, |noted| named(noted.kind, noted.state.as_deref()));
            out.push(format!("events.{place}[{at}]: expected {wanted}, found {noted}"));
        }
    }
    out
}

/// The first output of a place that differs: those behind it mostly do since it does.
fn differing_output(place: &str, wanted: &[Wanted], noted: &[Noted]) -> Vec<String> {
    for (at, (wanted, noted)) in wanted.iter().zip(noted).enumerate() {
        if !wanted.is(noted) {
            return Vec::new();
        }
        let Some(expected) = &wanted.output else { continue };
        let found = noted.output.as_deref().unwrap_or(&Value::Null);
        let differ = differences(expected, found);
        if !differ.is_empty() {
            return differ.into_iter().map(|line| format!("events.{place}[{at}]: {}: output: {line}", wanted.name())).collect();
        }
    }
    Vec::new()
}
