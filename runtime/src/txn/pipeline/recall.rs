//! Columns of runs that need not be made: what a run has come to before it comes to again, where it would read the same.
//!
//! A column that is committed leaves its [`Basis`]: what it has read, and what it has changed. A new column at the place of such a run may *recall* it in place of a run. It has ended at once then, has
//! changed the same, and expects what was read as if it had read it itself. So the answer of the run is right if the column is committed.
//!
//! * What was read of the store has to have the same version. Where the store can be asked at once, it is; otherwise the group's commit decides.
//! * What a predecessor in the pipeline has written has no version that outlives it. There the value counts, as it does for a run that has read a key before a predecessor has written the same there.

use std::collections::BTreeMap;

use super::super::column::{Written, version};
use super::super::mutants::{self, Mutant};
use super::ColumnId;
use super::columns::{Columns, From, Slot};
use super::group::Sets;
use crate::kv::{BucketKey, BucketName, Change, Commit, Entry, KvError, Space};

/// Tells values apart: a hash, or that there is none.
pub(super) type Value = Option<blake3::Hash>;

/// What a run that was committed has read and changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Basis {
    reads: Box<[Read]>,
    listed: Box<[(BucketName, u64)]>,
    changes: Box<[(BucketKey, Change)]>,
}

/// A key that was read.
#[derive(Clone, Debug, PartialEq)]
struct Read {
    key: BucketKey,
    /// The version under which the store has what was read, if that is in the store.
    version: Option<u64>,
    value: Value,
}

/// A key that a column has recalled: it knows the version that it expects in the store, and not the value.
pub(super) type Recalled = BTreeMap<BucketKey, (u64, Value)>;

impl Basis {
    /// Bytes that it keeps.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let reads: usize = self.reads.iter().map(|read| size_of::<Read>() + read.key.bytes()).sum();
        let listed: usize = self.listed.iter().map(|(bucket, _)| size_of::<(BucketName, u64)>() + bucket.bytes()).sum();
        let change = |change: &Change| if let Change::Put(value) = change { value.len() } else { 0 };
        let changes = self.changes.iter().map(|(key, to)| size_of::<(BucketKey, Change)>() + key.bytes() + change(to));
        reads + listed + changes.sum::<usize>()
    }
}

fn hash(entry: Option<&Entry>) -> Value {
    entry.map(|entry| blake3::hash(&entry.value))
}

impl Slot {
    /// What a column that was committed with others leaves, if that can be recalled. `group`: these, in order; `sets`: the buckets of which they have changed keys; `committed`: the version of their commit.
    pub(super) fn basis(&self, group: &[Slot], sets: &Sets, committed: u64) -> Option<Basis> {
        // Of lists only those are kept which the store alone can answer.
        if !self.ended? || self.lists_unclearly() || self.column.listed().any(|(bucket, _)| sets.contains_key(bucket)) {
            return None;
        }
        let read = |key: &BucketKey, value: Value| {
            let last = group.iter().rev().find_map(|slot| Some((slot.id, slot.column.written(key)?)));
            let version = match last {
                None => self.expects(key),
                // It has read what the store holds now.
                Some((id, Written::Value(entry))) if self.column_of(key) == Some(id) => {
                    Some(if entry.is_some() { committed } else { 0 })
                }
                Some(_) => None,
            };
            Read { key: key.clone(), version, value }
        };
        let known = self.column.expected().map(|(key, _)| read(key, hash(self.column.read(key).and_then(Option::as_ref))));
        let recalled = self.recalled.iter().map(|(key, (_, value))| read(key, *value));
        let mut reads: Box<[Read]> = known.chain(recalled).collect();
        reads.sort_unstable_by(|one, other| one.key.cmp(&other.key));
        let listed = self.column.listed().map(|(bucket, version)| (bucket.clone(), version)).collect();
        let changes = self.column.changes().map(|(key, change)| (key.clone(), change)).collect();
        Some(Basis { reads, listed, changes })
    }
}

/// How a column comes to know what a run has read.
enum Known {
    /// It reads it now, and sees the same.
    Reads(Option<Entry>),
    /// The store has to have it at that version.
    Expects(u64, Value),
}

impl Columns {
    /// Has a column that has done nothing come to what that run has come to, and end. False where something is otherwise than the run has read it, so that the function has to run.
    pub(super) fn recall(&mut self, id: ColumnId, basis: &Basis, space: Option<&Space>) -> bool {
        let is_recalled = self.find_running(id).is_some_and(|at| self.try_recall(at, id, basis, space));
        if !is_recalled && let Some(at) = self.find_running(id) {
            // A run finds out for itself.
            self.slots[at].recalled.clear();
        }
        is_recalled
    }

    fn try_recall(&mut self, at: usize, id: ColumnId, basis: &Basis, space: Option<&Space>) -> bool {
        let Ok(Some(known)) = self.knows(at, basis, space) else { return false };
        for (read, known) in basis.reads.iter().zip(known) {
            let learnt = match known {
                Known::Reads(entry) => self.read(at, &read.key, Some(&entry)).map(|_| ()),
                Known::Expects(version, value) => {
                    self.slots[at].recalled.insert(read.key.clone(), (version, value));
                    Ok(())
                }
            };
            if learnt.is_err() {
                return false;
            }
        }
        let slot = &mut self.slots[at];
        if basis.listed.iter().any(|(bucket, version)| slot.column.list(bucket, *version).is_err()) {
            return false;
        }
        let commit = Commit::new(Vec::new(), basis.changes.to_vec());
        let is_made = self.change(at, commit.changes.iter().map(|(key, _)| key), |column| column.make(&commit).is_ok());
        let Some(at) = self.find_running(id).filter(|_| is_made) else { return false };
        self.end(at, true, Vec::new());
        true
    }

    /// How it would know each key that was read; none where one of them is otherwise, or a list.
    fn knows(&mut self, at: usize, basis: &Basis, space: Option<&Space>) -> Result<Option<Vec<Known>>, KvError> {
        let has_changed = |bucket: &BucketName| self.slots[..at].iter().any(|slot| slot.column.set_version(bucket) != 0);
        if basis.listed.iter().any(|(bucket, _)| has_changed(bucket)) {
            return Ok(None);
        }
        if let Some(Space::Embedded(space)) = space {
            let listed = Commit { listed: basis.listed.to_vec(), ..Commit::default() };
            if !basis.listed.is_empty() && super::group::changed(space, &listed)?.is_some() {
                return Ok(None);
            }
        }
        let mut all = Vec::with_capacity(basis.reads.len());
        for read in &basis.reads {
            if self.waits_for(at, &read.key).is_some() {
                return Ok(None);
            }
            let of_store = match space {
                Some(Space::Embedded(space)) => {
                    let bucket = BucketName::new(read.key.bucket());
                    bucket.map(|bucket| space.get(&bucket, read.key.key(), |entry| entry.cloned())).transpose()?
                }
                _ => None,
            };
            let known = match (self.below(at, &read.key, of_store.as_ref())?, read.version) {
                (Some((entry, Some(From::Column(_)))), _) => {
                    (hash(entry.as_ref()) == read.value || mutants::is(Mutant::RecallUnchecked)).then_some(Known::Reads(entry))
                }
                (Some((entry, Some(From::Store(now)))), version) => (version == Some(now)).then_some(Known::Reads(entry)),
                (Some((entry, None)), then) => (then == Some(version(entry.as_ref()))).then_some(Known::Reads(entry)),
                // A predecessor adds to what the store has: no version of the store says what comes of that.
                (None, _) if self.slots[..at].iter().any(|slot| slot.column.written(&read.key).is_some()) => None,
                (None, version) => version.map(|version| Known::Expects(version, read.value)),
            };
            let Some(known) = known else { return Ok(None) };
            all.push(known);
        }
        Ok(Some(all))
    }
}
