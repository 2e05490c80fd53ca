//! HTTP: from a socket to an invocation, and from a reply to a socket.
//!
//! ```text
//!   listener -> connection (hyper) -> router -> body -> Invocation ... Reply -> response
//! ```
//!
//! * [`listener`]: sockets that listen, one a core or one for all; the accept loop;
//! * [`connection`]: one connection's life; [`tls`]: its secrecy; `connections`: how long each may be idle;
//! * `framing`: what HTTP/1 says before hyper tells; `calm`: how much of HTTP/2 may say nothing; `linger`: where both are looked at;
//! * `head`: what a request's head must not be; [`router`]: path and method to function; [`canary`]: to which of two versions of it;
//! * [`request`]: one request's life; `routed`: from its function on; `handled`: what it came to; [`body`]: reading what comes with it; `access`: what is logged of it; `span`: what is traced of it;
//! * `workflow`: requests that start workflows; `asynchronous`: requests for functions that are carried out later;
//! * `called`: the same of what came by gRPC, whose status is known last;
//! * `redirect`: what the server answers for paths that have moved; `folder`: files that it sends;
//! * `policy`: what is done to replies whatever their function says; `cors`: which web pages may see them; `compression`: how they are compressed;
//! * [`response`]: what is answered; `streamed`: a body that is not there yet;
//! * `services`: what the server itself answers to clients that speak gRPC; `bridge`: the same calls in other protocols.

mod access;
mod asynchronous;
pub mod body;
mod bridge;
mod called;
mod calm;
pub mod canary;
mod compression;
pub mod connection;
mod connections;
mod cors;
mod folder;
mod framing;
mod handled;
mod head;
mod linger;
pub mod listener;
mod policy;
mod redirect;
pub mod request;
pub mod response;
mod routed;
pub mod router;
mod services;
mod span;
mod step;
mod streamed;
mod workflow;

use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};

use crate::health::Health;
use crate::invoke::{Dispatcher, Intake, Invocation};
use crate::metrics::Shard;
use crate::reply;
use crate::telemetry::Tracer;
use crate::tls;
use crate::worker::Local;

use connections::Connections;
pub use folder::Folder;
pub use policy::Policy;
pub use redirect::Redirect;
pub use router::{Held, Place, Refused, Route, Router, Site};

/// What all connections of one thread share.
pub struct HttpService {
    /// Where requests go; never borrowed while something is waited for.
    pub router: RefCell<Arc<Router>>,
    /// The worker of this thread, which runs them; none where other threads do.
    pub dispatcher: Arc<Dispatcher>,
    /// This thread's worker, if it is one.
    pub local: Option<Rc<Local>>,
    /// The largest request body.
    pub body_bytes_max: u64,
    /// How long clients may take.
    pub timeouts: Timeouts,
    /// The certificate, where TLS is spoken.
    pub tls: Option<Arc<tls::Current>>,
    /// Connections at the same time.
    pub connections_max: usize,
    /// Whether the socket that listens was passed to this process, and outlives it.
    pub is_inherited: bool,
    /// Those that are open.
    connections: Connections,
    /// What this thread counts.
    pub shard: Shard,
    /// Whether requests are logged, and have ids.
    pub access: Access,
    /// What takes spans of requests, if they are wanted.
    pub tracer: Option<Arc<Tracer>>,
    /// Whether the server as a whole can do its work.
    pub ready: Ready,
    /// Whether it stops.
    pub stopped: watch::Receiver<bool>,
    /// Calls that watch what is served.
    watches: Cell<usize>,
    /// When other routes are there.
    rerouted: Notify,
    open: Cell<usize>,
    closed: Notify,
}

/// How long clients may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Until a request's head has come, from the connection's begin or the request before it on.
    pub head: Duration,
    /// Until a request's body has come, from its head on.
    pub body: Duration,
    /// Without fetching anything of a reply.
    pub reply: Duration,
}

/// What an HTTP service allows its clients.
#[derive(Clone)]
pub struct ConnectionSettings {
    /// The largest request body.
    pub body_bytes_max: u64,
    /// How long clients may take.
    pub timeouts: Timeouts,
    /// The certificate, where TLS is spoken.
    pub tls: Option<Arc<tls::Current>>,
    /// Connections of one thread at the same time.
    pub connections_max: usize,
    /// Whether the socket that listens was passed to this process, and outlives it.
    pub is_inherited: bool,
    /// What is recorded of each request.
    pub access: Access,
    /// What takes spans of requests, if they are wanted.
    pub tracer: Option<Arc<Tracer>>,
    /// Whether the server as a whole can do its work.
    pub ready: Ready,
    /// Whether it stops.
    pub stopped: watch::Receiver<bool>,
}

/// Whether the server as a whole can do its work, as `/readyz` says it.
#[derive(Clone, Debug)]
pub struct Ready {
    /// What is wrong with it.
    pub health: Arc<Health>,
    /// Whether that does not count.
    pub when_degraded: bool,
}

impl Ready {
    fn is_ready(&self) -> bool {
        self.when_degraded || self.health.problems_now().is_empty()
    }
}

/// What is recorded of each request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// Every request is logged.
    pub log: bool,
    /// Every request has an id.
    pub ids: bool,
}

impl fmt::Debug for HttpService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpService").field("open", &self.open).finish_non_exhaustive()
    }
}

impl HttpService {
    /// A service without connections.
    #[must_use]
    pub fn new(
        router: Arc<Router>,
        dispatcher: Arc<Dispatcher>,
        local: Option<Rc<Local>>,
        shard: Shard,
        settings: ConnectionSettings,
    ) -> HttpService {
        let router = RefCell::new(router);
        let ConnectionSettings { body_bytes_max, timeouts, tls, connections_max, is_inherited, access, tracer, ready, stopped } =
            settings;
        let (open, closed) = (Cell::new(0), Notify::new());
        HttpService {
            router,
            dispatcher,
            local,
            body_bytes_max,
            timeouts,
            tls,
            connections_max,
            is_inherited,
            connections: Connections::default(),
            shard,
            access,
            tracer,
            ready,
            stopped,
            watches: Cell::new(0),
            rerouted: Notify::new(),
            open,
            closed,
        }
    }

    /// Requests go there from now on.
    pub fn reroute(&self, router: Arc<Router>) {
        *self.router.borrow_mut() = router;
        self.rerouted.notify_waiters();
    }

    /// Whether there is no room for one more connection; the accept loop counts as one.
    fn is_full(&self) -> bool {
        self.open.get() > self.connections_max
    }

    /// Ends connections whose time is over, for as long as it is waited for: when they were idle for too long, and when `stop` changes.
    pub async fn look_after_connections(&self, stop: watch::Receiver<bool>) {
        self.connections.look_after(self.timeouts.head, stop).await;
    }

    /// Waits until this thread accepts no more connections and has none.
    pub async fn closed(&self) {
        self.closed.notified().await;
    }
}

/// The nearest worker: that of this thread, if it is one.
impl Intake for &HttpService {
    const KEEPS_DEADLINES: bool = false;

    fn take(self, invocation: Box<Invocation>) -> Option<reply::Answer> {
        match &self.local {
            Some(local) => local.take(invocation),
            None => self.dispatcher.take(invocation),
        }
    }
}

/// Something through which requests can come: a connection, or the loop that accepts them, which is the first and outlived by none that it
/// did not accept. So the last one to be dropped closes the service.
#[derive(Debug)]
pub struct Open {
    service: Rc<HttpService>,
}

impl Open {
    /// Counts it as open until this is dropped.
    #[must_use]
    pub fn new(service: Rc<HttpService>) -> Open {
        service.open.set(service.open.get() + 1);
        Open { service }
    }

    /// Whose it is.
    #[must_use]
    pub const fn service(&self) -> &Rc<HttpService> {
        &self.service
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let service = &self.service;
        service.open.set(service.open.get() - 1);
        if service.open.get() == 0 {
            service.dispatcher.close_source();
            service.closed.notify_one();
        }
    }
}
