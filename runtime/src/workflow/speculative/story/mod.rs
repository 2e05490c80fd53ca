//! What an execution that goes ahead of itself did, for operators: `sledge workflow explain`.
//!
//! ```text
//!   plan, driver --asked, begun, guessed, ended, dropped, committed--> Story --at the end--> Stories (of a tenant) --when asked for--> Explained
//! ```
//!
//! A story is told while the execution goes on, and decides nothing. It is pure: it is told the time. What it is told is kept as numbers and shared names; nothing is made into text before an operator asks.
//!
//! Invariants:
//! - A run has one row, from when it is asked for. It is over once: what it was dropped for first is what is said of it.
//! - A story has [`ROWS_MAX`] runs, and as many commits and guessed ways, however long the execution is. Those beyond are counted.

pub mod explained;
mod kept;
mod reason;
mod recorded;
mod sequence;
mod tale;
#[cfg(test)]
pub(super) mod tests;

use std::sync::Arc;
use std::time::Duration;

use sledge_workflow::definition::{Definition, Kind, Resource, StateIndex};
use sledge_workflow::machine::StartTask;

use super::plan::{Answer, Path, RunId, Told};
use crate::kv::BucketKey;
use crate::speculate::paths::{Path as WayPath, Target, Trail};
use crate::txn::pipeline::{Cause, Group};
use crate::workflow::function::Asked;

pub use self::kept::Stories;
pub(super) use self::recorded::Recorded;

use self::explained::{Guess, Undone};

/// Runs of a story, its commits, and its guessed ways, each.
const ROWS_MAX: usize = 256;
/// Bytes of a name that are kept: clients have a say in names of errors and of functions.
const NAME_BYTES_MAX: usize = 128;

/// Microseconds since the execution began.
type At = u32;

/// What an execution did so far.
#[derive(Debug, Default)]
pub(super) struct Story {
    now: At,
    rows: Vec<Row>,
    commits: Vec<Commit>,
    ways: Vec<Way>,
    /// The commit that is under way: since when, and of how many runs.
    under_way: Option<(At, u32)>,
    /// What has turned out to be otherwise at this moment.
    blamed: Option<Blamed>,
    /// Runs for which there was no room here.
    left_out: u32,
}

/// A run.
#[derive(Debug)]
struct Row {
    run: RunId,
    path: Path,
    state: Arc<str>,
    resource: Arc<Resource>,
    /// The function that is called, where the resource does not say it.
    function: Option<Box<str>>,
    asked: At,
    begun: Option<At>,
    /// Whether all before it was committed when it began.
    was_due: bool,
    /// Whether a known answer stands for it.
    is_skipped: bool,
    /// Whether it is carried out for good.
    is_for_good: bool,
    /// The state before it, if the run of that had not ended, and that run.
    behind: Option<(Arc<str>, Option<RunId>)>,
    refused: u32,
    guess: Option<Guessed>,
    ended: Option<At>,
    /// The error's name, if it has failed.
    error: Option<Arc<str>>,
    over: Option<(At, Over)>,
}

/// What the front was told of a run that had not ended.
#[derive(Debug)]
struct Guessed {
    what: Guess,
    at: At,
    is_right: Option<bool>,
}

/// What has become of a run.
#[derive(Debug)]
enum Over {
    /// It counts. The commit, if something was to be committed.
    Committed(Option<u32>),
    Left(Why),
}

/// Why a run does not count.
#[derive(Debug)]
pub(super) enum Why {
    /// It is asked for with another input.
    OtherInput(Option<Blamed>),
    /// It is not asked for any more.
    NotAsked(Option<Blamed>),
    /// What it has read is otherwise. The state of the run that has made it so, if a run of the execution has.
    Squashed(Cause, Option<Arc<str>>),
    /// A run before it needed the room.
    MadeRoom,
}

/// What was guessed wrong, or has failed.
#[derive(Clone, Debug)]
pub(super) enum Blamed {
    /// The answer of that state.
    Answer(Arc<str>),
    /// The way of that Choice.
    Way(Arc<str>),
    /// That state has failed, which was not expected.
    Failure(Arc<str>),
}

/// A commit that was asked of the store.
#[derive(Debug)]
struct Commit {
    began: At,
    ended: At,
    runs: u32,
    undone: Option<(Undone, Option<BucketKey>)>,
}

/// A guess of the way of a Choice.
#[derive(Debug)]
struct Way {
    choice: StateIndex,
    path: WayPath,
    state: Arc<str>,
    at: At,
    guessed: (Target, Option<Arc<str>>),
    went: Option<(Target, Option<Arc<str>>)>,
    /// The execution has gone there.
    is_certain: bool,
}

impl Story {
    /// So long the execution has taken. What is told next happens then.
    pub(super) fn at(&mut self, time: Duration) {
        self.now = At::try_from(time.as_micros()).unwrap_or(At::MAX);
        self.blamed = None;
    }

    /// Whether there is nothing to tell.
    const fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// A task is asked for, which becomes that run.
    pub(super) fn asked(&mut self, run: RunId, path: &Path, task: &StartTask) {
        if self.rows.len() >= ROWS_MAX {
            return;
        }
        let function = match &*task.resource {
            Resource::LambdaInvoke { .. } => Asked::of(task).and_then(Result::ok).map(|asked| cut(asked.name).into()),
            _ => None,
        };
        self.rows.push(Row {
            run,
            path: path.clone(),
            state: Arc::clone(&task.state),
            resource: Arc::clone(&task.resource),
            function,
            asked: self.now,
            begun: None,
            was_due: false,
            is_skipped: false,
            is_for_good: false,
            behind: None,
            refused: 0,
            guess: None,
            ended: None,
            error: None,
            over: None,
        });
    }

    /// A run is asked for again, perhaps by another state that asks for the same.
    pub(super) fn asked_by(&mut self, run: RunId, state: &Arc<str>) {
        if let Some(row) = self.row(run)
            && row.state != *state
        {
            row.state = Arc::clone(state);
        }
    }

    /// A run begins. `is_due`: all before it is committed. `behind`: the state before it, if the run of that has not ended.
    pub(super) fn begun(&mut self, run: RunId, is_due: bool, behind: Option<&Arc<str>>) {
        let now = self.now;
        let Some(at) = self.find(run) else {
            self.left_out = self.left_out.saturating_add(1);
            return;
        };
        let behind = behind.map(|state| (Arc::clone(state), self.last_before(at, state)));
        let row = &mut self.rows[at];
        (row.begun, row.was_due, row.behind) = (Some(now), is_due, behind);
    }

    /// The run of that state that is the last before a row and has not ended.
    fn last_before(&self, at: usize, state: &str) -> Option<RunId> {
        let path = &self.rows[at].path;
        let before =
            self.rows.iter().filter(|row| row.over.is_none() && row.ended.is_none() && *row.state == *state && row.path < *path);
        before.max_by(|one, other| one.path.cmp(&other.path)).map(|row| row.run)
    }

    /// A known answer stands for a run that has begun.
    pub(super) fn skipped(&mut self, run: RunId) {
        if let Some(row) = self.row(run) {
            row.is_skipped = true;
        }
    }

    /// A task is carried out for good.
    pub(super) fn carried_out(&mut self, run: RunId) {
        self.begun(run, true, None);
        if let Some(row) = self.row(run) {
            row.is_for_good = true;
        }
    }

    /// There was no room for a run: it is begun again later.
    pub(super) fn refused(&mut self, run: RunId) {
        if let Some(row) = self.row(run) {
            (row.begun, row.refused) = (None, row.refused.saturating_add(1));
        }
    }

    /// The front is told that of a run that has not ended.
    pub(super) fn told(&mut self, run: RunId, told: &Told) {
        let what = match told {
            Told::Guess(Ok(_)) => Guess::Answer,
            Told::Guess(Err(_)) => Guess::Failure,
            Told::Hole => Guess::Shape,
            Told::Nothing | Told::Answer => return,
        };
        let at = self.now;
        if let Some(row) = self.row(run)
            && !row.guess.as_ref().is_some_and(|guess| guess.what == what)
        {
            row.guess = Some(Guessed { what, at, is_right: None });
        }
    }

    /// A run has ended so. `told`: what the front had been told of it.
    pub(super) fn ended(&mut self, run: RunId, answer: &Answer, told: &Told) {
        let now = self.now;
        let Some(row) = self.row(run) else { return };
        row.ended.get_or_insert(now);
        row.error = answer.as_ref().err().map(|failure| failure.error.as_ref().map_or_else(|| "".into(), short));
        let is_right = match told {
            Told::Guess(guess) => guess == answer,
            // It is guessed that there is an output.
            Told::Hole => answer.is_ok(),
            Told::Nothing | Told::Answer => return,
        };
        if let Some(guess) = &mut row.guess {
            guess.is_right = Some(is_right);
        }
        if !is_right {
            let state = Arc::clone(&row.state);
            let fails = answer.is_err();
            self.blamed = Some(if fails { Blamed::Failure(state) } else { Blamed::Answer(state) });
        }
    }

    /// A run is dropped: another input is asked for, or nothing any more.
    pub(super) fn dropped(&mut self, run: RunId, why: fn(Option<Blamed>) -> Why) {
        let why = why(self.blamed.clone());
        self.leave(run, why);
    }

    /// A run is dropped since what it has read is otherwise, as the pipeline says. `by`: the state of the run that has made it so.
    pub(super) fn squashed(&mut self, run: RunId, cause: Cause, by: Option<&Arc<str>>) {
        self.leave(run, Why::Squashed(cause, by.cloned()));
    }

    /// A run is dropped, and asked for again as another one, at the same place. Where nothing was said of it yet, it has made room.
    pub(super) fn again(&mut self, run: RunId, other: RunId, path: &Path, task: &StartTask) {
        self.leave(run, Why::MadeRoom);
        self.asked(other, path, task);
    }

    fn leave(&mut self, run: RunId, why: Why) {
        let now = self.now;
        let Some(at) = self.find(run) else { return };
        if self.rows[at].begun.is_none() {
            // It was asked for and not begun: there is nothing to say of it.
            self.rows.remove(at);
        } else {
            self.rows[at].over.get_or_insert((now, Over::Left(why)));
        }
    }

    /// What the pipeline has decided.
    pub(super) fn decided(&mut self, group: &Group) {
        let (undone, key) = match group {
            Group::Commit { columns, .. } => {
                self.under_way = Some((self.now, u32::try_from(columns.len()).unwrap_or(u32::MAX)));
                return;
            }
            Group::Committed { .. } | Group::Nothing => return,
            Group::Stale { key, .. } => (Undone::Conflict, key.clone()),
            Group::Again => (Undone::Again, None),
            Group::Failed { .. } => (Undone::Failed, None),
        };
        self.commit_ended(Some((undone, key)));
    }

    /// The commit that is under way is over. Its number, if there was one.
    fn commit_ended(&mut self, undone: Option<(Undone, Option<BucketKey>)>) -> Option<u32> {
        let (began, runs) = self.under_way.take()?;
        if self.commits.len() >= ROWS_MAX {
            return None;
        }
        self.commits.push(Commit { began, ended: self.now, runs, undone });
        u32::try_from(self.commits.len() - 1).ok()
    }

    /// These runs count now.
    pub(super) fn committed(&mut self, runs: &[RunId]) {
        let (now, commit) = (self.now, self.commit_ended(None));
        for run in runs {
            if let Some(row) = self.row(*run) {
                row.over.get_or_insert((now, Over::Committed(commit)));
            }
        }
    }

    /// A Choice has gone that way in the front: by its rules, or by a guess.
    pub(super) fn went_ahead(
        &mut self,
        definition: &Definition,
        (choice, path): (StateIndex, WayPath),
        target: Target,
        is_guess: bool,
    ) {
        if !is_guess {
            return self.went(definition, (choice, path), target, false);
        }
        let guessed = (target, led(definition, choice, target));
        let has_room = self.ways.len() < ROWS_MAX;
        match self.ways.iter_mut().find(|way| way.choice == choice && way.path == path) {
            Some(way) if way.guessed.0 == target => {}
            Some(way) => (way.guessed, way.went, way.at) = (guessed, None, self.now),
            None if has_room => {
                let state = definition.state(choice).map_or_else(|| "".into(), |state| Arc::clone(&state.name));
                self.ways.push(Way { choice, path, state, at: self.now, guessed, went: None, is_certain: false });
            }
            None => {}
        }
    }

    /// The base has gone these ways.
    pub(super) fn went_really(&mut self, definition: &Definition, trail: &Trail) {
        if self.ways.iter().all(|way| way.is_certain) {
            return;
        }
        for (choice, path, target) in trail.ways() {
            self.went(definition, (choice, path), target, true);
        }
    }

    fn went(&mut self, definition: &Definition, (choice, path): (StateIndex, WayPath), target: Target, is_certain: bool) {
        let Some(way) = self.ways.iter_mut().find(|way| way.choice == choice && way.path == path) else { return };
        way.is_certain |= is_certain;
        if way.went.as_ref().is_some_and(|(went, _)| *went == target) {
            return;
        }
        way.went = Some((target, led(definition, choice, target)));
        if way.guessed.0 != target {
            self.blamed = Some(Blamed::Way(Arc::clone(&way.state)));
        }
    }

    fn find(&self, run: RunId) -> Option<usize> {
        // The last ones are those that are under way.
        self.rows.iter().rposition(|row| row.run == run)
    }

    fn row(&mut self, run: RunId) -> Option<&mut Row> {
        self.find(run).map(|at| &mut self.rows[at])
    }

    /// What it takes up.
    fn bytes(&self) -> usize {
        let row = |row: &Row| {
            let error = row.error.as_ref().map_or(0, |error| error.len());
            let key = if let Some((_, Over::Left(Why::Squashed(cause, _)))) = &row.over { cause.bytes() } else { 0 };
            row.path.capacity() * size_of::<u32>() + row.function.as_ref().map_or(0, |name| name.len()) + error + key
        };
        let key = |commit: &Commit| commit.undone.as_ref().and_then(|(_, key)| key.as_ref()).map_or(0, BucketKey::bytes);
        let lists = self.rows.capacity() * size_of::<Row>()
            + self.commits.capacity() * size_of::<Commit>()
            + self.ways.capacity() * size_of::<Way>();
        lists + self.rows.iter().map(row).sum::<usize>() + self.commits.iter().map(key).sum::<usize>()
    }
}

/// A name, as far as it is kept.
fn short(name: &Arc<str>) -> Arc<str> {
    if name.len() <= NAME_BYTES_MAX { Arc::clone(name) } else { cut(name).into() }
}

fn cut(name: &str) -> &str {
    &name[..name.floor_char_boundary(NAME_BYTES_MAX)]
}

/// The state to which a Choice leads on that way.
fn led(definition: &Definition, choice: StateIndex, target: Target) -> Option<Arc<str>> {
    let Kind::Choice { rules, default } = &definition.state(choice)?.kind else { return None };
    let next = match target {
        Target::Rule(rule) => rules.get(rule as usize)?.next,
        Target::Default => (*default)?,
        Target::Next | Target::Catch(_) => return None,
    };
    definition.state(next).map(|state| Arc::clone(&state.name))
}
