//! Tasks that are functions: the input is the request's body, the reply is the output.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde_json::{Value, json};
use sledge_workflow::definition::Resource;
use sledge_workflow::machine::{Failure, StartTask};

use super::failure::{failed, of_function, of_status};
use super::{Runner, Workflow, request};
use crate::invoke::Input;
use crate::invoke::function::Function;
use crate::invoke::urgency::Urgency;
use crate::memo::callees::Callees;
use crate::outcome;
use crate::reply::{Answer, Content, Reply, ReplyHead};
use crate::txn::Transaction;

/// Bytes of a reply that are taken: four times what a state may keep, so that a result which is cut down at once may be larger.
const REPLY_BYTES_MAX: usize = 1 << 20;
const OK: u16 = 200;
/// From this on a status says that the function has failed.
const ERRORS: u16 = 400;

/// A call of a function on behalf of a task.
#[derive(Debug)]
pub struct Call<'a> {
    /// What is called.
    pub function: &'a Arc<Function>,
    /// Its input.
    pub input: Input,
    /// When it has to be answered.
    pub deadline: Instant,
    /// The transaction that it is given: of which it is a part, or that was opened for it.
    pub joins: Option<Arc<Transaction>>,
    /// Whether it follows another of the same execution, whose turn goes on.
    pub follows: bool,
    /// Where it tells what it did, if that is wanted.
    pub tells: Option<Arc<Callees>>,
    /// Whether it is asked for, if it is begun ahead.
    pub urgency: Option<Arc<Urgency>>,
}

/// What a function is called with.
#[derive(Clone, Copy)]
pub(super) enum Given<'a> {
    /// That as its body.
    Json(&'a Value),
    /// A whole [request](super::request).
    Request(&'a Value),
}

/// A task that is a function: the function's name, its input, and what becomes of its reply.
pub(super) struct Asked<'a> {
    /// The function.
    pub name: &'a str,
    /// Its input.
    pub input: Given<'a>,
    /// Whether the reply is a part of the output, and not the output itself.
    pub is_wrapped: bool,
}

impl<'a> Asked<'a> {
    /// What a task calls, if it calls a function.
    pub(super) fn of(task: &'a StartTask) -> Option<Result<Asked<'a>, Failure>> {
        match &*task.resource {
            Resource::Function { name, .. } => Some(Ok(Asked::plain(name, &task.input))),
            Resource::LambdaInvoke { .. } => Some(Asked::invoke(&task.input)),
            _ => None,
        }
    }

    /// `fn:NAME`: the function's reply is the output.
    pub(super) fn plain(name: &'a str, input: &'a Value) -> Asked<'a> {
        Asked { name, input: Given::Json(input), is_wrapped: false }
    }

    /// `arn:aws:states:::lambda:invoke`: the function and its input are in the task's input, the reply is a part of the output. In place of `Payload`, the body, there may be `Request`, a whole
    /// [request](super::request).
    pub(super) fn invoke(input: &'a Value) -> Result<Asked<'a>, Failure> {
        let Some(name) = input["FunctionName"].as_str() else {
            return Err(failed("States.Runtime", "lambda:invoke needs FunctionName, a text"));
        };
        // A name, or an ARN with or without an alias.
        let name = match name.split(':').collect::<Vec<_>>().as_slice() {
            ["arn", _, "lambda", _, _, "function", name, ..] | [name, ..] => *name,
            [] => name,
        };
        let given = match (input.get("Request"), input.get("Payload")) {
            (None, payload) => Given::Json(payload.unwrap_or(&Value::Null)),
            (Some(request), None) => Given::Request(request),
            (Some(_), Some(_)) => return Err(failed("States.Runtime", "lambda:invoke takes Payload or Request, not both")),
        };
        Ok(Asked { name, input: given, is_wrapped: true })
    }

    /// The function that is served under that name.
    pub(super) fn find(&self, workflow: &Workflow) -> Result<Arc<Function>, Failure> {
        workflow.reach.functions.find(self.name).map_err(|failure| of_function(self.name, &failure))
    }

    /// What the function is given.
    pub(super) fn given(&self, function: &Function) -> Result<Input, Failure> {
        match self.input {
            // Values of JSON always serialise.
            Given::Json(json) => Ok(Input::of(serde_json::to_vec(json).unwrap_or_default().into())),
            Given::Request(request) => request::input(request, function),
        }
    }

    /// What a reply is as the task's output.
    pub(super) fn output(&self, replied: Replied) -> Result<Value, Failure> {
        output((self.name, self.is_wrapped), replied)
    }
}

/// What the reply of a function of that name is as a task's output; there it is a part of that, or all.
pub(super) fn output((name, is_wrapped): (&str, bool), replied: Replied) -> Result<Value, Failure> {
    let (status, output) = replied.map_err(|failure| of_function(name, &failure))?;
    match () {
        () if status >= ERRORS => Err(of_status(status, &output)),
        () if is_wrapped => Ok(json!({ "ExecutedVersion": "$LATEST", "Payload": output, "StatusCode": OK })),
        () => Ok(output),
    }
}

/// Whether the function was not called, and can be later.
pub(super) const fn has_no_room(failure: &outcome::Failure) -> bool {
    use outcome::Failure::{Busy, FunctionBusy, NoStore, Overload, Shed};
    matches!(failure, Busy | FunctionBusy | NoStore | Overload | Shed)
}

/// Whether one that nothing waits for may be called later: there was no room, no memory, or no time that was left by what is asked for.
pub(super) const fn may_run_later(failure: &outcome::Failure) -> bool {
    has_no_room(failure) || matches!(failure, outcome::Failure::Deadline | outcome::Failure::NoMemory)
}

/// The status of a function's reply, and the reply.
pub(super) type Replied = Result<(u16, Value), outcome::Failure>;

/// The same, and for how long the function ran or waited for something else than its turn.
pub(super) type Answered = (Replied, Duration);

/// A call that has begun.
pub(super) struct Begun<'a, R: Runner> {
    counted: Counted<'a, R>,
    answer: Answer,
}

/// Begins the call of a task.
pub(super) fn begin<'a, R: Runner>(
    workflow: &Workflow,
    runner: &'a R,
    asked: &Asked<'_>,
    (deadline, follows): (Instant, bool),
) -> Result<Begun<'a, R>, Failure> {
    let function = asked.find(workflow)?;
    let call =
        Call { function: &function, input: asked.given(&function)?, deadline, joins: None, follows, tells: None, urgency: None };
    Begun::begin(runner, call).map_err(|failure| of_function(asked.name, &failure))
}

impl<'a, R: Runner> Begun<'a, R> {
    pub(super) fn begin(runner: &'a R, call: Call<'_>) -> Result<Begun<'a, R>, outcome::Failure> {
        let function = Arc::clone(call.function);
        let mut counted = Counted { runner, function, is_counted: false };
        match runner.begin(call) {
            Ok(answer) => Ok(Begun { counted, answer }),
            Err(failure) => {
                counted.ended(Some(&failure));
                Err(failure)
            }
        }
    }

    /// What was replied, if all of that is there.
    pub(super) fn at_once(&mut self) -> Option<Answered> {
        let Reply { result, head, record, .. } = self.answer.take_whole()?;
        let bytes = result.and_then(|content| match content {
            Content::Whole(bytes) => bounded(bytes),
            Content::Pieces(pieces) => bounded(pieces.join()),
            Content::Stream(_) => Err(outcome::Failure::Internal),
        });
        Some((self.counted.replied(head.as_deref(), bytes), record.worked()))
    }

    /// What is replied.
    pub(super) async fn replied(self) -> Answered {
        let Begun { mut counted, answer } = self;
        let (head, bytes, worked) = match answer.reply().await {
            Ok(Reply { result: Ok(content), head, record, .. }) => (head, whole(content).await, record.worked()),
            Ok(Reply { result: Err(failure), record, .. }) => (None, Err(failure), record.worked()),
            Err(failure) => (None, Err(failure), Duration::ZERO),
        };
        (counted.replied(head.as_deref(), bytes), worked)
    }
}

/// What is replied to a call.
pub(super) async fn replied(runner: &impl Runner, call: Call<'_>) -> Replied {
    Begun::begin(runner, call)?.replied().await.0
}

/// A call that is counted when it ends, and also when it is given up.
struct Counted<'a, R: Runner> {
    runner: &'a R,
    function: Arc<Function>,
    is_counted: bool,
}

impl<R: Runner> Counted<'_, R> {
    /// All of a reply is there, or none comes.
    fn replied(&mut self, head: Option<&ReplyHead>, bytes: Result<Bytes, outcome::Failure>) -> Replied {
        self.ended(bytes.as_ref().err());
        bytes.map(|bytes| (head.map_or(OK, |head| head.status.as_u16()), value(&bytes)))
    }

    fn ended(&mut self, failure: Option<&outcome::Failure>) {
        self.is_counted = true;
        self.runner.ended(&self.function, failure);
    }
}

impl<R: Runner> Drop for Counted<'_, R> {
    fn drop(&mut self) {
        if !self.is_counted {
            self.ended(Some(&outcome::Failure::Cancelled));
        }
    }
}

/// All of a reply.
async fn whole(content: Content) -> Result<Bytes, outcome::Failure> {
    let bytes = match content {
        Content::Whole(bytes) => bytes,
        Content::Pieces(pieces) => pieces.join(),
        Content::Stream(mut stream) => {
            let mut all = Vec::new();
            while let Some(piece) = stream.next().await {
                all.extend_from_slice(&piece?);
                if all.len() > REPLY_BYTES_MAX {
                    return Err(outcome::Failure::ReplyTooLarge);
                }
            }
            all.into()
        }
    };
    bounded(bytes)
}

fn bounded(bytes: Bytes) -> Result<Bytes, outcome::Failure> {
    if bytes.len() > REPLY_BYTES_MAX { Err(outcome::Failure::ReplyTooLarge) } else { Ok(bytes) }
}

/// A reply as a value: JSON as what it is, nothing as null, anything else as a text.
fn value(bytes: &[u8]) -> Value {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Value::Null;
    }
    serde_json::from_slice(bytes).unwrap_or_else(|_| Value::String(String::from_utf8_lossy(bytes).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_json_or_nothing_or_a_text() {
        assert_eq!(value(br#" {"a": [1, null]} "#), json!({ "a": [1, null] }));
        assert_eq!((value(b""), value(b" \n")), (Value::Null, Value::Null));
        assert_eq!((value(b"12"), value(b"12 apples")), (json!(12), json!("12 apples")));
        assert_eq!(value(b"\xff"), json!("\u{fffd}"));
    }
}
