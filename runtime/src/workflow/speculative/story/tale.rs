//! A story that is over, of which execution it is, and what operators are told of it.

use std::sync::Arc;

use sledge_workflow::definition::Resource;

use super::explained::{Explained, ExplainedCommit, ExplainedGuess, ExplainedRun, ExplainedWay, Listed, Outcome, RunResult};
use super::reason::key_text;
use super::{At, Commit, Over, Row, Story, Way, Why, sequence};
use crate::config::SpeculationLevel;

/// The execution of a story.
#[derive(Debug)]
pub(super) struct About {
    pub(super) workflow: Arc<str>,
    pub(super) name: Arc<str>,
    /// Its ARN.
    pub(super) id: Arc<str>,
    pub(super) level: SpeculationLevel,
    pub(super) started_ms: i64,
    pub(super) took: At,
    pub(super) outcome: Outcome,
    /// The error's name, if it has failed.
    pub(super) error: Option<Arc<str>>,
}

/// A story that is over.
#[derive(Debug)]
pub(super) struct Tale {
    pub(super) about: About,
    pub(super) story: Story,
}

impl Tale {
    /// What it takes up.
    pub(super) fn bytes(&self) -> usize {
        let About { name, id, error, .. } = &self.about;
        size_of::<Tale>() + name.len() + id.len() + error.as_ref().map_or(0, |error| error.len()) + self.story.bytes()
    }
}

impl Tale {
    /// For operators.
    pub(super) fn explained(&self) -> Explained {
        let About { workflow, name, id, level, started_ms, took, outcome, error } = &self.about;
        let mut rows: Vec<(&Row, At)> = self.story.rows.iter().filter_map(|row| Some((row, row.begun?))).collect();
        rows.sort_by(|(one, begun), (other, later)| (&one.path, begun).cmp(&(&other.path, later)));
        let runs: Vec<ExplainedRun> = rows.iter().map(|(row, begun)| self.run(row, *begun, &rows)).collect();
        let counts = rows.iter().zip(&runs).filter(|(_, run)| run.result.counts());
        let times: Vec<(&[u32], u64)> = counts.map(|((row, _), run)| (&*row.path, self.story.time_alone(run))).collect();
        Explained {
            workflow: workflow.to_string(),
            execution: name.to_string(),
            arn: id.to_string(),
            speculation: *level,
            started_ms: *started_ms,
            took_us: u64::from(*took),
            in_sequence_us: sequence::time(&times),
            outcome: *outcome,
            error: error.as_ref().map(ToString::to_string),
            runs,
            commits: self.story.commits.iter().map(Commit::explained).collect(),
            ways: self.story.ways.iter().map(Way::explained).collect(),
            left_out: self.story.left_out,
        }
    }

    /// In the list.
    pub(super) fn listed(&self) -> Listed {
        let About { name, started_ms, took, outcome, .. } = &self.about;
        let begun = || self.story.rows.iter().filter(|row| row.begun.is_some());
        let count = |result: RunResult| begun().filter(|row| row.result() == result).count();
        Listed {
            execution: name.to_string(),
            started_ms: *started_ms,
            took_us: u64::from(*took),
            outcome: *outcome,
            runs: begun().count(),
            adopted: count(RunResult::Adopted),
            dropped: count(RunResult::Dropped),
            squashed: count(RunResult::Squashed),
        }
    }

    fn run(&self, row: &Row, begun_us: At, rows: &[(&Row, At)]) -> ExplainedRun {
        let place = |run| rows.iter().position(|(row, _)| row.run == run).and_then(|at| u32::try_from(at).ok());
        let (over_us, commit) = match &row.over {
            Some((at, Over::Committed(commit))) => (*at, *commit),
            Some((at, Over::Left(_))) => (*at, None),
            None if row.is_for_good => (row.ended.unwrap_or(self.about.took), None),
            None => (self.about.took, None),
        };
        ExplainedRun {
            path: row.path.clone(),
            state: row.state.to_string(),
            function: row.function(),
            asked_us: row.asked,
            begun_us,
            ended_us: row.ended,
            over_us,
            result: row.result(),
            commit,
            behind: row.behind.as_ref().map(|(state, _)| state.to_string()),
            behind_run: row.behind.as_ref().and_then(|(_, run)| place((*run)?)),
            reason: row.reason(),
            guess: row.guess.as_ref().map(|guess| ExplainedGuess { what: guess.what, at_us: guess.at, right: guess.is_right }),
            refused: row.refused,
            error: row.error.as_ref().map(ToString::to_string),
        }
    }
}

impl Story {
    /// How long a run would have taken with a commit of its own.
    fn time_alone(&self, run: &ExplainedRun) -> u64 {
        let commit = run.commit.and_then(|commit| self.commits.get(commit as usize));
        let commit = commit.map_or(0, |commit| commit.ended.saturating_sub(commit.began));
        u64::from(run.ended_us.unwrap_or(run.over_us).saturating_sub(run.begun_us)) + u64::from(commit)
    }
}

impl Row {
    fn result(&self) -> RunResult {
        match &self.over {
            Some((_, Over::Committed(_))) if self.is_skipped => RunResult::Skipped,
            Some((_, Over::Committed(_))) if self.was_due => RunResult::Committed,
            Some((_, Over::Committed(_))) => RunResult::Adopted,
            Some((_, Over::Left(Why::OtherInput(_) | Why::NotAsked(_)))) => RunResult::Dropped,
            Some((_, Over::Left(Why::Squashed(..) | Why::MadeRoom))) => RunResult::Squashed,
            None if self.is_for_good && self.ended.is_some() => RunResult::CarriedOut,
            None => RunResult::Left,
        }
    }

    fn function(&self) -> Option<String> {
        match &*self.resource {
            Resource::Function { name, .. } => Some(name.to_string()),
            _ => self.function.as_ref().map(ToString::to_string),
        }
    }
}

impl Commit {
    fn explained(&self) -> ExplainedCommit {
        let Commit { began, ended, runs, undone } = self;
        ExplainedCommit {
            began_us: *began,
            ended_us: *ended,
            runs: *runs,
            undone: undone.as_ref().map(|(undone, _)| *undone),
            key: undone.as_ref().and_then(|(_, key)| key.as_ref().map(key_text)),
        }
    }
}

impl Way {
    fn explained(&self) -> ExplainedWay {
        let name = |state: &Option<Arc<str>>| state.as_deref().unwrap_or("nowhere").to_owned();
        ExplainedWay {
            state: self.state.to_string(),
            at_us: self.at,
            guessed: name(&self.guessed.1),
            went: self.went.as_ref().map(|(_, state)| name(state)),
            right: self.went.as_ref().map(|(target, _)| *target == self.guessed.0),
        }
    }
}
