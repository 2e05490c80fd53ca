//! Transactions: an invocation's reads and writes of the key-value store as one commit, made at its end if what was read still is what is there.
//!
//! ```text
//!   host::kv --read, list, make--> Transaction [Column] --settle--> one commit of the store
//!                                       ^ absorbed at its end          | conflict: the invocation runs again, in a fresh sandbox
//!                                  Transaction of a function that was called
//! ```
//!
//! With `isolation = "serializable"` each invocation that a client makes has one. What it calls joins it: the callee has a column of its own on top of its caller's, which becomes
//! a part of that when the callee has ended well, and is thrown away otherwise.
//!
//! * Nothing of an invocation leaves before its commit was made: its reply is held, calls whose reply it does not want begin then, and what it cannot take back
//!   (requests to other servers, files, sockets) it may not do, unless `effects = "split"` says that these need not happen together with the commit. With `effects = "outbox"` requests to
//!   other servers are a part of the commit ([`outbox`]), and are sent after it.
//! * What fails is not committed. It may have failed since it has read what never was there at the same time: so its reads are validated before the failure is believed.
//! * Commits have an id, so that a commit whose answer was lost is asked for again and not made twice.
//!
//! `column` is what an operation does, without a store; `beside` callees that were begun before they are called; `footprint` what runs of callees have come to, for calls that need no run; `pipeline` the transactions of an execution that run ahead of each other; `held` what such a run would have seen outside; `verdict` what waits for a commit that another makes; `contention` has transactions take turns where they conflict again and again.

mod beside;
pub mod column;
pub mod contention;
mod few;
pub mod footprint;
pub mod held;
pub(crate) mod mutants;
pub mod pipeline;
mod place;
#[cfg(test)]
pub(crate) mod tests;
mod verdict;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::kv::embedded::{self, Seen};
use crate::kv::outbox::{self, Outbox};
use crate::kv::{BucketKey, BucketName, Commit, Entry, KvError, Outcome, Space};

use self::column::{Column, Stale, View, version};
use self::contention::{Contended, Contention, FIRST_TIME_MAX, First, Held, LOCK_TIME_MAX};
use self::few::Few;
use self::mutants::Mutant;
use self::pipeline::{Values, left_by_column};
pub use self::place::Early;
use self::place::Place;
pub use self::verdict::Verdict;
use self::verdict::Verdicts;

/// What transactions of a function have in common.
#[derive(Clone, Debug)]
pub struct Isolation {
    /// The keys over which its tenant's conflict.
    pub contention: Arc<Contention>,
    /// What becomes of what they do outside of the store.
    pub outside: Outside,
}

/// What becomes of what cannot be taken back.
#[derive(Clone, Debug)]
pub enum Outside {
    /// It is refused.
    Refused,
    /// It happens at once, apart from the commit.
    Split,
    /// Requests to other servers are recorded in the commit, and sent after it; all else is refused.
    Outbox(Outbox),
}

/// One invocation's reads and writes.
#[derive(Debug)]
pub struct Transaction {
    column: Mutex<Column>,
    place: Place,
    isolation: Isolation,
    /// By a bucket's name, when the caller's column had changed its set of keys when this one listed it.
    listed: Mutex<Few<BucketName, u64>>,
    /// Locks of hot keys: given back when it is over. The outermost one's.
    held: Mutex<Vec<(BucketKey, Held)>>,
    /// Calls whose reply is not wanted: they begin when the commit was made.
    calls: Mutex<Vec<PutOff>>,
    /// Bytes of the column, as of its last change.
    bytes: AtomicUsize,
    /// What was found to be otherwise than it has read it.
    conflicted: Mutex<Option<Stale>>,
    /// What became of its commit, when that is known.
    outcome: Mutex<Option<Result<Outcome, KvError>>>,
    /// By what requests to other servers are named that it makes, and how many it has made: where it may be repeated, so that it makes the same again.
    requests: Option<(Box<str>, AtomicUsize)>,
    /// Whether it was stale before, and is made again: it [recalls](Transaction::recall) nothing.
    is_repeated: bool,
    /// Whether it has recalled something, so that what it has read may be old. The outermost one's.
    is_recalled: AtomicBool,
    /// What waits for the commit that decides about it, where another makes that. The outermost one's.
    verdicts: Option<Box<Verdicts>>,
    /// What the store is expected to have, where reads are given that. The outermost one's.
    values: Option<Arc<dyn Values>>,
}

/// A call whose reply is not wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PutOff {
    /// The function's name.
    pub name: Arc<str>,
    /// What it gets as its body.
    pub input: Bytes,
    /// Which of the caller's host calls this is, from 1.
    pub host_call: u32,
}

/// What the end of an invocation comes to.
#[derive(Debug)]
pub enum Settled {
    /// It is over, as it has ended.
    Done,
    /// What it has read is not there any more: it is to run again.
    Stale,
    /// It fails, since its commit does.
    Failed(KvError),
    /// This commit decides. Its outcome is to be [told](Transaction::came).
    Commit(Commit),
}

impl Transaction {
    /// That of an invocation that no transaction has called.
    #[must_use]
    pub fn begin(isolation: &Isolation) -> Arc<Transaction> {
        Arc::new(Transaction::new(isolation.clone(), Column::default(), Place::Alone))
    }

    /// The same of one whose reads of a remote store are given what that is expected to have.
    #[must_use]
    pub fn begin_expecting(isolation: &Isolation, values: Arc<dyn Values>) -> Arc<Transaction> {
        let transaction = Transaction::new(isolation.clone(), Column::default(), Place::Alone);
        Arc::new(Transaction { values: Some(values), ..transaction })
    }

    /// The same of one that was stale, and runs again.
    #[must_use]
    pub fn begin_again(isolation: &Isolation) -> Arc<Transaction> {
        let transaction = Transaction::new(isolation.clone(), Column::default(), Place::Alone);
        Arc::new(Transaction { is_repeated: true, ..transaction })
    }

    /// The same of one that is repeated if the server dies, and of which the caller makes the commit. `name` is the same each time; `is_repeated`: whether it was stale before.
    #[must_use]
    pub fn begin_repeatable(isolation: &Isolation, name: &str, is_repeated: bool) -> Arc<Transaction> {
        let (requests, verdicts) = (Some((name.into(), AtomicUsize::new(0))), Some(Box::default()));
        let transaction = Transaction::new(isolation.clone(), Column::default(), Place::Alone);
        Arc::new(Transaction { requests, verdicts, is_repeated, ..transaction })
    }

    /// That of one which an invocation with a transaction calls.
    #[must_use]
    pub fn join(above: &Arc<Transaction>) -> Arc<Transaction> {
        let column = above.with(Column::part);
        Arc::new(Transaction::new(above.isolation.clone(), column, Place::Part(Arc::clone(above))))
    }

    fn new(isolation: Isolation, column: Column, place: Place) -> Transaction {
        Transaction {
            column: Mutex::new(column),
            place,
            isolation,
            listed: Mutex::default(),
            held: Mutex::default(),
            calls: Mutex::default(),
            bytes: AtomicUsize::new(0),
            conflicted: Mutex::default(),
            outcome: Mutex::default(),
            requests: None,
            is_repeated: false,
            is_recalled: AtomicBool::new(false),
            verdicts: None,
            values: None,
        }
    }

    /// The name of the next request to another server, if these have names: its own and a number, the same when it is repeated.
    pub fn next_request(&self) -> Option<String> {
        let (name, count) = self.outermost().requests.as_ref()?;
        // Relaxed: a number that orders nothing else.
        Some(format!("{name}-{}", count.fetch_add(1, Ordering::Relaxed)))
    }

    /// Whether its function may do what cannot be taken back.
    #[must_use]
    pub const fn may_split(&self) -> bool {
        matches!(self.isolation.outside, Outside::Split)
    }

    /// Whether requests to other servers are recorded in its commit.
    #[must_use]
    pub const fn has_outbox(&self) -> bool {
        matches!(self.isolation.outside, Outside::Outbox(_))
    }

    /// Bytes that it keeps.
    pub fn bytes(&self) -> usize {
        // Relaxed: the invocation sees what it has done itself.
        self.bytes.load(Ordering::Relaxed)
    }

    /// What it sees under a key, if the store need not be asked.
    ///
    /// # Errors
    /// When the transaction becomes too large, or adds to what is no number.
    pub fn read(&self, key: &BucketKey) -> Result<Option<Option<Entry>>, KvError> {
        self.resolve(key, None)
    }

    /// The same, where the store was asked and has that.
    ///
    /// # Errors
    /// As for [`read`](Transaction::read).
    pub fn learn(&self, key: &BucketKey, entry: Option<Entry>) -> Result<Option<Entry>, KvError> {
        self.resolve(key, Some(entry)).map(Option::flatten)
    }

    /// Through all columns that lie above each other: each learns what it did not know.
    fn resolve(&self, key: &BucketKey, of_store: Option<Option<Entry>>) -> Result<Option<Option<Entry>>, KvError> {
        if let View::Known(entry) = self.column().view(key) {
            return Ok(Some(entry));
        }
        let below = match &self.place {
            Place::Alone => of_store,
            Place::Beside(beside) => beside.below(key, of_store)?,
            Place::Part(above) => above.resolve(key, of_store)?,
            Place::Ahead(seat, _) => match seat.resolve(key, of_store.as_ref()) {
                Some((sees, bytes)) => {
                    self.bytes.store(bytes, Ordering::Relaxed);
                    return sees;
                }
                None => of_store,
            },
        };
        let Some(entry) = below else { return Ok(None) };
        self.change(|column| column.learn(key, entry)).map(Some)
    }

    /// Keys that the transaction has added or removed, from that one on, in order: whether each is there. To be asked for before the store's keys are.
    #[must_use]
    pub fn own_keys(&self, bucket: &BucketName, from: &BucketKey) -> Vec<(BucketKey, bool)> {
        let mut keys: BTreeMap<BucketKey, bool> = BTreeMap::new();
        if let Place::Ahead(seat, _) = &self.place
            && let Some(keys) = seat.own_keys(bucket, from)
        {
            return keys;
        }
        if let Place::Part(above) = &self.place {
            let set = above.with(|column| column.set_version(bucket));
            let mut listed = lock(&self.listed);
            if listed.get(bucket).is_none() {
                listed.insert(bucket.clone(), set);
            }
            drop(listed);
            keys.extend(above.own_keys(bucket, from));
        }
        let column = self.column();
        let own = column.own_keys(from).take_while(|(key, _)| key.bucket() == from.bucket());
        keys.extend(own.map(|(key, is_there)| (key.clone(), is_there)));
        keys.into_iter().collect()
    }

    /// The set of keys of a bucket was read, and has that version in the store.
    ///
    /// # Errors
    /// When the transaction becomes too large.
    pub fn list(&self, bucket: &BucketName, version: u64) -> Result<(), KvError> {
        if let Place::Part(above) = &self.place {
            above.list(bucket, version)?;
        }
        self.change(|column| {
            // The caller's column decides whether that is the set which was listed before: in a pipeline its version may be another one by now.
            if let (Place::Part(_), Some(_)) = (&self.place, column.listed_at(bucket)) {
                column.list_again(bucket, version);
                return Ok(());
            }
            column.list(bucket, version)
        })
    }

    /// The keys that have to be [learnt](Transaction::learn) before the commit is [made](Transaction::make).
    ///
    /// # Errors
    /// As for [`read`](Transaction::read).
    pub fn needs(&self, commit: &Commit, wants_sum: bool) -> Result<Vec<BucketKey>, KvError> {
        let mut keys: Vec<BucketKey> = self.with(|column| column.needs(commit, wants_sum).cloned().collect());
        keys.sort_unstable();
        keys.dedup();
        // What the caller's column knows, this one learns at once.
        let mut unknown = Vec::new();
        for key in keys {
            if self.read(&key)?.is_none() {
                unknown.push(key);
            }
        }
        Ok(unknown)
    }

    /// Makes a commit within the transaction.
    ///
    /// # Errors
    /// When the transaction becomes too large, or the commit adds to what is no number.
    pub fn make(&self, commit: &Commit) -> Result<Outcome, KvError> {
        self.write(commit.changes.iter().map(|(key, _)| key), |column| column.make(commit))
    }

    /// Those of the keys over which transactions take turns, and whose turn it does not have: to be waited for before they are read, and before they are changed without a look.
    pub fn contended<'k>(&self, keys: impl Iterator<Item = &'k BucketKey>) -> Vec<Contended> {
        let contended = |key: &BucketKey| {
            let lock = self.isolation.contention.lock(key)?;
            // What is ahead would hold a lock for as long as what comes before it takes.
            if let Place::Ahead(..) | Place::Beside(_) = self.outermost().place {
                return None;
            }
            let is_held = lock_held(self.outermost()).iter().any(|(held, _)| held == key);
            (!is_held).then(|| Contended { key: key.clone(), lock })
        };
        keys.filter_map(contended).collect()
    }

    /// Waits for its turn over these keys, for as long as that is worth it.
    pub async fn take_turns(&self, contended: Vec<Contended>) {
        for contended in contended {
            self.take_turn(contended, LOCK_TIME_MAX, true).await;
        }
    }

    /// Waits for its turn over the key of whose line it is the first, and leaves the line. To be called before it has read anything.
    pub async fn take_first(&self, First { contended, was_free, line }: First) {
        self.take_turn(contended, FIRST_TIME_MAX, was_free).await;
        drop(line);
    }

    /// `was_free`: whether nothing stood before that lock.
    async fn take_turn(&self, Contended { key, lock }: Contended, time_max: Duration, was_free: bool) {
        let (held, is_free) = match Arc::clone(&lock).try_lock_owned() {
            Ok(held) => (Some(held), true),
            Err(_) => (tokio::time::timeout(time_max, lock.lock_owned()).await.ok(), false),
        };
        self.isolation.contention.locked(&key, was_free && is_free);
        if let Some(held) = held {
            lock_held(self.outermost()).push((key, held));
        }
    }

    /// The key that was changed, of one that is [stale](Settled::Stale) since it has read that: what runs again in its place may stand in the key's [line](Contention::line) first.
    #[must_use]
    pub fn take_conflicted(&self) -> Option<BucketKey> {
        match lock(&self.conflicted).take()? {
            Stale::Key(key) => Some(key),
            Stale::Bucket(_) => None,
        }
    }

    /// Puts off a call whose reply is not wanted until the commit was made.
    pub fn put_off(&self, call: PutOff) {
        lock(&self.calls).push(call);
    }

    /// The calls that were put off, of one that is over.
    #[must_use]
    pub fn take_calls(&self) -> Vec<PutOff> {
        std::mem::take(&mut *lock(&self.calls))
    }

    /// The invocation is over, and ended well or not.
    ///
    /// A read-only one on the embedded store is decided here; everything else by the commit that is returned.
    pub fn settle(&self, ended_well: bool, space: Option<&Space>) -> Settled {
        match &self.place {
            Place::Alone => {}
            Place::Part(above) => return self.settle_above(above, ended_well),
            Place::Ahead(seat, _) => {
                // Its group's commit decides.
                seat.end(ended_well, self.take_calls());
                return Settled::Done;
            }
            Place::Beside(beside) => {
                // Its caller decides.
                beside.end(ended_well, self.take_calls());
                return Settled::Done;
            }
        }
        let stale = self.column().stale().cloned();
        if let Some(stale) = stale {
            return self.stale(&stale);
        }
        let column = self.column();
        if column.is_empty() || (!ended_well && mutants::is(Mutant::TrapUnvalidated)) {
            return Settled::Done;
        }
        if !column.writes() || !ended_well {
            match space {
                Some(Space::Embedded(space)) => {
                    let changed = self.changed(space, &column);
                    drop(column);
                    let settled = match changed {
                        Ok(None) => Settled::Done,
                        Ok(Some(stale)) => self.stale(&stale),
                        Err(error) => Settled::Failed(error),
                    };
                    lock_held(self).clear();
                    return settled;
                }
                // What was read at one moment, as one key is, was there.
                Some(Space::Redis(_)) if column.expected().count() + column.listed().count() < 2 && self.read_now() => {
                    self.has_left(&column, 0, false);
                    return Settled::Done;
                }
                Some(Space::Redis(_)) => {}
                None => return Settled::Done,
            }
        }
        let mut commit = column.commit(ended_well);
        drop(column);
        if mutants::is(Mutant::LocksDecide) {
            let held = lock_held(self);
            commit.expected.retain(|(key, _)| !held.iter().any(|(locked, _)| locked == key));
        }
        if space.is_none() {
            return Settled::Done;
        }
        commit.id = Some(fastrand::u128(..).to_ne_bytes());
        Settled::Commit(commit)
    }

    /// Whether it has asked the store for all that it has read.
    fn read_now(&self) -> bool {
        // Relaxed: what it has recalled was recalled before it has ended.
        !self.is_recalled.load(Ordering::Relaxed)
    }

    /// What does not hold any more of what was read, in the store in this process: at one moment, and without a copy of what was read.
    fn changed(&self, space: &embedded::Space, column: &Column) -> Result<Option<Stale>, KvError> {
        let is_locked = |key: &BucketKey| lock_held(self).iter().any(|(locked, _)| locked == key);
        let keys = column.expected().filter(|(key, _)| !mutants::is(Mutant::LocksDecide) || !is_locked(key));
        let keys = keys.map(|(key, version)| (Seen::Key(key), version));
        let seen = keys.chain(column.listed().map(|(bucket, version)| (Seen::Bucket(bucket), version)));
        Ok(space.changed(seen)?.map(|seen| match seen {
            Seen::Key(key) => Stale::Key(key.clone()),
            Seen::Bucket(bucket) => Stale::Bucket(bucket.clone()),
        }))
    }

    /// That of a callee becomes a part of its caller's.
    fn settle_above(&self, above: &Transaction, ended_well: bool) -> Settled {
        let column = self.column();
        // What it has read its caller has read; what it has written is gone, and what it would have called. To run it again does not help a caller that is stale itself.
        if !ended_well || above.is_over() {
            lock(&self.calls).clear();
            return Settled::Done;
        }
        let written = column.changes().map(|(key, _)| key).filter(|_| !mutants::is(Mutant::AbsorbIsSilent));
        let absorbed = above.write(written, |into| into.absorb(&column, &lock(&self.listed)));
        drop(column);
        match absorbed {
            Ok(Ok(())) => {
                lock(&above.calls).extend(self.take_calls());
                Settled::Done
            }
            Ok(Err(stale)) => self.stale(&stale),
            Err(error) => Settled::Failed(error),
        }
    }

    /// What it has read, with versions, and changed: what it commits if it ends well now.
    #[must_use]
    pub fn made(&self) -> Commit {
        self.look(|column| column.commit(true))
    }

    /// That is what became of the commit.
    pub fn came(&self, outcome: Result<Outcome, KvError>) {
        *lock(&self.outcome) = Some(outcome);
    }

    /// What the commit comes to that has [come](Transaction::came).
    #[must_use]
    pub fn take_outcome(&self, commit: &Commit) -> Settled {
        match lock(&self.outcome).take() {
            Some(outcome) => self.settled(commit, outcome),
            None => Settled::Failed(KvError::Unknown("its outcome was not told".to_owned())),
        }
    }

    fn settled(&self, commit: &Commit, outcome: Result<Outcome, KvError>) -> Settled {
        let settled = match outcome {
            Ok(Outcome::Committed { version, .. }) => {
                self.has_left(&self.column(), version, !commit.changes.is_empty());
                if let Outside::Outbox(outbox) = &self.isolation.outside
                    && outbox::is_left_by(commit)
                {
                    outbox.ring();
                }
                Settled::Done
            }
            Ok(Outcome::Conflict { index, .. }) => match Column::dependence(commit, index) {
                Some(stale) => self.stale(&stale),
                None => Settled::Stale,
            },
            Err(error) => Settled::Failed(error),
        };
        lock_held(self).clear();
        settled
    }

    /// What it has read is in the store, and what it has written under that version; not of one that has failed.
    fn has_left(&self, column: &Column, version: u64, with_writes: bool) {
        if let Some(values) = &self.values {
            values.left(left_by_column(column, version, with_writes).collect());
        }
    }

    fn stale(&self, stale: &Stale) -> Settled {
        if let (Stale::Key(key), Some(values)) = (stale, &self.values) {
            let read = self.column().read(key).map(|entry| version(entry.as_ref()));
            if let Some(version) = read {
                // It asks for all when it runs again.
                let _ = values.wrong(key, version);
            }
        }
        if let Stale::Key(key) = stale {
            self.isolation.contention.conflicted(key, Instant::now());
        }
        *lock(&self.conflicted) = Some(stale.clone());
        if let Place::Alone = self.place {
            lock_held(self).clear();
        }
        Settled::Stale
    }

    fn column(&self) -> MutexGuard<'_, Column> {
        lock(&self.column)
    }
}

fn lock_held(of: &Transaction) -> MutexGuard<'_, Vec<(BucketKey, Held)>> {
    lock(&of.held)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is done under these locks cannot be half done, but by a bug that ends the invocation.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
