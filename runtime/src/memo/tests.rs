//! Answers from the table against what a run at that moment would answer: random functions, requests, writers and deployments, from a seed; and the same with real threads.

mod flights;
mod memory;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::panic::catch_unwind;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use bytes::Bytes;
use fastrand::Rng;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, StatusCode, Uri};
use serde_json::json;

use super::entry::CACHE_STATUS;
use super::*;
use crate::config;
use crate::host::{Effect, HeadField};
use crate::invoke::by_hand;
use crate::invoke::function::{Function, Home};
use crate::kv::{BucketKey, BucketName, Change, Commit, Embedded, KvError, KvLimits, Outcome, Store};

mod model;

const SEEDS: u64 = 200;
const STEPS: usize = 160;
const KEYS: u64 = 3;

/// What a function does next. All that it learns is in its answer, and decides what comes after.
#[derive(Clone, Copy, Debug)]
enum Op {
    Header(&'static str),
    Headers,
    Method,
    Target,
    Get(u64),
    Body,
    /// These may not be remembered.
    Clock,
    Stream,
    Put(u64),
    FailingGet,
}

/// A function: the operations that it has, of which what it knows so far chooses the next.
#[derive(Clone, Debug)]
struct Program {
    version: u64,
    ops: Vec<Op>,
    length: usize,
}

#[derive(Clone, Debug)]
struct Request {
    head: RequestHead,
    body: &'static [&'static str],
}

/// A run under way.
#[derive(Debug, Default)]
struct Run {
    text: String,
    steps: usize,
    trace: EffectTrace,
    is_streamed: bool,
}

fn key(number: u64) -> BucketKey {
    BucketName::new(b"b").unwrap().key(format!("k{number}").as_bytes()).unwrap()
}

fn body(pieces: &[&'static str]) -> Body {
    let mut body = Body::default();
    pieces.iter().for_each(|piece| body.push(Bytes::from_static(piece.as_bytes())));
    body
}

impl Program {
    fn random(random: &mut Rng, version: u64) -> Program {
        let all = [
            Op::Header("x-a"),
            Op::Header("x-b"),
            Op::Headers,
            Op::Method,
            Op::Target,
            Op::Get(0),
            Op::Get(1),
            Op::Get(2),
            Op::Body,
            Op::Clock,
            Op::Stream,
            Op::Put(0),
            Op::FailingGet,
        ];
        // Most functions are those that may be remembered.
        let kinds = if random.u8(..3) == 0 { all.len() } else { 9 };
        let ops = (0..random.usize(1..=4)).map(|_| all[random.usize(..kinds)]).collect();
        Program { version, ops, length: random.usize(1..=4) }
    }

    /// Goes one step on. Whether it has ended.
    fn step(&self, run: &mut Run, request: &Request, store: &World) -> bool {
        if run.steps == self.length {
            return true;
        }
        let so_far: usize = run.text.bytes().map(usize::from).sum();
        let op = self.ops[(so_far + run.steps) % self.ops.len()];
        run.steps += 1;
        let (text, trace) = (&mut run.text, &mut run.trace);
        let mut does = |effect| trace.effects.insert(effect);
        match op {
            Op::Header(name) => {
                does(Effect::Head);
                trace.head.insert(HeadField::Header(name.to_owned()));
                let values: Vec<_> = request.head.headers.get_all(name).iter().collect();
                write!(text, "[{name} {values:?}]").unwrap();
            }
            Op::Headers => {
                does(Effect::Head);
                trace.head.insert(HeadField::Headers);
                write!(text, "[{:?}]", request.head.headers).unwrap();
            }
            Op::Method => {
                does(Effect::Head);
                trace.head.insert(HeadField::Method);
                write!(text, "[{}]", request.head.method).unwrap();
            }
            Op::Target => {
                does(Effect::Head);
                trace.head.insert(HeadField::Target);
                write!(text, "[{} {}]", request.head.target, request.head.is_secure).unwrap();
            }
            Op::Get(number) => {
                does(Effect::KvRead);
                let (version, value) = store.get(number);
                trace.read.push((key(number), version));
                write!(text, "[{value:?}]").unwrap();
            }
            Op::Body => {
                does(Effect::Stream);
                write!(text, "{:?}", request.body).unwrap();
            }
            Op::Clock => {
                does(Effect::Entropy);
                write!(text, "[now {}]", store.clock.fetch_add(1, Ordering::Relaxed)).unwrap();
            }
            Op::Stream => {
                does(Effect::Reply);
                run.is_streamed = true;
            }
            Op::Put(number) => {
                does(Effect::KvWrite);
                store.put(number, "own");
            }
            Op::FailingGet => {
                does(Effect::KvRead);
                trace.read_failed = true;
                write!(text, "[failed {}]", store.clock.fetch_add(1, Ordering::Relaxed)).unwrap();
            }
        }
        false
    }

    fn answer(&self, run: &Run) -> String {
        format!("v{} {}", self.version, run.text)
    }
}

/// A run with its version, what it was asked, and its request.
type Begun = (Program, Arc<Function>, Box<Asked>, Request, Run);

/// A store, and the time.
struct World {
    space: Space,
    runtime: tokio::runtime::Runtime,
    clock: AtomicU64,
    _store: Store,
}

impl World {
    fn new() -> World {
        let store = Store::Embedded(Embedded::in_memory(KvLimits::default()).unwrap());
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        World { space: store.space("t"), runtime, clock: AtomicU64::new(0), _store: store }
    }

    fn now(&self) -> Now<'_> {
        Now { space: Some(&self.space), ..nothing() }
    }

    fn get(&self, number: u64) -> (u64, Option<Bytes>) {
        let Space::Embedded(space) = &self.space else { unreachable!() };
        let entry = space.get_many(&[key(number)]).unwrap().remove(0);
        entry.map_or((0, None), |entry| (entry.version, Some(entry.value)))
    }

    fn commit(&self, changes: Vec<(BucketKey, Change)>) {
        let outcome = self.make(Commit::new(Vec::new(), changes));
        assert!(matches!(outcome, Ok(Outcome::Committed { .. })), "{outcome:?}");
    }

    fn make(&self, commit: Commit) -> Result<Outcome, KvError> {
        self.runtime.block_on(self.space.clone().commit(commit))
    }

    fn put(&self, number: u64, value: &'static str) {
        self.commit(vec![(key(number), Change::Put(Bytes::from_static(value.as_bytes())))]);
    }
}

fn request(random: &mut Rng) -> Request {
    let mut headers = HeaderMap::new();
    for name in ["x-a", "x-b", "x-c"] {
        for value in [&[][..], &[][..], &[""], &["1"], &["1", "1"]][random.usize(..5)] {
            headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
    }
    let method = if random.u8(..4) == 0 { Method::POST } else { Method::GET };
    let target = Uri::from_static(["/x", "/x", "/x?y"][random.usize(..3)]);
    let bodies: [&[&str]; 4] = [&[], &["a"], &["ab"], &["a", "b"]];
    let head = RequestHead { method, target, headers, is_secure: random.u8(..5) == 0 };
    Request { head, body: bodies[random.usize(..4)] }
}

/// A version, as a deployment makes it.
fn deployed(program: Program, settings: &serde_json::Value) -> (Program, Arc<Function>) {
    let config = config::function("settings", "f", Path::new("f.wasm"), settings.clone()).unwrap();
    let home = Home { version: program.version, ..Home::alone() };
    (program, Arc::new(Function::new(by_hand::loaded(&config), home)))
}

/// Neither a store nor other functions.
fn nothing() -> Now<'static> {
    Now { space: None, version: &|_| None }
}

fn well(content: &Content) -> Ended<'_> {
    Ended {
        content: Some(content),
        head: None,
        has_trailers: false,
        was_refused_memory: false,
        called: Ok(&[]),
        is_cancelled: false,
    }
}

fn memo(function: &Function) -> &Arc<Memo> {
    function.memo.as_ref().unwrap()
}

/// A run that is over is learnt, as a worker does that. What answers those that wait for it.
fn learnt(memo: &Memo, asked: &mut Asked, program: &Program, run: &Run) -> Option<Arc<Entry>> {
    // What went out while it was written is not there any more.
    let text = if run.is_streamed { String::new() } else { program.answer(run) };
    let content = Content::Whole(text.into());
    memo.learn(asked, &run.trace, &well(&content), |_| ())
}

/// A request that waits for the run of an equal one.
struct Waiting {
    program: Program,
    function: Arc<Function>,
    follower: Follower,
    request: Request,
    /// What a run answers when that one lands.
    expected: Option<String>,
}

/// What is under way.
struct Play {
    random: Rng,
    world: World,
    program: Program,
    function: Arc<Function>,
    runs: Vec<Begun>,
    /// Runs that are learnt, and what answers those that wait for them.
    landing: Vec<(Box<Asked>, Option<Arc<Entry>>)>,
    waiting: Vec<Waiting>,
    requests: Vec<Request>,
    /// Hits, hits of entries that had read the store, and requests that were answered by the run of an equal one.
    counts: [u64; 3],
}

impl Play {
    fn new(seed: u64, settings: &serde_json::Value) -> Play {
        let mut random = Rng::with_seed(seed);
        let (program, function) = deployed(Program::random(&mut random, 1), settings);
        let (runs, landing, waiting, requests) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Play { random, world: World::new(), program, function, runs, landing, waiting, requests, counts: [0; 3] }
    }

    /// What a run answers now.
    fn answer(&self, program: &Program, request: &Request) -> String {
        let mut run = Run::default();
        while !program.step(&mut run, request, &self.world) {}
        program.answer(&run)
    }

    fn request(&mut self) {
        // Some requests are sent again.
        let random = &mut self.random;
        let request = match random.usize(..=self.requests.len().min(6)) {
            0 => request(random),
            again => self.requests.get(self.requests.len() - again).cloned().unwrap_or_else(|| request(random)),
        };
        self.requests.push(request.clone());
        let (program, function) = (self.program.clone(), Arc::clone(&self.function));
        let may_wait = self.random.u8(..4) > 0;
        let look = memo(&function).look(&body(request.body), Some(&request.head), self.world.now(), may_wait, |_| ());
        match look {
            Look::Hit(entry) => {
                assert_eq!(String::from_utf8_lossy(&entry.body), self.answer(&program, &request), "{request:?} {program:?}");
                assert_eq!(entry.head(How::Hit).headers.get(&CACHE_STATUS).unwrap(), "sledge; hit");
                self.counts[0] += 1;
                self.counts[1] += u64::from(!entry.store.expected.is_empty());
            }
            Look::Wait(follower) => self.waiting.push(Waiting { program, function, follower, request, expected: None }),
            Look::Run(asked) => self.runs.push((program, function, asked, request, Run::default())),
            Look::Collapsed(_) | Look::Check(_) | Look::Bypass => {
                panic!("its body is whole, it has changed nothing and not waited")
            }
        }
    }

    /// A run goes one step on, or is dropped, as where its client goes.
    fn run(&mut self) {
        let index = self.random.usize(..self.runs.len());
        if self.random.u8(..24) == 0 {
            self.runs.swap_remove(index);
            return;
        }
        let (program, function, asked, request, run) = &mut self.runs[index];
        if program.step(run, request, &self.world) {
            let entry = learnt(memo(function), asked, program, run);
            let (_, _, asked, _, _) = self.runs.swap_remove(index);
            self.landing.push((asked, entry));
        }
    }

    /// A run lands. Those that wait for it are to get what a run answers now.
    fn land(&mut self) {
        let index = self.random.usize(..self.landing.len());
        let (asked, entry) = self.landing.swap_remove(index);
        asked.land(entry.as_ref(), self.world.now());
        let context = std::task::Context::from_waker(std::task::Waker::noop());
        for index in 0..self.waiting.len() {
            let Waiting { program, follower, request, expected, .. } = &self.waiting[index];
            if entry.is_some() && expected.is_none() && follower.poll(&context).is_ready() {
                let answer = self.answer(program, request);
                self.waiting[index].expected = Some(answer);
            }
        }
    }

    /// A request waits no longer: for whatever reason.
    fn go_on(&mut self) {
        // Most wait until they are answered.
        let landed = self.waiting.iter().position(|waiting| waiting.expected.is_some());
        let index = landed.filter(|_| self.random.u8(..8) > 0).unwrap_or_else(|| self.random.usize(..self.waiting.len()));
        let Waiting { program, function, follower, request, expected } = self.waiting.swap_remove(index);
        match follower.end(self.world.now(), |_| ()) {
            Look::Collapsed(entry) => {
                let answer = String::from_utf8_lossy(&entry.body).into_owned();
                assert_eq!(Some(answer), expected, "{request:?} {program:?}");
                self.counts[2] += 1;
            }
            Look::Run(asked) => self.runs.push((program, function, asked, request, Run::default())),
            Look::Hit(_) | Look::Check(_) | Look::Wait(_) | Look::Bypass => panic!("it waited, and has changed nothing"),
        }
    }
}

/// Gives the counts of hits, of hits of entries that had read the store, and of requests that waited and did not run.
fn simulate(seed: u64, memo_bytes_max: u64) -> [u64; 3] {
    let settings = json!({ "memo": "auto", "memo_bytes_max": memo_bytes_max });
    let mut play = Play::new(seed, &settings);
    for _ in 0..STEPS {
        match play.random.u8(..20) {
            0 => play.world.put(play.random.u64(..KEYS), ["", "1", "2"][play.random.usize(..3)]),
            1 => play.world.commit(vec![(key(play.random.u64(..KEYS)), Change::Delete)]),
            2 if play.random.u8(..4) == 0 => {
                let version = play.program.version + 1;
                let program = Program::random(&mut play.random, version);
                (play.program, play.function) = deployed(program, &settings);
            }
            3..=8 if !play.runs.is_empty() => play.run(),
            9..=11 if !play.landing.is_empty() => play.land(),
            12 | 13 if play.waiting.iter().any(|waiting| waiting.expected.is_some()) => play.go_on(),
            14 if !play.waiting.is_empty() => play.go_on(),
            _ => play.request(),
        }
        assert!(memo(&play.function).bytes() as u64 <= memo_bytes_max);
    }
    play.counts
}

#[test]
fn an_answer_from_the_table_is_what_a_run_would_answer_then() {
    let mut sums = [0; 3];
    for seed in 0..SEEDS {
        let hits = catch_unwind(|| simulate(seed, 1 << 20)).unwrap_or_else(|_| panic!("seed {seed}"));
        sums.iter_mut().zip(hits).for_each(|(sum, hits)| *sum += hits);
    }
    assert!(sums.iter().all(|hits| *hits > 50), "the table answers too little for this to prove anything: {sums:?}");
}

/// What comes of a look where the thread waits for the run of an equal request.
fn waited(look: Look, now: Now<'_>) -> Look {
    let Look::Wait(follower) = look else { return look };
    let waker = std::task::Waker::from(Arc::new(Unpark(thread::current())));
    while follower.poll(&std::task::Context::from_waker(&waker)).is_pending() {
        thread::park();
    }
    follower.end(now, |_| ())
}

struct Unpark(thread::Thread);

impl std::task::Wake for Unpark {
    fn wake(self: Arc<Unpark>) {
        self.0.unpark();
    }
}

/// One value under two keys, always written together. Requests run or are answered from the table, at the same time as the writer: each answer has both of one commit, none older than what was
/// there when its request came.
#[test]
fn answers_are_of_one_moment_behind_the_requests_arrival_also_where_threads_write() {
    let world = World::new();
    let (_, function) = deployed(Program { version: 1, ops: Vec::new(), length: 0 }, &json!({ "memo": "auto" }));
    let Space::Embedded(space) = &world.space else { unreachable!() };
    let (written, hits, is_over) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
    let ask = || {
        while !is_over.load(Ordering::Relaxed) {
            let before = written.load(Ordering::SeqCst);
            let look = memo(&function).look(&body(&["q"]), None, world.now(), true, |_| ());
            let mut asked = match waited(look, world.now()) {
                Look::Hit(entry) | Look::Collapsed(entry) => {
                    let text = String::from_utf8_lossy(&entry.body).into_owned();
                    let (a, b) = text.split_once(' ').unwrap();
                    assert_eq!(a, b, "of two commits");
                    assert!(a.parse::<u64>().unwrap() >= before, "{a} is older than {before}, which was there");
                    hits.fetch_add(1, Ordering::Relaxed);
                    continue;
                }
                Look::Run(asked) => asked,
                _ => panic!("it has changed nothing, its body is whole, and it may not wait"),
            };
            let (mut run, mut texts) = (Run::default(), Vec::new());
            run.trace.effects.insert(Effect::KvRead);
            // One after the other: what it has read may be of two commits.
            for number in 0..2 {
                let entry = space.get_many(&[key(number)]).unwrap().remove(0).unwrap();
                run.trace.read.push((key(number), entry.version));
                texts.push(String::from_utf8(entry.value.to_vec()).unwrap());
            }
            let content = Content::Whole(texts.join(" ").into());
            let entry = memo(&function).learn(&mut asked, &run.trace, &well(&content), |_| ());
            asked.land(entry.as_ref(), world.now());
        }
    };
    let write = |value: u64| {
        let put = |number| (key(number), Change::Put(value.to_string().into()));
        world.commit(vec![put(0), put(1)]);
        written.store(value, Ordering::SeqCst);
    };
    write(1);
    thread::scope(|scope| {
        // Dropped where a thread panics, too.
        let askers: Vec<_> = (0..3).map(|_| scope.spawn(ask)).collect();
        for value in 2..300 {
            write(value);
            thread::yield_now();
        }
        // The last value is answered from the table.
        let before = hits.load(Ordering::Relaxed);
        while hits.load(Ordering::Relaxed) < before + 100 && askers.iter().all(|asker| !asker.is_finished()) {
            thread::yield_now();
        }
        is_over.store(true, Ordering::Relaxed);
    });
}

/// Looks, and runs where it has to. What is answered, and whether that was a run.
fn asked(memo: &Arc<Memo>, text: &str, effect: Effect, events: &mut Vec<Event>) -> bool {
    let mut asked = match memo.look(&body(&["q"]), None, nothing(), false, |event| events.push(event)) {
        Look::Hit(_) => return false,
        Look::Run(asked) => asked,
        _ => panic!("it has no store, its body is whole, and it may not wait"),
    };
    let mut trace = EffectTrace::default();
    trace.effects.insert(effect);
    let content = Content::Whole(text.to_owned().into());
    let head = ReplyHead { status: StatusCode::CREATED, ..ReplyHead::default() };
    let ended = Ended { head: Some(&head), ..well(&content) };
    memo.learn(&mut asked, &trace, &ended, |event| events.push(event));
    true
}

#[test]
fn what_the_developer_says_is_pure_is_looked_at_again_and_switched_off_where_it_is_not() {
    let health = Arc::new(Health::default());
    let pure = |pure| {
        let of = Of { function: "f".to_owned(), version: 3, health: Some(Arc::clone(&health)), budget: None };
        Memo::new(of, Settings { answers: true, pure, bytes_max: 1 << 20, whole_head: false })
    };
    let mut events = Vec::new();
    let unsaid = pure(false);
    assert!((0..10).all(|_| asked(&unsaid, "a", Effect::Entropy, &mut events)), "it read the clock");
    assert!(events.contains(&Event::Refused(Why::Entropy)));

    let honest = pure(true);
    events.clear();
    let runs = (0..2 * COMPARED + 2).filter(|_| asked(&honest, "a", Effect::Entropy, &mut events)).count();
    assert_eq!(runs, 2 + 2, "two make the entry, two are compared with it");
    assert_eq!(events.iter().filter(|event| **event == Event::Compared).count(), 2);
    assert!(health.problems_now().is_empty());

    let (lying, mut number) = (pure(true), 0);
    let mut ask = || {
        number += 1;
        asked(&lying, &number.to_string(), Effect::Entropy, &mut Vec::new())
    };
    let runs = (0..COMPARED + 2).filter(|_| ask()).count();
    assert_eq!(runs, 3, "two make the entry, one is compared with it");
    assert!((0..10).all(|_| ask()), "from then on all run");
    let problems = health.problems_now();
    assert_eq!(problems[0].subject, "memo f version 3");
    assert!(lying.explained().is_off && lying.bytes() == 0);
    drop(lying);
    assert!(health.problems_now().is_empty(), "its version is gone");
}

#[test]
fn runs_are_explained_and_only_looked_at_where_nothing_more_is_wanted() {
    let of = Of { function: "f".to_owned(), version: 1, health: None, budget: None };
    let memo = Memo::new(of, Settings { answers: false, pure: false, bytes_max: 1 << 20, whole_head: false });
    let mut events = Vec::new();
    assert!((0..3).all(|_| asked(&memo, "a", Effect::Safe, &mut events)) && asked(&memo, "a", Effect::External, &mut events));
    assert!(!events.contains(&Event::Stored));
    let explained = serde_json::to_value(memo.explained()).unwrap();
    assert_eq!((&explained["memo"], &explained["runs"], &explained["repeatable"]), (&json!("observe"), &json!(4), &json!(3)));
    let refused: BTreeMap<_, _> = memo.explained().refused.iter().map(|why| (why.reason, why.runs)).collect();
    assert_eq!(refused, BTreeMap::from([("external", 1)]));
    assert_eq!(explained["effects"], json!(["safe", "external"]));
}

/// A body that has not come, or that has something behind it, is in no key.
#[test]
fn what_cannot_be_compared_runs_unwatched() {
    let (_, function) = deployed(Program { version: 1, ops: Vec::new(), length: 0 }, &json!({ "memo": "auto" }));
    let mut with_trailers = body(&["q"]);
    with_trailers.set_trailers([(HeaderName::from_static("x"), HeaderValue::from_static("y"))].into_iter().collect());
    let look = |body: &Body| matches!(memo(&function).look(body, None, nothing(), false, |_| ()), Look::Bypass);
    assert!(look(&with_trailers) && !look(&body(&["q"])));
}
