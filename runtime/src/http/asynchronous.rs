//! Requests whose clients do not wait for the function's reply: `Prefer: respond-async` (RFC 7240, section 4.1). They are kept in the store and carried out as durable executions.

use std::rc::Rc;
use std::sync::Arc;

use hyper::StatusCode;
use hyper::body::Incoming;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use serde_json::json;

use super::HttpService;
use super::handled::{Handled, Manner};
use super::response::Answer;
use super::router::{Place, Route};
use super::workflow::{preferences, read, refusal, told};
use crate::outcome::Failure;
use crate::workflow::Workflow;
use crate::workflow::durable::{Refused, Started, name_of, status_name};
use crate::workflow::request::{is_same, kept};

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const APPLIED: HeaderName = HeaderName::from_static("preference-applied");
const RESPOND_ASYNC: &str = "respond-async";

/// The workflow that carries a request out later, if its function has one and its client wants that.
pub(super) fn wanted(route: &Route, headers: &HeaderMap) -> Option<Arc<Workflow>> {
    let workflow = route.asynchronous.as_ref()?;
    preferences(headers).any(|preference| preference.eq_ignore_ascii_case(RESPOND_ASYNC)).then(|| Arc::clone(workflow))
}

/// The answer: 202 as soon as the request is kept.
pub(super) async fn answer(
    service: Rc<HttpService>,
    (route, workflow): (Arc<Route>, Arc<Workflow>),
    head: Parts,
    incoming: Incoming,
    manner: Manner,
) -> Handled {
    let place = Place::Served(route);
    match keep(&service, &workflow, &head, incoming).await {
        Ok(response) => Handled::answered(response, Some(place), manner),
        Err(failure) => Handled::failed(failure, Some(place), manner),
    }
}

async fn keep(
    service: &HttpService,
    workflow: &Arc<Workflow>,
    head: &Parts,
    incoming: Incoming,
) -> Result<hyper::Response<Answer>, Failure> {
    let Some(executions) = workflow.executions() else { return Err(Failure::NoStore) };
    let body = read(service, incoming).await?;
    let request = kept(head, &body, service.tls.is_some());
    // A client that repeats it with the same key gets the same answer, and the function is called once.
    let key = head.headers.get(IDEMPOTENCY_KEY).map(|key| key.to_str().unwrap_or_default().to_owned());
    let (place, summary) = match executions.start(workflow, key.clone(), request.clone()).await {
        Ok(Started { place, summary }) => (place, summary),
        Err(Refused::Exists { summary }) if is_same(&summary.input, &request) => {
            (workflow.place(key.as_deref().unwrap_or_default()), *summary)
        }
        Err(Refused::TooMany(max)) => {
            let words =
                json!({ "code": "calls_max", "error": format!("the function has {max} calls that are not done (calls_max)") });
            return Ok(told(StatusCode::TOO_MANY_REQUESTS, &words));
        }
        Err(refused) => return refusal(&refused),
    };
    let words = json!({ "execution": &*place.name, "executionArn": name_of(&place), "status": status_name(summary.status) });
    let mut response = told(StatusCode::ACCEPTED, &words);
    response.headers_mut().insert(APPLIED, HeaderValue::from_static(RESPOND_ASYNC));
    Ok(response)
}
