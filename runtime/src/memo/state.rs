//! What a table's lock guards: its entries, the flights, and what it has of the server's memory.

use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use sledge_sandbox::{Budget, Reclaim};

use super::flight::Flights;
use super::key::{Key, Vary};
use super::room::Room;
use super::table::{Admitted, Table};
use super::{Entry, Memo};

#[derive(Debug)]
pub(super) struct State {
    /// What requests are told apart by.
    pub(super) vary: Arc<Vary>,
    pub(super) table: Table<Arc<Entry>>,
    pub(super) flights: Flights<Waker, Arc<Entry>>,
    room: Room,
    /// Entries that went for want of memory, and were not counted yet.
    given_back: u64,
}

impl State {
    /// An empty table of so many bytes.
    pub(super) fn new(vary: Arc<Vary>, bytes_max: usize, budget: Option<Arc<Budget>>) -> State {
        State { vary, table: Table::new(bytes_max), flights: Flights::default(), room: Room::new(budget), given_back: 0 }
    }

    /// Drops an entry that does not hold any more, unless another has taken its place.
    pub(super) fn forget(&mut self, key: &Key, entry: &Arc<Entry>) {
        if self.table.get(key).is_some_and(|there| Arc::ptr_eq(&there, entry)) {
            self.table.remove(key);
            self.fit();
        }
    }

    /// Has the table counted as it is now. Where there is no memory left for that, entries go, those first that were not used for longest.
    pub(super) fn fit(&mut self) {
        while !self.room.resize(self.table.bytes()) {
            self.given_back += u64::from(self.table.evict() == Some(true));
        }
    }

    /// The same after that was admitted.
    pub(super) fn fitted(&mut self, mut admitted: Admitted) -> Admitted {
        self.fit();
        if let Admitted::Now { evicted } = &mut admitted {
            *evicted += mem::take(&mut self.given_back);
        }
        admitted
    }
}

/// Requests need memory: entries go for that.
impl Reclaim for Memo {
    fn reclaim(&self, bytes: u64) -> bool {
        let mut state = lock(&self.state);
        let before = state.table.bytes();
        while ((before - state.table.bytes()) as u64) < bytes
            && let Some(was_entry) = state.table.evict()
        {
            state.given_back += u64::from(was_entry);
        }
        state.fit();
        state.table.bytes() < before
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is done under these locks cannot be half done, but by a bug; what is looked up then is still compared.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
