//! A durable execution that goes ahead of itself: what [`Ahead`] has ready becomes a step, with its changes of the store in one commit.
//!
//! ```text
//!   Ahead --runs that have ended, their columns' commit--> step on the machine --records--> one commit: changes and journal --> follow, begin
//!                                                                                      \--not made: the step is undone
//! ```
//!
//! What holds:
//! - The machine is told of a run only where it asks for just that task with that input, in the state that is in the journal. So what is written is what would have been written one step after the other.
//! - A group is in the store with the step that takes it in, or neither is. A crash before that leaves the journal as it was, and everything that was ahead is gone.
//! - Anything that is no group (a task for good, a timer, a callback, a pause, a stop) is the step that it is without speculation; what is ahead goes on where it is asked for still.

use std::collections::BTreeMap;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sledge_workflow::definition::Definition;
use sledge_workflow::machine::{Event, Failure, Outcome, StartTask, Status, TaskId};

use super::super::core::Core;
use super::super::pins::Pins;
use super::super::places::Held;
use super::super::task;
use super::{Live, Plan};
use crate::invoke::function::Function;
use crate::invoke::urgency::Urgency;
use crate::kv::Commit;
use crate::speculate::paths::Trail;
use crate::workflow::speculative::{Ahead, Answer, Came, Ended, Host, Ready, Standing, is_same};
use crate::workflow::{Runner, Workflow, express};

/// What of an execution does not change while it goes ahead.
pub(super) struct Base<R> {
    core: Rc<Core<R>>,
    workflow: Arc<Workflow>,
    definition: Arc<Definition>,
    pins: Rc<Pins>,
}

impl<R: Runner + 'static> Host for Base<R> {
    type Place = Held;

    fn free_place(&self) -> Option<Held> {
        self.core.free_place()
    }

    async fn place(&self, pause: Duration) -> Option<Held> {
        self.core
            .unless_stopping(async {
                if !pause.is_zero() {
                    tokio::time::sleep(pause).await;
                }
                self.core.place(&self.workflow).await
            })
            .await
    }

    fn lends(&self, urgency: &Arc<Urgency>) {
        self.core.lend_place(urgency);
    }

    fn may_begin(&self) -> bool {
        !self.core.is_stopping() && self.core.term.holds()
    }

    fn calls(&self, function: &Function) -> bool {
        self.core.calls_served(&self.pins, function)
    }

    fn deadline(&self, task: &StartTask) -> Instant {
        task::deadline(task)
    }
}

/// What is ahead of an execution in memory, if anything is.
pub(super) struct Front<'a, R: Runner + 'static> {
    base: &'a Base<R>,
    ahead: Option<Ahead<'a, R, Base<R>>>,
    /// It goes one step after the other from now on.
    is_over: bool,
}

impl<'a, R: Runner + 'static> Front<'a, R> {
    pub(super) const fn of(base: &'a Base<R>) -> Front<'a, R> {
        Front { base, ahead: None, is_over: false }
    }

    /// Whether anything may be ahead.
    pub(super) const fn is_ahead(&self) -> bool {
        self.ahead.is_some()
    }

    /// Whether it waits for nothing.
    pub(super) fn is_idle(&self) -> bool {
        self.ahead.as_ref().is_none_or(Ahead::is_idle)
    }

    /// Waits for something to happen, and takes it in. For ever where nothing can.
    pub(super) async fn happens(&mut self) {
        match &mut self.ahead {
            Some(ahead) => {
                let happened = ahead.next().await;
                ahead.happened(happened);
            }
            None => std::future::pending().await,
        }
    }

    /// The ways that the execution has gone, if that is to be learned.
    pub(super) fn trail(&mut self) -> Option<Trail> {
        self.ahead.as_mut().map(Ahead::trail)
    }

    /// What a task has come to by these events, if it is to be told of that.
    pub(super) fn told(&self, events: &[(i64, Event)]) -> Option<(TaskId, Answer)> {
        self.ahead.as_ref()?;
        events.iter().find_map(|(_, event)| match event {
            Event::TaskSucceeded { task, output } => Some((*task, Ok(output.clone()))),
            Event::TaskFailed { task, error, cause } => {
                Some((*task, Err(Failure { error: error.clone(), cause: cause.clone() })))
            }
            _ => None,
        })
    }

    /// The execution has ended so, if it has.
    pub(super) fn came_to(&mut self, outcome: Option<&Outcome>) {
        if let Some((ahead, outcome)) = self.ahead.as_mut().zip(outcome) {
            ahead.came_to(outcome);
        }
    }

    fn ready(&mut self) -> Option<Ready> {
        self.ahead.as_mut()?.ready()
    }
}

impl<R: Runner + 'static> Live<R> {
    pub(super) fn base(&self) -> Base<R> {
        Base {
            core: Rc::clone(&self.core),
            workflow: Arc::clone(&self.workflow),
            definition: Arc::clone(&self.definition),
            pins: Rc::clone(&self.pins),
        }
    }

    /// Has follow what follows from a step: ahead of what is written, where the workflow goes ahead; otherwise these tasks begin. `told`: the task that has ended with the step.
    pub(super) fn go_on(
        &mut self,
        front: &mut Front<'_, R>,
        begin: Vec<TaskId>,
        (told, trail): (Option<(TaskId, Answer)>, Option<Trail>),
    ) {
        let base = front.base;
        // Not beside tasks that were begun without it.
        if front.ahead.is_none() && !front.is_over && self.given_up.is_empty() && self.state.machine.status() == Status::Running {
            front.ahead = Ahead::begin((&base.workflow, &base.definition), (&base.core.runner, base), &self.state.machine);
        }
        match &mut front.ahead {
            Some(ahead) => {
                ahead.stands(self.standing(trail), told.as_ref());
                self.carry_out(ahead);
            }
            None => self.begin_all(begin),
        }
    }

    /// Goes one step after the other from here, until the next step is made, or for good.
    pub(super) fn stand_still(&mut self, front: &mut Front<'_, R>, for_good: bool) {
        front.ahead = None;
        front.is_over |= for_good;
        self.begin_all(self.not_begun());
    }

    /// Commits the first runs that have ended. Whether there was something to be decided.
    pub(super) async fn commit_ahead(&mut self, front: &mut Front<'_, R>) -> bool {
        if let Some(ready) = front.ready() {
            self.commit_group(front, &ready).await;
            return true;
        }
        if front.ahead.as_ref().is_some_and(Ahead::is_stuck) {
            self.stand_still(front, false);
        }
        false
    }

    async fn commit_group(&mut self, front: &mut Front<'_, R>, ready: &Ready) {
        let Some(ahead) = &mut front.ahead else { return };
        let (before, now_ms, began) = (self.state.clone(), express::now_ms(), Instant::now());
        let mut plan = Plan { trail: Some(ahead.trail()), ..Plan::default() };
        for run in &ready.runs {
            let Some(task) = self.asks_for(run) else {
                // What it is asked with says another time, or another random number.
                self.state = before;
                return self.stand_still(front, false);
            };
            // One that ran ahead began before the execution came to it.
            let begun_ms = if before.tasks.contains_key(&task) { run.began_ms } else { now_ms };
            self.step(Event::TaskStarted { task }, begun_ms, &mut plan).await;
            self.step(express::ended(task, run.answer.clone()), now_ms, &mut plan).await;
        }
        let Ok((records, summary, size, sets)) = self.written(&before, &plan, false).await else {
            // The server stops.
            self.state = before;
            return self.stand_still(front, true);
        };
        let commit = Commit { records, ..ready.commit.clone().unwrap_or_default() };
        let outcome = {
            let mut made = pin!(self.commit(&commit, false));
            loop {
                tokio::select! {
                    biased;
                    outcome = &mut made => break outcome,
                    happened = ahead.next() => ahead.happened(happened),
                }
            }
        };
        let Ok(outcome) = outcome else {
            self.state = before;
            return self.stand_still(front, true);
        };
        match ahead.came(ready, outcome, began.elapsed()) {
            Came::Committed { calls, findings } => {
                self.core.pins.wrote(&sets);
                self.counted(size);
                self.send_put_off(calls);
                let trail = plan.trail.take();
                if let Some(outcome) = &plan.outcome {
                    ahead.came_to(outcome);
                }
                self.follow(&before, plan, summary);
                ahead.committed(ready, findings, self.standing(trail));
                self.carry_out(ahead);
            }
            Came::Not => self.state = before,
            Came::Refused => {
                self.state = before;
                front.ahead = None;
                let first = ready.runs.first().and_then(|run| Some((self.asks_for(run)?, run.answer.clone())));
                if let Some((task, answer)) = first {
                    let events = vec![(now_ms, Event::TaskStarted { task }), (now_ms, express::ended(task, answer))];
                    self.turn(front, events, None, false).await;
                }
                if front.ahead.is_none() {
                    self.stand_still(front, false);
                }
            }
        }
    }

    /// The task with that input that the execution asks for where a run has run.
    fn asks_for(&self, run: &Ended) -> Option<TaskId> {
        let is_it =
            |task: &&StartTask| is_same(task, &run.task) && self.state.machine.path(task.task).as_ref() == Some(&run.path);
        self.state.tasks.values().find(is_it).map(|task| task.task)
    }

    /// Where it stands.
    fn standing(&self, trail: Option<Trail>) -> Standing {
        let base = self.state.machine.clone();
        let path = |task: &StartTask| Some((base.path(task.task)?, task.clone()));
        let asked: BTreeMap<_, _> = self.state.tasks.values().filter_map(path).collect();
        Standing { asked, base, trail: trail.unwrap_or_default() }
    }

    /// Begins tasks that do not go ahead.
    fn carry_out(&mut self, ahead: &mut Ahead<'_, R, Base<R>>) {
        for (run, task) in ahead.take_for_good() {
            if !self.begin(task) {
                ahead.put_off(run);
            }
        }
    }
}
