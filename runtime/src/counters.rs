//! Numbers that one thread writes and others read: an addition is a load and a store, not a locked instruction.

use std::time::Duration;

use crate::sync::atomic::{AtomicU64, Ordering};

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
