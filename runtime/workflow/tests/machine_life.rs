//! What an execution does besides its states: yielding, stopping, going on after a failure, tokens, jitter, determinism.

mod driver;

use std::sync::Arc;

use driver::{Player, START_MS, about, definition};
use serde_json::{Value, json};
use sledge_workflow::definition::{Definition, Resource};
use sledge_workflow::machine::{About, Action, Event, Execution, Limits, Outcome, Status, step};

fn one(state: Value) -> Arc<Definition> {
    definition(&json!({ "StartAt": "A", "States": { "A": state } }))
}

fn task() -> Arc<Definition> {
    one(json!({ "Type": "Task", "Resource": "fn:f", "End": true }))
}

#[test]
fn definitions_and_executions_go_between_threads() {
    fn check<T: Send + Sync>() {}
    check::<Definition>();
    check::<Execution>();
    check::<Action>();
}

#[test]
fn a_loop_yields_and_ends_only_from_outside() {
    let definition = definition(
        &json!({ "StartAt": "A", "States": { "A": { "Type": "Pass", "Next": "B" }, "B": { "Type": "Pass", "Next": "A" } } }),
    );
    let mut execution = Execution::new(&definition, about(), Limits { transitions_per_step: 10, ..Limits::default() }, false);
    let mut event = Event::Started { input: json!(1) };
    for _ in 0..100 {
        let mut actions = Vec::new();
        step(&definition, &mut execution, event, START_MS, &mut || 0, &mut actions);
        assert!(matches!(actions.as_slice(), [Action::Yield]), "{actions:?}");
        event = Event::Continue;
    }
    let mut actions = Vec::new();
    step(
        &definition,
        &mut execution,
        Event::Stopped { error: Some("E".into()), cause: Some("c".into()) },
        START_MS,
        &mut || 0,
        &mut actions,
    );
    let [Action::Ended(Outcome::Aborted(failure))] = actions.as_slice() else { panic!("{actions:?}") };
    assert_eq!((failure.error.as_deref(), failure.cause.as_deref()), (Some("E"), Some("c")));
    assert_eq!(execution.status(), Status::Aborted);
}

#[test]
fn many_transitions_are_cut_into_steps() {
    let items: Vec<u32> = (0..3_000).collect();
    let definition = one(
        json!({ "Type": "Map", "End": true, "ItemProcessor": { "StartAt": "X", "States": { "X": { "Type": "Pass", "End": true } } } }),
    );
    let played =
        Player::new(definition, Limits { history_events: 100_000, ..Limits::default() }, 1).unchecked().play(json!(items));
    assert_eq!(played.result(), json!({ "output": items }));
    assert_eq!(played.yields, 3);
}

#[test]
fn stopping_gives_up_what_is_open() {
    let definition = definition(
        &json!({ "StartAt": "P", "TimeoutSeconds": 100, "States": { "P": { "Type": "Parallel", "End": true, "Branches": [
        { "StartAt": "X", "States": { "X": { "Type": "Task", "Resource": "fn:x", "TimeoutSeconds": 50, "HeartbeatSeconds": 9, "End": true } } },
        { "StartAt": "Y", "States": { "Y": { "Type": "Wait", "Seconds": 50, "End": true } } } ] } } }),
    );
    let mut execution = Execution::new(&definition, about(), Limits::default(), false);
    let mut actions = Vec::new();
    step(&definition, &mut execution, Event::Started { input: json!({}) }, START_MS, &mut || 0, &mut actions);
    let mut stopped = Vec::new();
    step(&definition, &mut execution, Event::Stopped { error: None, cause: None }, START_MS, &mut || 0, &mut stopped);
    let count = |wanted: fn(&Action) -> bool| {
        (actions.iter().filter(|action| wanted(action)).count(), stopped.iter().filter(|action| wanted(action)).count())
    };
    assert_eq!(count(|action| matches!(action, Action::SetTimer { .. })), (4, 0));
    assert_eq!(count(|action| matches!(action, Action::CancelTimer { .. })), (0, 4));
    assert_eq!(count(|action| matches!(action, Action::CancelTask { .. })), (0, 1));
    assert!(matches!(stopped.last(), Some(Action::Ended(Outcome::Aborted(_)))));
    let mut late = Vec::new();
    step(&definition, &mut execution, Event::Stopped { error: None, cause: None }, START_MS, &mut || 0, &mut late);
    assert!(late.is_empty());
}

#[test]
fn positions_name_branches_and_iterations() {
    let definition = definition(&json!({ "StartAt": "P", "States": { "P": { "Type": "Parallel", "End": true, "Branches": [
        { "StartAt": "X", "States": { "X": { "Type": "Task", "Resource": "fn:x", "End": true } } },
        { "StartAt": "M", "States": { "M": { "Type": "Map", "End": true, "ItemProcessor": { "StartAt": "Y", "States": {
            "Y": { "Type": "Parallel", "End": true, "Branches": [{ "StartAt": "Z", "States": { "Z": { "Type": "Task", "Resource": "fn:z", "End": true } } }] } } } } } } ] } } }));
    let played = Player::new(definition, Limits::default(), 1).play(json!([1, 2]));
    let mut positions: Vec<_> = played.started.iter().map(|task| (task.state.to_string(), task.position.clone())).collect();
    positions.sort();
    assert_eq!(positions, [("X".to_owned(), vec![0]), ("Z".to_owned(), vec![1, 0, 0]), ("Z".to_owned(), vec![1, 1, 0])]);
    assert_eq!(played.result(), json!({ "output": [[1, 2], [[1], [2]]] }));
}

#[test]
fn tokens_begin_with_the_prefix_and_differ() {
    let definition = one(
        json!({ "Type": "Task", "Resource": "fn:f.waitForTaskToken", "Parameters": { "token.$": "$$.Task.Token" }, "End": true,
        "Retry": [{ "ErrorEquals": ["States.ALL"], "MaxAttempts": 2 }] }),
    );
    let replies = json!({ "A": [{ "Return": 1, "CallbackThrow": { "Error": "E" } }] });
    let played = Player::new(definition, Limits::default(), 1).replies(&replies).play(json!({}));
    let tokens: Vec<_> = played.started.iter().map(|task| task.token.clone().expect("a token")).collect();
    assert_eq!(tokens.len(), 3);
    assert!(tokens.iter().all(|token| token.starts_with("one.") && token.len() > 40), "{tokens:?}");
    assert!(tokens[0] != tokens[1] && tokens[1] != tokens[2]);
    for task in &played.started {
        assert_eq!(task.input["token"].as_str(), task.token.as_deref());
    }
    assert_eq!(played.started.iter().map(|task| task.attempt).collect::<Vec<_>>(), [0, 1, 2]);
}

#[test]
fn an_old_token_does_not_end_a_new_attempt() {
    let definition = one(
        json!({ "Type": "Task", "Resource": "fn:f.waitForTaskToken", "TimeoutSeconds": 1, "End": true, "Retry": [{ "ErrorEquals": ["States.Timeout"], "MaxAttempts": 1 }] }),
    );
    let replies =
        json!({ "A": [{ "Hang": true, "Callback": "late", "After": 4 }, { "Hang": true, "Callback": "right", "After": 0.5 }] });
    let played = Player::new(definition, Limits::default(), 1).replies(&replies).play(json!({}));
    assert_eq!(played.result(), json!({ "output": "right" }));
}

#[test]
fn jitter_spreads_the_attempts_by_the_given_randomness() {
    let definition = one(
        json!({ "Type": "Task", "Resource": "fn:f", "End": true, "Retry": [{ "ErrorEquals": ["E"], "IntervalSeconds": 100, "MaxAttempts": 1, "JitterStrategy": "FULL" }] }),
    );
    let replies = json!({ "A": [{ "Throw": { "Error": "E" } }] });
    let delays: Vec<i64> = (0..50)
        .map(|seed| {
            Player::new(Arc::clone(&definition), Limits::default(), seed).replies(&replies).play(json!({})).now_ms - START_MS
        })
        .collect();
    assert!(delays.iter().all(|delay| (0..=100_000).contains(delay)), "{delays:?}");
    assert!(delays.iter().any(|delay| *delay < 30_000) && delays.iter().any(|delay| *delay > 70_000), "{delays:?}");
    let again = Player::new(definition, Limits::default(), 7).replies(&replies).play(json!({})).now_ms - START_MS;
    assert_eq!(again, delays[7], "the same seed gives the same delay");
}

#[test]
fn a_failed_execution_goes_on_where_it_failed() {
    let definition = definition(&json!({ "StartAt": "A", "TimeoutSeconds": 1000, "States": {
        "A": { "Type": "Pass", "Assign": { "v": 1 }, "Next": "T" },
        "T": { "Type": "Task", "Resource": "fn:f", "Next": "Z" },
        "Z": { "Type": "Pass", "Parameters": { "in.$": "$", "v.$": "$v", "redrives.$": "$$.Execution.RedriveCount" }, "End": true } } }));
    let mut player = Player::new(definition, Limits::default(), 1)
        .replies(&json!({ "T": [{ "Throw": { "Error": "E" } }, { "Return": "well" }] }));
    player.step(Event::Started { input: json!({ "a": 1 }) });
    while player.outcome().is_none() {
        player = player.turn();
    }
    assert!(matches!(player.outcome(), Some(Outcome::Failed(_))));
    player.clear_outcome();
    player.step(Event::Redriven);
    let played = player.go_on();
    assert_eq!(played.result(), json!({ "output": { "in": "well", "v": 1, "redrives": 1 } }));
    let events = played.events();
    assert_eq!(
        events[events.iter().position(|event| *event == "ExecutionFailed").expect("it failed")..],
        [
            "ExecutionFailed",
            "ExecutionRedriven",
            "TaskStateEntered",
            "LambdaFunctionScheduled",
            "LambdaFunctionStarted",
            "LambdaFunctionSucceeded",
            "TaskStateExited",
            "PassStateEntered",
            "PassStateExited",
            "ExecutionSucceeded"
        ]
    );
}

#[test]
fn what_succeeded_is_not_redriven() {
    let played = Player::new(one(json!({ "Type": "Pass", "End": true })), Limits::default(), 1).play(json!(1));
    let mut execution = played.execution;
    let definition = one(json!({ "Type": "Pass", "End": true }));
    let mut actions = Vec::new();
    step(&definition, &mut execution, Event::Redriven, START_MS, &mut || 0, &mut actions);
    assert!(actions.is_empty() && execution.status() == Status::Succeeded);
}

#[test]
fn an_input_that_is_too_large_or_too_deep_is_refused() {
    let deep = (0..120).fold(json!(1), |inner, _| json!([inner]));
    for input in [json!("x".repeat(300_000)), deep] {
        let played = Player::new(task(), Limits::default(), 1).unchecked().play(input);
        assert_eq!(played.result()["error"], json!("States.DataLimitExceeded"));
        assert!(played.started.is_empty());
        let written = serde_json::to_string(&played.execution).expect("an execution can be written");
        serde_json::from_str::<Execution>(&written).expect("what was written can be read");
    }
}

#[test]
fn the_start_of_a_task_tells_all_that_the_caller_needs() {
    let definition = one(json!({ "Type": "Task", "Resource": "fn:f", "TimeoutSeconds": 9, "HeartbeatSeconds": 3, "End": true }));
    let played = Player::new(definition, Limits::default(), 1).play(json!({ "a": 1 }));
    let task = &played.started[0];
    assert_eq!(
        (&*task.state, task.deadline_ms, task.heartbeat_s, task.attempt, task.token.as_deref()),
        ("A", Some(START_MS + 9_000), Some(3), 0, None)
    );
    assert_eq!(*task.resource, Resource::Function { name: "f".into(), qualifier: None, callback: false });
    assert_eq!(*task.input, json!({ "a": 1 }));
}

#[test]
fn long_errors_and_causes_are_cut() {
    let replies = json!({ "A": [{ "Throw": { "Error": "é".repeat(300), "Cause": "c".repeat(40_000) } }] });
    let played = Player::new(task(), Limits::default(), 1).replies(&replies).play(json!({}));
    let Some(Outcome::Failed(failure)) = played.outcome else { panic!("it fails") };
    assert_eq!(failure.error.map(|text| text.chars().count()), Some(128));
    assert_eq!(failure.cause.map(|text| text.len()), Some(32_768));
}

#[test]
fn too_many_variables_are_refused() {
    let assign: serde_json::Map<String, Value> = (0..1_001).map(|number| (format!("v{number}"), json!(1))).collect();
    let played = Player::new(one(json!({ "Type": "Pass", "Assign": assign, "End": true })), Limits::default(), 1)
        .unchecked()
        .play(json!({}));
    assert_eq!(played.result()["error"], json!("States.DataLimitExceeded"));
}

#[test]
fn documents_are_handed_on_and_not_copied() {
    let task = json!({ "Type": "Task", "Resource": "fn:f", "ResultPath": null });
    let mut last = task.clone();
    last["End"] = json!(true);
    let mut first = task;
    first["Next"] = json!("P");
    let definition = definition(&json!({ "StartAt": "A", "States": { "A": first, "P": { "Type": "Pass", "Next": "C" },
        "C": { "Type": "Choice", "Choices": [{ "Variable": "$.a", "IsPresent": true, "Next": "Z" }] }, "Z": last } }));
    let played = Player::new(definition, Limits::default(), 1).unchecked().play(json!({ "a": [1, 2, 3] }));
    let Some(Outcome::Succeeded(output)) = &played.outcome else { panic!("it succeeds") };
    assert!(Arc::ptr_eq(&played.started[0].input, &played.started[1].input));
    assert!(Arc::ptr_eq(&played.started[0].input, output));
    assert!(Arc::ptr_eq(&played.started[0].input, played.execution.input()));
}

#[test]
fn values_at_the_limit_of_depth_can_be_written_and_read() {
    // The player writes and reads the execution at each step.
    let deep = (0..97).fold(json!(1), |inner, _| json!([inner]));
    let map = json!({ "Type": "Map", "End": true, "ItemBatcher": { "MaxItemsPerBatch": 1 }, "ItemProcessor": { "StartAt": "X", "States": {
        "X": { "Type": "Parallel", "End": true, "Branches": [{ "StartAt": "Y", "States": { "Y": { "Type": "Wait", "Seconds": 1, "End": true } } }] } } } });
    let played = Player::new(one(map), Limits::default(), 1).play(json!([deep]));
    assert_eq!(played.result()["error"], json!("States.DataLimitExceeded"));
}

/// 200 KB for each task.
fn large_replies() -> Value {
    json!({ "T": [{ "ReturnBytes": 200_000 }] })
}

#[test]
fn results_of_iterations_are_limited_in_all() {
    let items: Vec<u32> = (0..200).collect();
    let map = json!({ "Type": "Map", "End": true, "ResultPath": null, "Catch": [{ "ErrorEquals": ["States.DataLimitExceeded"], "Next": "C" }],
        "ItemProcessor": { "StartAt": "T", "States": { "T": { "Type": "Task", "Resource": "fn:f", "End": true } } } });
    let definition =
        definition(&json!({ "StartAt": "M", "States": { "M": map, "C": { "Type": "Pass", "Result": "caught", "End": true } } }));
    let played = Player::new(definition, Limits::default(), 1).unchecked().replies(&large_replies()).play(json!(items));
    assert_eq!(played.result(), json!({ "output": "caught" }));
    // 16 MiB of them.
    let count = played.events().iter().filter(|event| **event == "MapIterationSucceeded").count();
    assert_eq!(count, (16 << 20) / 200_002);
}

#[test]
fn variables_are_limited_in_all_scopes_together() {
    let items: Vec<u32> = (0..40).collect();
    let map = json!({ "Type": "Map", "End": true, "ItemProcessor": { "StartAt": "T", "States": {
        "T": { "Type": "Task", "Resource": "fn:f", "Assign": { "a.$": "$", "b.$": "$" }, "ResultPath": null, "Next": "W" },
        "W": { "Type": "Wait", "Seconds": 1, "Assign": { "a": 1, "b": 1 }, "End": true } } } });
    let play = |items: &[u32], map: &Value| {
        let definition = one(map.clone());
        Player::new(definition, Limits::default(), 1)
            .unchecked()
            .replies(&json!({ "T": [{ "ReturnBytes": 120_000 }] }))
            .play(json!(items))
            .result()
    };
    assert!(play(&items, &map).get("output").is_some(), "40 scopes of 240 KB are within 10 MiB");
    let mut larger = map;
    larger["ItemProcessor"]["States"]["T"]["Assign"]["c.$"] = json!("States.Array($)");
    // Those of one Assign are limited as well: 256 KiB.
    assert_eq!(play(&items[..1], &larger)["error"], json!("States.DataLimitExceeded"));
    let mut twice = larger;
    twice["ItemProcessor"]["States"]["T"]["Assign"] = json!({ "a.$": "$", "b.$": "$" });
    twice["ItemProcessor"]["States"]["T"]["Next"] = json!("U");
    twice["ItemProcessor"]["States"]["U"] = json!({ "Type": "Pass", "Assign": { "c.$": "$a", "d.$": "$b" }, "Next": "W" });
    assert_eq!(play(&items, &twice)["error"], json!("States.DataLimitExceeded"), "40 scopes of 480 KB are not");
    assert!(play(&items[..20], &twice).get("output").is_some(), "20 of them are");
}

#[test]
fn many_expressions_cannot_fill_the_memory() {
    let parts: Vec<_> = (0..10_000).map(|_| json!("{% $pad('', 100000, 'x') %}")).collect();
    let definition = definition(
        &json!({ "StartAt": "A", "QueryLanguage": "JSONata", "States": { "A": { "Type": "Pass", "Output": parts, "End": true } } }),
    );
    let started = std::time::Instant::now();
    let played = Player::new(definition, Limits::default(), 1).unchecked().play(json!({}));
    assert_eq!(played.result()["error"], json!("States.DataLimitExceeded"));
    assert!(started.elapsed().as_secs() < 20);
}

#[test]
fn a_failed_branch_gives_up_the_tasks_and_timers_of_the_others() {
    let definition = one(json!({ "Type": "Parallel", "End": true, "Branches": [
        { "StartAt": "X", "States": { "X": { "Type": "Task", "Resource": "fn:x", "TimeoutSeconds": 50, "HeartbeatSeconds": 9, "End": true } } },
        { "StartAt": "T", "States": { "T": { "Type": "Task", "Resource": "fn:t", "End": true, "Retry": [{ "ErrorEquals": ["Again"] }] } } },
        { "StartAt": "Y", "States": { "Y": { "Type": "Wait", "Seconds": 2, "Next": "F" }, "F": { "Type": "Fail", "Error": "E" } } } ] }));
    let replies = json!({ "X": [{ "Beats": [1.5], "Hang": true }], "T": [{ "Throw": { "Error": "Again" }, "After": 1.5 }] });
    let played = Player::new(definition, Limits::default(), 1).replies(&replies).play(json!({}));
    assert_eq!(played.result()["error"], json!("E"));
    let count = |what: &str| played.trace.iter().filter(|action| action.contains(what)).count();
    // The task of X; its two timers, the one that a heartbeat replaced, and the interval of T's retrier.
    assert_eq!((count("CancelTask"), count("CancelTimer")), (1, 4));
    assert_eq!(count("SetTimer"), 5);
}

#[test]
fn express_executions_have_no_count_of_redrives() {
    let definition = definition(
        &json!({ "StartAt": "P", "States": { "P": { "Type": "Pass", "Parameters": { "of.$": "$$.Execution" }, "End": true } } }),
    );
    let of = |id: &str| {
        let about = About { id: id.into(), ..about() };
        let (mut execution, mut actions) = (Execution::new(&definition, about, Limits::default(), false), Vec::new());
        step(&definition, &mut execution, Event::Started { input: json!({}) }, START_MS, &mut || 0, &mut actions);
        match actions.pop() {
            Some(Action::Ended(Outcome::Succeeded(output))) => output["of"].get("RedriveCount").cloned(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(of("arn:aws:states:local:t:express:w:one:1"), None);
    // Whatever workflows and executions are called.
    for id in ["arn:aws:states:local:express:execution:express:express", "execution:1"] {
        assert_eq!(of(id), Some(json!(0)), "{id}");
    }
}
