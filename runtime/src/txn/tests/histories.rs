//! Histories of requests of two tenants at several workers, on a store whose answers are lost, that forgets, and whose clock jumps; checked for strict serialisability. And mistakes that this has to
//! notice.
//!
//! What is played: workers die at any moment; a commit and its answer are on the way for up to [`ON_THE_WAY_MS_MAX`], or lost; the worker sends the commit again under its id, and in the end does not know;
//! Redis is emptied, or goes over to a replica that lacks the last commits; its clock is set forwards and backwards. The embedded store is the real one. Redis is a model of `commit.lua`, and the worker's
//! side one of `kv/redis.rs`; `kv/redis/tests/lost.rs` has both for real.
//!
//! What is checked: the commits that the store has now, one after the other in the order of their versions, read what their requests have seen and leave what is there. A request whose reply had left
//! before another one came stands before it. No request is made twice; one that was acknowledged was made.

use std::collections::{HashMap, HashSet};

use super::mutants::{Mutant, with};
use super::*;
use crate::kv::{COMMIT_KNOWN, CommitId, Embedded, KvLimits, Redis};

const HISTORIES: u64 = 1_500;
/// Within so many of them each mistake has to be noticed.
const NOTICED: u64 = 1_000;
/// Requests of one history, and how many run at the same time.
const REQUESTS: usize = 16;
const TOGETHER: usize = 6;
const WORKERS: usize = 3;
/// How long a message is on its way at most, and how often a commit is sent.
const ON_THE_WAY_MS_MAX: u64 = 50_000;
const TRIES: u32 = 4;
/// How long after it was sent first a commit may be made at most (see `kv/redis/clock.rs`).
const MADE_WITHIN_MS: u64 = 30_000;
const KNOWN_MS: u64 = COMMIT_KNOWN.as_millis() as u64;

/// Mistakes of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Broken {
    /// Versions are counted from one, so that an emptied store gives the same ones again.
    SameVersions,
    /// Versions do not rise.
    OutOfOrder,
    /// Ids are forgotten at once.
    Forgetful,
    /// What comes late is made.
    LateIsMade,
    /// An emptied store is taken for the one before.
    SameIncarnation,
    /// A commit whose answer was lost is sent under another id.
    NewIds,
}

/// A store as requests see it.
enum Store {
    Embedded(crate::kv::embedded::Space),
    Redis(Box<Modelled>),
}

/// What Redis holds of a tenant.
#[derive(Clone, Debug, Default)]
struct Modelled {
    model: Model,
    /// By chance; another one when it was emptied.
    incarnation: u64,
    /// Answers by ids, each until that time.
    known: HashMap<CommitId, (Answer, u64)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Outcome(Outcome),
    /// It was not made: it has come too late. What time it is, and which incarnation.
    Late(u64, u64),
}

impl Below for Store {
    fn entry(&self, key: &BucketKey) -> Option<Entry> {
        match self {
            Store::Embedded(space) => space.get(&bucket(), key.key(), |entry| entry.cloned()).unwrap(),
            Store::Redis(modelled) => modelled.model.entry(key),
        }
    }

    fn keys(&self) -> (Vec<BucketKey>, u64) {
        match self {
            Store::Embedded(space) => {
                let mut keys = Vec::new();
                let take = |key: &[u8]| {
                    keys.push(bucket().key(key).unwrap());
                    true
                };
                let set = space.keys(&bucket(), b"", None, take).unwrap();
                (keys, set)
            }
            Store::Redis(modelled) => modelled.model.keys(),
        }
    }
}

/// A commit that the store has made, or reads that it had at one moment.
#[derive(Clone, Debug)]
struct Made {
    request: usize,
    seen: String,
    failed: bool,
    number: u64,
    /// The version after it, and when that was.
    place: (u64, u64),
    begin: u64,
    /// When its reply left, if one did.
    end: Option<u64>,
}

struct Tenant {
    store: Store,
    contention: Arc<Contention>,
    /// What its programs expect of Redis.
    values: Arc<LastSeen>,
    /// What the store holds came of these.
    history: Vec<Made>,
    /// Commits that it has made and does not hold any more.
    lost: HashSet<usize>,
    /// The version of the last commit.
    last: u64,
    /// How often it has lost commits.
    losses: u64,
    /// The incarnation of the store that the workers were told.
    told: u64,
    /// What the replica has.
    replica: Option<(Modelled, usize)>,
}

/// A request on its way.
struct Request {
    index: usize,
    tenant: usize,
    worker: usize,
    begin: u64,
    program: Program,
    /// When it first had something of the store: how often that had lost commits, and the version.
    first_read: Option<(u64, (u64, u64))>,
    /// Its commit, when it has ended.
    sent: Option<Sent>,
}

#[derive(Clone)]
struct Sent {
    commit: Commit,
    tries: u32,
    not_after: u64,
    incarnation: u64,
    was_lost: bool,
}

/// A message on its way.
enum Packet {
    Commit { request: usize, commit: Commit, not_after: u64, incarnation: u64, made: Made },
    Answer { request: usize, id: CommitId, answer: Answer },
}

struct World {
    random: fastrand::Rng,
    broken: Option<Broken>,
    /// The number of the step: nothing happens at the same time.
    tick: u64,
    now_ms: u64,
    /// How far the store's clock is before that.
    ahead_ms: i64,
    /// How much more it may be set back.
    back_ms: i64,
    /// What the workers believe that to be.
    believed_ms: Option<i64>,
    tenants: Vec<Tenant>,
    requests: Vec<Request>,
    wire: Vec<(u64, usize, Packet)>,
}

/// Plays a history; what is wrong with it.
fn play(seed: u64, stores: Vec<Store>, broken: Option<Broken>) -> Result<(), String> {
    let tenant = |store| Tenant {
        store,
        contention: Arc::default(),
        values: Arc::default(),
        history: Vec::new(),
        lost: HashSet::new(),
        last: 0,
        losses: 0,
        told: 0,
        replica: None,
    };
    let mut world = World {
        random: fastrand::Rng::with_seed(seed),
        broken,
        tick: 0,
        now_ms: 1_000_000,
        ahead_ms: 0,
        back_ms: (KNOWN_MS - 1).cast_signed(),
        believed_ms: None,
        tenants: stores.into_iter().map(tenant).collect(),
        requests: Vec::new(),
        wire: Vec::new(),
    };
    let mut begun = 0;
    while begun < REQUESTS || !world.requests.is_empty() {
        world.tick += 1;
        let is_slow = world.random.u8(..20) == 0;
        world.now_ms += world.random.u64(..if is_slow { 5_000 } else { 5 });
        if begun < REQUESTS && world.requests.len() < TOGETHER && world.random.u8(..4) == 0 {
            world.begin(begun, seed);
            begun += 1;
        }
        world.step()?;
    }
    (0..world.tenants.len()).try_for_each(|tenant| world.check(tenant))
}

impl World {
    fn begin(&mut self, index: usize, seed: u64) {
        let (tenant, worker) = (self.random.usize(..self.tenants.len()), self.random.usize(..WORKERS));
        let program = self.program(seed * 1_000 + index as u64, tenant);
        let begin = self.tick;
        self.requests.push(Request { index, tenant, worker, begin, program, first_read: None, sent: None });
    }

    /// Some ask Redis for all that they read, others have it given what is expected.
    fn program(&mut self, number: u64, tenant: usize) -> Program {
        let expects = self.is_redis(tenant) && self.random.bool();
        let Tenant { contention, values, .. } = &self.tenants[tenant];
        if expects { Program::expecting(number, contention, values) } else { Program::among(number, contention) }
    }

    fn step(&mut self) -> Result<(), String> {
        match self.random.u8(..100) {
            0 => {
                let worker = self.random.usize(..WORKERS);
                self.requests.retain(|request| request.worker != worker);
            }
            1 => self.disaster()?,
            2..30 if !self.wire.is_empty() => {
                let (until, tenant, packet) = self.wire.swap_remove(self.random.usize(..self.wire.len()));
                let is_lost = until < self.now_ms || (self.is_redis(tenant) && self.random.u8(..4) == 0);
                if !is_lost {
                    return self.deliver(tenant, packet);
                }
            }
            30..35 => self.send_again(),
            _ => {
                let running: Vec<usize> = (0..self.requests.len()).filter(|index| self.requests[*index].sent.is_none()).collect();
                if let Some(index) = self.random.choice(&running).copied() {
                    return self.run(index);
                }
            }
        }
        Ok(())
    }

    fn is_redis(&self, tenant: usize) -> bool {
        matches!(self.tenants[tenant].store, Store::Redis(_))
    }

    fn store_clock(&self) -> u64 {
        self.now_ms.saturating_add_signed(self.ahead_ms)
    }

    /// What becomes of a Redis server.
    fn disaster(&mut self) -> Result<(), String> {
        let what = self.random.u8(..5);
        for tenant in 0..self.tenants.len() {
            if !self.is_redis(tenant) {
                continue;
            }
            if what < 2 {
                self.check(tenant)?;
            }
            let Tenant { store: Store::Redis(modelled), history, lost, losses, replica, last, .. } = &mut self.tenants[tenant]
            else {
                continue;
            };
            let kept = match what {
                0 => {
                    **modelled = Modelled { incarnation: self.random.u64(1..), ..Modelled::default() };
                    0
                }
                1 => match replica.take() {
                    Some((of_replica, count)) => {
                        // Connections end with the server that they lead to.
                        self.wire.retain(|(_, of, packet)| *of != tenant || matches!(packet, Packet::Answer { .. }));
                        **modelled = of_replica;
                        count
                    }
                    None => continue,
                },
                2 | 3 => {
                    *replica = Some(((**modelled).clone(), history.len()));
                    continue;
                }
                _ => continue,
            };
            lost.extend(history.drain(kept..).map(|made| made.request));
            (*losses, *replica, *last) = (*losses + 1, None, modelled.model.version);
        }
        if what == 4 {
            // Back by less, all in all, than an id is remembered for longer than its commit may be made.
            let back_ms = self.random.i64(0..20_000).min(self.back_ms);
            self.back_ms -= back_ms;
            self.ahead_ms += if self.random.bool() { self.random.i64(0..1_000_000) } else { -back_ms };
        }
        Ok(())
    }

    /// A step of a request; at its end, its commit is sent.
    fn run(&mut self, index: usize) -> Result<(), String> {
        let request = &mut self.requests[index];
        let tenant = &self.tenants[request.tenant];
        let goes_on = request.program.go(&tenant.store);
        let depends = request.program.outer.column().commit(true);
        if request.first_read.is_none() && depends.expected.len() + depends.listed.len() > 0 {
            request.first_read = Some((tenant.losses, (tenant.last, self.tick)));
        }
        if let Some(wrong) = &request.program.wrong {
            return Err(wrong.clone());
        }
        if goes_on {
            return Ok(());
        }
        let redis = Redis::new("redis://127.0.0.1:1", KvLimits::default(), String::new).unwrap();
        let space = match &tenant.store {
            Store::Embedded(space) => Space::Embedded(space.clone()),
            Store::Redis(_) => Space::Redis(redis.space("t")),
        };
        let is_empty = request.program.outer.column().is_empty();
        let settled = request.program.outer.settle(!request.program.failed, Some(&space));
        match settled {
            Settled::Done => {
                let request = self.requests.swap_remove(index);
                let tenant = &mut self.tenants[request.tenant];
                let now = (tenant.losses, (tenant.last, self.tick));
                // One that reads a single key of Redis was there when it did.
                let (losses, place) = if matches!(space, Space::Redis(_)) { request.first_read.unwrap_or(now) } else { now };
                if losses == tenant.losses && !is_empty {
                    tenant.history.push(Made { end: Some(self.tick), ..made(&request, place) });
                }
                Ok(())
            }
            Settled::Stale => self.run_again(index),
            Settled::Commit(commit) => {
                // As the driver does.
                commit.changes.iter().for_each(|(key, _)| turn(&request.program.outer, key));
                let believed = self.believed_ms.map(|ahead_ms| self.now_ms.saturating_add_signed(ahead_ms));
                let not_after = believed.map_or(0, |now_ms| now_ms + MADE_WITHIN_MS);
                let incarnation = tenant.told;
                let sent = Sent { commit, tries: TRIES, not_after, incarnation, was_lost: false };
                self.requests[index].sent = Some(sent);
                self.send(index);
                Ok(())
            }
            Settled::Failed(error) => Err(format!("{error}")),
        }
    }

    fn send(&mut self, index: usize) {
        let (request, until) = (&mut self.requests[index], self.now_ms + ON_THE_WAY_MS_MAX);
        let made = made(request, (0, 0));
        let Some(sent) = &mut request.sent else { return };
        sent.tries -= 1;
        if self.broken == Some(Broken::NewIds) {
            sent.commit.id = Some(self.random.u128(..).to_ne_bytes());
        }
        let Sent { commit, not_after, incarnation, .. } = sent.clone();
        let packet = Packet::Commit { request: request.index, commit, not_after, incarnation, made };
        self.wire.push((until, request.tenant, packet));
    }

    /// A worker does not wait any longer for an answer.
    fn send_again(&mut self) {
        let waiting: Vec<usize> = (0..self.requests.len()).filter(|index| self.requests[*index].sent.is_some()).collect();
        let Some(index) = self.random.choice(&waiting).copied() else { return };
        // The embedded store answers.
        if !self.is_redis(self.requests[index].tenant) {
            return;
        }
        let Some(sent) = &mut self.requests[index].sent else { return };
        sent.was_lost = true;
        if sent.tries > 0 {
            self.send(index);
        } else {
            // The client is told that nothing is known.
            self.requests.swap_remove(index);
        }
    }

    fn deliver(&mut self, tenant: usize, packet: Packet) -> Result<(), String> {
        match packet {
            Packet::Commit { request, commit, not_after, incarnation, made } => {
                let answer = self.make(tenant, &commit, (not_after, incarnation), made)?;
                let (until, id) = (self.now_ms + ON_THE_WAY_MS_MAX, commit.id.unwrap_or_default());
                self.wire.push((until, tenant, Packet::Answer { request, id, answer }));
                Ok(())
            }
            Packet::Answer { request, id, answer } => self.answered(request, id, answer),
        }
    }

    /// The store is asked for a commit.
    fn make(
        &mut self,
        tenant: usize,
        commit: &Commit,
        (not_after, incarnation): (u64, u64),
        made: Made,
    ) -> Result<Answer, String> {
        let (clock, broken, tick) = (self.store_clock(), self.broken, self.tick);
        let step = if broken == Some(Broken::SameVersions) { 1 } else { self.random.u64(1..=1 << 20) };
        let first = if broken == Some(Broken::SameVersions) { 0 } else { self.random.u64(1 << 40..1 << 41) };
        let Tenant { store, history, last, .. } = &mut self.tenants[tenant];
        let outcome = match store {
            Store::Embedded(space) => waited(space.clone().commit(commit.clone())),
            Store::Redis(modelled) => {
                let id = commit.id.unwrap_or_default();
                if let Some((answer, _)) = modelled.known.get(&id).filter(|(_, until)| *until > clock) {
                    return Ok(*answer);
                }
                let is_in_time = clock <= not_after && not_after <= clock + 2 * KNOWN_MS;
                let is_late = !is_in_time || (incarnation != modelled.incarnation && broken != Some(Broken::SameIncarnation));
                if is_late && broken != Some(Broken::LateIsMade) {
                    return Ok(Answer::Late(clock, modelled.incarnation));
                }
                let before = modelled.model.version;
                // The model counts by one.
                modelled.model.version = before.max(first) + step - 1;
                if broken == Some(Broken::OutOfOrder) && before > 0 && step % 2 == 0 {
                    modelled.model.version = before - 2;
                }
                let outcome = modelled.model.commit(commit);
                if !matches!(outcome, Ok(Outcome::Committed { .. })) || commit.changes.is_empty() {
                    modelled.model.version = before;
                }
                let outcome = match outcome {
                    Ok(Outcome::Committed { sum, .. }) => Ok(Outcome::Committed { version: modelled.model.version, sum }),
                    other => other,
                };
                if let (Ok(outcome), true) = (&outcome, broken != Some(Broken::Forgetful)) {
                    let until = not_after.max(clock) + KNOWN_MS;
                    modelled.known.insert(id, (Answer::Outcome(*outcome), until));
                }
                outcome
            }
        };
        let outcome = outcome.map_err(|error| error.to_string())?;
        if let Outcome::Committed { version, .. } = outcome {
            if history.iter().any(|before| before.request == made.request) {
                return Err(format!("request {} is made twice", made.request));
            }
            *last = version;
            history.push(Made { place: (version, tick), ..made });
        }
        Ok(Answer::Outcome(outcome))
    }

    fn answered(&mut self, request: usize, id: CommitId, answer: Answer) -> Result<(), String> {
        // One that has ended without it, or was answered before, or is another attempt, does not wait for it.
        let waits = |waiting: &Request| {
            waiting.index == request && waiting.sent.as_ref().is_some_and(|sent| sent.commit.id.unwrap_or_default() == id)
        };
        let Some(index) = self.requests.iter().position(waits) else { return Ok(()) };
        let Some(sent) = self.requests[index].sent.clone() else { return Ok(()) };
        let outcome = match answer {
            Answer::Outcome(outcome) => outcome,
            Answer::Late(..) if sent.was_lost => {
                // It may have been made before.
                self.requests.swap_remove(index);
                return Ok(());
            }
            Answer::Late(clock, incarnation) => {
                self.believed_ms = Some(clock.cast_signed() - self.now_ms.cast_signed());
                let sent = Sent { tries: TRIES, not_after: clock + MADE_WITHIN_MS, incarnation, ..sent };
                self.tenants[self.requests[index].tenant].told = incarnation;
                self.requests[index].sent = Some(sent);
                self.send(index);
                return Ok(());
            }
        };
        let transaction = &self.requests[index].program.outer;
        transaction.came(Ok(outcome));
        match transaction.take_outcome(&sent.commit) {
            Settled::Done => {
                let tenant = &mut self.tenants[self.requests[index].tenant];
                self.requests.swap_remove(index);
                match tenant.history.iter_mut().find(|made| made.request == request) {
                    Some(made) => made.end = Some(self.tick),
                    None if tenant.lost.contains(&request) => {}
                    None => return Err(format!("request {request} is acknowledged and was not made")),
                }
                Ok(())
            }
            Settled::Stale => self.run_again(index),
            settled => Err(format!("{settled:?}")),
        }
    }

    /// What it has read is not there any more.
    fn run_again(&mut self, index: usize) -> Result<(), String> {
        let request = &mut self.requests[index];
        if request.program.only_adds() {
            return Err(format!("request {} only adds, and runs again", request.index));
        }
        let (number, tenant) = (request.program.number, request.tenant);
        let program = self.program(number, tenant);
        let request = &mut self.requests[index];
        (request.program, request.first_read, request.sent) = (program, None, None);
        Ok(())
    }

    /// What a tenant's store holds is what came of its history, one after the other, without any mistake.
    fn check(&self, tenant: usize) -> Result<(), String> {
        with(None, || self.compare(tenant))
    }

    fn compare(&self, tenant: usize) -> Result<(), String> {
        let Tenant { store, history, .. } = &self.tenants[tenant];
        let mut history = history.clone();
        history.sort_by_key(|made| made.place);
        for (index, later) in history.iter().enumerate() {
            let overtaken = history[..index].iter().find(|earlier| later.end.is_some_and(|end| end < earlier.begin));
            if let Some(earlier) = overtaken {
                return Err(format!(
                    "request {} stands before {}, which was over before it came",
                    earlier.request, later.request
                ));
            }
        }
        let mut plain = Model::default();
        for Made { request, number, seen, failed, .. } in &history {
            let mut program = Program::new(*number);
            while program.go(&plain) {}
            if (&program.seen, program.failed) != (seen, *failed) {
                return Err(format!("request {request} has seen what never was: {seen} instead of {}", program.seen));
            }
            plain.commit(&program.outer.column().commit(!failed)).map_err(|error| error.to_string())?;
        }
        let (keys, _) = store.keys();
        let held: BTreeMap<_, _> = keys.into_iter().filter_map(|key| Some((key.clone(), store.entry(&key)?.value))).collect();
        if plain.values() == held { Ok(()) } else { Err("the store holds something else".to_owned()) }
    }
}

fn made(request: &Request, place: (u64, u64)) -> Made {
    let Program { number, seen, failed, .. } = &request.program;
    let (request, begin, seen) = (request.index, request.begin, seen.clone());
    Made { request, seen, failed: *failed, number: *number, place, begin, end: None }
}

/// How many are played: `SEEDS` of them, if the environment says so.
fn histories() -> u64 {
    std::env::var("SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(HISTORIES)
}

/// What a future comes to whose store is another thread.
pub(super) fn waited<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    loop {
        if let Some(output) = (&mut future).now_or_never() {
            return output;
        }
        std::thread::yield_now();
    }
}

/// Turns have a time limit, which needs a runtime.
pub(crate) fn within_runtime<T>(work: impl FnOnce() -> T) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let _within = runtime.enter();
    work()
}

fn in_redis() -> Vec<Store> {
    (0..2).map(|_| Store::Redis(Box::default())).collect()
}

#[test]
fn histories_in_redis_are_strictly_serialisable() {
    within_runtime(|| {
        for seed in 0..histories() {
            play(seed, in_redis(), None).unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}"));
        }
    });
}

#[test]
fn histories_in_the_embedded_store_are_strictly_serialisable() {
    let store = Embedded::in_memory(KvLimits::default()).unwrap();
    let of = |seed: u64| (0..2).map(|tenant| Store::Embedded(store.space(&format!("{seed}-{tenant}")))).collect();
    within_runtime(|| {
        for seed in 0..histories() {
            play(seed, of(seed), None).unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}"));
        }
    });
}

/// Every mistake is noticed; which seed does is shown by `--nocapture`.
#[test]
fn each_mistake_is_noticed_within_a_thousand_seeds() {
    let mechanism = [
        Mutant::LostRead,
        Mutant::AddIsRead,
        Mutant::SumIsBlind,
        Mutant::AbsorbUnchecked,
        Mutant::TrapUnvalidated,
        Mutant::LocksDecide,
        Mutant::ExpectedUnread,
    ];
    let store = [
        Broken::SameVersions,
        Broken::OutOfOrder,
        Broken::Forgetful,
        Broken::LateIsMade,
        Broken::SameIncarnation,
        Broken::NewIds,
    ];
    let all = mechanism.map(|mutant| (Some(mutant), None)).into_iter().chain(store.map(|broken| (None, Some(broken))));
    within_runtime(|| {
        for (mutant, broken) in all {
            let noticed = (0..NOTICED).find_map(|seed| Some((seed, with(mutant, || play(seed, in_redis(), broken)).err()?)));
            let Some((seed, wrong)) = noticed else { panic!("{mutant:?} {broken:?} is not noticed") };
            println!("{mutant:?} {broken:?}: seed {seed}: {wrong}");
        }
    });
}
