//! `make bench-peers`: functions behind `sledge` and behind what one would use instead (the library's module `peers`).
//!
//! Exit status 0 unless `sledge` or a peer that is here does not start, breaks or answers wrongly.
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Parser;
use sledge_benches::peers::plan::Plan;

/// Asks sledge and its peers for the same functions, in turns on the same core, and writes tables and a plot to benches/runs.
#[derive(Parser)]
struct Options {
    /// hyper, process, wasmtime, wasmtime-serve, node, nuclio, nuclio-go, with spaces or commas between them; all if not given
    #[arg(long, default_value = "", hide_default_value = true)]
    peers: String,
    /// ping, echo, gps-ekf, fibonacci, ocr, image-classify, image-resize, plate-detect, likewise
    #[arg(long, default_value = "", hide_default_value = true)]
    functions: String,
    /// How often each server is asked for each function
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=1000))]
    turns: u16,
    /// How long at least, each time, after as long for warming up
    #[arg(long, default_value_t = 1.5)]
    seconds: f64,
    /// Where the results go [default: benches/runs/DATE-MACHINE]
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

fn main() -> ExitCode {
    match run(Options::parse()) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(failures) => {
            eprintln!("peers: {failures} of the lines above say that something failed");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("peers: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: Options) -> Result<usize> {
    let words = |text: &str| text.split([' ', ',']).filter(|word| !word.is_empty()).map(str::to_owned).collect::<Vec<_>>();
    let time = Duration::try_from_secs_f64(options.seconds).context("--seconds")?;
    let mut plan = Plan::new(&words(&options.peers), &words(&options.functions), usize::from(options.turns), time)?;
    if let Some(folder) = options.folder {
        plan.folder = folder;
    }
    let report = sledge_benches::peers::run(&plan)?;
    println!("{}\nresults: {}", report.tables(), plan.folder.join("peers.*").display());
    Ok(report.failures())
}
