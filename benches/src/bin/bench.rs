//! `make bench`: the whole set of benchmarks, and its report (the library's module `run`).
//!
//! Exit status 0 only if every part was measured.
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use clap::{Args, Parser, Subcommand};
use sledge_benches::checkout;
use sledge_benches::polybench::machine;
use sledge_benches::run::part::{QUICK, WHOLE};
use sledge_benches::run::record::Record;
use sledge_benches::run::{self, compare, document, report};

/// Measures everything, in less than 20 minutes on two cores, and reports it beside the last run of the same machine.
#[derive(Parser)]
struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure what is missing, then report. An interrupted run goes on where it was, on the same day and with the same programs; what is to be
    /// measured again is deleted before.
    Run {
        /// Only a little of everything, in minutes; its results go to target/bench-quick
        #[arg(long)]
        quick: bool,
        #[command(flatten)]
        place: Place,
        /// Names of parts; all if not given
        parts: Vec<String>,
    },
    /// Write summary and plots of a run again, from its CSV.
    Report {
        #[command(flatten)]
        place: Place,
        /// Quote it in docs/benchmarks.md
        #[arg(long)]
        document: bool,
    },
}

#[derive(Args)]
struct Place {
    /// The run's folder [default: benches/runs/DATE-MACHINE; to report, the last of this machine]
    #[arg(long)]
    folder: Option<PathBuf>,
    /// The folder of the run to compare with [default: the one before, of the same machine]
    #[arg(long)]
    before: Option<PathBuf>,
}

fn main() -> ExitCode {
    let result = match Options::parse().command {
        Command::Run { quick, place, parts } => measure(quick, &place, &parts),
        Command::Report { place, document } => again(&place, document),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn measure(is_quick: bool, place: &Place, names: &[String]) -> Result<()> {
    let mut parts = if is_quick { QUICK } else { WHOLE }.to_vec();
    if let Some(unknown) = names.iter().find(|name| !parts.iter().any(|part| part.name == name.as_str())) {
        let known: Vec<_> = parts.iter().map(|part| part.name).collect();
        anyhow::bail!("there is no part '{unknown}'; there are {}", known.join(", "));
    }
    parts.retain(|part| names.is_empty() || names.iter().any(|name| name == part.name));
    let now = Record::now(is_quick)?;
    let folder = match &place.folder {
        Some(folder) => folder.clone(),
        None if is_quick => checkout::output_folder("bench-quick")?,
        None => runs().join(format!("{}-{}", now.date, machine::slug())),
    };
    let failed = run::measure(&parts, &folder, now)?;
    report(&folder, place)?;
    ensure!(failed.is_empty(), "failed: {}; what was measured is kept, and `bench run` goes on from there", failed.join(", "));
    Ok(())
}

fn again(place: &Place, is_quoted: bool) -> Result<()> {
    let folder = last(place)?;
    report(&folder, place)?;
    if is_quoted {
        let missing = document::write(&folder)?;
        println!("quoted in: {}", document::file().display());
        missing.iter().for_each(|heading| println!("the run has nothing for its quotation '{heading}'"));
    }
    Ok(())
}

fn report(folder: &Path, place: &Place) -> Result<()> {
    let before = place.before.clone().or_else(|| compare::previous(folder));
    print!("{}", report::write(folder, before.as_deref())?);
    println!("\nresults: {}", folder.display());
    Ok(())
}

/// The newest folder of this machine's runs.
fn last(place: &Place) -> Result<PathBuf> {
    if let Some(folder) = &place.folder {
        return Ok(folder.clone());
    }
    let next = runs().join(format!("9999-99-99-{}", machine::slug()));
    compare::previous(&next).with_context(|| format!("{} has no run of this machine; make bench", runs().display()))
}

fn runs() -> PathBuf {
    checkout::root().join("benches/runs")
}
