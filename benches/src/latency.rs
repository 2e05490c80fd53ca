//! Latencies of many requests, and how durations are written.

use std::time::Duration;

/// A set of measured durations.
#[derive(Debug, Default)]
pub struct Latencies {
    sorted: Vec<Duration>,
}

impl FromIterator<Duration> for Latencies {
    fn from_iter<I: IntoIterator<Item = Duration>>(durations: I) -> Self {
        let mut sorted: Vec<_> = durations.into_iter().collect();
        sorted.sort_unstable();
        Latencies { sorted }
    }
}

impl Latencies {
    /// Half are at most this long.
    ///
    /// # Panics
    ///
    /// If there are none.
    pub fn median(&self) -> Duration {
        self.quantile(50)
    }

    /// Ninety-nine in a hundred are at most this long.
    ///
    /// # Panics
    ///
    /// If there are none.
    pub fn p99(&self) -> Duration {
        self.quantile(99)
    }

    /// The nearest rank: the smallest one that `percent` of all do not exceed.
    fn quantile(&self, percent: usize) -> Duration {
        assert!(!self.sorted.is_empty(), "a quantile of no durations");
        let rank = (self.sorted.len() * percent).div_ceil(100).max(1);
        self.sorted[rank - 1]
    }
}

/// A duration with three digits and the unit that fits.
pub fn show(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    let (number, unit) = match seconds {
        s if s < 1e-6 => (s * 1e9, "ns"),
        s if s < 1e-3 => (s * 1e6, "us"),
        s if s < 1.0 => (s * 1e3, "ms"),
        s => (s, "s"),
    };
    let decimals = match number {
        n if n < 10.0 => 2,
        n if n < 100.0 => 1,
        _ => 0,
    };
    format!("{number:.decimals$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_nearest_ranks() {
        let latencies: Latencies = (1..=200).rev().map(Duration::from_micros).collect();
        assert_eq!(latencies.median(), Duration::from_micros(100));
        assert_eq!(latencies.p99(), Duration::from_micros(198));
        let one: Latencies = [Duration::from_micros(7)].into_iter().collect();
        assert_eq!((one.median(), one.p99()), (Duration::from_micros(7), Duration::from_micros(7)));
    }

    #[test]
    fn durations_have_three_digits_and_a_unit() {
        let shown = |micros: f64| show(Duration::from_secs_f64(micros / 1e6));
        assert_eq!(shown(0.25), "250 ns");
        assert_eq!(shown(8.25), "8.25 us");
        assert_eq!(shown(123.4), "123 us");
        assert_eq!(shown(45_600.0), "45.6 ms");
        assert_eq!(shown(2_500_000.0), "2.50 s");
    }
}
