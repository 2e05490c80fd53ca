//! TLS: certificate, key, and the protocols on offer.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{self, ServerConfig};
use tokio_rustls::server::TlsStream;

const HTTP2: &[u8] = b"h2";
const HTTP1: &[u8] = b"http/1.1";

/// Why TLS cannot be spoken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file holds no certificate or no key.
    #[error("{key}: {}: {source}", path.display())]
    Pem {
        /// The configuration's key.
        key: &'static str,
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: rustls::pki_types::pem::Error,
    },
    /// They do not fit together.
    #[error("tls_certificate_file {} and tls_key_file {}: {source}", certificate.display(), key.display())]
    Pair {
        /// The certificate's file.
        certificate: PathBuf,
        /// The key's.
        key: PathBuf,
        /// What is wrong.
        source: rustls::Error,
    },
}

/// Reads a certificate (with those that lead to its root) and its key, both in PEM.
///
/// # Errors
/// When they cannot be read, or do not fit together.
pub fn acceptor(certificate: &Path, key: &Path) -> Result<TlsAcceptor, TlsError> {
    let pem = |key, path: &Path| {
        let path = path.to_owned();
        move |source| TlsError::Pem { key, path, source }
    };
    let chain = CertificateDer::pem_file_iter(certificate).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let chain = chain.map_err(pem("tls_certificate_file", certificate))?;
    let private = PrivateKeyDer::from_pem_file(key).map_err(pem("tls_key_file", key))?;
    let pair = |source| TlsError::Pair { certificate: certificate.to_owned(), key: key.to_owned(), source };
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
