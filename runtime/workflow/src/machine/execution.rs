//! One execution: its state as data, which can be written down after every step and read again by another process.

use std::collections::VecDeque;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::frame::{Frame, Frames, Phase};
use super::ids::{FrameId, TaskId, TimerId, number, slot_of};
use super::limits::Limits;
use crate::definition::Definition;

/// The version of the form in which executions are written. It grows when an older reader would misread it.
pub const FORMAT: u32 = 1;

/// What an execution is called, and what its context object says of it. The caller chooses the texts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// `$$.Execution.Id`.
    pub id: Arc<str>,
    /// `$$.Execution.Name`.
    pub name: Arc<str>,
    /// `$$.Execution.RoleArn`.
    pub role: Arc<str>,
    /// `$$.StateMachine.Id`.
    pub machine_id: Arc<str>,
    /// `$$.StateMachine.Name`.
    pub machine_name: Arc<str>,
    /// What tokens for callbacks begin with: so that the caller finds the execution of a token. Letters, digits, `-`, `_` and `.`.
    pub token_prefix: Arc<str>,
}

impl About {
    /// Whether the ARN says that the execution is express: `arn:aws:states:REGION:ACCOUNT:express:...`. It cannot be redriven then.
    #[must_use]
    pub fn is_express(&self) -> bool {
        self.id.split(':').nth(5) == Some("express")
    }
}

/// Whether an execution has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Status {
    /// [`Event::Started`](super::Event::Started) has not come.
    New,
    /// It goes on.
    Running,
    /// It has given its output.
    Succeeded,
    /// It has failed.
    Failed,
    /// It has taken longer than `TimeoutSeconds` of the whole.
    TimedOut,
    /// It was stopped.
    Aborted,
}

/// One execution. All of it is data, to be written in a format that describes itself, such as JSON: it holds no clock, no handle and no pointer to its definition,
/// and is the same after it was written and read.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Execution {
    pub(super) format: u32,
    /// [`Definition::fingerprint`].
    pub(super) definition: u64,
    pub(super) about: About,
    pub(super) limits: Limits,
    pub(super) recording: bool,
    pub(super) status: Status,
    pub(super) input: Arc<Value>,
    pub(super) started_ms: i64,
    pub(super) redrives: u32,
    pub(super) frames: Frames,
    /// Frames that go on, in this order.
    pub(super) ready: VecDeque<FrameId>,
    /// Of the last number that was given.
    pub(super) serial: u64,
    /// The timer of the whole.
    pub(super) deadline: Option<TimerId>,
    /// Number of the last event of the history. It counts whether or not the history is recorded.
    pub(super) events: u64,
    /// Where the whole stood when it failed, so that it can go on from there. After a success: its variables alone.
    pub(super) halted: Option<Box<Frame>>,
    /// It is paused: ready frames and timers wait.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(super) paused: bool,
    /// Timers that have run out while it was paused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) held: Vec<TimerId>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}

impl Execution {
    /// An execution that has not begun. With `recording` each step gives the events of the history.
    #[must_use]
    pub fn new(definition: &Definition, about: About, limits: Limits, recording: bool) -> Self {
        Self {
            format: FORMAT,
            definition: definition.fingerprint(),
            about,
            limits,
            recording,
            status: Status::New,
            input: Arc::new(Value::Null),
            started_ms: 0,
            redrives: 0,
            frames: Frames::default(),
            ready: VecDeque::new(),
            serial: 0,
            deadline: None,
            events: 0,
            halted: None,
            paused: false,
            held: Vec::new(),
        }
    }

    /// Whether it has ended, and how.
    #[must_use]
    pub const fn status(&self) -> Status {
        self.status
    }

    /// Whether it was written in a form that this code reads, for this definition.
    #[must_use]
    pub const fn fits(&self, definition: &Definition) -> bool {
        self.format == FORMAT && self.definition == definition.fingerprint()
    }

    /// The [fingerprint](Definition::fingerprint) of the definition that it was started with.
    #[must_use]
    pub const fn definition(&self) -> u64 {
        self.definition
    }

    /// What it is called.
    #[must_use]
    pub const fn about(&self) -> &About {
        &self.about
    }

    /// Its input.
    #[must_use]
    pub const fn input(&self) -> &Arc<Value> {
        &self.input
    }

    /// When it began, in milliseconds since 1970.
    #[must_use]
    pub const fn started_ms(&self) -> i64 {
        self.started_ms
    }

    /// Whether that task is still to be carried out: its answer would count. One that has answered and waits for its callback is not.
    #[must_use]
    pub fn waits_for(&self, task: TaskId) -> bool {
        let frame = self.frames.get(slot_of(task.0));
        frame.is_some_and(|frame| matches!(&frame.phase, Phase::Task(pending) if pending.task == task && !pending.submitted))
    }

    /// Where a task is in the order in which the execution would do everything one after the other, branches and iterations by their numbers: what comes earlier has a smaller path. None of a task that is
    /// not waited for.
    #[must_use]
    pub fn path(&self, task: TaskId) -> Option<Vec<u32>> {
        let slot = slot_of(task.0);
        let frame = self.frames.get(slot)?;
        matches!(&frame.phase, Phase::Task(pending) if pending.task == task).then(|| self.frames.path(slot))
    }

    /// Whether a task waits for the callback with that token.
    #[must_use]
    pub fn waits_for_callback(&self, token: &str) -> bool {
        self.slot_of_token(token).is_some()
    }

    /// The slot of the frame that waits for the callback with that token.
    pub(super) fn slot_of_token(&self, token: &str) -> Option<u32> {
        let rest = token.strip_prefix(&*self.about.token_prefix)?;
        let number = u64::from_str_radix(rest.split_once('.')?.0, 16).ok()?;
        let slot = slot_of(number);
        let frame = self.frames.get(slot)?;
        let own = frame.token.as_deref()?;
        (matches!(frame.phase, Phase::Task(_)) && same(own, token)).then_some(slot)
    }

    /// Whether it is paused: see [`Event::Paused`](super::Event::Paused).
    #[must_use]
    pub const fn is_paused(&self) -> bool {
        self.paused
    }

    /// How often it was redriven.
    #[must_use]
    pub const fn redrives(&self) -> u32 {
        self.redrives
    }

    /// Branches and iterations that are alive, the whole among them.
    #[must_use]
    pub fn frames(&self) -> usize {
        self.frames.len()
    }

    /// Whether a step would do something without an event: [`Event::Continue`](super::Event::Continue) is expected.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        !self.ready.is_empty() && !self.paused
    }

    /// A number for something of the frame in that slot.
    pub(super) fn number(&mut self, slot: u32) -> u64 {
        self.serial = self.serial.wrapping_add(1);
        number(self.serial, slot)
    }
}

/// Compares tokens in a time that does not depend on where they differ.
fn same(left: &str, right: &str) -> bool {
    left.len() == right.len()
        && left.bytes().zip(right.bytes()).fold(0, |difference, (left, right)| difference | (left ^ right)) == 0
}
