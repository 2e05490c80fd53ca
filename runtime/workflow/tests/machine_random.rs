//! Random definitions, events and mutations, with seeds that a failure names: nothing panics, each execution ends or waits, tasks and timers are accounted for.

mod driver;

use std::collections::HashSet;
use std::sync::Arc;

use driver::{Player, START_MS, about, generate};
use fastrand::Rng;
use serde_json::{Value, json};
use sledge_workflow::definition::Definition;
use sledge_workflow::machine::{Action, Event, Execution, Limits, Outcome, StartTask, Status, TaskId, TimerId, step};

/// What an execution has asked for and not got.
#[derive(Default)]
struct Open {
    tasks: Vec<StartTask>,
    timers: Vec<TimerId>,
    ended: Option<Outcome>,
    yielded: bool,
    /// Numbers that were valid once.
    old_tasks: Vec<TaskId>,
    old_timers: Vec<TimerId>,
    old_tokens: Vec<Arc<str>>,
}

impl Open {
    fn take(&mut self, actions: Vec<Action>) {
        self.yielded = false;
        for action in actions {
            assert!(self.ended.is_none(), "nothing follows the end: {action:?}");
            match action {
                Action::StartTask(task) => {
                    self.old_tasks.push(task.task);
                    self.old_tokens.extend(task.token.clone());
                    self.tasks.push(task);
                }
                Action::CancelTask { task } => {
                    let before = self.tasks.len();
                    self.tasks.retain(|open| open.task != task);
                    assert!(self.tasks.len() < before, "a task is cancelled that is open");
                }
                Action::SetTimer { timer, at_ms } => {
                    assert!(at_ms >= START_MS, "{at_ms}");
                    self.old_timers.push(timer);
                    self.timers.push(timer);
                }
                Action::CancelTimer { timer } => {
                    let before = self.timers.len();
                    self.timers.retain(|open| *open != timer);
                    assert!(self.timers.len() < before, "a timer is cancelled that is set");
                }
                Action::Yield => self.yielded = true,
                Action::History(_) => panic!("a history is not recorded"),
                Action::Ended(outcome) => self.ended = Some(outcome),
            }
        }
    }

    /// A random event that is expected.
    fn expected(&mut self, rng: &mut Rng) -> Option<Event> {
        if self.yielded {
            return Some(Event::Continue);
        }
        if !self.timers.is_empty() && (self.tasks.is_empty() || rng.u8(..4) == 0) {
            let timer = self.timers.swap_remove(rng.usize(..self.timers.len()));
            return Some(Event::TimerFired { timer });
        }
        if self.tasks.is_empty() {
            return None;
        }
        let at = rng.usize(..self.tasks.len());
        let (task, token) = (self.tasks[at].task, self.tasks[at].token.clone());
        let output = generate::document(rng, 3);
        Some(match (rng.u8(..10), token) {
            (0, _) => Event::TaskStarted { task },
            (1, _) => Event::Heartbeat { task },
            (2, Some(token)) => Event::CallbackHeartbeat { token },
            (3, Some(token)) => {
                self.tasks.swap_remove(at);
                Event::CallbackFailed { token, error: Some("Boom".into()), cause: None }
            }
            (4 | 5, Some(token)) => {
                self.tasks.swap_remove(at);
                Event::CallbackSucceeded { token, output }
            }
            (6, Some(_)) => Event::TaskSucceeded { task, output },
            (7, _) => {
                self.tasks.swap_remove(at);
                Event::TaskFailed { task, error: rng.bool().then(|| "Boom".into()), cause: rng.bool().then(|| "x".into()) }
            }
            (_, None) => {
                self.tasks.swap_remove(at);
                Event::TaskSucceeded { task, output }
            }
            (_, Some(_)) => Event::TaskStarted { task },
        })
    }

    /// An event that nothing waits for.
    fn stale(&self, rng: &mut Rng) -> Option<Event> {
        let open: HashSet<u64> =
            self.tasks.iter().map(|task| task.task.0).chain(self.timers.iter().map(|timer| timer.0)).collect();
        let made_up = rng.u64(..);
        let task = rng.choice(&self.old_tasks).copied().filter(|_| rng.bool()).unwrap_or(TaskId(made_up));
        let timer = rng.choice(&self.old_timers).copied().filter(|_| rng.bool()).unwrap_or(TimerId(made_up & 0xFF_FFFF_FFFF));
        let tokens: HashSet<&Arc<str>> = self.tasks.iter().filter_map(|task| task.token.as_ref()).collect();
        let token = rng
            .choice(&self.old_tokens)
            .cloned()
            .unwrap_or_else(|| format!("one.{:x}.{:032x}", made_up & 0xFFFF_FFFF, made_up).into());
        match rng.u8(..6) {
            0 if !open.contains(&task.0) => Some(Event::TaskSucceeded { task, output: Value::Null }),
            1 if !open.contains(&task.0) => Some(Event::TaskFailed { task, error: None, cause: None }),
            2 if !open.contains(&timer.0) => Some(Event::TimerFired { timer }),
            3 if !tokens.contains(&token) => Some(Event::CallbackSucceeded { token, output: Value::Null }),
            4 if !tokens.contains(&token) => {
                Some(Event::CallbackFailed { token: token[..token.len() - 1].into(), error: None, cause: None })
            }
            5 => Some(Event::Started { input: Value::Null }),
            _ => None,
        }
    }
}

fn play(definition: &Definition, seed: u64) -> (Option<Outcome>, Vec<String>) {
    let mut rng = Rng::with_seed(seed);
    let mut execution = Execution::new(definition, about(), Limits { transitions_per_step: 5, ..Limits::default() }, false);
    let mut open = Open::default();
    let mut trace = Vec::new();
    let mut now_ms = START_MS;
    let mut event = Some(Event::Started { input: generate::document(&mut rng, 4) });
    for _ in 0..2_000 {
        let Some(next) = event.take() else { break };
        let mut actions = Vec::new();
        let mut random = Rng::with_seed(rng.u64(..));
        step(definition, &mut execution, next, now_ms, &mut || random.u64(..), &mut actions);
        trace.push(format!("{actions:?}"));
        open.take(actions);
        if open.ended.is_some() {
            assert!(open.tasks.is_empty(), "tasks are left at the end: {:?}", open.tasks);
            assert!(open.timers.is_empty(), "timers are left at the end: {:?}", open.timers);
            break;
        }
        assert!(open.yielded == execution.is_ready(), "it yields if something is ready");
        assert!(open.yielded || !open.tasks.is_empty() || !open.timers.is_empty(), "it waits for something");
        // Late, repeated and made-up events do nothing.
        if let Some(stale) = open.stale(&mut rng).filter(|_| !open.yielded) {
            let mut actions = Vec::new();
            let before = serde_json::to_string(&execution).expect("an execution can be written");
            step(definition, &mut execution, stale.clone(), now_ms, &mut || 0, &mut actions);
            assert!(actions.is_empty(), "{stale:?} gives {actions:?}");
            assert_eq!(
                before,
                serde_json::to_string(&execution).expect("an execution can be written"),
                "{stale:?} changes the execution"
            );
        }
        if rng.u8(..3) == 0 {
            let written = serde_json::to_string(&execution).expect("an execution can be written");
            execution = serde_json::from_str(&written).expect("what was written can be read");
        }
        now_ms += rng.i64(0..2_000);
        if rng.u8(..200) == 0 && execution.status() == Status::Running {
            assert!(execution.frames() > 0, "what runs has a frame");
        }
        event = if rng.u8(..200) == 0 { Some(Event::Stopped { error: None, cause: None }) } else { open.expected(&mut rng) };
    }
    (open.ended, trace)
}

#[test]
fn random_definitions_with_random_events_end_or_wait() {
    let mut ended = [0; 4];
    for seed in 0..1_500 {
        let source = generate::definition(&mut Rng::with_seed(seed)).to_string();
        let definition = match Definition::parse(&source) {
            Ok(definition) => definition,
            Err(mistakes) => panic!("seed {seed}: {mistakes:?}\n{source}"),
        };
        let caught = std::panic::catch_unwind(|| (play(&definition, seed), play(&definition, seed)));
        let ((outcome, first), (_, second)) = caught.unwrap_or_else(|_| panic!("seed {seed}\n{source}"));
        assert_eq!(first, second, "seed {seed}: the same events give the same actions");
        ended[match outcome {
            Some(Outcome::Succeeded(_)) => 0,
            Some(Outcome::Failed(_)) => 1,
            Some(_) => 2,
            None => 3,
        }] += 1;
    }
    println!("succeeded, failed, stopped or timed out, cut short: {ended:?}");
    assert!(ended[0] > 250 && ended[1] > 150 && ended[2] > 20, "the generator makes all kinds: {ended:?}");
    assert!(ended[3] < 30, "nearly all end: {ended:?}");
}

#[test]
fn recording_changes_nothing_but_the_history() {
    for seed in 0..200 {
        let source = generate::definition(&mut Rng::with_seed(seed)).to_string();
        let definition = Arc::new(Definition::parse(&source).expect("a valid definition"));
        let input = generate::document(&mut Rng::with_seed(seed), 4);
        let first = Player::new(Arc::clone(&definition), Limits::default(), seed).play(input.clone());
        let second = Player::new(definition, Limits::default(), seed).unrecorded().play(input);
        assert_eq!(first.trace, second.trace, "seed {seed}");
        assert!(second.history.is_empty(), "seed {seed}");
        for (at, event) in first.history.iter().enumerate() {
            assert_eq!(event.id, at as u64 + 1, "seed {seed}: events are numbered without gaps");
            assert!(event.previous < event.id, "seed {seed}");
        }
    }
}

#[test]
fn mutated_definitions_do_not_panic() {
    let (mut good, mut bad) = (0, 0);
    for seed in 0..10_000_u64 {
        let mut rng = Rng::with_seed(seed);
        let mut source = generate::definition(&mut Rng::with_seed(seed % 500));
        let mutated = if seed % 2 == 0 {
            generate::mutate(&mut rng, &source.to_string())
        } else {
            generate::mutate_value(&mut rng, &mut source);
            source.to_string()
        };
        let parsed =
            std::panic::catch_unwind(|| Definition::parse(&mutated)).unwrap_or_else(|_| panic!("seed {seed}\n{mutated}"));
        match parsed {
            Ok(definition) => {
                good += 1;
                let caught = std::panic::catch_unwind(|| play(&definition, seed));
                assert!(caught.is_ok(), "seed {seed}\n{mutated}");
            }
            Err(mistakes) => {
                bad += 1;
                assert!(!mistakes.is_empty(), "seed {seed}");
                let lines = mutated.lines().count();
                assert!(
                    mistakes.iter().all(|mistake| mistake.line >= 1 && mistake.line <= lines.max(1) && mistake.column >= 1),
                    "seed {seed}: {mistakes:?}"
                );
            }
        }
    }
    println!("good {good}, bad {bad}");
    assert!(good > 100 && bad > 1_000, "good {good}, bad {bad}");
}

#[test]
fn checkpoints_that_were_tampered_with_do_not_panic() {
    for seed in 0..2_000_u64 {
        let mut rng = Rng::with_seed(seed);
        let source = generate::definition(&mut Rng::with_seed(seed % 200)).to_string();
        let definition = Definition::parse(&source).expect("a valid definition");
        let mut execution = Execution::new(&definition, about(), Limits::default(), true);
        let mut actions = Vec::new();
        step(&definition, &mut execution, Event::Started { input: json!({ "a": [1] }) }, START_MS, &mut || 1, &mut actions);
        let mut written: Value = serde_json::to_value(&execution).expect("an execution can be written");
        tamper(&mut rng, &mut written);
        let Ok(mut tampered) = serde_json::from_value::<Execution>(written) else { continue };
        let events = actions.iter().filter_map(|action| match action {
            Action::StartTask(task) => Some(Event::TaskSucceeded { task: task.task, output: json!(1) }),
            Action::SetTimer { timer, .. } => Some(Event::TimerFired { timer: *timer }),
            _ => None,
        });
        let events: Vec<_> = events
            .chain([Event::Continue, Event::Redriven, Event::Stopped { error: None, cause: None }, Event::Redriven])
            .collect();
        let caught = std::panic::catch_unwind(move || {
            for event in events {
                step(&definition, &mut tampered, event, START_MS, &mut || 2, &mut Vec::new());
            }
        });
        assert!(caught.is_ok(), "seed {seed}");
    }
}

/// Changes one number somewhere.
fn tamper(rng: &mut Rng, value: &mut Value) {
    match value {
        Value::Array(elements) if !elements.is_empty() => {
            let at = rng.usize(..elements.len());
            tamper(rng, &mut elements[at]);
        }
        Value::Object(members) if !members.is_empty() => {
            let at = rng.usize(..members.len());
            if let Some(value) = members.values_mut().nth(at) {
                tamper(rng, value);
            }
        }
        Value::Number(_) => *value = json!(rng.choice([0_u64, 1, 2, 5, 1_000_000, u64::from(u32::MAX)])),
        _ => {}
    }
}

#[test]
fn an_execution_of_another_definition_is_left_alone() {
    let first = Definition::parse(r#"{"StartAt": "A", "States": {"A": {"Type": "Succeed"}}}"#).expect("valid");
    let second = Definition::parse(r#"{"StartAt": "B", "States": {"B": {"Type": "Succeed"}}}"#).expect("valid");
    let mut execution = Execution::new(&first, about(), Limits::default(), true);
    let mut actions = Vec::new();
    step(&second, &mut execution, Event::Started { input: Value::Null }, START_MS, &mut || 0, &mut actions);
    assert!(actions.is_empty() && !execution.fits(&second) && execution.status() == Status::New);
}
