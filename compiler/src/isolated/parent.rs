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
use awsm_abi::text;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, PidfdFlags, Resource, Signal};

use super::kept::{Batch, Kept};
use super::verdict::{self, End};
use super::{Limits, Message, Request};
use crate::component::Seen;
use crate::error::CompileError;
use crate::module::FuncId;
use crate::options::CompileOptions;
use crate::parts::PartCache;
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
    compile_cached(awsm, program, options, limits, None, progress)
}

/// The same, with parts of large modules from a cache where they are there, and kept there where they are not. What comes of it is the same.
///
/// # Errors
/// Those of [`compile`]. Failures of the cache are warnings.
pub fn compile_cached(
    awsm: &Path,
    program: &Program<'_>,
    options: &CompileOptions,
    limits: &Limits,
    cache: Option<&PartCache>,
    progress: &dyn Progress,
) -> Result<Vec<u8>, CompileError> {
    let deadline = Instant::now() + limits.time_max * COMPILE_WALL_MULTIPLE;
    // The child says what is wrong with a program.
    let kept = cache.and_then(|cache| Kept::new(awsm, cache, program, options, limits, progress).ok().flatten());
    let before = Before { slow: kept.as_ref().map(Kept::slow).unwrap_or_default(), ..Before::default() };
    let mut compilation = Compilation { awsm, program, options, limits, deadline, outline: false, kept, before };
    let output = compilation.run(progress);
    if let Some(kept) = &mut compilation.kept {
        kept.shrink();
        kept.warn(progress);
    }
    output
}

/// What there is to say of a component without generating code, from a child process within limits.
///
/// # Errors
/// When that process ended without an answer. A component that cannot be compiled is no error.
pub fn outline(awsm: &Path, component: &[u8], limits: &Limits) -> Result<Seen, CompileError> {
    let deadline = Instant::now() + limits.time_max * COMPILE_WALL_MULTIPLE;
    let (program, options, before) = (Program::component(component), CompileOptions::default(), Before::default());
    let mut compilation =
        Compilation { awsm, program: &program, options: &options, limits, deadline, outline: true, kept: None, before };
    let seen = compilation.run(&())?;
    let unreadable = CompileError::io("reading what the process says of the component");
    serde_json::from_slice(&seen).map_err(|error| unreadable(error.into()))
}

/// A compilation, over several processes if functions are given up.
struct Compilation<'a> {
    awsm: &'a Path,
    program: &'a Program<'a>,
    options: &'a CompileOptions,
    limits: &'a Limits,
    deadline: Instant,
    /// Whether no code is wanted, but what there is to say of a component.
    outline: bool,
    kept: Option<Kept<'a>>,
    before: Before,
}

/// What processes left that gave up a function each.
#[derive(Default)]
struct Before {
    slow: Vec<FuncId>,
    finished: BTreeMap<usize, Vec<u8>>,
    /// The processor time that they say they took.
    used: Duration,
    /// What was warned of. The next process says it again.
    warnings: BTreeSet<String>,
}

impl Compilation<'_> {
    /// Starts processes until one gives the output.
    fn run(&mut self, progress: &dyn Progress) -> Result<Vec<u8>, CompileError> {
        if let Some(kept) = &mut self.kept {
            kept.load(&mut self.before.finished);
            kept.report(&self.before.finished, progress);
            if kept.next(&self.before.finished).is_some() {
                kept.shrink();
            }
        }
        loop {
            let batch = self.kept.as_ref().and_then(|kept| kept.next(&self.before.finished));
            if let Some(output) = self.attempt(batch.as_ref(), progress)? {
                return Ok(output);
            }
        }
    }

    /// Takes over that a process gave a function up, and finds out what the parts are then.
    fn give_up(&mut self, batch: Option<&Batch>, function: FuncId) {
        self.before.slow.push(function);
        let Some(kept) = &mut self.kept else { return };
        if kept.find_keys(&self.before.slow).is_err() {
            // The child says why.
            self.kept = None;
            return;
        }
        // A process that comes after others has less time, and by what those said of themselves. What it gives up depends on their code, which may want it to.
        if let Some(batch) = batch.filter(|_| self.before.used.is_zero()) {
            kept.give_up(batch, function);
        }
        kept.load(&mut self.before.finished);
    }

    /// What a process gives: the output; none where it was for a batch, or gave a function up.
    fn attempt(&mut self, batch: Option<&Batch>, progress: &dyn Progress) -> Result<Option<Vec<u8>>, CompileError> {
        let mut command = Command::new(self.awsm);
        command.arg("codegen").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(CompileError::io("starting the process that generates code"))?;
        let (input, output, errors) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let complaint = Mutex::new(Vec::new());
        let (answer, timed_out, phase, parts) = thread::scope(|scope| {
            let clock = scope.spawn(|| kill_when_over(&child, self.deadline));
            scope.spawn(|| errors.into_iter().for_each(|errors| keep_end(errors, &complaint)));
            let answer = self.ask(input, batch);
            let (before, kept) = (&mut self.before, self.kept.as_mut());
            let mut listener = Listener { progress, before, kept, batch, phase: None, parts: BTreeMap::new() };
            let answer = answer.and_then(|()| listener.listen(output));
            (answer, clock.join().unwrap_or(Ok(false)), listener.phase, listener.parts)
        });
        let status = child.wait().map_err(CompileError::io("waiting for the process that generates code"))?;
        match answer {
            Ok(Answer::Output(bytes)) => Ok(Some(bytes)),
            // What generates code may be a module's by now.
            Ok(Answer::Failed(words)) => Err(CompileError::Child { message: text::lines(&words) }),
            Ok(Answer::Parts { used }) if batch.is_some_and(|batch| batch.is_within(&self.before.finished)) => {
                self.before.used = self.before.used.saturating_add(used);
                Ok(None)
            }
            Ok(Answer::GivenUp { function, used }) if !self.before.slow.contains(&function) => {
                self.give_up(batch, function);
                self.before.used = self.before.used.saturating_add(used);
                Ok(None)
            }
            Ok(Answer::GivenUp { .. } | Answer::Parts { .. } | Answer::None) | Err(_) => {
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
    fn ask(&self, input: Option<ChildStdin>, batch: Option<&Batch>) -> io::Result<()> {
        let Some(mut input) = input else { return Ok(()) };
        let Before { slow, finished, used, .. } = &self.before;
        // A batch needs nothing of other parts.
        let finished: Vec<_> = finished.iter().filter(|_| batch.is_none()).collect();
        let limits = Limits { time_max: self.limits.time_max.saturating_sub(*used), ..*self.limits };
        let lengths = finished.iter().map(|&(&index, bytes)| (index, bytes.len() as u64)).collect();
        let request = Request {
            options: self.options.clone(),
            limits,
            modules: self.program.modules().iter().map(|wasm| wasm.len() as u64).collect(),
            component: self.program.is_component(),
            outline: self.outline,
            plan: self.program.plan().to_vec(),
            slow: slow.clone(),
            finished: lengths,
            only: batch.map(|batch| batch.parts.iter().copied().collect()),
        };
        serde_json::to_writer(&mut input, &request)?;
        input.write_all(b"\n")?;
        finished.iter().try_for_each(|(_, bytes)| input.write_all(bytes))?;
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
    /// The parts of a batch.
    Parts {
        used: Duration,
    },
    /// A function takes too long.
    GivenUp {
        function: FuncId,
        used: Duration,
    },
    /// It ended without one.
    None,
}

struct Listener<'a, 'k> {
    progress: &'a dyn Progress,
    before: &'a mut Before,
    kept: Option<&'a mut Kept<'k>>,
    /// What the child is for.
    batch: Option<&'a Batch>,
    /// What the child was doing last.
    phase: Option<Phase>,
    /// The parts of the module that it was working on.
    parts: BTreeMap<usize, String>,
}

impl Listener<'_, '_> {
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
                Message::Part { index, what: Some(what) } if self.parts.len() < PARTS_MAX => {
                    drop(self.parts.insert(index, text::line(&what)));
                }
                Message::Part { index, .. } => drop(self.parts.remove(&index)),
                Message::Warn { text } if self.before.warnings.contains(&text) => {}
                Message::Warn { text } => {
                    self.progress.warn(&text::line(&text));
                    self.before.warnings.insert(text);
                }
                Message::Finished { index, bytes } => match exactly(&mut output, bytes)? {
                    Some(whole) => self.finished(index, whole),
                    None => return Ok(Answer::None),
                },
                Message::Parts { used } => return Ok(Answer::Parts { used }),
                Message::GivenUp { function, used } => return Ok(Answer::GivenUp { function, used }),
                Message::Failed { text } => return Ok(Answer::Failed(text)),
                // Of all parts, which a process for some of them has not.
                Message::Output { .. } if self.batch.is_some() => return Ok(Answer::None),
                Message::Output { bytes } => return Ok(exactly(&mut output, bytes)?.map_or(Answer::None, Answer::Output)),
            }
        }
    }
}

impl Listener<'_, '_> {
    /// Takes what a part gives. For a part that is kept, only its own batch's process is listened to.
    fn finished(&mut self, index: usize, object: Vec<u8>) {
        let is_kept = self.kept.as_ref().is_some_and(|kept| kept.has(index));
        match (self.batch, &mut self.kept) {
            (Some(batch), Some(kept)) if batch.parts.contains(&index) => kept.put(index, &object),
            (None, _) if !is_kept => {}
            _ => return,
        }
        self.before.finished.insert(index, object);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::module::{FuncIdx, ModuleIdx};
    use crate::options::OptLevel;
    use crate::program::Instance;

    /// A module with many parts.
    fn large() -> Vec<u8> {
        let filler = "(drop (i32.const 1))".repeat(500);
        wat::parse_str(format!("(module {})", format!("(func {filler})").repeat(300))).unwrap()
    }

    #[test]
    fn a_process_can_keep_parts_of_its_batch_alone() {
        let (wasm, folder) = (large(), tempfile::tempdir().unwrap());
        let program = Program::new([&*wasm, &*wasm], vec![Instance::of(0), Instance::of(1)]);
        let options = CompileOptions { opt_level: OptLevel::O0, ..CompileOptions::default() };
        let cache = PartCache::new(folder.path().join("cache"), 1 << 20);
        let this = Path::new("/proc/self/exe");
        let open = || Kept::new(this, &cache, &program, &options, &Limits::default(), &()).unwrap().unwrap();
        let loaded = || {
            let mut finished = BTreeMap::new();
            open().load(&mut finished);
            finished
        };

        let mut kept = open();
        let batch = kept.next(&BTreeMap::new()).unwrap();
        let (own, foreign) = (*batch.parts.first().unwrap(), batch.parts.last().unwrap() + 1);
        assert!(own == 0 && kept.has(foreign) && batch.parts.len() == 8);
        let mut before = Before::default();
        let mut give = |batch: Option<&Batch>, index: usize| {
            let (before, kept) = (&mut before, Some(&mut kept));
            let mut listener = Listener { progress: &(), before, kept, batch, phase: None, parts: BTreeMap::new() };
            listener.finished(index, b"object".to_vec());
        };
        // The last process, and that of another batch.
        give(None, own);
        give(Some(&batch), foreign);
        give(Some(&batch), usize::MAX);
        assert!(loaded().is_empty());
        give(Some(&batch), own);
        assert_eq!(loaded().into_keys().collect::<Vec<_>>(), [own]);
        assert_eq!(before.finished.into_keys().collect::<Vec<_>>(), [own]);
    }

    #[test]
    fn what_took_too_long_is_known_to_the_next_compilation_by_its_own_process() {
        let (wasm, folder) = (large(), tempfile::tempdir().unwrap());
        let program = Program::new([&*wasm, &*wasm], vec![Instance::of(0), Instance::of(1)]);
        let options = CompileOptions { opt_level: OptLevel::O0, ..CompileOptions::default() };
        let cache = PartCache::new(folder.path().join("cache"), 1 << 20);
        let this = Path::new("/proc/self/exe");
        let limits = Limits::default();
        let open = |limits: &Limits| Kept::new(this, &cache, &program, &options, limits, &()).unwrap().unwrap();
        let known = || open(&limits).slow();
        let id = |module, function| FuncId { module: ModuleIdx(module), function: FuncIdx(function) };
        let give_up = |used: Duration, functions: &[FuncId]| {
            let before = Before { used, ..Before::default() };
            let (awsm, program, options, limits, deadline) = (this, &program, &options, &limits, Instant::now());
            let mut compilation =
                Compilation { awsm, program, options, limits, deadline, outline: false, kept: Some(open(limits)), before };
            let batch = compilation.kept.as_ref().unwrap().next(&BTreeMap::new());
            functions.iter().for_each(|&function| compilation.give_up(batch.as_ref(), function));
        };

        give_up(Duration::from_secs(1), &[id(0, 3)]);
        assert_eq!(known(), [], "others had a part of the time");
        give_up(Duration::ZERO, &[id(1, 3)]);
        give_up(Duration::ZERO, &[id(0, 300)]);
        assert_eq!(known(), [], "not of this batch, or of none");
        give_up(Duration::ZERO, &[id(0, 3), id(0, 1)]);
        assert_eq!(known(), [id(0, 3), id(0, 1)]);
        assert_eq!(open(&Limits { time_max: Duration::from_secs(1), ..limits }).slow(), [], "another limit");
    }
}
