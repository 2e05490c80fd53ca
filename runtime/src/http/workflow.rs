//! Requests that start workflows: the body is the input, the response is the output.

use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http_body_util::Either;
use hyper::body::{Body as _, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Response, StatusCode};
use serde_json::{Value, json};
use sledge_workflow::machine::Outcome;

use super::HttpService;
use super::body::Reading;
use super::handled::{Handled, Manner};
use super::response::{self, Answer, Whole};
use crate::host::Body;
use crate::invoke::function::Function;
use crate::invoke::{Input, Invocation};
use crate::outcome::Failure;
use crate::reply;
use crate::timeout::within;
use crate::workflow::{Runner, Workflow, execute};

/// Bytes of an input that are read: four times what a state may have, so that the execution itself says that it is too much where it is near to that.
const INPUT_BYTES_MAX: u64 = 1 << 20;
const METHODS: HeaderValue = HeaderValue::from_static("POST");
const METHODS_WITH_OPTIONS: HeaderValue = HeaderValue::from_static("POST, OPTIONS");

/// Functions that an execution calls run as those of requests: here first, on this thread.
impl Runner for Rc<HttpService> {
    fn begin(&self, function: &Arc<Function>, body: Bytes, deadline: Instant) -> Result<reply::Answer, Failure> {
        let admission = self.dispatcher.admit(function)?;
        let mut input = Body::default();
        input.push(body);
        let input = Input { head: None, body: input };
        let mut invocation = Invocation::new(Arc::clone(function), admission, None, input, Instant::now());
        invocation.deadline = invocation.deadline.min(deadline);
        Ok(self.dispatcher.begin(invocation, &**self))
    }

    fn ended(&self, function: &Function, failure: Option<&Failure>) {
        self.shard.note(function, |row| row.ended(failure));
    }
}

/// The answer to a request for a workflow.
pub(super) async fn answer(
    service: Rc<HttpService>,
    workflow: Arc<Workflow>,
    head: Parts,
    incoming: Incoming,
    manner: Manner,
) -> Handled {
    match run(&service, &workflow, &head, incoming).await {
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
    workflow: &Workflow,
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
    Ok(match execute(workflow, service, input).await {
        Outcome::Succeeded(output) => told(StatusCode::OK, &output),
        Outcome::Failed(failure) | Outcome::Aborted(failure) => {
            let (error, cause) = (failure.error.as_deref(), failure.cause.as_deref());
            let words = json!({ "code": "workflow_failed", "error": error, "cause": cause, "workflow": workflow.config.name });
            told(StatusCode::INTERNAL_SERVER_ERROR, &words)
        }
        Outcome::TimedOut => {
            let words = json!({ "code": "deadline", "error": "States.Timeout", "workflow": workflow.config.name });
            told(StatusCode::GATEWAY_TIMEOUT, &words)
        }
    })
}

/// All of a request's body.
async fn read(service: &HttpService, incoming: Incoming) -> Result<Bytes, Failure> {
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

fn told(status: StatusCode, value: &Value) -> Response<Answer> {
    let mut response = Response::new(Either::Left(Whole::from(Bytes::from(value.to_string()))));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
