//! The same where a run writes, calls a function or reads a store elsewhere: transactions, whose commits are made again, and reads, which a store confirms that answers late, not at all, or was emptied.
//!
//! Each answer, and what was changed with it, has to be what a run would have come to at the moment at which the store confirmed it.

use std::collections::BTreeSet;
use std::mem;

use super::*;
use crate::kv::Entry as Stored;
use crate::kv::redis::Redis;
use crate::memo::callees::Part;
use crate::memo::check::{Check, Checked};
use crate::txn::{Isolation, Outside, Settled, Transaction};

const SEEDS: u64 = 150;
const STEPS: usize = 200;

/// What a function does next, on a key or not.
#[derive(Clone, Copy, Debug)]
enum Op {
    Get(u64),
    List,
    Call,
    Put(u64),
    Delete(u64),
    Add(u64),
}

/// A function that another one calls: it reads a key, and writes one in a transaction.
#[derive(Clone, Copy, Debug)]
struct Callee {
    version: u64,
    reads: u64,
    writes: Option<u64>,
}

/// A version of the function that is asked.
#[derive(Debug)]
struct Version {
    memo: Arc<Memo>,
    is_transaction: bool,
    ops: Vec<Op>,
    length: usize,
}

#[derive(Debug, Default)]
struct Run {
    text: String,
    steps: usize,
    trace: EffectTrace,
    parts: Vec<Part>,
    transaction: Option<Arc<Transaction>>,
}

/// A request that runs.
struct Runs {
    version: Arc<Version>,
    asked: Box<Asked>,
    body: &'static str,
    run: Run,
}

/// A request of which the store is asked.
struct Checks {
    version: Arc<Version>,
    /// The one that it found when it was looked for.
    callee: Callee,
    body: &'static str,
    check: Box<Check>,
    /// What the store has said, and what a run would have answered then.
    said: Option<(Result<Outcome, KvError>, String)>,
    is_made: bool,
}

/// What happened in all histories.
#[derive(Debug, Default)]
struct Counts {
    hits: u64,
    checked: u64,
    replayed: u64,
    with_callees: u64,
    stale: u64,
    unknown: u64,
}

struct Model {
    random: Rng,
    world: World,
    isolation: Isolation,
    /// Where the store is, as the table is told.
    elsewhere: Option<Space>,
    version: Arc<Version>,
    callee: Callee,
    runs: Vec<Runs>,
    checks: Vec<Checks>,
    counts: Counts,
}

fn bucket() -> BucketName {
    BucketName::new(b"b").unwrap()
}

fn value(text: &str) -> Bytes {
    let sum: usize = text.bytes().map(usize::from).sum();
    Bytes::from((sum % 3).to_string())
}

impl Version {
    fn random(random: &mut Rng) -> Version {
        let is_transaction = random.bool();
        let reads = [Op::Get(0), Op::Get(1), Op::Get(2), Op::List, Op::Call];
        let writes = [Op::Put(0), Op::Put(1), Op::Delete(2), Op::Add(1), Op::Put(3)];
        let op = |random: &mut Rng| match is_transaction && random.u8(..3) == 0 {
            true => writes[random.usize(..writes.len())],
            false => reads[random.usize(..reads.len())],
        };
        let ops = (0..random.usize(1..=4)).map(|_| op(random)).collect();
        let of = Of { function: "f".to_owned(), version: 1, health: None, budget: None };
        let memo = Memo::new(of, Settings { answers: true, pure: false, bytes_max: 1 << 20, whole_head: false });
        Version { memo, is_transaction, ops, length: random.usize(1..=4) }
    }

    fn begin(&self, isolation: &Isolation) -> Run {
        Run { transaction: self.is_transaction.then(|| Transaction::begin(isolation)), ..Run::default() }
    }

    /// Goes one step on. Whether it has ended.
    fn step(&self, run: &mut Run, body: &str, world: &World, callee: Callee) -> bool {
        if run.steps == self.length {
            return true;
        }
        let so_far: usize = run.text.bytes().chain(body.bytes()).map(usize::from).sum();
        let op = self.ops[(so_far + run.steps) % self.ops.len()];
        run.steps += 1;
        let change = match op {
            Op::Get(number) => {
                let found = read(world, &mut run.trace, run.transaction.as_ref(), number);
                write!(run.text, "[{found:?}]").unwrap();
                return false;
            }
            Op::List => {
                run.list(world);
                return false;
            }
            Op::Call => {
                run.call(world, callee);
                return false;
            }
            Op::Put(number) => (key(number), Change::Put(value(&run.text))),
            Op::Delete(number) => (key(number), Change::Delete),
            Op::Add(number) => (key(number), Change::Add(1)),
        };
        run.trace.effects.insert(Effect::KvWrite);
        // It is told a version that means nothing behind the transaction's end.
        let made = run.transaction.as_ref().unwrap().make(&Commit::new(Vec::new(), vec![change]));
        write!(run.text, "[{made:?}]").unwrap();
        false
    }

    /// What a run comes to at this moment: its answer, and what it changes.
    fn whole(&self, model: &Model, body: &str, callee: Callee) -> (String, Vec<(BucketKey, Change)>) {
        let mut run = self.begin(&model.isolation);
        while !self.step(&mut run, body, &model.world, callee) {}
        (run.text, run.transaction.map(|transaction| transaction.made().changes).unwrap_or_default())
    }
}

fn read(world: &World, trace: &mut EffectTrace, transaction: Option<&Arc<Transaction>>, number: u64) -> Option<Stored> {
    trace.effects.insert(Effect::KvRead);
    let there = || {
        let (version, value) = world.get(number);
        value.map(|value| Stored { version, value })
    };
    match transaction {
        None => {
            let found = there();
            trace.read.push((key(number), found.as_ref().map_or(0, |entry| entry.version)));
            found
        }
        Some(transaction) => match transaction.read(&key(number)).unwrap() {
            Some(known) => known,
            None => transaction.learn(&key(number), there()).unwrap(),
        },
    }
}

impl Run {
    fn list(&mut self, world: &World) {
        self.trace.effects.insert(Effect::KvRead);
        let Space::Embedded(space) = &world.space else { unreachable!() };
        let own = self.transaction.as_ref().map(|transaction| transaction.own_keys(&bucket(), &bucket().key(b"").unwrap()));
        let mut keys = BTreeSet::new();
        let version = space.keys(&bucket(), b"", None, |key| keys.insert(key.to_vec())).unwrap();
        match &self.transaction {
            None => self.trace.sets.push((bucket(), version)),
            Some(transaction) => transaction.list(&bucket(), version).unwrap(),
        }
        for (key, is_there) in own.into_iter().flatten() {
            let _ = if is_there { keys.insert(key.key().to_vec()) } else { keys.remove(key.key()) };
        }
        write!(self.text, "{keys:?}").unwrap();
    }

    fn call(&mut self, world: &World, callee: Callee) {
        self.trace.effects.insert(Effect::Call);
        let mut trace = EffectTrace::default();
        let joined = self.transaction.as_ref().map(Transaction::join);
        let found = read(world, &mut trace, joined.as_ref(), callee.reads);
        if let Some((joined, number)) = joined.as_ref().zip(callee.writes) {
            trace.effects.insert(Effect::KvWrite);
            let made = joined.make(&Commit::new(Vec::new(), vec![(key(number), Change::Put(Bytes::from_static(b"2")))]));
            assert!(matches!(made, Ok(Outcome::Committed { .. })));
        }
        if let Some(joined) = &joined {
            assert!(matches!(joined.settle(true, None), Settled::Done), "its caller does nothing meanwhile");
            trace.transaction = Some(joined.made());
        }
        let content = Content::Whole(Bytes::new());
        let version = ("g".into(), callee.version);
        self.parts.push(rule::part(version, &trace, &well(&content), (false, joined.is_some())).unwrap());
        write!(self.text, "[g{} {found:?}]", callee.version).unwrap();
    }
}

impl Model {
    fn new(seed: u64) -> Model {
        let mut random = Rng::with_seed(seed);
        let redis = || Redis::new("redis://127.0.0.1:1", KvLimits::default(), String::new).unwrap().space("t");
        Model {
            world: World::new(),
            isolation: Isolation { contention: Arc::default(), outside: Outside::Refused },
            elsewhere: random.bool().then(|| Space::Redis(redis())),
            version: Arc::new(Version::random(&mut random)),
            callee: Callee { version: 1, reads: 0, writes: None },
            runs: Vec::new(),
            checks: Vec::new(),
            counts: Counts::default(),
            random,
        }
    }

    fn event(&mut self) {
        let random = &mut self.random;
        match random.u8(..16) {
            0 if random.bool() => self.world.put(random.u64(..KEYS), ["0", "1", "2"][random.usize(..3)]),
            1 if random.u8(..4) == 0 => self.world.commit(vec![(key(random.u64(..KEYS)), Change::Delete)]),
            1 if random.u8(..4) == 0 => {
                let (reads, writes) = (random.u64(..KEYS), random.bool().then(|| random.u64(..KEYS)));
                self.callee = Callee { version: self.callee.version + 1, reads, writes };
            }
            2 if random.u8(..8) == 0 => self.version = Arc::new(Version::random(random)),
            2 if random.u8(..16) == 0 => self.empty(),
            2..=7 if !self.runs.is_empty() => self.run(),
            8..=11 if !self.checks.is_empty() => self.go_on(),
            _ => self.ask(),
        }
    }

    /// The store forgets everything, also its versions: it goes on with others, as Redis does.
    fn empty(&mut self) {
        self.world.put(0, "0");
        let mut before = self.world.get(0).0;
        self.world = World::new();
        while before > 0 {
            self.world.put(0, "0");
            before -= 1;
        }
        self.world.commit(vec![(key(0), Change::Delete)]);
    }

    fn ask(&mut self) {
        let body = ["a", "a", "a", "b"][self.random.usize(..4)];
        let (version, callee) = (Arc::clone(&self.version), self.callee);
        let of_callee = |name: &str| (name == "g").then_some(callee.version);
        let now = Now { space: Some(self.elsewhere.as_ref().unwrap_or(&self.world.space)), version: &of_callee };
        let mut is_stale = false;
        match version.memo.look(&super::body(&[body]), None, now, false, |event| is_stale |= event == Event::Stale) {
            Look::Hit(entry) => {
                let (text, changes) = version.whole(self, body, callee);
                assert_eq!((String::from_utf8_lossy(&entry.body), changes), (text.into(), Vec::new()), "{version:?}");
                self.counts.hits += 1;
                self.counts.with_callees += u64::from(!entry.callees.is_empty());
            }
            Look::Check(check) => {
                self.checks.push(Checks { version, callee, body, check, said: None, is_made: false });
            }
            Look::Run(asked) => {
                let run = version.begin(&self.isolation);
                self.runs.push(Runs { version, asked, body, run });
            }
            Look::Collapsed(_) | Look::Wait(_) | Look::Bypass => panic!("its body is whole, and it may not wait"),
        }
        self.counts.stale += u64::from(is_stale);
    }

    fn run(&mut self) {
        let index = self.random.usize(..self.runs.len());
        let Runs { version, asked, body, run } = &mut self.runs[index];
        if !version.step(run, body, &self.world, self.callee) {
            return;
        }
        if let Some(transaction) = &run.transaction {
            let settled = match transaction.settle(true, Some(&self.world.space)) {
                Settled::Commit(commit) => {
                    transaction.came(self.world.make(commit.clone()));
                    transaction.take_outcome(&commit)
                }
                settled => settled,
            };
            match settled {
                Settled::Done => run.trace.transaction = Some(transaction.made()),
                Settled::Stale => return *run = version.begin(&self.isolation),
                settled => panic!("{settled:?}"),
            }
        }
        let content = Content::Whole(mem::take(&mut run.text).into());
        version.memo.learn(asked, &run.trace, &Ended { called: Ok(&run.parts), ..well(&content) }, |_| ());
        self.runs.swap_remove(index);
    }

    /// The store gets what it is asked, or its answer comes.
    fn go_on(&mut self) {
        let index = self.random.usize(..self.checks.len());
        if self.checks[index].said.is_none() {
            let said = self.confirm(index);
            return self.checks[index].said = Some(said);
        }
        let Checks { version, body, check, said, is_made, .. } = self.checks.swap_remove(index);
        let (outcome, text) = said.unwrap();
        let changes = check.changes();
        match version.memo.checked(*check, Some(outcome), None, |_| ()) {
            Checked::Hit(entry) => {
                assert_eq!(String::from_utf8_lossy(&entry.body), text, "{version:?}");
                *if changes { &mut self.counts.replayed } else { &mut self.counts.checked } += 1;
                self.counts.with_callees += u64::from(!entry.callees.is_empty());
            }
            Checked::Run(asked) => {
                assert!(!(changes && is_made), "it would happen twice");
                self.counts.stale += 1;
                let run = version.begin(&self.isolation);
                self.runs.push(Runs { version, asked, body, run });
            }
            Checked::Unknown => {
                assert!(changes);
                self.counts.unknown += 1;
            }
        }
    }

    fn confirm(&mut self, index: usize) -> (Result<Outcome, KvError>, String) {
        let Checks { version, callee, body, check, .. } = &self.checks[index];
        let (text, changes) = version.whole(self, body, *callee);
        let lost = self.random.u8(..12);
        let commit = check.commit();
        assert_eq!((commit.id.is_some(), &commit.changes), (check.changes(), &commit.changes));
        if lost == 0 {
            return (Err(KvError::Unavailable("it did not come".to_owned())), text);
        }
        let outcome = self.world.make(Commit { id: None, ..commit.clone() });
        if let Ok(Outcome::Committed { .. }) = outcome {
            assert_eq!(commit.changes, changes, "{version:?}");
            self.checks[index].is_made = true;
        }
        let is_lost = lost <= 2;
        match (is_lost, self.checks[index].check.changes()) {
            (true, true) => (Err(KvError::Unknown("no answer came".to_owned())), text),
            (true, false) => (Err(KvError::Unavailable("no answer came".to_owned())), text),
            (false, _) => (outcome, text),
        }
    }
}

#[test]
fn answers_that_the_store_confirms_are_what_a_run_would_answer_and_change_then() {
    let mut sum = Counts::default();
    for seed in 0..SEEDS {
        let mut model = Model::new(seed);
        for step in 0..STEPS {
            model.event();
            assert!(model.runs.len() + model.checks.len() <= step + 1, "seed {seed}");
        }
        let Counts { hits, checked, replayed, with_callees, stale, unknown } = model.counts;
        let sums = [&mut sum.hits, &mut sum.checked, &mut sum.replayed, &mut sum.with_callees, &mut sum.stale, &mut sum.unknown];
        sums.into_iter().zip([hits, checked, replayed, with_callees, stale, unknown]).for_each(|(sum, count)| *sum += count);
    }
    let Counts { hits, checked, replayed, with_callees, stale, unknown } = sum;
    let least = [hits, checked, replayed, with_callees, stale, unknown].into_iter().min();
    assert!(least >= Some(20), "the table answers too little for this to prove anything: {sum:?}");
}

/// Requests that add one to a number and answer another value, from several threads: what is answered was there, and each request has added one.
#[test]
fn what_is_made_again_happens_once_for_each_answer_also_where_threads_write() {
    const THREADS: usize = 3;
    const REQUESTS: usize = 200;
    let world = World::new();
    let of = Of { function: "f".to_owned(), version: 1, health: None, budget: None };
    let memo = Memo::new(of, Settings { answers: true, pure: false, bytes_max: 1 << 20, whole_head: false });
    let isolation = Isolation { contention: Arc::default(), outside: Outside::Refused };
    let Space::Embedded(space) = &world.space else { unreachable!() };
    let (replayed, written, is_over) = (AtomicU64::new(0), AtomicU64::new(1), AtomicBool::new(false));
    world.commit(vec![(key(0), Change::Put("1".into()))]);
    let make = |commit: Commit| wait(space.clone().commit(commit)).unwrap();
    let run = |mut asked: Box<Asked>| loop {
        let transaction = Transaction::begin(&isolation);
        let there = space.get_many(&[key(0)]).unwrap().remove(0);
        let text = transaction.learn(&key(0), there).unwrap().unwrap().value;
        transaction.make(&Commit::new(Vec::new(), vec![(key(1), Change::Add(1))])).unwrap();
        let made = transaction.made();
        if let Outcome::Conflict { .. } = make(made.clone()) {
            continue;
        }
        let mut trace = EffectTrace { transaction: Some(made), ..EffectTrace::default() };
        trace.effects.insert(Effect::KvWrite);
        let content = Content::Whole(text.clone());
        memo.learn(&mut asked, &trace, &well(&content), |_| ());
        break text;
    };
    let ask = || {
        for _ in 0..REQUESTS {
            let before = written.load(Ordering::SeqCst);
            let answer = match memo.look(&super::body(&["q"]), None, world.now(), false, |_| ()) {
                Look::Run(asked) => run(asked),
                Look::Check(check) => {
                    let outcome = make(check.commit());
                    match memo.checked(*check, Some(Ok(outcome)), None, |_| ()) {
                        Checked::Hit(entry) => {
                            replayed.fetch_add(1, Ordering::Relaxed);
                            entry.body.clone()
                        }
                        Checked::Run(asked) => run(asked),
                        Checked::Unknown => panic!("the store has answered"),
                    }
                }
                look => panic!("{look:?}"),
            };
            let answer: u64 = std::str::from_utf8(&answer).unwrap().parse().unwrap();
            assert!(answer >= before, "{answer} is older than the request, which came after {before}");
        }
    };
    thread::scope(|scope| {
        let askers: Vec<_> = (0..THREADS).map(|_| scope.spawn(ask)).collect();
        scope.spawn(|| {
            for number in 2.. {
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
                make(Commit::new(Vec::new(), vec![(key(0), Change::Put(number.to_string().into()))]));
                written.store(number, Ordering::SeqCst);
                // Answers from the table come between two of these.
                for _ in 0..20 {
                    thread::yield_now();
                }
            }
        });
        let ends: Vec<_> = askers.into_iter().map(|asker| asker.join()).collect();
        is_over.store(true, Ordering::Relaxed);
        ends.into_iter().for_each(|end| end.unwrap());
    });
    assert_eq!(world.get(1).1.unwrap(), (THREADS * REQUESTS).to_string());
    assert!(replayed.load(Ordering::Relaxed) > 20, "the table answers too little for this to prove anything");
}

fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}
