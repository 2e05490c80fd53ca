//! Requests that start workflows: the body is the input, the response is the output.

use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::Either;
use hyper::body::{Body as _, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Response, StatusCode};
use serde_json::{Value, json};
use sledge_workflow::machine::{Outcome, Status};

use super::HttpService;
use super::body::Reading;
use super::handled::{Handled, Manner};
use super::response::{self, Answer, Whole};
use crate::invoke::Input;
use crate::invoke::function::Function;
use crate::invoke::urgency::Root;
use crate::outcome::Failure;
use crate::reply;
use crate::speculate::depth::Load;
use crate::telemetry::Trace;
use crate::timeout::within;
use crate::worker::Following;
use crate::workflow::durable::{Refused, Started, name_of, status_name};
use crate::workflow::{Call, Named, Runner, Workflow, called, execute_as, invocation};

/// Bytes of an input that are read: four times what a state may have, so that the execution itself says that it is too much where it is near to that.
const INPUT_BYTES_MAX: u64 = 1 << 20;
/// For how long a client may wait for the end of an execution.
const WAIT_MAX: Duration = Duration::from_secs(300);
/// The name of an execution that has gone ahead of itself, for `sledge workflow explain`.
const EXECUTION: HeaderName = HeaderName::from_static("sledge-execution");
const PREFER: HeaderName = HeaderName::from_static("prefer");
const METHODS: HeaderValue = HeaderValue::from_static("POST");
const METHODS_WITH_OPTIONS: HeaderValue = HeaderValue::from_static("POST, OPTIONS");

/// Functions that an execution calls run as those of requests: here first, on this thread.
impl Runner for Rc<HttpService> {
    fn begin(&self, call: Call<'_>) -> Result<reply::Answer, Failure> {
        let follows = call.follows;
        let invocation = called(&self.dispatcher, call)?;
        Ok(match &self.local {
            Some(local) if follows => self.dispatcher.begin(invocation, Following(local)),
            Some(local) => self.dispatcher.begin(invocation, &**local),
            None => self.dispatcher.begin(invocation, &*self.dispatcher),
        })
    }

    fn send(&self, function: &Arc<Function>, body: Bytes) -> Result<(), Failure> {
        self.dispatcher.begin_unanswered(invocation(&self.dispatcher, function, Input::of(body), None, None)?, &**self);
        Ok(())
    }

    fn ended(&self, function: &Function, failure: Option<&Failure>) {
        self.shard.note(function, |row| row.ended(failure));
    }

    fn root(&self) -> Root {
        self.dispatcher.root()
    }

    fn load(&self) -> Load {
        self.dispatcher.workload(Instant::now())
    }
}

/// The answer to a request for a workflow.
pub(super) async fn answer(
    service: Rc<HttpService>,
    (workflow, trace): (Arc<Workflow>, Option<Arc<Trace>>),
    head: Parts,
    incoming: Incoming,
    manner: Manner,
) -> Handled {
    match run(&service, (&workflow, trace), &head, incoming).await {
        Ok(response) => Handled::answered(response, None, manner),
        Err(failure) => {
            let is_method = failure == Failure::MethodNotAllowed;
            let mut handled = Handled::failed(failure, None, manner);
            if is_method {
                handled.response.headers_mut().insert(ALLOW, METHODS);
            }
            handled
        }
    }
}

async fn run(
    service: &Rc<HttpService>,
    (workflow, trace): (&Arc<Workflow>, Option<Arc<Trace>>),
    head: &Parts,
    incoming: Incoming,
) -> Result<Response<Answer>, Failure> {
    match head.method {
        Method::POST => {}
        Method::OPTIONS => return Ok(response::options(&METHODS_WITH_OPTIONS)),
        _ => return Err(Failure::MethodNotAllowed),
    }
    if workflow.problem().is_some() {
        return Err(Failure::Quarantined);
    }
    let body = read(service, incoming).await?;
    // Without a body the input is an empty object, as with StartExecution.
    let input = if body.is_empty() {
        json!({})
    } else {
        serde_json::from_slice(&body).map_err(|_| Failure::BadHead("input_not_json"))?
    };
    if workflow.is_durable() {
        return start(workflow, head, input).await;
    }
    // So that it can be asked what the execution did.
    let named = workflow.speculates().then(|| Named::random(workflow));
    let mut response = match execute_as(workflow, service, input, named.as_ref(), trace).await {
        Outcome::Succeeded(output) => told(StatusCode::OK, &output),
        Outcome::Failed(failure) | Outcome::Aborted(failure) => {
            failed(workflow, failure.error.as_deref(), failure.cause.as_deref())
        }
        Outcome::TimedOut => timed_out(workflow),
    };
    if let Some(name) = named.and_then(|named| HeaderValue::from_str(&named.name).ok()) {
        response.headers_mut().insert(EXECUTION, name);
    }
    Ok(response)
}

fn failed(workflow: &Workflow, error: Option<&str>, cause: Option<&str>) -> Response<Answer> {
    let words = json!({ "code": "workflow_failed", "error": error, "cause": cause, "workflow": workflow.config.name });
    told(StatusCode::INTERNAL_SERVER_ERROR, &words)
}

fn timed_out(workflow: &Workflow) -> Response<Answer> {
    let words = json!({ "code": "deadline", "error": "States.Timeout", "workflow": workflow.config.name });
    told(StatusCode::GATEWAY_TIMEOUT, &words)
}

/// Starts a durable execution. The client gets its name, or its output if it asks for that (`Prefer: wait=SECONDS`) and it ends in time.
async fn start(workflow: &Arc<Workflow>, head: &Parts, input: Value) -> Result<Response<Answer>, Failure> {
    let Some(executions) = workflow.executions() else { return Err(Failure::NoStore) };
    // What a name may hold is never encoded.
    let name = head.uri.query().and_then(|query| query.split('&').find_map(|pair| pair.strip_prefix("name=")));
    let started = executions.start(workflow, name.map(str::to_owned), input).await;
    let Started { place, summary } = match started {
        Ok(started) => started,
        Err(refused) => return refusal(&refused),
    };
    let execution = json!({ "execution": &*place.name, "executionArn": name_of(&place), "status": status_name(summary.status) });
    let Some(time) = wait_time(&head.headers) else { return Ok(told(StatusCode::ACCEPTED, &execution)) };
    match within(time, executions.wait(place)).await {
        Some(Ok(ended)) => Ok(match (ended.status, &ended.output) {
            (Status::Succeeded, Some(output)) => told(StatusCode::OK, output),
            (Status::TimedOut, _) => timed_out(workflow),
            _ => failed(workflow, ended.error.as_deref(), ended.cause.as_deref()),
        }),
        // It goes on, also where the server stops.
        Some(Err(_)) | None => Ok(told(StatusCode::ACCEPTED, &execution)),
    }
}

/// For how long a client waits for the end: `Prefer: wait=SECONDS` (RFC 7240, section 4.3).
fn wait_time(headers: &HeaderMap) -> Option<Duration> {
    let mut waits =
        preferences(headers).filter_map(|preference| preference.strip_prefix("wait=")?.trim_matches('"').parse().ok());
    waits.next().map(|seconds: u64| Duration::from_secs(seconds).min(WAIT_MAX))
}

/// What a client prefers (RFC 7240).
pub(super) fn preferences(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let values = headers.get_all(PREFER).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim)
}

/// Why an execution was not started, as clients are told it.
pub(super) fn refusal(refused: &Refused) -> Result<Response<Answer>, Failure> {
    let (status, code) = match refused {
        Refused::Name => (StatusCode::BAD_REQUEST, "bad_name"),
        Refused::Exists { .. } => (StatusCode::CONFLICT, "execution_exists"),
        Refused::InputTooLarge(_) => return Err(Failure::BodyTooLarge),
        Refused::Key(_) => (StatusCode::BAD_REQUEST, "bad_key"),
        Refused::TooMany(_) => (StatusCode::TOO_MANY_REQUESTS, "executions_max"),
        Refused::Full { .. } => (StatusCode::TOO_MANY_REQUESTS, "executions_tenant_bytes_max"),
        Refused::Quarantined(_) => return Err(Failure::Quarantined),
        Refused::Stopping => return Err(Failure::Stopping),
        _ => return Err(Failure::NoStore),
    };
    Ok(told(status, &json!({ "code": code, "error": refused.to_string() })))
}

/// All of a request's body.
pub(super) async fn read(service: &HttpService, incoming: Incoming) -> Result<Bytes, Failure> {
    if incoming.is_end_stream() {
        return Ok(Bytes::new());
    }
    let bytes_max = service.body_bytes_max.min(INPUT_BYTES_MAX);
    if super::body::is_declared_too_large(&incoming, bytes_max) {
        return Err(Failure::BodyTooLarge);
    }
    let mut reading = Reading::new(incoming, bytes_max);
    let body = within(service.timeouts.body, poll_fn(|task| reading.poll(None, task))).await;
    Ok(body.unwrap_or(Err(Failure::BodyTimeout))?.into_bytes())
}

pub(super) fn told(status: StatusCode, value: &Value) -> Response<Answer> {
    let mut response = Response::new(Either::Left(Whole::from(Bytes::from(value.to_string()))));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
