//! Whether what runs ahead is asked for. What begins a run decides that, on any thread; the worker that has the run finds out.
//!
//! A run that was begun ahead is *speculative* until it is asked for, or not wanted any more: each of these once, and for good. Its [`Claim`] says so, and is shared by the run and by what has begun it.
//! Where the run is, in which queue of which worker, what has begun it does not know. So it counts the change ([`Changes`]), and each worker that has anything speculative looks through that when the
//! count has changed.

use crate::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// Whether a task is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Demand {
    /// It is: something waits for it.
    #[default]
    Asked,
    /// Perhaps it will be. It runs where nothing runs that is asked for.
    Speculative,
    /// It was, perhaps, and is not any more.
    Unwanted,
}

const SPECULATIVE: u8 = 0;
const ASKED: u8 = 1;
const UNWANTED: u8 = 2;

/// Whether one run is asked for that was begun ahead.
#[derive(Debug)]
pub struct Claim(AtomicU8);

/// How often that has changed for any run of a pool of workers.
#[derive(Debug)]
pub struct Changes(AtomicU64);

impl Default for Claim {
    fn default() -> Claim {
        Claim(AtomicU8::new(SPECULATIVE))
    }
}

impl Default for Changes {
    fn default() -> Changes {
        Changes(AtomicU64::new(0))
    }
}

impl Claim {
    /// Whether it is asked for.
    #[must_use]
    pub fn demand(&self) -> Demand {
        // Relaxed: a worker that has seen the count of a change sees the change (`Changes::count`), and no other change is looked for.
        match self.0.load(Ordering::Relaxed) {
            ASKED => Demand::Asked,
            UNWANTED => Demand::Unwanted,
            _ => Demand::Speculative,
        }
    }

    /// It is asked for from now on. Nothing happens where it is so already, or it is not wanted.
    pub fn ask(&self, changes: &Changes) {
        self.settle(ASKED, changes);
    }

    /// It is not wanted any more. Nothing happens where it was asked for: then it ends as anything does whose client has gone.
    pub fn give_up(&self, changes: &Changes) {
        self.settle(UNWANTED, changes);
    }

    fn settle(&self, to: u8, changes: &Changes) {
        if self.0.compare_exchange(SPECULATIVE, to, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            // Release, with the Acquire in `count`.
            changes.0.fetch_add(1, Ordering::Release);
        }
    }
}

impl Changes {
    /// How many there were. What they have changed is seen after that.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}
