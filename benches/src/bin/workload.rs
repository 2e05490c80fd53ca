//! `make workloads`: the distributed sort and the online game of *Microtasks*, measured (the library's module `workload`).
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use clap::{Args, Parser, Subcommand};
use serde::Serialize;
use sledge_benches::cores;
use sledge_benches::workload::classes::{self, Classes};
use sledge_benches::workload::game;
use sledge_benches::workload::sort::{self, Place, Transfers};

/// Runs a workload of phases that compute and phases that wait, checks its results, and says how long it took.
#[derive(Parser)]
struct Options {
    #[command(subcommand)]
    command: Command,
    /// Workers of the server, each on a core [default: half of the cores].
    #[arg(long, global = true)]
    workers: Option<usize>,
    /// Also run with classes, if the server has them.
    #[arg(long, value_enum, default_value_t = Classes::Inferred, global = true)]
    classes: Classes,
    /// Everything that is drawn follows from this.
    #[arg(long, default_value_t = 1, global = true)]
    seed: u64,
    /// Write what was measured here as JSON.
    #[arg(long, value_name = "FILE", global = true)]
    json: Option<PathBuf>,
    /// Write distributions here, as SVG and PNG; for the sort with each place's name behind it.
    #[arg(long, value_name = "FILE", global = true)]
    plot: Option<PathBuf>,
    /// Where files of the run are for its time [default: the system's temporary folder].
    #[arg(long, value_name = "FOLDER", global = true)]
    folder: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Command {
    /// Sort records of 100 bytes: blocking, with several tasks at a time, and with classes.
    Sort(SortOptions),
    /// Initialise an online game, then play it, alone and beside initialisations of others.
    Game(GameOptions),
}

#[derive(Args)]
struct SortOptions {
    /// Millions of bytes that are sorted.
    #[arg(long, default_value_t = 400, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    megabytes: u64,
    /// How often each variant sorts.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=1000))]
    repeat: u16,
    /// Tasks of the first stage, each with as many records.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    chunks: u16,
    /// Tasks of the second stage, each with as many values of the first byte.
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u16).range(1..=256))]
    categories: u16,
    /// Where the data are: files, redis-MS (Redis that answers so many milliseconds later).
    #[arg(long, value_delimiter = ',', default_value = "files,redis-1,redis-5")]
    places: Vec<Place>,
    /// KiB that are read or written at a time. If not given, what makes blocking tasks use 60 to 65 % of their cores.
    #[arg(long, value_name = "KIB", value_parser = clap::value_parser!(u16).range(1..=3072))]
    transfer: Option<u16>,
    /// With --transfer: how often each stage hashes each record, to compute more.
    #[arg(long, default_value_t = 0, requires = "transfer")]
    rounds: u64,
}

#[derive(Args)]
struct GameOptions {
    /// How often each initialisation is measured.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000))]
    repeat: u16,
    /// How long each game is played, in seconds.
    #[arg(long, default_value_t = 20.0)]
    seconds: f64,
    /// Passes of rain over each region of a world: how long an initialisation takes.
    #[arg(long, default_value_t = 2_000)]
    passes: u32,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("workload: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<()> {
    let classes = classes::usable(options.classes)?;
    if classes.is_none() && options.classes != Classes::Off {
        println!("This server has no `{}` in its configuration: everything runs without classes.", classes::KEY);
    }
    let workers = match options.workers {
        Some(workers) => workers,
        None => (cores::all()?.len() / 2).max(1),
    };
    let mut temporary = tempfile::Builder::new();
    temporary.prefix("sledge-workload-");
    let folder = match &options.folder {
        Some(folder) => temporary.tempdir_in(folder),
        None => temporary.tempdir(),
    };
    let folder = folder.context("no temporary folder")?;
    match &options.command {
        Command::Sort(sort) => {
            let report = sort::run(&sort_settings(sort, workers, classes, options.seed), folder.path())?;
            print!("{}", report.table());
            save(options.json.as_deref(), &report)?;
            options.plot.as_deref().map_or(Ok(()), |plot| report.plot(plot))
        }
        Command::Game(GameOptions { repeat, seconds, passes }) => {
            ensure!(*seconds > 0.0 && *seconds <= 86_400.0, "--seconds has to be more than 0, and at most a day");
            let (repeat, seconds, passes, seed) = (usize::from(*repeat), *seconds, *passes, options.seed);
            let report = game::run(&game::Settings { passes, repeat, seconds, workers, classes, seed }, folder.path())?;
            print!("{}", report.table());
            save(options.json.as_deref(), &report)?;
            options.plot.as_deref().map_or(Ok(()), |plot| report.plot(plot))
        }
    }
}

fn sort_settings(options: &SortOptions, workers: usize, classes: Option<Classes>, seed: u64) -> sort::Settings {
    let transfers = options.transfer.map(|kib| Transfers { bytes: usize::from(kib) << 10, rounds: options.rounds });
    sort::Settings {
        megabytes: options.megabytes,
        chunks: options.chunks.into(),
        categories: options.categories.into(),
        repeat: options.repeat.into(),
        workers,
        places: options.places.clone(),
        classes,
        seed,
        transfers,
    }
}

fn save(file: Option<&Path>, report: &impl Serialize) -> Result<()> {
    let Some(file) = file else { return Ok(()) };
    std::fs::write(file, serde_json::to_vec_pretty(report)?).with_context(|| format!("cannot write {}", file.display()))
}
