//! An execution's plan, whose story is handed in when the execution is over, and kept.

use std::mem;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Instant;

use sledge_workflow::machine;

use super::explained::Outcome;
use super::tale::{About, Tale};
use super::{At, short};
use crate::workflow::Workflow;
use crate::workflow::express::now_ms;
use crate::workflow::speculative::plan::Plan;

/// A plan with what its story is about. When it is dropped the execution is over, or was given up.
pub(in crate::workflow::speculative) struct Recorded<'d> {
    plan: Plan<'d>,
    workflow: &'d Workflow,
    about: machine::About,
    began: Instant,
    started_ms: i64,
    outcome: Outcome,
    error: Option<Arc<str>>,
}

impl<'d> Recorded<'d> {
    /// The plan of an execution that begins now.
    pub(in crate::workflow::speculative) fn new(
        plan: Plan<'d>,
        workflow: &'d Workflow,
        about: machine::About,
    ) -> Recorded<'d> {
        let (outcome, began, started_ms) = (Outcome::GivenUp, Instant::now(), now_ms());
        Recorded { plan, workflow, about, began, started_ms, outcome, error: None }
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
        self.workflow.reach.stories.keep(Arc::new(Tale { about, story }));
    }
}
