//! What a server in simulated time is made of: invocations, and workers with what they do.

use std::collections::VecDeque;

use sledge_schedule::{Scheduler, TaskId};

use crate::simulated::model::Nanoseconds;
use crate::simulated::side::{Job, Key, Side};

/// An invocation that is not over.
pub(super) struct Invocation {
    pub(super) generation: u32,
    pub(super) function: usize,
    /// Which of its bursts it is in, and what is left of that.
    pub(super) burst: usize,
    pub(super) left: Nanoseconds,
    pub(super) cpu: Nanoseconds,
    pub(super) waited: Nanoseconds,
    /// Whether its last run ended with the quantum.
    pub(super) was_preempted: bool,
    /// Its worker and number there while it waits, and since when.
    pub(super) blocked: Option<(usize, TaskId)>,
    pub(super) since: Nanoseconds,
    pub(super) from: From,
}

/// Where an invocation comes from.
#[derive(Clone, Copy)]
pub(super) enum From {
    /// A client: when the request was due, and its place among all.
    Client { due: Nanoseconds, number: usize, client: usize },
    /// The invocation that waits for it.
    Caller(Key),
}

/// What a worker's connections have to do.
#[derive(Clone, Copy)]
pub(super) enum Item {
    Request(Key),
    Send(Key, Nanoseconds),
    Answer(Key),
    Returned(Key),
    Reply(Key),
}

/// What a worker does.
pub(super) enum Thread {
    Asleep,
    Wakes,
    Looks,
    Does(Item),
    Runs(Run),
}

/// A run under way.
pub(super) struct Run {
    pub(super) id: TaskId,
    pub(super) job: Job,
    /// How long it takes, and how far the guest gets in that time.
    pub(super) ran: Nanoseconds,
    pub(super) computed: Nanoseconds,
    pub(super) is_alone: bool,
    pub(super) at_once: bool,
}

/// A worker.
pub(super) struct Worker {
    pub(super) scheduler: Scheduler<Side>,
    pub(super) thread: Thread,
    /// When it began what it does, and how often it began something.
    pub(super) began: Nanoseconds,
    pub(super) epoch: u32,
    pub(super) items: VecDeque<Item>,
    /// How many of them it does before it takes a turn.
    pub(super) ready: usize,
    pub(super) was_woken: bool,
    /// When it is woken at the latest.
    pub(super) alarm: Option<Nanoseconds>,
    pub(super) used: Nanoseconds,
}
