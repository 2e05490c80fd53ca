//! The bodies of http 1: tonic 0.12 and later.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http_body::Frame;

use crate::Status;

pub(crate) use super::version::*;
pub use http_body::Body;
#[cfg(feature = "server")]
pub(crate) use http_body::Body as HttpBody;

/// The body of a request that is answered.
#[cfg(feature = "server")]
pub(crate) type ServerBody = TonicBody;
/// And of its reply.
#[cfg(feature = "server")]
pub(crate) type ReplyBody = TonicBody;
/// The body of a call.
#[cfg(feature = "channel")]
pub(crate) type CallBody = TonicBody;
/// And of its reply.
#[cfg(feature = "channel")]
pub(crate) type CallReplyBody = TonicBody;

/// What a body gives.
pub(crate) enum Piece {
    Data(Bytes),
    Trailers(HeaderMap),
}

/// What gives a body.
pub(crate) trait Source: Send + Unpin + 'static {
    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Piece, Status>>>;
}

struct Sourced<T>(T);

impl<T: Source> Body for Sourced<T> {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        self.0.poll_piece(context).map(|piece| {
            piece.map(|piece| {
                piece.map(|piece| match piece {
                    Piece::Data(bytes) => Frame::data(bytes),
                    Piece::Trailers(trailers) => Frame::trailers(trailers),
                })
            })
        })
    }
}

/// The body of a request that is answered.
#[cfg(feature = "server")]
pub(crate) fn server_body(source: impl Source) -> ServerBody {
    boxed(Sourced(source))
}

/// The body of a call's reply.
#[cfg(feature = "channel")]
pub(crate) fn call_reply_body(source: impl Source) -> CallReplyBody {
    boxed(Sourced(source))
}

/// The next piece of a body.
pub(crate) fn poll_piece(body: Pin<&mut TonicBody>, context: &mut Context<'_>) -> Poll<Option<Result<Piece, Status>>> {
    body.poll_frame(context).map(|frame| {
        frame.map(|frame| {
            frame.map(|frame| match frame.into_data() {
                Ok(bytes) => Piece::Data(bytes),
                Err(frame) => Piece::Trailers(frame.into_trailers().unwrap_or_default()),
            })
        })
    })
}

#[cfg(feature = "server")]
mod server {
    use super::*;
    use crate::transport::service::GrpcTimeout;
    use http::{Request, Response};
    use tower::limit::concurrency::ConcurrencyLimitLayer;
    use tower::load_shed::LoadShedLayer;
    use tower::{Service, ServiceBuilder};

    pub(crate) fn reply_body<B>(body: B) -> ReplyBody
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        boxed(body)
    }

    /// What the original puts around the services of a connection.
    pub(crate) fn stack<S>(
        inner: S,
        load_shed: bool,
        limit: Option<usize>,
        timeout: Option<Duration>,
    ) -> impl Service<
        Request<ServerBody>,
        Response = Response<ReplyBody>,
        Error = BoxError,
        Future = impl std::future::Future<Output = Result<Response<ReplyBody>, BoxError>> + Send,
    > + Clone
           + Send
           + 'static
    where
        S: Service<Request<ServerBody>, Response = Response<ReplyBody>> + Clone + Send + 'static,
        S::Future: Send,
        S::Error: Into<BoxError> + Send,
    {
        ServiceBuilder::new()
            .map_err(Into::<BoxError>::into)
            .option_layer(load_shed.then_some(LoadShedLayer::new()))
            .option_layer(limit.map(ConcurrencyLimitLayer::new))
            .layer_fn(|service| GrpcTimeout::new(service, timeout))
            .service(inner)
    }
}
#[cfg(feature = "server")]
pub(crate) use server::*;

/// What a connector connects.
#[cfg(feature = "channel")]
pub trait Io: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static {}

#[cfg(feature = "channel")]
impl<T: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static> Io for T {}

/// What runs tasks.
#[cfg(feature = "channel")]
pub(crate) use hyper::rt::Executor;
