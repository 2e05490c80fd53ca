//! What a step costs: `cargo test -p sledge-workflow --release --test machine_speed -- --nocapture`. The bounds are loose: they find what costs a hundred times as much, not a slow machine. A large
//! input is measured once and freed once for each execution: an eighth of that is in each figure.

mod driver;

use std::time::Instant;

use driver::{START_MS, about, definition};
use serde_json::{Map, Value, json};
use sledge_workflow::definition::Definition;
use sledge_workflow::machine::{Action, Event, Execution, Limits, step};

/// Executions that are measured: of small inputs, and of large ones, few enough that they stay in the caches.
const ROUNDS: (u32, u32) = (4_000, 40);

/// Eight states in a row.
fn chain(state: &Value, language: &str) -> std::sync::Arc<Definition> {
    let mut states = Map::new();
    for number in 0..8 {
        let mut state = state.clone();
        match number {
            7 => state["End"] = json!(true),
            _ => state["Next"] = json!(format!("S{}", number + 1)),
        }
        states.insert(format!("S{number}"), state);
    }
    definition(&json!({ "StartAt": "S0", "QueryLanguage": language, "States": states }))
}

/// Nanoseconds a state, without the input's copy for each execution.
fn measure(name: &str, definition: &Definition, input: &Value) -> f64 {
    let about = about();
    let rounds = if input.to_string().len() > 1_000 { ROUNDS.1 } else { ROUNDS.0 };
    let inputs: Vec<Value> = (0..rounds).map(|_| input.clone()).collect();
    let mut actions = Vec::with_capacity(16);
    let mut random = || 4;
    let started = Instant::now();
    for input in inputs {
        let mut execution = Execution::new(definition, about.clone(), Limits::default(), false);
        actions.clear();
        step(definition, &mut execution, Event::Started { input }, START_MS, &mut random, &mut actions);
        loop {
            match actions.pop() {
                Some(Action::StartTask(task)) => {
                    let output = Value::Bool(true);
                    actions.clear();
                    step(
                        definition,
                        &mut execution,
                        Event::TaskSucceeded { task: task.task, output },
                        START_MS,
                        &mut random,
                        &mut actions,
                    );
                }
                Some(Action::Ended(_)) => break,
                other => panic!("{other:?}"),
            }
        }
    }
    let nanoseconds = started.elapsed().as_nanos() as f64 / f64::from(rounds) / 8.0;
    println!("{name:<44} {nanoseconds:>7.0} ns a state");
    nanoseconds
}

#[test]
fn a_step_is_cheap() {
    let small = json!({ "a": 1 });
    let large =
        json!({ "a": 1, "list": (0..1_000).map(|number| json!({ "number": number, "text": "some text" })).collect::<Vec<_>>() });
    let task = json!({ "Type": "Task", "Resource": "fn:f", "ResultPath": null });
    let mut all = Vec::new();
    for (name, state, language) in [
        ("Pass", json!({ "Type": "Pass" }), "JSONPath"),
        ("Pass with Parameters", json!({ "Type": "Pass", "Parameters": { "a.$": "$.a" } }), "JSONPath"),
        ("Task", task, "JSONPath"),
        ("Pass in JSONata", json!({ "Type": "Pass" }), "JSONata"),
        ("Pass with Output in JSONata", json!({ "Type": "Pass", "Output": { "a": "{% $states.input.a + 1 %}" } }), "JSONata"),
    ] {
        let definition = chain(&state, language);
        let of_small = measure(name, &definition, &small);
        let of_large = measure(&format!("{name}, input of 40 KB"), &definition, &large);
        all.push((name, of_small, of_large));
    }
    for (name, of_small, of_large) in all {
        assert!(of_small < 500_000.0 && of_large < 5_000_000.0, "{name}: {of_small} and {of_large} ns a state");
    }
}
