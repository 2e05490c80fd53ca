//! The child's side: limits, then the compilation.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Read, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, Signal};
use rustix::time::ClockId;

use super::{Limits, Message, Request};
use crate::compile::{self, Supervisor, Surroundings};
use crate::component::Seen;
use crate::llvm;
use crate::program::Program;
use crate::progress::{Phase, Progress};
use crate::watch::{self, Watch};

/// Between reports of how far a phase has come.
const REPORT_INTERVAL: Duration = Duration::from_millis(50);

/// Stack of the thread that looks at how long functions take. It counts as memory.
const WATCH_STACK_BYTES: usize = 128 << 10;

/// Compiles what standard input asks for, and answers on standard output: the command `awsm codegen`, of which only [`super::compile`] knows.
///
/// # Errors
/// When the parent has ended, or sends no request. Failures of the compilation are messages to it.
pub fn serve() -> io::Result<()> {
    // Only the parent reads the answer, so this process ends with it.
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    let mut input = io::stdin().lock();
    let mut line = String::new();
    input.read_line(&mut line)?;
    let Request { options, limits, modules: module_lengths, component, outline, plan, slow, finished: lengths, only } =
        serde_json::from_str(&line)?;
    limit(&limits)?;
    llvm::say_where_it_fails();
    let mut finished = BTreeMap::new();
    for (index, bytes) in lengths {
        finished.insert(index, read(&mut input, bytes)?);
    }
    let modules = module_lengths.into_iter().map(|bytes| read(&mut input, bytes)).collect::<io::Result<Vec<_>>>()?;
    if let ([component], true) = (modules.as_slice(), outline) {
        let seen = serde_json::to_vec(&Seen::of(component))?;
        return send_with(&Message::Output { bytes: seen.len() as u64 }, &seen);
    }
    let program = match modules.as_slice() {
        [wasm] if component => Program::component(wasm),
        modules => Program::new(modules.iter().map(Vec::as_slice), plan),
    };

    let reports = Reports { last: Mutex::new(Instant::now()) };
    let child = Arc::new(Supervised { limits, watch: Watch::default() });
    let watcher = Arc::clone(&child);
    let builder = thread::Builder::new().name("awsm watch".to_owned()).stack_size(WATCH_STACK_BYTES);
    // Where there is no memory for it, there is none for the compilation, which says so.
    drop(builder.spawn(move || watcher.give_up_what_is_slow()));
    let is_all = only.is_none();
    match compile::compile_within(
        &program,
        &options,
        &reports,
        &Surroundings { slow: &slow, finished, only, supervisor: Some(&*child) },
    ) {
        Ok(_) if !is_all => send(&Message::Parts { used: used() }),
        Ok(bytes) => send_with(&Message::Output { bytes: bytes.len() as u64 }, &bytes),
        Err(error) => send(&Message::Failed { text: error.to_string() }),
    }
}

/// The processor time that this process had.
fn used() -> Duration {
    Duration::try_from(rustix::time::clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default()
}

/// So many bytes.
fn read(input: &mut impl Read, bytes: u64) -> io::Result<Vec<u8>> {
    let mut whole = Vec::new();
    input.take(bytes).read_to_end(&mut whole)?;
    if whole.len() as u64 == bytes { Ok(whole) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// The limits of this process, and what looks after them.
struct Supervised {
    limits: Limits,
    watch: Watch,
}

impl Supervised {
    /// Looks until a function takes too long, and ends the process then.
    fn give_up_what_is_slow(&self) {
        let function = loop {
            thread::sleep(watch::LOOK_INTERVAL);
            if let Some((function, _)) = self.watch.look(self.limits.time_max) {
                break function;
            }
        };
        let _ = send(&Message::GivenUp { function, used: used() });
        // Threads are inside LLVM: nothing of it can be unwound.
        let _ = rustix::process::kill_process(rustix::process::getpid(), Signal::KILL);
    }
}

impl Supervisor for Supervised {
    fn reserve(&self, stack_bytes: usize) -> io::Result<()> {
        limit_memory(&self.limits, stack_bytes)
    }

    fn watch(&self) -> &Watch {
        &self.watch
    }

    fn finished(&self, index: usize, output: &[u8]) {
        let _ = send_with(&Message::Finished { index, bytes: output.len() as u64 }, output);
    }
}

/// Sets the limits.
fn limit(limits: &Limits) -> io::Result<()> {
    limit_memory(limits, 0)?;
    // The parent looks at the clock. Only what is left to a process after another has fractions of a second.
    set(Resource::Cpu, limits.time_max.as_secs_f64().ceil() as u64)?;
    set(Resource::Core, 0)
}

/// Limits memory, to which the kernel counts stacks as a whole from their start.
fn limit_memory(limits: &Limits, stack_bytes: usize) -> io::Result<()> {
    set(Resource::Data, limits.memory_bytes_max.saturating_add(stack_bytes as u64))
}

/// Sets a limit, or keeps a stricter one that no process may pass.
fn set(resource: Resource, value: u64) -> io::Result<()> {
    let maximum = rustix::process::getrlimit(resource).maximum;
    let current = maximum.map_or(value, |maximum| maximum.min(value));
    Ok(rustix::process::setrlimit(resource, Rlimit { current: Some(current), maximum })?)
}

fn send(message: &Message) -> io::Result<()> {
    send_with(message, &[])
}

fn send_with(message: &Message, bytes: &[u8]) -> io::Result<()> {
    let mut output = io::stdout().lock();
    serde_json::to_writer(&mut output, message)?;
    output.write_all(b"\n")?;
    output.write_all(bytes)?;
    output.flush()
}

/// Sends progress to the parent. Failures are ignored: this process ends with its parent anyway.
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
