//! `sledge run`: one invocation, on this thread.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use sledge_sandbox::WorkerThread;
use tracing::Level;

use super::network::NetworkArgs;
use super::{FAILURE, dirs, fail, say, usage};
use crate::compile::OPT_LEVEL_MAX;
use crate::config::{self, Config, DirConfig, FunctionConfig};
use crate::host::{Context, Streams, Waiter};
use crate::invoke::alone;
use crate::invoke::driver::Driver;
use crate::invoke::function::{Function, Home};
use crate::notice::To;
use crate::outcome::Failure;
use crate::secret::{Secret, Variable};
use crate::{load, logging, symbols};

/// Exit status after a trap, as after SIGABRT.
const TRAPPED: u8 = 134;
/// Exit status after the time ran out, as of timeout(1).
const TIMED_OUT: u8 = 124;
/// How often the time is looked at.
const QUANTUM: Duration = Duration::from_millis(5);
/// A stack as large as that of a program's main thread.
const STACK_BYTES: u64 = 8 << 20;
/// All that a memory with 32-bit addresses can have.
const MEMORY_BYTES_MAX: u64 = 4 << 30;

/// Run a function once.
#[derive(Debug, Args)]
pub(super) struct RunArgs {
    /// The function, .so or .wasm
    file: PathBuf,
    /// Set an environment variable, or pass on the variable of that name; the function inherits no others
    #[arg(long, value_name = "NAME[=VALUE]")]
    env: Vec<String>,
    /// Grant the function a folder of this machine under the name GUEST: to read, with ::rw also to write, with ::scratch to write private copies that are dropped at the end
    #[arg(long, value_name = "HOST[::GUEST[::rw|scratch]]", value_parser = dirs::parse)]
    dir: Vec<DirConfig>,
    #[command(flatten)]
    network: NetworkArgs,
    /// How much to optimise a .wasm: 0, which compiles fastest, to 3
    #[arg(short = 'O', value_name = "LEVEL", default_value_t = OPT_LEVEL_MAX, value_parser = clap::value_parser!(u8).range(0..=i64::from(OPT_LEVEL_MAX)))]
    opt_level: u8,
    /// Compile a component even if it imports functions that Sledge does not offer; a call of one traps
    #[arg(long)]
    allow_unknown_imports: bool,
    /// Kill the function after this time: seconds, or with a unit as in 500ms, 2s
    #[arg(long, value_name = "TIME", value_parser = time)]
    timeout: Option<Duration>,
    /// Load code compiled with `--bounds none`, which can read and write all memory; for measurements only
    #[arg(long)]
    allow_unchecked: bool,
    /// Write the addresses of the functions' code for perf (/tmp/perf-PID.map) and gdb (the log)
    #[arg(long)]
    symbols: bool,
    /// Arguments for the function
    #[arg(last = true)]
    args: Vec<String>,
}

fn time(text: &str) -> Result<Duration, String> {
    let (number, unit) = match text.strip_suffix("ms") {
        Some(number) => (number, 1e-3),
        None => (text.strip_suffix('s').unwrap_or(text), 1.0),
    };
    let seconds = number.parse::<f64>().ok().map(|number| number * unit).filter(|seconds| *seconds > 0.0);
    let duration = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    duration.ok_or_else(|| "give seconds, or 500ms, 2s".to_owned())
}

pub(super) fn run(args: RunArgs) -> ExitCode {
    logging::direct(if args.symbols { Level::INFO } else { Level::WARN });
    if args.symbols
        && let Err(error) = symbols::tell()
    {
        return fail(error);
    }
    if args.dir.len() > config::DIRS_MAX {
        return usage(format_args!("--dir: {} folders; a function has at most {}", args.dir.len(), config::DIRS_MAX));
    }
    if let Some(excess) = args.network.excess() {
        return usage(excess);
    }
    let mut config = FunctionConfig::new(config::stem_name(&args.file), &args.file);
    config.args = args.args;
    config.dirs = args.dir;
    args.network.grant(&mut config);
    config.opt_level = args.opt_level;
    config.allow_unknown_imports = args.allow_unknown_imports;
    config.source = config::Source::CommandLine;
    config.allow_unchecked = args.allow_unchecked;
    config.stack_bytes = STACK_BYTES;
    config.memory_bytes_max = MEMORY_BYTES_MAX;
    // Run once, it shares nothing with anybody.
    config.snapshot = config::Snapshot::Off;
    for variable in &args.env {
        let (name, value) = match variable.split_once('=') {
            Some((name, value)) => (name, Variable::Text(value.to_owned())),
            None => (variable.as_str(), Variable::Secret(Secret::Env(variable.clone()))),
        };
        if name.is_empty() {
            return usage(format_args!("--env {variable}: give NAME=VALUE, or NAME to pass on a variable"));
        }
        config.env.insert(name.to_owned(), value);
    }
    let compiler = load::compiler(&Config::default()).telling(To::Caller);
    let function = match load::function(&config, &compiler) {
        Ok(loaded) => Function::new(loaded, Home::alone()),
        Err(error) => return fail(error),
    };
    let deadline = args.timeout.map(|timeout| Instant::now() + timeout);
    let file = |stream: &dyn Stream| stream.duplicate().map(File::from);
    let streams = || Ok([file(&io::stdin())?, file(&io::stdout())?, file(&io::stderr())?]);
    match streams().and_then(|streams| invoke(&function, streams, deadline)) {
        Ok((Ok(()), _)) => ExitCode::SUCCESS,
        Ok((Err(failure), backtrace)) => failed(&function, &failure, &backtrace),
        Err(error) => fail(format_args!("{}: {error}", args.file.display())),
    }
}

/// Runs a function to its end on these standard streams; how it ended, and the backtrace if that says something.
pub(super) fn invoke(
    function: &Function,
    [input, output, errors]: [File; 3],
    deadline: Option<Instant>,
) -> io::Result<(Result<(), Failure>, String)> {
    let streams = Streams::of_program(input, deadline, output, errors);
    let context = Context::new(Arc::clone(&function.process), streams);

    let waiter = Waiter::started()?;
    let thread = WorkerThread::enter(QUANTUM)?;
    let sandbox = function.template.instantiate().map_err(io::Error::other)?;
    let mut driver = Driver::new(Box::new(sandbox), context);
    if deadline.is_some() {
        thread.arm();
    }
    let result = alone::run(&mut driver, &function.program, deadline, waiter);
    thread.disarm();
    let backtrace = driver.backtrace().to_string();
    drop(driver);
    Ok((result, backtrace))
}

fn failed(function: &Function, failure: &Failure, backtrace: &str) -> ExitCode {
    let name = function.name();
    match failure {
        // Systems keep eight bits of a status; one that would become zero stays a failure.
        Failure::Exit(status) => match (status & 0xff) as u8 {
            0 => FAILURE.into(),
            status => status.into(),
        },
        Failure::Trap(_) | Failure::MemoryStack(_) | Failure::Component { .. } | Failure::MemoryLimit => {
            say(format_args!("sledge: {name}: {failure}\n{}", backtrace.trim_end()));
            TRAPPED.into()
        }
        Failure::Deadline => {
            say(format_args!("sledge: {name}: killed after the time of --timeout\n{}", backtrace.trim_end()));
            TIMED_OUT.into()
        }
        other => fail(format_args!("{name}: {other}")),
    }
}

/// A standard stream that can be written to or read from without the buffer that Rust puts before it.
trait Stream {
    fn duplicate(&self) -> io::Result<std::os::fd::OwnedFd>;
}

impl<T: AsFd> Stream for T {
    fn duplicate(&self) -> io::Result<std::os::fd::OwnedFd> {
        self.as_fd().try_clone_to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_seconds_unless_they_say_otherwise() {
        assert_eq!(time("2"), Ok(Duration::from_secs(2)));
        assert_eq!(time("0.25s"), Ok(Duration::from_millis(250)));
        assert_eq!(time("500ms"), Ok(Duration::from_millis(500)));
        for wrong in ["", "s", "-1", "0", "1h", "nan", "inf"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }
}
