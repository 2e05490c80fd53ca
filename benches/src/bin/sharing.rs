//! What `make sharing` runs: the suite of MXFaaS on `sledge`, in several configurations (see `sledge_benches::sharing`).
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Parser;
use sledge_benches::cores;
use sledge_benches::sharing::{self, Others, Settings};

/// Runs the suite of MXFaaS in several configurations of the server, checks every reply, and says how long requests took.
#[derive(Parser)]
struct Options {
    /// All programs, delays, loads and patterns, for longer: most of a day.
    #[arg(long)]
    full: bool,
    /// Workers of the server, each on a core [default: half of the cores].
    #[arg(long)]
    workers: Option<usize>,
    /// Functions and applications.
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    programs: Option<Vec<String>>,
    /// How far Redis is away, in milliseconds.
    #[arg(long, value_delimiter = ',', value_name = "MS", value_parser = clap::value_parser!(u64).range(0..=1_000))]
    delays: Option<Vec<u64>>,
    /// Requests a second, as parts of what the server can do with everything on.
    #[arg(long, value_delimiter = ',', value_name = "PARTS")]
    loads: Option<Vec<f64>>,
    /// Invocations of a function at the same time, for each worker, in the column `nightcore`.
    #[arg(long, value_name = "N")]
    nightcore: Option<usize>,
    /// The same for the sweep of which `nightcore-best` is the best.
    #[arg(long, value_delimiter = ',', value_name = "N")]
    sweep: Option<Vec<usize>>,
    /// How long each load lasts, in seconds, if that is enough for 100 requests; at most so many times that.
    #[arg(long)]
    seconds: Option<f64>,
    /// How often everything is measured, the columns in turns.
    #[arg(long)]
    turns: Option<usize>,
    /// Only the programs: no highest rates, and none of the other measurements.
    #[arg(long)]
    only_programs: bool,
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
            eprintln!("sharing: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<()> {
    let folder = tempfile::Builder::new().prefix("sledge-sharing-").tempdir().context("no temporary folder")?;
    let report = sharing::run(&settings(options)?, folder.path())?;
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
    let mut settings = if options.full { Settings::full(workers) } else { Settings::short(workers) };
    let Options { programs, delays, loads, nightcore, sweep, seconds, turns, seed, .. } = options;
    set(&mut settings.programs, programs.as_ref());
    set(&mut settings.delays, delays.as_ref().map(|delays| delays.iter().copied().map(Duration::from_millis).collect()).as_ref());
    set(&mut settings.loads, loads.as_ref());
    set(&mut settings.nightcore, nightcore.as_ref());
    set(&mut settings.sweep, sweep.as_ref());
    set(&mut settings.turns, turns.as_ref());
    set(&mut settings.seed, seed.as_ref());
    if let Some(seconds) = *seconds {
        settings.seconds_max *= seconds / settings.seconds;
        settings.seconds = seconds;
    }
    if options.only_programs {
        settings.others = Others::NONE;
    }
    Ok(settings)
}

fn set<T: Clone>(setting: &mut T, option: Option<&T>) {
    if let Some(option) = option {
        setting.clone_from(option);
    }
}
