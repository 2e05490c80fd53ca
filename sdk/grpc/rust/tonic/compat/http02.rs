//! The bodies of http 0.2: tonic 0.10 and 0.11.

use std::pin::Pin;
use std::task::{ready, Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;

use crate::Status;

pub(crate) use super::version::*;
#[cfg(feature = "server")]
pub(crate) use http_body::Body as HttpBody;
pub use hyper::Body;

/// The body of a request that is answered.
#[cfg(feature = "server")]
pub(crate) type ServerBody = Body;
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

/// A body of what gives one; and its trailers, when they have come.
struct Sourced<T>(T, Option<HeaderMap>);

impl<T: Source> http_body::Body for Sourced<T> {
    type Data = Bytes;
    type Error = Status;

    fn poll_data(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, Status>>> {
        if self.1.is_some() {
            return Poll::Ready(None);
        }
        match ready!(self.0.poll_piece(context)) {
            Some(Ok(Piece::Data(bytes))) => Poll::Ready(Some(Ok(bytes))),
            Some(Ok(Piece::Trailers(trailers))) => {
                self.1 = Some(trailers);
                Poll::Ready(None)
            }
            Some(Err(status)) => Poll::Ready(Some(Err(status))),
            None => Poll::Ready(None),
        }
    }

    fn poll_trailers(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<Option<HeaderMap>, Status>> {
        Poll::Ready(Ok(self.1.take()))
    }
}

/// As a stream of its data.
#[cfg(feature = "server")]
impl<T: Source> tokio_stream::Stream for Sourced<T> {
    type Item = Result<Bytes, Status>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        http_body::Body::poll_data(self, context)
    }
}

/// The body of a request that is answered.
#[cfg(feature = "server")]
pub(crate) fn server_body(source: impl Source) -> ServerBody {
    Body::wrap_stream(Sourced(source, None))
}

/// The body of a call's reply. In the original it is `hyper::Body`, which takes no trailers of others.
#[cfg(feature = "channel")]
pub(crate) fn call_reply_body(source: impl Source) -> CallReplyBody {
    boxed(Sourced(source, None))
}

/// The next piece of a body. Behind trailers nothing comes.
pub(crate) fn poll_piece(mut body: Pin<&mut TonicBody>, context: &mut Context<'_>) -> Poll<Option<Result<Piece, Status>>> {
    if let Some(data) = ready!(body.as_mut().poll_data(context)) {
        return Poll::Ready(Some(data.map(Piece::Data)));
    }
    let trailers = ready!(body.poll_trailers(context));
    Poll::Ready(trailers.map(|trailers| trailers.map(Piece::Trailers)).transpose())
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
        B: HttpBody<Data = Bytes> + Send + 'static,
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
pub trait Io: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static {}

#[cfg(feature = "channel")]
impl<T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static> Io for T {}

/// What runs tasks.
#[cfg(feature = "channel")]
pub(crate) use hyper::rt::Executor;
