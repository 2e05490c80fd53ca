//! Carries out what a plan asks for: runs, commits, and what the base does for good.

use std::collections::HashMap;
use std::future::{pending, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use futures_util::future::{AbortHandle, Abortable};
use futures_util::stream::{FuturesUnordered, StreamExt};
use serde_json::Value;
use sledge_workflow::definition::{Definition, StateIndex};
use sledge_workflow::machine::{About, Action, Event, Failure, Limits, Outcome, StartTask, TaskId};
use tokio::sync::Notify;

use super::oracle::Knowledge;
use super::plan::{Answer, Do, Outside, Plan, RunId};
use super::story::Recorded;
use crate::kv::{self, BucketKey, KvError};
use crate::memo::callees::Callees;
use crate::outcome;
use crate::speculate::Speculation;
use crate::speculate::skips::{Grounds, Skip};
use crate::telemetry::Trace;
use crate::txn::Transaction;
use crate::txn::pipeline::{Basis, Cause, ColumnId, Dewey, Group, Pipeline, Squashed};
use crate::workflow::express::{AT_ONCE_MAX, Running, now_ms};
use crate::workflow::failure::{failed, of_function};
use crate::workflow::function::{self, Asked, Begun, Call, Replied};
use crate::workflow::{Runner, Workflow};

/// What becomes of a commit.
type Commit = Pin<Box<dyn Future<Output = Result<kv::Outcome, KvError>> + Send>>;
/// How a run ends, if it was not dropped.
type End<'a> = Pin<Box<dyn Future<Output = Option<(RunId, Replied)>> + 'a>>;

/// What is in a column.
enum Filled {
    /// A run, and what gives it up.
    Runs(AbortHandle, Option<Arc<Callees>>),
    /// What a run would come to, and that version's number.
    Skipped(Skip, u64),
}

/// How it is known what a run rests on.
pub(super) enum Rests {
    /// It is not asked for.
    Unknown,
    /// Its function tells, and it does not run again.
    Told(Arc<Callees>),
    /// It stands for an earlier run, of a version with that number.
    Skipped(Arc<Grounds>, u64),
}

/// A run that was begun, and is neither committed nor dropped.
struct UnderWay {
    column: ColumnId,
    transaction: Arc<Transaction>,
    task: StartTask,
    began: Instant,
    /// For how long it ran, when it has ended.
    took: Option<Duration>,
    /// The state before it, if the run of that had not ended: the guess that began it.
    behind: Option<StateIndex>,
    rests: Rests,
    /// Gives it up.
    handle: AbortHandle,
}

/// An execution, with what it has begun.
struct Driver<'a, R> {
    workflow: &'a Workflow,
    runner: &'a R,
    /// What is done for good.
    real: Running<'a, R>,
    /// Tasks of that, with their runs in the plan.
    for_good: HashMap<TaskId, RunId>,
    pipeline: Arc<Pipeline>,
    runs: HashMap<RunId, UnderWay>,
    ends: FuturesUnordered<End<'a>>,
    /// Whether what runs are expected to read is fetched when they begin.
    fetches: bool,
    /// Such reads, on their way.
    fetched: FuturesUnordered<Pin<Box<dyn Future<Output = ()> + Send>>>,
    /// Runs that have ended before they were begun.
    ended: Vec<(RunId, Answer)>,
    /// Runs that have ended when they were begun.
    replied_at_once: Vec<(RunId, Replied)>,
    /// How many ended so in a row.
    in_a_row: u32,
    deadline: Instant,
    /// Whether a run has ended: others follow it in its turn.
    has_replied: bool,
    /// Runs for which there was no room; without a failure where it is the pipeline that had none.
    refused: Vec<(RunId, Option<Failure>)>,
    /// The commit that is under way, and since when.
    commit: Option<(Commit, Instant)>,
    /// Since when there is something to commit that waits for more.
    held_since: Option<Instant>,
    /// When that is committed without more.
    held_until: Option<Instant>,
    knowledge: Knowledge<'a>,
    rng: fastrand::Rng,
    outcome: Option<Outcome>,
}

/// What happens next.
enum Happens {
    /// To what is done for good.
    Real(Option<Event>),
    /// A run has ended.
    Ended(RunId, Replied),
    /// What became of a commit.
    Came(Result<kv::Outcome, KvError>),
    /// Columns were squashed, a run was dropped, or what was held back is to be committed.
    Squashed,
}

/// Executes a workflow that is served, and goes ahead of itself; `real` carries out what cannot be taken back.
pub(in crate::workflow) async fn execute<'a, R: Runner>(
    definition: &'a Definition,
    (about, limits, trace): (About, Limits, Option<Arc<Trace>>),
    real: Running<'a, R>,
    speculation: &'a Speculation,
    input: Value,
) -> Outcome {
    let ((workflow, runner, deadline), squashed) = (real.of(), Arc::new(Notify::new()));
    let knowledge = Knowledge::new(workflow, speculation);
    let mut plan = Recorded::new(Plan::new(definition, about.clone(), limits), workflow, about, trace);
    let mut driver = Driver {
        workflow,
        runner,
        real,
        for_good: HashMap::new(),
        pipeline: Pipeline::new(workflow.reach.kv.clone(), Arc::clone(&squashed)),
        runs: HashMap::new(),
        ends: FuturesUnordered::new(),
        fetches: false,
        fetched: FuturesUnordered::new(),
        ended: Vec::new(),
        replied_at_once: Vec::new(),
        in_a_row: 0,
        deadline,
        has_replied: false,
        refused: Vec::new(),
        commit: None,
        held_since: None,
        held_until: None,
        knowledge,
        rng: fastrand::Rng::new(),
        outcome: None,
    };
    if driver.knowledge.skips() {
        driver.pipeline.keep_bases();
    }
    driver.fetches = driver.knowledge.fetches() && driver.pipeline.fetches();
    if let Some(stalls) = driver.knowledge.stalls() {
        driver.pipeline.stall_by(stalls);
    }
    driver.step(&mut plan, |plan, outside| plan.start(input, outside)).await;
    let outcome = loop {
        driver.go_on(&mut plan).await;
        if let Some(outcome) = driver.outcome.take() {
            break outcome;
        }
        let happens = tokio::time::timeout_at(deadline.into(), driver.next(&squashed)).await;
        plan.tick();
        match happens {
            Err(_) => break Outcome::TimedOut,
            Ok(Happens::Squashed) => {}
            Ok(Happens::Real(None)) => break Outcome::Failed(failed("States.Runtime", "the execution waits for nothing")),
            Ok(Happens::Real(Some(event))) => driver.told(&mut plan, event).await,
            Ok(Happens::Ended(run, replied)) => driver.replied(&mut plan, run, replied).await,
            Ok(Happens::Came(outcome)) => {
                if let Some((_, began)) = driver.commit.take() {
                    driver.knowledge.commit_took(began.elapsed());
                }
                let group = driver.pipeline.came(outcome);
                driver.decided(&mut plan, group).await;
            }
        }
    };
    driver.knowledge.ended();
    plan.came_to(&outcome);
    outcome
}

impl<'a, R: Runner> Driver<'a, R> {
    /// Steps the plan, and does what it asks for.
    async fn step<T>(
        &mut self,
        plan: &mut Plan<'a>,
        step: impl FnOnce(&mut Plan<'a>, &mut Outside<'_, Knowledge<'a>>) -> T,
    ) -> T {
        self.knowledge.look_at(self.runner.load());
        let (mut actions, rng) = (Vec::new(), &mut self.rng);
        let mut random = || rng.u64(..);
        let mut outside = Outside { oracle: &mut self.knowledge, now_ms: now_ms(), random: &mut random, actions: &mut actions };
        let result = step(plan, &mut outside);
        for action in actions {
            match action {
                Do::Begin { run, path, task, behind } => {
                    if self.begin(run, &path, task, behind) {
                        plan.story().skipped(run);
                    }
                }
                Do::Drop(run) => self.drop_run(run),
                Do::CarryOut { run, task } => {
                    self.for_good.insert(task.task, run);
                    self.carry_out(Action::StartTask(task)).await;
                }
                Do::Base(action) => self.carry_out(action).await,
            }
        }
        if let Some(fetch) = self.pipeline.fetch() {
            self.fetched.push(Box::pin(fetch));
        }
        result
    }

    async fn carry_out(&mut self, action: Action) {
        let mut action = Some(action);
        let ended = poll_fn(|context| Poll::Ready(action.take().and_then(|action| self.real.carry_out(action, context))));
        if let Some(outcome) = ended.await {
            self.outcome = Some(outcome);
        }
    }

    /// Others on this thread have their turn now and then, and the time may be over: a loop whose runs end at once waits for nothing.
    async fn make_way(&mut self) {
        self.in_a_row += 1;
        if self.in_a_row < AT_ONCE_MAX {
            return;
        }
        self.in_a_row = 0;
        tokio::task::yield_now().await;
        if Instant::now() >= self.deadline {
            self.outcome = Some(Outcome::TimedOut);
        }
    }

    /// Takes in what is there already, and commits what can be.
    async fn go_on(&mut self, plan: &mut Plan<'a>) {
        while self.outcome.is_none() {
            if let Some((run, replied)) = self.replied_at_once.pop() {
                self.make_way().await;
                self.replied(plan, run, replied).await;
            } else if let Some((run, answer)) = self.ended.pop() {
                self.make_way().await;
                self.step(plan, |plan, outside| plan.ended(run, answer, outside)).await;
            } else if let Some((run, failure)) = self.refused.pop() {
                if failure.is_none() || !plan.is_asked(run) {
                    plan.story().refused(run);
                }
                match failure {
                    _ if !plan.is_asked(run) => plan.refused(run),
                    Some(failure) => self.step(plan, |plan, outside| plan.ended(run, Err(failure), outside)).await,
                    None if self.commit.is_some() => plan.refused(run),
                    None => self.step(plan, |plan, outside| plan.make_room(run, outside)).await,
                }
            } else if let Some(event) = self.real.take_at_once() {
                self.told(plan, event).await;
            } else if !self.take_squashed(plan).await && !self.settle(plan).await {
                return;
            }
        }
    }

    /// Something has happened to what is done for good.
    async fn told(&mut self, plan: &mut Plan<'a>, event: Event) {
        let (task, answer) = match event {
            Event::TaskSucceeded { task, output } => (task, Ok(output)),
            Event::TaskFailed { task, error, cause } => (task, Err(Failure { error, cause })),
            event => return self.step(plan, |plan, outside| plan.base_event(event, outside)).await,
        };
        if let Some(run) = self.for_good.remove(&task) {
            self.step(plan, |plan, outside| plan.ended(run, answer, outside)).await;
        }
    }

    /// Begins a run, with a column. Whether a known answer stands for it.
    fn begin(&mut self, run: RunId, path: &[u32], task: StartTask, behind: Option<Arc<str>>) -> bool {
        let behind = behind.and_then(|state| self.knowledge.state(&state));
        match self.try_begin(run, path, &task) {
            Ok((column, transaction, filled)) => {
                let (rests, handle, took) = match filled {
                    Filled::Runs(handle, tells) => (tells.map_or(Rests::Unknown, Rests::Told), handle, None),
                    Filled::Skipped(Skip { answer, grounds }, version) => {
                        self.ended.push((run, Ok((*answer).clone())));
                        (Rests::Skipped(grounds, version), AbortHandle::new_pair().0, Some(Duration::ZERO))
                    }
                };
                let is_skipped = took.is_some();
                let under_way = UnderWay { column, transaction, task, began: Instant::now(), took, behind, rests, handle };
                self.runs.insert(run, under_way);
                return is_skipped;
            }
            Err(Unbegun::Later) => self.refused.push((run, None)),
            Err(Unbegun::NoRoom(failure)) => self.refused.push((run, Some(failure))),
            Err(Unbegun::Failed(failure)) => self.ended.push((run, Err(failure))),
        }
        false
    }

    fn try_begin(&mut self, run: RunId, path: &[u32], task: &StartTask) -> Result<(ColumnId, Arc<Transaction>, Filled), Unbegun> {
        let asked = Asked::of(task).unwrap_or_else(|| Err(failed("States.Runtime", "the task calls no function")))?;
        let function = asked.find(self.workflow)?;
        let input = asked.given(&function)?;
        let Some(isolation) = &function.isolation else {
            // It had one when it was asked whether it takes part: it was deployed anew.
            return Err(failed("States.Runtime", "the function was replaced by one without transactions").into());
        };
        let (column, transaction) = self
            .pipeline
            .open(Dewey::new(&path.iter().map(|step| u64::from(*step)).collect::<Vec<_>>()), isolation)
            .ok_or(Unbegun::Later)?;
        if let Some(state) = self.knowledge.state(&task.state) {
            self.pipeline.is_of(column, state);
        }
        if let Some(skip) = self.knowledge.skip(task, &function)
            && self.pipeline.recall(column, &skip.grounds.basis)
        {
            return Ok((column, transaction, Filled::Skipped(skip, function.version)));
        }
        if self.fetches
            && let Some(keys) = self.knowledge.reads(task, &function)
        {
            self.pipeline.expect(&keys);
        }
        let tells = self.knowledge.skips().then(Arc::<Callees>::default);
        let (deadline, joins) = (self.real.deadline_of(task), Some(Arc::clone(&transaction)));
        // Where nothing goes on behind it, it runs in the turn of the one before it, as without speculation: nothing is gained by a turn of its own.
        let follows = self.has_replied && self.runs.is_empty() && self.knowledge.goes_behind(task).is_none();
        let call = Call { function: &function, input, deadline, joins, follows, tells: tells.clone() };
        let mut begun = Begun::begin(self.runner, call).map_err(|failure| {
            self.pipeline.give_up(column);
            let has_no_room = function::has_no_room(&failure);
            let failure = of_function(asked.name, &failure);
            if has_no_room { Unbegun::NoRoom(failure) } else { Unbegun::Failed(failure) }
        })?;
        let (handle, registration) = AbortHandle::new_pair();
        if follows && let Some(replied) = begun.at_once() {
            self.replied_at_once.push((run, replied));
            return Ok((column, transaction, Filled::Runs(handle, tells)));
        }
        let end = Abortable::new(async move { (run, begun.replied().await) }, registration);
        self.ends.push(Box::pin(async move { end.await.ok() }));
        Ok((column, transaction, Filled::Runs(handle, tells)))
    }

    fn drop_run(&mut self, run: RunId) {
        if let Some(UnderWay { column, handle, behind, began, took, rests, .. }) = self.runs.remove(&run) {
            handle.abort();
            self.pipeline.give_up(column);
            if let Some(behind) = behind.filter(|_| !matches!(rests, Rests::Skipped(..))) {
                self.knowledge.dropped(behind, took.unwrap_or_else(|| began.elapsed()));
            }
        }
        if let Some(task) = self.for_good.iter().find(|(_, known)| **known == run).map(|(task, _)| *task) {
            self.for_good.remove(&task);
            self.real.cancel(task);
        }
    }

    /// A run has ended.
    async fn replied(&mut self, plan: &mut Plan<'a>, run: RunId, replied: Replied) {
        let Some(UnderWay { transaction, task, began, took, .. }) = self.runs.get_mut(&run) else { return };
        self.has_replied = true;
        *took = Some(began.elapsed());
        if replied.is_err() {
            // One that was killed has not said so itself.
            let _ = transaction.settle(false, None);
        }
        if let Err(failure) = &replied
            && function::has_no_room(failure)
            && !plan.is_asked(run)
        {
            self.drop_run(run);
            plan.story().refused(run);
            return plan.refused(run);
        }
        let answer = match Asked::of(task) {
            Some(Ok(asked)) => asked.output(replied),
            Some(Err(failure)) => Err(failure),
            None => return,
        };
        self.step(plan, |plan, outside| plan.ended(run, answer, outside)).await;
    }

    /// Has the runs of squashed columns begun again. Whether there were any.
    async fn take_squashed(&mut self, plan: &mut Plan<'a>) -> bool {
        let squashed = self.pipeline.take_squashed();
        let runs = self.runs_of(&squashed.iter().map(|squashed| squashed.column).collect::<Vec<_>>());
        let is_conflict = squashed.iter().any(|squashed| matches!(squashed.cause, Cause::Changed(_)));
        for Squashed { column, cause } in squashed {
            let find = |column: ColumnId| self.runs.iter().find(|(_, run)| run.column == column);
            let by = cause.by().and_then(find).map(|(_, run)| &run.task.state);
            if let Some((run, _)) = find(column) {
                plan.story().squashed(*run, cause, by);
            }
        }
        if is_conflict {
            let ran = runs.iter().filter_map(|run| self.runs.get(run)).map(|run| run.began.elapsed()).max();
            self.knowledge.conflicted(ran.unwrap_or_default());
        }
        for run in &runs {
            if let Some(run) = self.runs.get_mut(run) {
                // That it was begun ahead was not wrong.
                run.behind = None;
                if let Rests::Skipped(_, version) = run.rests {
                    self.knowledge.skipped_wrongly(&run.task, version);
                } else {
                    self.knowledge.runs_again();
                }
            }
            self.step(plan, |plan, outside| plan.squashed(*run, outside)).await;
        }
        !runs.is_empty()
    }

    /// Has the first runs committed that have ended. Whether something was decided at once.
    async fn settle(&mut self, plan: &mut Plan<'a>) -> bool {
        if self.commit.is_some() || self.holds_back() {
            return false;
        }
        let group = self.step(plan, |plan, outside| plan.group(outside)).await;
        let without = group.iter().take_while(|run| !self.runs.contains_key(run)).count();
        if without > 0 {
            // Tasks that have failed before they were begun have nothing to commit.
            self.committed(plan, &group[..without], Vec::new(), Vec::new()).await;
            return true;
        }
        let columns = group.iter().map_while(|run| self.runs.get(run)).map(|run| run.column);
        let columns: Vec<ColumnId> = columns.collect();
        if columns.is_empty() {
            return false;
        }
        let group = self.pipeline.settle(&columns);
        self.decided(plan, group).await
    }

    /// Whether runs are about to end that would be committed together with what has ended: two commits one after the other take twice as long. For as long as one commit takes it is waited for them, so that
    /// an execution loses no more by that than it would gain.
    fn holds_back(&mut self) -> bool {
        self.held_until = None;
        let mut running = self.runs.values().filter(|run| run.took.is_none()).peekable();
        if running.peek().is_none() || self.runs.values().all(|run| run.took.is_none()) {
            self.held_since = None;
            return false;
        }
        let patience = self.knowledge.patience(running.map(|run| (&run.task, run.began.elapsed())));
        let Some(patience) = patience else { return false };
        let now = Instant::now();
        let until = *self.held_since.get_or_insert(now) + patience;
        self.held_until = Some(until).filter(|until| now < *until);
        self.held_until.is_some()
    }

    /// Takes in what was decided about a group. Whether there is more to be decided now.
    async fn decided(&mut self, plan: &mut Plan<'a>, group: Group) -> bool {
        plan.story().decided(&group);
        match group {
            Group::Commit { commit, .. } => {
                let Some(space) = self.workflow.reach.kv.clone() else {
                    // A pipeline without a store has no commits.
                    return self.not_committed(plan).await;
                };
                self.held_since = None;
                self.commit = Some((Box::pin(async move { space.commit(commit).await }), Instant::now()));
                false
            }
            Group::Committed { columns, calls, bases, reads } => {
                for call in calls {
                    if let Ok(function) = self.workflow.reach.functions.find(&call.name) {
                        // As of any call whose reply is not wanted, nothing is said where it is not admitted.
                        let _ = self.runner.send(&function, call.input);
                    }
                }
                let runs = self.runs_of(&columns);
                self.committed(plan, &runs, bases, reads).await;
                true
            }
            Group::Nothing => self.not_committed(plan).await,
            Group::Again | Group::Stale { .. } => {
                self.not_committed(plan).await;
                true
            }
            Group::Failed { columns, error } => {
                self.not_committed(plan).await;
                let failure = match error {
                    KvError::Unknown(_) => outcome::Failure::OutcomeUnknown,
                    error => outcome::Failure::NotCommitted(error),
                };
                for run in self.runs_of(&columns) {
                    // None of them runs again: it may have been committed.
                    let Some(UnderWay { transaction, task, .. }) = self.runs.remove(&run) else { continue };
                    if let Some(held) = transaction.held() {
                        // They say what it has perhaps done.
                        held.release();
                    }
                    let name = Asked::of(&task).and_then(Result::ok).map_or("", |asked| asked.name).to_owned();
                    let answer = Err(of_function(&name, &failure));
                    self.step(plan, |plan, outside| plan.ended(run, answer, outside)).await;
                }
                true
            }
        }
    }

    async fn not_committed(&mut self, plan: &mut Plan<'a>) -> bool {
        self.step(plan, |plan, outside| plan.group_failed(outside)).await;
        false
    }

    /// The runs with these columns.
    fn runs_of(&self, columns: &[ColumnId]) -> Vec<RunId> {
        let of = |column: &ColumnId| self.runs.iter().find(|(_, run)| run.column == *column).map(|(run, _)| *run);
        columns.iter().filter_map(of).collect()
    }

    /// The first runs of the group are committed: the base hears of them, and what they were is learned. `bases`: of each, what it rests on, if that is known; `reads`: the keys of the store that it has read.
    async fn committed(&mut self, plan: &mut Plan<'a>, runs: &[RunId], bases: Vec<Option<Basis>>, reads: Vec<Vec<BucketKey>>) {
        let (mut bases, mut grounds) = (bases.into_iter(), Vec::with_capacity(runs.len()));
        plan.story().committed(runs);
        for run in runs {
            let basis = bases.next().flatten();
            let Some(UnderWay { transaction, task, took, behind, rests, .. }) = self.runs.remove(run) else {
                grounds.push(None);
                continue;
            };
            if let Some(held) = transaction.held() {
                held.release();
            }
            grounds.push(match (rests, basis) {
                (Rests::Skipped(old, version), basis) => {
                    self.knowledge.skipped(&task, version);
                    // What it has read it has read now.
                    basis.map(|basis| (version, Arc::new(Grounds { basis, callees: old.callees.clone() })))
                }
                (rests, basis) => {
                    if let Some(took) = took {
                        self.knowledge.committed(&task, took, behind);
                    }
                    grounds_of(rests, basis)
                }
            });
        }
        let answers = self.step(plan, |plan, outside| plan.committed(runs.len(), outside)).await;
        let mut reads = reads.into_iter();
        for ((task, answer), grounds) in answers.into_iter().zip(grounds) {
            self.knowledge.answered(&task, answer, grounds, reads.next().unwrap_or_default());
        }
        self.knowledge.went(plan.trail());
    }

    /// What happens next.
    async fn next(&mut self, squashed: &Notify) -> Happens {
        if self.ends.is_empty() && self.commit.is_none() && !self.real.waits() {
            return Happens::Real(None);
        }
        let (ends, fetched, commit, held_until) = (&mut self.ends, &mut self.fetched, &mut self.commit, self.held_until);
        tokio::select! {
            biased;
            outcome = async { match commit { Some((commit, _)) => commit.await, None => pending().await } } => Happens::Came(outcome),
            end = ends.next(), if !ends.is_empty() => match end.flatten() {
                Some((run, replied)) => Happens::Ended(run, replied),
                None => Happens::Squashed,
            },
            // Runs that wait for it go on.
            Some(()) = fetched.next(), if !fetched.is_empty() => Happens::Squashed,
            event = self.real.next(), if self.real.waits() => event.map_or(Happens::Squashed, |event| Happens::Real(Some(event))),
            () = squashed.notified() => Happens::Squashed,
            () = async { match held_until { Some(until) => tokio::time::sleep_until(until.into()).await, None => pending().await } } => {
                Happens::Squashed
            }
        }
    }
}

/// What a run rests on that is committed, with the number of its function's version; none where another one would not be the same.
pub(super) fn grounds_of(rests: Rests, basis: Option<Basis>) -> Option<(u64, Arc<Grounds>)> {
    let (Rests::Told(told), Some(basis)) = (rests, basis) else { return None };
    Knowledge::grounds(basis, told.take().ok()?.pop()?)
}

/// Why a run was not begun.
enum Unbegun {
    /// The commit that is under way is one of runs behind it, or there are too many of these.
    Later,
    /// There is no room now: what that is to an execution which does not go ahead.
    NoRoom(Failure),
    Failed(Failure),
}

impl From<Failure> for Unbegun {
    fn from(failure: Failure) -> Unbegun {
        Unbegun::Failed(failure)
    }
}
