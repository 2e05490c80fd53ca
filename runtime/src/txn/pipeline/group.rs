//! The commit of the first columns of a pipeline, all together, and what becomes of the others by its outcome.

use std::collections::BTreeMap;

use super::super::column::{Column, Stale, Written};
use super::super::mutants::{self, Mutant};
use super::super::{Outside, PutOff};
use super::columns::{Columns, From, Slot, UnderWay};
use super::values::left_by;
use super::{COLUMNS_MAX, Cause, ColumnId, Findings, Group, Squashed};
use crate::kv::embedded::{self, Seen};
use crate::kv::{BucketKey, BucketName, COMMIT_BYTES_MAX, COMMIT_KEYS_MAX, Change, Commit, KvError, Outcome, Space, outbox, sum};

/// Of a column that has read more keys it is not said which.
const READS_TOLD_MAX: usize = 32;

/// What columns come to together.
#[derive(Debug, Default)]
struct Draft {
    /// Keys of the store, and the version that each has to have.
    expected: BTreeMap<BucketKey, u64>,
    listed: BTreeMap<BucketName, u64>,
    /// What is done to each key, one after the other: a single change, but where an addition does not go together with what stands before it.
    changes: BTreeMap<BucketKey, Vec<Change>>,
    bytes: usize,
}

/// Of buckets, whether a commit changes their sets of keys; none where that is not known.
pub(super) type Sets = BTreeMap<BucketName, Option<bool>>;

/// Why a column is no part of a draft.
enum Not {
    /// There is no room.
    Full,
    /// It has read what the columns before it have not.
    Stale(Stale),
    /// It has read an addition of one of these of which the sum is not known.
    Later,
}

impl Draft {
    /// Adds a column behind those that it has. `members`: these.
    fn add(&mut self, slot: &Slot, members: &[Slot]) -> Result<(), Not> {
        if let Some(key) = slot.contradiction() {
            return Err(Not::Stale(Stale::Key(key.clone())));
        }
        let reads: Vec<(&BucketKey, u64)> = slot.expected().collect();
        if !mutants::is(Mutant::TwoVersions) {
            if let Some((key, _)) =
                reads.iter().find(|(key, version)| self.expected.get(*key).is_some_and(|known| known != version))
            {
                return Err(Not::Stale(Stale::Key((*key).clone())));
            }
            let lists_otherwise =
                |(bucket, version): &(&BucketName, u64)| self.listed.get(*bucket).is_some_and(|known| known != version);
            if let Some((bucket, _)) = slot.column.listed().find(lists_otherwise) {
                return Err(Not::Stale(Stale::Bucket(bucket.clone())));
            }
        }
        if members.iter().any(|member| slot.reads_unknown_sum(member)) {
            return Err(Not::Later);
        }
        let new_reads = reads.iter().filter(|(key, _)| !self.expected.contains_key(*key));
        let new_lists = slot.column.listed().filter(|(bucket, _)| !self.listed.contains_key(*bucket));
        let sizes = new_reads.map(|(key, _)| key.bytes()).chain(new_lists.map(|(bucket, _)| bucket.bytes()));
        // An upper bound: what is written twice is counted twice.
        let writes = slot
            .column
            .changes()
            .map(|(key, change)| key.bytes() + if let Change::Put(value) = change { value.len() } else { 0 });
        let (keys, bytes) = sizes.chain(writes).fold((self.keys(), self.bytes), |(keys, bytes), size| (keys + 1, bytes + size));
        if !members.is_empty() && (keys > COMMIT_KEYS_MAX || bytes > COMMIT_BYTES_MAX) {
            return Err(Not::Full);
        }
        self.bytes = bytes;
        self.expected.extend(reads.into_iter().map(|(key, version)| (key.clone(), version)));
        self.listed.extend(slot.column.listed().map(|(bucket, version)| (bucket.clone(), version)));
        for (key, change) in slot.column.changes() {
            self.change(key, change);
        }
        Ok(())
    }

    fn keys(&self) -> usize {
        self.expected.len() + self.listed.len() + self.changes.values().map(Vec::len).sum::<usize>()
    }

    fn change(&mut self, key: &BucketKey, change: Change) {
        let changes = self.changes.entry(key.clone()).or_default();
        let Change::Add(delta) = change else {
            *changes = vec![change];
            return;
        };
        let together = match changes.last() {
            None => None,
            // Of one direction: where both together can be said, the first one alone can, too.
            Some(Change::Add(first)) if (*first < 0) == (delta < 0) => first.checked_add(delta).map(Change::Add),
            Some(Change::Add(_)) => None,
            Some(Change::Put(value)) => sum(Some(value), delta).ok().map(|sum| Change::Put(sum.to_string().into())),
            Some(Change::Delete) => Some(Change::Put(delta.to_string().into())),
        };
        // Otherwise the store says what becomes of it.
        if together.is_some() {
            changes.pop();
        }
        changes.push(together.unwrap_or(change));
    }

    /// The buckets of which it changes keys: whether the set of these becomes another one, or none where that is not known.
    fn sets(&self) -> Sets {
        let mut sets = Sets::new();
        for (key, changes) in &self.changes {
            let Some(bucket) = BucketName::new(key.bucket()) else { continue };
            let is_there = !matches!(changes.last(), Some(Change::Delete));
            let changes_it = self.expected.get(key).map(|version| (*version != 0) != is_there);
            let set = sets.entry(bucket).or_insert(Some(false));
            *set = set.zip(changes_it).map(|(before, changes_it)| before || changes_it);
        }
        sets
    }

    /// Has the commit expect the sets of keys that successors have listed and it changes: so that what they have listed stays right when it has changed them.
    fn protect(&mut self, sets: &Sets, successors: &[Slot]) {
        for (bucket, version) in successors.iter().flat_map(|slot| slot.column.listed()) {
            let has_room = self.keys() < COMMIT_KEYS_MAX && self.bytes + bucket.bytes() <= COMMIT_BYTES_MAX;
            if sets.get(bucket) == Some(&Some(true)) && !self.listed.contains_key(bucket) && has_room {
                self.bytes += bucket.bytes();
                self.listed.insert(bucket.clone(), version);
            }
        }
    }

    fn commit(self) -> Commit {
        let changes =
            self.changes.into_iter().flat_map(|(key, changes)| changes.into_iter().map(move |change| (key.clone(), change)));
        let expected = if mutants::is(Mutant::GroupUnvalidated) { Vec::new() } else { self.expected.into_iter().collect() };
        Commit { listed: self.listed.into_iter().collect(), ..Commit::new(expected, changes.collect()) }
    }
}

impl Slot {
    /// Whether it has read an addition of that one of which the sum is not known.
    fn reads_unknown_sum(&self, of: &Slot) -> bool {
        let mut from = self.from.iter().filter(|(_, from)| **from == From::Column(of.id));
        from.any(|(key, _)| matches!(of.column.written(key), Some(Written::Add(_))))
    }
}

impl Slot {
    /// Expects the keys of a bucket as a commit has left them that does not change which keys there are: its list has taken them from the columns of that commit, and not from the store, which may have had
    /// the list from a later moment, when another commit had changed them. False where that cannot be said.
    fn expect_changed(&mut self, bucket: &BucketName, commit: &Commit, version: u64) -> bool {
        let of_bucket = |key: &BucketKey| BucketName::new(key.bucket()).as_ref() == Some(bucket);
        for (key, change) in commit.changes.iter().filter(|(key, _)| of_bucket(key)) {
            let expected = match change {
                Change::Put(value) => (version, Some(blake3::hash(value))),
                Change::Delete => (0, None),
                Change::Add(_) => return false,
            };
            if self.column.written(key).is_none() && self.column.read(key).is_none() {
                self.recalled.insert(key.clone(), expected);
            }
        }
        true
    }
}

impl Columns {
    /// What decides about these columns, in their order: of those of them that stand first and have ended, as many as fit into one commit.
    pub(super) fn settle(&mut self, named: &[ColumnId], space: Option<&Space>) -> Group {
        if self.under_way.is_some() {
            return Group::Nothing;
        }
        if mutants::is(Mutant::OutOfOrder) {
            self.bring_forward(named);
        }
        let is_next = |(id, slot): &(&ColumnId, &Slot)| **id == slot.id && slot.ended.is_some();
        let ended = named.iter().zip(&self.slots).take_while(is_next).count().min(self.group_max);
        let (mut draft, mut count, mut stale) = (Draft::default(), 0, None);
        for slot in &self.slots[..ended] {
            match draft.add(slot, &self.slots[..count]) {
                Ok(()) => count += 1,
                Err(Not::Full | Not::Later) => break,
                Err(Not::Stale(what)) => {
                    stale = Some((slot.id, what));
                    break;
                }
            }
        }
        if let Some((id, what)) = stale {
            self.tell_contention(&what, count);
            self.squash(vec![Squashed { column: id, cause: Cause::of(&what) }]);
        }
        if count == 0 { Group::Nothing } else { self.decide(draft, count, space) }
    }

    fn decide(&mut self, mut draft: Draft, count: usize, space: Option<&Space>) -> Group {
        let sets = draft.sets();
        if !self.is_plain {
            draft.protect(&sets, &self.slots[count..]);
        }
        let mut commit = draft.commit();
        let depends_on_nothing = commit.expected.is_empty() && commit.listed.is_empty();
        let space = match space {
            Some(space) if self.is_journalled || !(depends_on_nothing && commit.is_read_only()) => space,
            _ => return self.leave(UnderWay { count, commit, sets }, 0),
        };
        if let (Space::Embedded(space), true) = (space, commit.is_read_only() && !self.is_journalled) {
            return match changed(space, &commit) {
                Ok(None) => self.leave(UnderWay { count, commit, sets }, 0),
                Ok(Some(stale)) => self.conflicted(count, &stale),
                Err(error) => self.refused(count, error),
            };
        }
        commit.id = Some(fastrand::u128(..).to_ne_bytes());
        self.under_way = Some(UnderWay { count, commit: commit.clone(), sets });
        let columns = self.slots[..count].iter().map(|slot| slot.id).collect();
        Group::Commit { columns, commit }
    }

    /// That is what became of the commit under way.
    pub(super) fn came(&mut self, outcome: Result<Outcome, KvError>) -> Group {
        let Some(under_way) = self.under_way.take() else { return Group::Nothing };
        let count = under_way.count;
        match outcome {
            Ok(Outcome::Committed { version, .. }) => self.leave(under_way, version),
            Ok(Outcome::Conflict { index, .. }) => match Column::dependence(&under_way.commit, index) {
                Some(stale) => self.conflicted(count, &stale),
                None => self.fail(count, KvError::Unknown("the store names a key that is not expected".to_owned())),
            },
            Err(_) if mutants::is(Mutant::RefusedIsLeft) => self.leave(under_way, 0),
            Err(error) => self.refused(count, error),
        }
    }

    /// The first columns are committed, under that version.
    fn leave(&mut self, UnderWay { count, commit, sets }: UnderWay, version: u64) -> Group {
        (self.group_max, self.is_plain) = (COLUMNS_MAX, false);
        let gone: Vec<Slot> = self.slots.drain(..count).collect();
        let mut lost = self.list_again((&sets, &commit), version);
        self.left.committed((&gone, &sets), version);
        for slot in &mut self.slots {
            for (key, from) in &mut slot.from {
                let From::Column(id) = *from else { continue };
                let Some(written) = gone.iter().find(|slot| slot.id == id).map(|slot| slot.column.written(key)) else { continue };
                match written {
                    _ if mutants::is(Mutant::RemapLost) => {}
                    Some(Written::Value(entry)) => *from = From::Store(if entry.is_some() { version } else { 0 }),
                    _ if mutants::is(Mutant::SumUnderWay) => *from = From::Store(version),
                    // What has become of the sum only the store knows.
                    Some(Written::Add(_)) | None => lost.push(Squashed { column: slot.id, cause: Cause::Sum }),
                }
            }
        }
        self.squash(lost);
        if outbox::is_left_by(&commit) {
            for slot in &gone {
                if let Outside::Outbox(outbox) = &slot.isolation.outside {
                    outbox.ring();
                }
            }
        }
        // Before another run reads: what these columns have written it would not see any more.
        if let Some(values) = &self.values {
            values.left(left_by(&gone, version));
        }
        let columns = gone.iter().map(|slot| slot.id).collect();
        let leaves = |slot: &Slot| Findings {
            column: slot.id,
            basis: self.keeps_bases.then(|| slot.basis(&gone, &sets, version)).flatten(),
            reads: if self.tells_reads { slot.reads_of_store(READS_TOLD_MAX) } else { Vec::new() },
        };
        let findings = gone.iter().map(leaves).collect();
        let calls: Vec<PutOff> = gone.into_iter().flat_map(|slot| slot.calls).collect();
        Group::Committed { columns, calls, findings }
    }

    /// What columns have listed of buckets of which keys were changed: right where the version before is known, and whether there is another one now. The columns that are lost.
    fn list_again(&mut self, (sets, commit): (&Sets, &Commit), version: u64) -> Vec<Squashed> {
        let mut lost = Vec::new();
        for (bucket, changes_it) in sets {
            let before = commit.listed.iter().find(|(listed, _)| listed == bucket).map(|(_, version)| *version);
            for slot in self.slots.iter_mut().filter(|slot| slot.has_listed(bucket)) {
                match (slot.column.listed_at(bucket), changes_it) {
                    (Some(listed), Some(false)) if Some(listed) == before => {}
                    (Some(_), Some(false)) if slot.expect_changed(bucket, commit, version) => {}
                    (Some(listed), Some(true) | None) if listed == version => {}
                    (Some(listed), Some(true)) if Some(listed) == before => slot.column.list_again(bucket, version),
                    _ => lost.push(Squashed { column: slot.id, cause: Cause::Set }),
                }
            }
        }
        lost
    }

    /// Something of what the first columns have read, or their successors have listed, is otherwise in the store.
    fn conflicted(&mut self, count: usize, stale: &Stale) -> Group {
        self.is_plain = true;
        self.squash_readers_of_sums(count);
        let members = &self.slots[..count];
        let reads = |slot: &Slot| match stale {
            Stale::Key(key) => slot.expects(key),
            Stale::Bucket(bucket) => slot.column.listed_at(bucket),
        };
        let first = members.iter().find_map(|slot| Some((slot.id, reads(slot)?)));
        self.tell_contention(stale, 0);
        if let (Stale::Key(key), Some((_, version)), Some(values)) = (stale, first, &self.values) {
            self.was_misled |= values.wrong(key, version);
        }
        let version = match (first, stale) {
            (Some((_, version)), _) => Some(version),
            (None, Stale::Bucket(_)) => self.slots.iter().find_map(reads),
            (None, Stale::Key(_)) => None,
        };
        // All that have read the same are as stale as the first.
        self.squash_all(&Cause::of(stale), |slot| version.is_some() && reads(slot) == version);
        let key = if let Stale::Key(key) = stale { Some(key.clone()) } else { None };
        match first {
            Some((column, _)) => Group::Stale { column, key },
            None => Group::Again,
        }
    }

    /// The store has not made the commit of the first columns, or has not said so. Which of them it refuses is found out one by one.
    fn refused(&mut self, count: usize, error: KvError) -> Group {
        if count == 1 || matches!(error, KvError::Unknown(_)) {
            return self.fail(count, error);
        }
        self.squash_readers_of_sums(count);
        self.group_max = 1;
        Group::Again
    }

    /// The first columns have failed with that.
    fn fail(&mut self, count: usize, error: KvError) -> Group {
        self.group_max = COLUMNS_MAX;
        let columns: Vec<ColumnId> = self.slots[..count].iter().map(|slot| slot.id).collect();
        if mutants::is(Mutant::RefusedIsRead) {
            self.slots.drain(..count);
        }
        for id in &columns {
            self.give_up(*id);
        }
        self.squashed.retain(|squashed| !columns.contains(&squashed.column));
        Group::Failed { columns, error }
    }

    /// Takes the columns away that have read additions of the first ones of which the sums are not known. The commit in which these were under way was not made: when it is, other sums may come of it.
    fn squash_readers_of_sums(&mut self, count: usize) {
        let (members, behind) = self.slots.split_at(count);
        let lost = behind.iter().filter(|slot| members.iter().any(|member| slot.reads_unknown_sum(member)));
        let lost = lost.map(|slot| Squashed { column: slot.id, cause: Cause::Sum }).collect();
        self.squash(lost);
    }

    fn tell_contention(&self, stale: &Stale, at: usize) {
        if let (Stale::Key(key), Some(slot)) = (stale, self.slots.get(at)) {
            slot.isolation.contention.conflicted(key, std::time::Instant::now());
        }
    }

    /// What a mistake does: the named columns stand first, whatever stands before them.
    fn bring_forward(&mut self, named: &[ColumnId]) {
        self.slots.sort_by_key(|slot| (!named.contains(&slot.id), slot.place.clone()));
    }
}

/// What does not hold any more of what a commit expects, in the store in this process, at one moment.
pub(super) fn changed(space: &embedded::Space, commit: &Commit) -> Result<Option<Stale>, KvError> {
    let keys = commit.expected.iter().map(|(key, version)| (Seen::Key(key), *version));
    let seen = keys.chain(commit.listed.iter().map(|(bucket, version)| (Seen::Bucket(bucket), *version)));
    Ok(space.changed(seen)?.map(|seen| match seen {
        Seen::Key(key) => Stale::Key(key.clone()),
        Seen::Bucket(bucket) => Stale::Bucket(bucket.clone()),
    }))
}
