//! What an execution is, and how it has ended.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sledge_workflow::definition::Definition;
use sledge_workflow::machine::{Execution, Outcome, Status, TaskId};

const DAY_MS: i64 = 86_400_000;

/// Where an execution is found.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Place {
    /// The tenant of its workflow.
    pub tenant: Arc<str>,
    /// Its workflow.
    pub workflow: Arc<str>,
    /// Its name, which no other execution of the workflow has as long as this one is kept.
    pub name: Arc<str>,
}

/// The task that waits for an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parent {
    /// The execution of the task.
    pub execution: u64,
    /// The task.
    pub task: TaskId,
}

/// What an execution is, and how it has ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Summary {
    /// Its number.
    pub id: u64,
    /// Whether it has ended, and how.
    pub status: Status,
    /// The [fingerprint](Definition::fingerprint) of its definition.
    pub definition: u64,
    /// When it began, in milliseconds since 1970.
    pub started_ms: i64,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_ms: Option<i64>,
    /// When it is removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_ms: Option<i64>,
    /// Whether it is paused.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
    /// How often it was redriven.
    #[serde(default)]
    pub redrives: u32,
    /// When it was redriven last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redriven_ms: Option<i64>,
    /// Its input.
    pub input: Arc<Value>,
    /// Its output, if it has succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Arc<Value>>,
    /// The error with which it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Arc<str>>,
    /// The cause of that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Arc<str>>,
    /// The task that waits for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Parent>,
    /// The numbers of the [sets](Set) of versions to which it was pinned when this was written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pins: Vec<u64>,
    /// How often it was moved to another definition.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub moves: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Summary {
    /// Whether it has not ended, and may not even have begun.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        matches!(self.status, Status::New | Status::Running)
    }

    /// That of an execution that is to begin later, and was started now.
    pub(in super::super) fn queued(
        id: u64,
        definition: &Definition,
        input: Value,
        now_ms: i64,
        parent: Option<Parent>,
    ) -> Summary {
        Summary {
            id,
            status: Status::New,
            definition: definition.fingerprint(),
            started_ms: now_ms,
            stopped_ms: None,
            expires_ms: None,
            paused: false,
            redrives: 0,
            redriven_ms: None,
            input: Arc::new(input),
            output: None,
            error: None,
            cause: None,
            parent,
            pins: Vec::new(),
            moves: 0,
        }
    }

    /// That of an execution that begins.
    pub(in super::super) fn new(id: u64, definition: &Definition, machine: &Execution, parent: Option<Parent>) -> Summary {
        let (input, status) = (Arc::clone(machine.input()), Status::Running);
        Summary { input, status, ..Summary::queued(id, definition, Value::Null, machine.started_ms(), parent) }
    }

    /// It goes on by that definition.
    pub(in super::super) fn moved_to(&mut self, definition: &Definition) {
        if self.definition != definition.fingerprint() {
            self.definition = definition.fingerprint();
            self.moves = self.moves.saturating_add(1);
        }
    }

    /// It goes on again.
    pub(in super::super) fn redriven(&mut self, machine: &Execution, now_ms: i64) {
        (self.status, self.redrives, self.redriven_ms) = (Status::Running, machine.redrives(), Some(now_ms));
        (self.stopped_ms, self.expires_ms, self.error, self.cause) = (None, None, None, None);
    }

    /// It has ended so, and is kept for so long.
    pub(in super::super) fn ended(&mut self, outcome: &Outcome, now_ms: i64, retention_days: u32) {
        let kept_ms = i64::from(retention_days).saturating_mul(DAY_MS);
        (self.stopped_ms, self.expires_ms) = (Some(now_ms), Some(now_ms.saturating_add(kept_ms)));
        self.status = match outcome {
            Outcome::Succeeded(output) => {
                self.output = Some(Arc::clone(output));
                Status::Succeeded
            }
            Outcome::Failed(failure) | Outcome::Aborted(failure) => {
                (self.error, self.cause) = (failure.error.clone(), failure.cause.clone());
                if matches!(outcome, Outcome::Failed(_)) { Status::Failed } else { Status::Aborted }
            }
            Outcome::TimedOut => {
                self.error = Some("States.Timeout".into());
                Status::TimedOut
            }
        };
    }
}
