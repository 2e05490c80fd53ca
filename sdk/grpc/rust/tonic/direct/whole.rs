//! A body that is there: a message in its frame, and what comes behind it. It is a kind of the original's `Body`, so whatever reads bodies can read it.

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http_body::Frame;

use super::message;
use crate::body::Body;
use crate::Status;

/// Such a body.
#[derive(Debug)]
pub(crate) struct Whole {
    data: BytesMut,
    trailers: Trailers,
}

#[derive(Debug)]
enum Trailers {
    /// There are none, as behind requests, or they were read.
    Nothing,
    /// Of a reply: `grpc-status: 0`.
    Ok,
    /// Of a reply that went wrong behind its head.
    Status(Box<Status>),
}

impl Whole {
    /// A request's.
    pub(crate) fn request(data: BytesMut) -> Self {
        Self { data, trailers: Trailers::Nothing }
    }

    /// A reply's: a message in its frame, or why there is none.
    pub(crate) fn reply(data: BytesMut, result: Result<(), Status>) -> Self {
        match result {
            Ok(()) => Self { data, trailers: Trailers::Ok },
            Err(status) => Self { data: BytesMut::new(), trailers: Trailers::Status(Box::new(status)) },
        }
    }

    /// What comes next of it.
    pub(crate) fn next(&mut self) -> Option<Result<Frame<Bytes>, Status>> {
        if !self.data.is_empty() {
            return Some(Ok(Frame::data(std::mem::take(&mut self.data).freeze())));
        }
        let status = match std::mem::replace(&mut self.trailers, Trailers::Nothing) {
            Trailers::Nothing => return None,
            Trailers::Ok => Status::ok(""),
            Trailers::Status(status) => *status,
        };
        let mut trailers = HeaderMap::new();
        Some(status.add_header(&mut trailers).map(|()| Frame::trailers(trailers)))
    }

    /// Whether all of it was read.
    pub(crate) fn is_over(&self) -> bool {
        self.data.is_empty() && matches!(self.trailers, Trailers::Nothing)
    }
}

/// The message of a request, in its frame, if that is all that its body has. Then nothing is left there.
pub(crate) fn take_message<B: 'static>(body: &mut B, bytes_max: Option<usize>) -> Option<BytesMut> {
    let whole = <dyn std::any::Any>::downcast_mut::<Body>(body)?.whole()?;
    let is_request = matches!(whole.trailers, Trailers::Nothing);
    if is_request && message::is_one(&whole.data, bytes_max) {
        Some(std::mem::take(&mut whole.data))
    } else {
        None
    }
}

/// The message of a reply that went well, in its frame, if it is there. Then nothing is left there.
pub(crate) fn take_reply(body: &mut Body) -> Option<BytesMut> {
    let whole = body.whole()?;
    if !matches!(whole.trailers, Trailers::Ok) {
        return None;
    }
    whole.trailers = Trailers::Nothing;
    Some(std::mem::take(&mut whole.data))
}
