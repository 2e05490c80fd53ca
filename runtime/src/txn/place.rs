//! Where a transaction stands: alone, as a part of its caller's, or in a pipeline. It says where its column is.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::FutureExt as _;
use futures_util::future::{self, BoxFuture};

use super::column::Column;
use super::held::Held;
use super::pipeline::Seat;
use super::{Isolation, Transaction};
use crate::kv::BucketKey;

/// What lies below a transaction's column.
#[derive(Debug)]
pub(super) enum Place {
    /// The store.
    Alone,
    /// The column of the caller.
    Part(Arc<Transaction>),
    /// Its predecessors: its column is in a pipeline, and the transaction's own one is used when that takes part no more. What is seen outside waits.
    Ahead(Seat, Arc<Held>),
}

impl Transaction {
    /// That of an invocation that was given this one: it itself, where it is a column of a pipeline that was opened for that invocation, and otherwise a part of it.
    #[must_use]
    pub fn of_call(given: &Arc<Transaction>) -> Arc<Transaction> {
        match &given.place {
            Place::Ahead(seat, _) if seat.take() => Arc::clone(given),
            _ => Transaction::join(given),
        }
    }

    pub(super) fn in_pipeline(isolation: &Isolation, seat: Seat) -> Arc<Transaction> {
        Arc::new(Transaction::new(isolation.clone(), Column::default(), Place::Ahead(seat, Arc::default())))
    }

    /// Where waits what its run, or one that it has called, would have seen outside; none where that need not wait.
    #[must_use]
    pub fn held(&self) -> Option<&Arc<Held>> {
        if let Place::Ahead(_, held) = &self.outermost().place { Some(held) } else { None }
    }

    /// The waits that reads of these keys begin with, where a function before this one is expected to write them.
    pub fn stalls<'k>(&self, keys: impl Iterator<Item = &'k BucketKey>) -> Option<BoxFuture<'static, ()>> {
        let Place::Ahead(seat, _) = &self.outermost().place else { return None };
        let stalls: Vec<_> = keys.filter_map(|key| seat.stall(key)).collect();
        (!stalls.is_empty()).then(|| future::join_all(stalls).map(|_| ()).boxed())
    }

    pub(super) fn outermost(&self) -> &Transaction {
        if let Place::Part(above) = &self.place { above.outermost() } else { self }
    }

    /// Whether what its callees have done does not matter any more: it is stale, or takes part in its pipeline no more.
    pub(super) fn is_over(&self) -> bool {
        match &self.place {
            Place::Ahead(seat, _) => seat.is_gone(),
            _ => self.column().stale().is_some(),
        }
    }

    pub(super) fn with<T>(&self, work: impl FnOnce(&mut Column) -> T) -> T {
        match &self.place {
            Place::Ahead(seat, _) => seat.with(&self.column, std::iter::empty(), work),
            _ => work(&mut self.column()),
        }
    }

    pub(super) fn change<T>(&self, change: impl FnOnce(&mut Column) -> T) -> T {
        self.write(std::iter::empty(), change)
    }

    /// Changes the column, in which these keys may be written.
    pub(super) fn write<'k, T>(&self, keys: impl Iterator<Item = &'k BucketKey>, change: impl FnOnce(&mut Column) -> T) -> T {
        let change = |column: &mut Column| {
            let result = change(column);
            self.bytes.store(column.bytes(), Ordering::Relaxed);
            result
        };
        match &self.place {
            Place::Ahead(seat, _) => seat.with(&self.column, keys, change),
            _ => change(&mut self.column()),
        }
    }
}
