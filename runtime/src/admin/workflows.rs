//! Workflows and their durable executions at the admin API.
//!
//! | request | answer |
//! |---|---|
//! | `GET /workflows` | all workflows |
//! | `GET /workflows/NAME/executions?status=S&after=POSITION&max=N` | executions, the newest first, and `next`, the position of the next page, if there is one |
//! | `POST /workflows/NAME/executions?name=EXECUTION` | starts one with the body as its input |
//! | `GET /workflows/NAME/executions/EXECUTION` | one execution, with the definition and the versions of functions to which it is pinned |
//! | `DELETE /workflows/NAME/executions/EXECUTION` | removes one that has ended, with its history |
//! | `GET /workflows/NAME/executions/EXECUTION/history?after=N&max=N&reverse=true` | events of its history, named as Step Functions names them, and `next` |
//! | `GET /workflows/NAME/executions/EXECUTION/definition` | the definition by which it goes on: `{"definition": TEXT}` |
//! | `POST /workflows/NAME/executions/EXECUTION/stop` | stops it; the body may be `{"error": ..., "cause": ...}` |
//! | `POST /workflows/NAME/executions/EXECUTION/redrive` | has it go on where it failed |
//! | `POST /workflows/NAME/executions/EXECUTION/restart?from=STATE` | has it go on at that state, with the body as the state's input; without a body with the input that it had last |
//! | `POST /workflows/NAME/executions/EXECUTION/pause`, `.../resume` | pauses it, or lets it go on |
//! | `POST /workflows/NAME/pause`, `.../resume` | pauses the workflow with all its executions and those that begin, or lets them go on |
//! | `GET /workflows/NAME/explain?execution=EXECUTION` | what an express execution did that went ahead of itself: without a name the last one |
//! | `GET /workflows/NAME/explained` | those of which that is kept, the last one first |
//! | `GET /workflows/NAME/queues` | where the workflow has limits: what runs and waits, by key, those with the longest queues first |
//! | `POST /workflows/NAME/executions/EXECUTION/repin` | moves it to the versions of functions that are served now; with `definition=true` also to the definition, if that has the states in which it is |
//! | `POST /callbacks` | the answer of a task that waits for it: `{"token": ..., "output": ...}`, `{"token": ..., "error": ..., "cause": ...}`, or `{"token": ...}` as a sign of life |
//!
//! All but the last take `tenant=T`; without it the tenant is `default`, or that of the client, which cannot name another one.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use hyper::{Method, Request, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};
use sledge_workflow::machine::{Event, Status};

use super::api::{Answer, Refusal, answer, not_allowed, option};
use crate::deploy::{Deployer, Scope};
use crate::kv::Order;
use crate::workflow::durable::journal::{EVENTS_MAX, LISTED_MAX, Listing, Place, Position, Summary};
use crate::workflow::durable::{Executions, Pinned, Refused, Started, name_of, status_name};

/// Bytes of a body: an input or an output, with room for how it is written.
const BODY_BYTES_MAX: usize = 1 << 20;
const TENANT: &str = "default";
/// Entries of a page, where a client does not say how many it wants.
const PAGE: usize = 100;

/// Whether that path is answered here.
pub(super) fn is_own(path: &str) -> bool {
    path == "/callbacks" || path == "/workflows" || path.starts_with("/workflows/")
}

/// Answers a request for one of these paths.
pub(super) async fn answered(deployer: &Deployer, request: Request<Incoming>, scope: &Scope) -> Result<Answer, Refusal> {
    let path = request.uri().path().to_owned();
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    let query = request.uri().query().map(str::to_owned);
    let query = query.as_deref();
    let tenant = tenant(option(query, "tenant"), scope)?;
    if let ["workflows"] = &*parts {
        return match *request.method() {
            Method::GET => {
                let mut all = deployer.workflows();
                all.retain(|workflow| scope.has(&workflow.tenant));
                Ok(answer(StatusCode::OK, &all))
            }
            _ => Ok(not_allowed("GET")),
        };
    }
    if let ["workflows", workflow, verb @ ("explain" | "explained")] = &*parts {
        return match *request.method() {
            Method::GET => {
                explained(deployer, (&tenant, workflow), *verb == "explained", option(query, "execution").map(decoded))
            }
            _ => Ok(not_allowed("GET")),
        };
    }
    let Some(executions) = deployer.executions() else {
        let why = "the server keeps no executions: that needs `kv` (a file, `memory` or a Redis server) in its configuration";
        return Err(Refusal(StatusCode::CONFLICT, why.to_owned()));
    };
    let place = |workflow: &str, name: &str| Place { tenant: Arc::clone(&tenant), workflow: workflow.into(), name: name.into() };
    match (&*parts, request.method()) {
        (["workflows", workflow, "executions"], &Method::GET) => {
            list(&executions, listing(tenant, (*workflow).into(), query)?).await
        }
        (["workflows", workflow, "executions"], &Method::POST) => {
            let (workflow, name) = ((*workflow).to_owned(), option(query, "name").map(str::to_owned));
            let Some(workflow) = executions.workflow(&tenant, &workflow) else { return Err(Refused::NoWorkflow.into()) };
            if !workflow.is_durable() {
                let why = "its executions are express: they live as long as a request to its route; set `type = \"standard\"`";
                return Err(Refusal(StatusCode::CONFLICT, why.to_owned()));
            }
            let input = body(request).await?.unwrap_or_else(|| json!({}));
            let Started { place, summary } = executions.start(&workflow, name, input).await?;
            Ok(answer(StatusCode::ACCEPTED, &described(&place, &summary)))
        }
        (["workflows", workflow, "executions", name], &Method::GET) => {
            let place = place(workflow, name);
            shown(&executions, &place, &found(&executions, place.clone()).await?).await
        }
        (["workflows", workflow, "executions", name], &Method::DELETE) => {
            executions.remove(place(workflow, name)).await?;
            Ok(answer(StatusCode::OK, &json!({ "name": name, "removed": true })))
        }
        (["workflows", workflow, "executions", name, "history"], &Method::GET) => {
            history(&executions, place(workflow, name), query).await
        }
        (["workflows", workflow, "executions", name, "definition"], &Method::GET) => {
            definition(&executions, place(workflow, name)).await
        }
        (
            ["workflows", workflow, "executions", name, verb @ ("stop" | "redrive" | "restart" | "pause" | "resume")],
            &Method::POST,
        ) => steered(&executions, place(workflow, name), verb, request).await,
        (["workflows", workflow, verb @ ("pause" | "resume")], &Method::POST) => {
            executions.pause_all(tenant, (*workflow).into(), *verb == "pause").await?;
            Ok(answer(StatusCode::ACCEPTED, &json!({ "workflow": workflow, "paused": *verb == "pause" })))
        }
        (["workflows", workflow, "queues"], &Method::GET) => {
            let queues = executions.queues(tenant, (*workflow).into()).await?;
            Ok(answer(StatusCode::OK, &json!({ "queues": queues })))
        }
        (["workflows", workflow, "executions", name, "repin"], &Method::POST) => {
            let place = place(workflow, name);
            let summary = executions.repin(place.clone(), option(query, "definition") == Some("true")).await?;
            shown(&executions, &place, &summary).await
        }
        (["callbacks"], &Method::POST) => {
            let Callback { token, output, reason } = read(body(request).await?.unwrap_or_default())?;
            let event = match (output, reason) {
                (Some(output), _) => Event::CallbackSucceeded { token: Arc::clone(&token), output },
                (None, Reason { error: None, cause: None }) => Event::CallbackHeartbeat { token: Arc::clone(&token) },
                (None, Reason { error, cause }) => Event::CallbackFailed { token: Arc::clone(&token), error, cause },
            };
            match scope.tenant() {
                Some(tenant) => executions.call_back_of(Arc::clone(tenant), token, event).await?,
                None => executions.call_back(token, event).await?,
            }
            Ok(answer(StatusCode::OK, &json!({})))
        }
        (["workflows", _, "executions"], _) => Ok(not_allowed("GET, POST")),
        (["workflows", _, "executions", _], _) => Ok(not_allowed("GET, DELETE")),
        (["workflows", _, "queues"] | ["workflows", _, "executions", _, "history" | "definition"], _) => Ok(not_allowed("GET")),
        (
            ["workflows", _, "executions", _, "stop" | "redrive" | "restart" | "repin" | "pause" | "resume"]
            | ["workflows", _, "pause" | "resume"]
            | ["callbacks"],
            _,
        ) => Ok(not_allowed("POST")),
        _ => Err(Refusal(StatusCode::NOT_FOUND, format!("no such path: {}", awsm_abi::text::line(&path)))),
    }
}

/// The tenant whose workflows are meant.
fn tenant(asked: Option<&str>, scope: &Scope) -> Result<Arc<str>, Refusal> {
    let tenant = match (asked, scope.tenant()) {
        (Some(asked), _) => asked.into(),
        (None, Some(own)) => Arc::clone(own),
        (None, None) => TENANT.into(),
    };
    if scope.has(&tenant) {
        return Ok(tenant);
    }
    Err(Refusal(StatusCode::FORBIDDEN, "tenant: your token is for another tenant: leave it out".to_owned()))
}

/// What an execution did that went ahead of itself, or those of which that is kept.
fn explained(
    deployer: &Deployer,
    (tenant, workflow): (&str, &str),
    lists: bool,
    execution: Option<Arc<str>>,
) -> Result<Answer, Refusal> {
    let Some(found) = deployer.workflow(tenant, workflow) else { return Err(Refused::NoWorkflow.into()) };
    let refused = |status, why: String| Err(Refusal(status, why));
    if !found.speculates() {
        let history = if found.is_durable() { "; `sledge workflow history` shows what happened in one" } else { "" };
        let why = format!(
            "executions of `{workflow}` start one function after the other: set `speculation` for it to have them go ahead of themselves{history}"
        );
        return refused(StatusCode::CONFLICT, why);
    }
    if lists {
        return Ok(answer(StatusCode::OK, &found.stories().list(workflow)));
    }
    match (found.stories().explain(workflow, execution.as_deref()), execution) {
        (Some(explained), _) => Ok(answer(StatusCode::OK, &explained)),
        (None, None) => refused(StatusCode::NOT_FOUND, format!("no execution of `{workflow}` has ended since the server began")),
        (None, Some(execution)) => {
            let execution = awsm_abi::text::line(&execution);
            let why = format!(
                "nothing is kept of an execution `{execution}` of `{workflow}`: the last ones are listed with --list, and those that did not go ahead, since the workers had no time or it did not pay, are not kept"
            );
            refused(StatusCode::NOT_FOUND, why)
        }
    }
}

/// Has something done to an execution, and tells what it is then.
async fn steered(executions: &Executions, place: Place, verb: &str, request: Request<Incoming>) -> Result<Answer, Refusal> {
    let from = option(request.uri().query(), "from").map(decoded);
    let (status, summary) = match verb {
        "stop" => {
            let Reason { error, cause } = read(body(request).await?.unwrap_or_else(|| json!({})))?;
            (StatusCode::OK, executions.stop(place.clone(), error, cause).await?)
        }
        "redrive" => (StatusCode::ACCEPTED, executions.redrive(place.clone()).await?),
        "restart" => {
            let missing = || Refusal(StatusCode::BAD_REQUEST, "from: give the name of a state".to_owned());
            let state = from.ok_or_else(missing)?;
            (StatusCode::ACCEPTED, executions.restart(place.clone(), state, body(request).await?).await?)
        }
        _ => (StatusCode::OK, executions.pause(place.clone(), verb == "pause").await?),
    };
    Ok(answer(status, &described(&place, &summary)))
}

/// Why an execution ends.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Reason {
    error: Option<Arc<str>>,
    cause: Option<Arc<str>>,
}

/// What a task that waits for its callback is told.
#[derive(Debug, Deserialize)]
struct Callback {
    token: Arc<str>,
    #[serde(default, deserialize_with = "given")]
    output: Option<Value>,
    #[serde(flatten)]
    reason: Reason,
}

/// An output that is there, also where it is null.
fn given<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// A body as JSON, if there is one.
async fn body(request: Request<Incoming>) -> Result<Option<Value>, Refusal> {
    let body = Limited::new(request.into_body(), BODY_BYTES_MAX).collect().await;
    let why = |error: &dyn std::fmt::Display| Refusal(StatusCode::BAD_REQUEST, format!("the body cannot be used: {error}"));
    let bytes: Bytes = body.map_err(|error| why(&error))?.to_bytes();
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Ok(None);
    }
    serde_json::from_slice(&bytes).map(Some).map_err(|error| why(&error))
}

fn read<T: for<'de> Deserialize<'de>>(body: Value) -> Result<T, Refusal> {
    serde_json::from_value(body).map_err(|error| Refusal(StatusCode::BAD_REQUEST, format!("the body cannot be used: {error}")))
}

/// A number in a query.
fn number<T: std::str::FromStr>(query: Option<&str>, key: &str) -> Result<Option<T>, Refusal> {
    let wrong = |_| Refusal(StatusCode::BAD_REQUEST, format!("{key}: give a number"));
    option(query, key).map(|number| number.parse().map_err(wrong)).transpose()
}

fn listing(tenant: Arc<str>, workflow: Arc<str>, query: Option<&str>) -> Result<Listing, Refusal> {
    const STATUSES: [Status; 6] =
        [Status::New, Status::Running, Status::Succeeded, Status::Failed, Status::TimedOut, Status::Aborted];
    let status = match option(query, "status") {
        None => None,
        Some(given) => {
            let known = STATUSES.into_iter().find(|status| status_name(*status).eq_ignore_ascii_case(given));
            Some(known.ok_or_else(|| {
                let names = STATUSES.map(status_name).join(", ");
                Refusal(StatusCode::BAD_REQUEST, format!("status: give one of {names}"))
            })?)
        }
    };
    let after = option(query, "after").map(|given| {
        given
            .parse::<Position>()
            .map_err(|_| Refusal(StatusCode::BAD_REQUEST, "after: give `next` of the page before".to_owned()))
    });
    let max = number(query, "max")?.unwrap_or(PAGE).clamp(1, LISTED_MAX);
    Ok(Listing { tenant, workflow, status, after: after.transpose()?, max })
}

async fn list(executions: &Executions, listing: Listing) -> Result<Answer, Refusal> {
    let (found, next) = executions.read(move |journal| journal.list(&listing)).await?;
    let found: Vec<Value> = found.iter().map(|(place, summary)| brief(place, summary)).collect();
    Ok(answer(StatusCode::OK, &json!({ "executions": found, "next": next.map(|position| position.to_string()) })))
}

async fn found(executions: &Executions, place: Place) -> Result<Summary, Refused> {
    executions.read(move |journal| journal.summary(&place)).await?.ok_or(Refused::NoExecution)
}

async fn history(executions: &Executions, place: Place, query: Option<&str>) -> Result<Answer, Refusal> {
    let order = if option(query, "reverse") == Some("true") { Order::Falling } else { Order::Rising };
    let (after, max) = (number(query, "after")?, number(query, "max")?.unwrap_or(EVENTS_MAX));
    let Summary { id, .. } = found(executions, place).await?;
    let page = executions.read(move |journal| journal.history(id, order, after, max)).await?;
    #[derive(serde::Serialize)]
    struct Page {
        events: Vec<Box<serde_json::value::RawValue>>,
        next: Option<u64>,
    }
    Ok(answer(StatusCode::OK, &Page { events: page.events, next: page.next }))
}

/// The definition with which an execution began.
async fn definition(executions: &Executions, place: Place) -> Result<Answer, Refusal> {
    let Summary { definition, .. } = found(executions, place).await?;
    let read = executions.read(move |journal| journal.definition(definition)).await?;
    let missing = || Refused::Unavailable("the definition with which the execution began is not in the journal".to_owned());
    Ok(answer(StatusCode::OK, &json!({ "definition": read.ok_or_else(missing)?.source() })))
}

/// One execution, with the definition by which it goes on and the versions of functions to which it is pinned.
async fn shown(executions: &Executions, place: &Place, summary: &Summary) -> Result<Answer, Refusal> {
    let pinned = executions.pinned(place, summary).await?;
    let version = |Pinned { function, digest, is_served }: &Pinned| json!({ "function": &**function, "digest": digest.to_hex().as_str(), "served": is_served });
    let mut all = described(place, summary);
    let served = executions.workflow(&place.tenant, &place.workflow);
    let served = served.as_ref().and_then(|workflow| workflow.definition()).map(|definition| definition.fingerprint());
    let fingerprint = format!("{:016x}", summary.definition);
    all["definition"] =
        json!({ "fingerprint": fingerprint, "served": served == Some(summary.definition), "moves": summary.moves });
    all["functions"] = pinned.iter().map(version).collect();
    Ok(answer(StatusCode::OK, &all))
}

/// An execution in a list.
fn brief(place: &Place, summary: &Summary) -> Value {
    let mut brief = json!({
        "name": &*place.name,
        "workflow": &*place.workflow,
        "arn": name_of(place),
        "status": status_name(summary.status),
        "started_ms": summary.started_ms,
        "stopped_ms": summary.stopped_ms,
        "redrives": summary.redrives,
    });
    if summary.paused {
        brief["paused"] = true.into();
    }
    brief
}

/// A text of a query, in which `%20` and so on stand for bytes.
fn decoded(text: &str) -> Arc<str> {
    percent_encoding::percent_decode_str(text).decode_utf8_lossy().into()
}

/// One execution.
fn described(place: &Place, summary: &Summary) -> Value {
    let mut all = brief(place, summary);
    all["input"] = (*summary.input).clone();
    if let Some(output) = &summary.output {
        all["output"] = (**output).clone();
    }
    for (key, text) in [("error", &summary.error), ("cause", &summary.cause)] {
        if let Some(text) = text {
            all[key] = json!(&**text);
        }
    }
    all
}

impl From<Refused> for Refusal {
    fn from(refused: Refused) -> Refusal {
        let status = match &refused {
            Refused::NoWorkflow | Refused::NoExecution | Refused::NoTask => StatusCode::NOT_FOUND,
            Refused::Exists { .. }
            | Refused::NotRedrivable(_)
            | Refused::NotRepinnable(_)
            | Refused::Impossible(_)
            | Refused::Quarantined(_) => StatusCode::CONFLICT,
            Refused::Name | Refused::InputTooLarge(_) | Refused::Key(_) => StatusCode::BAD_REQUEST,
            Refused::TooMany(_) | Refused::Full { .. } => StatusCode::TOO_MANY_REQUESTS,
            Refused::Unavailable(_) | Refused::Stopping | Refused::Moved | Refused::Unanswered(_) => {
                StatusCode::SERVICE_UNAVAILABLE
            }
        };
        Refusal(status, refused.to_string())
    }
}
