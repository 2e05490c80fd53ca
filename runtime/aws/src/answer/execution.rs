//! What is told of executions.

use serde::Serialize;

use super::timestamp::Timestamp;
use crate::arn::{ExecutionArn, MachineArn};
use crate::status::{ExecutionStatus, RedriveStatus};

/// Whether an input or output is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct DataDetails {
    /// Whether it is.
    pub included: bool,
}

/// What is told of an execution by `DescribeExecution`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExecutionDescription {
    /// The execution.
    pub execution_arn: ExecutionArn,
    /// Its state machine.
    pub state_machine_arn: MachineArn,
    /// Its name.
    pub name: String,
    /// How it stands.
    pub status: ExecutionStatus,
    /// When it was started.
    pub start_date: Timestamp,
    /// When it ended, if it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_date: Option<Timestamp>,
    /// Its input, as JSON text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// Whether the input is told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_details: Option<DataDetails>,
    /// Its output, as JSON text, if it succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// Whether the output is told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_details: Option<DataDetails>,
    /// The trace that it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_header: Option<String>,
    /// The error that it ended with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// What is told of redrives.
    #[serde(flatten)]
    pub redrives: Redrives,
}

/// What is told of redrives of an execution.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Redrives {
    /// How often it was redriven.
    pub redrive_count: u32,
    /// When the last time was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redrive_date: Option<Timestamp>,
    /// Whether it can be redriven.
    pub redrive_status: RedriveStatus,
    /// Why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redrive_status_reason: Option<String>,
}

impl ExecutionDescription {
    /// Without data, for `includedData: METADATA_ONLY`.
    #[must_use]
    pub fn without_data(self) -> ExecutionDescription {
        let left_out = Some(DataDetails { included: false });
        ExecutionDescription {
            input_details: self.input.as_ref().and(left_out),
            output_details: self.output.as_ref().and(left_out),
            input: None,
            output: None,
            ..self
        }
    }
}

/// What is told of an execution in a list.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExecutionItem {
    /// The execution.
    pub execution_arn: ExecutionArn,
    /// Its state machine.
    pub state_machine_arn: MachineArn,
    /// Its name.
    pub name: String,
    /// How it stands.
    pub status: ExecutionStatus,
    /// When it was started.
    pub start_date: Timestamp,
    /// When it ended, if it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_date: Option<Timestamp>,
    /// How often it was redriven.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redrive_count: Option<u32>,
    /// When the last time was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redrive_date: Option<Timestamp>,
}

/// How an execution of an express state machine ended.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SyncExecution {
    /// The execution.
    pub execution_arn: ExecutionArn,
    /// Its state machine.
    pub state_machine_arn: MachineArn,
    /// Its name.
    pub name: String,
    /// When it was started.
    pub start_date: Timestamp,
    /// When it ended.
    pub stop_date: Timestamp,
    /// How it ended: succeeded, failed or timed out.
    pub status: ExecutionStatus,
    /// The error that it ended with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// Its input, as JSON text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// Whether the input is told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_details: Option<DataDetails>,
    /// Its output, as JSON text, if it succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// Whether the output is told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_details: Option<DataDetails>,
    /// The trace that it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_header: Option<String>,
}

impl SyncExecution {
    /// Without data, for `includedData: METADATA_ONLY`.
    #[must_use]
    pub fn without_data(self) -> SyncExecution {
        let left_out = Some(DataDetails { included: false });
        SyncExecution {
            input_details: self.input.as_ref().and(left_out),
            output_details: self.output.as_ref().and(left_out),
            input: None,
            output: None,
            ..self
        }
    }
}
