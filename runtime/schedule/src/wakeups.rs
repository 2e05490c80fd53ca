//! Blocked tasks of one worker to which something has happened. Any thread may say so.

use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Mutex, MutexGuard, PoisonError};
use crate::task::TaskId;

/// The tasks that were woken since the worker last looked.
///
/// A thread that wakes a task notes it, and then wakes the worker if [`Wakeups::note`] says so. The worker takes what is noted and polls these tasks. A task may be polled
/// in vain; it is never woken without being polled afterwards.
#[derive(Debug, Default)]
pub struct Wakeups {
    ids: Mutex<Vec<TaskId>>,
    /// Whether there are any, so that looking costs no lock.
    some: AtomicBool,
}

/// Whether a task is noted already.
#[derive(Debug, Default)]
pub struct Noted(AtomicBool);

impl Wakeups {
    /// Notes that something has happened to a task. Whether the worker is to be woken: otherwise it was, and has not looked yet.
    pub fn note(&self, id: TaskId, noted: &Noted) -> bool {
        // AcqRel, with the swap in `take`: either this finds the task not noted, and notes it again; or what was done before this is seen by the poll that follows
        // that swap.
        if noted.0.swap(true, Ordering::AcqRel) {
            return false;
        }
        self.ids().push(id);
        // Release, with the Acquire in `take`.
        self.some.store(true, Ordering::Release);
        true
    }

    /// Whether any are noted: a hint, since what is done about it looks again.
    #[must_use]
    pub fn has_some(&self) -> bool {
        self.some.load(Ordering::Relaxed)
    }

    /// Takes those that are noted, to be polled. What is noted later is found the next time; the worker is woken for it.
    pub fn take<'a>(&self, noted: impl Fn(TaskId) -> Option<&'a Noted>) -> Vec<TaskId> {
        if !self.some.load(Ordering::Acquire) {
            return Vec::new();
        }
        // Before the list is taken: a task that is noted in between is taken now, and looked for once more in vain.
        self.some.store(false, Ordering::Release);
        let ids = std::mem::take(&mut *self.ids());
        for noted in ids.iter().filter_map(|id| noted(*id)) {
            noted.0.swap(false, Ordering::AcqRel);
        }
        ids
    }

    fn ids(&self) -> MutexGuard<'_, Vec<TaskId>> {
        // A push or a take, which cannot be half done.
        self.ids.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
