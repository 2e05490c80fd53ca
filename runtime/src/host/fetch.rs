//! `sledge:fetch`: requests over HTTP to other servers, as sdk/wit/fetch.wit says.
//!
//! A request is on its way from the moment that it is made, while the function does other things; it is given up when its handle is closed or the
//! invocation ends. Of a response the host keeps what came with the last read and was not taken.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use awsm_abi::types::ValType::I32;
use bytes::Bytes;
use futures_util::FutureExt as _;
use http_body_util::{BodyExt as _, Collected, Full};
use hyper::body::Incoming;
use hyper::header::{
    CONNECTION, CONTENT_LENGTH, DATE, HOST, HeaderMap, HeaderName, HeaderValue, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use hyper::http::uri::Scheme;
use hyper::{Method, Request, Response, Uri};
use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use tracing::Level;

use super::Effect::External;
use super::fetch_span::ClientSpan;
use super::outbox::Recorder;
use super::wasi::Errno;
use super::{Call, HostFunction, Stop, own};
use crate::upstream::{Failure, RequestBody, Upstream};

/// Module name of the imports.
pub(super) const MODULE: &str = "sledge:fetch";
/// Requests of one invocation that it has not closed.
const REQUESTS_MAX: usize = 64;
/// Those of all invocations of one worker.
const WORKER_REQUESTS_MAX: usize = 4_096;
/// The longest URL.
const URL_BYTES_MAX: u32 = 8 << 10;
/// The largest body of a request; those of responses come in pieces.
const BODY_BYTES_MAX: u32 = 4 << 20;
/// Headers of a request, and their bytes.
const HEADERS_MAX: usize = 64;
const HEADERS_BYTES_MAX: u32 = 16 << 10;
/// How long the head of a response, and each piece of its body, may take where the function does not say.
pub(super) const WAIT_TIME_MAX: Duration = Duration::from_secs(30);
/// What a connection needs, or the URL says.
pub(super) const RESERVED: [HeaderName; 8] = [CONNECTION, CONTENT_LENGTH, DATE, HOST, TE, TRAILER, TRANSFER_ENCODING, UPGRADE];

/// What a request came to.
pub(in crate::host) type Answered = Result<Response<Incoming>, Failure>;

/// The same of one that may have been recorded, to be sent later: then there is no body.
pub(in crate::host) type Exchanged = Result<Response<Option<Incoming>>, Failure>;

/// A request under way, until there is the head of a response.
pub(in crate::host) type Exchange = Pin<Box<dyn Future<Output = Exchanged> + Send>>;

thread_local! {
    /// One share for each request of this worker.
    static REQUESTS: Arc<()> = Arc::new(());
}

/// That a request is one of this worker's.
#[derive(Debug)]
pub(super) struct Share(#[expect(dead_code, reason = "it is counted")] Arc<()>);

/// One more request of this worker; none where it has as many as it may.
pub(super) fn share() -> Option<Share> {
    let share = REQUESTS.with(Arc::clone);
    // One is the thread's own, another this one.
    if Arc::strong_count(&share) > WORKER_REQUESTS_MAX + 1 { None } else { Some(Share(share)) }
}

/// The requests of one invocation, by their handles.
#[derive(Debug, Default)]
pub(super) struct Fetches {
    own: Vec<Option<Fetch>>,
    /// One for each that a component has made.
    shares: Vec<Weak<Share>>,
}

/// A request that was made.
struct Fetch {
    state: State,
    times: Times,
    /// Bytes of its body, which are kept until the response begins.
    body_bytes: usize,
    _share: Share,
}

enum State {
    /// On its way.
    Sent(Exchange),
    /// There is a response; what of its body has come and was not taken.
    Answered { status: u16, headers: HeaderMap, body: Option<Incoming>, rest: Bytes },
    /// There is none, or there is no more of it.
    Failed(Errno),
    /// A call waits for it, and has what belongs to it.
    Away,
}

/// How long a response may take.
#[derive(Clone, Copy, Debug)]
struct Times {
    head: Duration,
    piece: Duration,
}

impl fmt::Debug for Fetch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fetch").field("times", &self.times).finish_non_exhaustive()
    }
}

impl Fetches {
    /// Whether there ever was one that keeps bytes.
    pub(super) const fn has_places(&self) -> bool {
        !self.own.is_empty()
    }

    /// Bytes that are kept for them.
    pub(super) fn bytes(&self) -> usize {
        let kept = |fetch: &Fetch| match &fetch.state {
            State::Answered { rest, .. } => rest.len(),
            State::Sent(_) | State::Away => fetch.body_bytes,
            State::Failed(_) => 0,
        };
        self.own.iter().flatten().map(kept).sum()
    }

    /// Counts one that a component makes, as long as it keeps the share; none where it has as many as it may.
    pub(super) fn join(&mut self, share: Share) -> Option<Arc<Share>> {
        self.shares.retain(|share| share.strong_count() > 0);
        if self.shares.len() >= REQUESTS_MAX {
            return None;
        }
        let share = Arc::new(share);
        self.shares.push(Arc::downgrade(&share));
        Some(share)
    }
}

/// The interface.
pub(super) const FUNCTIONS: &[HostFunction] = &[
    own(MODULE, "send", &[I32, I32, I32, I32, I32, I32, I32, I32, I32], External, send),
    own(MODULE, "status", &[I32], External, status),
    own(MODULE, "headers", &[I32, I32, I32], External, headers),
    own(MODULE, "read", &[I32, I32, I32], External, read),
    own(MODULE, "close", &[I32], External, close),
];

impl From<&Failure> for Errno {
    fn from(failure: &Failure) -> Errno {
        match failure {
            Failure::NotAllowed { .. } | Failure::AddressNotAllowed { .. } => Errno::ACCES,
            Failure::Timeout(_) | Failure::ConnectTimeout => Errno::TIMEDOUT,
            Failure::NotRecorded { .. } => Errno::TOOBIG,
            _ => Errno::IO,
        }
    }
}

/// A piece of the guest's memory, whose address and length are arguments `index` and `index + 1`.
fn piece<'a>(call: &'a Call<'_>, index: usize, bytes_max: u32) -> Result<&'a [u8], Stop> {
    let memory = call.memory.as_ref().ok_or(Errno::FAULT)?;
    let piece = memory.slice(call.args.address(index), call.args.u32(index + 1).into())?;
    if call.args.u32(index + 1) > bytes_max { Err(Errno::TOOBIG.into()) } else { Ok(piece) }
}

/// The request that arguments 0 to 7 describe.
fn request(call: &Call<'_>) -> Result<Request<Full<Bytes>>, Stop> {
    let method = Method::from_bytes(piece(call, 0, 32)?).map_err(|_| Errno::INVAL)?;
    if [Method::CONNECT, Method::TRACE].contains(&method) {
        return Err(Errno::NOTSUP.into());
    }
    let uri = Uri::try_from(piece(call, 2, URL_BYTES_MAX)?).map_err(|_| Errno::INVAL)?;
    let is_http = uri.scheme().is_some_and(|scheme| [Scheme::HTTP, Scheme::HTTPS].contains(scheme));
    // A name and a password would go into the header `host`.
    if !is_http || uri.authority().is_none_or(|authority| authority.as_str().contains('@')) {
        return Err(Errno::INVAL.into());
    }
    let mut headers = HeaderMap::new();
    let mut rows = piece(call, 4, HEADERS_BYTES_MAX)?;
    while !rows.is_empty() {
        let name = HeaderName::from_bytes(row(&mut rows)?).map_err(|_| Errno::INVAL)?;
        let value = HeaderValue::from_bytes(row(&mut rows)?).map_err(|_| Errno::INVAL)?;
        if RESERVED.contains(&name) {
            return Err(Errno::NOTSUP.into());
        }
        if headers.len() >= HEADERS_MAX {
            return Err(Errno::TOOBIG.into());
        }
        headers.append(name, value);
    }
    let mut request = Request::new(Full::new(Bytes::copy_from_slice(piece(call, 6, BODY_BYTES_MAX)?)));
    (*request.method_mut(), *request.uri_mut(), *request.headers_mut()) = (method, uri, headers);
    Ok(request)
}

/// What stands behind its length (u32) at the beginning of `rows`, and goes from there.
pub(super) fn row<'a>(rows: &mut &'a [u8]) -> Result<&'a [u8], Stop> {
    let (length, behind) = rows.split_first_chunk().ok_or(Errno::INVAL)?;
    let (row, behind) = behind.split_at_checked(u32::from_le_bytes(*length) as usize).ok_or(Errno::INVAL)?;
    *rows = behind;
    Ok(row)
}

/// The times at the address that is argument `index`, in milliseconds: for the head, and for each piece; 0 for what is usual.
fn times(call: &Call<'_>, index: usize) -> Result<Times, Stop> {
    let at = call.args.address(index);
    let time = |offset: u64| -> Result<Duration, Stop> {
        if at == 0 {
            return Ok(WAIT_TIME_MAX);
        }
        let memory = call.memory.as_ref().ok_or(Errno::FAULT)?;
        let bytes = memory.slice(at + offset, 4)?.try_into().map_err(|_| Errno::FAULT)?;
        let ms = u32::from_le_bytes(bytes);
        Ok(if ms == 0 { WAIT_TIME_MAX } else { Duration::from_millis(ms.into()) })
    };
    Ok(Times { head: time(0)?, piece: time(4)? })
}

/// `send(method, bytes, url, bytes, headers, bytes, body, bytes, times: *(head_ms: u32, piece_ms: u32)?) -> request`
fn send(call: &mut Call<'_>) -> Result<i32, Stop> {
    let (mut request, times) = (request(call)?, times(call, 8)?);
    let upstream = call.context.ports.upstream()?.filter(|upstream| upstream.allows(&request)).ok_or(Errno::ACCES)?;
    let upstream = Arc::clone(upstream);
    let share = share().ok_or(Errno::AGAIN)?;
    let fetches = &call.context.ports.fetches()?.own;
    let free = fetches.iter().position(Option::is_none).unwrap_or(fetches.len());
    if free >= REQUESTS_MAX {
        return Err(Errno::MFILE.into());
    }
    let state = match Recorder::of(call) {
        Some(recorder) => recorded(call, &recorder, request)?,
        None => {
            call.context.name_request(&mut request);
            let span = call.context.trace().map(|trace| ClientSpan::begin(trace, &mut request));
            State::Sent(begin(upstream, request, times.head, None, span))
        }
    };
    let body_bytes = call.args.u32(7) as usize;
    let fetch = Fetch { state, times, body_bytes, _share: share };
    let fetches = &mut call.context.ports.fetches()?.own;
    if free == fetches.len() {
        fetches.push(None);
    }
    fetches[free] = Some(fetch);
    Ok(free as i32)
}

/// What a request is that is sent when its transaction was committed.
fn recorded(call: &mut Call<'_>, recorder: &Recorder, request: Request<Full<Bytes>>) -> Result<State, Stop> {
    let (mut head, body) = request.into_parts();
    // It is there as a whole.
    let body = body.collect().now_or_never().and_then(Result::ok).map(Collected::to_bytes).unwrap_or_default();
    if let Some(trace) = call.context.trace() {
        trace.context().inject(&mut head.headers);
    }
    match recorder.record(Request::from_parts(head, body)) {
        Ok(response) => {
            let (head, ()) = response.into_parts();
            Ok(State::Answered { status: head.status.as_u16(), headers: head.headers, body: None, rest: Bytes::new() })
        }
        Err(failure) => {
            call.say(Level::WARN, &format!("sledge:fetch: {failure}"))?;
            Err(Errno::from(&failure).into())
        }
    }
}

/// Gives a request up that its function does not wait for any more.
struct Abort(AbortHandle);

impl Drop for Abort {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A request that goes on while its function does not wait for it: in a task of the worker. On a terminal, where there is none, it begins when it is waited for.
pub(super) fn begin(
    upstream: Arc<Upstream>,
    request: Request<impl Into<RequestBody> + Send + 'static>,
    time: Duration,
    connect_time: Option<Duration>,
    span: Option<ClientSpan>,
) -> Exchange {
    let answered = async move {
        let answered = tokio::time::timeout(time, upstream.send_within(request, connect_time)).await;
        let answered = answered.unwrap_or(Err(Failure::Timeout("the head of the response")));
        if let Some(span) = span {
            span.end(&answered);
        }
        answered.map(|response| response.map(Some))
    };
    on_its_way(answered)
}

/// Has it go on while its function does not wait for it, as [`begin`] says.
pub(super) fn on_its_way(answered: impl Future<Output = Exchanged> + Send + 'static) -> Exchange {
    if Handle::try_current().is_err() {
        return Box::pin(answered);
    }
    let task = tokio::spawn(answered);
    let abort = Abort(task.abort_handle());
    Box::pin(async move {
        let _abort = abort;
        task.await.unwrap_or_else(|error| Err(Failure::Broken(error.to_string())))
    })
}

/// The request that argument 0 names.
fn fetch<'a>(call: &'a mut Call<'_>) -> Result<&'a mut Fetch, Stop> {
    let handle = call.args.u32(0) as usize;
    call.context.ports.fetches()?.own.get_mut(handle).and_then(Option::as_mut).ok_or(Stop::Errno(Errno::BADF))
}

/// Notes why there is no response, or no more of it; the reason is for the function's log.
fn failed(call: &mut Call<'_>, failure: &Failure) -> Result<State, Stop> {
    call.say(Level::WARN, &format!("sledge:fetch: {failure}"))?;
    Ok(State::Failed(failure.into()))
}

/// Waits for the head of the response, if it has not come; then the host function is called again.
fn with_head<'a>(call: &'a mut Call<'_>) -> Result<&'a mut Fetch, Stop> {
    if let Ok(Fetch { state: state @ State::Sent(_), .. }) = fetch(call)
        && let State::Sent(sent) = std::mem::replace(state, State::Away)
    {
        return Err(call.wait(sent, |call, answered: Exchanged| -> Result<(), Stop> {
            let state = match answered {
                Ok(response) => {
                    let (head, body) = response.into_parts();
                    State::Answered { status: head.status.as_u16(), headers: head.headers, body, rest: Bytes::new() }
                }
                Err(failure) => failed(call, &failure)?,
            };
            fetch(call)?.state = state;
            Err(Stop::Again)
        }));
    }
    match fetch(call)? {
        Fetch { state: State::Failed(errno), .. } => Err((*errno).into()),
        fetch => Ok(fetch),
    }
}

/// `status(request) -> code`: waits for the response to begin.
fn status(call: &mut Call<'_>) -> Result<i32, Stop> {
    match &with_head(call)?.state {
        State::Answered { status, .. } => Ok(i32::from(*status)),
        _ => Err(Errno::IO.into()),
    }
}

/// `headers(request, rows, rows_bytes) -> bytes`: of each its name's length (u32), its name, its value's length (u32), its value.
fn headers(call: &mut Call<'_>) -> Result<i32, Stop> {
    let State::Answered { headers, .. } = &with_head(call)?.state else { return Err(Errno::IO.into()) };
    let mut rows = Vec::new();
    for (name, value) in headers {
        for text in [name.as_str().as_bytes(), value.as_bytes()] {
            rows.extend_from_slice(&(text.len() as u32).to_le_bytes());
            rows.extend_from_slice(text);
        }
    }
    let (at, room) = (call.args.address(1), call.args.u32(2));
    let memory = call.memory_mut()?;
    memory.slice(at, room.into())?;
    memory.write(at, &rows[..rows.len().min(room as usize)])?;
    i32::try_from(rows.len()).map_err(|_| Errno::OVERFLOW.into())
}

/// `read(request, buffer, buffer_bytes) -> bytes`: what has come of the body, at least one byte; 0 at its end.
fn read(call: &mut Call<'_>) -> Result<i32, Stop> {
    let (at, room) = (call.args.address(1), call.args.u32(2) as usize);
    call.memory_mut()?.slice(at, room as u64)?;
    let Fetch { state, times, .. } = with_head(call)?;
    let State::Answered { body, rest, .. } = state else { return Err(Errno::IO.into()) };
    if !rest.is_empty() || room == 0 {
        let piece = rest.split_to(rest.len().min(room));
        call.memory_mut()?.write(at, &piece)?;
        return Ok(piece.len() as i32);
    }
    if body.as_ref().is_none_or(hyper::body::Body::is_end_stream) {
        return Ok(0);
    }
    let time = times.piece;
    let State::Answered { status, headers, body: Some(mut body), .. } = std::mem::replace(state, State::Away) else {
        return Err(Errno::IO.into());
    };
    let next = async move {
        let more = tokio::time::timeout(time, next(&mut body)).await;
        (body, more.unwrap_or(Err(Failure::Timeout("the body of the response"))))
    };
    Err(call.wait(next, move |call, (body, more)| {
        let (state, again) = match more {
            Ok(Some(rest)) => (State::Answered { status, headers, body: Some(body), rest }, true),
            Ok(None) => (State::Answered { status, headers, body: Some(body), rest: Bytes::new() }, false),
            Err(failure) => (failed(call, &failure)?, true),
        };
        fetch(call)?.state = state;
        if again { Err(Stop::Again) } else { Ok(0) }
    }))
}

/// The next bytes of a body; none at its end.
async fn next(body: &mut Incoming) -> Result<Option<Bytes>, Failure> {
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| Failure::Broken(format!("the body of the response: {error}")))?;
        // Trailers are left out.
        if let Ok(data) = frame.into_data()
            && !data.is_empty()
        {
            return Ok(Some(data));
        }
    }
    Ok(None)
}

/// `close(request) -> 0`: gives it up, if it is not at its end.
fn close(call: &mut Call<'_>) -> Result<i32, Stop> {
    fetch(call)?;
    let handle = call.args.u32(0) as usize;
    call.context.ports.fetches()?.own[handle] = None;
    Ok(0)
}
