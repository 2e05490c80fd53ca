//! Listening for the admin API: the socket, which clients may connect, connections.

use std::convert::Infallible;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener as StdUnixListener, UnixStream as StdUnixStream};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::{Arc, mpsc};
use std::time::Duration;
use std::{fs, io, net, thread};

use http_body_util::Either;
use hyper::Request;
use hyper::body::Incoming;
use hyper::header::{CONNECTION, HeaderMap, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::access::{Access, Rights, Tokens};
use super::states::StatesApi;
use super::{Address, Api};
use crate::deploy::Scope;

/// After how long without a word it is asked whether a client on TCP is still there.
const KEEPALIVE: Duration = Duration::from_secs(60);
/// Connections at the same time; further ones wait.
const CONNECTIONS_MAX: usize = 64;
/// The same where clients wait for executions of workflows.
const STATES_CONNECTIONS_MAX: usize = 512;
/// How long a client may take to send a request's head.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// How long to wait after accepting failed.
const PAUSE: Duration = Duration::from_millis(100);
/// Threads for what takes long: deploying.
const BLOCKING_THREADS_MAX: usize = 8;

/// Why the admin API cannot listen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListenError {
    /// The address cannot be listened on.
    #[error("{key}: cannot listen on {address}: {source}")]
    Listen {
        /// The configuration's key that names it.
        key: &'static str,
        /// The address.
        address: Address,
        /// Why not.
        source: io::Error,
    },
}

/// What clients may do at a socket.
#[derive(Debug)]
pub enum Guard {
    /// What their token allows.
    Tokens(Tokens),
    /// Ask for metrics.
    Metrics,
    /// What their signatures allow, at the API of AWS Step Functions.
    States(Box<StatesApi>),
}

impl Guard {
    fn access(&self, headers: &HeaderMap) -> Access {
        match self {
            Guard::Metrics => Access::to_all(Rights::Metrics),
            Guard::Tokens(tokens) => tokens.access(headers),
            Guard::States(_) => Access { rights: Rights::None, scope: Scope::Nothing },
        }
    }
}

/// A socket that listens; a Unix socket's file goes with it.
#[derive(Debug)]
pub struct Listener {
    socket: Socket,
    /// Where it listens.
    pub address: Address,
    guard: Guard,
}

#[derive(Debug)]
enum Socket {
    Unix(StdUnixListener),
    Tcp(net::TcpListener),
}

/// Removes the file when it is dropped.
#[derive(Debug)]
pub struct SocketFile(Option<PathBuf>);

impl Drop for SocketFile {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            // Another process may have removed it.
            let _ = fs::remove_file(path);
        }
    }
}

impl Listener {
    /// Listens.
    ///
    /// # Errors
    /// When the address cannot be had, also because another server is there.
    pub fn open(address: Address, guard: Guard) -> Result<Listener, ListenError> {
        let key = match guard {
            Guard::Tokens(_) => "admin",
            Guard::Metrics => "metrics_listen",
            Guard::States(_) => "aws_api.listen",
        };
        let failed = |source| ListenError::Listen { key, address: address.clone(), source };
        let (socket, address) = match &address {
            Address::Unix(path) => (Socket::Unix(bind_unix(path).map_err(failed)?), address),
            Address::Tcp(tcp) => {
                let listener = net::TcpListener::bind(tcp).map_err(failed)?;
                listener.set_nonblocking(true).map_err(failed)?;
                let address = Address::Tcp(listener.local_addr().map_err(failed)?);
                (Socket::Tcp(listener), address)
            }
        };
        Ok(Listener { socket, address, guard })
    }

    /// What clients get here, for the log.
    #[must_use]
    pub const fn offers(&self) -> &'static str {
        match self.guard {
            Guard::Tokens(_) => "admin API",
            Guard::Metrics => "metrics",
            Guard::States(_) => "API of AWS Step Functions",
        }
    }
}

/// Serves in a thread of its own until the process ends. When this returns, the thread has the descriptors that it needs, however many clients come then.
///
/// # Errors
/// When the system has no thread, or no descriptor for it.
pub fn serve(listeners: Vec<Listener>, api: Api) -> io::Result<SocketFile> {
    let file = listeners.iter().find_map(|listener| match &listener.address {
        Address::Unix(path) => Some(path.clone()),
        Address::Tcp(_) => None,
    });
    let (started, has_started) = mpsc::channel();
    let run = move || {
        let mut builder = Builder::new_current_thread();
        let builder = builder.enable_all().max_blocking_threads(BLOCKING_THREADS_MAX).thread_name("admin-change");
        let (runtime, is_built) = match builder.build_local(LocalOptions::default()) {
            Ok(runtime) => (Some(runtime), Ok(())),
            Err(error) => (None, Err(error)),
        };
        // The caller waits for it.
        let _ = started.send(is_built);
        let Some(runtime) = runtime else { return };
        let api = Rc::new(api);
        runtime.block_on(async {
            let accepting = listeners.into_iter().map(|listener| tokio::task::spawn_local(accept(listener, Rc::clone(&api))));
            for accepting in accepting.collect::<Vec<_>>() {
                if let Ok(Err(error)) = accepting.await {
                    tracing::error!(%error, "the admin API stopped");
                }
            }
        });
    };
    thread::Builder::new().name("admin".to_owned()).spawn(run)?;
    has_started.recv().unwrap_or_else(|_| Err(io::Error::other("its thread has ended")))?;
    Ok(SocketFile(file))
}

/// Listens on a path that only this user may open; what a server that was killed left there is removed.
fn bind_unix(path: &Path) -> io::Result<StdUnixListener> {
    if let Ok(metadata) = fs::symlink_metadata(path) {
        if !metadata.file_type().is_socket() {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "a file that is not a socket exists there"));
        }
        if StdUnixStream::connect(path).is_ok() {
            return Err(io::Error::new(io::ErrorKind::AddrInUse, "another server listens there"));
        }
        fs::remove_file(path)?;
    }
    // Under another name until no other user can open it.
    let mut hidden = path.as_os_str().to_owned();
    hidden.push(format!(".{}", std::process::id()));
    let listener = StdUnixListener::bind(&hidden)?;
    fs::set_permissions(&hidden, fs::Permissions::from_mode(0o600))
        .and_then(|()| fs::rename(&hidden, path))
        .and_then(|()| listener.set_nonblocking(true))
        .inspect_err(|_| drop(fs::remove_file(&hidden)))?;
    Ok(listener)
}

async fn accept(listener: Listener, api: Rc<Api>) -> io::Result<()> {
    let places = if matches!(listener.guard, Guard::States(_)) { STATES_CONNECTIONS_MAX } else { CONNECTIONS_MAX };
    let places = Arc::new(Semaphore::new(places));
    let shared = Rc::new((api, listener.guard));
    let (mut unix, mut tcp) = (None, None);
    match listener.socket {
        Socket::Unix(listener) => unix = Some(UnixListener::from_std(listener)?),
        Socket::Tcp(listener) => tcp = Some(TcpListener::from_std(listener)?),
    }
    loop {
        // Never closed. A client that finds no place waits in the system's queue, which is limited, too.
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return Ok(()) };
        let accepted = match (&unix, &tcp) {
            (Some(listener), _) => listener.accept().await.map(|(stream, _)| serve_in_task(stream, &shared, place)),
            (None, Some(listener)) => listener.accept().await.map(|(stream, _)| {
                // A client that follows a log and has gone without a word is noticed. Without this, it only takes longer.
                let _ = SockRef::from(&stream).set_tcp_keepalive(&TcpKeepalive::new().with_time(KEEPALIVE));
                serve_in_task(stream, &shared, place);
            }),
            (None, None) => return Ok(()),
        };
        if let Err(error) = accepted {
            tracing::warn!(%error, "the admin API cannot accept a connection; trying again");
            tokio::time::sleep(PAUSE).await;
        }
    }
}

fn serve_in_task(
    stream: impl AsyncRead + AsyncWrite + Unpin + 'static,
    shared: &Rc<(Rc<Api>, Guard)>,
    place: OwnedSemaphorePermit,
) {
    let shared = Rc::clone(shared);
    tokio::task::spawn_local(async move {
        let _place = place;
        let service = service_fn(|request: Request<Incoming>| {
            let shared = Rc::clone(&shared);
            async move {
                let (api, guard) = &*shared;
                if let Guard::States(states) = guard {
                    return Ok::<_, Infallible>(states.answer(request).await.map(Either::Left));
                }
                let access = guard.access(request.headers());
                let mut answer = api.answer(request, &access).await;
                if access.rights == Rights::None {
                    // Places are for clients that have a token.
                    answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
                }
                Ok(answer)
            }
        });
        let mut builder = http1::Builder::new();
        let builder = builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
        if let Err(error) = builder.serve_connection(TokioIo::new(stream), service).await {
            tracing::debug!(%error, "a connection to the admin API ended early");
        }
    });
}
