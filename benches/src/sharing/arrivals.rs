//! What comes when, and for what it asks: everything is drawn from a seed.

use std::fmt;
use std::time::Duration;

use serde::{Serialize, Serializer};

use crate::random::Random;

/// Share of accesses that write.
pub const WRITES: f64 = 0.23;
/// Share of values that are small.
const SMALL: f64 = 0.8;
/// Bytes of the smallest value, of the largest small one, and of the largest.
const BYTES: [f64; 3] = [512.0, 12_000.0, 64_000.0];

/// How requests come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pattern {
    /// Each for itself.
    Poisson,
    /// So many at once, and these bursts each for itself.
    Bursts(usize),
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pattern::Poisson => f.pad("poisson"),
            Pattern::Bursts(size) => f.pad(&format!("bursts of {size}")),
        }
    }
}

impl Serialize for Pattern {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Pattern {
    /// When requests are due, `rate` a second, until `end`; at least one of them, or one burst, at `counted` or later.
    pub fn due(self, rate: f64, counted: Duration, end: Duration, seed: u64) -> Vec<Duration> {
        let mut random = Random(seed);
        let (size, mut at, mut due) = (self.size(), 0.0, Vec::new());
        loop {
            // Gaps of a Poisson process are exponential.
            at -= (1.0 - random.unit()).ln() * size as f64 / rate;
            if at >= end.as_secs_f64() {
                break;
            }
            due.extend(std::iter::repeat_n(Duration::from_secs_f64(at), size));
        }
        if due.last().is_none_or(|last| *last < counted) {
            due.extend(std::iter::repeat_n(counted, size));
        }
        due
    }

    /// How many come at once.
    pub fn size(self) -> usize {
        match self {
            Pattern::Poisson => 1,
            Pattern::Bursts(size) => size,
        }
    }
}

/// Draws what requests ask for.
#[derive(Debug)]
pub struct Draw {
    random: Random,
    /// For each key the share of it and those before it.
    shares: Vec<f64>,
}

impl Draw {
    /// So many keys by Zipf's law with the exponent 1: the second key is drawn half as often as the first, and so on.
    pub fn new(seed: u64, keys: u32) -> Draw {
        let total: f64 = (1..=keys).map(|rank| 1.0 / f64::from(rank)).sum();
        let shares = (1..=keys).scan(0.0, |sum, rank| {
            *sum += 1.0 / f64::from(rank) / total;
            Some(*sum)
        });
        Draw { random: Random(seed), shares: shares.collect() }
    }

    /// The number of a key, from 0.
    pub fn key(&mut self) -> u32 {
        let unit = self.random.unit();
        let below = self.shares.partition_point(|share| *share <= unit);
        below.min(self.shares.len() - 1) as u32
    }

    /// Whether an access writes.
    pub fn is_write(&mut self) -> bool {
        self.random.unit() < WRITES
    }
}

/// How long the value of a key is, in bytes, a multiple of 4: always the same. Four fifths are below 12 KB; logarithms of lengths are uniform within both parts.
pub fn value_bytes(key: u32) -> u32 {
    let mut random = Random(u64::from(key) << 32 | 0xb10b);
    let (low, high) = if random.unit() < SMALL { (BYTES[0], BYTES[1]) } else { (BYTES[1], BYTES[2]) };
    let bytes = low * (high / low).powf(random.unit());
    bytes as u32 & !3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_have_their_rate_and_their_pattern() {
        let end = Duration::from_secs(100);
        for (pattern, rate) in [(Pattern::Poisson, 200.0), (Pattern::Bursts(8), 400.0), (Pattern::Bursts(32), 1_600.0)] {
            let due = pattern.due(rate, Duration::ZERO, end, 7);
            assert_eq!(due, pattern.due(rate, Duration::ZERO, end, 7));
            assert_ne!(due, pattern.due(rate, Duration::ZERO, end, 8));
            let per_second = due.len() as f64 / 100.0;
            assert!((per_second / rate - 1.0).abs() < 0.05, "{pattern}: {per_second} a second in place of {rate}");
            assert!(due.is_sorted() && due.last().is_some_and(|last| *last < end));
            assert!(due.chunks(pattern.size()).all(|burst| burst.len() == pattern.size() && burst[0] == burst[burst.len() - 1]));
        }
        // The squared variation of exponential gaps is 1; that of regular ones would be 0.
        let due = Pattern::Poisson.due(200.0, Duration::ZERO, end, 1);
        let gaps: Vec<f64> = due.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64()).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((variance / mean.powi(2) - 1.0).abs() < 0.1, "{variance} {mean}");
    }

    #[test]
    fn one_burst_counts_at_least() {
        let due = Pattern::Bursts(8).due(0.01, Duration::from_secs(1), Duration::from_secs(2), 1);
        assert_eq!(due, [Duration::from_secs(1); 8]);
    }

    #[test]
    fn keys_and_writes_have_their_shares() {
        let mut draw = Draw::new(3, 200);
        let keys: Vec<u32> = (0..100_000).map(|_| draw.key()).collect();
        let count = |wanted: u32| keys.iter().filter(|key| **key == wanted).count() as f64;
        assert!(keys.iter().all(|key| *key < 200) && count(199) > 0.0);
        assert!((count(0) / count(1) - 2.0).abs() < 0.1 && (count(0) / count(9) - 10.0).abs() < 1.0);
        let writes = (0..100_000).filter(|_| draw.is_write()).count() as f64 / 1e5;
        assert!((writes - WRITES).abs() < 0.01, "{writes}");
    }

    #[test]
    fn most_values_are_small() {
        let bytes: Vec<u32> = (0..10_000).map(value_bytes).collect();
        let small = bytes.iter().filter(|bytes| **bytes < 12_000).count() as f64 / 1e4;
        assert!((small - 0.8).abs() < 0.02, "{small}");
        assert!(bytes.iter().all(|bytes| (512..=64_000).contains(bytes) && bytes % 4 == 0));
    }
}
