//! Executions that go ahead of themselves, by a plan, in simulated time: whatever is guessed, and in whatever order runs end, are squashed, are refused and are committed, they come to what the same definition
//! comes to without a plan.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use serde_json::{Value, json};
use sledge_workflow::definition::{Definition, Resource, StateIndex};
use sledge_workflow::machine::{
    About, Action, Event, Execution, Failure, Limits, Outcome, StartTask, Status, TimerId, Way, step,
};

use super::plan::{Answer, Do, Oracle, Outside, Plan, RUNS_MAX, RunId};
use super::story::explained::{Explained, RunResult};
use super::story::tests::{assert_whole, told as told_of};
use crate::speculate::paths::Path;
use crate::txn::tests::seeds::{each, seeds};

const SIMULATIONS: u64 = 10_000;

fn about() -> About {
    let text: Arc<str> = "x".into();
    let [id, name, role, machine_id, machine_name] = std::array::from_fn(|_| Arc::clone(&text));
    About { id, name, role, machine_id, machine_name, token_prefix: "".into() }
}

/// What functions do: the same to the same input. Some fail now and then, as the input says.
fn answer(function: &str, input: &Value) -> Answer {
    let digest = xxhash_rust::xxh3::xxh3_64(format!("{function}{input}").as_bytes());
    let number = digest % 100;
    if function.starts_with("frail") && number < 30 {
        let error = if number < 15 { "Late" } else { "Odd" };
        return Err(Failure { error: Some(error.into()), cause: Some(number.to_string().into()) });
    }
    Ok(json!({ "number": number, "big": number >= 50, "more": !number.is_multiple_of(7) }))
}

/// Whether they take part.
fn takes_part(task: &StartTask) -> bool {
    name(task).is_some_and(|name| !name.starts_with("real"))
}

fn name(task: &StartTask) -> Option<&str> {
    match &*task.resource {
        Resource::Function { name, .. } => Some(name),
        _ => None,
    }
}

/// Guesses that are right as often as is wanted.
struct Guesses {
    rng: Rng,
    /// Of a hundred: how often there is a guess, and how often it is right.
    known: u32,
    right: u32,
    depth: usize,
    keeps: bool,
}

impl Oracle for Guesses {
    fn takes_part(&mut self, task: &StartTask) -> bool {
        takes_part(task)
    }

    fn depth(&mut self) -> usize {
        self.depth
    }

    fn keeps(&mut self) -> bool {
        self.keeps
    }

    fn answer(&mut self, task: &StartTask) -> Option<Answer> {
        if self.rng.u32(..100) >= self.known {
            return None;
        }
        let input = if self.rng.u32(..100) < self.right { (*task.input).clone() } else { json!(self.rng.u32(..9)) };
        Some(answer(name(task).unwrap_or_default(), &input))
    }

    fn shape(&mut self, _: &StartTask) -> Option<Value> {
        (self.rng.u32(..100) < self.known).then(|| json!({ "number": 1, "big": true, "more": false }))
    }

    fn way(&mut self, _: StateIndex, _: Path) -> Way {
        match self.rng.u32(..5) {
            0 => Way::Default,
            1 => Way::Nowhere,
            _ => Way::Rule(self.rng.usize(..3)),
        }
    }
}

/// What the definition comes to, one task after the other in the order of their paths.
fn in_order(definition: &Definition, input: Value) -> (Outcome, Vec<String>) {
    let mut execution = Execution::new(definition, about(), Limits::default(), false);
    let (mut asked, mut timers, mut log) = (BTreeMap::new(), Vec::new(), Vec::new());
    let (mut now_ms, mut event) = (0, Event::Started { input });
    loop {
        let mut actions = Vec::new();
        step(definition, &mut execution, event, now_ms, &mut || 7, &mut actions);
        let mut yields = false;
        for action in actions {
            match action {
                Action::StartTask(task) => {
                    asked.insert(execution.path(task.task).expect("a path"), task);
                }
                Action::CancelTask { task } => asked.retain(|_, asked: &mut StartTask| asked.task != task),
                Action::SetTimer { timer, at_ms } => timers.push((at_ms, timer)),
                Action::CancelTimer { timer } => timers.retain(|(_, known)| *known != timer),
                Action::Yield => yields = true,
                Action::Ended(outcome) => return (outcome, log),
                Action::History(_) => {}
            }
        }
        event = if yields {
            Event::Continue
        } else if let Some((path, task)) = asked.pop_first() {
            log.push(format!("{path:?} {:?} {}", name(&task), task.input));
            told(&task, answer(name(&task).unwrap_or_default(), &task.input))
        } else {
            timers.sort_unstable();
            let (at_ms, timer) = timers.remove(0);
            now_ms = at_ms;
            Event::TimerFired { timer }
        };
    }
}

fn told(task: &StartTask, answer: Answer) -> Event {
    match answer {
        Ok(output) => Event::TaskSucceeded { task: task.task, output },
        Err(Failure { error, cause }) => Event::TaskFailed { task: task.task, error, cause },
    }
}

/// What happens to runs and groups, by a seed.
struct World<'d> {
    definition: &'d Definition,
    plan: Plan<'d>,
    guesses: Guesses,
    rng: Rng,
    now_ms: i64,
    /// Runs and tasks that are under way.
    runs: BTreeMap<RunId, (Vec<u32>, StartTask)>,
    for_good: BTreeMap<RunId, StartTask>,
    really_ended: BTreeSet<RunId>,
    /// Runs that have ended, and are not committed.
    ended: BTreeMap<RunId, String>,
    timers: Vec<(i64, TimerId)>,
    yields: bool,
    group: Vec<RunId>,
    log: Vec<String>,
    steps: u64,
    /// Runs that were begun, and of these those that were committed, and that have run again.
    begun: usize,
    committed: usize,
    squashed: usize,
    refused: usize,
    outcome: Option<Outcome>,
}

impl<'d> World<'d> {
    fn new(definition: &'d Definition, seed: u64) -> World<'d> {
        let mut rng = Rng::with_seed(seed);
        let (known, right, depth) = (rng.u32(..=100), rng.u32(..=100), rng.usize(..8));
        let guesses = Guesses { rng: rng.fork(), known, right, depth, keeps: true };
        World {
            definition,
            plan: Plan::new(definition, about(), Limits::default()),
            guesses,
            rng,
            now_ms: 0,
            runs: BTreeMap::new(),
            for_good: BTreeMap::new(),
            really_ended: BTreeSet::new(),
            ended: BTreeMap::new(),
            timers: Vec::new(),
            yields: false,
            group: Vec::new(),
            log: Vec::new(),
            steps: 0,
            begun: 0,
            committed: 0,
            squashed: 0,
            refused: 0,
            outcome: None,
        }
    }

    /// Steps the plan, and does what it asks for.
    fn step<T>(&mut self, step: impl FnOnce(&mut Plan<'d>, &mut Outside<'_, Guesses>) -> T) -> T {
        let mut actions = Vec::new();
        self.steps += 1;
        self.plan.story().at(Duration::from_micros(self.steps));
        let mut random = || 7;
        let mut outside = Outside { oracle: &mut self.guesses, now_ms: self.now_ms, random: &mut random, actions: &mut actions };
        let result = step(&mut self.plan, &mut outside);
        for action in actions {
            match action {
                Do::Begin { run, path, task, .. } => {
                    assert!(takes_part(&task), "{:?} is run ahead", name(&task));
                    self.begun += 1;
                    assert!(self.runs.insert(run, (path, task)).is_none());
                    assert!(self.runs.len() + self.ended.len() <= RUNS_MAX + 8, "too many runs");
                }
                Do::Drop(run) => {
                    let was_there = self.runs.remove(&run).is_some() | self.ended.remove(&run).is_some();
                    // The base perhaps does not know yet that it has ended.
                    let was_real = self.for_good.remove(&run).is_some() | self.really_ended.contains(&run);
                    assert!(was_there | was_real, "{run:?} is dropped, and not there");
                    assert!(!self.group.contains(&run), "{run:?} is dropped, and being committed");
                }
                Do::CarryOut { run, task } => {
                    self.for_good.insert(run, task);
                }
                Do::Base(Action::SetTimer { timer, at_ms }) => self.timers.push((at_ms, timer)),
                Do::Base(Action::CancelTimer { timer }) => self.timers.retain(|(_, known)| *known != timer),
                Do::Base(Action::Yield) => self.yields = true,
                Do::Base(Action::Ended(outcome)) => self.outcome = Some(outcome),
                Do::Base(other) => panic!("{other:?}"),
            }
        }
        result
    }

    fn go(mut self, input: Value) -> (Outcome, Vec<String>, usize) {
        self.step(|plan, outside| plan.start(input, outside));
        for _ in 0..10_000 {
            if let Some(outcome) = self.outcome.take() {
                assert!(self.group.is_empty());
                let explained = told_of(std::mem::take(self.plan.story()));
                self.ends_as(&explained);
                return (outcome, self.log, self.begun);
            }
            self.happens();
        }
        panic!("{:?} does not end", self.definition.source());
    }

    /// What is told of the execution is what has happened.
    fn ends_as(&self, explained: &Explained) {
        assert_whole(explained);
        let count = |results: &[RunResult]| explained.runs.iter().filter(|run| results.contains(&run.result)).count();
        // Not more than a story has.
        if self.begun < 100 {
            assert_eq!(explained.left_out, 0);
            assert_eq!(count(&[RunResult::Committed, RunResult::Adopted]), self.committed, "{explained:?}");
            assert_eq!(count(&[RunResult::Squashed]), self.squashed, "{explained:?}");
            let for_good =
                explained.runs.iter().filter(|run| run.function.as_deref().is_some_and(|name| name.starts_with("real")));
            assert_eq!(explained.runs.len() - for_good.count(), self.begun - self.refused, "{explained:?}");
        }
    }

    /// One of the things that can happen.
    fn happens(&mut self) {
        match self.rng.u32(..10) {
            0 | 1 if !self.group.is_empty() => self.commit(),
            2..=4 if !self.runs.is_empty() => self.end_run(),
            5 if !self.for_good.is_empty() => {
                let at = self.rng.usize(..self.for_good.len());
                let (run, task) = self.for_good.iter().nth(at).map(|(run, task)| (*run, task.clone())).expect("a task");
                self.for_good.remove(&run);
                self.really_ended.insert(run);
                self.log.push(format!("for good {:?} {}", name(&task), task.input));
                let answer = answer(name(&task).unwrap_or_default(), &task.input);
                self.step(|plan, outside| plan.ended(run, answer, outside));
            }
            6 if self.yields => {
                self.yields = false;
                self.step(|plan, outside| plan.base_event(Event::Continue, outside));
            }
            7 => {
                let group = self.step(|plan, outside| plan.group(outside));
                if self.group.is_empty() {
                    self.group = group;
                } else {
                    assert!(group.is_empty(), "two groups at the same time");
                }
            }
            8 if self.rng.u32(..10) == 0 => self.squash(),
            // The workers are busy, or there is no memory.
            9 if self.rng.u32(..4) == 0 => (self.guesses.depth, self.guesses.keeps) = (self.rng.usize(..8), self.rng.bool()),
            // Time passes when nothing else goes on.
            _ if self.runs.is_empty() && self.for_good.is_empty() && !self.timers.is_empty() && self.ended.is_empty() => {
                self.timers.sort_unstable();
                let (at_ms, timer) = self.timers.remove(0);
                self.now_ms = at_ms;
                self.step(|plan, outside| plan.base_event(Event::TimerFired { timer }, outside));
            }
            _ => {}
        }
    }

    fn end_run(&mut self) {
        let at = self.rng.usize(..self.runs.len());
        let (run, (path, task)) = self.runs.iter().nth(at).map(|(run, task)| (*run, task.clone())).expect("a run");
        self.runs.remove(&run);
        if self.rng.u32(..20) == 0 && !self.plan.is_asked(run) {
            self.refused += 1;
            self.plan.story().refused(run);
            return self.plan.refused(run);
        }
        let has_behind = self.runs.values().any(|(other, _)| *other > path);
        if self.rng.u32(..20) == 0 && self.group.is_empty() && has_behind && self.plan.is_asked(run) {
            // Those behind it have all the room in the pipeline.
            self.refused += 1;
            self.squashed += 1;
            self.plan.story().refused(run);
            return self.step(|plan, outside| plan.make_room(run, outside));
        }
        self.ended.insert(run, format!("{path:?} {:?} {}", name(&task), task.input));
        let answer = answer(name(&task).unwrap_or_default(), &task.input);
        self.step(|plan, outside| plan.ended(run, answer, outside));
    }

    fn commit(&mut self) {
        let group = std::mem::take(&mut self.group);
        if self.rng.u32(..4) == 0 {
            return self.step(|plan, outside| plan.group_failed(outside));
        }
        // Perhaps there is no room for all of them in one commit.
        let count = self.rng.usize(1..=group.len());
        for run in &group[..count] {
            self.log.push(self.ended.remove(run).expect("it has ended"));
        }
        self.committed += count;
        self.plan.story().committed(&group[..count]);
        let answers = self.step(|plan, outside| plan.committed(count, outside));
        assert_eq!(answers.len(), count);
        for (_, task, told) in answers {
            assert_eq!(told, answer(name(&task).unwrap_or_default(), &task.input));
        }
    }

    fn squash(&mut self) {
        let all: Vec<RunId> = self.runs.keys().chain(self.ended.keys()).copied().collect();
        let Some(run) = self.rng.choice(all).filter(|run| !self.group.contains(run)) else { return };
        self.squashed += 1;
        self.step(|plan, outside| plan.squashed(run, outside));
    }
}

const DEFINITIONS: [&str; 6] = [
    // One after the other.
    r#"{ "StartAt": "A", "States": {
        "A": { "Type": "Task", "Resource": "fn:a", "Next": "B" }, "B": { "Type": "Task", "Resource": "fn:b", "ResultPath": "$.b", "Next": "C" },
        "C": { "Type": "Task", "Resource": "fn:c", "Parameters": { "of.$": "$.b.number" }, "ResultPath": "$.c", "Next": "D" },
        "D": { "Type": "Task", "Resource": "fn:d", "Parameters": { "first.$": "$.number" }, "Next": "E" }, "E": { "Type": "Task", "Resource": "fn:e", "End": true } } }"#,
    // Choices, round and round, with something that does not take part.
    r#"{ "StartAt": "A", "States": {
        "A": { "Type": "Task", "Resource": "fn:a", "ResultPath": "$.a", "Next": "Which" },
        "Which": { "Type": "Choice", "Choices": [ { "Variable": "$.a.big", "BooleanEquals": true, "Next": "B" }, { "Variable": "$.a.more", "BooleanEquals": true, "Next": "C" } ], "Default": "Real" },
        "B": { "Type": "Task", "Resource": "fn:b", "Parameters": { "id.$": "$.id" }, "ResultPath": "$.b", "Next": "Real" },
        "C": { "Type": "Task", "Resource": "fn:c", "Parameters": { "id.$": "$.a.number", "again": true }, "Next": "A2" },
        "A2": { "Type": "Pass", "Parameters": { "id.$": "$.number" }, "Next": "Far" },
        "Far": { "Type": "Choice", "Choices": [ { "Variable": "$.id", "NumericGreaterThan": 25, "Next": "A" } ], "Default": "Last" },
        "Real": { "Type": "Task", "Resource": "fn:real", "Parameters": { "id.$": "$.a.number" }, "ResultPath": "$.real", "Next": "Last" },
        "Last": { "Type": "Task", "Resource": "fn:last", "End": true } } }"#,
    // Failures that are caught, and tried again.
    r#"{ "StartAt": "A", "States": {
        "A": { "Type": "Task", "Resource": "fn:frail-a", "ResultPath": "$.a", "Retry": [ { "ErrorEquals": ["Late"], "IntervalSeconds": 2, "MaxAttempts": 2 } ],
               "Catch": [ { "ErrorEquals": ["Odd"], "ResultPath": "$.error", "Next": "Mend" } ], "Next": "B" },
        "Mend": { "Type": "Task", "Resource": "fn:mend", "ResultPath": "$.a", "Next": "B" },
        "B": { "Type": "Task", "Resource": "fn:frail-b", "Parameters": { "id.$": "$.id" }, "ResultPath": "$.b", "Next": "Pause" },
        "Pause": { "Type": "Wait", "Seconds": 3, "Next": "C" },
        "C": { "Type": "Task", "Resource": "fn:c", "End": true } } }"#,
    // Branches, some of which fail.
    r#"{ "StartAt": "Both", "States": {
        "Both": { "Type": "Parallel", "ResultPath": "$.both", "Catch": [ { "ErrorEquals": ["States.ALL"], "ResultPath": "$.error", "Next": "Mend" } ], "Next": "Last", "Branches": [
            { "StartAt": "A", "States": { "A": { "Type": "Task", "Resource": "fn:a", "Next": "A2" }, "A2": { "Type": "Task", "Resource": "fn:frail-a", "End": true } } },
            { "StartAt": "B", "States": { "B": { "Type": "Task", "Resource": "fn:frail-b", "Next": "B2" }, "B2": { "Type": "Task", "Resource": "fn:b", "End": true } } },
            { "StartAt": "R", "States": { "R": { "Type": "Task", "Resource": "fn:real", "Next": "R2" }, "R2": { "Type": "Task", "Resource": "fn:r2", "End": true } } } ] },
        "Mend": { "Type": "Task", "Resource": "fn:mend", "Parameters": { "of.$": "$.error.Error" }, "Next": "Last" },
        "Last": { "Type": "Task", "Resource": "fn:last", "End": true } } }"#,
    // Two Parallels one behind the other, and an iteration of tasks.
    r#"{ "StartAt": "First", "States": {
        "First": { "Type": "Parallel", "ResultPath": "$.first", "Next": "Second", "Branches": [
            { "StartAt": "A", "States": { "A": { "Type": "Task", "Resource": "fn:a", "End": true } } },
            { "StartAt": "B", "States": { "B": { "Type": "Task", "Resource": "fn:b", "End": true } } } ] },
        "Second": { "Type": "Parallel", "Next": "Each", "ResultSelector": { "items.$": "$" }, "Branches": [
            { "StartAt": "C", "States": { "C": { "Type": "Task", "Resource": "fn:c", "End": true } } },
            { "StartAt": "D", "States": { "D": { "Type": "Task", "Resource": "fn:d", "Parameters": { "id.$": "$.id" }, "End": true } } } ] },
        "Each": { "Type": "Map", "ItemsPath": "$.items", "MaxConcurrency": 1, "Next": "Last", "ItemProcessor": { "StartAt": "E", "States": {
            "E": { "Type": "Task", "Resource": "fn:e", "Next": "F" }, "F": { "Type": "Task", "Resource": "fn:f", "End": true } } } },
        "Last": { "Type": "Task", "Resource": "fn:last", "End": true } } }"#,
    // What has to be read out of an output that is not there yet.
    r#"{ "StartAt": "A", "States": {
        "A": { "Type": "Task", "Resource": "fn:a", "ResultSelector": { "sum.$": "States.MathAdd($.number, 1)" }, "ResultPath": "$.a", "Next": "B" },
        "B": { "Type": "Task", "Resource": "fn:b", "Parameters": { "text.$": "States.Format('number {}', $.a.sum)" }, "ResultPath": "$.b", "Next": "C" },
        "C": { "Type": "Task", "Resource": "fn:c", "Parameters": { "id.$": "$.id" }, "End": true } } }"#,
];

#[test]
fn whatever_is_guessed_an_execution_comes_to_the_same() {
    let definitions: Vec<Definition> = DEFINITIONS.iter().map(|text| Definition::parse(text).expect("a definition")).collect();
    let [begun_ahead] = each(seeds(SIMULATIONS), |seed| {
        let definition = &definitions[seed as usize % definitions.len()];
        let input = json!({ "id": seed % 64 });
        let (outcome, mut log) = in_order(definition, input.clone());
        let (guessed, mut done, begun) = World::new(definition, seed).go(input);
        // What is cancelled when a branch fails has perhaps been done by then: with branches only what counted is compared.
        assert_eq!(outcome, guessed, "seed {seed}");
        if definition.source().contains("Both") {
            return [0];
        }
        let begun_ahead = begun.saturating_sub(log.len());
        log.iter_mut().chain(&mut done).for_each(|line| {
            if let Some(rest) = line.split_once("Some(\"real") {
                *line = rest.1.to_owned();
            }
        });
        assert_eq!(log, done, "seed {seed}");
        [begun_ahead as u64]
    });
    assert!(begun_ahead > 0, "nothing was begun in vain");
}

/// With right guesses all of a chain is begun at once.
#[test]
fn a_chain_whose_answers_are_known_is_begun_at_once() {
    let definition = Definition::parse(DEFINITIONS[0]).expect("a definition");
    let mut world = World::new(&definition, 1);
    (world.guesses.known, world.guesses.right, world.guesses.depth) = (100, 100, 6);
    world.step(|plan, outside| plan.start(json!({ "id": 1 }), outside));
    assert_eq!(world.runs.values().filter_map(|(_, task)| name(task)).collect::<Vec<_>>(), ["a", "b", "c", "d", "e"]);
    world.guesses.depth = 2;
    let mut world = World { guesses: world.guesses, ..World::new(&definition, 1) };
    world.step(|plan, outside| plan.start(json!({ "id": 1 }), outside));
    assert_eq!(world.runs.len(), 3, "no more than are allowed");
}

/// Knows how answers look, and no answer.
struct Shapes {
    depth: usize,
    keeps: bool,
}

impl Oracle for Shapes {
    fn takes_part(&mut self, _: &StartTask) -> bool {
        true
    }
    fn depth(&mut self) -> usize {
        self.depth
    }
    fn keeps(&mut self) -> bool {
        self.keeps
    }
    fn answer(&mut self, _: &StartTask) -> Option<Answer> {
        None
    }
    fn shape(&mut self, task: &StartTask) -> Option<Value> {
        answer(name(task)?, &Value::Null).ok()
    }
    fn way(&mut self, _: StateIndex, _: Path) -> Way {
        Way::Nowhere
    }
}

/// Where nothing is known of an answer, what does not depend on it is begun nevertheless.
#[test]
fn what_does_not_depend_on_an_answer_is_begun_before_it() {
    let definition = Definition::parse(DEFINITIONS[5]).expect("a definition");
    let begun = |text: &str| {
        let definition = Definition::parse(text).expect("a definition");
        let mut plan = Plan::new(&definition, about(), Limits::default());
        let (mut actions, mut random) = (Vec::new(), || 7);
        let mut outside =
            Outside { oracle: &mut Shapes { depth: 6, keeps: true }, now_ms: 0, random: &mut random, actions: &mut actions };
        plan.start(json!({ "id": 1 }), &mut outside);
        let begun = |action: &Do| if let Do::Begin { task, .. } = action { name(task).map(str::to_owned) } else { None };
        actions.iter().filter_map(begun).collect::<Vec<_>>()
    };
    // To add to what is not there fails: the front stops before that.
    assert_eq!(begun(definition.source()), ["a"]);
    let selected = definition.source().replace("States.MathAdd($.number, 1)", "$.number");
    assert_eq!(begun(&selected), ["a", "c"]);
}

/// Where the workers have become busy nothing more begins; what was begun goes on, and counts when it has ended, unless its memory is needed.
#[test]
fn what_was_begun_is_kept_where_nothing_more_may_begin() {
    let text = DEFINITIONS[5].replace("States.MathAdd($.number, 1)", "$.number");
    let definition = Definition::parse(&text).expect("a definition");
    for keeps in [true, false] {
        let mut plan = Plan::new(&definition, about(), Limits::default());
        let mut oracle = Shapes { depth: 6, keeps };
        let (mut actions, mut random, mut begun, mut dropped) = (Vec::new(), || 7, Vec::new(), 0);
        let mut told = Some(Event::Started { input: json!({ "id": 1 }) });
        for (function, depth) in [("c", 0), ("a", 6), ("b", 6)] {
            let mut outside = Outside { oracle: &mut oracle, now_ms: 0, random: &mut random, actions: &mut actions };
            if let Some(Event::Started { input }) = told.take() {
                plan.start(input, &mut outside);
            }
            for action in actions.drain(..) {
                match action {
                    Do::Begin { run, task, .. } => begun.push((run, task)),
                    Do::Drop(_) => dropped += 1,
                    _ => {}
                }
            }
            oracle.depth = depth;
            let (run, task) = begun.iter().rfind(|(_, task)| name(task) == Some(function)).expect("it was begun").clone();
            let mut outside = Outside { oracle: &mut oracle, now_ms: 0, random: &mut random, actions: &mut actions };
            // The end of c makes the front again: nothing had said how it ends.
            plan.ended(run, answer(function, &task.input), &mut outside);
        }
        let begun: Vec<_> = begun.iter().filter_map(|(_, task)| name(task)).collect();
        let expected: (&[_], _) = if keeps { (&["a", "c", "b"], 0) } else { (&["a", "c", "b", "c"], 1) };
        assert_eq!((begun.as_slice(), dropped), expected);
    }
}

/// What was begun by a wrong guess is given up as soon as that is known, and not when the answer is committed.
#[test]
fn a_wrong_guess_is_given_up_at_once() {
    let definition = Definition::parse(DEFINITIONS[0]).expect("a definition");
    let mut world = World::new(&definition, 1);
    (world.guesses.known, world.guesses.right, world.guesses.depth) = (100, 0, 1);
    world.step(|plan, outside| plan.start(json!({ "id": 1 }), outside));
    let begun: Vec<(RunId, StartTask)> = world.runs.iter().map(|(run, (_, task))| (*run, task.clone())).collect();
    assert_eq!(begun.iter().filter_map(|(_, task)| name(task)).collect::<Vec<_>>(), ["a", "b"]);
    let (first, task) = &begun[0];
    world.runs.remove(first);
    world.ended.insert(*first, String::new());
    let answer = answer("a", &task.input);
    world.guesses.known = 0;
    world.step(|plan, outside| plan.ended(*first, answer.clone(), outside));
    // Another one, with what was really answered.
    let runs: Vec<(RunId, &Value)> = world.runs.iter().map(|(run, (_, task))| (*run, &*task.input)).collect();
    assert_eq!((runs.len(), runs[0].0 != begun[1].0, runs[0].1), (1, true, &answer.expect("an output")));
}

/// A run whose input says when its state was entered has another input than the base gives it later: it is not committed, whatever it has answered.
#[test]
fn what_the_base_does_not_ask_for_is_not_committed() {
    let text = r#"{ "StartAt": "A", "States": {
        "A": { "Type": "Task", "Resource": "fn:a", "Next": "B" },
        "B": { "Type": "Task", "Resource": "fn:b", "Parameters": { "at.$": "$$.State.EnteredTime" }, "End": true } } }"#;
    let definition = Definition::parse(text).expect("a definition");
    let mut world = World::new(&definition, 1);
    (world.guesses.known, world.guesses.right, world.guesses.depth) = (100, 100, 6);
    world.step(|plan, outside| plan.start(json!({ "id": 1 }), outside));
    world.now_ms = 5_000;
    for _ in 0..2 {
        world.rng = Rng::with_seed(1);
        let (run, (_, task)) = world.runs.pop_first().expect("both are begun");
        world.ended.insert(run, String::new());
        let answer = answer(name(&task).unwrap_or_default(), &task.input);
        world.step(|plan, outside| plan.ended(run, answer, outside));
    }
    assert!(world.runs.is_empty());
    let group = world.step(|plan, outside| plan.group(outside));
    assert_eq!(group, [RunId(1)]);
    world.ended.remove(&RunId(1));
    world.step(|plan, outside| plan.committed(1, outside));
    let (_, (_, task)) = world.runs.first_key_value().expect("it is begun again");
    assert_eq!((name(task), task.input["at"].as_str()), (Some("b"), Some("1970-01-01T00:00:05.000Z")));
}

/// Statuses of the base.
#[test]
fn an_execution_that_ends_at_once_needs_no_runs() {
    let definition = Definition::parse(r#"{ "StartAt": "A", "States": { "A": { "Type": "Succeed" } } }"#).expect("a definition");
    let (outcome, log, begun) = World::new(&definition, 3).go(json!(7));
    assert_eq!((outcome, log.len(), begun), (Outcome::Succeeded(Arc::new(json!(7))), 0, 0));
    assert_eq!(Execution::new(&definition, about(), Limits::default(), false).status(), Status::New);
}
