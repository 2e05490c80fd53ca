//! Random definitions, and what the functions do that they call.

use std::collections::BTreeMap;

use fastrand::Rng;
use serde_json::{Value, json};
use sledge_workflow::definition::Resource;
use sledge_workflow::machine::{Failure, StartTask};

use crate::txn::tests::{CALM, Program};
use crate::workflow::speculative::plan::Answer;

/// Functions. The last one does not take part: it is carried out for good.
pub(super) const NAMES: [&str; 5] = ["a", "b", "c", "frail", "real"];

/// Which versions are served.
pub(super) struct Functions {
    seed: u64,
    versions: BTreeMap<&'static str, u64>,
    next: u64,
}

impl Functions {
    pub(super) fn new(seed: u64) -> Functions {
        Functions { seed, versions: NAMES.into_iter().zip(1..).collect(), next: 100 }
    }

    /// The version of a function that is served.
    pub(super) fn version(&self, name: &str) -> u64 {
        self.versions[name]
    }

    /// Deploys another version. The one before.
    pub(super) fn deploy(&mut self, name: &'static str) -> u64 {
        self.next += 1;
        self.versions.insert(name, self.next).expect("a function")
    }

    /// The number of the program that a version of a function runs with an input: the same each time.
    pub(super) fn number(&self, name: &str, version: u64, input: &Value) -> u64 {
        let digest = xxhash_rust::xxh3::xxh3_64(format!("{} {name} {version} {input}", self.seed).as_bytes());
        // Most do little, so that what is expected often comes true.
        let calm = if digest >> 60 < 11 { CALM } else { 0 };
        (digest & ((1 << 40) - 1)) | calm
    }
}

/// Whether a program leaves a line in the log.
pub(super) const fn logs(number: u64) -> bool {
    number.is_multiple_of(4)
}

/// Whether it makes a call of which it does not want the reply.
pub(super) const fn sends(number: u64) -> bool {
    number % 7 == 1
}

/// What a function answers that has ended so. Few things, so that they come again.
pub(super) fn answer(program: &Program) -> Answer {
    let mix = program.seen.bytes().fold(0, |mix: u64, byte| mix.wrapping_mul(31).wrapping_add(byte.into()));
    if program.failed {
        let error = if mix.is_multiple_of(2) { "Late" } else { "Odd" };
        return Err(Failure { error: Some(error.into()), cause: Some((mix % 5).to_string().into()) });
    }
    Ok(json!({ "number": mix % 3, "big": mix % 5 < 2, "more": mix % 7 < 5 }))
}

/// What a run comes to that is killed.
pub(super) fn killed() -> Answer {
    Err(Failure { error: Some("Killed".into()), cause: None })
}

/// The name of the function that a task calls.
pub(super) fn name(task: &StartTask) -> &str {
    match &*task.resource {
        Resource::Function { name, .. } => name,
        _ => panic!("{task:?} calls no function"),
    }
}

/// What executions are given.
pub(super) fn input(id: u64) -> Value {
    let last = json!({ "number": 0, "big": false, "more": true });
    let item = |id: u64| json!({ "id": id, "last": last });
    json!({ "id": id, "last": last, "round": { "n": 0 }, "items": [item(id), item(id + 1), item(7)] })
}

/// A definition with tasks, choices, branches, iterations, waits, attempts, catchers and rounds.
pub(super) fn definition(rng: &mut Rng) -> Value {
    let (count, goes_round) = (rng.usize(2..5), rng.u32(..6) == 0);
    let mut states = BTreeMap::new();
    for at in 0..count {
        let next = if at + 1 < count { format!("S{}", at + 1) } else { "Round".to_owned() };
        let state = match rng.u32(..10) {
            0 => json!({ "Type": "Choice", "Default": next, "Choices": [
                { "Variable": "$.last.big", "BooleanEquals": true, "Next": "Round" }, { "Variable": "$.last.more", "BooleanEquals": true, "Next": next } ] }),
            1 | 2 => {
                let branches: Vec<Value> = (0..rng.usize(2..4)).map(|branch| row(rng, &format!("{at}{branch}"))).collect();
                let state = json!({ "Type": "Parallel", "Branches": branches, "ResultPath": "$.both" });
                caught(rng, state, (at, &next), &mut states)
            }
            3 => {
                let each = row(rng, &format!("{at}m"));
                let state = json!({ "Type": "Map", "ItemsPath": "$.items", "MaxConcurrency": rng.u32(1..3), "ItemProcessor": each, "ResultPath": "$.each" });
                caught(rng, state, (at, &next), &mut states)
            }
            4 if rng.bool() => json!({ "Type": "Wait", "Seconds": rng.u32(1..4), "Next": next }),
            _ => {
                let state = task(rng, &at.to_string());
                caught(rng, state, (at, &next), &mut states)
            }
        };
        states.insert(format!("S{at}"), state);
    }
    if goes_round {
        let more = json!({ "Type": "Pass", "Parameters": { "n.$": "States.MathAdd($.round.n, 1)" }, "ResultPath": "$.round", "Next": "Again" });
        states.insert("Round".to_owned(), more);
        let again = json!([{ "Variable": "$.round.n", "NumericLessThan": 2, "Next": "S0" }]);
        states.insert("Again".to_owned(), json!({ "Type": "Choice", "Choices": again, "Default": "Out" }));
        states.insert("Out".to_owned(), json!({ "Type": "Succeed" }));
    } else {
        states.insert("Round".to_owned(), json!({ "Type": "Succeed" }));
    }
    json!({ "StartAt": "S0", "States": states })
}

/// A task whose input depends on what its execution was given, on what the task before it has answered, or on both.
fn task(rng: &mut Rng, at: &str) -> Value {
    let parameters = match rng.u32(..5) {
        0 => json!({ "id.$": "$.id" }),
        1 => json!({ "of.$": "$.last.number" }),
        2 => json!({ "id.$": "$.id", "big.$": "$.last.big" }),
        _ => json!({ "id.$": "$.id", "at": at }),
    };
    let function = if rng.u32(..12) == 0 { "real" } else { NAMES[rng.usize(..NAMES.len() - 1)] };
    let mut state =
        json!({ "Type": "Task", "Resource": format!("fn:{function}"), "Parameters": parameters, "ResultPath": "$.last" });
    if rng.u32(..3) == 0 {
        // What the store has not committed may be tried again.
        let errors: &[&str] = if rng.bool() { &["Late", "Store"] } else { &["Late"] };
        state["Retry"] = json!([{ "ErrorEquals": errors, "IntervalSeconds": rng.u32(1..3), "MaxAttempts": rng.u32(1..3) }]);
    }
    state
}

/// One or two tasks, one after the other.
fn row(rng: &mut Rng, at: &str) -> Value {
    let (mut first, mut last) = (task(rng, at), task(rng, at));
    last["End"] = json!(true);
    let [one, other] = ["T", "U"].map(|name| format!("{name}{at}"));
    if rng.bool() {
        return json!({ "StartAt": one, "States": { one.clone(): last } });
    }
    first["Next"] = json!(other);
    json!({ "StartAt": one, "States": { one.clone(): first, other: last } })
}

/// The state with what follows it: perhaps also where it fails.
fn caught(rng: &mut Rng, mut state: Value, (at, next): (usize, &str), states: &mut BTreeMap<String, Value>) -> Value {
    state["Next"] = json!(next);
    let errors = match rng.u32(..4) {
        0 => return state,
        1 => "Odd",
        _ => "States.ALL",
    };
    let mends = rng.u32(..3) > 0;
    let to = if mends { format!("Mend{at}") } else { next.to_owned() };
    state["Catch"] = json!([{ "ErrorEquals": [errors], "ResultPath": "$.error", "Next": to }]);
    if !mends {
        // It goes on as if it had not failed: what runs ahead behind it is wanted all the same.
        return state;
    }
    let mut mend = task(rng, &format!("{at}mend"));
    mend["Next"] = json!(next);
    states.insert(format!("Mend{at}"), mend);
    state
}
