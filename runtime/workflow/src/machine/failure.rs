//! Why a state failed: the name that `Retry` and `Catch` look for, and the cause for people.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::limits::{CAUSE_BYTES_MAX, ERROR_BYTES_MAX};
use crate::data::DataError;

/// Names of errors that the machine itself gives, or that have rules of their own.
pub(super) mod name {
    pub(in crate::machine) const ALL: &str = "States.ALL";
    pub(in crate::machine) const DATA_LIMIT: &str = "States.DataLimitExceeded";
    pub(in crate::machine) const HEARTBEAT: &str = "States.HeartbeatTimeout";
    pub(in crate::machine) const NO_CHOICE: &str = "States.NoChoiceMatched";
    pub(in crate::machine) const QUERY: &str = "States.QueryEvaluationError";
    pub(in crate::machine) const READER: &str = "States.ItemReaderFailed";
    pub(in crate::machine) const RUNTIME: &str = "States.Runtime";
    pub(in crate::machine) const TASK_FAILED: &str = "States.TaskFailed";
    pub(in crate::machine) const THRESHOLD: &str = "States.ExceedToleratedFailureThreshold";
    pub(in crate::machine) const TIMEOUT: &str = "States.Timeout";
    pub(in crate::machine) const WRITER: &str = "States.ResultWriterFailed";
}

/// An error and its cause; a Fail state and a callback may leave out either.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The error's name.
    pub error: Option<Arc<str>>,
    /// What happened.
    pub cause: Option<Arc<str>>,
}

/// How a state failed, before its handlers are asked.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    pub(super) failure: Failure,
    /// The cause is the machine's own: it begins with the name of the state.
    pub(super) prefixed: bool,
    /// A task's result is too large: unlike other values, which end the execution, `States.ALL` matches it. So Step Functions does, whatever its guide says.
    pub(super) of_task: bool,
    /// A sign of life did not come. The error is `States.Timeout`, as Step Functions names it, and handlers of `States.HeartbeatTimeout` match it as well.
    pub(super) missed: bool,
    /// Of an evaluation in JSONata: the field.
    pub(super) location: Option<Arc<str>>,
    /// An evaluation failed, which the history shows by an event of its own.
    pub(super) evaluation: bool,
}

impl Failure {
    /// Texts from outside, cut at the limits.
    pub(super) fn given(error: Option<&str>, cause: Option<&str>) -> Self {
        Self {
            error: error.map(|text| cut(text, ERROR_BYTES_MAX).into()),
            cause: cause.map(|text| cut(text, CAUSE_BYTES_MAX).into()),
        }
    }

    pub(super) fn named(error: &str) -> Self {
        Self { error: Some(error.into()), cause: None }
    }

    /// The error's name; empty if there is none.
    pub(super) fn name(&self) -> &str {
        self.error.as_deref().unwrap_or_default()
    }

    /// `{"Error": ..., "Cause": ...}`, as a catcher gives it to the next state. A timeout has an empty cause where others without a cause have null, as in Step Functions.
    pub(super) fn output(&self) -> Value {
        let text = |text: &Option<Arc<str>>| text.as_deref().map_or(Value::Null, Value::from);
        let mut output = Map::with_capacity(2);
        output.insert("Error".to_owned(), text(&self.error));
        let timed_out = self.cause.is_none() && self.name() == name::TIMEOUT;
        output.insert("Cause".to_owned(), if timed_out { Value::from("") } else { text(&self.cause) });
        Value::Object(output)
    }
}

impl Fault {
    /// Whether `ErrorEquals` with these names matches. Source: States Language, "Errors", and the Developer Guide, "Handling errors".
    pub(super) fn matches(&self, names: &[Arc<str>]) -> bool {
        let own = self.failure.name();
        let ends = own == name::RUNTIME || (own == name::DATA_LIMIT && !self.of_task);
        names.iter().any(|wanted| match &**wanted {
            // These two end an execution unless they are named.
            name::ALL => !ends,
            // Every error of a task but a timeout.
            name::TASK_FAILED => own == name::TASK_FAILED || !(ends || matches!(own, name::TIMEOUT | name::HEARTBEAT)),
            // A missing heartbeat is a timeout as well.
            name::TIMEOUT => matches!(own, name::TIMEOUT | name::HEARTBEAT),
            name::HEARTBEAT => own == name::HEARTBEAT || self.missed,
            // This one cannot be handled at all.
            wanted => own == wanted && own != name::RUNTIME,
        })
    }

    /// A failure that is passed on as it is: a task's, a Fail state's, a branch's.
    pub(super) const fn plain(failure: Failure) -> Self {
        Self { failure, prefixed: false, of_task: false, missed: false, location: None, evaluation: false }
    }

    /// An error that the machine found, with its cause.
    pub(super) fn found(error: &str, cause: impl Into<Cow<'static, str>>) -> Self {
        let cause = cause.into();
        Self {
            failure: Failure { error: Some(error.into()), cause: Some(cut(&cause, CAUSE_BYTES_MAX).into()) },
            prefixed: true,
            of_task: false,
            missed: false,
            location: None,
            evaluation: false,
        }
    }

    /// `States.Runtime`.
    pub(super) fn runtime(cause: impl Into<Cow<'static, str>>) -> Self {
        Self::found(name::RUNTIME, cause)
    }

    /// `States.QueryEvaluationError` in a field.
    pub(super) fn query(location: &Arc<str>, cause: impl Into<Cow<'static, str>>) -> Self {
        Self { location: Some(Arc::clone(location)), evaluation: true, ..Self::found(name::QUERY, cause) }
    }

    /// `States.DataLimitExceeded`: what a state or task gave is too large.
    pub(super) fn too_large(what: &str) -> Self {
        let cause =
            format!("The state/task '{what}' returned a result with a size exceeding the maximum number of bytes service limit.");
        Self { prefixed: false, ..Self::found(name::DATA_LIMIT, cause) }
    }
}

impl From<DataError> for Fault {
    fn from(error: DataError) -> Self {
        Self::found(error.error.as_str(), error.cause)
    }
}

/// The beginning of a text, whole characters of at most so many bytes.
pub(super) fn cut(text: &str, bytes_max: usize) -> &str {
    if text.len() <= bytes_max {
        return text;
    }
    let end = (0..=bytes_max).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    text.get(..end).unwrap_or_default()
}
