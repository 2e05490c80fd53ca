//! Calls of other servers, over HTTP/2: requests on connections that are kept, and what their failures are to gRPC.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use h2::Reason;
use hyper::Request;
use hyper::body::{Body, Frame};
use tokio::task::JoinHandle;

use super::edges::Server;
use crate::grpc::{Code, Status};
use crate::host::fetch::{Answered, Share};
use crate::host::fetch_span::ClientSpan;
use crate::outcome;
use crate::reply::Stream;
use crate::upstream::{Failure, RequestBody, reset_reason};

/// A request that is under way. It is given up when this is dropped.
#[derive(Debug)]
pub(super) struct Sent {
    task: JoinHandle<Answered>,
    _share: Share,
}

impl Drop for Sent {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Sent {
    /// Sends a request, in a task of the worker's runtime.
    pub(super) fn begin(server: &Server, request: Request<RequestBody>, span: Option<ClientSpan>, share: Share) -> Sent {
        let upstream = Arc::clone(&server.upstream);
        let task = tokio::spawn(async move {
            let answered = upstream.send(request).await;
            if let Some(span) = span {
                span.end(&answered);
            }
            answered
        });
        Sent { task, _share: share }
    }

    /// What it came to.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Answered> {
        Pin::new(&mut self.task)
            .poll(context)
            .map(|answered| answered.unwrap_or_else(|error| Err(Failure::Broken(error.to_string()))))
    }
}

/// The body of a request: what was there from the beginning, and what is written from then on.
#[derive(Debug)]
pub(super) struct Upload {
    first: Bytes,
    more: Stream,
}

/// The rest of a request does not come.
#[derive(Debug, thiserror::Error)]
#[error("the caller has given the request up: {0}")]
pub(super) struct GivenUp(outcome::Failure);

impl Upload {
    pub(super) const fn new(first: Bytes, more: Stream) -> Upload {
        Upload { first, more }
    }
}

impl Body for Upload {
    type Data = Bytes;
    type Error = GivenUp;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, GivenUp>>> {
        if !self.first.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut self.first)))));
        }
        self.more.poll_next(context).map(|next| next.map(|next| next.map(Frame::data).map_err(GivenUp)))
    }
}

/// Why a server has not answered.
pub(super) fn status(failure: &Failure) -> Status {
    let code = match failure {
        Failure::Reset(reason) => of_reset(*reason),
        Failure::Timeout(_) => Code::DeadlineExceeded,
        _ => Code::Unavailable,
    };
    Status::new(code, failure.to_string())
}

/// Why no more of an answer comes.
pub(super) fn broken(error: &hyper::Error) -> Status {
    let code = reset_reason(error).map_or(Code::Unavailable, of_reset);
    let why = std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string);
    Status::new(code, format!("the reply has broken off: {why}"))
}

/// What a stream that was reset is to gRPC (PROTOCOL-HTTP2.md, Errors).
const fn of_reset(reason: Reason) -> Code {
    match reason {
        Reason::REFUSED_STREAM => Code::Unavailable,
        Reason::CANCEL => Code::Cancelled,
        Reason::ENHANCE_YOUR_CALM => Code::ResourceExhausted,
        Reason::INADEQUATE_SECURITY => Code::PermissionDenied,
        _ => Code::Internal,
    }
}
