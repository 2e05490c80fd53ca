//! What runs leave to be counted and learned, until it is known whether they count: a run that was begun ahead may turn out never to have been, and one that fails says nothing of others.

use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;

use crate::invoke::function::Function;
use crate::outcome::Failure;
use crate::speculate::Of;
use crate::speculate::sequence::Made;

/// Entries of an account to which what is only learned is still added: a run may call without end.
const LEARNED_MAX: usize = 128;

/// What one run, and those that it has called, leave.
#[derive(Debug, Default)]
pub struct Account(Mutex<Vec<Entry>>);

/// Something that is to be counted or learned.
#[derive(Debug)]
pub(crate) enum Entry {
    /// A call has ended so that was begun ahead, or that one has made.
    Ended { function: Arc<Function>, failure: Option<Failure> },
    /// A call of that function's was begun ahead, and was right.
    Adopted { function: Arc<Function>, ordinal: usize, saved: Duration },
    /// A run of that function has made those calls.
    Called { function: Arc<Function>, input: Bytes, calls: Vec<Made> },
}

impl Account {
    /// One entry more.
    pub(crate) fn put(&self, entry: Entry) {
        let mut entries = self.entries();
        if matches!(entry, Entry::Ended { .. }) || entries.len() < LEARNED_MAX {
            entries.push(entry);
        }
    }

    /// All that another one has, which has none then.
    pub(crate) fn take_from(&self, other: &Account) {
        other.take().into_iter().for_each(|entry| self.put(entry));
    }

    /// All of it, which is none then.
    pub(crate) fn take(&self) -> Vec<Entry> {
        mem::take(&mut *self.entries())
    }

    /// The run has failed, or is to run again: that calls have ended is still so.
    pub(crate) fn failed(&self) {
        self.entries().retain(|entry| matches!(entry, Entry::Ended { .. }));
    }

    fn entries(&self) -> MutexGuard<'_, Vec<Entry>> {
        // Single changes, which cannot be half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    /// Learns it. It counts: the run is committed.
    pub(crate) fn learn(self) {
        match self {
            Entry::Ended { .. } => {}
            Entry::Adopted { function, ordinal, saved } => {
                if let Some(speculation) = &function.ahead {
                    speculation.call_adopted(function.version, ordinal, saved);
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
