//! Executions whose functions run ahead of each other, beside each other and beside other transactions, from seeds; compared with their functions one after the other. And mistakes that this has to
//! notice.
//!
//! What is played: a driver opens columns with inputs that it guesses, gives them up when the guess was wrong, and at random; runs are squashed, and go on for a while since the driver learns of it later; functions
//! fail; what a function has come to once is recalled in place of a run; what functions call begins with them, is dropped, or need not run; commits are on their way, conflict, are refused, or come to something that is not known; what the store answers is older than what the pipeline knows.
//!
//! What is checked: the commits of the store, one after the other, are what the functions that they are made of do when they run alone at that place, each with the input that the one before gives; the store holds
//! what these leave, and nothing else; and all executions end.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use tokio::sync::Notify;

use super::callees::{CALLS, Known};
use super::histories::waited;
use super::mutants::{Mutant, with};
use super::seeds::{each, each_is_noticed, seeds};
use super::*;
use crate::kv::{Embedded, KvLimits, Redis};
use crate::txn::pipeline::{Basis, ColumnId, Dewey, Group, Pipeline, Squashed};

const SIMULATIONS: u64 = 1_000;
/// The same on the embedded store, each commit of which another thread makes.
const EMBEDDED: u64 = 200;
/// Within so many of them each mistake has to be noticed.
const NOTICED: u64 = 1_000;
/// Functions of an execution.
const FUNCTIONS: std::ops::RangeInclusive<usize> = 2..=12;
/// How far the driver runs ahead.
const DEPTH: usize = 6;
const OUTSIDE: u64 = 8;
/// An execution that has not ended by then does not end.
const TICKS_MAX: u64 = 50_000;

pub(crate) enum Store {
    Model(Box<Model>),
    Embedded(crate::kv::embedded::Space),
}

impl Below for Store {
    fn entry(&self, key: &BucketKey) -> Option<Entry> {
        match self {
            Store::Model(model) => model.entry(key),
            Store::Embedded(space) => space.get(&bucket(), key.key(), |entry| entry.cloned()).unwrap(),
        }
    }

    fn keys(&self) -> (Vec<BucketKey>, u64) {
        match self {
            Store::Model(model) => model.keys(),
            Store::Embedded(space) => {
                let mut keys = Vec::new();
                let take = |key: &[u8]| {
                    keys.push(bucket().key(key).unwrap());
                    true
                };
                let set = space.keys(&bucket(), b"", None, take).unwrap();
                (keys, set)
            }
        }
    }
}

impl Store {
    pub(crate) fn commit(&mut self, commit: &Commit) -> Result<Outcome, KvError> {
        match self {
            Store::Model(model) => model.commit(commit),
            Store::Embedded(space) => waited(space.clone().commit(commit.clone())),
        }
    }

    /// What it holds.
    pub(crate) fn values(&self) -> BTreeMap<BucketKey, Bytes> {
        let (keys, _) = self.keys();
        keys.into_iter().filter_map(|key| Some((key.clone(), self.entry(&key)?.value))).collect()
    }

    pub(crate) fn space(&self) -> Space {
        match self {
            // Nothing is asked of it: it is no embedded one.
            Store::Model(_) => {
                Space::Redis(Redis::new("redis://127.0.0.1:1", KvLimits::default(), String::new).unwrap().space("t"))
            }
            Store::Embedded(space) => Space::Embedded(space.clone()),
        }
    }
}

/// A function that has run, and what it was.
#[derive(Clone, Debug)]
struct Ran {
    /// Of which execution, at which place, with which input; of none for another transaction.
    of: Option<(usize, usize, u64)>,
    number: u64,
    seen: String,
    failed: bool,
}

/// A run of a function.
struct Run {
    column: ColumnId,
    input: u64,
    program: Program,
    has_ended: bool,
}

/// A commit on its way.
struct Sent {
    columns: Vec<ColumnId>,
    commit: Commit,
    /// What the store has said.
    outcome: Option<Result<Outcome, KvError>>,
}

struct Execution {
    pipeline: Arc<Pipeline>,
    /// By place; none where nothing runs.
    runs: Vec<Option<Run>>,
    /// The outputs of what is committed.
    outputs: Vec<u64>,
    sent: Option<Sent>,
    has_failed: bool,
    /// How often the driver still does what it need not.
    whims: u32,
    /// Runs that do not count any more.
    squashed: Vec<Program>,
}

struct World {
    seed: u64,
    random: fastrand::Rng,
    store: Store,
    /// The model as it was a while ago.
    before: Option<Box<Model>>,
    executions: Vec<Execution>,
    /// Other transactions, and how many more begin.
    outside: Vec<Program>,
    outside_left: u64,
    history: Vec<Ran>,
    /// What functions have come to, by their numbers: what that rests on, and what they have seen.
    bases: HashMap<u64, (Basis, String)>,
    /// How many runs were recalled.
    recalled: usize,
    /// What is known of callees.
    known: Known,
}

/// A function's number, by which it is the same program each time. The executions of every second seed have the same functions, which do little in every fourth one. Those of every third seed call others.
fn number(seed: u64, (execution, place, input): (usize, usize, u64)) -> u64 {
    let (execution, calm) = (if seed.is_multiple_of(2) { 0 } else { execution }, if seed.is_multiple_of(4) { CALM } else { 0 });
    let calls = if seed.is_multiple_of(3) { CALLS } else { 0 };
    fastrand::Rng::with_seed(seed * 10_000 + execution as u64 * 1_000 + place as u64 * 10 + input).u64(..1 << 40) | calm | calls
}

/// What a function gives to the next one: it depends on what it has seen, at every second place.
fn output(place: usize, seen: &str, failed: bool) -> u64 {
    let mix = seen.bytes().fold(0, |mix: u64, byte| mix.wrapping_mul(31).wrapping_add(byte.into()));
    (mix % 3 + u64::from(failed)) * (place as u64 % 2)
}

/// Places are two numbers deep.
fn place(index: usize) -> Dewey {
    Dewey::new(&[index as u64 / 3 + 1, index as u64 % 3])
}

/// How many runs were recalled, and callees adopted, refused and left out.
type Counts = [usize; 4];

/// Plays one; what is wrong with it, or what was counted.
fn play(seed: u64, store: Store) -> Result<Counts, String> {
    let mut random = fastrand::Rng::with_seed(seed);
    let executions = (0..random.usize(1..4)).map(|_| Execution {
        pipeline: Pipeline::new(Some(store.space()), Arc::new(Notify::new())),
        runs: (0..random.usize(FUNCTIONS)).map(|_| None).collect(),
        outputs: Vec::new(),
        sent: None,
        has_failed: false,
        whims: 6,
        squashed: Vec::new(),
    });
    let executions: Vec<Execution> = executions.collect();
    executions.iter().for_each(|execution| execution.pipeline.keep_bases());
    let mut world = World {
        seed,
        random,
        store,
        before: None,
        executions,
        outside: Vec::new(),
        outside_left: OUTSIDE,
        history: Vec::new(),
        bases: HashMap::new(),
        recalled: 0,
        known: Known::default(),
    };
    for _ in 0..TICKS_MAX {
        if world.outside_left == 0 && world.outside.is_empty() && world.executions.iter().all(Execution::is_over) {
            let [adopted, refused, skipped] = world.known.counts();
            return with(None, || world.check()).map(|()| [world.recalled, adopted, refused, skipped]);
        }
        world.tick()?;
    }
    Err("it does not end".to_owned())
}

impl Execution {
    fn is_over(&self) -> bool {
        self.has_failed || self.outputs.len() == self.runs.len()
    }

    /// The input of the function at a place, if it is known for sure; `done`: how many are committed.
    fn input(&self, at: usize) -> Option<u64> {
        match at.checked_sub(1) {
            None => Some(0),
            Some(before) if at <= self.outputs.len() => self.outputs.get(before).copied(),
            Some(before) => {
                let run = self.runs[before].as_ref().filter(|run| run.has_ended)?;
                (self.input(before) == Some(run.input)).then(|| run.output(before))
            }
        }
    }

    fn give_up(&mut self, at: usize) {
        if let Some(run) = self.runs[at].take() {
            self.pipeline.give_up(run.column);
            self.squashed.push(run.program);
        }
    }

    fn take_squashed(&mut self) {
        for Squashed { column, cause } in self.pipeline.take_squashed() {
            if let Some(run) = self.runs.iter_mut().find_map(|run| run.take_if(|run| run.column == column)) {
                run.program.outer.squashed(&cause);
                self.squashed.push(run.program);
            }
        }
    }
}

impl Run {
    fn output(&self, at: usize) -> u64 {
        output(at, &self.program.seen, self.program.failed)
    }
}

impl World {
    fn tick(&mut self) -> Result<(), String> {
        if self.random.u8(..30) == 0
            && let Store::Model(model) = &self.store
        {
            self.before = Some(model.clone());
        }
        if self.random.u8(..8) == 0 {
            return self.run_outside();
        }
        let index = self.random.usize(..self.executions.len());
        // One that comes later finds what those before it have left.
        let waits =
            index > 0 && self.seed.is_multiple_of(2) && !self.executions[index - 1].is_over() && self.random.u8(..100) > 0;
        if waits || self.executions[index].is_over() {
            return Ok(());
        }
        match self.random.u8(..20) {
            0 | 1 => self.executions[index].take_squashed(),
            2..5 => self.open(index),
            5 => self.correct(index),
            6 => self.run_squashed(index),
            7 | 8 => return self.settle(index),
            9 | 10 => return self.send(index),
            11 if self.random.u8(..4) == 0 && self.executions[index].whims > 0 => {
                let execution = &mut self.executions[index];
                execution.whims -= 1;
                let at = self.random.usize(execution.outputs.len()..execution.runs.len());
                if execution.sent.is_none() {
                    execution.give_up(at);
                }
            }
            _ => return self.run(index),
        }
        Ok(())
    }

    /// Another transaction goes on, or begins.
    fn run_outside(&mut self) -> Result<(), String> {
        if self.outside_left > 0 && self.outside.len() < 2 {
            self.outside_left -= 1;
            self.outside.push(Program::new(self.seed * 1_000 + self.outside_left));
        }
        let Some(index) = (!self.outside.is_empty()).then(|| self.random.usize(..self.outside.len())) else { return Ok(()) };
        if self.outside[index].go(&self.store) {
            return Ok(());
        }
        let program = self.outside.swap_remove(index);
        if !matches!(program.outer.settle(!program.failed, None), Settled::Done) {
            self.outside.push(Program::new(program.number));
            return Ok(());
        }
        let commit = program.outer.column().commit(!program.failed);
        match self.store.commit(&commit).map_err(|error| error.to_string())? {
            Outcome::Committed { .. } => {
                self.history.push(Ran { of: None, number: program.number, seen: program.seen, failed: program.failed });
            }
            Outcome::Conflict { .. } => self.outside.push(Program::new(program.number)),
        }
        Ok(())
    }

    /// The driver begins a run, with the input that is known or one that it guesses.
    fn open(&mut self, index: usize) {
        let execution = &mut self.executions[index];
        let done = execution.outputs.len();
        let missing: Vec<usize> =
            (done..execution.runs.len().min(done + DEPTH)).filter(|at| execution.runs[*at].is_none()).collect();
        let Some(at) = self.random.choice(&missing).copied() else { return };
        let guessed = if self.random.u8(..8) == 0 { self.random.u64(..3) } else { 0 };
        let input = execution.input(at).unwrap_or(guessed);
        let isolation = Isolation { contention: Arc::default(), outside: Outside::Refused };
        let Some((column, transaction)) = execution.pipeline.open(place(at), &isolation) else { return };
        let number = number(self.seed, (index, at, input));
        if let Some((basis, seen)) = self.bases.get(&number)
            && self.random.bool()
            && execution.pipeline.recall(column, basis)
        {
            self.recalled += 1;
            let program = Program { outer: transaction, seen: seen.clone(), ..Program::new(number) };
            execution.runs[at] = Some(Run { column, input, program, has_ended: true });
            return;
        }
        let outer = Transaction::of_call(&transaction);
        assert!(Arc::ptr_eq(&outer, &transaction), "the first run is the column's");
        let mut program = Program { outer, ..Program::new(number) };
        program.begin_callees(&self.known, &mut self.random);
        execution.runs[at] = Some(Run { column, input, program, has_ended: false });
    }

    /// The driver gives runs up whose input was guessed wrong.
    fn correct(&mut self, index: usize) {
        let execution = &mut self.executions[index];
        for at in execution.outputs.len()..execution.runs.len() {
            let is_wrong = |run: &Run| execution.input(at).is_some_and(|input| input != run.input);
            if execution.runs[at].as_ref().is_some_and(is_wrong) {
                execution.give_up(at);
            }
        }
    }

    fn run(&mut self, index: usize) -> Result<(), String> {
        let execution = &mut self.executions[index];
        let running = execution.runs.iter_mut().flatten().filter(|run| !run.has_ended).collect::<Vec<_>>();
        let Some(at) = (!running.is_empty()).then(|| self.random.usize(..running.len())) else { return Ok(()) };
        let Some(run) = running.into_iter().nth(at) else { return Ok(()) };
        if run.program.callee_goes(&mut self.random, &self.store) {
            return Ok(());
        }
        let goes_on = match &self.before {
            Some(before) if self.random.u8(..10) == 0 => run.program.go(&**before),
            _ => run.program.go(&self.store),
        };
        if !goes_on {
            run.has_ended = true;
            if !matches!(run.program.outer.settle(!run.program.failed, None), Settled::Done) {
                return Err("the end of a column is more than its end".to_owned());
            }
            run.program.leave(&self.known);
        }
        Ok(())
    }

    /// A run goes on of which the driver does not know yet, or which does not know yet, that it was squashed.
    fn run_squashed(&mut self, index: usize) {
        let execution = &mut self.executions[index];
        let Some(program) = execution.squashed.last_mut() else { return };
        if !program.go(&self.store) {
            assert!(matches!(program.outer.settle(!program.failed, None), Settled::Done));
            execution.squashed.pop();
        }
    }

    fn settle(&mut self, index: usize) -> Result<(), String> {
        let execution = &mut self.executions[index];
        let done = execution.outputs.len();
        let is_right =
            |at: &usize| execution.runs[*at].as_ref().is_some_and(|run| run.has_ended && execution.input(*at) == Some(run.input));
        let right = (done..execution.runs.len()).take_while(is_right);
        let named: Vec<ColumnId> = right.filter_map(|at| Some(execution.runs[at].as_ref()?.column)).collect();
        let stands_first = named.len() > 1 && execution.sent.is_none() && execution.pipeline.ended(named[0]).is_some();
        if stands_first && self.random.u8(..4) == 0 {
            // What does not stand first is not settled.
            let group = execution.pipeline.settle(&named[1..]);
            if !with(None, || matches!(group, Group::Nothing)) {
                self.came(index, group)?;
            }
            return Ok(());
        }
        let group = execution.pipeline.settle(&named);
        self.came(index, group)
    }

    /// The commit of an execution reaches the store, or the answer the driver.
    fn send(&mut self, index: usize) -> Result<(), String> {
        let execution = &mut self.executions[index];
        let Some(sent) = &mut execution.sent else { return Ok(()) };
        let (is_unavailable, is_lost) = (self.random.u8(..30) == 0, self.random.u8(..40) == 0);
        let Some(outcome) = sent.outcome.take() else {
            if is_unavailable && execution.whims > 0 {
                execution.whims -= 1;
                sent.outcome = Some(Err(KvError::Unavailable("x".to_owned())));
                return Ok(());
            }
            let outcome = self.store.commit(&sent.commit);
            let (is_made, columns) = (matches!(outcome, Ok(Outcome::Committed { .. })), sent.columns.clone());
            sent.outcome = Some(if is_lost { Err(KvError::Unknown("x".to_owned())) } else { outcome });
            return if is_made { self.record(index, &columns) } else { Ok(()) };
        };
        execution.sent = None;
        let group = execution.pipeline.came(outcome);
        self.came(index, group)
    }

    /// What the driver makes of that.
    fn came(&mut self, index: usize, group: Group) -> Result<(), String> {
        let has_commit = self.executions[index].outputs.len();
        match group {
            Group::Nothing | Group::Again => Ok(()),
            Group::Commit { columns, commit } => {
                self.executions[index].sent = Some(Sent { columns, commit, outcome: None });
                Ok(())
            }
            Group::Committed { columns, findings, .. } => {
                // What was no commit was decided now.
                let is_recorded = self
                    .history
                    .iter()
                    .any(|ran| matches!(ran.of, Some((execution, at, _)) if (execution, at) == (index, has_commit)));
                if !is_recorded {
                    self.record(index, &columns)?;
                }
                let execution = &mut self.executions[index];
                for (column, found) in columns.into_iter().zip(findings) {
                    let at = execution.outputs.len();
                    let run =
                        execution.runs[at].take_if(|run| run.column == column).ok_or("a column of another place is committed")?;
                    execution.outputs.push(run.output(at));
                    run.program.outer.decided(Verdict::Committed);
                    if let Some(basis) = found.basis {
                        self.bases.insert(run.program.number, (basis, run.program.seen));
                    }
                }
                Ok(())
            }
            Group::Stale { column, .. } => match self.executions[index].pipeline.ended(column) {
                None => Ok(()),
                Some(_) => Err("what is stale is not squashed".to_owned()),
            },
            Group::Failed { columns, error } => {
                let execution = &mut self.executions[index];
                execution.has_failed = true;
                let is_one = columns.len() == 1 || matches!(error, KvError::Unknown(_));
                if is_one { Ok(()) } else { Err(format!("{columns:?} fail together: {error}")) }
            }
        }
    }

    /// The store has made what these columns are.
    fn record(&mut self, index: usize, columns: &[ColumnId]) -> Result<(), String> {
        let execution = &self.executions[index];
        for column in columns {
            let of = |run: &Option<Run>| run.as_ref().is_some_and(|run| run.column == *column);
            let at = execution.runs.iter().position(of).ok_or("a column is committed that the driver does not have")?;
            let Some(run) = &execution.runs[at] else { continue };
            let Program { number, seen, failed, wrong, .. } = &run.program;
            if let Some(wrong) = wrong {
                return Err(wrong.clone());
            }
            self.history.push(Ran { of: Some((index, at, run.input)), number: *number, seen: seen.clone(), failed: *failed });
        }
        Ok(())
    }

    /// The commits, one after the other, are what their functions do alone.
    fn check(&self) -> Result<(), String> {
        let mut plain = Model::default();
        let mut outputs: Vec<Vec<u64>> = vec![Vec::new(); self.executions.len()];
        for ran in &self.history {
            let mut program = Program::new(ran.number);
            while program.go(&plain) {}
            if (&program.seen, program.failed) != (&ran.seen, ran.failed) {
                return Err(format!("{ran:?} has seen what never was, instead of {}", program.seen));
            }
            plain.commit(&program.outer.column().commit(!program.failed)).map_err(|error| error.to_string())?;
            if let Some((execution, at, input)) = ran.of {
                let right = outputs[execution].last().copied().unwrap_or(0);
                if (at, input) != (outputs[execution].len(), right) {
                    return Err(format!("{ran:?} comes behind {:?}", outputs[execution]));
                }
                outputs[execution].push(output(at, &program.seen, program.failed));
            }
        }
        if plain.values() == self.store.values() { Ok(()) } else { Err("the store holds something else".to_owned()) }
    }
}

/// Plays one with that mistake; what is wrong with it, or that a function sees what cannot be.
fn played(seed: u64, store: Store, mutant: Option<Mutant>) -> Result<Counts, String> {
    let played = catch_unwind(AssertUnwindSafe(|| with(mutant, || play(seed, store))));
    played.unwrap_or_else(|_| Err("it panics".to_owned()))
}

pub(crate) fn in_model() -> Store {
    Store::Model(Box::default())
}

#[test]
fn what_is_run_ahead_is_as_one_after_the_other() {
    let one = |seed| played(seed, in_model(), None).unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}"));
    let sums = each(seeds(SIMULATIONS), |seed| one(seed).map(|count| count as u64));
    println!("{sums:?} runs were recalled, and callees adopted, refused and left out");
    assert!(sums.iter().all(|sum| *sum > 0), "{sums:?}");
}

#[test]
fn what_is_run_ahead_in_the_embedded_store_is_as_one_after_the_other() {
    let store = Embedded::in_memory(KvLimits::default()).unwrap();
    each(seeds(EMBEDDED), |seed| {
        let space = store.space(&format!("{seed}"));
        played(seed, Store::Embedded(space), None).unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}"));
        []
    });
}

/// Every mistake is noticed, by the check or by a function that sees what cannot be; which seed does is shown by `--nocapture`.
#[test]
fn each_mistake_of_a_pipeline_is_noticed_within_a_thousand_seeds() {
    let mutants = [
        Mutant::LostReadBit,
        Mutant::StaleEpoch,
        Mutant::OutOfOrder,
        Mutant::ForwardedFromFarthest,
        Mutant::RemapLost,
        Mutant::GroupUnvalidated,
        Mutant::TwoVersions,
        Mutant::GivenUpIsRead,
        Mutant::FailedIsRead,
        Mutant::AbsorbIsSilent,
        Mutant::ListIsNoRead,
        Mutant::SumUnderWay,
        Mutant::RecallUnchecked,
        Mutant::RecallIsBlind,
        Mutant::RecallIsKept,
        Mutant::AdoptedReadLost,
        Mutant::AdoptedUnder,
        Mutant::AdoptedUnchecked,
        Mutant::AdoptedPastColumns,
        Mutant::AdoptedOfGone,
        Mutant::AdoptedOfNothing,
        Mutant::RefusedStays,
        Mutant::KnownUnread,
        Mutant::KnownUnder,
        Mutant::KnownUnchecked,
    ];
    each_is_noticed(&mutants, 0..NOTICED, |seed, mutant| played(seed, in_model(), mutant).err());
}
