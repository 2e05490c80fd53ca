//! What threads of the server do at the same time beside scheduling, in every interleaving and with every value that the memory model lets a thread see (loom): a thread's
//! counts that another reads, new routes that all threads take, and a worker that is interrupted. What workers do is in `schedule/tests/interleavings`, which says why loom.
//!
//! The files of the crate are compiled here once more, with loom's atomics and locks in the place of the standard library's (`sync`). Each test has been seen failing with one
//! line weakened; which one stands above it.

// Public where they belong.
#![allow(unreachable_pub)]

#[path = "../../src/counters.rs"]
#[allow(dead_code)]
mod counters;
#[path = "../../src/watch/state.rs"]
#[allow(dead_code)]
mod state;
#[path = "../../src/deploy/taken.rs"]
mod taken;

/// As `src/sync.rs`.
mod sync {
    pub(crate) use std::sync::PoisonError;

    pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard};

    pub(crate) mod atomic {
        pub(crate) use loom::sync::atomic::{AtomicU8, AtomicU64, Ordering, fence};
    }
}

mod counting;
mod interrupting;
mod publishing;
