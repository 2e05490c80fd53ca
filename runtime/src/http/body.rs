//! Reading a request's body, within its limit and in time: before its function begins, or while it runs.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use hyper::HeaderMap;
use hyper::body::{Body as _, Incoming};
use sledge_sandbox::{Budget, Share};

use crate::host::{Body, BodyError, Piece, Source};
use crate::outcome::Failure;

/// Pieces smaller than this are joined, so that a body in tiny pieces costs no more memory than its bytes.
const PIECE_BYTES_MIN: usize = 16 << 10;
/// Bodies of at most this size are not counted: a connection's own buffers are as large.
const FREE_BYTES: u64 = 16 << 10;
/// So much is reserved at a time.
const RESERVED_STEP_BYTES: u64 = 64 << 10;

/// Whether a body says by itself that it is too large: decided before any of it is read.
#[must_use]
pub fn is_declared_too_large(body: &Incoming, bytes_max: u64) -> bool {
    body.size_hint().lower() > bytes_max
}

/// A body of which the rest has to come before its function begins.
#[derive(Debug)]
pub(super) struct Reading {
    incoming: Incoming,
    bytes_max: u64,
    body: Body,
    share: Option<Share>,
    joined: BytesMut,
    total: u64,
}

impl Reading {
    /// One of at most so many bytes.
    pub(super) fn new(incoming: Incoming, bytes_max: u64) -> Reading {
        Reading { incoming, bytes_max, body: Body::default(), share: None, joined: BytesMut::new(), total: 0 }
    }

    /// All of it, when it is there; what it needs is reserved of `budget` as it comes. Not to be asked again then.
    ///
    /// # Errors
    /// When it is larger than it may be (found out without reading more than that and one piece), ends early, or finds the budget exhausted.
    pub(super) fn poll(&mut self, budget: Option<&Arc<Budget>>, task: &mut Context<'_>) -> Poll<Result<Body, Failure>> {
        while let Some(frame) = ready!(Pin::new(&mut self.incoming).poll_frame(task)) {
            match frame.map_err(|_| Failure::BodyBroken)?.into_data() {
                Ok(data) => self.push(data, budget)?,
                Err(frame) => self.body.set_trailers(frame.into_trailers().unwrap_or_default()),
            }
        }
        let mut body = std::mem::take(&mut self.body);
        body.push(std::mem::take(&mut self.joined).freeze());
        body.set_share(self.share.take());
        Poll::Ready(Ok(body))
    }

    fn push(&mut self, data: Bytes, budget: Option<&Arc<Budget>>) -> Result<(), Failure> {
        let Reading { incoming, bytes_max, body, share, joined, total } = self;
        *total += data.len() as u64;
        if *total > *bytes_max {
            return Err(Failure::BodyTooLarge);
        }
        if *total > FREE_BYTES && !budget.is_none_or(|budget| reserve(budget, share, *total)) {
            return Err(Failure::NoMemory);
        }
        let is_whole = joined.is_empty() && incoming.is_end_stream();
        if is_whole || data.len() >= PIECE_BYTES_MIN {
            body.push(joined.split().freeze());
            body.push(data);
        } else {
            joined.extend_from_slice(&data);
            if joined.len() >= PIECE_BYTES_MIN {
                body.push(joined.split().freeze());
            }
        }
        Ok(())
    }
}

/// A body that is read while its function runs, within the same limits: of all that comes, and of the time for which reading waits.
#[must_use]
pub(super) fn stream(incoming: Incoming, bytes_max: u64, time_max: Duration, inward: Option<Box<dyn Inward>>) -> Body {
    let is_over = incoming.is_end_stream();
    let coming = Coming { incoming, left: bytes_max };
    match inward {
        Some(inward) => Body::coming(Box::new(Translated { coming: (!is_over).then_some(coming), inward, end: None }), time_max),
        None if is_over => Body::default(),
        None => Body::coming(Box::new(coming), time_max),
    }
}

/// Makes a body of gRPC of one in another protocol.
pub(super) trait Inward: fmt::Debug + Send {
    /// Some of it.
    ///
    /// # Errors
    /// When it is not what it should be.
    fn data(&mut self, bytes: Bytes) -> Result<Bytes, BodyError>;

    /// It is over; the rest of it.
    ///
    /// # Errors
    /// When it should not be.
    fn end(&mut self) -> Result<Bytes, BodyError>;
}

/// What comes in another protocol.
#[derive(Debug)]
struct Translated {
    /// None where nothing comes.
    coming: Option<Coming>,
    inward: Box<dyn Inward>,
    /// What came behind it, at its end.
    end: Option<HeaderMap>,
}

impl Source for Translated {
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Piece> {
        loop {
            if let Some(trailers) = self.end.take() {
                return Poll::Ready(Piece::End(trailers));
            }
            let next = match &mut self.coming {
                Some(coming) => ready!(coming.poll_next(context)),
                None => Piece::End(HeaderMap::new()),
            };
            let translated = match next {
                Piece::Data(bytes) => self.inward.data(bytes),
                Piece::End(trailers) => {
                    self.end = Some(trailers);
                    self.inward.end()
                }
                Piece::Broken(error) => Err(error),
            };
            match translated {
                Ok(bytes) if bytes.is_empty() => {}
                Ok(bytes) => return Poll::Ready(Piece::Data(bytes)),
                Err(error) => return Poll::Ready(Piece::Broken(error)),
            }
        }
    }
}

/// What comes on a connection. hyper reads no more of it than is asked for: with HTTP/1.1 a buffer, with HTTP/2 a window.
#[derive(Debug)]
struct Coming {
    incoming: Incoming,
    /// Bytes that may still come.
    left: u64,
}

impl Source for Coming {
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Piece> {
        loop {
            let frame = match ready!(Pin::new(&mut self.incoming).poll_frame(context)) {
                Some(Ok(frame)) => frame,
                Some(Err(_)) => return Poll::Ready(Piece::Broken(BodyError::Broken)),
                None => return Poll::Ready(Piece::End(HeaderMap::new())),
            };
            let data = match frame.into_data() {
                Ok(data) if data.is_empty() => continue,
                Ok(data) => data,
                Err(frame) => return Poll::Ready(Piece::End(frame.into_trailers().unwrap_or_default())),
            };
            let Some(left) = self.left.checked_sub(data.len() as u64) else {
                return Poll::Ready(Piece::Broken(BodyError::TooLarge));
            };
            self.left = left;
            return Poll::Ready(Piece::Data(data));
        }
    }
}

/// Makes `share` cover `bytes`.
fn reserve(budget: &Arc<Budget>, share: &mut Option<Share>, bytes: u64) -> bool {
    let wanted = bytes.next_multiple_of(RESERVED_STEP_BYTES);
    match share {
        Some(share) => share.bytes() >= bytes || share.resize(wanted),
        None => {
            *share = budget.claim(wanted);
            share.is_some()
        }
    }
}
