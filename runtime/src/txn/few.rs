//! A map that mostly has few keys: a row of pairs, which is looked through without a hash and, up to two of them, without memory of its own. With more than [`ROW_MAX`] it becomes a hash map.
//!
//! Most transactions read a key or two, and a hash map for these costs more than the reads.

use std::collections::HashMap;
use std::hash::Hash;

use smallvec::SmallVec;

/// Pairs of a row. To look through more of them takes longer than a hash.
const ROW_MAX: usize = 8;

/// A map from keys to values, in no order.
#[derive(Debug)]
pub(super) enum Few<K, V> {
    /// Each key once.
    Row(SmallVec<[(K, V); 2]>),
    /// More than a row has.
    Table(HashMap<K, V>),
}

impl<K, V> Default for Few<K, V> {
    fn default() -> Few<K, V> {
        Few::Row(SmallVec::new())
    }
}

impl<K: Eq + Hash, V> Few<K, V> {
    pub(super) fn len(&self) -> usize {
        match self {
            Few::Row(row) => row.len(),
            Few::Table(table) => table.len(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn get(&self, key: &K) -> Option<&V> {
        match self {
            Few::Row(row) => row.iter().find(|(own, _)| own == key).map(|(_, value)| value),
            Few::Table(table) => table.get(key),
        }
    }

    /// Puts a value in place of the one that the key has, if it has one.
    pub(super) fn insert(&mut self, key: K, value: V) {
        match self {
            Few::Row(row) => match row.iter().position(|(own, _)| *own == key) {
                Some(at) => row[at].1 = value,
                None if row.len() < ROW_MAX => row.push((key, value)),
                None => *self = Few::Table(row.drain(..).chain([(key, value)]).collect()),
            },
            Few::Table(table) => drop(table.insert(key, value)),
        }
    }

    /// All pairs: the same order as long as none is inserted.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        let (row, table) = match self {
            Few::Row(row) => (Some(row), None),
            Few::Table(table) => (None, Some(table)),
        };
        row.into_iter().flatten().map(|(key, value)| (key, value)).chain(table.into_iter().flatten())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_map_that_a_hash_map_is() {
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        for _ in 0..2_000 {
            let (mut few, mut model) = (Few::default(), HashMap::new());
            let keys = random.u64(1..40);
            for value in 0..random.u64(..40) {
                let key = random.u64(..keys);
                few.insert(key, value);
                model.insert(key, value);
                assert_eq!((few.len(), few.is_empty()), (model.len(), false));
                assert!((0..keys).all(|key| few.get(&key) == model.get(&key)), "{few:?} is not {model:?}");
                let order: Vec<_> = few.iter().collect();
                assert_eq!(order, few.iter().collect::<Vec<_>>(), "what is at a place stays there");
                assert_eq!(order.into_iter().collect::<HashMap<_, _>>(), model.iter().collect::<HashMap<_, _>>());
            }
        }
    }
}
