//! Runs one of PolyBench's kernels in wasmtime: `polybench-wasmtime MODULE`, built with the feature `wasmtime`.
//!
//! wasmtime as it is by default: Cranelift at its highest level for this processor, bounds by guard pages. Compiling is no part of
//! what is timed: kernels time themselves.
#![forbid(unsafe_code)]

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, anyhow};
use bytes::Bytes;
use clap::Parser;
use sledge_benches::wasi::{self, Process};
use wasmtime::{Engine, Linker, Module, Store};

/// Runs a kernel in wasmtime.
#[derive(Parser)]
struct Options {
    /// The kernel as a WASI command
    module: PathBuf,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("polybench-wasmtime: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<ExitCode> {
    let engine = Engine::default();
    let module =
        Module::from_file(&engine, &options.module).map_err(|error| anyhow!("{}: {error:#}", options.module.display()))?;
    let mut linker = Linker::new(&engine);
    wasi::add(&mut linker).map_err(|error| anyhow!("{error:#}"))?;
    let mut store = Store::new(&engine, Process::new(Bytes::new()));
    let result = linker.instantiate(&mut store, &module).and_then(|instance| {
        store.data_mut().memory = instance.get_memory(&mut store, "memory");
        let start = instance.get_typed_func::<(), ()>(&mut store, "_start")?;
        start.call(&mut store, ())
    });
    let process = store.into_data();
    std::io::stdout().write_all(&process.output)?;
    std::io::stderr().write_all(&process.errors)?;
    match (process.exit_code, result) {
        (Some(code), _) => Ok(ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX))),
        (None, Ok(())) => Ok(ExitCode::SUCCESS),
        (None, Err(error)) => Err(anyhow!("{error:#}")),
    }
}
