//! What an execution is from its start to its removal.

use super::*;
use crate::kv::Order;
use crate::workflow::durable::journal::Listing;

fn chain() -> Value {
    machine("A", &json!({ "A": call(&add("a"), Some("B")), "B": call(&add("b"), Some("C")), "C": { "Type": "Succeed" } }))
}

#[test]
fn an_execution_is_carried_out_and_what_happened_is_kept() {
    let served = Served::start(&Disk::default(), &[("chain", chain())]);
    let started = served.begin("chain", "one", json!({ "x": 1 })).unwrap();
    // It may have ended already.
    assert_eq!(*started.summary.input, json!({ "x": 1 }));
    let ended = served.end_of("chain", "one");
    assert_eq!((ended.status, ended.output.as_deref()), (Status::Succeeded, Some(&json!({ "x": 1 }))));
    assert_eq!((served.number("a"), served.number("b")), (1, 1));
    let task = |end: &str| {
        ["TaskStateEntered", "LambdaFunctionScheduled", "LambdaFunctionStarted", end, "TaskStateExited"].map(str::to_owned)
    };
    let mut wanted = vec!["ExecutionStarted".to_owned()];
    wanted.extend(task("LambdaFunctionSucceeded"));
    wanted.extend(task("LambdaFunctionSucceeded"));
    wanted.extend(["SucceedStateEntered", "SucceedStateExited", "ExecutionSucceeded"].map(str::to_owned));
    assert_eq!(served.events("chain", "one"), wanted);
    served.stop();
}

#[test]
fn a_name_is_one_execution() {
    let waits = machine("W", &json!({ "W": { "Type": "Wait", "Seconds": 3_600, "End": true } }));
    let served = Served::start_with(&Disk::default(), &[("chain", chain()), ("waits", waits)], &json!({ "executions_max": 2 }));
    let first = served.begin("waits", "one", json!({ "x": 1 })).unwrap();
    let again = served.begin("waits", "one", json!({ "x": 1 })).unwrap();
    assert_eq!(first.summary.id, again.summary.id, "the same input is the same execution");
    assert!(matches!(served.begin("waits", "one", json!({ "x": 2 })), Err(Refused::Exists { .. })));
    served.begin("chain", "one", json!({})).unwrap();
    served.end_of("chain", "one");
    assert!(matches!(served.begin("chain", "one", json!({})), Err(Refused::Exists { .. })), "also when it has ended");
    for name in ["", "a b", "x/y", &"n".repeat(81)] {
        assert!(matches!(served.begin("chain", name, json!({})), Err(Refused::Name)), "{name:?}");
    }
    assert!(matches!(served.begin("chain", "large", json!("x".repeat(300_000))), Err(Refused::InputTooLarge(_))));
    // As many as there may be.
    served.begin("waits", "two", json!({})).unwrap();
    assert!(matches!(served.begin("waits", "three", json!({})), Err(Refused::TooMany(2))));
    wait(served.executions.stop(served.place("waits", "two"), Some("Enough".into()), None)).unwrap();
    let stopped = served.end_of("waits", "two");
    assert_eq!((stopped.status, stopped.error.as_deref()), (Status::Aborted, Some("Enough")));
    served.begin("waits", "three", json!({})).unwrap();
    served.stop();
}

#[test]
fn what_waits_is_not_in_memory_and_goes_on_after_a_restart() {
    let disk = Disk::default();
    let waits = machine("W", &json!({ "W": { "Type": "Wait", "Seconds": 4, "Next": "A" }, "A": call(&add("a"), None) }));
    let served = Served::start(&disk, &[("waits", waits.clone())]);
    for number in 0..20 {
        served.begin("waits", &format!("e{number}"), json!({})).unwrap();
    }
    assert_eq!(served.number("a"), 0);
    served.kill();
    let disk = disk.crashed(&mut 7);
    let served = Served::start(&disk, &[("waits", waits)]);
    for number in 0..20 {
        let ended = served.end_of("waits", &format!("e{number}"));
        assert_eq!(ended.status, Status::Succeeded);
        let took_ms = ended.stopped_ms.unwrap() - ended.started_ms;
        assert!((4_000..20_000).contains(&took_ms), "{took_ms}");
    }
    assert_eq!(served.number("a"), 20);
    served.stop();
}

#[test]
fn a_callback_ends_its_task_also_after_a_restart() {
    let disk = Disk::default();
    let parameters = json!({ "do": "add", "key": "asked", "token.$": "$$.Task.Token" });
    let asks = machine(
        "Ask",
        &json!({ "Ask": { "Type": "Task", "Resource": "fn:f.waitForTaskToken", "Parameters": parameters, "TimeoutSeconds": 3_600, "End": true } }),
    );
    let served = Served::start(&disk, &[("asks", asks.clone())]);
    served.begin("asks", "one", json!({})).unwrap();
    while served.number("asked") == 0 {
        thread::sleep(Duration::from_millis(1));
    }
    let id = served.summary("asks", "one").unwrap().id;
    let token = |served: &Served| {
        let events = served.executions.0.journal.history(id, Order::Rising, None, 100).unwrap().events;
        let scheduled = events.iter().find(|event| event.get().contains("taskScheduledEventDetails")).unwrap().get();
        let event: Value = serde_json::from_str(scheduled).unwrap();
        let parameters: Value = serde_json::from_str(event["taskScheduledEventDetails"]["parameters"].as_str().unwrap()).unwrap();
        parameters["token"].as_str().unwrap().to_owned()
    };
    let given = token(&served);
    served.stop();
    let served = Served::start(&disk, &[("asks", asks)]);
    let succeeded = |token: &str| Event::CallbackSucceeded { token: token.into(), output: json!({ "paid": true }) };
    for wrong in ["", "x", "1-1.1", &format!("{given}0"), &given.replace('-', "-f")] {
        let refused = wait(served.executions.call_back(wrong.into(), succeeded(wrong)));
        assert!(matches!(refused, Err(Refused::NoTask)), "{wrong}: {refused:?}");
    }
    let given: Arc<str> = given.into();
    wait(served.executions.call_back(Arc::clone(&given), Event::CallbackHeartbeat { token: Arc::clone(&given) })).unwrap();
    wait(served.executions.call_back(Arc::clone(&given), succeeded(&given))).unwrap();
    let ended = served.end_of("asks", "one");
    assert_eq!((ended.status, ended.output.as_deref()), (Status::Succeeded, Some(&json!({ "paid": true }))));
    assert!(matches!(wait(served.executions.call_back(Arc::clone(&given), succeeded(&given))), Err(Refused::NoTask)), "once");
    assert_eq!((served.number("asked"), served.runs.load(Ordering::Relaxed)), (1, 0), "the function has run once, before");
    served.stop();
}

#[test]
fn failures_are_retried_and_what_failed_goes_on_where_it_stopped() {
    let flaky = json!({ "do": "flaky", "key": "tries", "times": 2 });
    let mut tries = call(&flaky, Some("Trap"));
    tries["Retry"] = json!([{ "ErrorEquals": ["Flaky"], "IntervalSeconds": 1, "BackoffRate": 1.0, "MaxAttempts": 5 }]);
    let trap = json!({ "Type": "Task", "Resource": "fn:f", "Parameters": { "do.$": "$.do", "key": "trap" }, "Next": "A" });
    let definition = machine("Try", &json!({ "Try": tries, "Trap": trap, "A": call(&add("a"), None) }));
    let served = Served::start(&Disk::default(), &[("w", definition)]);
    served.begin("w", "one", json!({ "do": "trap" })).unwrap();
    let ended = served.end_of("w", "one");
    assert_eq!((ended.status, ended.error.as_deref()), (Status::Failed, Some("Runtime.ExitError")));
    assert_eq!((served.number("tries"), served.number("trap")), (3, 0), "what a failed call has written is not there");
    // It fails again at the same state.
    let redriven = wait(served.executions.redrive(served.place("w", "one"))).unwrap();
    assert_eq!(redriven.redrives, 1);
    let ended = served.end_of("w", "one");
    assert_eq!((ended.status, ended.redrives), (Status::Failed, 1));
    assert_eq!((served.number("tries"), served.number("a")), (3, 0));
    assert_eq!(served.events("w", "one").iter().filter(|event| *event == "ExecutionRedriven").count(), 1);
    // What has ended stays as it is.
    for status in [Status::Failed, Status::Failed] {
        assert_eq!(wait(served.executions.stop(served.place("w", "one"), None, None)).unwrap().status, status);
        assert_eq!(served.executions.counted().open, 0);
    }
    served.begin("w", "two", json!({ "do": "nothing" })).unwrap();
    assert_eq!(served.end_of("w", "two").status, Status::Succeeded);
    assert!(matches!(wait(served.executions.redrive(served.place("w", "two"))), Err(Refused::NotRedrivable(_))));
    assert!(matches!(wait(served.executions.redrive(served.place("w", "three"))), Err(Refused::NoExecution)));
    served.stop();
}

#[test]
fn an_execution_that_another_starts_is_one_of_its_own() {
    let inner = machine("A", &json!({ "A": call(&add("inner"), None) }));
    let outer = machine(
        "Wait",
        &json!({
            "Wait": { "Type": "Task", "Resource": "workflow:inner", "ResultPath": "$.done", "Next": "Start" },
            "Start": { "Type": "Task", "Resource": "arn:aws:states:::states:startExecution",
                       "Parameters": { "StateMachineArn": "arn:aws:states:local:t:stateMachine:inner", "Input": { "second": true } },
                       "ResultPath": "$.started", "Next": "Describe" },
            "Describe": { "Type": "Task", "Resource": "arn:aws:states:::states:startExecution.sync:2",
                          "Parameters": { "StateMachineArn": "inner", "Name": "third", "Input": { "third": true } }, "ResultPath": "$.described", "End": true },
        }),
    );
    let served = Served::start(&Disk::default(), &[("inner", inner), ("outer", outer)]);
    served.begin("outer", "one", json!({ "x": 1 })).unwrap();
    let ended = served.end_of("outer", "one");
    assert_eq!(ended.status, Status::Succeeded, "{ended:?}");
    let output = ended.output.unwrap();
    assert_eq!(output["done"], json!({ "x": 1 }));
    assert!(output["started"]["ExecutionArn"].as_str().unwrap().starts_with("arn:aws:states:local:t:execution:inner:"));
    assert_eq!(
        (output["described"]["Status"].as_str(), &output["described"]["Output"]),
        (Some("SUCCEEDED"), &json!({ "third": true }))
    );
    assert_eq!(served.summary("inner", "third").unwrap().status, Status::Succeeded);
    let listing = Listing { tenant: TENANT.into(), workflow: "inner".into(), status: None, after: None, max: 10 };
    let (all, _) = served.executions.0.journal.list(&listing).unwrap();
    all.iter().for_each(|(place, _)| drop(served.end_of("inner", &place.name)));
    assert_eq!((all.len(), served.number("inner")), (3, 3));
    served.stop();
}

#[test]
fn executions_are_listed_by_time_and_state_and_removed_when_their_time_is_over() {
    let fails = machine("F", &json!({ "F": { "Type": "Fail", "Error": "No" } }));
    let served = Served::start_with(&Disk::default(), &[("chain", chain()), ("fails", fails)], &json!({ "retention_days": 0 }));
    for number in 0..25 {
        served.begin("chain", &format!("e{number}"), json!({})).unwrap();
        served.end_of("chain", &format!("e{number}"));
    }
    served.begin("fails", "f", json!({})).unwrap();
    served.end_of("fails", "f");
    let journal = &served.executions.0.journal;
    let mut listing = Listing { tenant: TENANT.into(), workflow: "chain".into(), status: None, after: None, max: 10 };
    let mut names = Vec::new();
    for page in 0.. {
        let (found, next) = journal.list(&listing).unwrap();
        assert_eq!((found.len(), next.is_some()), if page < 2 { (10, true) } else { (5, false) });
        names.extend(found.into_iter().map(|(place, _)| place.name.to_string()));
        listing.after = next;
        if next.is_none() {
            break;
        }
    }
    assert_eq!(names, (0..25).rev().map(|number| format!("e{number}")).collect::<Vec<_>>(), "the newest first");
    let count = |workflow: &str, status| {
        let listing = Listing { tenant: TENANT.into(), workflow: workflow.into(), status, after: None, max: 1_000 };
        journal.list(&listing).unwrap().0.len()
    };
    assert_eq!((count("chain", Some(Status::Succeeded)), count("chain", Some(Status::Running))), (25, 0));
    assert_eq!((count("fails", Some(Status::Failed)), count("fails", Some(Status::Succeeded))), (1, 0));
    assert_eq!(journal.kept().unwrap(), 26);
    assert_eq!(journal.expired(i64::MAX, 3).unwrap().len(), 3, "the first ones of those that are too many");
    let expired = journal.expired(crate::workflow::express::now_ms() + 1, 1_000).unwrap();
    assert_eq!(expired.len(), 26);
    let records = expired.into_iter().flat_map(|expired| expired.records).collect();
    wait(served.store.space(TENANT).commit(Commit { records, ..Commit::default() })).unwrap();
    assert_eq!((count("chain", None), count("fails", None), served.summary("chain", "e3").is_some()), (0, 0, false));
    let mut left = Vec::new();
    journal.each_checkpoint(|id, _| left.push(id)).unwrap();
    assert_eq!((left, journal.last_id().unwrap()), (Vec::new(), 0), "nothing is left of them");
    served.begin("chain", "e3", json!({})).unwrap();
    served.end_of("chain", "e3");
    served.stop();
}

#[test]
fn a_history_is_read_in_pages_in_both_directions() {
    let served = Served::start(&Disk::default(), &[("chain", chain())]);
    served.begin("chain", "one", json!({})).unwrap();
    let id = served.end_of("chain", "one").id;
    let journal = &served.executions.0.journal;
    let read = |order, max| {
        let (mut numbers, mut behind) = (Vec::new(), None);
        loop {
            let page = journal.history(id, order, behind, max).unwrap();
            let number = |event: &str| serde_json::from_str::<Value>(event).unwrap()["id"].as_u64().unwrap();
            assert!(page.events.len() <= max);
            numbers.extend(page.events.iter().map(|event| number(event.get())));
            behind = page.next;
            if behind.is_none() {
                return numbers;
            }
        }
    };
    let count = served.events("chain", "one").len() as u64;
    for max in [1, 2, 3, 5, 7, 100] {
        assert_eq!(read(Order::Rising, max), (1..=count).collect::<Vec<_>>(), "{max}");
        assert_eq!(read(Order::Falling, max), (1..=count).rev().collect::<Vec<_>>(), "{max}");
    }
    served.stop();
}
