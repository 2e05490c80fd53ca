//! Which publication each thread has taken, and the wait until all have.

use std::time::{Duration, Instant};

use crate::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The last number that each thread has taken; none for those that have ended.
#[derive(Debug)]
pub(super) struct Taken {
    numbers: Mutex<Vec<Option<u64>>>,
    changed: Condvar,
}

impl Taken {
    pub(super) fn new() -> Taken {
        Taken { numbers: Mutex::new(Vec::new()), changed: Condvar::new() }
    }

    /// One more thread, which has taken that number; its index.
    pub(super) fn join(&self, number: u64) -> usize {
        let mut numbers = self.numbers();
        numbers.push(Some(number));
        numbers.len() - 1
    }

    /// A thread has taken that number, or has ended.
    pub(super) fn set(&self, thread: usize, number: Option<u64>) {
        self.numbers()[thread] = number;
        // Without this, the thread that waits would find out when its time is over.
        self.changed.notify_all();
    }

    /// Waits until every thread has taken that number, or has ended; false if that takes longer than `time`. What the threads did before is seen then.
    pub(super) fn wait(&self, number: u64, time: Duration) -> bool {
        let deadline = Instant::now() + time;
        let mut numbers = self.numbers();
        while numbers.iter().flatten().any(|taken| *taken < number) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            numbers = self.changed.wait_timeout(numbers, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    fn numbers(&self) -> MutexGuard<'_, Vec<Option<u64>>> {
        // Single assignments, which cannot be half done.
        self.numbers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
