//! Carries out what a plan asks for: runs, commits, and what the base does for good.

use std::collections::HashMap;
use std::future::{pending, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Instant;

use futures_util::future::{AbortHandle, Abortable};
use futures_util::stream::{FuturesUnordered, StreamExt};
use serde_json::Value;
use sledge_workflow::definition::Definition;
use sledge_workflow::machine::{About, Action, Event, Failure, Limits, Outcome, StartTask, TaskId};
use tokio::sync::Notify;

use super::oracle::Knowledge;
use super::plan::{Answer, Do, Outside, Plan, RunId};
use super::runs::{Opened, Rests, Runs, Took, UnderWay, learn};
use super::story::Recorded;
use crate::invoke::urgency::{Root, Stake};
use crate::kv::{self, KvError};
use crate::memo::callees::Callees;
use crate::outcome;
use crate::speculate::Speculation;
use crate::speculate::skips::Skip;
use crate::telemetry::Trace;
use crate::txn::Transaction;
use crate::txn::pipeline::{ColumnId, Findings, Group};
use crate::workflow::express::{AT_ONCE_MAX, Running, now_ms};
use crate::workflow::failure::{failed, of_function};
use crate::workflow::function::{self, Answered, Asked, Begun, Call};
use crate::workflow::{Runner, Workflow};

/// What becomes of a commit.
type Commit = Pin<Box<dyn Future<Output = Result<kv::Outcome, KvError>> + Send>>;
/// How a run ends, if it was not dropped.
type End<'a> = Pin<Box<dyn Future<Output = Option<(RunId, Answered)>> + 'a>>;

/// What is in a column.
enum Filled {
    /// A run, what gives it up, and what asks for it.
    Runs(AbortHandle, Option<Arc<Callees>>, Stake),
    /// What a run would come to, and that version's number.
    Skipped(Skip, u64),
}

/// An execution, with what it has begun.
struct Driver<'a, R> {
    workflow: &'a Workflow,
    runner: &'a R,
    /// What is done for good.
    real: Running<'a, R>,
    /// Tasks of that, with their runs in the plan.
    for_good: HashMap<TaskId, RunId>,
    runs: Runs<()>,
    ends: FuturesUnordered<End<'a>>,
    /// What runs are expected to read, on its way.
    fetched: FuturesUnordered<Pin<Box<dyn Future<Output = ()> + Send>>>,
    /// Runs that have ended before they were begun.
    ended: Vec<(RunId, Answer)>,
    /// Runs that have ended when they were begun.
    replied_at_once: Vec<(RunId, Answered)>,
    /// How many ended so in a row.
    in_a_row: u32,
    deadline: Instant,
    /// Whether a run has ended: others follow it in its turn.
    has_replied: bool,
    /// Runs for which there was no room; without a failure where it is the pipeline that had none.
    refused: Vec<(RunId, Option<Failure>)>,
    /// The commit that is under way, and since when.
    commit: Option<(Commit, Instant)>,
    knowledge: Knowledge<'a>,
    /// On whose behalf runs are begun ahead.
    root: Root,
    rng: fastrand::Rng,
    outcome: Option<Outcome>,
}

/// What happens next.
enum Happens {
    /// To what is done for good.
    Real(Option<Event>),
    /// A run has ended.
    Ended(RunId, Answered),
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
        runs: Runs::new(workflow.reach.kv.clone(), Arc::clone(&squashed), &knowledge),
        ends: FuturesUnordered::new(),
        fetched: FuturesUnordered::new(),
        ended: Vec::new(),
        replied_at_once: Vec::new(),
        in_a_row: 0,
        deadline,
        has_replied: false,
        refused: Vec::new(),
        commit: None,
        knowledge,
        root: runner.root(),
        rng: fastrand::Rng::new(),
        outcome: None,
    };
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
                let group = driver.runs.pipeline.came(outcome);
                driver.decided(&mut plan, group).await;
            }
        }
    };
    driver.knowledge.ended(driver.runs.pipeline.reads_spared());
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
                    if self.begin((run, plan.is_asked(run)), &path, task, behind) {
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
        plan.asked().for_each(|run| self.runs.ask(run));
        if let Some(fetch) = self.runs.fetch() {
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
    fn begin(&mut self, (run, is_asked): (RunId, bool), path: &[u32], task: StartTask, behind: Option<Arc<str>>) -> bool {
        let behind = behind.and_then(|state| self.knowledge.state(&state));
        match self.try_begin((run, is_asked), path, &task) {
            Ok((column, transaction, filled)) => {
                let mut stake = Stake::default();
                let (rests, handle, took) = match filled {
                    Filled::Runs(handle, tells, of_run) => {
                        stake = of_run;
                        (tells.map_or(Rests::Unknown, Rests::Told), handle, None)
                    }
                    Filled::Skipped(Skip { answer, grounds }, version) => {
                        self.ended.push((run, Ok((*answer).clone())));
                        (Rests::Skipped(grounds, version), AbortHandle::new_pair().0, Some(Took::default()))
                    }
                };
                let is_skipped = took.is_some();
                let under_way = UnderWay {
                    column,
                    transaction,
                    task,
                    began: Instant::now(),
                    asked: None,
                    took,
                    behind,
                    rests,
                    handle,
                    stake,
                    more: (),
                };
                self.runs.of.insert(run, under_way);
                return is_skipped;
            }
            Err(Unbegun::Later) => self.refused.push((run, None)),
            Err(Unbegun::NoRoom(failure)) => self.refused.push((run, Some(failure))),
            Err(Unbegun::Failed(failure)) => self.ended.push((run, Err(failure))),
        }
        false
    }

    fn try_begin(
        &mut self,
        (run, is_asked): (RunId, bool),
        path: &[u32],
        task: &StartTask,
    ) -> Result<(ColumnId, Arc<Transaction>, Filled), Unbegun> {
        let asked = Asked::of(task).unwrap_or_else(|| Err(failed("States.Runtime", "the task calls no function")))?;
        let function = asked.find(self.workflow)?;
        let input = asked.given(&function)?;
        let Some(isolation) = &function.isolation else {
            // It had one when it was asked whether it takes part: it was deployed anew.
            return Err(failed("States.Runtime", "the function was replaced by one without transactions").into());
        };
        let opened = self.runs.open(path, task, (&function, isolation), &self.knowledge);
        let Opened { column, transaction, skip } = opened.ok_or(Unbegun::Later)?;
        if let Some(skip) = skip {
            return Ok((column, transaction, Filled::Skipped(skip, function.version)));
        }
        let tells = self.knowledge.skips().then(Arc::<Callees>::default);
        let (deadline, joins) = (self.real.deadline_of(task), Some(Arc::clone(&transaction)));
        // Where nothing goes on behind it, it runs in the turn of the one before it, as without speculation: nothing is gained by a turn of its own.
        let follows = self.has_replied && self.runs.of.is_empty() && self.knowledge.goes_behind(task).is_none();
        // One that holds a place which others may wait for is not to wait behind them.
        let is_behind = !is_asked && !function.gate.is_limited();
        let stake = if is_behind { self.root.ahead(path.iter().copied()) } else { Stake::default() };
        let urgency = stake.urgency().cloned();
        let call = Call { function: &function, input, deadline, joins, follows, tells: tells.clone(), urgency };
        let mut begun = Begun::begin(self.runner, call).map_err(|failure| {
            self.runs.pipeline.give_up(column);
            let has_no_room = function::has_no_room(&failure);
            let failure = of_function(asked.name, &failure);
            if has_no_room { Unbegun::NoRoom(failure) } else { Unbegun::Failed(failure) }
        })?;
        let (handle, registration) = AbortHandle::new_pair();
        if follows && let Some(replied) = begun.at_once() {
            self.replied_at_once.push((run, replied));
            return Ok((column, transaction, Filled::Runs(handle, tells, stake)));
        }
        let end = Abortable::new(async move { (run, begun.replied().await) }, registration);
        self.ends.push(Box::pin(async move { end.await.ok() }));
        Ok((column, transaction, Filled::Runs(handle, tells, stake)))
    }

    fn drop_run(&mut self, run: RunId) {
        self.runs.drop_run(run, &self.knowledge);
        if let Some(task) = self.for_good.iter().find(|(_, known)| **known == run).map(|(task, _)| *task) {
            self.for_good.remove(&task);
            self.real.cancel(task);
        }
    }

    /// A run has ended.
    async fn replied(&mut self, plan: &mut Plan<'a>, run: RunId, (replied, worked): Answered) {
        let Some(UnderWay { transaction, task, began, took, stake, .. }) = self.runs.of.get_mut(&run) else { return };
        self.has_replied = true;
        stake.is_over();
        *took = Some(Took { all: began.elapsed(), worked });
        if replied.is_err() {
            // One that was killed has not said so itself.
            let _ = transaction.settle(false, None);
        }
        if let Err(failure) = &replied
            && function::may_run_later(failure)
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
        let runs = self.runs.take_squashed(plan.story(), &mut self.knowledge);
        for run in &runs {
            self.step(plan, |plan, outside| plan.squashed(*run, outside)).await;
        }
        !runs.is_empty()
    }

    /// Has the first runs committed that have ended. Whether something was decided at once.
    async fn settle(&mut self, plan: &mut Plan<'a>) -> bool {
        if self.commit.is_some() || self.runs.holds_back(&self.knowledge) {
            return false;
        }
        let group = self.step(plan, |plan, outside| plan.group(outside)).await;
        let without = group.iter().take_while(|run| !self.runs.of.contains_key(run)).count();
        if without > 0 {
            // Tasks that have failed before they were begun have nothing to commit.
            self.committed(plan, &group[..without], Vec::new()).await;
            return true;
        }
        let columns = self.runs.columns(&group);
        if columns.is_empty() {
            return false;
        }
        let group = self.runs.pipeline.settle(&columns);
        self.decided(plan, group).await
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
                self.runs.is_committing();
                self.commit = Some((Box::pin(async move { space.commit(commit).await }), Instant::now()));
                false
            }
            Group::Committed { columns, calls, findings } => {
                for call in calls {
                    if let Ok(function) = self.workflow.reach.functions.find(&call.name) {
                        // As of any call whose reply is not wanted, nothing is said where it is not admitted.
                        let _ = self.runner.send(&function, call.input);
                    }
                }
                let runs = self.runs.named(&columns);
                self.committed(plan, &runs, findings).await;
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
                for run in self.runs.named(&columns) {
                    // None of them runs again: it may have been committed.
                    let Some(UnderWay { transaction, task, .. }) = self.runs.of.remove(&run) else { continue };
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

    /// The first runs of the group are committed: the base hears of them, and what they were is learned.
    async fn committed(&mut self, plan: &mut Plan<'a>, runs: &[RunId], findings: Vec<Findings>) {
        plan.story().committed(runs);
        let learned = self.runs.committed(runs, findings, &mut self.knowledge);
        let answers = self.step(plan, |plan, outside| plan.committed(runs.len(), outside)).await;
        learn(answers, learned, &self.knowledge);
        self.knowledge.went(plan.trail());
    }

    /// What happens next.
    async fn next(&mut self, squashed: &Notify) -> Happens {
        if self.ends.is_empty() && self.commit.is_none() && !self.real.waits() {
            return Happens::Real(None);
        }
        let (ends, fetched, commit, held_until) = (&mut self.ends, &mut self.fetched, &mut self.commit, self.runs.held_until);
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
