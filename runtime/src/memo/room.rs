//! What a table has of the server's memory (`memory_total_bytes_max`).
//!
//! A table only takes what is left: it gives something back for a request, and never has anything given back for an answer. So nothing is claimed under its lock, which is taken to give back.

use std::sync::Arc;

use sledge_sandbox::{Budget, Share};

/// What it has; without a budget as much as it likes.
#[derive(Debug, Default)]
pub struct Room {
    budget: Option<Arc<Budget>>,
    share: Option<Share>,
}

impl Room {
    /// Nothing yet.
    #[must_use]
    pub const fn new(budget: Option<Arc<Budget>>) -> Room {
        Room { budget, share: None }
    }

    /// Makes it so many bytes; false, and nothing changed, where there are not so many left.
    #[must_use]
    pub fn resize(&mut self, bytes: usize) -> bool {
        let Some(budget) = &self.budget else { return true };
        let (bytes, had) = (bytes as u64, self.share.as_ref().map_or(0, Share::bytes));
        match (&mut self.share, bytes.checked_sub(had)) {
            (_, Some(0)) => {}
            (Some(share), None) => drop(share.split(had - bytes)),
            (share, more) => {
                let Some(more) = budget.reserve(more.unwrap_or_default()) else { return false };
                match share {
                    Some(share) => share.join(more),
                    None => *share = Some(more),
                }
            }
        }
        true
    }
}
