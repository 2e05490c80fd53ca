//! Redrives that clients may ask for twice: a client whose answer was lost asks again, with the same token.

use std::cell::RefCell;
use std::collections::VecDeque;

/// How long one is remembered.
pub(super) const REMEMBERED_MS: i64 = 15 * 60 * 1_000;
/// Redrives that are remembered, the latest ones.
pub(super) const REMEMBERED_MAX: usize = 1_024;

/// The latest redrives. A server that starts anew has forgotten them.
#[derive(Debug, Default)]
pub(super) struct Redriven(RefCell<VecDeque<Redrive>>);

#[derive(Debug)]
struct Redrive {
    execution: u64,
    token: String,
    at_ms: i64,
}

impl Redriven {
    /// When the execution with that number was redriven by a request with that token.
    pub(super) fn find(&self, execution: u64, token: &str, now_ms: i64) -> Option<i64> {
        let redrives = self.0.borrow();
        let found = redrives.iter().find(|redrive| redrive.execution == execution && redrive.token == token);
        found.map(|redrive| redrive.at_ms).filter(|at_ms| now_ms.saturating_sub(*at_ms) < REMEMBERED_MS)
    }

    /// It was, at that time.
    pub(super) fn remember(&self, execution: u64, token: String, at_ms: i64) {
        let mut redrives = self.0.borrow_mut();
        if redrives.len() == REMEMBERED_MAX {
            redrives.pop_front();
        }
        redrives.push_back(Redrive { execution, token, at_ms });
    }
}
