//! A server: it serves from where it is awaited to the end of the program, and is asked by the host.

mod answer;
mod connection;
mod heads;
mod incoming;

use std::fmt;
use std::future::{pending, Future};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use tokio_stream::Stream;
use tower::layer::util::{Identity, Stack};
use tower::layer::Layer;
use tower::util::{BoxCloneService, ServiceExt};
use tower::ServiceBuilder;

use self::answer::Names;
use super::compat::{self, BoxError, ReplyBody, Routed, ServerBody};
use super::direct::Service;
use super::error::Error;
use super::tls::{self, without_meaning};

pub use self::connection::{Connected, TcpConnectInfo, TlsConnectInfo, UdsConnectInfo};
pub use self::incoming::TcpIncoming;
#[allow(unused_imports, unreachable_pub)]
pub use super::compat::server_more::*;

type TraceInterceptor = Arc<dyn Fn(&http::Request<()>) -> tracing::Span + Send + Sync + 'static>;

/// Builds a server.
#[derive(Clone)]
pub struct Server<L = Identity> {
    trace_interceptor: Option<TraceInterceptor>,
    concurrency_limit: Option<usize>,
    load_shed: bool,
    timeout: Option<Duration>,
    /// Whether there are layers around the services.
    has_layers: bool,
    service_builder: ServiceBuilder<L>,
}

impl Default for Server<Identity> {
    fn default() -> Self {
        Self {
            trace_interceptor: None,
            concurrency_limit: None,
            load_shed: false,
            timeout: None,
            has_layers: false,
            service_builder: ServiceBuilder::default(),
        }
    }
}

/// A server and its services.
#[derive(Clone)]
pub struct Router<L = Identity> {
    server: Server<L>,
    routes: compat::Routes,
    /// Of the services; of no meaning where [`Router::unknown`] ones are among them.
    names: Vec<&'static str>,
    unknown: bool,
    /// The services that can be called without the routes.
    direct: Vec<(&'static str, Arc<Service>)>,
}

impl Server {
    /// Begins to build one.
    pub fn builder() -> Self {
        Self::default()
    }
}

impl<L> Server<L> {
    /// How many requests it answers at the same time.
    #[must_use]
    pub fn concurrency_limit_per_connection(self, limit: usize) -> Self {
        Self { concurrency_limit: Some(limit), ..self }
    }

    /// Whether it refuses further ones, instead of having them wait.
    #[must_use]
    pub fn load_shed(self, load_shed: bool) -> Self {
        Self { load_shed, ..self }
    }

    /// How long a handler may take.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout: Some(timeout), ..self }
    }

    /// Gives each request a span.
    #[must_use]
    pub fn trace_fn<F>(self, f: F) -> Self
    where
        F: Fn(&http::Request<()>) -> tracing::Span + Send + Sync + 'static,
    {
        Self { trace_interceptor: Some(Arc::new(f)), ..self }
    }

    without_meaning!(
        initial_stream_window_size(impl Into<Option<u32>>),
        initial_connection_window_size(impl Into<Option<u32>>),
        max_concurrent_streams(impl Into<Option<u32>>),
        max_connection_age(Duration),
        max_connection_age_grace(Duration),
        http2_keepalive_interval(Option<Duration>),
        http2_keepalive_timeout(Option<Duration>),
        http2_adaptive_window(Option<bool>),
        http2_max_pending_accept_reset_streams(Option<usize>),
        http2_max_local_error_reset_streams(Option<usize>),
        http2_max_header_list_size(impl Into<Option<u32>>),
        tcp_keepalive(Option<Duration>),
        tcp_keepalive_interval(Option<Duration>),
        tcp_keepalive_retries(Option<u32>),
        tcp_nodelay(bool),
        max_frame_size(impl Into<Option<u32>>),
        accept_http1(bool),
    );

    /// Taken, without meaning.
    ///
    /// # Errors
    /// None.
    pub fn tls_config(self, _: ServerTlsConfig) -> Result<Self, Error> {
        Ok(self)
    }

    /// Puts a layer around the services.
    pub fn layer<NewLayer>(self, new_layer: NewLayer) -> Server<Stack<NewLayer, L>> {
        Server {
            service_builder: self.service_builder.layer(new_layer),
            trace_interceptor: self.trace_interceptor,
            concurrency_limit: self.concurrency_limit,
            load_shed: self.load_shed,
            timeout: self.timeout,
            has_layers: true,
        }
    }

    /// Adds a service.
    pub fn add_service<S>(&mut self, svc: S) -> Router<L>
    where
        S: Routed,
        L: Clone,
    {
        let direct = direct(&svc).into_iter().collect();
        Router { server: self.clone(), routes: svc.alone(), names: vec![S::SERVICE], unknown: false, direct }
    }

    /// Adds a service, or none under its name.
    pub fn add_optional_service<S>(&mut self, svc: Option<S>) -> Router<L>
    where
        S: Routed,
        L: Clone,
    {
        let direct = svc.as_ref().and_then(direct).into_iter().collect();
        let routes = svc.map(Routed::alone).unwrap_or_default();
        Router { server: self.clone(), routes, names: vec![S::SERVICE], unknown: false, direct }
    }

    /// Takes what was routed before.
    pub fn add_routes(&mut self, routes: compat::Routes) -> Router<L>
    where
        L: Clone,
    {
        Router { server: self.clone(), routes, names: Vec::new(), unknown: true, direct: Vec::new() }
    }

    /// Serves one service.
    ///
    /// # Errors
    /// None.
    pub async fn serve<S, ResBody>(self, _: SocketAddr, svc: S) -> Result<(), Error>
    where
        L: Layer<S>,
        L::Service: tower::Service<Request<ServerBody>, Response = Response<ResBody>> + Clone + Send + 'static,
        <L::Service as tower::Service<Request<ServerBody>>>::Future: Send,
        <L::Service as tower::Service<Request<ServerBody>>>::Error: Into<BoxError> + Send + 'static,
        ResBody: compat::HttpBody<Data = Bytes> + Send + 'static,
        ResBody::Error: Into<BoxError>,
    {
        self.serve_until(svc, Names::default(), pending()).await
    }

    /// Serves one service until the signal comes.
    ///
    /// # Errors
    /// None.
    pub async fn serve_with_shutdown<S, F, ResBody>(self, _: SocketAddr, svc: S, signal: F) -> Result<(), Error>
    where
        L: Layer<S>,
        L::Service: tower::Service<Request<ServerBody>, Response = Response<ResBody>> + Clone + Send + 'static,
        <L::Service as tower::Service<Request<ServerBody>>>::Future: Send,
        <L::Service as tower::Service<Request<ServerBody>>>::Error: Into<BoxError> + Send + 'static,
        F: Future<Output = ()>,
        ResBody: compat::HttpBody<Data = Bytes> + Send + 'static,
        ResBody::Error: Into<BoxError>,
    {
        self.serve_until(svc, Names::default(), signal).await
    }

    /// Serves one service; the connections are not looked at.
    ///
    /// # Errors
    /// None.
    pub async fn serve_with_incoming<S, I, IO, IE, ResBody>(self, svc: S, incoming: I) -> Result<(), Error>
    where
        L: Layer<S>,
        I: Stream<Item = Result<IO, IE>>,
        L::Service: tower::Service<Request<ServerBody>, Response = Response<ResBody>> + Clone + Send + 'static,
        <L::Service as tower::Service<Request<ServerBody>>>::Future: Send,
        <L::Service as tower::Service<Request<ServerBody>>>::Error: Into<BoxError> + Send + 'static,
        ResBody: compat::HttpBody<Data = Bytes> + Send + 'static,
        ResBody::Error: Into<BoxError>,
    {
        let _incoming = incoming;
        self.serve_until(svc, Names::default(), pending()).await
    }

    /// Serves one service until the signal comes; the connections are not looked at.
    ///
    /// # Errors
    /// None.
    pub async fn serve_with_incoming_shutdown<S, I, F, IO, IE, ResBody>(self, svc: S, incoming: I, signal: F) -> Result<(), Error>
    where
        L: Layer<S>,
        I: Stream<Item = Result<IO, IE>>,
        F: Future<Output = ()>,
        L::Service: tower::Service<Request<ServerBody>, Response = Response<ResBody>> + Clone + Send + 'static,
        <L::Service as tower::Service<Request<ServerBody>>>::Future: Send,
        <L::Service as tower::Service<Request<ServerBody>>>::Error: Into<BoxError> + Send + 'static,
        ResBody: compat::HttpBody<Data = Bytes> + Send + 'static,
        ResBody::Error: Into<BoxError>,
    {
        let _incoming = incoming;
        self.serve_until(svc, Names::default(), signal).await
    }

    async fn serve_until<S, ResBody>(self, svc: S, names: Names, signal: impl Future<Output = ()>) -> Result<(), Error>
    where
        L: Layer<S>,
        L::Service: tower::Service<Request<ServerBody>, Response = Response<ResBody>> + Clone + Send + 'static,
        <L::Service as tower::Service<Request<ServerBody>>>::Future: Send,
        <L::Service as tower::Service<Request<ServerBody>>>::Error: Into<BoxError> + Send,
        ResBody: compat::HttpBody<Data = Bytes> + Send + 'static,
        ResBody::Error: Into<BoxError>,
    {
        let mut names = names;
        if self.has_layers
            || self.load_shed
            || self.concurrency_limit.is_some()
            || self.timeout.is_some()
            || self.trace_interceptor.is_some()
        {
            names.direct.clear();
        }
        let inner = self.service_builder.service(svc).map_response(|response| response.map(compat::reply_body::<ResBody>));
        let service = compat::stack(inner, self.load_shed, self.concurrency_limit, self.timeout);
        let service: BoxCloneService<Request<ServerBody>, Response<ReplyBody>, BoxError> = match self.trace_interceptor {
            Some(span) => BoxCloneService::new(connection::Traced { inner: service, span }),
            None => BoxCloneService::new(service),
        };
        let _served = answer::serve(names, service);
        signal.await;
        Ok(())
    }
}

/// A service without a router, with its name.
fn direct<S: Routed>(service: &S) -> Option<(&'static str, Arc<Service>)> {
    service.direct().map(|service| (S::SERVICE, Arc::new(service)))
}

impl<L: fmt::Debug> fmt::Debug for Router<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Router").field("server", &self.server).field("names", &self.names).finish_non_exhaustive()
    }
}

impl<L> Router<L> {
    /// Adds a service.
    #[must_use]
    pub fn add_service<S>(mut self, svc: S) -> Self
    where
        S: Routed,
    {
        self.direct.extend(direct(&svc));
        self.routes = svc.beside(self.routes);
        self.names.push(S::SERVICE);
        self
    }

    /// Adds a service, or none under its name.
    #[must_use]
    pub fn add_optional_service<S>(mut self, svc: Option<S>) -> Self
    where
        S: Routed,
    {
        self.names.push(S::SERVICE);
        if let Some(svc) = svc {
            self.direct.extend(direct(&svc));
            self.routes = svc.beside(self.routes);
        }
        self
    }

    fn names(&self) -> Names {
        Names { known: (!self.unknown).then(|| self.names.clone()), direct: self.direct.clone() }
    }

    /// Serves them.
    ///
    /// # Errors
    /// None.
    pub async fn serve<ResBody>(self, _: SocketAddr) -> Result<(), Error>
    where
        L: Layer<compat::Routes>,
        L::Service: tower::Service<Request<ServerBody>, Response = Response<ResBody>> + Clone + Send + 'static,
        <L::Service as tower::Service<Request<ServerBody>>>::Future: Send,
        <L::Service as tower::Service<Request<ServerBody>>>::Error: Into<BoxError> + Send,
        ResBody: compat::HttpBody<Data = Bytes> + Send + 'static,
        ResBody::Error: Into<BoxError>,
    {
        let names = self.names();
        self.server.serve_until(self.routes.prepare(), names, pending()).await
    }

    /// Serves them until the signal comes.
    ///
    /// # Errors
    /// None.
    pub async fn serve_with_shutdown<F: Future<Output = ()>, ResBody>(self, _: SocketAddr, signal: F) -> Result<(), Error>
    where
        L: Layer<compat::Routes>,
        L::Service: tower::Service<Request<ServerBody>, Response = Response<ResBody>> + Clone + Send + 'static,
        <L::Service as tower::Service<Request<ServerBody>>>::Future: Send,
        <L::Service as tower::Service<Request<ServerBody>>>::Error: Into<BoxError> + Send,
        ResBody: compat::HttpBody<Data = Bytes> + Send + 'static,
        ResBody::Error: Into<BoxError>,
    {
        let names = self.names();
        self.server.serve_until(self.routes.prepare(), names, signal).await
    }

    /// Serves them; the connections are not looked at.
    ///
    /// # Errors
    /// None.
    pub async fn serve_with_incoming<I, IO, IE, ResBody>(self, incoming: I) -> Result<(), Error>
    where
        I: Stream<Item = Result<IO, IE>>,
        L: Layer<compat::Routes>,
        L::Service: tower::Service<Request<ServerBody>, Response = Response<ResBody>> + Clone + Send + 'static,
        <L::Service as tower::Service<Request<ServerBody>>>::Future: Send,
        <L::Service as tower::Service<Request<ServerBody>>>::Error: Into<BoxError> + Send,
        ResBody: compat::HttpBody<Data = Bytes> + Send + 'static,
        ResBody::Error: Into<BoxError>,
    {
        let _incoming = incoming;
        let names = self.names();
        self.server.serve_until(self.routes.prepare(), names, pending()).await
    }

    /// Serves them until the signal comes; the connections are not looked at.
    ///
    /// # Errors
    /// None.
    pub async fn serve_with_incoming_shutdown<I, IO, IE, F, ResBody>(self, incoming: I, signal: F) -> Result<(), Error>
    where
        I: Stream<Item = Result<IO, IE>>,
        F: Future<Output = ()>,
        L: Layer<compat::Routes>,
        L::Service: tower::Service<Request<ServerBody>, Response = Response<ResBody>> + Clone + Send + 'static,
        <L::Service as tower::Service<Request<ServerBody>>>::Future: Send,
        <L::Service as tower::Service<Request<ServerBody>>>::Error: Into<BoxError> + Send,
        ResBody: compat::HttpBody<Data = Bytes> + Send + 'static,
        ResBody::Error: Into<BoxError>,
    {
        let _incoming = incoming;
        let names = self.names();
        self.server.serve_until(self.routes.prepare(), names, signal).await
    }

    /// The services within their layers.
    pub fn into_service<ResBody>(self) -> L::Service
    where
        L: Layer<compat::Routes>,
        L::Service: tower::Service<Request<ServerBody>, Response = Response<ResBody>> + Clone + Send + 'static,
        <L::Service as tower::Service<Request<ServerBody>>>::Future: Send + 'static,
        <L::Service as tower::Service<Request<ServerBody>>>::Error: Into<BoxError> + Send,
        ResBody: compat::HttpBody<Data = Bytes> + Send + 'static,
        ResBody::Error: Into<BoxError>,
    {
        self.server.service_builder.service(self.routes.prepare())
    }
}

impl<L> fmt::Debug for Server<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder").finish()
    }
}

/// Taken, without meaning.
#[derive(Debug, Clone, Default)]
pub struct ServerTlsConfig(());

impl ServerTlsConfig {
    /// One.
    pub fn new() -> Self {
        Self::default()
    }

    without_meaning!(
        identity(tls::Identity),
        client_ca_root(tls::Certificate),
        client_auth_optional(bool),
        ignore_client_order(bool),
        timeout(Duration),
    );

    /// Taken, without meaning.
    #[must_use]
    pub fn use_key_log(self) -> Self {
        self
    }
}
