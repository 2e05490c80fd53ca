//! The child's side: limits, then the compilation.

use std::io::{self, BufRead, Read, Write};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, Signal};

use super::{Limits, Message, Request};
use crate::compile;
use crate::llvm;
use crate::progress::{Phase, Progress};

/// Between reports of how far a phase has come.
const REPORT_INTERVAL: Duration = Duration::from_millis(50);

/// Compiles what standard input asks for, and answers on standard output: the command `awsm codegen`, of which only [`super::compile`] knows.
///
/// # Errors
/// When the parent is gone, or is not one. Failures of the compilation are messages to it.
pub fn serve() -> io::Result<()> {
    // Whoever asked is gone: nobody wants the answer.
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    let mut input = io::stdin().lock();
    let mut line = String::new();
    input.read_line(&mut line)?;
    let Request { options, limits } = serde_json::from_str(&line)?;
    limit(&limits)?;
    llvm::say_where_it_fails();
    let mut wasm = Vec::new();
    input.read_to_end(&mut wasm)?;

    let reports = Reports { last: Mutex::new(Instant::now()) };
    match compile::compile_with(&wasm, &options, &reports, &|bytes| limit_memory(&limits, bytes)) {
        Ok(bytes) => {
            send(&Message::Output { bytes: bytes.len() as u64 })?;
            io::stdout().lock().write_all(&bytes)
        }
        Err(error) => send(&Message::Failed { text: error.to_string() }),
    }
}

/// Sets the limits.
fn limit(limits: &Limits) -> io::Result<()> {
    limit_memory(limits, 0)?;
    // The parent looks at the clock; this is for one that was stopped.
    let threads = thread::available_parallelism().map_or(1, usize::from) as u64;
    set(Resource::Cpu, limits.time_max.as_secs().saturating_add(1).saturating_mul(threads))?;
    set(Resource::Core, 0)
}

/// Limits memory, to which the kernel counts stacks as a whole from their start.
fn limit_memory(limits: &Limits, stack_bytes: usize) -> io::Result<()> {
    set(Resource::Data, limits.memory_bytes_max.saturating_add(stack_bytes as u64))
}

/// Sets a limit, or keeps a stricter one that nobody may pass.
fn set(resource: Resource, value: u64) -> io::Result<()> {
    let maximum = rustix::process::getrlimit(resource).maximum;
    let current = maximum.map_or(value, |maximum| maximum.min(value));
    Ok(rustix::process::setrlimit(resource, Rlimit { current: Some(current), maximum })?)
}

fn send(message: &Message) -> io::Result<()> {
    let mut output = io::stdout().lock();
    serde_json::to_writer(&mut output, message)?;
    output.write_all(b"\n")?;
    output.flush()
}

/// Tells the parent. One that is gone ends this process anyway, so that failures to tell it are no failures.
struct Reports {
    last: Mutex<Instant>,
}

impl Progress for Reports {
    fn begin(&self, phase: Phase, total: usize) {
        let _ = send(&Message::Begin { phase, total });
    }

    fn advance(&self, done: usize) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.elapsed() >= REPORT_INTERVAL {
            *last = Instant::now();
            let _ = send(&Message::Advance { done });
        }
    }

    fn part(&self, index: usize, what: Option<&str>) {
        let _ = send(&Message::Part { index, what: what.map(str::to_owned) });
    }

    fn warn(&self, message: &str) {
        let _ = send(&Message::Warn { text: message.to_owned() });
    }
}
