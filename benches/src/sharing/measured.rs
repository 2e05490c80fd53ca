//! A program in all columns.

use std::time::Duration;

use anyhow::{Context, Result};
use serde::Serialize;

use super::Settings;
use super::arrivals::Pattern;
use super::bed::Bed;
use super::column::Column;
use super::load::Seen;
use super::runner::{Capacity, Runner, Unloaded};
use super::suite::{Class, Parts, Program};
use super::watch::Watched;
use crate::workload::quantile;

/// Steps of the search for the highest rate.
const STEPS: usize = 5;
/// Of the mean of one client, how much the mean may be at the highest rate.
const MEAN_MAX: f64 = 2.0;
/// Bursts of a load, at least, if there is time.
const BURSTS_MIN: usize = 6;
/// Requests of one client, at least.
const UNLOADED: f64 = 8.0;

/// What all programs have in common.
pub struct Suite<'a> {
    /// Where they run.
    pub bed: &'a Bed,
    /// What is measured.
    pub settings: &'a Settings,
    /// What programs are made of.
    pub parts: Parts,
}

/// A program with Redis at one distance.
#[derive(Debug, Clone, Serialize)]
pub struct Measured {
    /// Its name.
    pub program: String,
    /// Its class.
    pub class: Class,
    /// What it does.
    pub what: String,
    /// Accesses of a request.
    pub accesses: usize,
    /// How far Redis is away.
    pub delay_ms: f64,
    /// Requests a second that the server can do with everything on.
    pub capacity: f64,
    /// The number of invocations for each core that is best of the sweep.
    pub best: usize,
    /// The columns.
    pub columns: Vec<ColumnMeasured>,
}

/// A program in one column.
#[derive(Debug, Clone, Serialize)]
pub struct ColumnMeasured {
    /// Its name.
    pub column: String,
    /// The mean of one client.
    pub unloaded_ms: f64,
    /// Requests a second.
    pub capacity: f64,
    /// Processor time of a request then, in milliseconds.
    pub cpu_ms: f64,
    /// Share of the workers' cores that the server uses then.
    pub utilisation: f64,
    /// The highest rate with a mean of at most twice that of one client, if it was searched.
    pub throughput: Option<f64>,
    /// Loads.
    pub cells: Vec<Cell>,
}

/// A program in one column at one load.
#[derive(Debug, Clone, Serialize)]
pub struct Cell {
    /// Part of the capacity.
    pub load: f64,
    /// How requests come.
    pub pattern: Pattern,
    /// How many a second.
    pub rate: f64,
    /// How many there were.
    pub requests: usize,
    /// Of these, which were not answered.
    pub unanswered: usize,
    /// The mean, at least so long where some were not answered.
    pub mean_ms: f64,
    /// The median.
    pub p50_ms: f64,
    /// The 99th percentile.
    pub p99_ms: f64,
    /// Share of the workers' cores.
    pub utilisation: f64,
    /// Private memory of the server, in millions of bytes.
    pub private_mb: f64,
}

impl Cell {
    fn new(at: (f64, Pattern), rate: f64, turns: &[(Seen, Watched)]) -> Cell {
        let all = || turns.iter().flat_map(|(seen, _)| seen.latencies_ms.iter().copied());
        let mean = |of: fn(&Watched) -> f64| turns.iter().map(|(_, watched)| of(watched)).sum::<f64>() / turns.len() as f64;
        let requests = all().count();
        Cell {
            load: at.0,
            pattern: at.1,
            rate,
            requests,
            unanswered: turns.iter().map(|(seen, _)| seen.unanswered).sum(),
            mean_ms: all().sum::<f64>() / requests as f64,
            p50_ms: quantile(all(), 0.5),
            p99_ms: quantile(all(), 0.99),
            utilisation: mean(Watched::mean_utilisation),
            private_mb: mean(Watched::mean_bytes) / 1e6,
        }
    }
}

impl Suite<'_> {
    /// How long a load lasts.
    pub fn time(&self, rate: f64) -> Duration {
        self.time_of(Pattern::Poisson, rate)
    }

    /// The same of a pattern.
    pub fn time_of(&self, pattern: Pattern, rate: f64) -> Duration {
        let Settings { seconds, seconds_max, requests_min, .. } = *self.settings;
        let requests = requests_min.max(BURSTS_MIN * pattern.size());
        Duration::from_secs_f64((requests as f64 / rate).min(seconds_max).max(seconds))
    }

    /// How long one client is looked at, if a request takes so long.
    fn unloaded_time(&self, mean_ms: f64) -> Duration {
        let Settings { seconds, seconds_max, .. } = *self.settings;
        Duration::from_secs_f64((mean_ms / 1e3 * UNLOADED).min(seconds_max).max(seconds / 2.0))
    }

    /// A program in a column.
    pub fn runner<'a>(&'a self, program: &'a dyn Program, column: Column, delay: Duration, more: &str) -> Runner<'a> {
        Runner::new(self.bed, program, &self.parts, (column, delay), self.settings.seed, more)
    }

    /// What one client sees, and what as many see as keep the server busy.
    pub fn alone(&self, runner: &mut Runner<'_>) -> Result<(Unloaded, Capacity)> {
        let first = runner.unloaded(Duration::from_secs_f64(self.settings.seconds / 4.0))?;
        let unloaded = runner.unloaded(self.unloaded_time(first.mean_ms))?;
        let about = 1e3 * self.bed.cores.workers() as f64 / unloaded.cpu_ms;
        let capacity = runner.capacity(self.time(about))?;
        Ok((unloaded, capacity))
    }

    /// Measures a program.
    ///
    /// # Errors
    ///
    /// If a reply is wrong, or a server does not start.
    pub fn measure(&self, program: &dyn Program, delay: Duration) -> Result<Measured> {
        let Settings { columns, nightcore, turns, .. } = self.settings;
        eprintln!("{} with Redis {delay:?} away", program.name());
        self.bed.fill(program, &program.functions(&self.parts))?;
        let mut sledge = self.runner(program, Column::Sledge, delay, "");
        let (_, own) = self.alone(&mut sledge)?;
        let own = own.per_second;
        let best = self.best(program, delay, own, &sledge)?;
        drop(sledge);
        let baseline = [("nightcore", Column::Nightcore(*nightcore)), ("nightcore-best", Column::Nightcore(best))];
        let baseline = baseline.map(|(name, column)| (name.to_owned(), column));
        let all: Vec<(String, Column)> =
            baseline.into_iter().chain(columns.iter().map(|column| (column.to_string(), *column))).collect();
        let cells = self.settings.cells();
        let mut measured: Vec<ColumnMeasured> = Vec::new();
        let mut seen: Vec<Vec<Vec<(Seen, Watched)>>> = vec![vec![Vec::new(); cells.len()]; all.len()];
        for turn in 0..*turns {
            for (index, (name, column)) in all.iter().enumerate() {
                let mut runner = self.runner(program, *column, delay, "");
                if turn == 0 {
                    measured.push(self.column(&mut runner, name, *column)?);
                } else {
                    runner.unloaded(Duration::from_secs_f64(self.settings.seconds / 4.0))?;
                }
                for (cell, (load, pattern)) in cells.iter().enumerate() {
                    let rate = load * own;
                    seen[index][cell].push(runner.open(rate, *pattern, self.time_of(*pattern, rate))?);
                }
            }
        }
        for (measured, seen) in measured.iter_mut().zip(&seen) {
            let cell = |(at, turns): (&(f64, Pattern), &Vec<_>)| Cell::new(*at, at.0 * own, turns);
            measured.cells = cells.iter().zip(seen).map(cell).collect();
        }
        Ok(Measured {
            program: program.name().to_owned(),
            class: program.class(),
            what: program.what(),
            accesses: program.accesses(),
            delay_ms: delay.as_secs_f64() * 1e3,
            capacity: own,
            best,
            columns: measured,
        })
    }

    /// What is measured of a column once, before its loads.
    fn column(&self, runner: &mut Runner<'_>, name: &str, column: Column) -> Result<ColumnMeasured> {
        let (unloaded, capacity) = self.alone(runner)?;
        let is_searched =
            self.settings.others.throughput && matches!(column, Column::Nightcore(_) | Column::Prewarmed | Column::Sledge);
        let throughput = is_searched.then(|| self.throughput(runner, unloaded, capacity)).transpose()?;
        Ok(ColumnMeasured {
            column: name.to_owned(),
            unloaded_ms: unloaded.mean_ms,
            capacity: capacity.per_second,
            cpu_ms: capacity.cpu_ms,
            utilisation: capacity.utilisation,
            throughput,
            cells: Vec::new(),
        })
    }

    /// The highest rate with a mean of at most twice that of one client, by halves of what is possible.
    fn throughput(&self, runner: &mut Runner<'_>, unloaded: Unloaded, capacity: Capacity) -> Result<f64> {
        let (mut low, mut high) = (0.0, capacity.per_second);
        for _ in 0..STEPS {
            let rate = f64::midpoint(low, high);
            let (seen, _) = runner.open(rate, Pattern::Poisson, self.time(rate) / 2)?;
            if seen.unanswered == 0 && seen.mean_ms() <= MEAN_MAX * unloaded.mean_ms {
                low = rate;
            } else {
                high = rate;
            }
        }
        Ok(low)
    }

    /// The number of the sweep with the lowest mean at the highest load.
    fn best(&self, program: &dyn Program, delay: Duration, capacity: f64, sledge: &Runner<'_>) -> Result<usize> {
        let rate = self.settings.load_max() * capacity;
        let mut means = Vec::new();
        for each in &self.settings.sweep {
            let mut runner = self.runner(program, Column::Nightcore(*each), delay, "").with_clients_of(sledge);
            let (seen, _) = runner.open(rate, Pattern::Poisson, self.time(rate) / 2)?;
            means.push((seen.mean_ms(), *each));
        }
        means.into_iter().min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, each)| each).context("an empty sweep")
    }
}
