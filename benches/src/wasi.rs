//! What functions call of WASI, for wasmtime: standard input and output in memory, the clock, and the end.
//!
//! The eleven functions that the kernels and examples import and no more, so that nothing else of WASI has to be built, and none of wasmtime's own
//! costs what is measured anything.

use std::time::Instant;

use bytes::Bytes;
use wasmtime::{Caller, Linker, Memory};

const MODULE: &str = "wasi_snapshot_preview1";
/// WASI's "bad file descriptor", "no such function" and "that cannot seek".
const BADF: i32 = 8;
const NOSYS: i32 = 52;
const SPIPE: i32 = 70;
const MONOTONIC: i32 = 1;
/// Bytes of a descriptor's state.
const STATE_BYTES: usize = 24;

/// What belongs to a run.
#[derive(Debug)]
pub struct Process {
    /// The instance's, once there is one.
    pub memory: Option<Memory>,
    /// What was written to standard output.
    pub output: Vec<u8>,
    /// What was written to standard error.
    pub errors: Vec<u8>,
    /// With what it ended, if it said so.
    pub exit_code: Option<i32>,
    input: Bytes,
    start: Instant,
}

impl Process {
    /// With this on standard input.
    pub fn new(input: Bytes) -> Process {
        Process { memory: None, output: Vec::new(), errors: Vec::new(), exit_code: None, input, start: Instant::now() }
    }
}

/// Adds the functions to `linker`.
///
/// # Errors
///
/// If it has them.
pub fn add(linker: &mut Linker<Process>) -> wasmtime::Result<()> {
    for (sizes, get) in [("args_sizes_get", "args_get"), ("environ_sizes_get", "environ_get")] {
        linker.func_wrap(MODULE, sizes, |mut caller: Caller<'_, Process>, count: u32, bytes: u32| {
            errno(write(&mut caller, count, &[0; 4]).and_then(|()| write(&mut caller, bytes, &[0; 4])))
        })?;
        linker.func_wrap(MODULE, get, |_: u32, _: u32| 0_i32)?;
    }
    linker.func_wrap(MODULE, "clock_time_get", |mut caller: Caller<'_, Process>, clock: i32, _precision: u64, to: u32| {
        if clock != MONOTONIC {
            return NOSYS;
        }
        let ns = u64::try_from(caller.data().start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        errno(write(&mut caller, to, &ns.to_le_bytes()))
    })?;
    linker.func_wrap(MODULE, "fd_read", |mut caller: Caller<'_, Process>, fd: i32, vectors: u32, count: u32, to: u32| {
        errno(if fd == 0 { fill(&mut caller, vectors, count, to) } else { None })
    })?;
    linker.func_wrap(MODULE, "fd_write", |mut caller: Caller<'_, Process>, fd: i32, vectors: u32, count: u32, to: u32| {
        errno(if matches!(fd, 1 | 2) { gather(&mut caller, fd, vectors, count, to) } else { None })
    })?;
    linker.func_wrap(MODULE, "fd_fdstat_get", |mut caller: Caller<'_, Process>, fd: i32, to: u32| {
        // Neither a terminal nor anything else that libraries know.
        errno(if matches!(fd, 0..=2) { write(&mut caller, to, &[0; STATE_BYTES]) } else { None })
    })?;
    linker.func_wrap(MODULE, "fd_seek", |_: i32, _: i64, _: i32, _: u32| SPIPE)?;
    linker.func_wrap(MODULE, "fd_close", |_: i32| 0_i32)?;
    linker.func_wrap(MODULE, "proc_exit", |mut caller: Caller<'_, Process>, code: i32| -> wasmtime::Result<()> {
        caller.data_mut().exit_code = Some(code);
        Err(wasmtime::Error::msg("exit"))
    })?;
    Ok(())
}

/// What the functions return; nothing that these programs do is wrong in another way.
fn errno(done: Option<()>) -> i32 {
    if done.is_some() { 0 } else { BADF }
}

fn write(caller: &mut Caller<'_, Process>, at: u32, bytes: &[u8]) -> Option<()> {
    caller.data().memory?.write(caller, at as usize, bytes).ok()
}

/// The address and length that are number `index` of a list of vectors.
fn vector(memory: &[u8], vectors: u32, index: u32) -> Option<(usize, usize)> {
    let word = |at: usize| Some(u32::from_le_bytes(memory.get(at..at + 4)?.try_into().ok()?) as usize);
    let at = vectors as usize + 8 * index as usize;
    Some((word(at)?, word(at + 4)?))
}

/// Reads from the input into all that a list of vectors names.
fn fill(caller: &mut Caller<'_, Process>, vectors: u32, count: u32, to: u32) -> Option<()> {
    let (memory, process) = caller.data().memory?.data_and_store_mut(&mut *caller);
    let mut sum = 0;
    for index in 0..count {
        let (at, length) = vector(memory, vectors, index)?;
        let bytes = process.input.split_to(length.min(process.input.len()));
        memory.get_mut(at..at + bytes.len())?.copy_from_slice(&bytes);
        sum += u32::try_from(bytes.len()).ok()?;
    }
    write(caller, to, &sum.to_le_bytes())
}

/// Writes all that a list of vectors names.
fn gather(caller: &mut Caller<'_, Process>, fd: i32, vectors: u32, count: u32, to: u32) -> Option<()> {
    let (memory, process) = caller.data().memory?.data_and_store_mut(&mut *caller);
    let stream = if fd == 1 { &mut process.output } else { &mut process.errors };
    let mut sum = 0;
    for index in 0..count {
        let (at, length) = vector(memory, vectors, index)?;
        stream.extend_from_slice(memory.get(at..at + length)?);
        sum += u32::try_from(length).ok()?;
    }
    write(caller, to, &sum.to_le_bytes())
}
