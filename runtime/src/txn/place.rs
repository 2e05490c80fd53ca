//! Where a transaction stands: alone, as a part of its caller's, beside that, or in a pipeline. It says where its column is.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::FutureExt as _;
use futures_util::future::{self, BoxFuture};

use super::beside::Beside;
use super::column::Column;
use super::held::Held;
use super::mutants::{self, Mutant};
use super::pipeline::{Look, Seat};
use super::{Isolation, Transaction};
use crate::kv::{BucketKey, Entry};

/// What lies below a transaction's column.
#[derive(Debug)]
pub(super) enum Place {
    /// The store.
    Alone,
    /// The column of the caller.
    Part(Arc<Transaction>),
    /// Its predecessors: its column is in a pipeline, and the transaction's own one is used when that takes part no more. What is seen outside waits.
    Ahead(Seat, Arc<Held>),
    /// The store, and where its caller is in a pipeline what the caller's predecessors have written, until the caller has [adopted](Transaction::adopt) it.
    Beside(Box<Beside>),
}

/// Whether some keys were read before they were asked for.
pub enum Early {
    /// That was there.
    Known(Vec<Option<Entry>>),
    /// They are on their way, until this is over.
    UnderWay(BoxFuture<'static, ()>),
    /// They were not.
    Unknown,
}

impl Transaction {
    /// That of an invocation that was given this one: it itself, where it was opened for that invocation, which runs ahead, and otherwise a part of it.
    #[must_use]
    pub fn of_call(given: &Arc<Transaction>) -> Arc<Transaction> {
        match &given.place {
            Place::Ahead(seat, _) if seat.take() => Arc::clone(given),
            Place::Beside(beside) if beside.take() => Arc::clone(given),
            _ => Transaction::join(given),
        }
    }

    pub(super) fn in_pipeline(isolation: &Isolation, seat: Seat) -> Arc<Transaction> {
        let transaction = Transaction::new(isolation.clone(), Column::default(), Place::Ahead(seat, Arc::default()));
        Arc::new(Transaction { verdicts: Some(Box::default()), ..transaction })
    }

    /// Where waits what its run, or one that it has called, would have seen outside; none where that need not wait.
    #[must_use]
    pub fn held(&self) -> Option<&Arc<Held>> {
        match &self.outermost().place {
            _ if mutants::is(Mutant::LoggedAhead) => None,
            Place::Ahead(_, held) => Some(held),
            Place::Beside(beside) => Some(&beside.held),
            Place::Alone | Place::Part(_) => None,
        }
    }

    /// The waits that reads of these keys begin with, where a function before this one is expected to write them.
    pub fn stalls<'k>(&self, keys: impl Iterator<Item = &'k BucketKey>) -> Option<BoxFuture<'static, ()>> {
        let Place::Ahead(seat, _) = &self.outermost().place else { return None };
        let stalls: Vec<_> = keys.filter_map(|key| seat.stall(key)).collect();
        (!stalls.is_empty()).then(|| future::join_all(stalls).map(|_| ()).boxed())
    }

    /// What was read under these keys before it asks a remote store for them, or what that is expected to have there.
    #[must_use]
    pub fn fetched(&self, keys: &[BucketKey]) -> Early {
        let outermost = self.outermost();
        let Place::Ahead(seat, _) = &outermost.place else {
            // One that runs again, since that was wrong, asks.
            let values = outermost.values.as_ref().filter(|_| !outermost.is_repeated);
            let known = values.and_then(|values| keys.iter().map(|key| values.expected(key)).collect());
            let Some(entries) = known else { return Early::Unknown };
            // So that its commit compares the versions, also of a single key. Relaxed: it ends after that.
            outermost.is_recalled.store(!mutants::is(Mutant::ExpectedUnread), Ordering::Relaxed);
            return Early::Known(entries);
        };
        match seat.fetched().look(keys) {
            Look::Known(entries) => Early::Known(entries),
            Look::UnderWay => Early::UnderWay(Arc::clone(seat.fetched()).wait(keys.to_vec()).boxed()),
            Look::Unknown => Early::Unknown,
        }
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

    /// Looks at the column, also of a run in a pipeline that has ended.
    pub(super) fn look<T>(&self, look: impl FnOnce(&Column) -> T) -> T {
        match &self.place {
            Place::Ahead(seat, _) => seat.look(&self.column, look),
            _ => look(&self.column()),
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
