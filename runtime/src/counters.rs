//! Numbers that one thread writes and others read: an addition is a load and a store, not a locked instruction.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A number that only one thread changes.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    /// Adds. Only for the one thread: with two, some would be lost.
    pub fn add(&self, number: u64) {
        // Relaxed, here and below: a number that orders nothing else.
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(number), Ordering::Relaxed);
    }

    /// Replaces it. Only for the one thread.
    pub fn set(&self, number: u64) {
        self.0.store(number, Ordering::Relaxed);
    }

    /// What it is.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The upper bound of the first bucket, in nanoseconds; each further one's is twice that of the one before.
const FIRST_NS: u64 = 250;
/// Buckets with an upper bound: the last is 16.8 s.
const BUCKETS: usize = 27;

/// How often something took how long; one thread writes. The sum and the buckets of the first microseconds share a cache line.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Histogram {
    sum_ns: Count,
    /// The last one has no upper bound.
    buckets: [Count; BUCKETS + 1],
}

/// Histograms, added up.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sum {
    buckets: [u64; BUCKETS + 1],
    sum_ns: u64,
}

impl Histogram {
    /// Takes note of a duration.
    pub fn observe(&self, took: Duration) {
        // More than 500 years at once are not measured.
        let ns = took.as_nanos() as u64;
        self.buckets[bucket(ns)].add(1);
        self.sum_ns.add(ns);
    }
}

fn bucket(ns: u64) -> usize {
    let units = ns.div_ceil(FIRST_NS).max(1);
    (units.next_power_of_two().trailing_zeros() as usize).min(BUCKETS)
}

impl Sum {
    /// Adds a histogram.
    pub fn add(&mut self, histogram: &Histogram) {
        for (sum, count) in self.buckets.iter_mut().zip(&histogram.buckets) {
            *sum += count.get();
        }
        self.sum_ns += histogram.sum_ns.get();
    }

    /// How many there were.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// How long they took together, in seconds.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.sum_ns as f64 / 1e9
    }

    /// Upper bounds in seconds, and how many took at most that long and longer than the one before.
    #[must_use]
    pub fn buckets(&self) -> Vec<(f64, u64)> {
        let bound = |index: usize| if index == BUCKETS { f64::INFINITY } else { (FIRST_NS << index) as f64 / 1e9 };
        self.buckets.iter().enumerate().map(|(index, count)| (bound(index), *count)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_belongs_to_its_bucket() {
        let cases = [(0, 0), (1, 0), (250, 0), (251, 1), (500, 1), (501, 2), (1_000, 2), (250 << 26, 26), ((250 << 26) + 1, 27)];
        for (ns, expected) in cases {
            assert_eq!(bucket(ns), expected, "{ns} ns");
        }
        assert_eq!(bucket(u64::MAX >> 1), BUCKETS);
    }

    #[test]
    fn sums_are_of_all_threads() {
        let histograms = [Histogram::default(), Histogram::default()];
        histograms[0].observe(Duration::from_nanos(200));
        histograms[1].observe(Duration::from_micros(1));
        histograms[1].observe(Duration::from_secs(60));
        let mut sum = Sum::default();
        histograms.iter().for_each(|histogram| sum.add(histogram));
        assert_eq!((sum.count(), sum.seconds()), (3, 60.000_001_2));
        let full: Vec<(f64, u64)> = sum.buckets().into_iter().filter(|(_, count)| *count > 0).collect();
        assert_eq!(full, [(2.5e-7, 1), (1e-6, 1), (f64::INFINITY, 1)]);
    }
}
