//! Executions go on by the definition that is served, where they can.

use futures_util::future::{join, join_all};

use super::*;
use crate::kv::Order;

/// What comes first, and then an addition under that name.
fn then_adds(first: &str, state: &Value, key: &str) -> Value {
    let mut state = state.clone();
    state["Next"] = json!(key);
    machine(first, &json!({ first: state, key: call(&add(key), None) }))
}

/// An hour, or until it is stopped.
fn hour(next: &str) -> Value {
    json!({ "Type": "Wait", "Seconds": 3_600, "Next": next })
}

impl Served {
    fn to_served(&self, workflow: &str, name: &str) -> Result<Summary, Refused> {
        wait(self.executions.repin(self.place(workflow, name), true))
    }

    #[track_caller]
    fn moves(&self, workflow: &str, name: &str) -> Summary {
        let moved = self.to_served(workflow, name).unwrap();
        let served = self.workflows[workflow].definition().unwrap().fingerprint();
        assert_eq!((moved.definition, self.summary(workflow, name).unwrap().definition), (served, served));
        moved
    }

    #[track_caller]
    fn refuses(&self, workflow: &str, name: &str, words: &str) {
        let before = self.summary(workflow, name).unwrap();
        let checkpoint = |served: &Served| served.executions.0.journal.glance(before.id).unwrap();
        let stood = checkpoint(self);
        match self.to_served(workflow, name) {
            Err(refused @ Refused::NotRepinnable(_)) => assert!(refused.to_string().contains(words), "{refused}"),
            other => panic!("{other:?}"),
        }
        let now = self.summary(workflow, name).unwrap();
        assert_eq!(
            (now.definition, now.moves, checkpoint(self)),
            (before.definition, before.moves, stood),
            "nothing has changed"
        );
    }

    #[track_caller]
    fn until(&self, workflow: &str, name: &str, event: &str) {
        let begun = Instant::now();
        while !self.events(workflow, name).iter().any(|known| known == event) {
            assert!(begun.elapsed() < TIME_MAX, "{name} never comes to {event}");
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// The token that the first task of an execution was given.
    fn token(&self, workflow: &str, name: &str) -> Arc<str> {
        let id = self.summary(workflow, name).unwrap().id;
        let events = self.executions.0.journal.history(id, Order::Rising, None, 100).unwrap().events;
        let scheduled = events.iter().find(|event| event.get().contains("taskScheduledEventDetails")).unwrap();
        let event: Value = serde_json::from_str(scheduled.get()).unwrap();
        let parameters: Value = serde_json::from_str(event["taskScheduledEventDetails"]["parameters"].as_str().unwrap()).unwrap();
        parameters["token"].as_str().unwrap().into()
    }
}

/// Wherever they stand: their later states are the new ones.
#[test]
fn executions_that_wait_or_work_go_on_by_the_new_definition() {
    let waits = json!({ "Type": "Wait", "Seconds": 2 });
    let mut flaky = call(&json!({ "do": "flaky", "key": "tries" }), Some(""));
    flaky["Retry"] = json!([{ "ErrorEquals": ["Flaky"], "IntervalSeconds": 2, "MaxAttempts": 1 }]);
    let asks = json!({ "Type": "Task", "Resource": "fn:f.waitForTaskToken", "ResultPath": null,
        "Parameters": { "do": "add", "key": "asked", "token.$": "$$.Task.Token" } });
    let works = call(&add("works"), Some(""));
    let all = [("waits", waits), ("flaky", flaky), ("asks", asks), ("works", works)];
    let definitions =
        |key: &str| all.each_ref().map(|(name, state)| (*name, then_adds("First", state, &format!("{key}-{name}"))));
    let mut served = Served::start(&Disk::default(), &definitions("old"));
    for (name, event) in [("waits", "WaitStateEntered"), ("flaky", "LambdaFunctionScheduled"), ("asks", "TaskSubmitted")] {
        served.begin(name, "one", json!({})).unwrap();
        served.until(name, "one", event);
    }
    while served.number("tries") == 0 {
        thread::sleep(Duration::from_millis(1));
    }
    // Its task waits for room.
    served.room.is_full.store(true, Ordering::Relaxed);
    served.begin("works", "one", json!({})).unwrap();
    while served.room.refused.load(Ordering::Relaxed) == 0 {
        thread::sleep(Duration::from_millis(1));
    }
    for (name, definition) in definitions("new") {
        served.redefine(name, &definition);
        assert_eq!(served.moves(name, "one").moves, 1);
        assert_eq!(served.moves(name, "one").moves, 1, "twice is once");
    }
    served.room.is_full.store(false, Ordering::Relaxed);
    let token = served.token("asks", "one");
    let event = Event::CallbackSucceeded { token: Arc::clone(&token), output: json!({}) };
    wait(served.executions.call_back(token, event)).unwrap();
    for (name, _) in &all {
        assert_eq!(served.end_of(name, "one").status, Status::Succeeded, "{name}");
        assert_eq!(["new", "old"].map(|key| served.number(&format!("{key}-{name}"))), [1, 0], "{name}");
    }
    assert_eq!((served.number("works"), served.number("asked"), served.number("tries")), (1, 1, 2), "what ran has run once");
    served.refuses("waits", "one", "it has ended");
    assert!(matches!(served.to_served("waits", "none"), Err(Refused::NoExecution)));
    let calls = wait(served.executions.start(&served.executions.workflow(TENANT, "fn:f").unwrap(), None, json!({}))).unwrap();
    let refused = wait(served.executions.repin(calls.place, true));
    assert!(
        matches!(&refused, Err(Refused::NotRepinnable(why)) if why.contains("have no definition of their own")),
        "{refused:?}"
    );
    served.stop();
}

#[test]
fn what_cannot_go_on_by_the_new_definition_goes_on_by_its_own() {
    let branch = |name: &str, next: &str| machine(name, &json!({ name: hour(next), next: { "Type": "Succeed" } }));
    let parallel = |branches: Value| json!({ "Type": "Parallel", "Branches": branches, "ResultPath": null });
    let map = |processor: Value| json!({ "Type": "Map", "ItemsPath": "$.items", "ItemProcessor": processor, "ResultPath": null });
    let old = [
        ("waits", then_adds("W", &json!({ "Type": "Wait", "Seconds": 2 }), "old")),
        ("parallel", then_adds("P", &parallel(json!([branch("A", "A2"), branch("B", "B2")])), "later")),
        ("map", then_adds("M", &map(branch("I", "I2")), "later")),
    ];
    let mut served = Served::start(&Disk::default(), &old);
    for (name, _) in &old {
        served.begin(name, "one", json!({ "items": [1, 2] })).unwrap();
        served.until(name, "one", "WaitStateEntered");
    }
    served.redefine("waits", &then_adds("Other", &json!({ "Type": "Wait", "Seconds": 2 }), "new"));
    served.refuses("waits", "one", "the execution is in the state \"W\", which the new definition does not have");
    served.redefine("waits", &then_adds("W", &json!({ "Type": "Pass" }), "new"));
    served.refuses("waits", "one", "the state \"W\", in which the execution is, is a Wait, and a Pass in the new definition");
    served.redefine("parallel", &then_adds("P", &parallel(json!([branch("A", "A3")])), "later"));
    served.refuses("parallel", "one", "\"B\"");
    served.redefine("map", &then_adds("M", &map(branch("J", "J2")), "later"));
    served.refuses("map", "one", "the execution is in the state \"I\"");
    // Both have later states inside of what they are in, and behind it.
    let short = |name: &str, key: &str| {
        machine(name, &json!({ name: { "Type": "Wait", "Seconds": 0, "Next": key }, key: call(&add("inside"), None) }))
    };
    served.redefine("parallel", &then_adds("P", &parallel(json!([short("A", "A3"), short("B", "B3")])), "parallel"));
    served.moves("parallel", "one");
    served.redefine("map", &then_adds("M", &map(short("I", "I3")), "map"));
    served.moves("map", "one");
    assert_eq!(served.end_of("waits", "one").status, Status::Succeeded);
    assert_eq!((served.number("old"), served.number("new")), (1, 0));
    served.stop();
}

/// Branches and iterations that wait go on by the new definition, also where they were paused, and after a restart with a third one.
#[test]
fn a_move_is_kept_over_pauses_restarts_and_further_definitions() {
    let disk = Disk::default();
    let inner = |name: &str, key: &str| {
        machine(name, &json!({ name: { "Type": "Wait", "Seconds": 3, "Next": key }, key: call(&add(key), None) }))
    };
    let definition = |key: &str| {
        let map = json!({ "Type": "Map", "ItemsPath": "$.items", "ItemProcessor": inner("I", &format!("{key}-item")), "ResultPath": null, "Next": "P" });
        let branches = json!([inner("A", &format!("{key}-a")), inner("B", &format!("{key}-b"))]);
        let parallel = json!({ "Type": "Parallel", "Branches": branches, "ResultPath": null, "Next": key });
        machine("M", &json!({ "M": map, "P": parallel, key: call(&add(key), None) }))
    };
    let mut served = Served::start(&disk, &[("w", definition("old"))]);
    for name in ["one", "paused"] {
        served.begin("w", name, json!({ "items": [1, 2, 3] })).unwrap();
        served.until("w", name, "WaitStateEntered");
    }
    wait(served.executions.pause(served.place("w", "paused"), true)).unwrap();
    served.redefine("w", &definition("new"));
    assert!(served.moves("w", "paused").paused);
    served.moves("w", "one");
    served.kill();
    let served = Served::start(&disk.crashed(&mut 7), &[("w", definition("third"))]);
    wait(served.executions.pause(served.place("w", "paused"), false)).unwrap();
    for name in ["one", "paused"] {
        assert_eq!(served.end_of("w", name).status, Status::Succeeded, "{name}");
    }
    let counts = |key: &str| ["-item", "-a", "-b", ""].map(|part| served.number(&format!("{key}{part}")));
    assert_eq!((counts("old"), counts("new"), counts("third")), ([0; 4], [6, 2, 2, 2], [0; 4]));
    let id = served.summary("w", "one").unwrap().definition;
    let kept = served.executions.0.journal.definition(id).unwrap().unwrap();
    assert!(kept.source().contains("new-item"), "{}", kept.source());
    served.stop();
}

#[test]
fn what_is_queued_begins_by_the_new_definition_in_its_turn() {
    let disk = Disk::default();
    let limits = json!({ "limits": { "running_max": 1 } });
    let mut served = Served::start_with(&disk, &[("w", then_adds("W", &hour(""), "old"))], &limits);
    for name in ["first", "second", "third", "last"] {
        served.begin("w", name, json!({ "name": name })).unwrap();
    }
    // It has none of the states of the old one.
    served
        .redefine("w", &machine("N", &json!({ "N": call(&add("new"), Some("X")), "X": hour("Y"), "Y": { "Type": "Succeed" } })));
    served.refuses("w", "first", "\"W\"");
    for name in ["second", "third"] {
        let moved = served.moves("w", name);
        assert_eq!((moved.status, &*moved.input), (Status::New, &json!({ "name": name })));
    }
    // Those are stopped and begin as others do.
    let queued = |served: &Served| wait(served.executions.queues(TENANT.into(), "w".into())).unwrap()[0].queued;
    assert_eq!(queued(&served), 3);
    wait(served.executions.stop(served.place("w", "third"), None, None)).unwrap();
    served.kill();
    let served = Served::start_with(&disk.crashed(&mut 5), &[("w", then_adds("W", &hour(""), "other"))], &limits);
    assert_eq!(queued(&served), 2);
    let stop = |name: &str| wait(served.executions.stop(served.place("w", name), None, None)).unwrap();
    stop("first");
    served.until("w", "second", "WaitStateEntered");
    assert_eq!((served.number("new"), queued(&served)), (1, 1));
    stop("second");
    served.until("w", "last", "WaitStateEntered");
    assert!(!served.events("w", "last").contains(&"TaskStateEntered".to_owned()), "it was not moved");
    assert_eq!(served.summary("w", "third").unwrap().status, Status::Aborted);
    served.stop();
}

/// Each is either, and none is in two places.
#[test]
fn what_is_queued_is_moved_and_stopped_at_the_same_time() {
    const EXECUTIONS: usize = 80;
    let limits = json!({ "limits": { "running_max": 1 } });
    let mut served = Served::start_with(&Disk::default(), &[("w", then_adds("W", &hour(""), "old"))], &limits);
    let names: Vec<_> = (0..EXECUTIONS).map(|number| format!("e{number}")).collect();
    for name in &names {
        served.begin("w", name, json!({})).unwrap();
    }
    for round in 0..4 {
        served.redefine("w", &then_adds("W", &hour(""), &format!("new{round}")));
        let (served, queued) = (&served, &names[1..]);
        // Both are asked for before the first of their commits is made.
        let stop = |name: &String| served.executions.stop(served.place("w", name), None, None);
        let to_served = |name: &String| served.executions.repin(served.place("w", name), true);
        let stopped = queued.iter().enumerate().filter(|(number, _)| number % 4 == round).map(|(_, name)| stop(name));
        let (stopped, _) = wait(join(join_all(stopped), join_all(queued.iter().map(to_served))));
        stopped.into_iter().for_each(|stopped| drop(stopped.unwrap()));
        for (number, name) in queued.iter().enumerate() {
            let now = served.summary("w", name).unwrap();
            let is_stopped = number % 4 <= round;
            assert_eq!(now.status, if is_stopped { Status::Aborted } else { Status::New }, "{name}");
            assert_eq!(served.executions.0.journal.glance(now.id).unwrap().is_none(), is_stopped, "{name}");
        }
    }
    let queues = wait(served.executions.queues(TENANT.into(), "w".into())).unwrap();
    assert_eq!((queues[0].running, queues[0].queued, served.executions.counted().queued), (1, 0, 0));
    served.stop();
}

/// Moved at random moments, again and again, with restarts in between: each effect is there once, by whichever definition.
#[test]
fn moves_at_random_moments_lose_and_double_nothing() {
    const EXECUTIONS: usize = 12;
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let definition = |more: usize| {
        let mut states = json!({
            "A": call(&add("a"), Some("W")),
            "W": { "Type": "Wait", "SecondsPath": "$.wait", "Next": "B" },
            "B": call(&add("b"), Some("P")),
            "P": { "Type": "Parallel", "ResultPath": null, "Next": "C", "Branches": [
                machine("X", &json!({ "X": call(&add("x"), None) })), machine("V", &json!({ "V": { "Type": "Wait", "Seconds": 1, "End": true } })) ] },
            "C": call(&add("c"), None),
        });
        for number in 0..more {
            states[format!("0{number}")] =
                json!({ "Type": "Pass", "Next": if number == 0 { "A".to_owned() } else { format!("0{}", number - 1) } });
        }
        let first = if more == 0 { "A".to_owned() } else { format!("0{}", more - 1) };
        machine(&first, &states)
    };
    let mut disk = Disk::default();
    let mut served = Served::start(&disk, &[("w", definition(0))]);
    for number in 0..EXECUTIONS {
        served.begin("w", &format!("e{number}"), json!({ "wait": random.u64(..3) })).unwrap();
    }
    for round in 1..40 {
        served.redefine("w", &definition(round % 7));
        for _ in 0..4 {
            match served.to_served("w", &format!("e{}", random.usize(..EXECUTIONS))) {
                Ok(_) => {}
                Err(Refused::NotRepinnable(why)) => assert_eq!(why, "it has ended", "seed {seed}"),
                Err(refused) => panic!("seed {seed}: {refused}"),
            }
        }
        thread::sleep(Duration::from_millis(random.u64(..60)));
        if round % 13 == 0 {
            served.kill();
            disk = disk.crashed(&mut random.u64(1..));
            served = Served::start(&disk, &[("w", definition(0))]);
        }
    }
    for number in 0..EXECUTIONS {
        let ended = served.end_of("w", &format!("e{number}"));
        assert_eq!(ended.status, Status::Succeeded, "seed {seed}: {ended:?}");
    }
    assert_eq!(["a", "b", "x", "c"].map(|key| served.number(key)), [EXECUTIONS as i64; 4], "seed {seed}");
    served.stop();
}
