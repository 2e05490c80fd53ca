//! One request's life: routed, then [read and run](super::routed), answered.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use http_body_util::Either;
use hyper::body::{Body as _, Incoming};
use hyper::header::{CONNECTION, HeaderMap, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, StatusCode, Version};
use tokio::task::yield_now;

use super::body::Inward;
use super::bridge::{self, Bridge};
use super::called::{self, Called};
use super::canary::{self, Counting};
use super::connections::{Activity, UnderWay};
use super::framing::Refusal;
use super::handled::{Handled, Manner};
use super::response::{Answer, Trailing};
use super::routed::{Brought, Marks, Routed};
use super::router::{Place, Refused, Route, Site};
use super::span::ServerSpan;
use super::step::{Later, Step};
use super::{HttpService, access, asynchronous, head, response, services};
use crate::grpc::Kind;
use crate::host::RequestHead;
use crate::outcome::Failure;
use crate::schedule::Phase;

/// The longest path; routes are much shorter.
const PATH_BYTES_MAX: usize = 8 << 10;

/// The most headers for which an idle connection keeps room.
const ROOM_MAX: usize = 24;

/// The answer to a request, for hyper. Dropping it, as hyper does when the client goes away, drops the request or has it killed.
pub(super) struct Answering {
    state: State,
}

#[expect(clippy::large_enum_variant, reason = "it is moved into its place once; a box would be an allocation for each request")]
enum State {
    /// Nothing was done yet.
    Arrived(Arrived),
    /// Something is waited for.
    Waits(Later<Response<Answer>>),
    /// It was answered.
    Over,
}

/// A request with its head.
struct Arrived {
    service: Rc<HttpService>,
    site: Site,
    under_way: UnderWay,
    request: Request<Incoming>,
}

impl Answering {
    pub(super) fn new(service: &Rc<HttpService>, site: Site, activity: &Rc<Activity>, request: Request<Incoming>) -> Answering {
        let (service, under_way) = (Rc::clone(service), UnderWay::new(activity));
        Answering { state: State::Arrived(Arrived { service, site, under_way, request }) }
    }
}

impl Future for Answering {
    type Output = Result<Response<Answer>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Self::Output> {
        let mut future = match std::mem::replace(&mut self.state, State::Over) {
            State::Arrived(arrived) => match arrived.answer(task) {
                Step::Now(response) => return Poll::Ready(Ok(response)),
                Step::Later(future) => future,
            },
            State::Waits(future) => future,
            State::Over => return Poll::Pending,
        };
        let polled = future.as_mut().poll(task);
        if polled.is_pending() {
            self.state = State::Waits(future);
        }
        polled.map(Ok)
    }
}

impl Arrived {
    fn answer(self, task: &mut Context<'_>) -> Step<Response<Answer>> {
        let Arrived { service, site, under_way, request } = self;
        let (version, has_body) = (request.version(), !request.body().is_end_stream());
        let leaving = Leaving { under_way, version, has_body };
        if service.access.log || service.access.ids || service.tracer.is_some() {
            return Step::later(async move {
                let response = recorded(&service, site, leaving.under_way.activity(), request).await;
                leaving.end(&service, response).result().await
            });
        }
        match handle(&service, site, leaving.under_way.activity(), request, (None, Marks::default()), task) {
            Step::Now(handled) => leaving.end(&service, counted(&service, handled)),
            Step::Later(handled) => Step::later(async move {
                let handled = handled.await;
                leaving.end(&service, counted(&service, handled)).result().await
            }),
        }
    }
}

/// What a response needs to know of its request.
struct Leaving {
    under_way: UnderWay,
    version: Version,
    has_body: bool,
}

impl Leaving {
    /// Makes a response what its connection wants.
    fn end(self, service: &HttpService, mut response: Response<Answer>) -> Step<Response<Answer>> {
        let Leaving { under_way, version, has_body } = self;
        let activity = Rc::clone(under_way.activity());
        if let Either::Right(streamed) = response.body_mut() {
            streamed.keep(under_way);
        }
        if version >= Version::HTTP_2 {
            // Which has another way to say that (RFC 9113, 8.2.2).
            response.headers_mut().remove(CONNECTION);
            return Step::Now(response);
        }
        if service.dispatcher.phase() != Phase::Serving {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        // Perhaps the body was not read: then hyper closes the connection while the client still sends.
        if has_body && response.status() != StatusCode::OK {
            activity.linger();
        }
        if !has_body || !activity.lingers() {
            return Step::Now(response);
        }
        Step::later(async {
            // hyper reads what has come of such a body, or closes the connection, the next time it looks for input. Without a pause that is after it
            // has written the head, which then does not say `connection: close`: a client would send its next request into a connection that ends.
            yield_now().await;
            response
        })
    }
}

/// Counts it, if that is not done elsewhere.
fn counted(service: &HttpService, handled: Handled) -> Response<Answer> {
    let Handled { mut response, place, is_grpc, .. } = handled;
    if is_grpc {
        called::answered(Called::new(&service.shard, place.as_ref(), &response), &mut response);
    }
    response
}

/// Handles a request of which there is a line in the log, an id or a span.
async fn recorded(
    service: &Rc<HttpService>,
    site: Site,
    activity: &Rc<Activity>,
    request: Request<Incoming>,
) -> Response<Answer> {
    let begin = Instant::now();
    let seen = (service.access.log || service.access.ids).then(|| access::Seen::of(&request));
    let span = service.tracer.as_ref().map(|tracer| ServerSpan::begin(tracer, &request, service.tls.is_some(), begin));
    let trace = span.as_ref().map(|span| span.trace().context().trace);
    let id = seen.as_ref().filter(|_| service.access.ids).map(access::Seen::id);
    let mut request = Some((request, Marks { id, trace: span.as_ref().map(|span| Arc::clone(span.trace())) }));
    let step = poll_fn(|task| match request.take() {
        Some((request, marks)) => Poll::Ready(handle(service, site, activity, request, (span.as_ref(), marks), task)),
        None => Poll::Pending,
    });
    let Handled { mut response, place, failure, is_grpc } = step.await.result().await;
    if let Some(seen) = seen.as_ref().filter(|_| service.access.ids) {
        seen.mark(&mut response);
    }
    let (status, mut seen) = (response.status(), seen.filter(|_| service.access.log));
    let mut grpc = None;
    if is_grpc {
        let mut called = Called::new(&service.shard, place.as_ref(), &response);
        if let Some(seen) = seen.take() {
            called.log(seen, status, begin, trace);
        }
        grpc = called::answered(called, &mut response);
    }
    match (span, response.body_mut()) {
        // It is over when its reply is.
        (Some(span), Either::Right(streamed)) => streamed.trace(span, status),
        (Some(span), Either::Left(_)) => span.end(status, failure.as_ref(), grpc),
        (None, _) => {}
    }
    if let Some(seen) = seen {
        access::Line { seen, status, begin, trace }.log(place.as_ref(), response.body().size_hint().lower(), None);
    }
    response
}

/// Finds what answers a request, and has it answered.
fn handle(
    service: &Rc<HttpService>,
    site: Site,
    activity: &Rc<Activity>,
    request: Request<Incoming>,
    (span, marks): (Option<&ServerSpan>, Marks),
    task: &mut Context<'_>,
) -> Step<Handled> {
    let (mut head, incoming) = request.into_parts();
    // Other versions than HTTP/2 carry no gRPC, and other protocols lead to services of applications only.
    let is_looked_at = head.version == Version::HTTP_2 || !service.router.borrow().offers(site).is_empty();
    let kind = if is_looked_at { Kind::of(&head.headers) } else { Kind::Other };
    let mut manner = Manner::of(kind, &head);
    if let Err(failure) = check(&mut head, activity, !incoming.is_end_stream()) {
        service.shard.thread().unrouted.add(1);
        return Step::Now(Handled::failed(failure, None, manner));
    }
    // From here on the request belongs to this version of the function, whatever is deployed meanwhile.
    let mut found = service.router.borrow().find(site, head.uri.path(), &head.method);
    if let Ok(route) = &mut found {
        canary::choose(route, &head.headers);
    }
    match (span, &found) {
        (Some(span), Ok(route)) => span.routed(Place::Served(Arc::clone(route))),
        (Some(span), Err(Refused::Failed(_, Some(place)))) => span.routed(place.clone()),
        _ => {}
    }
    let finish = match &found {
        Ok(route) | Err(Refused::Failed(_, Some(Place::Served(route)))) => {
            route.policy.as_ref().map(|policy| policy.finish(&head))
        }
        Err(Refused::File(folder)) => folder.policy.as_ref().map(|policy| policy.finish(&head)),
        Err(_) => None,
    };
    if finish.as_ref().is_some_and(|finish| finish.is_preflight()) {
        // The server answers it, also where the function wants to answer OPTIONS.
        found = found.and_then(|route| Err(Refused::Failed(Failure::MethodNotAllowed, Some(Place::Served(route)))));
    }
    let mut bridge = bridge(kind, service, site, &mut found, &mut head).map(Box::new);
    if let Some(bridge) = &bridge {
        manner = Manner::grpc(&head.headers);
        // It may be answered before its body was read, and as a request that went well.
        activity.linger();
        if bridge.is_refused() {
            let place = match found {
                Ok(route) => Some(Place::Served(route)),
                Err(Refused::Failed(_, place)) => place,
                Err(Refused::Moved(_) | Refused::File(_) | Refused::Workflow(_)) => None,
            };
            found = Err(Refused::Failed(Failure::BodyBroken, place));
        }
    }
    let inward = bridge.as_mut().and_then(|bridge| bridge.inward());
    let route = match found {
        Ok(route) => route,
        Err(refused) => {
            let handled = match refused {
                Refused::Failed(failure, place) => {
                    refuse(service, site, &head, (failure, place), (incoming, inward), manner).over(bridge)
                }
                Refused::Moved(redirect) => {
                    service.shard.thread().redirected.add(1);
                    Step::Now(redirect.answer(&head.uri, manner))
                }
                Refused::Workflow(workflow) => {
                    service.shard.thread().executions.add(1);
                    // It may be refused before its body was read.
                    activity.linger();
                    Step::later(super::workflow::answer(Rc::clone(service), (workflow, marks.trace), head, incoming, manner))
                }
                Refused::File(folder) => {
                    service.shard.thread().files.add(1);
                    // Its body is not read.
                    activity.linger();
                    Step::later(folder.answer(head, manner))
                }
            };
            return match finish {
                None => handled,
                Some(finish) => finish.step(handled),
            };
        }
    };
    if bridge.is_none()
        && let Some(workflow) = asynchronous::wanted(&route, &head.headers)
    {
        service.shard.thread().executions.add(1);
        // It may be refused before its body was read.
        activity.linger();
        let answered = asynchronous::answer(Rc::clone(service), (route, workflow), head, incoming, manner);
        return match finish {
            None => Step::later(answered),
            Some(finish) => finish.step(Step::later(answered)),
        };
    }
    sledge_sandbox::prefetch(&*route.function);
    let counting = Counting::of(&route);
    // What it cannot say needs no look.
    let trailing = match &bridge {
        // They become a part of the body.
        Some(_) => Trailing::Framed,
        None if route.function.reads_head => Trailing::of(&head),
        None => Trailing::Never,
    };
    let is_timed = head.headers.contains_key(response::TIMING_REQUEST);
    let (head, room) = if route.function.reads_head {
        (Some(asked(head, service.tls.is_some(), span)), HeaderMap::new())
    } else {
        (None, emptied(head.headers))
    };
    let routed = Routed::new((service, activity), route, manner, (trailing, is_timed), bridge, room);
    let brought = Brought { head, incoming, inward, marks };
    // What is handed on as it is need not be moved.
    if counting.is_none() && finish.is_none() {
        return routed.run(brought, task);
    }
    let step = routed.run(brought, task);
    let step = match counting {
        None => step,
        Some(counting) => counting.watch(step),
    };
    match finish {
        None => step,
        Some(finish) => finish.step(step),
    }
}

/// What a request says beside its body, for its function.
fn asked(head: Parts, is_secure: bool, span: Option<&ServerSpan>) -> Box<RequestHead> {
    let mut asked = Box::new(RequestHead { method: head.method, target: head.uri, headers: head.headers, is_secure });
    // So that whatever the function asks in its own way is a part of this request, too.
    if let Some(span) = span {
        span.trace().context().inject(&mut asked.headers);
    }
    asked
}

/// The room of a request's headers, for those of its response: hyper keeps it with the connection then, so nothing large.
fn emptied(mut headers: HeaderMap) -> HeaderMap {
    if headers.capacity() > ROOM_MAX {
        return HeaderMap::new();
    }
    headers.clear();
    headers
}

/// Refuses what no function is to see.
fn check(head: &mut Parts, activity: &Activity, has_body: bool) -> Result<(), Failure> {
    if activity.refusal() == Some(Refusal::Ambiguous) {
        return Err(Failure::BadHead("length_ambiguous"));
    }
    head::check(head, has_body)?;
    if head.uri.path().len() > PATH_BYTES_MAX { Err(Failure::PathTooLong) } else { Ok(()) }
}

/// Answers a request that no function does: the server can, or says why not.
fn refuse(
    service: &Rc<HttpService>,
    site: Site,
    head: &Parts,
    refused: (Failure, Option<Place>),
    body: (Incoming, Option<Box<dyn Inward>>),
    manner: Manner,
) -> Handled {
    match refused {
        // What may be asked for is answered by the server, unless the function wants to.
        (Failure::MethodNotAllowed, Some(Place::Served(route))) if head.method == Method::OPTIONS => {
            let preflight = bridge::preflight(service, site, &route.pattern, &head.headers);
            let response = preflight.unwrap_or_else(|| response::options(&route.options));
            Handled::answered(response, Some(Place::Served(route)), manner)
        }
        (Failure::NotFound, None) if head.method == Method::OPTIONS && head.uri.path() == "*" => {
            Handled::answered(response::options(&HeaderValue::from_static("OPTIONS")), None, manner)
        }
        (failure, place) => {
            if let (Failure::NotFound, Some(asked)) = (&failure, manner.asked(service, site, head.uri.path())) {
                return match manner.deadline() {
                    Ok(deadline) => {
                        let response = services::answer(service, site, asked, &head.headers, body, deadline);
                        Handled::answered(response, None, manner)
                    }
                    Err(failure) => Handled::failed(failure, None, manner),
                };
            }
            match &place {
                Some(place) => service.shard.note_of(place.number(), place.labels(), |row| row.ended(Some(&failure))),
                None => service.shard.thread().unrouted.add(1),
            }
            Handled::failed(failure, place, manner)
        }
    }
}

/// What translates a request that carries gRPC in another protocol. One with GET, which its route does not answer, has one with POST then.
fn bridge(
    kind: Kind,
    service: &HttpService,
    site: Site,
    found: &mut Result<Arc<Route>, Refused>,
    head: &mut Parts,
) -> Option<Bridge> {
    match (kind, &*found) {
        (_, Err(Refused::Failed(Failure::MethodNotAllowed, Some(place @ Place::Served(route)))))
            if head.method == Method::GET =>
        {
            let bridge = Bridge::of_get(service, site, place, head)?;
            *found = Ok(Arc::clone(route));
            Some(bridge)
        }
        (Kind::Grpc | Kind::Other, _) | (_, Err(Refused::Moved(_) | Refused::File(_) | Refused::Workflow(_))) => None,
        _ if head.method != Method::POST => None,
        (kind, Ok(route)) => Bridge::of(kind, service, site, Some(&Place::Served(Arc::clone(route))), head),
        (kind, Err(Refused::Failed(_, place))) => Bridge::of(kind, service, site, place.as_ref(), head),
    }
}
