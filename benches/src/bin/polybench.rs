//! `make polybench`: every kernel's time as a function beside native code (the library's module `polybench`).
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use sledge_benches::polybench::plan::Plan;
use sledge_benches::polybench::variant::{Bounds, Source, Variant};

/// Times PolyBench's kernels natively and as functions, in one interleaved run, and writes tables and plots to benches/runs.
///
/// An interrupted run goes on where it was, on the same day and with the same tools and kernels.
#[derive(Parser)]
struct Options {
    /// MINI, SMALL, MEDIUM, LARGE or EXTRALARGE
    #[arg(long, default_value = "LARGE")]
    size: String,
    /// Names of kernels, with spaces or commas between them; all if not given
    #[arg(long, default_value = "", hide_default_value = true)]
    kernels: String,
    /// Modes of bounds checks: guard, segment, software, none
    #[arg(long, default_value = "guard software")]
    modes: String,
    /// Where the WebAssembly comes from: c (awsm's own way), foreign (clang alone), simd (the same with vectors)
    #[arg(long, default_value = "c foreign simd")]
    sources: String,
    /// Only what promises.toml is about, whatever modes and sources say
    #[arg(long)]
    promised: bool,
    /// The same WebAssembly in wasmtime, too, for which polybench-wasmtime has to be built
    #[arg(long)]
    wasmtime: bool,
    /// How often each program runs at least
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Where the results go [default: benches/runs/DATE-MACHINE]
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

fn main() -> ExitCode {
    match run(Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("polybench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: Options) -> Result<()> {
    let words = |text: &str| text.split([' ', ',']).filter(|word| !word.is_empty()).map(str::to_owned).collect::<Vec<_>>();
    let modes = words(&options.modes).iter().map(|name| Bounds::parse(name)).collect::<Result<Vec<_>>>()?;
    let sources = words(&options.sources).iter().map(|name| Source::parse(name)).collect::<Result<Vec<_>>>()?;
    let mut variants = if options.promised { Variant::PROMISED.to_vec() } else { Variant::all(&modes, &sources) };
    if options.wasmtime {
        variants.extend(Variant::WASMTIME);
    }
    let mut plan = Plan::new(&options.size, &words(&options.kernels), &variants, options.rounds)?;
    if let Some(folder) = options.folder {
        plan.folder = folder;
    }
    let summary = sledge_benches::polybench::run(&plan)?;
    print!("\n{}\n{}", summary.table(Variant::Native)?, summary.table(Variant::NativeMarch)?);
    println!("\nresults: {}", plan.file("*").display());
    Ok(())
}
