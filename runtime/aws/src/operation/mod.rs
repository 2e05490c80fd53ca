//! What a client asks for: `X-Amz-Target: AWSStepFunctions.NAME`, with the members in a JSON object.
//!
//! - `members`: members of the body, checked one by one; `execution`, `task`, `machine`: the operations on each;
//!   `page`: what lists have in common.
//!
//! A body is checked in AWS's order: first the types of all members (`SerializationException`), then the model's constraints, all at once
//! (`ValidationException`), then what the service itself checks (`InvalidArn`, `InvalidName`, ...). Unknown members are ignored.

mod execution;
mod machine;
mod members;
mod page;
mod task;

use http::Method;

pub use execution::{
    DescribeExecution, GetExecutionHistory, ListExecutions, RedriveExecution, StartExecution, StartSyncExecution, StopExecution,
};
pub use machine::{DescribeStateMachine, DescribeStateMachineForExecution, ListStateMachines};
pub use page::Page;
pub use task::{SendTaskFailure, SendTaskHeartbeat, SendTaskSuccess, TaskToken};

use crate::arn::MachineArn;
use crate::error::{ApiError, ErrorCode};
use crate::limits::BODY_MAX;
use crate::message::Message;
use members::Members;

/// What precedes an operation's name in `X-Amz-Target`.
const TARGET_PREFIX: &str = "AWSStepFunctions.";
/// The one type of bodies.
pub(crate) const CONTENT_TYPE: &str = "application/x-amz-json-1.0";
/// Operations of AWS that change or list what is deployed here by files, or that do not exist here.
const ABSENT: &[&str] = &[
    "CreateActivity",
    "CreateStateMachine",
    "CreateStateMachineAlias",
    "DeleteActivity",
    "DeleteStateMachine",
    "DeleteStateMachineAlias",
    "DeleteStateMachineVersion",
    "DescribeActivity",
    "DescribeMapRun",
    "DescribeStateMachineAlias",
    "GetActivityTask",
    "ListActivities",
    "ListMapRuns",
    "ListStateMachineAliases",
    "ListStateMachineVersions",
    "ListTagsForResource",
    "PublishStateMachineVersion",
    "TagResource",
    "TestState",
    "UntagResource",
    "UpdateMapRun",
    "UpdateStateMachine",
    "UpdateStateMachineAlias",
    "ValidateStateMachineDefinition",
];

/// The operations, each with a struct of its members.
macro_rules! operations {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// An operation of the service.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Operation { $($(#[$doc])* $name,)* }

        /// An operation with its members.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Request { $($(#[$doc])* $name($name),)* }

        impl Operation {
            /// Every operation.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The name, as in `X-Amz-Target`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)* }
            }

            /// The action of access policies: `states:NAME`.
            #[must_use]
            pub const fn action(self) -> &'static str {
                match self { $(Self::$name => concat!("states:", stringify!($name)),)* }
            }
        }

        impl Request {
            /// Which operation it is.
            #[must_use]
            pub const fn operation(&self) -> Operation {
                match self { $(Self::$name(_) => Operation::$name,)* }
            }

            fn of(operation: Operation, members: Members) -> Result<Request, ApiError> {
                match operation { $(Operation::$name => $name::read(members).map(Self::$name),)* }
            }
        }
    };
}

operations! {
    /// Starts an execution.
    StartExecution,
    /// Runs an execution of an express state machine, and waits for its end.
    StartSyncExecution,
    /// Tells how an execution stands.
    DescribeExecution,
    /// Lists the events of an execution.
    GetExecutionHistory,
    /// Stops an execution.
    StopExecution,
    /// Lists the executions of a state machine.
    ListExecutions,
    /// Continues a failed execution where it failed.
    RedriveExecution,
    /// Ends a task that waits for its token, with an output.
    SendTaskSuccess,
    /// Ends a task that waits for its token, with an error.
    SendTaskFailure,
    /// Tells that a task which waits for its token is still worked on.
    SendTaskHeartbeat,
    /// Tells the definition of a state machine.
    DescribeStateMachine,
    /// Lists the state machines.
    ListStateMachines,
    /// Tells the definition with which an execution was started.
    DescribeStateMachineForExecution,
}

impl Operation {
    /// Which operation a request asks for, by its method, path and headers. The caller can decide by it which client may ask so, before the body is read.
    ///
    /// # Errors
    /// `UnknownOperationException`.
    pub fn read(message: &Message<'_>) -> Result<Operation, ApiError> {
        let unknown = |text: String| ApiError::new(ErrorCode::UnknownOperationException, text);
        if message.method != Method::POST || message.path != "/" {
            return Err(unknown("Requests must be POST to the path '/'".to_owned()));
        }
        let content_type = message.header("content-type").unwrap_or_default();
        if !content_type.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(CONTENT_TYPE) {
            return Err(unknown(format!("The header Content-Type must be {CONTENT_TYPE}")));
        }
        let target = message.header("x-amz-target").unwrap_or_default();
        let Some(name) = target.strip_prefix(TARGET_PREFIX) else {
            return Err(unknown(format!("The header X-Amz-Target must be {TARGET_PREFIX}OPERATION, once")));
        };
        if let Some(operation) = Self::ALL.iter().find(|operation| operation.name() == name) {
            return Ok(*operation);
        }
        Err(unknown(match ABSENT.iter().find(|absent| **absent == name) {
            Some(absent) => format!("{absent} is not supported by this server: state machines are deployed as files"),
            None => "There is no such operation".to_owned(),
        }))
    }
}

impl Request {
    /// Reads a request whose signature the caller has verified.
    ///
    /// # Errors
    /// What AWS answers: `UnknownOperationException`, `SerializationException`, `ValidationException`, `InvalidArn`, `InvalidName`, `InvalidExecutionInput`,
    /// `InvalidOutput`, `ResourceNotFound` or `RequestEntityTooLargeException`.
    pub fn read(message: &Message<'_>) -> Result<Request, ApiError> {
        let operation = Operation::read(message)?;
        if message.body.len() > BODY_MAX {
            return Err(ApiError::too_large());
        }
        Request::of(operation, Members::read(message.body)?)
    }

    /// The state machine that the request is about, itself or by one of its executions: what access is decided by. Requests with the token of a task, and lists
    /// of state machines, name none.
    #[must_use]
    pub fn machine(&self) -> Option<&MachineArn> {
        Some(match self {
            Request::StartExecution(start) => &start.machine,
            Request::StartSyncExecution(sync) => &sync.start.machine,
            Request::ListExecutions(list) => &list.machine,
            Request::DescribeStateMachine(described) => &described.machine,
            Request::DescribeExecution(described) => described.execution.machine(),
            Request::GetExecutionHistory(history) => history.execution.machine(),
            Request::StopExecution(stop) => stop.execution.machine(),
            Request::RedriveExecution(redrive) => redrive.execution.machine(),
            Request::DescribeStateMachineForExecution(described) => described.execution.machine(),
            Request::SendTaskSuccess(_)
            | Request::SendTaskFailure(_)
            | Request::SendTaskHeartbeat(_)
            | Request::ListStateMachines(_) => {
                return None;
            }
        })
    }
}
