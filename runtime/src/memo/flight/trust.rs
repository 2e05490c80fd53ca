//! Whether requests wait for equal ones: only where runs could be given again so far, since a wait for one that cannot be is in vain.

use std::sync::atomic::{AtomicU32, Ordering};

/// Runs in a row that could be given again, after one that could not, before requests wait.
const AGAIN: u32 = 8;

/// What the runs of a version were like. Each thread counts without a lock: a run that is missed or counted twice changes for how long requests wait, and not what they get.
#[derive(Debug)]
pub struct Trust {
    /// Runs that have to be as wanted until requests wait.
    wanted: AtomicU32,
}

impl Default for Trust {
    fn default() -> Trust {
        Trust { wanted: AtomicU32::new(1) }
    }
}

impl Trust {
    /// Whether requests wait.
    #[must_use]
    pub fn is_given(&self) -> bool {
        // Relaxed, here and below: it orders nothing else.
        self.wanted.load(Ordering::Relaxed) == 0
    }

    /// A run is over, and could be given again or not.
    pub fn ran(&self, could: bool) {
        let wanted = self.wanted.load(Ordering::Relaxed);
        let next = if could { wanted.saturating_sub(1) } else { AGAIN };
        // Written where it changes only, since all workers read it.
        if next != wanted {
            self.wanted.store(next, Ordering::Relaxed);
        }
    }

    /// Requests are told apart by more than before: the next run shows whether that is all.
    pub fn widened(&self) {
        self.wanted.fetch_max(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_wait_after_a_good_run_and_after_a_bad_one_when_eight_in_a_row_were_good() {
        let trust = Trust::default();
        assert!(!trust.is_given());
        trust.ran(true);
        assert!(trust.is_given());
        trust.widened();
        assert!(!trust.is_given());
        trust.ran(true);
        assert!(trust.is_given());
        trust.ran(false);
        for run in 1..AGAIN {
            trust.ran(true);
            assert!(!trust.is_given(), "{run}");
            trust.widened();
        }
        trust.ran(false);
        (1..AGAIN).for_each(|_| trust.ran(true));
        assert!(!trust.is_given(), "not in a row");
        trust.ran(true);
        assert!(trust.is_given());
    }
}
