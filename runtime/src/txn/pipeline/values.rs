//! What the store is expected to have under a key, since a commit has read or left it there: a read that is given this saves its way to a remote store.
//!
//! It may be another by now, as what any read has found that was on its way for long. So nothing here has to be right: the commit compares versions. What was wrong is not expected again for a while.

use std::fmt;

use super::super::column::Column;
use super::columns::Slot;
use crate::kv::{BucketKey, Change, Entry};

/// What is expected under a key: an entry, or that there is none. None of both where that is not known.
pub type Expected = Option<Option<Entry>>;

/// What is known of the store's keys. It is asked under the lock of a pipeline, and must not use that itself.
pub trait Values: fmt::Debug + Send + Sync {
    /// What is under a key.
    fn expected(&self, key: &BucketKey) -> Expected;

    /// A commit was made that has read these keys, or written them: what is there now.
    fn left(&self, keys: Vec<(BucketKey, Expected)>);

    /// Something else was there than a run had read, which had that version. Whether that is expected still: otherwise another commit was made meanwhile of which is known what it has left.
    fn wrong(&self, key: &BucketKey, version: u64) -> bool;
}

/// What a column leaves in the store that is committed under that version: what it has read of the store, and then what it has written, unless its run has failed.
pub(in super::super) fn left_by_column(
    column: &Column,
    version: u64,
    with_writes: bool,
) -> impl Iterator<Item = (BucketKey, Expected)> {
    let read = column.reads().map(|(key, entry)| (key.clone(), Some(entry.clone())));
    let written = column.changes().filter(move |_| with_writes).map(move |(key, change)| {
        let expected = match change {
            Change::Put(value) => Some(Some(Entry { version, value })),
            Change::Delete => Some(None),
            // What has become of the sum only the store knows.
            Change::Add(_) => None,
        };
        (key.clone(), expected)
    });
    read.chain(written)
}

/// The same of columns that are committed together, in their order.
pub(super) fn left_by(columns: &[Slot], version: u64) -> Vec<(BucketKey, Expected)> {
    // What one has read of those before it, these have written.
    let of_store = |slot: &Slot, key: &BucketKey| slot.column.written(key).is_some() || !slot.from.contains_key(key);
    let left = columns.iter().flat_map(|slot| left_by_column(&slot.column, version, true).filter(|(key, _)| of_store(slot, key)));
    left.collect()
}
