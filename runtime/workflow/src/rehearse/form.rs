//! A test file's values with their paths, and the problems found so far.

use serde_json::Value;

use super::limits::PROBLEMS_MAX;
use super::place::{Places, element, member};
use super::problem::Problem;

/// A value of the test file, and its path.
#[derive(Clone)]
pub(super) struct Node<'a> {
    pub(super) value: &'a Value,
    pub(super) path: String,
}

impl<'a> Node<'a> {
    /// The member `key` of an object.
    pub(super) fn get(&self, key: &str) -> Option<Node<'a>> {
        self.value.get(key).map(|value| Node { value, path: member(&self.path, key) })
    }

    /// The members of an object.
    pub(super) fn members(&self) -> impl Iterator<Item = (&'a str, Node<'a>)> {
        let members = self.value.as_object().into_iter().flatten();
        members.map(|(key, value)| (key.as_str(), Node { value, path: member(&self.path, key) }))
    }

    /// The elements of an array.
    pub(super) fn elements(&self) -> impl Iterator<Item = Node<'a>> {
        let elements = self.value.as_array().into_iter().flatten().enumerate();
        elements.map(|(index, value)| Node { value, path: element(&self.path, index) })
    }
}

/// Collects problems, each with its place.
pub(super) struct Form<'p> {
    places: &'p Places,
    /// With their offsets, by which they are ordered in the end.
    problems: Vec<(usize, Problem)>,
}

impl<'p> Form<'p> {
    pub(super) const fn new(places: &'p Places) -> Self {
        Self { places, problems: Vec::new() }
    }

    /// A problem with what lies at a path.
    pub(super) fn report(&mut self, path: &str, message: impl Into<String>, help: Option<String>) {
        self.report_at(self.places.offset(path), path, message.into(), help);
    }

    /// A problem at an offset of the text.
    pub(super) fn report_at(&mut self, offset: usize, path: &str, message: String, help: Option<String>) {
        // Those that are dropped in the end are the last in the text: enough are kept to choose from.
        if self.problems.len() < 8 * PROBLEMS_MAX {
            let (line, column) = self.places.line_and_column(offset);
            self.problems.push((offset, Problem { line, column, path: path.to_owned(), message, help }));
        }
    }

    /// The problems in the order of the text.
    pub(super) fn into_problems(mut self) -> Vec<Problem> {
        self.problems.sort_by_key(|(offset, _)| *offset);
        self.problems.truncate(PROBLEMS_MAX);
        self.problems.into_iter().map(|(_, problem)| problem).collect()
    }

    /// Whether a value is an object with known keys only; problems otherwise.
    pub(super) fn object(&mut self, node: &Node<'_>, known: &[&str]) -> bool {
        if !node.value.is_object() {
            self.expected(node, "an object");
            return false;
        }
        for (key, member) in node.members() {
            if !known.contains(&key) {
                let help = nearest(key, known.iter().copied()).unwrap_or_else(|| format!("give one of {}", known.join(", ")));
                self.report(&member.path, "there is no such key here", Some(help));
            }
        }
        true
    }

    /// A string, or a problem.
    pub(super) fn string<'v>(&mut self, node: &Node<'v>) -> Option<&'v str> {
        let text = node.value.as_str();
        if text.is_none() {
            self.expected(node, "a string");
        }
        text
    }

    /// A whole number from zero, or a problem.
    pub(super) fn whole(&mut self, node: &Node<'_>) -> Option<u64> {
        let number = crate::definition::whole(node.value);
        if number.is_none() {
            self.expected(node, "a whole number from 0");
        }
        number
    }

    /// Seconds from zero in milliseconds, or a problem.
    pub(super) fn seconds_ms(&mut self, node: &Node<'_>, most: f64) -> Option<i64> {
        let seconds = node.value.as_f64().filter(|seconds| (0.0..=most).contains(seconds));
        if seconds.is_none() {
            self.expected(node, &format!("seconds from 0 to {most}"));
        }
        // Far below 2^53.
        seconds.map(|seconds| (seconds * 1_000.0).round() as i64)
    }

    /// A value is not what it should be.
    pub(super) fn expected(&mut self, node: &Node<'_>, what: &str) {
        self.report(&node.path, format!("expected {what}, found {}", briefly(node.value)), None);
    }
}

/// A scalar itself, or the kind of value.
fn briefly(value: &Value) -> String {
    match value {
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        scalar => super::difference::shown(scalar),
    }
}

/// Characters of a name for which a similar one is looked for.
const SUGGESTED_CHARS_MAX: usize = 80;
/// Names that a name is compared with.
const SUGGESTED_OF_MAX: usize = 1_000;

/// `did you mean "X"?`, if one of the known names is like the given one.
pub(super) fn nearest<'k>(given: &str, known: impl IntoIterator<Item = &'k str>) -> Option<String> {
    if given.chars().count() > SUGGESTED_CHARS_MAX {
        return None;
    }
    let folded = given.to_lowercase();
    let distances =
        known.into_iter().take(SUGGESTED_OF_MAX).map(|name| (strsim::damerau_levenshtein(&folded, &name.to_lowercase()), name));
    let near = distances.filter(|(distance, name)| *distance <= 1 + name.chars().count() / 4);
    near.min_by_key(|(distance, _)| *distance).map(|(_, name)| format!("did you mean \"{name}\"?"))
}
