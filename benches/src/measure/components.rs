//! The group `components`: calls between the components of one program, fresh instances of it, and one that answers HTTP.
//!
//! What a call costs is the time of a command with many calls, less that of one with as many rounds of the same loop and no call.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;

use super::Bench;
use crate::child::Listener;
use crate::latency::Latencies;
use crate::load::{self, Load};
use crate::native::Native;
use crate::server::Server;
use crate::warm::{self, Warm};
use crate::{checkout, compiler, cores};

/// Calls in one command.
const CALLS: u64 = 2_000_000;
/// Commands of which the median counts.
const COMMANDS: usize = 15;
/// Instances that are timed, and those before them that are not.
const INSTANCES: usize = 50_000;
const WARM_UP: usize = 2_000;
/// Turns of each server, and how long each is.
const TURNS: usize = 5;
const TURN_WARM_UP: Duration = Duration::from_millis(300);
const TURN: Duration = Duration::from_millis(1_500);
/// Clients at a time.
const CLIENTS: usize = 100;

/// `add` of two numbers.
pub(super) fn add_ns(bench: &mut Bench) -> Result<f64> {
    call_ns(bench, "add")
}

/// A list of 1,024 bytes.
pub(super) fn list_ns(bench: &mut Bench) -> Result<f64> {
    call_ns(bench, "list")
}

/// A string of 1,024 bytes.
pub(super) fn string_ns(bench: &mut Bench) -> Result<f64> {
    call_ns(bench, "string")
}

/// A method of a resource, which is borrowed for the call.
pub(super) fn method_ns(bench: &mut Bench) -> Result<f64> {
    call_ns(bench, "method")
}

fn call_ns(bench: &Bench, function: &str) -> Result<f64> {
    let (called, nothing) = (command(bench, function, CALLS)?, command(bench, "nothing", CALLS)?);
    // Medians of neighbours: the machine may change its speed between them.
    let times = on_a_worker(move || Ok((times(&called, COMMANDS, 1)?.median(), times(&nothing, COMMANDS, 1)?.median())))?;
    Ok(times.0.saturating_sub(times.1).as_secs_f64() * 1e9 / CALLS as f64)
}

/// A sandbox of a program of two components, one call from one to the other, the reset.
pub(super) fn instance_median_us(bench: &mut Bench) -> Result<f64> {
    let once = command(bench, "method", 1)?;
    let median = on_a_worker(move || Ok(times(&once, INSTANCES, WARM_UP)?.median()))?;
    Ok(median.as_secs_f64() * 1e6)
}

/// The artifact of the command that makes so many calls.
fn command(bench: &Bench, function: &str, count: u64) -> Result<PathBuf> {
    let template = checkout::root().join("benches/functions/component-calls.wat");
    let text = fs::read_to_string(&template).with_context(|| template.display().to_string())?;
    let text = text.replace("{{function}}", function).replace("{{count}}", &count.to_string());
    let source = bench.folder.path().join(format!("component-{function}-{count}.wat"));
    fs::write(&source, text).with_context(|| source.display().to_string())?;
    let artifact = source.with_extension("so");
    compiler::compile(&source, &artifact)?;
    Ok(artifact)
}

/// A worker's thread has signal handling of its own.
fn on_a_worker<T: Send + 'static>(measure: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    let measured = thread::spawn(move || {
        let _worker = warm::worker()?;
        measure()
    });
    measured.join().ok().context("the measurement panicked")?
}

/// Times requests from taking a sandbox to having reset it.
fn times(artifact: &Path, count: usize, warm_up: usize) -> Result<Latencies> {
    let mut warm = Warm::new(artifact)?;
    let body = Bytes::new();
    let mut times = Vec::with_capacity(count);
    for request in 0..warm_up + count {
        let start = Instant::now();
        let ended = warm.request(&body)?;
        let time = start.elapsed();
        ensure!(ended.outcome.is_ok(), "request {request} came to {ended:?}");
        if request >= warm_up {
            times.push(time);
        }
    }
    Ok(times.into_iter().collect())
}

/// A component in Rust beside a native handler: server on one core, load on the other, in turns.
pub(super) fn hello_throughput_ratio(bench: &mut Bench) -> Result<f64> {
    let component = hello(bench)?;
    beside(bench, &component, "3", || {
        let native = Native::start(&[])?;
        let address = native.address();
        Ok((native, address, "/ping"))
    })
}

/// The same beside wasmtime.
pub(super) fn hello_wasmtime_ratio(bench: &mut Bench) -> Result<f64> {
    let component = hello(bench)?;
    beside_wasmtime(bench, &component, "3")
}

/// The project in Python that `sledge new` makes, beside wasmtime.
pub(super) fn python_wasmtime_ratio(bench: &mut Bench) -> Result<f64> {
    let component = project(bench, "python")?;
    beside_wasmtime(bench, &component, "0")
}

/// The project in JavaScript that `sledge new` makes, beside wasmtime.
pub(super) fn js_wasmtime_ratio(bench: &mut Bench) -> Result<f64> {
    let component = project(bench, "js")?;
    beside_wasmtime(bench, &component, "0")
}

/// A component in Rust that answers with one byte.
fn hello(bench: &Bench) -> Result<PathBuf> {
    let folder = bench.folder.path().join("component-hello");
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--quiet", "--release", "--locked", "--target", "wasm32-wasip2", "--target-dir"]).arg(&folder);
    run(cargo.current_dir(checkout::root().join("benches/functions/component-hello")))?;
    Ok(folder.join("wasm32-wasip2/release/component_hello.wasm"))
}

/// The component of a new project, built by the command in its `sledge.toml`.
fn project(bench: &Bench, language: &str) -> Result<PathBuf> {
    let name = format!("hello-{language}");
    let folder = bench.folder.path().join(&name);
    if !folder.exists() {
        let mut new = Command::new(checkout::program("sledge")?);
        run(new.args(["new", &name, "--lang", language]).current_dir(bench.folder.path()))?;
    }
    let config = fs::read_to_string(folder.join("sledge.toml")).context("the project's sledge.toml")?;
    let config: toml::Table = config.parse().context("the project's sledge.toml")?;
    let function = config.get("functions").and_then(|functions| functions.get(0)).context("the project's function")?;
    let build = function.get("build").and_then(toml::Value::as_array).context("the project's `build`")?;
    let words = build.iter().map(|word| word.as_str().context("the project's `build`")).collect::<Result<Vec<_>>>()?;
    let (program, arguments) = words.split_first().context("the project's `build` is empty")?;
    run(Command::new(program).args(arguments).current_dir(&folder))?;
    let path = function.get("path").and_then(toml::Value::as_str).context("the project's `path`")?;
    Ok(folder.join(path))
}

fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot run {}", command.get_program().display()))?;
    ensure!(status.success(), "{} failed ({status})", command.get_program().display());
    Ok(())
}

/// Throughput to that of `wasmtime`, with an instance from its pool for each request.
fn beside_wasmtime(bench: &Bench, component: &Path, level: &str) -> Result<f64> {
    let program = checkout::program("peer-wasmtime-http").context("wasmtime is built by: make promises WASMTIME=yes")?;
    beside(bench, component, level, || {
        let mut command = Command::new(program);
        command.arg(component);
        let peer = Listener::announced(command, None).context("the server with wasmtime")?;
        let address = peer.address();
        Ok((peer, address, "/"))
    })
}

/// Throughput of a component to that of another server, which lives as long as the first of what `start` returns.
fn beside<S>(
    bench: &Bench,
    component: &Path,
    level: &str,
    start: impl FnOnce() -> Result<(S, SocketAddr, &'static str)>,
) -> Result<f64> {
    let artifact = component.with_extension(format!("O{level}.so"));
    compiler::compile_with(component, &artifact, &["-O", level])?;
    let [server_core, load_core] = cores::two()?;
    let path = toml::Value::String(artifact.display().to_string());
    let config = format!("listen = \"127.0.0.1:0\"\nworkers = 1\n\n[[functions]]\nname = \"ping\"\npath = {path}\n");
    cores::pin(server_core)?;
    let sledge = Server::start_config(bench.folder.path(), &config)?;
    let (_other, address, path) = start()?;
    cores::pin(load_core)?;
    let load = |path| [Load::new(CLIENTS, path, Vec::new(), 1)];
    let mut ratios = Vec::new();
    for _ in 0..TURNS {
        let beside = load::run(address, &load(path), TURN_WARM_UP, TURN)?[0].per_second;
        let per_second = load::run(sledge.address(), &load("/ping"), TURN_WARM_UP, TURN)?[0].per_second;
        eprintln!("component: {per_second:.0} a second, the other server {beside:.0}");
        ratios.push(per_second / beside);
    }
    ratios.sort_by(f64::total_cmp);
    Ok(ratios[TURNS / 2])
}
