//! One call behind its descriptor: what goes to whom is called, and what has come of the reply.
//!
//! ```text
//!   fd_write -> Writer -> callee's body | request to a server        Answer | response -> Exchange -> fd_read, head, trailers
//! ```
//!
//! A function of this server and another server are the same to a guest: a head, a body, and trailers in which there is always a `grpc-status`. Nothing is taken from
//! its place by waiting for it: it is looked at with a waker, and again when that was woken ([`Exchange::look`]).

use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use bytes::{Buf as _, Bytes};
use hyper::StatusCode;
use hyper::body::{Body as _, Incoming};
use hyper::header::HeaderMap;

use super::remote::{self, Sent};
use crate::grpc::{Code, GRPC_STATUS, Status, is_grpc};
use crate::host::Stop;
use crate::host::wasi::Errno;
use crate::reply::{Answer, Content, Fields, Reply, Stream, Unfinished, Writer};

/// A call that was begun.
#[derive(Debug)]
pub(in crate::host) struct Exchange {
    /// The function that is called; none where it is another server.
    callee: Option<Arc<str>>,
    state: State,
    /// What was said before the body, when it is known.
    head: Option<Fields>,
    /// Whether that has just come, and its guest was not told yet.
    is_head_new: bool,
    /// What has come of the body and was not read.
    rest: Bytes,
    /// What came behind the body, when it is over.
    trailers: Option<Fields>,
    /// Where more of the request goes; none when it has ended.
    request: Option<Writer>,
    /// When it is given up, where no worker sees to that.
    deadline: Option<Instant>,
    /// Bytes of the request that are kept until there is an answer.
    request_bytes: usize,
    /// Bytes that are counted for it.
    pub(in crate::host) counted: usize,
}

/// Where the reply comes from.
#[derive(Debug)]
enum State {
    /// A function was called, and has not replied.
    Called(Answer),
    /// A function replies piece by piece.
    Streams(Stream),
    /// A server was asked, and has not answered.
    Sent(Sent),
    /// A server's answer comes.
    Comes(Incoming),
    /// There is no more to come.
    Over,
}

/// What can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::host) enum Readable {
    /// Nothing yet.
    Nothing,
    /// Nothing, but the head has come.
    Head,
    /// So many bytes; none at the end.
    Bytes(usize),
}

impl Exchange {
    /// A call of a function.
    pub(super) fn called(callee: Arc<str>, answer: Answer, request: Option<Writer>) -> Exchange {
        Exchange::new(Some(callee), State::Called(answer), request)
    }

    /// A request to a server, to be given up at that time. `request_bytes` are kept for it until it is answered.
    pub(super) fn sent(sent: Sent, request: Option<Writer>, deadline: Option<Instant>, request_bytes: usize) -> Exchange {
        let mut exchange = Exchange::new(None, State::Sent(sent), request);
        (exchange.deadline, exchange.request_bytes) = (deadline, request_bytes);
        exchange
    }

    /// One that could not be begun.
    pub(super) fn failed(status: &Status) -> Exchange {
        let mut exchange = Exchange::new(None, State::Over, None);
        exchange.fail(status);
        exchange
    }

    fn new(callee: Option<Arc<str>>, state: State, request: Option<Writer>) -> Exchange {
        Exchange {
            callee,
            state,
            head: None,
            is_head_new: false,
            rest: Bytes::new(),
            trailers: None,
            request,
            deadline: None,
            request_bytes: 0,
            counted: 0,
        }
    }

    /// Bytes that are kept for it.
    pub(in crate::host) fn bytes(&self) -> usize {
        let waits = matches!(self.state, State::Sent(_) | State::Called(_));
        let request = self.request.as_ref().map_or(0, Writer::memory_bytes);
        self.rest.len() + request + if waits { self.request_bytes } else { 0 }
    }

    /// Takes what has come, until there is something to read; else the task is woken when something comes.
    pub(in crate::host) fn look(&mut self, context: &mut Context<'_>) -> Readable {
        while self.rest.is_empty() && self.trailers.is_none() {
            if self.advance(context).is_pending() {
                if self.deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                    self.fail(&Status::new(Code::DeadlineExceeded, "the call has taken longer than it may"));
                    break;
                }
                return if self.is_head_new { Readable::Head } else { Readable::Nothing };
            }
        }
        Readable::Bytes(self.rest.len())
    }

    /// The same where its guest does not wait.
    pub(in crate::host) fn look_now(&mut self) -> Readable {
        self.look(&mut Context::from_waker(Waker::noop()))
    }

    /// Whether something can be read, or was found out about its head that its guest is to be told once. As [`look`](Exchange::look).
    pub(in crate::host) fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<usize> {
        match self.look(context) {
            Readable::Bytes(bytes) => Poll::Ready(bytes),
            Readable::Head => Poll::Ready(0),
            Readable::Nothing => Poll::Pending,
        }
    }

    /// Its guest knows that the head has come.
    pub(in crate::host) const fn told_head(&mut self) {
        self.is_head_new = false;
    }

    /// Whether writing would take something, or say that no more is wanted.
    pub(in crate::host) fn poll_write(&self, context: &Context<'_>) -> Poll<()> {
        match &self.request {
            Some(request) if !request.is_closed() => request.poll_room(context),
            _ => Poll::Ready(()),
        }
    }

    /// When to look again at the latest.
    pub(in crate::host) fn until(&self) -> Option<Instant> {
        let answer = if let State::Called(answer) = &self.state { answer.deadline() } else { None };
        self.deadline.into_iter().chain(answer).min()
    }

    /// Reads what there is, as far as there is room.
    pub(in crate::host) fn read(&mut self, into: &mut [u8]) -> usize {
        let count = into.len().min(self.rest.len());
        into[..count].copy_from_slice(&self.rest[..count]);
        self.rest.advance(count);
        if self.rest.is_empty() {
            // What it was a part of is kept no longer.
            self.rest = Bytes::new();
        }
        count
    }

    /// Bytes that can be read now.
    pub(in crate::host) const fn left(&self) -> usize {
        self.rest.len()
    }

    /// Writes as much as there is room for.
    ///
    /// # Errors
    /// `EPIPE` where the request has ended, or the callee wants no more of it; `EAGAIN` where there is no room.
    pub(in crate::host) fn write(&mut self, bytes: &[u8]) -> Result<usize, Stop> {
        let request = self.request.as_mut().filter(|request| !request.is_closed()).ok_or(Errno::PIPE)?;
        // There is no limit but the room.
        let count = request.write(bytes).map_err(|_| Errno::FBIG)?;
        if count == 0 && !bytes.is_empty() { Err(Errno::AGAIN.into()) } else { Ok(count) }
    }

    /// Ends the request.
    pub(in crate::host) fn end_request(&mut self) {
        if let Some(request) = self.request.take() {
            request.pipe().finish(Ok(None));
        }
    }

    /// Headers, body and trailers, where all of that is there and the body has at most so many bytes. Then nothing is left here.
    pub(super) fn take_whole(&mut self, bytes_max: usize) -> Option<(Fields, Bytes, Fields)> {
        self.look_now();
        if !matches!(self.state, State::Over) || self.rest.len() > bytes_max || self.trailers.is_none() {
            return None;
        }
        Some((self.head.take()?, mem::take(&mut self.rest), self.trailers.take()?))
    }

    /// Puts back what was [taken](Exchange::take_whole).
    pub(super) fn give_back(&mut self, head: Fields, body: Bytes, trailers: Fields) {
        (self.head, self.rest, self.trailers) = (Some(head), body, Some(trailers));
    }

    /// What was said before the body; none as long as that is not known.
    pub(super) fn head(&mut self) -> Option<&Fields> {
        self.look_now();
        self.is_head_new = false;
        self.head.as_ref()
    }

    /// What came behind the body; none as long as there is something to read.
    pub(super) fn trailers(&mut self) -> Option<&Fields> {
        self.look_now();
        if self.rest.is_empty() { self.trailers.as_ref() } else { None }
    }

    /// One step: to the head, the next piece of the body, or the end.
    fn advance(&mut self, context: &mut Context<'_>) -> Poll<()> {
        match &mut self.state {
            State::Called(answer) => match answer.poll(context) {
                Poll::Ready(Ok(reply)) => self.replied(reply),
                Poll::Ready(Err(failure)) => self.fail(&Status::of(&failure, self.callee.as_deref())),
                Poll::Pending => return Poll::Pending,
            },
            State::Streams(stream) => match stream.poll_next(context) {
                Poll::Ready(Some(Ok(bytes))) => self.rest = bytes,
                Poll::Ready(Some(Err(failure))) => self.fail(&Status::of(&failure, self.callee.as_deref())),
                Poll::Ready(None) => {
                    let trailers = stream.take_trailers().map(|trailers| *trailers);
                    self.end(trailers);
                }
                Poll::Pending => return Poll::Pending,
            },
            State::Sent(sent) => match sent.poll(context) {
                Poll::Ready(Ok(response)) => {
                    let (head, body) = response.into_parts();
                    self.answered(head.status, head.headers, body);
                }
                Poll::Ready(Err(failure)) => self.fail(&remote::status(&failure)),
                Poll::Pending => return Poll::Pending,
            },
            State::Comes(body) => match Pin::new(body).poll_frame(context) {
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) => self.rest = data,
                    Err(frame) => self.end(frame.into_trailers().ok().map(Fields::from)),
                },
                Poll::Ready(Some(Err(error))) => self.fail(&remote::broken(&error)),
                Poll::Ready(None) => self.end(None),
                Poll::Pending => return Poll::Pending,
            },
            State::Over => self.end(None),
        }
        Poll::Ready(())
    }

    /// A function has replied, or begun to.
    fn replied(&mut self, reply: Reply) {
        let Reply { result, head, trailers, .. } = reply;
        let content = match result {
            Ok(content) => content,
            Err(failure) => return self.fail(&Status::of(&failure, self.callee.as_deref())),
        };
        let (status, headers) = head.map_or_else(Default::default, |head| (head.status, head.headers));
        if status != StatusCode::OK && headers.get(&GRPC_STATUS).is_none() {
            return self.fail(&Status::of_http(status));
        }
        match content {
            Content::Whole(bytes) => self.replied_whole(headers, bytes, trailers),
            Content::Pieces(pieces) => self.replied_whole(headers, pieces.join(), trailers),
            Content::Stream(stream) => self.begin(headers, State::Streams(stream)),
        }
    }

    /// All of a reply is there.
    fn replied_whole(&mut self, headers: Fields, bytes: Bytes, trailers: Option<Box<Fields>>) {
        self.rest = bytes;
        let trailers = trailers.map(|trailers| *trailers);
        if self.rest.is_empty() && trailers.is_none() {
            return self.end(Some(headers));
        }
        self.begin(headers, State::Over);
        // Behind what is to be read first.
        self.end(trailers);
    }

    /// A server has answered.
    fn answered(&mut self, status: StatusCode, headers: HeaderMap, body: Incoming) {
        if headers.contains_key(GRPC_STATUS) {
            // Trailers are all that there is.
            return self.end(Some(headers.into()));
        }
        if status != StatusCode::OK {
            return self.fail(&Status::of_http(status));
        }
        if !is_grpc(&headers) {
            return self.fail(&Status::new(Code::Unknown, "what the server answers is not application/grpc"));
        }
        self.begin(headers.into(), State::Comes(body));
    }

    /// The head has come.
    fn begin(&mut self, headers: Fields, state: State) {
        self.head = Some(headers);
        self.is_head_new = true;
        self.state = state;
    }

    /// The reply is over, and has those trailers.
    fn end(&mut self, trailers: Option<Fields>) {
        let trailers = trailers.unwrap_or_default();
        if trailers.get(&GRPC_STATUS).is_some() {
            return self.close(trailers);
        }
        let mut trailers = trailers.into_map();
        Status::new(Code::Internal, "the reply has ended without a grpc-status").put(&mut trailers);
        self.close(trailers.into());
    }

    /// There is no reply, or no more of it.
    fn fail(&mut self, status: &Status) {
        let mut trailers = HeaderMap::new();
        status.put(&mut trailers);
        self.close(trailers.into());
    }

    fn close(&mut self, trailers: Fields) {
        self.head.get_or_insert_default();
        self.trailers = Some(trailers);
        self.state = State::Over;
        self.give_up_request();
    }

    /// The caller writes no more of the request, which had not ended.
    fn give_up_request(&mut self) {
        if let Some(request) = self.request.take() {
            request.pipe().finish(Err(Unfinished::GivenUp));
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.give_up_request();
    }
}
