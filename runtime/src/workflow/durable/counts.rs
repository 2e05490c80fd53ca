//! How many executions there are, and how they have ended: for the metrics.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use sledge_workflow::machine::Status;

/// How executions end, in the order in which they are counted.
pub const ENDS: [Status; 4] = [Status::Succeeded, Status::Failed, Status::TimedOut, Status::Aborted];

/// Written by the thread of executions alone.
#[derive(Debug, Default)]
pub(super) struct Counts {
    open: AtomicU64,
    queued: AtomicI64,
    ended: [AtomicU64; ENDS.len()],
}

/// What they are at some time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counted {
    /// Executions that have not ended.
    pub open: u64,
    /// Those of them that have not begun, since their workflow has limits.
    pub queued: u64,
    /// Those that have, since the server started, by [how](ENDS).
    pub ended: [u64; ENDS.len()],
}

// Relaxed throughout: numbers that order nothing else.
impl Counts {
    pub(super) fn begun(&self) {
        self.open.fetch_add(1, Ordering::Relaxed);
    }

    /// So many more wait to begin.
    pub(super) fn queued(&self, more: i64) {
        self.queued.fetch_add(more, Ordering::Relaxed);
    }

    pub(super) fn ended(&self, status: Status) {
        self.open.fetch_sub(1, Ordering::Relaxed);
        if let Some(count) = ENDS.iter().position(|end| *end == status).and_then(|at| self.ended.get(at)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Those that have not ended are another server's from now on.
    pub(super) fn leave(&self) {
        self.open.store(0, Ordering::Relaxed);
        self.queued.store(0, Ordering::Relaxed);
    }

    pub(super) fn now(&self) -> Counted {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let queued = u64::try_from(self.queued.load(Ordering::Relaxed)).unwrap_or(0);
        Counted { open: load(&self.open), queued, ended: self.ended.each_ref().map(load) }
    }
}
