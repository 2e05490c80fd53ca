//! A request on its way to a sandbox, and what comes back.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::oneshot;

use super::Admission;
use super::core::{Task, TaskId};
use crate::execution::Execution;
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

impl Job {
    /// What the scheduler's core needs to know, under a number of the worker's.
    pub(super) fn task(&self, id: TaskId) -> Task {
        let Job { function, arrived, deadline, .. } = self;
        let (tenant, function, cpu_max) = (function.tenant, function.number, function.cpu_max);
        Task { id, tenant, function, arrived: *arrived, deadline: *deadline, cpu_max, cpu: Duration::ZERO, started: false }
    }
}

/// A job whose sandbox has run.
#[derive(Debug)]
pub struct Started {
    pub(super) execution: Execution,
    pub(super) reply: oneshot::Sender<Reply>,
    pub(super) admission: Admission,
    pub(super) arrived: Instant,
    pub(super) taken: Instant,
    /// When it had its sandbox, and how long getting that took.
    pub(super) ready: Instant,
    pub(super) instantiated: Duration,
    pub(super) deadline: Instant,
    /// Processor time used so far.
    pub(super) cpu: Duration,
    /// Time blocked so far.
    pub(super) blocked: Duration,
}

impl Started {
    /// As [`Job::task`].
    pub(super) fn task(&self, id: TaskId) -> Task {
        let function = self.execution.function();
        let Started { arrived, deadline, cpu, .. } = *self;
        Task {
            id,
            tenant: function.tenant,
            function: function.number,
            arrived,
            deadline,
            cpu_max: function.cpu_max,
            cpu,
            started: true,
        }
    }
}

/// What a worker has to do, and may give to another.
#[derive(Debug)]
pub enum Work {
    /// A request that has not begun.
    Job(Job),
    /// One that has.
    Started(Box<Started>),
}

impl Work {
    pub(super) fn task(&self, id: TaskId) -> Task {
        match self {
            Work::Job(job) => job.task(id),
            Work::Started(started) => started.task(id),
        }
    }
}

/// How a request ended.
#[derive(Debug)]
pub struct Reply {
    /// What the function wrote, or why there is nothing.
    pub result: Result<Bytes, Failure>,
    /// Time from arrival until a worker took it.
    pub queued: Duration,
    /// Time from then until it was over, getting a sandbox included.
    pub ran: Duration,
}
