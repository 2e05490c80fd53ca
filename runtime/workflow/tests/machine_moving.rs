//! Executions that go on by another definition, and those that cannot.

mod driver;

use std::collections::HashMap;
use std::sync::Arc;

use driver::{Player, START_MS, about, definition, generate};
use fastrand::Rng;
use serde_json::{Value, json};
use sledge_workflow::definition::Definition;
use sledge_workflow::machine::{Action, Event, Execution, Limits, Outcome, Status, TaskId, TimerId, step};

/// Random definitions and places.
const SEEDS: u64 = 300;

/// One execution, stepped by hand.
struct One {
    definition: Arc<Definition>,
    execution: Execution,
    now_ms: i64,
}

impl One {
    fn new(source: &Value) -> One {
        let definition = definition(source);
        let execution = Execution::new(&definition, about(), Limits::default(), true);
        One { definition, execution, now_ms: START_MS }
    }

    fn begun(source: &Value, input: Value) -> (One, Vec<Action>) {
        let mut one = One::new(source);
        let actions = one.step(Event::Started { input });
        (one, actions)
    }

    fn step(&mut self, event: Event) -> Vec<Action> {
        let mut actions = Vec::new();
        let written = serde_json::to_string(&self.execution).expect("an execution can be written");
        self.execution = serde_json::from_str(&written).expect("what was written can be read");
        step(&self.definition, &mut self.execution, event, self.now_ms, &mut || 7, &mut actions);
        actions.retain(|action| !matches!(action, Action::History(_)));
        actions
    }

    fn answer(&mut self, task: TaskId, output: Value) -> Vec<Action> {
        self.step(Event::TaskSucceeded { task, output })
    }

    /// Goes on by that definition.
    #[track_caller]
    fn move_to(&mut self, source: &Value) {
        let to = definition(source);
        match self.execution.moved(&self.definition, &to) {
            Ok(moved) => (self.execution, self.definition) = (moved, to),
            Err(misfits) => panic!("{misfits:?}"),
        }
        assert!(self.execution.fits(&self.definition));
    }

    /// Cannot go on by that definition, for these reasons.
    #[track_caller]
    fn refuses(&self, source: &Value, reasons: &[&str]) {
        let misfits = self.execution.moved(&self.definition, &definition(source)).expect_err("it cannot be moved");
        let said: Vec<_> = misfits.iter().map(ToString::to_string).collect();
        assert_eq!(said, reasons);
    }
}

fn tasks(actions: &[Action]) -> Vec<(String, TaskId)> {
    let task = |action: &Action| {
        if let Action::StartTask(start) = action { Some((start.state.to_string(), start.task)) } else { None }
    };
    actions.iter().filter_map(task).collect()
}

fn timers(actions: &[Action]) -> Vec<TimerId> {
    actions.iter().filter_map(|action| if let Action::SetTimer { timer, .. } = action { Some(*timer) } else { None }).collect()
}

#[track_caller]
fn output(actions: &[Action]) -> Value {
    match actions.last() {
        Some(Action::Ended(Outcome::Succeeded(output))) => (**output).clone(),
        other => panic!("{other:?}"),
    }
}

fn state(mut state: Value, next: Option<&str>) -> Value {
    match next {
        Some(next) => state["Next"] = json!(next),
        None => state["End"] = json!(true),
    }
    state
}

fn task(next: Option<&str>) -> Value {
    state(json!({ "Type": "Task", "Resource": "fn:f" }), next)
}

fn machine(first: &str, states: &Value) -> Value {
    json!({ "StartAt": first, "States": states })
}

fn result(result: &str, next: Option<&str>) -> Value {
    state(json!({ "Type": "Pass", "Result": result }), next)
}

#[test]
fn later_states_are_those_of_the_new_definition() {
    let (mut one, begun) = One::begun(&machine("A", &json!({ "A": task(Some("B")), "B": result("old", None) })), json!(1));
    // States before and behind the one in which it is are others, and it has another number among them.
    let new = json!({ "First": task(Some("A")), "A": task(Some("C")), "C": task(Some("D")), "D": result("new", None) });
    one.move_to(&machine("First", &new));
    let next = one.answer(tasks(&begun)[0].1, json!(2));
    assert_eq!(tasks(&next)[0].0, "C");
    // And again.
    one.move_to(&machine("C", &json!({ "C": task(None) })));
    assert_eq!(output(&one.answer(tasks(&next)[0].1, json!("end"))), "end");
}

#[test]
fn the_state_in_which_it_is_has_to_be_there_with_its_type() {
    let (one, _) = One::begun(&machine("A", &json!({ "A": task(Some("B")), "B": result("old", None) })), json!(1));
    one.refuses(
        &machine("B", &json!({ "B": result("new", None) })),
        &["the execution is in the state \"A\", which the new definition does not have"],
    );
    one.refuses(
        &machine("A", &json!({ "A": result("new", None) })),
        &["the state \"A\", in which the execution is, is a Task, and a Pass in the new definition"],
    );
    let inside =
        json!({ "M": state(json!({ "Type": "Map", "ItemProcessor": machine("A", &json!({ "A": task(None) })) }), None) });
    one.refuses(
        &machine("M", &inside),
        &["the state \"A\", in which the execution is, lies at the top level, and in the Map \"M\" in the new definition"],
    );
}

#[test]
fn a_task_that_runs_has_to_end_in_the_same_way() {
    let with = |resource: &str| machine("A", &json!({ "A": state(json!({ "Type": "Task", "Resource": resource }), None) }));
    let (mut one, begun) = One::begun(&with("fn:f"), json!(1));
    for other in ["fn:f.waitForTaskToken", "kv:get", "workflow:w", "arn:aws:states:::lambda:invoke"] {
        let other = if other == "kv:get" {
            machine("A", &json!({ "A": state(json!({ "Type": "Task", "Resource": other, "Parameters": { "Key": "k" } }), None) }))
        } else if other.starts_with("arn") {
            let parameters = json!({ "FunctionName": "f" });
            machine("A", &json!({ "A": state(json!({ "Type": "Task", "Resource": other, "Parameters": parameters }), None) }))
        } else {
            with(other)
        };
        let misfits = one.execution.moved(&one.definition, &definition(&other)).expect_err("it cannot be moved");
        let said = misfits[0].to_string();
        assert!(said.starts_with("a task of the state \"A\" is under way; it is fn:f, and "), "{said}");
    }
    // Another function answers in the same way; this one has answered for it.
    one.move_to(&with("fn:g"));
    assert_eq!(output(&one.answer(tasks(&begun)[0].1, json!(2))), json!(2));
}

#[test]
fn a_wait_and_the_time_of_the_whole_end_when_they_would_have() {
    let wait = |seconds: u64, next: &str| state(json!({ "Type": "Wait", "Seconds": seconds }), Some(next));
    let mut old = machine("W", &json!({ "W": wait(5, "T"), "T": task(None) }));
    old["TimeoutSeconds"] = json!(100);
    let (mut one, begun) = One::begun(&old, json!(1));
    let set = timers(&begun);
    one.move_to(&machine("W", &json!({ "W": wait(500, "U"), "U": task(None) })));
    one.now_ms += 5_000;
    let next = one.step(Event::TimerFired { timer: set[1] });
    assert_eq!(tasks(&next)[0].0, "U");
    let ended = one.step(Event::TimerFired { timer: set[0] });
    assert!(matches!(ended.last(), Some(Action::Ended(Outcome::TimedOut))), "{ended:?}");
}

#[test]
fn retriers_keep_their_counts_by_their_errors() {
    let retrier = |errors: &[&str], most: u64| json!({ "ErrorEquals": errors, "MaxAttempts": most, "IntervalSeconds": 1 });
    let with = |retriers: Value, last: &str| {
        let mut first = task(Some("B"));
        first["Retry"] = retriers;
        first["Catch"] = json!([{ "ErrorEquals": ["States.ALL"], "Next": "B" }]);
        machine("A", &json!({ "A": first, "B": result(last, None) }))
    };
    let failed = |task, error: &str| Event::TaskFailed { task, error: Some(error.into()), cause: None };
    let (mut one, begun) = One::begun(&with(json!([retrier(&["X"], 9), retrier(&["Y"], 2)]), "old"), json!(1));
    let backoff = one.step(failed(tasks(&begun)[0].1, "Y"));
    let new = with(json!([retrier(&["Z"], 9), retrier(&["Y"], 2), retrier(&["X"], 9)]), "new");
    one.refuses(
        &with(json!([retrier(&["X"], 9), retrier(&["Z"], 2)]), "new"),
        &["the state \"A\" is tried again by its retrier for Y, which the new definition does not have"],
    );
    one.move_to(&new);
    // Its second attempt of two, and no third one.
    let again = one.step(Event::TimerFired { timer: timers(&backoff)[0] });
    let backoff = one.step(failed(tasks(&again)[0].1, "Y"));
    let again = one.step(Event::TimerFired { timer: timers(&backoff)[0] });
    assert_eq!(output(&one.step(failed(tasks(&again)[0].1, "Y"))), "new");
}

#[test]
fn branches_stay_in_their_branches() {
    let parallel = |branches: &[Value], next: &str| {
        let parallel = state(json!({ "Type": "Parallel", "Branches": branches }), Some(next));
        machine("P", &json!({ "P": parallel, next: task(None) }))
    };
    let branch = |name: &str, next: &str| machine(name, &json!({ name: task(Some(next)), next: result(next, None) }));
    let (mut one, begun) = One::begun(&parallel(&[branch("A", "A2"), branch("B", "B2")], "E"), json!(1));
    let begun = tasks(&begun);
    one.refuses(
        &parallel(&[branch("B", "B2"), branch("A", "A2")], "E"),
        &[
            "the state \"A\", in which the execution is, lies in branch 1 of \"P\", and in branch 2 of \"P\" in the new definition",
            "the state \"B\", in which the execution is, lies in branch 2 of \"P\", and in branch 1 of \"P\" in the new definition",
        ],
    );
    one.refuses(
        &parallel(&[branch("A", "A2"), branch("B", "B2"), branch("C", "C2")], "E"),
        &["the branches of \"P\" run; they are 2, and 3 in the new definition"],
    );
    one.refuses(
        &machine("A", &json!({ "A": task(Some("B")), "B": task(None) })),
        &["the execution is in the state \"P\", which the new definition does not have"],
    );
    assert!(one.answer(begun[0].1, json!(1)).is_empty(), "one branch has ended");
    one.move_to(&parallel(&[branch("Other", "A3"), branch("B", "B3")], "E2"));
    let next = one.answer(begun[1].1, json!(2));
    assert_eq!(tasks(&next)[0].0, "E2");
    let Some(Action::StartTask(start)) = next.first() else { panic!("{next:?}") };
    assert_eq!(*start.input, json!(["A2", "B3"]), "what has ended stays, what runs goes on by the new definition");
}

#[test]
fn iterations_that_run_and_those_that_begin_go_on_by_the_new_definition() {
    let map = |processor: &Value, more: Value| {
        let mut map = json!({ "Type": "Map", "MaxConcurrency": 1, "ItemProcessor": processor, "End": true });
        more.as_object().into_iter().flatten().for_each(|(key, value)| map[key] = value.clone());
        machine("M", &json!({ "M": map }))
    };
    let writer = json!({ "ResultWriter": { "Resource": "kv:set", "Parameters": {} } });
    let old = map(&machine("I", &json!({ "I": task(None) })), json!({}));
    let (mut one, begun) = One::begun(&old, json!([1, 2]));
    let processor = machine("First", &json!({ "First": task(Some("I")), "I": task(Some("J")), "J": result("j", None) }));
    let refused = ["the Map \"M\" is under way, and its ResultWriter is not the same in the new definition"];
    one.refuses(&map(&processor, writer.clone()), &refused);
    one.move_to(&map(&processor, json!({})));
    let second = one.answer(tasks(&begun)[0].1, json!("x"));
    assert_eq!(tasks(&second)[0].0, "First", "the second item begins with the first state of the new processor");
    let third = one.answer(tasks(&second)[0].1, json!("y"));
    assert_eq!(output(&one.answer(tasks(&third)[0].1, json!("z"))), json!(["j", "j"]));
    // A reader and a writer are tasks of the Map itself.
    let reader = |resource: &str| json!({ "ItemReader": { "Resource": resource, "Parameters": { "Bucket": "b" } } });
    let (one, _) = One::begun(&map(&processor, reader("kv:list")), json!(1));
    let refused = ["the Map \"M\" is under way, and its ItemReader is not the same in the new definition"];
    one.refuses(&map(&processor, reader("kv:scan")), &refused);
    one.refuses(&map(&processor, json!({})), &refused);
    let (mut one, begun) = One::begun(&map(&machine("I", &json!({ "I": task(None) })), writer.clone()), json!([1]));
    one.step(Event::Paused);
    one.answer(tasks(&begun)[0].1, json!("x"));
    let refused = ["the Map \"M\" is under way, and its ResultWriter is not the same in the new definition"];
    one.refuses(&map(&processor, json!({})), &refused);
    one.move_to(&map(&processor, writer));
    assert_eq!(tasks(&one.step(Event::Resumed)).len(), 1, "the results are written");
    one.refuses(&map(&processor, json!({})), &refused);
}

#[test]
fn variables_that_are_read_have_to_be_there() {
    let pass = |more: Value, next: Option<&str>| {
        let mut pass = json!({ "Type": "Pass" });
        more.as_object().into_iter().flatten().for_each(|(key, value)| pass[key] = value.clone());
        state(pass, next)
    };
    let reads = |name: &str| pass(json!({ "Parameters": { "v.$": name } }), None);
    let assigns = json!({ "Assign": { "own": 1 } });
    let old = json!({ "A": pass(assigns.clone(), Some("T")), "T": task(Some("B")), "B": reads("$own") });
    let (mut one, begun) = One::begun(&machine("A", &old), json!(1));
    // It is behind the state that would have assigned it.
    let other =
        json!({ "A": pass(json!({ "Assign": { "own": 1, "more": 2 } }), Some("T")), "T": task(Some("B")), "B": reads("$more") });
    let refused = ["the state \"B\" of the new definition reads the variable $more, which the execution does not have"];
    one.refuses(&machine("A", &other), &refused);
    let later = json!({ "A": pass(assigns, Some("T")), "T": task(Some("C")), "C": pass(json!({ "Assign": { "more": 2 } }), Some("B")), "B": reads("$more") });
    one.move_to(&machine("A", &later));
    assert_eq!(output(&one.answer(tasks(&begun)[0].1, json!(2))), json!({ "v": 2 }));
}

#[test]
fn what_has_not_begun_or_is_paused_is_moved_and_what_has_ended_is_not() {
    let (old, new) = (machine("A", &json!({ "A": task(None) })), machine("N", &json!({ "N": task(None) })));
    let mut one = One::new(&old);
    one.move_to(&new);
    assert_eq!(one.execution.status(), Status::New);
    let begun = one.step(Event::Started { input: json!(1) });
    assert_eq!(tasks(&begun)[0].0, "N");
    one.step(Event::Paused);
    one.move_to(&machine("N", &json!({ "N": task(Some("O")), "O": task(None) })));
    assert!(one.execution.is_paused() && one.answer(tasks(&begun)[0].1, json!(2)).is_empty());
    assert_eq!(tasks(&one.step(Event::Resumed))[0].0, "O");
    one.step(Event::Stopped { error: None, cause: None });
    one.refuses(&old, &["the execution has ended"]);
    let other = Execution::new(&definition(&new), about(), Limits::default(), true);
    assert!(other.moved(&definition(&old), &definition(&new)).is_err(), "it is not of that definition");
}

/// Definitions at random, played to a random place, moved to the same definition with other states added around: they go on to the end that they would have had.
#[test]
fn executions_end_as_if_they_had_not_been_moved() {
    let mut moved = 0;
    for seed in 0..SEEDS {
        let mut rng = Rng::with_seed(seed);
        let source = generate::definition(&mut rng);
        let Ok(old) = Definition::parse(&source.to_string()) else { continue };
        let input = generate::document(&mut rng, 3);
        let old = Arc::new(old);
        let play = || Player::new(Arc::clone(&old), Limits::default(), seed).unchecked();
        let wanted = play().play(input.clone());
        // All states have other numbers.
        let mut changed = source.clone();
        let first = source["StartAt"].clone();
        let mut states = HashMap::from([("0".to_owned(), json!({ "Type": "Pass", "Next": first }))]);
        states.extend(changed["States"].as_object().into_iter().flatten().map(|(name, state)| (name.clone(), state.clone())));
        changed["States"] = json!(states);
        changed["StartAt"] = json!("0");
        let new = definition(&changed);
        let mut player = play();
        player.step(Event::Started { input });
        for _ in 0..rng.usize(..6) {
            if player.outcome().is_none() && !player.is_idle() {
                player = player.turn();
            }
        }
        if player.outcome().is_some() {
            continue;
        }
        player.execution = player.execution.moved(&old, &new).unwrap_or_else(|misfits| panic!("seed {seed}: {misfits:?}"));
        player.definition = new;
        moved += 1;
        let played = player.go_on();
        assert_eq!(played.result(), wanted.result(), "seed {seed}: {source}");
        assert_eq!(played.events(), wanted.events(), "seed {seed}: {source}");
    }
    assert!(moved > SEEDS / 10, "{moved}");
}
