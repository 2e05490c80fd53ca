//! Makes a test of an execution that has ended: what its tasks answered becomes mocks, what happened becomes what is expected.
//!
//! ```text
//!   history of a server --Places--> calls by state and place --> mocks --play--> what a replay gives --compare--> expect
//! ```
//!
//! The recording is played before it is given out: what a replay does not give again, since it depends on time or chance, is not expected, and a note says so. So a recording passes
//! as long as neither the definition nor the machine changes.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value, json};

use super::branch::{Place, Places, TOP, Told};
use super::difference::differences;
use super::event::{Noted, Noteds, Wanted, is_kept};
use super::expect::Ending;
use super::play::{Played, is_of_map, play};
use super::suite::Suite;
use crate::data::Timestamp;
use crate::definition::{Definition, Kind};
use crate::machine::HistoryKind;

/// An execution as a server tells it.
#[derive(Clone, Copy, Debug)]
pub struct Recorded<'r> {
    /// Its name.
    pub name: &'r str,
    /// Its ARN.
    pub arn: &'r str,
    /// `SUCCEEDED`, `FAILED`, `TIMED_OUT` or `ABORTED`.
    pub status: &'r str,
    /// When it began, in milliseconds since 1970.
    pub started_ms: i64,
    /// Its input.
    pub input: &'r Value,
    /// Its output.
    pub output: Option<&'r Value>,
    /// The error with which it ended.
    pub error: Option<&'r str>,
    /// The cause of that.
    pub cause: Option<&'r str>,
    /// All events of its history, as `GetExecutionHistory` has them, from the first.
    pub history: &'r [Value],
}

/// A test file, and what it does not expect.
#[derive(Clone, Debug, PartialEq)]
pub struct Recording {
    /// The test file.
    pub suite: Value,
    /// What is left out, a sentence each.
    pub notes: Vec<String>,
}

/// Why an execution cannot be recorded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// It goes on.
    #[error("the execution has not ended; wait for its end, or stop it")]
    Running,
    /// It has gone on after its end.
    #[error("the execution was redriven or restarted; record one that ran through")]
    Redriven,
    /// The history is not all there.
    #[error("the history does not begin with ExecutionStarted; it is not complete")]
    Incomplete,
    /// The replay has no end.
    #[error("the execution does not replay: {0}")]
    Stuck(String),
    /// The replay ends otherwise.
    #[error("the execution does not replay: it ended as {recorded}, its replay as {played}")]
    Otherwise {
        /// How it ended.
        recorded: String,
        /// How its replay ended.
        played: String,
    },
}

/// Records an execution of that definition. `workflow` is the path of the definition from the test file.
///
/// # Errors
/// The execution cannot be replayed: why.
pub fn record(definition: &Definition, workflow: &str, recorded: &Recorded<'_>) -> Result<Recording, RecordError> {
    if recorded.status == "RUNNING" {
        return Err(RecordError::Running);
    }
    let events: Vec<Event<'_>> = recorded.history.iter().filter_map(Event::read).collect();
    if events.first().is_none_or(|first| first.kind != HistoryKind::ExecutionStarted) {
        return Err(RecordError::Incomplete);
    }
    if events.iter().any(|event| event.kind == HistoryKind::ExecutionRedriven) {
        return Err(RecordError::Redriven);
    }
    let heard = Heard::of(definition, &events);
    let mut case = case(recorded, &events, heard.mocks(definition));
    let suite = json!({ "workflow": workflow, "cases": [&case] });
    let read = Suite::parse(&suite.to_string()).map_err(|problems| RecordError::Stuck(first(&problems)))?;
    let problems = read.check(definition);
    let Some(own) = read.only_case().filter(|_| problems.is_empty()) else { return Err(RecordError::Stuck(first(&problems))) };
    let Played { ending, events: played, calls } = play(own, definition);
    let ending = ending.map_err(RecordError::Stuck)?;
    if ending.status != recorded.status {
        return Err(RecordError::Otherwise { recorded: recorded.status.to_owned(), played: told(&ending) });
    }
    let mut notes = Vec::new();
    let mut expect = expected_end(recorded, &ending, &mut notes);
    let counted = |state: &str| calls.iter().find(|(name, _)| &***name == state).map_or(0, |(_, count)| *count);
    let calls: Map<_, _> = heard
        .counts(definition)
        .into_iter()
        .filter(|(state, count)| counted(state) == *count)
        .map(|(state, count)| (state, count.into()))
        .collect();
    if !calls.is_empty() {
        expect.insert("calls".to_owned(), Value::Object(calls));
    }
    expect.insert("events".to_owned(), expected_events(heard.events, &played, &mut notes));
    case["expect"] = Value::Object(expect);
    Ok(Recording { suite: json!({ "workflow": workflow, "cases": [case] }), notes })
}

fn first(problems: &[super::Problem]) -> String {
    problems.first().map_or_else(|| "the test file cannot be read".to_owned(), ToString::to_string)
}

fn told(Ending { status, error, cause, .. }: &Ending) -> String {
    let texts: Vec<&str> = error.iter().chain(cause).map(String::as_str).collect();
    if texts.is_empty() { (*status).to_owned() } else { format!("{status} ({})", texts.join(": ")) }
}

/// The case without what it expects; to be readable it has to expect something.
fn case(recorded: &Recorded<'_>, events: &[Event<'_>], mocks: Value) -> Value {
    let Recorded { name, arn, status, started_ms, input, .. } = recorded;
    let workflow_id = arn.rsplit_once(':').map_or(*arn, |(workflow, _)| workflow).replacen(":execution:", ":stateMachine:", 1);
    let workflow = workflow_id.rsplit(':').next().unwrap_or_default();
    let role = events.first().and_then(|first| first.details["roleArn"].as_str()).unwrap_or_default();
    let mut case = json!({
        "name": name,
        "comment": format!("recorded: {arn}"),
        "context": { "execution_id": arn, "execution": name, "role": role, "workflow_id": &workflow_id, "workflow": workflow },
        "input": input,
        "mocks": mocks,
        "expect": { "status": status },
    });
    if let Ok(start) = Timestamp::from_unix_ms(*started_ms) {
        case["start"] = start.to_string().into();
    }
    if let Some(aborted) = events.iter().rfind(|event| event.kind == HistoryKind::ExecutionAborted) {
        case["stop_after_s"] = seconds(aborted.at_ms.saturating_sub(*started_ms));
        for (key, own) in [("stop_error", "error"), ("stop_cause", "cause")] {
            if aborted.details[own].is_string() {
                case[key] = aborted.details[own].clone();
            }
        }
    }
    case
}

fn expected_end(recorded: &Recorded<'_>, ending: &Ending, notes: &mut Vec<String>) -> Map<String, Value> {
    let mut expect = Map::new();
    expect.insert("status".to_owned(), recorded.status.into());
    if let Some(output) = recorded.output {
        match &ending.output {
            Some(played) if differences(output, played).is_empty() => drop(expect.insert("output".to_owned(), output.clone())),
            _ => notes.push("the output depends on time or chance: it is not compared".to_owned()),
        }
    }
    for (key, own, played) in [("error", recorded.error, &ending.error), ("cause", recorded.cause, &ending.cause)] {
        match own {
            Some(text) if played.as_deref() == Some(text) => drop(expect.insert(key.to_owned(), text.into())),
            Some(_) => notes.push(format!("the {key} depends on time or chance: it is not compared")),
            None => {}
        }
    }
    expect
}

/// What is expected of each place: of those that a replay gives again.
fn expected_events(mut recorded: BTreeMap<String, Vec<Wanted>>, played: &Noteds, notes: &mut Vec<String>) -> Value {
    let mut expected = Map::new();
    // The top level says the most.
    let top = recorded.remove_entry(TOP);
    for (place, wanted) in top.into_iter().chain(recorded) {
        let noted = played.get(&place).map(Vec::as_slice).unwrap_or_default();
        if wanted.len() != noted.len() || !wanted.iter().zip(noted).all(|(wanted, noted)| wanted.is(noted)) {
            notes.push(format!("the events of {place} come otherwise in a replay: they are not compared"));
            continue;
        }
        let mut stable = |wanted: Wanted, noted: &Noted| {
            let output = wanted.output.filter(|output| {
                let is_same = noted.output.as_deref().is_some_and(|played| differences(output, played).is_empty());
                if !is_same {
                    let state = wanted.state.as_deref().unwrap_or_default();
                    notes.push(format!("the output of \"{state}\" ({place}) depends on time or chance: it is not compared"));
                }
                is_same
            });
            Wanted { output, ..wanted }.to_json()
        };
        let events: Vec<_> = wanted.into_iter().zip(noted).map(|(wanted, noted)| stable(wanted, noted)).collect();
        expected.insert(place, Value::Array(events));
    }
    Value::Object(expected)
}

/// Milliseconds as a number of seconds.
fn seconds(ms: i64) -> Value {
    json!(ms.max(0) as f64 / 1_000.0)
}

/// An event of a history in JSON.
struct Event<'h> {
    id: u64,
    previous: u64,
    kind: HistoryKind,
    at_ms: i64,
    details: &'h Value,
}

impl<'h> Event<'h> {
    /// None for a type that this machine has not.
    fn read(event: &'h Value) -> Option<Self> {
        let kind = HistoryKind::named(event["type"].as_str()?)?;
        Some(Event {
            id: event["id"].as_u64()?,
            previous: event["previousEventId"].as_u64().unwrap_or(0),
            kind,
            // Milliseconds of this age are whole in a float.
            at_ms: (event["timestamp"].as_f64().unwrap_or(0.0) * 1_000.0).round() as i64,
            details: event.get(kind.details()).unwrap_or(&Value::Null),
        })
    }

    fn text(&self, key: &str) -> Option<&'h str> {
        self.details[key].as_str()
    }

    /// A document, which events have as text.
    fn document(&self, key: &str) -> Option<Value> {
        serde_json::from_str(self.text(key)?).ok()
    }
}

/// A call of a task.
struct Call {
    place: Place,
    /// `ItemReader` or `ResultWriter`, of a Map.
    of_map: Option<&'static str>,
    at_ms: i64,
    timeout_s: Option<i64>,
    heartbeat_s: Option<f64>,
    /// When the call was answered of a task that waits for its callback, and what was answered.
    submitted: Option<(i64, Value)>,
    /// The mock's own members; none as long as it has not ended.
    answer: Option<(i64, Map<String, Value>)>,
}

/// What a history says of tasks, and of what happened where.
struct Heard {
    calls: Vec<Call>,
    events: BTreeMap<String, Vec<Wanted>>,
}

impl Heard {
    fn of(definition: &Definition, events: &[Event<'_>]) -> Heard {
        let mut heard = Heard { calls: Vec::new(), events: BTreeMap::new() };
        let mut places = Places::new(definition);
        // By its place a task that has begun is found when it ends.
        let mut open: HashMap<(Option<u32>, Vec<u32>), usize> = HashMap::new();
        for event in events {
            let parameters = event.document("parameters").filter(is_of_map);
            let name = event.text("name").or(event.text("state"));
            let index = event.details["index"].as_u64().and_then(|index| u32::try_from(index).ok());
            let told =
                Told { id: event.id, previous: event.previous, kind: event.kind, name, index, of_map: parameters.is_some() };
            let place = places.of(told);
            let key = (place.state.map(|state| state.0), place.position());
            match event.kind {
                HistoryKind::LambdaFunctionScheduled | HistoryKind::TaskScheduled => {
                    open.insert(key, heard.calls.len());
                    heard.calls.push(Call::new(event, place.clone(), parameters.as_ref()));
                }
                kind => {
                    if let Some(call) = open.get(&key).and_then(|at| heard.calls.get_mut(*at)) {
                        call.hear(event, kind);
                    }
                }
            }
            if is_kept(event.kind) {
                let output = if event.kind.name().ends_with("StateExited") { event.document("output") } else { None };
                let wanted = Wanted { kind: event.kind.name().to_owned(), state: name.map(str::to_owned), output };
                heard.events.entry(place.name(definition)).or_default().push(wanted);
            }
        }
        heard
    }

    /// How often the tasks of each state were called.
    fn counts(&self, definition: &Definition) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for call in self.calls.iter().filter(|call| call.of_map != Some("ResultWriter")) {
            if let Some(state) = call.place.state.and_then(|at| definition.state(at)) {
                *counts.entry(state.name.to_string()).or_default() += 1;
            }
        }
        counts
    }

    /// `mocks`.
    fn mocks(&self, definition: &Definition) -> Value {
        let mut mocks = Map::new();
        let is_placed = |call: &Call| {
            let same = |other: &&Call| other.place.state == call.place.state && other.of_map == call.of_map;
            self.calls.iter().filter(same).any(|other| !other.place.around.is_empty())
        };
        let mut placed: HashMap<(Option<u32>, Option<&str>), bool> = HashMap::new();
        for call in &self.calls {
            let Some(state) = call.place.state.and_then(|at| definition.state(at)) else { continue };
            let waits = matches!(&state.kind, Kind::Task(task) if task.resource.has_callback());
            let mut mock = call.mock(waits);
            let key = (call.place.state.map(|state| state.0), call.of_map);
            if *placed.entry(key).or_insert_with(|| is_placed(call)) {
                mock.insert("at".to_owned(), call.place.position().into());
            }
            let of_state = mocks.entry(state.name.to_string()).or_insert_with(|| match call.of_map {
                Some(_) => json!({}),
                None => json!([]),
            });
            let list = match call.of_map {
                Some(part) => &mut of_state[part],
                None => of_state,
            };
            match list.as_array_mut() {
                Some(list) => list.push(Value::Object(mock)),
                None => *list = json!([mock]),
            }
        }
        Value::Object(mocks)
    }
}

impl Call {
    fn new(event: &Event<'_>, place: Place, of_map: Option<&Value>) -> Call {
        let part = |parameters: &Value| if parameters.get("WriterConfig").is_some() { "ResultWriter" } else { "ItemReader" };
        Call {
            place,
            of_map: of_map.map(part),
            at_ms: event.at_ms,
            timeout_s: event.details["timeoutInSeconds"].as_i64(),
            heartbeat_s: event.details["heartbeatInSeconds"].as_f64(),
            submitted: None,
            answer: None,
        }
    }

    /// Takes in what the history says of it next.
    fn hear(&mut self, event: &Event<'_>, kind: HistoryKind) {
        if self.answer.is_some() {
            return;
        }
        let mut answer = Map::new();
        match kind {
            HistoryKind::TaskSubmitted => {
                self.submitted = Some((event.at_ms, event.document("output").unwrap_or_default()));
                return;
            }
            HistoryKind::TaskSucceeded | HistoryKind::LambdaFunctionSucceeded => {
                answer.insert("return".to_owned(), event.document("output").unwrap_or_default());
            }
            HistoryKind::TaskFailed | HistoryKind::LambdaFunctionFailed => {
                answer.insert("error".to_owned(), event.text("error").unwrap_or_default().into());
                if let Some(cause) = event.text("cause") {
                    answer.insert("cause".to_owned(), cause.into());
                }
            }
            // A timeout is the machine's own.
            _ => return,
        }
        self.answer = Some((event.at_ms, answer));
    }

    /// The mock that answers so.
    fn mock(&self, waits: bool) -> Map<String, Value> {
        let Some((at_ms, answer)) = &self.answer else {
            let mut mock = Map::new();
            match &self.submitted {
                // The call was answered, its callback never came.
                Some((at_ms, output)) if waits => {
                    mock.insert("return".to_owned(), output.clone());
                    put_seconds(&mut mock, "after_s", at_ms.saturating_sub(self.at_ms));
                }
                _ => drop(mock.insert("never".to_owned(), true.into())),
            }
            return mock;
        };
        // One that came in the millisecond of its deadline was in time.
        let last_ms = self.timeout_s.map_or(i64::MAX, |timeout_s| timeout_s.saturating_mul(1_000) - 1);
        let took_ms = at_ms.saturating_sub(self.at_ms).clamp(0, last_ms.max(0));
        let mut mock = match &self.submitted {
            Some((submitted_ms, _)) if waits => {
                let before_ms = submitted_ms.saturating_sub(self.at_ms).clamp(0, took_ms);
                let mut callback = answer.clone();
                put_seconds(&mut callback, "after_s", took_ms - before_ms);
                let mut mock = Map::new();
                mock.insert("callback".to_owned(), Value::Object(callback));
                put_seconds(&mut mock, "after_s", before_ms);
                mock
            }
            _ => {
                let mut mock = answer.clone();
                put_seconds(&mut mock, "after_s", took_ms);
                mock
            }
        };
        // It was alive meanwhile: the history does not say when it said so.
        if let Some(heartbeat_s) = self.heartbeat_s.filter(|seconds| took_ms as f64 >= seconds * 1_000.0) {
            mock.insert("beat_s".to_owned(), json!(heartbeat_s / 2.0));
        }
        mock
    }
}

fn put_seconds(mock: &mut Map<String, Value>, key: &str, ms: i64) {
    if ms > 0 {
        mock.insert(key.to_owned(), seconds(ms));
    }
}
