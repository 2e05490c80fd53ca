//! HTTP: from a socket to a job, and from a reply to a socket.
//!
//! ```text
//!   listener -> connection (hyper) -> router -> body -> Job ... Reply -> response
//! ```
//!
//! * [`listener`]: sockets that listen, one a core or one for all; the accept loop;
//! * [`connection`]: one connection's life;
//! * [`router`]: path and method to function;
//! * [`request`]: one request's life; [`body`]: reading what comes with it;
//! * [`response`]: what is answered.

pub mod body;
pub mod connection;
mod linger;
pub mod listener;
pub mod request;
pub mod response;
pub mod router;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use tokio::sync::Notify;

use crate::scheduler::{Admission, Crew, Job, Local};

pub use router::{Route, Router};

/// What all connections of one thread share.
#[derive(Debug)]
pub struct Door {
    /// Where requests go; never borrowed while something is waited for.
    pub router: RefCell<Arc<Router>>,
    /// Who runs them.
    pub crew: Arc<Crew>,
    /// This thread's worker, if it is one.
    pub local: Option<Rc<Local>>,
    /// The largest request body.
    pub body_bytes_max: u64,
    open: Cell<usize>,
    closed: Notify,
}

impl Door {
    /// A door without connections.
    #[must_use]
    pub fn new(router: Arc<Router>, crew: Arc<Crew>, local: Option<Rc<Local>>, body_bytes_max: u64) -> Door {
        Door { router: RefCell::new(router), crew, local, body_bytes_max, open: Cell::new(0), closed: Notify::new() }
    }

    /// Waits until this thread accepts no more connections and has none.
    pub async fn closed(&self) {
        self.closed.notified().await;
    }

    /// Hands a job to whoever runs it.
    fn submit(&self, job: Job) {
        match &self.local {
            Some(local) => local.submit(job),
            None => {
                if let Some(job) = Admission::enter(job) {
                    self.crew.inject(job);
                }
            }
        }
    }
}

/// Something through which requests can come: a connection, or the loop that accepts them, which is the first and outlived by none that it
/// did not accept. So the last one to be dropped closes the door.
#[derive(Debug)]
pub struct Open {
    door: Rc<Door>,
}

impl Open {
    /// Counts it as open until this is dropped.
    #[must_use]
    pub fn new(door: Rc<Door>) -> Open {
        door.open.set(door.open.get() + 1);
        Open { door }
    }

    /// Whose it is.
    #[must_use]
    pub const fn door(&self) -> &Rc<Door> {
        &self.door
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let door = &self.door;
        door.open.set(door.open.get() - 1);
        if door.open.get() == 0 {
            door.crew.close_door();
            door.closed.notify_one();
        }
    }
}
