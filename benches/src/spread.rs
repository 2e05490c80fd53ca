//! The middle of repeated measurements, and how far they are apart.

/// Median and quartiles, by nearest rank.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// A quarter is at most this.
    pub low: f64,
    /// Half are at most this; of two, the larger.
    pub median: f64,
    /// Three quarters are at most this.
    pub high: f64,
}

impl Spread {
    /// Of some numbers; none of none.
    pub fn of(numbers: impl IntoIterator<Item = f64>) -> Option<Spread> {
        let mut sorted: Vec<f64> = numbers.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len().checked_sub(1)?;
        let at = |share: f64| sorted[(last as f64 * share).round() as usize];
        Some(Spread { low: at(0.25), median: at(0.5), high: at(0.75) })
    }

    /// How far half of the numbers are from the median, as a share of it.
    pub fn noise(self) -> f64 {
        if self.median == 0.0 { 0.0 } else { (self.high - self.low) / 2.0 / self.median.abs() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_are_nearest_ranks() {
        assert_eq!(Spread::of([]), None);
        assert_eq!(Spread::of([2.0]), Some(Spread { low: 2.0, median: 2.0, high: 2.0 }));
        assert_eq!(Spread::of([4.0, 2.0]).unwrap().median, 4.0);
        let spread = Spread::of([5.0, 1.0, 4.0, 3.0, 2.0]).unwrap();
        assert_eq!((spread.low, spread.median, spread.high), (2.0, 3.0, 4.0));
        assert!((spread.noise() - 1.0 / 3.0).abs() < 1e-12);
    }
}
