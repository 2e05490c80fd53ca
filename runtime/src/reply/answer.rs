//! The way of a reply from a worker to where it is waited for.
//!
//! Most requests run at once on the thread that has read them: the worker returns with the reply ([`ReplyTo::Taker`]). There is a channel where something is
//! waited for.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Instant;
use std::{fmt, mem};

use futures_util::future::BoxFuture;
use tokio::sync::oneshot;
use tokio::sync::oneshot::error::TryRecvError;

use super::{Content, Fields, Pipe, Reply};
use crate::outcome::Failure;
use crate::timeout::before;

/// Where a reply goes.
#[derive(Debug)]
pub enum ReplyTo {
    /// To what hands the invocation to a worker, on this thread: it is there when the worker returns, or [later](ReplyTo::make_way).
    Taker,
    /// To an [`Answer`].
    Answer(oneshot::Sender<Reply>),
    /// Its head has gone there; the rest goes as it is written.
    Stream(Arc<Pipe>),
    /// Nowhere: it is not wanted.
    Nowhere,
}

/// A reply that is waited for. Where it is dropped, its invocation ends.
#[derive(Debug)]
pub struct Answer(State);

#[derive(Debug)]
enum State {
    /// It is there.
    There(Reply),
    /// It comes.
    Coming {
        receiver: oneshot::Receiver<Reply>,
        /// None where a worker has the invocation, which keeps its deadline.
        deadline: Option<Instant>,
    },
    /// It comes of something else.
    Later(Later),
    /// It was taken, or will never come.
    Over,
}

/// What a reply comes of. It is never locked: only what owns it polls it, and an answer may be shared between threads.
struct Later(Mutex<BoxFuture<'static, Result<Reply, Failure>>>);

impl fmt::Debug for Later {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Later")
    }
}

/// Both sides of a reply that has to come before `deadline`.
#[must_use]
pub fn channel(deadline: Instant) -> (ReplyTo, Answer) {
    let (sender, receiver) = oneshot::channel();
    (ReplyTo::Answer(sender), Answer(State::Coming { receiver, deadline: Some(deadline) }))
}

impl From<Reply> for Answer {
    fn from(reply: Reply) -> Answer {
        Answer(State::There(reply))
    }
}

impl Answer {
    /// One that does not come: its worker has panicked.
    #[must_use]
    pub const fn lost() -> Answer {
        Answer(State::Over)
    }

    /// One that comes of that. It keeps the deadline.
    pub fn later(reply: impl Future<Output = Result<Reply, Failure>> + Send + 'static) -> Answer {
        Answer(State::Later(Later(Mutex::new(Box::pin(reply)))))
    }

    /// The reply, if all of it is there.
    pub fn take_whole(&mut self) -> Option<Reply> {
        let is_whole = |reply: &Reply| !matches!(reply.result, Ok(Content::Stream(_)));
        if !matches!(&self.0, State::There(reply) if is_whole(reply)) {
            return None;
        }
        let State::There(reply) = mem::replace(&mut self.0, State::Over) else { return None };
        Some(reply)
    }

    /// A worker has the invocation, and answers when its deadline comes: a timer less.
    pub const fn leave_deadline_to_worker(&mut self) {
        if let State::Coming { deadline, .. } = &mut self.0 {
            *deadline = None;
        }
    }

    /// When it is waited for no longer; none where a worker sees to that.
    #[must_use]
    pub const fn deadline(&self) -> Option<Instant> {
        if let State::Coming { deadline, .. } = &self.0 { *deadline } else { None }
    }

    /// As [`reply`](Answer::reply), for one look; [from that time on](Answer::deadline) it is late. Not to be asked again once it is there.
    ///
    /// # Errors
    /// As for `reply`.
    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<Reply, Failure>> {
        if let State::Later(Later(reply)) = &mut self.0 {
            return reply.get_mut().unwrap_or_else(PoisonError::into_inner).as_mut().poll(context);
        }
        let State::Coming { receiver, deadline } = &mut self.0 else {
            let State::There(reply) = mem::replace(&mut self.0, State::Over) else { return Poll::Ready(Err(Failure::Internal)) };
            return Poll::Ready(Ok(reply));
        };
        // What is there is there, however much the task has done in its turn of the runtime.
        let reply = match receiver.try_recv() {
            Ok(reply) => return Poll::Ready(Ok(reply)),
            Err(TryRecvError::Closed) => return Poll::Ready(Err(Failure::Internal)),
            Err(TryRecvError::Empty) => Pin::new(receiver).poll(context),
        };
        match reply {
            Poll::Ready(reply) => Poll::Ready(reply.map_err(|_| Failure::Internal)),
            Poll::Pending if deadline.is_some_and(|deadline| deadline <= Instant::now()) => Poll::Ready(Err(Failure::Deadline)),
            Poll::Pending => Poll::Pending,
        }
    }

    /// Waits for it.
    ///
    /// # Errors
    /// When it does not come in time. A worker keeps the deadline of what it has, and answers itself; this one is for what waits at a gate or for a worker.
    pub async fn reply(self) -> Result<Reply, Failure> {
        let reply = match self.0 {
            State::There(reply) => return Ok(reply),
            State::Coming { receiver, deadline: Some(deadline) } => {
                before(|| deadline, receiver).await.ok_or(Failure::Deadline)?
            }
            State::Coming { receiver, deadline: None } => receiver.await,
            State::Later(Later(reply)) => return reply.into_inner().unwrap_or_else(PoisonError::into_inner).await,
            State::Over => return Err(Failure::Internal),
        };
        // A worker that gives no answer has panicked.
        reply.map_err(|_| Failure::Internal)
    }
}

impl ReplyTo {
    /// The invocation is kept for later: where its reply goes to the taker, the taker has to wait for that.
    pub fn make_way(&mut self, deadline: Instant) -> Option<Answer> {
        let ReplyTo::Taker = self else { return None };
        let (reply, answer) = channel(deadline);
        *self = reply;
        Some(answer)
    }

    /// Whether the client or function that wanted it has gone.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        match self {
            ReplyTo::Answer(sender) => sender.is_closed(),
            ReplyTo::Stream(pipe) => pipe.is_closed(),
            ReplyTo::Taker | ReplyTo::Nowhere => false,
        }
    }

    /// The same, and when it happens the task is woken.
    pub fn poll_closed(&mut self, context: &mut Context<'_>) -> Poll<()> {
        match self {
            ReplyTo::Answer(sender) => sender.poll_closed(context),
            ReplyTo::Stream(pipe) => pipe.poll_closed(context),
            ReplyTo::Taker | ReplyTo::Nowhere => Poll::Pending,
        }
    }

    /// Sends it; where it is not wanted any more, it is dropped. One that goes to the taker is given back for it.
    #[must_use]
    pub fn send(self, reply: Reply) -> Option<Answer> {
        match self {
            ReplyTo::Taker => return Some(reply.into()),
            ReplyTo::Answer(sender) => drop(sender.send(reply)),
            // It was told how the invocation ended.
            ReplyTo::Stream(_) | ReplyTo::Nowhere => {}
        }
        None
    }

    /// The invocation is over; a stream takes its trailers. Whether its outcome is counted where it runs: not where a connection will answer, which
    /// counts what it answers.
    pub fn end(&self, result: &Result<(), Failure>, trailers: &mut Option<Box<Fields>>) -> bool {
        match self {
            ReplyTo::Taker | ReplyTo::Answer(_) => false,
            ReplyTo::Stream(pipe) => pipe.end(result.clone(), trailers.take().filter(|_| result.is_ok())),
            ReplyTo::Nowhere => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use bytes::Bytes;

    use super::*;
    use crate::reply::{Content, Record};

    fn reply(text: &'static str) -> Reply {
        let (result, zero) = (Ok(Content::Whole(Bytes::from_static(text.as_bytes()))), Default::default());
        Reply { result, head: None, trailers: None, queued: zero, ran: zero, record: Record::default() }
    }

    fn look(answer: &mut Answer) -> Poll<Result<String, Failure>> {
        let looked = answer.poll(&mut Context::from_waker(Waker::noop()));
        looked.map_ok(|reply| match reply.result {
            Ok(Content::Whole(bytes)) => String::from_utf8(bytes.to_vec()).unwrap(),
            other => panic!("{other:?}"),
        })
    }

    #[test]
    fn a_reply_to_the_taker_is_there_and_where_it_comes_later_there_is_a_way_for_it() {
        let deadline = Instant::now() + std::time::Duration::from_secs(60);
        let mut there = ReplyTo::Taker.send(reply("now")).expect("the taker's");
        assert_eq!((there.deadline(), look(&mut there)), (None, Poll::Ready(Ok("now".to_owned()))));

        let mut to = ReplyTo::Taker;
        let mut answer = to.make_way(deadline).expect("it went to the taker");
        assert!(to.make_way(deadline).is_none() && !to.is_closed(), "there is one way");
        assert_eq!((answer.deadline(), look(&mut answer)), (Some(deadline), Poll::Pending));
        assert!(to.send(reply("later")).is_none());
        assert_eq!(look(&mut answer), Poll::Ready(Ok("later".to_owned())));

        let mut to = ReplyTo::Taker;
        drop(to.make_way(deadline));
        assert!(to.is_closed(), "what waited for it has gone");
    }

    #[test]
    fn one_that_comes_of_something_else_comes_when_that_does() {
        let (to, mut answer) = channel(Instant::now());
        answer.leave_deadline_to_worker();
        let mut later = Answer::later(async move {
            let Reply { result, .. } = answer.reply().await?;
            Ok(Reply { result: result.map(|_| Content::Whole(Bytes::from_static(b"another"))), ..reply("") })
        });
        assert_eq!((later.deadline(), look(&mut later)), (None, Poll::Pending));
        assert!(later.take_whole().is_none() && to.send(reply("one")).is_none());
        assert_eq!(look(&mut later), Poll::Ready(Ok("another".to_owned())));
    }

    #[test]
    fn what_is_lost_or_late_is_a_failure() {
        assert_eq!(look(&mut Answer::lost()), Poll::Ready(Err(Failure::Internal)));
        let (to, mut answer) = channel(Instant::now());
        assert_eq!(look(&mut answer), Poll::Ready(Err(Failure::Deadline)));
        drop(to);
        let (to, mut answer) = channel(Instant::now());
        answer.leave_deadline_to_worker();
        assert_eq!((answer.deadline(), look(&mut answer)), (None, Poll::Pending));
        drop(to);
        assert_eq!(look(&mut answer), Poll::Ready(Err(Failure::Internal)));
    }
}
