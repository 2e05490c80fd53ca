//! The columns of one execution in program order: what each reads of its predecessors, and which of them a write concerns. Pure, without a lock, a clock or a store.
//!
//! Invariants, between any two operations:
//! * What a column has read and still depends on is what it would read now: the value that its nearest predecessor with a write of the key has written, and where no predecessor has written
//!   it, an entry of the store, which the commit will validate. A write that would make this untrue takes the reader away.
//! * A column that is gone has no slot: whatever its run does finds none, also when the place was opened again ([`ColumnId`]s are never reused).
//! * The columns under way to the store are the first ones. They have ended, and none of them changes or leaves before the outcome is known.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use sledge_workflow::definition::StateIndex;

use super::super::column::{Column, Versions, View, Written, version};
use super::super::mutants::{self, Mutant};
use super::super::{Isolation, PutOff};
use super::group::Sets;
use super::recall::{Recalled, Value};
use super::seat::Sees;
use super::sight::Left;
use super::stall::Stalls;
use super::values::Values;
use super::{COLUMNS_MAX, Cause, ColumnId, Dewey, Squashed};
use crate::kv::{BucketKey, BucketName, COMMIT_KEYS_MAX, Commit, Entry, KvError, sum};

/// Where a column has read a key that it has not read from the store at the version of the entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum From {
    /// From that predecessor.
    Column(ColumnId),
    /// From a predecessor whose write has that version in the store by now. What the function has seen keeps the version under which it has seen it.
    Store(u64),
}

/// What lies below a column under a key, if that is known, and where it comes from if not from the store as it is.
pub(super) type Below = Result<Option<(Option<Entry>, Option<From>)>, KvError>;

/// The buckets whose sets of keys a column has asked for.
#[derive(Debug, Default)]
struct Asked {
    some: Vec<BucketName>,
    /// There were too many of them: any may be among them.
    is_any: bool,
}

/// A column at its place.
#[derive(Debug)]
pub(super) struct Slot {
    pub id: ColumnId,
    pub place: Dewey,
    /// Which state's run it is, where reads may wait.
    pub state: Option<StateIndex>,
    pub isolation: Isolation,
    pub column: Column,
    /// Keys that it expects at a version without having seen their values: see [`super::recall`].
    pub recalled: Recalled,
    /// Of what it has read, what does not come from the store as it is. Also a key that it could not read since a predecessor's addition has no sum.
    pub from: HashMap<BucketKey, From>,
    asked: Asked,
    /// Whether its run has ended, and well.
    pub ended: Option<bool>,
    pub calls: Vec<PutOff>,
}

/// A commit on its way to the store, and how many of the first columns it is made of.
#[derive(Debug)]
pub(super) struct UnderWay {
    pub count: usize,
    pub commit: Commit,
    /// The buckets of which it changes keys.
    pub sets: Sets,
}

/// All columns of an execution that are neither committed nor gone.
#[derive(Debug)]
pub(super) struct Columns {
    pub slots: Vec<Slot>,
    next: u64,
    versions: Versions,
    /// Columns that are gone, and of which the driver does not know yet.
    pub squashed: Vec<Squashed>,
    pub under_way: Option<UnderWay>,
    /// How many columns a commit is made of at most: one, where the store has refused more.
    pub group_max: usize,
    /// Whether commits expect only what their own columns have read: since one has conflicted.
    pub is_plain: bool,
    /// Whether it is said of what is committed what that rests on.
    pub keeps_bases: bool,
    /// Whether it is said of what is committed which keys of the store it has read.
    pub tells_reads: bool,
    /// Whether each group is a commit, also one that changes nothing.
    pub is_journalled: bool,
    /// Which reads wait, if any do.
    pub stalls: Option<Arc<dyn Stalls>>,
    /// What is told what commits have left in the store, if something is.
    pub values: Option<Arc<dyn Values>>,
    /// Whether what the store was expected to have was wrong since that was last looked at.
    pub was_misled: bool,
    /// Whether a column has written, has ended or has gone since that was last looked at: reads may go on.
    pub has_moved: bool,
    /// What commits have made of what callees may have read before, as long as there are some beside a column.
    pub left: Left,
}

impl Default for Columns {
    fn default() -> Columns {
        let (slots, squashed, versions) = (Vec::new(), Vec::new(), Versions::default());
        Columns {
            slots,
            next: 0,
            versions,
            squashed,
            under_way: None,
            group_max: COLUMNS_MAX,
            is_plain: false,
            keeps_bases: false,
            tells_reads: false,
            is_journalled: false,
            stalls: None,
            values: None,
            was_misled: false,
            has_moved: false,
            left: Left::default(),
        }
    }
}

impl Slot {
    fn depends_on(&self, id: ColumnId) -> bool {
        self.from.values().any(|from| *from == From::Column(id))
    }

    /// Whether the set of keys of a bucket is among what it has read.
    pub(super) fn has_listed(&self, bucket: &BucketName) -> bool {
        self.asked.is_any || self.asked.some.contains(bucket) || self.column.listed_at(bucket).is_some()
    }

    /// The version that a key has to have in the store for what it has read to be there; none if it has not read it from there.
    pub(super) fn expects(&self, key: &BucketKey) -> Option<u64> {
        match self.from.get(key) {
            Some(From::Column(_)) => None,
            Some(From::Store(version)) => Some(*version),
            None => {
                let read = self.column.read(key).map(|entry| version(entry.as_ref()));
                read.or_else(|| self.recalled.get(key).map(|(version, _)| *version))
            }
        }
    }

    /// A key that it expects at one version, and has read at another one.
    pub(super) fn contradiction(&self) -> Option<&BucketKey> {
        let other = |(key, (version, _)): &(&BucketKey, &(u64, Value))| self.expects(key).is_some_and(|read| read != *version);
        self.recalled.iter().find(other).map(|(key, _)| key)
    }

    /// The column from which it has read a key, if that is not committed.
    pub(super) fn column_of(&self, key: &BucketKey) -> Option<ColumnId> {
        if let Some(From::Column(id)) = self.from.get(key) { Some(*id) } else { None }
    }

    /// The keys that it expects at a version.
    pub(super) fn expected(&self) -> impl Iterator<Item = (&BucketKey, u64)> {
        let recalled = self.recalled.keys().filter(|_| !mutants::is(Mutant::RecallIsBlind));
        let keys = self.column.expected().map(|(key, _)| key).chain(recalled);
        keys.filter_map(|key| Some((key, self.expects(key)?)))
    }

    /// The keys that it has read of the store, or recalled; none where these are more than so many.
    pub(super) fn reads_of_store(&self, count_max: usize) -> Vec<BucketKey> {
        let read = self.column.reads().map(|(key, _)| key).filter(|key| !self.from.contains_key(*key));
        let keys: Vec<BucketKey> = read.chain(self.recalled.keys()).take(count_max + 1).cloned().collect();
        if keys.len() > count_max { Vec::new() } else { keys }
    }

    /// Whether it has asked for sets of keys of which it has not seen the version.
    pub(super) fn lists_unclearly(&self) -> bool {
        self.asked.is_any || self.asked.some.iter().any(|bucket| self.column.listed_at(bucket).is_none())
    }
}

impl Columns {
    /// Opens a column at that place; one that is there is gone then. None if there is no room, or the place lies before what is on its way to the store: those are the first columns until the outcome is known.
    ///
    /// It may lie before what is committed: a branch goes on when later ones are over. It reads what these have left in the store then, and comes after them.
    pub(super) fn open(&mut self, place: Dewey, isolation: &Isolation) -> Option<ColumnId> {
        let first = self.under_way.as_ref().map_or(0, |under_way| under_way.count);
        if self.slots[..first].last().is_some_and(|last| place <= last.place) {
            return None;
        }
        if let Some(slot) = self.slots.iter().find(|slot| slot.place == place) {
            self.give_up(slot.id);
        }
        if self.slots.len() >= COLUMNS_MAX {
            return None;
        }
        self.next += 1;
        let id = ColumnId(if mutants::is(Mutant::StaleEpoch) {
            place.steps().iter().fold(1, |id, step| id * 1_000 + step)
        } else {
            self.next
        });
        let column = Column::sharing(&mut self.versions);
        let at = self.slots.partition_point(|slot| slot.place < place);
        let (isolation, recalled, from, asked) = (isolation.clone(), Recalled::new(), HashMap::new(), Asked::default());
        self.slots.insert(
            at,
            Slot { id, place, state: None, isolation, column, recalled, from, asked, ended: None, calls: Vec::new() },
        );
        Some(id)
    }

    /// Where that column stands, if it takes part.
    pub(super) fn find(&self, id: ColumnId) -> Option<usize> {
        self.slots.iter().position(|slot| slot.id == id)
    }

    /// The same of one whose run has not ended: nothing else changes it.
    pub(super) fn find_running(&self, id: ColumnId) -> Option<usize> {
        self.find(id).filter(|at| self.slots[*at].ended.is_none())
    }

    /// Bytes that the column keeps.
    pub(super) fn bytes(&self, at: usize) -> usize {
        self.slots[at].column.bytes()
    }

    /// What the column sees under a key; none if the store has to be asked for that. `of_store`: what it has.
    pub(super) fn read(&mut self, at: usize, key: &BucketKey, of_store: Option<&Option<Entry>>) -> Sees {
        if let View::Known(entry) = self.slots[at].column.view(key) {
            return Ok(Some(entry));
        }
        let Some((entry, from)) = self.below(at, key, of_store)? else { return Ok(None) };
        let slot = &mut self.slots[at];
        let was_read = slot.column.read(key).is_some();
        let learnt = slot.column.learn(key, entry);
        if let Some(from) = from.filter(|_| !was_read && slot.column.read(key).is_some()) {
            slot.from.insert(key.clone(), from);
        }
        learnt.map(Some)
    }

    /// What lies below a column under a key: the nearest predecessor that knows the key says it.
    pub(super) fn below(&mut self, at: usize, key: &BucketKey, of_store: Option<&Option<Entry>>) -> Below {
        for before in self.order_of_reading(at) {
            let Slot { id, column, from, .. } = &self.slots[before];
            let (id, from) = (*id, from.get(key).copied());
            match (column.written(key), column.read(key)) {
                (Some(Written::Value(entry)), _) => return Ok(Some((entry, Some(From::Column(id))))),
                (Some(Written::Add(delta)), _) => return self.below_sum(at, (before, delta), key, of_store),
                // What a predecessor has read of the store is read again: both are validated together, and the store is not asked twice.
                (None, Some(entry)) => return Ok(Some((entry.clone(), from))),
                (None, None) => {}
            }
        }
        Ok(of_store.map(|entry| (entry.clone(), None)))
    }

    /// The same where that predecessor adds to a number that it has not read.
    fn below_sum(
        &mut self,
        at: usize,
        (before, delta): (usize, i64),
        key: &BucketKey,
        of_store: Option<&Option<Entry>>,
    ) -> Below {
        let id = self.slots[before].id;
        let entry = if self.is_under_way(before) {
            // Its commit does not expect what is read now. What is made of it is taken away when the outcome is known.
            match self.below(before, key, of_store) {
                Ok(None) => return Ok(None),
                Ok(Some((entry, _))) => {
                    let version = self.versions.next();
                    let sum = sum(entry.as_ref().map(|entry| &*entry.value), delta);
                    sum.map(|sum| Some(Entry { version, value: sum.to_string().into() }))
                }
                Err(error) => Err(error),
            }
        } else {
            // It learns what its sum is: from now on that is a read.
            match self.read(before, key, of_store) {
                Ok(None) => return Ok(None),
                Ok(Some(entry)) => Ok(entry),
                Err(error) => Err(error),
            }
        };
        if entry.is_err() {
            // That there is no sum depends on the predecessor, too.
            self.slots[at].from.insert(key.clone(), From::Column(id));
        }
        entry.map(|entry| Some((entry, Some(From::Column(id)))))
    }

    /// The predecessors of a column, the nearest first.
    fn order_of_reading(&self, at: usize) -> Vec<usize> {
        let mut before: Vec<usize> = (0..at).rev().collect();
        if mutants::is(Mutant::ForwardedFromFarthest) {
            before.reverse();
        }
        before
    }

    fn is_under_way(&self, at: usize) -> bool {
        self.under_way.as_ref().is_some_and(|under_way| at < under_way.count)
    }

    /// Does something with a column, which may write these keys: successors that have read something else there are gone.
    pub(super) fn change<'k, T>(
        &mut self,
        at: usize,
        written: impl Iterator<Item = &'k BucketKey>,
        work: impl FnOnce(&mut Column) -> T,
    ) -> T {
        let (since, column) = (self.versions.last(), &mut self.slots[at].column);
        let (result, mut written) = (work(column), written.peekable());
        self.has_moved |= written.peek().is_some();
        let column = &self.slots[at].column;
        let mut lost = Vec::new();
        if let Some(stale) = column.stale() {
            let cause = Cause::of(stale);
            lost.push(Squashed { column: self.slots[at].id, cause });
        }
        let sets: Vec<BucketName> = self.slots[at].column.sets_since(since).cloned().collect();
        lost.extend(self.listed_behind(at, &sets));
        for key in written {
            self.wrote(at, key, &mut lost);
        }
        self.squash(lost);
        result
    }

    /// A column has written a key, perhaps: the successors that have read something else, up to the first that writes it itself.
    fn wrote(&mut self, at: usize, key: &BucketKey, lost: &mut Vec<Squashed>) {
        let (id, writer) = (self.slots[at].id, self.slots[at].state);
        let Some(written) = self.slots[at].column.written(key) else { return };
        let stalls = self.stalls.clone();
        let too_early = |slot: &Slot| {
            if let (Some(stalls), Some(reader), Some(writer)) = (&stalls, slot.state, writer) {
                stalls.read_too_early(reader, writer, key);
            }
            slot.id
        };
        for slot in &mut self.slots[at + 1..] {
            let has_written = slot.column.written(key).is_some();
            match (slot.column.read(key), &written) {
                _ if has_written && mutants::is(Mutant::LostReadBit) => {}
                // What it has read it reads still, from here now.
                (Some(read), Written::Value(entry)) if value(read.as_ref()) == value(entry.as_ref()) => {
                    slot.from.insert(key.clone(), From::Column(id));
                }
                (Some(_), _) => lost.push(Squashed { column: too_early(slot), cause: Cause::Wrote(id, key.clone()) }),
                (None, _) if mutants::is(Mutant::RecallIsKept) && !slot.from.contains_key(key) => {}
                (None, _) if !slot.from.contains_key(key) && !slot.recalled.contains_key(key) => {}
                (None, _) => lost.push(Squashed { column: slot.id, cause: Cause::Wrote(id, key.clone()) }),
            }
            if has_written {
                break;
            }
        }
    }

    /// The columns behind that one that have listed one of these buckets, of which it has changed keys.
    fn listed_behind(&self, at: usize, sets: &[BucketName]) -> Vec<Squashed> {
        if mutants::is(Mutant::ListIsNoRead) {
            return Vec::new();
        }
        let by = self.slots[at].id;
        let lost = |slot: &Slot| {
            let bucket = sets.iter().find(|bucket| slot.has_listed(bucket))?;
            Some(Squashed { column: slot.id, cause: Cause::Listed(by, bucket.clone()) })
        };
        self.slots[at + 1..].iter().filter_map(lost).collect()
    }

    /// Keys that a column and its predecessors have added or removed, from that one on, in order. The set of keys is read with them.
    pub(super) fn own_keys(&mut self, at: usize, bucket: &BucketName, from: &BucketKey) -> Vec<(BucketKey, bool)> {
        let slot = &mut self.slots[at];
        if !slot.has_listed(bucket) {
            if slot.asked.some.len() < COMMIT_KEYS_MAX {
                slot.asked.some.push(bucket.clone());
            } else {
                slot.asked = Asked { some: Vec::new(), is_any: true };
            }
        }
        let mut keys: BTreeMap<BucketKey, bool> = BTreeMap::new();
        for slot in &self.slots[..=at] {
            let own = slot.column.own_keys(from).take_while(|(key, _)| key.bucket() == from.bucket());
            keys.extend(own.map(|(key, is_there)| (key.clone(), is_there)));
        }
        keys.into_iter().collect()
    }

    /// The run of a column is over. Of one that has failed, nothing is left but what it has read.
    pub(super) fn end(&mut self, at: usize, ended_well: bool, calls: Vec<PutOff>) {
        let is_over = match self.slots[at].ended {
            None => false,
            // Its caller knows better.
            Some(before) => ended_well || !before,
        };
        if is_over || self.is_under_way(at) {
            return;
        }
        self.has_moved = true;
        let slot = &mut self.slots[at];
        slot.ended = Some(ended_well);
        if ended_well {
            slot.calls = calls;
            return;
        }
        slot.calls.clear();
        let readers = if mutants::is(Mutant::FailedIsRead) { Vec::new() } else { self.readers(at) };
        self.slots[at].column.forget_writes();
        self.squash(readers);
    }

    /// The columns that have read what that one has written, which is not there any more.
    fn readers(&self, at: usize) -> Vec<Squashed> {
        let Slot { id, column, .. } = &self.slots[at];
        // A list has read each key that the column has written in its bucket: also one of which the column has seen that it was there, and that is not there any more.
        let mut buckets: Vec<&[u8]> = column.changes().map(|(key, _)| key.bucket()).collect();
        buckets.dedup();
        let buckets: Vec<BucketName> = buckets.into_iter().filter_map(BucketName::new).collect();
        let listed = self.listed_behind(at, &buckets).into_iter().map(|lost| lost.column);
        let dependent = self.slots[at + 1..].iter().filter(|slot| slot.depends_on(*id)).map(|slot| slot.id);
        listed.chain(dependent).map(|column| Squashed { column, cause: Cause::Gone(*id) }).collect()
    }

    /// The driver does not want a column any more. One that is on its way to the store stays.
    pub(super) fn give_up(&mut self, id: ColumnId) {
        if let Some(at) = self.find(id).filter(|at| !self.is_under_way(*at)) {
            let readers = if mutants::is(Mutant::GivenUpIsRead) { Vec::new() } else { self.readers(at) };
            self.has_moved = true;
            self.slots.remove(at);
            self.squash(readers);
        }
    }

    /// Takes columns away, and all that have read from them. What is said of a column first is its cause.
    pub(super) fn squash(&mut self, mut lost: Vec<Squashed>) {
        let mut next = 0;
        while let Some(squashed) = lost.get(next).cloned() {
            next += 1;
            if let Some(at) = self.find(squashed.column) {
                lost.extend(self.readers(at));
                self.has_moved = true;
                self.slots.remove(at);
                self.squashed.push(squashed);
            }
        }
    }

    /// Takes all columns away of which that is so, and all that have read from them.
    pub(super) fn squash_all(&mut self, cause: &Cause, is_it: impl Fn(&Slot) -> bool) {
        let lost = self.slots.iter().filter(|slot| is_it(slot));
        let lost = lost.map(|slot| Squashed { column: slot.id, cause: cause.clone() }).collect();
        self.squash(lost);
    }
}

fn value(entry: Option<&Entry>) -> Option<&[u8]> {
    entry.map(|entry| &*entry.value)
}
