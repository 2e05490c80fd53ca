//! What can be asked at the admin API.
//!
//! | request | answer |
//! |---|---|
//! | `GET /functions` | all functions |
//! | `GET /functions/NAME` | one function, with its settings |
//! | `PUT /functions/NAME` | deploys the body, a `.wasm`. The header `Sledge-Settings` (a JSON object) says which settings change; null is the default. The others stay as they are, or with `?reset=true` become the defaults |
//! | `PUT /functions/NAME?percent=N&sticky=HEADER` | the same for so many of a hundred requests; the value of the header says which ones these are, else chance does |
//! | `POST /functions/NAME/promote?percent=N` | from now on so many; without a number all, and that version is the one that is served |
//! | `DELETE /functions/NAME` | serves it no longer |
//! | `GET /functions/NAME/versions` | the versions of a deployed function, the oldest first and the present one last |
//! | `GET /functions/NAME/diff?from=N&to=N` | what differs between two versions; the present one and that before it are the default |
//! | `POST /functions/NAME/rollback?to=N` | serves that version again, code and settings, as the next one; the one before the present one is the default. A version that only a part of the requests goes to is given up, without a number nothing else happens |
//! | `GET /functions/NAME/logs?lines=N&follow=true&format=json` | what it wrote to its standard error, and what it writes from now on |
//! | `GET /functions/NAME/phases?seconds=N` | what its phases need, measured for so long while requests run |
//! | `GET /functions/NAME/effects` | what its runs did, and why they are answered from a table or not, with `memo` |
//! | `GET /status` | how the server is |
//! | `GET /metrics` | numbers, in the OpenMetrics format |
//! | `GET /healthz`, `GET /readyz` | 200 while the process lives, and while it takes requests; both without a token. `/readyz` lists what is wrong, as far as the client may see it |
//! | `/workflows`, `/callbacks` | workflows and their executions: see `workflows.rs` |
//! | `POST /drain` | as SIGTERM: nothing new is taken, what runs is finished, the process ends |
//!
//! A client may do what its [`Access`] says. One that has one tenant gets what is under `/functions`, `/workflows` and `/callbacks` and belongs to that, and the tenant's part of the metrics; all else that is asked for is refused.
//!
//! Whatever is wrong is answered with `{"error": ...}`. The header `Sledge-Author` of a deployment or a rollback says which author is kept with the version.

use std::fmt::Display;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::{Duration, Instant};

use awsm_abi::limits::MODULE_BYTES_MAX;
use bytes::Bytes;
use http_body_util::channel::Channel;
use http_body_util::{BodyExt as _, Either, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, WWW_AUTHENTICATE};
use hyper::{Method, Request, Response, StatusCode};
use rustix::process::{Signal, getpid, kill_process};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::access::{Access, Rights};
use super::workflows;
use crate::deploy::catalogue::{CatalogueError, State};
use crate::deploy::{Change, Client, DeployError, Deployer, Scope};
use crate::host::Line;
use crate::host::wasi::Usage;
use crate::http::canary::Share;
use crate::invoke::Dispatcher;
use crate::invoke::function::Function;
use crate::load::OpenError;
use crate::logging;
use crate::metrics::text::Gauges;
use crate::metrics::{self, Metrics};
use crate::phases::{PROFILE_SECONDS, PROFILE_SECONDS_DEFAULT};
use crate::schedule::Phase;
use crate::telemetry::Tracer;

/// The header with a function's settings.
pub const SETTINGS: HeaderName = HeaderName::from_static("sledge-settings");

/// The header that names the author of a version.
pub const AUTHOR: HeaderName = HeaderName::from_static("sledge-author");

/// The longest name of an author that is kept.
const AUTHOR_CHARS_MAX: usize = 128;

/// How many of a hundred requests a version may get that is deployed gradually.
pub const PERCENT: RangeInclusive<u8> = 1..=99;

/// Modules that are received, compiled and loaded at the same time; further ones are refused.
const DEPLOYMENTS_MAX: usize = 4;

/// Clients that follow logs at the same time; more are refused, so that there are always places for others.
const FOLLOWERS_MAX: usize = 32;

/// How long the next piece of a module may take to arrive.
const PIECE_TIMEOUT: Duration = Duration::from_secs(10);

/// How often the server looks whether a client that follows a log is still there.
const FOLLOWER_LOOK: Duration = Duration::from_secs(30);

/// What answers requests at the admin API.
#[derive(Debug)]
pub struct Api {
    deployer: Arc<Deployer>,
    dispatcher: Arc<Dispatcher>,
    metrics: Arc<Metrics>,
    tracer: Option<Arc<Tracer>>,
    listen: SocketAddr,
    workers: usize,
    ready_when_degraded: bool,
    started: Instant,
    deployments: Arc<Semaphore>,
    followers: Arc<Semaphore>,
}

pub(super) type Answer = Response<Either<Full<Bytes>, Channel<Bytes>>>;

/// What is wrong with a request.
#[derive(Debug)]
pub(super) struct Refusal(pub(super) StatusCode, pub(super) String);

impl Api {
    /// For a server that listens there.
    #[must_use]
    pub fn new(
        deployer: Arc<Deployer>,
        dispatcher: Arc<Dispatcher>,
        metrics: Arc<Metrics>,
        tracer: Option<Arc<Tracer>>,
        listen: SocketAddr,
        workers: usize,
        ready_when_degraded: bool,
    ) -> Api {
        let (deployments, followers) = (Arc::new(Semaphore::new(DEPLOYMENTS_MAX)), Arc::new(Semaphore::new(FOLLOWERS_MAX)));
        let started = Instant::now();
        Api { deployer, dispatcher, metrics, tracer, listen, workers, ready_when_degraded, started, deployments, followers }
    }

    /// Answers a request of a client that may do that.
    pub async fn answer(&self, request: Request<Incoming>, Access { rights, scope }: &Access) -> Answer {
        match (request.uri().path(), request.method()) {
            ("/healthz", &Method::GET | &Method::HEAD) => return text(StatusCode::OK, "text/plain", "ok\n"),
            ("/readyz", &Method::GET | &Method::HEAD) => return self.readiness(scope),
            _ => {}
        }
        let needed = match (request.uri().path(), request.method()) {
            ("/metrics", &Method::GET) => Rights::Metrics,
            (_, &Method::GET) => Rights::Read,
            _ => Rights::All,
        };
        if *rights < needed {
            return refused(*rights);
        }
        let path = request.uri().path().to_owned();
        if let Some(tenant) = scope.tenant().filter(|_| !is_of_tenants(&path)) {
            return refused_to(tenant);
        }
        if workflows::is_own(&path) {
            return workflows::answered(&self.deployer, request, scope).await.unwrap_or_else(|refused| refusal(&refused));
        }
        let below = path.strip_prefix("/functions/");
        let function = below.filter(|name| !name.is_empty() && !name.contains('/'));
        let part = |of: &str| below.and_then(|rest| rest.strip_suffix(of)).filter(|name| !name.contains('/'));
        let (logs, phases, effects) = (part("/logs"), part("/phases"), part("/effects"));
        let (versions, diff, rollback) = (part("/versions"), part("/diff"), part("/rollback"));
        let promote = part("/promote");
        let result = match (path.as_str(), function, request.method()) {
            ("/functions", _, &Method::GET) => Ok(answer(StatusCode::OK, &self.deployer.list_in(scope))),
            ("/status", _, &Method::GET) => Ok(answer(StatusCode::OK, &self.status())),
            ("/metrics", _, &Method::GET) => Ok(self.metrics(scope)),
            ("/drain", _, &Method::POST) => drain(),
            (_, None, &Method::GET) if logs.is_some() => self.logs(scope, logs.unwrap_or_default(), request.uri().query()),
            (_, None, &Method::GET) if phases.is_some() => {
                self.phases(scope, phases.unwrap_or_default(), request.uri().query()).await
            }
            (_, None, &Method::GET) if effects.is_some() => self.effects(scope, effects.unwrap_or_default()),
            (_, None, &Method::GET) if versions.is_some() => self.versions(scope, versions.unwrap_or_default().to_owned()).await,
            (_, None, &Method::GET) if diff.is_some() => {
                self.diff(scope, diff.unwrap_or_default().to_owned(), request.uri().query()).await
            }
            (_, None, &Method::POST) if rollback.is_some() => {
                self.roll_back(scope, rollback.unwrap_or_default().to_owned(), &request).await
            }
            (_, None, &Method::POST) if promote.is_some() => {
                self.promote(scope, promote.unwrap_or_default().to_owned(), request.uri().query()).await
            }
            (_, Some(name), &Method::GET) => self.function(scope, name),
            (_, Some(name), &Method::PUT) => self.deploy(scope, name.to_owned(), request).await,
            (_, Some(name), &Method::DELETE) => self.remove(scope, name.to_owned()).await,
            ("/functions" | "/status" | "/metrics", _, _) => return not_allowed("GET"),
            ("/drain", _, _) => return not_allowed("POST"),
            (_, Some(_), _) => return not_allowed("GET, PUT, DELETE"),
            (_, None, _) if [logs, phases, effects, versions, diff].iter().any(Option::is_some) => return not_allowed("GET"),
            (_, None, _) if rollback.is_some() || promote.is_some() => return not_allowed("POST"),
            _ => Err(Refusal(StatusCode::NOT_FOUND, format!("no such path: {}", awsm_abi::text::line(&path)))),
        };
        result.unwrap_or_else(|refused| refusal(&refused))
    }

    fn status(&self) -> Value {
        let budget = self.deployer.budget();
        let functions = self.deployer.list();
        let quarantined = functions.iter().filter(|function| function.state == State::Quarantined).count();
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "pid": std::process::id(),
            "uptime_s": self.started.elapsed().as_secs(),
            "phase": phase(self.dispatcher.phase()),
            "listen": self.listen.to_string(),
            "workers": self.workers,
            "functions": functions.len() - quarantined,
            "quarantined": quarantined,
            "retired_versions": self.deployer.retired(),
            "requests": self.dispatcher.requests(),
            "memory_bytes_used": budget.bytes_used(),
            "memory_bytes_max": budget.bytes_max(),
            "deployments_last": self.deployer.is_lasting(),
            "problems": self.deployer.health().problems_now(),
        })
    }

    fn readiness(&self, scope: &Scope) -> Answer {
        let problems = match self.dispatcher.phase() {
            Phase::Serving => self.deployer.health().problems_now(),
            Phase::Draining | Phase::Killing => return text(StatusCode::SERVICE_UNAVAILABLE, "text/plain", "stopping\n"),
        };
        if problems.is_empty() {
            return text(StatusCode::OK, "text/plain", "ready\n");
        }
        let status = if self.ready_when_degraded { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
        let lines: Vec<String> = match scope {
            Scope::All => problems.iter().map(|problem| format!("{}: {}\n", problem.subject, problem.reason)).collect(),
            _ => {
                let own = self.deployer.list_in(scope).into_iter();
                own.filter_map(|info| Some(format!("function {}: {}\n", info.name, info.problem?))).collect()
            }
        };
        text(status, "text/plain", std::iter::once("degraded\n".to_owned()).chain(lines).collect::<String>())
    }

    fn metrics(&self, scope: &Scope) -> Answer {
        let scratch = Usage::now();
        let gauges = Gauges {
            requests: self.dispatcher.requests() as u64,
            idle: (0..self.workers).map(|worker| self.dispatcher.pools().idle(worker) as u64).sum(),
            server_log_lines_dropped: logging::dropped(),
            spans: self.tracer.as_ref().map(|tracer| tracer.counts()),
            scratch_bytes: scratch.bytes,
            scratch_copies: scratch.copied,
            scratch_refusals: scratch.refused,
            ..self.deployer.gauges()
        };
        let mut body = String::new();
        match metrics::text::encode(&mut body, &self.metrics, &gauges, scope.tenant().map(|tenant| &**tenant)) {
            Ok(()) => text(StatusCode::OK, "application/openmetrics-text; version=1.0.0; charset=utf-8", body),
            Err(error) => refusal(&Refusal(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())),
        }
    }

    fn logs(&self, scope: &Scope, name: &str, query: Option<&str>) -> Result<Answer, Refusal> {
        let log = Arc::clone(&self.served(scope, name)?.log);
        let lines = match option(query, "lines").map(str::parse) {
            None => usize::MAX,
            Some(Ok(lines)) => lines,
            Some(Err(_)) => return Err(Refusal(StatusCode::BAD_REQUEST, "lines: give a number".to_owned())),
        };
        let (joined, content_type): (Joined, _) = match option(query, "format") {
            None | Some("text") => (as_text, TEXT_LINES),
            Some("json") => (as_json, JSON_LINES),
            Some(_) => return Err(Refusal(StatusCode::BAD_REQUEST, "format: give text or json".to_owned())),
        };
        let (last, mut next) = log.last(lines);
        if option(query, "follow") != Some("true") {
            return Ok(text(StatusCode::OK, content_type, joined(&last)));
        }
        let Ok(place) = Arc::clone(&self.followers).try_acquire_owned() else {
            let why = format!("{FOLLOWERS_MAX} clients follow logs already; read the log without following, or try again");
            return Err(Refusal(StatusCode::SERVICE_UNAVAILABLE, why));
        };
        let (mut sender, body) = Channel::<Bytes>::new(1);
        tokio::task::spawn_local(async move {
            let _place = place;
            let mut lines = last;
            // Nothing at all is sent where there are no lines; but it fails when the client has gone.
            while sender.send_data(joined(&lines).into()).await.is_ok() {
                match tokio::time::timeout(FOLLOWER_LOOK, log.since(next)).await {
                    Ok(more) => (lines, next) = more,
                    Err(_) => lines.clear(),
                }
            }
        });
        let mut response = Response::new(Either::Right(body));
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        Ok(response)
    }

    /// A function, or why it is not served.
    fn served(&self, scope: &Scope, name: &str) -> Result<Arc<Function>, Refusal> {
        self.deployer.current_in(scope, name).ok_or_else(|| {
            match self.deployer.info_in(scope, name).and_then(|info| info.problem) {
                Some(problem) => Refusal(StatusCode::CONFLICT, format!("`{name}` is quarantined: {problem}")),
                None => DeployError::from(CatalogueError::Unknown(name.to_owned())).into(),
            }
        })
    }

    /// Measures what the phases of a function need. A client that goes ends that.
    async fn phases(&self, scope: &Scope, name: &str, query: Option<&str>) -> Result<Answer, Refusal> {
        let seconds = option(query, "seconds").map_or(Ok(PROFILE_SECONDS_DEFAULT), str::parse);
        let Some(seconds) = seconds.ok().filter(|seconds| PROFILE_SECONDS.contains(seconds)) else {
            let (first, last) = PROFILE_SECONDS.into_inner();
            return Err(Refusal(StatusCode::BAD_REQUEST, format!("seconds: give a number from {first} to {last}")));
        };
        let process = Arc::clone(&self.served(scope, name)?.process);
        let Ok(_place) = self.followers.try_acquire() else {
            let why = format!("{FOLLOWERS_MAX} clients follow logs or measure phases already; try again");
            return Err(Refusal(StatusCode::SERVICE_UNAVAILABLE, why));
        };
        let Some(profiling) = process.profiler.begin() else {
            let why = format!("the phases of `{name}` are being measured for another client; try again in a few seconds");
            return Err(Refusal(StatusCode::CONFLICT, why));
        };
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        let measured = profiling.measured(process.phases.as_deref());
        if measured.requests == 0 {
            let why = format!(
                "nothing was measured: no request of `{name}` began and ended well within {seconds} s; send requests meanwhile, or measure for longer (--seconds)"
            );
            return Err(Refusal(StatusCode::CONFLICT, why));
        }
        Ok(answer(StatusCode::OK, &measured))
    }

    /// What the runs of a function did.
    fn effects(&self, scope: &Scope, name: &str) -> Result<Answer, Refusal> {
        let function = self.served(scope, name)?;
        let Some(memo) = &function.memo else {
            let why = format!(
                "the runs of `{name}` are not looked at: set `memo = \"observe\"` (or \"auto\") for it, and send requests"
            );
            return Err(Refusal(StatusCode::CONFLICT, why));
        };
        let conflict =
            |(keys, conflicts, takes_turns)| json!({ "keys": keys, "conflicts": conflicts, "takes_turns": takes_turns });
        let conflicts = function.isolation.iter().flat_map(|isolation| isolation.contention.conflicts()).map(conflict);
        Ok(answer(
            StatusCode::OK,
            &json!({
                "function": name,
                "version": function.shown_version,
                "did": memo.explained(),
                "conflicts": conflicts.collect::<Vec<_>>(),
            }),
        ))
    }

    fn function(&self, scope: &Scope, name: &str) -> Result<Answer, Refusal> {
        let unknown = || Refusal::from(DeployError::from(CatalogueError::Unknown(name.to_owned())));
        let info = self.deployer.info_in(scope, name).ok_or_else(unknown)?;
        Ok(answer(StatusCode::OK, &info))
    }

    async fn deploy(&self, scope: &Scope, name: String, request: Request<Incoming>) -> Result<Answer, Refusal> {
        let Ok(place) = Arc::clone(&self.deployments).try_acquire_owned() else { return Err(too_many_deployments()) };
        let settings = settings(request.headers())?;
        let reset = match option(request.uri().query(), "reset") {
            None | Some("false") => false,
            Some("true") => true,
            Some(_) => return Err(Refusal(StatusCode::BAD_REQUEST, "reset: give true or false".to_owned())),
        };
        let (client, share) = (client(scope, request.headers()), share(request.uri().query())?);
        let module = received(request.into_body()).await?;
        let deployer = Arc::clone(&self.deployer);
        let deploy = move || {
            // Until the end, also when the client has gone.
            let _place = place;
            match share {
                None => deployer.deploy(&name, &settings, reset, &module, client),
                Some(share) => deployer.deploy_gradually(&name, &settings, reset, &module, (share, client)),
            }
        };
        changed(deploy).await
    }

    async fn versions(&self, scope: &Scope, name: String) -> Result<Answer, Refusal> {
        let (deployer, scope) = (Arc::clone(&self.deployer), scope.clone());
        aside(move || deployer.versions(&name, &scope)).await.map(|history| answer(StatusCode::OK, &history.versions()))
    }

    async fn diff(&self, scope: &Scope, name: String, query: Option<&str>) -> Result<Answer, Refusal> {
        let (from, to) = (number(query, "from")?, number(query, "to")?);
        let (deployer, scope) = (Arc::clone(&self.deployer), scope.clone());
        aside(move || deployer.difference(&name, from, to, &scope)).await.map(|difference| answer(StatusCode::OK, &difference))
    }

    async fn roll_back(&self, scope: &Scope, name: String, request: &Request<Incoming>) -> Result<Answer, Refusal> {
        let Ok(place) = Arc::clone(&self.deployments).try_acquire_owned() else { return Err(too_many_deployments()) };
        let (to, client) = (number(request.uri().query(), "to")?, client(scope, request.headers()));
        let deployer = Arc::clone(&self.deployer);
        let roll_back = move || {
            // As in a deployment.
            let _place = place;
            deployer.roll_back(&name, to, client)
        };
        changed(roll_back).await
    }

    async fn promote(&self, scope: &Scope, name: String, query: Option<&str>) -> Result<Answer, Refusal> {
        let percent = percent(query)?;
        let (deployer, scope) = (Arc::clone(&self.deployer), scope.clone());
        changed(move || deployer.promote(&name, percent, &scope)).await
    }

    async fn remove(&self, scope: &Scope, name: String) -> Result<Answer, Refusal> {
        let (deployer, scope) = (Arc::clone(&self.deployer), scope.clone());
        changed(move || deployer.remove(&name, &scope)).await
    }
}

/// A module, which arrives piece by piece.
async fn received(body: Incoming) -> Result<Vec<u8>, Refusal> {
    let mut body = Limited::new(body, MODULE_BYTES_MAX as usize);
    let mut module = Vec::new();
    let refusal = |status, why: &dyn Display| Refusal(status, format!("the upload failed: {why}"));
    loop {
        match tokio::time::timeout(PIECE_TIMEOUT, body.frame()).await {
            Ok(None) => return Ok(module),
            Ok(Some(Ok(frame))) => module.extend_from_slice(frame.data_ref().map_or(&[], |data| data)),
            Ok(Some(Err(error))) if error.is::<LengthLimitError>() => {
                let why = format!("{error}; a module has at most {MODULE_BYTES_MAX} bytes");
                return Err(refusal(StatusCode::PAYLOAD_TOO_LARGE, &why));
            }
            Ok(Some(Err(error))) => return Err(refusal(StatusCode::BAD_REQUEST, &error)),
            Err(_) => {
                let why = format!("no data for {} s; send it again", PIECE_TIMEOUT.as_secs());
                return Err(refusal(StatusCode::REQUEST_TIMEOUT, &why));
            }
        }
    }
}

fn too_many_deployments() -> Refusal {
    Refusal(StatusCode::SERVICE_UNAVAILABLE, format!("{DEPLOYMENTS_MAX} deployments are in progress; try again"))
}

/// Makes a change in a thread that may wait.
async fn changed(change: impl FnOnce() -> Result<Change, DeployError> + Send + 'static) -> Result<Answer, Refusal> {
    let change = move || {
        change().inspect_err(|error| {
            // As a string, so that it is one line whatever is in it.
            tracing::warn!(error = error.to_string(), "a change through the admin API was refused");
        })
    };
    aside(change).await.map(|change| answer(StatusCode::OK, &change))
}

/// Does something in a thread that may wait.
async fn aside<T: Send + 'static>(work: impl FnOnce() -> Result<T, DeployError> + Send + 'static) -> Result<T, Refusal> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result.map_err(Refusal::from),
        Err(_) => Err(Refusal(StatusCode::INTERNAL_SERVER_ERROR, "internal error; see the server's log".to_owned())),
    }
}

/// Whether a path is for clients that have one tenant. What is answered there is looked at once more, by whose it is.
fn is_of_tenants(path: &str) -> bool {
    path == "/functions" || path == "/metrics" || path.starts_with("/functions/") || workflows::is_own(path)
}

/// The client that changes something.
fn client(scope: &Scope, headers: &HeaderMap) -> Client {
    Client { author: author(headers), scope: scope.clone() }
}

/// The author that a client names, on one line.
fn author(headers: &HeaderMap) -> Option<String> {
    let given = String::from_utf8_lossy(headers.get(AUTHOR)?.as_bytes());
    let author: String = awsm_abi::text::line(&given).chars().take(AUTHOR_CHARS_MAX).collect();
    (!author.is_empty()).then_some(author)
}

/// A number in a query, if it is there.
fn number(query: Option<&str>, key: &str) -> Result<Option<u64>, Refusal> {
    let wrong = |_| Refusal(StatusCode::BAD_REQUEST, format!("{key}: give the number of a version"));
    option(query, key).map(|number| number.parse().map_err(wrong)).transpose()
}

/// How many of a hundred requests a query asks for.
fn percent(query: Option<&str>) -> Result<Option<u8>, Refusal> {
    let Some(percent) = option(query, "percent") else { return Ok(None) };
    let known = percent.parse().ok().filter(|percent| PERCENT.contains(percent));
    let wrong =
        || Refusal(StatusCode::BAD_REQUEST, format!("percent: give a number from {} to {}", PERCENT.start(), PERCENT.end()));
    known.map(Some).ok_or_else(wrong)
}

/// Which requests are to go to a version that is deployed gradually; none where all are.
fn share(query: Option<&str>) -> Result<Option<Share>, Refusal> {
    let wrong = |why: &str| Refusal(StatusCode::BAD_REQUEST, format!("sticky: {why}"));
    let sticky = option(query, "sticky").map(|name| HeaderName::from_bytes(name.as_bytes()));
    let sticky = sticky.transpose().map_err(|_| wrong("give the name of a header"))?;
    match percent(query)? {
        Some(percent) => Ok(Some(Share { percent, sticky })),
        None if sticky.is_some() => Err(wrong("give percent, too")),
        None => Ok(None),
    }
}

fn settings(headers: &HeaderMap) -> Result<Value, Refusal> {
    let Some(given) = headers.get(SETTINGS) else { return Ok(json!({})) };
    serde_json::from_slice(given.as_bytes())
        .map_err(|error| Refusal(StatusCode::BAD_REQUEST, format!("{SETTINGS}: no JSON: {error}")))
}

/// An option of a query.
pub(super) fn option<'a>(query: Option<&'a str>, key: &str) -> Option<&'a str> {
    let mut pairs = query.unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
    pairs.find(|(name, _)| *name == key).map(|(_, value)| value)
}

fn drain() -> Result<Answer, Refusal> {
    let failed = |error| Refusal(StatusCode::INTERNAL_SERVER_ERROR, format!("cannot send the signal: {error}"));
    kill_process(getpid(), Signal::TERM).map_err(failed)?;
    Ok(answer(StatusCode::ACCEPTED, &json!({ "phase": phase(Phase::Draining) })))
}

const fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Serving => "serving",
        Phase::Draining => "draining",
        Phase::Killing => "killing",
    }
}

impl From<DeployError> for Refusal {
    fn from(error: DeployError) -> Refusal {
        let status = match &error {
            DeployError::Config(_) | DeployError::Catalogue(CatalogueError::Elsewhere { .. }) => StatusCode::BAD_REQUEST,
            DeployError::Catalogue(CatalogueError::Unknown(_)) | DeployError::UnknownVersion { .. } => StatusCode::NOT_FOUND,
            DeployError::Catalogue(_)
            | DeployError::Changing(_)
            | DeployError::NoSettings { .. }
            | DeployError::NoVersions
            | DeployError::First(_)
            | DeployError::Present { .. } => StatusCode::CONFLICT,
            DeployError::NotGranted(_) | DeployError::Denied(_) => StatusCode::FORBIDDEN,
            DeployError::Function { source: OpenError::NoModule, .. } => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            DeployError::Function { .. } => StatusCode::UNPROCESSABLE_ENTITY,
            DeployError::Store(_) | DeployError::Kv(_) | DeployError::Roots(_) | DeployError::Nothing(_) => {
                StatusCode::INTERNAL_SERVER_ERROR
            }
            DeployError::Thread(_) | DeployError::Stopping => StatusCode::SERVICE_UNAVAILABLE,
        };
        Refusal(status, error.to_string())
    }
}

const TEXT_LINES: &str = "text/plain; charset=utf-8";
const JSON_LINES: &str = "application/x-ndjson";

/// How lines become an answer.
type Joined = fn(&[Arc<Line>]) -> String;

/// Lines, each ended.
fn as_text(lines: &[Arc<Line>]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// The same for machines, an object each.
fn as_json(lines: &[Arc<Line>]) -> String {
    lines.iter().filter_map(|line| serde_json::to_string(&**line).ok()).flat_map(|line| [line, "\n".to_owned()]).collect()
}

fn text(status: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> Answer {
    let mut response = Response::new(Either::Left(Full::new(body.into())));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

pub(super) fn answer(status: StatusCode, body: &impl Serialize) -> Answer {
    // All of these are made of strings and numbers.
    let mut json = serde_json::to_vec(body).unwrap_or_default();
    json.push(b'\n');
    text(status, "application/json", json)
}

/// Why a client's rights are not enough.
fn refused(rights: Rights) -> Answer {
    let (status, why) = match rights {
        Rights::None => (StatusCode::UNAUTHORIZED, "give the token: Authorization: Bearer TOKEN"),
        Rights::Metrics => (StatusCode::FORBIDDEN, "this address answers GET /metrics, /healthz and /readyz only"),
        Rights::Read | Rights::All => (StatusCode::FORBIDDEN, "this token is for reading; changes need the one of `admin_token`"),
    };
    let mut response = refusal(&Refusal(status, why.to_owned()));
    if rights == Rights::None {
        response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

/// Why a client that has one tenant does not get what is the whole server's.
fn refused_to(tenant: &str) -> Answer {
    let tenant = awsm_abi::text::name(tenant);
    let why = format!("this token is for what belongs to tenant `{tenant}`; all else needs the one of `admin_token`");
    refusal(&Refusal(StatusCode::FORBIDDEN, why))
}

fn refusal(Refusal(status, why): &Refusal) -> Answer {
    answer(*status, &json!({ "error": why }))
}

pub(super) fn not_allowed(allow: &'static str) -> Answer {
    let mut response = refusal(&Refusal(StatusCode::METHOD_NOT_ALLOWED, format!("allowed methods: {allow}")));
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(allow));
    response
}
