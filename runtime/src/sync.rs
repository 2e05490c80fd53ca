//! What some files share between threads is made of these, so that `tests/interleavings` can put others in their place, which try every order.

pub(crate) use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

pub(crate) mod atomic {
    pub(crate) use std::sync::atomic::{AtomicU8, AtomicU64, Ordering, fence};
}
