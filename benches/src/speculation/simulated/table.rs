//! What is simulated, as tables.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::super::gains::geometric_mean;
use super::super::level::ALL as LEVELS;
use super::super::measured::Measured;
use super::super::program::Suite;
use super::super::report::Report;
use super::super::source::{Hits, Kind};
use super::agreement::Pair;
use super::drops::{ALL as DROPS, Dropped};
use super::figures::{CORES, Cores};
use super::prices::mean;

impl Report {
    /// Says how well the model says what was measured, and what it says of the rest.
    pub fn simulated(&self, text: &mut String) {
        let (within, all) = self.within(|_| true);
        let (alone, all_alone) = self.within(|pair| pair.load.is_none());
        if all == 0 {
            return;
        }
        let _ = writeln!(
            text,
            "\n## Simulated\n\nThe model is told what was measured without speculation, and of each column how many runs were adopted or left out. It predicts {within} of the {all} means with speculation within 15 %, {alone} of {all_alone} of one client; their 99th percentiles \
             are {:.2} times those of the model.\n\n| program | | level | goes ahead | | measured ms | simulated ms | ratio | p99 ms | simulated ms |\n|---|---|---|---:|---|---:|---:|---:|---:|---:|",
            self.p99_ratio()
        );
        for measured in self.programs.iter().chain(&self.hits).chain(&self.stores) {
            measured.pairs().iter().for_each(|pair| line(text, measured, pair));
        }
        self.more_cores(text);
        self.wrong_runs(text);
    }

    /// Cores beside those of the server.
    pub(in crate::speculation) fn simulated_cores(&self) -> impl Iterator<Item = usize> {
        CORES.into_iter().filter(|cores| *cores > self.workers)
    }

    /// The mean over the programs of a suite that are predicted in a column, on so many cores, with how many these are.
    pub(in crate::speculation) fn on_cores(
        &self,
        suite: Suite,
        level: &str,
        cores: usize,
        gain: fn(&Cores) -> Option<f64>,
    ) -> (f64, usize) {
        let of = self.programs.iter().filter(|measured| measured.suite == suite);
        let gains: Vec<f64> = of.filter_map(|measured| gain(measured.on_cores(level, cores)?)).collect();
        (geometric_mean(gains.iter().copied()), gains.len())
    }

    fn more_cores(&self, text: &mut String) {
        let has_loads = self.programs.iter().any(|measured| measured.capacity.is_some());
        if !has_loads || self.simulated_cores().next().is_none() {
            return;
        }
        let heads = |what: &str| -> String {
            let simulated = self.simulated_cores().map(|cores| format!(" simulated, {cores} |"));
            format!(" {what}: measured, {} |", self.workers) + &simulated.collect::<String>()
        };
        let columns = 2 * (1 + self.simulated_cores().count());
        let _ = writeln!(
            text,
            "\n### More cores\n\nHow many times faster answers come than without speculation on as many cores; at the highest load, as a part of what these cores can do. Nothing stands where the model does not say within 15 % what was \
             measured.\n\n| program | level |{}{}\n|---|---|{}",
            heads("one client"),
            heads("load"),
            "---:|".repeat(columns)
        );
        for measured in &self.programs {
            for column in measured.ahead() {
                let gain = measured.at_load(column).last().map(|(_, gain)| gain);
                let _ = write!(text, "| {} | {} |", measured.program.name(), column.level);
                let mut cells = |measured_gain: Option<f64>, gain: fn(&Cores) -> Option<f64>| {
                    let simulated = self.simulated_cores().map(|cores| measured.on_cores(&column.level, cores).and_then(gain));
                    for cell in std::iter::once(measured_gain).chain(simulated) {
                        let _ = write!(text, " {} |", cell.map_or_else(String::new, |gain| format!("{gain:.2}")));
                    }
                };
                cells(Some(measured.speed_up(column)), |cores| cores.speed_up);
                cells(gain, |cores| cores.at_load);
                text.push('\n');
            }
        }
        for (suite, level) in Suite::ALL.into_iter().flat_map(|suite| LEVELS.iter().map(move |level| (suite, level.name))) {
            self.suite_on_cores(text, suite, level);
        }
    }

    fn suite_on_cores(&self, text: &mut String, suite: Suite, level: &str) {
        if level == "off" || self.speed_up(suite, level).is_nan() {
            return;
        }
        let _ = write!(text, "| **{suite}** | {level} |");
        let at_load = self.mean(suite, level, |measured, column| measured.at_load(column).last().map(|(_, gain)| gain));
        let mut cells = |measured: f64, gain: fn(&Cores) -> Option<f64>| {
            let _ = write!(text, " {measured:.2} |");
            for cores in self.simulated_cores() {
                let cell = match self.on_cores(suite, level, cores, gain) {
                    (_, 0) => String::new(),
                    (gain, count) => format!("{gain:.2} ({count})"),
                };
                let _ = write!(text, " {cell} |");
            }
        };
        cells(self.speed_up(suite, level), |cores| cores.speed_up);
        cells(at_load, |cores| cores.at_load);
        text.push('\n');
    }

    fn wrong_runs(&self, text: &mut String) {
        let of = |measured: &&Measured| measured.simulated.as_ref().is_some_and(|simulated| !simulated.drops.is_empty());
        let all: Vec<&Measured> = self.hits.iter().filter(of).collect();
        if all.is_empty() {
            return;
        }
        text.push_str(
            "\n### What becomes of wrong runs\n\nSimulated, one client: the level `stalls` in which all goes ahead that is predicted, whatever that has cost before. Means of the workflows: how many times faster answers come, \
             and the processor time of wrong runs in percent of that without speculation. They stop at once, run on to their end (the paper's lazy completion), cost a millisecond of a core (a process is killed), or \
             have their place for ten seconds more (a container is killed; 8 places a core).\n\n| hit rate | cores | at once | run on | process | container |\n|---:|---:|---:|---:|---:|---:|\n",
        );
        let rates: BTreeSet<u32> = all.iter().filter_map(|measured| rate(measured)).collect();
        let cores: BTreeSet<usize> = all.iter().flat_map(|measured| drops(measured)).map(|dropped| dropped.cores).collect();
        for (percent, cores) in rates.into_iter().rev().flat_map(|percent| cores.iter().map(move |cores| (percent, *cores))) {
            let _ = write!(text, "| {percent} % | {cores} |");
            for way in DROPS {
                let of = all.iter().filter(|measured| rate(measured) == Some(percent)).flat_map(|measured| drops(measured));
                let of: Vec<&Dropped> = of.filter(|dropped| dropped.cores == cores && dropped.drops == way).collect();
                let gain = geometric_mean(of.iter().map(|dropped| dropped.speed_up));
                let wasted: Vec<f64> = of.iter().map(|dropped| dropped.wasted_percent).collect();
                let _ = write!(text, " {gain:.2}, {:.1} % |", mean(&wasted));
            }
            text.push('\n');
        }
    }
}

impl Measured {
    /// A column on so many cores.
    pub fn on_cores(&self, level: &str, cores: usize) -> Option<&Cores> {
        self.simulated.as_ref()?.cores.iter().find(|of| of.cores == cores && of.level == level)
    }
}

fn drops(measured: &Measured) -> &[Dropped] {
    measured.simulated.as_ref().map_or(&[], |simulated| &simulated.drops)
}

fn rate(measured: &Measured) -> Option<u32> {
    if let Kind::Hits(Hits { paths, .. }) = measured.kind { Some(paths) } else { None }
}

fn line(text: &mut String, measured: &Measured, pair: &Pair) {
    let column = measured.simulated.as_ref().and_then(|simulated| simulated.column(&pair.level));
    // Without speculation nothing may go ahead.
    let share = column.filter(|_| pair.is_predicted()).map_or_else(String::new, |column| format!("{:.0} %", column.share * 1e2));
    let cell = pair.load.map_or_else(|| "one client".to_owned(), |load| format!("{:.0} %", load * 1e2));
    let what = format!("{}, {}", measured.place, measured.kind);
    let _ = writeln!(
        text,
        "| {} | {what} | {} | {share} | {cell} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} |",
        measured.program.name(),
        pair.level,
        pair.mean_ms.0,
        pair.mean_ms.1,
        pair.ratio(),
        pair.p99_ms.0,
        pair.p99_ms.1
    );
}
