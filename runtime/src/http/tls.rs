//! TLS: certificate, key, and the protocols on offer; and streams with and without.

use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{self, ServerConfig};
use tokio_rustls::server::TlsStream;

use crate::config::{Secret, SecretError};

const HTTP2: &[u8] = b"h2";
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

/// Reads a certificate (with those that lead to its root) and its key, both in PEM.
///
/// # Errors
/// When they cannot be read, or do not fit together.
pub fn acceptor(certificate: &Path, key: &Secret) -> Result<TlsAcceptor, TlsError> {
    let chain = CertificateDer::pem_file_iter(certificate).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let chain = chain.map_err(|source| TlsError::Certificate { path: certificate.to_owned(), source })?;
    let text = key.read("tls_key")?;
    let private =
        PrivateKeyDer::from_pem_slice(text.as_bytes()).map_err(|source| TlsError::Key { place: key.clone(), source })?;
    let pair = |source| TlsError::Pair { certificate: certificate.to_owned(), key: key.clone(), source };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().map_err(pair)?;
    let mut config = builder.with_no_client_auth().with_single_cert(chain, private).map_err(pair)?;
    config.alpn_protocols = vec![HTTP2.to_vec(), HTTP1.to_vec()];
    Ok(Arc::new(config).into())
}

/// Whether both sides agreed to speak HTTP/2.
pub(super) fn is_http2(stream: &TlsStream<TcpStream>) -> bool {
    stream.get_ref().1.alpn_protocol() == Some(HTTP2)
}

/// A client's connection.
pub(super) type Stream = MaybeTls<TlsStream<TcpStream>>;

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
