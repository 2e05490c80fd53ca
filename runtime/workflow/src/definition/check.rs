//! The reader's place in the document, and the mistakes found so far.

use std::fmt::Write;

use serde_json::{Map, Value};

use super::limits::MISTAKES_MAX;
use super::mistake::{Mistake, Suggestions, shown};
use super::span::{Span, Step, line_and_column};

/// A value of the document, and the path to it.
#[derive(Clone)]
pub(crate) struct Node<'a> {
    pub(crate) value: &'a Value,
    pub(crate) path: Vec<Step>,
}

impl<'a> Node<'a> {
    /// The member `name` of an object.
    pub(crate) fn get(&self, name: &str) -> Option<Node<'a>> {
        let value = self.value.get(name)?;
        Some(Node { value, path: self.to(Step::Key(name.into())) })
    }

    /// The elements of an array.
    pub(crate) fn elements(&self) -> impl Iterator<Item = Node<'a>> {
        let elements = self.value.as_array().map_or(&[][..], Vec::as_slice);
        elements.iter().enumerate().map(|(index, value)| Node { value, path: self.to(Step::Index(index)) })
    }

    /// The members of an object.
    pub(crate) fn members(&self) -> impl Iterator<Item = (&'a str, Node<'a>)> {
        self.value
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, value)| (name.as_str(), Node { value, path: self.to(Step::Key(name.as_str().into())) }))
    }

    fn to(&self, step: Step) -> Vec<Step> {
        let mut path = Vec::with_capacity(self.path.len() + 1);
        path.extend_from_slice(&self.path);
        path.push(step);
        path
    }
}

/// Collects mistakes, each with its place in the text.
pub(crate) struct Checker<'a> {
    text: &'a str,
    spans: &'a Span,
    /// By their offsets, from which lines and columns are found in the end.
    mistakes: Vec<(usize, Mistake)>,
    pub(crate) suggestions: Suggestions,
}

impl<'a> Checker<'a> {
    pub(crate) fn new(text: &'a str, spans: &'a Span) -> Self {
        Self { text, spans, mistakes: Vec::new(), suggestions: Suggestions::new() }
    }

    /// A mistake in a value.
    pub(crate) fn report(&mut self, node: &Node<'_>, message: impl Into<String>, help: Option<String>) {
        self.report_at(self.spans.offset(&node.path, false), &node.path, message.into(), help);
    }

    /// A mistake in the key of a member.
    pub(crate) fn report_key(&mut self, node: &Node<'_>, message: impl Into<String>, help: Option<String>) {
        self.report_at(self.spans.offset(&node.path, true), &node.path, message.into(), help);
    }

    /// A mistake at an offset of the text.
    pub(crate) fn report_at(&mut self, offset: usize, path: &[Step], message: String, help: Option<String>) {
        // Those that are dropped in the end are the last in the text: enough are kept to choose from.
        if self.mistakes.len() < 8 * MISTAKES_MAX {
            let mistake = Mistake { line: 0, column: 0, path: written(path), state: state_of(path), message, help };
            self.mistakes.push((offset, mistake));
        }
    }

    /// The mistakes in the order of the text.
    pub(crate) fn into_mistakes(mut self) -> Vec<Mistake> {
        self.mistakes.sort_by_key(|(offset, _)| *offset);
        self.mistakes.truncate(MISTAKES_MAX);
        let text = self.text;
        let placed = self.mistakes.into_iter().map(|(offset, mistake)| {
            let (line, column) = line_and_column(text, offset);
            Mistake { line, column, ..mistake }
        });
        placed.collect()
    }

    /// An object, or a mistake.
    pub(crate) fn object<'v>(&mut self, node: &Node<'v>) -> Option<&'v Map<String, Value>> {
        let object = node.value.as_object();
        if object.is_none() {
            self.report(node, format!("expected an object, found {}", kind_of(node.value)), None);
        }
        object
    }

    /// An array with at least one element, or a mistake.
    pub(crate) fn filled_array<'v>(&mut self, node: &Node<'v>, of: &str) -> Option<&'v Vec<Value>> {
        match node.value.as_array() {
            Some(elements) if !elements.is_empty() => Some(elements),
            Some(_) => {
                self.report(node, "the array is empty", Some(format!("give at least one {of}")));
                None
            }
            None => {
                self.report(node, format!("expected an array of {of}s, found {}", kind_of(node.value)), None);
                None
            }
        }
    }

    /// A string, or a mistake.
    pub(crate) fn string<'v>(&mut self, node: &Node<'v>) -> Option<&'v str> {
        let text = node.value.as_str();
        if text.is_none() {
            self.report(node, format!("expected a string, found {}", kind_of(node.value)), None);
        }
        text
    }

    /// A whole number from `least` to `most`, or a mistake.
    pub(crate) fn integer(&mut self, node: &Node<'_>, least: u64, most: u64) -> Option<u64> {
        let number = whole(node.value).filter(|number| (least..=most).contains(number));
        if number.is_none() {
            self.report(node, format!("expected a whole number from {least} to {most}, found {}", briefly(node.value)), None);
        }
        number
    }
}

/// A number without a fraction that is not negative: `3` and `3.0` both.
pub(crate) fn whole(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => number.as_u64().or_else(|| {
            let float = number.as_f64()?;
            // Exact below 2^53.
            (float >= 0.0 && float.fract() == 0.0 && float < 9_007_199_254_740_992.0).then_some(float as u64)
        }),
        _ => None,
    }
}

/// `a string`, `an object` and so on, for messages.
pub(crate) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// A scalar itself, or the kind of value, for messages.
pub(crate) fn briefly(value: &Value) -> String {
    match value {
        Value::String(text) => format!("\"{}\"", shown(text)),
        Value::Array(_) | Value::Object(_) => kind_of(value).to_owned(),
        scalar => scalar.to_string(),
    }
}

/// `States.A.Branches[0]`: as a person writes it.
pub(crate) fn written(path: &[Step]) -> String {
    let mut out = String::new();
    for step in path {
        match step {
            Step::Key(name) => {
                if !out.is_empty() {
                    out.push('.');
                }
                out.push_str(&shown(name));
            }
            Step::Index(index) => {
                // Writing to a String does not fail.
                let _ = write!(out, "[{index}]");
            }
        }
    }
    out
}

/// The innermost state on a path: the last key that follows `States` where a machine may stand.
fn state_of(path: &[Step]) -> Option<String> {
    let mut state = None;
    let mut rest = path;
    while let [Step::Key(states), Step::Key(name), tail @ ..] = rest {
        if &**states != "States" {
            break;
        }
        state = Some(name.to_string());
        rest = match tail {
            [Step::Key(field), Step::Index(_), tail @ ..] if &**field == "Branches" => tail,
            [Step::Key(field), tail @ ..] if matches!(&**field, "ItemProcessor" | "Iterator") => tail,
            _ => break,
        };
    }
    state
}
