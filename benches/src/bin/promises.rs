//! What `make promises` prints: every numeric target beside what was measured on the release build.
//!
//! One line each, four words: name, measured, bound, ok or MISS. The exit status is 0 whatever they say; it is
//! 1 only if the promises themselves cannot be read. What kept a number from being measured is said on
//! standard error, and the promise counts as a MISS.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use sledge_benches::measure::{self, Bench};
use sledge_benches::promise::{self, Promise};

/// Measures the numeric targets in benches/promises.toml.
#[derive(Parser)]
struct Options {
    /// Only those of this group.
    #[arg(long, value_name = "NAME")]
    group: Option<String>,
    /// Only those whose names begin so.
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Print what is promised and how it is measured, and measure nothing.
    #[arg(long)]
    list: bool,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("promises: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<()> {
    let mut promises = chosen(promise::read()?, options.group.as_deref())?;
    if let Some(name) = &options.name {
        promises.retain(|promise| promise.name.starts_with(name));
        ensure!(!promises.is_empty(), "no promise's name begins with '{name}'; `promises --list` shows all");
    }
    if options.list {
        for promise in &promises {
            println!("{} {} {} ({}): {}", promise.name, promise.bound, promise.unit, promise.group, promise.how);
        }
        return Ok(());
    }
    let width = promises.iter().map(|promise| promise.name.len()).max().unwrap_or(0);
    let mut bench = Bench::new()?;
    for promise in &promises {
        let measured = measure(promise, &mut bench);
        if let Err(error) = &measured {
            eprintln!("{}: not measured: {error:#}", promise.name);
        }
        let kept = measured.as_ref().is_ok_and(|number| promise.bound.kept_by(*number));
        let number = measured.map_or_else(|_| "-".to_owned(), |number| format!("{number:.2}"));
        println!("{:<width$} {number:>10} {:>8} {}", promise.name, promise.bound, if kept { "ok" } else { "MISS" });
    }
    Ok(())
}

fn chosen(promises: Vec<Promise>, group: Option<&str>) -> Result<Vec<Promise>> {
    let Some(group) = group else { return Ok(promises) };
    let mut groups: Vec<_> = promises.iter().map(|promise| promise.group.clone()).collect();
    groups.dedup();
    let chosen: Vec<_> = promises.into_iter().filter(|promise| promise.group == group).collect();
    ensure!(!chosen.is_empty(), "there is no group '{group}'; there are: {}", groups.join(", "));
    Ok(chosen)
}

fn measure(promise: &Promise, bench: &mut Bench) -> Result<f64> {
    let measurement = measure::find(&promise.name).context("benches/src/measure has no measurement of this name")?;
    measurement(bench)
}
