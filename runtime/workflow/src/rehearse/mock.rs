//! Mocks: what tasks answer instead of functions and services.

use serde_json::Value;

use super::form::{Form, Node};
use super::limits::AFTER_SECONDS_MAX;

/// The mocks of one state.
#[derive(Clone, Debug)]
pub(super) struct Mock {
    pub(super) state: String,
    /// Where it stands in the test file.
    pub(super) path: String,
    /// One for each call; the last one is repeated. Never empty.
    replies: Vec<Reply>,
}

/// What one call answers.
#[derive(Clone, Debug)]
pub(super) struct Reply {
    pub(super) after_ms: i64,
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
}

impl Mock {
    /// The reply to a call, counted from zero.
    pub(super) fn reply(&self, call: usize) -> Option<&Reply> {
        self.replies.get(call).or(self.replies.last())
    }

    /// Whether it gives a callback at some call.
    pub(super) fn has_callback(&self) -> bool {
        self.replies.iter().any(|reply| matches!(reply.answer, Answer::Callback(_)))
    }
}

/// `mocks`: an object by state.
pub(super) fn read(form: &mut Form<'_>, node: &Node<'_>) -> Vec<Mock> {
    if !node.value.is_object() {
        form.expected(node, "an object of mocks by state");
        return Vec::new();
    }
    let mut mocks = Vec::new();
    for (state, node) in node.members() {
        let replies: Vec<_> = match node.value {
            Value::Array(list) if list.is_empty() => {
                form.report(&node.path, "the list of mocks is empty", Some("give at least one, or remove the state".to_owned()));
                Vec::new()
            }
            Value::Array(_) => node.elements().filter_map(|node| reply(form, &node, true)).collect(),
            _ => reply(form, &node, true).into_iter().collect(),
        };
        if !replies.is_empty() {
            mocks.push(Mock { state: state.to_owned(), path: node.path, replies });
        }
    }
    mocks
}

/// One reply; a callback holds another one, which holds none.
fn reply(form: &mut Form<'_>, node: &Node<'_>, outer: bool) -> Option<Reply> {
    let known: &[&str] =
        if outer { &["return", "error", "cause", "callback", "after_s"] } else { &["return", "error", "cause", "after_s"] };
    if !form.object(node, known) {
        return None;
    }
    let after_ms = match node.get("after_s") {
        Some(node) => form.seconds_ms(&node, AFTER_SECONDS_MAX),
        None => Some(0),
    };
    let kinds: &[&str] = if outer { &["return", "error", "callback"] } else { &["return", "error"] };
    let given: Vec<_> = kinds.iter().filter_map(|kind| node.get(kind)).collect();
    let [only] = given.as_slice() else {
        let help = format!("give one of {}", kinds.join(", "));
        let message = if given.is_empty() { "the mock says nothing" } else { "the mock says several things" };
        form.report(&node.path, message, Some(help));
        return None;
    };
    let cause = match node.get("cause") {
        Some(cause) if node.get("error").is_none() => {
            form.report(&cause.path, "a cause without an error", Some("add \"error\"".to_owned()));
            None
        }
        Some(cause) => Some(form.string(&cause)?.to_owned()),
        None => None,
    };
    let answer = if node.get("return").is_some() {
        Answer::Return(only.value.clone())
    } else if node.get("error").is_some() {
        Answer::Error { error: form.string(only)?.to_owned(), cause }
    } else {
        Answer::Callback(Box::new(reply(form, only, false)?))
    };
    Some(Reply { after_ms: after_ms?, answer })
}
