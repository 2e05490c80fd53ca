//! Runs one of PolyBench's kernels in wasmtime: `polybench-wasmtime MODULE`, built with the feature `wasmtime`.
//!
//! wasmtime as it is by default: Cranelift at its highest level for this processor, bounds by guard pages. Of WASI, the five functions that kernels
//! call, so that nothing else of it has to be built. Compiling is no part of what is timed: kernels time themselves.
#![forbid(unsafe_code)]

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Result, anyhow};
use clap::Parser;
use wasmtime::{Caller, Engine, Extern, Linker, Module, Store};

/// WASI's "bad file descriptor" and "no such function".
const BADF: i32 = 8;
const NOSYS: i32 = 52;
const MONOTONIC: i32 = 1;

/// Runs a kernel in wasmtime.
#[derive(Parser)]
struct Options {
    /// The kernel as a WASI command
    module: PathBuf,
}

/// What belongs to a run.
struct Process {
    start: Instant,
    exit_code: Option<u8>,
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
    let mut store = Store::new(&engine, Process { start: Instant::now(), exit_code: None });
    let result = linker(&engine)?.instantiate(&mut store, &module).and_then(|instance| {
        let start = instance.get_typed_func::<(), ()>(&mut store, "_start")?;
        start.call(&mut store, ())
    });
    match (store.data().exit_code, result) {
        (Some(code), _) => Ok(ExitCode::from(code)),
        (None, Ok(())) => Ok(ExitCode::SUCCESS),
        (None, Err(error)) => Err(anyhow!("{error:#}")),
    }
}

fn linker(engine: &Engine) -> wasmtime::Result<Linker<Process>> {
    let mut linker = Linker::new(engine);
    let wasi = "wasi_snapshot_preview1";
    linker.func_wrap(wasi, "args_sizes_get", |mut caller: Caller<'_, Process>, count: u32, bytes: u32| {
        errno(write(&mut caller, count, &[0; 4]).and_then(|()| write(&mut caller, bytes, &[0; 4])))
    })?;
    linker.func_wrap(wasi, "args_get", |_: u32, _: u32| 0_i32)?;
    linker.func_wrap(wasi, "clock_time_get", |mut caller: Caller<'_, Process>, clock: i32, _precision: u64, to: u32| {
        if clock != MONOTONIC {
            return NOSYS;
        }
        let ns = u64::try_from(caller.data().start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        errno(write(&mut caller, to, &ns.to_le_bytes()))
    })?;
    linker.func_wrap(wasi, "fd_write", |mut caller: Caller<'_, Process>, fd: i32, vectors: u32, count: u32, to: u32| {
        errno(gather(&mut caller, vectors, count).and_then(|bytes| {
            match fd {
                1 => std::io::stdout().write_all(&bytes).ok()?,
                2 => std::io::stderr().write_all(&bytes).ok()?,
                _ => return None,
            }
            write(&mut caller, to, &u32::try_from(bytes.len()).ok()?.to_le_bytes())
        }))
    })?;
    linker.func_wrap(wasi, "proc_exit", |mut caller: Caller<'_, Process>, code: i32| -> wasmtime::Result<()> {
        caller.data_mut().exit_code = Some(u8::try_from(code).unwrap_or(u8::MAX));
        Err(wasmtime::Error::msg("exit"))
    })?;
    Ok(linker)
}

/// What WASI's functions return; nothing that these kernels do is wrong in another way.
fn errno(done: Option<()>) -> i32 {
    if done.is_some() { 0 } else { BADF }
}

fn memory(caller: &mut Caller<'_, Process>) -> Option<wasmtime::Memory> {
    caller.get_export("memory").and_then(Extern::into_memory)
}

fn write(caller: &mut Caller<'_, Process>, at: u32, bytes: &[u8]) -> Option<()> {
    memory(caller)?.write(caller, at as usize, bytes).ok()
}

/// All bytes that a list of vectors names.
fn gather(caller: &mut Caller<'_, Process>, vectors: u32, count: u32) -> Option<Vec<u8>> {
    let memory = memory(caller)?;
    let data = memory.data(&*caller);
    let word = |at: usize| Some(u32::from_le_bytes(data.get(at..at + 4)?.try_into().ok()?) as usize);
    let mut all = Vec::new();
    for index in 0..count as usize {
        let at = vectors as usize + 8 * index;
        let (from, length) = (word(at)?, word(at + 4)?);
        all.extend_from_slice(data.get(from..from + length)?);
    }
    Some(all)
}
