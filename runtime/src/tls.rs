//! TLS: certificate, key, and the protocols on offer; how they are exchanged while connections are made; and streams with and without.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, PoisonError, RwLock};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{self, ServerConfig};
use tokio_rustls::server::TlsStream;

use crate::secret::{Secret, SecretError};

/// HTTP/2, as a handshake names it.
pub(crate) const HTTP2: &[u8] = b"h2";
const HTTP1: &[u8] = b"http/1.1";

/// Why TLS cannot be spoken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file holds no certificate.
    #[error("tls_certificate_file: {}: {source}", path.display())]
    Certificate {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: rustls::pki_types::pem::Error,
    },
    /// The key cannot be had.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// It is none.
    #[error("tls_key: {place}: {source}")]
    Key {
        /// Where it is.
        place: Secret,
        /// What is wrong.
        source: rustls::pki_types::pem::Error,
    },
    /// They do not fit together.
    #[error("tls_certificate_file {} and tls_key {key}: {source}", certificate.display())]
    Pair {
        /// The certificate's file.
        certificate: PathBuf,
        /// Where the key is.
        key: Secret,
        /// What is wrong.
        source: rustls::Error,
    },
}

/// A certificate (with those that lead to its root) and its key, ready to be used.
#[derive(Clone)]
pub struct Pair {
    acceptor: TlsAcceptor,
    /// Of both files, so that what has not changed is known.
    digest: blake3::Hash,
}

impl fmt::Debug for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pair").finish_non_exhaustive()
    }
}

impl Pair {
    /// Reads both, in PEM.
    ///
    /// # Errors
    /// When they cannot be read, or do not fit together: everything that is wrong.
    pub fn read(certificate: &Path, key: &Secret) -> Result<Pair, Vec<TlsError>> {
        let chain = CertificateDer::pem_file_iter(certificate).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let chain = chain.map_err(|source| TlsError::Certificate { path: certificate.to_owned(), source });
        match (chain, private_key(key)) {
            (Ok(chain), Ok(private)) => {
                let pair = |source| vec![TlsError::Pair { certificate: certificate.to_owned(), key: key.clone(), source }];
                Pair::new(chain, private).map_err(pair)
            }
            (chain, private) => Err(chain.err().into_iter().chain(private.err()).collect()),
        }
    }

    fn new(chain: Vec<CertificateDer<'static>>, private: PrivateKeyDer<'static>) -> Result<Pair, rustls::Error> {
        let mut hasher = blake3::Hasher::new();
        for part in chain.iter().map(AsRef::as_ref).chain([private.secret_der()]) {
            hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
        let mut config = builder.with_no_client_auth().with_single_cert(chain, private)?;
        config.alpn_protocols = vec![HTTP2.to_vec(), HTTP1.to_vec()];
        Ok(Pair { acceptor: Arc::new(config).into(), digest: hasher.finalize() })
    }
}

fn private_key(place: &Secret) -> Result<PrivateKeyDer<'static>, TlsError> {
    let text = place.read("tls_key")?;
    PrivateKeyDer::from_pem_slice(text.as_bytes()).map_err(|source| TlsError::Key { place: place.clone(), source })
}

/// The pair that new connections get. Those that are there keep theirs.
#[derive(Debug)]
pub struct Current(RwLock<Pair>);

impl Current {
    /// Begins with that one.
    #[must_use]
    pub const fn new(pair: Pair) -> Current {
        Current(RwLock::new(pair))
    }

    /// Takes another one; whether it is another.
    pub fn replace(&self, pair: Pair) -> bool {
        let mut current = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let is_other = current.digest != pair.digest;
        if is_other {
            // With it go the sessions that could be resumed without a look at the new certificate.
            *current = pair;
        }
        is_other
    }

    /// What makes a connection with it.
    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        self.0.read().unwrap_or_else(PoisonError::into_inner).acceptor.clone()
    }
}

/// Whether both sides agreed to speak HTTP/2.
pub(crate) fn is_http2(stream: &TlsStream<TcpStream>) -> bool {
    stream.get_ref().1.alpn_protocol() == Some(HTTP2)
}

/// A client's connection.
pub(crate) type Stream = MaybeTls<TlsStream<TcpStream>>;

/// A connection's stream, with TLS or without. One type for both kinds, so that there is one HTTP for both.
#[derive(Debug)]
pub(crate) enum MaybeTls<T> {
    Plain(TcpStream),
    Tls(Box<T>),
}

/// Does the same with whichever it is.
macro_rules! with {
    ($stream:expr, $inner:ident => $what:expr) => {
        match $stream {
            MaybeTls::Plain($inner) => $what,
            MaybeTls::Tls($inner) => $what,
        }
    };
}

impl<T: AsyncRead + Unpin> AsyncRead for MaybeTls<T> {
    fn poll_read(mut self: Pin<&mut Self>, task: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        with!(&mut *self, stream => Pin::new(stream).poll_read(task, into))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for MaybeTls<T> {
    fn poll_write(mut self: Pin<&mut Self>, task: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        with!(&mut *self, stream => Pin::new(stream).poll_write(task, bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        with!(&mut *self, stream => Pin::new(stream).poll_write_vectored(task, buffers))
    }

    fn is_write_vectored(&self) -> bool {
        with!(self, stream => stream.is_write_vectored())
    }

    fn poll_flush(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        with!(&mut *self, stream => Pin::new(stream).poll_flush(task))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        with!(&mut *self, stream => Pin::new(stream).poll_shutdown(task))
    }
}
