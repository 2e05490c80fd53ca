//! Reads that wait for a predecessor, where earlier executions have shown that they come too early otherwise (SpecFaaS, section V: squash minimisation).
//!
//! A read waits as long as a predecessor runs that is expected to write a key like it and has not written one. That predecessor never waits for the reader: columns wait for those before them only. So
//! each wait ends when its writer has written, has ended or is gone, and the first column that runs waits for none.

use std::fmt;
use std::sync::Arc;

use sledge_workflow::definition::StateIndex;

use super::super::contention::alike;
use super::super::lock;
use super::columns::{Columns, Slot};
use super::{ColumnId, Pipeline};
use crate::kv::BucketKey;

/// What is known of reads that come too early. It is asked under the lock of a pipeline, and must not use that itself.
pub trait Stalls: fmt::Debug + Send + Sync {
    /// Whether a read of that key waits for the writer.
    fn waits(&self, reader: StateIndex, writer: StateIndex, key: &BucketKey) -> bool;

    /// A read has waited for the writer. Whether that has written a key like it.
    fn waited(&self, reader: StateIndex, writer: StateIndex, key: &BucketKey, has_written: bool);

    /// A run of the reader was squashed, since the writer has written that key after it was read.
    fn read_too_early(&self, reader: StateIndex, writer: StateIndex, key: &BucketKey);
}

impl Columns {
    /// The nearest predecessor for which a read of that key waits.
    pub(super) fn waits_for(&self, at: usize, key: &BucketKey) -> Option<ColumnId> {
        let (stalls, reader) = (self.stalls.as_ref()?, self.slots[at].state?);
        let waits = |slot: &&Slot| {
            slot.ended.is_none()
                && slot.state.is_some_and(|writer| stalls.waits(reader, writer, key))
                && !slot.has_written_alike(key)
        };
        self.slots[..at].iter().rev().find(waits).map(|slot| slot.id)
    }

    /// For which predecessor a read of that key waits now; `before`: for which it has waited until now.
    fn still_waits(
        &self,
        reader: ColumnId,
        before: Option<(ColumnId, StateIndex)>,
        key: &BucketKey,
    ) -> Option<(ColumnId, StateIndex)> {
        let at = self.find_running(reader)?;
        let now = self.waits_for(at, key).and_then(|id| Some((id, self.slots[self.find(id)?].state?)));
        if let Some(before) = before.filter(|before| Some(*before) != now) {
            self.has_waited(reader, before, key);
        }
        now
    }

    /// A read of that column does not wait for that predecessor any more.
    fn has_waited(&self, reader: ColumnId, writer: (ColumnId, StateIndex), key: &BucketKey) {
        let Some(reader) = self.find(reader).and_then(|at| self.slots[at].state) else { return };
        let (id, writer) = writer;
        // One that is gone says nothing: it may be opened again.
        if let (Some(at), Some(stalls)) = (self.find(id), &self.stalls) {
            stalls.waited(reader, writer, key, self.slots[at].has_written_alike(key));
        }
    }
}

impl Slot {
    fn has_written_alike(&self, key: &BucketKey) -> bool {
        let template = alike(key);
        self.column.changes().any(|(written, _)| alike(written) == template)
    }
}

impl Pipeline {
    /// Waits as long as a read of that key by that column has to; at once, if the column is gone.
    pub(super) async fn stall(self: Arc<Self>, reader: ColumnId, key: BucketKey) {
        let mut before: Option<(ColumnId, StateIndex)> = None;
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // From here on no change is missed, also one that comes before the wait.
            changed.as_mut().enable();
            // Not by `with`: this changes nothing that others wait for.
            let now = lock(&self.columns).still_waits(reader, before, &key);
            if now.is_none() {
                return;
            }
            before = now;
            changed.await;
        }
    }
}
