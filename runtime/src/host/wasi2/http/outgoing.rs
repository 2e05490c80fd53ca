//! `outgoing-body`: what a component writes behind the head of a response or request.
//!
//! The body, its stream and its message know the same [`Outgoing`]. What is written before the message is on its way is kept; from then on it goes out while it is
//! written, with the back-pressure of a [`Writer`].

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use awsm_abi::types::ValType::I32;
use hyper::HeaderMap;
use hyper::header::{CONTENT_LENGTH, HeaderValue};

use super::TYPES;
use super::error::ErrorCode;
use super::fields::HttpFields;
use crate::host::Effect::Stream;
use crate::host::canonical::{Look, Resource, Typed, canonical, number};
use crate::host::http::may_trail;
use crate::host::wasi::Errno;
use crate::host::wasi2::streams::OutputStream;
use crate::host::{Call, Flat, HostFunction, Output, Stop, Streams};
use crate::reply::{Fields, Pipe, ReplyBytes, Unfinished, Writer};

/// Bytes that may be written at once where the reply is kept, or is a file.
const PERMIT_BYTES: usize = 64 << 10;

/// A body that is written.
#[derive(Debug)]
pub(in crate::host) struct Outgoing(Mutex<State>);

#[derive(Debug)]
struct State {
    place: Place,
    /// The representation of its message, which counts what is kept.
    message: u32,
    pipe: Arc<Pipe>,
    is_request: bool,
    /// What `content-length` says.
    length: Option<u64>,
    written: u64,
    /// How much it would have been with a write that was refused.
    refused: Option<u64>,
}

/// Where it is written to.
#[derive(Debug)]
enum Place {
    /// Its own writer, whose other side may have begun.
    Writer(Writer),
    /// The reply.
    Reply,
}

/// What a message has at its begin.
#[derive(Debug)]
pub(in crate::host) enum Begun {
    /// All of it, and what comes behind it.
    Whole(ReplyBytes, Option<Box<Fields>>),
    /// What is written from now on.
    Writer(Writer),
}

/// What `content-length` says in these headers.
///
/// # Errors
/// When it says nothing that is a length.
pub(in crate::host) fn content_length(headers: &HeaderMap) -> Result<Option<u64>, ()> {
    let number = |text: &str| if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse::<u64>().ok() } else { None };
    let mut lengths = headers.get_all(CONTENT_LENGTH).iter().map(|length| number(length.to_str().ok()?));
    match (lengths.next(), lengths.next()) {
        (None, _) => Ok(None),
        (Some(Some(length)), None) => Ok(Some(length)),
        _ => Err(()),
    }
}

impl State {
    fn size_error(&self, bytes: u64) -> ErrorCode {
        if self.is_request { ErrorCode::HttpRequestBodySize(bytes) } else { ErrorCode::HttpResponseBodySize(bytes) }
    }

    /// The writer; none where the reply is none that streams.
    const fn writer<'s>(&'s mut self, streams: &'s mut Streams) -> Option<&'s mut Writer> {
        match (&mut self.place, &mut streams.output) {
            (Place::Writer(writer), _) | (Place::Reply, Output::Stream(writer)) => Some(writer),
            (Place::Reply, _) => None,
        }
    }
}

impl Outgoing {
    /// The body of a message with that `content-length`.
    pub(in crate::host) fn new(is_request: bool, length: Option<u64>, message: u32) -> Arc<Outgoing> {
        let writer = Writer::held(length);
        let pipe = Arc::clone(writer.pipe());
        let state = State { place: Place::Writer(writer), message, pipe, is_request, length, written: 0, refused: None };
        Arc::new(Outgoing(Mutex::new(state)))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing that is done under the lock can panic half-way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether what is written of it goes nowhere.
    pub(in crate::host) fn is_closed(&self) -> bool {
        self.state().pipe.is_closed()
    }

    /// Bytes that can be written now.
    pub(in crate::host) fn room_bytes(&self, streams: &mut Streams) -> usize {
        self.state().writer(streams).map_or(PERMIT_BYTES, |writer| writer.room_bytes())
    }

    /// Whether there is room, or the reader is gone.
    pub(in crate::host) fn is_ready(&self, look: &mut Look<'_>) -> bool {
        let context = look.context();
        self.state().writer(look.streams).is_none_or(|writer| writer.poll_room(&context) == Poll::Ready(()))
    }

    /// Whether so many bytes more are not too many for what was said. Where they are, the message ends at once as one that is broken off, and takes no more.
    ///
    /// # Errors
    /// When they are, or some before them were.
    pub(in crate::host) fn check(&self, bytes: usize) -> Result<(), ErrorCode> {
        let mut state = self.state();
        let after = state.written.saturating_add(bytes as u64);
        if state.refused.is_none() && state.length.is_none_or(|length| after <= length) {
            return Ok(());
        }
        let refused = *state.refused.get_or_insert(after);
        state.pipe.finish(Err(Unfinished::Length));
        Err(state.size_error(refused))
    }

    /// Takes as much of `bytes` as there is room for. Beside how much that was, the representation of what counts what is kept; none where the reply does.
    ///
    /// # Errors
    /// `EPIPE` when the reader is gone, or [`Stop::ReplyTooLarge`].
    pub(in crate::host) fn write(&self, streams: &mut Streams, bytes: &[u8]) -> Result<(usize, Option<u32>), Stop> {
        let mut state = self.state();
        let count = match state.writer(streams) {
            Some(writer) => writer.write_to_reader(bytes).map_err(|_| Stop::ReplyTooLarge)?.ok_or(Stop::Errno(Errno::PIPE))?,
            None => match &mut streams.output {
                // The kernel reads from our buffer, never from the guest's memory.
                output @ Output::File(_) => {
                    let copy = bytes[..bytes.len().min(PERMIT_BYTES)].to_vec();
                    output.write(&copy)?
                }
                output => output.write(bytes)?,
            },
        };
        state.written += count as u64;
        Ok((count, matches!(state.place, Place::Writer(_)).then_some(state.message)))
    }

    /// Begins the message: of a body that is complete it is the whole, otherwise the writer.
    pub(in crate::host) fn begin(&self) -> Option<Begun> {
        let mut state = self.state();
        let Place::Writer(writer) = std::mem::replace(&mut state.place, Place::Reply) else { return None };
        Some(match state.pipe.is_finished() {
            Some(true) => {
                let (bytes, trailers) = state.pipe.take();
                Begun::Whole(bytes, trailers)
            }
            _ => Begun::Writer(writer),
        })
    }

    /// Begins the message as one that streams, even if its body is complete.
    pub(super) fn begin_stream(&self) -> Option<Begun> {
        match std::mem::replace(&mut self.state().place, Place::Reply) {
            Place::Writer(writer) => Some(Begun::Writer(writer)),
            Place::Reply => None,
        }
    }

    /// Goes on writing there.
    pub(super) fn write_to(&self, writer: Writer) {
        self.state().place = Place::Writer(writer);
    }

    /// Ends it: it is complete, with what comes behind it, or what is there of it is of no use.
    ///
    /// # Errors
    /// When so much is not what was said.
    pub(in crate::host) fn end(&self, end: Result<Option<Box<Fields>>, Unfinished>) -> Result<(), ErrorCode> {
        let state = self.state();
        let is_short = state.length.is_some_and(|length| state.written < length);
        let wrong = state.refused.or(is_short.then_some(state.written)).filter(|_| end.is_ok());
        state.pipe.finish(if wrong.is_some() { Err(Unfinished::Length) } else { end });
        wrong.map_or(Ok(()), |bytes| Err(state.size_error(bytes)))
    }

    /// Says which trailers will come behind it.
    pub(in crate::host) fn announce(&self, names: HeaderValue) {
        self.state().pipe.announce(names);
    }

    /// The message goes nowhere: nothing is kept of it.
    pub(in crate::host) fn abandon(&self) {
        self.state().pipe.close();
    }

    /// What has this representation counts what is kept from now on.
    pub(in crate::host) fn belong_to(&self, message: u32) {
        self.state().message = message;
    }

    /// Bytes that it keeps, unless it is the reply, which counts itself.
    pub(in crate::host) fn memory_bytes(&self) -> usize {
        if let Place::Writer(writer) = &self.state().place { writer.memory_bytes() } else { 0 }
    }
}

impl Drop for Outgoing {
    fn drop(&mut self) {
        let state = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        // Otherwise the other server would wait for more of it.
        if state.is_request && state.pipe.is_finished().is_none() {
            state.pipe.finish(Err(Unfinished::GivenUp));
        }
    }
}

/// An `outgoing-body`.
#[derive(Debug)]
pub(super) struct OutgoingBody {
    outgoing: Arc<Outgoing>,
    /// Whether its stream was given away.
    is_written: bool,
}

impl OutgoingBody {
    /// The body of a message with these headers, which the message knows from now on; none where it has one, or the headers say no length that is one.
    pub(super) fn of(
        body: &mut Option<Arc<Outgoing>>,
        headers: &HeaderMap,
        is_request: bool,
        message: u32,
    ) -> Option<OutgoingBody> {
        let length = content_length(headers).ok().filter(|_| body.is_none())?;
        let outgoing = Outgoing::new(is_request, length, message);
        *body = Some(Arc::clone(&outgoing));
        Some(OutgoingBody { outgoing, is_written: false })
    }
}

impl Resource for OutgoingBody {
    fn dropped(&mut self) {
        // Without having been finished: there is nothing to answer.
        let _ = self.outgoing.end(Err(Unfinished::GivenUp));
    }
}

impl Typed for OutgoingBody {
    const NUMBER: u32 = number(TYPES, "outgoing-body");
}

/// The interface.
pub(in crate::host) const FUNCTIONS: &[HostFunction] = &[
    canonical(TYPES, "[method]outgoing-body.write", &[I32, I32, I32], &[], Stream, write),
    canonical(TYPES, "[static]outgoing-body.finish", &[I32, I32, I32, I32, I32], &[I32], Stream, finish),
];

/// `write(self) -> result<output-stream>`: once.
fn write(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let representation = call.representation::<OutgoingBody>(1)?;
    let body = call.context.ports.resource::<OutgoingBody>(representation)?;
    let is_first = !std::mem::replace(&mut body.is_written, true);
    let stream = OutputStream::Body(Arc::clone(&body.outgoing));
    let result = if is_first { Ok(call.give_child(stream, Some(representation))?) } else { Err(()) };
    call.lower(2, result)
}

/// `finish(this: outgoing-body, trailers: option<trailers>) -> result<_, error-code>`
fn finish(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let OutgoingBody { outgoing, .. } = *call.owned::<OutgoingBody>(1)?;
    let trailers = if call.is_some(2)? { Some(call.owned::<HttpFields>(3)?.into_map()) } else { None };
    let result = outgoing.end(Ok(trailers.as_deref().map(trailing)));
    call.lower(4, result)
}

/// Trailers: what may not come behind a body is left out.
pub(in crate::host) fn trailing(map: &HeaderMap) -> Box<Fields> {
    let fields = map.iter().filter(|(name, _)| may_trail(name));
    Box::new(fields.map(|(name, value)| (name.clone(), value.clone())).collect())
}
