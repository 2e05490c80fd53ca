//! What the functions did that a run has called: parts of that run.
//!
//! A run that is looked at keeps the [`Callees`] that it has called, and each of these tells there what it did, before its reply goes to its caller. So when the run is over, all are there whose replies
//! it has seen. A callee that has not told anything by then, or that cannot be repeated, makes its caller one that cannot be repeated.

use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Entry;
use super::rule::{self, Why};
use crate::host::Effects;
use crate::kv::Commit;

/// Parts that are kept of one run.
const PARTS_MAX: usize = 256;

/// A version of a function: its name, and the version's number.
pub type Version = (Arc<str>, u64);

/// What one callee did, with all that it has called.
#[derive(Clone, Debug)]
pub struct Part {
    /// Which it was.
    pub callee: Version,
    /// What kinds of host functions ran.
    pub effects: Effects,
    /// What was read of the store; nothing where that is a part of its caller's transaction.
    pub store: Commit,
    /// What it has called.
    pub callees: Vec<Version>,
}

/// The calls of one run.
#[derive(Debug, Default)]
pub struct Callees(Mutex<Told>);

#[derive(Debug, Default)]
struct Told {
    /// Calls that were made.
    made: usize,
    parts: Vec<Part>,
    /// Why the run cannot be repeated.
    refused: Option<Why>,
}

impl Part {
    /// Whether a run that finds the same of the store, as a part of the same transaction, would do and answer the same.
    #[must_use]
    pub fn is_repeatable(&self) -> bool {
        rule::why(self.effects, false, true).is_none()
    }
}

impl Callees {
    /// A call was made: its callee is to tell what it did.
    pub fn made(&self) {
        self.told_so_far().made += 1;
    }

    /// A call was made that cannot be repeated, or that could not be made.
    pub fn refuse(&self, why: Why) {
        self.told_so_far().refused.get_or_insert(why);
    }

    /// A callee did that, or cannot be repeated.
    pub fn tell(&self, part: Result<Part, Why>) {
        match part {
            Ok(part) => {
                let mut told = self.told_so_far();
                if told.parts.len() < PARTS_MAX {
                    told.parts.push(part);
                } else {
                    told.refused.get_or_insert(Why::Large);
                }
            }
            Err(why) => self.refuse(why),
        }
    }

    /// What all callees did.
    ///
    /// # Errors
    /// When one of them cannot be repeated, or has not told yet what it did.
    pub fn take(&self) -> Result<Vec<Part>, Why> {
        let mut told = self.told_so_far();
        match told.refused {
            Some(why) => Err(why),
            None if told.parts.len() < told.made => Err(Why::Called),
            None => Ok(mem::take(&mut told.parts)),
        }
    }

    fn told_so_far(&self) -> MutexGuard<'_, Told> {
        // Single insertions, which cannot be half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    /// What a callee did that was answered with this: what its run did.
    ///
    /// # Errors
    /// When that has changed the store: its caller has no part in this.
    pub fn part(&self, callee: Version) -> Result<Part, Why> {
        if self.changes() {
            return Err(Why::Wrote);
        }
        // Its run was judged by the callee's own rules.
        Ok(Part { callee, effects: Effects::default(), store: self.store.clone(), callees: self.callees.to_vec() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(name: &str) -> Part {
        Part { callee: (name.into(), 1), effects: Effects::default(), store: Commit::default(), callees: Vec::new() }
    }

    #[test]
    fn each_callee_has_to_tell_what_it_did_and_one_that_cannot_be_repeated_decides() {
        let callees = Callees::default();
        assert!(callees.take().unwrap().is_empty(), "nothing was called");
        (0..2).for_each(|_| callees.made());
        callees.tell(Ok(part("a")));
        assert_eq!(callees.take().unwrap_err(), Why::Called, "one is under way");
        callees.tell(Ok(part("b")));
        let parts = callees.take().unwrap();
        assert_eq!(parts.iter().map(|part| &*part.callee.0).collect::<Vec<_>>(), ["a", "b"]);
        let callees = Callees::default();
        callees.made();
        callees.tell(Err(Why::Entropy));
        callees.refuse(Why::Called);
        assert_eq!(callees.take().unwrap_err(), Why::Entropy);
        let callees = Callees::default();
        for _ in 0..=PARTS_MAX {
            callees.made();
            callees.tell(Ok(part("a")));
        }
        assert_eq!(callees.take().unwrap_err(), Why::Large);
    }
}
