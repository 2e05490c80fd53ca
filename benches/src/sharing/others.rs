//! What is measured beside the programs: a function that waits beside one that computes, more that can run than cores, utilisation over time, and reads that
//! wait for others.

use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Serialize;

use super::arrivals::{Draw, Pattern};
use super::column::Column;
use super::load::{Asked, Seen, Span};
use super::measured::Suite;
use super::modelled::{self, Modelled};
use super::suite::Program;
use crate::child;
use crate::workload::quantile;

/// Utilisation of the cores by both functions, and requests of the one that waits for each of the other.
const HOGS_LOAD: f64 = 0.85;
const WAITERS: f64 = 20.0;
/// How many times as many invocations may run at the same time as keep the cores busy.
const RUNNABLE: [f64; 3] = [1.0, 1.2, 1.5];
const RUNNABLE_PROGRAM: &str = "create-order-modelled";
const RUNNABLE_LOAD: f64 = 0.9;
/// The program that waits least, and the one that waits most.
const UTILISATION: [&str; 2] = ["cnn-serv-modelled", "create-order-modelled"];
/// The program of the paper's Figure 14, and one that waits more.
const MERGING: [&str; 2] = ["img-rotate-modelled", "create-order-modelled"];
const MERGE_US: [u32; 5] = [0, 250, 1_000, 2_000, 4_000];
/// Functions whose memory is compared, of all classes, and invocations for each worker.
const MEMORY: [&str; 7] = [
    "lr-serv-modelled",
    "cnn-serv-modelled",
    "rnn-serv-modelled",
    "vid-conv-modelled",
    "img-rotate-modelled",
    "img-resize-modelled",
    "create-order-modelled",
];
const INVOCATIONS: usize = 32;
/// What these compute at most, in milliseconds: long enough that all of them are there at the same time, and share the core in turn.
const MEMORY_BUSY_MS: f64 = 10.0;

/// The function that waits beside the one that computes.
#[derive(Debug, Clone, Serialize)]
pub struct Hogs {
    /// With the order, with requests in turn, and with requests that run on until they wait.
    pub rows: Vec<HogsRow>,
}

/// Both in one column.
#[derive(Debug, Clone, Serialize)]
pub struct HogsRow {
    /// The column.
    pub column: Column,
    /// 99th percentiles in milliseconds: of the one that waits, and of the one that computes.
    pub p99_ms: [f64; 2],
    /// The means.
    pub mean_ms: [f64; 2],
}

impl Hogs {
    /// How many times lower the 99th percentile of the function that waits is than where requests run on until they wait.
    pub fn gain(&self) -> f64 {
        let of = |column: Column| self.rows.iter().find(|row| row.column == column).map_or(f64::NAN, |row| row.p99_ms[0]);
        of(Column::WithoutTurns) / of(Column::Sledge)
    }
}

/// So many invocations at the same time that can run.
#[derive(Debug, Clone, Serialize)]
pub struct Runnable {
    /// The program.
    pub program: String,
    /// Invocations that can run at the same time on average, by core; none for ours.
    pub by_core: Option<f64>,
    /// How many are under way at the same time at most, by core, waiting ones included; none for ours.
    pub limit: Option<f64>,
    /// The mean, in milliseconds.
    pub mean_ms: f64,
    /// The 99th percentile.
    pub p99_ms: f64,
}

/// Utilisation over time.
#[derive(Debug, Clone, Serialize)]
pub struct Utilisation {
    /// The program.
    pub program: String,
    /// The column.
    pub column: Column,
    /// Shares of the cores, one each [`EVERY`](super::watch::EVERY).
    pub shares: Vec<f64>,
    /// The mean of the latencies meanwhile.
    pub mean_ms: f64,
}

/// Reads that wait for others.
#[derive(Debug, Clone, Serialize)]
pub struct Merging {
    /// The program.
    pub program: String,
    /// `kv_merge_us`.
    pub merge_us: u32,
    /// Share of the reads that had no command of their own.
    pub shared: f64,
    /// The mean latency of requests, in milliseconds.
    pub mean_ms: f64,
    /// The 99th percentile.
    pub p99_ms: f64,
}

/// Private memory beyond that of a server without functions, in millions of bytes.
#[derive(Debug, Clone, Serialize)]
pub struct Memory {
    /// The program.
    pub program: String,
    /// What it does.
    pub what: String,
    /// How many invocations there are at the same time.
    pub invocations: usize,
    /// If each initialises its own image.
    pub own_mb: f64,
    /// If all share one.
    pub shared_mb: f64,
}

/// 85 % of the cores' time for both together, 20 of the one that waits for each of the other; in turns.
pub fn hogs(suite: &Suite<'_>) -> Result<Hogs> {
    eprintln!("a function that waits beside one that computes");
    let programs = [modelled::waiter(suite.parts.rounds_per_us), modelled::hog(suite.parts.rounds_per_us)];
    let delay = *suite.settings.delays.iter().min().context("a delay")?;
    suite.bed.fill(&programs[0], &programs[0].functions(&suite.parts))?;
    let columns = [Column::Sledge, Column::WithoutOrder, Column::WithoutTurns];
    let mut rates = None;
    let mut seen: [[Vec<f64>; 2]; 3] = Default::default();
    for _ in 0..suite.settings.turns {
        for (column, seen) in columns.iter().zip(&mut seen) {
            // The processor time of each, host calls included.
            let rates = match rates {
                Some(rates) => rates,
                None => *rates.insert(hogs_rates(suite, &programs, delay)?),
            };
            for (seen, now) in seen.iter_mut().zip(both(suite, *column, &programs, delay, rates)?) {
                seen.extend(now.latencies_ms);
            }
        }
    }
    let row = |(column, seen): (&Column, &[Vec<f64>; 2])| HogsRow {
        column: *column,
        p99_ms: seen.each_ref().map(|all| quantile(all.iter().copied(), 0.99)),
        mean_ms: seen.each_ref().map(|all| all.iter().sum::<f64>() / all.len() as f64),
    };
    Ok(Hogs { rows: columns.iter().zip(&seen).map(row).collect() })
}

/// Requests a second of both.
fn hogs_rates(suite: &Suite<'_>, programs: &[Modelled; 2], delay: Duration) -> Result<[f64; 2]> {
    let mut cpu_ms = [0.0; 2];
    for (program, cpu_ms) in programs.iter().zip(&mut cpu_ms) {
        let mut runner = suite.runner(program, Column::Sledge, delay, "");
        *cpu_ms = runner.unloaded(Duration::from_secs_f64(suite.settings.seconds / 2.0))?.cpu_ms;
    }
    let workers = suite.bed.cores.workers() as f64;
    let hogs = HOGS_LOAD * workers * 1e3 / (cpu_ms[1] + WAITERS * cpu_ms[0]);
    Ok([WAITERS * hogs, hogs])
}

/// Both at the same time, on one server.
fn both(suite: &Suite<'_>, column: Column, programs: &[Modelled; 2], delay: Duration, rates: [f64; 2]) -> Result<[Seen; 2]> {
    let functions = programs.each_ref().map(|program| program.functions(&suite.parts));
    let running = suite.bed.serve(&functions.each_ref().map(|functions| (column, &functions[..])), delay, "")?;
    let time = Duration::from_secs_f64(2.0 * suite.settings.seconds);
    let span = Span { counted: time / 5, end: time, grace: time };
    let plan = |index: usize| -> Vec<(Duration, Asked)> {
        let seed = suite.settings.seed + index as u64;
        let mut draw = Draw::new(seed, programs[index].keys());
        let due = Pattern::Poisson.due(rates[index], span.counted, time, seed);
        due.into_iter().map(|due| (due, programs[index].ask(&mut draw))).collect()
    };
    thread::scope(|scope| {
        let running = &running;
        let one = |index: usize| {
            let plan = plan(index);
            scope.spawn(move || running.open(plan, span))
        };
        let [waiter, hog] = [one(0), one(1)].map(|one| one.join().ok().context("a load panicked"));
        Ok([waiter??, hog??])
    })
}

/// What keeps the cores busy, 20 % and 50 % more; all that run share the cores in turn. Beside it ours.
pub fn runnable(suite: &Suite<'_>) -> Result<Vec<Runnable>> {
    eprintln!("more that can run than cores");
    let delay = *suite.settings.delays.iter().min().context("a delay")?;
    let program = suite.parts.program(RUNNABLE_PROGRAM, suite.bed)?;
    let program = &*program;
    suite.bed.fill(program, &program.functions(&suite.parts))?;
    let mut sledge = suite.runner(program, Column::Sledge, delay, "");
    let (unloaded, capacity) = suite.alone(&mut sledge)?;
    let rate = RUNNABLE_LOAD * capacity.per_second;
    // Bursts, so that the limits are reached.
    let pattern = Pattern::Bursts(suite.settings.bursts.iter().copied().max().unwrap_or(1));
    let time = suite.time(rate) * 2;
    let row = |seen: &Seen, by_core, limit| Runnable {
        program: program.name().to_owned(),
        by_core,
        limit,
        mean_ms: seen.mean_ms(),
        p99_ms: quantile(seen.latencies_ms.iter().copied(), 0.99),
    };
    let mut rows = vec![row(&sledge.open(rate, pattern, time)?.0, None, None)];
    for by_core in RUNNABLE {
        let limit = by_core * unloaded.mean_ms / unloaded.cpu_ms;
        let mut runner = suite.runner(program, Column::Limited(limit), delay, "").with_clients_of(&sledge);
        rows.push(row(&runner.open(rate, pattern, time)?.0, Some(by_core), Some(limit)));
    }
    Ok(rows)
}

/// The highest load, in the paper's baseline and with everything on.
pub fn utilisation(suite: &Suite<'_>) -> Result<Vec<Utilisation>> {
    let delay = *suite.settings.delays.iter().min().context("a delay")?;
    let mut rows = Vec::new();
    for name in UTILISATION {
        eprintln!("utilisation by {name}");
        let program = suite.parts.program(name, suite.bed)?;
        suite.bed.fill(&*program, &program.functions(&suite.parts))?;
        let mut sledge = suite.runner(&*program, Column::Sledge, delay, "");
        let (_, capacity) = suite.alone(&mut sledge)?;
        let rate = suite.settings.load_max() * capacity.per_second;
        for column in [Column::Sledge, Column::Nightcore(suite.settings.nightcore)] {
            let mut runner = suite.runner(&*program, column, delay, "").with_clients_of(&sledge);
            let (seen, watched) = runner.open(rate, Pattern::Poisson, suite.time(rate) * 2)?;
            let (shares, mean_ms) = (watched.utilisation, seen.mean_ms());
            rows.push(Utilisation { program: name.to_owned(), column, shares, mean_ms });
        }
    }
    Ok(rows)
}

/// The highest load, with several times for which reads wait.
pub fn merging(suite: &Suite<'_>) -> Result<Vec<Merging>> {
    let delay = *suite.settings.delays.iter().min().context("a delay")?;
    let mut rows = Vec::new();
    for name in MERGING {
        eprintln!("reads of {name} that wait for others");
        let program = suite.parts.program(name, suite.bed)?;
        suite.bed.fill(&*program, &program.functions(&suite.parts))?;
        let mut sledge = suite.runner(&*program, Column::Sledge, delay, "");
        let (_, capacity) = suite.alone(&mut sledge)?;
        let rate = suite.settings.load_max() * capacity.per_second;
        for merge_us in MERGE_US {
            let more = format!("kv_merge_us = {merge_us}\n");
            let mut runner = suite.runner(&*program, Column::Sledge, delay, &more).with_clients_of(&sledge);
            let before = runner.running()?.reads()?;
            let (seen, _) = runner.open(rate, Pattern::Poisson, suite.time(rate))?;
            let shared = runner.running()?.reads()?.shared_since(before);
            let p99_ms = quantile(seen.latencies_ms.iter().copied(), 0.99);
            rows.push(Merging { program: name.to_owned(), merge_us, shared, mean_ms: seen.mean_ms(), p99_ms });
        }
    }
    Ok(rows)
}

/// As many clients as places: each image initialised by its invocation, and one for all.
pub fn memory(suite: &Suite<'_>) -> Result<Vec<Memory>> {
    let delay = *suite.settings.delays.iter().min().context("a delay")?;
    let rest_mb = rest_mb(suite)?;
    let mut rows = Vec::new();
    for name in MEMORY {
        eprintln!("memory of {name}");
        let program = modelled::named(name)?.with_busy_max(MEMORY_BUSY_MS).calibrated(suite.parts.rounds_per_us);
        suite.bed.fill(&program, &program.functions(&suite.parts))?;
        let mb = |column| -> Result<f64> {
            let mut runner = suite.runner(&program, column, delay, "").with_clients(INVOCATIONS);
            Ok(runner.private_bytes(Duration::from_secs_f64(suite.settings.seconds))? / 1e6 - rest_mb)
        };
        let (own_mb, shared_mb) = (mb(Column::Nightcore(INVOCATIONS))?, mb(Column::Limited(INVOCATIONS as f64))?);
        let invocations = INVOCATIONS * suite.bed.cores.workers();
        rows.push(Memory { program: name.to_owned(), what: program.what(), invocations, own_mb, shared_mb });
    }
    Ok(rows)
}

/// That of a server without functions.
fn rest_mb(suite: &Suite<'_>) -> Result<f64> {
    let running = suite.bed.serve(&[(Column::Sledge, &[])], Duration::ZERO, "")?;
    Ok(child::private_bytes(running.server.pid())? as f64 / 1e6)
}
