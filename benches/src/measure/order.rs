//! The group `order`: what is answered in time when more comes than one core can do, by the default order and by the best of the others with `admission = "utilisation"`.
//!
//! An open loop of a function that takes 1.7 ms and has a deadline of a second. What is late (504) or refused (429, 503) is no good reply.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::Bench;
use crate::load::{self, Load};
use crate::server::Server;
use crate::{checkout, compiler, cores};

/// What a request takes, in microseconds.
const WORK_US: f64 = 1_700.0;
const DEADLINE_MS: u64 = 1_000;
/// Of what the core can do.
const LOADS: [f64; 4] = [1.2, 1.7, 4.0, 10.0];
/// More than can be under way at the same time where what is late is refused.
const CLIENTS: usize = 2_000;
/// The queue has its length by then.
const WARM_UP: Duration = Duration::from_secs(2);
const TIME: Duration = Duration::from_secs(5);
/// The default, then the others.
const ORDERS: [&str; 3] =
    ["", "policy = \"edf\"\nadmission = \"utilisation\"\n", "policy = \"fifo\"\nadmission = \"utilisation\"\n"];

/// At each load what the default has of the best of the others, and its 99th percentile in milliseconds.
#[derive(Clone, Debug)]
pub(super) struct Overload {
    goodput: [f64; LOADS.len()],
    p99_ms: f64,
}

pub(super) fn measured(folder: &Path) -> Result<Overload> {
    let folder = folder.join("order");
    fs::create_dir_all(&folder)?;
    let artifact = folder.join("work.so");
    compiler::compile(&checkout::root().join("benches/functions/work.wat"), &artifact)?;
    let path = toml::Value::String(artifact.display().to_string());
    let function = format!("[[functions]]\nname = \"work\"\npath = {path}\ndeadline_ms = {DEADLINE_MS}\n");
    let [server_core, load_core] = cores::two()?;
    let mut overload = Overload { goodput: [0.0; LOADS.len()], p99_ms: 0.0 };
    let mut body = None;
    for (index, times) in LOADS.into_iter().enumerate() {
        let mut good = Vec::new();
        for order in ORDERS {
            cores::pin(server_core)?;
            let config = format!("listen = \"127.0.0.1:0\"\nworkers = 1\n{order}{function}");
            let server = Server::start_config(&folder, &config)?;
            cores::pin(load_core)?;
            let work = |rounds: u64| Load::new(1, "/work", rounds.to_le_bytes().to_vec(), 1);
            // The same work for all.
            if body.is_none() {
                let rounds = 20_000_000_u64;
                let median = load::run(server.address(), &[work(rounds)], WARM_UP, TIME)?[0].median_us();
                body = Some((rounds as f64 / median * WORK_US) as u64);
            }
            let rate = Some(times * 1e6 / WORK_US);
            let rounds = body.context("it was just set")?;
            let load = Load { clients: CLIENTS, rate, may_be_refused: true, ..work(rounds) };
            let outcome = load::run(server.address(), &[load], WARM_UP, TIME)?.pop().context("one outcome")?;
            if order.is_empty() {
                overload.p99_ms = overload.p99_ms.max(outcome.p99_us() / 1e3);
            }
            good.push((outcome.per_second, outcome.p99_us() / 1e3));
        }
        let best = good[1..].iter().map(|(good, _)| *good).fold(0.0, f64::max);
        overload.goodput[index] = good[0].0 / best;
        eprintln!("{times} times the capacity: good replies a second, and p99 in ms, by default, edf and fifo: {good:.0?}");
    }
    Ok(overload)
}

fn goodput(bench: &mut Bench, index: usize) -> Result<f64> {
    Ok(bench.overload()?.goodput[index])
}

pub(super) fn goodput_1_2(bench: &mut Bench) -> Result<f64> {
    goodput(bench, 0)
}

pub(super) fn goodput_1_7(bench: &mut Bench) -> Result<f64> {
    goodput(bench, 1)
}

pub(super) fn goodput_4(bench: &mut Bench) -> Result<f64> {
    goodput(bench, 2)
}

pub(super) fn goodput_10(bench: &mut Bench) -> Result<f64> {
    goodput(bench, 3)
}

/// Of what is accepted, at all loads.
pub(super) fn p99_ms(bench: &mut Bench) -> Result<f64> {
    Ok(bench.overload()?.p99_ms)
}

/// How many seeds of the whole pool are simulated in a second, on all cores.
pub(super) fn simulated(_: &mut Bench) -> Result<f64> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut simulation = Command::new(cargo);
    simulation.args(["test", "-p", "sledge-schedule", "--release", "--locked", "--test", "simulation", "--", "--nocapture"]);
    let output = simulation.current_dir(checkout::root()).env("SEEDS", "5000").env_remove("REPLAY").output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success(), "the simulation failed:\n{text}");
    let rate = text.lines().find_map(|line| line.strip_suffix(" seeds a second")?.rsplit(' ').next());
    rate.and_then(|rate| rate.parse().ok()).with_context(|| format!("no rate in:\n{text}"))
}
