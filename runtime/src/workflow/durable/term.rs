//! For how long this server may go on with the executions of its store.
//!
//! With an embedded store that is for as long as the process lives. In Redis it is a *term*: from the moment the server takes the [lease](crate::kv::Lease) until it is over. All that happens to
//! executions happens within one term, in tasks that end with it, on a state in memory that belongs to it. The next term begins with what the journal has then.
//!
//! A term ends when the lease is not renewed in time, when Redis refuses a commit under it, and when it does not become known whether a commit was made. In the last case it may still be made
//! later (its bytes may wait somewhere): only under the next lease, with another token, is it certain what the journal has. So an outcome that is not known is never taken for one or the other.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Instant;

use tokio::sync::watch;

use crate::kv::{Commit, Fence, KvError, Outcome, Space};

/// A term, or that of a store which no other server uses.
#[derive(Clone, Debug)]
pub(super) struct Term(Option<Rc<Leased>>);

#[derive(Debug)]
struct Leased {
    fence: Fence,
    /// When the lease is over that was taken or renewed last, by this server's clock.
    until: Cell<Instant>,
    is_over: watch::Sender<bool>,
}

impl Term {
    /// That of a store which no other server uses.
    pub(super) const fn for_ever() -> Term {
        Term(None)
    }

    /// One under that lease, which lasts until then.
    pub(super) fn new(fence: Fence, until: Instant) -> Term {
        Term(Some(Rc::new(Leased { fence, until: Cell::new(until), is_over: watch::Sender::new(false) })))
    }

    /// Whether other servers may have the next one.
    pub(super) const fn is_leased(&self) -> bool {
        self.0.is_some()
    }

    /// The lease was renewed, until then.
    pub(super) fn renewed(&self, until: Instant) {
        if let Some(leased) = &self.0 {
            leased.until.set(until);
        }
    }

    /// Ends it: what has been begun under it is given up.
    pub(super) fn end(&self, why: &str) {
        if let Some(leased) = &self.0
            && !leased.is_over.send_replace(true)
        {
            tracing::warn!("this server has lost the lease of the executions of workflows: {why}");
        }
    }

    /// The same for one that has come to its end in good order.
    pub(super) fn close(&self) {
        if let Some(leased) = &self.0 {
            leased.is_over.send_replace(true);
        }
    }

    /// Whether something may be begun: a server that was stopped for a while finds out here, before it does what another one does, too. (That it does not write it is up to Redis.)
    pub(super) fn holds(&self) -> bool {
        let Some(leased) = &self.0 else { return true };
        if Instant::now() >= leased.until.get() {
            self.end("it was not renewed in time");
        }
        !*leased.is_over.borrow()
    }

    /// Waits until it is over.
    pub(super) async fn ended(&self) {
        match &self.0 {
            Some(leased) => drop(leased.is_over.subscribe().wait_for(|is_over| *is_over).await),
            None => std::future::pending().await,
        }
    }

    /// Makes a commit within the term. It does not return when that is refused, or when its outcome is not known: the term is over then, and with it the task that commits.
    pub(super) async fn commit(&self, space: Space, commit: Commit) -> Result<Outcome, KvError> {
        let Some(leased) = &self.0 else { return space.commit(commit).await };
        match space.commit(Commit { fence: Some(leased.fence.clone()), ..commit }).await {
            Err(error @ (KvError::Fenced | KvError::Unknown(_))) => {
                self.end(&error.to_string());
                std::future::pending().await
            }
            made => made,
        }
    }

    /// Carries on with that until it is done or the term is over.
    pub(super) async fn within(self, work: impl Future<Output = ()>) {
        tokio::select! {
            biased;
            () = self.ended() => {}
            () = work => {}
        }
    }
}
