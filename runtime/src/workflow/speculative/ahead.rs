//! What a durable execution has begun ahead of what is written of it.
//!
//! ```text
//!   journal <--step, group of columns: one commit-- durable execution (the base) --where it stands--> Ahead [plan, pipeline]
//!                                                        ^-----------a group that is ready------------'  |  begins runs
//! ```
//!
//! The plan, the columns and the tables are those of express executions. The base is another's: the durable execution steps its machine, writes what it is then together with the changes of a group, and tells
//! the plan where it [stands](Ahead::stands) only when that is written. So what is here is a guess, and may be dropped at any time: the execution goes on from its journal, and runs again what was not committed.
//!
//! * A run takes a place of its host before it has a column, and keeps it until it has ended. A run that is ahead begins only if a place is free. So whatever has a column runs, and no read waits for a run that waits for a place.
//! * What the base asks for waits for a place, and for room, for as long as it takes.

use std::collections::HashMap;
use std::future::pending;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::{AbortHandle, Abortable};
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use sledge_workflow::definition::{Definition, StateIndex};
use sledge_workflow::machine::{Execution, Failure, Outcome, StartTask, TaskId};
use tokio::sync::Notify;

use super::oracle::Knowledge;
use super::plan::{Answer, Do, Outside, Path, Plan, RunId, Standing};
use super::runs::{Opened, Rests, Runs, Took, UnderWay, learn};
use super::story::Recorded;
use crate::invoke::function::Function;
use crate::invoke::urgency::{Root, Stake, Urgency};
use crate::kv::{self, Commit, KvError};
use crate::speculate::Speculation;
use crate::speculate::paths::Trail;
use crate::speculate::skips::Skip;
use crate::txn::PutOff;
use crate::txn::pipeline::{Findings, Group};
use crate::workflow::express::now_ms;
use crate::workflow::failure::{failed, of_function, of_store};
use crate::workflow::function::{self, Answered, Asked, Begun, Call};
use crate::workflow::{Runner, Workflow};

/// How long a run waits that the base asks for, where there was no room: the first time, and at most.
const PAUSES: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));
/// Groups in a row that conflict with transactions outside: then the execution does its next step alone, where tasks take turns over hot keys.
const CONFLICTS_MAX: u32 = 8;

/// What carries a durable execution out, and lets its runs have places.
pub(in crate::workflow) trait Host {
    /// One of the places of runs.
    type Place: 'static;

    /// A place, if one is free.
    fn free_place(&self) -> Option<Self::Place>;

    /// A place, when it has its turn after that pause; none where the server stops.
    fn place(&self, pause: Duration) -> impl Future<Output = Option<Self::Place>>;

    /// Whether anything may begin.
    fn may_begin(&self) -> bool;

    /// Whether it calls that version of a function.
    fn calls(&self, function: &Function) -> bool;

    /// A place is lent to a run that is ahead: when something waits for a place, that is asked for.
    fn lends(&self, urgency: &Arc<Urgency>);

    /// By when a run of a task has to have ended.
    fn deadline(&self, task: &StartTask) -> Instant;
}

/// What is to begin.
struct Start {
    path: Path,
    task: StartTask,
    behind: Option<StateIndex>,
    /// The next pause, where there was no room.
    pause: Duration,
}

/// What is kept of a run beside what any driver keeps.
struct More<P> {
    path: Path,
    began_ms: i64,
    /// The next pause, where there was no room.
    pause: Duration,
    /// Until it has ended.
    place: Option<P>,
}

/// What has happened.
pub(in crate::workflow) enum Happened<P> {
    /// A run has its turn, unless the server stops.
    Turn(RunId, Option<P>),
    /// A run has ended.
    Replied(RunId, Answered),
    /// Columns were squashed, a run was dropped, or what was held back is to be committed.
    Other,
}

type Waiting<'a, P> = Pin<Box<dyn Future<Output = Happened<P>> + 'a>>;

/// A run that has ended and is to be committed.
pub(in crate::workflow) struct Ended {
    pub(in crate::workflow) path: Path,
    /// As it was asked for: its number is not the base's.
    pub(in crate::workflow) task: StartTask,
    pub(in crate::workflow) answer: Answer,
    pub(in crate::workflow) began_ms: i64,
}

/// First runs that can be committed together.
pub(in crate::workflow) struct Ready {
    pub(in crate::workflow) runs: Vec<Ended>,
    ids: Vec<RunId>,
    /// What their columns come to; none where they have none, since they failed before they began.
    pub(in crate::workflow) commit: Option<Commit>,
}

/// What became of a group.
pub(in crate::workflow) enum Came {
    /// It is committed, with what it has put off.
    Committed { calls: Vec<PutOff>, findings: Vec<Findings> },
    /// It is not. What is to be done about that is done.
    Not,
    /// What is written of the execution cannot be.
    Refused,
}

/// What is ahead of an execution.
pub(in crate::workflow) struct Ahead<'a, R: Runner, H: Host> {
    workflow: &'a Workflow,
    runner: &'a R,
    host: &'a H,
    plan: Recorded<'a>,
    is_paused: bool,
    squashed: Arc<Notify>,
    runs: Runs<More<H::Place>>,
    /// Runs that wait for their turn, and what gives that up.
    turns: HashMap<RunId, (AbortHandle, Start)>,
    waiting: FuturesUnordered<Waiting<'a, H::Place>>,
    /// Runs that have ended before they were begun.
    ended: Vec<(RunId, Answer)>,
    /// Runs for which there was no room, and whether the pipeline had none.
    refused: Vec<(RunId, bool)>,
    /// Runs whose function was deployed anew since they were asked for.
    replaced: Vec<RunId>,
    /// Tasks that are carried out for good.
    for_good: Vec<(RunId, TaskId)>,
    is_committing: bool,
    conflicts: u32,
    knowledge: Knowledge<'a>,
    /// On whose behalf runs are begun ahead.
    root: Root,
    rng: fastrand::Rng,
}

impl<'a, R: Runner, H: Host> Ahead<'a, R, H> {
    /// Nothing yet, of an execution that stands there. None where the workflow does not go ahead now.
    pub(in crate::workflow) fn begin(
        (workflow, definition): (&'a Workflow, &'a Definition),
        (runner, host): (&'a R, &'a H),
        base: &Execution,
    ) -> Option<Ahead<'a, R, H>> {
        let tables: &'a Speculation = workflow.speculation()?;
        let space = workflow.reach.kv.clone()?;
        // What is learned is of the definition that is served.
        let is_served = workflow.definition()?.fingerprint() == definition.fingerprint();
        if !is_served || !super::goes_ahead(workflow, tables, runner.load()) {
            return None;
        }
        let squashed = Arc::new(Notify::new());
        let knowledge = Knowledge::new(workflow, tables).which_calls(|function| host.calls(function));
        let runs = Runs::new(Some(space), Arc::clone(&squashed), &knowledge);
        runs.pipeline.journal();
        let about = base.about().clone();
        Some(Ahead {
            workflow,
            runner,
            host,
            plan: Recorded::new(Plan::kept_elsewhere(definition, base.clone()), workflow, about, None).that_rests(),
            is_paused: base.is_paused(),
            squashed,
            runs,
            turns: HashMap::new(),
            waiting: FuturesUnordered::new(),
            ended: Vec::new(),
            refused: Vec::new(),
            replaced: Vec::new(),
            for_good: Vec::new(),
            is_committing: false,
            conflicts: 0,
            knowledge,
            root: runner.root(),
            rng: fastrand::Rng::new(),
        })
    }

    /// The ways that the base has gone.
    pub(in crate::workflow) fn trail(&mut self) -> Trail {
        self.plan.trail().clone()
    }

    /// Whether it waits for nothing.
    pub(in crate::workflow) fn is_idle(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether transactions outside are always faster.
    pub(in crate::workflow) const fn is_stuck(&self) -> bool {
        self.conflicts >= CONFLICTS_MAX
    }

    /// The execution has ended so.
    pub(in crate::workflow) fn came_to(&mut self, outcome: &Outcome) {
        self.plan.came_to(outcome);
    }

    /// The base stands there now, by something that was no group. `ended`: a task that was carried out for good, and what it has come to.
    pub(in crate::workflow) fn stands(&mut self, standing: Standing, ended: Option<&(TaskId, Answer)>) {
        self.is_paused = standing.base.is_paused();
        self.step(|plan, outside| plan.stands(standing, ended, outside));
    }

    /// The tasks that are to be carried out for good now. One that is not begun is to be [put off](Ahead::put_off).
    pub(in crate::workflow) fn take_for_good(&mut self) -> Vec<(RunId, TaskId)> {
        std::mem::take(&mut self.for_good)
    }

    /// A task that was to be carried out was not begun: it is when the base stands elsewhere.
    pub(in crate::workflow) fn put_off(&mut self, run: RunId) {
        self.plan.refused(run);
    }

    /// Steps the plan, and does what it asks for.
    fn step<T>(&mut self, step: impl FnOnce(&mut Plan<'a>, &mut Outside<'_, Knowledge<'a>>) -> T) -> T {
        self.plan.tick();
        self.knowledge.look_at(self.runner.load());
        let (mut actions, rng) = (Vec::new(), &mut self.rng);
        let mut random = || rng.u64(..);
        let mut outside = Outside { oracle: &mut self.knowledge, now_ms: now_ms(), random: &mut random, actions: &mut actions };
        let result = step(&mut self.plan, &mut outside);
        for action in actions {
            match action {
                Do::Begin { run, path, task, behind } => {
                    let behind = behind.and_then(|state| self.knowledge.state(&state));
                    self.begin_run(run, Start { path, task, behind, pause: Duration::ZERO });
                }
                Do::Drop(run) => self.drop_run(run),
                Do::CarryOut { run, task } => self.for_good.push((run, task.task)),
                // The base's, which has done it.
                Do::Base(_) => {}
            }
        }
        self.plan.asked().for_each(|run| self.runs.ask(run));
        self.fetch();
        result
    }

    /// Reads what runs that have begun are expected to read.
    fn fetch(&self) {
        if let Some(fetch) = self.runs.fetch() {
            self.waiting.push(Box::pin(async move {
                fetch.await;
                Happened::Other
            }));
        }
    }

    fn begin_run(&mut self, run: RunId, start: Start) {
        if !self.host.may_begin() || self.is_paused {
            return self.refused.push((run, false));
        }
        match self.host.free_place() {
            Some(place) => self.launch(run, start, place),
            None => self.no_room(run, start),
        }
    }

    /// There is no room for a run: one that the base asks for waits, and any other begins when the base asks for it.
    fn no_room(&mut self, run: RunId, start: Start) {
        if !self.plan.is_asked(run) {
            return self.refused.push((run, false));
        }
        let (host, pause) = (self.host, start.pause);
        let (handle, registration) = AbortHandle::new_pair();
        let start = Start { pause: (pause * 2).clamp(PAUSES.0, PAUSES.1), ..start };
        self.turns.insert(run, (handle, start));
        let turn = Abortable::new(async move { host.place(pause).await }, registration);
        self.waiting.push(Box::pin(async move { turn.await.map_or(Happened::Other, |place| Happened::Turn(run, place)) }));
    }

    /// Begins a run, with a column.
    fn launch(&mut self, run: RunId, start: Start, place: H::Place) {
        let (function, asked) = match find(self.workflow, &start.task) {
            Ok(found) => found,
            Err(failure) => return self.ended.push((run, Err(failure))),
        };
        let Some(isolation) = function.isolation.as_ref().filter(|_| self.knowledge.calls(&function)) else {
            return self.replaced.push(run);
        };
        let input = match asked.given(&function) {
            Ok(input) => input,
            Err(failure) => return self.ended.push((run, Err(failure))),
        };
        let opened = self.runs.open(&start.path, &start.task, (&function, isolation), &self.knowledge);
        let Some(Opened { column, transaction, skip }) = opened else { return self.refused.push((run, true)) };
        let (began, began_ms) = (Instant::now(), now_ms());
        if let Some(Skip { answer, grounds }) = skip {
            self.plan.story().skipped(run);
            self.ended.push((run, Ok((*answer).clone())));
            let (rests, took, handle) =
                (Rests::Skipped(grounds, function.version), Some(Took::default()), AbortHandle::new_pair().0);
            let Start { path, task, behind, pause } = start;
            let more = More { path, began_ms, pause, place: None };
            let stake = Stake::default();
            self.runs.of.insert(
                run,
                UnderWay { column, transaction, task, began, asked: None, took, behind, rests, handle, stake, more },
            );
            return;
        }
        let tells = self.knowledge.skips().then(Arc::default);
        let (deadline, joins) = (self.host.deadline(&start.task), Some(Arc::clone(&transaction)));
        // One that holds a place which others may wait for is not to wait behind them.
        let is_behind = !self.plan.is_asked(run) && !function.gate.is_limited();
        let stake = if is_behind { self.root.ahead(start.path.iter().copied()) } else { Stake::default() };
        let urgency = stake.urgency().cloned();
        if let Some(urgency) = &urgency {
            self.host.lends(urgency);
        }
        let call = Call { function: &function, input, deadline, joins, follows: false, tells: tells.clone(), urgency };
        let begun = match Begun::begin(self.runner, call) {
            Ok(begun) => begun,
            Err(failure) => {
                self.runs.pipeline.give_up(column);
                if function::has_no_room(&failure) {
                    return self.no_room(run, start);
                }
                let failure = of_function(asked.name, &failure);
                return self.ended.push((run, Err(failure)));
            }
        };
        let (handle, registration) = AbortHandle::new_pair();
        let end = Abortable::new(begun.replied(), registration);
        self.waiting.push(Box::pin(async move { end.await.map_or(Happened::Other, |replied| Happened::Replied(run, replied)) }));
        let rests = tells.map_or(Rests::Unknown, Rests::Told);
        let Start { path, task, behind, pause } = start;
        let more = More { path, began_ms, pause, place: Some(place) };
        self.runs.of.insert(
            run,
            UnderWay { column, transaction, task, began, asked: None, took: None, behind, rests, handle, stake, more },
        );
    }

    fn drop_run(&mut self, run: RunId) {
        if let Some((handle, _)) = self.turns.remove(&run) {
            handle.abort();
        }
        self.runs.drop_run(run, &self.knowledge);
    }

    /// What happens next; for ever where nothing can.
    pub(in crate::workflow) async fn next(&mut self) -> Happened<H::Place> {
        let (waiting, held_until) = (&mut self.waiting, self.runs.held_until);
        tokio::select! {
            biased;
            Some(happened) = waiting.next(), if !waiting.is_empty() => happened,
            () = self.squashed.notified() => Happened::Other,
            () = async { match held_until { Some(until) => tokio::time::sleep_until(until.into()).await, None => pending().await } } => {
                Happened::Other
            }
        }
    }

    /// Takes in what has happened.
    pub(in crate::workflow) fn happened(&mut self, happened: Happened<H::Place>) {
        match happened {
            Happened::Turn(run, place) => {
                if let Some(((_, start), place)) = self.turns.remove(&run).zip(place) {
                    self.launch(run, start, place);
                    self.fetch();
                }
            }
            Happened::Replied(run, replied) => self.replied(run, replied),
            Happened::Other => {}
        }
        self.take_in();
    }

    /// A run has ended.
    fn replied(&mut self, run: RunId, (replied, worked): Answered) {
        let Some(under_way) = self.runs.of.get_mut(&run) else { return };
        (under_way.took, under_way.more.place) = (Some(Took { all: under_way.began.elapsed(), worked }), None);
        under_way.stake.is_over();
        if replied.is_err() {
            // One that was killed has not said so itself.
            let _ = under_way.transaction.settle(false, None);
        }
        let is_asked = self.plan.is_asked(run);
        let is_later = |failure: &_| function::has_no_room(failure) || (!is_asked && function::may_run_later(failure));
        let has_no_room = replied.as_ref().is_err_and(is_later);
        let answer = match Asked::of(&under_way.task) {
            Some(Ok(asked)) => asked.output(replied),
            Some(Err(failure)) => Err(failure),
            None => return,
        };
        if has_no_room || (answer.is_err() && !self.host.may_begin()) {
            // It has perhaps failed since the server stops: it runs again when there is a server.
            let Some(UnderWay { column, task, behind, more: More { path, pause, .. }, .. }) = self.runs.of.remove(&run) else {
                return;
            };
            self.runs.pipeline.give_up(column);
            if has_no_room {
                self.no_room(run, Start { path, task, behind, pause });
            }
            return;
        }
        self.step(|plan, outside| plan.ended(run, answer, outside));
    }

    /// Takes in what is there already.
    fn take_in(&mut self) {
        loop {
            if let Some((run, answer)) = self.ended.pop() {
                self.step(|plan, outside| plan.ended(run, answer, outside));
            } else if let Some(run) = self.replaced.pop() {
                self.step(|plan, outside| plan.takes_part_no_more(run, outside));
            } else if let Some((run, has_later)) = self.refused.pop() {
                self.plan.story().refused(run);
                if has_later && !self.is_committing && self.plan.is_asked(run) {
                    self.step(|plan, outside| plan.make_room(run, outside));
                } else {
                    self.plan.refused(run);
                }
            } else if !self.take_squashed() {
                return;
            }
        }
    }

    /// Has the runs of squashed columns begun again. Whether there were any.
    fn take_squashed(&mut self) -> bool {
        let runs = self.runs.take_squashed(self.plan.story(), &mut self.knowledge);
        for run in &runs {
            self.step(|plan, outside| plan.squashed(*run, outside));
        }
        !runs.is_empty()
    }

    /// The first runs that can be committed now, if there are any.
    pub(in crate::workflow) fn ready(&mut self) -> Option<Ready> {
        loop {
            self.take_in();
            if self.is_stuck() || self.runs.holds_back(&self.knowledge) {
                return None;
            }
            let ids = self.step(|plan, outside| plan.group(outside));
            let without = ids.iter().take_while(|run| !self.runs.of.contains_key(run)).count();
            if without > 0 {
                return self.made_ready(ids[..without].to_vec(), None);
            }
            let columns = self.runs.columns(&ids);
            if columns.is_empty() {
                return None;
            }
            let group = self.runs.pipeline.settle(&columns);
            self.plan.story().decided(&group);
            match group {
                Group::Commit { columns, commit } => {
                    let ids = self.runs.named(&columns);
                    return self.made_ready(ids, Some(commit));
                }
                Group::Again | Group::Stale { .. } => self.not_committed(),
                _ => {
                    self.not_committed();
                    return None;
                }
            }
        }
    }

    fn made_ready(&mut self, ids: Vec<RunId>, commit: Option<Commit>) -> Option<Ready> {
        self.runs.is_committing();
        self.is_committing = true;
        let ended = |run: &RunId| {
            let (path, task, answer) = self.plan.come_to(*run)?;
            let began_ms = self.runs.of.get(run).map_or_else(now_ms, |run| run.more.began_ms);
            Some(Ended { path: path.clone(), task: task.clone(), answer: answer.clone(), began_ms })
        };
        let runs = ids.iter().map_while(ended).collect();
        Some(Ready { runs, ids, commit })
    }

    /// A group that was [ready](Ahead::ready) is not written.
    pub(in crate::workflow) fn not_committed(&mut self) {
        self.is_committing = false;
        self.step(|plan, outside| plan.group_failed(outside));
    }

    /// That is what became of its commit, which took so long.
    pub(in crate::workflow) fn came(&mut self, ready: &Ready, outcome: Result<kv::Outcome, KvError>, time: Duration) -> Came {
        if ready.commit.is_none() {
            return match outcome {
                Ok(_) => Came::Committed { calls: Vec::new(), findings: Vec::new() },
                Err(_) => Came::Refused,
            };
        }
        self.knowledge.commit_took(time);
        let group = self.runs.pipeline.came(outcome);
        self.plan.story().decided(&group);
        match group {
            Group::Committed { calls, findings, .. } => {
                self.conflicts = 0;
                return Came::Committed { calls, findings };
            }
            Group::Failed { columns, error } => {
                self.not_committed();
                for run in self.runs.named(&columns) {
                    self.runs.of.remove(&run);
                    self.ended.push((run, Err(of_store(&error))));
                }
            }
            Group::Stale { .. } => {
                self.conflicts += 1;
                self.not_committed();
            }
            Group::Again | Group::Commit { .. } | Group::Nothing => self.not_committed(),
        }
        Came::Not
    }

    /// A group is written, and the base stands there: what its runs were is learned, and seen outside.
    pub(in crate::workflow) fn committed(&mut self, ready: &Ready, findings: Vec<Findings>, standing: Standing) {
        self.is_committing = false;
        self.is_paused = standing.base.is_paused();
        self.plan.tick();
        self.plan.story().committed(&ready.ids);
        let learned = self.runs.committed(&ready.ids, findings, &mut self.knowledge);
        let answers = self.step(|plan, outside| plan.committed_at(ready.ids.len(), standing, outside));
        learn(answers, learned, &self.knowledge);
        self.knowledge.went(self.plan.trail());
    }
}

impl<R: Runner, H: Host> Drop for Ahead<'_, R, H> {
    fn drop(&mut self) {
        self.knowledge.ended(self.runs.pipeline.reads_spared());
    }
}

/// The function that a task calls, and how.
fn find<'t>(workflow: &Workflow, task: &'t StartTask) -> Result<(Arc<Function>, Asked<'t>), Failure> {
    let asked = Asked::of(task).unwrap_or_else(|| Err(failed("States.Runtime", "the task calls no function")))?;
    Ok((asked.find(workflow)?, asked))
}
