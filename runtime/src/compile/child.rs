//! One run of the compiler: a child of its own process group that takes limits upon itself before it becomes `awsm`.
//!
//! `sledge` forbids unsafe code, and with it code between fork and exec. So the child is this program once more, under a command that no user
//! else uses ([`LIMITED_COMMAND`]): it limits itself and then executes the compiler, whose own children inherit the limits.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, PipeReader, Read as _, Seek as _, SeekFrom};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use awsm_abi::limits::{ARTIFACT_BYTES_MAX, COMPILE_WALL_MULTIPLE, TIME_EXIT_STATUS};
use awsm_abi::text;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Resource, Rlimit, Signal};
use serde::{Deserialize, Serialize};

use super::{Cancel, CompileError, Priority, Purpose, Target};

/// The command of this program that limits itself and becomes another program.
pub const LIMITED_COMMAND: &str = "limited";

/// The module, in the folder of a compilation.
pub(super) const INPUT: &str = "function.wasm";
/// The artifact that it becomes.
pub(super) const OUTPUT: &str = "function.so";
/// Where the compiler says how far it is, in the folder of a compilation.
pub(super) const PROGRESS: &str = "progress";
/// More than a state has.
const PROGRESS_BYTES_MAX: u64 = 256;
/// What is shown of a failed compilation.
const MESSAGE_BYTES_MAX: u64 = 8 << 10;
/// What the compiler takes as the size of its cache, at most.
const MEGABYTES_MAX: u64 = 1 << 24;
/// Niceness of compilers that something waits for: requests go first.
const NICENESS: i32 = 10;
/// Niceness of those that nothing waits for.
const NICENESS_BACKGROUND: i32 = 19;
/// What compilers inherit of the environment.
pub(super) const INHERITED: [&str; 3] = ["PATH", "LD_LIBRARY_PATH", "RUST_BACKTRACE"];
/// Files that a compiler may have open.
const FILES_MAX: u64 = 256;

/// What one compilation may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Processor time, in milliseconds. By the clock it may take [`COMPILE_WALL_MULTIPLE`] times as long.
    pub ms_max: u64,
    /// Address space of each of its processes, in bytes.
    pub memory_bytes_max: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { ms_max: 600_000, memory_bytes_max: 8 << 30 }
    }
}

/// Where the compiler keeps parts of modules.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Parts {
    pub(super) folder: PathBuf,
    pub(super) bytes_max: u64,
}

impl Parts {
    /// What `awsm compile` is told of it, or of there being none.
    fn arguments(parts: Option<&Parts>) -> Vec<OsString> {
        match parts {
            None => vec!["--no-cache".into()],
            Some(Parts { folder, bytes_max }) => {
                let megabytes = (bytes_max >> 20).clamp(1, MEGABYTES_MAX);
                vec!["--cache".into(), folder.into(), "--cache-max-mb".into(), megabytes.to_string().into()]
            }
        }
    }
}

impl Priority {
    const fn niceness(self) -> i32 {
        match self {
            Priority::Awaited => NICENESS,
            Priority::Background => NICENESS_BACKGROUND,
        }
    }

    /// What `awsm compile` is told of it: one thread leaves the other processors to requests.
    const fn arguments(self) -> &'static [&'static str] {
        match self {
            Priority::Awaited => &[],
            Priority::Background => &["--jobs", "1"],
        }
    }
}

/// A compilation: how, for what, how urgent, within which limits, and with what from earlier ones.
#[derive(Clone, Debug)]
pub(super) struct Work {
    pub(super) target: Target,
    pub(super) purpose: Purpose,
    pub(super) priority: Priority,
    pub(super) limits: Limits,
    pub(super) parts: Option<Parts>,
}

/// Compiles what is in a folder, unless that is cancelled.
pub(super) fn run(program: &Path, folder: &Path, work: &Work, cancel: &Cancel) -> Result<(), CompileError> {
    let (cancelled, end) = io::pipe().map_err(CompileError::Folder)?;
    if !cancel.arm(move || drop(end)) {
        return Err(CompileError::Cancelled);
    }
    let result = run_until(program, folder, work, &cancelled);
    cancel.disarm();
    result
}

/// Compiles what is in a folder, until the other end of `cancelled` is closed.
pub(super) fn run_until(program: &Path, folder: &Path, work: &Work, cancelled: &PipeReader) -> Result<(), CompileError> {
    let Work { target, purpose, priority, limits, parts } = work;
    let absolute = |path| std::path::absolute(path).map_err(CompileError::Folder);
    let (program, folder) = (&absolute(program)?, &absolute(folder)?);
    let messages = folder.join("messages");
    let said = File::create(&messages).map_err(CompileError::Folder)?;
    // Also when its file has been replaced meanwhile.
    let mut child = Command::new("/proc/self/exe")
        .arg(LIMITED_COMMAND)
        .arg(limits.ms_max.to_string())
        .arg(limits.memory_bytes_max.to_string())
        .arg(priority.niceness().to_string())
        .arg(program)
        .args(["compile", "--quiet"])
        .args(target.arguments(*purpose))
        .args(priority.arguments())
        .args(["--time-max-s", &limits.ms_max.div_ceil(1_000).to_string()])
        .args(Parts::arguments(parts.as_ref()))
        .args(["--progress-file", PROGRESS, INPUT, "-o", OUTPUT])
        // What it says then names no temporary folder.
        .current_dir(folder)
        // Secrets may be in the environment, and modules are strangers'.
        .env_clear()
        .envs(INHERITED.iter().filter_map(|name| Some((name, std::env::var_os(name)?))))
        .env("TMPDIR", folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(said)
        .process_group(0)
        .spawn()
        .map_err(|source| CompileError::Start { compiler: program.to_owned(), source })?;
    let time = Duration::from_millis(limits.ms_max.saturating_mul(COMPILE_WALL_MULTIPLE.into()));
    let ended = wait(&child, cancelled, time);
    // Whatever it has started ends with it. Its own number is not another's before it was waited for.
    let _ = rustix::process::kill_process_group(Pid::from_child(&child), Signal::KILL);
    let status = child.wait().map_err(CompileError::Folder)?;
    match ended.map_err(CompileError::Folder)? {
        Waited::Ended => {}
        Waited::Late => return Err(CompileError::Time { ms_max: limits.ms_max }),
        Waited::Cancelled => return Err(CompileError::Cancelled),
    }
    if status.success() {
        return Ok(());
    }
    Err(failed(status, &messages, limits))
}

/// How far a compilation is, to be put behind what it is called: phase, and functions where it counts them.
pub(super) fn progress(file: &Path) -> String {
    // There is none yet, or it is just being written.
    let text = super::read_at_most(file, PROGRESS_BYTES_MAX).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let mut words = text.split_ascii_whitespace();
    match (words.next(), words.next(), words.next()) {
        (Some(phase), _, Some("0")) => format!(": {}", text::name(phase)),
        (Some(phase), Some(done), Some(total)) => text::line(&format!(": {phase}, {done} of {total} functions")),
        _ => String::new(),
    }
}

fn failed(status: ExitStatus, messages: &Path, limits: &Limits) -> CompileError {
    let said = end_of(messages).unwrap_or_default();
    // The client knows the module by another name. What generates code may be the module's by now, which has a line here and no terminal.
    let message = text::lines(&String::from_utf8_lossy(&said).trim_end().replace(&format!("awsm: {INPUT}: "), ""));
    match status.signal() {
        Some(signal) if signal == Signal::XCPU.as_raw() => CompileError::Time { ms_max: limits.ms_max },
        Some(signal) => CompileError::Killed { signal, memory_bytes_max: limits.memory_bytes_max, message },
        None if status.code() == Some(TIME_EXIT_STATUS.into()) => CompileError::Time { ms_max: limits.ms_max },
        None => CompileError::Failed { status, message },
    }
}

/// What a file ends with.
fn end_of(messages: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(messages)?;
    let start = file.metadata()?.len().saturating_sub(MESSAGE_BYTES_MAX);
    file.seek(SeekFrom::Start(start))?;
    let mut end = Vec::new();
    file.take(MESSAGE_BYTES_MAX).read_to_end(&mut end)?;
    Ok(end)
}

/// What a wait for a compiler came to.
enum Waited {
    /// It has ended.
    Ended,
    /// Its time is over.
    Late,
    /// It is not wanted any more.
    Cancelled,
}

/// Waits for its end, for so long, and until the other end of `cancelled` is closed.
fn wait(child: &Child, cancelled: &PipeReader, time: Duration) -> io::Result<Waited> {
    let end = rustix::process::pidfd_open(Pid::from_child(child), PidfdFlags::empty())?;
    let deadline = Instant::now() + time;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
        let mut watched = [PollFd::new(&end, PollFlags::IN), PollFd::new(cancelled, PollFlags::IN)];
        match poll(&mut watched, Some(&timeout)) {
            Ok(0) => return Ok(Waited::Late),
            // What has ended is used, also where it is not wanted any more.
            Ok(_) if watched[0].revents().is_empty() => return Ok(Waited::Cancelled),
            Ok(_) => return Ok(Waited::Ended),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Limits this process and becomes another program; returns only when that fails. `args`: milliseconds, bytes, niceness, the program, its arguments.
#[must_use]
pub fn exec_limited(mut args: impl Iterator<Item = OsString>) -> io::Error {
    let number = |arg: Option<OsString>| arg.and_then(|arg| arg.to_str()?.parse::<u64>().ok());
    let limits = number(args.next()).zip(number(args.next()));
    let niceness = number(args.next()).and_then(|niceness| i32::try_from(niceness).ok());
    let (Some((ms_max, memory_bytes_max)), Some(niceness), Some(program)) = (limits, niceness, args.next()) else {
        return io::Error::from(io::ErrorKind::InvalidInput);
    };
    // Limits that this process has already cannot be raised.
    let within =
        |resource, max: u64| Some(rustix::process::getrlimit(resource).maximum.map_or(max, |inherited| inherited.min(max)));
    let set = |resource, current, maximum| {
        let limit = Rlimit { current: within(resource, current), maximum: within(resource, maximum) };
        rustix::process::setrlimit(resource, limit)
    };
    let limit = |resource, max| set(resource, max, max);
    // A signal that says what it is for comes at the first, the end at the second.
    let seconds = ms_max.div_ceil(1_000);
    let limited = set(Resource::Cpu, seconds, seconds.saturating_add(1))
        .and_then(|()| limit(Resource::As, memory_bytes_max))
        .and_then(|()| limit(Resource::Fsize, ARTIFACT_BYTES_MAX))
        .and_then(|()| limit(Resource::Nofile, FILES_MAX))
        .and_then(|()| limit(Resource::Core, 0))
        .and_then(|()| rustix::process::set_parent_process_death_signal(Some(Signal::KILL)));
    if let Err(error) = limited {
        return error.into();
    }
    // Only a courtesy.
    let _ = rustix::process::nice(niceness);
    Command::new(program).args(args).exec()
}
