//! The transactions of one execution that are run ahead: columns in program order, each of which reads through its predecessors, and of which the first are committed together.
//!
//! ```text
//!   program order      1          2          3          4
//!                  [Column]<--[Column]<--[Column]<--[Column]   a read: the nearest predecessor that knows the key, else the store
//!                   ended      ended      runs       runs      a write: successors that have read something else are squashed
//!                  |--- one commit ---|
//!                       store
//! ```
//!
//! The driver of the execution [opens](Pipeline::open) a column for each run of a function, at its [place](Dewey), and hands the transaction to the run. When the run has ended, nothing of it is
//! in the store. The driver names the first columns that have ended and are wanted ([`settle`](Pipeline::settle)): what they have read of the store is expected, and what they have written
//! is changed, in one [`Commit`]. What has read from a column that is not as it was is *squashed*: it takes part no more, whatever its run still does, and the driver
//! opens its place again. So the store holds what the functions would have left one after the other.
//!
//! * Of a key that a predecessor has written, the nearest such write counts, also while that predecessor runs or its commit is under way.
//! * A squash takes the readers of what is gone with it, and their readers. It does not take other successors: whether their inputs still hold, the driver knows.
//! * Columns take no turns over [hot keys](super::contention): one that runs ahead would hold a lock for as long as its predecessors run, and one of these may wait for it. The key of a conflict is
//!   told to the driver, which can have the next run stand in its line.
//! * A commit is made also where nothing but one key of Redis was read: the read may be older than the commit of the columns before.
//!
//! `columns` is the pure structure, `group` the commit, `recall` columns that need no run, `stall` reads that wait, `fetched` reads that are sent before they are asked for, `values` reads that need not be sent, `seat` the place of a transaction in it, `sight` what callees see that were begun [beside](super::beside) a column.

mod cause;
mod columns;
mod dewey;
mod fetched;
mod group;
mod recall;
mod seat;
mod sight;
mod stall;
mod values;

use std::sync::{Arc, Mutex};

use sledge_workflow::definition::StateIndex;
use tokio::sync::Notify;

pub use self::cause::{Cause, Squashed};
pub use self::dewey::Dewey;
pub(super) use self::fetched::{Fetched, Look};
pub use self::recall::Basis;
pub(super) use self::seat::{Seat, Sees};
pub(super) use self::sight::Sight;
pub use self::stall::Stalls;
pub(super) use self::values::left_by_column;
pub use self::values::{Expected, Values};

use self::columns::Columns;
use super::{Isolation, PutOff, Transaction, lock};
use crate::kv::{BucketKey, Commit, KvError, Outcome, Space};

/// Columns that a pipeline has at most.
pub const COLUMNS_MAX: usize = 64;

/// A column of a pipeline: one run. The same place opened again is another column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ColumnId(u64);

/// What was decided about the first columns.
#[derive(Clone, Debug, PartialEq)]
pub enum Group {
    /// Nothing: the first of those that were named is not the first of all, or runs, or a commit is under way.
    Nothing,
    /// A commit decides. Its outcome is to be [told](Pipeline::came).
    Commit {
        /// What it is made of, in program order.
        columns: Vec<ColumnId>,
        /// What the store is to make.
        commit: Commit,
    },
    /// These columns are committed, and gone.
    Committed {
        /// In program order.
        columns: Vec<ColumnId>,
        /// The calls that they have put off, which begin now.
        calls: Vec<PutOff>,
        /// What each of them leaves.
        findings: Vec<Findings>,
    },
    /// What this column has read is not there any more. It is squashed, with all that are as stale; those before it can be settled.
    Stale {
        /// The first such column.
        column: ColumnId,
        /// The key that was changed, if it was a key and no set of keys.
        key: Option<BucketKey>,
    },
    /// Nothing was made, and the same is to be settled again: the store has refused several columns together, or a successor was in the way.
    Again,
    /// These columns are not committed, or that is not known ([`KvError::Unknown`]). They are gone.
    Failed {
        /// In program order: a single one, unless the outcome is not known.
        columns: Vec<ColumnId>,
        /// Why.
        error: KvError,
    },
}

/// What a column leaves that is committed.
#[derive(Clone, Debug, PartialEq)]
pub struct Findings {
    /// Which one.
    pub column: ColumnId,
    /// What it rests on, if that can be [recalled](Pipeline::recall); none where [nothing is recalled](Pipeline::keep_bases).
    pub basis: Option<Basis>,
    /// The keys that it has read of the store: none where [nothing is fetched](Pipeline::fetches), and where these are many.
    pub reads: Vec<BucketKey>,
}

/// The columns of one execution. Runs on other threads use it by their transactions.
#[derive(Debug)]
pub struct Pipeline {
    columns: Mutex<Columns>,
    space: Option<Space>,
    /// Told when columns were squashed.
    squashed: Arc<Notify>,
    /// Told when something has changed for which reads may wait.
    changed: Notify,
    fetched: Arc<Fetched>,
}

impl Pipeline {
    /// One without columns, on that store. `squashed` is notified when there are columns to [take](Pipeline::take_squashed).
    #[must_use]
    pub fn new(space: Option<Space>, squashed: Arc<Notify>) -> Arc<Pipeline> {
        Arc::new(Pipeline { columns: Mutex::default(), space, squashed, changed: Notify::new(), fetched: Arc::default() })
    }

    /// Has committed groups tell what they rest on, from now on.
    pub fn keep_bases(&self) {
        lock(&self.columns).keeps_bases = true;
    }

    /// Has what runs are [expected](Pipeline::expect) to read fetched before they ask, from now on, and committed groups tell what they have read. False where that gains nothing: in a store in the process.
    pub fn fetches(&self) -> bool {
        let is_remote = matches!(self.space, Some(Space::Redis(_)));
        lock(&self.columns).tells_reads = is_remote;
        is_remote
    }

    /// Has reads be given what the store is expected to have, from now on, and committed groups tell what they have left there. For a store that is [remote](Pipeline::fetches).
    pub fn expect_values(&self, values: Arc<dyn Values>) {
        self.fetched.expect_values(Arc::clone(&values));
        lock(&self.columns).values = Some(values);
    }

    /// How many reads were given what the store is expected to have.
    #[must_use]
    pub fn reads_spared(&self) -> u32 {
        self.fetched.spared()
    }

    /// Runs that are about to begin will read these keys of the store: they are read with the next [`fetch`](Pipeline::fetch).
    pub fn expect(&self, keys: &[BucketKey]) {
        self.fetched.expect(keys);
    }

    /// Reads what is expected to be read, all in one; none if that is nothing. Reads of these keys wait for it, so it has to be polled.
    pub fn fetch(&self) -> Option<impl Future<Output = ()> + Send + use<>> {
        let Some(Space::Redis(space)) = &self.space else { return None };
        let (turn, space, fetched) = (self.fetched.send()?, space.clone(), Arc::clone(&self.fetched));
        Some(async move {
            let entries = space.get_many(turn.keys.clone()).await;
            fetched.came(&turn, entries);
        })
    }

    /// Has each group be a [commit](Group::Commit), also one that changes nothing, from now on: for a driver that adds to it what it writes of the execution.
    pub fn journal(&self) {
        lock(&self.columns).is_journalled = true;
    }

    /// Has reads of columns [whose states are known](Pipeline::is_of) wait, from now on.
    pub fn stall_by(&self, stalls: Arc<dyn Stalls>) {
        lock(&self.columns).stalls = Some(stalls);
    }

    /// Says of which state a column is that was just opened.
    pub fn is_of(&self, column: ColumnId, state: StateIndex) {
        let mut columns = lock(&self.columns);
        if let Some(at) = columns.find(column) {
            columns.slots[at].state = Some(state);
        }
    }

    /// Opens a column at that place, for a run of a function with that isolation. The run [takes](Transaction::of_call) the transaction. A column that is at the place is given up.
    ///
    /// None if there are [`COLUMNS_MAX`] columns, or the place lies before one that is on its way to the store: it can be opened when the outcome is [told](Pipeline::came).
    pub fn open(self: &Arc<Self>, place: Dewey, isolation: &Isolation) -> Option<(ColumnId, Arc<Transaction>)> {
        let id = self.with(|columns| columns.open(place, isolation))?;
        Some((id, Transaction::in_pipeline(isolation, Seat::new(Arc::clone(self), id))))
    }

    /// Has a column that was just opened come to what that run has come to, without a run of its own: it has ended then. False where something that the run has read is otherwise by now, as far as that is known here.
    #[must_use]
    pub fn recall(&self, column: ColumnId, basis: &Basis) -> bool {
        self.with(|columns| columns.recall(column, basis, self.space.as_ref()))
    }

    /// The columns that were squashed since this was asked last: nothing of their runs counts any more, and their places can be opened again.
    #[must_use]
    pub fn take_squashed(&self) -> Vec<Squashed> {
        std::mem::take(&mut lock(&self.columns).squashed)
    }

    /// Takes a column away that is not wanted: what has read from it is squashed. One that is on its way to the store stays.
    pub fn give_up(&self, column: ColumnId) {
        self.with(|columns| columns.give_up(column));
    }

    /// Whether the run of that column has ended well, if it has ended and was not squashed.
    #[must_use]
    pub fn ended(&self, column: ColumnId) -> Option<bool> {
        let columns = lock(&self.columns);
        columns.find(column).and_then(|at| columns.slots[at].ended)
    }

    /// Decides about the first columns: as many of those that are named, in program order, as have ended and fit into one commit. The driver names those whose inputs are right.
    #[must_use]
    pub fn settle(&self, named: &[ColumnId]) -> Group {
        self.with(|columns| columns.settle(named, self.space.as_ref()))
    }

    /// That is what became of the [commit](Group::Commit).
    #[must_use]
    pub fn came(&self, outcome: Result<Outcome, KvError>) -> Group {
        self.with(|columns| {
            if !columns.tells_reads {
                return columns.came(outcome);
            }
            let changes = columns.under_way.iter().flat_map(|under_way| &under_way.commit.changes);
            let changed: Vec<BucketKey> = changes.map(|(key, _)| key.clone()).collect();
            let group = columns.came(outcome);
            if columns.slots.is_empty() {
                self.fetched.clear();
            } else {
                self.fetched.forget(changed.iter());
            }
            group
        })
    }

    /// Does something with the columns, and tells the driver if some of them were squashed.
    fn with<T>(&self, work: impl FnOnce(&mut Columns) -> T) -> T {
        let mut columns = lock(&self.columns);
        let before = columns.squashed.len();
        let result = work(&mut columns);
        let has_moved = std::mem::take(&mut columns.has_moved) && columns.stalls.is_some();
        let was_misled = std::mem::take(&mut columns.was_misled);
        let squashed = columns.squashed.get(before..).unwrap_or_default();
        if squashed.iter().any(|squashed| matches!(squashed.cause, Cause::Changed(_))) {
            // The next runs read what is there now.
            self.fetched.clear();
        }
        if was_misled {
            self.fetched.was_wrong();
        }
        let has_squashed = !squashed.is_empty();
        drop(columns);
        if has_moved {
            self.changed.notify_waiters();
        }
        if has_squashed {
            self.squashed.notify_one();
        }
        result
    }
}
