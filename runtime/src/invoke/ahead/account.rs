//! What runs leave to be counted and learned, until it is known whether they count: a run that was begun ahead may turn out never to have been, and one that fails says nothing of others.

use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;

use crate::invoke::function::Function;
use crate::memo::key::Digest;
use crate::outcome::Failure;
use crate::speculate::replies::Known;
use crate::speculate::sequence::Made;
use crate::speculate::{Of, Speculation};

/// Entries of an account to which what is only learned is still added: a run may call without end.
const LEARNED_MAX: usize = 128;
/// Bytes of the replies of an account.
const REPLIES_BYTES_MAX: usize = 256 << 10;

/// What one run, and those that it has called, leave.
#[derive(Debug, Default)]
pub struct Account {
    left: Mutex<Left>,
    /// Where what runs reply is to be known, if it is.
    replies: Option<Arc<Speculation>>,
}

#[derive(Debug, Default)]
struct Left {
    entries: Vec<Entry>,
    /// Bytes of the replies among them.
    replies_bytes: usize,
}

/// Something that is to be counted or learned.
#[derive(Debug)]
pub(crate) enum Entry {
    /// A call has ended so that was begun ahead, or that one has made.
    Ended { function: Arc<Function>, failure: Option<Failure> },
    /// A call of that function's was begun ahead, and was right: it has saved that time, and has cost that.
    Adopted { function: Arc<Function>, ordinal: usize, saved: Duration, cost: Duration },
    /// A run of that function has made those calls.
    Called { function: Arc<Function>, input: Bytes, calls: Vec<Made> },
    /// A run of that function has replied that to the argument of that key.
    Replied { function: Arc<Function>, argument: Digest, known: Arc<Known> },
    /// That has stood for a run of that version of a function with the argument of that key.
    Skipped { version: u64, argument: Digest, known: Arc<Known> },
}

impl Account {
    /// An empty one. `replies`: where what runs reply is to be known, if it is.
    pub(crate) fn new(replies: Option<Arc<Speculation>>) -> Account {
        Account { left: Mutex::default(), replies }
    }

    /// Where what runs reply is to be known, if it is.
    pub(crate) const fn replies(&self) -> Option<&Arc<Speculation>> {
        self.replies.as_ref()
    }

    /// One entry more.
    pub(crate) fn put(&self, entry: Entry) {
        let mut left = self.left();
        let bytes = if let Entry::Replied { known, .. } = &entry { known.bytes() } else { 0 };
        let has_room = left.entries.len() < LEARNED_MAX && left.replies_bytes + bytes <= REPLIES_BYTES_MAX;
        if entry.is_fact() || has_room {
            left.replies_bytes += bytes;
            left.entries.push(entry);
        }
    }

    /// All that another one has, which has none then.
    pub(crate) fn take_from(&self, other: &Account) {
        other.take().into_iter().for_each(|entry| self.put(entry));
    }

    /// All of it, which is none then.
    pub(crate) fn take(&self) -> Vec<Entry> {
        mem::take(&mut *self.left()).entries
    }

    /// The run has failed, or is to run again: that calls have ended, and what has stood for calls, is still so.
    pub(crate) fn failed(&self) {
        let mut left = self.left();
        left.entries.retain(Entry::is_fact);
        left.replies_bytes = 0;
    }

    fn left(&self) -> MutexGuard<'_, Left> {
        // Single changes, which cannot be half done.
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    /// Whether it is so whatever becomes of the run.
    pub(crate) const fn is_fact(&self) -> bool {
        matches!(self, Entry::Ended { .. } | Entry::Skipped { .. })
    }

    /// Learns how it calls. It counts: the run is committed.
    pub(crate) fn learn(self) {
        match self {
            Entry::Ended { .. } | Entry::Replied { .. } | Entry::Skipped { .. } => {}
            Entry::Adopted { function, ordinal, saved, cost } => {
                if let Some(speculation) = &function.ahead {
                    speculation.call_adopted(function.version, ordinal, saved, cost);
                }
            }
            Entry::Called { function, input, calls } => {
                if let Some(speculation) = &function.ahead {
                    speculation.called(Of { name: function.name(), version: function.version }, &input, &calls);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::*;
    use crate::config;
    use crate::invoke::by_hand;
    use crate::invoke::function::Home;
    use crate::txn::{Isolation, Outside, Transaction};

    fn function() -> Arc<Function> {
        let config = config::function("settings", "f", Path::new("f.wasm"), json!({})).unwrap();
        Arc::new(Function::new(by_hand::loaded(&config), Home::alone()))
    }

    fn known(bytes: usize) -> Arc<Known> {
        let caller = Transaction::begin(&Isolation { contention: Arc::default(), outside: Outside::Refused });
        let footprint = Arc::new(Transaction::join(&caller).footprint(bytes + 4_096).unwrap());
        Arc::new(Known { reply: vec![0; bytes].into(), footprint, callees: Box::default(), depth: 1 })
    }

    #[test]
    fn what_is_only_learned_is_bounded_and_goes_with_a_failure_and_facts_stay() {
        let (function, account) = (function(), Account::default());
        let replied = |bytes| Entry::Replied { function: Arc::clone(&function), argument: [0; 32], known: known(bytes) };
        let ended = || Entry::Ended { function: Arc::clone(&function), failure: None };
        let skipped = || Entry::Skipped { version: 1, argument: [0; 32], known: known(0) };
        (0..10).for_each(|_| account.put(replied(REPLIES_BYTES_MAX / 8)));
        let all = Account::default();
        all.take_from(&account);
        assert_eq!((all.take().len(), account.take().len()), (7, 0), "each has something beside its reply");
        (0..10).for_each(|_| account.put(replied(REPLIES_BYTES_MAX / 8)));
        (0..1_000).for_each(|_| account.put(replied(0)));
        (0..500).for_each(|_| account.put(ended()));
        (0..500).for_each(|_| account.put(skipped()));
        account.failed();
        assert_eq!(account.take().len(), 1_000, "what has happened is counted, however much it is");
        account.put(replied(REPLIES_BYTES_MAX / 2));
        assert_eq!(account.take().len(), 1);
    }
}
