//! What `make speculation` runs: the suites of SpecFaaS on `sledge`, with speculation and without (see `sledge_benches::speculation`).
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;
use sledge_benches::cores;
use sledge_benches::speculation::place::Place;
use sledge_benches::speculation::program::{self, Program, Split};
use sledge_benches::speculation::{self, Parts, Settings, level};

/// Runs the suites of SpecFaaS with each level of speculation and without it, checks replies, and says how long executions took, and how long they would take at best.
#[derive(Parser)]
struct Options {
    /// Everything in some minutes, one turn each: figures say little.
    #[arg(long)]
    quick: bool,
    /// Workers of a server, each on a core [default: half of the cores].
    #[arg(long)]
    workers: Option<usize>,
    /// Workflows, applications of the railway, and graphs.
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    programs: Option<Vec<String>>,
    /// Columns beside `off`. A level that the server does not know ends the run.
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    levels: Option<Vec<String>>,
    /// Measurements: speed-up, hits, stores, poison.
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    parts: Option<Vec<String>>,
    /// Executions a second, as parts of what the server can do without speculation.
    #[arg(long, value_delimiter = ',', value_name = "PARTS")]
    loads: Option<Vec<f64>>,
    /// Hit rates of predictions, in percent.
    #[arg(long, value_delimiter = ',', value_name = "PERCENT")]
    hits: Option<Vec<u32>>,
    /// Where the store is, beside Redis 1 ms away: `embedded`, or how many milliseconds away.
    #[arg(long, value_delimiter = ',', value_name = "PLACES", value_parser = Place::parsed)]
    stores: Option<Vec<Place>>,
    /// How long functions compute, in milliseconds.
    #[arg(long, value_name = "MS")]
    busy_ms: Option<f64>,
    /// Hundredths of the graphs' times, for each millisecond of a read.
    #[arg(long, value_name = "PERCENT")]
    graph_percent: Option<f64>,
    /// For how much of that callers and leaves compute, in percent, such as 5/16 [default: 10/32].
    #[arg(long, value_name = "PERCENT/PERCENT", value_parser = program::split)]
    graph_busy: Option<Split>,
    /// How long each measurement lasts, in seconds.
    #[arg(long)]
    seconds: Option<f64>,
    /// How often everything is measured, the columns in turns.
    #[arg(long)]
    turns: Option<usize>,
    /// Everything that is drawn follows from this.
    #[arg(long)]
    seed: Option<u64>,
    /// Write what was measured here as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write plots here, each with its name behind it, as SVG and PNG.
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("speculation: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<()> {
    let folder = tempfile::Builder::new().prefix("sledge-speculation-").tempdir().context("no temporary folder")?;
    let report = speculation::run(&settings(options)?, folder.path())?;
    print!("{}", report.table());
    if let Some(file) = &options.json {
        std::fs::write(file, serde_json::to_vec_pretty(&report)?).with_context(|| format!("cannot write {}", file.display()))?;
    }
    options.plot.as_deref().map_or(Ok(()), |plot| report.plot(plot))
}

fn settings(options: &Options) -> Result<Settings> {
    let workers = match options.workers {
        Some(workers) => workers,
        None => (cores::all()?.len() / 2).max(1),
    };
    let mut settings = if options.quick { Settings::quick(workers) } else { Settings::usual(workers) };
    let Options {
        programs, levels, parts, loads, hits, stores, busy_ms, graph_percent, graph_busy, seconds, turns, seed, ..
    } = options;
    if let Some(names) = programs {
        settings.programs = names.iter().map(|name| Program::named(name)).collect::<Result<_>>()?;
    }
    if let Some(names) = levels {
        settings.levels = level::named(names)?;
    }
    if let Some(names) = parts {
        settings.parts = Parts::named(names)?;
    }
    set(&mut settings.loads, loads.as_ref());
    set(&mut settings.hits, hits.as_ref());
    set(&mut settings.stores, stores.as_ref());
    set(&mut settings.busy_ms, busy_ms.as_ref());
    set(&mut settings.graph_percent, graph_percent.as_ref());
    set(&mut settings.graph_busy, graph_busy.as_ref());
    set(&mut settings.seconds, seconds.as_ref());
    set(&mut settings.turns, turns.as_ref());
    set(&mut settings.seed, seed.as_ref());
    Ok(settings)
}

fn set<T: Clone>(setting: &mut T, option: Option<&T>) {
    if let Some(option) = option {
        setting.clone_from(option);
    }
}
