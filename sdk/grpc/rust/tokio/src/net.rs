//! Sockets: a function has none. A listener listens, and nothing comes: requests come to the server whose address is ignored. A connection is refused.

use std::future::pending;
use std::io::{self, IoSlice};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio_original::io::{AsyncRead, AsyncWrite, ReadBuf};

fn none<T>() -> io::Result<T> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "a function has no sockets of its own: it calls other services by gRPC"))
}

mod sealed {
    pub trait Sealed {
        fn first(&self) -> std::io::Result<std::net::SocketAddr>;
    }
}

/// What names an address. Names of hosts are not looked up.
pub trait ToSocketAddrs: sealed::Sealed {}

macro_rules! addresses {
    ($($kind:ty: |$value:ident| $address:expr;)*) => {
        $(
            impl ToSocketAddrs for $kind {}

            impl sealed::Sealed for $kind {
                fn first(&self) -> io::Result<SocketAddr> {
                    let $value = self;
                    $address
                }
            }
        )*
    };
}

addresses! {
    SocketAddr: |a| Ok(*a);
    SocketAddrV4: |a| Ok((*a).into());
    SocketAddrV6: |a| Ok((*a).into());
    (IpAddr, u16): |a| Ok((*a).into());
    (Ipv4Addr, u16): |a| Ok((*a).into());
    (Ipv6Addr, u16): |a| Ok((*a).into());
    str: |a| named(a);
    String: |a| named(a);
    (&str, u16): |a| named(&format!("{}:{}", a.0, a.1));
    (String, u16): |a| named(&format!("{}:{}", a.0, a.1));
    [SocketAddr]: |a| a.iter().next().copied().ok_or_else(|| io::ErrorKind::InvalidInput.into());
    Vec<SocketAddr>: |a| a.iter().next().copied().ok_or_else(|| io::ErrorKind::InvalidInput.into());
}

impl<T: ToSocketAddrs + ?Sized> ToSocketAddrs for &T {}

impl<T: ToSocketAddrs + ?Sized> sealed::Sealed for &T {
    fn first(&self) -> io::Result<SocketAddr> {
        (**self).first()
    }
}

/// An address; a host's name counts as any address.
fn named(text: &str) -> io::Result<SocketAddr> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let port = text.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
    let port = port.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "invalid socket address"))?;
    Ok(SocketAddr::from(([0, 0, 0, 0], port)))
}

/// The addresses of a host, which are not looked up.
///
/// # Errors
/// When it is none.
pub async fn lookup_host<T: ToSocketAddrs>(host: T) -> io::Result<impl Iterator<Item = SocketAddr>> {
    Ok(std::iter::once(host.first()?))
}

/// It listens, and nothing comes.
#[derive(Debug)]
pub struct TcpListener(SocketAddr);

impl TcpListener {
    /// Always succeeds.
    ///
    /// # Errors
    /// When that is no address.
    pub async fn bind<A: ToSocketAddrs>(address: A) -> io::Result<TcpListener> {
        Ok(TcpListener(address.first()?))
    }

    /// Never comes.
    ///
    /// # Errors
    /// None.
    pub async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        pending().await
    }

    /// Never comes.
    pub fn poll_accept(&self, _: &mut Context<'_>) -> Poll<io::Result<(TcpStream, SocketAddr)>> {
        Poll::Pending
    }

    /// The address that was asked for.
    ///
    /// # Errors
    /// None.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.0)
    }

    /// Takes its address.
    ///
    /// # Errors
    /// When it has none.
    pub fn from_std(listener: std::net::TcpListener) -> io::Result<TcpListener> {
        listener.local_addr().map(TcpListener)
    }

    /// Accepted, without meaning.
    ///
    /// # Errors
    /// None.
    pub fn set_ttl(&self, _: u32) -> io::Result<()> {
        Ok(())
    }
}

macro_rules! stream {
    ($name:ident, $what:literal) => {
        #[doc = $what]
        #[derive(Debug)]
        pub struct $name(());

        impl AsyncRead for $name {
            fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
                Poll::Ready(none())
            }
        }

        impl AsyncWrite for $name {
            fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, _: &[u8]) -> Poll<io::Result<usize>> {
                Poll::Ready(none())
            }

            fn poll_write_vectored(self: Pin<&mut Self>, _: &mut Context<'_>, _: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
                Poll::Ready(none())
            }

            fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
                Poll::Ready(none())
            }

            fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
                Poll::Ready(none())
            }
        }
    };
}

stream!(TcpStream, "A connection that there never is.");
stream!(UnixStream, "A connection that there never is.");

impl TcpStream {
    /// # Errors
    /// Always.
    pub async fn connect<A: ToSocketAddrs>(_: A) -> io::Result<TcpStream> {
        none()
    }

    /// # Errors
    /// Always.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        none()
    }

    /// # Errors
    /// Always.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        none()
    }

    /// # Errors
    /// None.
    pub fn set_nodelay(&self, _: bool) -> io::Result<()> {
        Ok(())
    }

    /// # Errors
    /// Always.
    pub fn nodelay(&self) -> io::Result<bool> {
        none()
    }
}

impl UnixStream {
    /// # Errors
    /// Always.
    pub async fn connect<P: AsRef<std::path::Path>>(_: P) -> io::Result<UnixStream> {
        none()
    }
}

/// It listens, and nothing comes.
#[derive(Debug)]
pub struct UnixListener(());

impl UnixListener {
    /// Always succeeds.
    ///
    /// # Errors
    /// None.
    pub fn bind<P: AsRef<std::path::Path>>(_: P) -> io::Result<UnixListener> {
        Ok(UnixListener(()))
    }

    /// Never comes.
    ///
    /// # Errors
    /// None.
    pub async fn accept(&self) -> io::Result<(UnixStream, unix::SocketAddr)> {
        pending().await
    }

    /// Never comes.
    pub fn poll_accept(&self, _: &mut Context<'_>) -> Poll<io::Result<(UnixStream, unix::SocketAddr)>> {
        Poll::Pending
    }
}

/// Datagrams: there are none.
#[derive(Debug)]
pub struct UdpSocket(());

impl UdpSocket {
    /// # Errors
    /// Always.
    pub async fn bind<A: ToSocketAddrs>(_: A) -> io::Result<UdpSocket> {
        none()
    }
}

/// Of Unix sockets.
pub mod unix {
    /// An address that there never is.
    #[derive(Debug, Clone)]
    pub struct SocketAddr(());

    /// Credentials that there never are.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct UCred(());
}
