//! One execution as a pure step function: no clock, no I/O, no randomness of its own.
//!
//! ```text
//!   caller --Event, time--> step(Definition, Execution) --Actions--> caller
//!                               Execution: frames (a tree), variables, retries; data that can be written and read at any time
//! ```
//!
//! - [`event`]: what goes in and out; [`execution`]: the state of an execution, which is serialised as a checkpoint; [`history`]: events as Step Functions has them;
//! - `entry`: executions that begin or go on at a state that the caller names; `moving`: executions that go on by another definition;
//! - `run`: one step; `transition`: how states are entered and left, how errors are handled; `flow`: what becomes of their data; `tasks`, `timers`, `control`,
//!   `branches`, `iterations`, `stored`: what types of states do; `guide`: callers that say which way a Choice goes;
//! - `evaluate`, `context`: paths, templates and expressions applied to a state's data; `frame`, `ids`: branches and iterations, and numbers for what they wait for;
//! - [`failure`]: errors and which handlers match them; [`limits`]: every limit.
//!
//! Invariants:
//! - The same definition, execution, events, times and random numbers give the same actions.
//! - No event makes the machine panic: late, repeated and unknown ones change nothing.
//! - A step carries out at most [`Limits::transitions_per_step`] transitions, and then yields.
//! - An execution that is running either has ready frames, or waits for a task or a timer that it has asked for. One that is paused asks for nothing.
//! - [`Action::Ended`] is the last action of an execution, unless it is redriven or restarted.

mod branches;
mod context;
mod control;
mod entry;
mod evaluate;
pub mod event;
pub mod execution;
pub mod failure;
mod flow;
mod frame;
mod guide;
pub mod history;
mod ids;
mod iterations;
pub mod limits;
mod moving;
mod run;
mod stored;
mod tasks;
mod timers;
mod transition;

pub use entry::{Entry, EntryError};
pub use event::{Action, Event, Outcome, Purpose, StartTask};
pub use execution::{About, Execution, Status};
pub use failure::Failure;
pub use guide::{Guide, Way};
pub use history::{Details, HistoryEvent, HistoryKind};
pub use ids::{TaskId, TimerId};
pub use limits::Limits;
pub use moving::{Misfit, Place};
pub use run::Random;

use crate::definition::Definition;

/// Takes one event in, carries the execution on as far as it goes, and appends what the caller has to do to `actions`, in order.
///
/// `now_ms` is the time in milliseconds since 1970, `random` gives 64 random bits at each call: for jitter, tokens (they must not be guessable) and functions of
/// query languages. An execution that was started with another definition, or written in another form, is left as it is: see [`Execution::fits`].
pub fn step(
    definition: &Definition,
    execution: &mut Execution,
    event: Event,
    now_ms: i64,
    random: &mut Random<'_>,
    actions: &mut Vec<Action>,
) {
    take((definition, execution), event, (now_ms, random), None, actions);
}

/// The same where the caller says which way Choices go, or learns it.
pub fn step_guided(
    definition: &Definition,
    execution: &mut Execution,
    event: Event,
    (now_ms, random): (i64, &mut Random<'_>),
    guide: &mut dyn Guide,
    actions: &mut Vec<Action>,
) {
    take((definition, execution), event, (now_ms, random), Some(guide), actions);
}

fn take<'a>(
    (definition, execution): (&'a Definition, &'a mut Execution),
    event: Event,
    (now_ms, random): (i64, &'a mut Random<'a>),
    guide: Option<&'a mut dyn Guide>,
    actions: &'a mut Vec<Action>,
) {
    if !execution.fits(definition) {
        return;
    }
    let mut run = run::Run { definition, execution, now_ms, random, actions, guide };
    run.event(event);
    run.drain();
}
