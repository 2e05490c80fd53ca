//! Which reads may be joined: pure, without a store, a clock or a lock.
//!
//! A slot stands for the keys of one tenant that have the same hash. A read is *joined* when a later reader of the same key takes its answer. The later reader began after the read was sent, so the answer may
//! be of a moment before that reader began. It is right all the same if nothing was written in between:
//!
//! * A read can be joined only if no write to its slot was under way when it was sent, and none was sent since. So what is under the key did not change between its sending and the moment at which the later
//!   reader joins it: an answer of that time is what the later reader would have read itself.
//! * A write closes the slot when it is *sent*. To close it when the write is acknowledged would be too late: a read that was sent before the write has an older value, and a reader that began after the
//!   acknowledgement would take it.
//! * A write whose outcome stays unknown may still be made. The store refuses it from a time on that the write names, so it keeps the slot closed until no clock that the store shows can be before that: then the
//!   write was made before, or never is, and what is read from now on is the same for all. A write that names no time keeps the slot closed for good.

use crate::kv::BucketKey;

/// What happens in a slot.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event<'k> {
    /// A reader wants what is under a key.
    Asked(&'k BucketKey),
    /// The read has its answer, or was given up: there is nothing to be joined any more.
    Over(ReadId),
    /// A write to the slot is about to be sent.
    Sent,
    /// A write is over. Until when it may still be made, by the store's clock; none if it was made or refused, and nothing of it is on its way any more.
    Ended(Option<u64>),
    /// The store's clock shows no time before this one any more.
    Time(u64),
}

/// Until when a write may be made that names no time.
pub(super) const FOR_GOOD: u64 = u64::MAX;

/// What a reader does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// It takes the answer of that read.
    Join(ReadId),
    /// It sends a read, which others may join.
    Lead(ReadId),
    /// It sends a read for itself alone.
    Alone,
    /// Nothing: the event was no reader's.
    None,
}

/// Tells a read from all others of its slot.
pub(super) type ReadId = u64;

/// The reads of one slot that may be joined, and whether there may be such.
#[derive(Clone, Debug, Default)]
pub(super) struct Slot {
    /// Reads that were sent while the slot was open, and since when no write was sent.
    reads: Vec<(ReadId, BucketKey)>,
    reads_begun: ReadId,
    /// Writes that were sent and are not over.
    writes: u32,
    /// Until when a write may still be made whose outcome is unknown.
    lost_until: Option<u64>,
}

impl Slot {
    /// Goes on by one event.
    pub(super) fn step(&mut self, event: Event<'_>) -> Action {
        match event {
            Event::Asked(_) if self.is_closed() => Action::Alone,
            Event::Asked(key) => match self.reads.iter().find(|(_, read)| read == key) {
                Some((id, _)) => Action::Join(*id),
                None => {
                    self.reads_begun += 1;
                    self.reads.push((self.reads_begun, key.clone()));
                    Action::Lead(self.reads_begun)
                }
            },
            Event::Over(id) => {
                self.reads.retain(|(read, _)| *read != id);
                Action::None
            }
            Event::Sent => {
                self.writes += 1;
                // From now on they may have a value that is older than the write.
                self.reads.clear();
                Action::None
            }
            Event::Ended(made_until) => {
                self.writes = self.writes.saturating_sub(1);
                self.lost_until = self.lost_until.max(made_until);
                Action::None
            }
            Event::Time(time) => {
                self.lost_until = self.lost_until.filter(|until| *until >= time);
                Action::None
            }
        }
    }

    /// Until when a write whose outcome is unknown keeps it closed, if one does.
    pub(super) const fn lost_until(&self) -> Option<u64> {
        self.lost_until
    }

    const fn is_closed(&self) -> bool {
        self.writes > 0 || self.lost_until.is_some()
    }
}

#[cfg(test)]
#[path = "simulated.rs"]
mod simulated;
