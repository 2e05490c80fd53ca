//! What a callee sees that was begun beside a column of a pipeline, and what that column makes of it when it calls the callee.
//!
//! ```text
//!   [column] <-- [column] <-- [column: caller] <---adopt---- what it has read is compared with what the caller would read now
//!       ^            ^              |   [column] callee      what it reads: what the caller has read, else what the columns before that
//!       '------------'--------------'-------'                have written, else the store
//! ```
//!
//! The callee has no place in the pipeline, so no write squashes it. What it has read is the caller's only when the caller adopts it, and is squashed as such from then on. Until then columns may have written something
//! else, may be gone, or may be committed: of these it is remembered which versions the store has given to what they have written.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::super::column::{PROVISIONAL, Written, version};
use super::super::mutants::{self, Mutant};
use super::columns::{Columns, From, Slot};
use super::group::Sets;
use super::seat::Sees;
use super::{ColumnId, Pipeline};
use crate::kv::{BucketKey, BucketName, Entry};

/// Keys of which it is remembered what has become of them; then all are forgotten, and callees that have read one of them run again.
const LEFT_KEYS_MAX: usize = 4_096;

/// What lies below a callee that was begun beside a column.
#[derive(Debug)]
pub(in super::super) struct Sight {
    pipeline: Arc<Pipeline>,
    caller: ColumnId,
    /// It has asked for what could not be said: no read of its column tells on what that depends.
    is_unclear: AtomicBool,
}

/// What commits of a pipeline have made of keys since a callee was begun beside a column.
#[derive(Debug, Default)]
pub(super) struct Left {
    /// The version under which columns have seen a key, if they have seen it, and the one that the store has given it; zero for none.
    keys: HashMap<BucketKey, (Option<u64>, u64)>,
    /// Buckets whose sets of keys may have been changed, and their versions.
    sets: HashMap<BucketName, u64>,
    /// How many callees may ask.
    sights: usize,
}

impl Sight {
    /// That of a callee which is begun beside that column.
    pub(super) fn new(pipeline: Arc<Pipeline>, caller: ColumnId) -> Sight {
        pipeline.with(|columns| columns.left.sights += 1);
        Sight { pipeline, caller, is_unclear: AtomicBool::new(false) }
    }

    /// That of a callee which is begun beside this one.
    pub(in super::super) fn again(&self) -> Sight {
        Sight::new(Arc::clone(&self.pipeline), self.caller)
    }

    /// What it sees under a key; none if the store has to be asked for that. `of_store`: what it has.
    pub(in super::super) fn below(&self, key: &BucketKey, of_store: Option<Option<Entry>>) -> Sees {
        let sees = self.pipeline.with(|columns| match columns.find(self.caller) {
            Some(at) => columns.sees_beside(at, key, of_store.as_ref()),
            // It is dropped, or will not be adopted.
            None => Ok(of_store),
        });
        if sees.is_err() {
            // Relaxed: the run ends after that, and is adopted after its end.
            self.is_unclear.store(true, Ordering::Relaxed);
        }
        sees
    }

    /// Whether it is not known on what its run depends.
    pub(in super::super) fn is_unclear(&self) -> bool {
        // Relaxed: as above.
        self.is_unclear.load(Ordering::Relaxed)
    }
}

impl Drop for Sight {
    fn drop(&mut self) {
        self.pipeline.with(|columns| columns.left.ended());
    }
}

impl Left {
    /// These columns were committed under that version.
    pub(super) fn committed(&mut self, (gone, sets): (&[Slot], &Sets), version: u64) {
        if self.sights == 0 {
            return;
        }
        for slot in gone {
            for key in slot.column.written_keys() {
                let left = match slot.column.written(key) {
                    Some(Written::Value(Some(entry))) => (Some(entry.version), version),
                    Some(Written::Value(None)) => (Some(0), 0),
                    Some(Written::Add(_)) | None => (None, version),
                };
                self.keys.insert(key.clone(), left);
            }
        }
        let changed = sets.iter().filter(|(_, changes_it)| **changes_it != Some(false));
        self.sets.extend(changed.map(|(bucket, _)| (bucket.clone(), version)));
        if self.keys.len() > LEFT_KEYS_MAX {
            (self.keys, self.sets) = (HashMap::new(), HashMap::new());
        }
    }

    /// One callee less may ask.
    fn ended(&mut self) {
        self.sights -= 1;
        if self.sights == 0 {
            (self.keys, self.sets) = (HashMap::new(), HashMap::new());
        }
    }

    /// Where an entry was read that no column knows, seen under that version: if not from the store as it is, then from where. None where it is not there any more.
    fn read_at(&self, key: &BucketKey, seen: u64) -> Option<Option<From>> {
        match self.keys.get(key) {
            Some((provisional, now)) if *provisional == Some(seen) => Some(Some(From::Store(*now))),
            // From a column that is gone, or before the commit.
            Some((_, now)) if seen >= PROVISIONAL || seen < *now => None,
            None if seen >= PROVISIONAL => None,
            // The callee's caller has its commit compare that.
            Some(_) | None => Some(None),
        }
    }
}

impl Columns {
    /// What a callee sees that was begun beside a column: what that has read, and otherwise what lies below it.
    fn sees_beside(&mut self, at: usize, key: &BucketKey, of_store: Option<&Option<Entry>>) -> Sees {
        if let Some(entry) = self.slots[at].column.read(key) {
            return Ok(Some(entry.clone()));
        }
        Ok(self.below(at, key, of_store)?.map(|(entry, _)| entry))
    }

    /// Has a column read a key as a callee has that was begun beside it. Whether that is what it sees.
    pub(super) fn reads_as(&mut self, at: usize, key: &BucketKey, entry: &Option<Entry>) -> bool {
        let (seen, column) = (version(entry.as_ref()), &self.slots[at].column);
        if column.written(key).is_some() {
            return false;
        }
        if let Some(read) = column.read(key) {
            return version(read.as_ref()) == seen;
        }
        let below = match self.below(at, key, None) {
            _ if mutants::is(Mutant::AdoptedPastColumns) => Ok(None),
            // A predecessor adds to what the store has: the sum is not that which the callee has seen.
            Ok(None) if self.slots[..at].iter().any(|slot| slot.column.written(key).is_some()) => return false,
            below => below,
        };
        let from = match below {
            Ok(Some((below, from))) if version(below.as_ref()) == seen => from,
            Ok(None) => match self.left.read_at(key, seen) {
                Some(from) => from,
                None if mutants::is(Mutant::AdoptedOfGone) => Some(From::Column(ColumnId(0))),
                None => return false,
            },
            Ok(Some(_)) | Err(_) => return false,
        };
        let slot = &mut self.slots[at];
        let is_learnt = slot.column.learn(key, entry.clone()).is_ok();
        if let Some(from) = from.filter(|_| is_learnt) {
            let from = if mutants::is(Mutant::AdoptedOfNothing) { From::Column(ColumnId(0)) } else { from };
            slot.from.insert(key.clone(), from);
        }
        is_learnt
    }

    /// Has a column list a bucket as a callee has that was begun beside it, of which the set of keys had that version in the store. Whether it would see the same keys.
    pub(super) fn lists_as(&mut self, at: usize, bucket: &BucketName, version: u64) -> bool {
        let is_old = self.left.sets.get(bucket).is_some_and(|left| version < *left);
        let is_changed = self.is_changed_before(at, bucket) || self.slots[at].column.set_version(bucket) != 0;
        let slot = &mut self.slots[at];
        let is_same = match slot.column.listed_at(bucket) {
            Some(listed) => listed == version,
            // It lists it now.
            None => !slot.has_listed(bucket),
        };
        !is_old && !is_changed && is_same && slot.column.list(bucket, version).is_ok()
    }

    /// Whether a column before that one has changed the set of keys of a bucket.
    pub(super) fn is_changed_before(&self, at: usize, bucket: &BucketName) -> bool {
        self.slots[..at].iter().any(|slot| slot.column.set_version(bucket) != 0)
    }
}
