//! Reads the suite: what was recorded, and the definitions that belong to it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::compare::{Names, canonical};

/// Snapshots of the commit that `scripts/fetch-states-suite` gets: a folder with fewer is not the suite.
const SNAPSHOTS_MIN: usize = 1_000;

/// [`Execution::end`] of definitions that were refused.
pub(crate) const REFUSED: &str = "refused";

/// One execution that was recorded.
pub(crate) struct Execution {
    /// The test, and the number of the execution in it.
    pub(crate) name: String,
    /// The test's file, from the folder `v2`.
    pub(crate) file: String,
    /// The definition; empty if the test has none or is not in the sources any more.
    pub(crate) definition: String,
    /// Whether the test is in the sources.
    pub(crate) has_test: bool,
    pub(crate) input: Value,
    /// The events; empty if only the end was recorded.
    pub(crate) events: Vec<Value>,
    /// How it ended: `{"output": ...}`, or `{"error": ..., "cause": ...}`; [`REFUSED`]; null if that was not recorded.
    pub(crate) end: Value,
    /// Texts that the snapshot has others for.
    pub(crate) replaced: Vec<(String, String)>,
    /// Texts that stand for any value.
    pub(crate) masked: Vec<String>,
}

/// All that was recorded.
pub(crate) struct Suite {
    pub(crate) executions: Vec<Execution>,
    pub(crate) snapshots: usize,
    /// When the definitions and inputs were made, in milliseconds since 1970: some inputs are times reckoned from then.
    pub(crate) start_ms: i64,
}

struct Machine {
    definition: String,
    input: Option<Value>,
}

/// Reads a checkout.
pub(crate) fn read(root: &Path, definitions: &Path) -> Suite {
    let folder = root.join("tests/aws/services/stepfunctions/v2");
    let tests = json(definitions);
    let made = std::fs::metadata(definitions).and_then(|about| about.modified()).expect("the time of the definitions");
    let made = made.duration_since(std::time::UNIX_EPOCH).expect("a time after 1970");
    let start_ms = i64::try_from(made.as_millis()).expect("a time of these centuries");
    let mut suite = Suite { executions: Vec::new(), snapshots: 0, start_ms };
    for file in snapshots(&folder) {
        let name = file.strip_prefix(&folder).expect("a file of the folder").to_string_lossy().replace(".snapshot.json", "");
        let Value::Object(members) = json(&file) else { panic!("{} is no object", file.display()) };
        for (test, snapshot) in members {
            suite.snapshots += 1;
            let before = suite.executions.len();
            add(
                &mut suite.executions,
                &name,
                &test,
                &snapshot["recorded-content"],
                source(&tests, &test, &snapshot["recorded-content"]),
            );
            if suite.executions.len() == before {
                suite.executions.push(nothing(&name, &test));
            }
        }
    }
    assert!(
        suite.snapshots >= SNAPSHOTS_MIN,
        "{} has {} snapshots only: is it a checkout of LocalStack?",
        root.display(),
        suite.snapshots
    );
    suite
}

fn json(file: &Path) -> Value {
    let text = std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

fn snapshots(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for path in entries.map(|entry| entry.expect("an entry").path()) {
        if path.is_dir() {
            found.extend(snapshots(&path));
        } else if path.to_string_lossy().ends_with(".snapshot.json") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// A snapshot without an execution.
fn nothing(file: &str, test: &str) -> Execution {
    Execution {
        name: short(test),
        file: file.to_owned(),
        definition: String::new(),
        has_test: true,
        input: Value::Null,
        events: Vec::new(),
        end: Value::Null,
        replaced: Vec::new(),
        masked: Vec::new(),
    }
}

/// `file::Class::test` from the folder `v2`.
fn short(test: &str) -> String {
    test.split_once("/v2/").map_or(test, |(_, rest)| rest).to_owned()
}

fn add(executions: &mut Vec<Execution>, file: &str, test: &str, recorded: &Value, source: &Value) {
    let machines: Vec<_> = source["machines"].as_array().into_iter().flatten().map(machine).collect();
    let pairs = source["replaced"].as_array().into_iter().flatten();
    let replaced: Vec<_> = pairs.filter_map(|pair| Some((pair[0].as_str()?.to_owned(), pair[1].as_str()?.to_owned()))).collect();
    let masked: Vec<_> =
        source["masked"].as_array().into_iter().flatten().filter_map(|text| text.as_str().map(str::to_owned)).collect();
    let mut histories = Vec::new();
    find_histories(recorded, &mut histories);
    let mut ends = Vec::new();
    find_ends(recorded, &mut ends);
    let count = histories.len() + ends.len();
    let made = |number: usize, machine: Option<&Machine>, input: Value, events: Vec<Value>, end: Value| Execution {
        name: if count > 1 { format!("{} #{number}", short(test)) } else { short(test) },
        file: file.to_owned(),
        definition: machine.map(|machine| machine.definition.clone()).unwrap_or_default(),
        has_test: source.is_object(),
        input,
        events,
        end,
        replaced: replaced.clone(),
        masked: masked.clone(),
    };
    // Snapshots mask times, and hold documents in texts as documents: the test knows what they were.
    let given = |machine: Option<&Machine>, recorded: Value| {
        let mut names = Names::masked(&masked);
        let given = machine.and_then(|machine| machine.input.clone());
        given.filter(|given| names.same("", &canonical(&recorded), &canonical(given)).is_ok()).unwrap_or(recorded)
    };
    for (number, events) in histories.iter().enumerate() {
        let machine = choose(&machines, number, histories.len(), events);
        let recorded = parsed(&events[0]["executionStartedEventDetails"]["input"]);
        executions.push(made(number, machine, given(machine, recorded), events.clone(), end_of(events)));
    }
    for (number, (input, end)) in ends.into_iter().enumerate() {
        let machine = machines.get(number).or(machines.first());
        executions.push(made(number, machine, given(machine, input), Vec::new(), end));
    }
    if let [machine] = machines.as_slice()
        && count == 0
        && is_refusal(recorded)
    {
        executions.push(made(0, Some(machine), Value::Null, Vec::new(), Value::from(REFUSED)));
    }
}

/// Whether Step Functions has answered that a definition has mistakes.
fn is_refusal(recorded: &Value) -> bool {
    let text = recorded.to_string();
    text.contains("InvalidDefinition") || text.contains("SCHEMA_VALIDATION_FAILED")
}

/// What is known of a test. Some snapshots are of tests that have other parameters now, or lie in another folder: their definition is that of the present variants,
/// if these have one only that has the states of the history.
fn source<'t>(tests: &'t Value, test: &str, recorded: &Value) -> &'t Value {
    if let Some(source) = tests.get(test) {
        return source;
    }
    let function = |name: &str| short(name).split('[').next().unwrap_or_default().to_owned();
    let wanted = function(test);
    let mut histories = Vec::new();
    find_histories(recorded, &mut histories);
    let fits = |source: &Value| {
        let machines: Vec<_> = source["machines"].as_array().into_iter().flatten().map(machine).collect();
        machines.len() == 1 && !histories.is_empty() && histories.iter().all(|events| choose(&machines, 0, 0, events).is_some())
    };
    let variants = tests.as_object().into_iter().flatten().filter(|(name, source)| function(name) == wanted && fits(source));
    let variants: Vec<_> =
        variants.map(|(_, source)| (unnamed(source["machines"][0]["definition"].as_str().unwrap_or_default()), source)).collect();
    match variants.first() {
        Some((definition, source)) if variants.iter().all(|(other, _)| other == definition) => source,
        _ => &Value::Null,
    }
}

/// A text without the numbers of the names that `scripts/states-definitions` makes up.
fn unnamed(text: &str) -> String {
    let mut parts = text.split("fake");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + "fake" + part.trim_start_matches(|c: char| c.is_ascii_digit()))
}

fn machine(given: &Value) -> Machine {
    let input = given["input"].as_str().and_then(|text| serde_json::from_str(text).ok());
    Machine { definition: given["definition"].as_str().unwrap_or_default().to_owned(), input }
}

/// The machine of a history: by its place if there are as many, or else the last one with all states that were entered.
fn choose<'m>(machines: &'m [Machine], number: usize, histories: usize, events: &[Value]) -> Option<&'m Machine> {
    if machines.len() == histories {
        return machines.get(number);
    }
    let entered = || events.iter().filter_map(|event| event["stateEnteredEventDetails"]["name"].as_str());
    machines.iter().rev().find(|machine| entered().all(|name| machine.definition.contains(&format!("\"{name}\""))))
}

/// Lists of events, at any depth.
fn find_histories(value: &Value, found: &mut Vec<Vec<Value>>) {
    match value {
        Value::Object(members) => {
            if let Some(Value::Array(events)) = members.get("events")
                && events.first().is_some_and(|event| event["type"] == "ExecutionStarted")
            {
                found.push(events.clone());
            }
            members.values().for_each(|member| find_histories(member, found));
        }
        Value::Array(elements) => elements.iter().for_each(|element| find_histories(element, found)),
        _ => {}
    }
}

/// Answers of `StartSyncExecution`, and lists `cases` of inputs and outputs.
fn find_ends(recorded: &Value, found: &mut Vec<(Value, Value)>) {
    for case in recorded["cases"].as_array().into_iter().flatten() {
        // Each output was found by a query, which gives a list of one.
        let output = match &case["output"] {
            Value::Array(outputs) if outputs.len() == 1 => outputs[0].clone(),
            output => output.clone(),
        };
        found.push((parsed(&case["input"]), Value::Object(Map::from_iter([("output".to_owned(), parsed(&output))]))));
    }
    let sync = &recorded["start_execution_sync_response"];
    if sync.get("status").is_some() {
        let members =
            ["output", "error", "cause"].into_iter().filter_map(|name| Some((name.to_owned(), parsed(sync.get(name)?))));
        found.push((parsed(&sync["input"]), Value::Object(members.collect())));
    }
}

fn end_of(events: &[Value]) -> Value {
    let Some(last) = events.last() else { return Value::Null };
    let details = |name: &str| last.get(name).cloned().unwrap_or_else(|| Value::Object(Map::new()));
    match last["type"].as_str() {
        Some("ExecutionSucceeded") => {
            let output = details("executionSucceededEventDetails")["output"].clone();
            Value::Object(Map::from_iter([("output".to_owned(), parsed(&output))]))
        }
        Some("ExecutionFailed") => details("executionFailedEventDetails"),
        Some("ExecutionTimedOut") => details("executionTimedOutEventDetails"),
        Some("ExecutionAborted") => details("executionAbortedEventDetails"),
        _ => Value::Null,
    }
}

/// A text that holds a document, as that document.
pub(crate) fn parsed(value: &Value) -> Value {
    match value.as_str().map(serde_json::from_str) {
        Some(Ok(document)) => document,
        _ => value.clone(),
    }
}

/// What the events say of each other: index of the event before each, by the numbers that they have; none if the recording has left them out.
pub(crate) fn previous(events: &[Value]) -> Vec<Option<usize>> {
    let numbers: HashMap<u64, usize> =
        events.iter().enumerate().filter_map(|(at, event)| Some((event["id"].as_u64()?, at))).collect();
    events.iter().map(|event| numbers.get(&event["previousEventId"].as_u64()?).copied()).collect()
}
