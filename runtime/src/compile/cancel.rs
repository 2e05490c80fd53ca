//! Ends a compilation that is not wanted any more.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Held by what may not want a compilation any more, and by what carries it out. A compilation that was cancelled before it began does not begin.
#[derive(Clone, Default)]
pub struct Cancel(Arc<Mutex<State>>);

#[derive(Default)]
enum State {
    /// It does not run.
    #[default]
    Idle,
    /// It runs; that ends it.
    Running(Box<dyn FnOnce() + Send>),
    /// It is not wanted.
    Cancelled,
}

impl fmt::Debug for Cancel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Cancel").field(&self.is_cancelled()).finish()
    }
}

impl Cancel {
    /// Ends it, also if it begins later.
    pub fn cancel(&self) {
        let before = std::mem::replace(&mut *self.state(), State::Cancelled);
        // Without the lock: it may write to another process.
        if let State::Running(end) = before {
            end();
        }
    }

    /// Whether it was cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        matches!(*self.state(), State::Cancelled)
    }

    /// It runs, and `end` ends it; false if it was cancelled already, and `end` is not called any more.
    pub(super) fn arm(&self, end: impl FnOnce() + Send + 'static) -> bool {
        let mut state = self.state();
        if matches!(*state, State::Cancelled) {
            return false;
        }
        *state = State::Running(Box::new(end));
        true
    }

    /// It is over.
    pub(super) fn disarm(&self) {
        let mut state = self.state();
        if matches!(*state, State::Running(_)) {
            *state = State::Idle;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Single assignments, which cannot be half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn what_runs_is_ended_once_and_what_has_not_begun_does_not_begin() {
        let ended = Arc::new(AtomicUsize::new(0));
        let end = || {
            let ended = Arc::clone(&ended);
            move || _ = ended.fetch_add(1, Ordering::SeqCst)
        };
        let cancel = Cancel::default();
        assert!(cancel.arm(end()) && !cancel.is_cancelled());
        cancel.clone().cancel();
        cancel.cancel();
        assert_eq!((ended.load(Ordering::SeqCst), cancel.is_cancelled()), (1, true));
        assert!(!cancel.arm(end()), "it is not wanted");
        cancel.disarm();
        assert!(cancel.is_cancelled(), "that stays so");

        let over = Cancel::default();
        assert!(over.arm(end()));
        over.disarm();
        over.cancel();
        assert_eq!(ended.load(Ordering::SeqCst), 1, "it was over");
    }
}
