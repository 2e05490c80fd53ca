//! What speculation goes by: what executions of a tenant's workflows did, as tables from which it is predicted what the next one will do.
//!
//! ```text
//!   driver --at a state--> way of a Choice (`paths`), answer of a function (`outputs`), its calls (`sequence`)
//!     |                    is it worth a start: `benefit` of the edge, time that is left (`times`), `depth` by load; does a read wait (`stalls`)
//!     '----committed-----> learn: ways, answers, calls, times; what was adopted, what was squashed
//! ```
//!
//! Invariants:
//! * Nothing is learned of a run that was not committed, but that it was squashed (speculation.md, S12). A prediction that is wrong costs time and nothing else: what is done with one is checked before anything of it is seen.
//! * Tenants have tables of their own, and each has [`BYTES_MAX`] at most, whatever its clients send. They count in the server's budget as idle memory does, and are given back for requests.
//! * Tables know neither a clock nor a store nor random numbers: what they need is passed in, so that a replay predicts the same.
//! * Of inputs only keyed hashes are kept. Answers and arguments are kept as they are; only functions of the tenant get them.
//!
//! Design: SpecFaaS (HPCA 2023), sections IV and V.

pub mod benefit;
mod bounded;
mod counts;
pub mod depth;
mod functions;
pub mod outputs;
pub mod paths;
pub mod replies;
pub mod sequence;
pub mod skips;
pub mod stalls;
mod tables;
#[cfg(test)]
mod tests;
pub mod times;
pub mod value;
mod values;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;
use sledge_sandbox::{Budget, Reclaim};
use sledge_workflow::definition::StateIndex;

use self::benefit::{Edge, Verdict};
use self::outputs::{Answer, Rest};
use self::paths::{Path, Trail, Way};
use self::replies::Known as KnownReply;
use self::sequence::{Expected, Made};
use self::skips::Skip;
use self::stalls::Reader;
use self::tables::Tables;
use self::value::Keys;
use crate::kv::BucketKey;
use crate::memo::key::Digest;
use crate::txn::mutants::{self, Mutant};
use crate::txn::pipeline::{Expected as InStore, Values};

pub use self::tables::{BYTES_MAX, Known};

/// For how long memory is short behind a refusal.
const SHORT: Duration = Duration::from_millis(100);

/// A version of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Of<'a> {
    /// The function's name.
    pub name: &'a str,
    /// Its number among the versions of that function: so code and configuration are a part of it.
    pub version: u64,
}

/// The tables of one tenant.
pub struct Speculation {
    keys: Keys,
    /// Each use is short: a look into a map, or a change of one entry.
    tables: Mutex<Tables>,
    runs: Runs,
    /// The server's.
    memory: Option<Arc<Budget>>,
}

/// How many runs were begun ahead, by what became of them.
#[derive(Debug, Default)]
struct Runs {
    adopted: AtomicU64,
    dropped: AtomicU64,
    squashed: AtomicU64,
    skipped: AtomicU64,
}

impl fmt::Debug for Speculation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Speculation").field("bytes", &self.bytes()).finish_non_exhaustive()
    }
}

impl Speculation {
    /// Empty tables, which share a budget with all else that the server keeps. No client may know the secret.
    #[must_use]
    pub fn new(secret: [u8; 32], budget: Option<Arc<Budget>>) -> Arc<Speculation> {
        let tables = Mutex::new(Tables::new(budget.clone()));
        let (keys, runs, memory) = (Keys::new(secret), Runs::default(), budget.clone());
        let speculation = Arc::new(Speculation { keys, tables, runs, memory });
        if let Some(budget) = budget {
            let owner: Weak<Speculation> = Arc::downgrade(&speculation);
            budget.lend(owner);
        }
        speculation
    }

    /// Whether sandboxes were refused lately since there is no memory: none is left for what may be in vain.
    #[must_use]
    pub fn is_short_of_memory(&self) -> bool {
        self.memory.as_ref().is_some_and(|memory| memory.has_refused(SHORT))
    }

    /// The key of an input of a function of that name. It takes no lock.
    ///
    /// The name is a part of it, since functions that are deployed count their versions each for itself: a version of another one may have the same number.
    #[must_use]
    pub fn key(&self, function: &str, input: &Value) -> Digest {
        self.keys.input(function, if mutants::is(Mutant::OtherEntry) { &Value::Null } else { input })
    }

    /// The way that an execution will go at a state to which it has come by that path, if one is to be expected. `workflow` is the fingerprint of its definition, here and below.
    #[must_use]
    pub fn way(&self, workflow: u64, state: StateIndex, path: Path) -> Option<Way> {
        self.tables().paths.way(workflow, state, path)
    }

    /// Learns the ways of a committed execution, or of the part of it that is committed, and takes them from the trail.
    pub fn went(&self, workflow: u64, trail: &mut Trail) {
        self.learn(|tables| tables.paths.learn(workflow, trail));
    }

    /// What a version of a function will answer to the input of that key, if that is to be expected.
    #[must_use]
    pub fn answer(&self, version: u64, input: &Digest) -> Option<Answer> {
        self.tables().outputs.predict(version, input)
    }

    /// What a version of a function has answered last, whatever the input was: the shape of what it will answer.
    #[must_use]
    pub fn last(&self, version: u64) -> Option<Arc<Value>> {
        self.tables().outputs.last(version)
    }

    /// Learns what a run has answered that was committed, and what it has read for that.
    pub fn answered(&self, of: Of<'_>, input: Digest, answer: &Answer, rest: Rest) {
        self.learn(|tables| tables.outputs.learn(of, input, answer, rest));
    }

    /// The keys of the store that the last run of a version of a function with that input has read, if these are known.
    #[must_use]
    pub fn reads(&self, version: u64, input: &Digest) -> Option<Arc<[BucketKey]>> {
        self.tables().outputs.reads(version, input)
    }

    /// What may stand for a run of a version of a function with that input, if what it rests on is so still.
    #[must_use]
    pub fn skip(&self, version: u64, input: &Digest) -> Option<Skip> {
        self.tables().outputs.skip(version, input)
    }

    /// An answer that has stood for a run was right, and is committed.
    pub fn skipped(&self, version: u64) {
        self.runs.skipped.fetch_add(1, Ordering::Relaxed);
        self.learn(|tables| tables.outputs.skipped(version));
    }

    /// What such an answer rests on is not so any more.
    pub fn skipped_wrongly(&self, version: u64, input: Digest) {
        self.learn(|tables| tables.outputs.skipped_wrongly(version, input));
    }

    /// The calls that a run of a version of a function will make, in their order, as far as these are to be expected and it pays to begin them with the run, where to begin one costs that time.
    #[must_use]
    pub fn calls(&self, version: u64, input: &Bytes, launch: Duration) -> Vec<Expected> {
        let key = self.keys.body(input);
        self.tables().sequences.expected(version, input, &key, launch)
    }

    /// A call of that ordinal was begun with its caller's run, which is committed and has called just that: it has saved that time, and has cost that.
    pub fn call_adopted(&self, version: u64, ordinal: usize, saved: Duration, cost: Duration) {
        // Relaxed, here and below: numbers that order nothing else.
        self.runs.adopted.fetch_add(1, Ordering::Relaxed);
        self.learn(|tables| tables.sequences.adopted(version, ordinal, saved, cost));
    }

    /// The same of one that was not called, and has wasted that time.
    pub fn call_dropped(&self, version: u64, ordinal: usize, wasted: Duration) {
        self.runs.dropped.fetch_add(1, Ordering::Relaxed);
        self.learn(|tables| tables.sequences.lost(version, ordinal, wasted));
    }

    /// The same of one that runs again, since it has not seen what it would have seen when it was called.
    pub fn call_squashed(&self, version: u64, ordinal: usize, wasted: Duration) {
        self.runs.squashed.fetch_add(1, Ordering::Relaxed);
        self.learn(|tables| tables.sequences.lost(version, ordinal, wasted));
    }

    /// Learns the calls of a run that was committed, in their order.
    pub fn called(&self, of: Of<'_>, input: &[u8], calls: &[Made]) {
        let key = self.keys.body(input);
        self.learn(|tables| tables.sequences.learn(of, input, key, calls));
    }

    /// The key of an argument with which a function of that name is called. It takes no lock.
    #[must_use]
    pub fn argument_key(&self, function: &str, argument: &[u8]) -> Digest {
        self.keys.argument(function, if mutants::is(Mutant::KnownOther) { b"" } else { argument })
    }

    /// What may stand for a call of a version of a function with the argument of that key, if what it rests on is so still: to be asked once for each.
    #[must_use]
    pub fn reply(&self, version: u64, argument: &Digest) -> Option<Arc<KnownReply>> {
        self.tables().replies.take(version, argument)
    }

    /// Whether something is to be expected to stand for such a call.
    #[must_use]
    pub fn has_reply(&self, version: u64, argument: &Digest) -> bool {
        self.tables().replies.has(version, argument)
    }

    /// Learns what a run has replied that is committed with its callers.
    pub fn replied(&self, of: Of<'_>, argument: Digest, known: Arc<KnownReply>) {
        self.learn(|tables| tables.replies.learn(of, argument, known));
    }

    /// A reply has stood for a call, and was right.
    pub fn call_skipped(&self, version: u64) {
        self.runs.skipped.fetch_add(1, Ordering::Relaxed);
        self.tables().replies.was_right(version);
    }

    /// What such a reply rests on is not so any more, or that is not known.
    pub fn call_skipped_wrongly(&self, version: u64, argument: &Digest) {
        self.learn(|tables| tables.replies.was_wrong(version, argument));
    }

    /// Whether an edge is speculated now: to be asked once for each start.
    #[must_use]
    pub fn verdict(&self, edge: &Edge) -> Verdict {
        self.tables().benefits.verdict(edge)
    }

    /// Whether an execution of a workflow goes ahead of itself: to be asked once for each.
    #[must_use]
    pub fn verdict_of_workflow(&self, workflow: u64) -> Verdict {
        self.tables().benefits.verdict_of_workflow(workflow)
    }

    /// An execution that went ahead of itself has saved and lost so much time.
    pub fn executed(&self, workflow: u64, saved: Duration, lost: Duration) {
        self.learn(|tables| tables.benefits.executed(workflow, saved, lost));
    }

    /// A run that was started ahead was right, has saved that time, and has cost that. Without any of these edges it would not have been started.
    pub fn adopted(&self, edges: impl Iterator<Item = Edge>, saved: Duration, cost: Duration) {
        self.runs.adopted.fetch_add(1, Ordering::Relaxed);
        self.learn(|tables| edges.into_iter().for_each(|edge| tables.benefits.adopted(edge, saved, cost)));
    }

    /// A run that was started ahead was dropped, and has wasted that processor time.
    pub fn squashed(&self, edge: Edge, wasted: Duration) {
        self.runs.dropped.fetch_add(1, Ordering::Relaxed);
        self.learn(|tables| tables.benefits.squashed(edge, wasted));
    }

    /// A run is to run again, since what it had read was changed.
    pub fn runs_again(&self) {
        self.runs.squashed.fetch_add(1, Ordering::Relaxed);
    }

    /// How many runs were begun ahead and were right, were dropped since they were not asked for, or have run again; and for how many a known answer has stood.
    #[must_use]
    pub fn runs(&self) -> [(&'static str, u64); 4] {
        let Runs { adopted, dropped, squashed, skipped } = &self.runs;
        [("adopted", adopted), ("dropped", dropped), ("squashed", squashed), ("skipped", skipped)]
            .map(|(result, count)| (result, count.load(Ordering::Relaxed)))
    }

    /// A run of a reader was squashed, since the writer has written a key that it had read before.
    pub fn read_too_early(&self, reader: Reader, writer: StateIndex, key: &BucketKey) {
        self.learn(|tables| tables.stalls.squashed(reader, writer, key));
    }

    /// An execution was committed in which no run of the reader was squashed, though one ran ahead.
    pub fn kept(&self, reader: Reader) {
        self.learn(|tables| tables.stalls.kept(reader));
    }

    /// Whether a read of that key waits until the writer, which is under way and has not written a key like it, does so or has ended.
    #[must_use]
    pub fn waits(&self, reader: Reader, writer: StateIndex, key: &BucketKey) -> bool {
        self.tables().stalls.waits(reader, writer, key)
    }

    /// A read has waited so; whether the writer has written such a key.
    pub fn waited(&self, reader: Reader, writer: StateIndex, key: &BucketKey, has_written: bool) {
        self.learn(|tables| tables.stalls.waited(reader, writer, key, has_written));
    }

    /// A committed run of a state's function took that long, from its start to its answer.
    pub fn took(&self, workflow: u64, state: StateIndex, time: Duration) {
        self.learn(|tables| tables.times.learn(workflow, state, time));
    }

    /// How long a run of a state's function is expected to take on that has taken so long already; none where there were too few. See [`times::worth`].
    #[must_use]
    pub fn remaining(&self, workflow: u64, state: StateIndex, so_far: Duration) -> Option<Duration> {
        self.tables().times.remaining(workflow, state, so_far)
    }

    /// A commit took that long, until its outcome was known.
    pub fn commit_took(&self, time: Duration) {
        self.learn(|tables| tables.times.committed(time));
    }

    /// How long a commit is expected to take; none where there were too few.
    #[must_use]
    pub fn commit_time(&self) -> Option<Duration> {
        self.tables().times.commit()
    }

    /// Drops what is known of a workflow: it is not served by that definition any more.
    pub fn forget_workflow(&self, workflow: u64) {
        self.learn(|tables| tables.forget_workflow(workflow));
    }

    /// Drops what is known of a version of a function: it is not served any more.
    pub fn forget_function(&self, version: u64) {
        self.learn(|tables| tables.forget_function(version));
    }

    /// Bytes of all tables.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.tables().bytes()
    }

    /// All that is known, for people.
    #[must_use]
    pub fn known(&self) -> Known {
        self.tables().known()
    }

    /// Changes the tables, and has them counted as they are then.
    fn learn(&self, change: impl FnOnce(&mut Tables)) {
        let mut tables = self.tables();
        change(&mut tables);
        tables.fit();
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        // What is done under this lock cannot be half done, but by a bug; what is predicted then is still checked.
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Those of its own table.
impl Values for Speculation {
    fn expected(&self, key: &BucketKey) -> InStore {
        self.tables().values.expected(key)
    }

    fn left(&self, keys: Vec<(BucketKey, InStore)>) {
        self.learn(|tables| keys.into_iter().for_each(|(key, expected)| tables.values.left(&key, expected)));
    }

    fn wrong(&self, key: &BucketKey, version: u64) -> bool {
        self.tables().values.wrong(key, version)
    }
}

/// Requests need memory: what is known goes for that.
impl Reclaim for Speculation {
    fn reclaim(&self, bytes: u64) -> bool {
        self.tables().give_back(bytes)
    }
}

/// A fingerprint as the admin API shows it.
fn shown(workflow: u64) -> String {
    format!("{workflow:016x}")
}
