//! Times that were missed while the server was down, and which of them are made up for.

use super::limits::CATCH_UP_MAX;
use super::schedule::Schedule;

/// What becomes of missed times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CatchUp {
    /// None is made up for.
    #[default]
    Skip,
    /// The last one is.
    Last,
    /// Each is, but no more than the last `max`, and never more than [`CATCH_UP_MAX`].
    All {
        /// How many.
        max: usize,
    },
}

/// The missed times that fire now, in order: those after `last_ms`, up to `now_ms`, that the policy makes up for. A rate counts from 1970.
///
/// The caller asks once, when it begins: `last_ms` is the last time that it took care of. From then on it asks [`Schedule::next`] after `now_ms`. The work is bounded by
/// the number of times that are given, however long the server was down.
#[must_use]
pub fn due(schedule: &Schedule, last_ms: i64, now_ms: i64, policy: CatchUp) -> Vec<i64> {
    due_from(schedule, 0, last_ms, now_ms, policy)
}

/// As [`due`], with a rate that counts from `anchor_ms`.
#[must_use]
pub fn due_from(schedule: &Schedule, anchor_ms: i64, last_ms: i64, now_ms: i64, policy: CatchUp) -> Vec<i64> {
    let most = match policy {
        CatchUp::Skip => 0,
        CatchUp::Last => 1,
        CatchUp::All { max } => max.min(CATCH_UP_MAX),
    };
    let missed = |until_ms: i64| schedule.last_from(anchor_ms, until_ms).filter(|at_ms| *at_ms > last_ms);
    let mut times: Vec<i64> =
        std::iter::successors(missed(now_ms), |at_ms| at_ms.checked_sub(1).and_then(missed)).take(most).collect();
    times.reverse();
    times
}
