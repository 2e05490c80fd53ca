//! Where a reply goes, and what it is.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::oneshot;

use super::record::Record;
use crate::host::{CallAnswer, CallFailure, Pipe, ReplyHead, Stream};
use crate::outcome::Failure;

/// Where a reply goes.
#[derive(Debug)]
pub enum ReplyTo {
    /// To a client, by way of its connection.
    Client(oneshot::Sender<Reply>),
    /// To a client who has the head already, and gets the rest as it is written.
    Stream(Arc<Pipe>),
    /// To a function.
    Guest(oneshot::Sender<CallAnswer>),
    /// Nowhere: it is not wanted.
    Nowhere,
}

impl ReplyTo {
    /// Whether the client or function that wanted it has gone.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        match self {
            ReplyTo::Client(sender) => sender.is_closed(),
            ReplyTo::Stream(pipe) => pipe.is_closed(),
            ReplyTo::Guest(sender) => sender.is_closed(),
            ReplyTo::Nowhere => false,
        }
    }

    /// The same, and when it happens the task is woken.
    pub fn poll_closed(&mut self, context: &mut Context<'_>) -> Poll<()> {
        match self {
            ReplyTo::Client(sender) => sender.poll_closed(context),
            ReplyTo::Stream(pipe) => pipe.poll_closed(context),
            ReplyTo::Guest(sender) => sender.poll_closed(context),
            ReplyTo::Nowhere => Poll::Pending,
        }
    }

    /// Sends it; where it is not wanted any more, it is dropped.
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
            ReplyTo::Stream(_) | ReplyTo::Nowhere => {}
        }
    }

    /// The invocation is over. Whether it is counted here how; where clients are answered, it is counted there.
    pub(crate) fn counts_end(&self, result: &Result<(), Failure>) -> bool {
        match self {
            ReplyTo::Client(_) => false,
            ReplyTo::Stream(pipe) => pipe.end(result.clone()),
            ReplyTo::Guest(_) | ReplyTo::Nowhere => true,
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
