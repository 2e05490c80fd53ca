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
mod pattern;
mod policy;
mod special;

use std::cell::RefCell;
use std::error::Error as _;
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
pub use policy::{PolicyError, SocketPolicy};

pub use connect::host_and_port;

use connect::Connector;

/// Connections to one host that are kept for the next request, of one function and worker.
const IDLE_MAX: usize = 64;
/// For how long.
const IDLE_TIME: Duration = Duration::from_secs(30);
/// The largest head of a response.
const HEAD_BYTES_MAX: usize = 64 << 10;

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
}

impl Upstream {
    /// Requests to `allowed` hosts; those over TLS have to present a certificate that leads to `roots`.
    #[must_use]
    pub const fn new(allowed: Arc<Allowed>, roots: Arc<Roots>) -> Upstream {
        Upstream { allowed, roots }
    }

    /// The same with other roots.
    #[must_use]
    pub fn with_roots(&self, roots: &Arc<Roots>) -> Upstream {
        Upstream { allowed: Arc::clone(&self.allowed), roots: Arc::clone(roots) }
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
                .build(Connector::new(Arc::clone(&self.allowed), Arc::clone(&self.roots)));
            clients.push((Arc::downgrade(self), client.clone()));
            client
        })
    }
}

/// Why it really failed: the innermost reason that is ours, or else all of it.
fn failure(error: &legacy::Error) -> Failure {
    let mut source = error.source();
    while let Some(inner) = source {
        if let Some(failure) = inner.downcast_ref::<Failure>() {
            return failure.clone();
        }
        source = inner.source();
    }
    Failure::Broken(error.source().map_or_else(|| error.to_string(), |source| format!("{error}: {source}")))
}

/// Certificates that lead to roots of one's own, beside the system's.
///
/// # Errors
/// When the file holds none.
pub fn roots(ca_file: Option<&Path>) -> Result<Arc<Roots>, RootsError> {
    Roots::new(ca_file).map(Arc::new)
}
