//! `incoming-body` and `future-trailers`: what a request or the response of another server has behind its head.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::time::{Duration, Instant};

use awsm_abi::types::ValType::I32;
use bytes::Bytes;
use hyper::HeaderMap;
use hyper::body::{Body as _, Frame, Incoming};

use super::TYPES;
use super::error::ErrorCode;
use super::fields::{HttpFields, memory_bytes, visible};
use super::outgoing::{Begun, Outgoing};
use super::sending::Sending;
use crate::host::Effect::{Head, Safe, Stream};
use crate::host::canonical::{Look, Own, Resource, Subject, Typed, canonical, number};
use crate::host::fetch::Share;
use crate::host::wasi2::error::Fault;
use crate::host::wasi2::streams::{InputStream, subscribe};
use crate::host::{Call, Flat, HeadField, HostFunction, Input, Stop};

/// The body of a response, as it comes; or of a message that the component itself writes.
#[derive(Debug)]
pub(in crate::host) struct Arriving(Mutex<State>);

/// Where it comes from.
#[derive(Debug)]
enum Coming {
    /// From another server.
    Server(Incoming),
    /// From the component itself, which has written it.
    Component(Sending),
}

impl Coming {
    fn poll_frame(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, ErrorCode>>> {
        let failed = |error: hyper::Error| match error.is_timeout() {
            true => ErrorCode::ConnectionReadTimeout,
            false => ErrorCode::ConnectionTerminated,
        };
        match self {
            Coming::Server(incoming) => Pin::new(incoming).poll_frame(context).map_err(failed),
            Coming::Component(sending) => Pin::new(sending).poll_frame(context).map_err(|_| ErrorCode::ConnectionTerminated),
        }
    }
}

#[derive(Debug)]
struct State {
    /// None at the end.
    coming: Option<Coming>,
    /// What has come and was not read.
    piece: Bytes,
    /// What came behind it.
    trailers: HeaderMap,
    /// Why there is no more.
    failed: Option<ErrorCode>,
    /// Whether a read has ended with that: from then on it is closed.
    is_told: bool,
    /// How long each piece may take; none for as long as it likes.
    piece_time: Option<Duration>,
    /// Until when the next one may, where it is waited for.
    until: Option<Instant>,
    /// That the request is under way.
    share: Option<Arc<Share>>,
}

impl State {
    /// Ready when there is something to read, or the end.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        while self.piece.is_empty()
            && let Some(coming) = &mut self.coming
        {
            let frame = match coming.poll_frame(context) {
                Poll::Ready(frame) => frame,
                Poll::Pending => {
                    let now = Instant::now();
                    let Some(piece_time) = self.piece_time else { return Poll::Pending };
                    if *self.until.get_or_insert(now + piece_time) > now {
                        return Poll::Pending;
                    }
                    self.end(Some(ErrorCode::ConnectionReadTimeout));
                    return Poll::Ready(());
                }
            };
            self.until = None;
            match frame.map(|frame| frame.map(Frame::into_data)) {
                Some(Ok(Ok(data))) => self.piece = data,
                Some(Ok(Err(frame))) => self.trailers = frame.into_trailers().map(|map| visible(&map)).unwrap_or_default(),
                Some(Err(code)) => self.end(Some(code)),
                None => self.end(None),
            }
        }
        Poll::Ready(())
    }

    /// It goes no further.
    fn end(&mut self, failed: Option<ErrorCode>) {
        (self.coming, self.share, self.failed) = (None, None, failed);
    }
}

impl Arriving {
    /// Of a response. `share` says that its request is under way.
    pub(in crate::host) fn new(incoming: Option<Incoming>, piece_time: Duration, share: Option<Arc<Share>>) -> Arriving {
        let share = share.filter(|_| incoming.is_some());
        Arriving::of(incoming.map(Coming::Server), Some(piece_time), share)
    }

    /// What the component itself writes.
    pub(in crate::host) fn of_component(outgoing: &Outgoing) -> Option<Arriving> {
        let sending = match outgoing.begin()? {
            Begun::Whole(bytes, trailers) => Sending::whole(bytes.into_bytes(None), trailers),
            Begun::Writer(mut writer) => {
                writer.answer(usize::MAX, false);
                let stream = writer.begin().map(|(_, stream)| stream);
                outgoing.write_to(writer);
                Sending::of(stream?, None)
            }
        };
        Some(Arriving::of(Some(Coming::Component(sending)), None, None))
    }

    fn of(coming: Option<Coming>, piece_time: Option<Duration>, share: Option<Arc<Share>>) -> Arriving {
        let state = State {
            coming,
            piece: Bytes::new(),
            trailers: HeaderMap::new(),
            failed: None,
            is_told: false,
            piece_time,
            until: None,
            share,
        };
        Arriving(Mutex::new(state))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing that is done under the lock can panic half-way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it can be read, or is at its end. Otherwise `look` knows when to look again.
    pub(in crate::host) fn is_ready(&self, look: &mut Look<'_>) -> bool {
        let mut state = self.state();
        let is_ready = state.poll(&mut look.context()).is_ready();
        if let Some(until) = state.until {
            look.wake_at(until);
        }
        is_ready
    }

    /// At most so many bytes of what has come; none where it has to be waited for.
    pub(in crate::host) fn read(&self, bytes_max: usize) -> Option<Result<Bytes, Fault>> {
        let mut state = self.state();
        if state.poll(&mut Context::from_waker(Waker::noop())).is_pending() {
            return None;
        }
        let length = state.piece.len().min(bytes_max);
        if !state.piece.is_empty() {
            return Some(Ok(state.piece.split_to(length)));
        }
        let was_told = std::mem::replace(&mut state.is_told, true);
        let failed = state.failed.filter(|_| !was_told);
        Some(Err(failed.map_or(Fault::Closed, Fault::Http)))
    }

    /// Ready with what came behind it; what of it is left is passed over.
    fn poll_trailers(&self, context: &mut Context<'_>) -> Poll<Result<HeaderMap, ErrorCode>> {
        let mut state = self.state();
        loop {
            ready!(state.poll(context));
            if !state.piece.is_empty() {
                state.piece = Bytes::new();
                continue;
            }
            return Poll::Ready(state.failed.map_or_else(|| Ok(std::mem::take(&mut state.trailers)), Err));
        }
    }

    /// Bytes that it keeps.
    pub(in crate::host) fn memory_bytes(&self) -> usize {
        let state = self.state();
        let to_come = if let Some(Coming::Component(sending)) = &state.coming { sending.memory_bytes() } else { 0 };
        state.piece.len() + memory_bytes(&state.trailers) + to_come
    }
}

/// Whose body it is.
#[derive(Clone, Debug)]
pub(in crate::host) enum Of {
    /// The request's that is served.
    Request,
    /// A response's.
    Response(Arc<Arriving>),
}

/// An `incoming-body`.
#[derive(Debug)]
pub(super) struct IncomingBody {
    of: Of,
    /// Whether its stream was given away.
    is_read: bool,
}

impl IncomingBody {
    /// That of the request that is served.
    pub(super) const fn of_request() -> IncomingBody {
        IncomingBody { of: Of::Request, is_read: false }
    }

    /// That of a response.
    pub(super) const fn of_response(arriving: Arc<Arriving>) -> IncomingBody {
        IncomingBody { of: Of::Response(arriving), is_read: false }
    }
}

impl Resource for IncomingBody {}

impl Typed for IncomingBody {
    const NUMBER: u32 = number(TYPES, "incoming-body");
}

/// A `future-trailers`.
#[derive(Debug)]
pub(in crate::host) struct FutureTrailers {
    of: Of,
    /// What they are, when they are there.
    came: Option<Result<HeaderMap, ErrorCode>>,
    /// Whether they were given away.
    is_taken: bool,
}

impl FutureTrailers {
    /// What comes behind that body.
    pub(in crate::host) const fn new(of: Of) -> FutureTrailers {
        FutureTrailers { of, came: None, is_taken: false }
    }

    /// Whether they are those of the request that is served.
    pub(in crate::host) const fn is_of_request(&self) -> bool {
        matches!(self.of, Of::Request)
    }

    /// What came, once; none before.
    pub(in crate::host) const fn take(&mut self) -> Option<Result<HeaderMap, ErrorCode>> {
        self.is_taken = true;
        self.came.take()
    }
}

impl Resource for FutureTrailers {
    fn memory_bytes(&self) -> usize {
        if let Some(Ok(map)) = &self.came { memory_bytes(map) } else { 0 }
    }

    fn is_ready(&mut self, look: &mut Look<'_>) -> Result<bool, Stop> {
        if self.came.is_some() || self.is_taken {
            return Ok(true);
        }
        self.came = match &self.of {
            Of::Request => trailers(look)?,
            Of::Response(arriving) => match arriving.poll_trailers(&mut look.context()) {
                Poll::Ready(came) => Some(came),
                Poll::Pending => {
                    // Until when the next piece may come.
                    arriving.is_ready(look);
                    None
                }
            },
        };
        Ok(self.came.is_some())
    }
}

impl Typed for FutureTrailers {
    const NUMBER: u32 = number(TYPES, "future-trailers");
}

/// What came behind the body of the request, when it has; what of it is left is passed over.
fn trailers(look: &mut Look<'_>) -> Result<Option<Result<HeaderMap, ErrorCode>>, Stop> {
    loop {
        if !look.at_input()? {
            return Ok(None);
        }
        let Input::Body(body) = &mut look.streams.input else { return Ok(Some(Ok(HeaderMap::new()))) };
        if body.left() > 0 {
            body.take_piece(usize::MAX)?;
            continue;
        }
        let came = body.trailers().map(|map| map.map(visible).unwrap_or_default());
        return Ok(Some(came.ok_or(ErrorCode::ConnectionTerminated)));
    }
}

/// The interface.
pub(in crate::host) const FUNCTIONS: &[HostFunction] = &[
    canonical(TYPES, "[method]incoming-body.stream", &[I32, I32, I32], &[], Stream, stream),
    canonical(TYPES, "[static]incoming-body.finish", &[I32, I32], &[I32], Stream, finish),
    canonical(TYPES, "[method]future-trailers.subscribe", &[I32, I32], &[I32], Safe, subscribe::<FutureTrailers>),
    canonical(TYPES, "[method]future-trailers.get", &[I32, I32, I32], &[I32], Head, get),
];

/// `stream(self) -> result<input-stream>`: once.
fn stream(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let representation = call.representation::<IncomingBody>(1)?;
    let body = call.context.ports.resource::<IncomingBody>(representation)?;
    let is_first = !std::mem::replace(&mut body.is_read, true);
    let stream = match &body.of {
        Of::Request => InputStream::Request,
        Of::Response(arriving) => InputStream::Response(Arc::clone(arriving)),
    };
    let result = if is_first { Ok(call.give_child(stream, Some(representation))?) } else { Err(()) };
    call.lower(2, result)
}

/// `finish(this: incoming-body) -> future-trailers`
fn finish(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let IncomingBody { of, .. } = *call.owned::<IncomingBody>(1)?;
    call.give(FutureTrailers::new(of)).map(|own| Flat::from(own.0))
}

/// `get(self) -> option<result<result<option<trailers>, error-code>>>`: none before they are there; once.
fn get(call: &mut Call<'_>) -> Result<Flat, Stop> {
    type Given = Option<Result<Result<Option<Own>, ErrorCode>, ()>>;
    let representation = call.representation::<FutureTrailers>(1)?;
    if call.ready(&[Subject::Of(representation)])?.is_empty() {
        return call.lower::<Given>(2, None);
    }
    if let Some(trace) = call.context.trace_effects() {
        trace.head.insert(HeadField::Headers);
    }
    let trailers = call.borrowed::<FutureTrailers>(1)?;
    let came = trailers.take();
    call.context.ports.resources_mut().count(representation)?;
    let given: Given = Some(match came {
        None => Err(()),
        Some(Ok(map)) if map.is_empty() => Ok(Ok(None)),
        Some(Ok(map)) => Ok(Ok(Some(call.give(HttpFields::from(map))?))),
        Some(Err(code)) => Ok(Err(code)),
    });
    call.lower(2, given)
}
