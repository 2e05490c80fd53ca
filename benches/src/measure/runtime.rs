//! The group `runtime`, requests: `sledge` beside the same HTTP server with handlers compiled in (`bin/native.rs`).
//!
//! Both servers have one core, the first that there is; the load comes from the second. What is compared is measured in turns of a few
//! seconds, and the median of the turns' ratios counts.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};

use super::Bench;
use crate::load::{self, Load, Outcome};
use crate::native::Native;
use crate::server::Server;
use crate::{checkout, compiler, cores};

/// Turns of each server.
const TURNS: usize = 5;
const WARM_UP: Duration = Duration::from_millis(300);
const TIME: Duration = Duration::from_millis(1_500);
/// Turns of isolation: each measures both functions alone and together.
const ISOLATION_TURNS: usize = 3;
/// Both isolation and overload need longer: what is measured takes 30 ms.
const TIME_LONG: Duration = Duration::from_secs(6);
/// How long the function takes that is to leave others alone.
const WORK_US: f64 = 30_000.0;
/// How long the function takes that there are too many requests for.
const OVERLOAD_WORK_US: f64 = 2_000.0;

/// Both servers, and what was measured already.
#[derive(Debug)]
pub(super) struct Runtime {
    native: Native,
    sledge: Server,
    /// Rounds of work.wat in a microsecond.
    rounds_per_us: f64,
    known: HashMap<&'static str, f64>,
}

impl Runtime {
    /// Starts both servers on one core, and goes to another.
    pub(super) fn start(folder: &Path) -> Result<Runtime> {
        let [server_core, load_core] = cores::two()?;
        let mut config = "listen = \"127.0.0.1:0\"\nworkers = 1\n".to_owned();
        let limited = "concurrency_max = 4\nqueue_max = 16\n";
        for (name, file, more) in [
            ("ping", "ping.wat", ""),
            ("ping-command", "ping-command.c", ""),
            ("echo", "echo.wat", ""),
            ("work", "work.wat", ""),
            ("limited", "work.wat", limited),
        ] {
            let artifact = folder.join(format!("{name}.so"));
            compiler::compile(&checkout::root().join("benches/functions").join(file), &artifact)?;
            let path = toml::Value::String(artifact.display().to_string());
            config.push_str(&format!("\n[[functions]]\nname = \"{name}\"\npath = {path}\n{more}"));
        }
        cores::pin(server_core)?;
        let sledge = Server::start_config(folder, &config)?;
        let native = Native::start(&[])?;
        cores::pin(load_core)?;
        let mut runtime = Runtime { native, sledge, rounds_per_us: 0.0, known: HashMap::new() };
        let rounds = 20_000_000_u64;
        let once = Load::new(1, "/work", rounds.to_le_bytes().to_vec(), 1);
        let median = load::run(runtime.sledge.address(), &[once], WARM_UP, TIME)?[0].median_us();
        runtime.rounds_per_us = rounds as f64 / median;
        Ok(runtime)
    }

    fn work(&self, clients: usize, path: &'static str, micros: f64) -> Load {
        let rounds = (micros * self.rounds_per_us) as u64;
        Load::new(clients, path, rounds.to_le_bytes().to_vec(), 1)
    }

    fn sledge(&self, loads: &[Load], time: Duration) -> Result<Vec<Outcome>> {
        load::run(self.sledge.address(), loads, WARM_UP, time)
    }

    /// The median of what `number` makes of the outcomes, native first, of turns.
    fn compare(&self, load: &Load, number: impl Fn(&Outcome, &Outcome) -> f64) -> Result<f64> {
        let mut numbers = Vec::new();
        for _ in 0..TURNS {
            let native = load::run(self.native.address(), std::slice::from_ref(load), WARM_UP, TIME)?;
            let sledge = self.sledge(std::slice::from_ref(load), TIME)?;
            numbers.push(number(&native[0], &sledge[0]));
        }
        numbers.sort_by(f64::total_cmp);
        Ok(numbers[TURNS / 2])
    }
}

fn throughput(native: &Outcome, sledge: &Outcome) -> f64 {
    sledge.per_second / native.per_second
}

fn ping(clients: usize) -> Load {
    Load::new(clients, "/ping", Vec::new(), 1)
}

fn echo(bench: &mut Bench, bytes: usize) -> Result<f64> {
    bench.runtime()?.compare(&Load::new(100, "/echo", vec![b'e'; bytes], bytes), throughput)
}

/// Throughput of ping at 10 connections.
pub(super) fn ping_10(bench: &mut Bench) -> Result<f64> {
    bench.runtime()?.compare(&ping(10), throughput)
}

/// The same at 100; a libc command's is printed beside it.
pub(super) fn ping_100(bench: &mut Bench) -> Result<f64> {
    let runtime = bench.runtime()?;
    let command = runtime.sledge(&[Load::new(100, "/ping-command", Vec::new(), 1)], TIME)?[0].per_second;
    let reactor = runtime.sledge(&[ping(100)], TIME)?[0].per_second;
    eprintln!("ping: {reactor:.0} a second as a reactor, {command:.0} as a libc command");
    runtime.compare(&ping(100), throughput)
}

/// The 99th percentile of ping at 10 connections.
pub(super) fn ping_10_p99(bench: &mut Bench) -> Result<f64> {
    bench.runtime()?.compare(&ping(10), |native, sledge| sledge.p99_us() / native.p99_us())
}

/// The same at 100.
pub(super) fn ping_100_p99(bench: &mut Bench) -> Result<f64> {
    bench.runtime()?.compare(&ping(100), |native, sledge| sledge.p99_us() / native.p99_us())
}

/// Throughput of ping with a connection for each request.
pub(super) fn ping_reconnect(bench: &mut Bench) -> Result<f64> {
    bench.runtime()?.compare(&Load { reconnect: true, ..ping(10) }, throughput)
}

/// What one client waits longer for, in the median.
pub(super) fn ping_1_more_us(bench: &mut Bench) -> Result<f64> {
    bench.runtime()?.compare(&ping(1), |native, sledge| sledge.median_us() - native.median_us())
}

/// Throughput of echo.
pub(super) fn echo_1k(bench: &mut Bench) -> Result<f64> {
    echo(bench, 1_000)
}

/// The same.
pub(super) fn echo_10k(bench: &mut Bench) -> Result<f64> {
    echo(bench, 10_000)
}

/// The same.
pub(super) fn echo_100k(bench: &mut Bench) -> Result<f64> {
    echo(bench, 100_000)
}

/// The same.
pub(super) fn echo_1m(bench: &mut Bench) -> Result<f64> {
    echo(bench, 1_000_000)
}

/// Ten clients of ping beside twenty of a function of 30 ms: one run, several numbers.
fn isolation(bench: &mut Bench, name: &'static str) -> Result<f64> {
    let runtime = bench.runtime()?;
    if !runtime.known.contains_key(name) {
        let work = runtime.work(20, "/work", WORK_US);
        let time_of_all = Duration::from_micros((20.0 * WORK_US) as u64);
        let mut turns = Vec::new();
        for _ in 0..ISOLATION_TURNS {
            let address = runtime.sledge.address();
            let ping_alone = &load::run(address, &[ping(10)], WARM_UP, TIME_LONG / 2)?[0];
            // Each of the long ones shares the processor with the others, and in the second run half of it with ping.
            let warm_up = 2 * time_of_all;
            let alone = Load { stagger: time_of_all, ..work.clone() };
            let work_alone = &load::run(address, &[alone], warm_up, TIME_LONG)?[0];
            let beside = Load { stagger: 2 * time_of_all, ..work.clone() };
            let both = load::run(address, &[ping(10), beside], 2 * warm_up, TIME_LONG)?;
            let (ping_part, work_part) = (both[0].per_second / ping_alone.per_second, both[1].per_second / work_alone.per_second);
            let (p50, p99) = (both[0].median_us() / 1e3, both[0].p99_us() / 1e3);
            eprintln!(
                "isolation: ping keeps {ping_part:.3} of {:.0} a second, the long function {work_part:.3} of {:.1}; ping p50 {p50:.3} ms, p99 {p99:.3} ms",
                ping_alone.per_second, work_alone.per_second
            );
            turns.push([p50, p99, work_part, ping_part + work_part]);
        }
        for (index, name) in ["p50", "p99", "work", "sum"].into_iter().enumerate() {
            let mut numbers: Vec<f64> = turns.iter().map(|turn| turn[index]).collect();
            numbers.sort_by(f64::total_cmp);
            runtime.known.insert(name, numbers[ISOLATION_TURNS / 2]);
        }
    }
    runtime.known.get(name).copied().context("it was just measured")
}

/// Ping beside the long function, in the median.
pub(super) fn isolation_p50_ms(bench: &mut Bench) -> Result<f64> {
    isolation(bench, "p50")
}

/// The 99th percentile.
pub(super) fn isolation_p99_ms(bench: &mut Bench) -> Result<f64> {
    isolation(bench, "p99")
}

/// What the long function keeps of its throughput.
pub(super) fn isolation_long(bench: &mut Bench) -> Result<f64> {
    isolation(bench, "work")
}

/// What both together keep.
pub(super) fn isolation_sum(bench: &mut Bench) -> Result<f64> {
    isolation(bench, "sum")
}

/// Good replies at three times the load that can be carried, over those at the peak.
pub(super) fn overload(bench: &mut Bench) -> Result<f64> {
    let runtime = bench.runtime()?;
    let load = runtime.work(4, "/limited", OVERLOAD_WORK_US);
    let peak = runtime.sledge(std::slice::from_ref(&load), TIME_LONG)?[0].per_second;
    const CLIENTS: usize = 200;
    let load = Load { clients: CLIENTS, rate: Some(3.0 * peak), may_be_refused: true, ..load };
    let outcome = &runtime.sledge(&[load], TIME_LONG)?[0];
    let offered = outcome.per_second + outcome.refused as f64 / TIME_LONG.as_secs_f64();
    eprintln!("overload: {offered:.0} requests a second offered, {:.0} answered; the peak is {peak:.0}", outcome.per_second);
    Ok(outcome.per_second / peak)
}
