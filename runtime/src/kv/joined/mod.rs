//! Reads that are joined: while a read of a key is under way, other readers of the same tenant take its answer in place of sending their own.
//!
//! ```text
//!   reader --read--> slot of the key: --nothing under way--> sends a read, and waits for it
//!                                     --a read under way---> waits for that one
//!                                     --closed by a write--> sends a read for itself
//!   commit --close-> slots of its keys, until its outcome is known, or it cannot be made any more
//! ```
//!
//! [`slot`] says when that is right. Here are the slots of a tenant, each behind a lock of its own: workers are threads, and a write of any of them closes the slot for the readers of all. A lock is held for a step
//! only, and never while a read is polled or given up.
//!
//! All readers of a read own it together. Each polls it and is woken by it on its own thread. One that is killed, or whose deadline has passed, drops its share, and the read goes on for the others; when all have
//! gone, it is given up.
//!
//! That is right only if all that writes to the store goes through this process: `kv_exclusive`.

mod slot;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::{Either, FutureExt as _, Shared, WeakShared};
use smallvec::SmallVec;
use xxhash_rust::xxh3::xxh3_64;

use self::slot::{Action, Event, FOR_GOOD, ReadId, Slot};
use super::{BucketKey, Entry, KvError};

/// Slots of a tenant: with more of them, a write closes fewer keys that it does not write.
const SLOTS: usize = 256;

/// What a read comes to.
type Answer = Result<Option<Entry>, KvError>;
type Read = Pin<Box<dyn Future<Output = Answer> + Send>>;

/// How reads were answered, in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JoinCounts {
    /// Sent to the store, so that others could join them.
    pub sent: u64,
    /// Sent to the store for one reader, since a write was under way, or may be.
    pub alone: u64,
    /// Answered by a read that was under way.
    pub joined: u64,
    /// Slots that are closed now since the outcome of a write is unknown.
    pub slots_lost: u64,
}

/// The reads of all tenants.
#[derive(Debug, Default)]
pub(super) struct Tenants {
    all: Mutex<HashMap<String, Arc<Joined>>>,
    watch: Mutex<Watch>,
}

/// Whether the store's clock is watched, by one task for all slots that wait for a time.
#[derive(Debug, Default)]
struct Watch {
    is_on: bool,
    /// A slot was lost since the watch last looked at all of them.
    has_more: bool,
}

/// The reads of one tenant that may be joined.
pub(super) struct Joined([Mutex<Place>; SLOTS]);

/// A slot, and what is under way in it.
#[derive(Default)]
struct Place {
    slot: Slot,
    /// Those that may be joined, and others that are not over.
    reads: Vec<(ReadId, WeakShared<Read>)>,
    counts: JoinCounts,
}

/// A read that is over when this is dropped.
struct UnderWay {
    joined: Arc<Joined>,
    index: usize,
    id: ReadId,
}

/// Slots that a write keeps closed: until its outcome is known or it cannot be made any more, and for good if this is dropped before.
pub(super) struct Closed {
    joined: Arc<Joined>,
    indexes: SmallVec<[usize; 4]>,
    made_until: Option<u64>,
}

impl fmt::Debug for Joined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Joined").finish_non_exhaustive()
    }
}

impl Tenants {
    /// Those of a tenant: the same for all functions that it has, for as long as the process lives, since what keeps a slot closed must not be forgotten.
    pub(super) fn of(&self, tenant: &str) -> Arc<Joined> {
        let mut tenants = lock(&self.all);
        if let Some(joined) = tenants.get(tenant) {
            return Arc::clone(joined);
        }
        let joined = Arc::new(Joined::new());
        tenants.insert(tenant.to_owned(), Arc::clone(&joined));
        joined
    }

    /// How reads of all tenants were answered.
    pub(super) fn counts(&self) -> JoinCounts {
        let tenants = self.cloned();
        let mut sum = JoinCounts::default();
        for place in tenants.iter().flat_map(|joined| &joined.0) {
            let place = lock(place);
            sum.sent += place.counts.sent;
            sum.alone += place.counts.alone;
            sum.joined += place.counts.joined;
            sum.slots_lost += u64::from(place.slot.lost_until().is_some());
        }
        sum
    }

    /// A slot was [lost](Closed::lost). Whether the caller is to watch the store's clock from now on.
    pub(super) fn begins_watch(&self) -> bool {
        let mut watch = lock(&self.watch);
        watch.has_more = true;
        !mem::replace(&mut watch.is_on, true)
    }

    /// The store's clock shows no time before this one any more: slots are opened whose writes cannot be made any more. Whether the watch goes on.
    pub(super) fn reached(&self, time: u64) -> bool {
        let waits = self.open(time);
        self.watch_goes_on(waits)
    }

    /// Whether some slots still wait for a time, of those that were lost before.
    fn open(&self, time: u64) -> bool {
        lock(&self.watch).has_more = false;
        let mut waits = false;
        for place in self.cloned().iter().flat_map(|joined| &joined.0) {
            let slot = &mut lock(place).slot;
            slot.step(Event::Time(time));
            waits |= slot.lost_until().is_some_and(|until| until != FOR_GOOD);
        }
        waits
    }

    fn watch_goes_on(&self, waits: bool) -> bool {
        let mut watch = lock(&self.watch);
        // What was lost meanwhile was perhaps not looked at.
        watch.is_on = waits || watch.has_more;
        watch.is_on
    }

    fn cloned(&self) -> Vec<Arc<Joined>> {
        lock(&self.all).values().cloned().collect()
    }
}

impl Joined {
    pub(super) fn new() -> Joined {
        Joined(std::array::from_fn(|_| Mutex::default()))
    }

    /// What is under a key: by a read that is under way, or by what `read` makes, which sends one when it is polled.
    pub(super) fn read<F>(self: &Arc<Self>, key: &BucketKey, read: impl FnOnce() -> F) -> Either<F, Shared<Read>>
    where
        F: Future<Output = Answer> + Send + 'static,
    {
        let index = index(key);
        let mut place = lock(&self.0[index]);
        let mut action = place.slot.step(Event::Asked(key));
        if let Action::Join(id) = action {
            if let Some(shared) = place.under_way(id) {
                place.counts.joined += 1;
                return Either::Right(shared);
            }
            // All its readers have just gone, and what ends it waits for this lock.
            place.over(id);
            action = place.slot.step(Event::Asked(key));
        }
        let Action::Lead(id) = action else {
            place.counts.alone += 1;
            return Either::Left(read());
        };
        place.counts.sent += 1;
        let sent = read();
        let ends = UnderWay { joined: Arc::clone(self), index, id };
        let shared = async move {
            let _ends = ends;
            sent.await
        };
        let shared = shared.boxed().shared();
        place.reads.extend(shared.downgrade().map(|weak| (id, weak)));
        Either::Right(shared)
    }

    /// Closes the slots of these keys, to which a write is about to be sent; none if there are no keys.
    pub(super) fn close<'k>(self: &Arc<Self>, keys: impl Iterator<Item = &'k BucketKey>) -> Option<Closed> {
        let mut indexes: SmallVec<[usize; 4]> = keys.map(index).collect();
        indexes.sort_unstable();
        indexes.dedup();
        if indexes.is_empty() {
            return None;
        }
        for index in &indexes {
            lock(&self.0[*index]).slot.step(Event::Sent);
        }
        Some(Closed { joined: Arc::clone(self), indexes, made_until: Some(FOR_GOOD) })
    }
}

impl Closed {
    /// The write is over, and it is known what became of it: nothing of it is on its way any more.
    pub(super) fn ended(mut self) {
        self.made_until = None;
    }

    /// It is not known what became of the write, and it may be made until that time by the store's clock.
    pub(super) fn lost(mut self, made_until: u64) {
        self.made_until = Some(made_until);
    }
}

impl Drop for Closed {
    fn drop(&mut self) {
        for index in &self.indexes {
            lock(&self.joined.0[*index]).slot.step(Event::Ended(self.made_until));
        }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        lock(&self.joined.0[self.index]).over(self.id);
    }
}

impl Place {
    /// That read, if one of its readers is still there.
    fn under_way(&self, id: ReadId) -> Option<Shared<Read>> {
        self.reads.iter().find(|(read, _)| *read == id)?.1.upgrade()
    }

    fn over(&mut self, id: ReadId) {
        self.slot.step(Event::Over(id));
        self.reads.retain(|(read, _)| *read != id);
    }
}

fn index(key: &BucketKey) -> usize {
    // Less than SLOTS.
    (xxh3_64(&key.0) % SLOTS as u64) as usize
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is done under these locks cannot be half done.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
