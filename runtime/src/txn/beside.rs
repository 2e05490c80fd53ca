//! A callee that was begun before its caller has called it: its column lies on the store, beside its caller's, until the caller calls it with just that argument and *adopts* what it did.
//!
//! ```text
//!   caller  [ column ] <---------adopt--------  what it has read is read, and what it has written is written, here and now
//!                 |          [ column ] callee
//!               store  <-----------'
//! ```
//!
//! Where the outermost caller is a column of a [pipeline](super::pipeline), the columns before that lie between both and the store: the callee [sees](super::pipeline::Sight) what they have written.
//!
//! To adopt it must change nothing but the time at which the callee ran. So the caller refuses where the callee would have seen something else had it run now: a key that the caller has written, or
//! has read at another version, or a set of keys that it has changed. Whether all of it still is in the store, the caller's own commit decides, as of everything that the caller has read.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use super::column::{Column, View, version};
use super::few::Few;
use super::held::Held;
use super::mutants::{self, Mutant};
use super::pipeline::{Sees, Sight};
use super::place::Place;
use super::{PutOff, Transaction, lock};
use crate::kv::{BucketKey, BucketName, Commit, Entry};

/// How many that were begun ahead lie around each other: a callee's callee is begun ahead, too, and a callee of that.
const LEVELS_MAX: u32 = 3;

/// What a transaction that is beside its caller's has besides its column.
#[derive(Debug)]
pub(super) struct Beside {
    pub(super) held: Arc<Held>,
    /// From 1.
    level: u32,
    /// Whether the run for which it was opened has begun. All others are parts of it.
    is_taken: AtomicBool,
    ended: Mutex<Option<End>>,
    /// Where its outermost caller is a column of a pipeline, what lies before that.
    sight: Option<Sight>,
}

/// How a run has ended.
#[derive(Debug)]
struct End {
    well: bool,
    /// The calls that it has put off.
    calls: Vec<PutOff>,
}

impl Beside {
    /// Whether that is the first run that takes it.
    pub(super) fn take(&self) -> bool {
        // Relaxed: it guards nothing else.
        !self.is_taken.swap(true, Ordering::Relaxed)
    }

    /// What lies below its column under a key. `of_store`: what the store has, if it was asked.
    pub(super) fn below(&self, key: &BucketKey, of_store: Option<Option<Entry>>) -> Sees {
        match &self.sight {
            Some(sight) => sight.below(key, of_store),
            None => Ok(of_store),
        }
    }

    /// Its run is over.
    pub(super) fn end(&self, well: bool, calls: Vec<PutOff>) {
        *lock(&self.ended) = Some(End { well, calls: if well { calls } else { Vec::new() } });
    }
}

impl Transaction {
    /// Whether what its function calls can begin before it is called. Not where that may do what cannot be taken back.
    #[must_use]
    pub const fn may_have_beside(&self) -> bool {
        !self.may_split()
    }

    /// That of a callee which begins before this one's function has called it; none where that cannot be.
    #[must_use]
    pub fn beside(caller: &Transaction) -> Option<Arc<Transaction>> {
        let (level, sight) = match &caller.outermost().place {
            Place::Beside(beside) => (beside.level + 1, beside.sight.as_ref().map(Sight::again)),
            Place::Ahead(seat, _) => (1, Some(seat.sight())),
            Place::Alone | Place::Part(_) => (1, None),
        };
        if level > LEVELS_MAX || !caller.may_have_beside() {
            return None;
        }
        let (is_taken, ended) = (AtomicBool::new(false), Mutex::default());
        let place = Place::Beside(Box::new(Beside { held: Arc::default(), level, is_taken, ended, sight }));
        // Versions that the callee has given are told from the caller's own.
        let beside = Transaction::new(caller.isolation.clone(), caller.with(Column::part), place);
        let values = match &caller.outermost().place {
            Place::Ahead(seat, _) => seat.fetched().values(),
            _ => caller.outermost().values.clone(),
        };
        Some(Arc::new(Transaction { is_repeated: caller.is_repeated(), values, ..beside }))
    }

    /// Makes what a callee did a part of this one, as if it had run now: the callee was begun [beside](Transaction::beside) this one, and its reply is there. Whether that can be; otherwise it is to run
    /// again. What it would have been seen to do outside is done then.
    #[must_use]
    pub fn adopt(&self, callee: &Transaction) -> bool {
        let Place::Beside(beside) = &callee.place else { return false };
        // One that was killed has not said how it ended, and one that is stale would not have ended so.
        let Some(End { well, calls }) = lock(&beside.ended).take() else { return false };
        let column = callee.column();
        let is_unclear = beside.sight.as_ref().is_some_and(Sight::is_unclear);
        if column.stale().is_some() || is_unclear || self.is_over() {
            return false;
        }
        if !self.reads_as(&column) {
            if mutants::is(Mutant::RefusedStays) {
                let _ = self.make(&Commit::new(Vec::new(), column.commit(true).changes));
            }
            return false;
        }
        // All of it was read through this one by now.
        if well && !self.absorb_beside(&column, Mutant::AdoptedUnder) {
            return false;
        }
        // Relaxed: the transaction ends after that, on whatever thread.
        if callee.is_recalled.load(Ordering::Relaxed) {
            self.outermost().is_recalled.store(true, Ordering::Relaxed);
        }
        lock(&self.calls).extend(calls);
        match self.held() {
            Some(holder) => {
                let held = Arc::clone(&beside.held);
                holder.put(Box::new(move || held.release()));
            }
            None => beside.held.release(),
        }
        true
    }

    /// Reads what that column has read. Whether it is what the column has seen.
    pub(super) fn reads_as(&self, column: &Column) -> bool {
        if mutants::is(Mutant::AdoptedReadLost) {
            return true;
        }
        let mut reads = column.reads();
        let is_same = reads.all(|(key, entry)| self.reads_key_as(key, entry));
        let is_same = is_same && column.listed().all(|(bucket, version)| self.lists_as(bucket, version));
        is_same || mutants::is(Mutant::AdoptedUnchecked)
    }

    /// Reads a key as it was read elsewhere. Whether that is what is seen here.
    fn reads_key_as(&self, key: &BucketKey, entry: &Option<Entry>) -> bool {
        if let Place::Ahead(seat, _) = &self.place {
            return seat.reads_as(key, entry);
        }
        if let View::Known(known) = self.column().view(key) {
            return version(known.as_ref()) == version(entry.as_ref());
        }
        let is_same_above = if let Place::Part(above) = &self.place { above.reads_key_as(key, entry) } else { true };
        let learnt = |column: &mut Column| column.learn(key, entry.clone());
        is_same_above && self.change(learnt).is_ok_and(|seen| version(seen.as_ref()) == version(entry.as_ref()))
    }

    /// Lists a bucket whose keys were listed at that version of the store. Whether the set of keys is the same here.
    fn lists_as(&self, bucket: &BucketName, version: u64) -> bool {
        match &self.place {
            Place::Ahead(seat, _) => return seat.lists_as(bucket, version),
            Place::Part(above) => {
                if !above.lists_as(bucket, version) {
                    return false;
                }
                // Whether its caller has changed the set since, it is asked at its end.
                let mut listed = lock(&self.listed);
                if listed.get(bucket).is_none() {
                    listed.insert(bucket.clone(), 0);
                }
            }
            Place::Alone | Place::Beside(_) => {}
        }
        self.change(|column| {
            let is_same = column.listed_at(bucket).is_none_or(|listed| listed == version);
            column.set_version(bucket) == 0 && is_same && column.list(bucket, version).is_ok()
        })
    }

    /// Writes what that column has written, if all that it has read is what is seen here still: other callees may have ended meanwhile. `under`: the mistake that lays it under what is written here.
    pub(super) fn absorb_beside(&self, column: &Column, under: Mutant) -> bool {
        let mut listed = Few::default();
        column.listed().for_each(|(bucket, _)| listed.insert(bucket.clone(), 0));
        let absorbed = self.write(column.written_keys(), |into| {
            if mutants::is(under) {
                let changes = column.changes().filter(|(key, _)| into.written(key).is_none());
                let changes = changes.map(|(key, change)| (key.clone(), change)).collect();
                return into.make(&Commit::new(Vec::new(), changes)).map(|_| Ok(()));
            }
            into.absorb(column, &listed)
        });
        matches!(absorbed, Ok(Ok(())))
    }
}
