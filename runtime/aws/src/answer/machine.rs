//! What is told of state machines.

use serde::Serialize;

use super::timestamp::Timestamp;
use crate::arn::MachineArn;
use crate::status::MachineType;

/// What is told by `DescribeStateMachine`. SDKs require all members but `description` and `revision_id`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineDescription {
    /// The state machine.
    pub state_machine_arn: MachineArn,
    /// Its name.
    pub name: String,
    /// Always that it can be used.
    pub status: &'static str,
    /// The definition in Amazon States Language, as JSON text; empty without data.
    pub definition: String,
    /// The role; the caller makes one up where it has none.
    pub role_arn: String,
    /// Its type.
    #[serde(rename = "type")]
    pub machine_type: MachineType,
    /// When it was deployed.
    pub creation_date: Timestamp,
    /// What it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What tells definitions of one state machine apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision_id: Option<String>,
}

impl MachineDescription {
    /// The one value of `status`.
    pub const ACTIVE: &'static str = "ACTIVE";

    /// Without the definition, for `includedData: METADATA_ONLY`.
    #[must_use]
    pub fn without_data(self) -> MachineDescription {
        MachineDescription { definition: String::new(), ..self }
    }
}

/// What is told of a state machine in a list.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineItem {
    /// The state machine.
    pub state_machine_arn: MachineArn,
    /// Its name.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub machine_type: MachineType,
    /// When it was deployed.
    pub creation_date: Timestamp,
}

/// What is told by `DescribeStateMachineForExecution`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExecutionMachine {
    /// The state machine.
    pub state_machine_arn: MachineArn,
    /// Its name.
    pub name: String,
    /// The definition with which the execution was started, as JSON text; empty without data.
    pub definition: String,
    /// The role; the caller makes one up where it has none.
    pub role_arn: String,
    /// When that definition was deployed.
    pub update_date: Timestamp,
    /// What tells definitions of one state machine apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision_id: Option<String>,
}

impl ExecutionMachine {
    /// Without the definition, for `includedData: METADATA_ONLY`.
    #[must_use]
    pub fn without_data(self) -> ExecutionMachine {
        ExecutionMachine { definition: String::new(), ..self }
    }
}
