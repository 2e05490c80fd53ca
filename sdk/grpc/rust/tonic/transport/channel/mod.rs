//! A channel: calls of services, wherever they are. Addresses have no meaning: the host has an edge for each service.

mod body;
mod call;
mod endpoint;
#[allow(dead_code)]
mod unary;

use std::fmt;
use std::future::Future;
use std::hash::Hash;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::uri::{InvalidUri, Uri};
use http::{HeaderValue, Request, Response};
use pin_project::pin_project;
use tokio::sync::mpsc::{channel, Sender};
use tokio::sync::Semaphore;
use tower_service::Service;

use self::call::{Caller, Calling};
use super::compat::{BoxError, CallBody, CallReplyBody, Executor, Io};
use super::error::Error;
use super::service::{grpc_timeout, GrpcTimeout};
use super::tls::{self, without_meaning};

pub use self::endpoint::Endpoint;
#[allow(unused_imports)]
pub(crate) use self::unary::{Made, Reply};

type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

const BALANCED: usize = 1024;

/// What is said of the endpoints of a balanced channel.
#[derive(Debug, Clone)]
pub enum Change<K, V> {
    /// There is one more.
    Insert(K, V),
    /// There is one less.
    Remove(K),
}

/// Calls services.
#[derive(Clone)]
pub struct Channel {
    timeout: Option<Duration>,
    caller: Caller,
    /// The headers of calls without metadata, as rows.
    agent_rows: Arc<[u8]>,
}

/// A call under way.
#[pin_project]
pub struct ResponseFuture {
    #[pin]
    inner: grpc_timeout::ResponseFuture<Calling>,
}

impl Channel {
    /// Begins to build one.
    pub fn builder(uri: Uri) -> Endpoint {
        Endpoint::from(uri)
    }

    /// Begins to build one.
    pub fn from_static(s: &'static str) -> Endpoint {
        Self::builder(Uri::from_static(s))
    }

    /// Begins to build one.
    ///
    /// # Errors
    /// When it is no URI.
    pub fn from_shared(s: impl Into<Bytes>) -> Result<Endpoint, InvalidUri> {
        Ok(Self::builder(Uri::from_maybe_shared(s.into())?))
    }

    /// One channel for all: edges know no endpoints.
    ///
    /// # Panics
    /// None.
    pub fn balance_list(list: impl Iterator<Item = Endpoint>) -> Self {
        let mut list = list;
        list.next().unwrap_or_else(|| Endpoint::from_static("http://localhost")).connect_lazy()
    }

    /// One channel for all: what is sent there has no meaning.
    pub fn balance_channel<K>(capacity: usize) -> (Self, Sender<Change<K, Endpoint>>)
    where
        K: Hash + Eq + Send + Clone + 'static,
    {
        let (sender, mut receiver) = channel(capacity.max(BALANCED));
        if tokio::runtime::Handle::try_current().is_ok() {
            tokio::spawn(async move { while receiver.recv().await.is_some() {} });
        }
        (Endpoint::from_static("http://localhost").connect_lazy(), sender)
    }

    /// The same.
    pub fn balance_channel_with_executor<K, E>(capacity: usize, _: E) -> (Self, Sender<Change<K, Endpoint>>)
    where
        K: Hash + Eq + Send + Clone + 'static,
        E: Executor<Pin<Box<dyn Future<Output = ()> + Send>>> + Send + Sync + 'static,
    {
        Self::balance_channel(capacity)
    }

    /// A channel that does not ask the connector.
    pub fn new<C>(_: C, endpoint: Endpoint) -> Self
    where
        C: Service<Uri> + Send + 'static,
        C::Error: Into<BoxError> + Send,
        C::Future: Send,
        C::Response: Io,
    {
        endpoint.connect_lazy()
    }

    /// A channel that does not ask the connector.
    ///
    /// # Errors
    /// None.
    pub async fn connect<C>(_: C, endpoint: Endpoint) -> Result<Self, Error>
    where
        C: Service<Uri> + Send + 'static,
        C::Error: Into<BoxError> + Send,
        C::Future: Unpin + Send,
        C::Response: Io,
    {
        endpoint.connect().await
    }

    fn of(timeout: Option<Duration>, user_agent: HeaderValue, limit: Option<usize>) -> Self {
        let limit = limit.map(|limit| Arc::new(Semaphore::new(limit)));
        let agent_rows = unary::agent_rows(&user_agent);
        Self { timeout, caller: Caller { user_agent, timeout, limit }, agent_rows }
    }
}

impl Service<Request<CallBody>> for Channel {
    type Response = Response<CallReplyBody>;
    type Error = Error;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<CallBody>) -> ResponseFuture {
        ResponseFuture { inner: GrpcTimeout::new(self.caller.clone(), self.timeout).call(request) }
    }
}

impl Future for ResponseFuture {
    type Output = Result<Response<CallReplyBody>, Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.project().inner.poll(context).map_err(Error::from_source)
    }
}

impl fmt::Debug for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Channel").finish()
    }
}

impl fmt::Debug for ResponseFuture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish()
    }
}

/// Taken, without meaning: an edge to another machine has the host's certificates.
#[derive(Debug, Clone, Default)]
pub struct ClientTlsConfig(());

impl ClientTlsConfig {
    /// One.
    pub fn new() -> Self {
        Self::default()
    }

    without_meaning!(
        domain_name(impl Into<String>),
        ca_certificate(tls::Certificate),
        ca_certificates(impl IntoIterator<Item = tls::Certificate>),
        identity(tls::Identity),
        assume_http2(bool),
        timeout(Duration),
    );

    /// Taken, without meaning.
    #[must_use]
    pub fn with_native_roots(self) -> Self {
        self
    }

    /// Taken, without meaning.
    #[must_use]
    pub fn with_webpki_roots(self) -> Self {
        self
    }

    /// Taken, without meaning.
    #[must_use]
    pub fn with_enabled_roots(self) -> Self {
        self
    }

    /// Taken, without meaning.
    #[must_use]
    pub fn use_key_log(self) -> Self {
        self
    }
}
