//! What becomes of commits, in numbers.

use std::sync::atomic::{AtomicU64, Ordering};

use super::{KvError, Outcome};

/// What may become of one: made; not made, since a version was another; refused for what it says or for want of room; not made, or perhaps, since the
/// store does not work; unknown, since its function did not wait for it.
pub const OUTCOMES: [&str; 5] = ["ok", "conflict", "refused", "failed", "abandoned"];

/// How many commits came to what.
#[derive(Debug, Default)]
pub struct Commits([AtomicU64; OUTCOMES.len()]);

/// A commit under way: counted when its outcome is known, or when its function does not wait for that any more.
pub(super) struct Counted<'a>(Option<&'a Commits>);

impl Commits {
    /// Begins one.
    pub(super) const fn begin(&self) -> Counted<'_> {
        Counted(Some(self))
    }

    /// Each outcome, and how many there were.
    #[must_use]
    pub fn counts(&self) -> [(&'static str, u64); OUTCOMES.len()] {
        std::array::from_fn(|index| (OUTCOMES[index], self.0[index].load(Ordering::Relaxed)))
    }

    fn add(&self, index: usize) {
        // Relaxed: a number that orders nothing else.
        self.0[index].fetch_add(1, Ordering::Relaxed);
    }
}

impl Counted<'_> {
    pub(super) fn ended(mut self, result: &Result<Outcome, KvError>) {
        let index = match result {
            Ok(Outcome::Committed { .. }) => 0,
            Ok(Outcome::Conflict { .. }) => 1,
            Err(KvError::Unavailable(_) | KvError::Unknown(_) | KvError::Fenced) => 3,
            Err(_) => 2,
        };
        if let Some(commits) = self.0.take() {
            commits.add(index);
        }
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        if let Some(commits) = self.0 {
            commits.add(4);
        }
    }
}
