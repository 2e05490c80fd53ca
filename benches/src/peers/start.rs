//! Starts `sledge` and its peers, each with all functions, where this thread is pinned to.

use std::ffi::OsString;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::function::{Built, Function};
use super::peer::Peer;
use crate::child::{Listener, free_address};
use crate::server::Server;
use crate::{checkout, polybench::machine};

/// Processes that Nuclio may have at a time: as many as there are clients, as with [`Peer::Process`].
const NUCLIO_WORKERS: usize = 100;

/// Where a function is served; otherwise why it is not.
pub(super) type Target = Result<(SocketAddr, String), String>;

/// A peer, or why it is not there.
pub(super) enum Started {
    Running(Running),
    Missing(String),
}

/// A server or several, for as long as this lives.
#[derive(Debug)]
pub(super) struct Running {
    servers: Servers,
    targets: Vec<(&'static str, Target)>,
    /// Which program it is, where that is not this workspace's.
    pub(super) version: Option<String>,
}

#[derive(Debug)]
enum Servers {
    Sledge(Server),
    Others(Vec<Listener>),
}

impl Running {
    fn one(listener: Listener, built: &[Built], path: impl Fn(&Function) -> Result<String, String>) -> Running {
        let address = listener.address();
        let target = |function: &'static Function| (function.name, path(function).map(|path| (address, path)));
        let targets = built.iter().map(|built| target(built.function)).collect();
        Running { servers: Servers::Others(vec![listener]), targets, version: None }
    }

    /// Where a function is served.
    pub(super) fn target(&self, function: &Function) -> Target {
        let target = self.targets.iter().find(|(name, _)| *name == function.name).map(|(_, target)| target.clone());
        target.unwrap_or_else(|| Err("it was not started for this".to_owned()))
    }

    /// What it said last, for an error message.
    pub(super) fn log_end(&self) -> String {
        match &self.servers {
            Servers::Sledge(server) => server.log_end(),
            Servers::Others(listeners) => listeners.iter().map(Listener::log_end).collect(),
        }
    }
}

/// `sledge serve` with one worker.
pub(super) fn sledge(built: &[Built], folder: &Path) -> Result<Running> {
    let mut config = "listen = \"127.0.0.1:0\"\nadmin = \"none\"\nworkers = 1\n".to_owned();
    for Built { function, artifact, .. } in built {
        let path = toml::Value::String(artifact.display().to_string());
        config.push_str(&format!("\n[[functions]]\nname = \"{}\"\npath = {path}\n", function.name));
    }
    let server = Server::start_config(folder, &config)?;
    let target = |built: &Built| (built.function.name, Ok((server.address(), format!("/{}", built.function.name))));
    let targets = built.iter().map(target).collect();
    Ok(Running { servers: Servers::Sledge(server), targets, version: None })
}

/// Starts a peer.
pub(super) fn peer(peer: Peer, built: &[Built], folder: &Path) -> Result<Started> {
    let log = folder.join(format!("{}.log", peer.name()));
    let named = |function: &Function| Ok(format!("/{}", function.name));
    match peer {
        Peer::Hyper => {
            let listener = Listener::announced(Command::new(checkout::program("native")?), Some(&log))?;
            let handler = |function: &Function| match function.is_handled {
                true => Ok(format!("/examples/{}", function.name)),
                false => Err("no handler: its only source is a program in C".to_owned()),
            };
            Ok(Started::Running(Running::one(listener, built, handler)))
        }
        Peer::Process => {
            let mut command = Command::new(checkout::program("native")?);
            command.args(built.iter().map(|built| argument(built.function, &built.program)));
            Ok(Started::Running(Running::one(Listener::announced(command, Some(&log))?, built, named)))
        }
        Peer::Wasmtime => {
            let Ok(program) = checkout::program("peer-wasmtime") else {
                return Ok(Started::Missing("not built: make bench-peers builds it unless WASMTIME=no".to_owned()));
            };
            let mut command = Command::new(program);
            command.args(built.iter().map(|built| argument(built.function, &built.module)));
            let running = Running::one(Listener::announced(command, Some(&log))?, built, named);
            Ok(Started::Running(Running { version: locked("wasmtime"), ..running }))
        }
        Peer::WasmtimeServe => wasmtime_serve(built, folder),
        Peer::Node => {
            let Some(version) = version("node", "--version") else {
                return Ok(Started::Missing("not installed: https://nodejs.org".to_owned()));
            };
            let mut command = Command::new("node");
            command.arg(checkout::root().join("benches/peers/server.mjs"));
            command.args(built.iter().map(|built| argument(built.function, &built.module)));
            let running = Running::one(Listener::announced(command, Some(&log))?, built, named);
            Ok(Started::Running(Running { version: Some(version), ..running }))
        }
        Peer::Nuclio => nuclio(built, folder),
    }
}

/// NAME=FILE
fn argument(function: &Function, file: &Path) -> OsString {
    let mut argument = OsString::from(format!("{}=", function.name));
    argument.push(file);
    argument
}

/// What a program in PATH says of itself in one line, if it is there.
fn version(program: &str, option: &str) -> Option<String> {
    let said = machine::said(Command::new(program).arg(option)).ok()?;
    Some(if said.starts_with(program) { said } else { format!("{program} {said}") })
}

/// The version of a crate that this workspace is built with.
fn locked(name: &str) -> Option<String> {
    let lock: toml::Table = fs::read_to_string(checkout::root().join("Cargo.lock")).ok()?.parse().ok()?;
    let package =
        lock.get("package")?.as_array()?.iter().find(|package| package.get("name").is_some_and(|n| n.as_str() == Some(name)));
    Some(format!("{name} {}", package?.get("version")?.as_str()?))
}

/// A component is one function, so there is a server for each.
fn wasmtime_serve(built: &[Built], folder: &Path) -> Result<Started> {
    let Some(version) = version("wasmtime", "--version") else {
        return Ok(Started::Missing("not installed: cargo install wasmtime-cli".to_owned()));
    };
    let Ok(encoder) = checkout::program("peer-component") else {
        return Ok(Started::Missing(
            "what makes components is not built: make bench-peers builds it unless WASMTIME=no".to_owned(),
        ));
    };
    let (mut listeners, mut targets) = (Vec::new(), Vec::new());
    for Built { function, .. } in built {
        let (component, address) = (function.component(&encoder, folder)?, free_address()?);
        let mut command = Command::new("wasmtime");
        command.arg("serve").arg(format!("--addr={address}")).arg(component);
        let log = folder.join(format!("wasmtime-serve-{}.log", function.name));
        listeners.push(Listener::polled(command, address, &log)?);
        targets.push((function.name, Ok((address, "/".to_owned()))));
    }
    Ok(Started::Running(Running { servers: Servers::Others(listeners), targets, version: Some(version) }))
}

/// A processor serves one function, so there is one for each.
fn nuclio(built: &[Built], folder: &Path) -> Result<Started> {
    // Go's package for options shows what there is on standard error. Other programs have that name, too.
    let usage = Command::new("processor").arg("--help").output().map(|output| output.stderr).unwrap_or_default();
    if !String::from_utf8_lossy(&usage).contains("platform-config") {
        return Ok(Started::Missing("not installed: Nuclio's `processor` is not in PATH (https://nuclio.io)".to_owned()));
    }
    let folder = folder.join("nuclio");
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display())).map(|()| path)
    };
    let platform = write("platform.yaml", NUCLIO_PLATFORM)?;
    let (mut listeners, mut targets) = (Vec::new(), Vec::new());
    for Built { function, program, .. } in built {
        let name = function.name;
        let address = free_address()?;
        // What it is given as a file is read by a shell, not executed.
        write(&format!("{name}.sh"), &format!("exec '{}'\n", program.display()))?;
        let config = write(&format!("{name}.yaml"), &nuclio_function(name, address))?;
        let mut command = Command::new("processor");
        command.arg("--config").arg(config).arg("--platform-config").arg(&platform);
        command.env("NUCLIO_SHELL_HANDLER_DIR", &folder);
        listeners.push(Listener::polled(command, address, &folder.join(format!("{name}.log")))?);
        targets.push((name, Ok((address, "/".to_owned()))));
    }
    Ok(Started::Running(Running { servers: Servers::Others(listeners), targets, version: Some("processor".to_owned()) }))
}

/// No other ports than the function's, and a log of errors only.
const NUCLIO_PLATFORM: &str = "\
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

fn nuclio_function(name: &str, address: SocketAddr) -> String {
    // What was `maxWorkers` is `numWorkers` since 1.13.
    format!(
        "apiVersion: nuclio.io/v1\nkind: NuclioFunction\nmetadata:\n  name: {name}\n  namespace: nuclio\nspec:\n  runtime: shell\n  \
         handler: {name}.sh:main\n  triggers:\n    http:\n      kind: http\n      url: \"{address}\"\n      maxWorkers: {NUCLIO_WORKERS}\n      \
         numWorkers: {NUCLIO_WORKERS}\n      workerAvailabilityTimeoutMilliseconds: 60000\n"
    )
}
