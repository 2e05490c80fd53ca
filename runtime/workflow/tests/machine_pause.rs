//! Executions that are paused: they take in what they are told, and do nothing else until they are resumed.

mod driver;

use std::sync::Arc;

use driver::{Player, START_MS, about, definition, generate};
use serde_json::{Value, json};
use sledge_workflow::definition::Definition;
use sledge_workflow::machine::{Action, Event, Execution, Limits, Outcome, Status, TaskId, TimerId, step};

/// Events that come in a pause of their own.
const STEPS: usize = 500;

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

    fn step(&mut self, event: Event) -> Vec<Action> {
        let mut actions = Vec::new();
        let written = serde_json::to_string(&self.execution).expect("an execution can be written");
        self.execution = serde_json::from_str(&written).expect("what was written can be read");
        step(&self.definition, &mut self.execution, event, self.now_ms, &mut || 7, &mut actions);
        actions.retain(|action| !matches!(action, Action::History(_)));
        actions
    }
}

fn tasks(actions: &[Action]) -> Vec<TaskId> {
    actions.iter().filter_map(|action| if let Action::StartTask(start) = action { Some(start.task) } else { None }).collect()
}

fn timers(actions: &[Action]) -> Vec<TimerId> {
    actions.iter().filter_map(|action| if let Action::SetTimer { timer, .. } = action { Some(*timer) } else { None }).collect()
}

fn task(next: Option<&str>) -> Value {
    let mut state = json!({ "Type": "Task", "Resource": "fn:f" });
    match next {
        Some(next) => state["Next"] = json!(next),
        None => state["End"] = json!(true),
    }
    state
}

#[test]
fn results_are_taken_in_and_nothing_begins() {
    let mut one = One::new(&json!({ "StartAt": "A", "States": { "A": task(Some("B")), "B": task(None) } }));
    let first = tasks(&one.step(Event::Started { input: json!(1) }));
    assert!(one.step(Event::Paused).is_empty() && one.execution.is_paused());
    assert!(one.step(Event::TaskSucceeded { task: first[0], output: json!(2) }).is_empty(), "the next task does not begin");
    assert!(!one.execution.waits_for(first[0]), "the result is there");
    assert!(one.step(Event::Continue).is_empty() && one.step(Event::Paused).is_empty());
    let second = tasks(&one.step(Event::Resumed));
    assert_eq!((second.len(), one.execution.is_paused()), (1, false));
    assert!(matches!(
        &one.step(Event::TaskSucceeded { task: second[0], output: json!(3) })[..],
        [Action::Ended(Outcome::Succeeded(output))] if **output == json!(3)
    ));
    assert!(one.step(Event::Paused).is_empty() && !one.execution.is_paused(), "what has ended is not paused");
}

#[test]
fn timers_fire_when_it_goes_on() {
    let source = json!({ "StartAt": "W", "TimeoutSeconds": 100, "States": { "W": { "Type": "Wait", "Seconds": 5, "Next": "T" }, "T": task(None) } });
    let mut one = One::new(&source);
    let set = timers(&one.step(Event::Started { input: json!(1) }));
    one.step(Event::Paused);
    one.now_ms += 6_000;
    assert!(one.step(Event::TimerFired { timer: set[1] }).is_empty());
    assert!(one.step(Event::TimerFired { timer: TimerId(u64::MAX) }).is_empty(), "one that it does not know is not kept");
    assert_eq!(tasks(&one.step(Event::Resumed)).len(), 1, "the Wait is over");
    one.step(Event::Paused);
    one.now_ms += 200_000;
    assert!(one.step(Event::TimerFired { timer: set[0] }).is_empty(), "nor does the whole time out");
    assert_eq!(one.execution.status(), Status::Running);
    assert!(one.step(Event::Resumed).iter().any(|action| matches!(action, Action::Ended(Outcome::TimedOut))));
}

#[test]
fn a_task_that_answers_in_the_pause_does_not_time_out_after_it() {
    let source =
        json!({ "StartAt": "T", "States": { "T": { "Type": "Task", "Resource": "fn:f", "TimeoutSeconds": 5, "End": true } } });
    let mut one = One::new(&source);
    let actions = one.step(Event::Started { input: json!(1) });
    one.step(Event::Paused);
    one.step(Event::TimerFired { timer: timers(&actions)[0] });
    let ended = one.step(Event::TaskSucceeded { task: tasks(&actions)[0], output: json!(2) });
    assert!(ended.iter().any(|action| matches!(action, Action::Ended(Outcome::Succeeded(_)))), "{ended:?}");
}

#[test]
fn results_of_a_map_are_written_after_the_pause() {
    let source = json!({ "StartAt": "M", "States": { "M": { "Type": "Map", "End": true, "ResultWriter": { "Resource": "kv:set", "Parameters": {} },
        "ItemProcessor": { "StartAt": "T", "States": { "T": task(None) } } } } });
    let mut one = One::new(&source);
    let begun = tasks(&one.step(Event::Started { input: json!([1]) }));
    one.step(Event::Paused);
    assert!(tasks(&one.step(Event::TaskSucceeded { task: begun[0], output: json!(2) })).is_empty());
    assert_eq!(tasks(&one.step(Event::Resumed)).len(), 1, "the ResultWriter");
}

#[test]
fn one_that_begins_paused_waits_and_one_that_is_stopped_ends() {
    let mut one = One::new(&json!({ "StartAt": "A", "States": { "A": task(None) } }));
    one.step(Event::Paused);
    assert!(one.step(Event::Started { input: json!(1) }).is_empty());
    assert_eq!(one.execution.status(), Status::Running);
    let ended = one.step(Event::Stopped { error: None, cause: None });
    assert!(matches!(ended[..], [Action::Ended(Outcome::Aborted(_))]) && !one.execution.is_paused());
    assert_eq!(tasks(&one.step(Event::Redriven)).len(), 1, "and goes on unpaused");
}

/// Random executions that are paused after each step and resumed later end as without pauses, where no time is measured.
#[test]
fn pauses_change_nothing_but_time() {
    let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(|| fastrand::u64(..));
    println!("SEED={seed}");
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut ended = 0;
    for _ in 0..300 {
        let definition = definition(&generate::definition(&mut rng));
        let player = || Player::new(Arc::clone(&definition), Limits::default(), 3).unchecked();
        let plain = player().play(json!([1, { "a": 2 }]));
        let mut paused = player();
        paused.step(Event::Paused);
        paused.step(Event::Started { input: json!([1, { "a": 2 }]) });
        assert!(paused.tasks().is_empty() && paused.outcome().is_none());
        paused.step(Event::Resumed);
        for _ in 0..STEPS {
            if paused.outcome().is_some() || paused.is_idle() {
                break;
            }
            // Whatever comes, comes in a pause.
            paused.step(Event::Paused);
            let begun = paused.tasks().len();
            paused = paused.turn();
            assert_eq!(paused.tasks().len(), begun, "SEED={seed}: nothing begins");
            if paused.outcome().is_none() {
                paused.step(Event::Resumed);
            }
        }
        let paused = paused.go_on();
        if plain.outcome.is_some() {
            ended += 1;
            let status = |played: &driver::Played| played.outcome.as_ref().map(std::mem::discriminant);
            assert_eq!(status(&plain), status(&paused), "SEED={seed}");
        }
    }
    assert!(ended > 100, "{ended}");
}
