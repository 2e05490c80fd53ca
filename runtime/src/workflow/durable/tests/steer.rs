//! Executions that are paused, resumed and restarted.

use super::*;
use crate::workflow::durable::journal::Listing;

/// A second passes between two additions.
fn slow() -> Value {
    let wait = json!({ "Type": "Wait", "Seconds": 1, "Next": "B" });
    machine("A", &json!({ "A": call(&add("a"), Some("W")), "W": wait, "B": call(&add("b"), None) }))
}

impl Served {
    fn pause(&self, workflow: &str, name: &str, paused: bool) -> Result<Summary, Refused> {
        wait(self.executions.pause(self.place(workflow, name), paused))
    }

    fn pause_all(&self, workflow: &str, paused: bool) {
        wait(self.executions.pause_all(TENANT.into(), workflow.into(), paused)).unwrap();
    }

    fn restart(&self, name: &str, state: &str, input: Option<Value>) -> Result<Summary, Refused> {
        wait(self.executions.restart(self.place("w", name), state.into(), input))
    }
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < TIME_MAX, "{what}");
        thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_paused_execution_waits_until_it_is_resumed_also_after_a_restart() {
    let disk = Disk::default();
    let served = Served::start(&disk, &[("w", slow())]);
    served.begin("w", "one", json!({})).unwrap();
    until("it has begun", || served.number("a") == 1);
    let paused = served.pause("w", "one", true).unwrap();
    assert_eq!((paused.status, paused.paused), (Status::Running, true));
    assert!(served.pause("w", "one", true).unwrap().paused, "twice is once");
    // Its timer runs out meanwhile.
    thread::sleep(Duration::from_millis(1_500));
    assert_eq!(served.number("b"), 0);
    served.kill();
    let served = Served::start(&disk.crashed(&mut 3), &[("w", slow())]);
    thread::sleep(Duration::from_millis(300));
    assert_eq!((served.number("b"), served.summary("w", "one").unwrap().paused), (0, true));
    assert!(!served.pause("w", "one", false).unwrap().paused);
    assert_eq!(served.end_of("w", "one").status, Status::Succeeded);
    assert_eq!((served.number("a"), served.number("b")), (1, 1));
    assert!(matches!(served.pause("w", "one", true), Err(Refused::Impossible(_))), "it has ended");
    assert!(matches!(served.pause("w", "none", true), Err(Refused::NoExecution)));
    served.stop();
}

#[test]
fn a_callback_is_taken_in_while_it_is_paused_and_a_stop_ends_it() {
    let ask = json!({ "Type": "Task", "Resource": "fn:f.waitForTaskToken", "Parameters": { "do": "add", "key": "asked", "token.$": "$$.Task.Token" }, "ResultPath": null, "Next": "B" });
    let asks = machine("Ask", &json!({ "Ask": ask, "B": call(&add("b"), None) }));
    let served = Served::start(&Disk::default(), &[("w", asks)]);
    for name in ["one", "two"] {
        served.begin("w", name, json!({})).unwrap();
        until("it has asked", || served.events("w", name).contains(&"TaskSubmitted".to_owned()));
        served.pause("w", name, true).unwrap();
    }
    let id = served.summary("w", "one").unwrap().id;
    let events = served.executions.0.journal.history(id, crate::kv::Order::Rising, None, 100).unwrap().events;
    let scheduled = events.iter().find(|event| event.get().contains("taskScheduledEventDetails")).unwrap();
    let scheduled: Value = serde_json::from_str(scheduled.get()).unwrap();
    let parameters: Value = serde_json::from_str(scheduled["taskScheduledEventDetails"]["parameters"].as_str().unwrap()).unwrap();
    let token: Arc<str> = parameters["token"].as_str().unwrap().into();
    let event = Event::CallbackSucceeded { token: Arc::clone(&token), output: json!(1) };
    wait(served.executions.call_back(Arc::clone(&token), event.clone())).unwrap();
    assert!(matches!(wait(served.executions.call_back(Arc::clone(&token), event)), Err(Refused::NoTask)), "it is taken in");
    thread::sleep(Duration::from_millis(100));
    assert_eq!(served.number("b"), 0, "and nothing follows");
    served.pause("w", "one", false).unwrap();
    assert_eq!(served.end_of("w", "one").status, Status::Succeeded);
    wait(served.executions.stop(served.place("w", "two"), None, None)).unwrap();
    let stopped = served.end_of("w", "two");
    assert_eq!((stopped.status, stopped.paused), (Status::Aborted, false));
    served.stop();
}

#[test]
fn a_task_that_ran_when_the_server_died_is_carried_on_when_it_is_resumed() {
    let disk = Disk::default();
    let parent = machine("C", &json!({ "C": { "Type": "Task", "Resource": "workflow:child", "End": true } }));
    let child = machine("W", &json!({ "W": { "Type": "Wait", "Seconds": 3_600, "End": true } }));
    let workflows = [("w", parent), ("child", child)];
    let served = Served::start(&disk, &workflows);
    served.begin("w", "one", json!({})).unwrap();
    let task = served.summary("w", "one").unwrap().id;
    let children = Listing { tenant: TENANT.into(), workflow: "child".into(), status: None, after: None, max: 10 };
    let listed = |served: &Served| served.executions.0.journal.list(&children).unwrap().0;
    until("the child has begun", || !listed(&served).is_empty());
    served.pause("w", "one", true).unwrap();
    served.kill();
    let served = Served::start(&disk.crashed(&mut 9), &workflows);
    let (place, summary) = listed(&served).remove(0);
    assert_eq!(summary.parent.unwrap().execution, task);
    wait(served.executions.stop(place, None, None)).unwrap();
    thread::sleep(Duration::from_millis(300));
    let failed = "TaskFailed".to_owned();
    assert!(!served.events("w", "one").contains(&failed), "nothing waits for the child");
    served.pause("w", "one", false).unwrap();
    assert_eq!(served.end_of("w", "one").status, Status::Failed);
    assert!(served.events("w", "one").contains(&failed));
    served.stop();
}

#[test]
fn a_paused_workflow_holds_its_executions_and_those_that_begin() {
    let disk = Disk::default();
    let served = Served::start(&disk, &[("w", slow()), ("other", slow())]);
    let names: Vec<_> = (0..10).map(|number| format!("e{number}")).collect();
    for name in &names {
        served.begin("w", name, json!({})).unwrap();
    }
    until("all have begun", || served.number("a") == 10);
    served.pause_all("w", true);
    assert!(served.executions.is_paused(TENANT, "w") && !served.executions.is_paused(TENANT, "other"));
    let is_paused = |served: &Served, name: &String| served.summary("w", name).unwrap().paused;
    until("all are paused", || names.iter().all(|name| is_paused(&served, name)));
    served.begin("w", "late", json!({})).unwrap();
    served.begin("other", "one", json!({})).unwrap();
    assert_eq!(served.end_of("other", "one").status, Status::Succeeded);
    assert_eq!((served.number("a"), served.number("b")), (11, 1), "nothing but the other workflow's");
    served.kill();
    let served = Served::start(&disk.crashed(&mut 5), &[("w", slow()), ("other", slow())]);
    until("it is known", || served.executions.is_paused(TENANT, "w"));
    served.begin("w", "later", json!({})).unwrap();
    thread::sleep(Duration::from_millis(300));
    assert_eq!((served.number("a"), served.number("b")), (11, 1));
    served.pause_all("w", false);
    for name in names.iter().map(String::as_str).chain(["late", "later"]) {
        assert_eq!(served.end_of("w", name).status, Status::Succeeded, "{name}");
    }
    assert_eq!((served.number("a"), served.number("b")), (13, 13));
    assert!(matches!(wait(served.executions.pause_all(TENANT.into(), "none".into(), true)), Err(Refused::NoWorkflow)));
    served.stop();
}

#[test]
fn an_execution_is_restarted_from_a_state() {
    let states = json!({
        "A": { "Type": "Pass", "Parameters": { "n.$": "$.n" }, "Next": "B" },
        "B": call(&add("b"), Some("C")),
        "C": { "Type": "Choice", "Choices": [{ "Variable": "$.n", "NumericEquals": 1, "Next": "Good" }], "Default": "Bad" },
        "Good": { "Type": "Succeed" },
        "Bad": { "Type": "Fail", "Error": "Bad" },
    });
    let served = Served::start(&Disk::default(), &[("w", machine("A", &states))]);
    served.begin("w", "one", json!({ "n": 2 })).unwrap();
    assert_eq!(served.end_of("w", "one").error.as_deref(), Some("Bad"));
    let refused = |state: &str, input: Option<Value>, words: &str| {
        let refused = served.restart("one", state, input).unwrap_err().to_string();
        assert!(refused.contains(words), "{refused}");
    };
    refused("None", Some(json!({})), "has no such state");
    refused("Good", None, "has not been in the state \"Good\"; give an input");
    assert_eq!(served.summary("w", "one").unwrap().redrives, 0, "nothing has changed");
    // With the input that it had.
    served.restart("one", "B", None).unwrap();
    let ended = served.end_of("w", "one");
    assert_eq!((ended.status, ended.redrives, served.number("b")), (Status::Failed, 1, 2));
    served.restart("one", "B", Some(json!({ "n": 1 }))).unwrap();
    let ended = served.end_of("w", "one");
    assert_eq!((ended.status, ended.output.as_deref()), (Status::Succeeded, Some(&json!({ "n": 1 }))));
    assert_eq!(served.number("b"), 3);
    refused("B", None, "the execution has succeeded");
    served.stop();
}
