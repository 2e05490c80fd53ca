//! What a service learns of connections, and the span of a request.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::Request;
use pin_project::pin_project;
use tower::Service;

use super::TraceInterceptor;

/// A connection that can say something of itself.
pub trait Connected {
    /// What it says.
    type ConnectInfo: Clone + Send + Sync + 'static;

    /// Says it.
    fn connect_info(&self) -> Self::ConnectInfo;
}

/// Of TCP: in a function neither address is known.
#[derive(Debug, Clone)]
pub struct TcpConnectInfo {
    /// The server's.
    pub local_addr: Option<SocketAddr>,
    /// The client's.
    pub remote_addr: Option<SocketAddr>,
}

impl TcpConnectInfo {
    /// The server's.
    pub fn local_addr(&self) -> Option<SocketAddr> {
        self.local_addr
    }

    /// The client's.
    pub fn remote_addr(&self) -> Option<SocketAddr> {
        self.remote_addr
    }
}

/// Of Unix sockets.
#[derive(Debug, Clone)]
pub struct UdsConnectInfo {}

/// Of TLS.
#[derive(Debug, Clone)]
pub struct TlsConnectInfo<T> {
    inner: T,
}

impl<T> TlsConnectInfo<T> {
    /// Of the connection below.
    pub fn get_ref(&self) -> &T {
        &self.inner
    }

    /// Of the connection below.
    pub fn get_mut(&mut self) -> &mut T {
        &mut self.inner
    }
}

impl Connected for tokio::net::TcpStream {
    type ConnectInfo = TcpConnectInfo;

    fn connect_info(&self) -> Self::ConnectInfo {
        TcpConnectInfo { local_addr: None, remote_addr: None }
    }
}

impl Connected for tokio::net::UnixStream {
    type ConnectInfo = UdsConnectInfo;

    fn connect_info(&self) -> Self::ConnectInfo {
        UdsConnectInfo {}
    }
}

impl Connected for tokio::io::DuplexStream {
    type ConnectInfo = ();

    fn connect_info(&self) -> Self::ConnectInfo {}
}

/// A service whose requests have spans.
#[derive(Clone)]
pub(super) struct Traced<S> {
    pub(super) inner: S,
    pub(super) span: TraceInterceptor,
}

impl<S: Service<Request<B>>, B> Service<Request<B>> for Traced<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = Spanned<S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Spanned<S::Future> {
        let (parts, body) = request.into_parts();
        let bare = Request::from_parts(parts, ());
        let span = (self.span)(&bare);
        let (parts, ()) = bare.into_parts();
        Spanned { inner: self.inner.call(Request::from_parts(parts, body)), span }
    }
}

/// What runs in a span.
#[pin_project]
pub(super) struct Spanned<F> {
    #[pin]
    inner: F,
    span: tracing::Span,
}

impl<F: Future> Future for Spanned<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let _entered = this.span.enter();
        this.inner.poll(context)
    }
}
