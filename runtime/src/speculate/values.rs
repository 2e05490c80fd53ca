//! What the store had under keys that committed runs have read or written last, of a store that is far away: a run that reads such a key is given that, and the commit compares the versions.
//!
//! Where another server, or a function that goes ahead of nothing, changes a key, what is known of it is wrong, and a run is in vain. So a key that was wrong is doubted: it is read of the store the next
//! times, the more the more often it was wrong.
//!
//! Keys are told apart by a hash. Two that are not would be given each other's values, at versions which no commit accepts.

use crate::kv::{BucketKey, Entry};
use crate::txn::pipeline::Expected;

use super::bounded::{Bounded, Weigh};
use super::skips::Caution;

/// A larger value is not kept.
const VALUE_BYTES_MAX: usize = 4 << 10;

/// The version of what is expected: zero where nothing is there, and none where that is not known.
fn version(expected: &Expected) -> Option<u64> {
    expected.as_ref().map(|entry| entry.as_ref().map_or(0, |entry| entry.version))
}

/// What is known of keys.
#[derive(Debug)]
pub(super) struct Values {
    keys: Bounded<u128, Value>,
}

#[derive(Debug, Default)]
struct Value {
    expected: Expected,
    /// How often it is to be seen in the store before it is believed.
    caution: Caution,
}

impl Weigh for Value {
    fn heap_bytes(&self) -> usize {
        self.expected.iter().flatten().map(|entry| entry.value.len()).sum()
    }
}

impl Values {
    /// Nothing yet, and room for so many bytes.
    pub(super) fn new(bytes_max: usize) -> Values {
        Values { keys: Bounded::new(bytes_max, usize::MAX) }
    }

    /// What is under a key, if that is believed.
    pub(super) fn expected(&mut self, key: &BucketKey) -> Expected {
        self.keys.get_mut(&key.hash128()).filter(|value| !value.caution.pauses())?.expected.clone()
    }

    /// A commit has seen or left that under a key.
    pub(super) fn left(&mut self, key: &BucketKey, expected: Expected) {
        let hash = key.hash128();
        let kept = expected.filter(|entry| entry.as_ref().is_none_or(|entry| entry.value.len() <= VALUE_BYTES_MAX));
        if kept.is_none() && self.keys.peek(&hash).is_none_or(|value| value.caution.is_new()) {
            return self.keys.remove(&hash);
        }
        // Columns of one commit may have written a key twice, under one version.
        let is_same = kept.is_some() && self.keys.peek(&hash).is_some_and(|value| value.expected == kept);
        let right = |value: &mut Value| {
            if value.caution.takes() && value.expected.is_some() {
                value.caution.was_right();
            }
        };
        if is_same {
            return self.keys.get_mut(&hash).into_iter().for_each(right);
        }
        // A copy: what was read may be a part of a larger buffer.
        let kept = kept.map(|entry| entry.map(|Entry { version, value }| Entry { version, value: value.to_vec().into() }));
        self.keys.change(hash, Value::default, |value| {
            right(value);
            value.expected = kept;
        });
    }

    /// Something else was there than what was read, which had that version. Whether that is expected still: then something else has changed the key than what tells of it here. Otherwise two have read and changed it
    /// at the same time, and what is known of it is right.
    pub(super) fn wrong(&mut self, key: &BucketKey, version: u64) -> bool {
        let hash = key.hash128();
        let is_wrong = self.keys.peek(&hash).is_some_and(|value| self::version(&value.expected) == Some(version));
        if is_wrong {
            self.keys.change(hash, Value::default, |value| {
                value.caution.was_wrong();
                value.expected = None;
            });
        }
        is_wrong
    }

    /// Bytes of all of it.
    pub(super) const fn bytes(&self) -> usize {
        self.keys.bytes()
    }

    /// Drops what was not used for longest; false where there is nothing.
    pub(super) fn evict(&mut self) -> bool {
        self.keys.evict()
    }

    /// How many keys are known.
    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::kv::BucketName;

    fn key(name: &str) -> BucketKey {
        BucketName::new(b"b").unwrap().key(name.as_bytes()).unwrap()
    }

    fn there(version: u64, bytes: usize) -> Expected {
        Some(Some(Entry { version, value: Bytes::from(vec![7; bytes]) }))
    }

    #[test]
    fn what_was_seen_last_is_expected() {
        let mut values = Values::new(100_000);
        assert_eq!(values.expected(&key("a")), None);
        values.left(&key("a"), there(3, 5));
        values.left(&key("b"), Some(None));
        assert_eq!([values.expected(&key("a")), values.expected(&key("b"))], [there(3, 5), Some(None)]);
        values.left(&key("a"), there(4, 6));
        assert_eq!(values.expected(&key("a")), there(4, 6));
        values.left(&key("a"), there(5, VALUE_BYTES_MAX + 1));
        assert_eq!(values.expected(&key("a")), None, "too large");
        values.left(&key("b"), None);
        assert_eq!((values.expected(&key("b")), values.len(), values.bytes()), (None, 0, 0), "only the store knows it");
    }

    #[test]
    fn of_two_values_of_one_commit_the_last_one_is_expected() {
        let mut values = Values::new(100_000);
        values.left(&key("a"), there(3, 5));
        values.left(&key("a"), there(3, 6));
        assert_eq!(values.expected(&key("a")), there(3, 6));
    }

    #[test]
    fn what_was_wrong_is_read_of_the_store_for_a_while_and_for_longer_each_time() {
        let mut values = Values::new(100_000);
        let mut version = 1;
        values.left(&key("a"), there(1, 1));
        let mut doubted = |values: &mut Values| {
            assert!(!values.wrong(&key("a"), version + 7), "it is not known so");
            assert!(values.wrong(&key("a"), version) && !values.wrong(&key("a"), version));
            let mut times = 0;
            while values.expected(&key("a")).is_none() {
                version += 1;
                values.left(&key("a"), there(version, 1));
                times += 1;
            }
            assert_eq!(values.expected(&key("a")), there(version, 1));
            times
        };
        let times: Vec<u8> = (0..7).map(|_| doubted(&mut values)).collect();
        assert_eq!(times, [4, 8, 16, 32, 64, 64, 64]);
        let last = values.expected(&key("a"));
        (0..7).for_each(|_| values.left(&key("a"), last.clone()));
        assert_eq!(doubted(&mut values), 4, "it was right again and again");
    }

    #[test]
    fn a_key_whose_value_is_not_known_is_doubted_nevertheless() {
        let mut values = Values::new(100_000);
        values.left(&key("a"), Some(None));
        assert!(values.wrong(&key("a"), 0));
        (0..3).for_each(|_| values.left(&key("a"), None));
        values.left(&key("a"), there(1, 1));
        assert_eq!(values.expected(&key("a")), there(1, 1), "four commits have seen it");
        values.left(&key("a"), None);
        assert_eq!(values.expected(&key("a")), None);
    }

    #[test]
    fn values_have_so_many_bytes_and_those_that_are_read_stay() {
        let mut values = Values::new(50_000);
        for number in 0..100 {
            values.left(&key(&number.to_string()), there(number, 2_000));
            assert_eq!(values.expected(&key("0")), there(0, 2_000));
        }
        assert!(values.bytes() <= 50_000 && (10..25).contains(&values.len()), "{}", values.len());
        while values.evict() {}
        assert_eq!(values.bytes(), 0);
    }
}
