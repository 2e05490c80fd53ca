//! What one transaction has read and written: pure, without a store, a clock or a lock.
//!
//! A column lies on top of what is *below* it: the store, or the column of the transaction that it is a part of. What it reads from below it keeps, with the version: a key is
//! asked for once, and read the same for as long as the column lives. What it writes stays in it until its end, when all of it becomes one commit
//! ([`Column::commit`]) or a part of the column below ([`Column::absorb`]), if what was read is still what is there.
//!
//! Invariants:
//! * What an operation depended on is among what was read: the entry that it returned or compared, or that there was none (version zero).
//! * To add to a number of which the sum is not wanted is no read: such commits do not conflict with each other.
//! * Versions of what the transaction itself has written are *provisional*: larger than all of the store, and meaningless once it is over.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;

use crate::kv::{BucketKey, BucketName, COMMIT_BYTES_MAX, COMMIT_KEYS_MAX, Change, Commit, Entry, KvError, Outcome, sum};

use super::few::Few;
use super::mutants::{self, Mutant};

/// What every provisional version has, and none of a store.
pub(super) const PROVISIONAL: u64 = 1 << 63;

/// Gives provisional versions, each once for a transaction and all of its parts. There is no counter before the first one, or the first part.
#[derive(Debug, Default)]
pub struct Versions(Option<Arc<AtomicU64>>);

impl Versions {
    /// The next one.
    pub(super) fn next(&mut self) -> u64 {
        // Relaxed: a number that orders nothing else.
        PROVISIONAL | (self.0.get_or_insert_default().fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Those of a part, or of another column of the same pipeline.
    fn share(&mut self) -> Versions {
        Versions(Some(Arc::clone(self.0.get_or_insert_default())))
    }

    /// The last one that was given.
    pub(super) fn last(&self) -> u64 {
        // Relaxed, as above.
        PROVISIONAL | self.0.as_ref().map_or(0, |count| count.load(Ordering::Relaxed))
    }
}

/// What a transaction knows of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum View {
    /// This is there, or nothing is.
    Known(Option<Entry>),
    /// It has to be asked for below.
    Below,
}

/// What does not hold any more of what was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stale {
    /// A key.
    Key(BucketKey),
    /// The set of keys of a bucket.
    Bucket(BucketName),
}

/// What a transaction has written under a key, as a successor in a [pipeline](super::pipeline) sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Written {
    /// This is there, or nothing is.
    Value(Option<Entry>),
    /// This is added to what is there.
    Add(i64),
}

/// What is to become of a key.
#[derive(Clone, Debug)]
enum Write {
    /// It gets a value, or is no more. Which version it has for the transaction.
    Value(Option<Bytes>, u64),
    /// Its number becomes larger by this, whatever it is.
    Add(i64),
}

/// What one transaction has read and written.
#[derive(Debug, Default)]
pub struct Column {
    reads: Few<BucketKey, Option<Entry>>,
    listed: Few<BucketName, u64>,
    writes: BTreeMap<BucketKey, Write>,
    /// When it last changed the set of keys of a bucket, by a provisional version.
    sets: Few<BucketName, u64>,
    /// Bytes of keys and values.
    bytes: usize,
    versions: Versions,
    /// A set of keys that was found to be otherwise before the end.
    stale: Option<Stale>,
}

impl Column {
    /// An empty one that is to lie on top of this one.
    #[must_use]
    pub fn part(&mut self) -> Column {
        Column { versions: self.versions.share(), ..Column::default() }
    }

    /// An empty one whose versions are told from those of all others that share them.
    pub(super) fn sharing(versions: &mut Versions) -> Column {
        Column { versions: versions.share(), ..Column::default() }
    }

    /// Bytes that it keeps.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether it depends on nothing and changes nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.reads.is_empty() && self.listed.is_empty() && self.writes.is_empty()
    }

    /// Whether it changes something.
    #[must_use]
    pub fn writes(&self) -> bool {
        !self.writes.is_empty()
    }

    /// What was found to be otherwise than it was read: the transaction cannot be made any more.
    #[must_use]
    pub const fn stale(&self) -> Option<&Stale> {
        self.stale.as_ref()
    }

    /// What the transaction sees under a key.
    #[must_use]
    pub fn view(&self, key: &BucketKey) -> View {
        match (self.writes.get(key), self.reads.get(key)) {
            (Some(Write::Value(value, version)), _) => View::Known(value.clone().map(|value| Entry { version: *version, value })),
            (None, Some(entry)) => View::Known(entry.clone()),
            // Of a number to which something is added the sum is made when it is learnt.
            (Some(Write::Add(_)), _) | (None, None) => View::Below,
        }
    }

    /// That is under the key below. What the transaction sees from now on: where it knew the key already, what it has seen first. Whether that is still so its end decides.
    ///
    /// # Errors
    /// When the transaction becomes too large, or adds to what is no number.
    pub fn learn(&mut self, key: &BucketKey, entry: Option<Entry>) -> Result<Option<Entry>, KvError> {
        if self.reads.get(key).is_none() {
            self.grow(1, key.bytes() + entry.as_ref().map_or(0, |entry| entry.value.len()))?;
            self.reads.insert(key.clone(), entry);
        }
        if let Some(Write::Add(delta)) = self.writes.get(key) {
            let before = self.reads.get(key).and_then(Option::as_ref);
            let value = Bytes::from(sum(before.map(|entry| &*entry.value), *delta)?.to_string());
            self.check_room(0, value.len())?;
            // The key was among those that it has added.
            let version = self.versions.next();
            self.write(key.clone(), Write::Value(Some(value), version));
        }
        match self.view(key) {
            View::Known(entry) => Ok(entry),
            View::Below => Ok(None),
        }
    }

    /// The set of keys of a bucket was read, and has that version below.
    ///
    /// # Errors
    /// When the transaction becomes too large.
    pub fn list(&mut self, bucket: &BucketName, version: u64) -> Result<(), KvError> {
        match self.listed.get(bucket) {
            Some(known) if *known != version => {
                self.stale.get_or_insert_with(|| Stale::Bucket(bucket.clone()));
            }
            Some(_) => {}
            None => {
                self.grow(1, bucket.bytes())?;
                self.listed.insert(bucket.clone(), version);
            }
        }
        Ok(())
    }

    /// When the set of keys of a bucket was last changed in it; zero if it was not.
    #[must_use]
    pub fn set_version(&self, bucket: &BucketName) -> u64 {
        self.sets.get(bucket).copied().unwrap_or(0)
    }

    /// Keys that it has added or removed, from that one on: whether each is there.
    pub fn own_keys(&self, from: &BucketKey) -> impl Iterator<Item = (&BucketKey, bool)> {
        let is_there = |write: &Write| !matches!(write, Write::Value(None, _));
        self.writes.range::<BucketKey, _>(from..).map(move |(key, write)| (key, is_there(write)))
    }

    /// The keys that have to be [learnt](Column::learn) before the commit is [made](Column::make). `wants_sum`: whether it is asked what additions come to.
    pub fn needs<'c>(&'c self, commit: &'c Commit, wants_sum: bool) -> impl Iterator<Item = &'c BucketKey> {
        let reads = (wants_sum && !mutants::is(Mutant::SumIsBlind)) || mutants::is(Mutant::AddIsRead);
        let added = commit.changes.iter().filter(move |(_, change)| reads && matches!(change, Change::Add(_)));
        let keys = commit.expected.iter().map(|(key, _)| key).chain(added.map(|(key, _)| key));
        keys.filter(|key| self.view(key) == View::Below)
    }

    /// Makes a commit within the transaction: on what it sees.
    ///
    /// # Errors
    /// When the transaction becomes too large, or the commit adds to what is no number. Nothing was changed then.
    pub fn make(&mut self, commit: &Commit) -> Result<Outcome, KvError> {
        for (index, (key, expected)) in commit.expected.iter().enumerate() {
            let version = self.seen_version(key);
            if version != *expected {
                return Ok(Outcome::Conflict { version, index });
            }
        }
        // First what may fail, then what is kept.
        let mut after: Vec<(&BucketKey, Write)> = Vec::with_capacity(commit.changes.len());
        let (mut last_sum, mut bytes) = (0, 0);
        for (key, change) in &commit.changes {
            let before = after.iter().rev().find(|(changed, _)| *changed == key).map(|(_, write)| write.clone());
            let write = match change {
                Change::Put(value) => Write::Value(Some(value.clone()), 0),
                Change::Delete => Write::Value(None, 0),
                Change::Add(delta) => self.added(key, before, *delta, &mut last_sum)?,
            };
            bytes += key.bytes() + write.bytes();
            after.push((key, write));
        }
        self.check_room(commit.changes.len(), bytes)?;
        let mut version = 0;
        for (key, write) in after {
            version = self.versions.next();
            match write {
                Write::Value(value, _) => self.put_at(key.clone(), value, version),
                Write::Add(delta) => self.add_at(key, delta, version),
            }
        }
        Ok(Outcome::Committed { version, sum: last_sum })
    }

    /// What becomes of a key to which something is added, behind what was done to it before within the same commit.
    fn added(&self, key: &BucketKey, before: Option<Write>, delta: i64, last_sum: &mut i64) -> Result<Write, KvError> {
        let before = match before {
            Some(Write::Value(value, _)) => View::Known(value.map(|value| Entry { version: 0, value })),
            Some(Write::Add(first)) => return first.checked_add(delta).map(Write::Add).ok_or(KvError::Overflow),
            None => self.view(key),
        };
        match (before, self.writes.get(key)) {
            (View::Known(entry), _) => {
                *last_sum = sum(entry.as_ref().map(|entry| &*entry.value), delta)?;
                Ok(Write::Value(Some(Bytes::from(last_sum.to_string())), 0))
            }
            // Only whether both together can be said matters: it is added to what is there.
            (View::Below, Some(Write::Add(first))) => {
                first.checked_add(delta).ok_or(KvError::Overflow).map(|_| Write::Add(delta))
            }
            (View::Below, _) => Ok(Write::Add(delta)),
        }
    }

    /// What it becomes in the store, when all is well: the versions that were read are expected, and everything that was written is changed.
    #[must_use]
    pub fn commit(&self, with_writes: bool) -> Commit {
        let expected = self.expected().map(|(key, version)| (key.clone(), version)).collect();
        let changes = self.changes().filter(|_| with_writes).map(|(key, change)| (key.clone(), change)).collect();
        let listed = self.listed().map(|(bucket, version)| (bucket.clone(), version)).collect();
        Commit { listed, ..Commit::new(expected, changes) }
    }

    /// The keys that it has read, each with the version that its [commit](Column::commit) expects, in that order.
    pub fn expected(&self) -> impl Iterator<Item = (&BucketKey, u64)> {
        let is_expected = |key: &BucketKey| !mutants::is(Mutant::LostRead) || !self.writes.contains_key(key);
        let reads = self.reads.iter().filter(move |(key, _)| is_expected(key));
        reads.map(|(key, entry)| (key, version(entry.as_ref())))
    }

    /// The same of the buckets that it has listed.
    pub fn listed(&self) -> impl Iterator<Item = (&BucketName, u64)> {
        self.listed.iter().map(|(bucket, version)| (bucket, *version))
    }

    /// What the transaction depends on at that place of [`Column::commit`]'s expectations.
    #[must_use]
    pub fn dependence(commit: &Commit, index: usize) -> Option<Stale> {
        let key = commit.expected.get(index).map(|(key, _)| Stale::Key(key.clone()));
        key.or_else(|| Some(Stale::Bucket(commit.listed.get(index.checked_sub(commit.expected.len())?)?.0.clone())))
    }

    /// The transaction that lies on top of this one, a part of it, is over: what it has written is written here. Everything that it has read was read through this one, and
    /// has to be what this one sees still. `listed`: when this one had changed the sets of keys that the part has listed.
    ///
    /// # Errors
    /// When this one becomes too large, or what was added cannot be. Nothing was changed then.
    pub(super) fn absorb(&mut self, part: &Column, listed: &Few<BucketName, u64>) -> Result<Result<(), Stale>, KvError> {
        if let Some(stale) = part.stale() {
            return Ok(Err(stale.clone()));
        }
        let is_unchecked =
            [Mutant::AbsorbUnchecked, Mutant::AdoptedReadLost, Mutant::AdoptedUnchecked].into_iter().any(mutants::is);
        if is_unchecked {
            return self.make(&Commit::new(Vec::new(), part.commit(true).changes)).map(|_| Ok(()));
        }
        if let Some((key, _)) = part.reads.iter().find(|(key, entry)| self.seen_version(key) != version(entry.as_ref())) {
            return Ok(Err(Stale::Key(key.clone())));
        }
        if let Some((bucket, _)) = listed.iter().find(|(bucket, version)| self.set_version(bucket) != **version) {
            return Ok(Err(Stale::Bucket(bucket.clone())));
        }
        self.make(&Commit::new(Vec::new(), part.commit(true).changes)).map(|_| Ok(()))
    }

    /// What it has read under a key from below, if it has read that.
    pub(super) fn read(&self, key: &BucketKey) -> Option<&Option<Entry>> {
        self.reads.get(key)
    }

    /// All that it has read from below.
    pub(super) fn reads(&self) -> impl Iterator<Item = (&BucketKey, &Option<Entry>)> {
        self.reads.iter()
    }

    /// What it has written under a key, if it has.
    pub(super) fn written(&self, key: &BucketKey) -> Option<Written> {
        self.writes.get(key).map(|write| match write {
            Write::Value(value, version) => Written::Value(value.clone().map(|value| Entry { version: *version, value })),
            Write::Add(delta) => Written::Add(*delta),
        })
    }

    /// The keys that it has written, and what is done to each.
    pub(super) fn changes(&self) -> impl Iterator<Item = (&BucketKey, Change)> {
        self.writes.iter().map(|(key, write)| (key, write.change()))
    }

    /// The same without what is done to them.
    pub(super) fn written_keys(&self) -> impl Iterator<Item = &BucketKey> {
        self.writes.keys()
    }

    /// The buckets whose sets of keys it has changed since that provisional version was given.
    pub(super) fn sets_since(&self, version: u64) -> impl Iterator<Item = &BucketName> {
        self.sets.iter().filter(move |(_, set)| **set > version).map(|(bucket, _)| bucket)
    }

    /// The version that the set of keys of a bucket had below when it was listed, if it was.
    pub(super) fn listed_at(&self, bucket: &BucketName) -> Option<u64> {
        self.listed.get(bucket).copied()
    }

    /// The set of keys that it has listed has another version below now, and the keys are those that it has seen.
    pub(super) fn list_again(&mut self, bucket: &BucketName, version: u64) {
        self.listed.insert(bucket.clone(), version);
    }

    /// It has failed: of what it has written nothing is left.
    pub(super) fn forget_writes(&mut self) {
        let bytes: usize = self.writes.iter().map(|(key, write)| key.bytes() + write.bytes()).sum();
        self.bytes -= bytes;
        self.writes.clear();
        self.sets = Few::default();
    }

    /// The version under which the transaction sees a key: zero for none.
    fn seen_version(&self, key: &BucketKey) -> u64 {
        match self.view(key) {
            View::Known(entry) => version(entry.as_ref()),
            View::Below => 0,
        }
    }

    fn put_at(&mut self, key: BucketKey, value: Option<Bytes>, version: u64) {
        // Where it is not known what is below, the set may change.
        let was_there = match self.view(&key) {
            View::Known(entry) => Some(entry.is_some()),
            View::Below => None,
        };
        if was_there != Some(value.is_some())
            && let Some(bucket) = BucketName::new(key.bucket())
        {
            self.sets.insert(bucket, version);
        }
        self.write(key, Write::Value(value, version));
    }

    fn write(&mut self, key: BucketKey, write: Write) {
        let before = self.writes.get(&key).map_or(0, |write| key.bytes() + write.bytes());
        self.bytes = self.bytes + key.bytes() + write.bytes() - before;
        self.writes.insert(key, write);
    }

    /// Adds to a number that is not known.
    fn add_at(&mut self, key: &BucketKey, delta: i64, version: u64) {
        if let Some(bucket) = BucketName::new(key.bucket()) {
            self.sets.insert(bucket, version);
        }
        match self.writes.get_mut(key) {
            // It was seen before that both together can be said.
            Some(Write::Add(first)) => *first = first.saturating_add(delta),
            Some(Write::Value(..)) => {}
            None => self.write(key.clone(), Write::Add(delta)),
        }
    }

    fn grow(&mut self, keys: usize, bytes: usize) -> Result<(), KvError> {
        self.check_room(keys, bytes)?;
        self.bytes += bytes;
        Ok(())
    }

    /// Whether there is room for so many keys more, and bytes: as much as a commit has (speculation.md, I5).
    fn check_room(&self, keys: usize, bytes: usize) -> Result<(), KvError> {
        let keys = self.reads.len() + self.listed.len() + self.writes.len() + keys;
        if keys > COMMIT_KEYS_MAX {
            return Err(KvError::TooMany { keys, keys_max: COMMIT_KEYS_MAX });
        }
        let bytes = self.bytes + bytes;
        if bytes > COMMIT_BYTES_MAX {
            return Err(KvError::TooLarge { what: "a transaction", bytes, bytes_max: COMMIT_BYTES_MAX });
        }
        Ok(())
    }
}

impl Write {
    fn change(&self) -> Change {
        match self {
            Write::Value(Some(value), _) => Change::Put(value.clone()),
            Write::Value(None, _) => Change::Delete,
            Write::Add(delta) => Change::Add(*delta),
        }
    }

    fn bytes(&self) -> usize {
        if let Write::Value(Some(value), _) = self { value.len() } else { 0 }
    }
}

/// The version of an entry; zero where there is none.
pub(super) fn version(entry: Option<&Entry>) -> u64 {
    entry.map_or(0, |entry| entry.version)
}
