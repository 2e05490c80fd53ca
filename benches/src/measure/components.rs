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
use crate::load::{self, Expected, Load};
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

/// What servers are asked for at `/ping`.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) body: &'static [u8],
    pub(super) expected: Expected,
}

/// Nothing, for an answer of one byte.
const ASKED: Asked = Asked { body: b"", expected: Expected::Length(1) };

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

/// `add` where something in the program is asynchronous, to where nothing is.
pub(super) fn add_async_ratio(bench: &mut Bench) -> Result<f64> {
    async_ratio(bench, "add")
}

/// The same with a string of 1,024 bytes.
pub(super) fn string_async_ratio(bench: &mut Bench) -> Result<f64> {
    async_ratio(bench, "string")
}

fn async_ratio(bench: &Bench, function: &str) -> Result<f64> {
    let with = [function, "nothing"].map(|function| command_with(bench, function, CALLS, true));
    let without = [function, "nothing"].map(|function| command(bench, function, CALLS));
    let [[called, nothing], [called_without, nothing_without]] = [with, without];
    let with = time_between(called?, nothing?)?;
    Ok(with.as_secs_f64() / time_between(called_without?, nothing_without?)?.as_secs_f64())
}

fn call_ns(bench: &Bench, function: &str) -> Result<f64> {
    let time = time_between(command(bench, function, CALLS)?, command(bench, "nothing", CALLS)?)?;
    Ok(time.as_secs_f64() * 1e9 / CALLS as f64)
}

/// How much longer one command takes than another.
fn time_between(called: PathBuf, nothing: PathBuf) -> Result<Duration> {
    // Medians of neighbours: the machine may change its speed between them.
    let times = on_a_worker(move || Ok((times(&called, COMMANDS, 1)?.median(), times(&nothing, COMMANDS, 1)?.median())))?;
    Ok(times.0.saturating_sub(times.1))
}

/// A sandbox of a program of two components, one call from one to the other, the reset.
pub(super) fn instance_median_us(bench: &mut Bench) -> Result<f64> {
    let once = command(bench, "method", 1)?;
    let median = on_a_worker(move || Ok(times(&once, INSTANCES, WARM_UP)?.median()))?;
    Ok(median.as_secs_f64() * 1e6)
}

/// The artifact of the command that makes so many calls, in which nothing is asynchronous.
fn command(bench: &Bench, function: &str, count: u64) -> Result<PathBuf> {
    command_with(bench, function, count, false)
}

fn command_with(bench: &Bench, function: &str, count: u64, is_async: bool) -> Result<PathBuf> {
    let template = checkout::root().join("benches/functions/component-calls.wat");
    let text = fs::read_to_string(&template).with_context(|| template.display().to_string())?;
    let mut text = text.replace("{{function}}", function).replace("{{count}}", &count.to_string());
    if !is_async {
        let (start, end) = (text.find(";; async\n"), text.find(";; end\n"));
        text.replace_range(start.zip(end).map(|(start, end)| start..end).context("the template has no async part")?, "");
    }
    let source = bench.folder.path().join(format!("component-{function}-{count}-{is_async}.wat"));
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
    beside(bench, &component, "3", &ASKED, || {
        let native = Native::start(&[])?;
        let address = native.address();
        Ok((native, address))
    })
}

/// The same beside wasmtime.
pub(super) fn hello_wasmtime_ratio(bench: &mut Bench) -> Result<f64> {
    let component = hello(bench)?;
    beside_wasmtime(bench, &component, "3", &ASKED)
}

/// A component in Rust that answers with one byte.
fn hello(bench: &Bench) -> Result<PathBuf> {
    let folder = bench.folder.path().join("component-hello");
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--quiet", "--release", "--locked", "--target", "wasm32-wasip2", "--target-dir"]).arg(&folder);
    run(cargo.current_dir(checkout::root().join("benches/functions/component-hello")))?;
    Ok(folder.join("wasm32-wasip2/release/component_hello.wasm"))
}

pub(super) fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot run {}", command.get_program().display()))?;
    ensure!(status.success(), "{} failed ({status})", command.get_program().display());
    Ok(())
}

/// Throughput to that of `wasmtime`, with an instance from its pool for each request.
pub(super) fn beside_wasmtime(bench: &Bench, component: &Path, level: &str, asked: &Asked) -> Result<f64> {
    beside(bench, component, level, asked, || {
        let peer = wasmtime(component)?;
        let address = peer.address();
        Ok((peer, address))
    })
}

/// A server that answers with a component in wasmtime.
pub(super) fn wasmtime(component: &Path) -> Result<Listener> {
    let program = checkout::program("peer-wasmtime-http").context("wasmtime is built by: make promises WASMTIME=yes")?;
    let mut command = Command::new(program);
    command.arg(component);
    Listener::announced(command, None).context("the server with wasmtime")
}

/// The same in `sledge`, with one worker.
pub(super) fn sledge(bench: &Bench, component: &Path, level: &str) -> Result<Server> {
    let artifact = component.with_extension(format!("O{level}.so"));
    compiler::compile_with(component, &artifact, &["-O", level])?;
    let path = toml::Value::String(artifact.display().to_string());
    let config = format!("listen = \"127.0.0.1:0\"\nworkers = 1\n\n[[functions]]\nname = \"ping\"\npath = {path}\n");
    Server::start_config(bench.folder.path(), &config)
}

/// Throughput of a component to that of another server, which lives as long as the first of what `start` returns.
fn beside<S>(
    bench: &Bench,
    component: &Path,
    level: &str,
    asked: &Asked,
    start: impl FnOnce() -> Result<(S, SocketAddr)>,
) -> Result<f64> {
    let [server_core, load_core] = cores::two()?;
    cores::pin(server_core)?;
    let sledge = sledge(bench, component, level)?;
    let (_other, address) = start()?;
    cores::pin(load_core)?;
    let load = [Load { expected: asked.expected.clone(), ..Load::new(CLIENTS, "/ping", asked.body.to_vec(), 0) }];
    let mut ratios = Vec::new();
    for _ in 0..TURNS {
        let beside = load::run(address, &load, TURN_WARM_UP, TURN)?[0].per_second;
        let per_second = load::run(sledge.address(), &load, TURN_WARM_UP, TURN)?[0].per_second;
        eprintln!("component: {per_second:.0} a second, the other server {beside:.0}");
        ratios.push(per_second / beside);
    }
    ratios.sort_by(f64::total_cmp);
    Ok(ratios[TURNS / 2])
}
