//! Random transactions at the same time, on a store that does what the real ones do, compared with one after the other.
//!
//! Commits have versions, and these are an order. So what a history has to be is known without a search: run again in the order of their versions, one after the other, on a
//! plain map, the same transactions read the same and leave the same.

mod ahead;
mod beside;
mod callees;
mod footprint;
pub(crate) mod histories;
pub(crate) mod pipeline;
pub(crate) mod seeds;
mod sight;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use futures_util::FutureExt as _;

use self::callees::Callees;
use super::*;
use crate::kv::{Change, sum};

const SEEDS: u64 = 3_000;
/// Few keys, so that they conflict.
const KEYS: u64 = 4;
const TRANSACTIONS: usize = 8;
const STEPS: u64 = 6;
/// A program whose number has this bit does little, and mostly reads.
pub(crate) const CALM: u64 = 1 << 50;
const CALM_STEPS: u64 = 2;

/// What a transaction does, decided by what it has read so far and a number of its own: the same reads have it do the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Get(u64),
    /// Writes what depends on all that was read.
    Put(u64),
    Delete(u64),
    /// Without asking for the sum.
    Add(u64, i64),
    Sum(u64, i64),
    /// Writes if the key has not changed since it was read, in the transaction's own eyes.
    Swap(u64),
    List,
    /// What follows until the next one is done by a function that it calls, which fails if that is odd.
    Call(u64),
    /// Two functions that it calls at the same time add one to the same number, which each of them reads.
    Both(u64),
    /// It calls the function of that number, which may have been begun before.
    Ask(u64),
    /// It fails.
    Trap,
    End,
}

/// A plain map, for transactions one after the other; or a store with versions, as both real ones are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    entries: BTreeMap<BucketKey, Entry>,
    version: u64,
    set: u64,
}

fn bucket() -> BucketName {
    BucketName::new(b"b").unwrap()
}

fn key(number: u64) -> BucketKey {
    bucket().key(format!("k{number}").as_bytes()).unwrap()
}

impl Model {
    pub(crate) fn commit(&mut self, commit: &Commit) -> Result<Outcome, KvError> {
        for (index, (key, expected)) in commit.expected.iter().enumerate() {
            let version = self.entries.get(key).map_or(0, |entry| entry.version);
            if version != *expected {
                return Ok(Outcome::Conflict { version, index });
            }
        }
        if commit.listed.iter().any(|(_, version)| *version != self.set) {
            return Ok(Outcome::Conflict { version: self.set, index: commit.expected.len() });
        }
        let (mut after, version) = (self.entries.clone(), self.version + 1);
        for (key, change) in &commit.changes {
            let value = match change {
                Change::Put(value) => Some(value.clone()),
                Change::Delete => None,
                Change::Add(delta) => {
                    let before = after.get(key).map(|entry| entry.value.clone());
                    Some(Bytes::from(sum(before.as_deref(), *delta)?.to_string()))
                }
            };
            match value {
                Some(value) => drop(after.insert(key.clone(), Entry { version, value })),
                None => drop(after.remove(key)),
            }
        }
        if !commit.changes.is_empty() {
            if !self.entries.keys().eq(after.keys()) {
                self.set = version;
            }
            (self.entries, self.version) = (after, version);
        }
        Ok(Outcome::Committed { version: self.version, sum: 0 })
    }

    pub(crate) fn values(&self) -> BTreeMap<BucketKey, Bytes> {
        self.entries.iter().map(|(key, entry)| (key.clone(), entry.value.clone())).collect()
    }
}

/// Expects what was seen last, also where that is old.
#[derive(Debug, Default)]
pub(crate) struct LastSeen(Mutex<BTreeMap<BucketKey, Option<Entry>>>);

impl Values for LastSeen {
    fn expected(&self, key: &BucketKey) -> Option<Option<Entry>> {
        lock(&self.0).get(key).cloned()
    }

    fn left(&self, keys: Vec<(BucketKey, Option<Option<Entry>>)>) {
        let mut seen = lock(&self.0);
        for (key, expected) in keys {
            match expected {
                Some(entry) => drop(seen.insert(key, entry)),
                None => drop(seen.remove(&key)),
            }
        }
    }

    fn wrong(&self, key: &BucketKey, _: u64) -> bool {
        lock(&self.0).remove(key).is_some()
    }
}

/// A program on its way: steps come from its number and what it has read.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) number: u64,
    step: u64,
    /// All that it has seen, in words.
    pub(crate) seen: String,
    pub(crate) outer: Arc<Transaction>,
    /// A function that it has called, and whether that fails.
    called: Option<(Arc<Transaction>, bool)>,
    callees: Callees,
    /// Whether it has failed.
    pub(crate) failed: bool,
    /// What is wrong with what it has seen.
    wrong: Option<String>,
}

/// Where its reads come from when the transaction does not know.
pub(crate) trait Below {
    fn entry(&self, key: &BucketKey) -> Option<Entry>;
    fn keys(&self) -> (Vec<BucketKey>, u64);
}

impl Below for Model {
    fn entry(&self, key: &BucketKey) -> Option<Entry> {
        self.entries.get(key).cloned()
    }

    fn keys(&self) -> (Vec<BucketKey>, u64) {
        (self.entries.keys().cloned().collect(), self.set)
    }
}

impl Program {
    pub(crate) fn new(number: u64) -> Program {
        Program::among(number, &Arc::default())
    }

    /// One beside others that conflict over the same keys.
    fn among(number: u64, contention: &Arc<Contention>) -> Program {
        let isolation = Isolation { contention: Arc::clone(contention), outside: Outside::Refused };
        let outer = Transaction::begin(&isolation);
        let (seen, callees) = (String::new(), Callees::default());
        Program { number, step: 0, seen, outer, called: None, callees, failed: false, wrong: None }
    }

    /// The same, whose reads are given what is expected there.
    fn expecting(number: u64, contention: &Arc<Contention>, values: &Arc<LastSeen>) -> Program {
        let program = Program::among(number, contention);
        let outer = Transaction::begin_expecting(&program.outer.isolation, Arc::<LastSeen>::clone(values));
        Program { outer, ..program }
    }

    /// What it comes to, when it has ended.
    pub(crate) fn commit(&self) -> Commit {
        self.outer.column().commit(!self.failed)
    }

    /// Whether all that it does is to add to numbers without asking for the sums.
    const fn only_adds(&self) -> bool {
        self.number.is_multiple_of(5)
    }

    /// Which values it has seen, but for versions: these differ between a run beside others and one alone.
    fn next(&self) -> Step {
        if let Some(step) = self.next_of_callers() {
            return step;
        }
        let mut random = fastrand::Rng::with_seed(self.number);
        (0..self.step).for_each(|_| _ = random.u64(..));
        // What it does also depends on what it has read.
        let mixed = random.u64(..) ^ self.seen.bytes().fold(0, |mix: u64, byte| mix.wrapping_mul(31).wrapping_add(byte.into()));
        let mut random = fastrand::Rng::with_seed(mixed);
        let key = random.u64(..KEYS);
        if self.number & CALM != 0 {
            return match random.u64(..8) {
                _ if self.step >= CALM_STEPS => Step::End,
                0 => Step::Put(key),
                1 => Step::Add(key, 1),
                2 => Step::List,
                _ => Step::Get(key),
            };
        }
        match random.u64(..12) {
            _ if self.step >= STEPS => Step::End,
            _ if self.only_adds() => Step::Add(key, 1),
            0 | 1 => Step::Get(key),
            2 => Step::Put(key),
            3 => Step::Delete(key),
            4 => Step::Add(key, random.i64(1..5)),
            5 => Step::Sum(key, random.i64(1..5)),
            6 | 7 => Step::Swap(key),
            8 => Step::List,
            9 => Step::Both(key),
            10 if self.step > 2 && random.bool() => Step::Trap,
            _ => Step::Call(random.u64(..2)),
        }
    }

    fn inner(&self) -> Arc<Transaction> {
        self.called.as_ref().map_or_else(|| Arc::clone(&self.outer), |(called, _)| Arc::clone(called))
    }

    fn read(&mut self, key: &BucketKey, below: &impl Below) -> Option<Entry> {
        read_in(&self.inner(), key, below)
    }

    fn make(&mut self, commit: &Commit, wants_sum: bool, below: &impl Below) -> Outcome {
        let inner = self.inner();
        for key in inner.needs(commit, wants_sum).unwrap() {
            turn(&inner, &key);
            inner.learn(&key, below.entry(&key)).unwrap();
        }
        inner.make(commit).unwrap()
    }

    /// Two callees read a number, then each makes it larger by one. The one that ends later has seen what is not there any more, and runs again.
    fn both(&mut self, key: &BucketKey, below: &impl Below) {
        self.return_to_caller();
        let before = number_of(self.read(key, below).as_ref());
        let bump = |callee: &Transaction, seen: i64| {
            let put = Change::Put(Bytes::from((seen + 1).to_string()));
            callee.make(&Commit::new(Vec::new(), vec![(key.clone(), put)])).unwrap();
        };
        let callees = [Transaction::join(&self.outer), Transaction::join(&self.outer)];
        let seen = callees.each_ref().map(|callee| number_of(read_in(callee, key, below).as_ref()));
        callees.iter().zip(seen).for_each(|(callee, seen)| bump(callee, seen));
        assert!(matches!(callees[0].settle(true, None), Settled::Done));
        if matches!(callees[1].settle(true, None), Settled::Stale) {
            let again = Transaction::join(&self.outer);
            bump(&again, number_of(read_in(&again, key, below).as_ref()));
            assert!(matches!(again.settle(true, None), Settled::Done));
        }
        let after = number_of(self.read(key, below).as_ref());
        // What a stale caller's callees have written is dropped: it runs again.
        if after != before + 2 && self.outer.column().stale().is_none() {
            self.wrong = Some(format!("{before} and two are {after}: one of both callees is lost"));
        }
        _ = write!(self.seen, "{after};");
    }

    /// The called function has ended.
    fn return_to_caller(&mut self) {
        if let Some((called, fails)) = self.called.take() {
            let settled = called.settle(!fails, None);
            assert!(matches!(settled, Settled::Done), "nothing else runs in the same transaction");
        }
    }

    /// Does a step; false at the end.
    pub(crate) fn go(&mut self, below: &impl Below) -> bool {
        let step = self.next();
        self.step += 1;
        match step {
            Step::Get(number) => {
                let value = self.read(&key(number), below).map(|entry| entry.value);
                _ = write!(self.seen, "{value:?};");
            }
            Step::Put(number) => {
                let value = (self.number + self.seen.len() as u64) % 100;
                let change = Change::Put(Bytes::from(value.to_string()));
                self.make(&Commit::new(Vec::new(), vec![(key(number), change)]), false, below);
            }
            Step::Delete(number) => {
                self.make(&Commit::new(Vec::new(), vec![(key(number), Change::Delete)]), false, below);
            }
            Step::Add(number, delta) => {
                self.make(&Commit::new(Vec::new(), vec![(key(number), Change::Add(delta))]), false, below);
            }
            Step::Sum(number, delta) => {
                let commit = Commit::new(Vec::new(), vec![(key(number), Change::Add(delta))]);
                let Outcome::Committed { sum, .. } = self.make(&commit, true, below) else { panic!("nothing was expected") };
                _ = write!(self.seen, "{sum};");
            }
            Step::Swap(number) => {
                let before = self.read(&key(number), below);
                let expected = vec![(key(number), before.as_ref().map_or(0, |entry| entry.version))];
                let value = before.map_or(1, |entry| std::str::from_utf8(&entry.value).unwrap().parse::<i64>().unwrap() + 1);
                let commit = Commit::new(expected, vec![(key(number), Change::Put(Bytes::from(value.to_string())))]);
                let outcome = self.make(&commit, false, below);
                assert!(matches!(outcome, Outcome::Committed { .. }), "its own eyes have not changed: {outcome:?}");
            }
            Step::List => {
                let inner = self.inner();
                let own: BTreeMap<_, _> = inner.own_keys(&bucket(), &bucket().key(b"").unwrap()).into_iter().collect();
                let (mut keys, version) = below.keys();
                inner.list(&bucket(), version).unwrap();
                keys.retain(|key| own.get(key).copied().unwrap_or(true));
                keys.extend(own.into_iter().filter(|(_, is_there)| *is_there).map(|(key, _)| key));
                keys.sort_unstable();
                keys.dedup();
                _ = write!(self.seen, "{keys:?};");
            }
            Step::Call(fails) => {
                self.return_to_caller();
                self.called = Some((Transaction::join(&self.outer), fails == 1));
            }
            Step::Both(number) => self.both(&key(number), below),
            Step::Ask(number) => {
                self.return_to_caller();
                self.ask(number, below);
            }
            Step::Trap => {
                self.failed = true;
                self.return_to_caller();
                return false;
            }
            Step::End => {
                self.return_to_caller();
                return false;
            }
        }
        true
    }
}

/// What a transaction sees under a key.
fn read_in(transaction: &Transaction, key: &BucketKey, below: &impl Below) -> Option<Entry> {
    let known = transaction.read(key).unwrap();
    known.unwrap_or_else(|| {
        turn(transaction, key);
        let entry = match transaction.fetched(std::slice::from_ref(key)) {
            Early::Known(mut entries) => entries.remove(0),
            _ => below.entry(key),
        };
        transaction.learn(key, entry).unwrap()
    })
}

/// Waits for its turn over a key, if there are turns and it is its turn; otherwise goes on without, as after [`LOCK_TIME_MAX`].
fn turn(transaction: &Transaction, key: &BucketKey) {
    let contended = transaction.contended(std::iter::once(key));
    if !contended.is_empty() {
        _ = transaction.take_turns(contended).now_or_never();
    }
}

fn number_of(entry: Option<&Entry>) -> i64 {
    entry.map_or(0, |entry| std::str::from_utf8(&entry.value).unwrap().parse().unwrap())
}

/// What a transaction that was made has seen, and its place among the others.
#[derive(Debug)]
struct Made {
    number: u64,
    seen: String,
    /// The version after it, and which of those with the same version: reads come behind the commit that they have seen.
    place: (u64, usize),
}

/// Runs transactions at the same time until all are made; what they were and what they have left.
fn together(seed: u64) -> (Vec<Made>, Model) {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut store = Model::default();
    let mut programs: Vec<Program> = (0..TRANSACTIONS as u64).map(|index| Program::new(seed * 1_000 + index)).collect();
    let mut made = Vec::new();
    while !programs.is_empty() {
        let index = random.usize(..programs.len());
        if programs[index].go(&store) {
            continue;
        }
        let program = programs.swap_remove(index);
        let ended_well = !program.failed;
        let settled = match program.outer.settle(ended_well, None) {
            // The model is no space: what would be sent there is asked for.
            Settled::Done => {
                let commit = program.outer.column().commit(ended_well);
                let outcome = store.commit(&commit);
                program.outer.settled(&commit, outcome)
            }
            settled => settled,
        };
        match settled {
            Settled::Done => {
                let place = (store.version, made.len());
                made.push(Made { number: program.number, seen: program.seen, place });
            }
            Settled::Stale => programs.push(Program::new(program.number)),
            Settled::Failed(_) | Settled::Commit(_) => panic!("seed {seed}: {settled:?}"),
        }
    }
    (made, store)
}

#[test]
fn transactions_at_the_same_time_are_as_one_after_the_other_in_the_order_of_their_commits() {
    for seed in 0..SEEDS {
        let (mut made, store) = together(seed);
        made.sort_by_key(|made| made.place);
        let mut plain = Model::default();
        for Made { number, seen, .. } in &made {
            let mut program = Program::new(*number);
            while program.go(&plain) {}
            assert_eq!(program.seen, *seen, "seed {seed}: transaction {number} has seen what never was");
            let commit = program.outer.column().commit(!program.failed);
            assert!(matches!(plain.commit(&commit), Ok(Outcome::Committed { .. })), "seed {seed}: alone");
        }
        assert_eq!(plain.values(), store.values(), "seed {seed}: they have left something else");
    }
}

fn transaction() -> Arc<Transaction> {
    Transaction::begin(&Isolation { contention: Arc::default(), outside: Outside::Refused })
}

fn put(number: u64, value: &str) -> Commit {
    Commit::new(Vec::new(), vec![(key(number), Change::Put(Bytes::copy_from_slice(value.as_bytes())))])
}

fn entry(version: u64, value: &str) -> Option<Entry> {
    Some(Entry { version, value: Bytes::copy_from_slice(value.as_bytes()) })
}

#[test]
fn a_number_to_which_is_added_without_asking_is_not_read() {
    let transaction = transaction();
    let add = |delta| Commit::new(Vec::new(), vec![(key(1), Change::Add(delta))]);
    transaction.make(&add(2)).unwrap();
    transaction.make(&add(3)).unwrap();
    let commit = transaction.column().commit(true);
    assert_eq!((commit.expected, commit.changes), (vec![], vec![(key(1), Change::Add(5))]));
    // Asked for, it is.
    assert_eq!(transaction.needs(&add(4), true).unwrap(), [key(1)]);
    transaction.learn(&key(1), entry(7, "10")).unwrap();
    assert!(matches!(transaction.make(&add(4)).unwrap(), Outcome::Committed { sum: 19, .. }));
    let commit = transaction.column().commit(true);
    assert_eq!((commit.expected, commit.changes), (vec![(key(1), 7)], vec![(key(1), Change::Put("19".into()))]));
}

#[test]
fn what_is_no_number_or_too_large_changes_nothing() {
    let transaction = transaction();
    transaction.make(&put(1, "no number")).unwrap();
    let both = Commit::new(Vec::new(), vec![(key(2), Change::Put("x".into())), (key(1), Change::Add(1))]);
    assert_eq!(transaction.make(&both), Err(KvError::NotANumber));
    assert_eq!(transaction.read(&key(2)), Ok(None), "not the first part either");
    let large = Bytes::from(vec![0; 1 << 20]);
    for number in 0..3 {
        transaction.make(&Commit::new(Vec::new(), vec![(key(number), Change::Put(large.clone()))])).unwrap();
    }
    let refused =
        transaction.make(&Commit::new(Vec::new(), vec![(key(3), Change::Put(large.clone())), (key(4), Change::Put(large))]));
    assert!(matches!(refused, Err(KvError::TooLarge { what: "a transaction", .. })), "{refused:?}");
    assert_eq!(transaction.read(&key(3)), Ok(None));
    for number in 0..2_000 {
        if let Err(error) = transaction.learn(&key(number + 10), None) {
            assert!(matches!(error, KvError::TooMany { keys: 1_025, .. }) && number == 1_021, "{error}, {number}");
            return;
        }
    }
    panic!("it has no limit");
}

#[test]
fn what_is_otherwise_at_a_second_look_is_not_seen_and_the_end_decides() {
    let transaction = transaction();
    transaction.learn(&key(1), entry(3, "a")).unwrap();
    assert_eq!(transaction.learn(&key(1), entry(4, "b")).unwrap(), entry(3, "a"), "it goes on with what it has seen");
    assert_eq!(transaction.column().commit(true).expected, [(key(1), 3)]);
    // What it lists has no values that could be shown again.
    transaction.list(&bucket(), 5).unwrap();
    assert_eq!(transaction.list(&bucket(), 6), Ok(()));
    assert!(matches!(transaction.settle(true, None), Settled::Stale));
}

#[test]
fn two_that_are_called_at_the_same_time_do_not_overwrite_each_other() {
    let outer = transaction();
    let (one, other) = (Transaction::join(&outer), Transaction::join(&outer));
    for callee in [&one, &other] {
        callee.learn(&key(1), entry(5, "1")).unwrap();
        callee.make(&put(1, "2")).unwrap();
    }
    assert!(matches!(one.settle(true, None), Settled::Done));
    assert!(matches!(other.settle(true, None), Settled::Stale), "it runs again, and sees the first");
    let again = Transaction::join(&outer);
    assert_eq!(again.read(&key(1)).unwrap().flatten().map(|entry| entry.value), Some("2".into()));
    // A list that the other has made longer is stale, too.
    let (lists, adds) = (Transaction::join(&outer), Transaction::join(&outer));
    assert_eq!(lists.own_keys(&bucket(), &key(2)), []);
    lists.list(&bucket(), 9).unwrap();
    adds.make(&put(3, "x")).unwrap();
    assert!(matches!(adds.settle(true, None), Settled::Done));
    assert!(matches!(lists.settle(true, None), Settled::Stale));
}

#[test]
fn what_a_failed_callee_has_written_is_gone_and_its_calls_with_it() {
    let outer = transaction();
    let call = PutOff { name: "f".into(), input: Bytes::new(), host_call: 1 };
    let [fails, works] = [false, true].map(|ended_well| {
        let callee = Transaction::join(&outer);
        callee.make(&put(u64::from(ended_well), "x")).unwrap();
        callee.put_off(call.clone());
        assert!(matches!(callee.settle(ended_well, None), Settled::Done));
        callee
    });
    assert_eq!((fails.take_calls().len(), works.take_calls().len(), outer.take_calls()), (0, 0, vec![call.clone()]));
    assert_eq!(outer.column().commit(true).changes, put(1, "x").changes);
    // Nor does anything begin that a callee of a stale caller has called: the caller runs again.
    let stale = transaction();
    let callee = Transaction::join(&stale);
    callee.put_off(call);
    stale.list(&bucket(), 1).unwrap();
    stale.list(&bucket(), 2).unwrap();
    assert!(matches!(callee.settle(true, None), Settled::Done) && callee.take_calls().is_empty());
    // Of one that has failed itself the reads alone are validated.
    outer.learn(&key(2), entry(8, "y")).unwrap();
    let commit = outer.column().commit(false);
    assert_eq!((commit.expected, commit.changes), (vec![(key(2), 8)], vec![]));
}
