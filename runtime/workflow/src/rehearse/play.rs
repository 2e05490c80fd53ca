//! Plays one case: feeds the execution with the answers of mocks and with timers, in the order of virtual time.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use serde_json::{Value, json};

use super::branch::{Places, Told};
use super::event::{Noted, Noteds, is_kept};
use super::expect::{Ending, Seen};
use super::limits::{NAMED_MAX, STEPS_MAX};
use super::mock::{Answer, Reply};
use super::suite::Case;
use super::{CaseResult, trace};
use crate::dataset;
use crate::definition::Definition;
use crate::machine::{
    Action, Entry, Event, Execution, HistoryEvent, HistoryKind, Limits, Outcome, Purpose, StartTask, TaskId, TimerId, step,
};

/// How a case was played.
pub(super) struct Played {
    /// Why it has no end, otherwise.
    pub(super) ending: Result<Ending, String>,
    /// What happened, by branch and iteration.
    pub(super) events: Noteds,
    /// How often each state has asked for something.
    pub(super) calls: HashMap<Arc<str>, usize>,
}

/// Plays a case, whatever it expects.
pub(super) fn play(case: &Case, definition: &Definition) -> Played {
    let mut player = Player::new(case, definition);
    let ending = player.play();
    Played { ending, events: player.events, calls: player.calls }
}

/// Runs a case whose states were checked.
pub(super) fn run(case: &Case, definition: &Definition) -> CaseResult {
    let mut player = Player::new(case, definition);
    let ended = player.play();
    let elapsed_ms = player.now_ms.saturating_sub(case.start_ms);
    let calls = |state: &str| player.calls.get(state).copied().unwrap_or(0) as u64;
    let problems = match ended {
        Ok(ending) => {
            let seen = Seen { elapsed_ms, history: &player.history, events: &player.events, calls: &calls };
            case.expect.compare(&ending, &seen)
        }
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

/// Calls that are counted together.
type Answered = (Arc<str>, Purpose, Option<Vec<u32>>);

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
    /// Calls that were answered, by state, purpose and position; without a position those that any reply has answered.
    answered: HashMap<Answered, usize>,
    /// Tasks that wait for callbacks that no mock gives.
    mute: HashMap<TaskId, Arc<str>>,
    history: Vec<&'static str>,
    places: Places<'c>,
    events: Noteds,
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
            answered: HashMap::new(),
            mute: HashMap::new(),
            history: Vec::new(),
            places: Places::new(definition),
            events: Noteds::new(),
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
            let (error, cause) = self.case.stop_reason.clone();
            self.push(after_ms, Coming::Event(Event::Stopped { error, cause }));
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
        let about = case.about.clone();
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
        self.keep(event);
        self.trace.push(trace::line(event, self.case.start_ms));
        if let Some(state) = &self.case.state
            && is_exited(event.kind)
            && event.details.name.as_deref() == Some(state)
        {
            self.left = Some(event.details.output.as_deref().cloned().unwrap_or_default());
        }
    }

    /// Keeps an event by its branch or iteration.
    fn keep(&mut self, event: &HistoryEvent) {
        let HistoryEvent { id, previous, kind, details, .. } = event;
        let name = details.name.as_deref().or(details.state.as_deref());
        let of_map = details.parameters.as_deref().is_some_and(is_of_map);
        let told = Told { id: *id, previous: *previous, kind: *kind, name, index: details.index, of_map };
        let place = self.places.of(told);
        if is_kept(*kind) {
            let state = details.name.clone().or_else(|| details.state.clone());
            let noted = Noted { kind: kind.name(), state, output: details.output.clone() };
            self.events.entry(place.name(self.definition)).or_default().push(noted);
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

    /// The mock's reply to a task.
    fn reply(&mut self, start: &StartTask) -> Option<Reply> {
        let (state, purpose) = (&start.state, start.purpose);
        let mock = self.case.mocks.iter().find(|mock| mock.state == **state && mock.purpose == purpose)?;
        let key = |position: Option<&[u32]>| (Arc::clone(state), purpose, position.map(<[u32]>::to_vec));
        let answered = |position| self.answered.get(&key(position)).copied().unwrap_or(0);
        let reply = mock.reply(&start.position, (answered(Some(&start.position)), answered(None)))?.clone();
        let counted = key(reply.is_placed().then_some(&start.position));
        *self.answered.entry(counted).or_default() += 1;
        Some(reply)
    }

    /// Answers a task with its mock. Results of a Map are kept without one.
    fn answer(&mut self, start: &StartTask) -> Result<(), String> {
        let (state, task) = (&start.state, start.task);
        if start.purpose != Purpose::Write {
            *self.calls.entry(Arc::clone(state)).or_default() += 1;
        }
        let Some(reply) = self.reply(start) else {
            return match (start.purpose, dataset::written(&start.input, usize::MAX)) {
                (Purpose::Write, Ok(written)) => {
                    self.push(0, Coming::Event(Event::TaskStarted { task }));
                    self.push(0, Coming::Event(Event::TaskSucceeded { task, output: written.output }));
                    Ok(())
                }
                _ => Err(unmocked(start)),
            };
        };
        let Reply { after_ms, beat_ms, answer, .. } = reply;
        self.push(0, Coming::Event(Event::TaskStarted { task }));
        if let Some(beat_ms) = beat_ms {
            let last_ms = after_ms.saturating_add(if let Answer::Callback(callback) = &answer { callback.after_ms } else { 0 });
            // As many as the reader of the file has let through.
            for number in 1..=last_ms / beat_ms.max(1) {
                self.push(number.saturating_mul(beat_ms), Coming::Event(Event::Heartbeat { task }));
            }
        }
        match answer {
            Answer::Never => drop(self.mute.insert(task, Arc::clone(state))),
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
                    // The reader lets neither lie in a callback.
                    Answer::Callback(_) | Answer::Never => return Ok(()),
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

/// That a task has no mock, and what to add.
fn unmocked(start: &StartTask) -> String {
    let StartTask { state, resource, position, purpose, .. } = start;
    let name = Value::from(&**state);
    let form = match purpose {
        Purpose::Read => "{\"ItemReader\": {\"return\": [...]}}",
        _ if resource.has_callback() => "{\"callback\": {\"return\": ...}}",
        _ => "{\"return\": ...}",
    };
    let at = if position.is_empty() { String::new() } else { format!(" at {position:?}") };
    format!("the task of \"{state}\" ({resource}){at} has no mock: add {name}: {form} to \"mocks\"")
}

/// Whether those are the parameters of an ItemReader or a ResultWriter.
pub(super) fn is_of_map(parameters: &Value) -> bool {
    parameters["ReaderConfig"].is_object() || (parameters["WriterConfig"].is_object() && parameters["MapRunArn"].is_string())
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
