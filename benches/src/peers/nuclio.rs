//! Nuclio's processor: where it is, how it is configured, and the handlers that its Go runtime loads.
//!
//! A processor serves one function by one runtime, so there is one for each. It is not built here: it is `processor` in PATH, or the file that the
//! environment variable [`PROGRAM_VARIABLE`] names. All servers have one core, and so it has one worker: the paper's authors found as many workers as cores
//! to be best for a ping. A request waits for the worker. Its log has errors only. Nothing else of it is switched on: no web interface,
//! no health check, no metrics, no time limit for a call, which would be watched.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::function::{Built, Function};
use super::running::{Running, Started};
use crate::child::{Listener, free_address};
use crate::{checkout, steps};

/// Names the processor's program, where it is not in PATH.
const PROGRAM_VARIABLE: &str = "NUCLIO_PROCESSOR";
/// As many as the servers have cores.
const WORKERS: usize = 1;
/// Longest that a request waits for a worker, in milliseconds: as long as the load generator waits for a reply.
const WORKER_WAIT_MS: u32 = 30_000;
/// Of this a handler's plugin is made.
const GO_SOURCE: &str = "benches/peers/nuclio.go";

/// What runs the function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Runtime {
    /// A shell for each request, which becomes the program.
    Shell,
    /// A plugin of handlers in the processor.
    Go,
}

/// The processor's program; otherwise why there is none.
pub(crate) fn program() -> Result<PathBuf, String> {
    let named = std::env::var_os(PROGRAM_VARIABLE).filter(|name| !name.is_empty()).map(PathBuf::from);
    let program = named.clone().unwrap_or_else(|| PathBuf::from("processor"));
    // Go's package for options shows what there is on standard error. Other programs have that name, too.
    let usage = Command::new(&program).arg("--help").output().map(|output| output.stderr).unwrap_or_default();
    if String::from_utf8_lossy(&usage).contains("platform-config") {
        return Ok(program);
    }
    Err(match named {
        Some(named) => format!("not installed: {}, which {PROGRAM_VARIABLE} names, is not Nuclio's `processor`", named.display()),
        None => {
            format!("not installed: Nuclio's `processor` is neither in PATH nor named by {PROGRAM_VARIABLE} (https://nuclio.io)")
        }
    })
}

/// Starts the processors, if there is a program.
pub(super) fn start(runtime: Runtime, built: &[Built], folder: &Path) -> Result<Started> {
    let program = match program() {
        Ok(program) => program,
        Err(missing) => return Ok(Started::Missing(missing)),
    };
    let folder = folder.join(runtime.name());
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let plugin = match runtime {
        Runtime::Shell => None,
        Runtime::Go => match Modules::of(&program) {
            Ok(modules) => Some(steps::step("nuclio.go", || Ok((plugin(&modules, &folder)?, "compiled".to_owned())))?),
            Err(missing) => return Ok(Started::Missing(missing)),
        },
    };
    let platform = write(&folder, "platform.yaml", PLATFORM)?;
    let (mut listeners, mut targets) = (Vec::new(), Vec::new());
    for Built { function, program: native, .. } in built {
        let handler = match runtime {
            // What it is given as a file is read by a shell, not executed.
            Runtime::Shell => {
                write(&folder, &format!("{}.sh", function.name), &format!("exec '{}'\n", native.display()))?;
                format!("{}.sh:main", function.name)
            }
            Runtime::Go if function.is_handled => format!("main:{}", go_name(function)),
            Runtime::Go => {
                targets.push((function.name, Err("no handler: its only source is a program".to_owned())));
                continue;
            }
        };
        let address = free_address()?;
        let config = write(&folder, &format!("{}.yaml", function.name), &runtime.config(function, &handler, address))?;
        let mut command = Command::new(&program);
        command.arg("--config").arg(config).arg("--platform-config").arg(&platform);
        command.env("NUCLIO_SHELL_HANDLER_DIR", &folder);
        if let Some(plugin) = &plugin {
            command.env("NUCLIO_GOLANG_HANDLER_PLUGIN_PATH", plugin);
        }
        listeners.push(Listener::polled(command, address, &folder.join(format!("{}.log", function.name)))?);
        targets.push((function.name, Ok((address, "/".to_owned()))));
    }
    Ok(Started::Running(Running::each(listeners, targets, version(&program))))
}

fn write(folder: &Path, name: &str, text: &str) -> Result<PathBuf> {
    let path = folder.join(name);
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display())).map(|()| path)
}

/// What the program says of itself: `Label:"1.14.1"` among other things.
fn version(program: &Path) -> String {
    let said = Command::new(program).arg("--version").output().map(|output| output.stdout).unwrap_or_default();
    let said = String::from_utf8_lossy(&said).into_owned();
    let label = said.split_once("Label:\"").and_then(|(_, rest)| rest.split_once('"')).map(|(label, _)| label);
    format!("Nuclio's processor {}", label.unwrap_or("of an unknown version"))
}

impl Runtime {
    /// As Nuclio calls it.
    fn name(self) -> &'static str {
        match self {
            Runtime::Shell => "shell",
            Runtime::Go => "golang",
        }
    }

    /// The function's configuration.
    fn config(self, function: &Function, handler: &str, address: SocketAddr) -> String {
        let (name, runtime) = (function.name, self.name());
        // What was `maxWorkers` is `numWorkers` since 1.13.
        format!(
            "apiVersion: nuclio.io/v1\nkind: NuclioFunction\nmetadata:\n  name: {name}\n  namespace: nuclio\nspec:\n  runtime: {runtime}\n  \
             handler: {handler}\n  triggers:\n    http:\n      kind: http\n      url: \"{address}\"\n      maxWorkers: {WORKERS}\n      \
             numWorkers: {WORKERS}\n      workerAvailabilityTimeoutMilliseconds: {WORKER_WAIT_MS}\n"
        )
    }
}

/// No other ports than the function's, and a log of errors only.
const PLATFORM: &str = "\
webAdmin:
  enabled: false
healthCheck:
  enabled: false
logger:
  sinks:
    terminal:
      kind: stdout
  system:
  - level: error
    sink: terminal
  functions:
  - level: error
    sink: terminal
";

/// The handler's name in Go.
fn go_name(function: &Function) -> String {
    let (first, rest) = function.name.split_at(1);
    format!("{}{rest}", first.to_uppercase())
}

/// With what a processor was built. A plugin has to have the same: Go's runtime refuses it otherwise.
#[derive(Debug, PartialEq, Eq)]
struct Modules {
    /// `go1.26.8`
    go: String,
    /// Whether paths are left out.
    is_trimmed: bool,
    /// Lines of a go.mod.
    requirements: String,
}

impl Modules {
    /// Those of a program; otherwise why it can have no plugin here.
    fn of(program: &Path) -> Result<Modules, String> {
        let go = |arguments: &[&Path]| Command::new("go").arg("version").args(arguments).output();
        let Ok(here) = go(&[]) else {
            return Err("not built: it needs Go, which is not in PATH (https://go.dev)".to_owned());
        };
        let here = String::from_utf8_lossy(&here.stdout).into_owned();
        let found = find(program).ok_or_else(|| format!("{} is no file in PATH", program.display()))?;
        let said = go(&[Path::new("-m"), &found]).map_err(|error| format!("go version -m: {error}"))?;
        let modules = Modules::parse(&String::from_utf8_lossy(&said.stdout))?;
        match here.split_whitespace().any(|word| word == modules.go) {
            true => Ok(modules),
            false => Err(format!(
                "not built: the processor was built with {}, a plugin for it needs the same; here is {}",
                modules.go,
                here.trim()
            )),
        }
    }

    /// What `go version -m` says.
    fn parse(said: &str) -> Result<Modules, String> {
        let mut lines = said.lines();
        let go = lines.next().and_then(|line| line.rsplit_once(": ")).map(|(_, go)| go.trim().to_owned());
        let go = go.ok_or("not built: the processor does not say with which Go it was built")?;
        let (mut is_trimmed, mut has_cgo, mut requirements, mut last) = (false, false, String::new(), String::new());
        for line in lines {
            match line.trim().split('\t').collect::<Vec<_>>()[..] {
                ["build", setting] => {
                    is_trimmed |= setting == "-trimpath=true";
                    has_cgo |= setting == "CGO_ENABLED=1";
                }
                ["dep", path, version, ..] => {
                    requirements.push_str(&format!("require {path} {version}\n"));
                    last = path.to_owned();
                }
                ["=>", path, version, ..] => requirements.push_str(&format!("replace {last} => {path} {version}\n")),
                _ => {}
            }
        }
        match has_cgo {
            true => Ok(Modules { go, is_trimmed, requirements }),
            false => Err("not built: the processor was built without cgo, so that it cannot load plugins".to_owned()),
        }
    }
}

/// The file that running `program` would run.
fn find(program: &Path) -> Option<PathBuf> {
    if program.components().count() > 1 {
        return Some(program.to_owned());
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// Builds the handlers.
fn plugin(modules: &Modules, folder: &Path) -> Result<PathBuf> {
    let source = checkout::root().join(GO_SOURCE);
    fs::copy(&source, folder.join("handlers.go")).with_context(|| format!("cannot copy {}", source.display()))?;
    let language = modules.go.trim_start_matches("go");
    write(folder, "go.mod", &format!("module handlers\n\ngo {language}\n\n{}", modules.requirements))?;
    let plugin = folder.join("handlers.so");
    let mut go = Command::new("go");
    go.current_dir(folder).env("CGO_ENABLED", "1").args(["build", "-mod=mod", "-buildmode=plugin", "-o"]).arg(&plugin);
    if modules.is_trimmed {
        go.arg("-trimpath");
    }
    let output = go.arg(".").output().context("cannot run go")?;
    ensure!(output.status.success(), "{go:?} failed ({}): {}", output.status, String::from_utf8_lossy(&output.stderr).trim_end());
    Ok(plugin)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "/opt/processor: go1.26.8\n\tpath\tgithub.com/nuclio/nuclio/cmd/processor\n\tmod\tgithub.com/nuclio/nuclio\t(devel)\t\n\
                        \tdep\tgithub.com/nuclio/logger\tv0.0.1\th1:x=\n\tdep\tgithub.com/a/b\tv1.0.0\n\t=>\tgithub.com/c/b\tv1.0.1\th1:y=\n\
                        \tbuild\t-trimpath=true\n\tbuild\tCGO_ENABLED=1\n";

    #[test]
    fn a_plugin_has_the_modules_of_its_processor() {
        let requirements = "require github.com/nuclio/logger v0.0.1\nrequire github.com/a/b v1.0.0\nreplace github.com/a/b => github.com/c/b v1.0.1\n";
        let wanted = Modules { go: "go1.26.8".to_owned(), is_trimmed: true, requirements: requirements.to_owned() };
        assert_eq!(Modules::parse(SAID), Ok(wanted));
    }

    #[test]
    fn a_processor_that_loads_no_plugins_says_so() {
        assert!(Modules::parse(&SAID.replace("CGO_ENABLED=1", "CGO_ENABLED=0")).unwrap_err().contains("without cgo"));
        assert!(Modules::parse("").unwrap_err().contains("with which Go"));
    }
}
