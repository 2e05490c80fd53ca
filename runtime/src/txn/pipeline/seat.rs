//! The place of a transaction that is a column of a pipeline. Once its column is gone or its run has ended, what the transaction does stays in a column of its own that leads nowhere.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use super::super::column::{Column, View};
use super::super::{PutOff, lock};
use super::{ColumnId, Fetched, Pipeline, Sight};
use crate::kv::{BucketKey, BucketName, Entry, KvError};

/// What an operation on a key comes to: an error, or what is there, if that is known.
pub(in super::super) type Sees = Result<Option<Option<Entry>>, KvError>;

/// Which column of which pipeline a transaction is.
#[derive(Debug)]
pub(in super::super) struct Seat {
    pipeline: Arc<Pipeline>,
    id: ColumnId,
    /// Whether the run for which it was opened has begun.
    is_taken: AtomicBool,
}

impl Seat {
    pub(super) const fn new(pipeline: Arc<Pipeline>, id: ColumnId) -> Seat {
        Seat { pipeline, id, is_taken: AtomicBool::new(false) }
    }

    /// Whether that is the first run that takes it. All others are parts of it.
    pub(in super::super) fn take(&self) -> bool {
        // Relaxed: it guards nothing else.
        !self.is_taken.swap(true, Ordering::Relaxed)
    }

    /// The wait that a read of that key begins with, if it does.
    pub(in super::super) fn stall(&self, key: &BucketKey) -> Option<impl Future<Output = ()> + Send + use<>> {
        let waits = self.pipeline.with(|columns| {
            let at = columns.find_running(self.id)?;
            // What it knows it reads as before.
            let is_new = columns.slots[at].column.view(key) == View::Below;
            columns.waits_for(at, key).filter(|_| is_new)
        });
        waits.map(|_| Arc::clone(&self.pipeline).stall(self.id, key.clone()))
    }

    /// What was fetched for its pipeline.
    pub(in super::super) fn fetched(&self) -> &Arc<Fetched> {
        &self.pipeline.fetched
    }

    /// What the column sees under a key, as [`Transaction::read`](super::super::Transaction::read) and `learn` say it, and how many bytes it keeps; none if it is gone.
    pub(in super::super) fn resolve(&self, key: &BucketKey, of_store: Option<&Option<Entry>>) -> Option<(Sees, usize)> {
        self.pipeline.with(|columns| {
            let at = columns.find_running(self.id)?;
            let answer = columns.read(at, key, of_store);
            Some((answer, columns.bytes(at)))
        })
    }

    /// Does something with the column, or where it takes part no more, with that one. `written`: the keys that this may write.
    pub(in super::super) fn with<'k, T>(
        &self,
        gone: &Mutex<Column>,
        written: impl Iterator<Item = &'k BucketKey>,
        work: impl FnOnce(&mut Column) -> T,
    ) -> T {
        self.pipeline.with(|columns| match columns.find_running(self.id) {
            Some(at) => columns.change(at, written, work),
            None => work(&mut lock(gone)),
        })
    }

    /// Looks at the column, also when its run has ended.
    pub(in super::super) fn look<T>(&self, gone: &Mutex<Column>, look: impl FnOnce(&Column) -> T) -> T {
        self.pipeline.with(|columns| match columns.find(self.id) {
            Some(at) => look(&columns.slots[at].column),
            None => look(&lock(gone)),
        })
    }

    /// Keys that its predecessors and it have added or removed, from that one on. What is listed with them is a read of the set of keys.
    pub(in super::super) fn own_keys(&self, bucket: &BucketName, from: &BucketKey) -> Option<Vec<(BucketKey, bool)>> {
        self.pipeline.with(|columns| Some(columns.own_keys(columns.find_running(self.id)?, bucket, from)))
    }

    /// What a callee sees that is begun beside the column.
    pub(in super::super) fn sight(&self) -> Sight {
        Sight::new(Arc::clone(&self.pipeline), self.id)
    }

    /// Has the column read a key as a callee has that was begun beside it. Whether that is what it sees.
    pub(in super::super) fn reads_as(&self, key: &BucketKey, entry: &Option<Entry>) -> bool {
        self.pipeline.with(|columns| columns.find_running(self.id).is_some_and(|at| columns.reads_as(at, key, entry)))
    }

    /// The same of the set of keys of a bucket, which had that version in the store.
    pub(in super::super) fn lists_as(&self, bucket: &BucketName, version: u64) -> bool {
        self.pipeline.with(|columns| columns.find_running(self.id).is_some_and(|at| columns.lists_as(at, bucket, version)))
    }

    /// Whether a column before it has changed the set of keys of a bucket.
    pub(in super::super) fn is_changed_before(&self, bucket: &BucketName) -> bool {
        self.pipeline.with(|columns| columns.find(self.id).is_none_or(|at| columns.is_changed_before(at, bucket)))
    }

    /// Whether it takes part no more: its run has ended, or it was squashed.
    pub(in super::super) fn is_gone(&self) -> bool {
        self.pipeline.with(|columns| columns.find_running(self.id).is_none())
    }

    /// Its run is over.
    pub(in super::super) fn end(&self, ended_well: bool, calls: Vec<PutOff>) {
        self.pipeline.with(|columns| {
            if let Some(at) = columns.find(self.id) {
                columns.end(at, ended_well, calls);
            }
        });
    }
}
