//! Limits by key and rate: what waits begins in order, in time, and after a restart.

use super::*;
use crate::kv::Order;
use crate::workflow::durable::journal::Listing;

/// Waits for so long, then adds one.
fn slow(milliseconds: u64) -> Value {
    let at = format!("{{% $fromMillis($millis() + {milliseconds}) %}}");
    let wait = json!({ "Type": "Wait", "QueryLanguage": "JSONata", "Timestamp": at, "Next": "A" });
    machine("W", &json!({ "W": wait, "A": call(&add("a"), None) }))
}

impl Served {
    fn queues(&self, workflow: &str) -> Vec<Queue> {
        wait(self.executions.queues(TENANT.into(), workflow.into())).unwrap()
    }

    /// When an execution began, in milliseconds since 1970.
    fn began_ms(&self, workflow: &str, name: &str) -> i64 {
        let id = self.summary(workflow, name).unwrap().id;
        let first = self.executions.0.journal.history(id, Order::Rising, None, 1).unwrap().events.remove(0);
        let first: Value = serde_json::from_str(first.get()).unwrap();
        (first["timestamp"].as_f64().unwrap() * 1_000.0).round() as i64
    }
}

#[test]
fn as_many_run_as_may_for_each_key_and_the_others_wait_in_order_also_over_a_restart() {
    let (disk, limits) = (Disk::default(), json!({ "limits": { "key": "$.customer", "running_max": 2 } }));
    let served = Served::start_with(&disk, &[("slow", slow(400))], &limits);
    let names: Vec<String> = (0..12).map(|number| format!("e{number:02}")).collect();
    for (number, name) in names.iter().enumerate() {
        let started = served.begin("slow", name, json!({ "customer": number % 2 })).unwrap();
        assert_eq!(started.summary.status, if number < 4 { Status::Running } else { Status::New }, "{name}");
        assert_eq!(*started.summary.input, json!({ "customer": number % 2 }));
    }
    let again = served.begin("slow", "e11", json!({ "customer": 1 })).unwrap();
    assert_eq!((again.summary.status, served.executions.counted().queued), (Status::New, 8), "a name is one execution");
    let queue = |key: &str, running, queued| Queue { key: key.into(), running, queued };
    assert_eq!(served.queues("slow"), [queue("0", 2, 4), queue("1", 2, 4)]);
    let stopped = wait(served.executions.stop(served.place("slow", "e08"), Some("Enough".into()), None)).unwrap();
    assert_eq!((stopped.status, stopped.error.as_deref()), (Status::Aborted, Some("Enough")));
    assert!(matches!(wait(served.executions.redrive(served.place("slow", "e08"))), Err(Refused::NotRedrivable(_))));
    served.kill();
    let served = Served::start_with(&disk, &[("slow", slow(400))], &limits);
    while names.iter().any(|name| served.summary("slow", name).unwrap().is_open()) {
        for Queue { key, running, .. } in served.queues("slow") {
            assert!(running <= 2, "{key}: {running}");
        }
        thread::sleep(Duration::from_millis(20));
    }
    assert_eq!((served.number("a"), served.executions.counted().queued), (11, 0));
    for rest in 0..2 {
        let mut began: Vec<i64> = Vec::new();
        for name in names.iter().skip(rest).step_by(2).filter(|name| *name != "e08") {
            assert_eq!(served.end_of("slow", name).status, Status::Succeeded);
            began.push(served.began_ms("slow", name));
        }
        assert!(began.is_sorted(), "{began:?}");
        assert!(began[2] - began[0] >= 400, "the third waits for the first: {began:?}");
    }
    assert!(served.queues("slow").is_empty());
    // Each is listed once, as what it is now.
    let listed = |status| {
        let listing = Listing { tenant: TENANT.into(), workflow: "slow".into(), status, after: None, max: 100 };
        served.executions.0.journal.list(&listing).unwrap().0.len()
    };
    assert_eq!([None, Some(Status::New), Some(Status::Running), Some(Status::Succeeded)].map(listed), [12, 0, 0, 11]);
    served.stop();
}

#[test]
fn no_more_begin_in_a_time_than_may() {
    let limits = json!({ "limits": { "starts_max": 3, "period_s": 1 } });
    let served = Served::start_with(&Disk::default(), &[("quick", slow(0))], &limits);
    let names: Vec<String> = (0..9).map(|number| format!("e{number}")).collect();
    for name in &names {
        served.begin("quick", name, json!({})).unwrap();
    }
    let mut began: Vec<i64> = Vec::new();
    for name in &names {
        assert_eq!(served.end_of("quick", name).status, Status::Succeeded);
        began.push(served.began_ms("quick", name));
    }
    let took = began[8] - began[0];
    assert!((1_900..10_000).contains(&took), "three at once, then one in a third of a second: {began:?}");
    assert!(began.is_sorted() && began[2] - began[0] < 1_000, "{began:?}");
    served.stop();
}

#[test]
fn what_waits_when_limits_are_lifted_begins_and_a_key_that_is_too_long_is_refused() {
    let disk = Disk::default();
    let limits = json!({ "limits": { "key": "$.k", "running_max": 1 } });
    let served = Served::start_with(&disk, &[("slow", slow(60_000))], &limits);
    for number in 0..4 {
        served.begin("slow", &format!("e{number}"), json!({})).unwrap();
    }
    let long = served.begin("slow", "long", json!({ "k": "x".repeat(300) }));
    assert!(matches!(long, Err(Refused::Key(256))), "{long:?}");
    assert_eq!(served.executions.counted().queued, 3);
    // The client that waits for one that is queued learns that it was stopped.
    let waits = thread::spawn({
        let (executions, place) = (served.executions.clone(), served.place("slow", "e3"));
        move || wait(executions.wait(place)).unwrap().status
    });
    thread::sleep(Duration::from_millis(50));
    wait(served.executions.stop(served.place("slow", "e3"), None, None)).unwrap();
    assert_eq!(waits.join().unwrap(), Status::Aborted);
    served.stop();
    let served = Served::start_with(&disk, &[("slow", slow(60_000))], &json!({}));
    let deadline = Instant::now() + TIME_MAX;
    let status = |number| served.summary("slow", &format!("e{number}")).unwrap().status;
    while (0..3).any(|number| status(number) != Status::Running) {
        assert!(Instant::now() < deadline, "{:?}", [status(0), status(1), status(2)]);
        thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(served.executions.counted().queued, 0);
    served.stop();
}

#[test]
fn what_waits_of_a_paused_workflow_begins_when_that_is_resumed() {
    let served = Served::start_with(&Disk::default(), &[("slow", slow(200))], &json!({ "limits": { "running_max": 1 } }));
    for name in ["e0", "e1", "e2"] {
        served.begin("slow", name, json!({})).unwrap();
    }
    wait(served.executions.pause_all(TENANT.into(), "slow".into(), true)).unwrap();
    // The one that runs is stopped: there is room, and nothing takes it.
    wait(served.executions.stop(served.place("slow", "e0"), None, None)).unwrap();
    thread::sleep(Duration::from_millis(300));
    let status = |name| served.summary("slow", name).unwrap().status;
    assert_eq!([status("e1"), status("e2")], [Status::New; 2]);
    assert!(matches!(wait(served.executions.pause(served.place("slow", "e1"), true)), Err(Refused::Impossible(_))));
    wait(served.executions.pause_all(TENANT.into(), "slow".into(), false)).unwrap();
    for name in ["e1", "e2"] {
        assert_eq!(served.end_of("slow", name).status, Status::Succeeded);
    }
    assert_eq!(served.number("a"), 2);
    served.stop();
}
