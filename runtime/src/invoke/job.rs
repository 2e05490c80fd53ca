//! A request on its way to a sandbox, and what comes back.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::oneshot;

use super::Admission;
use super::driver::Driver;
use super::function::Function;
use super::record::{Caller, Parent, Record};
use crate::host::{Body, CallAnswer, CallFailure, Pipe, ReplyHead, RequestHead, Stream};
use crate::outcome::Failure;
use crate::schedule::gate::Entrant;
use crate::schedule::{self, Task, TaskId};
use crate::telemetry::Trace;

/// A request that waits to be run.
#[derive(Debug)]
pub struct Job {
    /// What to run.
    pub function: Arc<Function>,
    /// What else was said, for a function that asks.
    pub head: Option<Box<RequestHead>>,
    /// Its standard input.
    pub body: Body,
    /// Where the reply goes.
    pub reply: ReplyTo,
    /// When the request was complete.
    pub arrived: Instant,
    /// When it must be answered.
    pub deadline: Instant,
    /// Its place among the requests that the server takes.
    pub admission: Admission,
    /// Who called it, if that was a function.
    pub caller: Option<(Arc<Caller>, Parent)>,
    /// By what its client knows it, where requests have ids.
    pub id: Option<Arc<str>>,
    /// Its place in a trace, if there are any.
    pub trace: Option<Arc<Trace>>,
}

/// Where a reply goes.
#[derive(Debug)]
pub enum ReplyTo {
    /// To a client, by way of its connection.
    Client(oneshot::Sender<Reply>),
    /// To a client who has the head already, and gets the rest as it is written.
    Stream(Arc<Pipe>),
    /// To a function.
    Guest(oneshot::Sender<CallAnswer>),
    /// Nobody wants it.
    Nobody,
}

impl ReplyTo {
    /// Whether whoever wanted it has gone.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        match self {
            ReplyTo::Client(sender) => sender.is_closed(),
            ReplyTo::Stream(pipe) => pipe.is_closed(),
            ReplyTo::Guest(sender) => sender.is_closed(),
            ReplyTo::Nobody => false,
        }
    }

    /// The same, and when it happens the task is woken.
    pub fn poll_closed(&mut self, context: &mut Context<'_>) -> Poll<()> {
        match self {
            ReplyTo::Client(sender) => sender.poll_closed(context),
            ReplyTo::Stream(pipe) => pipe.poll_closed(context),
            ReplyTo::Guest(sender) => sender.poll_closed(context),
            ReplyTo::Nobody => Poll::Pending,
        }
    }

    /// Sends it; who does not want it any more does not get it.
    pub fn send(self, reply: Reply) {
        match self {
            ReplyTo::Client(sender) => drop(sender.send(reply)),
            ReplyTo::Guest(sender) => drop(sender.send(match reply.result {
                Ok(Content::Whole(bytes)) => Ok(bytes),
                // Only clients get streams.
                Ok(Content::Stream(_)) => Err(CallFailure::Failed(Failure::Internal)),
                Err(failure) => Err(CallFailure::Failed(failure)),
            })),
            // It was told how the invocation ended.
            ReplyTo::Stream(_) | ReplyTo::Nobody => {}
        }
    }

    /// Whether a client waits for it.
    #[must_use]
    pub const fn is_client(&self) -> bool {
        matches!(self, ReplyTo::Client(_) | ReplyTo::Stream(_))
    }

    /// The invocation is over. Whether it is counted here how; where clients are answered, it is counted there.
    pub(crate) fn counts_end(&self, result: &Result<(), Failure>) -> bool {
        match self {
            ReplyTo::Client(_) => false,
            ReplyTo::Stream(pipe) => pipe.end(result.clone()),
            ReplyTo::Guest(_) | ReplyTo::Nobody => true,
        }
    }
}

impl Job {
    /// What the scheduler's core needs to know, under a number of the worker's.
    pub(crate) fn task(&self, id: TaskId) -> Task {
        let Job { function, arrived, deadline, .. } = self;
        let (tenant, function, cpu_max) = (function.tenant, function.number, function.cpu_max);
        let age = self.admission.sequence;
        Task {
            id,
            tenant,
            function,
            age,
            arrived: *arrived,
            deadline: *deadline,
            cpu_max,
            cpu: Duration::ZERO,
            started: false,
            level: 0,
        }
    }
}

impl Entrant for Job {
    fn let_in(&mut self) {
        self.admission.runs = true;
    }

    fn is_gone(&self) -> bool {
        self.reply.is_closed()
    }
}

/// An invocation is blocked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    /// From then on.
    pub(crate) since: Instant,
    /// When it goes on without more.
    pub(crate) until: Option<Instant>,
}

/// A job whose sandbox has run.
#[derive(Debug)]
pub struct Started {
    pub(crate) function: Arc<Function>,
    pub(crate) driver: Driver,
    pub(crate) reply: ReplyTo,
    pub(crate) admission: Admission,
    pub(crate) arrived: Instant,
    pub(crate) taken: Instant,
    /// When it had its sandbox, and how long getting that took.
    pub(crate) ready: Instant,
    pub(crate) instantiated: Duration,
    pub(crate) deadline: Instant,
    /// Processor time used so far.
    pub(crate) cpu: Duration,
    /// Time blocked so far.
    pub(crate) blocked: Duration,
    /// Since when it is blocked, if it is.
    pub(crate) wait: Option<Wait>,
    /// Who called it, if that was a function.
    pub(crate) caller: Option<(Arc<Caller>, Parent)>,
    /// What it is to those that it calls; made at the first call.
    pub(crate) calls_as: Option<Arc<Caller>>,
}

impl Started {
    /// It is blocked no longer. Whether it was.
    pub(crate) fn end_wait(&mut self, now: Instant) -> bool {
        let Some(Wait { since, until }) = self.wait.take() else { return false };
        self.blocked += until.map_or(now, |until| until.min(now)).saturating_duration_since(since);
        true
    }

    /// As [`Job::task`].
    pub(crate) fn task(&self, id: TaskId) -> Task {
        let function = &self.function;
        let Started { arrived, deadline, cpu, .. } = *self;
        Task {
            id,
            tenant: function.tenant,
            function: function.number,
            age: self.admission.sequence,
            arrived,
            deadline,
            cpu_max: function.cpu_max,
            cpu,
            started: true,
            level: 0,
        }
    }
}

/// What a worker has to do, and may give to another.
#[derive(Debug)]
pub enum Work {
    /// A request that has not begun.
    Job(Box<Job>),
    /// One that has.
    Started(Box<Started>),
}

impl schedule::Work for Work {
    fn task(&self, id: TaskId) -> Task {
        match self {
            Work::Job(job) => job.task(id),
            Work::Started(started) => started.task(id),
        }
    }
}

/// What a function answers.
#[derive(Debug)]
pub enum Content {
    /// All of it.
    Whole(Bytes),
    /// What it writes from now on; it is not over.
    Stream(Stream),
}

/// How a request ended, or how its reply begins.
#[derive(Debug)]
pub struct Reply {
    /// What the function wrote, or why there is nothing.
    pub result: Result<Content, Failure>,
    /// What the function said about its reply.
    pub head: Option<Box<ReplyHead>>,
    /// Time from arrival until a worker took it.
    pub queued: Duration,
    /// Time from then until it was over, getting a sandbox included.
    pub ran: Duration,
    /// What else is known of it.
    pub record: Record,
}
