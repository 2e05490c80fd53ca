//! Figures as tables and pictures.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Result;

use super::figures::{Cell, Column, LOADS, Report, geometric};
use crate::plot::Plot;

/// What the paper has of MXFaaS beside its baseline, and beside perfect pre-warming.
const PAPER: &str =
    "The paper has, beside Nightcore: mean 5.2, p99 7.4, throughput 4.8; beside perfect pre-warming: mean 2.1, at high load 2.9.";

/// How many times better everything on is than a column, on so many cores: geometric means, of loads at which neither has too much to do.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Gain {
    mean: f64,
    p99: f64,
    throughput: f64,
    /// Loads that are left out.
    overloaded: usize,
}

impl Report {
    fn cores(&self) -> Vec<usize> {
        let mut cores: Vec<usize> = self.cells.iter().map(|cell| cell.cores).collect();
        cores.dedup();
        cores
    }

    fn columns(&self) -> Vec<Column> {
        let mut columns = Vec::new();
        for cell in &self.cells {
            if !columns.contains(&cell.column) {
                columns.push(cell.column);
            }
        }
        columns
    }

    fn programs(&self) -> Vec<&str> {
        let mut programs: Vec<&str> = Vec::new();
        for cell in &self.cells {
            if !programs.contains(&&*cell.program) {
                programs.push(&cell.program);
            }
        }
        programs
    }

    fn cell(&self, program: &str, cores: usize, column: Column, load: f64) -> Option<&Cell> {
        self.cells
            .iter()
            .find(|cell| (cell.program == program, cell.cores, cell.column, cell.load) == (true, cores, column, load))
    }

    /// Requests a second.
    fn rate(&self, program: &str, cores: usize, column: Column) -> Option<f64> {
        let known = |row: &&super::figures::Throughput| (row.program == program, row.cores, row.column) == (true, cores, column);
        self.throughput.iter().find(known).map(|row| row.per_second).filter(|rate| *rate > 0.0)
    }

    /// A column's number to that of everything on, for a program at a load; none where either has too much to do.
    fn ratio(&self, program: &str, cores: usize, column: Column, load: f64, of: fn(&Cell) -> f64) -> Option<f64> {
        let (theirs, ours) = (self.cell(program, cores, column, load)?, self.cell(program, cores, Column::Sledge, load)?);
        (!theirs.overloaded && !ours.overloaded).then(|| of(theirs) / of(ours))
    }

    fn gain(&self, cores: usize, column: Column) -> Gain {
        let of = |of: fn(&Cell) -> f64| -> Vec<f64> {
            let programs = self.programs();
            let loads = programs.iter().flat_map(|program| LOADS.map(|load| self.ratio(program, cores, column, load, of)));
            loads.flatten().collect()
        };
        let (means, p99s) = (of(|cell| cell.mean_ms), of(|cell| cell.p99_ms));
        let rates: Vec<f64> = self
            .programs()
            .into_iter()
            .filter_map(|program| Some(self.rate(program, cores, Column::Sledge)? / self.rate(program, cores, column)?))
            .collect();
        let overloaded = self.programs().len() * LOADS.len() - means.len();
        Gain { mean: geometric(&means), p99: geometric(&p99s), throughput: geometric(&rates), overloaded }
    }

    /// Tables in Markdown.
    pub fn table(&self) -> String {
        let Report { delay_ms, pattern, .. } = self;
        let mut text = format!(
            "The store is {delay_ms} ms away; requests come {pattern}. How many times better `sledge` is, geometric means of all programs and loads at which neither has too much to do:\n\n\
             | cores | beside | mean | p99 | throughput | loads that are too much |\n|---:|---|---:|---:|---:|---:|\n"
        );
        for cores in self.cores() {
            for column in self.columns().into_iter().filter(|column| *column != Column::Sledge) {
                let Gain { mean, p99, throughput, overloaded } = self.gain(cores, column);
                let _ = writeln!(text, "| {cores} | {} | {mean:.2} | {p99:.2} | {throughput:.2} | {overloaded} |", column.name());
            }
        }
        let _ = writeln!(text, "\n{PAPER}");
        for cores in self.cores() {
            self.cores_table(&mut text, cores);
        }
        self.runnable_table(&mut text);
        text
    }

    fn cores_table(&self, text: &mut String, cores: usize) {
        let columns = self.columns();
        let heads: Vec<&str> = columns.iter().map(|column| column.name()).collect();
        let _ = writeln!(
            text,
            "\n### {cores} cores\n\nMean and 99th percentile in ms; `>` where more comes than can be done. Throughput: requests a second at twice the mean of one client.\n\n\
             | program | load | {} |\n|---|---|{}",
            heads.join(" | "),
            "---:|".repeat(columns.len())
        );
        for program in self.programs() {
            for load in LOADS {
                let shown = |column: &Column| {
                    let Some(cell) = self.cell(program, cores, *column, load) else { return String::new() };
                    let least = if cell.overloaded { ">" } else { "" };
                    format!("{least}{:.2} / {least}{:.2}", cell.mean_ms, cell.p99_ms)
                };
                let shown: Vec<String> = columns.iter().map(shown).collect();
                let _ = writeln!(text, "| {program} | {:.0} % | {} |", load * 100.0, shown.join(" | "));
            }
            let rate = |column: &Column| self.rate(program, cores, *column).map_or("0".to_owned(), |rate| format!("{rate:.0}"));
            let rates: Vec<String> = columns.iter().map(rate).collect();
            let _ = writeln!(text, "| {program} | throughput | {} |", rates.join(" | "));
        }
    }

    fn runnable_table(&self, text: &mut String) {
        let Some(first) = self.runnable.first() else { return };
        let _ = writeln!(
            text,
            "\n### More that can run than cores\n\ncreate-order at 90 % in bursts of 8, in turn. So many are let in that on average so many can run for each core. The paper's 99th \
             percentile is 1.6 times as high with 20 % more, and 4 times with 50 %.\n\n| cores | can run, by core | at the same time | mean ms | p99 ms | to {:.1} |\n|---:|---:|---:|---:|---:|---:|",
            first.by_core
        );
        let mut base = first.p99_ms;
        for row in &self.runnable {
            if row.by_core == first.by_core {
                base = row.p99_ms;
            }
            let _ = writeln!(
                text,
                "| {} | {:.1} | {} | {:.2} | {:.2} | {:.2} |",
                row.cores,
                row.by_core,
                row.limit,
                row.mean_ms,
                row.p99_ms,
                row.p99_ms / base
            );
        }
    }

    /// Writes pictures: what other columns take at the highest load to what everything on takes, and throughput.
    ///
    /// # Errors
    ///
    /// If a picture cannot be written.
    pub fn plot(&self, path: &Path) -> Result<()> {
        let highest = LOADS[LOADS.len() - 1];
        let named = |more: &str| path.with_file_name(format!("{}-{more}", path.file_name().unwrap_or_default().display()));
        let latency = |of: fn(&Cell) -> f64| move |program: &str, cores, column| self.ratio(program, cores, column, highest, of);
        let percent = highest * 100.0;
        self.picture(&format!("Mean latency at {percent:.0} % load, to that of sledge"), latency(|cell| cell.mean_ms))
            .write(&named("mean"))?;
        self.picture(&format!("99th percentile at {percent:.0} % load, to that of sledge"), latency(|cell| cell.p99_ms))
            .write(&named("p99"))?;
        let rate =
            |program: &str, cores, column| Some(self.rate(program, cores, Column::Sledge)? / self.rate(program, cores, column)?);
        self.picture("Throughput of sledge to that of others", rate).write(&named("throughput"))
    }

    fn picture(&self, caption: &str, of: impl Fn(&str, usize, Column) -> Option<f64>) -> Plot {
        let others = || self.columns().into_iter().filter(|column| *column != Column::Sledge);
        let points = |cores, column| self.programs().into_iter().map(|program| of(program, cores, column)).collect();
        let series = self.cores().into_iter().flat_map(|cores| others().map(move |column| (cores, column)));
        Plot {
            caption: format!("Simulated: {caption}"),
            names: self.programs().into_iter().map(str::to_owned).collect(),
            series: series.map(|(cores, column)| (format!("{}, {cores} cores", column.name()), points(cores, column))).collect(),
            lines: vec![(1.0, 0.6)],
        }
    }
}
