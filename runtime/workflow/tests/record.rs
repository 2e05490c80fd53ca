//! Recordings: tests that are made of executions which have run, with other tasks, times and orders than a replay has.

mod driver;

use std::sync::Arc;

use driver::{Played, Player, definition, generate};
use serde_json::{Value, json};
use sledge_workflow::definition::Definition;
use sledge_workflow::machine::{Limits, Outcome};
use sledge_workflow::rehearse::{RecordError, Recorded, Recording, Suite, record};

const ARN: &str = "arn:aws:states:local:t:execution:orders:one";

fn played(definition: &Arc<Definition>, replies: &Value, input: &Value, seed: u64) -> Played {
    Player::new(Arc::clone(definition), Limits::default(), seed).unchecked().replies(replies).play(input.clone())
}

fn recorded(definition: &Definition, played: &Played, input: &Value) -> Result<Recording, RecordError> {
    let history: Vec<Value> = played.history.iter().map(|event| serde_json::to_value(event).expect("an event is JSON")).collect();
    let (mut output, mut error, mut cause, mut status) = (None, None, None, "TIMED_OUT");
    match &played.outcome {
        Some(Outcome::Succeeded(value)) => (status, output) = ("SUCCEEDED", Some(&**value)),
        Some(Outcome::Failed(failure)) => {
            (status, error, cause) = ("FAILED", failure.error.as_deref(), failure.cause.as_deref());
        }
        Some(Outcome::Aborted(failure)) => {
            (status, error, cause) = ("ABORTED", failure.error.as_deref(), failure.cause.as_deref());
        }
        Some(Outcome::TimedOut) => {}
        None => status = "RUNNING",
    }
    let started_ms = driver::START_MS;
    let own = Recorded { name: "one", arn: ARN, status, started_ms, input, output, error, cause, history: &history };
    record(definition, "orders.asl.json", &own)
}

#[track_caller]
fn passes(definition: &Definition, recording: &Recording) {
    let text = recording.suite.to_string();
    let suite = Suite::parse(&text).unwrap_or_else(|problems| panic!("{problems:?}\n{text}"));
    assert_eq!(suite.check(definition), [], "{text}");
    let result = suite.run(definition).remove(0);
    assert!(result.passed(), "{:#?}\n{text}", result.problems);
}

/// Retries, a Choice, a Map, a Parallel, a wait and a callback.
fn orders() -> Value {
    let inner = json!({ "StartAt": "Price", "States": {
        "Price": { "Type": "Task", "Resource": "fn:price", "Retry": [{ "ErrorEquals": ["Busy"], "MaxAttempts": 3 }], "Next": "Rest" },
        "Rest": { "Type": "Wait", "Seconds": 5, "End": true } } });
    let branch = |name: &str, resource: &str| json!({ "StartAt": name, "States": { name: { "Type": "Task", "Resource": resource, "HeartbeatSeconds": 2, "End": true } } });
    json!({ "StartAt": "Charge", "States": {
        "Charge": { "Type": "Task", "Resource": "fn:charge", "Retry": [{ "ErrorEquals": ["Busy"], "MaxAttempts": 3 }], "ResultPath": "$.paid", "Next": "Paid" },
        "Paid": { "Type": "Choice", "Choices": [{ "Variable": "$.paid", "BooleanEquals": true, "Next": "Each" }], "Default": "Refused" },
        "Refused": { "Type": "Fail", "Error": "Refused" },
        "Each": { "Type": "Map", "ItemsPath": "$.items", "MaxConcurrency": 2, "ItemProcessor": inner, "ResultPath": "$.prices", "Next": "Both" },
        "Both": { "Type": "Parallel", "Branches": [branch("Ship", "fn:ship"), branch("Ask", "fn:ask.waitForTaskToken")], "ResultPath": "$.both", "Next": "Done" },
        "Done": { "Type": "Succeed" } } })
}

fn replies() -> Value {
    json!({
        "Charge": [{ "Throw": { "Error": "Busy" }, "After": 0.25 }, { "Return": true, "After": 0.5 }],
        "Price": [{ "Return": 1, "After": 3 }, { "Throw": { "Error": "Busy", "Cause": "later" }, "After": 1 }, { "Return": 2, "After": 1 }, { "Return": 3, "After": 1 }],
        "Ship": [{ "Return": "shipped", "After": 1 }],
        "Ask": [{ "Return": {}, "After": 0.5, "Callback": "yes", "TokenBeats": [1, 2, 3] }],
    })
}

#[test]
fn a_recording_passes_and_says_where_a_changed_definition_differs() {
    let source = orders();
    let definition = definition(&source);
    let input = json!({ "items": ["a", "b", "c"] });
    let mut replies = replies();
    replies["Ask"] = json!([{ "Return": {}, "After": 4, "Callback": "yes", "TokenBeats": [1, 2, 3] }]);
    let played = played(&definition, &replies, &input, 1);
    assert!(matches!(played.outcome, Some(Outcome::Succeeded(_))), "{:?}", played.outcome);
    let recording = recorded(&definition, &played, &input).expect("a recording");
    assert_eq!(recording.notes, Vec::<String>::new());
    passes(&definition, &recording);
    let case = &recording.suite["cases"][0];
    assert_eq!(case["mocks"]["Charge"], json!([{ "error": "Busy", "after_s": 0.25 }, { "return": true, "after_s": 0.5 }]));
    let at = |number: u32| {
        let all = case["mocks"]["Price"].as_array().expect("mocks");
        all.iter().filter(|mock| mock["at"] == json!([number])).map(|mock| mock.get("return").cloned()).collect::<Vec<_>>()
    };
    assert_eq!((at(0), at(2).len()), (vec![Some(json!(1))], 1));
    assert_eq!(at(1), [None, Some(json!(2))], "an error, and then the answer");
    assert_eq!(case["mocks"]["Ask"][0]["callback"]["return"], "yes");
    assert_eq!(case["mocks"]["Ask"][0]["beat_s"], 1.0, "it was alive for longer than its heartbeats allow");
    let places: Vec<_> = case["expect"]["events"].as_object().expect("events").keys().map(String::as_str).collect();
    assert_eq!(places, ["top", "Both[0]", "Both[1]", "Each[0]", "Each[1]", "Each[2]"]);
    let top = case["expect"]["events"]["top"].as_array().expect("events").clone();
    assert!(top.contains(&json!("ChoiceStateEntered Paid")), "{top:?}");
    // What of it fails with another definition, and where.
    let fails = |change: &dyn Fn(&mut Value), told: &str| {
        let mut source = source.clone();
        change(&mut source);
        let changed = crate::definition(&source);
        let suite = Suite::parse(&recording.suite.to_string()).expect("a suite");
        let problems = suite.run(&changed).remove(0).problems;
        assert!(problems.iter().any(|problem| problem.contains(told)), "{told}: {problems:#?}");
    };
    fails(&|source| source["States"]["Charge"]["Retry"] = json!([]), "expected the status SUCCEEDED, found FAILED: Busy");
    fails(
        &|source| source["States"]["Each"]["ItemProcessor"]["States"]["Rest"] = json!({ "Type": "Pass", "End": true }),
        "events.Each[0][6]: expected WaitStateEntered \"Rest\", found PassStateEntered \"Rest\"",
    );
    fails(
        &|source| source["States"]["Paid"]["Choices"][0]["BooleanEquals"] = json!(false),
        "events.top[11]: expected MapStateEntered \"Each\", found FailStateEntered \"Refused\"",
    );
    fails(&|source| source["States"]["Charge"]["ResultPath"] = json!("$.payed"), "States.Runtime");
    fails(
        &|source| source["States"]["Both"]["ResultPath"] = json!("$.all"),
        ": ParallelStateExited \"Both\": output: $.both: expected [\"shipped\",\"yes\"], found nothing",
    );
}

#[test]
fn timeouts_stops_and_failures_are_recorded() {
    let waits = json!({ "StartAt": "A", "States": {
        "A": { "Type": "Task", "Resource": "fn:a", "TimeoutSeconds": 5, "Catch": [{ "ErrorEquals": ["States.Timeout"], "Next": "B" }], "Next": "B" },
        "B": { "Type": "Task", "Resource": "fn:b", "End": true } } });
    let definition = definition(&waits);
    let slow = played(
        &definition,
        &json!({ "A": { "Return": 1, "After": 9 }, "B": { "Throw": { "Error": "E", "Cause": "c" } } }),
        &json!({}),
        1,
    );
    let recording = recorded(&definition, &slow, &json!({})).expect("a recording");
    assert_eq!(recording.suite["cases"][0]["mocks"]["A"], json!([{ "never": true }]));
    assert_eq!(recording.suite["cases"][0]["expect"]["error"], "E");
    passes(&definition, &recording);
    let hung = played(&definition, &json!({ "A": { "Return": 1 }, "B": { "Hang": true } }), &json!({}), 1);
    assert_eq!(recorded(&definition, &hung, &json!({})), Err(RecordError::Running));
    let mut player = Player::new(Arc::clone(&definition), Limits::default(), 1)
        .replies(&json!({ "A": { "Return": 1 }, "B": { "Hang": true } }));
    let stop = sledge_workflow::machine::Event::Stopped { error: Some("Enough".into()), cause: None };
    player.push(60_000, stop);
    let stopped = player.play(json!({}));
    let recording = recorded(&definition, &stopped, &json!({})).expect("a recording");
    let case = &recording.suite["cases"][0];
    assert_eq!((&case["stop_after_s"], &case["stop_error"]), (&json!(60.0), &json!("Enough")));
    passes(&definition, &recording);
}

#[test]
fn items_and_results_of_a_store_are_recorded() {
    let source = json!({ "StartAt": "M", "States": { "M": { "Type": "Map", "End": true,
        "ItemReader": { "Resource": "kv:list", "Parameters": { "Prefix": "in/" } },
        "ResultWriter": { "Resource": "kv:set", "Parameters": { "Prefix": "out" } },
        "Retry": [{ "ErrorEquals": ["States.ItemReaderFailed", "Odd"] }],
        "ItemProcessor": { "StartAt": "T", "States": { "T": { "Type": "Task", "Resource": "fn:t", "End": true } } } } } });
    let definition = definition(&source);
    let items = json!([{ "Key": "in/1" }, { "Key": "in/2" }]);
    let written =
        json!({ "MapRunArn": "arn:1", "ResultWriterDetails": { "Bucket": "default", "Key": "out/one/1/manifest.json" } });
    let replies = json!({ "M": [{ "Throw": { "Error": "Kv" } }, { "Return": items }, { "Return": items }, { "Return": written }],
                          "T": [{ "Return": 1 }, { "Throw": { "Error": "Odd" } }, { "Return": 3 }, { "Return": 4 }] });
    let played = played(&definition, &replies, &json!({}), 1);
    assert_eq!(played.result()["output"], written);
    let recording = recorded(&definition, &played, &json!({})).expect("a recording");
    assert_eq!(recording.notes, Vec::<String>::new());
    let mocks = &recording.suite["cases"][0]["mocks"]["M"];
    assert_eq!(mocks["ItemReader"], json!([{ "error": "Kv" }, { "return": items }, { "return": items }]));
    assert_eq!(mocks["ResultWriter"], json!([{ "return": written }]));
    passes(&definition, &recording);
}

#[test]
fn what_depends_on_chance_or_time_is_left_out_and_said() {
    let source = json!({ "StartAt": "A", "States": {
        "A": { "Type": "Pass", "Parameters": { "id.$": "States.UUID()", "name.$": "$$.Execution.Name" }, "Next": "B" },
        "B": { "Type": "Pass", "Parameters": { "name.$": "$.name" }, "End": true } } });
    let definition = definition(&source);
    let played = Player::new(Arc::clone(&definition), Limits::default(), 9).play(json!({}));
    let recording = recorded(&definition, &played, &json!({})).expect("a recording");
    assert_eq!(recording.notes, ["the output of \"A\" (top) depends on time or chance: it is not compared"]);
    assert_eq!(recording.suite["cases"][0]["expect"]["output"], json!({ "name": "one" }), "the execution's own name");
    passes(&definition, &recording);
}

#[test]
fn what_cannot_be_replayed_is_refused() {
    let definition =
        definition(&json!({ "StartAt": "A", "States": { "A": { "Type": "Task", "Resource": "fn:a", "End": true } } }));
    let event = |id: u64, kind: &str| json!({ "type": kind, "id": id, "previousEventId": id - 1, "timestamp": 1.0 });
    let refused = |status: &str, history: &[Value]| {
        let (input, output) = (&Value::Null, Some(&Value::Null));
        let own = Recorded { name: "one", arn: ARN, status, started_ms: 0, input, output, error: None, cause: None, history };
        record(&definition, "w", &own).expect_err("refused")
    };
    assert_eq!(refused("RUNNING", &[]), RecordError::Running);
    assert_eq!(refused("SUCCEEDED", &[event(2, "TaskStateEntered")]), RecordError::Incomplete);
    let redriven = [event(1, "ExecutionStarted"), event(2, "ExecutionFailed"), event(3, "ExecutionRedriven")];
    assert_eq!(refused("SUCCEEDED", &redriven), RecordError::Redriven);
    assert!(matches!(refused("SUCCEEDED", &redriven[..1]), RecordError::Stuck(_)), "no task has answered");
}

/// Executions of random definitions that end are recorded, or refused for a reason, and every recording passes. Histories that were changed do not panic.
#[test]
fn recordings_of_random_executions_pass() {
    let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(|| fastrand::u64(..));
    println!("SEED={seed}");
    let mut rng = fastrand::Rng::with_seed(seed);
    let (mut count, mut whole) = (0, 0);
    for _ in 0..400 {
        let definition = definition(&generate::definition(&mut rng));
        let replies: serde_json::Map<_, _> = definition
            .resources()
            .map(|(state, _)| {
                let reply = |rng: &mut fastrand::Rng| {
                    let after = f64::from(rng.u16(..5_000)) / 1_000.0;
                    if rng.u8(..4) == 0 {
                        json!({ "Throw": { "Error": "Boom" }, "CallbackThrow": { "Error": "Boom" }, "After": after })
                    } else {
                        json!({ "Return": generate::document(rng, 2), "Callback": [1], "After": after })
                    }
                };
                (state.to_owned(), json!([reply(&mut rng), reply(&mut rng), reply(&mut rng)]))
            })
            .collect();
        let input = json!([1, { "a": 2 }]);
        let played = played(&definition, &Value::Object(replies), &input, seed);
        let Some(outcome) = &played.outcome else { continue };
        match recorded(&definition, &played, &input) {
            Ok(recording) => {
                count += 1;
                whole += usize::from(recording.notes.is_empty());
                passes(&definition, &recording);
            }
            Err(RecordError::Stuck(_) | RecordError::Otherwise { .. }) => {}
            Err(other) => panic!("SEED={seed}: {other} {outcome:?}"),
        }
        let mut history: Vec<Value> =
            played.history.iter().map(|event| serde_json::to_value(event).expect("an event is JSON")).collect();
        for _ in 0..3 {
            let at = rng.usize(..history.len());
            history[at]["previousEventId"] = rng.u64(..60).into();
            history.swap(at, rng.usize(..played.history.len()));
        }
        let own = Recorded {
            name: "n",
            arn: "",
            status: "SUCCEEDED",
            started_ms: i64::MAX,
            input: &input,
            output: None,
            error: None,
            cause: None,
            history: &history,
        };
        drop(record(&definition, "w", &own));
    }
    println!("{count} recordings, {whole} of them without notes");
    assert!(count > 200 && whole > 100, "SEED={seed}: {count} recordings, {whole} without notes");
}
