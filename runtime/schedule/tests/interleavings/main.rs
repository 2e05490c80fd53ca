//! What workers do at the same time, in every interleaving and with every value that the memory model lets a thread see (loom).
//!
//! The files of the crate are compiled here once more, with loom's atomics and locks in the place of the standard library's (`sync`). Loom was chosen for that: shuttle
//! takes every access as sequentially consistent, so that no ordering that is too weak would ever be seen. crossbeam's queues keep their own atomics, and are taken to do
//! what they promise: each of their operations is one step here.
//!
//! Each test has been seen failing with one ordering, or one line, weakened; which one stands above it.

// Public where they belong.
#![allow(unreachable_pub)]

#[path = "../../src/demand.rs"]
#[allow(dead_code)]
mod demand;
#[path = "../../src/exchange.rs"]
#[allow(dead_code)]
mod exchange;
#[path = "../../src/gate.rs"]
#[allow(dead_code)]
mod gate;
#[path = "../../src/in_flight.rs"]
#[allow(dead_code)]
mod in_flight;
#[path = "../simulation/model.rs"]
#[allow(dead_code)]
mod model;
#[path = "../../src/percentile.rs"]
mod percentile;
#[path = "../../src/requests.rs"]
#[allow(dead_code)]
mod requests;
#[path = "../../src/shared.rs"]
#[allow(dead_code)]
mod shared;
#[path = "../../src/task.rs"]
#[allow(dead_code)]
mod task;
#[path = "../../src/wakeups.rs"]
mod wakeups;

use shared::Rest;

/// As `src/sync.rs`.
mod sync {
    pub(crate) use std::sync::PoisonError;

    pub(crate) use loom::sync::{Mutex, MutexGuard};

    pub(crate) mod atomic {
        pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering, fence};
    }
}

mod against_model;
mod asking;
mod gates;
mod stopping;
mod waking;
