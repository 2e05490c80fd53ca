//! An execution's plan, whose story is handed in when the execution is over: to be kept, and as spans.

use std::mem;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::{Duration, Instant};

use sledge_workflow::machine;

use super::explained::{Explained, ExplainedCommit, ExplainedRun, Outcome, RunResult};
use super::tale::{About, Tale};
use super::{At, short};
use crate::telemetry::Trace;
use crate::workflow::Workflow;
use crate::workflow::express::now_ms;
use crate::workflow::speculative::plan::Plan;

/// A plan with what its story is about. When it is dropped the execution is over, or was given up.
pub(in crate::workflow::speculative) struct Recorded<'d> {
    plan: Plan<'d>,
    workflow: &'d Workflow,
    about: machine::About,
    trace: Option<Arc<Trace>>,
    began: Instant,
    started_ms: i64,
    outcome: Outcome,
    error: Option<Arc<str>>,
}

impl<'d> Recorded<'d> {
    /// The plan of an execution that begins now. Its spans are parts of that trace.
    pub(in crate::workflow::speculative) fn new(
        plan: Plan<'d>,
        workflow: &'d Workflow,
        about: machine::About,
        trace: Option<Arc<Trace>>,
    ) -> Recorded<'d> {
        let (outcome, began, started_ms) = (Outcome::GivenUp, Instant::now(), now_ms());
        Recorded { plan, workflow, about, trace, began, started_ms, outcome, error: None }
    }

    /// The same of an execution that goes on where its plan ends before it.
    pub(in crate::workflow::speculative) fn that_rests(self) -> Recorded<'d> {
        let mut rests = self;
        rests.outcome = Outcome::Rests;
        rests
    }

    /// What is told next happens now.
    pub(in crate::workflow::speculative) fn tick(&mut self) {
        let time = self.began.elapsed();
        self.plan.story().at(time);
    }

    /// The execution has come to that.
    pub(in crate::workflow::speculative) fn came_to(&mut self, outcome: &machine::Outcome) {
        (self.outcome, self.error) = match outcome {
            machine::Outcome::Succeeded(_) => (Outcome::Succeeded, None),
            machine::Outcome::Failed(failure) | machine::Outcome::Aborted(failure) => {
                (Outcome::Failed, failure.error.as_ref().map(short))
            }
            machine::Outcome::TimedOut => (Outcome::TimedOut, None),
        };
    }
}

impl<'d> Deref for Recorded<'d> {
    type Target = Plan<'d>;

    fn deref(&self) -> &Plan<'d> {
        &self.plan
    }
}

impl DerefMut for Recorded<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.plan
    }
}

impl Drop for Recorded<'_> {
    fn drop(&mut self) {
        let story = mem::take(self.plan.story());
        if self.outcome == Outcome::Rests && story.is_empty() {
            return;
        }
        let about = About {
            workflow: Arc::clone(&self.about.machine_name),
            name: Arc::clone(&self.about.name),
            id: Arc::clone(&self.about.id),
            level: self.workflow.config.speculation,
            started_ms: self.started_ms,
            took: At::try_from(self.began.elapsed().as_micros()).unwrap_or(At::MAX),
            outcome: self.outcome,
            error: self.error.take(),
        };
        let tale = Arc::new(Tale { about, story });
        if let Some(trace) = self.trace.as_ref().filter(|trace| trace.is_wanted()) {
            hand_in(trace, self.began, &tale.explained());
        }
        self.workflow.reach.stories.keep(tale);
    }
}

/// Hands in a span for each run and each commit.
fn hand_in(trace: &Trace, began: Instant, explained: &Explained) {
    let times = |from: u32, to: u32| [from, to].map(|at| began + Duration::from_micros(at.into()));
    for run in &explained.runs {
        let ExplainedRun { begun_us, ended_us, over_us, state, function, result, behind, reason, error, .. } = run;
        trace.part(format!("state {state}"), times(*begun_us, ended_us.unwrap_or(*over_us)), |span| {
            span.set("sledge.workflow", explained.workflow.clone());
            span.set("sledge.execution", explained.execution.clone());
            span.set("sledge.state", state.clone());
            let is_ahead = !matches!(result, RunResult::Committed | RunResult::CarriedOut);
            span.set("sledge.speculative", if is_ahead { "true" } else { "false" });
            span.set("sledge.result", result.word());
            let more = [("faas.invoked_name", function), ("sledge.behind", behind)];
            for (name, text) in more.into_iter().filter_map(|(name, text)| Some((name, text.as_ref()?))) {
                span.set(name, text.clone());
            }
            if let Some(reason) = reason {
                span.set("sledge.reason", reason.code.clone());
            }
            if let Some(error) = error.as_ref().filter(|_| result.counts()) {
                span.fail(error.clone(), "");
            }
        });
    }
    for ExplainedCommit { began_us, ended_us, runs, undone, .. } in &explained.commits {
        trace.part("commit", times(*began_us, *ended_us), |span| {
            span.set("sledge.runs", u64::from(*runs));
            span.set("sledge.result", undone.map_or("made", |undone| undone.word()));
        });
    }
}
