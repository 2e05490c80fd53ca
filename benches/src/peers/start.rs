//! Starts `sledge` and its peers, each with all functions, where this thread is pinned to.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::function::{Built, Function};
use super::nuclio::{self, Runtime};
use super::peer::Peer;
use super::running::{Running, Started};
use crate::child::{Listener, free_address};
use crate::server::Server;
use crate::{checkout, polybench::machine};

/// `sledge serve` with one worker.
pub(super) fn sledge(built: &[Built], folder: &Path) -> Result<Running> {
    let mut config = "listen = \"127.0.0.1:0\"\nadmin = \"none\"\nworkers = 1\n".to_owned();
    for Built { function, artifact, .. } in built {
        let path = toml::Value::String(artifact.display().to_string());
        config.push_str(&format!("\n[[functions]]\nname = \"{}\"\npath = {path}\n", function.name));
    }
    let server = Server::start_config(folder, &config)?;
    Ok(Running::sledge(server, built))
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
                false => Err("no handler: its only source is a program".to_owned()),
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
            Ok(Started::Running(running.version(locked("wasmtime"))))
        }
        Peer::WasmtimeServe => wasmtime_serve(built, folder),
        Peer::Node => {
            let Some(version) = version(Path::new("node"), "--version") else {
                return Ok(Started::Missing("not installed: https://nodejs.org".to_owned()));
            };
            let mut command = Command::new("node");
            command.arg(checkout::root().join("benches/peers/server.mjs"));
            command.args(built.iter().map(|built| argument(built.function, &built.module)));
            let running = Running::one(Listener::announced(command, Some(&log))?, built, named);
            Ok(Started::Running(running.version(Some(version))))
        }
        Peer::Nuclio => nuclio::start(Runtime::Shell, built, folder),
        Peer::NuclioGo => nuclio::start(Runtime::Go, built, folder),
    }
}

/// NAME=FILE
fn argument(function: &Function, file: &Path) -> OsString {
    let mut argument = OsString::from(format!("{}=", function.name));
    argument.push(file);
    argument
}

/// What a program in PATH says of itself in one line, if it is there.
fn version(program: &Path, option: &str) -> Option<String> {
    let said = machine::said(Command::new(program).arg(option)).ok()?;
    let name = program.file_name()?.to_str()?;
    Some(if said.starts_with(name) { said } else { format!("{name} {said}") })
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
    // What `make bench-peers PEERS=wasmtime-serve` has built goes before what is installed.
    let own = checkout::root().join("target/wasmtime-cli/bin/wasmtime");
    let program = if own.is_file() { own } else { PathBuf::from("wasmtime") };
    let Some(version) = version(&program, "--version") else {
        return Ok(Started::Missing(
            "not installed: make bench-peers PEERS=wasmtime-serve builds it, which takes long".to_owned(),
        ));
    };
    let Ok(encoder) = checkout::program("peer-component") else {
        return Ok(Started::Missing(
            "what makes components is not built: make bench-peers builds it unless WASMTIME=no".to_owned(),
        ));
    };
    let (mut listeners, mut targets) = (Vec::new(), Vec::new());
    for Built { function, .. } in built {
        if !function.is_c() {
            targets.push((function.name, Err("no component: its source is not in C".to_owned())));
            continue;
        }
        let (component, address) = (function.component(&encoder, folder)?, free_address()?);
        let mut command = Command::new(&program);
        command.arg("serve").arg(format!("--addr={address}")).arg(component);
        let log = folder.join(format!("wasmtime-serve-{}.log", function.name));
        listeners.push(Listener::polled(command, address, &log)?);
        targets.push((function.name, Ok((address, "/".to_owned()))));
    }
    Ok(Started::Running(Running::each(listeners, targets, version)))
}
