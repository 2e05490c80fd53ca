//! The way of a reply from a worker to where it is waited for.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use tokio::sync::oneshot;
use tokio::sync::oneshot::error::TryRecvError;

use super::{Fields, Pipe, Reply};
use crate::outcome::Failure;
use crate::timeout::before;

/// Where a reply goes.
#[derive(Debug)]
pub enum ReplyTo {
    /// To an [`Answer`].
    Answer(oneshot::Sender<Reply>),
    /// Its head has gone there; the rest goes as it is written.
    Stream(Arc<Pipe>),
    /// Nowhere: it is not wanted.
    Nowhere,
}

/// A reply that is waited for. Where it is dropped, its invocation ends.
#[derive(Debug)]
pub struct Answer {
    receiver: oneshot::Receiver<Reply>,
    /// None where a worker has the invocation, which keeps its deadline.
    deadline: Option<Instant>,
}

/// Both sides of a reply that has to come before `deadline`.
#[must_use]
pub fn channel(deadline: Instant) -> (ReplyTo, Answer) {
    let (sender, receiver) = oneshot::channel();
    (ReplyTo::Answer(sender), Answer { receiver, deadline: Some(deadline) })
}

impl Answer {
    /// A worker has the invocation, and answers when its deadline comes: a timer less.
    pub const fn leave_deadline_to_worker(&mut self) {
        self.deadline = None;
    }

    /// When it is waited for no longer; none where a worker sees to that.
    #[must_use]
    pub const fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// As [`reply`](Answer::reply), for one look; [from that time on](Answer::deadline) it is late. Not to be asked again once it is there.
    ///
    /// # Errors
    /// As for `reply`.
    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<Reply, Failure>> {
        // What is there is there, however much the task has done in its turn of the runtime.
        let reply = match self.receiver.try_recv() {
            Ok(reply) => return Poll::Ready(Ok(reply)),
            Err(TryRecvError::Closed) => return Poll::Ready(Err(Failure::Internal)),
            Err(TryRecvError::Empty) => Pin::new(&mut self.receiver).poll(context),
        };
        match reply {
            Poll::Ready(reply) => Poll::Ready(reply.map_err(|_| Failure::Internal)),
            Poll::Pending if self.deadline.is_some_and(|deadline| deadline <= Instant::now()) => {
                Poll::Ready(Err(Failure::Deadline))
            }
            Poll::Pending => Poll::Pending,
        }
    }

    /// Waits for it.
    ///
    /// # Errors
    /// When it does not come in time. A worker keeps the deadline of what it has, and answers itself; this one is for what waits at a gate or for a worker.
    pub async fn reply(self) -> Result<Reply, Failure> {
        let Answer { receiver, deadline } = self;
        let reply = match deadline {
            Some(deadline) => before(|| deadline, receiver).await.ok_or(Failure::Deadline)?,
            None => receiver.await,
        };
        // A worker that gives no answer has panicked.
        reply.map_err(|_| Failure::Internal)
    }
}

impl ReplyTo {
    /// Whether the client or function that wanted it has gone.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        match self {
            ReplyTo::Answer(sender) => sender.is_closed(),
            ReplyTo::Stream(pipe) => pipe.is_closed(),
            ReplyTo::Nowhere => false,
        }
    }

    /// The same, and when it happens the task is woken.
    pub fn poll_closed(&mut self, context: &mut Context<'_>) -> Poll<()> {
        match self {
            ReplyTo::Answer(sender) => sender.poll_closed(context),
            ReplyTo::Stream(pipe) => pipe.poll_closed(context),
            ReplyTo::Nowhere => Poll::Pending,
        }
    }

    /// Sends it; where it is not wanted any more, it is dropped.
    pub fn send(self, reply: Reply) {
        match self {
            ReplyTo::Answer(sender) => drop(sender.send(reply)),
            // It was told how the invocation ended.
            ReplyTo::Stream(_) | ReplyTo::Nowhere => {}
        }
    }

    /// The invocation is over; a stream takes its trailers. Whether its outcome is counted where it runs: not where a connection will answer, which
    /// counts what it answers.
    pub fn end(&self, result: &Result<(), Failure>, trailers: &mut Option<Box<Fields>>) -> bool {
        match self {
            ReplyTo::Answer(_) => false,
            ReplyTo::Stream(pipe) => pipe.end(result.clone(), trailers.take().filter(|_| result.is_ok())),
            ReplyTo::Nowhere => true,
        }
    }
}
