//! What the simulator says of a real run, beside what was measured.

use std::fmt::Write as _;

use serde::Serialize;

use super::calibration::{self, Cell, Run};
use super::model::{Function, Load, Settings, Stream};
use super::outcome::Latencies;
use super::server::play;

/// How far a prediction may be from what was measured, as a part of it.
pub const BOUND: f64 = 0.15;
/// Requests that are simulated for each row, at least: as many as were measured, again and again.
const REQUESTS_MIN: usize = 20_000;

/// One load of one program.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// The program, and what it was beside.
    pub program: String,
    /// The column.
    pub column: String,
    /// Part of the capacity.
    pub load: f64,
    /// How requests came.
    pub pattern: String,
    /// The mean: measured, predicted.
    pub mean_ms: [f64; 2],
    /// The 99th percentile: measured, predicted.
    pub p99_ms: [f64; 2],
}

/// All of them.
#[derive(Debug, Clone, Serialize)]
pub struct Predictions {
    /// The rows.
    pub rows: Vec<Row>,
    /// Loads of the run that are not predicted: requests were left unanswered, or were sent late since clients or their cores had too much to do, or the column is not known.
    pub left_out: usize,
}

/// Simulates each load of a run.
pub fn predict(run: &Run, seed: u64) -> Predictions {
    let costs = run.costs();
    let (mut rows, mut left_out) = (Vec::new(), 0);
    for program in &run.programs {
        for column in &program.columns {
            let settings = run.settings(&column.column, program.best, costs);
            for cell in &column.cells {
                let Some(settings) = settings.filter(|_| cell.is_sound()) else {
                    left_out += 1;
                    continue;
                };
                let function = calibration::function(program, column, &costs, settings.quantum);
                let name = format!("{} {} ms", program.program, program.delay_ms);
                rows.extend(beside(&settings, &[(name, &function, cell)], &column.column, seed));
            }
        }
    }
    for pair in &run.pairs {
        let settings = run.settings(&pair.column, 1, costs);
        let known = pair.programs.iter().map(|(name, cell)| {
            let program = run.programs.iter().find(|program| program.program == *name)?;
            let column = program.columns.iter().find(|column| column.column == pair.column)?;
            let function = calibration::function(program, column, &costs, settings?.quantum);
            cell.is_sound().then_some((name, function, cell))
        });
        let known: Option<Vec<_>> = known.collect();
        match (settings, known) {
            (Some(settings), Some(known)) => {
                let named: Vec<_> =
                    known.iter().map(|(name, function, cell)| (format!("{name}, of {}", known.len()), function, *cell)).collect();
                rows.extend(beside(&settings, &named, &pair.column, seed));
            }
            _ => left_out += pair.programs.len(),
        }
    }
    Predictions { rows, left_out }
}

/// Some programs at the same time: a row for each.
fn beside(settings: &Settings, programs: &[(String, &Function, &Cell)], column: &str, seed: u64) -> Vec<Row> {
    let functions: Vec<Function> = programs.iter().map(|(_, function, _)| (*function).clone()).collect();
    let stream = |(function, (_, _, cell)): (usize, &(String, &Function, &Cell))| Stream {
        function,
        per_second: cell.rate,
        arrivals: cell.pattern,
        worker: None,
    };
    let load = Load::Open(programs.iter().enumerate().map(stream).collect());
    // A server that has too much to do is slower the longer it lasts.
    let requests: usize = programs.iter().map(|(_, _, cell)| cell.requests.max(1)).sum();
    let times = REQUESTS_MIN.div_ceil(requests).min(100);
    let played: Vec<Vec<Latencies>> =
        (0..times as u64).map(|time| play(settings, &functions, &load, requests, seed.wrapping_add(time)).latencies).collect();
    let mean = |index: usize, of: fn(&Latencies) -> f64| {
        let all: Vec<f64> = played.iter().map(|latencies| of(&latencies[index])).filter(|value| !value.is_nan()).collect();
        all.iter().sum::<f64>() / all.len() as f64
    };
    let row = |(index, (name, _, cell)): (usize, &(String, &Function, &Cell))| Row {
        program: name.clone(),
        column: column.to_owned(),
        load: cell.load,
        pattern: cell.pattern.to_string(),
        mean_ms: [cell.mean_ms, mean(index, Latencies::mean_ms)],
        p99_ms: [cell.p99_ms, mean(index, |latencies| latencies.quantile_ms(0.99))],
    };
    programs.iter().enumerate().map(row).collect()
}

/// What was predicted to what was measured.
fn ratio([measured, predicted]: [f64; 2]) -> f64 {
    predicted / measured
}

fn is_within(values: [f64; 2]) -> bool {
    (ratio(values) - 1.0).abs() <= BOUND
}

impl Predictions {
    /// How many means, and how many 99th percentiles, are within the bound.
    pub fn within(&self) -> [usize; 2] {
        let count = |of: fn(&Row) -> [f64; 2]| self.rows.iter().filter(|row| is_within(of(row))).count();
        [count(|row| row.mean_ms), count(|row| row.p99_ms)]
    }

    /// A table in Markdown.
    pub fn table(&self) -> String {
        let mut text = String::from(
            "| program | column | load | arrivals | mean ms | predicted | to it | | p99 ms | predicted | to it | |\n\
             |---|---|---:|---|---:|---:|---:|---|---:|---:|---:|---|\n",
        );
        let shown = |values: [f64; 2]| {
            let word = if is_within(values) { "ok" } else { "**MISS**" };
            format!("{:.2} | {:.2} | {:.2} | {word}", values[0], values[1], ratio(values))
        };
        for row in &self.rows {
            let Row { program, column, load, pattern, mean_ms, p99_ms } = row;
            let percent = load * 100.0;
            let _ = writeln!(
                text,
                "| {program} | {column} | {percent:.0} % | {pattern} | {} | {} |",
                shown(*mean_ms),
                shown(*p99_ms)
            );
        }
        let ([means, p99s], all) = (self.within(), self.rows.len());
        let percent = BOUND * 100.0;
        let _ = writeln!(
            text,
            "\nWithin {percent:.0} %: {means} of {all} means, {p99s} of {all} 99th percentiles; {} loads are left out, which are not sound or of no known column.",
            self.left_out
        );
        text
    }
}
