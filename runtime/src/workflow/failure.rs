//! What a failed task is to `Retry` and `Catch`: the names that AWS Lambda and Step Functions use, where they have one.

use std::sync::Arc;

use serde_json::{Value, json};
use sledge_workflow::machine;

use crate::kv::KvError;
use crate::outcome::Failure;

/// A failure of that name, with that cause.
pub(super) fn failed(error: &str, cause: impl Into<Arc<str>>) -> machine::Failure {
    machine::Failure { error: Some(error.into()), cause: Some(cause.into()) }
}

/// That of a function which has not replied.
pub(super) fn of_function(name: &str, failure: &Failure) -> machine::Failure {
    let error = match failure {
        Failure::NotFound => "Lambda.ResourceNotFoundException",
        Failure::Busy | Failure::FunctionBusy | Failure::Overload | Failure::Shed => "Lambda.TooManyRequestsException",
        Failure::Deadline => "States.Timeout",
        Failure::CpuLimit => "Sandbox.Timedout",
        Failure::MemoryLimit | Failure::NoMemory => "Runtime.OutOfMemory",
        Failure::Trap(_) | Failure::MemoryStack(_) | Failure::Component { .. } | Failure::Exit(_) => "Runtime.ExitError",
        Failure::ReplyTooLarge | Failure::ReplyIncomplete | Failure::ReplyUnfinished | Failure::ReplyMissing => {
            "Runtime.InvalidReply"
        }
        Failure::EffectRefused { .. } => "Runtime.EffectRefused",
        _ => "Lambda.ServiceException",
    };
    failed(
        error,
        json!({ "errorType": failure.code(), "errorMessage": format!("the function {name:?} failed: {failure}") }).to_string(),
    )
}

/// That of a function which has replied with an error status: what its body calls the error, as functions for AWS Lambda do it.
pub(super) fn of_status(status: u16, body: &Value) -> machine::Failure {
    let error = body["errorType"].as_str().map_or_else(|| format!("Http.Status.{status}"), str::to_owned);
    let cause = if let Value::String(text) = body { text.clone() } else { body.to_string() };
    machine::Failure { error: Some(error.into()), cause: Some(cause.into()) }
}

/// That of an operation of the key-value store.
pub(super) fn of_store(error: &KvError) -> machine::Failure {
    let name = match error {
        KvError::Full { .. } => "KeyValue.Full",
        KvError::NotANumber => "KeyValue.NotANumber",
        KvError::Overflow => "KeyValue.Overflow",
        KvError::Unavailable(_) | KvError::Unknown(_) | KvError::Fenced => "KeyValue.Unavailable",
        KvError::TooLarge { .. } | KvError::TooLong { .. } | KvError::TooMany { .. } => "KeyValue.TooLarge",
    };
    failed(name, error.to_string())
}
