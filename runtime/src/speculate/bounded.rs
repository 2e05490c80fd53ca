//! A map that is bounded in bytes and entries: what was not used for longest makes room. Pure, without a clock or a lock.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

/// What a value has of memory beside itself.
pub(super) trait Weigh {
    /// Bytes, about.
    fn heap_bytes(&self) -> usize;
}

/// The map.
#[derive(Debug)]
pub(super) struct Bounded<K, V> {
    slots: HashMap<K, Slot<V>>,
    /// The keys by when they were used.
    order: BTreeMap<u64, K>,
    /// Counts uses.
    now: u64,
    bytes: usize,
    bytes_max: usize,
    entries_max: usize,
}

#[derive(Debug)]
struct Slot<V> {
    value: V,
    bytes: usize,
    used: u64,
}

impl<K: Copy + Eq + Hash, V: Weigh> Bounded<K, V> {
    /// Bytes of an entry beside what its value has elsewhere: hash maps and trees are half empty at worst.
    const ENTRY_BYTES: usize = 2 * (size_of::<(K, Slot<V>)>() + size_of::<(u64, K)>());

    /// An empty one.
    pub(super) fn new(bytes_max: usize, entries_max: usize) -> Bounded<K, V> {
        Bounded { slots: HashMap::new(), order: BTreeMap::new(), now: 0, bytes: 0, bytes_max, entries_max }
    }

    /// Bytes of all entries.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// How many entries there are.
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// The value of a key. It is not used by that.
    pub(super) fn peek(&self, key: &K) -> Option<&V> {
        self.slots.get(key).map(|slot| &slot.value)
    }

    /// The value of a key, which is used now. What the value has of memory must stay as it is.
    pub(super) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let slot = self.slots.get_mut(key)?;
        self.now += 1;
        self.order.remove(&slot.used);
        self.order.insert(self.now, *key);
        slot.used = self.now;
        Some(&mut slot.value)
    }

    /// The value that was used last. It is not used by that.
    pub(super) fn newest(&self) -> Option<&V> {
        self.order.last_key_value().and_then(|(_, key)| self.peek(key))
    }

    /// Changes the value of a key, which is made if there is none. Then the others make room for it, or it goes.
    pub(super) fn change(&mut self, key: K, make: impl FnOnce() -> V, change: impl FnOnce(&mut V)) {
        self.now += 1;
        let slot = self.slots.entry(key).or_insert_with(|| Slot { value: make(), bytes: 0, used: 0 });
        change(&mut slot.value);
        let bytes = Self::ENTRY_BYTES + slot.value.heap_bytes();
        self.bytes = self.bytes - slot.bytes + bytes;
        self.order.remove(&slot.used);
        self.order.insert(self.now, key);
        (slot.bytes, slot.used) = (bytes, self.now);
        while (self.bytes > self.bytes_max || self.slots.len() > self.entries_max) && self.evict() {}
    }

    /// Drops the entry of a key.
    pub(super) fn remove(&mut self, key: &K) {
        self.take(key);
    }

    /// Takes the entry of a key out.
    pub(super) fn take(&mut self, key: &K) -> Option<V> {
        let slot = self.slots.remove(key)?;
        self.order.remove(&slot.used);
        self.bytes -= slot.bytes;
        Some(slot.value)
    }

    /// Drops the entry that was not used for longest; false where there is none.
    pub(super) fn evict(&mut self) -> bool {
        let Some((_, oldest)) = self.order.first_key_value() else { return false };
        let oldest = *oldest;
        self.remove(&oldest);
        true
    }

    /// Drops the entries whose keys are not to be kept.
    pub(super) fn retain(&mut self, keeps: impl Fn(&K) -> bool) {
        let gone: Vec<K> = self.slots.keys().filter(|key| !keeps(key)).copied().collect();
        gone.iter().for_each(|key| self.remove(key));
    }

    /// All entries, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.slots.iter().map(|(key, slot)| (key, &slot.value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Weigh for Vec<u8> {
        fn heap_bytes(&self) -> usize {
            self.len()
        }
    }

    const ENTRY: usize = Bounded::<u64, Vec<u8>>::ENTRY_BYTES;

    fn put(map: &mut Bounded<u64, Vec<u8>>, key: u64, bytes: usize) {
        map.change(key, Vec::new, |value| *value = vec![0; bytes]);
    }

    #[test]
    fn what_was_not_used_for_longest_makes_room() {
        let mut map = Bounded::new(4 * (ENTRY + 100), 100);
        (1..=4).for_each(|key| put(&mut map, key, 100));
        assert!(map.get_mut(&1).is_some() && map.peek(&2).is_some());
        put(&mut map, 5, 100);
        assert_eq!([1, 2, 3, 4, 5].map(|key| map.peek(&key).is_some()), [true, false, true, true, true]);
        put(&mut map, 3, 200);
        assert_eq!([1, 3, 4, 5].map(|key| map.peek(&key).is_some()), [true, true, false, true], "one that grows needs room, too");
        put(&mut map, 6, 4 * (ENTRY + 100));
        assert_eq!((map.len(), map.bytes()), (0, 0), "what is larger than all of it is not kept");
    }

    #[test]
    fn the_bounds_hold_whatever_comes() {
        for seed in 0..20 {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut map = Bounded::new(10_000, 30);
            for step in 0..5_000 {
                // By turns the bytes and the entries are what is short.
                let bytes = if step % 1_000 < 500 { 0 } else { 2_000 };
                let key = random.u64(..60);
                match random.u8(..8) {
                    0 => map.remove(&key),
                    1 => _ = map.get_mut(&key),
                    2 => _ = map.evict(),
                    3 if random.u8(..20) == 0 => map.retain(|key| key % 3 != 0),
                    _ => put(&mut map, key, random.usize(..=bytes)),
                }
                assert!(map.bytes() <= 10_000 && map.len() <= 30, "seed {seed}: {} bytes, {} entries", map.bytes(), map.len());
                assert_eq!(map.order.len(), map.len(), "seed {seed}");
                assert_eq!(map.slots.values().map(|slot| slot.bytes).sum::<usize>(), map.bytes(), "seed {seed}");
            }
        }
    }
}
