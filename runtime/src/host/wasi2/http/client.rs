//! Requests to other servers that are on their way: `outgoing-handler`, `future-incoming-response` and `incoming-response`.
//!
//! A request is on its way from the moment that it is handled, as one of [`fetch`](crate::host::fetch) is, and may go where those may. It is given up when what is
//! left of it is dropped: the future, or the response and its body.

use std::fmt;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use awsm_abi::types::ValType::I32;
use bytes::Bytes;
use futures_util::FutureExt as _;
use http_body_util::BodyExt as _;
use hyper::body::Body as _;
use hyper::header::{CONTENT_LENGTH, HeaderMap, HeaderValue, TE};
use hyper::http::uri::{Authority, PathAndQuery, Scheme};
use hyper::{Method, Request, Uri};
use tracing::Level;

use super::TYPES;
use super::error::ErrorCode;
use super::fields::{HttpFields, memory_bytes, visible};
use super::incoming::{Arriving, IncomingBody};
use super::options::RequestOptions;
use super::outgoing::{Begun, Outgoing};
use super::outgoing_request::{OutgoingRequest, has_good_port};
use super::sending::Sending;
use crate::host::Effect::{External, Safe};
use crate::host::canonical::{Look, Own, Resource, Subject, Typed, canonical, number};
use crate::host::fetch::{Exchange, Exchanged, Share, WAIT_TIME_MAX, begin, share};
use crate::host::fetch_span::ClientSpan;
use crate::host::outbox::Recorder;
use crate::host::wasi2::streams::subscribe;
use crate::host::{Call, Flat, HostFunction, Stop, fetch};
use crate::upstream::posted::POSTED_BYTES_MAX;
use crate::upstream::{Failure, RequestBody};

/// Module name of the one function that makes requests.
const HANDLER: &str = "wasi:http/outgoing-handler@0.2";

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
    Came(Box<Exchanged>),
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
                request_bytes += bytes.len();
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
    let piece_time = time_of(options.between_bytes);
    if let Some(recorder) = Recorder::of(call) {
        let exchange = record(call, recorder, request, time_of(options.first_byte));
        return Ok(Ok((exchange, Sent { piece_time, body, request_bytes, share: Some(share) })));
    }
    call.context.name_request(&mut request);
    let span = call.context.trace().map(|trace| ClientSpan::begin(trace, &mut request));
    let connect = options.connect.map(Duration::from_nanos);
    let exchange = begin(upstream, request, time_of(options.first_byte), connect, span);
    Ok(Ok((exchange, Sent { piece_time, body, request_bytes, share: Some(share) })))
}

/// Records a request when its body is complete, to be sent after the commit: at once if it is, otherwise while the component writes it. It is recorded when it is acknowledged.
fn record(call: &Call<'_>, recorder: Recorder, request: Request<RequestBody>, time: Duration) -> Exchange {
    let (mut head, body) = request.into_parts();
    // The server that sends it says how long it is.
    head.headers.remove(CONTENT_LENGTH);
    if let Some(trace) = call.context.trace() {
        trace.context().inject(&mut head.headers);
    }
    let recorded = async move {
        let body = tokio::time::timeout(time, all_of(body)).await.map_err(|_| Failure::Timeout("the body of the request"))??;
        recorder.record(Request::from_parts(head, body)).map(|response| response.map(|()| None))
    };
    let mut recorded = Box::pin(recorded);
    match (&mut recorded).now_or_never() {
        Some(acknowledged) => Box::pin(std::future::ready(acknowledged)),
        None => fetch::on_its_way(recorded),
    }
}

/// All of a body that is recorded: copies, since the component goes on only when what it has written is gone.
async fn all_of(mut body: RequestBody) -> Result<Bytes, Failure> {
    let mut all = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| Failure::Broken(error.to_string()))?;
        let Some(data) = frame.data_ref() else { continue };
        if all.len() + data.len() > POSTED_BYTES_MAX {
            let why = format!("a request that is sent after the commit has {POSTED_BYTES_MAX} bytes at most");
            return Err(Failure::NotRecorded { bytes: all.len() + data.len(), why });
        }
        all.extend_from_slice(data);
    }
    Ok(all.into())
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
