//! One request's life: routed, admitted, read, run, answered.

use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::Either;
use hyper::body::{Body as _, Incoming};
use hyper::header::{HeaderMap, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, Version};

use super::body::Inward;
use super::bridge::{self, Bridge};
use super::called::{self, Called};
use super::connections::Activity;
use super::framing::Refusal;
use super::response::{Answer, Trailing};
use super::router::{Place, Refused, Route, Site};
use super::services::Asked;
use super::span::ServerSpan;
use super::{HttpService, access, body, head, response, services};
use crate::grpc::{self, Kind};
use crate::host::RequestHead;
use crate::invoke::{Input, Invocation};
use crate::memory;
use crate::outcome::Failure;
use crate::reply::{Content, Reply};

/// The longest path; routes are much shorter.
const PATH_BYTES_MAX: usize = 8 << 10;

/// Answers a request. Dropping the future, as hyper does when the client goes away, drops the request or has it killed.
pub(super) async fn answer(
    service: &Rc<HttpService>,
    site: Site,
    activity: &Activity,
    request: Request<Incoming>,
) -> Response<Answer> {
    if !service.access.log && !service.access.ids && service.tracer.is_none() {
        let Handled { mut response, place, is_grpc, .. } = handle(service, site, activity, request, Marks::default()).await;
        if is_grpc {
            called::answered(Called::new(&service.shard, place.as_ref(), &response), &mut response);
        }
        return response;
    }
    let begin = Instant::now();
    let seen = (service.access.log || service.access.ids).then(|| access::Seen::of(&request));
    let span = service.tracer.as_ref().map(|tracer| ServerSpan::begin(tracer, &request, service.tls.is_some(), begin));
    let trace = span.as_ref().map(|span| span.trace().context().trace);
    let id = seen.as_ref().filter(|_| service.access.ids).map(access::Seen::id);
    let marks = Marks { id, span: span.as_ref() };
    let Handled { mut response, place, failure, is_grpc } = handle(service, site, activity, request, marks).await;
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

/// By what a request is known elsewhere, as far as that is wanted.
#[derive(Default)]
struct Marks<'a> {
    id: Option<Arc<str>>,
    span: Option<&'a ServerSpan>,
}

/// The answer, whose path was asked for, if it is anybody's, and why it is none of a function's.
struct Handled {
    response: Response<Answer>,
    place: Option<Place>,
    failure: Option<Failure>,
    /// Whether the client speaks gRPC.
    is_grpc: bool,
}

impl Handled {
    fn answered(response: Response<Answer>, place: Option<Place>, manner: Manner) -> Handled {
        Handled { response, place, failure: None, is_grpc: manner.is_grpc() }
    }

    /// The same as the client gets it that speaks another protocol.
    async fn over(self, bridge: Option<Bridge>) -> Handled {
        match bridge {
            None => self,
            // Rarer than other requests, whose tasks are not to be larger for it.
            Some(bridge) => Handled { response: Box::pin(bridge.reply(self.response)).await, ..self },
        }
    }

    /// A failure, in the words of what the client speaks.
    fn failed(failure: Failure, place: Option<Place>, manner: Manner) -> Handled {
        let response = match manner {
            Manner::Http => response::failure(&failure, place.as_ref()),
            Manner::Grpc { .. } => response::grpc_failure(&failure, place.as_ref()),
        };
        Handled { response, place, failure: Some(failure), is_grpc: manner.is_grpc() }
    }
}

/// What a client speaks over HTTP.
#[derive(Clone, Copy)]
enum Manner {
    /// Nothing else.
    Http,
    /// gRPC: what has failed is a status in trailers.
    Grpc {
        /// How long the call may take at most; none of an outer one where it is malformed.
        timeout: Option<Option<Duration>>,
    },
}

impl Manner {
    fn of(kind: Kind, head: &Parts) -> Manner {
        if kind == Kind::Grpc && head.version == Version::HTTP_2 { Manner::grpc(&head.headers) } else { Manner::Http }
    }

    fn grpc(headers: &HeaderMap) -> Manner {
        let timeout = headers.get(grpc::GRPC_TIMEOUT);
        Manner::Grpc { timeout: timeout.map_or(Some(None), |time| grpc::timeout(time.as_bytes()).map(Some)) }
    }

    /// The method of the server's own services that a path stands for.
    fn asked(self, service: &HttpService, site: Site, path: &str) -> Option<Asked> {
        match self {
            Manner::Http => None,
            Manner::Grpc { .. } => services::asked(service, site, path),
        }
    }

    const fn is_grpc(self) -> bool {
        matches!(self, Manner::Grpc { .. })
    }

    /// When the client has no more time.
    ///
    /// # Errors
    /// Where it says that, and not in the way of gRPC.
    fn deadline(self) -> Result<Option<Instant>, Failure> {
        match self {
            Manner::Http | Manner::Grpc { timeout: Some(None) } => Ok(None),
            Manner::Grpc { timeout: Some(Some(time)) } => Ok(Instant::now().checked_add(time)),
            Manner::Grpc { timeout: None } => Err(Failure::BadHead("grpc_timeout_malformed")),
        }
    }
}

async fn handle(
    service: &Rc<HttpService>,
    site: Site,
    activity: &Activity,
    request: Request<Incoming>,
    marks: Marks<'_>,
) -> Handled {
    let span = marks.span;
    let (mut head, incoming) = request.into_parts();
    // Other versions than HTTP/2 carry no gRPC, and other protocols lead to services of applications only.
    let is_looked_at = head.version == Version::HTTP_2 || !service.router.borrow().offers(site).is_empty();
    let kind = if is_looked_at { Kind::of(&head.headers) } else { Kind::Other };
    let mut manner = Manner::of(kind, &head);
    let checked = match activity.refusal() {
        Some(Refusal::Ambiguous) => Err(Failure::BadHead("length_ambiguous")),
        _ => head::check(&mut head, !incoming.is_end_stream()),
    };
    if let Err(failure) = checked {
        service.shard.thread().unrouted.add(1);
        return Handled::failed(failure, None, manner);
    }
    let path = head.uri.path();
    if path.len() > PATH_BYTES_MAX {
        service.shard.thread().unrouted.add(1);
        return Handled::failed(Failure::PathTooLong, None, manner);
    }
    // From here on the request belongs to this version of the function, whatever is deployed meanwhile.
    let mut found = service.router.borrow().find(site, path, &head.method);
    match (span, &found) {
        (Some(span), Ok(route)) => span.routed(Place::Served(Arc::clone(route))),
        (Some(span), Err((_, Some(place)))) => span.routed(place.clone()),
        _ => {}
    }
    let mut bridge = bridge(kind, service, site, &mut found, &mut head);
    if bridge.is_some() {
        manner = Manner::grpc(&head.headers);
        // It may be answered before its body was read, and as a request that went well.
        activity.linger();
    }
    if bridge.as_ref().is_some_and(Bridge::is_refused) {
        found = Err((Failure::BodyBroken, found.map_or_else(|(_, place)| place, |route| Some(Place::Served(route)))));
    }
    let inward = bridge.as_mut().and_then(Bridge::inward);
    let route = match found {
        Ok(route) => route,
        // What may be asked for is answered by the server, unless the function wants to.
        Err((Failure::MethodNotAllowed, Some(Place::Served(route)))) if head.method == Method::OPTIONS => {
            let preflight = bridge::preflight(service, site, &route.pattern, &head.headers);
            let response = preflight.unwrap_or_else(|| response::options(&route.options));
            return Handled::answered(response, Some(Place::Served(route)), manner);
        }
        Err((Failure::NotFound, None)) if head.method == Method::OPTIONS && head.uri.path() == "*" => {
            return Handled::answered(response::options(&HeaderValue::from_static("OPTIONS")), None, manner);
        }
        Err((failure, place)) => {
            if let (Failure::NotFound, Some(asked)) = (&failure, manner.asked(service, site, head.uri.path())) {
                let handled = match manner.deadline() {
                    Ok(deadline) => Handled::answered(
                        services::answer(service, site, asked, &head.headers, (incoming, inward), deadline),
                        None,
                        manner,
                    ),
                    Err(failure) => Handled::failed(failure, None, manner),
                };
                return handled.over(bridge).await;
            }
            match &place {
                Some(place) => service.shard.note_of(place.number(), place.labels(), |row| row.ended(Some(&failure))),
                None => service.shard.thread().unrouted.add(1),
            }
            return Handled::failed(failure, place, manner).over(bridge).await;
        }
    };
    sledge_sandbox::prefetch(&*route.function);
    let unanswered = Unanswered { whose: Some((service, &route)), is_grpc: manner.is_grpc() };
    // What it cannot say needs no look.
    let trailing = match &bridge {
        // They become a part of the body.
        Some(_) => Trailing::Framed,
        None if route.function.reads_head => Trailing::of(&head),
        None => Trailing::Never,
    };
    let is_timed = head.headers.contains_key(response::TIMING_REQUEST);
    let asked = || {
        let is_secure = service.tls.is_some();
        let mut asked = Box::new(RequestHead { method: head.method, target: head.uri, headers: head.headers, is_secure });
        // So that whatever the function asks in its own way is a part of this request, too.
        if let Some(span) = span {
            span.trace().context().inject(&mut asked.headers);
        }
        asked
    };
    let asked = route.function.reads_head.then(asked);
    let result = run(service, &route, activity, (asked, manner), (incoming, inward), marks).await;
    match result.as_ref().map(|reply| &reply.result) {
        Ok(Ok(Content::Whole(_))) => unanswered.answered(None),
        Ok(Ok(Content::Stream(stream))) => match stream.accept() {
            Some(end) => unanswered.answered(end.as_ref().err()),
            None => unanswered.left_to_worker(),
        },
        Ok(Err(failure)) | Err(failure) => unanswered.answered(Some(failure)),
    }
    let mut reply = match result {
        Ok(reply) => reply,
        Err(failure) => return Handled::failed(failure, Some(Place::Served(route)), manner).over(bridge).await,
    };
    let mut handled = match std::mem::replace(&mut reply.result, Ok(Content::Whole(Bytes::new()))) {
        Ok(content) => {
            let response = {
                let Reply { head, trailers, .. } = &mut reply;
                response::success(content, head.take(), trailers.take(), trailing, &route.function.content_type)
            };
            let mut handled = Handled::answered(response, Some(Place::Served(Arc::clone(&route))), manner);
            if let (Manner::Grpc { .. }, Either::Right(streamed)) = (manner, handled.response.body_mut()) {
                streamed.speak_grpc(&route.function);
            }
            handled
        }
        Err(failure) => Handled::failed(failure, Some(Place::Served(route)), manner),
    };
    if is_timed {
        response::add_timing(&mut handled.response, &reply);
    }
    handled.over(bridge).await
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
        (_, Err((Failure::MethodNotAllowed, Some(place @ Place::Served(route))))) if head.method == Method::GET => {
            let bridge = Bridge::of_get(service, site, place, head)?;
            *found = Ok(Arc::clone(route));
            Some(bridge)
        }
        (Kind::Grpc | Kind::Other, _) => None,
        _ if head.method != Method::POST => None,
        (kind, Ok(route)) => Bridge::of(kind, service, site, Some(&Place::Served(Arc::clone(route))), head),
        (kind, Err((_, place))) => Bridge::of(kind, service, site, place.as_ref(), head),
    }
}

/// A request that was routed: counted when it is answered, and also when its client goes before that.
struct Unanswered<'a> {
    whose: Option<(&'a HttpService, &'a Route)>,
    is_grpc: bool,
}

impl Unanswered<'_> {
    fn answered(mut self, failure: Option<&Failure>) {
        if let Some((service, route)) = self.whose.take() {
            service.shard.note(&route.function, |row| row.ended(failure));
        }
        if failure == Some(&Failure::NoMemory) {
            memory::release_heap_soon();
        }
    }

    /// Its reply has begun: it is counted where it ends.
    fn left_to_worker(mut self) {
        self.whose = None;
    }
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        if let Some((service, route)) = self.whose {
            service.shard.note(&route.function, |row| {
                row.ended(Some(&Failure::Cancelled));
                if self.is_grpc {
                    row.called(grpc::Code::Cancelled as usize);
                }
            });
        }
    }
}

/// Takes a request in and has it run. What cannot be taken is refused before its body is read.
async fn run(
    service: &HttpService,
    route: &Route,
    activity: &Activity,
    (head, manner): (Option<Box<RequestHead>>, Manner),
    (incoming, inward): (Incoming, Option<Box<dyn Inward>>),
    marks: Marks<'_>,
) -> Result<Reply, Failure> {
    let deadline = manner.deadline()?;
    let is_too_large = || activity.refusal() == Some(Refusal::TooLarge);
    if body::is_declared_too_large(&incoming, service.body_bytes_max) || is_too_large() {
        return Err(Failure::BodyTooLarge);
    }
    let admission = service.dispatcher.admit(&route.function)?;
    let (bytes_max, time_max) = (service.body_bytes_max, service.timeouts.body);
    // What was cut off by us is not broken.
    let cut_off = |failure| if failure == Failure::BodyBroken && is_too_large() { Failure::BodyTooLarge } else { failure };
    let is_coming = route.function.streams_body && (!incoming.is_end_stream() || inward.is_some());
    let body = if is_coming {
        // It may be answered before all of it has come.
        activity.linger();
        body::stream(incoming, bytes_max, time_max, inward)
    } else {
        body::read(incoming, bytes_max, time_max, route.function.template.budget()).await.map_err(cut_off)?
    };
    let input = Input { head, body };
    let mut invocation = Invocation::new(Arc::clone(&route.function), admission, None, input, Instant::now());
    if let Some(deadline) = deadline {
        invocation.deadline = invocation.deadline.min(deadline);
    }
    invocation.request_id = marks.id;
    invocation.trace = marks.span.map(|span| Arc::clone(span.trace()));
    let mut reply = service.dispatcher.begin(invocation, service).reply().await?;
    if is_coming {
        reply.result = reply.result.map_err(cut_off);
    }
    Ok(reply)
}
