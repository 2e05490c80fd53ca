//! Entries by their keys, bounded in bytes: pure, without a clock or a lock.
//!
//! An entry is admitted when its key was asked for a second time: most requests never come again, and would only push out those that do. What was not used for longest makes room. The bound covers
//! the entries as they count themselves, and the keys that were seen once.

use std::collections::{BTreeMap, HashMap, VecDeque};

use super::key::Key;

/// An entry may have this part of the room.
const ENTRY_PART: usize = 4;
/// Keys that were seen once may have this part of it.
const SEEN_PART: usize = 16;
/// Bytes of such a key, in the list and in the map.
const SEEN_BYTES: usize = 128;

/// What becomes of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admitted {
    /// Its key is noted: the next time it is kept.
    Later,
    /// It is kept, and so many others are not any more.
    Now {
        /// How many.
        evicted: u64,
    },
}

/// The entries.
#[derive(Debug)]
pub struct Table<E> {
    entries: HashMap<Key, Slot<E>>,
    /// Their keys by when they were used.
    used: BTreeMap<u64, Key>,
    /// Counts uses.
    now: u64,
    bytes: usize,
    bytes_max: usize,
    /// Keys that were seen once: the last that were.
    seen: HashMap<Key, u64>,
    seen_order: VecDeque<(Key, u64)>,
}

#[derive(Debug)]
struct Slot<E> {
    entry: E,
    bytes: usize,
    used: u64,
}

impl<E: Clone> Table<E> {
    /// An empty one with room for so many bytes.
    #[must_use]
    pub fn new(bytes_max: usize) -> Table<E> {
        Table {
            entries: HashMap::new(),
            used: BTreeMap::new(),
            now: 0,
            bytes: 0,
            bytes_max,
            seen: HashMap::new(),
            seen_order: VecDeque::new(),
        }
    }

    /// Entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Bytes of all of it.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes + self.seen_order.len() * SEEN_BYTES
    }

    /// Bytes of the largest entry.
    #[must_use]
    pub const fn entry_bytes_max(&self) -> usize {
        self.bytes_max / ENTRY_PART
    }

    /// The entry of a key, which is used now.
    pub fn get(&mut self, key: &Key) -> Option<E> {
        let slot = self.entries.get_mut(key)?;
        self.now += 1;
        self.used.remove(&slot.used);
        self.used.insert(self.now, *key);
        slot.used = self.now;
        Some(slot.entry.clone())
    }

    /// Keeps an entry of so many bytes, in place of that of the same key; or notes that it was there.
    pub fn admit(&mut self, key: Key, bytes: usize, entry: impl FnOnce() -> E) -> Admitted {
        // One that was stale is asked for again.
        let is_known = self.seen.remove(&key).is_some() || self.entries.contains_key(&key);
        if !is_known {
            self.note(key);
            return Admitted::Later;
        }
        self.drop_entry(&key);
        let room = self.bytes_max - self.bytes_max / SEEN_PART;
        let mut evicted = 0;
        while self.bytes + bytes > room
            && let Some((_, oldest)) = self.used.pop_first()
        {
            self.drop_entry(&oldest);
            evicted += 1;
        }
        self.now += 1;
        self.used.insert(self.now, key);
        self.entries.insert(key, Slot { entry: entry(), bytes, used: self.now });
        self.bytes += bytes;
        Admitted::Now { evicted }
    }

    /// A key has come for the second time: its entry is kept at once.
    pub fn expect(&mut self, key: Key) {
        if !self.seen.contains_key(&key) && !self.entries.contains_key(&key) {
            self.note(key);
        }
    }

    /// Drops the entry of a key; the next one is kept at once.
    pub fn remove(&mut self, key: &Key) {
        if self.drop_entry(key) {
            self.note(*key);
        }
    }

    /// Drops the entry that was not used for longest, or else the keys that were seen. Whether that was an entry; none where there is nothing.
    pub fn evict(&mut self) -> Option<bool> {
        if let Some((_, oldest)) = self.used.pop_first() {
            return Some(self.drop_entry(&oldest));
        }
        let had_seen = !self.seen_order.is_empty();
        (self.seen, self.seen_order) = (HashMap::new(), VecDeque::new());
        had_seen.then_some(false)
    }

    /// Drops all.
    pub fn clear(&mut self) {
        *self = Table::new(self.bytes_max);
    }

    fn drop_entry(&mut self, key: &Key) -> bool {
        let Some(slot) = self.entries.remove(key) else { return false };
        self.used.remove(&slot.used);
        self.bytes -= slot.bytes;
        true
    }

    fn note(&mut self, key: Key) {
        self.now += 1;
        let seen_max = (self.bytes_max / SEEN_PART / SEEN_BYTES).max(1);
        while self.seen_order.len() >= seen_max
            && let Some((oldest, when)) = self.seen_order.pop_front()
        {
            // It may have been noted again since.
            if self.seen.get(&oldest) == Some(&when) {
                self.seen.remove(&oldest);
            }
        }
        self.seen.insert(key, self.now);
        self.seen_order.push_back((key, self.now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u64) -> Key {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&number.to_le_bytes());
        key
    }

    /// Keeps it, whether its key was seen or not.
    fn keep(table: &mut Table<u64>, number: u64, bytes: usize) -> u64 {
        table.admit(key(number), bytes, || number);
        match table.admit(key(number), bytes, || number) {
            Admitted::Now { evicted } => evicted,
            Admitted::Later => panic!("{number} was seen"),
        }
    }

    #[test]
    fn an_entry_is_kept_when_its_key_comes_for_the_second_time() {
        let mut table = Table::new(16 << 10);
        assert_eq!(table.admit(key(1), 100, || panic!("it is not made")), Admitted::Later);
        assert_eq!((table.get(&key(1)), table.len()), (None, 0));
        assert_eq!(table.admit(key(1), 100, || 7), Admitted::Now { evicted: 0 });
        assert_eq!(table.get(&key(1)), Some(7));
        table.remove(&key(1));
        assert_eq!((table.get(&key(1)), table.is_empty()), (None, true));
        assert_eq!(table.admit(key(1), 100, || 8), Admitted::Now { evicted: 0 }, "it was stale");
        table.clear();
        assert_eq!((table.len(), table.bytes(), table.admit(key(1), 1, || 9)), (0, 0, Admitted::Later));
    }

    #[test]
    fn what_was_not_used_for_longest_makes_room() {
        let mut table = Table::new(1_600);
        (1..=5).for_each(|number| assert_eq!(keep(&mut table, number, 300), 0));
        assert_eq!(table.get(&key(1)), Some(1));
        assert_eq!(keep(&mut table, 6, 400), 2);
        assert_eq!([1, 2, 3, 4, 5, 6].map(|number| table.get(&key(number)).is_some()), [true, false, false, true, true, true]);
    }

    #[test]
    fn the_bound_holds_whatever_comes() {
        let mut table = Table::new(20_000);
        let mut random = fastrand::Rng::with_seed(5);
        for _ in 0..20_000 {
            let (number, bytes) = (random.u64(..60), random.usize(1..=table.entry_bytes_max()));
            match random.u8(..4) {
                0 => table.remove(&key(number)),
                1 => _ = table.get(&key(number)),
                _ => _ = table.admit(key(number), bytes, || number),
            }
            assert!(table.bytes() <= 20_000, "{}", table.bytes());
            assert_eq!(
                (table.used.len(), table.entries.values().map(|slot| slot.bytes).sum::<usize>()),
                (table.len(), table.bytes)
            );
            assert!(table.seen.len() <= table.seen_order.len());
        }
    }
}
