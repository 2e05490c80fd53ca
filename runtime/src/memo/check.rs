//! Answers that the store has to confirm, by a commit that takes its time: where it is in Redis, and where the entry's run has changed something.
//!
//! The commit expects what the run has read, and makes the run's changes again. If it is made, the request is answered: that is what a run would have answered and changed at that moment. It is sent
//! after the request has arrived, and the reply leaves after it.

use std::sync::Arc;

use crate::host::RequestHead;
use crate::kv::{Commit, KvError, Outcome, Space};

use super::key::Key;
use super::state::lock;
use super::{Asked, Entry, Event, Memo, Now};

/// An entry for a request that the store has not confirmed.
#[derive(Debug)]
pub struct Check {
    pub(super) asked: Box<Asked>,
    pub(super) key: Key,
    pub(super) entry: Arc<Entry>,
}

/// What a check comes to.
#[derive(Debug)]
pub enum Checked {
    /// This answers the request.
    Hit(Arc<Entry>),
    /// It runs, and is remembered.
    Run(Box<Asked>),
    /// The changes may have been made or not: it is not to run.
    Unknown,
}

/// Whether an entry may answer a request now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// It may.
    Holds,
    /// The store decides, by a commit that takes its time.
    Asks,
    /// What it rests on is not there any more.
    Stale,
    /// The store says nothing now.
    Unknown,
}

impl Check {
    /// Whether it changes the store.
    #[must_use]
    pub fn changes(&self) -> bool {
        self.entry.changes()
    }

    /// What the store is to be asked for, once.
    #[must_use]
    pub fn commit(&self) -> Commit {
        // One that changes nothing may be made twice, and need not be known by an id.
        let id = self.changes().then(|| fastrand::u128(..).to_ne_bytes());
        Commit { id, ..self.entry.store.clone() }
    }
}

impl Memo {
    /// What the store has said to the [commit](Check::commit) of a check; none where the host has failed. `head`: that of the request. `note` learns what became of it.
    pub fn checked(
        &self,
        check: Check,
        outcome: Option<Result<Outcome, KvError>>,
        head: Option<&RequestHead>,
        mut note: impl FnMut(Event),
    ) -> Checked {
        let changes = check.changes();
        let Check { mut asked, key, entry } = check;
        match outcome {
            Some(Ok(Outcome::Committed { .. })) => {
                note(if changes { Event::Replayed } else { Event::Hit });
                self.has_answered();
                return Checked::Hit(entry);
            }
            Some(Err(KvError::Unknown(_))) | None if changes => return Checked::Unknown,
            // Nothing was changed: a run finds out why, and fails as it would have.
            Some(Ok(Outcome::Conflict { .. })) => lock(&self.state).forget(&key, &entry),
            Some(Err(_)) if changes => lock(&self.state).forget(&key, &entry),
            // The store says nothing now; it may later.
            Some(Err(_)) | None => {}
        }
        note(Event::Stale);
        asked.head = head.cloned().map(Box::new);
        Checked::Run(asked)
    }

    /// Whether an entry may answer a request that finds this.
    pub(super) fn standing(&self, entry: &Entry, now: Now<'_>) -> Standing {
        if !entry.callees.iter().all(|(name, version)| (now.version)(name) == Some(*version)) {
            return Standing::Stale;
        }
        if entry.changes() {
            return Standing::Asks;
        }
        if !entry.depends() {
            return Standing::Holds;
        }
        match now.space {
            Some(Space::Embedded(space)) => match space.check(&entry.store) {
                Ok(Outcome::Committed { .. }) => Standing::Holds,
                Ok(Outcome::Conflict { .. }) => Standing::Stale,
                Err(_) => Standing::Unknown,
            },
            Some(Space::Redis(_)) => Standing::Asks,
            None => Standing::Unknown,
        }
    }
}
