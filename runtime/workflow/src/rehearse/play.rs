//! Plays one case: feeds the execution with the answers of mocks and with timers, in the order of virtual time.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use serde_json::{Value, json};

use super::expect::{Ending, Seen};
use super::limits::{NAMED_MAX, STEPS_MAX};
use super::mock::{Answer, Reply};
use super::suite::Case;
use super::{CaseResult, trace};
use crate::definition::Definition;
use crate::machine::{
    About, Action, Entry, Event, Execution, HistoryEvent, HistoryKind, Limits, Outcome, StartTask, TaskId, TimerId, step,
};

/// Runs a case whose states were checked.
pub(super) fn run(case: &Case, definition: &Definition) -> CaseResult {
    let mut player = Player::new(case, definition);
    let ended = player.play();
    let elapsed_ms = player.now_ms.saturating_sub(case.start_ms);
    let calls = |state: &str| player.calls.get(state).copied().unwrap_or(0) as u64;
    let problems = match ended {
        Ok(ending) => case.expect.compare(&ending, &Seen { elapsed_ms, history: &player.history, calls: &calls }),
        Err(problem) => vec![problem],
    };
    let elapsed_ms = u64::try_from(elapsed_ms).unwrap_or(0);
    CaseResult { name: case.name.clone(), problems, trace: player.trace, elapsed_ms, steps: player.steps }
}

/// What is to come at a time.
enum Coming {
    Timer(TimerId),
    Event(Event),
}

struct Player<'c> {
    case: &'c Case,
    definition: &'c Definition,
    now_ms: i64,
    random: u64,
    /// By time, and in the order in which they were asked for.
    queue: BTreeMap<(i64, u64), Coming>,
    timers: HashMap<TimerId, (i64, u64)>,
    serial: u64,
    steps: usize,
    calls: HashMap<Arc<str>, usize>,
    /// Tasks that wait for callbacks that no mock gives.
    mute: HashMap<TaskId, Arc<str>>,
    history: Vec<&'static str>,
    trace: Vec<String>,
    /// Of a state alone: its output, when it was left.
    left: Option<Value>,
    ending: Option<Ending>,
}

impl<'c> Player<'c> {
    fn new(case: &'c Case, definition: &'c Definition) -> Self {
        Self {
            case,
            definition,
            now_ms: case.start_ms,
            random: case.seed,
            queue: BTreeMap::new(),
            timers: HashMap::new(),
            serial: 0,
            steps: 0,
            calls: HashMap::new(),
            mute: HashMap::new(),
            history: Vec::new(),
            trace: Vec::new(),
            left: None,
            ending: None,
        }
    }

    /// Plays until the end.
    ///
    /// # Errors
    /// Why the case has no end that could be compared.
    fn play(&mut self) -> Result<Ending, String> {
        let (mut execution, mut event) = self.begin()?;
        if let Some(after_ms) = self.case.stop_after_ms {
            self.push(after_ms, Coming::Event(Event::Stopped { error: None, cause: None }));
        }
        let mut actions = VecDeque::new();
        loop {
            if self.steps >= STEPS_MAX {
                return Err(format!(
                    "the case does not end: it was given up after {STEPS_MAX} steps; look for a loop in the workflow"
                ));
            }
            self.steps += 1;
            let mut asked = Vec::new();
            let state = &mut self.random;
            step(self.definition, &mut execution, event, self.now_ms, &mut || next_random(state), &mut asked);
            actions.extend(asked);
            while let Some(action) = actions.pop_front() {
                self.act(action)?;
                if let Some(ending) = self.ending.take() {
                    return Ok(ending);
                }
            }
            let Some(((at_ms, _), coming)) = self.queue.pop_first() else { return Err(self.stuck()) };
            self.now_ms = self.now_ms.max(at_ms);
            event = match coming {
                Coming::Event(event) => event,
                Coming::Timer(timer) => {
                    self.timers.remove(&timer);
                    Event::TimerFired { timer }
                }
            };
        }
    }

    /// The execution and its first event.
    fn begin(&self) -> Result<(Execution, Event), String> {
        let case = self.case;
        let about = About {
            id: "execution:test".into(),
            name: "test".into(),
            role: "".into(),
            machine_id: "workflow:test".into(),
            machine_name: "test".into(),
            token_prefix: "test.".into(),
        };
        let Some(name) = &case.state else {
            let execution = Execution::new(self.definition, about, Limits::default(), true);
            return Ok((execution, Event::Started { input: (*case.input).clone() }));
        };
        let Some(state) = self.definition.find(name) else { return Err(format!("the workflow has no state \"{name}\"")) };
        // One transition a step: the state after it is entered, and nothing more.
        let limits = Limits { transitions_per_step: 1, ..Limits::default() };
        let entry = Entry { state, input: (*case.input).clone(), variables: case.variables.clone(), start_ms: case.start_ms };
        let execution = Execution::at(self.definition, about, limits, true, entry)
            .map_err(|why| format!("the state \"{name}\" cannot be started alone: {why}"))?;
        Ok((execution, Event::Continue))
    }

    fn push(&mut self, after_ms: i64, coming: Coming) {
        self.push_at(self.now_ms.saturating_add(after_ms), coming);
    }

    fn push_at(&mut self, at_ms: i64, coming: Coming) {
        self.serial += 1;
        let key = (at_ms.max(self.now_ms), self.serial);
        if let Coming::Timer(timer) = &coming {
            self.timers.insert(*timer, key);
        }
        self.queue.insert(key, coming);
    }

    fn act(&mut self, action: Action) -> Result<(), String> {
        match action {
            Action::StartTask(task) => self.answer(&task)?,
            Action::CancelTask { task } => drop(self.mute.remove(&task)),
            Action::SetTimer { timer, at_ms } => self.push_at(at_ms, Coming::Timer(timer)),
            Action::CancelTimer { timer } => {
                if let Some(key) = self.timers.remove(&timer) {
                    self.queue.remove(&key);
                }
            }
            Action::Yield => self.push(0, Coming::Event(Event::Continue)),
            Action::History(event) => self.noted(&event),
            Action::Ended(outcome) => self.ended(outcome),
        }
        Ok(())
    }

    /// Keeps an event, and sees whether a state alone was left.
    fn noted(&mut self, event: &HistoryEvent) {
        if let (Some(output), true) = (&self.left, is_entered(event.kind)) {
            let next = event.details.name.as_deref().map(str::to_owned);
            self.ending = Some(Ending { status: "SUCCEEDED", output: Some(output.clone()), error: None, cause: None, next });
            return;
        }
        if self.left.is_some() {
            return;
        }
        self.history.push(event.kind.name());
        self.trace.push(trace::line(event, self.case.start_ms));
        if let Some(state) = &self.case.state
            && is_exited(event.kind)
            && event.details.name.as_deref() == Some(state)
        {
            self.left = Some(event.details.output.as_deref().cloned().unwrap_or_default());
        }
    }

    fn ended(&mut self, outcome: Outcome) {
        let text = |text: Option<Arc<str>>| text.as_deref().map(str::to_owned);
        let failed = |status, failure: crate::machine::Failure| Ending {
            status,
            output: None,
            error: text(failure.error),
            cause: text(failure.cause),
            next: None,
        };
        self.ending = Some(match outcome {
            Outcome::Succeeded(output) => {
                Ending { status: "SUCCEEDED", output: Some((*output).clone()), error: None, cause: None, next: None }
            }
            Outcome::Failed(failure) => failed("FAILED", failure),
            Outcome::TimedOut => {
                Ending { status: "TIMED_OUT", output: None, error: Some("States.Timeout".to_owned()), cause: None, next: None }
            }
            Outcome::Aborted(failure) => failed("ABORTED", failure),
        });
    }

    /// Answers a task with its mock.
    fn answer(&mut self, start: &StartTask) -> Result<(), String> {
        let state = &start.state;
        let call = self.calls.entry(Arc::clone(state)).or_default();
        let mock = self.case.mocks.iter().find(|mock| mock.state == **state);
        let reply = mock.and_then(|mock| mock.reply(*call)).cloned();
        *call += 1;
        let Some(reply) = reply else {
            let name = Value::from(&**state);
            let form = if start.resource.has_callback() { "{\"callback\": {\"return\": ...}}" } else { "{\"return\": ...}" };
            return Err(format!("the task of \"{state}\" ({}) has no mock: add {name}: {form} to \"mocks\"", start.resource));
        };
        let Reply { after_ms, answer } = reply;
        let task = start.task;
        self.push(0, Coming::Event(Event::TaskStarted { task }));
        match answer {
            Answer::Error { error, cause } => {
                let (error, cause) = (Some(error.into()), cause.map(Into::into));
                self.push(after_ms, Coming::Event(Event::TaskFailed { task, error, cause }));
            }
            Answer::Return(output) => {
                if start.resource.has_callback() {
                    self.mute.insert(task, Arc::clone(state));
                }
                self.push(after_ms, Coming::Event(Event::TaskSucceeded { task, output }));
            }
            Answer::Callback(callback) => {
                self.push(after_ms, Coming::Event(Event::TaskSucceeded { task, output: json!({}) }));
                let token = start.token.clone().unwrap_or_default();
                let event = match callback.answer {
                    Answer::Return(output) => Event::CallbackSucceeded { token, output },
                    Answer::Error { error, cause } => {
                        Event::CallbackFailed { token, error: Some(error.into()), cause: cause.map(Into::into) }
                    }
                    // The reader lets no callback lie in a callback.
                    Answer::Callback(_) => return Ok(()),
                };
                self.push(after_ms.saturating_add(callback.after_ms), Coming::Event(event));
            }
        }
        Ok(())
    }

    /// Nothing is to come, and the execution has not ended.
    fn stuck(&self) -> String {
        let mut states: Vec<_> = self.mute.values().map(|state| format!("\"{state}\"")).collect();
        states.sort();
        states.dedup();
        states.truncate(NAMED_MAX);
        if states.is_empty() {
            return "the execution waits for ever: nothing more can happen".to_owned();
        }
        format!(
            "the execution waits for ever for the callback of {}: give {{\"callback\": {{\"return\": ...}}}} in \"mocks\", or TimeoutSeconds in the state",
            states.join(", ")
        )
    }
}

const fn is_entered(kind: HistoryKind) -> bool {
    matches!(
        kind,
        HistoryKind::TaskStateEntered
            | HistoryKind::PassStateEntered
            | HistoryKind::ChoiceStateEntered
            | HistoryKind::WaitStateEntered
            | HistoryKind::SucceedStateEntered
            | HistoryKind::FailStateEntered
            | HistoryKind::ParallelStateEntered
            | HistoryKind::MapStateEntered
    )
}

const fn is_exited(kind: HistoryKind) -> bool {
    matches!(
        kind,
        HistoryKind::TaskStateExited
            | HistoryKind::PassStateExited
            | HistoryKind::ChoiceStateExited
            | HistoryKind::WaitStateExited
            | HistoryKind::SucceedStateExited
            | HistoryKind::ParallelStateExited
            | HistoryKind::MapStateExited
    )
}

/// Random numbers of a case: SplitMix64 (Steele, Lea, Flood, 2014). Each case draws its own row from its seed.
const fn next_random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}
