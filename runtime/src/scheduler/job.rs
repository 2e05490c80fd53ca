//! A request on its way to a sandbox, and what comes back.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::Admission;
use crate::function::Function;
use crate::host::Body;
use crate::outcome::Failure;

/// A request that waits to be run.
#[derive(Debug)]
pub struct Job {
    /// What to run.
    pub function: Arc<Function>,
    /// Its standard input.
    pub body: Body,
    /// Where the reply goes; closed when the client is gone.
    pub reply: oneshot::Sender<Reply>,
    /// When the request was complete.
    pub arrived: Instant,
    /// When it must be answered.
    pub deadline: Instant,
    /// Its place among the requests that the server takes.
    pub admission: Admission,
}

/// How a request ended.
#[derive(Debug)]
pub struct Reply {
    /// What the function wrote, or why there is nothing.
    pub result: Result<Vec<u8>, Failure>,
    /// Time from arrival until a worker took it.
    pub queued: Duration,
    /// Time from then until it was over, getting a sandbox included.
    pub ran: Duration,
}
