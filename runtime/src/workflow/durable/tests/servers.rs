//! Servers that share the executions of a store in Redis: one of them owns them, dies, is stopped for a while, is not answered; and each effect is there once.

use std::collections::HashSet;
use std::ops::Bound;

use super::*;
use crate::kv::redis::tests::played::{Lossy, OwnServer};
use crate::kv::{Order, Redis};
use crate::workflow::durable::journal::Listing;

const LEASE: Duration = Duration::from_millis(600);

fn serve(redis: Redis, workflows: &[(&str, Value)]) -> Served {
    serve_with(redis, workflows, &json!({}))
}

fn serve_with(redis: Redis, workflows: &[(&str, Value)], settings: &Value) -> Served {
    let store = Store::Redis(redis);
    let executions = Executions::leased(&store, LEASE);
    executions.limit(u64::MAX);
    Served::of((store, executions), workflows, settings, (&[played()], None))
}

fn kv_add(name: &str, next: Option<&str>) -> Value {
    let mut state =
        json!({ "Type": "Task", "Resource": "kv:add", "Parameters": { "Bucket": "b", "Key": name }, "ResultPath": null });
    match next {
        Some(next) => state["Next"] = json!(next),
        None => state["End"] = json!(true),
    }
    state
}

/// It adds before and behind a wait, by a function and by the store itself, and has another execution do that, too.
fn workflows() -> Vec<(&'static str, Value)> {
    let inner = machine("I", &json!({ "I": call(&add("inner"), None) }));
    let own = json!({ "do": "add", "key.$": "$.own" });
    let steps = json!({
        "A": call(&add("a"), Some("B")),
        "B": kv_add("b", Some("W")),
        "W": { "Type": "Wait", "SecondsPath": "$.wait", "Next": "C" },
        "C": { "Type": "Parallel", "Branches": [machine("X", &json!({ "X": kv_add("c", None) })), machine("Y", &json!({ "Y": call(&add("c"), None) }))],
               "ResultPath": null, "Next": "N" },
        "N": { "Type": "Task", "Resource": "workflow:inner", "ResultPath": null, "Next": "D" },
        "D": call(&own, None),
    });
    vec![("steps", machine("A", &steps)), ("inner", inner)]
}

fn input(number: usize) -> Value {
    json!({ "own": format!("own-{number}"), "wait": number % 4 })
}

/// Asks until it is answered: a server that has lost the lease says so, and what is asked for can be asked for again.
#[track_caller]
fn begin(servers: &[&Served], number: usize) {
    let deadline = Instant::now() + TIME_MAX;
    for attempt in 0.. {
        match servers[(number + attempt) % servers.len()].begin("steps", &format!("e{number}"), input(number)) {
            Ok(_) => return,
            // It had begun, and has ended.
            Err(Refused::Exists { .. }) if attempt > 0 => return,
            Err(refused @ (Refused::Moved | Refused::Unanswered(_) | Refused::Unavailable(_))) => {
                assert!(Instant::now() < deadline, "e{number}: {refused}");
                thread::sleep(Duration::from_millis(10));
            }
            Err(refused) => panic!("e{number}: {refused}"),
        }
    }
}

/// All have ended well, and each of their effects is there once.
#[track_caller]
fn check(server: &Served, count: usize, what: &str) {
    for number in 0..count {
        let ended = wait(server.executions.wait(server.place("steps", &format!("e{number}")))).unwrap();
        assert_eq!(ended.status, Status::Succeeded, "{what}: e{number}: {ended:?}");
        assert_eq!(server.number(&format!("own-{number}")), 1, "{what}: e{number}");
    }
    let count = i64::try_from(count).unwrap();
    let counts = ["a", "b", "c", "inner"].map(|key| server.number(key));
    assert_eq!(counts, [count, count, 2 * count, count], "{what}");
}

/// Waits until a server owns the executions.
fn until_owned(redis: &OwnServer, before: Option<&str>) -> String {
    let deadline = Instant::now() + TIME_MAX;
    loop {
        let owner: Option<String> = redis.ask(&[b"GET", b"{sledge}:owner"]);
        if let Some(owner) = owner.filter(|owner| before != Some(owner)) {
            return owner;
        }
        assert!(Instant::now() < deadline, "no server takes the lease");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn executions_live_in_redis_as_in_a_file() {
    let redis = OwnServer::start();
    let served = serve(redis.client(), &workflows());
    for number in 0..10 {
        begin(&[&served], number);
    }
    check(&served, 10, "one server");
    let events = served.events("steps", "e0");
    assert_eq!((&*events[0], &*events[events.len() - 1]), ("ExecutionStarted", "ExecutionSucceeded"));
    let journal = &served.executions.0.journal;
    let listing = Listing { tenant: TENANT.into(), workflow: "inner".into(), status: None, after: None, max: 100 };
    assert_eq!((journal.list(&listing).unwrap().0.len(), journal.kept().unwrap()), (10, 20));
    let mut unended = Vec::new();
    journal.each_checkpoint(|id, _| unended.push(id)).unwrap();
    assert!(unended.is_empty(), "{unended:?}");
    // All are removed when their time is over, whatever they consist of.
    let removed = journal.expired(i64::MAX, 100).unwrap().into_iter().flat_map(|expired| expired.records);
    let removed: HashSet<_> = removed.map(|record| record.key).collect();
    let mut left = Vec::new();
    let everything = (Bound::Unbounded, Bound::Unbounded);
    let with = |key: &[u8], _: &[u8]| {
        left.extend((!removed.contains(key)).then_some(key[0]));
        true
    };
    served.store.records().scan(everything, Order::Rising, with).unwrap();
    assert_eq!(left, [b'D', b'D'], "all but the definitions");
    served.stop();
    assert_eq!(redis.ask::<Option<String>>(&[b"GET", b"{sledge}:owner"]), None, "a server that stops gives the lease back");
}

#[test]
fn a_server_goes_on_with_what_another_has_left() {
    let redis = OwnServer::start();
    let mut served = serve(redis.client(), &workflows());
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    for kill in 0..6 {
        for number in 0..4 {
            begin(&[&served], 4 * kill + number);
        }
        thread::sleep(Duration::from_millis(random.u64(..400)));
        if random.bool() {
            served.kill()
        } else {
            served.stop()
        }
        served = serve(redis.client(), &workflows());
    }
    check(&served, 24, &format!("seed {seed}"));
    served.stop();
}

#[test]
fn two_servers_one_of_which_is_stopped_for_a_while() {
    let redis = OwnServer::start();
    let first = serve(redis.client(), &workflows());
    let owner = until_owned(&redis, None);
    let second = serve(redis.client(), &workflows());
    for number in 0..20 {
        begin(&[&first, &second], number);
    }
    assert_eq!(until_owned(&redis, None), owner, "it is the first one's as long as that lives");
    // Timers run out and tasks are under way meanwhile.
    first.freeze.send(LEASE * 4).unwrap();
    let taken = until_owned(&redis, Some(&owner));
    for number in 20..25 {
        begin(&[&second], number);
    }
    check(&second, 25, "at the other server");
    assert_eq!(second.executions.bytes(), [(TENANT.into(), second.written())], "what the other one has written is counted");
    check(&first, 25, "at the one that was stopped");
    assert_eq!(until_owned(&redis, None), taken);
    assert!(first.runs.load(Ordering::Relaxed) > 0 && second.runs.load(Ordering::Relaxed) > 0, "both have worked");
    // Back again, in good order: the second one gives it back.
    second.stop();
    begin(&[&first], 25);
    check(&first, 26, "the first one again");
    first.stop();
}

#[test]
fn a_server_that_was_stopped_for_a_while_begins_no_task_that_another_has_done() {
    let redis = OwnServer::start();
    let first = serve(redis.client(), &workflows());
    let owner = until_owned(&redis, None);
    let second = serve(redis.client(), &workflows());
    // The task waits in memory for room, without a commit before its call.
    first.room.is_full.store(true, Ordering::Relaxed);
    first.begin("inner", "one", json!({})).unwrap();
    while first.room.refused.load(Ordering::Relaxed) == 0 {
        thread::sleep(Duration::from_millis(1));
    }
    first.freeze.send(LEASE * 3).unwrap();
    until_owned(&redis, Some(&owner));
    assert_eq!(second.end_of("inner", "one").status, Status::Succeeded);
    first.room.is_full.store(false, Ordering::Relaxed);
    // It answers again; its task would have been tried again within a second.
    assert_eq!(first.end_of("inner", "one").status, Status::Succeeded);
    thread::sleep(Duration::from_millis(1_100));
    assert_eq!((first.runs.load(Ordering::Relaxed), second.runs.load(Ordering::Relaxed)), (0, 1));
    assert_eq!(second.number("inner"), 1);
    first.stop();
    second.stop();
}

#[test]
fn each_server_answers_all_that_clients_ask_for() {
    let redis = OwnServer::start();
    let parameters = json!({ "do": "add", "key": "asked", "token.$": "$$.Task.Token" });
    let asks = json!({ "Ask": { "Type": "Task", "Resource": "fn:f.waitForTaskToken", "Parameters": parameters, "End": true } });
    let mut all = workflows();
    all.extend([("asks", machine("Ask", &asks)), ("fails", machine("F", &json!({ "F": { "Type": "Fail", "Error": "No" } })))]);
    let owner = serve(redis.client(), &all);
    until_owned(&redis, None);
    let other = serve(redis.client(), &all);
    let started = other.begin("asks", "one", json!({ "x": 1 })).unwrap();
    assert_eq!((started.summary.status, &*started.summary.input), (Status::Running, &json!({ "x": 1 })));
    assert_eq!(other.begin("asks", "one", json!({ "x": 1 })).unwrap().summary.id, started.summary.id);
    match other.begin("asks", "one", json!({ "x": 2 })) {
        Err(Refused::Exists { summary }) => assert_eq!(summary.id, started.summary.id),
        begun => panic!("{begun:?}"),
    }
    assert!(matches!(other.begin("asks", "a b", json!({})), Err(Refused::Name)));
    assert!(matches!(other.begin("asks", "large", json!("x".repeat(300_000))), Err(Refused::InputTooLarge(_))));
    let unnamed = wait(other.executions.start(&other.workflows["inner"], None, json!({}))).unwrap();
    assert_eq!(other.end_of("inner", &unnamed.place.name).status, Status::Succeeded);
    // A deep input.
    let deep = (0..90).fold(json!(1), |inner, _| json!([inner]));
    other.begin("inner", "deep", deep.clone()).unwrap();
    assert_eq!(other.end_of("inner", "deep").input.as_ref(), &deep);
    // A callback.
    let token = || {
        let events = owner.executions.0.journal.history(started.summary.id, Order::Rising, None, 100).unwrap().events;
        let scheduled = events.iter().find(|event| event.get().contains("taskSubmittedEventDetails"))?;
        assert!(!scheduled.get().is_empty());
        let scheduled = events.iter().find(|event| event.get().contains("taskScheduledEventDetails"))?.get();
        let event: Value = serde_json::from_str(scheduled).unwrap();
        let asked: Value = serde_json::from_str(event["taskScheduledEventDetails"]["parameters"].as_str()?).unwrap();
        asked["token"].as_str().map(Arc::<str>::from)
    };
    let token = loop {
        match token() {
            Some(token) => break token,
            None => thread::sleep(Duration::from_millis(5)),
        }
    };
    let told = |token: &Arc<str>, event| wait(other.executions.call_back(Arc::clone(token), event));
    told(&token, Event::CallbackHeartbeat { token: Arc::clone(&token) }).unwrap();
    told(&token, Event::CallbackSucceeded { token: Arc::clone(&token), output: json!("paid") }).unwrap();
    assert_eq!(other.end_of("asks", "one").output.as_deref(), Some(&json!("paid")));
    let late = told(&token, Event::CallbackFailed { token: Arc::clone(&token), error: None, cause: None });
    assert!(matches!(late, Err(Refused::NoTask)), "{late:?}");
    // What has failed goes on again, what runs is stopped.
    other.begin("fails", "f", json!({})).unwrap();
    assert_eq!(other.end_of("fails", "f").status, Status::Failed);
    assert_eq!(wait(other.executions.redrive(other.place("fails", "f"))).unwrap().redrives, 1);
    let succeeded = wait(other.executions.redrive(other.place("asks", "one")));
    assert!(matches!(&succeeded, Err(Refused::NotRedrivable(why)) if why.contains("succeeded")), "{succeeded:?}");
    other.begin("asks", "two", json!({})).unwrap();
    let stopped = wait(other.executions.stop(other.place("asks", "two"), Some("Enough".into()), None)).unwrap();
    assert_eq!((stopped.status, stopped.error.as_deref()), (Status::Aborted, Some("Enough")));
    assert!(matches!(wait(other.executions.stop(other.place("asks", "none"), None, None)), Err(Refused::NoExecution)));
    // Only the owner has worked.
    assert_eq!(other.runs.load(Ordering::Relaxed), 0);
    other.stop();
    owner.stop();
}

#[test]
fn each_server_pauses_restarts_and_repins_executions_and_knows_their_queues() {
    let redis = OwnServer::start();
    let waits = machine("W", &json!({ "W": { "Type": "Wait", "Seconds": 3_600, "End": true } }));
    let all = [("waits", waits), ("fails", machine("F", &json!({ "F": { "Type": "Fail", "Error": "No" } })))];
    let limits = json!({ "limits": { "key": "$.k", "running_max": 1 } });
    let mut owner = serve_with(redis.client(), &all, &limits);
    until_owned(&redis, None);
    let mut other = serve_with(redis.client(), &all, &limits);
    let begun = ["one", "two"].map(|name| other.begin("waits", name, json!({ "k": "a" })).unwrap().summary.status);
    assert_eq!(begun, [Status::Running, Status::New]);
    let queues = wait(other.executions.queues(TENANT.into(), "waits".into())).unwrap();
    assert_eq!(queues, [Queue { key: "a".into(), running: 1, queued: 1 }]);
    assert!(matches!(other.begin("waits", "long", json!({ "k": "x".repeat(300) })), Err(Refused::Key(256))));
    let pause = |name, paused| wait(other.executions.pause(other.place("waits", name), paused));
    assert_eq!([true, false].map(|paused| pause("one", paused).unwrap().paused), [true, false]);
    assert!(matches!(pause("two", true), Err(Refused::Impossible(_))), "it has not begun");
    for paused in [true, false] {
        wait(other.executions.pause_all(TENANT.into(), "waits".into(), paused)).unwrap();
    }
    let none = wait(other.executions.pause_all(TENANT.into(), "none".into(), true));
    assert!(matches!(none, Err(Refused::Unavailable(_))), "{none:?}");
    let repin = |workflow, name| wait(other.executions.repin(other.place(workflow, name), false));
    assert_eq!(repin("waits", "one").unwrap().status, Status::Running);
    other.begin("fails", "f", json!({})).unwrap();
    assert_eq!(other.end_of("fails", "f").status, Status::Failed);
    assert!(matches!(repin("fails", "f"), Err(Refused::NotRepinnable(_))));
    let restart =
        |workflow, name, state: &str, input| wait(other.executions.restart(other.place(workflow, name), state.into(), input));
    assert_eq!(*restart("fails", "f", "F", Some(json!({ "again": true }))).unwrap().input, json!({}));
    assert_eq!(other.end_of("fails", "f").status, Status::Failed);
    assert!(matches!(restart("fails", "f", "None", None), Err(Refused::Impossible(_))));
    assert!(matches!(restart("waits", "one", "W", None), Err(Refused::Impossible(_))));
    // By the definition that is served, where both serve the same.
    let changed = machine("W", &json!({ "W": { "Type": "Wait", "Seconds": 3_600, "Next": "E" }, "E": { "Type": "Succeed" } }));
    let to_served = |other: &Served, name| wait(other.executions.repin(other.place("waits", name), true));
    other.redefine("waits", &changed);
    let refused = to_served(&other, "one");
    assert!(matches!(&refused, Err(Refused::NotRepinnable(why)) if why.contains("serves another definition")), "{refused:?}");
    owner.redefine("waits", &changed);
    for (name, status) in [("one", Status::Running), ("two", Status::New)] {
        let moved = to_served(&other, name).unwrap();
        assert_eq!((moved.status, moved.definition), (status, other.workflows["waits"].definition().unwrap().fingerprint()));
    }
    other.redefine("waits", &machine("E", &json!({ "E": { "Type": "Succeed" } })));
    owner.redefine("waits", &machine("E", &json!({ "E": { "Type": "Succeed" } })));
    let refused = to_served(&other, "one");
    assert!(matches!(&refused, Err(Refused::NotRepinnable(why)) if why.contains("\"W\"")), "{refused:?}");
    // Each waits for its turn, and is stopped there.
    for name in ["two", "one"] {
        let stopped = wait(other.executions.stop(other.place("waits", name), None, None)).unwrap();
        assert_eq!(stopped.status, Status::Aborted, "{name}");
    }
    assert!(wait(other.executions.queues(TENANT.into(), "waits".into())).unwrap().is_empty());
    other.stop();
    owner.stop();
}

#[test]
fn a_server_that_does_not_serve_durable_workflows_leaves_the_lease_to_others() {
    let redis = OwnServer::start();
    let idle = serve(redis.client(), &[]);
    thread::sleep(Duration::from_millis(50));
    assert_eq!(redis.ask::<Option<String>>(&[b"GET", b"{sledge}:owner"]), None);
    let served = serve(redis.client(), &workflows());
    begin(&[&served], 0);
    check(&served, 1, "the other one");
    idle.stop();
    served.stop();
}

/// The times of a schedule at which something was started.
fn times(served: &Served) -> Vec<String> {
    let listing = Listing { tenant: TENANT.into(), workflow: "ticks".into(), status: None, after: None, max: 1_000 };
    let found = served.executions.0.journal.list(&listing).unwrap().0;
    found.into_iter().map(|(place, _)| place.name.to_string()).collect()
}

#[test]
fn a_schedule_fires_once_at_whichever_server() {
    let redis = OwnServer::start();
    let ticks = [("ticks", machine("T", &json!({ "T": call(&add("ticks"), None) })))];
    let config = json!({ "name": "s", "expression": "rate(1 second)", "workflow": "ticks", "tenant": TENANT, "catch_up": "all" });
    let schedule = Arc::new(Scheduled::new(&serde_json::from_value(config).unwrap()).unwrap());
    let servers = [serve(redis.client(), &ticks), serve(redis.client(), &ticks)];
    servers.iter().for_each(|server| server.executions.keep(vec![Arc::clone(&schedule)]));
    let mut owner = until_owned(&redis, None);
    for _ in 0..2 {
        while times(&servers[0]).is_empty() {
            thread::sleep(Duration::from_millis(5));
        }
        // Whichever it is.
        servers.iter().for_each(|server| server.freeze.send(LEASE * 2).unwrap());
        owner = until_owned(&redis, Some(&owner));
    }
    thread::sleep(Duration::from_millis(1_200));
    let [first, second] = servers;
    second.stop();
    first.stop();
    let reader = serve(redis.client(), &ticks);
    let times = times(&reader);
    for name in &times {
        assert_eq!(reader.end_of("ticks", name).status, Status::Succeeded);
    }
    let count = i64::try_from(times.len()).unwrap();
    assert_eq!((reader.number("ticks"), times.iter().collect::<HashSet<_>>().len()), (count, times.len()));
    assert!(count >= 3, "{times:?}");
    reader.stop();
}

/// What the owner has in memory is ahead of what Redis has. It has nothing to commit, and finds out all the same.
#[test]
fn an_execution_that_a_failover_has_set_back_goes_on_though_nothing_else_happens() {
    let redis = OwnServer::start();
    let states = json!({ "A": call(&add("a"), Some("W")), "W": { "Type": "Wait", "Seconds": 1, "Next": "B" }, "B": call(&add("b"), None) });
    let served = serve(redis.client(), &[("slow", machine("A", &states))]);
    served.begin("slow", "one", json!({})).unwrap();
    while served.events("slow", "one").last().map(String::as_str) != Some("WaitStateEntered") {
        thread::sleep(Duration::from_millis(2));
    }
    let before = redis.copy();
    assert_eq!(served.end_of("slow", "one").status, Status::Succeeded);
    served.begin("slow", "lost", json!({})).unwrap();
    assert_eq!(served.end_of("slow", "lost").status, Status::Succeeded);
    redis.restore(&before);
    // It may go on at once.
    assert_eq!(served.number("a"), 1);
    let begun = Instant::now();
    while served.summary("slow", "one").unwrap().status != Status::Succeeded {
        assert!(begun.elapsed() < TIME_MAX, "it goes on where Redis has it");
        thread::sleep(Duration::from_millis(5));
    }
    assert!(served.summary("slow", "lost").is_none(), "what Redis has lost is lost");
    assert_eq!((served.number("a"), served.number("b"), served.executions.counted().open), (1, 1, 0));
    assert_eq!(served.executions.bytes(), [(TENANT.into(), served.written())]);
    served.stop();
}

#[test]
fn lost_answers_lose_and_double_nothing() {
    let redis = OwnServer::start();
    let way = Lossy::to(&redis);
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let served = serve(way.client(), &workflows());
    for number in 0..20 {
        way.lose(*random.choice([0, 1, 1, 2, 5, 30].iter()).unwrap());
        begin(&[&served], number);
        thread::sleep(Duration::from_millis(random.u64(..60)));
    }
    for _ in 0..10 {
        way.lose(*random.choice([1, 3, 10, 40].iter()).unwrap());
        thread::sleep(Duration::from_millis(random.u64(..200)));
    }
    way.lose(0);
    // Read on the way on which nothing is lost.
    let reader = serve(redis.client(), &workflows());
    check(&reader, 20, &format!("seed {seed}"));
    served.stop();
    reader.stop();
}
