//! Operations on state machines.

use super::execution::{ARN, included, standard};
use super::members::Members;
use super::page::Page;
use crate::arn::{ExecutionArn, MachineArn};
use crate::error::ApiError;
use crate::limits::PAGE_TOKEN_MAX;
use crate::status::IncludedData;

/// Tells the definition of a state machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribeStateMachine {
    /// The state machine.
    pub machine: MachineArn,
    /// How much the answer tells.
    pub included_data: IncludedData,
}

/// Lists the state machines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListStateMachines {
    /// Which part of the list.
    pub page: Page,
}

/// Tells the definition with which an execution was started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribeStateMachineForExecution {
    /// The execution, of a standard state machine.
    pub execution: ExecutionArn,
    /// How much the answer tells.
    pub included_data: IncludedData,
}

impl DescribeStateMachine {
    pub(super) fn read(mut members: Members) -> Result<DescribeStateMachine, ApiError> {
        let machine = members.required("stateMachineArn", ARN)?;
        let included_data = included(&mut members)?;
        members.check()?;
        Ok(DescribeStateMachine { machine: machine.parse()?, included_data })
    }
}

impl ListStateMachines {
    pub(super) fn read(mut members: Members) -> Result<ListStateMachines, ApiError> {
        let page = Page::read(&mut members, PAGE_TOKEN_MAX)?;
        members.check()?;
        Ok(ListStateMachines { page })
    }
}

impl DescribeStateMachineForExecution {
    pub(super) fn read(mut members: Members) -> Result<DescribeStateMachineForExecution, ApiError> {
        let execution = members.required("executionArn", ARN)?;
        let included_data = included(&mut members)?;
        members.check()?;
        Ok(DescribeStateMachineForExecution { execution: standard(&execution)?, included_data })
    }
}
