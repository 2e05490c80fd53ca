//! Operations on executions.

use serde_json::{Map, Value};

use super::members::{Members, Pattern, Rule};
use super::page::Page;
use crate::arn::{ArnError, ExecutionArn, MachineArn};
use crate::error::{ApiError, ErrorCode};
use crate::limits::{
    ARN_MAX, CAUSE_MAX, CLIENT_TOKEN_MAX, DATA_MAX, ERROR_MAX, EXECUTIONS_PAGE_TOKEN_MAX, LONG_ARN_MAX, NAME_MAX, PAGE_TOKEN_MAX,
    TRACE_HEADER_MAX,
};
use crate::name::is_name;
use crate::status::{ExecutionStatus, IncludedData, RedriveFilter};

/// An ARN of any kind, before it is parsed.
pub(super) const ARN: Rule = Rule::text(1, ARN_MAX);
/// A name of an error.
pub(super) const ERROR: Rule = Rule::secret(0, ERROR_MAX);
/// A cause of an error.
pub(super) const CAUSE: Rule = Rule::secret(0, CAUSE_MAX);
/// An input or output.
pub(super) const DATA: Rule = Rule::secret(0, DATA_MAX);
/// A name of an execution.
const NAME: Rule = Rule::text(1, NAME_MAX);
/// What X-Ray sends.
const TRACE_HEADER: Rule =
    Rule { pattern: Some(Pattern { text: r"\p{ASCII}*", fits: str::is_ascii }), ..Rule::text(0, TRACE_HEADER_MAX) };
/// What makes a redrive idempotent.
const CLIENT_TOKEN: Rule = Rule {
    pattern: Some(Pattern {
        text: "[!-~]+",
        fits: |token| !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic()),
    }),
    ..Rule::text(1, CLIENT_TOKEN_MAX)
};

/// Starts an execution.
#[derive(Clone, Debug, PartialEq)]
pub struct StartExecution {
    /// The state machine.
    pub machine: MachineArn,
    /// The execution's name; the caller makes one up where there is none.
    pub name: Option<String>,
    /// The input; `{}` where there is none.
    pub input: Value,
    /// The client's trace.
    pub trace_header: Option<String>,
}

/// Runs an execution of an express state machine, and waits for its end.
#[derive(Clone, Debug, PartialEq)]
pub struct StartSyncExecution {
    /// What is started.
    pub start: StartExecution,
    /// How much the answer tells.
    pub included_data: IncludedData,
}

/// Tells how an execution stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribeExecution {
    /// The execution, of a standard state machine.
    pub execution: ExecutionArn,
    /// How much the answer tells.
    pub included_data: IncludedData,
}

/// Lists the events of an execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GetExecutionHistory {
    /// The execution, of a standard state machine.
    pub execution: ExecutionArn,
    /// Which part of the list.
    pub page: Page,
    /// Whether the last event comes first.
    pub reverse_order: bool,
    /// Whether events have their inputs and outputs; see [`without_data`](crate::answer::without_data).
    pub include_execution_data: bool,
}

/// Stops an execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StopExecution {
    /// The execution, of a standard state machine.
    pub execution: ExecutionArn,
    /// The error that it ends with.
    pub error: Option<String>,
    /// Why.
    pub cause: Option<String>,
}

/// Lists the executions of a state machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListExecutions {
    /// The state machine.
    pub machine: MachineArn,
    /// Only those that stand so.
    pub status: Option<ExecutionStatus>,
    /// Only those that were redriven, or only those that were not.
    pub redrive: Option<RedriveFilter>,
    /// Which part of the list.
    pub page: Page,
}

/// Continues a failed execution where it failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedriveExecution {
    /// The execution, of a standard state machine.
    pub execution: ExecutionArn,
    /// Requests with the same token are one.
    pub client_token: Option<String>,
}

impl StartExecution {
    /// Reads the members. `more` reads those of an operation that has others besides.
    fn read_with<T>(
        mut members: Members,
        more: impl FnOnce(&mut Members) -> Result<T, ApiError>,
    ) -> Result<(StartExecution, T), ApiError> {
        let machine = members.required("stateMachineArn", ARN)?;
        let name = members.text("name", NAME)?;
        let input = members.text("input", DATA)?;
        let trace_header = members.text("traceHeader", TRACE_HEADER)?;
        let more = more(&mut members)?;
        members.check()?;
        let machine = machine.parse()?;
        if let Some(name) = name.as_deref().filter(|name| !is_name(name)) {
            return Err(ApiError::invalid_name(name));
        }
        let input = match input {
            None => Value::Object(Map::new()),
            Some(input) if input.is_empty() => return Err(ApiError::invalid_execution_input("Invalid execution input.")),
            Some(input) => data(&input).map_err(ApiError::invalid_execution_input)?,
        };
        Ok((StartExecution { machine, name, input, trace_header }, more))
    }

    pub(super) fn read(members: Members) -> Result<StartExecution, ApiError> {
        Self::read_with(members, |_| Ok(())).map(|(start, ())| start)
    }
}

impl StartSyncExecution {
    pub(super) fn read(members: Members) -> Result<StartSyncExecution, ApiError> {
        let (start, included_data) = StartExecution::read_with(members, included)?;
        Ok(StartSyncExecution { start, included_data })
    }
}

impl DescribeExecution {
    pub(super) fn read(mut members: Members) -> Result<DescribeExecution, ApiError> {
        let execution = members.required("executionArn", ARN)?;
        let included_data = included(&mut members)?;
        members.check()?;
        Ok(DescribeExecution { execution: standard(&execution)?, included_data })
    }
}

impl GetExecutionHistory {
    pub(super) fn read(mut members: Members) -> Result<GetExecutionHistory, ApiError> {
        let execution = members.required("executionArn", ARN)?;
        let page = Page::read(&mut members, PAGE_TOKEN_MAX)?;
        let reverse_order = members.boolean("reverseOrder")?.unwrap_or(false);
        let include_execution_data = members.boolean("includeExecutionData")?.unwrap_or(true);
        members.check()?;
        Ok(GetExecutionHistory { execution: standard(&execution)?, page, reverse_order, include_execution_data })
    }
}

impl StopExecution {
    pub(super) fn read(mut members: Members) -> Result<StopExecution, ApiError> {
        let execution = members.required("executionArn", ARN)?;
        let error = members.text("error", ERROR)?;
        let cause = members.text("cause", CAUSE)?;
        members.check()?;
        Ok(StopExecution { execution: standard(&execution)?, error, cause })
    }
}

impl ListExecutions {
    pub(super) fn read(mut members: Members) -> Result<ListExecutions, ApiError> {
        let machine = members.text("stateMachineArn", ARN)?;
        let map_run = members.text("mapRunArn", Rule::text(1, LONG_ARN_MAX))?;
        let status = members.choice("statusFilter", ExecutionStatus::ALL, ExecutionStatus::word)?;
        let redrive = members.choice("redriveFilter", RedriveFilter::ALL, RedriveFilter::word)?;
        let page = Page::read(&mut members, EXECUTIONS_PAGE_TOKEN_MAX)?;
        members.check()?;
        let invalid = |text: &str| ApiError::new(ErrorCode::ValidationException, text);
        let machine = match (machine, map_run) {
            (Some(machine), None) => machine.parse()?,
            (None, Some(map_run)) => return Err(ApiError::map_run_not_found(&map_run)),
            (None, None) => return Err(invalid("1 validation error detected: Must provide a StateMachine ARN or MapRun ARN")),
            (Some(_), Some(_)) => {
                return Err(invalid("1 validation error detected: Must provide only one of StateMachine ARN and MapRun ARN"));
            }
        };
        Ok(ListExecutions { machine, status, redrive, page })
    }
}

impl RedriveExecution {
    pub(super) fn read(mut members: Members) -> Result<RedriveExecution, ApiError> {
        let execution = members.required("executionArn", ARN)?;
        let client_token = members.text("clientToken", CLIENT_TOKEN)?;
        members.check()?;
        Ok(RedriveExecution { execution: standard(&execution)?, client_token })
    }
}

/// How much an answer tells.
pub(super) fn included(members: &mut Members) -> Result<IncludedData, ApiError> {
    let included = members.choice("includedData", IncludedData::ALL, IncludedData::word)?;
    Ok(included.unwrap_or(IncludedData::AllData))
}

/// The ARN of an execution of a standard state machine: express ones are not remembered.
pub(super) fn standard(text: &str) -> Result<ExecutionArn, ApiError> {
    let arn = text.parse::<ExecutionArn>()?;
    if arn.express_id().is_some() { Err(ArnError::Kind("express".to_owned()).into()) } else { Ok(arn) }
}

/// An input or output, parsed; or what is wrong with it.
pub(super) fn data(text: &str) -> Result<Value, String> {
    if text.len() > DATA_MAX {
        return Err(format!("The data has {} bytes in UTF-8. At most {DATA_MAX} are allowed.", text.len()));
    }
    serde_json::from_str(text).map_err(|error| error.to_string())
}
