//! What a run has come to in the store, kept so that another run of the same function with the same argument need not be made: the transaction of its caller *recalls* it.
//!
//! To recall it is to do at once what the run has done: to read the same entries, and to make the same changes. The store is not asked for any of it, so the entries may be old. The transaction's own
//! commit compares the versions, as it does of everything that the transaction has read itself, and decides. Where the store is in this process it is asked at once, too.
//!
//! A run leaves a footprint only if it has read nothing but the store: what its callers have written has no version that outlives their transaction.

use std::sync::atomic::Ordering;

use bytes::Bytes;

use super::Transaction;
use super::column::{Column, PROVISIONAL, Stale, version};
use super::mutants::{self, Mutant};
use super::place::Place;
use crate::kv::embedded::Seen;
use crate::kv::{BucketKey, BucketName, Commit, Entry, KvError, Space};

/// Bytes of a write beside its key and value, about.
const WRITE_BYTES: usize = 128;

/// What a run has read, with the entries, and what it has changed; with all that it has called.
#[derive(Debug)]
pub struct Footprint(Column);

impl Footprint {
    /// Bytes that it keeps.
    #[must_use]
    pub fn bytes(&self) -> usize {
        memory(&self.0)
    }

    /// Whether it has read what is otherwise by now.
    fn has_read(&self, stale: &Stale) -> bool {
        match stale {
            Stale::Key(key) => self.0.read(key).is_some(),
            Stale::Bucket(bucket) => self.0.listed_at(bucket).is_some(),
        }
    }
}

impl Transaction {
    /// The footprint of a callee's run that has ended well, if that may be [recalled](Transaction::recall) and has so many bytes at most.
    #[must_use]
    pub fn footprint(&self, bytes_max: usize) -> Option<Footprint> {
        if let Place::Alone | Place::Ahead(..) = self.place {
            return None;
        }
        let column = self.column();
        let is_stored = column.reads().all(|(_, entry)| version(entry.as_ref()) < PROVISIONAL);
        let is_of_store = is_stored && column.listed().all(|(bucket, _)| !self.is_changed_above(bucket));
        let is_kept = is_of_store && column.stale().is_none() && memory(&column) <= bytes_max;
        if is_kept { copied(&column).ok().map(Footprint) } else { None }
    }

    /// Has the transaction come to what that run has come to, as if it had called it now. False where the run would have seen something else, as far as that is known here: then the function has to run.
    #[must_use]
    pub fn recall(&self, Footprint(column): &Footprint, space: Option<&Space>) -> bool {
        let is_seen = mutants::is(Mutant::KnownUnchecked) || self.agrees(column);
        if self.outermost().is_repeated || self.is_over() || !is_seen {
            return false;
        }
        let keys = column.reads().map(|(key, _)| key).chain(column.written_keys());
        // A run would take its turns over them.
        if !self.contended(keys).is_empty() {
            return false;
        }
        if let Some(Space::Embedded(space)) = space {
            let keys = column.expected().map(|(key, version)| (Seen::Key(key), version));
            let seen = keys.chain(column.listed().map(|(bucket, version)| (Seen::Bucket(bucket), version)));
            if !matches!(space.changed(seen), Ok(None)) {
                return false;
            }
        }
        // Relaxed: the transaction ends after that, on whatever thread.
        self.outermost().is_recalled.store(true, Ordering::Relaxed);
        if [Mutant::KnownUnread, Mutant::KnownUnchecked, Mutant::KnownCalleesLost].into_iter().any(mutants::is) {
            return self.recall_wrongly(column);
        }
        self.reads_as(column) && self.absorb_beside(column, Mutant::KnownUnder)
    }

    /// Whether a run that reads the same as that one is to be expected now that this transaction is committed: it has changed nothing of that.
    #[must_use]
    pub fn leaves(&self, Footprint(column): &Footprint) -> bool {
        self.look(|own| {
            let is_written = column.reads().any(|(key, _)| own.written(key).is_some());
            !is_written && column.listed().all(|(bucket, _)| own.set_version(bucket) == 0)
        })
    }

    /// Whether that is what was found to be otherwise when the transaction was to be committed.
    #[must_use]
    pub fn is_spoiled_by(&self, footprint: &Footprint) -> bool {
        super::lock(&self.conflicted).as_ref().is_none_or(|stale| footprint.has_read(stale))
    }

    /// Whether that run would see here what it has seen, as far as that is known: all of it has to come from the store.
    fn agrees(&self, column: &Column) -> bool {
        let agrees = self.with(|own| agree(own, column));
        agrees
            && match &self.place {
                Place::Part(above) => above.agrees(column),
                // What the columns before it have written is looked at when it reads the same.
                Place::Alone | Place::Beside(_) | Place::Ahead(..) => true,
            }
    }

    /// Whether one of its callers has changed the set of keys of a bucket, or a column before the outermost.
    fn is_changed_above(&self, bucket: &BucketName) -> bool {
        match &self.place {
            Place::Part(above) => above.with(|column| column.set_version(bucket) != 0) || above.is_changed_above(bucket),
            Place::Ahead(seat, _) => seat.is_changed_before(bucket),
            Place::Alone | Place::Beside(_) => false,
        }
    }

    /// What mistakes do: the changes are made, whatever was read.
    fn recall_wrongly(&self, column: &Column) -> bool {
        if mutants::is(Mutant::KnownUnchecked) {
            let _ = self.reads_as(column);
        }
        let is_lost = mutants::is(Mutant::KnownCalleesLost);
        (!is_lost || self.outermost().reads_as(column))
            && self.make(&Commit::new(Vec::new(), column.commit(true).changes)).is_ok()
    }
}

/// Bytes of a column and of all that it keeps, about.
fn memory(column: &Column) -> usize {
    let reads = column.reads().count() * size_of::<(BucketKey, Option<Entry>)>();
    let listed = column.listed().count() * size_of::<(BucketName, u64)>();
    size_of::<Column>() + column.bytes() + reads + listed + column.written_keys().count() * WRITE_BYTES
}

/// A column that has read and written the same. What it has read is copied: it may be a part of something larger.
fn copied(column: &Column) -> Result<Column, KvError> {
    let copy = |Entry { version, value }: &Entry| Entry { version: *version, value: Bytes::copy_from_slice(value) };
    let mut copied = Column::default();
    for (key, entry) in column.reads() {
        copied.learn(key, entry.as_ref().map(copy))?;
    }
    for (bucket, version) in column.listed() {
        copied.list(bucket, version)?;
    }
    copied.make(&Commit::new(Vec::new(), column.commit(true).changes))?;
    Ok(copied)
}

/// Whether what lies on a column would see what the other one has seen of the store: it has written nothing of that, and has read nothing of it at another version.
fn agree(own: &Column, other: &Column) -> bool {
    let sees = |(key, entry): (&BucketKey, &Option<Entry>)| {
        let is_same = |known: &Option<Entry>| version(known.as_ref()) == version(entry.as_ref());
        own.written(key).is_none() && own.read(key).is_none_or(is_same)
    };
    let lists = |(bucket, version): (&BucketName, u64)| {
        own.set_version(bucket) == 0 && own.listed_at(bucket).is_none_or(|known| known == version)
    };
    other.reads().all(sees) && other.listed().all(lists)
}
