//! What is known of a request besides its reply: its place among all others, and where its time went.

use std::time::Duration;

use crate::phases::PhaseClock;

/// A request's record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Counts the requests that the server has admitted, calls of functions by functions included.
    pub sequence: u64,
    /// From where it was called, if a function did.
    pub parent: Option<Parent>,
    /// Host calls that it made.
    pub host_calls: u32,
    /// The phase that it said it was in last.
    pub phase: u32,
    /// Time for which it could have run.
    pub ready: Duration,
    /// Time for which it ran, host calls included.
    pub running: Duration,
    /// Time for which it waited for something else than its turn.
    pub blocked: Duration,
    /// For how long it ran in each phase, if its function declares any: `running`, divided.
    pub phases: Option<Box<PhaseClock>>,
}

impl Record {
    /// For how long it ran, or waited for something else than its turn: as long as it takes where nothing else wants the processor.
    #[must_use]
    pub fn worked(&self) -> Duration {
        self.running + self.blocked
    }
}

/// From where a function was called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parent {
    /// The caller's [`Record::sequence`].
    pub sequence: u64,
    /// Which of its host calls that was, from 1.
    pub host_call: u32,
}
