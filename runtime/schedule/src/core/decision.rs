//! What a worker tells the order, and what it is told.

use std::time::{Duration, Instant};

use crate::task::{Task, TaskId};

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The worker has looked after connections and begins to run guests.
    Turn,
    /// There is one more task: a request, or what another worker gave.
    Arrived(Task),
    /// It looked for tasks elsewhere and took in what there was, if anything.
    Looked,
    /// What it was told to give away is not its any more.
    Given,
    /// What it was told to run is over.
    Ended {
        /// For how long it ran.
        ran: Duration,
    },
    /// The same, of what another task called: no client waits for a reply.
    Returned {
        /// For how long it ran.
        ran: Duration,
    },
    /// What runs has called this task, which ran within its turn.
    Called {
        /// As it was before.
        task: Task,
        /// For how long it ran.
        ran: Duration,
        /// Whether it is over.
        is_over: bool,
    },
    /// What it was told to run or to kill is over, and has not run.
    Dropped,
    /// What it was told to run was preempted.
    Preempted {
        /// For how long it ran.
        ran: Duration,
    },
    /// What it was told to run begins another microtask.
    Phase {
        /// For how long it ran.
        ran: Duration,
    },
    /// What it was told to run waits.
    Blocked {
        /// For how long it ran.
        ran: Duration,
        /// When it goes on; none if only what it waits for, or its deadline, ends that.
        until: Option<Instant>,
    },
    /// What a blocked task waited for is done.
    Ready(TaskId),
    /// Another worker has nothing to do that is asked for.
    Wanted,
    /// The same of one that has nothing to do at all: it wants what is speculative, too.
    WantedAll,
    /// What was speculative is asked for.
    Asked(TaskId),
    /// What was speculative is not wanted any more.
    GivenUp(TaskId),
    /// The others know that this worker has only what is speculative to do: it may run that.
    Slackens,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Run this one for a quantum.
    Run(TaskId),
    /// End it.
    Kill(TaskId, Why),
    /// Let another worker have it.
    Give(TaskId),
    /// Look for tasks elsewhere.
    Look,
    /// There is only what is speculative to do: the others are to know that.
    Slacken,
    /// Look after connections, then come back at once.
    Io,
    /// There is nothing to do until another thread wakes the worker, or [`Core::alarm`](super::Core::alarm).
    Wait,
}

/// Why a task is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Its deadline has passed.
    Deadline,
    /// It has used its processor time up.
    Cpu,
    /// It has not started, and is not expected to meet its deadline.
    Overload,
    /// It was begun ahead, and is not wanted any more.
    Unwanted,
    /// The server stops, and does not wait any longer.
    Stopping,
}
