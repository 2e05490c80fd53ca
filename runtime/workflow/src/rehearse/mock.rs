//! Mocks: what tasks answer instead of functions, services and stores.

use serde_json::Value;

use super::form::{Form, Node};
use super::limits::{AFTER_SECONDS_MAX, BEATS_MAX, POSITION_MAX};
use crate::machine::Purpose;

/// The mocks of one state.
#[derive(Clone, Debug)]
pub(super) struct Mock {
    pub(super) state: String,
    /// The work of a Task, or what a Map asks the store for.
    pub(super) purpose: Purpose,
    /// Where it stands in the test file.
    pub(super) path: String,
    /// Never empty.
    replies: Vec<Reply>,
}

/// What one call answers.
#[derive(Clone, Debug)]
pub(super) struct Reply {
    /// The branches and iterations in which the call lies, from the outermost; none for calls of any.
    at: Option<Vec<u32>>,
    pub(super) after_ms: i64,
    /// How often the task gives a sign of life until it has answered.
    pub(super) beat_ms: Option<i64>,
    pub(super) answer: Answer,
}

/// An answer.
#[derive(Clone, Debug)]
pub(super) enum Answer {
    /// A result.
    Return(Value),
    /// An error.
    Error { error: String, cause: Option<String> },
    /// The task is taken on, and its callback gives this later.
    Callback(Box<Reply>),
    /// Nothing: the task times out, or is given up.
    Never,
}

impl Mock {
    /// The reply to a call at that position. `calls` is how many were answered before: by replies of that position, and by those of any.
    pub(super) fn reply(&self, position: &[u32], calls: (usize, usize)) -> Option<&Reply> {
        let own = self.replies.iter().filter(|reply| reply.at.as_deref() == Some(position));
        nth_or_last(own, calls.0).or_else(|| nth_or_last(self.replies.iter().filter(|reply| reply.at.is_none()), calls.1))
    }

    /// Whether it gives a callback at some call.
    pub(super) fn has_callback(&self) -> bool {
        self.replies.iter().any(|reply| matches!(reply.answer, Answer::Callback(_)))
    }
}

impl Reply {
    /// Whether it answers calls of one branch or iteration alone.
    pub(super) const fn is_placed(&self) -> bool {
        self.at.is_some()
    }
}

/// The element of that number; the last one where there are fewer.
fn nth_or_last<'r>(replies: impl Iterator<Item = &'r Reply>, number: usize) -> Option<&'r Reply> {
    replies.take(number.saturating_add(1)).last()
}

/// `mocks`: an object by state.
pub(super) fn read(form: &mut Form<'_>, node: &Node<'_>) -> Vec<Mock> {
    if !node.value.is_object() {
        form.expected(node, "an object of mocks by state");
        return Vec::new();
    }
    let mut mocks = Vec::new();
    for (state, node) in node.members() {
        let (reader, writer) = (node.get("ItemReader"), node.get("ResultWriter"));
        if reader.is_none() && writer.is_none() {
            mocks.extend(of(form, state, node, Purpose::Work));
            continue;
        }
        form.object(&node, &["ItemReader", "ResultWriter"]);
        for (node, purpose) in [(reader, Purpose::Read), (writer, Purpose::Write)] {
            mocks.extend(node.and_then(|node| of(form, state, node, purpose)));
        }
    }
    mocks
}

/// The replies for one purpose; none if they cannot be read.
fn of(form: &mut Form<'_>, state: &str, node: Node<'_>, purpose: Purpose) -> Option<Mock> {
    let replies: Vec<_> = match node.value {
        Value::Array(list) if list.is_empty() => {
            form.report(&node.path, "the list of mocks is empty", Some("give at least one, or remove the state".to_owned()));
            Vec::new()
        }
        Value::Array(_) => node.elements().filter_map(|node| reply(form, &node, true)).collect(),
        _ => reply(form, &node, true).into_iter().collect(),
    };
    (!replies.is_empty()).then(|| Mock { state: state.to_owned(), purpose, path: node.path, replies })
}

/// One reply; a callback holds another one, which holds none.
fn reply(form: &mut Form<'_>, node: &Node<'_>, outer: bool) -> Option<Reply> {
    let known: &[&str] = if outer {
        &["return", "error", "cause", "callback", "never", "after_s", "beat_s", "at"]
    } else {
        &["return", "error", "cause", "after_s"]
    };
    if !form.object(node, known) {
        return None;
    }
    let after_ms = match node.get("after_s") {
        Some(node) => form.seconds_ms(&node, AFTER_SECONDS_MAX),
        None => Some(0),
    };
    let beat_ms = match node.get("beat_s") {
        Some(node) => form.seconds_ms(&node, AFTER_SECONDS_MAX).map(Some),
        None => Some(None),
    };
    let at = node.get("at").map_or(Some(None), |node| position(form, &node).map(Some));
    let kinds: &[&str] = if outer { &["return", "error", "callback", "never"] } else { &["return", "error"] };
    let given: Vec<_> = kinds.iter().filter_map(|kind| node.get(kind)).collect();
    let [only] = given.as_slice() else {
        let help = format!("give one of {}", kinds.join(", "));
        let message = if given.is_empty() { "the mock says nothing" } else { "the mock says several things" };
        form.report(&node.path, message, Some(help));
        return None;
    };
    let answer = answer(form, node, only)?;
    let (after_ms, beat_ms) = (after_ms?, beat_ms?);
    let last_ms = after_ms.saturating_add(if let Answer::Callback(callback) = &answer { callback.after_ms } else { 0 });
    if beat_ms.is_some_and(|beat_ms| beat_ms <= 0 || last_ms / beat_ms > BEATS_MAX) {
        let path = super::place::member(&node.path, "beat_s");
        form.report(&path, format!("signs of life: none, or more than {BEATS_MAX}"), Some("give more seconds".to_owned()));
    }
    Some(Reply { at: at?, after_ms, beat_ms, answer })
}

/// What the mock `node` says by its member `only`.
fn answer(form: &mut Form<'_>, node: &Node<'_>, only: &Node<'_>) -> Option<Answer> {
    let cause = match node.get("cause") {
        Some(cause) if node.get("error").is_none() => {
            form.report(&cause.path, "a cause without an error", Some("add \"error\"".to_owned()));
            None
        }
        Some(cause) => Some(form.string(&cause)?.to_owned()),
        None => None,
    };
    Some(if node.get("return").is_some() {
        Answer::Return(only.value.clone())
    } else if node.get("error").is_some() {
        Answer::Error { error: form.string(only)?.to_owned(), cause }
    } else if node.get("never").is_some() {
        if *only.value != Value::Bool(true) {
            form.expected(only, "true");
        }
        Answer::Never
    } else {
        Answer::Callback(Box::new(reply(form, only, false)?))
    })
}

/// `at`: numbers of branches and iterations.
fn position(form: &mut Form<'_>, node: &Node<'_>) -> Option<Vec<u32>> {
    let list = node.value.as_array().filter(|list| list.len() <= POSITION_MAX);
    let numbers = list.and_then(|list| {
        let number = |value| crate::definition::whole(value).and_then(|number| u32::try_from(number).ok());
        list.iter().map(number).collect::<Option<Vec<_>>>()
    });
    if numbers.is_none() {
        form.expected(node, "an array of numbers of branches and iterations, from the outermost");
    }
    numbers
}
