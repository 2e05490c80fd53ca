//! Tasks that are functions: the input is the request's body, the reply is the output.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use serde_json::{Value, json};
use sledge_workflow::machine::Failure;

use super::failure::{failed, of_function, of_status};
use super::{Runner, Workflow, request};
use crate::invoke::Input;
use crate::invoke::function::Function;
use crate::outcome;
use crate::reply::{Content, Reply};
use crate::txn::Transaction;

/// Bytes of a reply that are taken: four times what a state may keep, so that a result which is cut down at once may be larger.
const REPLY_BYTES_MAX: usize = 1 << 20;
const OK: u16 = 200;
/// From this on a status says that the function has failed.
const ERRORS: u16 = 400;

/// A call of a function on behalf of a task.
pub(super) struct Call<'a> {
    /// What is called.
    pub function: &'a Arc<Function>,
    /// Its input.
    pub input: Input,
    /// When it has to be answered.
    pub deadline: Instant,
    /// The transaction of which it is a part, if it is one.
    pub joins: Option<Arc<Transaction>>,
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
    pub(super) fn output(&self, (status, output): (u16, Value)) -> Result<Value, Failure> {
        match () {
            () if status >= ERRORS => Err(of_status(status, &output)),
            () if self.is_wrapped => Ok(json!({ "ExecutedVersion": "$LATEST", "Payload": output, "StatusCode": OK })),
            () => Ok(output),
        }
    }
}

/// Calls the function of a task.
pub(super) async fn call(
    workflow: &Workflow,
    runner: &impl Runner,
    asked: &Asked<'_>,
    deadline: Instant,
) -> Result<Value, Failure> {
    let function = asked.find(workflow)?;
    let call = Call { function: &function, input: asked.given(&function)?, deadline, joins: None };
    let replied = replied(runner, call).await.map_err(|failure| of_function(asked.name, &failure))?;
    asked.output(replied)
}

/// The status of a function's reply, and the reply.
pub(super) async fn replied(runner: &impl Runner, call: Call<'_>) -> Result<(u16, Value), outcome::Failure> {
    let Call { function, input, deadline, joins } = call;
    let mut counted = Counted { runner, function, is_counted: false };
    let replied = async {
        let answer = runner.begin(function, input, deadline, joins)?;
        let Reply { result, head, .. } = answer.reply().await?;
        Ok((head.map_or(OK, |head| head.status.as_u16()), whole(result?).await?))
    };
    let replied = replied.await;
    counted.ended(replied.as_ref().err());
    replied.map(|(status, bytes)| (status, value(&bytes)))
}

/// A call that is counted when it ends, and also when it is given up.
struct Counted<'a, R: Runner> {
    runner: &'a R,
    function: &'a Function,
    is_counted: bool,
}

impl<R: Runner> Counted<'_, R> {
    fn ended(&mut self, failure: Option<&outcome::Failure>) {
        self.is_counted = true;
        self.runner.ended(self.function, failure);
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
