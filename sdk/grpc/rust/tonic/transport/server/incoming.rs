//! Connections that never come.

use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio_stream::Stream;

use super::super::tls::without_meaning;

/// A stream of connections, of which none comes.
#[derive(Debug)]
pub struct TcpIncoming {
    address: SocketAddr,
}

impl TcpIncoming {
    /// Always succeeds.
    ///
    /// # Errors
    /// None.
    pub fn bind(address: SocketAddr) -> std::io::Result<Self> {
        Ok(Self { address })
    }

    without_meaning!(
        with_nodelay(Option<bool>),
        with_keepalive(Option<Duration>),
        with_keepalive_interval(Option<Duration>),
        with_keepalive_retries(Option<u32>),
    );

    /// The address that was asked for.
    ///
    /// # Errors
    /// None.
    pub fn local_addr(&self) -> std::io::Result<SocketAddr> {
        Ok(self.address)
    }

    /// Up to tonic 0.12.
    ///
    /// # Errors
    /// None.
    pub fn new(address: SocketAddr, _: bool, _: Option<Duration>) -> Result<Self, crate::transport::compat::BoxError> {
        Ok(Self { address })
    }

    /// Up to tonic 0.12.
    ///
    /// # Errors
    /// When it has no address.
    pub fn from_listener(
        listener: TcpListener,
        _: bool,
        _: Option<Duration>,
    ) -> Result<Self, crate::transport::compat::BoxError> {
        Ok(Self { address: listener.local_addr()? })
    }
}

impl From<TcpListener> for TcpIncoming {
    fn from(listener: TcpListener) -> Self {
        Self { address: listener.local_addr().unwrap_or_else(|_| SocketAddr::from(([0, 0, 0, 0], 0))) }
    }
}

impl Stream for TcpIncoming {
    type Item = std::io::Result<TcpStream>;

    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Pending
    }
}
