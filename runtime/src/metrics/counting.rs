//! Histograms, alone and added up. Not beside them, since `tests/interleavings` compiles their file with other atomics.

use std::time::Duration;

use crate::counters::{Histogram, Sum};

/// The bounds, in seconds, of the buckets that have something, and how much.
fn full(histograms: &[Histogram]) -> (Sum, Vec<(f64, u64)>) {
    let mut sum = Sum::default();
    histograms.iter().for_each(|histogram| sum.add(histogram));
    let full = sum.buckets().into_iter().filter(|(_, count)| *count > 0).collect();
    (sum, full)
}

#[test]
fn a_bound_belongs_to_its_bucket() {
    let last = 250 << 26;
    let cases = [(0, 250), (1, 250), (250, 250), (251, 500), (500, 500), (501, 1_000), (1_000, 1_000), (last, last)];
    for (ns, bound) in cases {
        let histogram = Histogram::default();
        histogram.observe(Duration::from_nanos(ns));
        assert_eq!(full(&[histogram]).1, [(bound as f64 / 1e9, 1)], "{ns} ns");
    }
    for ns in [last + 1, u64::MAX >> 1] {
        let histogram = Histogram::default();
        histogram.observe(Duration::from_nanos(ns));
        assert_eq!(full(&[histogram]).1, [(f64::INFINITY, 1)], "{ns} ns");
    }
}

#[test]
fn sums_are_of_all_threads() {
    let histograms = [Histogram::default(), Histogram::default()];
    histograms[0].observe(Duration::from_nanos(200));
    histograms[1].observe(Duration::from_micros(1));
    histograms[1].observe(Duration::from_secs(60));
    let (sum, full) = full(&histograms);
    assert_eq!((sum.count(), sum.seconds()), (3, 60.000_001_2));
    assert_eq!(full, [(2.5e-7, 1), (1e-6, 1), (f64::INFINITY, 1)]);
}
