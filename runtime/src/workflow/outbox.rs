//! Requests that functions have left behind in their transactions' commits (`effects = "outbox"`), each sent by a durable execution of its own.
//!
//! The workflow `outbox:FUNCTION` has one task, which sends the request and is repeated until the server has answered, or the request is too old. Where its function may not ask the server
//! any more, it is not sent.

use std::sync::Arc;
use std::time::{Duration, Instant};

use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use sledge_workflow::definition::Definition;
use sledge_workflow::machine::Failure;

use super::failure::failed;
use super::{Reach, Workflow};
use crate::config::{AsynchronousConfig, WorkflowConfig};
use crate::invoke::function::Function;
use crate::upstream::posted;
use crate::upstream::{self, Upstream};

/// What the names of such workflows begin with.
pub(super) const OF_OUTBOX: &str = "outbox:";
/// How long an answer may take.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(60);
/// Bytes of an answer that are taken, so that its connection can be used again.
const ANSWER_BYTES_MAX: usize = 64 << 10;
/// The time until a request is sent again, in seconds: it doubles up to the second.
const RETRY_AFTER_S: u64 = 1;
const RETRY_AFTER_S_MAX: u64 = 300;
/// More than there is time for.
const RETRIES: u64 = 99_999_999;
/// Statuses below 500 that ask for the request once more: Request Timeout, Too Early, Too Many Requests.
const TRY_AGAIN: [u16; 3] = [408, 425, 429];

/// What a request fails with that is not sent again.
const REFUSED: &str = "Outbox.Refused";
const NOT_ALLOWED: &str = "Outbox.NotAllowed";
const MALFORMED: &str = "Outbox.Malformed";
/// What it fails with that is.
const UNANSWERED: &str = "Outbox.Unanswered";

impl Workflow {
    /// One that sends the requests that a function has left behind.
    pub(super) fn of_outbox(tenant: &str, function: &Function, reach: Reach) -> Workflow {
        let definition = json!({
            "TimeoutSeconds": function.outbox_age_max.as_secs(),
            "StartAt": "Send",
            "States": {
                "Send": {
                    "Type": "Task",
                    "Resource": "arn:aws:states:::http:invoke",
                    "Retry": [
                        { "ErrorEquals": [REFUSED, NOT_ALLOWED, MALFORMED], "MaxAttempts": 0 },
                        {
                            "ErrorEquals": ["States.ALL"],
                            "IntervalSeconds": RETRY_AFTER_S, "BackoffRate": 2.0, "MaxDelaySeconds": RETRY_AFTER_S_MAX, "MaxAttempts": RETRIES,
                        },
                    ],
                    "End": true,
                },
            },
        });
        let definition = Definition::parse(&definition.to_string()).map_err(|mistakes| format!("{mistakes:?}"));
        // What the function says of calls that clients do not wait for holds for these, too, but for how many are carried out.
        let AsynchronousConfig { calls_max, retention_days, .. } = function.asynchronous.clone().unwrap_or_default();
        let kept = AsynchronousConfig { calls_max, retention_days, ..AsynchronousConfig::default() };
        let config = WorkflowConfig::of_function(tenant, &format!("{OF_OUTBOX}{}", function.name()), &kept);
        Workflow { upstream: function.process.upstream.clone(), ..Workflow::new(config, definition, reach) }
    }

    /// Whether it sends what a function has left behind.
    pub(super) fn is_outbox(&self) -> bool {
        self.config.name.starts_with(OF_OUTBOX)
    }
}

/// Sends a request. Any answer is one, unless it says that the server could not deal with it or asks for the request once more.
pub(super) async fn deliver(upstream: Option<&Arc<Upstream>>, posted: &Value, deadline: Instant) -> Result<Value, Failure> {
    let request = posted::read(posted).map_err(|why| failed(MALFORMED, why))?;
    let upstream = upstream.filter(|upstream| upstream.allows(&request)).ok_or_else(|| {
        let host = request.uri().authority().map(ToString::to_string).unwrap_or_default();
        failed(NOT_ALLOWED, format!("{host} is not in the function's http_hosts: put it back there and redrive the execution"))
    })?;
    let answered = async {
        let response = Arc::clone(upstream).send(request).await.map_err(|failure| match failure {
            upstream::Failure::NotAllowed { .. } | upstream::Failure::AddressNotAllowed { .. } => {
                failed(NOT_ALLOWED, failure.to_string())
            }
            failure => failed(UNANSWERED, failure.to_string()),
        })?;
        let (head, mut body) = response.into_parts();
        let mut taken = 0;
        while let Some(Ok(frame)) = body.frame().await {
            taken += frame.data_ref().map_or(0, bytes::Bytes::len);
            if taken > ANSWER_BYTES_MAX {
                break;
            }
        }
        Ok(head.status)
    };
    let deadline = deadline.min(Instant::now() + ANSWER_TIME_MAX);
    let status = tokio::time::timeout_at(deadline.into(), answered)
        .await
        .unwrap_or_else(|_| Err(failed(UNANSWERED, format!("the server did not answer within {ANSWER_TIME_MAX:?}"))))?;
    let code = status.as_u16();
    match code {
        500.. => Err(failed(UNANSWERED, format!("status {code}"))),
        400.. if TRY_AGAIN.contains(&code) => Err(failed(UNANSWERED, format!("status {code}"))),
        400.. => Err(failed(REFUSED, format!("status {code}"))),
        _ => Ok(json!({ "StatusCode": code })),
    }
}
