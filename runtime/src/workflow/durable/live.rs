//! One durable execution in memory, from what it has to do now until it has ended or only waits.
//!
//! Each turn takes one event in: the machine steps, the step is committed with what its task has done to the store, and then what the machine has asked for is done. A commit that conflicts
//! (what the task had read was changed) undoes the step, and the task runs again. Where the workflow goes ahead of itself, steps are made of [several tasks](ahead) that ran at the same time.

mod ahead;

use std::collections::{BTreeMap, HashMap};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{AbortHandle, Abortable};
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use serde_json::Value;
use sledge_workflow::definition::Definition;
use sledge_workflow::machine::{
    About, Action, Event, Execution, Failure, HistoryEvent, Limits, Outcome, StartTask, Status, TaskId, TimerId, step,
    step_guided,
};
use tokio::sync::{mpsc, oneshot};

use self::ahead::Front;
use super::back_off::BackOff;
use super::core::Core;
use super::journal::{self, Checkpoint, Parent, Place, Standing, Summary};
use super::pins::{Pins, Set};
use super::quota::{Size, Used};
use super::task::{self, Finished, Made};
use super::{Refused, moving, name_of};
use crate::kv::{self, BucketKey, Commit, KvError, Record};
use crate::speculate::paths::Trail;
use crate::txn::{PutOff, Settled, Verdict};
use crate::workflow::failure::of_store;
use crate::workflow::speculative::Watched;
use crate::workflow::{Runner, Workflow, express};

/// How long an execution that only waits stays in memory: what is due sooner is not worth the way out and back.
const STAY: Duration = Duration::from_secs(2);
/// How long to wait before a commit is tried again that the store did not make: the first time, and at most.
const BACK_OFF: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(5));

/// What an execution is told from outside.
pub(super) struct Said {
    pub event: Event,
    /// The definition by which it is to go on from then on, if that is to change.
    pub to: Option<Arc<Definition>>,
    /// Whether it was taken in, for good.
    pub answer: Option<oneshot::Sender<Result<(), Refused>>>,
}

type Running = Pin<Box<dyn Future<Output = Option<Finished>>>>;

/// What an execution is, whatever becomes of it.
pub(super) struct Origin {
    pub id: u64,
    pub place: Place,
    pub workflow: Arc<Workflow>,
    /// The one with which it began, or to which it was moved last.
    pub definition: Arc<Definition>,
    pub parent: Option<Parent>,
    /// What the limits of its workflow are kept for, if it began with any.
    pub key: Option<Arc<str>>,
}

/// An execution in memory.
pub(super) struct Live<R> {
    core: Rc<Core<R>>,
    pub id: u64,
    place: Place,
    workflow: Arc<Workflow>,
    definition: Arc<Definition>,
    parent: Option<Parent>,
    key: Option<Arc<str>>,
    /// Whether the journal has it already when it begins.
    was_queued: bool,
    state: State,
    running: FuturesUnordered<Running>,
    given_up: HashMap<TaskId, AbortHandle>,
    /// How often the commit of a task conflicted, and the key that had been changed last.
    conflicts: HashMap<TaskId, (u32, Option<BucketKey>)>,
    /// The versions of functions that its tasks call.
    pins: Rc<Pins>,
    /// Where the bytes of its tenant are added up, if there is a quota.
    used: Option<Arc<Used>>,
}

/// What a step changes.
#[derive(Clone)]
struct State {
    machine: Execution,
    /// Tasks that have to be carried out.
    tasks: BTreeMap<TaskId, StartTask>,
    timers: BTreeMap<TimerId, i64>,
    /// What it takes up in the journal.
    size: Size,
}

/// What follows from a step, once it is committed.
#[derive(Default)]
struct Plan {
    begin: Vec<TaskId>,
    give_up: Vec<StartTask>,
    history: Vec<HistoryEvent>,
    outcome: Option<Outcome>,
    /// The ways that it has gone, where that is to be learned.
    trail: Option<Trail>,
}

/// What is written of a step: the records; what the execution is then, where that has changed; what it takes up; the sets of versions among the records.
type Written = (Vec<Record>, Option<Summary>, Size, Vec<(u64, Arc<Set>)>);

/// What a turn came to.
enum Turn {
    /// The step was made.
    Made,
    /// Its task has to run again, since that key was changed, or the set of keys of a bucket.
    Again(Option<BucketKey>),
    /// Its task has failed, since its changes of the store could not be made.
    TaskFailed(Failure),
    /// Nothing was made, and nothing will be: the store does not work, and the caller is told, or the server stops.
    Not(KvError),
}

impl<R: Runner + 'static> Live<R> {
    /// One that begins, now or later.
    pub(super) fn new(core: &Rc<Core<R>>, origin: Origin) -> Live<R> {
        let Origin { id, place, definition, .. } = &origin;
        let about = About {
            id: name_of(place).into(),
            name: Arc::clone(&place.name),
            token_prefix: format!("{id:x}-").into(),
            ..origin.workflow.about.clone()
        };
        let machine = Execution::new(definition, about, Limits::default(), true);
        let state = State { machine, tasks: BTreeMap::new(), timers: BTreeMap::new(), size: Size::default() };
        Live::with(core, origin, state)
    }

    /// One that the journal has.
    pub(super) fn of(
        core: &Rc<Core<R>>,
        id: u64,
        checkpoint: Checkpoint,
        workflow: Arc<Workflow>,
        definition: Arc<Definition>,
    ) -> Live<R> {
        let Checkpoint { place, key, parent, tasks, timers, execution } = checkpoint;
        let tasks = tasks.into_iter().map(|task| (task.task, task)).collect();
        let state = State { machine: execution, tasks, timers: timers.into_iter().collect(), size: Size::default() };
        let was_queued = state.machine.status() == Status::New;
        Live { was_queued, ..Live::with(core, Origin { id, place, workflow, definition, parent, key }, state) }
    }

    fn with(core: &Rc<Core<R>>, origin: Origin, state: State) -> Live<R> {
        let Origin { id, place, workflow, definition, parent, key } = origin;
        let used = core.executions.0.quota.of(&place.tenant);
        let (core, was_queued, pins) = (Rc::clone(core), false, Pins::new(&core.pins, Vec::new()));
        let (running, given_up, conflicts) = (FuturesUnordered::new(), HashMap::new(), HashMap::new());
        Live { core, id, place, workflow, definition, parent, key, was_queued, state, running, given_up, conflicts, pins, used }
    }

    /// What is written of one that is to begin later, and what it is until then.
    pub(super) fn queued(&self, input: Value) -> (Vec<Record>, Summary) {
        let Live { id, place, definition, parent, .. } = self;
        let mut summary = Summary::queued(*id, definition, input, express::now_ms(), *parent);
        summary.pins = self.pins.numbers();
        let records = self.until_it_begins(journal::begun(place, &summary, None));
        (records, summary)
    }

    /// What is written of one that is to begin later, but with that definition and other versions; and what it is until then.
    pub(super) fn requeued(self, to: Arc<Definition>, mut summary: Summary) -> Result<(Live<R>, Vec<Record>, Summary), Refused> {
        let machine = self.state.machine.moved(&self.definition, &to).map_err(|misfits| moving::refused(&misfits))?;
        let live = Live { definition: to, state: State { machine, ..self.state }, ..self };
        summary.moved_to(&live.definition);
        summary.pins = live.pins.numbers();
        let records = live.until_it_begins(vec![journal::changed(&live.place, &summary)]);
        Ok((live, records, summary))
    }

    /// These and where one stands that is to begin later, with what that refers to.
    fn until_it_begins(&self, mut records: Vec<Record>) -> Vec<Record> {
        records.extend(self.pins.unwritten().iter().map(|(number, set)| journal::pins(*number, set)));
        if !self.core.has_written(&self.definition) {
            records.push(journal::definition(&self.definition));
        }
        records.push(self.checkpoint(self.state.size.with(&records)));
        records
    }

    /// Its tasks call these versions.
    pub(super) fn pinned(self, pins: Rc<Pins>) -> Live<R> {
        Live { pins, ..self }
    }

    /// It takes up so much.
    pub(super) fn of_size(mut self, size: Size) -> Live<R> {
        self.state.size = size;
        self
    }

    /// It takes up so much from now on.
    fn counted(&mut self, size: Size) {
        let before = std::mem::replace(&mut self.state.size, size);
        if let Some(used) = &self.used {
            used.change(before.total(), size.total());
        }
    }

    /// These are written of it: it is in the journal alone from now on, with its definition, and holds its versions there.
    pub(super) fn hold(&mut self, records: &[Record]) {
        self.counted(self.state.size.with(records));
        self.core.pins.hold(&self.pins.numbers());
        self.core.pins.wrote(&self.pins.unwritten());
        self.core.wrote(&self.definition);
    }

    /// Where it is found, and what the limits of its workflow are kept for.
    pub(super) const fn whose(&self) -> (&Place, Option<&Arc<str>>) {
        (&self.place, self.key.as_ref())
    }

    /// Where it stands, when it takes up so much beside that.
    fn checkpoint(&self, size: Size) -> Record {
        let Live { id, place, parent, key, state, .. } = self;
        let standing = Standing {
            place,
            key: key.as_deref(),
            parent: *parent,
            tasks: state.tasks.values().collect(),
            timers: state.timers.iter().map(|(timer, at_ms)| (*timer, *at_ms)).collect(),
            execution: &state.machine,
            pins: self.pins.numbers(),
            size,
        };
        journal::checkpoint(*id, &standing)
    }

    /// It waits as soon as it has begun: its workflow is paused.
    pub(super) fn begin_paused(&mut self) {
        step(&self.definition, &mut self.state.machine, Event::Paused, express::now_ms(), &mut random, &mut Vec::new());
    }

    /// Whether there is nothing more to do, unless it is redriven.
    pub(super) fn has_ended(&self) -> bool {
        !matches!(self.state.machine.status(), Status::New | Status::Running)
    }

    /// Goes on until it has ended, or only waits, or the server stops.
    pub(super) async fn run(mut self, mut inbox: mpsc::UnboundedReceiver<Said>) {
        let base = self.base();
        let mut front = Front::of(&base);
        self.go_on(&mut front, self.not_begun(), (None, None));
        while self.goes_on(&mut inbox, &mut front).await {}
        drop(front);
        let due_ms = if self.has_ended() { None } else { self.state.timers.values().min().copied() };
        let status = self.state.machine.status();
        if status == Status::Running || (status == Status::New && self.was_queued) {
            // Its own hold ends with it.
            self.core.pins.hold(&self.pins.numbers());
        }
        self.core.leave(self.id, due_ms);
        // What it was told in its last moment is not answered, and said again to what the journal has.
    }

    /// Takes in what happens next; whether there is more to come.
    async fn goes_on(&mut self, inbox: &mut mpsc::UnboundedReceiver<Said>, front: &mut Front<'_, R>) -> bool {
        if let Ok(said) = inbox.try_recv() {
            return self.told(said, front).await;
        }
        let due_ms = self.state.timers.values().min().copied();
        let is_stopping = self.core.is_stopping();
        let is_due = due_ms.is_some_and(|at_ms| at_ms <= express::now_ms());
        if (is_stopping || !is_due) && self.commit_ahead(front).await {
            return !self.has_ended();
        }
        if self.running.is_empty() && front.is_idle() && (is_stopping || self.may_leave(due_ms)) && inbox.is_empty() {
            return false;
        }
        let mut stopped = self.core.stopped.clone();
        tokio::select! {
            biased;
            Some(said) = inbox.recv() => self.told(said, front).await,
            Some(finished) = self.running.next(), if !self.running.is_empty() => match finished {
                Some(finished) => self.finished(finished, front).await,
                // It was given up.
                None => true,
            },
            () = sleep_until(due_ms), if due_ms.is_some() && !is_stopping => self.fire(front).await,
            () = front.happens(), if !front.is_idle() => true,
            _ = stopped.wait_for(|stopped| *stopped), if !is_stopping => true,
        }
    }

    /// Whether nothing would be missed if it were only in the journal.
    fn may_leave(&self, due_ms: Option<i64>) -> bool {
        let is_soon = due_ms.is_some_and(|at_ms| express::time_until(at_ms) <= STAY);
        self.has_ended() || (self.state.machine.status() == Status::Running && !is_soon)
    }

    /// Something from outside.
    async fn told(&mut self, Said { event, to, answer }: Said, front: &mut Front<'_, R>) -> bool {
        if let Some(to) = to {
            let result = self.move_to(to).await;
            if result.is_ok() && front.is_ahead() {
                // What was begun ahead was begun by what it was before.
                self.stand_still(front, true);
            }
            // A client that has gone needs no answer.
            if let Some(answer) = answer {
                let _ = answer.send(result);
            }
            return !self.has_ended();
        }
        let refused = match &event {
            Event::CallbackSucceeded { token, .. } | Event::CallbackFailed { token, .. } | Event::CallbackHeartbeat { token } => {
                (!self.state.machine.waits_for_callback(token)).then_some(Refused::NoTask)
            }
            Event::Restarted { state, input } => {
                let cannot = self.state.machine.restartable(&self.definition, state, input).err();
                cannot.map(|why| Refused::Impossible(why.to_string()))
            }
            _ => None,
        };
        let is_first = self.state.machine.status() == Status::New;
        let moves = matches!(event, Event::Redriven | Event::Restarted { .. });
        let moved = if moves { self.core.pins.take_move(self.id).map(|pins| self.pins.replace(&pins)) } else { None };
        let result = match refused {
            None => match self.turn(front, vec![(express::now_ms(), event)], None, is_first).await {
                Turn::Not(error) => {
                    moved.map(|before| self.pins.set(before));
                    Err(Refused::from(error))
                }
                _ => Ok(()),
            },
            Some(refused) => Err(refused),
        };
        let has_begun = !is_first || result.is_ok();
        if let Some(answer) = answer {
            // A client that has gone needs no answer.
            let _ = answer.send(result);
        }
        has_begun && !self.has_ended()
    }

    /// Has it go on by that definition from its next transition on, and call the versions that were put down for it. Nothing happens to the machine but that; where it cannot, all stays as it is.
    async fn move_to(&mut self, to: Arc<Definition>) -> Result<(), Refused> {
        let machine = self.state.machine.moved(&self.definition, &to).map_err(|misfits| moving::refused(&misfits))?;
        let pins = self.core.pins.take_move(self.id).map(|pins| self.pins.replace(&pins));
        let before = self.state.clone();
        let definition = std::mem::replace(&mut self.definition, to);
        self.state.machine = machine;
        let turn = match self.make(&before, &Plan::default(), None, true).await {
            Ok((_, size)) => {
                self.counted(size);
                self.core.wrote(&self.definition);
                return Ok(());
            }
            Err(turn) => turn,
        };
        (self.state, self.definition) = (before, definition);
        if let Some(pins) = pins {
            self.pins.set(pins);
        }
        Err(match turn {
            Turn::Not(error) => Refused::from(error),
            Turn::TaskFailed(failure) => Refused::Unavailable(failure.cause.as_deref().unwrap_or_default().to_owned()),
            Turn::Made | Turn::Again(_) => Refused::Unavailable("the store has not made the commit; ask again".to_owned()),
        })
    }

    /// Timers that have run out.
    async fn fire(&mut self, front: &mut Front<'_, R>) -> bool {
        let now_ms = express::now_ms();
        let due = self.state.timers.iter().filter(|(_, at_ms)| **at_ms <= now_ms).map(|(timer, _)| *timer);
        let events: Vec<_> = due.map(|timer| (now_ms, Event::TimerFired { timer })).collect();
        if !events.is_empty() {
            self.turn(front, events, None, false).await;
        }
        !self.has_ended()
    }

    /// A task has ended.
    async fn finished(&mut self, finished: Finished, front: &mut Front<'_, R>) -> bool {
        let Finished { task, begun_ms, result, made } = finished;
        self.given_up.remove(&task);
        if result.is_err() && self.core.is_stopping() {
            // It may have failed since the server stops: it runs again when there is a server.
            return true;
        }
        let events = |result| {
            let ended = match result {
                Ok(output) => Event::TaskSucceeded { task, output },
                Err(Failure { error, cause }) => Event::TaskFailed { task, error, cause },
            };
            vec![(begun_ms, Event::TaskStarted { task }), (express::now_ms(), ended)]
        };
        let failure = match self.turn(front, events(result), made, false).await {
            Turn::Made | Turn::Not(_) => None,
            Turn::Again(key) if self.may_run_again(task, key.as_ref()) => {
                self.begin(task);
                return true;
            }
            Turn::Again(_) => Some(task::conflict()),
            Turn::TaskFailed(failure) => Some(failure),
        };
        self.conflicts.remove(&task);
        if let Some(failure) = failure {
            self.turn(front, events(Err(failure)), None, false).await;
        }
        !self.has_ended()
    }

    /// Whether a task whose commit conflicted, over that key, is carried out again.
    fn may_run_again(&mut self, task: TaskId, key: Option<&BucketKey>) -> bool {
        let (conflicts, last) = self.conflicts.entry(task).or_default();
        *conflicts += 1;
        *last = key.cloned();
        *conflicts <= task::STALE_MAX
    }

    /// Takes events in, each at its time, and does what follows. With `gives_up` a store that does not work ends it; otherwise it is tried again, unless the server stops.
    async fn turn(&mut self, front: &mut Front<'_, R>, events: Vec<(i64, Event)>, made: Option<Made>, gives_up: bool) -> Turn {
        let (before, told) = (self.state.clone(), front.told(&events));
        let mut plan = Plan { trail: front.trail(), ..Plan::default() };
        for (now_ms, event) in events {
            self.step(event, now_ms, &mut plan).await;
        }
        let is_without_task = made.is_none();
        match self.make(&before, &plan, made, gives_up).await {
            Ok((ended, size)) => {
                self.counted(size);
                let (mut begin, trail) = (std::mem::take(&mut plan.begin), plan.trail.take());
                if before.machine.is_paused() {
                    // Of those that ran before the pause, too, which may have been given up with the server.
                    begin = self.not_begun();
                }
                front.came_to(plan.outcome.as_ref());
                self.follow(&before, plan, ended);
                self.go_on(front, begin, (told, trail));
                Turn::Made
            }
            Err(turn) => {
                self.state = before;
                match turn {
                    // All that it holds is more than one commit can be: it cannot go on.
                    Turn::TaskFailed(Failure { cause, .. }) if is_without_task => {
                        let event = Event::Stopped { error: Some("States.DataLimitExceeded".into()), cause };
                        Box::pin(self.turn(front, vec![(express::now_ms(), event)], None, gives_up)).await
                    }
                    turn => turn,
                }
            }
        }
    }

    /// Commits a step. What it is now, where that has changed, and what it takes up.
    async fn make(
        &self,
        before: &State,
        plan: &Plan,
        made: Option<Made>,
        gives_up: bool,
    ) -> Result<(Option<Summary>, Size), Turn> {
        let (records, summary, size, sets) = self.written(before, plan, gives_up).await.map_err(Turn::Not)?;
        let (transaction, commit) = match made {
            Some(Made { transaction, commit }) => (Some(transaction), Commit { records, ..commit }),
            None => (None, Commit { records, ..Commit::default() }),
        };
        let outcome = self.commit(&commit, gives_up).await.map_err(Turn::Not)?;
        let settled = match &transaction {
            Some(transaction) => {
                transaction.came(outcome);
                transaction.take_outcome(&commit)
            }
            None => outcome.map_or_else(Settled::Failed, |_| Settled::Done),
        };
        match settled {
            Settled::Done => self.core.pins.wrote(&sets),
            Settled::Failed(error) => return Err(Turn::TaskFailed(of_store(&error))),
            Settled::Stale | Settled::Commit(_) => {
                let conflicted = transaction.and_then(|transaction| {
                    transaction.decided(Verdict::Stale);
                    transaction.take_conflicted()
                });
                return Err(Turn::Again(conflicted));
            }
        }
        if let Some(transaction) = transaction {
            transaction.decided(Verdict::Committed);
            self.send_put_off(transaction.take_calls());
        }
        Ok((summary, size))
    }

    /// What is written of a step.
    async fn written(&self, before: &State, plan: &Plan, gives_up: bool) -> Result<Written, KvError> {
        let (mut records, summary) = self.read_and_record(before, plan, gives_up).await?;
        let size = before.size.with(&records);
        // Nothing has come in between: these are the sets of the checkpoint.
        let sets = self.pins.unwritten();
        records.extend(sets.iter().map(|(number, set)| journal::pins(*number, set)));
        Ok((records, summary, size, sets))
    }

    /// Whether an execution that did not run runs by a step, or has run in it to its end. One that has ended takes in what does not concern it any more.
    fn has_gone_on(&self, before: &State, plan: &Plan) -> bool {
        before.machine.status() != Status::Running && (self.state.machine.status() == Status::Running || plan.outcome.is_some())
    }

    /// As [`records`](Self::records); where the journal cannot be read, tries again until it can be.
    async fn read_and_record(
        &self,
        before: &State,
        plan: &Plan,
        gives_up: bool,
    ) -> Result<(Vec<Record>, Option<Summary>), KvError> {
        let mut back_off = back_off();
        loop {
            match self.records(before, plan) {
                Err(_) if !gives_up && !self.core.is_stopping() => {
                    back_off.pause().await;
                }
                recorded => return recorded,
            }
        }
    }

    /// What is written of a step, and what the execution is from then on where that has changed.
    fn records(&self, before: &State, plan: &Plan) -> Result<(Vec<Record>, Option<Summary>), KvError> {
        let Live { id, place, definition, parent, state, core, .. } = self;
        let machine = &state.machine;
        let begins = before.machine.status() == Status::New;
        let is_redriven = !begins && self.has_gone_on(before, plan);
        let mut records: Vec<Record> = journal::history(*id, &plan.history).into_iter().collect();
        let mut summary = None;
        let is_paused = machine.is_paused();
        let pauses = before.machine.is_paused() != is_paused;
        let moves = before.machine.definition() != machine.definition();
        if begins || is_redriven || pauses || moves || plan.outcome.is_some() {
            let known = if begins && !self.was_queued { None } else { core.journal().summary(place)? };
            let new = || Summary::new(*id, definition, machine, *parent);
            let mut now = known.clone().unwrap_or_else(new);
            (now.status, now.paused) = (Status::Running, is_paused);
            if (begins || moves) && !core.has_written(definition) {
                records.push(journal::definition(definition));
            }
            if is_redriven {
                now.redriven(machine, express::now_ms());
            }
            if let Some(outcome) = &plan.outcome {
                now.ended(outcome, express::now_ms(), self.workflow.config.retention_days);
            }
            now.pins = self.pins.numbers();
            if moves {
                now.moved_to(definition);
            }
            if begins || is_redriven {
                records.extend(journal::begun(place, &now, known.as_ref()));
            }
            if plan.outcome.is_some() {
                records.extend(journal::ended(place, &now, Status::Running));
            }
            if pauses || moves {
                records.push(journal::changed(place, &now));
            }
            summary = Some(now);
        }
        if machine.status() != Status::Succeeded {
            records.push(self.checkpoint(before.size.with(&records)));
        }
        if plan.outcome.is_some() {
            let bytes = before.size.with(&records).total();
            records.extend(summary.iter().filter_map(|summary| journal::expiry(place, summary, bytes)));
        }
        Ok((records, summary))
    }

    /// Makes a commit; where the store does not work, tries again until it does. (What it has not done then is certain: where it is not, the [term](super::term) is over.)
    async fn commit(&self, commit: &Commit, gives_up: bool) -> Result<Result<kv::Outcome, KvError>, KvError> {
        let space = self.workflow.reach.kv.as_ref().unwrap_or(&self.core.executions.0.space);
        let _turn = self.core.commits.take(Arc::clone(&self.place.tenant)).await;
        let mut back_off = back_off();
        loop {
            match self.core.term.commit(space.clone(), commit.clone()).await {
                Err(error @ KvError::Unavailable(_)) if gives_up || self.core.is_stopping() => return Err(error),
                Err(KvError::Unavailable(error)) => {
                    tracing::debug!(execution = &*self.place.name, error, "a step is written again later");
                    back_off.pause().await;
                }
                outcome => return Ok(outcome),
            }
        }
    }

    /// A step is made: does what the machine has asked for, but for tasks.
    fn follow(&mut self, before: &State, plan: Plan, summary: Option<Summary>) {
        if before.machine.status() == Status::New {
            self.core.wrote(&self.definition);
        }
        if self.has_gone_on(before, &plan) {
            let is_again = before.machine.status() != Status::New;
            self.core.begun(&self.place, is_again, self.was_queued && !is_again);
            if let Some(key) = self.key.as_ref().filter(|_| is_again) {
                self.core.redriven(&self.place, key);
            }
        }
        for start in plan.give_up {
            if let Some(handle) = self.given_up.remove(&start.task) {
                handle.abort();
            }
            task::stop_child(&self.core, &self.workflow, self.id, &start);
        }
        if let Some(summary) = summary.filter(|_| plan.outcome.is_some()) {
            self.core.ended(&self.place, self.key.as_ref(), &summary);
        }
    }

    /// Begins a task, if it is still to be carried out and the execution is not paused. Where the server stops, it is carried out when there is one again. Whether it has begun.
    fn begin(&mut self, task: TaskId) -> bool {
        let may_begin = !self.core.is_stopping() && self.core.term.holds() && !self.state.machine.is_paused();
        let Some(start) = self.state.tasks.get(&task).filter(|_| may_begin) else { return false };
        let (handle, registration) = AbortHandle::new_pair();
        self.given_up.insert(task, handle);
        let of = task::Of { id: self.id, place: self.place.clone(), pins: Rc::clone(&self.pins) };
        let conflicted = self.conflicts.get_mut(&task).and_then(|(_, key)| key.take());
        let work = task::carry_out(Rc::clone(&self.core), Arc::clone(&self.workflow), of, start.clone(), conflicted);
        let work = Abortable::new(work, registration);
        self.running.push(Box::pin(async move { work.await.ok() }));
        true
    }

    fn begin_all(&mut self, tasks: Vec<TaskId>) {
        for task in tasks {
            self.begin(task);
        }
    }

    /// Tasks that are to be carried out, and are not.
    fn not_begun(&self) -> Vec<TaskId> {
        self.state.tasks.keys().filter(|task| !self.given_up.contains_key(*task)).copied().collect()
    }

    /// Calls whose reply is not wanted, and which a task's transaction has put off until it was made.
    fn send_put_off(&self, calls: Vec<PutOff>) {
        for call in calls {
            let sent =
                self.workflow.reach.functions.find(&call.name).and_then(|function| self.core.runner.send(&function, call.input));
            if let Err(failure) = sent {
                tracing::warn!(workflow = &*self.place.workflow, function = &*call.name, "a call was not made: {failure}");
            }
        }
    }

    /// One event: the machine steps as far as it goes.
    async fn step(&mut self, event: Event, now_ms: i64, plan: &mut Plan) {
        let mut actions = Vec::new();
        if let Event::TimerFired { timer } = &event {
            self.state.timers.remove(timer);
        }
        let mut next = Some(event);
        while let Some(event) = next.take() {
            let State { machine, .. } = &mut self.state;
            match &mut plan.trail {
                Some(trail) => {
                    let mut watched = Watched(trail);
                    step_guided(&self.definition, machine, event, (now_ms, &mut random), &mut watched, &mut actions);
                }
                None => step(&self.definition, machine, event, now_ms, &mut random, &mut actions),
            }
            for action in actions.drain(..) {
                match action {
                    Action::StartTask(start) => {
                        plan.begin.push(start.task);
                        self.state.tasks.insert(start.task, start);
                    }
                    Action::CancelTask { task } => plan.give_up.extend(self.state.tasks.remove(&task)),
                    Action::SetTimer { timer, at_ms } => drop(self.state.timers.insert(timer, at_ms)),
                    Action::CancelTimer { timer } => drop(self.state.timers.remove(&timer)),
                    Action::Yield => next = Some(Event::Continue),
                    Action::History(event) => plan.history.push(*event),
                    Action::Ended(outcome) => plan.outcome = Some(outcome),
                }
            }
            if next.is_some() {
                tokio::task::yield_now().await;
            }
        }
        // Those that have answered, and those for which a callback came first.
        let State { machine, tasks, timers, .. } = &mut self.state;
        tasks.retain(|task, _| machine.waits_for(*task));
        plan.begin.retain(|task| tasks.contains_key(task));
        if plan.outcome.is_some() {
            timers.clear();
        }
    }
}

const fn back_off() -> BackOff {
    BackOff::new(BACK_OFF.0, BACK_OFF.1)
}

/// 64 bits that cannot be guessed: tokens are made of them.
fn random() -> u64 {
    let mut bytes = [0; 8];
    match rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()) {
        Ok(_) => u64::from_le_bytes(bytes),
        // Only a kernel that has just started has none.
        Err(_) => fastrand::u64(..),
    }
}

async fn sleep_until(at_ms: Option<i64>) {
    match at_ms {
        // The calendar's clock may be set meanwhile.
        Some(at_ms) => tokio::time::sleep(express::time_until(at_ms).min(Duration::from_secs(30))).await,
        None => std::future::pending().await,
    }
}
