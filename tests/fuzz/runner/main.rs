//! Differential fuzzing: random modules, run by awsm's code in sandboxes and by an interpreter; results, traps, calls of the host, memories,
//! globals and tables are compared.
//!
//! ```text
//!   seed -> generate (wasm-smith | loops) -> mutate -> prepare (fuel, NaNs) -+-> throwing -> awsm, Sandbox: every mode -+-> compare
//!                                                                            +-> count -> plain -> wasmi ---------------+
//! ```
//!
//! Components are tried in three other ways, which need no interpreter (`wit/`): they pass values on, they lie, or they are damaged.
//!
//! Everything follows from the seed. Each worker is a process of its own (`worker.rs`).

mod atomics;
mod case;
mod check;
mod count;
mod driver;
mod failure;
mod features;
mod generate;
mod loops;
mod mutate;
mod plain;
mod prepare;
mod reference;
mod sections;
mod statistics;
mod subject;
mod throwing;
mod vectors;
mod wit;
mod worker;

use anyhow::{Context, Result};
use clap::Parser;
use sledge_tests::random;
use sledge_tests::spec::Mode;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};
use wit::Kind;

/// Runs random modules in awsm's code and in an interpreter, and compares; or random components in awsm's code.
#[derive(Debug, Parser)]
struct Arguments {
    /// What seeds are made into.
    #[arg(long, value_enum, default_value_t = Kind::Modules)]
    kind: Kind,
    /// How long to run.
    #[arg(long, value_name = "N", default_value_t = 10)]
    minutes: u64,
    /// How many seeds to try, at most.
    #[arg(long, value_name = "N")]
    seeds: Option<u64>,
    /// The first seed; by default, the time.
    #[arg(long, value_name = "SEED")]
    from: Option<u64>,
    /// Workers; by default, as many as there are cores.
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// Each seed in every mode, not in a choice of them.
    #[arg(long)]
    all_modes: bool,
    /// Repeat this seed alone.
    #[arg(long, value_name = "SEED")]
    seed: Option<u64>,
    /// With --seed: in this mode alone, such as guard-O3.
    #[arg(long, value_name = "MODE", value_parser = |name: &str| Mode::parse(name).ok_or("no such mode"))]
    mode: Option<Mode>,
    /// With --seed: not that seed's module or component but the one in this file, WebAssembly or text. Ends with 3 when it differs.
    #[arg(long, value_name = "FILE", requires = "seed")]
    check: Option<PathBuf>,
    /// With --seed: print the module or component and do not run it.
    #[arg(long, requires = "seed")]
    print: bool,
    #[arg(long, hide = true)]
    worker: bool,
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    if arguments.worker {
        worker::serve(arguments.kind, arguments.all_modes)?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(seed) = arguments.seed {
        return one(seed, &arguments);
    }
    let now = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| time.as_secs() * 1000);
    let run = driver::Run {
        kind: arguments.kind,
        first: arguments.from.unwrap_or_else(now),
        seeds: arguments.seeds,
        time: Duration::from_secs(arguments.minutes * 60),
        jobs: arguments.jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from)),
        all_modes: arguments.all_modes,
    };
    Ok(if driver::run(run)? { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn one(seed: u64, arguments: &Arguments) -> Result<ExitCode> {
    if arguments.kind != Kind::Modules {
        return component(seed, arguments);
    }
    let wasm = match &arguments.check {
        Some(file) => wat::parse_file(file)?,
        None => generate::module(seed, &features::Features::probe())?,
    };
    if arguments.print {
        let prepared = prepare::prepare(&wasm, generate::Source::of(seed) == generate::Source::Smith)?;
        println!("{}", wasmprinter::print_bytes(prepared).context("printing")?);
        return Ok(ExitCode::SUCCESS);
    }
    let modes = match arguments.mode {
        Some(mode) => vec![mode],
        None => check::modes(seed, true),
    };
    let differs = failure::repeat(&wasm, seed, &modes);
    Ok(if differs { ExitCode::from(failure::DIFFERS) } else { ExitCode::SUCCESS })
}

fn component(seed: u64, arguments: &Arguments) -> Result<ExitCode> {
    let kind = arguments.kind;
    if arguments.print {
        print!("{}", kind.text(seed));
        return Ok(ExitCode::SUCCESS);
    }
    let modes = arguments.mode.map_or_else(|| wit::modes(kind, seed, true), |mode| vec![mode]);
    let begin = &mut |mode: Mode| println!("{mode}");
    let report = match &arguments.check {
        Some(file) => wit::given(kind, &wat::parse_file(file)?, seed, &modes, begin),
        None => wit::seed(kind, seed, &modes, begin),
    };
    Ok(if failure::said(&report, kind) { ExitCode::from(failure::DIFFERS) } else { ExitCode::SUCCESS })
}
