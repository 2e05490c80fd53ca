//! How many requests of one function are taken and run at the same time.
//!
//! A request is taken (or refused, with 429) before its body is read. When it is complete it may run, or waits here until another of the
//! function is over. So what the workers' queues hold may all run.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::Invocation;
use crate::schedule::percentile::follow;

/// The part of executions that take at most as long as is expected: the upper ones count, those of the average do not keep a promise.
const EXPECTED_PERCENTILE: f64 = 0.9;
/// How often it is looked for places of clients that have gone.
const LOOK_PAUSE: Duration = Duration::from_millis(10);

/// A function's limits, and who runs and waits.
pub struct Gate {
    /// Requests that run at the same time; none for no limit.
    concurrency_max: Option<usize>,
    /// Requests taken and not over; none for no limit.
    taken_max: Option<usize>,
    taken: AtomicUsize,
    line: Mutex<Line>,
    expected_ns: AtomicU64,
}

#[derive(Debug, Default)]
struct Line {
    running: usize,
    waiting: VecDeque<Invocation>,
    /// When it was last looked who of them has gone.
    looked: Option<Instant>,
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Gate { concurrency_max, taken_max, taken, .. } = self;
        let mut debug = f.debug_struct("Gate");
        debug
            .field("concurrency_max", concurrency_max)
            .field("taken_max", taken_max)
            .field("taken", taken)
            .finish_non_exhaustive()
    }
}

impl Gate {
    /// A gate for so many at the same time, and so many more that wait; none for no limit.
    #[must_use]
    pub fn new(concurrency_max: Option<usize>, queue_max: Option<usize>) -> Gate {
        let taken_max = concurrency_max.zip(queue_max).map(|(running, waiting)| running.saturating_add(waiting));
        let (taken, line) = (AtomicUsize::new(0), Mutex::default());
        Gate { concurrency_max, taken_max, taken, line, expected_ns: AtomicU64::new(0) }
    }

    /// Whether there is any limit to keep.
    #[must_use]
    pub fn is_limited(&self) -> bool {
        self.concurrency_max.is_some()
    }

    /// Takes one more request, if there is room; what it says it took has to be given back with [`Gate::leave`].
    pub(crate) fn take(&self) -> bool {
        let Some(taken_max) = self.taken_max else { return true };
        // Relaxed, here and below: a number to compare with a limit; it orders nothing else.
        if self.taken.fetch_add(1, Ordering::Relaxed) < taken_max {
            return true;
        }
        // Room may be had of those whose client has gone; each that is dropped gives its place back.
        let gone = self.remove_gone();
        let room = !gone.is_empty();
        drop(gone);
        if room && self.taken.load(Ordering::Relaxed) <= taken_max {
            return true;
        }
        self.taken.fetch_sub(1, Ordering::Relaxed);
        false
    }

    /// Lets a complete request run, or keeps it until it may.
    pub(crate) fn enter(&self, mut invocation: Invocation) -> Option<Invocation> {
        if let Some(concurrency_max) = self.concurrency_max {
            let mut line = self.line();
            if line.running >= concurrency_max {
                line.waiting.push_back(invocation);
                return None;
            }
            line.running += 1;
            invocation.admission.runs = true;
        }
        Some(invocation)
    }

    /// A request is over; `ran` says whether it was let in. The next one that may run now, if there is one.
    pub(crate) fn leave(&self, ran: bool) -> Option<Invocation> {
        if self.taken_max.is_some() {
            self.taken.fetch_sub(1, Ordering::Relaxed);
        }
        if !ran {
            return None;
        }
        let mut line = self.line();
        match line.waiting.pop_front() {
            Some(mut invocation) => {
                invocation.admission.runs = true;
                Some(invocation)
            }
            None => {
                line.running -= 1;
                None
            }
        }
    }

    /// How long an execution is expected to take: a running percentile of those that were.
    #[must_use]
    pub fn expected(&self) -> Duration {
        Duration::from_nanos(self.expected_ns.load(Ordering::Relaxed))
    }

    /// Takes note of an execution.
    pub fn observe(&self, ran: Duration) {
        let expected = self.expected_ns.load(Ordering::Relaxed);
        // Two at once may make one of them not count.
        self.expected_ns.store(follow(expected, ran.as_nanos() as u64, EXPECTED_PERCENTILE), Ordering::Relaxed);
    }

    /// Those who wait and whose client has gone; none if it was looked just now: that each who is refused looked at all who wait would cost more than
    /// answering them.
    fn remove_gone(&self) -> Vec<Invocation> {
        let mut line = self.line();
        if line.looked.is_some_and(|looked| looked.elapsed() < LOOK_PAUSE) {
            return Vec::new();
        }
        line.looked = Some(Instant::now());
        let (gone, waiting): (Vec<Invocation>, Vec<Invocation>) =
            std::mem::take(&mut line.waiting).into_iter().partition(|waiting| waiting.reply.is_closed());
        line.waiting = waiting.into();
        gone
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        // Nothing that is done under the lock can panic half-way.
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_expectation_is_an_upper_percentile_and_follows_a_change() {
        // SplitMix64.
        let mut seed = 0x5eed_0041_u64;
        let mut random = move || {
            seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb) >> 32
        };
        let gate = Gate::new(None, None);
        for unit in [1_000, 50_000] {
            // Uniform between 0 and 100 units: the percentile is at 90.
            for _ in 0..5_000 {
                gate.observe(Duration::from_nanos(random() % 100 * unit));
            }
            let mut sum = 0;
            for _ in 0..1_000 {
                gate.observe(Duration::from_nanos(random() % 100 * unit));
                sum += gate.expected().as_nanos() as u64 / unit;
            }
            assert!((80..100).contains(&(sum / 1_000)), "{}", sum / 1_000);
        }
    }

    #[test]
    fn no_more_are_taken_than_run_and_wait() {
        let gate = Gate::new(Some(2), Some(1));
        assert!((0..3).all(|_| gate.take()));
        assert!(!gate.take());
        assert!(gate.leave(false).is_none());
        assert!(gate.take() && !gate.take());
        let without = Gate::new(Some(1), None);
        assert!((0..1_000).all(|_| without.take()), "the server's limit is the only one");
    }
}
