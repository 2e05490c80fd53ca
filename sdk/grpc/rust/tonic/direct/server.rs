//! The server's side: services without a router, and what answers one message.

use std::any::Any;
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::response::IntoResponse;
use bytes::BytesMut;
use http::header::CONTENT_TYPE;
use http::{Request, Response};
use tower::ServiceExt;

use super::message;
pub(crate) use super::whole::take_reply;
use super::whole::Whole;
use crate::body::Body;
use crate::codec::Encoder;
use crate::metadata::GRPC_CONTENT_TYPE;
use crate::Status;

/// Room for a reply, at first; as the original's buffers.
const REPLY_BYTES: usize = 8 << 10;

/// What a service answers with.
pub(crate) type Answering = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

/// A service that is called without a router.
#[allow(missing_debug_implementations)]
pub struct Service(Box<dyn Direct>);

impl Service {
    /// That one.
    pub(crate) fn new<S>(service: S) -> Self
    where
        S: tower::Service<Request<Body>, Error = Infallible> + Clone + Send + Sync + 'static,
        S::Response: IntoResponse,
        S::Future: Send + 'static,
    {
        Self(Box::new(service))
    }

    /// Calls it. `frame`: the request's body.
    pub(crate) fn call(&self, head: Request<()>, frame: &[u8], context: &mut Context<'_>) -> Answering {
        let request = head.map(|()| Body::of_whole(Whole::request(frame.into())));
        self.0.call(request, context)
    }
}

trait Direct: Send + Sync {
    fn call(&self, request: Request<Body>, context: &mut Context<'_>) -> Answering;
}

impl<S> Direct for S
where
    S: tower::Service<Request<Body>, Error = Infallible> + Clone + Send + Sync + 'static,
    S::Response: IntoResponse,
    S::Future: Send + 'static,
{
    fn call(&self, request: Request<Body>, context: &mut Context<'_>) -> Answering {
        let mut service = self.clone();
        match tower::Service::poll_ready(&mut service, context) {
            Poll::Ready(Ok(())) => answering(tower::Service::call(&mut service, request)),
            _ => answering(service.oneshot(request)),
        }
    }
}

/// In the box in which generated services have it already, or in a new one.
fn answering<F, R>(future: F) -> Answering
where
    F: Future<Output = Result<R, Infallible>> + Send + 'static,
    R: IntoResponse,
{
    let mut future = Some(future);
    if let Some(boxed) = <dyn Any>::downcast_mut::<Option<Answering>>(&mut future).and_then(Option::take) {
        return boxed;
    }
    Box::pin(async move {
        match future {
            Some(future) => future.await.map(|reply| reply.into_response().map(Body::new)),
            None => Ok(Response::default()),
        }
    })
}

/// The reply with which a handler has answered one message.
pub(crate) fn reply<E>(encoder: E, reply: Result<crate::Response<E::Item>, Status>, bytes_max: Option<usize>) -> Response<Body>
where
    E: Encoder<Error = Status>,
{
    let reply = match reply {
        Ok(reply) => reply,
        Err(status) => return status.into_http(),
    };
    let (mut head, message) = reply.into_http().into_parts();
    head.headers.insert(CONTENT_TYPE, GRPC_CONTENT_TYPE);
    let mut data = BytesMut::with_capacity(REPLY_BYTES);
    let result = message::encode(encoder, message, bytes_max, &mut data);
    Response::from_parts(head, Body::of_whole(Whole::reply(data, result)))
}
