//! How long functions run, so that a state is started ahead only where there is something to gain (speculation.md, C17).

use std::time::Duration;

use serde::Serialize;
use sledge_workflow::definition::StateIndex;

use super::bounded::{Bounded, Weigh};
use super::shown;

/// So many times the cost of a launch has to be left of what is waited for.
pub const LAUNCHES: u32 = 5;
/// Runs without which nothing is said.
const SAMPLES_MIN: u32 = 2;
/// The mean moves by this part of the difference, as soon as there are so many runs.
const PART: u32 = 8;

/// Whether it pays to start a function while another is expected to run for that long, where a start costs so much.
#[must_use]
pub fn worth(expected_remaining: Duration, launch: Duration) -> bool {
    expected_remaining > launch.saturating_mul(LAUNCHES)
}

/// What a start ahead has cost whose run was asked for in the end: the start, and the time for which the run was waited for then. Begun when it was asked for, it would have been waited for as long as it works, and for its turns as
/// well: a wait beyond its work says nothing.
#[must_use]
pub fn cost(worked: Duration, waited: Duration, launch: Duration) -> Duration {
    waited.min(worked) + launch
}

/// How long the functions of states have run.
#[derive(Debug)]
pub struct Times {
    states: Bounded<(u64, StateIndex), Mean>,
    commits: Mean,
}

/// The mean of recent times.
#[derive(Debug, Default)]
pub(super) struct Mean {
    time: Duration,
    samples: u32,
}

impl Weigh for Mean {
    fn heap_bytes(&self) -> usize {
        0
    }
}

impl Mean {
    /// It; none where there were too few times.
    pub(super) fn known(&self) -> Option<Duration> {
        Some(self.time).filter(|_| self.samples >= SAMPLES_MIN)
    }

    /// One more.
    pub(super) fn count(&mut self, took: Duration) {
        self.samples = self.samples.saturating_add(1);
        let part = self.samples.min(PART);
        // First the mean of all, then that of the recent ones.
        self.time = if took > self.time {
            self.time.saturating_add((took - self.time) / part)
        } else {
            self.time - (self.time - took) / part
        };
    }
}

impl Times {
    /// Nothing yet, and room for so many bytes.
    #[must_use]
    pub fn new(bytes_max: usize) -> Times {
        Times { states: Bounded::new(bytes_max, usize::MAX), commits: Mean::default() }
    }

    /// A commit took that long, until its outcome was known.
    pub fn committed(&mut self, took: Duration) {
        self.commits.count(took);
    }

    /// How long a commit is expected to take; none where there were fewer than two.
    #[must_use]
    pub fn commit(&self) -> Option<Duration> {
        self.commits.known()
    }

    /// A run of a state's function took that long, from its start to its answer.
    pub fn learn(&mut self, workflow: u64, state: StateIndex, took: Duration) {
        self.states.change((workflow, state), Mean::default, |mean| mean.count(took));
    }

    /// How long a run of it is expected to take that has taken so long already; none where there were fewer than two. One that takes longer than the mean is expected to end at once.
    #[must_use]
    pub fn remaining(&self, workflow: u64, state: StateIndex, so_far: Duration) -> Option<Duration> {
        Some(self.states.peek(&(workflow, state))?.known()?.saturating_sub(so_far))
    }

    /// Drops what is known of a workflow.
    pub fn forget(&mut self, workflow: u64) {
        self.states.retain(|(own, _)| *own != workflow);
    }

    /// Bytes of all of it.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.states.bytes()
    }

    /// Drops what was not learned for longest; false where there is nothing.
    pub fn evict(&mut self) -> bool {
        self.states.evict()
    }

    /// All that is known, for people.
    #[must_use]
    pub fn known(&self) -> Vec<KnownTime> {
        let mut known: Vec<_> = self.states.iter().collect();
        known.sort_unstable_by_key(|(key, _)| **key);
        let known = known.into_iter().map(|((workflow, state), mean)| KnownTime {
            workflow: shown(*workflow),
            state: *state,
            mean_us: u64::try_from(mean.time.as_micros()).unwrap_or(u64::MAX),
            runs: mean.samples,
        });
        known.collect()
    }
}

/// How long a state's function takes.
#[derive(Clone, Debug, Serialize)]
pub struct KnownTime {
    /// The fingerprint of the workflow's definition.
    pub workflow: String,
    /// The state's number among all of the definition.
    pub state: StateIndex,
    /// The mean of recent runs.
    pub mean_us: u64,
    /// How many runs there were.
    pub runs: u32,
}

#[cfg(test)]
mod tests {
    use super::super::tests::state;
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_start_is_worth_its_cost_only_where_more_than_five_of_it_are_left() {
        assert!(!worth(5 * MS, MS) && worth(5 * MS + Duration::from_nanos(1), MS));
        assert!(worth(Duration::from_nanos(1), Duration::ZERO) && !worth(Duration::ZERO, Duration::ZERO));
        assert!(!worth(Duration::from_secs(3_600), Duration::MAX));
    }

    #[test]
    fn a_wait_for_a_run_costs_no_more_than_its_own_work() {
        let gains = |worked: u32, waited: u32| (worked * MS).checked_sub(cost(worked * MS, waited * MS, MS));
        // It had ended when it was asked for; it had half of its work before it; nothing of it was done.
        assert_eq!([0, 5, 9].map(|waited| gains(10, waited)), [Some(9 * MS), Some(4 * MS), Some(Duration::ZERO)]);
        assert_eq!((cost(10 * MS, 10 * MS, MS), gains(10, 10)), (11 * MS, None));
        // It has waited for its turn as well, for as long as a server is busy.
        assert_eq!((cost(10 * MS, 500 * MS, MS), cost(Duration::ZERO, 500 * MS, MS)), (11 * MS, MS));
    }

    #[test]
    fn commits_have_a_mean_of_their_own() {
        let mut times = Times::new(10_000);
        times.learn(1, state(3), 10 * MS);
        times.committed(MS);
        assert_eq!(times.commit(), None, "one says nothing");
        times.committed(3 * MS);
        assert_eq!(times.commit(), Some(2 * MS));
        times.forget(1);
        assert_eq!(times.commit(), Some(2 * MS), "the store is the same");
    }

    #[test]
    fn the_remaining_time_is_the_mean_less_what_has_passed_and_two_runs_are_needed() {
        let mut times = Times::new(10_000);
        let remaining = |times: &Times, so_far| times.remaining(1, state(3), so_far);
        assert_eq!(remaining(&times, MS), None);
        times.learn(1, state(3), 10 * MS);
        assert_eq!(remaining(&times, MS), None, "one run says nothing");
        times.learn(1, state(3), 20 * MS);
        assert_eq!(remaining(&times, MS), Some(14 * MS));
        assert_eq!(remaining(&times, 40 * MS), Some(Duration::ZERO));
        (0..1_000).for_each(|_| times.learn(1, state(3), 10 * MS));
        (0..30).for_each(|_| times.learn(1, state(3), 2 * MS));
        assert!(remaining(&times, Duration::ZERO).is_some_and(|left| left < 3 * MS), "what came lately counts");
        assert_eq!(times.remaining(2, state(3), MS), None);
        (0..200).for_each(|_| times.learn(1, state(3), Duration::MAX));
        times.forget(1);
        assert_eq!((remaining(&times, MS), times.bytes()), (None, 0));
        for number in 0..1_000 {
            times.learn(1, state(number), MS);
            assert!(times.bytes() <= 10_000);
        }
    }
}
