//! A story as operators get it: the answer of the admin API, which the command draws.
//!
//! Times are microseconds since the execution began. Runs are in the order in which everything would be done one after the other; they name each other, and their commits, by their places in the lists.

use serde::{Deserialize, Serialize};

use crate::config::SpeculationLevel;

/// What an execution that went ahead of itself did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explained {
    /// Its workflow.
    pub workflow: String,
    /// Its name.
    pub execution: String,
    /// Its ARN.
    pub arn: String,
    /// `speculation` of the workflow.
    pub speculation: SpeculationLevel,
    /// When it began, in milliseconds since 1970.
    pub started_ms: i64,
    /// For how long it ran.
    pub took_us: u64,
    /// How long the runs that count would have taken one after the other, each with a commit of its own; branches and iterations at the same time.
    pub in_sequence_us: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// The error's name, if it has failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What was run.
    pub runs: Vec<ExplainedRun>,
    /// What was asked of the store.
    pub commits: Vec<ExplainedCommit>,
    /// The ways of Choices that were guessed.
    pub ways: Vec<ExplainedWay>,
    /// Further runs, of which nothing is kept.
    pub left_out: u32,
}

/// How an execution ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// With an output.
    Succeeded,
    /// With an error.
    Failed,
    /// It took too long.
    TimedOut,
    /// The client has gone, or the server stops.
    GivenUp,
    /// It is durable, and has not ended: it has left memory, or goes one step after the other from there.
    Rests,
}

/// A run of a state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExplainedRun {
    /// Where it is in the order of everything: how many states each machine has entered, the numbers of branches and iterations between them, and the attempt.
    pub path: Vec<u32>,
    /// Its state.
    pub state: String,
    /// The function, if it calls one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// When it was asked for with that input. It began later where there was no room, or enough ran ahead.
    pub asked_us: u32,
    /// When it began.
    pub begun_us: u32,
    /// When it had ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_us: Option<u32>,
    /// When it was committed or dropped.
    pub over_us: u32,
    /// What has become of it.
    pub result: RunResult,
    /// The commit with which it was committed; none where nothing of it was to be committed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<u32>,
    /// The state that had not ended when it began: the guess of what that comes to has begun it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behind: Option<String>,
    /// The run of that state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behind_run: Option<u32>,
    /// Why it does not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// What was guessed of it before it had ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guess: Option<ExplainedGuess>,
    /// How often there was no room for it before.
    pub refused: u32,
    /// The error's name, if it has failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// What has become of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunResult {
    /// It began when all before it was committed, and counts.
    Committed,
    /// It began ahead of that, and counts.
    Adopted,
    /// Its function did not run: its answer was known, and what that rests on is unchanged.
    Skipped,
    /// It began when all before it was committed, and could not be taken back.
    CarriedOut,
    /// It was not wanted.
    Dropped,
    /// What it had read is otherwise, or it had to make room: it has run again.
    Squashed,
    /// The execution ended without it.
    Left,
}

/// Why a run does not count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// In a word, for programs.
    pub code: String,
    /// In a sentence.
    pub text: String,
    /// The state that was guessed wrong, has failed, or has written what was read too early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// The key that was read too early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// What can be guessed of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Guess {
    /// What it answers.
    Answer,
    /// How it fails.
    Failure,
    /// That it does not fail: what comes next that does not need the answer begins.
    Shape,
}

/// A guess of what a run comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExplainedGuess {
    /// What was guessed.
    pub what: Guess,
    /// When.
    pub at_us: u32,
    /// Whether it was right; none where that was not found out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub right: Option<bool>,
}

/// A commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExplainedCommit {
    /// When the store was asked.
    pub began_us: u32,
    /// When it had answered.
    pub ended_us: u32,
    /// Of how many runs.
    pub runs: u32,
    /// Why it was not made, if it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undone: Option<Undone>,
    /// The key that something else had changed, if that is why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// Why a commit was not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Undone {
    /// Something else has changed what the runs had read.
    Conflict,
    /// It was made again with fewer runs, or after those behind it were.
    Again,
    /// The store has failed, or has not said what became of it.
    Failed,
}

impl Undone {
    /// In a word, as in JSON.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Undone::Conflict => "conflict",
            Undone::Again => "again",
            Undone::Failed => "failed",
        }
    }
}

/// A way of a Choice that was guessed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExplainedWay {
    /// The Choice.
    pub state: String,
    /// When.
    pub at_us: u32,
    /// The state to which it was guessed to lead.
    pub guessed: String,
    /// The state to which it has led; none where the execution did not come there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub went: Option<String>,
    /// Whether it was right, if the execution came there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub right: Option<bool>,
}

/// The executions of a workflow of which there are stories.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// The last one first.
    pub executions: Vec<Listed>,
}

/// An execution in that list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed {
    /// Its name.
    pub execution: String,
    /// When it began, in milliseconds since 1970.
    pub started_ms: i64,
    /// For how long it ran.
    pub took_us: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// How many runs began.
    pub runs: usize,
    /// How many of them began ahead, and count.
    pub adopted: usize,
    /// How many were not wanted.
    pub dropped: usize,
    /// How many have run again.
    pub squashed: usize,
}

impl RunResult {
    /// In a word, as in JSON.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            RunResult::Committed => "committed",
            RunResult::Adopted => "adopted",
            RunResult::Skipped => "skipped",
            RunResult::CarriedOut => "carried_out",
            RunResult::Dropped => "dropped",
            RunResult::Squashed => "squashed",
            RunResult::Left => "left",
        }
    }

    /// Whether the run is a part of what the execution came to.
    #[must_use]
    pub const fn counts(self) -> bool {
        matches!(self, RunResult::Committed | RunResult::Adopted | RunResult::Skipped | RunResult::CarriedOut)
    }
}
