//! What speculation gains and costs, each column to the same server without it.

use super::measured::{Cell, Column, Measured, median, ratio};
use super::program::Suite;
use super::report::Report;

/// NaN of none.
pub fn geometric_mean(numbers: impl Iterator<Item = f64>) -> f64 {
    let logarithms: Vec<f64> = numbers.map(f64::ln).collect();
    (logarithms.iter().sum::<f64>() / logarithms.len() as f64).exp()
}

impl Measured {
    /// The column of this name.
    pub fn column(&self, level: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.level == level)
    }

    /// That without speculation.
    pub fn off(&self) -> &Column {
        &self.columns[0]
    }

    /// The columns with speculation.
    pub fn ahead(&self) -> impl Iterator<Item = &Column> {
        self.columns.iter().skip(1)
    }

    /// How many times faster one client has its answers, at best.
    pub fn ceiling(&self) -> f64 {
        median(&self.off().alone_ms) / self.ideal_ms
    }

    /// How many times faster it has them in a column.
    pub fn speed_up(&self, column: &Column) -> f64 {
        ratio(&self.off().alone_ms, &column.alone_ms)
    }

    /// The part of the ceiling that a column has.
    pub fn share(&self, column: &Column) -> f64 {
        self.speed_up(column) / self.ceiling()
    }

    /// How many times faster answers come at a load, and that load without speculation.
    pub fn at_load<'a>(&'a self, column: &'a Column) -> impl Iterator<Item = (&'a Cell, f64)> {
        self.off().loads.iter().zip(&column.loads).map(|(off, cell)| (cell, ratio(&off.mean_ms, &cell.mean_ms)))
    }

    /// Processor time of an execution to that without speculation.
    pub fn cpu(&self, column: &Column) -> f64 {
        ratio(&column.cpu_ms, &self.off().cpu_ms)
    }

    /// For how long functions ran in vain, in percent of that for which they run without speculation; functions that were left out hide it.
    pub fn wasted_percent(&self, column: &Column) -> f64 {
        (ratio(&column.guest_ms, &self.off().guest_ms) - 1.0) * 1e2
    }

    /// The same if each run that was in vain had gone on to its end, about: as if it took as long as the mean.
    pub fn lazy_percent(&self, column: &Column) -> f64 {
        let in_vain = ["dropped", "squashed"].iter().filter_map(|result| column.ahead.get(*result));
        let in_vain = in_vain.fold(0.0, |sum, count| sum + count);
        in_vain / self.functions * 1e2
    }

    /// Which part of the functions did not run, since their answers were known.
    pub fn skipped(&self, column: &Column) -> f64 {
        let skipped = column.ahead.iter().filter(|(result, _)| result.starts_with("skip"));
        skipped.fold(0.0, |sum, (_, count)| sum + count) / self.functions
    }
}

impl Report {
    fn suite(&self, suite: Suite) -> impl Iterator<Item = &Measured> {
        self.programs.iter().filter(move |measured| measured.suite == suite)
    }

    /// Of the programs of a suite in a column; NaN where there are none.
    pub fn mean(&self, suite: Suite, level: &str, of: impl Fn(&Measured, &Column) -> Option<f64>) -> f64 {
        geometric_mean(self.suite(suite).filter_map(|measured| of(measured, measured.column(level)?)))
    }

    /// The mean speed-up of a suite.
    pub fn speed_up(&self, suite: Suite, level: &str) -> f64 {
        self.mean(suite, level, |measured, column| Some(measured.speed_up(column)))
    }

    /// The mean of the highest rates, to those without speculation.
    pub fn throughput(&self, suite: Suite, level: &str) -> f64 {
        self.mean(suite, level, |measured, column| Some(column.throughput? / measured.off().throughput?))
    }

    /// By how many percent the 99th percentile is lower at the highest load.
    pub fn p99_percent(&self, suite: Suite, level: &str) -> f64 {
        let ratio =
            self.mean(suite, level, |measured, column| Some(column.loads.last()?.p99_ms / measured.off().loads.last()?.p99_ms));
        (1.0 - ratio) * 1e2
    }

    /// The least share of its ceiling that a program has in a column; NaN where there is none.
    pub fn share_min(&self, level: &str) -> f64 {
        let all = self.programs.iter().filter_map(|measured| Some(measured.share(measured.column(level)?)));
        all.fold(f64::NAN, f64::min)
    }

    /// The least speed-up in a column of workflows in which so many functions run one after the other, at most.
    pub fn long_min(&self, level: &str, functions: usize) -> f64 {
        let long = self.suite(Suite::FaasChain).filter(|measured| measured.functions_max >= functions);
        long.filter_map(|measured| Some(measured.speed_up(measured.column(level)?))).fold(f64::NAN, f64::min)
    }

    /// What functions ran in vain at a hit rate, in percent: the mean of the workflows.
    pub fn wasted_percent(&self, level: &str, hits: u32) -> f64 {
        let at = super::source::Kind::Hits(super::source::Hits::both(hits));
        let of = self.hits.iter().filter(|measured| measured.kind == at && measured.suite == Suite::FaasChain);
        let wasted: Vec<f64> = of.filter_map(|measured| Some(measured.wasted_percent(measured.column(level)?))).collect();
        wasted.iter().sum::<f64>() / wasted.len() as f64
    }

    /// How many times as long one client waits with a store in the server as without speculation: the slowest program and column.
    pub fn near_max(&self) -> f64 {
        let near = self.stores.iter().filter(|measured| !measured.place.is_remote());
        near.flat_map(|measured| measured.ahead().map(|column| 1.0 / measured.speed_up(column))).fold(f64::NAN, f64::max)
    }

    /// What as many clients get done as keep the server busy, to that without speculation: the column with the least, over all programs.
    pub fn saturated_min(&self) -> f64 {
        let all = || self.programs.iter().chain(&self.stores);
        let levels = all().flat_map(Measured::ahead).map(|column| column.level.as_str());
        let of = |level: &str| {
            let pairs = all().filter_map(|measured| Some((measured.off(), measured.column(level)?)));
            let measured = pairs.filter(|(_, column)| !column.saturated.is_empty());
            geometric_mean(measured.map(|(off, column)| ratio(&column.saturated, &off.saturated)))
        };
        levels.map(of).fold(f64::NAN, f64::min)
    }

    /// How many times as long clients wait whose inputs are made to do harm as without speculation: the worst program and column, one client or several.
    pub fn poison_max(&self) -> f64 {
        let slower = |measured: &Measured, column: &Column| {
            (1.0 / measured.speed_up(column)).max(ratio(&column.crowd_ms, &measured.off().crowd_ms))
        };
        let all = self.poison.iter().flat_map(|measured| measured.ahead().map(move |column| slower(measured, column)));
        all.fold(f64::NAN, f64::max)
    }

    /// By how much more memory such inputs make the server grow than without speculation, at most, in millions of bytes.
    pub fn poison_mb(&self) -> f64 {
        let more = |measured: &Measured, column: &Column| Some(column.grown_mb? - measured.off().grown_mb?);
        let all = self.poison.iter().flat_map(|measured| measured.ahead().filter_map(move |column| more(measured, column)));
        all.fold(f64::NAN, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::speculation::place::Place;
    use crate::speculation::program::Program;
    use crate::speculation::report::tests::{column, measured, report};
    use crate::speculation::source::{Hits, Kind};

    #[test]
    fn ratios_are_medians_over_turns() {
        let mut one = measured("banking", &[column("off", &[8.0, 10.0, 80.0]), column("outputs", &[2.0, 5.0, 80.0])]);
        one.ideal_ms = 2.5;
        let outputs = one.column("outputs").unwrap();
        // 4, 2 and 1: a slow turn hits both.
        assert_eq!((one.speed_up(outputs), one.ceiling(), one.share(outputs)), (2.0, 4.0, 0.5));
    }

    #[test]
    fn what_ran_in_vain_is_what_functions_ran_for_beyond() {
        let mut off = column("off", &[10.0]);
        off.guest_ms = vec![2.0];
        let mut outputs = column("outputs", &[5.0]);
        outputs.guest_ms = vec![2.5];
        outputs.ahead = [("adopted", 3.0), ("dropped", 1.0), ("squashed", 0.5), ("skipped", 2.0)]
            .map(|(name, count)| (name.to_owned(), count))
            .into();
        let mut one = measured("banking", &[off, outputs]);
        one.functions = 4.0;
        let outputs = one.column("outputs").unwrap();
        assert_eq!((one.wasted_percent(outputs), one.lazy_percent(outputs), one.skipped(outputs)), (25.0, 37.5, 0.5));
        assert_eq!(one.lazy_percent(one.off()), 0.0);
    }

    #[test]
    fn suites_are_geometric_means_and_bounds_are_the_worst() {
        let of = |name: &str, outputs: f64| measured(name, &[column("off", &[8.0]), column("outputs", &[outputs])]);
        let mut report = report();
        report.programs = vec![of("login", 4.0), of("flight-book", 1.0), of("ts-left", 8.0)];
        report.programs[1].functions_max = 8;
        assert_eq!(report.speed_up(Suite::FaasChain, "outputs"), 4.0);
        assert!(report.speed_up(Suite::Alibaba, "outputs").is_nan() && report.speed_up(Suite::FaasChain, "calls").is_nan());
        assert_eq!((report.long_min("outputs", 7), report.long_min("outputs", 3)), (8.0, 2.0));
        assert!(report.long_min("outputs", 9).is_nan());
        report.stores = vec![of("login", 8.4), of("banking", 7.0)];
        report.stores[0].place = Place::Embedded;
        assert_eq!((report.near_max(), report.stores[1].place), (8.4 / 8.0, Place::Redis(Duration::from_millis(1))));
    }

    #[test]
    fn the_worst_of_harm_is_that_of_one_client_or_of_several() {
        let mut report = report();
        let [mut off, mut outputs] = [column("off", &[8.0]), column("outputs", &[4.0])];
        (off.crowd_ms, off.grown_mb) = (vec![10.0, 10.0, 10.0], Some(3.0));
        (outputs.crowd_ms, outputs.grown_mb) = (vec![11.0, 12.0, 99.0], Some(5.0));
        report.poison = vec![measured("banking", &[off, outputs])];
        assert_eq!((report.poison_max(), report.poison_mb()), (1.2, 2.0));
        report.poison[0].columns[1].alone_ms = vec![16.0];
        assert_eq!(report.poison_max(), 2.0);
    }

    #[test]
    fn saturation_is_the_column_that_loses_most() {
        let mut report = report();
        let saturated = |level: &str, per_second: f64| Column { saturated: vec![per_second], ..column(level, &[1.0]) };
        let columns = |paths, outputs| [saturated("off", 100.0), saturated("paths", paths), saturated("outputs", outputs)];
        report.programs = vec![measured("login", &columns(110.0, 90.0)), measured("banking", &columns(110.0, 160.0))];
        assert!((report.saturated_min() - 1.1).abs() < 1e-9, "{}", report.saturated_min());
        report.stores = vec![measured("login", &columns(50.0, 100.0))];
        assert!(report.saturated_min() < 1.0);
    }

    #[test]
    fn waste_is_that_of_the_hit_rate() {
        let mut report = report();
        let at = |percent, guest_ms: f64| {
            let [mut off, mut outputs] = [column("off", &[8.0]), column("outputs", &[4.0])];
            (off.guest_ms, outputs.guest_ms) = (vec![1.0], vec![guest_ms]);
            let mut one = measured("banking", &[off, outputs]);
            (one.kind, one.program) = (Kind::Hits(Hits::both(percent)), Program::named("banking").unwrap());
            one
        };
        report.hits = vec![at(90, 1.25), at(50, 1.5), at(90, 1.75)];
        assert_eq!((report.wasted_percent("outputs", 90), report.wasted_percent("outputs", 50)), (50.0, 50.0));
        assert!(report.wasted_percent("outputs", 70).is_nan() && report.wasted_percent("skips", 90).is_nan());
    }
}
