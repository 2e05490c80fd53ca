//! From a URL to a connection: the name is looked at, resolved, and looked at again; then TCP, and TLS where it is to be.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use hyper::Uri;
use hyper::http::uri::Scheme;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::OnceCell;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, pem};
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};
use tower_service::Service;

use super::{Allowed, names};
use crate::tls::{HTTP2, MaybeTls};

/// A connection to a server.
type Stream = MaybeTls<TlsStream<TcpStream>>;

/// How long a connection may take to make, its name and TLS included.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);

tokio::task_local! {
    /// How long connections of this request may take to make, where that is less.
    pub(super) static TIME: Duration;
}

/// What of reaching a server failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Its name has no address.
    Name,
    /// It refuses connections.
    Refused,
    /// The server does not prove its identity, or speaks no TLS.
    Tls,
    /// Anything else.
    Other,
}

/// Why there is no response.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// The host is not among those that the function may ask.
    #[error("{host}:{port} is not in the function's `http_hosts`")]
    NotAllowed {
        /// Its name.
        host: String,
        /// Its port.
        port: u16,
    },
    /// Its name leads to where no name leads by itself.
    #[error("{host}:{port} is {address}, which is no public address and not in the function's `http_hosts`")]
    AddressNotAllowed {
        /// Its name.
        host: String,
        /// Its port.
        port: u16,
        /// The address.
        address: IpAddr,
    },
    /// It cannot be reached.
    #[error("{host}:{port} cannot be reached: {why}")]
    Unreachable {
        /// Its name.
        host: String,
        /// Its port.
        port: u16,
        /// What failed.
        cause: Cause,
        /// Why.
        why: String,
    },
    /// No connection was made in time.
    #[error("connecting took too long")]
    ConnectTimeout,
    /// It took too long.
    #[error("{0} took too long")]
    Timeout(&'static str),
    /// The server has given the request up.
    #[error("the server has reset the stream: {0}")]
    Reset(h2::Reason),
    /// It cannot be recorded, to be sent after the commit of its transaction.
    #[error("a request of {bytes} bytes cannot be recorded: {why}")]
    NotRecorded {
        /// How large it is.
        bytes: usize,
        /// Why.
        why: String,
    },
    /// The connection broke, or it is not HTTP that comes.
    #[error("{0}")]
    Broken(String),
}

/// Why certificates cannot be checked.
#[derive(Debug, thiserror::Error)]
#[error("http_ca_file: {}: {source}", path.display())]
pub struct RootsError {
    path: PathBuf,
    source: pem::Error,
}

/// The authorities that are believed: the system's authorities, which are read when they are first needed, and those that the configuration names.
#[derive(Debug, Default)]
pub struct Roots {
    own: Vec<CertificateDer<'static>>,
    client: OnceCell<Arc<ClientConfig>>,
    /// The same to speak HTTP/2.
    http2: OnceCell<Arc<ClientConfig>>,
}

impl Roots {
    pub(super) fn new(ca_file: Option<&Path>) -> Result<Roots, RootsError> {
        let Some(path) = ca_file else { return Ok(Roots::default()) };
        let own = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let own = own.and_then(|own| if own.is_empty() { Err(pem::Error::NoItemsFound) } else { Ok(own) });
        Ok(Roots { own: own.map_err(|source| RootsError { path: path.to_owned(), source })?, ..Roots::default() })
    }

    /// All of them, as PEM. Reads the system's.
    #[must_use]
    pub fn to_pem(&self) -> String {
        // What rustls cannot read is of no use to it.
        let is_read = |certificate: &CertificateDer<'static>| RootCertStore::empty().add(certificate.clone()).is_ok();
        let all = system_authorities().into_iter().chain(self.own.iter().cloned());
        all.filter(is_read).map(|certificate| to_pem(&certificate)).collect()
    }

    async fn connector(&self, is_http2: bool) -> Result<TlsConnector, String> {
        if is_http2 {
            let http2 = self.http2.get_or_try_init(|| async {
                let mut config = ClientConfig::clone(self.client().await?);
                config.alpn_protocols = vec![HTTP2.to_vec()];
                Ok::<_, String>(Arc::new(config))
            });
            return http2.await.map(|config| TlsConnector::from(Arc::clone(config)));
        }
        self.client().await.map(|config| TlsConnector::from(Arc::clone(config)))
    }

    async fn client(&self) -> Result<&Arc<ClientConfig>, String> {
        let client = self.client.get_or_try_init(|| async {
            let own = self.own.clone();
            let made = tokio::task::spawn_blocking(move || client_config(own)).await;
            made.map_err(|error| error.to_string())?.map_err(|error| error.to_string()).map(Arc::new)
        });
        client.await
    }
}

fn system_authorities() -> Vec<CertificateDer<'static>> {
    let native = rustls_native_certs::load_native_certs();
    for error in &native.errors {
        tracing::warn!(%error, "the system's certificate authorities");
    }
    native.certs
}

/// A certificate as PEM (RFC 7468).
fn to_pem(certificate: &CertificateDer<'_>) -> String {
    format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", BASE64_STANDARD.encode(certificate))
}

fn client_config(own: Vec<CertificateDer<'static>>) -> Result<ClientConfig, rustls::Error> {
    let mut store = RootCertStore::empty();
    // What rustls cannot read is of no use to it.
    store.add_parsable_certificates(system_authorities());
    for certificate in own {
        store.add(certificate)?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(builder.with_root_certificates(store).with_no_client_auth())
}

/// The host that a URL names, and the port that it means.
#[must_use]
pub fn host_and_port(uri: &Uri) -> Option<(&str, u16)> {
    let default = if uri.scheme() == Some(&Scheme::HTTPS) { 443 } else { 80 };
    Some((uri.host()?, uri.port_u16().unwrap_or(default)))
}

/// Makes connections.
#[derive(Clone, Debug)]
pub(super) struct Connector {
    allowed: Arc<Allowed>,
    roots: Arc<Roots>,
    is_http2: bool,
}

impl Connector {
    pub(super) const fn new(allowed: Arc<Allowed>, roots: Arc<Roots>, is_http2: bool) -> Connector {
        Connector { allowed, roots, is_http2 }
    }

    async fn connect(self, uri: Uri) -> Result<TokioIo<Stream>, Failure> {
        let (host, port) = host_and_port(&uri).ok_or_else(|| Failure::Broken("the URL names no host".to_owned()))?;
        let unreachable = |cause: Cause, why: String| Failure::Unreachable { host: host.to_owned(), port, cause, why };
        if !self.allowed.names(host, port) {
            return Err(Failure::NotAllowed { host: host.to_owned(), port });
        }
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let addresses: Vec<SocketAddr> = match bare.parse::<IpAddr>() {
            Ok(address) => vec![(address, port).into()],
            Err(_) => names::addresses(host, port).await.map_err(|error| unreachable(Cause::Name, error.to_string()))?,
        };
        let mut failure = unreachable(Cause::Name, "its name has no address".to_owned());
        for address in addresses {
            if !self.allowed.reaches(address.ip(), port) {
                failure = Failure::AddressNotAllowed { host: host.to_owned(), port, address: address.ip() };
                continue;
            }
            match TcpStream::connect(address).await {
                Ok(stream) => return self.secured(&uri, bare, stream).await.map_err(|why| unreachable(Cause::Tls, why)),
                Err(error) => {
                    let is_refused = error.kind() == io::ErrorKind::ConnectionRefused;
                    failure = unreachable(if is_refused { Cause::Refused } else { Cause::Other }, error.to_string());
                }
            }
        }
        Err(failure)
    }

    async fn secured(&self, uri: &Uri, host: &str, stream: TcpStream) -> Result<TokioIo<Stream>, String> {
        stream.set_nodelay(true).map_err(|error| error.to_string())?;
        if uri.scheme() != Some(&Scheme::HTTPS) {
            return Ok(TokioIo::new(Stream::Plain(stream)));
        }
        let name = ServerName::try_from(host.to_owned()).map_err(|error| error.to_string())?;
        let stream = self.roots.connector(self.is_http2).await?.connect(name, stream).await.map_err(|error| error.to_string())?;
        Ok(TokioIo::new(Stream::Tls(Box::new(stream))))
    }
}

impl Connection for Stream {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl Service<Uri> for Connector {
    type Response = TokioIo<Stream>;
    type Error = Failure;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Failure>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connect = self.clone().connect(uri);
        let time = TIME.try_with(|time| *time).map_or(CONNECT_TIME_MAX, |time| time.min(CONNECT_TIME_MAX));
        Box::pin(async move {
            match tokio::time::timeout(time, connect).await {
                Ok(connected) => connected,
                Err(_) => Err(Failure::ConnectTimeout),
            }
        })
    }
}
