//! `make soak`: a server under everything at once for minutes (the library's module `soak`).
#![forbid(unsafe_code)]

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Parser;
use sledge_benches::soak;

/// Sends a server right requests, traps, endless loops and deployments for minutes, and watches its replies, memory and file descriptors.
///
/// Exit status 0 only if nothing was wrong.
#[derive(Parser)]
struct Options {
    /// How long; whether something grows is judged after the first minute.
    #[arg(long, default_value_t = 10.0)]
    minutes: f64,
    /// What is mixed when follows from this [default: another one each time].
    #[arg(long)]
    seed: Option<u64>,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("soak: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<()> {
    let now = || std::time::SystemTime::UNIX_EPOCH.elapsed().map_or(0, |time| u64::from(time.subsec_nanos()));
    let seed = options.seed.unwrap_or_else(now);
    println!("seed {seed}");
    let time = Duration::try_from_secs_f64(options.minutes * 60.0).context("--minutes")?;
    let folder = tempfile::Builder::new().prefix("sledge-soak-").tempdir().context("no temporary folder")?;
    let soaked = soak::run(time, seed, folder.path())?;
    print!("{}", soaked.report);
    println!("{} replies, all of them right; {} deployments", soaked.replies, soaked.deployments);
    Ok(())
}
