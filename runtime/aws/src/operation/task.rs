//! Operations on tasks that wait for their token.

use std::fmt;

use serde_json::Value;

use super::execution::{CAUSE, DATA, ERROR, data};
use super::members::{Members, Rule};
use crate::error::ApiError;
use crate::limits::TASK_TOKEN_MAX;

/// A token of a task.
const TOKEN: Rule = Rule::secret(1, TASK_TOKEN_MAX);

/// The token of a task: a client that has it may end the task. It is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct TaskToken(String);

impl TaskToken {
    /// The token itself.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for TaskToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TaskToken(..)")
    }
}

/// Ends a task with an output.
#[derive(Clone, Debug, PartialEq)]
pub struct SendTaskSuccess {
    /// Which task.
    pub token: TaskToken,
    /// Its output.
    pub output: Value,
}

/// Ends a task with an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SendTaskFailure {
    /// Which task.
    pub token: TaskToken,
    /// The error's name.
    pub error: Option<String>,
    /// Why.
    pub cause: Option<String>,
}

/// Tells that a task is still worked on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SendTaskHeartbeat {
    /// Which task.
    pub token: TaskToken,
}

impl SendTaskSuccess {
    pub(super) fn read(mut members: Members) -> Result<SendTaskSuccess, ApiError> {
        let token = TaskToken(members.required("taskToken", TOKEN)?);
        let output = members.required("output", DATA)?;
        members.check()?;
        Ok(SendTaskSuccess { token, output: data(&output).map_err(ApiError::invalid_output)? })
    }
}

impl SendTaskFailure {
    pub(super) fn read(mut members: Members) -> Result<SendTaskFailure, ApiError> {
        let token = TaskToken(members.required("taskToken", TOKEN)?);
        let error = members.text("error", ERROR)?;
        let cause = members.text("cause", CAUSE)?;
        members.check()?;
        Ok(SendTaskFailure { token, error, cause })
    }
}

impl SendTaskHeartbeat {
    pub(super) fn read(mut members: Members) -> Result<SendTaskHeartbeat, ApiError> {
        let token = TaskToken(members.required("taskToken", TOKEN)?);
        members.check()?;
        Ok(SendTaskHeartbeat { token })
    }
}
