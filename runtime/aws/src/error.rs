//! Errors as AWS names them.
//!
//! The texts are those that the service prints, where they are known. SDKs choose the class of an exception by the code alone.

use std::fmt;

use http::StatusCode;

use crate::arn::{ArnError, ExecutionArn, MachineArn};
use crate::limits::BODY_MAX;

/// The namespace of errors in the service's model.
const MODEL: &str = "com.amazonaws.swf.service.v2.model";
/// The namespace of violated constraints.
const VALIDATE: &str = "com.amazon.coral.validate";
/// The namespace of errors of the front end.
const SERVICE: &str = "com.amazon.coral.service";
/// The namespace of errors of load.
const AVAILABILITY: &str = "com.amazon.coral.availability";

/// The codes, each with its namespace and HTTP status.
macro_rules! codes {
    ($($code:ident: $namespace:ident $status:literal,)*) => {
        /// The code of an error.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[allow(missing_docs, reason = "the names are AWS's own")]
        pub enum ErrorCode { $($code,)* }

        impl ErrorCode {
            /// Every code.
            pub const ALL: &[Self] = &[$(Self::$code,)*];

            /// The name, by which SDKs know it.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$code => stringify!($code),)* }
            }

            /// The namespace before the name in `__type`.
            #[must_use]
            pub const fn namespace(self) -> &'static str {
                match self { $(Self::$code => $namespace,)* }
            }

            /// The HTTP status.
            #[must_use]
            pub const fn status(self) -> StatusCode {
                let status: u16 = match self { $(Self::$code => $status,)* };
                match status {
                    413 => StatusCode::PAYLOAD_TOO_LARGE,
                    500 => StatusCode::INTERNAL_SERVER_ERROR,
                    503 => StatusCode::SERVICE_UNAVAILABLE,
                    _ => StatusCode::BAD_REQUEST,
                }
            }
        }
    };
}

codes! {
    AccessDeniedException: SERVICE 400,
    ExecutionAlreadyExists: MODEL 400,
    ExecutionDoesNotExist: MODEL 400,
    ExecutionLimitExceeded: MODEL 400,
    ExecutionNotRedrivable: MODEL 400,
    IncompleteSignatureException: SERVICE 400,
    InternalFailure: SERVICE 500,
    InvalidArn: MODEL 400,
    InvalidExecutionInput: MODEL 400,
    InvalidName: MODEL 400,
    InvalidOutput: MODEL 400,
    InvalidSignatureException: SERVICE 400,
    InvalidToken: MODEL 400,
    MissingAuthenticationTokenException: SERVICE 400,
    RequestEntityTooLargeException: SERVICE 413,
    ResourceNotFound: MODEL 400,
    SerializationException: SERVICE 400,
    ServiceUnavailable: SERVICE 503,
    StateMachineDeleting: MODEL 400,
    StateMachineDoesNotExist: MODEL 400,
    StateMachineTypeNotSupported: MODEL 400,
    TaskDoesNotExist: MODEL 400,
    TaskTimedOut: MODEL 400,
    ThrottlingException: AVAILABILITY 400,
    UnknownOperationException: SERVICE 400,
    UnrecognizedClientException: SERVICE 400,
    ValidationException: VALIDATE 400,
}

/// An error that a client is told.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {message}", code.name())]
pub struct ApiError {
    code: ErrorCode,
    message: String,
}

impl ApiError {
    /// An error with a message of the caller's. The other constructors have AWS's messages.
    #[must_use]
    pub fn new(code: ErrorCode, message: impl Into<String>) -> ApiError {
        ApiError { code, message: message.into() }
    }

    /// The code.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        self.code
    }

    /// The message.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Constraints of the model that a request violates; AWS counts them.
    pub(crate) fn violations(violations: &[String]) -> ApiError {
        let plural = if violations.len() == 1 { "" } else { "s" };
        ApiError::new(
            ErrorCode::ValidationException,
            format!("{} validation error{plural} detected: {}", violations.len(), violations.join("; ")),
        )
    }

    /// The key may not do this. `user` is what the key stands for.
    #[must_use]
    pub fn access_denied(user: &str, action: &str, resource: &str) -> ApiError {
        let message = format!("User: {user} is not authorized to perform: {action} on resource: {resource}");
        ApiError::new(ErrorCode::AccessDeniedException, message)
    }

    /// There is no such state machine.
    #[must_use]
    pub fn machine_does_not_exist(arn: &MachineArn) -> ApiError {
        ApiError::new(ErrorCode::StateMachineDoesNotExist, format!("State Machine Does Not Exist: '{arn}'"))
    }

    /// There is no such execution.
    #[must_use]
    pub fn execution_does_not_exist(arn: &ExecutionArn) -> ApiError {
        ApiError::new(ErrorCode::ExecutionDoesNotExist, format!("Execution Does Not Exist: '{arn}'"))
    }

    /// The name belongs to an execution with another input, or to one that has ended.
    #[must_use]
    pub fn execution_already_exists(arn: &ExecutionArn) -> ApiError {
        ApiError::new(ErrorCode::ExecutionAlreadyExists, format!("Execution Already Exists: '{arn}'"))
    }

    /// The execution cannot be redriven, for a `reason` such as "Execution is SUCCEEDED and cannot be redriven".
    #[must_use]
    pub fn execution_not_redrivable(reason: &str) -> ApiError {
        ApiError::new(ErrorCode::ExecutionNotRedrivable, reason)
    }

    /// Too many executions run.
    #[must_use]
    pub fn execution_limit_exceeded(limit: impl fmt::Display) -> ApiError {
        ApiError::new(ErrorCode::ExecutionLimitExceeded, format!("Execution Limit Exceeded: '{limit} executions run'"))
    }

    /// Standard state machines cannot do what express ones can, or the other way round.
    #[must_use]
    pub fn machine_type_not_supported() -> ApiError {
        ApiError::new(ErrorCode::StateMachineTypeNotSupported, "This operation is not supported by this type of state machine")
    }

    /// The input is not JSON, or is not to be taken.
    #[must_use]
    pub fn invalid_execution_input(reason: impl fmt::Display) -> ApiError {
        ApiError::new(ErrorCode::InvalidExecutionInput, format!("Invalid State Machine Execution Input: '{reason}'"))
    }

    /// The output is not JSON, or is not to be taken.
    #[must_use]
    pub fn invalid_output(reason: impl fmt::Display) -> ApiError {
        ApiError::new(ErrorCode::InvalidOutput, format!("Invalid Output: '{reason}'"))
    }

    /// A token of a page or a task that was never given out.
    #[must_use]
    pub fn invalid_token() -> ApiError {
        ApiError::new(ErrorCode::InvalidToken, "Invalid Token: 'Invalid token'")
    }

    /// The text is no name.
    #[must_use]
    pub fn invalid_name(name: &str) -> ApiError {
        ApiError::new(ErrorCode::InvalidName, format!("Invalid Name: '{name}'"))
    }

    /// There is no such map run.
    pub(crate) fn map_run_not_found(arn: &str) -> ApiError {
        ApiError::new(ErrorCode::ResourceNotFound, format!("Resource not found: '{arn}'"))
    }

    /// There is no such task, though the token is well formed.
    #[must_use]
    pub fn task_does_not_exist() -> ApiError {
        ApiError::new(ErrorCode::TaskDoesNotExist, "Task Does Not Exist: 'Provided task does not exist'")
    }

    /// The task has ended, by its timeout or otherwise.
    #[must_use]
    pub fn task_timed_out() -> ApiError {
        ApiError::new(ErrorCode::TaskTimedOut, "Task Timed Out: 'Provided task does not exist anymore'")
    }

    /// The client asks too often. SDKs try again by themselves.
    #[must_use]
    pub fn throttling() -> ApiError {
        ApiError::new(ErrorCode::ThrottlingException, "Rate exceeded")
    }

    /// The server cannot answer now. SDKs try again by themselves.
    #[must_use]
    pub fn service_unavailable() -> ApiError {
        ApiError::new(ErrorCode::ServiceUnavailable, "The service is temporarily unavailable. Try again later.")
    }

    /// The server's own fault.
    #[must_use]
    pub fn internal_failure() -> ApiError {
        ApiError::new(ErrorCode::InternalFailure, "The request processing has failed because of an internal error.")
    }

    /// The body has more bytes than [`BODY_MAX`].
    #[must_use]
    pub fn too_large() -> ApiError {
        ApiError::new(ErrorCode::RequestEntityTooLargeException, format!("The request has more than {BODY_MAX} bytes"))
    }
}

impl From<ArnError> for ApiError {
    fn from(error: ArnError) -> ApiError {
        ApiError::new(ErrorCode::InvalidArn, format!("Invalid Arn: '{error}'"))
    }
}
