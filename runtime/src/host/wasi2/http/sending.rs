//! The body of a message that a component writes, as what reads it takes it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use hyper::header::HeaderMap;

use crate::host::fetch::Share;
use crate::outcome::Failure as Outcome;
use crate::reply::{Fields, Stream};

/// A body on its way.
#[derive(Debug)]
pub(super) enum Sending {
    /// While it is written.
    Stream {
        stream: Stream,
        /// That the request is under way: a server may answer before it has all of it.
        _share: Option<Arc<Share>>,
    },
    /// All of it, and what comes behind it.
    Whole(Bytes, Option<HeaderMap>),
}

impl Sending {
    /// What is written. `share` says that its request is under way.
    pub(super) const fn of(stream: Stream, share: Option<Arc<Share>>) -> Sending {
        Sending::Stream { stream, _share: share }
    }

    /// The same to another server. Connections are HTTP/1.1, where nothing comes behind a body with a length.
    pub(super) fn to_server(mut stream: Stream, share: Arc<Share>) -> Sending {
        if stream.length().is_some() {
            stream.without_trailers();
        }
        Sending::of(stream, Some(share))
    }

    /// Bytes that it keeps; what streams is counted where it is written.
    pub(super) fn memory_bytes(&self) -> usize {
        if let Sending::Whole(bytes, _) = self { bytes.len() } else { 0 }
    }

    /// What was written.
    pub(super) fn whole(bytes: Bytes, trailers: Option<Box<Fields>>) -> Sending {
        Sending::Whole(bytes, trailers.map(|trailers| trailers.into_map()))
    }
}

/// The component has not finished the body.
#[derive(Debug, thiserror::Error)]
#[error("the body was not finished")]
pub(super) struct Unfinished;

impl From<Outcome> for Unfinished {
    fn from(_: Outcome) -> Unfinished {
        Unfinished
    }
}

impl Body for Sending {
    type Data = Bytes;
    type Error = Unfinished;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Unfinished>>> {
        match &mut *self {
            Sending::Stream { stream, .. } => match std::task::ready!(stream.poll_next(context)) {
                Some(Ok(bytes)) => Poll::Ready(Some(Ok(Frame::data(bytes)))),
                Some(Err(failure)) => Poll::Ready(Some(Err(failure.into()))),
                None => Poll::Ready(stream.take_trailers().map(|trailers| Ok(Frame::trailers(trailers.into_map())))),
            },
            Sending::Whole(bytes, _) if !bytes.is_empty() => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Sending::Whole(_, trailers) => Poll::Ready(trailers.take().map(|trailers| Ok(Frame::trailers(trailers)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Sending::Stream { stream, .. } => stream.is_complete(),
            Sending::Whole(bytes, trailers) => bytes.is_empty() && trailers.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Sending::Stream { stream, .. } => stream.length().map_or_else(SizeHint::default, SizeHint::with_exact),
            // Trailers come behind chunks.
            Sending::Whole(..) => SizeHint::default(),
        }
    }
}
