//! Compares what was recorded with what the machine made of it.

use std::collections::HashMap;

use regex_lite::Regex;
use serde_json::Value;

use super::replay::Replayed;
use super::scope::Scope;
use super::suite::{Execution, parsed};

/// What a comparison found.
pub(crate) enum Verdict {
    /// The end is the same; events are not compared.
    EqualEnd,
    /// All events are the same.
    Equal,
    /// The end is the same, but events differ: the first difference.
    Events(String),
    /// The end differs.
    Output(String),
}

/// Members of events that this server does not have: regions and roles of other accounts are AWS's own.
const NOT_HERE: [&str; 3] = ["timestamp", "region", "taskCredentials"];

/// Members of events that name what a stand-in stands for.
const RESOURCE: [&str; 2] = ["resource", "resourceType"];

/// Compares an execution.
pub(crate) fn compare(execution: &Execution, scope: &Scope, replayed: &Replayed) -> Verdict {
    let own = |value: &Value| Own { replaced: &execution.replaced }.of(value);
    let names = Names::masked(&execution.masked);
    // A recording may stop before the execution has ended.
    let whole = !execution.end.is_null();
    if whole && let Err(difference) = names.clone().same("", &document(&execution.end), &document(&own(&replayed.end))) {
        return Verdict::Output(difference);
    }
    if matches!(scope, Scope::End) {
        return Verdict::EqualEnd;
    }
    let left_out: &[&str] = if matches!(scope, Scope::StandIn) { &RESOURCE } else { &[] };
    let expected: Vec<Value> = execution.events.iter().map(|expected| event(expected, left_out)).collect();
    let most = if whole { usize::MAX } else { expected.len() };
    let found: Vec<Value> = replayed.events.iter().take(most).map(|found| event(&own(found), left_out)).collect();
    let compared = if expected.iter().any(|event| event["id"].is_array()) {
        without_numbers(&names, &expected, &found)
    } else {
        in_order(names, &expected, &found)
    };
    match compared {
        Ok(()) => Verdict::Equal,
        Err(difference) => Verdict::Events(difference),
    }
}

fn in_order(mut names: Names, expected: &[Value], found: &[Value]) -> Result<(), String> {
    for (at, (expected, found)) in expected.iter().zip(found).enumerate() {
        names.same(&format!("#{}", at + 1), expected, found)?;
    }
    if expected.len() == found.len() { Ok(()) } else { Err(format!("{} events, not {}", found.len(), expected.len())) }
}

/// Recordings of Parallel have no numbers in branches: their events are sorted by type, and some of the end of the state are left out.
fn without_numbers(names: &Names, expected: &[Value], found: &[Value]) -> Result<(), String> {
    let mut found: Vec<&Value> = found.iter().collect();
    for event in expected {
        let numbered = event["id"].is_u64();
        let mut wanted = event.clone();
        let place = found.iter().position(|other| {
            let mut other = (*other).clone();
            if !numbered {
                for name in ["id", "previousEventId"] {
                    wanted[name] = Value::Null;
                    other[name] = Value::Null;
                }
            }
            names.clone().same("", &wanted, &other).is_ok()
        });
        match place {
            Some(place) => drop(found.remove(place)),
            None => return Err(format!("there is no {event}")),
        }
    }
    let left_out = ["ParallelStateSucceeded", "ParallelStateFailed", "ParallelStateExited"];
    let more = found.iter().find(|event| event["type"].as_str().is_none_or(|kind| !left_out.contains(&kind)));
    more.map_or(Ok(()), |event| Err(format!("there is also {event}")))
}

/// An event in the form in which it is compared: texts that hold documents are documents.
fn event(event: &Value, left_out: &[&str]) -> Value {
    let mut event = event.clone();
    for (name, value) in event.as_object_mut().into_iter().flatten() {
        if let Some(details) = value.as_object_mut().filter(|_| name.ends_with("EventDetails")) {
            details.retain(|name, _| !NOT_HERE.contains(&name.as_str()) && !left_out.contains(&name.as_str()));
            details.values_mut().for_each(|value| *value = document(value));
        }
    }
    if let Some(members) = event.as_object_mut() {
        members.retain(|name, _| !NOT_HERE.contains(&name.as_str()));
        // An event without details may have an empty object.
        members.retain(|_, value| value.as_object().is_none_or(|details| !details.is_empty()));
    }
    event
}

fn document(value: &Value) -> Value {
    match canonical(&parsed(value)) {
        Value::Object(members) => {
            Value::Object(members.into_iter().map(|(name, value)| (name, canonical(&parsed(&value)))).collect())
        }
        other => other,
    }
}

/// A value whose texts that hold objects or arrays are these: so snapshots keep them.
pub(crate) fn canonical(value: &Value) -> Value {
    match value {
        Value::String(text) if text.trim_start().starts_with(['{', '[']) => match serde_json::from_str(text) {
            Ok(document) => canonical(&document),
            Err(_) => value.clone(),
        },
        Value::Array(elements) => Value::Array(elements.iter().map(canonical).collect()),
        Value::Object(members) => Value::Object(members.iter().map(|(name, value)| (name.clone(), canonical(value))).collect()),
        _ => value.clone(),
    }
}

/// Our values with the snapshot's names.
struct Own<'e> {
    replaced: &'e [(String, String)],
}

impl Own<'_> {
    fn of(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => {
                let mut text = text.replace("arn:aws:", "arn:<partition>:").replace("us-east-1", "<region>");
                for (from, to) in self.replaced {
                    text = text.replace(from.as_str(), to);
                }
                Value::String(text)
            }
            Value::Array(elements) => Value::Array(elements.iter().map(|element| self.of(element)).collect()),
            Value::Object(members) => Value::Object(members.iter().map(|(name, value)| (name.clone(), self.of(value))).collect()),
            _ => value.clone(),
        }
    }
}

/// What placeholders stand for.
#[derive(Clone, Default)]
pub(crate) struct Names {
    known: HashMap<String, String>,
    masked: Vec<String>,
}

impl Names {
    /// With texts that stand for any value.
    pub(crate) fn masked(masked: &[String]) -> Self {
        Self { known: HashMap::new(), masked: masked.to_vec() }
    }

    /// Whether a value is what was expected; else the first difference.
    pub(crate) fn same(&mut self, path: &str, expected: &Value, found: &Value) -> Result<(), String> {
        let differ = || Err(format!("{path}: {found}, not {expected}"));
        match (expected, found) {
            (Value::Object(expected), Value::Object(found)) => {
                for (name, value) in expected {
                    match found.get(name) {
                        Some(found) => self.same(&format!("{path}/{name}"), value, found)?,
                        None => return Err(format!("{path}/{name}: missing, not {value}")),
                    }
                }
                match found.iter().find(|(name, _)| !expected.contains_key(*name)) {
                    Some((name, value)) => Err(format!("{path}/{name}: {value}, not missing")),
                    None => Ok(()),
                }
            }
            (Value::Array(expected), Value::Array(found)) if expected.len() == found.len() => expected
                .iter()
                .zip(found)
                .enumerate()
                .try_for_each(|(at, (expected, found))| self.same(&format!("{path}[{at}]"), expected, found)),
            (Value::String(expected), Value::String(found)) if self.same_text(expected, found) => Ok(()),
            (Value::String(expected), _) if self.masked.contains(expected) => Ok(()),
            _ if expected == found => Ok(()),
            _ => differ(),
        }
    }

    fn same_text(&mut self, expected: &str, found: &str) -> bool {
        if expected == found {
            return true;
        }
        if matches!(expected, "timestamp" | "date" | "datetime") {
            return found.contains('-');
        }
        let placeholder = Regex::new(r"<<[^<>\s]+>:[0-9]+>|<[A-Za-z][^<>\s]*>").expect("a pattern");
        let (mut pattern, mut names, mut rest) = (String::from("(?s)^"), Vec::new(), 0);
        for mark in placeholder.find_iter(expected) {
            pattern.push_str(&regex_lite::escape(&expected[rest..mark.start()]));
            pattern.push_str("(.+?)");
            names.push(mark.as_str().to_owned());
            rest = mark.end();
        }
        if names.is_empty() {
            return false;
        }
        pattern.push_str(&regex_lite::escape(&expected[rest..]));
        pattern.push('$');
        let Some(parts) = Regex::new(&pattern).ok().and_then(|pattern| pattern.captures(found)) else { return false };
        names.into_iter().zip(parts.iter().skip(1)).all(|(name, part)| {
            let part = part.map_or("", |part| part.as_str());
            self.known.entry(name).or_insert_with(|| part.to_owned()) == part
        })
    }
}
