//! Replays an execution: tells the machine what the history says of each task, in that order.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use serde_json::{Value, json};
use sledge_workflow::definition::Definition;
use sledge_workflow::machine::limits::DATA_BYTES_MAX;
use sledge_workflow::machine::{About, Action, Event, Execution as Machine, Limits, Outcome, StartTask, TimerId, step};

use super::adapt;
use super::suite::{Execution, parsed, previous};

/// Steps after which a replay is given up.
const STEPS_MAX: usize = 100_000;

/// What the machine made of an execution.
pub(crate) struct Replayed {
    pub(crate) events: Vec<Value>,
    /// As [`Execution::end`]; null if it waits for something that never comes.
    pub(crate) end: Value,
}

/// Which task: its state, and the iterations of Maps in which it lies.
type Key = (String, Vec<(String, u64)>);

/// Something that was recorded of a task.
struct Told {
    at: usize,
    event: Value,
}

struct Waiting {
    task: StartTask,
    told: VecDeque<Told>,
    submitted: bool,
}

struct Replay<'e> {
    execution: &'e Execution,
    definition: Definition,
    machine: Machine,
    now_ms: i64,
    random: u64,
    /// What was recorded of tasks that have not started yet, by task, in order.
    recorded: HashMap<Key, VecDeque<VecDeque<Told>>>,
    waiting: Vec<Waiting>,
    timers: BTreeMap<(i64, u64), TimerId>,
    serial: u64,
    goes_on: bool,
    events: Vec<Value>,
    outcome: Option<Outcome>,
}

/// Replays an execution that begins at that time, in milliseconds since 1970.
///
/// # Errors
/// The definition has mistakes, or the execution does not end.
pub(crate) fn replay(execution: &Execution, start_ms: i64) -> Result<Replayed, String> {
    let definition = Definition::parse(&adapt::definition(&execution.definition)).map_err(|mistakes| {
        format!("the definition is refused: {}", mistakes.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
    })?;
    let machine = Machine::new(&definition, about(execution), Limits::default(), true);
    let mut replay = Replay {
        execution,
        definition,
        machine,
        now_ms: start_ms,
        random: 1,
        recorded: recorded(&execution.events),
        waiting: Vec::new(),
        timers: BTreeMap::new(),
        serial: 0,
        goes_on: false,
        events: Vec::new(),
        outcome: None,
    };
    replay.step(Event::Started { input: execution.input.clone() });
    for _ in 0..STEPS_MAX {
        if replay.outcome.is_some() {
            break;
        }
        let Some(event) = replay.next() else { break };
        replay.step(event);
    }
    let end = match replay.outcome {
        Some(Outcome::Succeeded(output)) => json!({ "output": *output }),
        Some(Outcome::Failed(failure) | Outcome::Aborted(failure)) => {
            let mut end = serde_json::Map::new();
            end.extend(failure.error.map(|error| ("error".to_owned(), json!(*error))));
            end.extend(failure.cause.map(|cause| ("cause".to_owned(), json!(*cause))));
            Value::Object(end)
        }
        Some(Outcome::TimedOut) => json!({ "error": "States.Timeout" }),
        None => Value::Null,
    };
    Ok(Replayed { events: replay.events, end })
}

fn about(execution: &Execution) -> About {
    let id = if execution.file.starts_with("express/") { "express:machine:execution:1" } else { "execution:machine:execution" };
    let role = execution.events.first().and_then(|event| event["executionStartedEventDetails"]["roleArn"].as_str());
    About {
        id: format!("arn:aws:states:us-east-1:111111111111:{id}").into(),
        name: "execution".into(),
        role: role.unwrap_or("sfn_role_arn").into(),
        machine_id: "arn:aws:states:us-east-1:111111111111:stateMachine:machine".into(),
        machine_name: "machine".into(),
        token_prefix: "".into(),
    }
}

/// Whether an event tells what became of a task.
fn tells(kind: &str) -> bool {
    let ends = ["Started", "StartFailed", "Submitted", "SubmitFailed", "Succeeded", "Failed", "TimedOut", "ScheduleFailed"];
    kind.strip_prefix("LambdaFunction").or(kind.strip_prefix("Task")).is_some_and(|rest| ends.contains(&rest))
}

fn kind(event: &Value) -> &str {
    event["type"].as_str().unwrap_or_default()
}

/// What was recorded of each task.
fn recorded(events: &[Value]) -> HashMap<Key, VecDeque<VecDeque<Told>>> {
    let before = previous(events);
    let mut tasks: Vec<(usize, VecDeque<Told>)> = Vec::new();
    for (at, event) in events.iter().enumerate() {
        if kind(event).ends_with("Scheduled") {
            tasks.push((at, VecDeque::new()));
        } else if tells(kind(event)) {
            // Up to where the task was asked for.
            let asked = std::iter::successors(before[at], |above| before[*above])
                .find(|above| kind(&events[*above]).ends_with("Scheduled"));
            if let Some((_, told)) = tasks.iter_mut().find(|(own, _)| asked == Some(*own)) {
                told.push_back(Told { at, event: event.clone() });
            }
        }
    }
    if events.iter().any(|event| event["id"].is_array()) {
        tell_in_turn(events, &mut tasks);
    }
    let mut found: HashMap<Key, VecDeque<VecDeque<Told>>> = HashMap::new();
    for (at, told) in tasks {
        found.entry(key(events, &before, at)).or_default().push_back(told);
    }
    found
}

/// Recordings without numbers are sorted by type, and do not say which task an event is of: the first of each type is of the first task, and so on.
fn tell_in_turn(events: &[Value], tasks: &mut [(usize, VecDeque<Told>)]) {
    let ends = |kind: &str| !kind.ends_with("Started") && !kind.ends_with("Submitted");
    for wanted in ["TaskStarted", "TaskSubmitted", ""] {
        let of_kind = |kind: &str| if wanted.is_empty() { tells(kind) && ends(kind) } else { kind == wanted };
        let told = events.iter().enumerate().filter(|(_, event)| event["id"].is_array() && of_kind(kind(event)));
        for ((at, event), (_, own)) in told.zip(tasks.iter_mut()) {
            own.push_back(Told { at, event: event.clone() });
        }
    }
}

/// The task that an event belongs to.
fn key(events: &[Value], before: &[Option<usize>], at: usize) -> Key {
    let mut state = String::new();
    let mut iterations: Vec<(String, u64)> = Vec::new();
    for above in std::iter::successors(before[at], |above| before[*above]) {
        let event = &events[above];
        if state.is_empty() && kind(event) == "TaskStateEntered" {
            event["stateEnteredEventDetails"]["name"].as_str().unwrap_or_default().clone_into(&mut state);
        }
        let iteration = &event["mapIterationStartedEventDetails"];
        if let (Some(name), Some(index)) = (iteration["name"].as_str(), iteration["index"].as_u64())
            && iterations.iter().all(|(own, _)| own != name)
        {
            iterations.push((name.to_owned(), index));
        }
    }
    (state, iterations)
}

impl Replay<'_> {
    fn step(&mut self, event: Event) {
        let mut actions = Vec::new();
        let random = &mut self.random;
        let mut next = || {
            *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            *random
        };
        step(&self.definition, &mut self.machine, event, self.now_ms, &mut next, &mut actions);
        for action in actions {
            self.serial += 1;
            match action {
                Action::History(event) => self.events.push(serde_json::to_value(&*event).expect("an event is JSON")),
                Action::StartTask(task) => self.start(task),
                Action::CancelTask { task } => self.waiting.retain(|waiting| waiting.task.task != task),
                Action::SetTimer { timer, at_ms } => drop(self.timers.insert((at_ms, self.serial), timer)),
                Action::CancelTimer { timer } => self.timers.retain(|_, own| *own != timer),
                Action::Yield => self.goes_on = true,
                Action::Ended(outcome) => self.outcome = Some(outcome),
            }
        }
    }

    fn start(&mut self, task: StartTask) {
        let before = previous(&self.events);
        let asked = self.events.iter().rposition(|event| kind(event).ends_with("Scheduled"));
        let own = asked.map(|asked| key(&self.events, &before, asked)).unwrap_or_default();
        // Recordings without numbers do not say whose task it is.
        let mut told = self.recorded.get_mut(&own).and_then(VecDeque::pop_front);
        if told.is_none() {
            told = self.recorded.get_mut(&Key::default()).and_then(VecDeque::pop_front);
        }
        self.waiting.push(Waiting { task, told: told.unwrap_or_default(), submitted: false });
    }

    /// What happens next: what was recorded of tasks, then timers.
    fn next(&mut self) -> Option<Event> {
        if std::mem::take(&mut self.goes_on) {
            return Some(Event::Continue);
        }
        // A task that has timed out does so by its timer.
        let first =
            |waiting: &Waiting| waiting.told.front().filter(|told| !kind(&told.event).ends_with("TimedOut")).map(|told| told.at);
        let next = self.waiting.iter().enumerate().filter_map(|(place, waiting)| Some((first(waiting)?, place))).min();
        if let Some((_, place)) = next
            && let Some(event) = self.waiting.get_mut(place).and_then(Waiting::event)
        {
            return Some(event);
        }
        if let Some(last) = self.execution.events.last()
            && kind(last) == "ExecutionAborted"
            && self.events.len() + 1 >= self.execution.events.len()
        {
            let details = &last["executionAbortedEventDetails"];
            return Some(Event::Stopped { error: text(&details["error"]), cause: text(&details["cause"]) });
        }
        let ((at_ms, _), timer) = self.timers.pop_first()?;
        self.now_ms = self.now_ms.max(at_ms);
        Some(Event::TimerFired { timer })
    }
}

/// A text, or the text of a document that the snapshot holds in place of it.
fn text(value: &Value) -> Option<Arc<str>> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.as_str().into()),
        document => Some(document.to_string().into()),
    }
}

impl Waiting {
    /// The next thing that was recorded.
    fn event(&mut self) -> Option<Event> {
        let Told { event, .. } = self.told.pop_front()?;
        let task = self.task.task;
        let details =
            event.as_object()?.iter().find(|(name, _)| name.ends_with("EventDetails")).map(|(_, details)| details.clone());
        let details = details.unwrap_or_default();
        let output = parsed(&details["output"]);
        let (error, cause) = (text(&details["error"]), text(&details["cause"]));
        // What was too large was not recorded.
        let output =
            if details["error"] == "States.DataLimitExceeded" { Value::from("x".repeat(DATA_BYTES_MAX)) } else { output };
        let token = self.task.token.clone().filter(|_| self.submitted);
        let kind = kind(&event);
        Some(match (kind.trim_start_matches("LambdaFunction").trim_start_matches("Task"), token) {
            ("Started", _) => Event::TaskStarted { task },
            ("Submitted", _) => {
                self.submitted = true;
                if self.task.resource.has_callback() {
                    Event::TaskSucceeded { task, output }
                } else {
                    Event::TaskSubmitted { task, output }
                }
            }
            ("Succeeded", Some(token)) => Event::CallbackSucceeded { token, output },
            ("Succeeded", None) => Event::TaskSucceeded { task, output },
            _ if details["error"] == "States.DataLimitExceeded" => Event::TaskSucceeded { task, output },
            (_, Some(token)) => Event::CallbackFailed { token, error, cause },
            (_, None) => Event::TaskFailed { task, error, cause },
        })
    }
}
