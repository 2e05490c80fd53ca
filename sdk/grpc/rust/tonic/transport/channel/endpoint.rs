//! Builds channels.

use std::fmt;
use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::str::FromStr;
use std::time::Duration;

use bytes::Bytes;
use http::uri::Uri;
use http::HeaderValue;
use tower_service::Service;

use super::super::compat::{BoxError, Executor, Io};
use super::super::error::Error;
use super::super::tls::without_meaning;
use super::{Channel, ClientTlsConfig};

const USER_AGENT: &str = concat!("tonic/", env!("CARGO_PKG_VERSION"));

/// Builds a channel.
#[derive(Clone)]
pub struct Endpoint {
    uri: Uri,
    user_agent: HeaderValue,
    timeout: Option<Duration>,
    concurrency_limit: Option<usize>,
    connect_timeout: Option<Duration>,
    tcp_nodelay: bool,
    tcp_keepalive: Option<Duration>,
    tcp_keepalive_interval: Option<Duration>,
    tcp_keepalive_retries: Option<u32>,
}

impl Endpoint {
    /// Takes what can be one.
    ///
    /// # Errors
    /// When it is no URI.
    #[doc(hidden)]
    pub fn new<D>(dst: D) -> Result<Self, Error>
    where
        D: TryInto<Self>,
        D::Error: Into<BoxError>,
    {
        dst.try_into().map_err(|error| Error::from_source(error.into()))
    }

    fn of(uri: Uri) -> Self {
        Self {
            uri,
            user_agent: HeaderValue::from_static(USER_AGENT),
            timeout: None,
            concurrency_limit: None,
            connect_timeout: None,
            tcp_nodelay: true,
            tcp_keepalive: None,
            tcp_keepalive_interval: None,
            tcp_keepalive_retries: None,
        }
    }

    /// Takes a URI.
    ///
    /// # Panics
    /// When it is none.
    pub fn from_static(s: &'static str) -> Self {
        if s.starts_with("unix:") {
            return Self::of(Uri::from_static("http://tonic"));
        }
        Self::of(Uri::from_static(s))
    }

    /// Takes a URI.
    ///
    /// # Errors
    /// When it is none.
    pub fn from_shared(s: impl Into<Bytes>) -> Result<Self, Error> {
        let bytes: Bytes = s.into();
        if bytes.starts_with(b"unix:") {
            return Ok(Self::from_static("unix:"));
        }
        let text = std::str::from_utf8(&bytes).map_err(|error| Error::new_invalid_uri().with(error))?;
        Ok(Self::of(Uri::from_str(text).map_err(|error| Error::new_invalid_uri().with(error))?))
    }

    /// What the callee is told of the client.
    ///
    /// # Errors
    /// When no header can say it.
    pub fn user_agent<T>(self, user_agent: T) -> Result<Self, Error>
    where
        T: TryInto<HeaderValue>,
    {
        let own = user_agent.try_into().map_err(|_| Error::new_invalid_user_agent())?;
        let mut all = Vec::with_capacity(own.len() + 1 + USER_AGENT.len());
        all.extend_from_slice(own.as_bytes());
        all.push(b' ');
        all.extend_from_slice(USER_AGENT.as_bytes());
        let user_agent = HeaderValue::from_bytes(&all).map_err(|_| Error::new_invalid_user_agent())?;
        Ok(Self { user_agent, ..self })
    }

    /// How long each call may take.
    #[must_use]
    pub fn timeout(self, dur: Duration) -> Self {
        Self { timeout: Some(dur), ..self }
    }

    /// How many calls may run at once.
    #[must_use]
    pub fn concurrency_limit(self, limit: usize) -> Self {
        Self { concurrency_limit: Some(limit), ..self }
    }

    /// Kept, without meaning.
    #[must_use]
    pub fn connect_timeout(self, dur: Duration) -> Self {
        Self { connect_timeout: Some(dur), ..self }
    }

    /// Kept, without meaning.
    #[must_use]
    pub fn tcp_nodelay(self, tcp_nodelay: bool) -> Self {
        Self { tcp_nodelay, ..self }
    }

    /// Kept, without meaning.
    #[must_use]
    pub fn tcp_keepalive(self, tcp_keepalive: Option<Duration>) -> Self {
        Self { tcp_keepalive, ..self }
    }

    /// Kept, without meaning.
    #[must_use]
    pub fn tcp_keepalive_interval(self, tcp_keepalive_interval: Option<Duration>) -> Self {
        Self { tcp_keepalive_interval, ..self }
    }

    /// Kept, without meaning.
    #[must_use]
    pub fn tcp_keepalive_retries(self, tcp_keepalive_retries: Option<u32>) -> Self {
        Self { tcp_keepalive_retries, ..self }
    }

    without_meaning!(
        origin(Uri),
        initial_stream_window_size(impl Into<Option<u32>>),
        initial_connection_window_size(impl Into<Option<u32>>),
        buffer_size(impl Into<Option<usize>>),
        http2_keep_alive_interval(Duration),
        keep_alive_timeout(Duration),
        keep_alive_while_idle(bool),
        http2_adaptive_window(bool),
        http2_header_table_size(u32),
        http2_max_header_list_size(u32),
        http2_max_concurrent_reset_streams(usize),
        http2_reset_stream_duration(Duration),
        http2_max_local_error_reset_streams(impl Into<Option<usize>>),
        max_frame_size(impl Into<Option<u32>>),
        local_address(Option<IpAddr>),
    );

    /// Taken, without meaning.
    #[must_use]
    pub fn rate_limit(self, _: u64, _: Duration) -> Self {
        self
    }

    /// Taken, without meaning.
    #[must_use]
    pub fn executor<E>(self, _: E) -> Self
    where
        E: Executor<Pin<Box<dyn Future<Output = ()> + Send>>> + Send + Sync + 'static,
    {
        self
    }

    /// Taken, without meaning.
    ///
    /// # Errors
    /// None.
    pub fn tls_config(self, _: ClientTlsConfig) -> Result<Self, Error> {
        Ok(self)
    }

    /// A channel. Whether there is an edge is known with the first call.
    ///
    /// # Errors
    /// None.
    pub async fn connect(&self) -> Result<Channel, Error> {
        Ok(self.connect_lazy())
    }

    /// A channel.
    pub fn connect_lazy(&self) -> Channel {
        Channel::of(self.timeout, self.user_agent.clone(), self.concurrency_limit)
    }

    /// A channel that does not ask the connector.
    ///
    /// # Errors
    /// None.
    pub async fn connect_with_connector<C>(&self, _: C) -> Result<Channel, Error>
    where
        C: Service<Uri> + Send + 'static,
        C::Response: Io,
        C::Future: Send,
        BoxError: From<C::Error> + Send,
    {
        Ok(self.connect_lazy())
    }

    /// A channel that does not ask the connector.
    pub fn connect_with_connector_lazy<C>(&self, _: C) -> Channel
    where
        C: Service<Uri> + Send + 'static,
        C::Response: Io,
        C::Future: Send,
        BoxError: From<C::Error> + Send,
    {
        self.connect_lazy()
    }

    /// The address, which has no meaning.
    pub fn uri(&self) -> &Uri {
        &self.uri
    }

    /// What was set.
    pub fn get_tcp_nodelay(&self) -> bool {
        self.tcp_nodelay
    }

    /// What was set.
    pub fn get_connect_timeout(&self) -> Option<Duration> {
        self.connect_timeout
    }

    /// What was set.
    pub fn get_tcp_keepalive(&self) -> Option<Duration> {
        self.tcp_keepalive
    }

    /// What was set.
    pub fn get_tcp_keepalive_interval(&self) -> Option<Duration> {
        self.tcp_keepalive_interval
    }

    /// What was set.
    pub fn get_tcp_keepalive_retries(&self) -> Option<u32> {
        self.tcp_keepalive_retries
    }
}

impl From<Uri> for Endpoint {
    fn from(uri: Uri) -> Self {
        Self::of(uri)
    }
}

impl TryFrom<Bytes> for Endpoint {
    type Error = Error;

    fn try_from(t: Bytes) -> Result<Self, Error> {
        Self::from_shared(t)
    }
}

impl TryFrom<String> for Endpoint {
    type Error = Error;

    fn try_from(t: String) -> Result<Self, Error> {
        Self::from_shared(t.into_bytes())
    }
}

impl TryFrom<&'static str> for Endpoint {
    type Error = Error;

    fn try_from(t: &'static str) -> Result<Self, Error> {
        Self::from_shared(t.as_bytes())
    }
}

impl FromStr for Endpoint {
    type Err = Error;

    fn from_str(s: &str) -> Result<Self, Error> {
        Self::try_from(s.to_owned())
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").finish()
    }
}
