//! `sledge doctor`: what keeps a server from working here, found before one is started or while one runs.
//!
//! Each check looks at the thing itself where that is possible: a function is compiled, answers, and is interrupted while it computes.

use std::fmt::Display;
use std::fs::{self, OpenOptions};
use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use http_body_util::Full;
use hyper::Request;
use serde_json::Value;

use super::operate::{Door, ask, plain};
use super::{FAILURE, print_line, run};
use crate::admin::client::ClientError;
use crate::compile::{self, cache_folder_default};
use crate::config::{self, Config, FunctionConfig, Snapshot};
use crate::invoke::function::{Function, Home};
use crate::notice::To;
use crate::outcome::Failure;
use crate::server::files::{connections_of, raise_files_max};
use crate::server::plan::Plan;
use crate::{kernel, load};

/// Connections with which a server is still of use.
const CONNECTIONS_MIN: usize = 1_000;
/// Memory with which a server is still of use.
const MEMORY_BYTES_MIN: u64 = 64 << 20;
/// A function that returns at once: `(module (func (export "_start")))`.
const RETURNS: &[u8] = b"\0asm\x01\0\0\0\x01\x04\x01\x60\0\0\x03\x02\x01\0\x07\x0a\x01\x06_start\0\0\x0a\x04\x01\x02\0\x0b";
/// One that never does: `(module (func (export "_start") (loop (br 0))))`.
const LOOPS: &[u8] =
    b"\0asm\x01\0\0\0\x01\x04\x01\x60\0\0\x03\x02\x01\0\x07\x0a\x01\x06_start\0\0\x0a\x09\x01\x07\0\x03\x40\x0c\0\x0b\x0b";
/// How long that one may run, and how late it may be stopped.
const LOOP_TIME: Duration = Duration::from_millis(20);
const LOOP_TIME_MAX: Duration = Duration::from_secs(2);

/// Look for what keeps a server from working on this machine.
#[derive(Debug, Args)]
pub(super) struct DoctorArgs {
    /// Configuration file of the server [default: a server without one]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    door: Door,
}

/// What a check came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    Good,
    /// A server works, but not with everything.
    Weak,
    /// It does not.
    Bad,
}

/// What was found, and what is to be done.
struct Finding {
    subject: &'static str,
    verdict: Verdict,
    text: String,
}

impl Finding {
    fn good(subject: &'static str, text: impl Display) -> Finding {
        Finding { subject, verdict: Verdict::Good, text: text.to_string() }
    }

    fn weak(subject: &'static str, text: impl Display) -> Finding {
        Finding { verdict: Verdict::Weak, ..Finding::good(subject, text) }
    }

    fn bad(subject: &'static str, text: impl Display) -> Finding {
        Finding { verdict: Verdict::Bad, ..Finding::good(subject, text) }
    }

    fn line(&self, is_coloured: bool) -> String {
        let (word, colour) = match self.verdict {
            Verdict::Good => ("good", "32"),
            Verdict::Weak => ("weak", "33"),
            Verdict::Bad => ("bad", "31"),
        };
        let word = if is_coloured { format!("\x1b[{colour}m{word:4}\x1b[0m") } else { format!("{word:4}") };
        format!("{word}  {:12} {}", self.subject, self.text)
    }
}

pub(super) fn doctor(args: &DoctorArgs) -> ExitCode {
    let (config, read) = match &args.config {
        None => (Config::default(), None),
        Some(file) => match config::read(file).and_then(|config| config::check(&config, Some(file)).map(|()| config)) {
            Ok(config) => (config, Some(Finding::good("config", format_args!("{}: the keys are right", file.display())))),
            Err(error) => (Config::default(), Some(Finding::bad("config", error))),
        },
    };
    let is_coloured = io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let checks: [&dyn Fn() -> Vec<Finding>; 7] = [
        &|| machine(&config),
        &|| vec![open_files(&config)],
        &|| vec![confinement(&config)],
        &|| vec![cache(&config)],
        &|| trial(&config),
        &|| vec![state(&config)],
        &|| vec![running(&args.door)],
    ];
    let mut worst = Verdict::Good;
    // Each as soon as it is known.
    for finding in read.into_iter().chain(checks.iter().flat_map(|check| check())) {
        worst = worst.max(finding.verdict);
        let printed = print_line(&finding.line(is_coloured));
        if printed != ExitCode::SUCCESS {
            return printed;
        }
    }
    if worst == Verdict::Bad { FAILURE.into() } else { ExitCode::SUCCESS }
}

/// Cores, memory, and what the kernel allows of it.
fn machine(config: &Config) -> Vec<Finding> {
    let plan = match Plan::new(config) {
        Ok(plan) => plan,
        Err(error) => return vec![Finding::bad("cores", error)],
    };
    let need = plan.need(config);
    let cores = format!("{} workers on {}", need.workers, std::env::consts::ARCH);
    let megabytes = need.memory_bytes >> 20;
    let memory = if need.memory_bytes < MEMORY_BYTES_MIN {
        Finding::weak(
            "memory",
            format_args!(
                "{megabytes} MiB for sandboxes; raise `memory_total_bytes_max`, or the limit of this process's control group"
            ),
        )
    } else {
        Finding::good("memory", format_args!("{megabytes} MiB for sandboxes"))
    };
    let proc = Path::new("/proc");
    let kernel = match (kernel::check(proc, &need), kernel::missing_mappings(proc, &need)) {
        (Err(error), _) => Finding::bad("kernel", error),
        (Ok(()), Some((mappings_max, recommended))) => {
            let advice = format!("sysctl -w vm.max_map_count={recommended}");
            Finding::weak(
                "kernel",
                format_args!("vm.max_map_count is {mappings_max}: too few for `requests_max` requests at a time; {advice}"),
            )
        }
        (Ok(()), None) => {
            let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
            Finding::good("kernel", format_args!("Linux {}; memory and mappings are enough", release.trim()))
        }
    };
    vec![Finding::good("cores", cores), memory, kernel]
}

fn open_files(config: &Config) -> Finding {
    let files_max = raise_files_max();
    let connections = config.connections_max.unwrap_or_else(|| connections_of(files_max));
    let text = format!("{files_max} at most, so {connections} connections at a time");
    if connections < CONNECTIONS_MIN && config.connections_max.is_none() {
        return Finding::weak(
            "open files",
            format_args!("{text}; raise the hard limit (ulimit -Hn, or LimitNOFILE of the unit)"),
        );
    }
    Finding::good("open files", text)
}

/// Whether the kernel can take from the server what it does not need.
fn confinement(config: &Config) -> Finding {
    if !config.confined {
        return Finding::weak("confinement", "`confined` is false: a server keeps all its rights");
    }
    match fs::read_to_string("/proc/sys/kernel/seccomp/actions_avail") {
        Ok(actions) if actions.contains("errno") => Finding::good("confinement", "the kernel filters system calls"),
        _ => Finding::weak(
            "confinement",
            "the kernel has no filter of system calls (CONFIG_SECCOMP_FILTER): a server works without",
        ),
    }
}

/// Where compiled modules are kept.
fn cache(config: &Config) -> Finding {
    match config.cache_dir.clone().or_else(cache_folder_default) {
        None => Finding::weak("cache", "there is no folder for compiled modules: set `cache_dir`, or HOME"),
        Some(folder) => match writable(&folder) {
            Ok(text) => Finding::good("cache", text),
            Err(error) => Finding::weak("cache", format_args!("{error}: modules are compiled anew at every start")),
        },
    }
}

/// Where deployed functions are kept.
fn state(config: &Config) -> Finding {
    match config.state_dir.as_deref().map(writable) {
        None => Finding::good("state", "no `state_dir`: deployed functions go with the server"),
        Some(Ok(text)) => Finding::good("state", text),
        Some(Err(error)) => Finding::bad("state", error),
    }
}

/// Whether a folder can be written to, or made where it is not there: that is left to the server, which may run as another user.
fn writable(folder: &Path) -> Result<String, String> {
    let there = folder.ancestors().find(|place| place.exists()).unwrap_or(Path::new("."));
    let shown = folder.display();
    match tempfile::NamedTempFile::new_in(there) {
        Ok(_) if there == folder => Ok(shown.to_string()),
        Ok(_) => Ok(format!("{shown}: not there yet")),
        Err(error) => Err(format!("{shown}: {error}")),
    }
}

/// A function is compiled and answers; another is stopped.
fn trial(config: &Config) -> Vec<Finding> {
    let program = match compile::program() {
        Ok(program) => program,
        Err(error) => return vec![Finding::weak("compiler", format_args!("{error}; only artifacts (.so) are served"))],
    };
    // Without the cache: it is the compiler that is tried.
    let limits = compile::Limits { ms_max: config.compile_ms_max, memory_bytes_max: config.compile_memory_bytes_max };
    let compiler = compile::Compiler::new(limits, None).telling(To::Caller);
    let function = |name: &str, module: &[u8]| {
        let mut config = FunctionConfig::new(name, format!("{name}.wasm"));
        (config.opt_level, config.snapshot) = (0, Snapshot::Off);
        load::function_of(module, &config, &compiler).map(|(loaded, _)| Function::new(loaded, Home::alone()))
    };
    let begin = Instant::now();
    let returns = match function("trial", RETURNS) {
        Ok(function) => function,
        Err(error) => return vec![Finding::bad("compiler", format_args!("{}: {error}", program.display()))],
    };
    let compiler_text = format!("{}: a module in {} ms", program.display(), begin.elapsed().as_millis());
    let mut findings = vec![Finding::good("compiler", compiler_text)];
    findings.push(match invoke(&returns, None) {
        Ok((Ok(()), _)) => Finding::good("sandboxes", "a function ran to its end"),
        Ok((Err(failure), _)) => Finding::bad("sandboxes", format_args!("a function that only returns failed: {failure}")),
        Err(error) => Finding::bad("sandboxes", format_args!("a function cannot run: {error}")),
    });
    let stopped = function("loop", LOOPS).map_err(io::Error::other).and_then(|function| invoke(&function, Some(LOOP_TIME)));
    findings.push(match stopped {
        Ok((Err(Failure::Deadline), took)) if took < LOOP_TIME_MAX => Finding::good(
            "preemption",
            format_args!("an endless loop was stopped after {} ms of {}", took.as_millis(), LOOP_TIME.as_millis()),
        ),
        Ok((result, took)) => {
            let how = result.map_or_else(|failure| failure.to_string(), |()| "it returned".to_owned());
            Finding::bad(
                "preemption",
                format_args!("an endless loop was not stopped in time: {how}, after {} ms", took.as_millis()),
            )
        }
        Err(error) => Finding::bad("preemption", format_args!("an endless loop cannot run: {error}")),
    });
    findings
}

/// Runs a function without input and output; how it ended, and after which time.
fn invoke(function: &Function, time_max: Option<Duration>) -> io::Result<(Result<(), Failure>, Duration)> {
    let null = || OpenOptions::new().read(true).write(true).open("/dev/null");
    let streams = [null()?, null()?, null()?];
    let begin = Instant::now();
    let (result, _) = run::invoke(function, streams, time_max.map(|time_max| begin + time_max))?;
    Ok((result, begin.elapsed()))
}

/// What a server that runs says of itself.
fn running(door: &Door) -> Finding {
    let status = match ask(door, Request::get("/status").body(Full::default())) {
        Ok(status) => status,
        Err(ClientError::Absent { .. }) => {
            return Finding::good("server", "none runs at the usual addresses; --admin names another");
        }
        Err(error) => return Finding::weak("server", error),
    };
    let text = ["version", "pid", "listen", "functions"].map(|key| format!("{key} {}", plain(&status[key]))).join(", ");
    match &status["problems"] {
        Value::Array(problems) if !problems.is_empty() => {
            let problem = |problem: &Value| format!("{}: {}", plain(&problem["subject"]), plain(&problem["reason"]));
            let problems: Vec<String> = problems.iter().map(problem).collect();
            Finding::weak("server", format_args!("{text}; {}", problems.join("; ")))
        }
        _ => Finding::good("server", text),
    }
}
