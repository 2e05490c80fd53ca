//! Executions that begin at a state that the caller names, and ended ones that go on at one.

mod driver;

use std::sync::Arc;

use driver::{Played, Player, START_MS, about, definition};
use serde_json::{Map, Value, json};
use sledge_workflow::definition::Definition;
use sledge_workflow::machine::{Action, Entry, EntryError, Event, Execution, Limits, Outcome, Status, step};

/// `A` assigns, `T` is a task, `P` has a branch with `X` and `Y`, `Z` tells what it sees.
fn workflow() -> Arc<Definition> {
    definition(&json!({ "StartAt": "A", "TimeoutSeconds": 1000, "States": {
        "A": { "Type": "Pass", "Assign": { "v": 1 }, "Next": "T" },
        "T": { "Type": "Task", "Resource": "fn:f", "Assign": { "w.$": "$" }, "Next": "P" },
        "P": { "Type": "Parallel", "Next": "Z", "Branches": [{ "StartAt": "X", "States": {
            "X": { "Type": "Pass", "Next": "Y" },
            "Y": { "Type": "Pass", "Parameters": { "in.$": "$", "v.$": "$v" }, "End": true } } }] },
        "Z": { "Type": "Pass", "End": true, "Parameters": {
            "in.$": "$", "v.$": "$v", "of.$": "$$.Execution.Input", "redrives.$": "$$.Execution.RedriveCount", "start.$": "$$.Execution.StartTime" } } } }))
}

fn entry(definition: &Definition, state: &str, input: Value, variables: Value) -> Entry {
    let Value::Object(variables) = variables else { panic!("variables are an object") };
    Entry { state: definition.find(state).expect("the state exists"), input, variables, start_ms: START_MS }
}

/// Plays a workflow from a state on.
fn play_at(definition: &Arc<Definition>, entry: Entry) -> Played {
    let mut player = Player::new(Arc::clone(definition), Limits::default(), 1).replies(&json!({ "T": [{ "Return": "done" }] }));
    player.execution =
        Execution::at(definition, about(), Limits::default(), true, entry).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((player.execution.status(), player.execution.is_ready(), player.execution.frames()), (Status::Running, true, 1));
    player.step(Event::Continue);
    player.go_on()
}

#[test]
fn an_execution_begins_at_a_state() {
    let definition = workflow();
    let played = play_at(&definition, entry(&definition, "P", json!({ "a": 1 }), json!({ "v": 7 })));
    let branch = json!([{ "in": { "a": 1 }, "v": 7 }]);
    let output = json!({ "in": branch, "v": 7, "of": { "a": 1 }, "redrives": 0, "start": "2030-01-01T00:00:00.000Z" });
    assert_eq!(played.result(), json!({ "output": output }));
    let first = &played.history[0];
    assert_eq!((first.id, first.previous, first.kind.name()), (1, 0, "ParallelStateEntered"));
    // The execution waits for a task as any other.
    let played = play_at(&definition, entry(&definition, "T", json!("x"), json!({ "v": 2 })));
    assert_eq!(played.result()["output"]["in"], json!([{ "in": "done", "v": 2 }]));
    assert_eq!(*played.started[0].input, json!("x"));
}

#[test]
fn a_state_of_a_branch_becomes_the_top() {
    let definition = workflow();
    let played = play_at(&definition, entry(&definition, "X", json!(5), json!({ "v": 3 })));
    assert_eq!(played.result(), json!({ "output": { "in": 5, "v": 3 } }));
    assert_eq!(played.events().last(), Some(&"ExecutionSucceeded"));
}

#[test]
fn an_entry_is_refused_if_it_exceeds_limits() {
    let definition = workflow();
    let at = |entry: Entry| Execution::at(&definition, about(), Limits::default(), true, entry).map(drop);
    let deep = (0..120).fold(json!(1), |inner, _| json!([inner]));
    for input in [json!("x".repeat(300_000)), deep.clone()] {
        assert_eq!(at(entry(&definition, "A", input, json!({}))), Err(EntryError::Input(262_144)));
    }
    let many: Map<String, Value> = (0..1_001).map(|number| (format!("v{number}"), json!(1))).collect();
    let large: Map<String, Value> = (0..11).map(|number| (format!("v{number}"), json!("x".repeat(1 << 20)))).collect();
    for variables in [Value::Object(many), Value::Object(large), json!({ "v": deep })] {
        let error = at(entry(&definition, "A", json!(1), variables)).expect_err("the variables are refused");
        assert_eq!(error, EntryError::Variables);
        assert!(error.to_string().ends_with("give fewer"), "{error}");
    }
    let most: Map<String, Value> = (0..1_000).map(|number| (format!("v{number}"), json!(1))).collect();
    assert_eq!(at(entry(&definition, "A", json!(1), Value::Object(most))), Ok(()));
    let other = definition_of_one_state();
    let foreign = entry(&definition, "Z", json!(1), json!({}));
    let error = Execution::at(&other, about(), Limits::default(), true, foreign).map(drop);
    assert_eq!(error, Err(EntryError::NoState));
}

fn definition_of_one_state() -> Arc<Definition> {
    definition(&json!({ "StartAt": "Only", "States": { "Only": { "Type": "Pass", "End": true } } }))
}

/// Variables that an entry brings count as those that states assign.
#[test]
fn given_variables_count_towards_the_limit() {
    let definition = definition(&json!({ "StartAt": "A", "States": {
        "A": { "Type": "Pass", "Assign": { "more.$": "$" }, "End": true } } }));
    let large: Map<String, Value> = (0..10).map(|number| (format!("v{number}"), json!("x".repeat((1 << 20) - 10)))).collect();
    let played = play_at(&definition, entry(&definition, "A", json!("x".repeat(1_000)), Value::Object(large)));
    assert_eq!(played.result()["error"], json!("States.DataLimitExceeded"));
}

/// Plays until the end, with a task that fails or not.
fn ended(definition: &Arc<Definition>, reply: Value) -> Player {
    let replies = json!({ "T": [reply, { "Return": "again" }] });
    let mut player = Player::new(Arc::clone(definition), Limits::default(), 1).replies(&replies);
    player.step(Event::Started { input: json!({ "a": 1 }) });
    while player.outcome().is_none() {
        player = player.turn();
    }
    player
}

fn restarted(mut player: Player, state: &str, input: Value) -> Played {
    assert!(player.execution.restartable(&player.definition, state, &input).is_ok());
    player.clear_outcome();
    player.step(Event::Restarted { state: state.into(), input });
    player.go_on()
}

#[test]
fn an_execution_that_failed_goes_on_at_a_state() {
    let player = ended(&workflow(), json!({ "Throw": { "Error": "E" } }));
    assert!(matches!(player.outcome(), Some(Outcome::Failed(_))));
    let played = restarted(player, "Z", json!("given"));
    let output = json!({ "in": "given", "v": 1, "of": { "a": 1 }, "redrives": 1, "start": "2030-01-01T00:00:00.000Z" });
    assert_eq!(played.result(), json!({ "output": output }));
    let at = played.events().iter().position(|event| *event == "ExecutionRedriven").expect("it is noted");
    assert_eq!(
        played.events()[at - 1..],
        ["ExecutionFailed", "ExecutionRedriven", "PassStateEntered", "PassStateExited", "ExecutionSucceeded"]
    );
    let note = &played.history[at];
    let details = json!({ "state": "Z", "redriveCount": 1, "input": "\"given\"", "inputDetails": { "truncated": false } });
    let written = serde_json::to_value(note).expect("it can be written");
    assert_eq!(written["executionRedrivenEventDetails"], details);
    assert_eq!((note.previous, played.history[at + 1].previous), (0, note.id));
}

#[test]
fn an_execution_that_failed_goes_on_before_the_failure() {
    let played = restarted(ended(&workflow(), json!({ "Throw": { "Error": "E" } })), "A", json!(2));
    assert_eq!(played.result()["output"]["in"], json!([{ "in": "again", "v": 1 }]));
    assert_eq!(*played.started.last().expect("it was started").input, json!(2));
    // The time of the whole is counted anew: its timer was set again.
    assert_eq!(played.trace.iter().filter(|line| line.contains("SetTimer")).count(), 2);
}

#[test]
fn an_execution_that_succeeded_goes_on_with_its_variables() {
    let player = ended(&workflow(), json!({ "Return": "first" }));
    assert!(matches!(player.outcome(), Some(Outcome::Succeeded(_))));
    let played = restarted(player, "P", json!("new"));
    assert_eq!(played.result()["output"]["in"], json!([{ "in": "new", "v": 1 }]));
    // As often as is wanted.
    let mut again = played.execution;
    let definition = workflow();
    for count in 2..5 {
        let mut actions = Vec::new();
        let event = Event::Restarted { state: "Z".into(), input: json!(count) };
        step(&definition, &mut again, event, START_MS, &mut || 0, &mut actions);
        let Some(Action::Ended(Outcome::Succeeded(output))) = actions.last() else { panic!("{actions:?}") };
        assert_eq!((&output["in"], &output["redrives"], &output["v"]), (&json!(count), &json!(count), &json!(1)));
    }
    // A success is not redriven, though its variables are kept.
    let mut actions = Vec::new();
    step(&definition, &mut again, Event::Redriven, START_MS, &mut || 0, &mut actions);
    assert!(actions.is_empty());
}

#[test]
fn an_execution_that_was_stopped_or_refused_goes_on() {
    let definition = workflow();
    let mut player = Player::new(Arc::clone(&definition), Limits::default(), 1).replies(&json!({ "T": [{ "Return": 1 }] }));
    player.step(Event::Started { input: json!(1) });
    player.step(Event::Stopped { error: None, cause: None });
    assert_eq!(restarted(player, "Z", json!(3)).result()["output"]["in"], json!(3));
    // The input was too large: there was no state yet.
    let mut player = Player::new(definition_of_one_state(), Limits::default(), 1).unchecked();
    player.step(Event::Started { input: json!("x".repeat(300_000)) });
    assert_eq!(player.execution.status(), Status::Failed);
    assert_eq!(restarted(player, "Only", json!(4)).result(), json!({ "output": 4 }));
}

#[test]
fn what_cannot_be_restarted_stays_as_it_is() {
    let definition = workflow();
    let mut actions = Vec::new();
    let mut check = |execution: &mut Execution, state: &str, input: Value, expected: EntryError| {
        assert_eq!(execution.restartable(&definition, state, &input), Err(expected));
        let before = serde_json::to_string(execution).expect("it can be written");
        step(&definition, execution, Event::Restarted { state: state.into(), input }, START_MS, &mut || 0, &mut actions);
        assert!(actions.is_empty(), "{actions:?}");
        assert_eq!(serde_json::to_string(execution).expect("it can be written"), before);
    };
    let mut fresh = Execution::new(&definition, about(), Limits::default(), true);
    check(&mut fresh, "A", json!(1), EntryError::NotEnded);
    let mut running = Player::new(Arc::clone(&definition), Limits::default(), 1);
    running.step(Event::Started { input: json!(1) });
    check(&mut running.execution, "A", json!(1), EntryError::NotEnded);
    let mut failed = ended(&definition, json!({ "Throw": { "Error": "E" } })).execution;
    check(&mut failed, "B", json!(1), EntryError::NoState);
    check(&mut failed, "X", json!(1), EntryError::Inside("X".into()));
    check(&mut failed, "A", json!("x".repeat(300_000)), EntryError::Input(262_144));
    let mut foreign = Execution::new(&definition_of_one_state(), about(), Limits::default(), true);
    check(&mut foreign, "A", json!(1), EntryError::OtherDefinition);
}
