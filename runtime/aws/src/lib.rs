//! AWS's JSON protocol of Step Functions: what `aws stepfunctions --endpoint-url` and boto3 send, and what they expect.
//!
//! ```text
//!   server --Message, time--> signature::verify --> Signer (which key, which region)
//!          --Message--------> Request::read     --> Request | ApiError
//!          <--http::Response-- answer::render   <-- Answer  | ApiError
//! ```
//!
//! - [`signature`]: Signature Version 4 in the header `Authorization`.
//! - [`operation`]: which operation is asked for, with its members checked as AWS does.
//! - [`mod@answer`]: answers and errors as HTTP responses.
//! - [`arn`]: names of state machines and executions.
//! - [`error`]: errors as AWS names them; [`message`]: an HTTP request as plain data; [`limits`]: every limit.
//!
//! This crate knows neither sockets nor executions, and reads no clock: the caller passes bytes and the time in. It never panics on what a client sends, and its
//! memory is bounded by [`limits::BODY_MAX`].
//!
//! The shapes are those of the service's model, version 2016-11-23.

#![forbid(unsafe_code)]

pub mod answer;
pub mod arn;
pub mod error;
mod instant;
pub mod limits;
pub mod message;
mod name;
pub mod operation;
pub mod signature;
mod status;

pub use answer::{Answer, RequestId, Timestamp};
pub use arn::{ArnError, ExecutionArn, MachineArn};
pub use error::{ApiError, ErrorCode};
pub use message::Message;
pub use name::is_name;
pub use operation::{Operation, Request};
pub use signature::{Refusal, Secret, Signer, verify};
pub use status::{ExecutionStatus, IncludedData, MachineType, RedriveFilter, RedriveStatus};

/// The service's name in the scope of a signature.
pub const SERVICE: &str = "states";
