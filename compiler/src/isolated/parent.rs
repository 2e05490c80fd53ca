//! The parent's side: starting the child, listening to it, ending it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use awsm_abi::limits::{ARTIFACT_BYTES_MAX, COMPILE_WALL_MULTIPLE};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, PidfdFlags, Resource, Signal};

use super::verdict::{self, End};
use super::{Limits, Message, Request};
use crate::error::CompileError;
use crate::module::FuncId;
use crate::options::CompileOptions;
use crate::program::Program;
use crate::progress::{Phase, Progress};

/// What is kept of what the child says when it fails: its end.
const COMPLAINT_BYTES_MAX: usize = 64 << 10;

/// A message of the child, which is a line.
const MESSAGE_BYTES_MAX: u64 = 1 << 20;

/// What the child may produce; LLVM's text is many times as large as an artifact.
const OUTPUT_BYTES_MAX: u64 = 16 * ARTIFACT_BYTES_MAX;

/// Parts in work that are remembered: more than there are threads.
const PARTS_MAX: usize = 4096;

/// Compiles a program as [`crate::compile`] does, in a child process within limits. `awsm` is the program of that name.
///
/// # Errors
/// [`CompileError::Child`] with what the child says of a module that does not compile; [`CompileError::Memory`], [`CompileError::Time`] and
/// [`CompileError::Crashed`] when it ended otherwise.
pub fn compile(
    awsm: &Path,
    program: &Program<'_>,
    options: &CompileOptions,
    limits: &Limits,
    progress: &dyn Progress,
) -> Result<Vec<u8>, CompileError> {
    let deadline = Instant::now() + limits.time_max * COMPILE_WALL_MULTIPLE;
    let mut compilation = Compilation { awsm, program, options, limits, deadline, before: Before::default() };
    loop {
        if let Some(output) = compilation.attempt(progress)? {
            return Ok(output);
        }
    }
}

/// A compilation, over several processes if functions are given up.
struct Compilation<'a> {
    awsm: &'a Path,
    program: &'a Program<'a>,
    options: &'a CompileOptions,
    limits: &'a Limits,
    deadline: Instant,
    before: Before,
}

/// What processes left that gave up a function each.
#[derive(Default)]
struct Before {
    slow: Vec<FuncId>,
    finished: BTreeMap<usize, Vec<u8>>,
    /// The processor time that they took.
    used: Duration,
    /// What was warned of. The next process says it again.
    warnings: BTreeSet<String>,
}

impl Compilation<'_> {
    /// What a process gives; none where it gave a function up.
    fn attempt(&mut self, progress: &dyn Progress) -> Result<Option<Vec<u8>>, CompileError> {
        let mut command = Command::new(self.awsm);
        command.arg("codegen").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(CompileError::io("starting the process that generates code"))?;
        let (input, output, errors) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let complaint = Mutex::new(Vec::new());
        let (answer, timed_out, phase, parts) = thread::scope(|scope| {
            let clock = scope.spawn(|| kill_when_over(&child, self.deadline));
            scope.spawn(|| errors.into_iter().for_each(|errors| keep_end(errors, &complaint)));
            let answer = self.ask(input);
            let mut listener = Listener { progress, before: &mut self.before, phase: None, parts: BTreeMap::new() };
            let answer = answer.and_then(|()| listener.listen(output));
            (answer, clock.join().unwrap_or(Ok(false)), listener.phase, listener.parts)
        });
        let status = child.wait().map_err(CompileError::io("waiting for the process that generates code"))?;
        match answer {
            Ok(Answer::Output(bytes)) => Ok(Some(bytes)),
            Ok(Answer::Failed(text)) => Err(CompileError::Child { message: text }),
            Ok(Answer::GivenUp { function, used }) if !self.before.slow.contains(&function) => {
                self.before.slow.push(function);
                self.before.used += used;
                Ok(None)
            }
            Ok(Answer::GivenUp { .. } | Answer::None) | Err(_) => {
                let complaint = complaint.into_inner().unwrap_or_else(PoisonError::into_inner);
                let timed_out = timed_out.map_err(CompileError::io("waiting for the process that generates code"))?;
                let complaint = String::from_utf8_lossy(&complaint);
                let inherited_bytes_max = inherited_bytes_max();
                let end = End { status, timed_out, complaint: &complaint, phase, inherited_bytes_max, parts: &parts };
                Err(verdict::of(&end, self.limits))
            }
        }
    }

    /// Sends the request. If the child ended before it read all of it, its exit status says why.
    fn ask(&self, input: Option<ChildStdin>) -> io::Result<()> {
        let Some(mut input) = input else { return Ok(()) };
        let Before { slow, finished, used, .. } = &self.before;
        let limits = Limits { time_max: self.limits.time_max.saturating_sub(*used), ..*self.limits };
        let lengths = finished.iter().map(|(&index, bytes)| (index, bytes.len() as u64)).collect();
        let request = Request {
            options: self.options.clone(),
            limits,
            modules: self.program.modules().iter().map(|wasm| wasm.len() as u64).collect(),
            component: self.program.is_component(),
            plan: self.program.plan().to_vec(),
            slow: slow.clone(),
            finished: lengths,
        };
        serde_json::to_writer(&mut input, &request)?;
        input.write_all(b"\n")?;
        finished.values().try_for_each(|bytes| input.write_all(bytes))?;
        self.program.modules().iter().try_for_each(|wasm| input.write_all(wasm))
    }
}

/// The memory that a child may have by the limits that this process has.
fn inherited_bytes_max() -> u64 {
    let limits = [Resource::As, Resource::Data].map(|resource| rustix::process::getrlimit(resource).current);
    limits.into_iter().flatten().min().unwrap_or(u64::MAX)
}

enum Answer {
    Output(Vec<u8>),
    Failed(String),
    /// A function takes too long.
    GivenUp {
        function: FuncId,
        used: Duration,
    },
    /// It ended without one.
    None,
}

struct Listener<'a> {
    progress: &'a dyn Progress,
    before: &'a mut Before,
    /// What the child was doing last.
    phase: Option<Phase>,
    /// The parts of the module that it was working on.
    parts: BTreeMap<usize, String>,
}

impl Listener<'_> {
    fn listen(&mut self, output: Option<ChildStdout>) -> io::Result<Answer> {
        let Some(output) = output else { return Ok(Answer::None) };
        let mut output = BufReader::new(output);
        loop {
            let mut line = String::new();
            if output.by_ref().take(MESSAGE_BYTES_MAX).read_line(&mut line)? == 0 {
                return Ok(Answer::None);
            }
            match serde_json::from_str(&line)? {
                Message::Begin { phase, total } => {
                    self.phase = Some(phase);
                    self.progress.begin(phase, total);
                }
                Message::Advance { done } => self.progress.advance(done),
                Message::Part { index, what: Some(what) } if self.parts.len() < PARTS_MAX => drop(self.parts.insert(index, what)),
                Message::Part { index, .. } => drop(self.parts.remove(&index)),
                Message::Warn { text } if self.before.warnings.contains(&text) => {}
                Message::Warn { text } => {
                    self.progress.warn(&text);
                    self.before.warnings.insert(text);
                }
                Message::Finished { index, bytes } => match exactly(&mut output, bytes)? {
                    Some(whole) => drop(self.before.finished.insert(index, whole)),
                    None => return Ok(Answer::None),
                },
                Message::GivenUp { function, used } => return Ok(Answer::GivenUp { function, used }),
                Message::Failed { text } => return Ok(Answer::Failed(text)),
                Message::Output { bytes } => return Ok(exactly(&mut output, bytes)?.map_or(Answer::None, Answer::Output)),
            }
        }
    }
}

/// So many bytes; none where there are fewer, or more than there may be.
fn exactly(from: &mut impl Read, bytes: u64) -> io::Result<Option<Vec<u8>>> {
    let mut whole = Vec::new();
    from.take(bytes.min(OUTPUT_BYTES_MAX)).read_to_end(&mut whole)?;
    Ok((whole.len() as u64 == bytes).then_some(whole))
}

/// Waits for the child's end, and kills it at the deadline; whether it did.
fn kill_when_over(child: &Child, deadline: Instant) -> io::Result<bool> {
    // The child is not waited for before this returns: its number stays its own.
    let pidfd = rustix::process::pidfd_open(Pid::from_child(child), PidfdFlags::empty())?;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).ok();
        match rustix::event::poll(&mut [PollFd::from_borrowed_fd(pidfd.as_fd(), PollFlags::IN)], timeout.as_ref()) {
            Ok(0) => {
                rustix::process::pidfd_send_signal(&pidfd, Signal::KILL)?;
                return Ok(true);
            }
            Ok(_) => return Ok(false),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Reads to the end and keeps the last part.
fn keep_end(mut from: impl Read, kept: &Mutex<Vec<u8>>) {
    let mut chunk = [0; 4096];
    while let Ok(count @ 1..) = from.read(&mut chunk) {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(&chunk[..count]);
        let surplus = kept.len().saturating_sub(COMPLAINT_BYTES_MAX);
        kept.drain(..surplus);
    }
}
