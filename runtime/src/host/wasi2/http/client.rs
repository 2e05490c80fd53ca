//! Requests to other servers: `outgoing-request`, `request-options`, `outgoing-handler`, `future-incoming-response` and `incoming-response`.
//!
//! A request is on its way from the moment that it is handled, as one of [`fetch`](crate::host::fetch) is, and may go where those may. It is given up when what is
//! left of it is dropped: the future, or the response and its body.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use awsm_abi::types::ValType::{I32, I64};
use bytes::Bytes;
use hyper::body::Body as _;
use hyper::header::{CONTENT_LENGTH, HeaderMap, HeaderValue, TE};
use hyper::http::uri::{Authority, PathAndQuery, Scheme};
use hyper::{Method, Request, Uri};
use tracing::Level;

use super::TYPES;
use super::error::ErrorCode;
use super::fields::{HttpFields, memory_bytes, visible};
use super::incoming::{Arriving, IncomingBody};
use super::outgoing::{Begun, Outgoing, OutgoingBody};
use super::request::{HttpMethod, HttpScheme, METHODS};
use super::sending::Sending;
use crate::host::Effect::{External, Safe};
use crate::host::canonical::{Look, Own, Resource, Subject, Typed, canonical, number};
use crate::host::fetch::{Answered, Exchange, Share, WAIT_TIME_MAX, begin, share};
use crate::host::fetch_span::ClientSpan;
use crate::host::wasi2::streams::subscribe;
use crate::host::{Call, Flat, HostFunction, Stop};
use crate::upstream::RequestBody;

/// Module name of the one function that makes requests.
const HANDLER: &str = "wasi:http/outgoing-handler@0.2";
/// The longest method, path or authority.
const TEXT_BYTES_MAX: u64 = 8 << 10;

/// An `outgoing-request`.
#[derive(Debug)]
pub(in crate::host) struct OutgoingRequest {
    pub(in crate::host) method: Method,
    pub(in crate::host) scheme: Option<Scheme>,
    pub(in crate::host) authority: Option<Authority>,
    pub(in crate::host) target: Option<PathAndQuery>,
    pub(in crate::host) headers: Arc<HeaderMap>,
    pub(in crate::host) body: Option<Arc<Outgoing>>,
}

impl OutgoingRequest {
    /// One with these headers, and nothing else that was said.
    pub(in crate::host) const fn new(headers: Arc<HeaderMap>) -> OutgoingRequest {
        OutgoingRequest { method: Method::GET, scheme: None, authority: None, target: None, headers, body: None }
    }

    /// Bytes of its head.
    pub(in crate::host) fn head_bytes(&self) -> usize {
        let authority = self.authority.as_ref().map_or(0, |authority| authority.as_str().len());
        let target = self.target.as_ref().map_or(0, |target| target.as_str().len());
        memory_bytes(&self.headers) + self.method.as_str().len() + authority + target
    }
}

impl Resource for OutgoingRequest {
    fn memory_bytes(&self) -> usize {
        self.head_bytes() + self.body.as_ref().map_or(0, |body| body.memory_bytes())
    }

    fn dropped(&mut self) {
        if let Some(body) = &self.body {
            body.abandon();
        }
    }
}

impl Typed for OutgoingRequest {
    const NUMBER: u32 = number(TYPES, "outgoing-request");
}

/// A `request-options`: times in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::host) struct RequestOptions {
    /// Until there is a connection.
    pub(in crate::host) connect: Option<u64>,
    /// Until the response begins.
    pub(in crate::host) first_byte: Option<u64>,
    /// Until more of its body comes.
    pub(in crate::host) between_bytes: Option<u64>,
}

impl Resource for RequestOptions {}

impl Typed for RequestOptions {
    const NUMBER: u32 = number(TYPES, "request-options");
}

/// A `future-incoming-response`.
struct FutureIncomingResponse {
    state: State,
    /// The rest of what was sent.
    sent: Sent,
}

/// A request that is on its way.
pub(in crate::host) struct Sent {
    /// How long each piece of the response may take.
    pub(in crate::host) piece_time: Duration,
    /// The request's body, which may still be written.
    pub(in crate::host) body: Option<Arc<Outgoing>>,
    /// Bytes of the request, which are kept until the response begins.
    pub(in crate::host) request_bytes: usize,
    /// That the request is under way; none when the response was given away, whose body says it then.
    pub(in crate::host) share: Option<Arc<Share>>,
}

enum State {
    /// On its way.
    Sent(Exchange),
    /// There is a response, or there is none.
    Came(Box<Answered>),
    /// It was given away.
    Taken,
}

impl fmt::Debug for FutureIncomingResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FutureIncomingResponse").field("body", &self.sent.body).finish_non_exhaustive()
    }
}

impl Resource for FutureIncomingResponse {
    fn memory_bytes(&self) -> usize {
        self.sent.request_bytes + self.sent.body.as_ref().map_or(0, |body| body.memory_bytes())
    }

    fn is_ready(&mut self, look: &mut Look<'_>) -> Result<bool, Stop> {
        let State::Sent(exchange) = &mut self.state else { return Ok(true) };
        let Poll::Ready(answered) = exchange.as_mut().poll(&mut look.context()) else { return Ok(false) };
        self.state = State::Came(Box::new(answered));
        Ok(true)
    }
}

impl Typed for FutureIncomingResponse {
    const NUMBER: u32 = number(TYPES, "future-incoming-response");
}

/// An `incoming-response`.
#[derive(Debug)]
struct IncomingResponse {
    status: u16,
    headers: Arc<HeaderMap>,
    /// None when it was given away.
    body: Option<Arc<Arriving>>,
}

impl Resource for IncomingResponse {
    fn memory_bytes(&self) -> usize {
        memory_bytes(&self.headers) + self.body.as_ref().map_or(0, |body| body.memory_bytes())
    }
}

impl Typed for IncomingResponse {
    const NUMBER: u32 = number(TYPES, "incoming-response");
}

/// The interfaces. What a response holds came by a call that says so.
pub(in crate::host) const FUNCTIONS: &[HostFunction] = &[
    canonical(TYPES, "[constructor]outgoing-request", &[I32, I32], &[I32], Safe, constructor),
    canonical(TYPES, "[method]outgoing-request.body", &[I32, I32, I32], &[], Safe, body),
    canonical(TYPES, "[method]outgoing-request.method", &[I32, I32, I32], &[I32], Safe, method),
    canonical(TYPES, "[method]outgoing-request.set-method", &[I32, I32, I32, I32, I32], &[I32], Safe, set_method),
    canonical(TYPES, "[method]outgoing-request.path-with-query", &[I32, I32, I32], &[I32], Safe, target),
    canonical(TYPES, "[method]outgoing-request.set-path-with-query", &[I32, I32, I32, I32, I32], &[I32], Safe, set_target),
    canonical(TYPES, "[method]outgoing-request.scheme", &[I32, I32, I32], &[I32], Safe, scheme),
    canonical(TYPES, "[method]outgoing-request.set-scheme", &[I32, I32, I32, I32, I32, I32], &[I32], Safe, set_scheme),
    canonical(TYPES, "[method]outgoing-request.authority", &[I32, I32, I32], &[I32], Safe, authority),
    canonical(TYPES, "[method]outgoing-request.set-authority", &[I32, I32, I32, I32, I32], &[I32], Safe, set_authority),
    canonical(TYPES, "[method]outgoing-request.headers", &[I32, I32], &[I32], Safe, headers),
    canonical(TYPES, "[constructor]request-options", &[I32], &[I32], Safe, options),
    canonical(TYPES, "[method]request-options.connect-timeout", &[I32, I32, I32], &[], Safe, |call| {
        time(call, |options| &mut options.connect)
    }),
    canonical(TYPES, "[method]request-options.set-connect-timeout", &[I32, I32, I32, I64], &[I32], Safe, |call| {
        set_time(call, |options| &mut options.connect)
    }),
    canonical(TYPES, "[method]request-options.first-byte-timeout", &[I32, I32, I32], &[], Safe, |call| {
        time(call, |options| &mut options.first_byte)
    }),
    canonical(TYPES, "[method]request-options.set-first-byte-timeout", &[I32, I32, I32, I64], &[I32], Safe, |call| {
        set_time(call, |options| &mut options.first_byte)
    }),
    canonical(TYPES, "[method]request-options.between-bytes-timeout", &[I32, I32, I32], &[], Safe, |call| {
        time(call, |options| &mut options.between_bytes)
    }),
    canonical(TYPES, "[method]request-options.set-between-bytes-timeout", &[I32, I32, I32, I64], &[I32], Safe, |call| {
        set_time(call, |options| &mut options.between_bytes)
    }),
    canonical(HANDLER, "handle", &[I32, I32, I32, I32, I32], &[I32], External, handle),
    canonical(
        TYPES,
        "[method]future-incoming-response.subscribe",
        &[I32, I32],
        &[I32],
        Safe,
        subscribe::<FutureIncomingResponse>,
    ),
    canonical(TYPES, "[method]future-incoming-response.get", &[I32, I32, I32], &[I32], External, get),
    canonical(TYPES, "[method]incoming-response.status", &[I32, I32], &[I32], Safe, status),
    canonical(TYPES, "[method]incoming-response.headers", &[I32, I32], &[I32], Safe, response_headers),
    canonical(TYPES, "[method]incoming-response.consume", &[I32, I32, I32], &[], Safe, consume),
];

/// `constructor(headers: headers) -> outgoing-request`
fn constructor(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let headers = call.owned::<HttpFields>(1)?.into_map();
    call.give(OutgoingRequest::new(headers)).map(|own| Flat::from(own.0))
}

/// `body(self) -> result<outgoing-body>`: once, and not where the headers say no length that is one.
fn body(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let representation = call.representation::<OutgoingRequest>(1)?;
    let request = call.borrowed::<OutgoingRequest>(1)?;
    let result = match OutgoingBody::of(&mut request.body, &request.headers, true, representation) {
        Some(body) => Ok(call.give(body)?),
        None => Err(()),
    };
    call.lower(2, result)
}

/// `method(self) -> method`
fn method(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let method = call.borrowed::<OutgoingRequest>(1)?.method.clone();
    call.lower(2, HttpMethod(method))
}

/// The string at argument `index`, if it is not too long.
fn text<'c>(call: &'c Call<'_>, index: usize) -> Result<Option<Cow<'c, str>>, Stop> {
    call.text_within(index, TEXT_BYTES_MAX)
}

/// What is set, for the component: whether that failed.
fn set<T>(call: &mut Call<'_>, value: Option<T>, set: impl FnOnce(&mut OutgoingRequest, T)) -> Result<Flat, Stop> {
    let representation = call.representation::<OutgoingRequest>(1)?;
    let request = call.context.ports.resource::<OutgoingRequest>(representation)?;
    let has_failed = value.is_none();
    if let Some(value) = value {
        set(request, value);
    }
    call.context.ports.resources_mut().count(representation)?;
    Ok(Flat::from(has_failed))
}

/// An optional string at argument `index` that is parsed; none where it is wrong.
fn parsed<T>(call: &Call<'_>, index: usize, parse: impl FnOnce(&str) -> Option<T>) -> Result<Option<Option<T>>, Stop> {
    if !call.is_some(index)? {
        return Ok(Some(None));
    }
    Ok(text(call, index + 1)?.and_then(|text| parse(&text)).map(Some))
}

/// The `method` that begins at argument 2; none where it is wrong.
pub(in crate::host) fn method_argument(call: &Call<'_>) -> Result<Option<Method>, Stop> {
    let case = call.case(2, METHODS.len() as u32 + 1)? as usize;
    Ok(match METHODS.get(case) {
        Some(method) => Some(method.clone()),
        None => text(call, 3)?.and_then(|text| Method::from_bytes(text.as_bytes()).ok()),
    })
}

/// The `option<string>` that is a path with a query and begins at argument 2; none where it is wrong. An empty path is that of the root.
pub(in crate::host) fn target_argument(call: &Call<'_>) -> Result<Option<Option<PathAndQuery>>, Stop> {
    parsed(call, 2, |text| PathAndQuery::try_from(if text.is_empty() { "/" } else { text }).ok())
}

/// The `option<scheme>` that begins at argument 2; none where it is wrong.
pub(in crate::host) fn scheme_argument(call: &Call<'_>) -> Result<Option<Option<Scheme>>, Stop> {
    if !call.is_some(2)? {
        return Ok(Some(None));
    }
    Ok(match call.case(3, 3)? {
        0 => Some(Some(Scheme::HTTP)),
        1 => Some(Some(Scheme::HTTPS)),
        _ => text(call, 4)?.and_then(|text| Scheme::try_from(&*text).ok()).map(Some),
    })
}

/// The `option<string>` that is an authority and begins at argument 2; none where it is wrong.
pub(in crate::host) fn authority_argument(call: &Call<'_>) -> Result<Option<Option<Authority>>, Stop> {
    parsed(call, 2, |text| Authority::try_from(text).ok().filter(has_good_port))
}

/// Whether an authority has no port, or one that is a port.
fn has_good_port(authority: &Authority) -> bool {
    let server = authority.as_str().rsplit('@').next().unwrap_or_default();
    server.len() == authority.host().len() || authority.port_u16().is_some()
}

/// `set-method(self, method: method) -> result`
fn set_method(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let method = method_argument(call)?;
    set(call, method, |request, method| request.method = method)
}

/// `path-with-query(self) -> option<string>`
fn target(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let target = call.borrowed::<OutgoingRequest>(1)?.target.as_ref().map(|target| target.as_str().to_owned());
    call.lower(2, target)
}

/// `set-path-with-query(self, path-with-query: option<string>) -> result`
fn set_target(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let target = target_argument(call)?;
    set(call, target, |request, target| request.target = target)
}

/// `scheme(self) -> option<scheme>`
fn scheme(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let scheme = call.borrowed::<OutgoingRequest>(1)?.scheme.clone().map(HttpScheme);
    call.lower(2, scheme)
}

/// `set-scheme(self, scheme: option<scheme>) -> result`
fn set_scheme(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let scheme = scheme_argument(call)?;
    set(call, scheme, |request, scheme| request.scheme = scheme)
}

/// `authority(self) -> option<string>`
fn authority(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let authority = call.borrowed::<OutgoingRequest>(1)?.authority.as_ref().map(|authority| authority.as_str().to_owned());
    call.lower(2, authority)
}

/// `set-authority(self, authority: option<string>) -> result`
fn set_authority(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let authority = authority_argument(call)?;
    set(call, authority, |request, authority| request.authority = authority)
}

/// `headers(self) -> headers`
fn headers(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let representation = call.representation::<OutgoingRequest>(1)?;
    let map = Arc::clone(&call.borrowed::<OutgoingRequest>(1)?.headers);
    call.give_child(HttpFields::of_message(map), Some(representation)).map(|own| Flat::from(own.0))
}

/// `constructor() -> request-options`
fn options(call: &mut Call<'_>) -> Result<Flat, Stop> {
    call.give(RequestOptions::default()).map(|own| Flat::from(own.0))
}

/// `connect-timeout(self) -> option<duration>`, and the others.
fn time(call: &mut Call<'_>, of: impl FnOnce(&mut RequestOptions) -> &mut Option<u64>) -> Result<Flat, Stop> {
    let time = *of(call.borrowed::<RequestOptions>(1)?);
    call.lower(2, time)
}

/// `set-connect-timeout(self, duration: option<duration>) -> result`, and the others.
fn set_time(call: &mut Call<'_>, of: impl FnOnce(&mut RequestOptions) -> &mut Option<u64>) -> Result<Flat, Stop> {
    let time = if call.is_some(2)? { Some(call.args.u64(3)) } else { None };
    *of(call.borrowed::<RequestOptions>(1)?) = time;
    Ok(Flat::from(false))
}

/// The URL of a request. One that names no scheme is made over TLS.
fn uri(request: &mut OutgoingRequest) -> Result<Uri, ErrorCode> {
    let scheme = request.scheme.take().unwrap_or(Scheme::HTTPS);
    if ![Scheme::HTTP, Scheme::HTTPS].contains(&scheme) {
        return Err(ErrorCode::HttpProtocolError);
    }
    // A name and a password would go into the header `host`, as would a port that is none.
    let is_server =
        |authority: &Authority| !authority.as_str().contains('@') && !authority.host().is_empty() && has_good_port(authority);
    let authority = request.authority.take().filter(is_server);
    let target = request.target.take().unwrap_or_else(|| PathAndQuery::from_static("/"));
    let uri = Uri::builder().scheme(scheme).authority(authority.ok_or(ErrorCode::HttpRequestUriInvalid)?);
    uri.path_and_query(target).build().map_err(|_| ErrorCode::HttpRequestUriInvalid)
}

/// A request with what is written of its body.
type Head = Request<Option<Arc<Outgoing>>>;

/// What is sent, and the bytes that are kept of its head.
fn head(mut request: OutgoingRequest) -> Result<(Head, usize), ErrorCode> {
    match request.method {
        // There are no tunnels.
        Method::CONNECT => return Err(ErrorCode::HttpProtocolError),
        Method::TRACE => return Err(ErrorCode::HttpRequestMethodInvalid),
        _ => {}
    }
    let bytes = request.head_bytes();
    let uri = uri(&mut request)?;
    let OutgoingRequest { method, headers, body, .. } = request;
    let mut headers = Arc::unwrap_or_clone(headers);
    // The length is known where the body is.
    headers.remove(CONTENT_LENGTH);
    headers.remove(TE);
    let mut head = Request::new(body);
    (*head.method_mut(), *head.uri_mut(), *head.headers_mut()) = (method, uri, headers);
    Ok((head, bytes))
}

/// A time that the component may have said.
fn time_of(nanoseconds: Option<u64>) -> Duration {
    nanoseconds.map_or(WAIT_TIME_MAX, Duration::from_nanos)
}

/// Makes a request, if it may be made.
///
/// # Errors
/// A trap. What prevents the request is the result.
pub(in crate::host) fn send(
    call: &mut Call<'_>,
    request: OutgoingRequest,
    options: RequestOptions,
) -> Result<Result<(Exchange, Sent), ErrorCode>, Stop> {
    let (mut head, mut request_bytes) = match head(request) {
        Ok(request) => request,
        Err(code) => return Ok(Err(code)),
    };
    let upstream = call.context.ports.upstream()?.filter(|upstream| upstream.allows(&head)).map(Arc::clone);
    let Some(upstream) = upstream else {
        let host = head.uri().authority().map_or("", |authority| authority.as_str());
        call.say(Level::WARN, &format!("wasi:http: {host} is not in the function's `http_hosts`"))?;
        return Ok(Err(ErrorCode::HttpRequestDenied));
    };
    let Some(share) = share().and_then(|share| call.context.ports.fetches().ok()?.join(share)) else {
        return Ok(Err(ErrorCode::ConnectionLimitReached));
    };
    let (sent, body) = match head.body_mut().take() {
        Some(outgoing) => match outgoing.begin() {
            Some(Begun::Whole(bytes, trailers)) => {
                request_bytes += bytes.as_slice().len();
                let bytes = bytes.into_bytes(None);
                let sent = match trailers {
                    // With nothing behind it, it needs no chunks.
                    None => RequestBody::from(bytes),
                    Some(trailers) => RequestBody::of(Sending::whole(bytes, Some(trailers))),
                };
                (sent, None)
            }
            Some(Begun::Writer(mut writer)) => {
                writer.answer(usize::MAX, false);
                let stream = writer.begin().map(|(_, stream)| Sending::to_server(stream, Arc::clone(&share)));
                outgoing.write_to(writer);
                (stream.map_or_else(|| RequestBody::from(Bytes::new()), RequestBody::of), Some(outgoing))
            }
            None => (RequestBody::from(Bytes::new()), None),
        },
        None => (RequestBody::from(Bytes::new()), None),
    };
    let mut request = head.map(|_| sent);
    // Where there usually is a body, it is said that there is none (RFC 9110, 8.6).
    if [Method::POST, Method::PUT, Method::PATCH].contains(request.method()) && request.body().is_end_stream() {
        request.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
    }
    let span = call.context.trace().map(|trace| ClientSpan::begin(trace, &mut request));
    let connect = options.connect.map(Duration::from_nanos);
    let exchange = begin(upstream, request, time_of(options.first_byte), connect, span);
    let piece_time = time_of(options.between_bytes);
    Ok(Ok((exchange, Sent { piece_time, body, request_bytes, share: Some(share) })))
}

/// `handle(request: outgoing-request, options: option<request-options>) -> result<future-incoming-response, error-code>`
fn handle(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let request = *call.owned::<OutgoingRequest>(1)?;
    let options = if call.is_some(2)? { *call.owned::<RequestOptions>(3)? } else { RequestOptions::default() };
    let written = request.body.clone();
    let result = match send(call, request, options)? {
        Ok((exchange, sent)) => {
            let body = sent.body.clone();
            let own = call.give(FutureIncomingResponse { state: State::Sent(exchange), sent })?;
            if let Some(body) = body {
                body.belong_to(call.representation_of::<FutureIncomingResponse>(own.0)?);
            }
            Ok(own)
        }
        Err(code) => {
            // No message counts what is written of it from now on.
            if let Some(body) = written {
                body.abandon();
            }
            Err(code)
        }
    };
    call.lower(4, result)
}

/// `get(self) -> option<result<result<incoming-response, error-code>>>`: none before it is there; once.
fn get(call: &mut Call<'_>) -> Result<Flat, Stop> {
    type Given = Option<Result<Result<Own, ErrorCode>, ()>>;
    let representation = call.representation::<FutureIncomingResponse>(1)?;
    if call.ready(&[Subject::Of(representation)])?.is_empty() {
        return call.lower::<Given>(2, None);
    }
    let future = call.context.ports.resource::<FutureIncomingResponse>(representation)?;
    let (piece_time, share) = (future.sent.piece_time, future.sent.share.take());
    future.sent.request_bytes = 0;
    let state = std::mem::replace(&mut future.state, State::Taken);
    call.context.ports.resources_mut().count(representation)?;
    let given: Given = Some(match state {
        State::Came(answered) => Ok(match *answered {
            Ok(response) => {
                let (head, body) = response.into_parts();
                let body = Some(Arc::new(Arriving::new(body, piece_time, share)));
                let headers = Arc::new(visible(&head.headers));
                Ok(call.give(IncomingResponse { status: head.status.as_u16(), headers, body })?)
            }
            Err(failure) => {
                call.say(Level::WARN, &format!("wasi:http: {failure}"))?;
                Err(ErrorCode::from(&failure))
            }
        }),
        State::Sent(_) | State::Taken => Err(()),
    });
    call.lower(2, given)
}

/// `status(self) -> status-code`
fn status(call: &mut Call<'_>) -> Result<Flat, Stop> {
    Ok(Flat::from(u32::from(call.borrowed::<IncomingResponse>(1)?.status)))
}

/// `headers(self) -> headers`
fn response_headers(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let representation = call.representation::<IncomingResponse>(1)?;
    let map = Arc::clone(&call.borrowed::<IncomingResponse>(1)?.headers);
    call.give_child(HttpFields::of_message(map), Some(representation)).map(|own| Flat::from(own.0))
}

/// `consume(self) -> result<incoming-body>`: once.
fn consume(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let result = match call.borrowed::<IncomingResponse>(1)?.body.take() {
        Some(body) => Ok(call.give(IncomingBody::of_response(body))?),
        None => Err(()),
    };
    call.lower(2, result)
}
