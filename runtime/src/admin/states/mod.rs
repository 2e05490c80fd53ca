//! The API of AWS Step Functions: executions of workflows for clients such as `aws stepfunctions --endpoint-url` and boto3.
//!
//! ```text
//!   listener --HTTP--> StatesApi: body, signature (Keys) --Request--> Asked: a function for each operation --> Executions
//! ```
//!
//! What the protocol is, the crate `sledge-aws` knows. A key sees the workflows of its tenant alone: the tenant is the account in ARNs. The region is `local`; clients may write and sign for any.
//!
//! It runs on the admin API's thread, at an address of its own. What reads the disk has other threads, and executions have theirs.

mod asked;
mod express;
mod keys;
mod machine;
mod page;
mod redriven;
mod refusal;
#[cfg(test)]
mod tests;

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body, Incoming};
use hyper::header::{CONNECTION, HeaderValue};
use hyper::{Request, Response, StatusCode};
use serde_json::value::RawValue;
use sledge_aws::limits::BODY_MAX;
use sledge_aws::{ApiError, Message, Operation, RequestId, SERVICE};
use tokio::sync::Semaphore;

use self::asked::Asked;
pub use self::keys::Keys;
use self::redriven::Redriven;
use crate::timeout::within;
use crate::workflow::{Executions, now_ms};

/// The region in ARNs.
const REGION: &str = "local";
/// Bodies that arrive at the same time, each of at most [`BODY_MAX`] bytes; further ones wait.
const BODIES_MAX: usize = 64;
/// Bytes of a body that is too large which are read nevertheless.
const DISCARDED_MAX: u64 = 16 << 20;
/// How long a body may take to arrive.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

type Answer = sledge_aws::Answer<Box<RawValue>>;

/// What answers requests at the API of AWS Step Functions.
#[derive(Debug)]
pub struct StatesApi {
    keys: Keys,
    executions: Executions,
    bodies: Semaphore,
    redriven: Redriven,
}

/// Why there is no body.
enum Unread {
    /// It is too large.
    TooLarge,
    /// It does not come, or breaks off.
    Broken,
}

impl StatesApi {
    /// For clients with these keys.
    #[must_use]
    pub fn new(keys: Keys, executions: Executions) -> StatesApi {
        StatesApi { keys, executions, bodies: Semaphore::new(BODIES_MAX), redriven: Redriven::default() }
    }

    /// Answers a request.
    pub async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let (head, body) = request.into_parts();
        let id = RequestId(fastrand::u128(..));
        let outcome = match self.body(body).await {
            Ok(body) => {
                let message = Message {
                    method: &head.method,
                    path: head.uri.path(),
                    query: head.uri.query(),
                    authority: head.uri.authority().map(|authority| authority.as_str()),
                    headers: &head.headers,
                    body: &body,
                };
                self.outcome(&message).await
            }
            Err(Unread::TooLarge) => Err(ApiError::too_large()),
            Err(Unread::Broken) => return broken(),
        };
        if let Err(error) = &outcome {
            let code = error.code();
            if code.status().is_server_error() {
                tracing::warn!(request = %id, %error, "a request at the API of AWS Step Functions failed");
            } else {
                tracing::debug!(request = %id, %error, "a request at the API of AWS Step Functions is refused");
            }
        }
        sledge_aws::answer::render(&outcome, id).map(|body| Full::new(Bytes::from(body)))
    }

    /// All of a request's body: the signature is also for that.
    async fn body(&self, body: Incoming) -> Result<Vec<u8>, Unread> {
        if body.size_hint().lower() > DISCARDED_MAX {
            return Err(Unread::TooLarge);
        }
        // Never closed.
        let _place = self.bodies.acquire().await;
        within(BODY_TIMEOUT, whole(body)).await.unwrap_or(Err(Unread::Broken))
    }

    /// Whose request it is, whether that client may ask so, and what comes of it.
    async fn outcome(&self, message: &Message<'_>) -> Result<Answer, ApiError> {
        let signer = sledge_aws::verify(message, SERVICE, now_ms(), |id| self.keys.secret(id))?;
        // It was there for the signature.
        let caller = self.keys.caller(&signer.key_id).ok_or_else(ApiError::internal_failure)?;
        let operation = Operation::read(message)?;
        if caller.is_read_only && !only_looks(operation) {
            let tenant = &caller.tenant;
            let user = format!("arn:aws:iam::{tenant}:user/{}", signer.key_id);
            return Err(ApiError::access_denied(&user, operation.action(), &format!("arn:aws:states:{REGION}:{tenant}:*")));
        }
        let request = sledge_aws::Request::read(message)?;
        Asked { executions: &self.executions, redriven: &self.redriven, tenant: &caller.tenant }.answer(request).await
    }
}

/// Reads a body. One that is too large is read on without being kept, within limits: a client that is still sending would not see the answer.
async fn whole(mut body: Incoming) -> Result<Vec<u8>, Unread> {
    let (mut kept, mut bytes) = (Vec::new(), 0);
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| Unread::Broken)?.into_data() else { continue };
        bytes += data.len() as u64;
        if bytes <= BODY_MAX as u64 {
            kept.extend_from_slice(&data);
        } else if bytes <= DISCARDED_MAX {
            kept = Vec::new();
        } else {
            return Err(Unread::TooLarge);
        }
    }
    if bytes <= BODY_MAX as u64 { Ok(kept) } else { Err(Unread::TooLarge) }
}

/// Whether an operation changes nothing.
const fn only_looks(operation: Operation) -> bool {
    match operation {
        Operation::DescribeExecution
        | Operation::GetExecutionHistory
        | Operation::ListExecutions
        | Operation::DescribeStateMachine
        | Operation::ListStateMachines
        | Operation::DescribeStateMachineForExecution => true,
        Operation::StartExecution
        | Operation::StartSyncExecution
        | Operation::StopExecution
        | Operation::RedriveExecution
        | Operation::SendTaskSuccess
        | Operation::SendTaskFailure
        | Operation::SendTaskHeartbeat => false,
    }
}

/// The answer to a request of which not all comes.
fn broken() -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = StatusCode::REQUEST_TIMEOUT;
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

/// What should never be: the server's own fault. The log says what it is.
fn internal(what: impl std::fmt::Display) -> ApiError {
    tracing::error!("the API of AWS Step Functions: {what}");
    ApiError::internal_failure()
}
