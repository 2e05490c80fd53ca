//! `make sharing-simulated`: the workloads of *MXFaaS* on a server in simulated time (the library's module `simulated`).
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::{Args, Parser, Subcommand};
use serde::Serialize;
use sledge_benches::cores;
use sledge_benches::simulated::calibration::Run;
use sledge_benches::simulated::figures::{self, COLUMNS, Column, Wanted};
use sledge_benches::simulated::model::Arrivals;
use sledge_benches::simulated::server::WORKERS_MAX;
use sledge_benches::simulated::{measure, predict};

/// Measures a run on a real server, predicts one, and simulates the suite on more cores.
#[derive(Parser)]
struct Options {
    #[command(subcommand)]
    command: Command,
    /// Everything that is drawn follows from this.
    #[arg(long, default_value_t = 1, global = true)]
    seed: u64,
    /// Write what came of it here as JSON.
    #[arg(long, value_name = "FILE", global = true)]
    json: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Command {
    /// Measure a run on a real server, for the other commands.
    Measure(MeasureOptions),
    /// Simulate each load of a run, and print it beside what was measured.
    Predict {
        /// The run: of `measure`, or of `sharing`.
        run: PathBuf,
    },
    /// Simulate the suite.
    Figures(FiguresOptions),
}

#[derive(Args)]
struct MeasureOptions {
    /// Workers of the server, each on a core [default: half of the cores].
    #[arg(long)]
    workers: Option<usize>,
    /// How long each load lasts, in seconds.
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
}

#[derive(Args)]
struct FiguresOptions {
    /// A run that says what requests cost; without it costs are the usual ones.
    #[arg(long, value_name = "FILE")]
    run: Option<PathBuf>,
    /// Numbers of cores.
    #[arg(long, value_delimiter = ',', default_value = "2,4,8,16")]
    cores: Vec<usize>,
    /// What is compared.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = COLUMNS)]
    columns: Vec<Column>,
    /// How far the store is away, in milliseconds.
    #[arg(long, default_value_t = 5.0)]
    delay: f64,
    /// How requests come: even, poisson, or "bursts of N".
    #[arg(long, default_value = "poisson")]
    arrivals: Arrivals,
    /// Requests of each load for each core, at most.
    #[arg(long, default_value_t = 4_000, value_parser = clap::value_parser!(u32).range(100..=10_000_000))]
    requests: u32,
    /// Programs [default: all].
    #[arg(long, value_delimiter = ',')]
    programs: Vec<String>,
    /// Write pictures here, as SVG and PNG, each with its name behind it.
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
}

fn main() -> ExitCode {
    let options = Options::parse();
    match run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("sharing-simulated: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<()> {
    match &options.command {
        Command::Measure(MeasureOptions { workers, seconds }) => {
            ensure!(*seconds > 0.0 && *seconds <= 86_400.0, "--seconds has to be more than 0, and at most a day");
            let workers = match workers {
                Some(workers) => *workers,
                None => (cores::all()?.len() / 2).max(1),
            };
            let folder = tempfile::Builder::new().prefix("sledge-simulated-").tempdir().context("no temporary folder")?;
            let run = measure::run(workers, Duration::from_secs_f64(*seconds), options.seed, folder.path())?;
            save(options.json.as_deref(), &run)?;
            print!("{}", predict::predict(&run, options.seed).table());
            Ok(())
        }
        Command::Predict { run } => {
            let predictions = predict::predict(&Run::read(run)?, options.seed);
            print!("{}", predictions.table());
            save(options.json.as_deref(), &predictions)
        }
        Command::Figures(figures) => simulate(figures, options),
    }
}

fn simulate(wanted: &FiguresOptions, options: &Options) -> Result<()> {
    let FiguresOptions { cores, columns, delay, arrivals, requests, programs, .. } = wanted;
    ensure!(!cores.is_empty() && cores.iter().all(|cores| (1..=WORKERS_MAX).contains(cores)), "--cores: 1 to {WORKERS_MAX} each");
    ensure!((0.0..=60_000.0).contains(delay), "--delay: 0 to 60000 ms");
    let run = wanted.run.as_deref().map(Run::read).transpose()?;
    let settings = Wanted {
        cores: cores.clone(),
        columns: columns.clone(),
        delay: (delay * 1e6) as u64,
        arrivals: *arrivals,
        requests: *requests as usize,
        programs: programs.clone(),
        seed: options.seed,
    };
    let begin = Instant::now();
    let report = figures::figures(&settings, run.as_ref());
    ensure!(!report.cells.is_empty(), "--programs: there is none of {}", programs.join(", "));
    print!("{}", report.table());
    let seconds = begin.elapsed().as_secs_f64();
    println!(
        "\nSimulated {} events in {seconds:.1} s, {:.1} million a second.",
        report.events,
        report.events as f64 / seconds / 1e6
    );
    save(options.json.as_deref(), &report)?;
    wanted.plot.as_deref().map_or(Ok(()), |plot| report.plot(plot))
}

fn save(file: Option<&Path>, report: &impl Serialize) -> Result<()> {
    let Some(file) = file else { return Ok(()) };
    std::fs::write(file, serde_json::to_vec_pretty(report)?).with_context(|| format!("cannot write {}", file.display()))
}
