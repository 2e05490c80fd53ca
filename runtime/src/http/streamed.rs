//! The body of a response whose function still writes it.
//!
//! Where the function fails, its client has the head already and perhaps some of the body: all that can be said is that the rest does not come.
//! HTTP/1.1 closes the connection in the middle of the body, HTTP/2 resets the stream. A client that speaks gRPC gets a status in trailers.

use std::fmt;
use std::io;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::StatusCode;
use hyper::body::{Body, Frame, SizeHint};
use hyper::header::HeaderMap;

use super::called::Called;
use super::canary::Counting;
use super::compression::{Packed, Packer};
use super::connections::UnderWay;
use super::folder::FileBody;
use super::response::Whole;
use super::span::ServerSpan;
use crate::grpc::Status;
use crate::invoke::function::Function;
use crate::invoke::loaded::Labels;
use crate::outcome::Failure;
use crate::reply::Stream;

/// The rest of a reply does not come.
#[derive(Debug, thiserror::Error)]
#[error("the function failed after its reply had begun: {0}")]
pub struct Broken(Failure);

/// Makes of the body of a reply of gRPC what the client gets.
pub(super) trait Outward: fmt::Debug {
    /// Some of it. What breaks here is the last of it.
    fn data(&mut self, bytes: Bytes) -> ControlFlow<Bytes, Bytes>;

    /// What stands at its end, in place of the trailers.
    fn end(&mut self, trailers: HeaderMap) -> Bytes;
}

/// Where a body comes from.
#[derive(Debug)]
enum Source {
    /// Its function still writes it.
    Stream(Stream),
    /// It is there, and takes time to be compressed.
    Whole(Whole),
    /// It is in a file.
    File(FileBody),
}

impl Source {
    fn poll_next(&mut self, task: &mut Context<'_>) -> Poll<Option<Result<Bytes, Failure>>> {
        match self {
            Source::Stream(stream) => stream.poll_next(task),
            Source::Whole(whole) => Poll::Ready(whole.next().map(Ok)),
            Source::File(file) => file.poll_next(task),
        }
    }

    fn is_complete(&self) -> bool {
        match self {
            Source::Stream(stream) => stream.is_complete(),
            Source::Whole(whole) => whole.is_empty(),
            Source::File(file) => file.left() == 0,
        }
    }

    fn take_trailers(&mut self) -> Option<HeaderMap> {
        match self {
            Source::Stream(stream) => stream.take_trailers().map(|trailers| trailers.into_map()),
            Source::Whole(_) | Source::File(_) => None,
        }
    }

    fn length(&self) -> Option<u64> {
        match self {
            Source::Stream(stream) => stream.length(),
            Source::Whole(whole) => Some(whole.len() as u64),
            Source::File(file) => Some(file.left()),
        }
    }
}

/// A body that comes in pieces.
#[derive(Debug)]
pub struct Streamed {
    source: Source,
    /// Whether there is something that a connection may not have written to its socket yet.
    is_unsent: bool,
    is_over: bool,
    /// Whether it has to come in chunks, for its trailers or because another length goes out.
    is_chunked: bool,
    /// The connection is not idle while it is sent.
    _under_way: Option<UnderWay>,
    /// Whose reply it is, where the client speaks gRPC and so can be told how it failed.
    grpc: Option<Arc<Labels>>,
    /// What makes another protocol of it.
    outward: Option<Box<dyn Outward>>,
    /// What compresses it.
    packer: Option<Box<Packer>>,
    /// Of its request, with the status of the reply.
    span: Option<(ServerSpan, StatusCode)>,
    /// Of a request by gRPC.
    called: Option<Box<Called>>,
    /// Of a request of a gradual deployment.
    counting: Option<Counting>,
}

impl Streamed {
    /// What a function writes; in chunks, or in the length that it has said.
    #[must_use]
    pub const fn new(stream: Stream, is_chunked: bool) -> Streamed {
        Streamed::of(Source::Stream(stream), is_chunked)
    }

    /// What is there, and goes out compressed.
    pub(super) fn packed(whole: Whole, packer: Packer) -> Streamed {
        let mut streamed = Streamed::of(Source::Whole(whole), true);
        streamed.pack(packer);
        streamed
    }

    /// What is in a file.
    pub(super) const fn file(file: FileBody) -> Streamed {
        Streamed::of(Source::File(file), false)
    }

    const fn of(source: Source, is_chunked: bool) -> Streamed {
        // At the very least the head.
        Streamed {
            source,
            is_unsent: true,
            is_over: false,
            is_chunked,
            _under_way: None,
            grpc: None,
            outward: None,
            packer: None,
            span: None,
            called: None,
            counting: None,
        }
    }

    /// Keeps the request under way until this is sent.
    pub(super) fn keep(&mut self, under_way: UnderWay) {
        self._under_way = Some(under_way);
    }

    /// Where the function fails from now on, trailers say so.
    pub(super) fn speak_grpc(&mut self, function: &Function) {
        self.grpc = Some(Arc::clone(&function.labels));
    }

    /// Has another protocol made of it, in which trailers are a part of the body.
    pub(super) fn translate(&mut self, outward: Box<dyn Outward>) {
        self.outward = Some(outward);
    }

    /// The length that its function has said, if it has.
    pub(super) fn length(&self) -> Option<u64> {
        self.source.length()
    }

    /// Says nothing of its length.
    pub(super) const fn forget_length(&mut self) {
        self.is_chunked = true;
    }

    /// Has it compressed.
    pub(super) fn pack(&mut self, packer: Packer) {
        self.forget_length();
        self.packer = Some(Box::new(packer));
    }

    /// Ends the request's span when this is over.
    pub(super) fn trace(&mut self, span: ServerSpan, status: StatusCode) {
        self.span = Some((span, status));
    }

    /// The last frame: trailers, or what stands for them.
    fn last(&mut self, trailers: HeaderMap) -> Option<Frame<Bytes>> {
        match &mut self.outward {
            None => (!trailers.is_empty()).then(|| Frame::trailers(trailers)),
            Some(outward) => Some(outward.end(trailers)).filter(|bytes| !bytes.is_empty()).map(Frame::data),
        }
    }

    /// More of it, in the other protocol if there is one.
    fn poll_next(&mut self, task: &mut Context<'_>) -> Poll<Option<Result<Bytes, Failure>>> {
        loop {
            let next = ready!(self.source.poll_next(task));
            match (&mut self.outward, next) {
                (Some(outward), Some(Ok(bytes))) => match outward.data(bytes) {
                    // Nothing comes of it yet.
                    ControlFlow::Continue(bytes) if bytes.is_empty() => {}
                    ControlFlow::Continue(bytes) => return Poll::Ready(Some(Ok(bytes))),
                    ControlFlow::Break(bytes) => {
                        self.note_bytes(bytes.len());
                        self.finish(None, None);
                        return Poll::Ready(Some(Ok(bytes)));
                    }
                },
                (_, next) => return Poll::Ready(next),
            }
        }
    }

    /// Ends the request by gRPC when this is over.
    pub(super) fn call(&mut self, called: Called) {
        self.called = Some(Box::new(called));
    }

    /// Counts the request when this is over.
    pub(super) fn count(&mut self, counting: Counting) {
        self.counting = Some(counting);
    }

    /// More of it, compressed: all that has come so far, where there is no more for now.
    fn poll_packed(&mut self, packer: &mut Packer, task: &mut Context<'_>) -> Poll<Option<Result<Bytes, Failure>>> {
        let taken = |packed: io::Result<Packed>| match packed {
            Ok(Packed::Bytes(bytes)) if bytes.is_empty() => Ok(Packed::Nothing),
            Ok(packed) => Ok(packed),
            Err(_) => Err(Failure::NoMemory),
        };
        loop {
            match taken(packer.step()) {
                Ok(Packed::Bytes(bytes)) => return Poll::Ready(Some(Ok(bytes))),
                Ok(Packed::Rest) => {
                    task.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Ok(Packed::Nothing) => {}
                Err(failure) => return Poll::Ready(Some(Err(failure))),
            }
            let (next, rest) = match self.source.poll_next(task) {
                Poll::Ready(Some(Ok(bytes))) => {
                    packer.put(bytes);
                    continue;
                }
                Poll::Ready(None) => (Poll::Ready(None), packer.finish()),
                // What came before it breaks off goes out.
                next => (next, packer.flush()),
            };
            return match taken(rest) {
                Ok(Packed::Bytes(bytes)) => Poll::Ready(Some(Ok(bytes))),
                Ok(_) => next,
                Err(failure) => Poll::Ready(Some(Err(failure))),
            };
        }
    }

    fn note_bytes(&mut self, bytes: usize) {
        if let Some(called) = &mut self.called {
            called.note_bytes(bytes);
        }
    }

    fn finish(&mut self, failure: Option<&Failure>, trailers: Option<&HeaderMap>) {
        self.is_over = true;
        if let Some(counting) = self.counting.take() {
            counting.note(failure);
        }
        let grpc = self.called.take().map(|called| called.ended(trailers));
        if let Some((span, status)) = self.span.take() {
            span.end(status, failure, grpc);
        }
    }
}

impl Drop for Streamed {
    fn drop(&mut self) {
        // There may be nothing to send, and then no poll finds the end. What is compressed has one to send.
        if self.packer.is_none() && self.source.is_complete() {
            self.finish(None, None);
        }
        let grpc = self.called.take().map(|called| called.cancelled());
        if let (Some(_), Some((span, status))) = (grpc, self.span.take()) {
            span.end(status, None, grpc);
        }
    }
}

impl Body for Streamed {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        if self.is_over && (self.outward.is_some() || self.packer.is_some()) {
            return Poll::Ready(None);
        }
        let next = if let Some(mut packer) = self.packer.take() {
            let next = self.poll_packed(&mut packer, task);
            self.packer = Some(packer);
            next
        } else {
            self.poll_next(task)
        };
        let Poll::Ready(next) = next else {
            self.is_unsent = false;
            return Poll::Pending;
        };
        match next {
            Some(Ok(bytes)) => {
                self.is_unsent = true;
                self.note_bytes(bytes.len());
                // In another protocol something comes behind it, and where it is compressed.
                if self.outward.is_none() && self.packer.is_none() && self.source.is_complete() {
                    self.finish(None, None);
                }
                Poll::Ready(Some(Ok(Frame::data(bytes))))
            }
            Some(Err(failure)) if let Some(labels) = &self.grpc => {
                let mut trailers = HeaderMap::new();
                Status::of(&failure, Some(&labels.function)).put(&mut trailers);
                self.finish(Some(&failure), Some(&trailers));
                Poll::Ready(self.last(trailers).map(Ok))
            }
            Some(Err(failure)) => {
                // An error makes hyper drop what it has not written yet: it gets one chance to.
                if std::mem::take(&mut self.is_unsent) {
                    task.waker().wake_by_ref();
                    return Poll::Pending;
                }
                self.finish(Some(&failure), None);
                Poll::Ready(Some(Err(Broken(failure))))
            }
            None => {
                let trailers = self.source.take_trailers();
                self.finish(None, trailers.as_ref());
                Poll::Ready(self.last(trailers.unwrap_or_default()).map(Ok))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.is_over
    }

    fn size_hint(&self) -> SizeHint {
        if self.is_chunked || self.outward.is_some() {
            return SizeHint::default();
        }
        self.source.length().map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
