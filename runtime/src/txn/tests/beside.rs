//! Callers whose callees begin before they are called, or need not run at all, from seeds; compared with the same callers and callees one after the other. And mistakes that this has to notice.
//!
//! What is played: a caller reads, writes, logs, fails and calls, and what it calls does the same; some of the calls begin with it, by what earlier runs have called or by chance. They run while it runs, before and
//! after what it writes; others change the store meanwhile; what was begun is dropped at any time, and goes on for a while then. Where a callee's reply is known of a committed run, that stands for the run;
//! others have changed the store since.
//!
//! What is checked: when the caller is committed, it has seen, logged, answered and left what it does alone on the store as it was then.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::{Rc, Weak};

use super::seeds::{each, each_is_noticed, seeds};
use super::{Below, Model, bucket, key, read_in};
use crate::invoke::ahead::window::{Reached, Window};
use crate::kv::{Change, KvLimits, Redis};
use crate::memo::key::Digest;
use crate::speculate::replies::{Known, REPLY_BYTES_MAX};
use crate::speculate::sequence::{Expected, Follows};
use crate::speculate::{Of, Speculation};
use crate::txn::mutants::{Mutant, with};
use crate::txn::*;

/// `SEEDS` of them, if the environment says so.
const SIMULATIONS: u64 = 500;
/// Within so many of them each mistake has to be noticed.
const NOTICED: u64 = 1_000;
/// Callers of one simulation, one after the other: later ones are predicted by what earlier ones did.
const CALLERS: u64 = 8;
const FUNCTIONS: u64 = 3;
const ARGUMENTS: u64 = 2;
const STEPS: u64 = 6;
const KEYS: u64 = 4;
/// How many functions wait for each other at most.
const DEPTH: u32 = 3;
/// A caller that is not committed by then never is.
const ATTEMPTS_MAX: u64 = 10;

/// Which function is called, and with what.
type Asked = (u64, u64);
type Shared = Rc<RefCell<Run>>;

#[derive(Clone, Copy, Debug)]
enum Step {
    Get(u64),
    Put(u64),
    Delete(u64),
    Add(u64, i64),
    Sum(u64, i64),
    List,
    Log,
    Call(Asked),
    Fail,
    End,
}

/// A run of a function.
struct Run {
    asked: Asked,
    depth: u32,
    step: u64,
    /// What it has seen, in words.
    seen: String,
    transaction: Arc<Transaction>,
    window: Window<Shared>,
    /// The calls that it has made.
    made: Vec<Asked>,
    /// What it waits for, and whether that was begun ahead.
    waits: Option<(Shared, bool)>,
    /// Whether it has ended, and well.
    ended: Option<bool>,
    /// Whether it has logged something, or what it has called has: then no reply stands for it.
    has_logged: bool,
    /// What it and its callees have replied.
    replied: Vec<Replied>,
    /// Replies that have stood for its calls, and for those of its callees.
    skipped: Vec<Replied>,
}

/// A reply of a run, or in place of one.
#[derive(Clone)]
struct Replied {
    version: u64,
    argument: Digest,
    known: Arc<Known>,
}

/// What one attempt to run a caller takes place in.
struct World {
    seed: u64,
    random: fastrand::Rng,
    model: Model,
    /// Lines that were logged.
    logged: Arc<Mutex<Vec<String>>>,
    /// What runs have called lately.
    known: BTreeMap<Asked, Vec<Asked>>,
    /// What committed runs have replied.
    replies: Arc<Speculation>,
    /// Whether something begins ahead.
    guesses: bool,
    ahead: Vec<Weak<RefCell<Run>>>,
    /// What was dropped, and has not ended.
    dropped: Vec<Shared>,
    adopted: u64,
    refused: u64,
    skipped: u64,
    skipped_wrongly: u64,
}

/// What a caller has come to.
#[derive(PartialEq, Eq)]
struct Came {
    seen: String,
    ended_well: bool,
    logged: Vec<String>,
    left: BTreeMap<BucketKey, Bytes>,
}

fn mixed(text: &str) -> u64 {
    text.bytes().fold(7, |mix: u64, byte| mix.wrapping_mul(31).wrapping_add(byte.into()))
}

impl Run {
    fn new(asked: Asked, depth: u32, transaction: Arc<Transaction>) -> Shared {
        let (seen, window) = (String::new(), Window::new(Vec::new()));
        let (made, replied, skipped) = (Vec::new(), Vec::new(), Vec::new());
        let (waits, ended, has_logged) = (None, None, false);
        let run = Run { asked, depth, step: 0, seen, transaction, window, made, waits, ended, has_logged, replied, skipped };
        Rc::new(RefCell::new(run))
    }

    /// What it does next: the function and its argument say that, and where that matters what it has seen.
    fn next(&self, seed: u64) -> Step {
        let (function, argument) = self.asked;
        let program = seed * 1_000 + u64::from(self.depth) * 100 + function * 10 + argument;
        let mut random = fastrand::Rng::with_seed(program * 100 + self.step);
        let (seen, is_quiet) = (mixed(&self.seen), function > 0);
        let key = if random.u8(..4) == 0 { seen % KEYS } else { random.u64(..KEYS) };
        match random.u8(..16) {
            // Some do little, and in half of the simulations most only read.
            _ if self.step >= if program.is_multiple_of(3) { 2 } else { STEPS } => Step::End,
            3..8 if program % 5 < if seed.is_multiple_of(2) { 3 } else { 1 } => Step::Get(key),
            0..3 => Step::Get(key),
            3..5 => Step::Put(key),
            5 => Step::Delete(key),
            6 => Step::Add(key, random.i64(1..5)),
            7 => Step::Sum(key, random.i64(1..5)),
            8 => Step::List,
            9 if !is_quiet => Step::Log,
            9 => Step::Get(key),
            10 if self.step > 2 && seen.is_multiple_of(3) => Step::Fail,
            _ if self.depth >= DEPTH && is_quiet => Step::Get(key),
            _ if self.depth >= DEPTH => Step::Log,
            _ => {
                let argument = if random.u8(..4) == 0 { seen % ARGUMENTS } else { random.u64(..ARGUMENTS) };
                Step::Call((random.u64(..FUNCTIONS), argument))
            }
        }
    }

    fn make(&self, world: &World, change: (u64, Change), wants_sum: bool) -> i64 {
        let commit = Commit::new(Vec::new(), vec![(key(change.0), change.1)]);
        for key in self.transaction.needs(&commit, wants_sum).unwrap() {
            self.transaction.learn(&key, world.model.entry(&key)).unwrap();
        }
        let Outcome::Committed { sum, .. } = self.transaction.make(&commit).unwrap() else { panic!("nothing was expected") };
        sum
    }

    fn list(&self, world: &World) -> String {
        let own = self.transaction.own_keys(&bucket(), &bucket().key(b"").unwrap());
        let (keys, version) = world.model.keys();
        self.transaction.list(&bucket(), version).unwrap();
        let mut all: BTreeMap<BucketKey, bool> = keys.into_iter().map(|key| (key, true)).collect();
        all.extend(own);
        format!("{:?}", all.into_iter().filter(|(_, is_there)| *is_there).map(|(key, _)| key).collect::<Vec<_>>())
    }

    /// Does a step, or has what it waits for do one.
    fn go(&mut self, world: &mut World) {
        if self.ended.is_some() {
            return;
        }
        if let Some((callee, is_ahead)) = self.waits.take() {
            let ended = callee.borrow().ended;
            let Some(well) = ended else {
                callee.borrow_mut().go(world);
                self.waits = Some((callee, is_ahead));
                return;
            };
            if is_ahead && !self.transaction.adopt(&callee.borrow().transaction) {
                world.refused += 1;
                let asked = callee.borrow().asked;
                self.call(world, asked);
                return;
            }
            world.adopted += u64::from(is_ahead);
            let mut callee = callee.borrow_mut();
            self.has_logged |= callee.has_logged;
            self.skipped.append(&mut callee.skipped);
            if well {
                self.replied.append(&mut callee.replied);
            }
            _ = write!(self.seen, "called {well} {:x};", mixed(&callee.seen));
            return;
        }
        let step = self.next(world.seed);
        self.step += 1;
        match step {
            Step::Get(number) => {
                let value = read_in(&self.transaction, &key(number), &world.model).map(|entry| entry.value);
                _ = write!(self.seen, "{value:?};");
            }
            Step::Put(number) => {
                let value = mixed(&self.seen) % 100;
                self.make(world, (number, Change::Put(Bytes::from(value.to_string()))), false);
            }
            Step::Delete(number) => _ = self.make(world, (number, Change::Delete), false),
            Step::Add(number, delta) => _ = self.make(world, (number, Change::Add(delta)), false),
            Step::Sum(number, delta) => {
                let sum = self.make(world, (number, Change::Add(delta)), true);
                _ = write!(self.seen, "{sum};");
            }
            Step::List => {
                let listed = self.list(world);
                self.seen.push_str(&listed);
            }
            Step::Log => {
                let (line, logged) = (format!("{:?} {:x}", self.asked, mixed(&self.seen)), Arc::clone(&world.logged));
                let log = move || lock(&logged).push(line);
                match self.transaction.held() {
                    Some(held) => held.put(Box::new(log)),
                    None => log(),
                }
                self.has_logged = true;
            }
            Step::Call(asked) => {
                let ordinal = self.made.len();
                self.made.push(asked);
                let Reached { adopted, dropped } =
                    self.window.reached(ordinal, &asked.0.to_string(), asked.1.to_string().as_bytes());
                if let Some((_, run)) = dropped {
                    world.drop(run);
                }
                match adopted {
                    Some((_, run)) => self.waits = Some((run, true)),
                    None if self.skip(world, asked) => {}
                    None => self.call(world, asked),
                }
            }
            Step::Fail | Step::End => self.end(world, matches!(step, Step::End)),
        }
    }

    /// Has a known reply stand for a call.
    fn skip(&mut self, world: &mut World, asked: Asked) -> bool {
        if !world.guesses {
            return false;
        }
        let (version, argument) = world.key_of(self.depth + 1, asked);
        let known = world.replies.reply(version, &argument).filter(|known| self.transaction.recall(&known.footprint, None));
        let Some(known) = known else { return false };
        world.skipped += 1;
        let reply = std::str::from_utf8(&known.reply).unwrap();
        _ = write!(self.seen, "called true {:x};", mixed(reply));
        self.skipped.push(Replied { version, argument, known });
        true
    }

    /// Makes a call as it is without anything that was begun ahead.
    fn call(&mut self, world: &mut World, asked: Asked) {
        let callee = Run::new(asked, self.depth + 1, Transaction::join(&self.transaction));
        callee.borrow_mut().begin(world);
        self.waits = Some((callee, false));
    }

    /// Begins some of the calls that it is expected to make.
    fn begin(&mut self, world: &mut World) {
        if !world.guesses || self.depth >= DEPTH {
            return;
        }
        let mut guessed = world.known.get(&self.asked).cloned().unwrap_or_default();
        if guessed.is_empty() || world.random.u8(..4) == 0 {
            let guess = (world.random.u64(..FUNCTIONS), world.random.u64(..ARGUMENTS));
            guessed.insert(world.random.usize(..=guessed.len()), guess);
        }
        let expected = guessed.iter().enumerate().map(|(ordinal, (function, argument))| Expected {
            ordinal,
            callee: function.to_string().into(),
            argument: argument.to_string().into_bytes().into(),
            follows: Follows::Input,
        });
        self.window = Window::new(expected.collect());
        let depth = world.random.usize(..4);
        while let Some(expected) = self.window.next(depth) {
            let (version, argument) = world.key_of(self.depth + 1, guessed[expected.ordinal]);
            if world.replies.has_reply(version, &argument) {
                continue;
            }
            let Some(transaction) = Transaction::beside(&self.transaction) else { return };
            let run = Run::new(guessed[expected.ordinal], self.depth + 1, Transaction::of_call(&transaction));
            assert!(Arc::ptr_eq(&run.borrow().transaction, &transaction), "it was opened for that run");
            run.borrow_mut().begin(world);
            world.ahead.push(Rc::downgrade(&run));
            self.window.put(expected, run);
        }
    }

    fn end(&mut self, world: &mut World, well: bool) {
        self.ended = Some(well);
        let window = std::mem::replace(&mut self.window, Window::new(Vec::new()));
        window.into_begun().for_each(|(_, run)| world.drop(run));
        world.known.insert(self.asked, self.made.clone());
        // The caller's own transaction is settled by what runs it.
        if self.depth > 0 {
            let settled = self.transaction.settle(well, None);
            assert!(matches!(settled, Settled::Done), "{settled:?}");
            self.leave_reply(world, well);
        }
    }

    /// Leaves what it has replied, where another run would reply the same.
    fn leave_reply(&mut self, world: &World, well: bool) {
        let footprint = self.transaction.footprint(REPLY_BYTES_MAX).filter(|_| well && !self.has_logged);
        let Some(footprint) = footprint.map(Arc::new) else { return };
        let (version, argument) = world.key_of(self.depth, self.asked);
        let reply = self.seen.clone().into();
        let known = Arc::new(Known { reply, footprint, callees: Box::default(), depth: self.depth });
        self.replied.push(Replied { version, argument, known });
    }

    /// It is the outermost, and committed or not.
    fn settled(&mut self, world: &mut World, is_committed: bool) {
        for Replied { version, argument, known } in self.skipped.drain(..) {
            if is_committed {
                world.replies.call_skipped(version);
            } else if self.transaction.is_spoiled_by(&known.footprint) {
                world.skipped_wrongly += 1;
                world.replies.call_skipped_wrongly(version, &argument);
            }
        }
        for Replied { version, argument, known } in self.replied.drain(..).filter(|_| is_committed) {
            if self.transaction.leaves(&known.footprint) {
                world.replies.replied(Of { name: "f", version }, argument, known);
            }
        }
    }
}

impl World {
    fn new(seed: u64, model: Model, guesses: bool) -> World {
        let random = fastrand::Rng::with_seed(seed);
        let (known, ahead) = (BTreeMap::new(), Vec::new());
        World {
            seed,
            random,
            model,
            logged: Arc::default(),
            known,
            replies: Speculation::new([7; 32], None),
            guesses,
            ahead,
            dropped: Vec::new(),
            adopted: 0,
            refused: 0,
            skipped: 0,
            skipped_wrongly: 0,
        }
    }

    /// A version, and the key of an argument. What a function does depends on how deep it is.
    fn key_of(&self, depth: u32, (function, argument): Asked) -> (u64, Digest) {
        let version = u64::from(depth) * FUNCTIONS + function;
        (version, self.replies.argument_key(&version.to_string(), argument.to_string().as_bytes()))
    }

    /// A run is not wanted. Half of them go on until they notice.
    fn drop(&mut self, run: Shared) {
        if self.random.bool() {
            self.dropped.push(run);
        }
    }

    /// Something that is ahead does a step.
    fn go_ahead(&mut self) {
        self.ahead.retain(|run| run.strong_count() > 0);
        if self.ahead.is_empty() {
            return;
        }
        let at = self.random.usize(..self.ahead.len());
        let run = self.ahead[at].upgrade();
        // One that is waited for is gone on with by what waits.
        if let Some(Ok(mut run)) = run.as_ref().map(|run| run.try_borrow_mut()) {
            run.go(self);
        }
    }

    /// Another transaction changes the store.
    fn change(&mut self) {
        let key = key(self.random.u64(..KEYS));
        let change = match self.random.u8(..3) {
            0 => Change::Delete,
            1 => Change::Add(1),
            _ => Change::Put(Bytes::from(self.random.u8(..).to_string())),
        };
        self.model.commit(&Commit::new(Vec::new(), vec![(key, change)])).unwrap();
    }
}

fn root(asked: Asked, is_repeated: bool) -> Shared {
    let isolation = Isolation { contention: Arc::default(), outside: Outside::Refused };
    let transaction = if is_repeated { Transaction::begin_again(&isolation) } else { Transaction::begin(&isolation) };
    Run::new(asked, 0, transaction)
}

fn came(run: &Run, world: &World) -> Came {
    let (seen, ended_well) = (run.seen.clone(), run.ended == Some(true));
    Came { seen, ended_well, logged: lock(&world.logged).clone(), left: world.model.values() }
}

/// What a caller comes to alone, on that store.
fn alone(seed: u64, asked: Asked, model: &Model) -> Came {
    let (run, mut world) = (root(asked, false), World::new(seed, model.clone(), false));
    let mut run = run.borrow_mut();
    while run.ended.is_none() {
        run.go(&mut world);
    }
    let commit = Commit { expected: Vec::new(), listed: Vec::new(), ..run.transaction.made() };
    if run.ended == Some(true) {
        world.model.commit(&commit).unwrap();
    }
    came(&run, &world)
}

/// Runs callers, one after the other, among changes of the store. How many callees were adopted and refused; and for how many calls a reply has stood, how often wrongly.
fn simulate(seed: u64, space: &Space) -> [u64; 4] {
    let mut world = World::new(seed, Model::default(), true);
    for caller in 0..CALLERS {
        // The same ones again: so it is known what they call.
        let asked = (caller % 2, 0);
        if world.random.u8(..3) == 0 {
            world.change();
        }
        let is_committed = (0..ATTEMPTS_MAX).any(|attempt| attempt_to_run(&mut world, asked, attempt, space));
        assert!(is_committed, "seed {seed}: the caller is never committed");
    }
    [world.adopted, world.refused, world.skipped, world.skipped_wrongly]
}

fn attempt_to_run(world: &mut World, asked: Asked, attempt: u64, space: &Space) -> bool {
    lock(&world.logged).clear();
    (world.ahead, world.dropped) = (Vec::new(), Vec::new());
    world.logged = Arc::default();
    let (run, mut before) = (root(asked, attempt > 0), vec![world.model.clone()]);
    run.borrow_mut().begin(world);
    while run.borrow().ended.is_none() {
        match world.random.u64(..16) {
            0 if attempt < 3 && world.random.u8(..3) == 0 => {
                world.change();
                before.push(world.model.clone());
            }
            1 => {
                if world.random.u8(..4) == 0 {
                    let window = std::mem::replace(&mut run.borrow_mut().window, Window::new(Vec::new()));
                    window.into_begun().for_each(|(_, run)| world.drop(run));
                }
            }
            2..9 => world.go_ahead(),
            _ => run.borrow_mut().go(world),
        }
    }
    let mut run = run.borrow_mut();
    let is_committed = is_committed(&run, world, (attempt, &before), space);
    run.settled(world, is_committed);
    is_committed
}

/// Whether a run that has ended is committed. Then it has to have come to what it comes to alone.
fn is_committed(run: &Run, world: &mut World, (attempt, before): (u64, &[Model]), space: &Space) -> bool {
    let asked = run.asked;
    match run.transaction.settle(run.ended == Some(true), Some(space)) {
        Settled::Stale => false,
        // It has read one key at most: what it has seen was there at some time while it ran.
        Settled::Done => {
            let came = came(run, world);
            let was_there = before.iter().any(|before| {
                let alone = alone(world.seed, asked, before);
                (&alone.seen, &alone.logged, alone.ended_well) == (&came.seen, &came.logged, came.ended_well)
            });
            assert!(was_there, "seed {}: {} never was", world.seed, came.seen);
            true
        }
        Settled::Commit(commit) => {
            if attempt < 3 && world.random.u8(..4) == 0 {
                world.change();
            }
            let before = world.model.clone();
            run.transaction.came(world.model.commit(&commit));
            if !matches!(run.transaction.take_outcome(&commit), Settled::Done) {
                return false;
            }
            let [came, alone] = [came(run, world), alone(world.seed, asked, &before)];
            assert!(came == alone, "seed {}: {} and {}", world.seed, came.seen, alone.seen);
            true
        }
        Settled::Failed(error) => panic!("seed {}: {error}", world.seed),
    }
}

/// Nothing is asked of it.
pub(super) fn space() -> Space {
    Space::Redis(Redis::new("redis://127.0.0.1:1", KvLimits::default(), String::new).unwrap().space("t"))
}

#[test]
fn callers_whose_callees_begin_ahead_or_are_left_out_do_what_they_do_alone() {
    let (space, seeds) = (space(), seeds(SIMULATIONS));
    let sums = each(seeds.clone(), |seed| simulate(seed, &space));
    println!("{sums:?} were adopted, refused, skipped and skipped wrongly");
    assert!(sums.iter().all(|sum| *sum > (seeds.end - seeds.start) / 8), "{sums:?}: nothing is proved");
}

#[test]
fn each_mistake_about_callees_that_begin_ahead_or_are_left_out_is_noticed() {
    use Mutant::{AdoptedOther, AdoptedReadLost, AdoptedUnchecked, AdoptedUnder, LoggedAhead, RefusedStays};
    use Mutant::{KnownCalleesLost, KnownOther, KnownUnchecked, KnownUnder, KnownUnread};
    let space = space();
    let ahead = [AdoptedReadLost, AdoptedUnder, AdoptedUnchecked, AdoptedOther, LoggedAhead, RefusedStays];
    let known = [KnownUnread, KnownUnder, KnownUnchecked, KnownOther, KnownCalleesLost];
    let mutants: Vec<Mutant> = ahead.into_iter().chain(known).collect();
    each_is_noticed(&mutants, 0..NOTICED, |seed, mutant| {
        let played = catch_unwind(AssertUnwindSafe(|| with(mutant, || simulate(seed, &space))));
        played.is_err().then(|| "it panics".to_owned())
    });
}
