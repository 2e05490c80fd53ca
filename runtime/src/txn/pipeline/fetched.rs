//! Reads of a remote store that are sent before a run asks for them: all that is expected of the runs of one step together, in one round trip.
//!
//! ```text
//!   expect(keys) --send()--> under way --came--> an entry --look()--> learnt by a column, as if it had asked now
//!                               '------forget / clear------> the run asks for itself
//! ```
//!
//! What is kept here may be older than the store, as any read is that was on its way for long: the commit compares versions. So nothing here has to be right. Three rules keep it from being wrong again and again:
//! a key that a run is expected to read is asked for when that run begins, also if it came before; what a commit of this pipeline has changed is forgotten when its outcome is known; and all of it is
//! forgotten where a column turns out to have read what is not there any more, and when no column is left.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use tokio::sync::Notify;

use super::super::lock;
use super::values::Values;
use crate::kv::{BucketKey, Entry, KvError};

/// Keys that are kept at most.
const KEYS_MAX: usize = 256;
/// Bytes of their values.
const BYTES_MAX: usize = 1 << 20;

/// What is known of a key.
#[derive(Debug)]
enum Read {
    /// It is to be asked for.
    Wanted,
    /// It was asked for in that turn.
    UnderWay(u64),
    /// That was there.
    Came(Option<Entry>),
}

#[derive(Debug, Default)]
struct Reads {
    of: HashMap<BucketKey, Read>,
    /// Those to be asked for next.
    wanted: Vec<BucketKey>,
    bytes: usize,
    turn: u64,
}

/// What was fetched for the columns of a pipeline.
#[derive(Debug, Default)]
pub(in super::super) struct Fetched {
    reads: Mutex<Reads>,
    /// What the store is expected to have, if that is known.
    values: OnceLock<Arc<dyn Values>>,
    was_wrong: AtomicBool,
    /// How many reads were given that.
    spared: AtomicU32,
    /// Told when nothing is under way any more of what was.
    came: Notify,
}

/// What is there of some keys.
#[derive(Debug, PartialEq)]
pub(in super::super) enum Look {
    /// All of them, in their order.
    Known(Vec<Option<Entry>>),
    /// All of them, when some have come.
    UnderWay,
    /// Not all of them.
    Unknown,
}

/// Keys to be asked for together.
#[derive(Debug)]
pub(super) struct Turn {
    pub keys: Vec<BucketKey>,
    number: u64,
}

impl Reads {
    fn remove(&mut self, key: &BucketKey) {
        if let Some(Read::Came(Some(entry))) = self.of.remove(key) {
            self.bytes -= entry.value.len();
        }
    }
}

impl Fetched {
    /// Has these be given where they are known.
    pub(super) fn expect_values(&self, values: Arc<dyn Values>) {
        // Once, when the pipeline is made.
        let _ = self.values.set(values);
    }

    /// What the store is expected to have, unless that was wrong.
    pub(in super::super) fn values(&self) -> Option<Arc<dyn Values>> {
        // Relaxed: a read that does not see it yet is as old as one before.
        self.values.get().filter(|_| !self.was_wrong.load(Ordering::Relaxed)).cloned()
    }

    /// What the store was expected to have it did not have: what is expected of other keys may be as old, and each would cost a commit. From now on the store is asked.
    pub(super) fn was_wrong(&self) {
        self.was_wrong.store(true, Ordering::Relaxed);
    }

    /// How many reads were given that.
    pub(super) fn spared(&self) -> u32 {
        self.spared.load(Ordering::Relaxed)
    }

    fn expected(&self, key: &BucketKey) -> Option<Option<Entry>> {
        self.values()?.expected(key)
    }

    /// A run that begins now will ask for these keys: those of them that are not on their way are sent next, but for what the store is expected to have.
    pub(super) fn expect(&self, keys: &[BucketKey]) {
        let mut reads = lock(&self.reads);
        for key in keys {
            match reads.of.get(key) {
                Some(Read::Wanted | Read::UnderWay(_)) => continue,
                // The store may have another one since.
                Some(Read::Came(_)) => reads.remove(key),
                None if reads.of.len() >= KEYS_MAX => continue,
                None => {}
            }
            if self.expected(key).is_some() {
                continue;
            }
            reads.of.insert(key.clone(), Read::Wanted);
            reads.wanted.push(key.clone());
        }
    }

    /// All that is to be sent; none if that is nothing.
    pub(super) fn send(&self) -> Option<Turn> {
        let mut reads = lock(&self.reads);
        let mut keys = std::mem::take(&mut reads.wanted);
        if keys.is_empty() {
            return None;
        }
        reads.turn += 1;
        let number = reads.turn;
        // Some may have been forgotten meanwhile, or be wanted twice for that.
        keys.retain(|key| match reads.of.get_mut(key) {
            Some(read @ Read::Wanted) => {
                *read = Read::UnderWay(number);
                true
            }
            _ => false,
        });
        (!keys.is_empty()).then_some(Turn { keys, number })
    }

    /// That is what the store has under the keys of a turn. Of those that were forgotten meanwhile it does not count, nor where the store has not said it: runs ask for themselves then.
    pub(super) fn came(&self, turn: &Turn, entries: Result<Vec<Option<Entry>>, KvError>) {
        let mut reads = lock(&self.reads);
        let mut entries = entries.unwrap_or_default().into_iter();
        for key in &turn.keys {
            let entry = entries.next();
            if !matches!(reads.of.get(key), Some(Read::UnderWay(number)) if *number == turn.number) {
                continue;
            }
            let bytes = entry.iter().flatten().map(|entry| entry.value.len()).sum::<usize>();
            match entry.filter(|_| reads.bytes + bytes <= BYTES_MAX) {
                Some(entry) => {
                    reads.bytes += bytes;
                    reads.of.insert(key.clone(), Read::Came(entry));
                }
                None => reads.remove(key),
            }
        }
        drop(reads);
        self.came.notify_waiters();
    }

    /// What is there of these keys.
    pub(in super::super) fn look(&self, keys: &[BucketKey]) -> Look {
        let reads = lock(&self.reads);
        if reads.of.is_empty() && self.values().is_none() {
            return Look::Unknown;
        }
        let (mut known, mut is_under_way, mut is_spared) = (Vec::with_capacity(keys.len()), false, false);
        for key in keys {
            match reads.of.get(key) {
                None => match self.expected(key) {
                    Some(entry) => {
                        is_spared = true;
                        known.push(entry);
                    }
                    None => return Look::Unknown,
                },
                Some(Read::Wanted | Read::UnderWay(_)) => is_under_way = true,
                Some(Read::Came(entry)) => known.push(entry.clone()),
            }
        }
        if is_under_way {
            return Look::UnderWay;
        }
        // Relaxed: a count that nothing else depends on.
        self.spared.fetch_add(u32::from(is_spared), Ordering::Relaxed);
        Look::Known(known)
    }

    /// Waits until none of these keys is under way.
    pub(in super::super) async fn wait(self: Arc<Self>, keys: Vec<BucketKey>) {
        loop {
            let mut came = pin!(self.came.notified());
            // Before the look, so that nothing that comes behind it is missed.
            came.as_mut().enable();
            if self.look(&keys) != Look::UnderWay {
                return;
            }
            came.await;
        }
    }

    /// These keys were changed.
    pub(super) fn forget<'k>(&self, keys: impl Iterator<Item = &'k BucketKey>) {
        let mut reads = lock(&self.reads);
        if reads.of.is_empty() {
            return;
        }
        keys.for_each(|key| reads.remove(key));
        drop(reads);
        self.came.notify_waiters();
    }

    /// Something was changed.
    pub(super) fn clear(&self) {
        let mut reads = lock(&self.reads);
        if reads.of.is_empty() {
            return;
        }
        *reads = Reads { turn: reads.turn, ..Reads::default() };
        drop(reads);
        self.came.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use futures_util::FutureExt;

    use super::*;
    use crate::kv::BucketName;

    fn key(name: &str) -> BucketKey {
        BucketName::new(b"b").unwrap().key(name.as_bytes()).unwrap()
    }

    fn entry(version: u64) -> Option<Entry> {
        Some(Entry { version, value: Bytes::from_static(b"value") })
    }

    /// Those keys, expected and sent.
    fn sent(fetched: &Fetched, names: &[&str]) -> Turn {
        fetched.expect(&names.iter().map(|name| key(name)).collect::<Vec<_>>());
        fetched.send().unwrap()
    }

    /// Has the store answer with that version for each.
    fn come(fetched: &Fetched, turn: &Turn, version: u64) {
        fetched.came(turn, Ok(turn.keys.iter().map(|_| entry(version)).collect()));
    }

    #[test]
    fn what_is_expected_is_sent_once_and_known_when_it_came() {
        let fetched = Fetched::default();
        assert_eq!(fetched.look(&[key("a")]), Look::Unknown);
        let turn = sent(&fetched, &["a", "b", "a"]);
        assert_eq!(turn.keys.len(), 2);
        assert_eq!(fetched.look(&[key("a"), key("b")]), Look::UnderWay);
        assert_eq!(fetched.look(&[key("a"), key("c")]), Look::Unknown, "the run has to ask for c anyhow");
        assert!(fetched.send().is_none());
        let other = sent(&fetched, &["b", "c"]);
        assert_eq!(other.keys, [key("c")]);
        fetched.came(&other, Ok(vec![None]));
        assert_eq!(fetched.look(&[key("a"), key("c")]), Look::UnderWay);
        come(&fetched, &turn, 3);
        assert_eq!(fetched.look(&[key("b"), key("c"), key("a")]), Look::Known(vec![entry(3), None, entry(3)]));
    }

    #[test]
    fn what_was_changed_meanwhile_is_forgotten_also_on_its_way() {
        let fetched = Fetched::default();
        let turn = sent(&fetched, &["a", "b"]);
        fetched.forget([key("a")].iter());
        let later = sent(&fetched, &["a"]);
        come(&fetched, &turn, 1);
        assert_eq!(fetched.look(&[key("a")]), Look::UnderWay, "the older answer does not stand for the later one");
        assert_eq!(fetched.look(&[key("b")]), Look::Known(vec![entry(1)]));
        come(&fetched, &later, 2);
        assert_eq!(fetched.look(&[key("a")]), Look::Known(vec![entry(2)]));
        fetched.forget([key("b")].iter());
        assert_eq!(fetched.look(&[key("b")]), Look::Unknown);
        let turn = sent(&fetched, &["b"]);
        fetched.clear();
        come(&fetched, &turn, 3);
        assert_eq!(fetched.look(&[key("a")]), Look::Unknown);
        assert_eq!(fetched.look(&[key("b")]), Look::Unknown);
        assert_eq!(lock(&fetched.reads).bytes, 0);
    }

    #[test]
    fn a_run_that_begins_later_is_not_given_what_came_for_an_earlier_one() {
        let fetched = Fetched::default();
        let first = sent(&fetched, &["a", "b"]);
        come(&fetched, &first, 1);
        let second = sent(&fetched, &["a"]);
        assert_eq!((second.keys.as_slice(), fetched.look(&[key("a")])), (&[key("a")][..], Look::UnderWay));
        come(&fetched, &first, 1);
        come(&fetched, &second, 2);
        assert_eq!(fetched.look(&[key("a"), key("b")]), Look::Known(vec![entry(2), entry(1)]));
        fetched.expect(&[key("c")]);
        fetched.clear();
        assert!(fetched.send().is_none(), "nothing is wanted any more");
    }

    #[test]
    fn waits_end_when_it_came_was_forgotten_or_failed() {
        let fetched = Arc::new(Fetched::default());
        let wait = |name: &str| Box::pin(Arc::clone(&fetched).wait(vec![key(name)]));
        assert!(wait("a").now_or_never().is_some(), "nothing is under way");
        let turn = sent(&fetched, &["a"]);
        let mut waits = wait("a");
        assert!((&mut waits).now_or_never().is_none());
        come(&fetched, &turn, 1);
        assert!(waits.now_or_never().is_some());

        let turn = sent(&fetched, &["b", "c"]);
        let (mut forgotten, mut failed) = (wait("b"), wait("c"));
        assert!((&mut forgotten).now_or_never().is_none() && (&mut failed).now_or_never().is_none());
        fetched.forget([key("b")].iter());
        assert!(forgotten.now_or_never().is_some());
        assert!((&mut failed).now_or_never().is_none());
        fetched.came(&turn, Err(KvError::Unavailable("it is gone".to_owned())));
        assert!(failed.now_or_never().is_some());
        assert_eq!(fetched.look(&[key("c")]), Look::Unknown, "the run asks, and is told what is wrong");
    }

    #[test]
    fn it_keeps_so_many_keys_and_bytes_and_no_more() {
        let fetched = Fetched::default();
        let keys: Vec<BucketKey> = (0..KEYS_MAX + 10).map(|number| key(&number.to_string())).collect();
        fetched.expect(&keys);
        assert_eq!(fetched.send().unwrap().keys.len(), KEYS_MAX);
        fetched.clear();
        let large = Some(Entry { version: 1, value: Bytes::from(vec![0; BYTES_MAX / 2]) });
        let turn = sent(&fetched, &["a", "b", "c"]);
        fetched.came(&turn, Ok(vec![large; 3]));
        let known = turn.keys.iter().filter(|key| fetched.look(std::slice::from_ref(*key)) != Look::Unknown);
        assert_eq!(known.count(), 2);
    }
}
