//! Removal: executions that have ended are removed when their time is over, when there are too many of them, or when a client wants it.
//!
//! What holds: of an execution that is removed nothing is left. It does not go on again meanwhile, and a task that waits for it is told first how it ended: otherwise it would start it again.

use std::rc::Rc;

use super::core::Core;
use super::journal::{Expired, Place};
use super::{Message, Refused};
use crate::kv::KvError;
use crate::workflow::{Runner, express};

/// Executions that are removed in one commit.
const PURGED_MAX: usize = 100;
/// Records that are removed in one commit: Redis does nothing else meanwhile.
const PURGED_RECORDS_MAX: usize = 10_000;
/// Executions that have ended and are kept, of all tenants together; beyond that those go first whose time would be over first.
const KEPT_MAX: u64 = 1_000_000;

impl<R: Runner + 'static> Core<R> {
    /// Removes those whose time is over, and those that are too many.
    pub(super) async fn purge(&self) -> Result<(), KvError> {
        loop {
            // Those that are too many, whenever their time is over; or else those whose time is.
            let excess = usize::try_from(self.kept.get().saturating_sub(KEPT_MAX)).unwrap_or(usize::MAX);
            let (until_ms, max) = if excess > 0 { (i64::MAX, excess.min(PURGED_MAX)) } else { (express::now_ms(), PURGED_MAX) };
            let expired = self.journal().expired(until_ms, max)?;
            if expired.is_empty() {
                return Ok(());
            }
            self.forget(expired).await?;
        }
    }

    async fn forget(&self, expired: Vec<Expired>) -> Result<(), KvError> {
        let count = expired.len() as u64;
        let mut freed = Vec::with_capacity(expired.len());
        let mut records = Vec::new();
        for Expired { place, bytes, records: own } in expired {
            freed.push((place.tenant, bytes));
            records.extend(own);
        }
        // Backwards: of an execution that takes more than one commit that is removed last by which it is found.
        records.reverse();
        for records in records.chunks(PURGED_RECORDS_MAX) {
            self.write(records.to_vec()).await?;
        }
        self.kept.set(self.kept.get().saturating_sub(count));
        for (tenant, bytes) in freed {
            if let Some(used) = self.executions.0.quota.of(&tenant) {
                used.change(bytes, 0);
            }
        }
        Ok(())
    }

    /// Carries out what a client wants removed; what is none of that comes back.
    pub(super) async fn remove_for(self: &Rc<Self>, message: Message) -> Option<Message> {
        match message {
            // A client that has gone needs no answer.
            Message::Remove { place, answer } => drop(answer.send(self.remove(&place).await)),
            other => return Some(other),
        }
        None
    }

    /// Removes an execution that has ended, with its history.
    async fn remove(&self, place: &Place) -> Result<(), Refused> {
        const OPEN: &str = "the execution has not ended; stop it first";
        const WANTED: &str = "a task of another execution waits for it, and has not taken in how it ended; ask again";
        let summary = self.find(place)?;
        if let Some(parent) = summary.parent
            && let Some((checkpoint, _)) = self.journal().checkpoint(parent.execution)?
            && checkpoint.execution.waits_for(parent.task)
        {
            return Err(Refused::Impossible(WANTED.to_owned()));
        }
        // It leaves memory as soon as it has ended, and comes back there when it is redriven.
        if summary.is_open() || self.is_alive(summary.id) {
            return Err(Refused::Impossible(OPEN.to_owned()));
        }
        let Some(_removing) = self.removing(summary.id) else { return Err(Refused::NoExecution) };
        let Some(expired) = self.journal().removed(place, &summary)? else { return Err(Refused::NoExecution) };
        Ok(self.forget(vec![expired]).await?)
    }
}
