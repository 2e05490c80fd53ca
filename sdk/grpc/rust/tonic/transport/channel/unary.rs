//! Calls of one message that is there, for the short way (`direct`). Versions of tonic that do not have it make no use of this.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::USER_AGENT;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Request, Response};
use sledge_grpc_rt::call::{Begun, Call, Sizes};
use sledge_grpc_rt::rows::{GRPC_HEAD, GRPC_OK};
use tower_service::Service;

use super::super::compat::{BoxError, CallBody, CallReplyBody};
use super::super::error::Error;
use super::super::service::rows;
use super::body::WholeReply;
use super::call::{refused, Calling, FIRST_BYTES_MAX, REPLY_BYTES};
use super::Channel;

thread_local! {
    /// Room for a reply, while there is none.
    static ROOM: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// A call that was made.
pub(crate) enum Made {
    /// The reply is there.
    Whole(Came),
    /// It is not.
    Runs(Call),
    /// It was not made, since its message is one that is sent in pieces.
    Large(HeaderMap, PathAndQuery, Bytes),
}

/// A reply.
pub(crate) struct Came {
    text: Vec<u8>,
    sizes: Sizes,
}

impl Came {
    /// Whether it went well and says nothing of its own.
    pub(crate) fn is_usual(&self) -> bool {
        let [head, body, _] = self.sizes.map(|size| size as usize);
        self.text[..head] == *GRPC_HEAD && self.text[head + body..] == *GRPC_OK
    }

    /// Its body.
    pub(crate) fn message(&self) -> &[u8] {
        let [head, body, _] = self.sizes.map(|size| size as usize);
        &self.text[head..head + body]
    }

    /// Keeps the room for the next one.
    pub(crate) fn keep(self) {
        ROOM.set(self.text);
    }
}

/// What every call of a channel says, as rows.
pub(super) fn agent_rows(user_agent: &HeaderValue) -> Arc<[u8]> {
    let mut rows = Vec::new();
    sledge_grpc_rt::rows::push(&mut rows, USER_AGENT.as_str().as_bytes(), user_agent.as_bytes());
    rows.into()
}

impl Channel {
    /// Whether its calls have a deadline, or wait for each other.
    pub(crate) fn has_limits(&self) -> bool {
        self.timeout.is_some() || self.caller.limit.is_some()
    }

    /// Makes a call. The host adds what gRPC needs of headers.
    pub(crate) fn make(&self, headers: Option<HeaderMap>, path: &PathAndQuery, message: &[u8]) -> Result<Made, BoxError> {
        let headers = headers.map(|mut headers| {
            headers.insert(USER_AGENT, self.caller.user_agent.clone());
            headers
        });
        if message.len() >= FIRST_BYTES_MAX {
            let alone = || HeaderMap::from_iter([(USER_AGENT, self.caller.user_agent.clone())]);
            return Ok(Made::Large(headers.unwrap_or_else(alone), path.clone(), Bytes::copy_from_slice(message)));
        }
        let rows = headers.as_ref().map(rows::of);
        let rows = rows.as_deref().unwrap_or(&self.agent_rows);
        let mut text = ROOM.take();
        text.clear();
        text.reserve_exact(REPLY_BYTES);
        let path = path.path();
        match Call::make(path.as_bytes(), rows, message, -1, &mut text).map_err(|error| refused(path, error))? {
            Begun::Whole(sizes) => Ok(Made::Whole(Came { text, sizes })),
            Begun::Runs(call) => Ok(Made::Runs(call)),
        }
    }

    /// What stands in the place of the channel for the rest of a call.
    pub(crate) fn goes(&self, made: Made) -> Reply {
        Reply(Some(match made {
            Made::Whole(Came { text, sizes }) => Calling::whole(WholeReply::new(text, sizes)),
            Made::Runs(call) => Calling::runs(call),
            Made::Large(headers, path, message) => {
                let mut head = Request::new(()).into_parts().0;
                (head.uri, head.headers) = (path.into(), headers);
                Calling::begins(head, message)
            }
        }))
    }
}

/// A call in the place of the channel that has made it: whatever it is asked, it gives its reply. It is cancelled when this is dropped.
pub(crate) struct Reply(Option<Calling>);

impl Service<Request<CallBody>> for Reply {
    type Response = Response<CallReplyBody>;
    type Error = Error;
    type Future = Replying;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<CallBody>) -> Replying {
        Replying(self.0.take().unwrap_or_else(Calling::over))
    }
}

/// Its reply.
pub(crate) struct Replying(Calling);

impl Future for Replying {
    type Output = Result<Response<CallReplyBody>, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(context).map_err(Error::from_source)
    }
}
