//! Answers that the store has to confirm, by a commit that takes its time: where it is in Redis, and where the entry's run has changed something.
//!
//! The commit expects what the run has read, and makes the run's changes again. If it is made, the request is answered: that is what a run would have answered and changed at that moment. It is sent
//! after the request has arrived, and the reply leaves after it.

use std::sync::Arc;

use crate::host::RequestHead;
use crate::kv::{Commit, KvError, Outcome, Space};

use super::key::Key;
use super::{Asked, Entry, Event, Memo, Now, lock};

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

impl Entry {
    /// Whether each function that its run has called is the same now.
    pub(super) fn has_callees_of(&self, now: Now<'_>) -> bool {
        self.callees.iter().all(|(name, version)| (now.version)(name) == Some(*version))
    }

    /// Whether what the run of an entry that [takes no time](Entry::takes_time) has read is what the store has at this moment; none where that cannot be said.
    pub(super) fn is_current(&self, space: Option<&Space>) -> Option<bool> {
        if !self.depends() {
            return Some(true);
        }
        let Some(Space::Embedded(space)) = space else { return None };
        match space.check(&self.store) {
            Ok(Outcome::Committed { .. }) => Some(true),
            Ok(Outcome::Conflict { .. }) => Some(false),
            Err(_) => None,
        }
    }

    /// Whether its answer depends on the store.
    pub(super) const fn depends(&self) -> bool {
        !(self.store.expected.is_empty() && self.store.listed.is_empty())
    }

    /// Whether its answer comes with changes of the store.
    #[must_use]
    pub const fn changes(&self) -> bool {
        !self.store.changes.is_empty()
    }

    /// Whether the store confirms it by a commit that takes its time.
    pub(super) const fn takes_time(&self, space: Option<&Space>) -> bool {
        self.changes() || (self.depends() && matches!(space, Some(Space::Redis(_))))
    }
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
                lock(&self.seen).answered += 1;
                return Checked::Hit(entry);
            }
            Some(Err(KvError::Unknown(_))) | None if changes => return Checked::Unknown,
            // Nothing was changed: a run finds out why, and fails as it would have.
            Some(Ok(Outcome::Conflict { .. })) => self.forget(&key, &entry),
            Some(Err(_)) if changes => self.forget(&key, &entry),
            // The store says nothing now; it may later.
            Some(Err(_)) | None => {}
        }
        note(Event::Stale);
        asked.head = head.cloned().map(Box::new);
        Checked::Run(asked)
    }

    /// Drops an entry that does not hold any more, unless another has taken its place.
    pub(super) fn forget(&self, key: &Key, entry: &Arc<Entry>) {
        let table = &mut lock(&self.state).table;
        if table.get(key).is_some_and(|there| Arc::ptr_eq(&there, entry)) {
            table.remove(key);
        }
    }
}
