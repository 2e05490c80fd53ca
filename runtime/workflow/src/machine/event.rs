//! What the caller tells an execution, and what the execution asks of the caller.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::failure::Failure;
use super::history::HistoryEvent;
use super::ids::{TaskId, TimerId};
use crate::definition::Resource;

/// Something that happened. Events that the execution does not wait for (late, repeated, with an unknown number or token) change nothing and give no actions.
#[derive(Clone, Debug)]
pub enum Event {
    /// The execution begins.
    Started {
        /// Its input.
        input: Value,
    },
    /// A step yielded: the execution goes on.
    Continue,
    /// The caller has begun to carry out a task. It may be left out; only the history shows it.
    TaskStarted {
        /// The task.
        task: TaskId,
    },
    /// A task that takes long was taken on, such as an execution that was started: only the history shows it.
    TaskSubmitted {
        /// The task.
        task: TaskId,
        /// What was answered at once.
        output: Value,
    },
    /// A task has answered. One that waits for a callback is thereby submitted, and goes on waiting.
    TaskSucceeded {
        /// The task.
        task: TaskId,
        /// Its answer.
        output: Value,
    },
    /// A task has failed.
    TaskFailed {
        /// The task.
        task: TaskId,
        /// The error's name, such as `Exception` or `Lambda.TooManyRequestsException`.
        error: Option<Arc<str>>,
        /// What happened.
        cause: Option<Arc<str>>,
    },
    /// A task is alive.
    Heartbeat {
        /// The task.
        task: TaskId,
    },
    /// A timer has run out.
    TimerFired {
        /// The timer.
        timer: TimerId,
    },
    /// The callback of a task: `SendTaskSuccess`.
    CallbackSucceeded {
        /// The task's token.
        token: Arc<str>,
        /// The result.
        output: Value,
    },
    /// The callback of a task: `SendTaskFailure`.
    CallbackFailed {
        /// The task's token.
        token: Arc<str>,
        /// The error's name.
        error: Option<Arc<str>>,
        /// What happened.
        cause: Option<Arc<str>>,
    },
    /// A sign of life of a task that waits for its callback: `SendTaskHeartbeat`.
    CallbackHeartbeat {
        /// The task's token.
        token: Arc<str>,
    },
    /// The execution is stopped: `StopExecution`.
    Stopped {
        /// The error's name.
        error: Option<Arc<str>>,
        /// Why.
        cause: Option<Arc<str>>,
    },
    /// The execution is paused. It takes in what its tasks and callbacks tell, and may be stopped; but it enters no state and begins no task, and no timer of it fires until it is
    /// resumed. One that has not begun begins paused.
    Paused,
    /// The execution goes on that was paused. Timers that have run out meanwhile fire now.
    Resumed,
    /// An execution that failed, timed out or was stopped goes on at the state of its top level that failed: `RedriveExecution`.
    Redriven,
    /// An execution that has ended, however it did, goes on at a state of its top level, with the variables that it had at its end. If it cannot, nothing is changed:
    /// see [`Execution::restartable`](super::Execution::restartable).
    Restarted {
        /// The state's name.
        state: Arc<str>,
        /// What the state is given.
        input: Value,
    },
}

/// What the caller does, in this order.
#[derive(Clone, Debug)]
pub enum Action {
    /// Carries out a task, and tells its end.
    StartTask(StartTask),
    /// Gives up a task; what it would answer is not asked for any more.
    CancelTask {
        /// The task.
        task: TaskId,
    },
    /// Sets a timer.
    SetTimer {
        /// The timer.
        timer: TimerId,
        /// When it runs out, in milliseconds since 1970.
        at_ms: i64,
    },
    /// Drops a timer. One that fires nevertheless does no harm.
    CancelTimer {
        /// The timer.
        timer: TimerId,
    },
    /// Steps again with [`Event::Continue`], when other executions have had their turn.
    Yield,
    /// Keeps an event of the history. Only if the execution records one.
    History(Box<HistoryEvent>),
    /// The execution has ended. The last action.
    Ended(Outcome),
}

/// A task to be carried out. The caller may write it down beside the execution, to carry it out again.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StartTask {
    /// Its number, with which its end is told.
    pub task: TaskId,
    /// The branches and iterations in which it lies, from the outermost.
    pub position: Vec<u32>,
    /// The name of its state.
    pub state: Arc<str>,
    /// What is asked for.
    pub resource: Arc<Resource>,
    /// What is handed over.
    pub input: Arc<Value>,
    /// The token by which a callback names it, if one may end it: see [`Resource::takes_callback`].
    pub token: Option<Arc<str>>,
    /// When it times out by `TimeoutSeconds`, in milliseconds since 1970. The execution has set a timer for that: the caller may pass the deadline on.
    pub deadline_ms: Option<i64>,
    /// Seconds within which a sign of life is expected.
    pub heartbeat_s: Option<u64>,
    /// How often the state was tried before.
    pub attempt: u32,
    /// What it is for.
    #[serde(default)]
    pub purpose: Purpose,
}

/// What a task is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Purpose {
    /// The work of a Task.
    #[default]
    Work,
    /// The items of a Map, for its `ItemReader`. The input has the members of its arguments, and `ReaderConfig` with [`Format`](crate::dataset::Format) and `MaxItems`; the answer is
    /// what [`dataset::read`](crate::dataset::read) gives, or an array of what keys hold.
    Read,
    /// To keep the results of a Map, for its `ResultWriter`. The input is for [`dataset::written`](crate::dataset::written), which gives the answer.
    Write,
}

/// How an execution ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// With an output.
    Succeeded(Arc<Value>),
    /// With an error.
    Failed(Failure),
    /// By `TimeoutSeconds` of the whole.
    TimedOut,
    /// By [`Event::Stopped`].
    Aborted(Failure),
}
