//! Plays an execution with mocked tasks and virtual time. At every step the execution is written down, read again, and both copies must do the same.
#![allow(dead_code, reason = "each test file uses a part of it")]

pub(crate) mod generate;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde_json::{Value, json};
use sledge_workflow::definition::Definition;
use sledge_workflow::machine::{About, Action, Event, Execution, HistoryEvent, Limits, Outcome, StartTask, TimerId, step};

/// 2030-01-01T00:00:00Z.
pub(crate) const START_MS: i64 = 1_893_456_000_000;
/// Steps after which a test gives up.
const STEPS_MAX: usize = 20_000;

/// What happens at a time.
#[derive(Clone, Debug)]
enum Happening {
    Timer(TimerId),
    Event(Event),
}

/// How an execution was played.
pub(crate) struct Played {
    /// How it ended; none if it waits for something that never comes.
    pub(crate) outcome: Option<Outcome>,
    pub(crate) history: Vec<HistoryEvent>,
    /// All actions, as text, to compare runs.
    pub(crate) trace: Vec<String>,
    pub(crate) started: Vec<StartTask>,
    pub(crate) now_ms: i64,
    pub(crate) execution: Execution,
    pub(crate) yields: usize,
}

impl Played {
    pub(crate) fn events(&self) -> Vec<&'static str> {
        self.history.iter().map(|event| event.kind.name()).collect()
    }

    /// Output, or error and cause, as JSON.
    pub(crate) fn result(&self) -> Value {
        match &self.outcome {
            Some(Outcome::Succeeded(output)) => json!({ "output": **output }),
            Some(Outcome::Failed(failure)) => json!({ "error": failure.error, "cause": failure.cause }),
            Some(Outcome::TimedOut) => json!({ "status": "TIMED_OUT" }),
            Some(Outcome::Aborted(failure)) => json!({ "status": "ABORTED", "error": failure.error, "cause": failure.cause }),
            None => json!({ "status": "WAITING" }),
        }
    }
}

pub(crate) struct Player {
    pub(crate) definition: Arc<Definition>,
    pub(crate) execution: Execution,
    pub(crate) now_ms: i64,
    seed: u64,
    queue: BTreeMap<(i64, u64), Happening>,
    serial: u64,
    replies: HashMap<String, Vec<Value>>,
    used: HashMap<String, usize>,
    /// Whether executions are written and read at every step.
    checked: bool,
    trace: Vec<String>,
    history: Vec<HistoryEvent>,
    started: Vec<StartTask>,
    outcome: Option<Outcome>,
    yields: usize,
    limits: Limits,
}

pub(crate) fn about() -> About {
    About {
        id: "execution:1".into(),
        name: "one".into(),
        role: "role".into(),
        machine_id: "machine:m".into(),
        machine_name: "m".into(),
        token_prefix: "one.".into(),
    }
}

impl Player {
    pub(crate) fn new(definition: Arc<Definition>, limits: Limits, seed: u64) -> Self {
        let execution = Execution::new(&definition, about(), limits, true);
        Self {
            definition,
            execution,
            now_ms: START_MS,
            seed,
            queue: BTreeMap::new(),
            serial: 0,
            replies: HashMap::new(),
            used: HashMap::new(),
            checked: true,
            trace: Vec::new(),
            history: Vec::new(),
            started: Vec::new(),
            outcome: None,
            yields: 0,
            limits,
        }
    }

    /// What tasks answer, by state: `{"State": [reply, ...]}`; the last reply is repeated.
    pub(crate) fn replies(mut self, replies: &Value) -> Self {
        for (state, list) in replies.as_object().into_iter().flatten() {
            self.replies.insert(state.clone(), list.as_array().cloned().unwrap_or_else(|| vec![list.clone()]));
        }
        self
    }

    /// Without a history.
    pub(crate) fn unrecorded(mut self) -> Self {
        self.execution = Execution::new(&self.definition, about(), self.limits, false);
        self
    }

    pub(crate) fn unchecked(mut self) -> Self {
        self.checked = false;
        self
    }

    pub(crate) fn push(&mut self, after_ms: i64, event: Event) {
        self.queue_at(self.now_ms + after_ms, Happening::Event(event));
    }

    fn queue_at(&mut self, at_ms: i64, happening: Happening) {
        self.serial += 1;
        self.queue.insert((at_ms.max(self.now_ms), self.serial), happening);
    }

    /// One step. The randomness of a step depends on the seed and the number of steps alone.
    pub(crate) fn step(&mut self, event: Event) {
        self.serial += 1;
        let seed = self.seed ^ self.serial.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mut actions = Vec::new();
        let copy = self.checked.then(|| {
            let written = serde_json::to_string(&self.execution).expect("an execution can be written");
            serde_json::from_str::<Execution>(&written).expect("what was written can be read")
        });
        let mut random = fastrand::Rng::with_seed(seed);
        step(&self.definition, &mut self.execution, event.clone(), self.now_ms, &mut || random.u64(..), &mut actions);
        if let Some(mut copy) = copy {
            let mut of_copy = Vec::new();
            let mut random = fastrand::Rng::with_seed(seed);
            step(&self.definition, &mut copy, event, self.now_ms, &mut || random.u64(..), &mut of_copy);
            assert_eq!(format!("{actions:?}"), format!("{of_copy:?}"), "an execution that was written and read does the same");
            self.execution = copy;
        }
        for action in actions {
            self.act(action);
        }
    }

    fn act(&mut self, action: Action) {
        assert!(self.outcome.is_none(), "nothing follows the end: {action:?}");
        if !matches!(action, Action::History(_)) {
            self.trace.push(format!("{} {action:?}", self.now_ms - START_MS));
        }
        match action {
            Action::StartTask(task) => self.reply(task),
            Action::CancelTask { .. } => {}
            Action::SetTimer { timer, at_ms } => self.queue_at(at_ms, Happening::Timer(timer)),
            Action::CancelTimer { timer } => {
                self.queue.retain(|_, happening| !matches!(happening, Happening::Timer(own) if *own == timer))
            }
            Action::Yield => {
                self.yields += 1;
                self.push(0, Event::Continue);
            }
            Action::History(event) => self.history.push(*event),
            Action::Ended(outcome) => self.outcome = Some(outcome),
        }
    }

    fn reply(&mut self, start: StartTask) {
        self.started.push(start.clone());
        let task = start.task;
        let used = self.used.entry(start.state.to_string()).or_default();
        let list = self.replies.get(&*start.state);
        let reply = list.and_then(|list| list.get(*used).or(list.last())).cloned().unwrap_or_else(|| json!({ "Echo": true }));
        *used += 1;
        let delay = reply["After"].as_f64().map_or(0, |seconds| (seconds * 1_000.0) as i64);
        let text = |value: &Value| value.as_str().map(Arc::from);
        for second in reply["Beats"].as_array().into_iter().flatten().filter_map(Value::as_f64) {
            self.push((second * 1_000.0) as i64, Event::Heartbeat { task });
        }
        if let Some(token) = &start.token {
            for second in reply["TokenBeats"].as_array().into_iter().flatten().filter_map(Value::as_f64) {
                self.push((second * 1_000.0) as i64, Event::CallbackHeartbeat { token: Arc::clone(token) });
            }
            if let Some(output) = reply.get("Callback") {
                self.push(delay + 1, Event::CallbackSucceeded { token: Arc::clone(token), output: output.clone() });
            }
            if let Some(error) = reply.get("CallbackThrow") {
                self.push(
                    delay + 1,
                    Event::CallbackFailed {
                        token: Arc::clone(token),
                        error: text(&error["Error"]),
                        cause: text(&error["Cause"]),
                    },
                );
            }
        }
        if let Some(output) = reply.get("Return") {
            self.push(delay, Event::TaskStarted { task });
            if let Some(output) = reply.get("Submit") {
                self.push(delay, Event::TaskSubmitted { task, output: output.clone() });
            }
            self.push(delay, Event::TaskSucceeded { task, output: output.clone() });
        } else if let Some(error) = reply.get("Throw") {
            self.push(delay, Event::TaskStarted { task });
            self.push(delay, Event::TaskFailed { task, error: text(&error["Error"]), cause: text(&error["Cause"]) });
        } else if let Some(bytes) = reply["ReturnBytes"].as_u64() {
            self.push(delay, Event::TaskSucceeded { task, output: Value::from("x".repeat(bytes as usize)) });
        } else if reply.get("Echo").is_some() {
            self.push(delay, Event::TaskSucceeded { task, output: (*start.input).clone() });
        }
    }

    /// Starts, and plays until the end or until nothing is to come.
    pub(crate) fn play(mut self, input: Value) -> Played {
        self.step(Event::Started { input });
        self.go_on()
    }

    /// The next thing that is to come.
    pub(crate) fn turn(mut self) -> Self {
        let Some(((at_ms, _), happening)) = self.queue.pop_first() else { panic!("nothing is to come") };
        self.now_ms = self.now_ms.max(at_ms);
        let event = match happening {
            Happening::Timer(timer) => Event::TimerFired { timer },
            Happening::Event(event) => event,
        };
        self.step(event);
        self
    }

    pub(crate) fn go_on(mut self) -> Played {
        for _ in 0..STEPS_MAX {
            if self.outcome.is_some() {
                break;
            }
            if self.queue.is_empty() {
                break;
            }
            self = self.turn();
        }
        if self.outcome.is_some() {
            assert_eq!(self.execution.frames(), 0, "an execution that has ended holds no frames");
        }
        Played {
            outcome: self.outcome,
            history: self.history,
            trace: self.trace,
            started: self.started,
            now_ms: self.now_ms,
            execution: self.execution,
            yields: self.yields,
        }
    }

    /// Whether nothing is to come.
    pub(crate) fn is_idle(&self) -> bool {
        self.queue.is_empty()
    }

    pub(crate) fn outcome(&self) -> Option<&Outcome> {
        self.outcome.as_ref()
    }

    pub(crate) fn clear_outcome(&mut self) {
        self.outcome = None;
    }

    pub(crate) fn tasks(&self) -> &[StartTask] {
        &self.started
    }
}

/// A definition, or all its mistakes as the test's failure.
pub(crate) fn definition(source: &Value) -> Arc<Definition> {
    match Definition::parse(&source.to_string()) {
        Ok(definition) => Arc::new(definition),
        Err(mistakes) => panic!("{}", mistakes.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")),
    }
}
