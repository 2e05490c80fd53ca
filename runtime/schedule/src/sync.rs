//! What is shared between threads is made of these, so that `tests/interleavings` can put others in their place, which try every order.

pub(crate) use std::sync::{Mutex, MutexGuard, PoisonError};

pub(crate) mod atomic {
    pub(crate) use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering, fence};
}
