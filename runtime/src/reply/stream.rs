//! A reply that goes out while it is written: what a function has written and its client has not fetched yet.
//!
//! ```text
//!   guest --fd_write--> Writer -> Pipe -> Stream -> connection
//! ```
//!
//! The writer belongs to the invocation, the stream to the connection that sends it, perhaps on another thread; both know the pipe. No more than
//! [`BYTES_MAX`] are under way in it, those included that a connection has taken and not sent: beyond that the guest waits. What is under way
//! counts as the invocation's, and as the server's until it was sent.

use std::future::poll_fn;
use std::mem;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use hyper::header::HeaderValue;
use sledge_sandbox::Share;

use super::{Fields, ReplyBytes, ReplyPiece};
use crate::outcome::Failure;

/// Bytes that are under way; a guest that has to wait goes on when half of them have been sent.
const BYTES_MAX: usize = 64 << 10;

/// Bytes that are kept of what is not on its way yet.
const HELD_BYTES_MAX: usize = 1 << 20;

/// Why what was written is not all of it, and no more comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfinished {
    /// It does not have the length that the function has said.
    Length,
    /// The function gave it up without having said that it is whole.
    GivenUp,
}

/// Why a stream takes no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It has the length that the function has said.
    Length,
    /// It would be larger than a reply may be.
    Limit,
}

/// The side of the guest.
#[derive(Debug)]
pub struct Writer {
    pipe: Arc<Pipe>,
    /// How much was written.
    written: u64,
    bytes_max: u64,
    /// How much the function has said that it will write.
    length: Option<u64>,
    /// Whether the reply has no body, as the answer to HEAD: what is written goes nowhere.
    is_bodiless: bool,
    /// Whether trailers were set before the head was: they come behind the length, too.
    trails: bool,
    /// Whether the head is on its way.
    has_begun: bool,
    /// Bytes that may be under way.
    room_bytes_max: usize,
}

/// The side of the client. Dropping it before its end says that the client wants no more.
#[derive(Debug)]
pub struct Stream {
    pipe: Arc<Pipe>,
    length: Option<u64>,
    taken: u64,
    is_bodiless: bool,
    /// Whether it is not at its end with the bytes of its length: trailers are waited for.
    trails: bool,
}

/// What both sides share.
#[derive(Debug)]
pub struct Pipe {
    state: Mutex<State>,
    /// [Memory](State::memory_bytes) of what is under way when the lock was last released. It is asked for after every host call, most of which change nothing: so that
    /// costs no lock.
    memory_bytes: AtomicUsize,
}

/// The state, locked.
struct Locked<'p> {
    state: MutexGuard<'p, State>,
    memory_bytes: &'p AtomicUsize,
}

impl Deref for Locked<'_> {
    type Target = State;

    fn deref(&self) -> &State {
        &self.state
    }
}

impl DerefMut for Locked<'_> {
    fn deref_mut(&mut self) -> &mut State {
        &mut self.state
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        // Still under the lock. Relaxed: the writer sees what it has done itself, and may see later what the reader has taken.
        self.memory_bytes.store(self.state.memory_bytes(), Relaxed);
    }
}

#[derive(Debug)]
struct State {
    /// Written and not taken.
    bytes: ReplyBytes,
    /// What was taken and is not sent, and the memory that it has.
    taken_bytes: usize,
    taken_memory_bytes: usize,
    /// Whether all of it was written, where that is said before the invocation ends.
    finish: Option<Result<(), Unfinished>>,
    /// How the invocation ended, when it has.
    end: Option<Result<(), Failure>>,
    /// What comes behind all that was written, when it has ended well.
    trailers: Option<Box<Fields>>,
    /// Their names, where they are known before the end.
    announced: Option<HeaderValue>,
    /// Whether there is a response of it: from then on its outcome is counted where it ends.
    is_accepted: bool,
    is_closed: bool,
    /// Waits for room.
    writer: Option<Waker>,
    /// Waits for the client to go.
    watcher: Option<Waker>,
    reader: Option<Waker>,
    /// What is reserved for it when the invocation is over.
    share: Option<Share>,
}

impl State {
    /// Only writing makes it more.
    fn under_way_bytes(&self) -> usize {
        self.bytes.len() + self.taken_bytes
    }

    /// Memory of what is under way.
    fn memory_bytes(&self) -> usize {
        self.bytes.memory_bytes() + self.taken_memory_bytes
    }
}

impl Pipe {
    fn new(state: State) -> Pipe {
        Pipe { memory_bytes: AtomicUsize::new(state.memory_bytes()), state: Mutex::new(state) }
    }

    fn state(&self) -> Locked<'_> {
        // Nothing that is done under the lock can panic half-way.
        Locked { state: self.state.lock().unwrap_or_else(PoisonError::into_inner), memory_bytes: &self.memory_bytes }
    }

    /// Whether the client wants no more.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.state().is_closed
    }

    /// The same, and when it happens the task is woken.
    pub fn poll_closed(&self, context: &Context<'_>) -> Poll<()> {
        let mut state = self.state();
        if state.is_closed {
            return Poll::Ready(());
        }
        wait(&mut state.watcher, context);
        Poll::Pending
    }

    /// The invocation is over. Whether its outcome is to be counted where that is said; otherwise [`Stream::accept`] tells it.
    pub fn end(&self, result: Result<(), Failure>, trailers: Option<Box<Fields>>) -> bool {
        let mut state = self.state();
        state.end = Some(result);
        if state.finish.is_none() {
            state.trailers = trailers;
        }
        let (reader, is_accepted) = (state.reader.take(), state.is_accepted);
        drop(state);
        wake(reader);
        is_accepted
    }

    /// All of it was written, and this comes behind it, whatever the invocation does besides; or no more of it comes. What was said first counts.
    pub fn finish(&self, result: Result<Option<Box<Fields>>, Unfinished>) {
        let mut state = self.state();
        if state.finish.is_some() {
            return;
        }
        match result {
            Ok(trailers) => (state.finish, state.trailers) = (Some(Ok(())), trailers),
            Err(unfinished) => state.finish = Some(Err(unfinished)),
        }
        let reader = state.reader.take();
        drop(state);
        wake(reader);
    }

    /// Says which trailers will come behind it.
    pub fn announce(&self, names: HeaderValue) {
        self.state().announced = Some(names);
    }

    /// The other side wants no more: what is there goes nowhere.
    pub fn close(&self) {
        let mut state = self.state();
        state.is_closed = true;
        let (bytes, writer, watcher) = (state.bytes.take(), state.writer.take(), state.watcher.take());
        drop(state);
        drop(bytes);
        wake(writer);
        wake(watcher);
    }

    /// Whether all of it was written, where that was said.
    #[must_use]
    pub fn is_finished(&self) -> Option<bool> {
        self.state().finish.map(|finish| finish.is_ok())
    }

    /// What was written, and what comes behind it: of a stream that has not begun and does not.
    #[must_use]
    pub fn take(&self) -> (ReplyBytes, Option<Box<Fields>>) {
        let mut state = self.state();
        (state.bytes.take(), state.trailers.take())
    }

    /// Ready when there is room to write to, or the client reads no more.
    fn poll_room(&self, context: &Context<'_>) -> Poll<()> {
        let mut state = self.state();
        if state.is_closed || state.under_way_bytes() <= BYTES_MAX / 2 {
            return Poll::Ready(());
        }
        wait(&mut state.writer, context);
        Poll::Pending
    }

    /// So much of what was taken has been sent, and this memory is free again.
    fn sent(&self, bytes: usize, memory_bytes: usize) {
        let mut state = self.state();
        state.taken_bytes -= bytes;
        state.taken_memory_bytes -= memory_bytes;
        let writer = if state.under_way_bytes() <= BYTES_MAX / 2 { state.writer.take() } else { None };
        drop(state);
        wake(writer);
    }
}

/// What is wrong with a reply that ends unfinished with so many bytes.
fn broken(why: Unfinished, length: Option<u64>, bytes: u64) -> Failure {
    match why {
        Unfinished::GivenUp if length.is_none_or(|length| bytes >= length) => Failure::ReplyUnfinished,
        Unfinished::GivenUp | Unfinished::Length => Failure::ReplyIncomplete,
    }
}

/// Keeps the waker of what waits; the last one to wait is woken.
fn wait(place: &mut Option<Waker>, context: &Context<'_>) {
    match place {
        Some(waker) => waker.clone_from(context.waker()),
        None => *place = Some(context.waker().clone()),
    }
}

/// Wakes a task, without a lock: it may look at once.
fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}

impl Writer {
    /// Of a reply of which `bytes` are written already.
    #[must_use]
    pub fn new(bytes: ReplyBytes, bytes_max: usize, length: Option<u64>, is_bodiless: bool, trails: bool) -> Writer {
        let written = bytes.len() as u64;
        let state = State {
            bytes,
            taken_bytes: 0,
            taken_memory_bytes: 0,
            finish: None,
            end: None,
            trailers: None,
            announced: None,
            is_accepted: false,
            is_closed: false,
            writer: None,
            watcher: None,
            reader: None,
            share: None,
        };
        let pipe = Arc::new(Pipe::new(state));
        Writer {
            pipe,
            written,
            bytes_max: bytes_max as u64,
            length,
            is_bodiless,
            trails,
            has_begun: false,
            room_bytes_max: BYTES_MAX,
        }
    }

    /// Of what is kept until it is known where it goes: [`answer`](Writer::answer).
    #[must_use]
    pub fn held(length: Option<u64>) -> Writer {
        let writer = Writer::new(ReplyBytes::default(), usize::MAX, length, false, true);
        Writer { room_bytes_max: HELD_BYTES_MAX, ..writer }
    }

    /// It has its buffers from where that reply has them, from now on.
    pub fn share_buffers(&self, with: &ReplyBytes) {
        self.pipe.state().bytes.share_buffers(with);
    }

    /// It goes out from now on, as a reply of at most so many bytes.
    pub const fn answer(&mut self, bytes_max: usize, is_bodiless: bool) {
        self.bytes_max = bytes_max as u64;
        self.is_bodiless = is_bodiless;
        self.room_bytes_max = BYTES_MAX;
    }

    /// All of it is kept until the invocation is over: there is room for the largest reply. For more there is room too, so that it is refused and not waited for.
    pub fn hold(&mut self) {
        self.room_bytes_max = usize::try_from(self.bytes_max).unwrap_or(usize::MAX).saturating_add(1);
    }

    /// Nothing is said of its length.
    pub const fn without_length(&mut self) {
        self.length = None;
    }

    /// What both sides share.
    #[must_use]
    pub const fn pipe(&self) -> &Arc<Pipe> {
        &self.pipe
    }

    /// How much was written.
    #[must_use]
    pub const fn written(&self) -> u64 {
        self.written
    }

    /// Whether the other side wants no more.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.pipe.is_closed()
    }

    /// The other side, the first time that it is asked for.
    pub fn begin(&mut self) -> Option<(Arc<Pipe>, Stream)> {
        if mem::replace(&mut self.has_begun, true) {
            return None;
        }
        let Writer { ref pipe, length, is_bodiless, trails, .. } = *self;
        let stream = Stream { pipe: Arc::clone(pipe), length, taken: 0, is_bodiless, trails };
        Some((Arc::clone(pipe), stream))
    }

    /// All that was written, of an invocation that is over, where that is the whole reply and the other side was not asked for; and how large it might be.
    pub fn take_whole(&mut self) -> Option<(ReplyBytes, usize)> {
        if self.has_begun || self.is_bodiless || self.shortfall().is_some() {
            return None;
        }
        let mut state = self.pipe.state();
        // Some clients get trailers only behind a body that comes in pieces.
        if state.is_closed || state.trailers.is_some() {
            return None;
        }
        // It was limited by a `usize`.
        Some((state.bytes.take(), self.bytes_max as usize))
    }

    /// Whether the other side was asked for.
    #[must_use]
    pub const fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Whether writing takes anything now.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.room_bytes() > 0
    }

    /// Bytes that can be written now.
    #[must_use]
    pub fn room_bytes(&self) -> usize {
        let state = self.pipe.state();
        let room = self.room_bytes_max.saturating_sub(state.under_way_bytes());
        if self.is_bodiless || state.is_closed { BYTES_MAX } else { room }
    }

    /// As [`room`](Writer::room), for one look.
    pub fn poll_room(&self, context: &Context<'_>) -> Poll<()> {
        if self.room_bytes() > 0 { Poll::Ready(()) } else { self.pipe.poll_room(context) }
    }

    /// Waits for room.
    pub fn room(&self) -> impl Future<Output = ()> + use<> {
        let pipe = Arc::clone(&self.pipe);
        poll_fn(move |context| pipe.poll_room(context))
    }

    /// Takes as much of `bytes` as there is room for.
    ///
    /// # Errors
    /// For more than the length that was said, or than any reply may have.
    pub fn write(&mut self, bytes: &[u8]) -> Result<usize, Refused> {
        // What the client does not read is written nowhere; a client that reads no more ends the invocation soon.
        Ok(self.put(bytes, false)?.unwrap_or_default())
    }

    /// The same; none where the client reads no more.
    ///
    /// # Errors
    /// As for [`write`](Writer::write).
    pub fn write_to_reader(&mut self, bytes: &[u8]) -> Result<Option<usize>, Refused> {
        self.put(bytes, true)
    }

    fn put(&mut self, bytes: &[u8], wants_reader: bool) -> Result<Option<usize>, Refused> {
        let mut state = self.pipe.state();
        if wants_reader && state.is_closed {
            return Ok(None);
        }
        let left = self.length.map_or(u64::MAX, |length| length - self.written);
        if left == 0 && !bytes.is_empty() {
            return Err(Refused::Length);
        }
        let bytes = &bytes[..bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX))];
        if bytes.len() as u64 > self.bytes_max.saturating_sub(self.written) {
            return Err(Refused::Limit);
        }
        let is_read = !self.is_bodiless && !state.is_closed;
        let room = if is_read { self.room_bytes_max.saturating_sub(state.under_way_bytes()) } else { bytes.len() };
        let count = bytes.len().min(room);
        if is_read && count > 0 {
            state.bytes.extend(&bytes[..count]);
            let reader = state.reader.take();
            drop(state);
            wake(reader);
        }
        self.written += count as u64;
        Ok(Some(count))
    }

    /// Memory of what is under way.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.pipe.memory_bytes.load(Relaxed)
    }

    /// Why it is not whole, if it is not: less was written than the function has said, or the function gave it up.
    #[must_use]
    pub fn shortfall(&self) -> Option<Failure> {
        let is_short = self.length.is_some_and(|length| self.written < length);
        match self.pipe.state().finish {
            _ if self.is_bodiless => None,
            Some(Err(why)) => Some(broken(why, self.length, self.written)),
            _ => is_short.then_some(Failure::ReplyIncomplete),
        }
    }

    /// What is reserved for what is under way, to be given back when that was sent.
    pub fn set_share(&self, share: Option<Share>) {
        self.pipe.state().share = share;
    }
}

impl Stream {
    /// There is a response of it from now on. How the invocation ended, if it has: then it is to be counted by the caller of this, otherwise where
    /// it ends.
    #[must_use]
    pub fn accept(&self) -> Option<Result<(), Failure>> {
        let mut state = self.pipe.state();
        state.is_accepted = true;
        state.end.clone()
    }

    /// Bytes that are still to come, where that is known. Trailers that are to be sent come behind chunks, unless the function has said the length.
    #[must_use]
    pub fn length(&self) -> Option<u64> {
        let state = self.pipe.state();
        let is_over = state.end == Some(Ok(())) || state.finish == Some(Ok(()));
        let has_trailers = self.trails && state.trailers.is_some();
        match self.length {
            None if is_over && !has_trailers && !self.is_bodiless => Some(state.bytes.len() as u64),
            length => length,
        }
    }

    /// Whether all of it was taken, whatever its function does besides.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        let is_finished = || {
            let state = self.pipe.state();
            state.finish == Some(Ok(())) && state.bytes.is_empty() && state.trailers.is_none()
        };
        self.is_bodiless || self.length == Some(self.taken) && !self.trails || is_finished()
    }

    /// The names of its trailers, where they are known already: for the header that announces them.
    #[must_use]
    pub fn announced(&self) -> Option<HeaderValue> {
        self.pipe.state().announced.take()
    }

    /// Trailers cannot be sent: it ends with its bytes.
    pub fn without_trailers(&mut self) {
        self.trails = false;
    }

    /// What comes behind its bytes, when all of them were taken.
    #[must_use]
    pub fn take_trailers(&self) -> Option<Box<Fields>> {
        if self.is_bodiless { None } else { self.pipe.state().trailers.take() }
    }

    /// As [`Stream::poll_next`], waiting for it.
    pub async fn next(&mut self) -> Option<Result<Bytes, Failure>> {
        poll_fn(|context| self.poll_next(context)).await
    }

    /// More of it, all there is; none at the end.
    pub fn poll_next(&mut self, context: &Context<'_>) -> Poll<Option<Result<Bytes, Failure>>> {
        if self.is_complete() {
            return Poll::Ready(None);
        }
        let mut state = self.pipe.state();
        if let Some(piece) = state.bytes.take_piece() {
            let bytes = piece.as_ref().len();
            state.taken_bytes += bytes;
            state.taken_memory_bytes += piece.memory_bytes();
            self.taken += bytes as u64;
            let chunk = Chunk { piece: Some(piece), pipe: Arc::clone(&self.pipe) };
            return Poll::Ready(Some(Ok(Bytes::from_owner(chunk))));
        }
        match state.finish {
            Some(Ok(())) => return Poll::Ready(None),
            Some(Err(why)) => return Poll::Ready(Some(Err(broken(why, self.length, self.taken)))),
            None => {}
        }
        match &state.end {
            Some(Ok(())) => Poll::Ready(None),
            Some(Err(failure)) => Poll::Ready(Some(Err(failure.clone()))),
            None => {
                wait(&mut state.reader, context);
                Poll::Pending
            }
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // The client has all that it gets; the function goes on.
        if !self.is_complete() {
            self.pipe.close();
        }
    }
}

/// A part of a reply that is being sent.
struct Chunk {
    /// None once it was sent.
    piece: Option<ReplyPiece>,
    pipe: Arc<Pipe>,
}

impl AsRef<[u8]> for Chunk {
    fn as_ref(&self) -> &[u8] {
        self.piece.as_ref().map_or(&[][..], AsRef::as_ref)
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        let (bytes, memory_bytes) = (self.as_ref().len(), self.piece.as_ref().map_or(0, ReplyPiece::memory_bytes));
        // Its buffer is free before the writer is told that there is room.
        drop(self.piece.take());
        self.pipe.sent(bytes, memory_bytes);
    }
}

#[cfg(test)]
mod tests;
