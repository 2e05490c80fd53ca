//! Executions that go ahead of themselves: whatever is guessed, changed by others meanwhile, lost by a crash or refused by the disk, each has the history and leaves the values that it has and leaves without
//! speculation, and each of its effects is there once.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::LazyLock;

use super::crashes::each;
use super::*;
use crate::config::Isolation;
use crate::kv::Redis;
use crate::kv::redis::tests::played::{Lossy, OwnServer};
use crate::speculate::Of;
use crate::speculate::outputs::Rest;

/// Kinds of workflows, and how many executions of each there are at most.
const KINDS: [&str; 4] = ["chain", "both", "map", "again"];
const NAMES: usize = 2;
/// Keys of one execution.
const KEYS: usize = 7;

/// Seeds of a test: `SEEDS` of them, from `FROM` on, if the environment says so.
fn seeds() -> Range<usize> {
    let number = |name| std::env::var(name).ok().and_then(|number| number.parse::<usize>().ok());
    let from = number("FROM").unwrap_or(0);
    from..from + number("SEEDS").unwrap_or(120)
}

/// A state that reads one of the execution's keys and writes another.
fn link(from: usize, to: usize, more: &Value, next: Option<&str>) -> Value {
    let mut input = json!({ "do": "link", "from.$": format!("$.k[{from}]"), "to.$": format!("$.k[{to}]") });
    for (name, value) in more.as_object().into_iter().flatten() {
        input[name] = value.clone();
    }
    let mut state = call(&input, next);
    state["ResultPath"] = json!(format!("$.r{to}"));
    state
}

fn shared() -> Value {
    json!({ "shared": "shared" })
}

fn workflows() -> Vec<(&'static str, Value)> {
    let mut trap = call(&json!({ "do": "trap", "key": "trap" }), Some("Add"));
    trap["Catch"] = json!([{ "ErrorEquals": ["States.ALL"], "ResultPath": "$.trapped", "Next": "Add" }]);
    let mut flaky = call(&json!({ "do": "flaky", "key.$": "$.k[5]", "times": 1 }), Some("B"));
    flaky["Retry"] = json!([{ "ErrorEquals": ["Flaky"], "IntervalSeconds": 1, "BackoffRate": 1.0, "MaxAttempts": 3 }]);
    let choice = json!({ "Type": "Choice", "Choices": [{ "Variable": "$.r2.big", "BooleanEquals": true, "Next": "C" }], "Default": "Trap" });
    let chain = json!({
        "A": link(0, 1, &shared(), Some("B")),
        "B": link(1, 2, &json!({ "n.$": "$.r1.n" }), Some("Which")),
        "Which": choice,
        "C": link(2, 3, &shared(), Some("Trap")),
        "Trap": trap,
        "Add": { "Type": "Task", "Resource": "kv:add", "Parameters": { "Bucket": "b", "Key.$": "$.k[6]" }, "ResultPath": null, "Next": "D" },
        "D": link(2, 4, &json!({ "n.$": "$.r2.n" }), Some("E")),
        "E": link(4, 5, &shared(), None),
    });
    let branch = |[first, second]: [&str; 2], from: usize, to: usize| {
        let states = json!({ first: link(from, to, &shared(), Some(second)), second: link(to, from, &json!({}), None) });
        machine(first, &states)
    };
    let both = json!({
        "Both": { "Type": "Parallel", "Branches": [branch(["V", "W"], 0, 1), branch(["X", "Y"], 2, 3)], "ResultPath": "$.both", "Next": "Z" },
        "Z": link(1, 4, &json!({ "n.$": "$.both[1].r3.n" }), None),
    });
    let item = json!({ "Type": "Task", "Resource": "fn:f", "Parameters": { "do": "link", "from.$": "$.from", "to.$": "$.to", "shared": "shared" }, "End": true });
    let map = json!({
        "Each": { "Type": "Map", "ItemsPath": "$.items", "MaxConcurrency": 2, "ItemProcessor": machine("M", &json!({ "M": item })), "ResultPath": "$.each", "Next": "Z" },
        "Z": link(1, 4, &json!({ "n.$": "$.each[1].n" }), None),
    });
    let again = json!({ "A": link(0, 1, &json!({}), Some("Flaky")), "Flaky": flaky, "B": link(1, 2, &shared(), None) });
    vec![
        ("chain", machine("A", &chain)),
        ("both", machine("Both", &both)),
        ("map", machine("Each", &map)),
        ("again", machine("A", &again)),
    ]
}

fn keys_of(kind: usize, name: usize) -> Vec<String> {
    (0..KEYS).map(|key| format!("{}-{name}-{key}", KINDS[kind])).collect()
}

fn input(kind: usize, name: usize) -> Value {
    let keys = keys_of(kind, name);
    let item = |at: usize| json!({ "from": keys[at], "to": keys[at + 1] });
    json!({ "k": keys, "items": [item(0), item(2), item(3)] })
}

/// Which execution: of which kind, with which number.
type Which = (usize, usize);

/// What executions come to without speculation.
struct Alone {
    events: BTreeMap<Which, Vec<String>>,
    /// What each adds to the keys that all share.
    shared: BTreeMap<Which, i64>,
    own: BTreeMap<String, i64>,
    calls: Vec<(Value, Value)>,
}

/// Functions that take part.
fn serializable() -> Arc<Function> {
    let config = FunctionConfig { isolation: Isolation::Serializable, ..FunctionConfig::new("f", "f.wasm") };
    Arc::new(Function::new(by_hand::loaded(&config), Home::alone()))
}

/// Ends a server on whose disk no other one starts. What executions reach has them, too, and the store with them: there are many here, and that would stay.
fn forget(served: Served, end: impl FnOnce(Served)) {
    let executions = served.executions.clone();
    end(served);
    executions.tenants().clear();
}

fn serve(disk: &Disk, level: &str) -> Served {
    Served::start_pinned(disk, &workflows(), &json!({ "speculation": level }), (&[serializable()], None))
}

/// An execution's events without times. Of what goes on at the same time the order is left out.
fn events_of(served: &Served, (kind, name): Which) -> Vec<String> {
    let id = served.summary(KINDS[kind], &format!("e{name}")).unwrap().id;
    let events = served.executions.0.journal.history(id, crate::kv::Order::Rising, None, 1_000).unwrap().events;
    let is_in_order = matches!(KINDS[kind], "chain" | "again");
    let text = |event: &serde_json::value::RawValue| {
        let mut event: Value = serde_json::from_str(event.get()).unwrap();
        let members = event.as_object_mut().unwrap();
        members.remove("timestamp").expect("a time");
        if !is_in_order {
            members.remove("id");
            members.remove("previousEventId");
        }
        event.to_string()
    };
    let mut events: Vec<String> = events.iter().map(|event| text(event)).collect();
    if !is_in_order {
        events.sort_unstable();
    }
    events
}

static ALONE: LazyLock<Alone> = LazyLock::new(|| {
    let served = serve(&Disk::default(), "off");
    let mut alone = Alone { events: BTreeMap::new(), shared: BTreeMap::new(), own: BTreeMap::new(), calls: Vec::new() };
    for which @ (kind, name) in (0..KINDS.len()).flat_map(|kind| (0..NAMES).map(move |name| (kind, name))) {
        let before = served.number("shared");
        served.begin(KINDS[kind], &format!("e{name}"), input(kind, name)).unwrap();
        assert_eq!(served.end_of(KINDS[kind], &format!("e{name}")).status, Status::Succeeded);
        alone.events.insert(which, events_of(&served, which));
        alone.shared.insert(which, served.number("shared") - before);
        alone.own.extend(keys_of(kind, name).into_iter().map(|key| (key.clone(), served.number(&key))));
    }
    alone.calls = std::mem::take(&mut served.room.calls.lock().unwrap());
    served.stop();
    alone
});

/// Teaches the tables what functions answer, some of it wrong, and how long they take.
fn teach(served: &Served, random: &mut fastrand::Rng) {
    let [right, wrong] = [(); 2].map(|()| random.u32(..=60));
    for workflow in served.workflows.values() {
        let (tables, definition) = (&workflow.reach.speculation, workflow.definition().unwrap());
        for state in (0..).map_while(|state| definition.states().get(state)) {
            let index = definition.find(&state.name).unwrap();
            (0..2).for_each(|_| tables.took(definition.fingerprint(), index, Duration::from_millis(3)));
        }
    }
    let tables = &served.workflows["chain"].reach.speculation;
    for (input, output) in &ALONE.calls {
        let mut output = output.clone();
        match random.u32(..100) {
            chance if chance < right => {}
            chance if chance < right + wrong => {
                output["n"] = json!(7);
                output["big"] = json!(random.bool());
            }
            _ => continue,
        }
        tables.answered(Of { name: "f", version: 0 }, tables.key("f", input), &Ok(Arc::new(output)), Rest::default());
    }
}

/// What another client does to the keys that executions share.
#[derive(Default)]
struct Outside {
    made: i64,
    /// Of these it is not known.
    doubtful: i64,
}

impl Outside {
    /// Adds to what executions read and change, until that is over.
    fn write(&mut self, space: &Space, random: &mut fastrand::Rng, is_over: impl Fn() -> bool) {
        let mut left = random.u32(..8);
        while !is_over() {
            thread::sleep(Duration::from_millis(random.u64(1..6)));
            if left == 0 {
                continue;
            }
            left -= 1;
            let commit = Commit::new(Vec::new(), vec![(key("shared"), Change::Add(1))]);
            let outcome = wait(async { tokio::time::timeout(Duration::from_millis(200), space.clone().commit(commit)).await });
            match outcome {
                Ok(Ok(_)) => self.made += 1,
                Ok(Err(_)) | Err(_) => self.doubtful += 1,
            }
        }
    }
}

/// How often runs were adopted, dropped and squashed.
static RUNS: [AtomicU64; 3] = [const { AtomicU64::new(0) }; 3];

/// Starts what is not known to have begun, and waits until all have ended; or until the disk does not work any more.
fn go_on(served: &Served, wanted: &[Which], has_failed: &dyn Fn() -> bool) {
    let fails = || async {
        while !has_failed() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    for (kind, name) in wanted {
        let begins = served.executions.start(&served.workflows[KINDS[*kind]], Some(format!("e{name}")), input(*kind, *name));
        let begins = wait(async {
            tokio::select! {
                begun = begins => Some(begun),
                () = fails() => None,
            }
        });
        assert!(matches!(begins, None | Some(Ok(_) | Err(Refused::Exists { .. } | Refused::Unavailable(_)))), "{begins:?}");
    }
    for (kind, name) in wanted {
        wait(async {
            tokio::select! {
                _ = served.executions.wait(served.place(KINDS[*kind], &format!("e{name}"))) => {}
                () = fails() => {}
            }
        });
    }
}

#[track_caller]
fn check(served: &Served, wanted: &[Which], outside: &Outside, what: &str) {
    let mut shared = 0;
    for which @ (kind, name) in wanted {
        let ended = served.end_of(KINDS[*kind], &format!("e{name}"));
        assert_eq!(ended.status, Status::Succeeded, "{what}: {which:?}: {ended:?}");
        let (events, wanted) = (events_of(served, *which), &ALONE.events[which]);
        let differs = events.iter().zip(wanted).find(|(event, wanted)| event != wanted);
        assert!(
            events.len() == wanted.len() && differs.is_none(),
            "{what}: {which:?}: {} events, {}: {differs:#?}",
            events.len(),
            wanted.len()
        );
        for key in keys_of(*kind, *name) {
            assert_eq!(served.number(&key), ALONE.own[&key], "{what}: {key}");
        }
        shared += ALONE.shared[which];
    }
    assert_eq!(served.number("trap"), 0, "{what}");
    let [least, most] = [0, outside.doubtful].map(|doubtful| shared + outside.made + doubtful);
    assert!((least..=most).contains(&served.number("shared")), "{what}: {} in {least}..={most}", served.number("shared"));
}

fn play(seed: usize) {
    let mut random = fastrand::Rng::with_seed(seed as u64);
    // Attempts that are a second apart take long.
    let kinds = if seed.is_multiple_of(8) { KINDS.len() } else { KINDS.len() - 1 };
    let mut wanted: Vec<Which> = (0..random.usize(1..4)).map(|_| (random.usize(..kinds), random.usize(..NAMES))).collect();
    wanted.sort_unstable();
    wanted.dedup();
    let level = ["paths", "outputs", "stalls"][random.usize(..3)];
    let (mut disk, mut outside, what) = (Disk::default(), Outside::default(), format!("seed {seed}, {level}"));
    // What the disk does: it crashes, fails for a moment, or works.
    for _ in 0..random.usize(..4) {
        let (from, is_crash) = (disk.operations() + random.usize(8..90), random.bool());
        disk.fail(from, if is_crash { usize::MAX - from } else { random.usize(1..4) }, libc::EIO, random.u64(..));
        round(
            &disk,
            (&wanted, level),
            &mut outside,
            &mut random,
            || is_crash && disk.operations() > from,
            |served| forget(served, Served::kill),
        );
        disk = disk.crashed(&mut random.u64(..));
    }
    round(&disk, (&wanted, level), &mut outside, &mut random, || false, |_| {});
    let served = serve(&disk.crashed(&mut random.u64(..)), "off");
    check(&served, &wanted, &outside, &what);
    forget(served, Served::stop);
}

/// A server, until all have ended, or until the disk does not work any more.
fn round(
    disk: &Disk,
    (wanted, level): (&[Which], &str),
    outside: &mut Outside,
    random: &mut fastrand::Rng,
    has_failed: impl Fn() -> bool + Sync,
    end: impl FnOnce(Served),
) {
    let served = serve(disk, level);
    served.room.slow_ms.store(random.u64(1..5), Ordering::Relaxed);
    teach(&served, random);
    let (space, is_over) = (served.store.space(TENANT), AtomicBool::new(false));
    let mut others = random.fork();
    /// Ends what another client does, also where the test fails.
    struct Over<'a>(&'a AtomicBool);
    impl Drop for Over<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    thread::scope(|scope| {
        scope.spawn(|| outside.write(&space, &mut others, || is_over.load(Ordering::Relaxed)));
        let _over = Over(&is_over);
        go_on(&served, wanted, &has_failed);
    });
    for (sum, (_, count)) in RUNS.iter().zip(served.workflows["chain"].reach.speculation.runs()) {
        sum.fetch_add(count, Ordering::Relaxed);
    }
    if has_failed() { end(served) } else { forget(served, Served::stop) }
}

#[test]
fn whatever_is_guessed_changed_and_lost_an_execution_comes_to_the_same() {
    LazyLock::force(&ALONE);
    each(seeds(), play);
    let runs = RUNS.each_ref().map(|count| count.load(Ordering::Relaxed));
    println!("{} seeds: {} runs adopted, {} dropped, {} squashed", seeds().len(), runs[0], runs[1], runs[2]);
    assert!(runs.iter().all(|count| *count > 0), "{runs:?}");
}

const LEASE: Duration = Duration::from_millis(600);

fn serve_in(redis: Redis, random: &mut fastrand::Rng) -> Served {
    let store = Store::Redis(redis);
    let executions = Executions::leased(&store, LEASE);
    let settings = json!({ "speculation": "outputs" });
    let served = Served::of((store, executions), &workflows(), &settings, (&[serializable()], None));
    served.room.slow_ms.store(random.u64(1..5), Ordering::Relaxed);
    teach(&served, random);
    served
}

/// The owner is killed, or stopped for longer than its lease, and answers of Redis are lost, while executions are ahead of what is written.
fn play_servers(seed: usize) {
    let mut random = fastrand::Rng::with_seed(seed as u64);
    let (redis, what) = (OwnServer::start(), format!("seed {seed}"));
    let way = Lossy::to(&redis);
    let first = serve_in(way.client(), &mut random);
    let wanted: Vec<Which> = (0..3).flat_map(|kind| (0..NAMES).map(move |name| (kind, name))).collect();
    for (kind, name) in &wanted {
        way.lose(*random.choice([0, 0, 1, 2, 5].iter()).unwrap());
        let deadline = Instant::now() + TIME_MAX;
        loop {
            match first.begin(KINDS[*kind], &format!("e{name}"), input(*kind, *name)) {
                Ok(_) | Err(Refused::Exists { .. }) => break,
                Err(Refused::Moved | Refused::Unanswered(_) | Refused::Unavailable(_)) => {
                    thread::sleep(Duration::from_millis(10))
                }
                Err(refused) => panic!("{what}: {refused}"),
            }
            assert!(Instant::now() < deadline, "{what}: e{name} does not begin");
        }
    }
    way.lose(*random.choice([0, 1, 3, 10].iter()).unwrap());
    let second = serve_in(redis.client(), &mut random);
    thread::sleep(Duration::from_millis(random.u64(..30)));
    let first = if random.bool() {
        first.freeze.send(LEASE * 2).unwrap();
        Some(first)
    } else {
        first.kill();
        None
    };
    check(&second, &wanted, &Outside::default(), &what);
    way.lose(0);
    if let Some(first) = first {
        first.stop();
    }
    second.stop();
}

#[test]
fn servers_that_are_killed_stopped_and_not_answered_lose_and_double_nothing() {
    LazyLock::force(&ALONE);
    each(0..8, play_servers);
}
