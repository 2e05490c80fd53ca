//! What is not done, as AWS says it.

use sledge_aws::{ApiError, ErrorCode, ExecutionArn, MachineArn};
use sledge_workflow::machine::Status;

use crate::workflow::durable::journal::Summary;
use crate::workflow::durable::{Refused, status_name};

/// What a request was about.
#[derive(Clone, Copy, Debug)]
pub(super) enum Subject<'a> {
    /// A state machine, and the name of an execution that was to start.
    Machine(&'a MachineArn, Option<&'a str>),
    /// An execution.
    Execution(&'a ExecutionArn),
    /// A task that waits for its token.
    Task,
}

impl Subject<'_> {
    fn no_machine(&self) -> ApiError {
        match self {
            Subject::Machine(machine, _) => ApiError::machine_does_not_exist(machine),
            Subject::Execution(execution) => ApiError::machine_does_not_exist(execution.machine()),
            Subject::Task => ApiError::new(ErrorCode::StateMachineDoesNotExist, "State Machine Does Not Exist"),
        }
    }

    /// The execution, or that which was to start.
    fn execution(&self) -> Option<ExecutionArn> {
        match self {
            Subject::Machine(machine, name) => ExecutionArn::new(machine, (*name)?).ok(),
            Subject::Execution(execution) => Some((*execution).clone()),
            Subject::Task => None,
        }
    }

    fn name(&self) -> &str {
        match self {
            Subject::Machine(_, name) => name.unwrap_or_default(),
            Subject::Execution(execution) => execution.name(),
            Subject::Task => "",
        }
    }
}

/// A refusal as an error of the API.
pub(super) fn of(refused: &Refused, subject: Subject<'_>) -> ApiError {
    let of_execution = |error: fn(&ExecutionArn) -> ApiError| {
        subject.execution().map_or_else(|| ApiError::new(ErrorCode::InternalFailure, refused.to_string()), |arn| error(&arn))
    };
    match refused {
        // What is wrong with its definition is the operator's to know.
        Refused::NoWorkflow | Refused::Quarantined(_) => subject.no_machine(),
        Refused::Exists { .. } => of_execution(ApiError::execution_already_exists),
        Refused::Name => ApiError::invalid_name(subject.name()),
        Refused::InputTooLarge(_) | Refused::Key(_) => ApiError::invalid_execution_input(refused),
        Refused::TooMany(max) => ApiError::execution_limit_exceeded(max),
        Refused::Full { .. } => {
            ApiError::new(ErrorCode::ExecutionLimitExceeded, format!("Execution Limit Exceeded: '{refused}'"))
        }
        Refused::NoExecution => of_execution(ApiError::execution_does_not_exist),
        Refused::NotRedrivable(why) => ApiError::execution_not_redrivable(&format!("Execution cannot be redriven: {why}")),
        // The API has no such request.
        Refused::NotRepinnable(_) => ApiError::new(ErrorCode::InternalFailure, refused.to_string()),
        // Whether the task has ended, or was never there, or is of another tenant.
        Refused::Impossible(why) => ApiError::execution_not_redrivable(why),
        Refused::NoTask => ApiError::task_timed_out(),
        Refused::Unavailable(_) | Refused::Stopping | Refused::Moved | Refused::Unanswered(_) => {
            tracing::warn!(%refused, "executions are not available to clients of the API of AWS Step Functions");
            ApiError::service_unavailable()
        }
    }
}

/// Why an execution cannot be redriven, if it cannot.
pub(super) fn why_not_redrivable(summary: &Summary) -> Option<String> {
    match summary.status {
        Status::New | Status::Running | Status::Succeeded => {
            Some(format!("Execution is {} and cannot be redriven", status_name(summary.status)))
        }
        Status::Failed | Status::TimedOut | Status::Aborted => {
            let why = "Execution was started by a task of another execution and cannot be redriven: redrive that one";
            summary.parent.map(|_| why.to_owned())
        }
    }
}
