//! Servers that share a store in Redis: which of them owns its executions, and what the others do.
//!
//! ```text
//!   messages --> Server --own term--> core
//!                  |  \--no term--> forward (Redis) --> the owner's inbox --> its core
//!                  \-- express executions: here, whatever the lease
//!   take the lease -> term: recover, execute, renew ... -> it is over -> forget all -> take the lease
//! ```
//!
//! What holds:
//! - Executions, timers and schedules are carried out by the server that holds the lease, and each of their commits is refused once it does not hold it any more.
//! - A server that loses the lease forgets all that it has in memory of executions. The next owner begins with the journal.
//! - What clients ask for is answered at every server; reading needs no owner.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::spawn_local;

use super::forward::{FORWARDED_MAX, Inbox};
use super::term::Term;
use super::{Executions, MESSAGES_MAX, Message, Refused, core};
use crate::invoke::function::Function;
use crate::invoke::urgency::Root;
use crate::kv::{Fence, Lease, Post, Taken};
use crate::outcome::Failure;
use crate::reply;
use crate::speculate::depth::Load;
use crate::workflow::{Call, Runner, express};

/// How often a lease is renewed while it lasts.
const RENEWALS: u32 = 3;
/// How long to wait before a lease is renewed again, where Redis did not answer.
const RETRY_MAX: Duration = Duration::from_millis(500);
/// How often a server looks whether the lease is to be had.
const LOOK_MAX: Duration = Duration::from_secs(1);
const LOOK_MIN: Duration = Duration::from_millis(5);
/// How long it may take to give the lease back.
const RELEASE_TIME_MAX: Duration = Duration::from_secs(1);

/// A runner that terms have one after the other.
#[derive(Debug)]
struct Lent<R>(Rc<R>);

impl<R: Runner> Runner for Lent<R> {
    fn begin(&self, call: Call<'_>) -> Result<reply::Answer, Failure> {
        self.0.begin(call)
    }

    fn send(&self, function: &Arc<Function>, body: Bytes) -> Result<(), Failure> {
        self.0.send(function, body)
    }

    fn ended(&self, function: &Function, failure: Option<&Failure>) {
        self.0.ended(function, failure);
    }

    fn root(&self) -> Root {
        self.0.root()
    }

    fn load(&self) -> Load {
        self.0.load()
    }
}

/// This server, as one of several.
pub(super) struct Server<R> {
    pub executions: Executions,
    pub post: Post,
    pub stopped: watch::Receiver<bool>,
    /// Requests that wait for the answer of the owner.
    pub forwarded: Semaphore,
    lease: Lease,
    runner: Rc<R>,
    /// Where its own executions take messages, while it owns them.
    messages: RefCell<Option<mpsc::Sender<Message>>>,
}

/// Executes while this server holds the lease, and has the owner do what is asked for otherwise, until `stopped` says so and what is under way then is written.
pub(super) async fn run<R: Runner + 'static>(
    executions: Executions,
    lease: Lease,
    runner: R,
    places: usize,
    mut messages: mpsc::Receiver<Message>,
    mut stopped: watch::Receiver<bool>,
) {
    let server = Rc::new(Server {
        executions,
        post: lease.redis().post(),
        stopped: stopped.clone(),
        forwarded: Semaphore::new(FORWARDED_MAX),
        lease,
        runner: Rc::new(runner),
        messages: RefCell::default(),
    });
    let taking = async {
        loop {
            let message = tokio::select! {
                biased;
                _ = stopped.wait_for(|stopped| *stopped) => break,
                message = messages.recv() => message,
            };
            let Some(message) = message else { break };
            spawn_local(Rc::clone(&server).take(message));
        }
        messages.close();
    };
    tokio::join!(taking, server.terms(places));
}

impl<R: Runner + 'static> Server<R> {
    pub(super) fn is_stopping(&self) -> bool {
        *self.stopped.borrow()
    }

    async fn until_stopped(&self) {
        // The server that has gone has stopped.
        let _ = self.stopped.clone().wait_for(|stopped| *stopped).await;
    }

    /// A message from a client.
    async fn take(self: Rc<Self>, message: Message) {
        if let Message::Express { workflow, named, input, mut answer } = message {
            // A client that has gone gives it up.
            tokio::select! {
                biased;
                () = answer.closed() => {}
                () = self.until_stopped() => drop(answer.send(Err(Refused::Stopping))),
                ended = express::execute_as(&workflow, &*self.runner, input, Some(&named), None) => drop(answer.send(Ok(ended))),
            }
            return;
        }
        let own = self.messages.borrow().clone();
        match own {
            // Where the term is over meanwhile the client is told so, since the message is gone.
            Some(own) => drop(own.send(message).await),
            None => self.forward(message).await,
        }
    }

    /// One term after the other, until the server stops.
    async fn terms(self: &Rc<Self>, places: usize) {
        while !self.is_stopping() {
            // A token that was not used before.
            let fence = Fence::new();
            let taken = tokio::select! {
                biased;
                () = self.until_stopped() => None,
                term = self.take_lease(&fence) => Some(term),
            };
            if let Some(term) = taken {
                self.own(&fence, term, places).await;
            }
            // If it is still held, or is taken by a request that is under way, it is not to be waited for. If not, there is nothing to give back.
            drop(tokio::time::timeout(RELEASE_TIME_MAX, self.lease.release(&fence)).await);
        }
    }

    /// A term, to its end.
    async fn own(self: &Rc<Self>, fence: &Fence, term: Term, places: usize) {
        tracing::info!("this server goes on with the executions of workflows: it holds their lease");
        let (own, messages) = mpsc::channel(MESSAGES_MAX);
        *self.messages.borrow_mut() = Some(own.clone());
        let runner = Lent(Rc::clone(&self.runner));
        let inbox = Inbox { server: Rc::clone(self), fence: fence.clone(), term: term.clone(), own };
        tokio::select! {
            () = core::run(self.executions.clone(), runner, places, messages, self.stopped.clone(), term.clone()) => {}
            () = self.renew(fence, &term) => {}
            () = inbox.serve() => {}
        }
        *self.messages.borrow_mut() = None;
        term.close();
        self.executions.0.counts.leave();
        self.executions.0.quota.begin(&HashMap::new());
    }

    /// Waits until this server has the lease.
    async fn take_lease(&self, fence: &Fence) -> Term {
        loop {
            let pause = if self.executions.is_wanted() {
                let asked = Instant::now();
                match tokio::time::timeout(self.lease.time(), self.lease.take(fence)).await {
                    Ok(Ok(Taken::Ours)) => {
                        let until = asked + self.lease.time();
                        // An answer that took long leaves little of it: it is taken again.
                        if Instant::now() + self.lease.time() / 2 < until {
                            return Term::new(fence.clone(), until);
                        }
                        LOOK_MIN
                    }
                    Ok(Ok(Taken::Others(left))) => left.clamp(LOOK_MIN, LOOK_MAX),
                    Ok(Err(_)) | Err(_) => LOOK_MAX,
                }
            } else {
                LOOK_MAX
            };
            tokio::time::sleep(pause).await;
        }
    }

    /// Renews the lease until the term is over.
    async fn renew(&self, fence: &Fence, term: &Term) {
        let each = self.lease.time() / RENEWALS;
        let mut pause = each;
        loop {
            tokio::select! {
                biased;
                () = term.ended() => return,
                () = tokio::time::sleep(pause) => {}
            }
            let asked = Instant::now();
            if !term.holds() {
                return;
            }
            match tokio::time::timeout(each, self.lease.renew(fence)).await {
                Ok(Ok(true)) => {
                    term.renewed(asked + self.lease.time());
                    pause = each;
                }
                Ok(Ok(false)) => return term.end("another server may hold it, or Redis has lost commits"),
                Ok(Err(_)) | Err(_) => pause = RETRY_MAX.min(each / 4),
            }
        }
    }
}
