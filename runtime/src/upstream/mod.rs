//! Requests that functions make: to hosts that the configuration allows them, and to no others.
//!
//! ```text
//!   host::fetch -> Upstream (of a function) -> Client (of a thread, with its pool) -> connect: allowed? -> name -> allowed? -> TCP -> TLS
//! ```
//!
//! Each function has connections of its own, so that none comes to use one that only another may make. Redirections are answers like any other:
//! nothing is followed. Knows neither guests nor the scheduler.

mod allow;
mod body;
mod connect;
mod names;
mod origin;
mod pattern;
mod policy;
pub mod posted;
mod special;

use std::cell::RefCell;
use std::error::Error;
use std::iter::successors;
use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::Duration;

use hyper::body::Incoming;
use hyper::{Request, Response};
use hyper_util::client::legacy;
use hyper_util::rt::{TokioExecutor, TokioTimer};

pub use allow::{AllowError, Allowed};
pub use body::RequestBody;
pub use connect::{Cause, Failure, Roots, RootsError};
pub use names::addresses;
pub use origin::{Origin, OriginError};
pub use policy::{PolicyError, SocketPolicy};

pub use connect::host_and_port;

use connect::Connector;

/// Connections to one host that are kept for the next request, of one function and worker.
const IDLE_MAX: usize = 64;
/// For how long.
const IDLE_TIME: Duration = Duration::from_secs(30);
/// The largest head of a response.
const HEAD_BYTES_MAX: usize = 64 << 10;

/// With HTTP/2: bytes of one response that may come before they are asked for, and of all those of a connection.
const STREAM_WINDOW_BYTES: u32 = 256 << 10;
const CONNECTION_WINDOW_BYTES: u32 = 4 << 20;

type Client = legacy::Client<Connector, RequestBody>;

thread_local! {
    /// This thread's clients, one for each function that made a request.
    static CLIENTS: RefCell<Vec<(Weak<Upstream>, Client)>> = const { RefCell::new(Vec::new()) };
}

/// What one function may ask for.
#[derive(Debug)]
pub struct Upstream {
    allowed: Arc<Allowed>,
    roots: Arc<Roots>,
    /// Whether they speak HTTP/2 from the first byte on, as servers of gRPC do.
    is_http2: bool,
}

impl Upstream {
    /// Requests to `allowed` hosts; those over TLS have to present a certificate that leads to `roots`.
    #[must_use]
    pub const fn new(allowed: Arc<Allowed>, roots: Arc<Roots>) -> Upstream {
        Upstream { allowed, roots, is_http2: false }
    }

    /// Requests over HTTP/2 to one server, wherever its name leads: for what the operator names.
    #[must_use]
    pub fn of(origin: &Origin, roots: Arc<Roots>) -> Upstream {
        Upstream { allowed: Arc::new(origin.allowed()), roots, is_http2: true }
    }

    /// The same with other roots.
    #[must_use]
    pub fn with_roots(&self, roots: &Arc<Roots>) -> Upstream {
        Upstream { allowed: Arc::clone(&self.allowed), roots: Arc::clone(roots), is_http2: self.is_http2 }
    }

    /// Whether that host may be asked, as far as its name says.
    #[must_use]
    pub fn allows<B>(&self, request: &Request<B>) -> bool {
        connect::host_and_port(request.uri()).is_some_and(|(host, port)| self.allowed.names(host, port))
    }

    /// Makes a request; what is answered has begun when this returns. Dropping the future gives it up.
    ///
    /// # Errors
    /// When the host is not allowed or cannot be reached, or does not speak HTTP.
    pub async fn send(self: Arc<Upstream>, request: Request<impl Into<RequestBody>>) -> Result<Response<Incoming>, Failure> {
        let client = self.client();
        client.request(request.map(Into::into)).await.map_err(|error| failure(&error))
    }

    /// The same where a connection has to be made within that time, if one has to be made.
    ///
    /// # Errors
    /// As for [`send`](Upstream::send).
    pub async fn send_within(
        self: Arc<Upstream>,
        request: Request<impl Into<RequestBody>>,
        connect_time: Option<Duration>,
    ) -> Result<Response<Incoming>, Failure> {
        match connect_time {
            Some(time) => connect::TIME.scope(time, self.send(request)).await,
            None => self.send(request).await,
        }
    }

    /// This thread's.
    fn client(self: &Arc<Upstream>) -> Client {
        CLIENTS.with_borrow_mut(|clients| {
            if let Some((_, client)) = clients.iter().find(|(upstream, _)| std::ptr::eq(upstream.as_ptr(), Arc::as_ptr(self))) {
                return client.clone();
            }
            // Those of functions that are served no longer.
            clients.retain(|(upstream, _)| upstream.strong_count() > 0);
            let client = legacy::Client::builder(TokioExecutor::new())
                .pool_timer(TokioTimer::new())
                .pool_idle_timeout(IDLE_TIME)
                .pool_max_idle_per_host(IDLE_MAX)
                .http1_max_buf_size(HEAD_BYTES_MAX)
                .http2_only(self.is_http2)
                .http2_max_header_list_size(HEAD_BYTES_MAX as u32)
                .http2_initial_stream_window_size(STREAM_WINDOW_BYTES)
                .http2_initial_connection_window_size(CONNECTION_WINDOW_BYTES)
                .build(Connector::new(Arc::clone(&self.allowed), Arc::clone(&self.roots), self.is_http2));
            clients.push((Arc::downgrade(self), client.clone()));
            client
        })
    }
}

/// Why it really failed: the innermost reason that is ours, or else all of it.
fn failure(error: &legacy::Error) -> Failure {
    if let Some(reason) = reset_reason(error) {
        return Failure::Reset(reason);
    }
    let mut source = error.source();
    while let Some(inner) = source {
        if let Some(failure) = inner.downcast_ref::<Failure>() {
            return failure.clone();
        }
        source = inner.source();
    }
    Failure::Broken(error.source().map_or_else(|| error.to_string(), |source| format!("{error}: {source}")))
}

/// Why the other server has reset the stream of a request or a response, if that is what an error says (RFC 9113, 7).
#[must_use]
pub fn reset_reason(error: &(dyn Error + 'static)) -> Option<h2::Reason> {
    let errors = successors(Some(error), |&error| error.source());
    errors.filter_map(|error| error.downcast_ref::<h2::Error>()).find(|error| error.is_reset() && error.is_remote())?.reason()
}

/// Certificates that lead to roots of one's own, beside the system's.
///
/// # Errors
/// When the file holds none.
pub fn roots(ca_file: Option<&Path>) -> Result<Arc<Roots>, RootsError> {
    Roots::new(ca_file).map(Arc::new)
}
