//! Answers and errors as HTTP responses.
//!
//! - `execution`, `machine`: what is told of each; `render`: the response; `timestamp`: times; `request_id`: names of requests.
//!
//! Members that have no value are left out, as AWS does.

mod execution;
mod history;
mod machine;
mod render;
mod request_id;
mod timestamp;

use serde::Serialize;
use serde_json::Value;

pub use execution::{DataDetails, ExecutionDescription, ExecutionItem, Redrives, SyncExecution};
pub use history::without_data;
pub use machine::{ExecutionMachine, MachineDescription, MachineItem};
pub use render::render;
pub use request_id::RequestId;
pub use timestamp::Timestamp;

use crate::arn::ExecutionArn;

/// What the server answers. `E` is an event of a history: whatever serialises to the shape of `HistoryEvent`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
pub enum Answer<E = Value> {
    /// To `StartExecution`.
    StartExecution {
        /// The execution.
        execution_arn: ExecutionArn,
        /// When it was started.
        start_date: Timestamp,
    },
    /// To `StartSyncExecution`.
    StartSyncExecution(Box<SyncExecution>),
    /// To `DescribeExecution`.
    DescribeExecution(Box<ExecutionDescription>),
    /// To `GetExecutionHistory`.
    GetExecutionHistory {
        /// The events of a page.
        events: Vec<E>,
        /// What the client gives back for the next page, if there is one.
        #[serde(skip_serializing_if = "Option::is_none")]
        next_token: Option<String>,
    },
    /// To `StopExecution`.
    StopExecution {
        /// When it was stopped.
        stop_date: Timestamp,
    },
    /// To `ListExecutions`.
    ListExecutions {
        /// The executions of a page, the latest first.
        executions: Vec<ExecutionItem>,
        /// What the client gives back for the next page, if there is one.
        #[serde(skip_serializing_if = "Option::is_none")]
        next_token: Option<String>,
    },
    /// To `RedriveExecution`.
    RedriveExecution {
        /// When it was redriven.
        redrive_date: Timestamp,
    },
    /// To `SendTaskSuccess`, `SendTaskFailure` and `SendTaskHeartbeat`.
    SendTask {},
    /// To `DescribeStateMachine`.
    DescribeStateMachine(Box<MachineDescription>),
    /// To `ListStateMachines`.
    ListStateMachines {
        /// The state machines of a page.
        state_machines: Vec<MachineItem>,
        /// What the client gives back for the next page, if there is one.
        #[serde(skip_serializing_if = "Option::is_none")]
        next_token: Option<String>,
    },
    /// To `DescribeStateMachineForExecution`.
    DescribeStateMachineForExecution(Box<ExecutionMachine>),
}
