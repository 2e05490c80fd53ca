//! The runs of an execution that were begun, and are neither committed nor dropped: each with its column, and with what is learned of it when it is over. What both drivers do with them is here; they differ
//! in how a run begins and in what a commit is.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::AbortHandle;
use sledge_workflow::definition::StateIndex;
use sledge_workflow::machine::StartTask;
use tokio::sync::Notify;

use super::oracle::Knowledge;
use super::plan::{Answer, RunId};
use super::story::Story;
use crate::invoke::function::Function;
use crate::invoke::urgency::Stake;
use crate::kv::{BucketKey, Space};
use crate::memo::callees::Callees;
use crate::speculate::skips::{Grounds, Skip};
use crate::txn::pipeline::{Basis, Cause, ColumnId, Dewey, Findings, Pipeline, Squashed};
use crate::txn::{Isolation, Transaction, Verdict};

/// How it is known what a run rests on.
pub(super) enum Rests {
    /// It is not asked for.
    Unknown,
    /// Its function tells, and it does not run again.
    Told(Arc<Callees>),
    /// It stands for an earlier run, of a version with that number.
    Skipped(Arc<Grounds>, u64),
}

/// How long a run took.
#[derive(Clone, Copy, Default)]
pub(super) struct Took {
    /// From its start to its answer.
    pub(super) all: Duration,
    /// For how long of that it ran, or waited for something else than its turn.
    pub(super) worked: Duration,
}

/// A run that was begun, and is neither committed nor dropped.
pub(super) struct UnderWay<T> {
    pub(super) column: ColumnId,
    pub(super) transaction: Arc<Transaction>,
    pub(super) task: StartTask,
    pub(super) began: Instant,
    /// Since when the base waits for it, if it does.
    pub(super) asked: Option<Instant>,
    /// How long it took, when it has ended.
    pub(super) took: Option<Took>,
    /// The state before it, if the run of that had not ended: the guess that began it.
    pub(super) behind: Option<StateIndex>,
    pub(super) rests: Rests,
    /// Gives it up.
    pub(super) handle: AbortHandle,
    /// Asks for it, or has its worker end it at once.
    pub(super) stake: Stake,
    /// What its driver keeps of it.
    pub(super) more: T,
}

/// All of them.
pub(super) struct Runs<T> {
    pub(super) pipeline: Arc<Pipeline>,
    pub(super) of: HashMap<RunId, UnderWay<T>>,
    /// Whether what runs are expected to read is fetched when they begin.
    fetches: bool,
    /// Since when there is something to commit that waits for more.
    held_since: Option<Instant>,
    /// When that is committed without more.
    pub(super) held_until: Option<Instant>,
}

/// A column for a run.
pub(super) struct Opened {
    pub(super) column: ColumnId,
    pub(super) transaction: Arc<Transaction>,
    /// What stands for the run, so that it need not be made.
    pub(super) skip: Option<Skip>,
}

/// What is learned of a run beside its answer: what that rests on, with the number of its function's version, and the keys that it has read.
pub(super) type Learned = (Option<(u64, Arc<Grounds>)>, Vec<BucketKey>);

impl<T> Runs<T> {
    /// None yet, on that store. `squashed` is notified when there are columns to [take](Runs::take_squashed).
    pub(super) fn new(space: Option<Space>, squashed: Arc<Notify>, knowledge: &Knowledge<'_>) -> Runs<T> {
        let pipeline = Pipeline::new(space, squashed);
        if knowledge.skips() {
            pipeline.keep_bases();
        }
        if let Some(stalls) = knowledge.stalls() {
            pipeline.stall_by(stalls);
        }
        let fetches = knowledge.fetches() && pipeline.fetches();
        if fetches {
            pipeline.expect_values(knowledge.values());
        }
        Runs { pipeline, of: HashMap::new(), fetches, held_since: None, held_until: None }
    }

    /// Opens a column for a run of a task's function at a place, and recalls what stands for it, if that is known. None where the pipeline has no room.
    pub(super) fn open(
        &self,
        path: &[u32],
        task: &StartTask,
        (function, isolation): (&Function, &Isolation),
        knowledge: &Knowledge<'_>,
    ) -> Option<Opened> {
        let place = Dewey::new(&path.iter().map(|step| u64::from(*step)).collect::<Vec<_>>());
        let (column, transaction) = self.pipeline.open(place, isolation)?;
        if let Some(state) = knowledge.state(&task.state) {
            self.pipeline.is_of(column, state);
        }
        let skip = knowledge.skip(task, function).filter(|skip| self.pipeline.recall(column, &skip.grounds.basis));
        if skip.is_none()
            && self.fetches
            && let Some(keys) = knowledge.reads(task, function)
        {
            self.pipeline.expect(&keys);
        }
        Some(Opened { column, transaction, skip })
    }

    /// Reads what runs that have begun are expected to read; none if that is nothing.
    pub(super) fn fetch(&self) -> Option<impl Future<Output = ()> + Send + use<T>> {
        if self.fetches { self.pipeline.fetch() } else { None }
    }

    /// The base waits for that run: it stands behind others no more.
    pub(super) fn ask(&mut self, run: RunId) {
        if let Some(run) = self.of.get_mut(&run) {
            run.stake.ask();
            run.asked.get_or_insert_with(Instant::now);
        }
    }

    /// The runs with these columns.
    pub(super) fn named(&self, columns: &[ColumnId]) -> Vec<RunId> {
        let of = |column: &ColumnId| self.of.iter().find(|(_, run)| run.column == *column).map(|(run, _)| *run);
        columns.iter().filter_map(of).collect()
    }

    /// The columns of the first of these runs, as far as they have some.
    pub(super) fn columns(&self, runs: &[RunId]) -> Vec<ColumnId> {
        runs.iter().map_while(|run| self.of.get(run)).map(|run| run.column).collect()
    }

    /// A run is not wanted.
    pub(super) fn drop_run(&mut self, run: RunId, knowledge: &Knowledge<'_>) {
        if let Some(UnderWay { column, handle, behind, began, took, rests, .. }) = self.of.remove(&run) {
            handle.abort();
            self.pipeline.give_up(column);
            if let Some(behind) = behind.filter(|_| !matches!(rests, Rests::Skipped(..))) {
                knowledge.dropped(behind, took.map_or_else(|| began.elapsed(), |took| took.all));
            }
        }
    }

    /// The runs of squashed columns, which are to begin again.
    pub(super) fn take_squashed(&mut self, story: &mut Story, knowledge: &mut Knowledge<'_>) -> Vec<RunId> {
        let squashed = self.pipeline.take_squashed();
        let runs = self.named(&squashed.iter().map(|squashed| squashed.column).collect::<Vec<_>>());
        let is_conflict = squashed.iter().any(|squashed| matches!(squashed.cause, Cause::Changed(_)));
        for Squashed { column, cause } in squashed {
            let find = |column: ColumnId| self.of.iter().find(|(_, run)| run.column == column);
            let by = cause.by().and_then(find).map(|(_, run)| &run.task.state);
            if let Some((run, under_way)) = find(column) {
                under_way.transaction.squashed(&cause);
                story.squashed(*run, cause, by);
            }
        }
        if is_conflict {
            let ran = runs.iter().filter_map(|run| self.of.get(run)).map(|run| run.began.elapsed()).max();
            knowledge.conflicted(ran.unwrap_or_default());
        }
        for run in &runs {
            let Some(run) = self.of.get_mut(run) else { continue };
            // That it was begun ahead was not wrong.
            run.behind = None;
            if let Rests::Skipped(_, version) = run.rests {
                knowledge.skipped_wrongly(&run.task, version);
            } else {
                knowledge.runs_again(&run.task);
            }
        }
        runs
    }

    /// Whether runs are about to end that would be committed together with what has ended: two commits one after the other take twice as long. For as long as one commit takes it is waited for them, so that
    /// an execution loses no more by that than it would gain.
    pub(super) fn holds_back(&mut self, knowledge: &Knowledge<'_>) -> bool {
        self.held_until = None;
        let mut running = self.of.values().filter(|run| run.took.is_none()).peekable();
        if running.peek().is_none() || self.of.values().all(|run| run.took.is_none()) {
            self.held_since = None;
            return false;
        }
        let patience = knowledge.patience(running.map(|run| (&run.task, run.began.elapsed())));
        let Some(patience) = patience else { return false };
        let now = Instant::now();
        let until = *self.held_since.get_or_insert(now) + patience;
        self.held_until = Some(until).filter(|until| now < *until);
        self.held_until.is_some()
    }

    /// A commit is on its way: what ends from now on is held back anew.
    pub(super) const fn is_committing(&mut self) {
        self.held_since = None;
    }

    /// These runs are committed, so what they have done is seen outside; that is what the columns have left of those that had some. What is learned of each.
    pub(super) fn committed(
        &mut self,
        runs: &[RunId],
        mut findings: Vec<Findings>,
        knowledge: &mut Knowledge<'_>,
    ) -> Vec<(RunId, Learned)> {
        let learn = |run: &RunId| {
            let UnderWay { column, transaction, task, began, asked, took, behind, rests, .. } = self.of.remove(run)?;
            let found = findings.iter().position(|findings| findings.column == column).map(|at| findings.swap_remove(at));
            let (basis, reads) = found.map_or((None, Vec::new()), |Findings { basis, reads, .. }| (basis, reads));
            if let Some(held) = transaction.held() {
                held.release();
            }
            transaction.decided(Verdict::Committed);
            let grounds = match (rests, basis) {
                (Rests::Skipped(old, version), basis) => {
                    knowledge.skipped(&task, version);
                    // What it has read it has read now.
                    basis.map(|basis| (version, Arc::new(Grounds { basis, callees: old.callees.clone() })))
                }
                (rests, basis) => {
                    if let Some(took) = took {
                        let waited = asked.map_or(Duration::ZERO, |asked| (began + took.all).saturating_duration_since(asked));
                        knowledge.committed(&task, (began, took), behind.map(|behind| (behind, waited)));
                    }
                    grounds_of(rests, basis)
                }
            };
            Some((*run, (grounds, reads)))
        };
        runs.iter().filter_map(learn).collect()
    }
}

/// Learns what committed runs have answered.
pub(super) fn learn(answers: Vec<(RunId, StartTask, Answer)>, mut learned: Vec<(RunId, Learned)>, knowledge: &Knowledge<'_>) {
    for (run, task, answer) in answers {
        // One that had no column has left nothing but its answer.
        let of = learned.iter().position(|(of, _)| *of == run).map(|at| learned.swap_remove(at));
        let (grounds, reads) = of.map(|(_, learned)| learned).unwrap_or_default();
        knowledge.answered(&task, answer, grounds, reads);
    }
}

/// What a run rests on that is committed, with the number of its function's version; none where another one would not be the same.
fn grounds_of(rests: Rests, basis: Option<Basis>) -> Option<(u64, Arc<Grounds>)> {
    let (Rests::Told(told), Some(basis)) = (rests, basis) else { return None };
    Knowledge::grounds(basis, told.take().ok()?.pop()?)
}
