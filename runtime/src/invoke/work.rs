//! What a worker has to do, and may give to another: invocations that wait for a sandbox, and those that have one.

use std::sync::Arc;
use std::time::Instant;

use super::caller::Caller;
use super::driver::Driver;
use super::invocation::Invocation;
use crate::schedule::{self, Task, TaskId};

/// An invocation whose sandbox has run.
#[derive(Debug)]
pub struct Started {
    /// The invocation; its input is the driver's now.
    pub(crate) invocation: Invocation,
    pub(crate) driver: Driver,
    /// What its callees know of it; made at the first call.
    pub(crate) calls_as: Option<Arc<Caller>>,
    /// Since when it is blocked, if it is.
    pub(crate) wait: Option<Wait>,
}

/// An invocation is blocked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    /// From then on.
    pub(crate) since: Instant,
    /// When it goes on without more.
    pub(crate) until: Option<Instant>,
}

impl Started {
    /// It is blocked no longer. Whether it was.
    pub(crate) fn end_wait(&mut self, now: Instant) -> bool {
        let Some(Wait { since, until }) = self.wait.take() else { return false };
        self.invocation.times.blocked += until.map_or(now, |until| until.min(now)).saturating_duration_since(since);
        true
    }

    /// What its callees know of it.
    pub(crate) fn calls_as(&mut self) -> &Arc<Caller> {
        let Started { invocation, calls_as, .. } = self;
        calls_as.get_or_insert_with(|| Arc::new(invocation.identity.caller(&invocation.function, invocation.deadline)))
    }
}

/// What a worker has to do, and may give to another.
#[derive(Debug)]
pub enum Work {
    /// An invocation that has not begun.
    Job(Box<Invocation>),
    /// One that has.
    Started(Box<Started>),
}

impl schedule::Work for Work {
    fn task(&self, id: TaskId) -> Task {
        match self {
            Work::Job(invocation) => invocation.task(id, false),
            Work::Started(started) => started.invocation.task(id, true),
        }
    }
}
