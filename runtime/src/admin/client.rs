//! Asking at the admin API.

use std::io::{self, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use awsm_abi::text;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Either, Full};
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, HOST, HeaderValue};
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use nix::unistd::{Uid, User};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

use super::Address;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long an answer may take to begin, other than that to a deployment: longer than changes that are under way are waited for.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// No server listens at any of the places.
    #[error(
        "no admin API at {} ({source}); is the server running? The server's log has the address; give it with --admin",
        places(addresses)
    )]
    Absent {
        /// Where it could have been.
        addresses: Vec<Address>,
        /// Why none was reached at the last of them.
        source: io::Error,
    },
    /// There is one, for others.
    #[error("permission denied for the admin API at {}: only {} may use it; run this command as that user, or with sudo", path.display(), owner(path))]
    Denied {
        /// Its socket.
        path: PathBuf,
    },
    /// No server can be reached there.
    #[error("cannot connect to the admin API at {address}: {source}")]
    Connect {
        /// Where.
        address: Address,
        /// Why not.
        source: io::Error,
    },
    /// A server is there, but does not answer.
    #[error("the admin API at {address} did not answer for {} s: it has too many clients, or the server is busy with changes; try again", ANSWER_TIMEOUT.as_secs())]
    Silent {
        /// Where.
        address: Address,
    },
    /// The connection failed.
    #[error("the server sent an invalid answer: {0}")]
    Http(#[from] hyper::Error),
    /// No request.
    #[error("cannot send the request: {0}")]
    Request(#[from] hyper::http::Error),
    /// The system refuses.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The answer cannot be written to where it is wanted.
    #[error("cannot write the answer: {0}")]
    Output(#[source] io::Error),
    /// The server refuses.
    #[error("{0}")]
    Refused(String),
}

/// A client of the admin API.
#[derive(Clone, Debug)]
pub struct Client {
    addresses: Vec<Address>,
    authorization: Option<HeaderValue>,
}

impl Client {
    /// For the admin API at the first of these addresses at which there is one, with the token that it asks for, if it does.
    ///
    /// # Errors
    /// When no header can carry the token.
    pub fn new(addresses: Vec<Address>, token: Option<&str>) -> Result<Client, ClientError> {
        let value = |token: &str| HeaderValue::try_from(format!("Bearer {}", token.trim())).map_err(hyper::http::Error::from);
        Ok(Client { addresses, authorization: token.map(value).transpose()? })
    }

    /// Asks, and waits for the whole answer.
    ///
    /// # Errors
    /// When there is none, or the server refuses.
    pub fn ask(&self, request: Request<Full<Bytes>>) -> Result<Value, ClientError> {
        let mut body = Vec::new();
        self.copy(request, &mut body)?;
        Ok(serde_json::from_slice(&body).unwrap_or_default())
    }

    /// Asks, and copies the answer as it comes.
    ///
    /// # Errors
    /// As for [`Client::ask`], and when it cannot be written.
    pub fn copy(&self, mut request: Request<Full<Bytes>>, into: &mut dyn Write) -> Result<(), ClientError> {
        let headers = request.headers_mut();
        headers.insert(HOST, HeaderValue::from_static("sledge"));
        if let Some(authorization) = &self.authorization {
            headers.insert(AUTHORIZATION, authorization.clone());
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let mut absent = io::ErrorKind::NotFound.into();
            for address in &self.addresses {
                let connected = match address {
                    Address::Unix(path) => timeout(CONNECT_TIMEOUT, UnixStream::connect(path)).await.map(|r| r.map(Either::Left)),
                    Address::Tcp(address) => {
                        timeout(CONNECT_TIMEOUT, TcpStream::connect(address)).await.map(|r| r.map(Either::Right))
                    }
                };
                match connected.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
                    Ok(Either::Left(stream)) => return self.exchange(address, stream, request, into).await,
                    Ok(Either::Right(stream)) => return self.exchange(address, stream, request, into).await,
                    Err(error) if is_absent(&error) => absent = error,
                    Err(error) => return Err(failed(address, error)),
                }
            }
            Err(ClientError::Absent { addresses: self.addresses.clone(), source: absent })
        })
    }

    async fn exchange(
        &self,
        address: &Address,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        request: Request<Full<Bytes>>,
        into: &mut dyn Write,
    ) -> Result<(), ClientError> {
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        // A deployment takes as long as compiling does.
        let limit = if request.method() == Method::PUT { Duration::MAX } else { ANSWER_TIMEOUT };
        let silent = |_| ClientError::Silent { address: address.clone() };
        let response = timeout(limit, sender.send_request(request)).await.map_err(silent)??;
        copied(response, into).await
    }
}

/// Whether no server listens there: no socket, or one that a server has left behind.
fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
}

fn failed(address: &Address, source: io::Error) -> ClientError {
    match address {
        Address::Unix(path) if source.kind() == io::ErrorKind::PermissionDenied => ClientError::Denied { path: path.clone() },
        _ => ClientError::Connect { address: address.clone(), source },
    }
}

fn places(addresses: &[Address]) -> String {
    addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// The user that may use a socket: its owner, or that of the folder that hides it.
fn owner(socket: &Path) -> String {
    let Some(uid) = socket.ancestors().find_map(|path| path.metadata().ok()).map(|metadata| metadata.uid()) else {
        return "its owner and root".to_owned();
    };
    // Also those that the service manager makes for a service.
    let name = User::from_uid(Uid::from_raw(uid))
        .ok()
        .flatten()
        .map_or_else(|| format!("user {uid}"), |user| format!("user {}", user.name));
    if uid == 0 { "root".to_owned() } else { format!("{name} and root") }
}

/// Copies an answer that has begun.
async fn copied(mut response: Response<Incoming>, into: &mut dyn Write) -> Result<(), ClientError> {
    let status = response.status();
    if status.is_success() {
        while let Some(frame) = response.frame().await {
            if let Some(data) = frame?.data_ref() {
                into.write_all(data).and_then(|()| into.flush()).map_err(ClientError::Output)?;
            }
        }
        return Ok(());
    }
    let body = response.into_body().collect().await?.to_bytes();
    let value: Value = serde_json::from_slice(&body).unwrap_or_default();
    let why = value["error"].as_str().map_or_else(|| String::from_utf8_lossy(&body).into_owned(), str::to_owned);
    Err(ClientError::Refused(if why.is_empty() { status.to_string() } else { text::lines(&why) }))
}
