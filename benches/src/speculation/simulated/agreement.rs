//! How well the model says what was measured.

use super::super::gains::geometric_mean;
use super::super::measured::{Measured, median};
use super::super::report::Report;
use super::figures::is_within;

/// A cell: what was measured, and what the model says of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Pair {
    /// The column.
    pub level: String,
    /// The load; none of one client.
    pub load: Option<f64>,
    /// Means, in milliseconds: measured, simulated.
    pub mean_ms: (f64, f64),
    /// The 99th percentiles.
    pub p99_ms: (f64, f64),
}

impl Pair {
    /// Simulated to measured.
    pub fn ratio(&self) -> f64 {
        self.mean_ms.1 / self.mean_ms.0
    }

    /// Whether the model says it.
    pub fn is_within(&self) -> bool {
        is_within(self.mean_ms.1, self.mean_ms.0)
    }

    /// Whether it is no mean that the model was told: those without speculation.
    pub fn is_predicted(&self) -> bool {
        self.level != "off"
    }
}

impl Measured {
    /// All cells.
    pub fn pairs(&self) -> Vec<Pair> {
        let Some(simulated) = &self.simulated else { return Vec::new() };
        let mut pairs = Vec::new();
        for (column, model) in self.columns.iter().filter_map(|column| Some((column, simulated.column(&column.level)?))) {
            let level = || column.level.clone();
            let mean_ms = (median(&column.alone_ms), model.alone_ms);
            pairs.push(Pair { level: level(), load: None, mean_ms, p99_ms: (column.p99_ms, model.p99_ms) });
            let loads = column.loads.iter().zip(&model.loads);
            pairs.extend(loads.map(|(cell, model)| Pair {
                level: level(),
                load: Some(cell.load),
                mean_ms: (median(&cell.mean_ms), model.mean_ms),
                p99_ms: (cell.p99_ms, model.p99_ms),
            }));
        }
        pairs
    }
}

impl Report {
    /// All programs whose store is as far away as usual, and where hit rates and places differ.
    fn all(&self) -> impl Iterator<Item = &Measured> {
        self.programs.iter().chain(&self.hits).chain(&self.stores)
    }

    /// So many of these cells are predicted within 15 %, of so many.
    pub fn within(&self, which: impl Fn(&Pair) -> bool) -> (usize, usize) {
        let pairs: Vec<Pair> = self.all().flat_map(Measured::pairs).filter(|pair| pair.is_predicted() && which(pair)).collect();
        (pairs.iter().filter(|pair| pair.is_within()).count(), pairs.len())
    }

    /// The part of all cells that is predicted within 15 %, in percent; NaN of none.
    pub fn within_percent(&self) -> f64 {
        let (within, all) = self.within(|_| true);
        within as f64 / all as f64 * 1e2
    }

    /// The 99th percentiles of the columns with speculation to those of the model, of the programs at the paper's hit rates: the mean.
    pub fn p99_ratio(&self) -> f64 {
        let pairs = self.programs.iter().flat_map(Measured::pairs).filter(Pair::is_predicted);
        geometric_mean(pairs.map(|pair| pair.p99_ms.0 / pair.p99_ms.1))
    }
}

#[cfg(test)]
mod tests {
    use super::super::figures::{Cell, Column, Simulated};
    use crate::speculation::measured;
    use crate::speculation::report::tests::{column, measured, report};

    /// Measured, and simulated, of one client and at a load.
    pub(in super::super) fn both(level: &str, means: [(f64, f64); 2]) -> (measured::Column, Column) {
        let [alone, load] = means;
        let cell = measured::Cell { load: 0.7, mean_ms: vec![load.0], p99_ms: 3.0 * load.0, ..measured::Cell::default() };
        let measured = measured::Column { loads: vec![cell], ..column(level, &[alone.0]) };
        let loads = vec![Cell { load: 0.7, mean_ms: load.1, p99_ms: 2.0 * load.0 }];
        (measured, Column { level: level.to_owned(), share: 1.0, alone_ms: alone.1, p99_ms: 9.0, loads, ..Column::default() })
    }

    #[test]
    fn cells_with_speculation_are_those_that_are_predicted() {
        let all = [
            both("off", [(8.0, 8.0), (10.0, 30.0)]),
            both("stalls", [(4.0, 4.5), (5.0, 5.9)]),
            both("skips", [(2.0, 1.72), (3.0, 3.3)]),
        ];
        let (columns, simulated): (Vec<_>, Vec<_>) = all.into_iter().unzip();
        let mut one = measured("banking", &columns);
        assert!(one.pairs().is_empty());
        one.simulated = Some(Simulated { columns: simulated, ..Simulated::default() });
        let mut report = report();
        assert!(report.within_percent().is_nan());
        report.programs = vec![one];
        assert_eq!((report.within(|_| true), report.within(|pair| pair.load.is_none())), ((3, 4), (2, 2)));
        assert_eq!(report.within_percent(), 75.0);
        // 9 to 9 of one client, and 3 to 2 at a load.
        assert!((report.p99_ratio() - 1.5_f64.sqrt()).abs() < 1e-9, "{}", report.p99_ratio());
        let text = report.table();
        assert!(text.contains("It predicts 3 of the 4 means with speculation within 15 %, 2 of 2 of one client"), "{text}");
        assert!(text.contains("| banking | Redis 1 ms away, 90 % paths, 90 % repeats | stalls | 100 % | 70 % | 5.00 | 5.90 | 1.18 | 15.00 | 10.00 |"), "{text}");
    }
}
