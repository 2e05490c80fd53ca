//! The group `runtime`, in process: what a fresh sandbox costs when everything is warm.

use std::path::Path;
use std::thread;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;

use super::Bench;
use crate::latency::Latencies;
use crate::phases;
use crate::warm::{self, Warm};
use crate::{checkout, compiler};

/// Requests that are timed, and those before them that are not.
const REQUESTS: usize = 50_000;
const WARM_UP: usize = 2_000;

const HELLO: &[u8] = b"Hello, world! 7\n";

/// A sandbox, an empty function, the reset.
pub(super) fn empty_median_us(bench: &mut Bench) -> Result<f64> {
    Ok(warm(bench, "empty.wat", b"")?.median().as_secs_f64() * 1e6)
}

/// The same at the 99th percentile.
pub(super) fn empty_p99_us(bench: &mut Bench) -> Result<f64> {
    Ok(warm(bench, "empty.wat", b"")?.p99().as_secs_f64() * 1e6)
}

/// A sandbox, a libc command with 200 KB of data, the reset.
pub(super) fn hello_median_us(bench: &mut Bench) -> Result<f64> {
    Ok(warm(bench, "hello.c", HELLO)?.median().as_secs_f64() * 1e6)
}

/// The same at the 99th percentile.
pub(super) fn hello_p99_us(bench: &mut Bench) -> Result<f64> {
    Ok(warm(bench, "hello.c", HELLO)?.p99().as_secs_f64() * 1e6)
}

/// Times requests from taking a sandbox to having reset it, on one pinned core.
fn warm(bench: &Bench, file: &str, expected: &'static [u8]) -> Result<Latencies> {
    let artifact = bench.folder.path().join(file).with_extension("so");
    compiler::compile(&checkout::root().join("benches/functions").join(file), &artifact)?;
    // A worker's thread has signal handling of its own.
    let measured = thread::spawn(move || measure(&artifact, expected)).join();
    measured.ok().context("the measurement panicked")?
}

fn measure(artifact: &Path, expected: &[u8]) -> Result<Latencies> {
    let _worker = warm::worker()?;
    let mut warm = Warm::new(artifact)?;
    let body = Bytes::new();
    let mut times = Vec::with_capacity(REQUESTS);
    for request in 0..WARM_UP + REQUESTS {
        let start = Instant::now();
        let ended = warm.request(&body)?;
        let time = start.elapsed();
        ensure!(ended.outcome.is_ok() && ended.reply == expected, "request {request} came to {ended:?}");
        if request >= WARM_UP {
            times.push(time);
        }
    }
    Ok(times.into_iter().collect())
}

/// Suspending a guest by a signal and resuming it, against a signal that suspends nothing: two of criterion's phases.
pub(super) fn preemption_ratio(_: &mut Bench) -> Result<f64> {
    let phases = phases::measure("costs", &["preemption/signal"])?;
    let median = |name: &str| {
        let phase =
            phases.iter().find(|phase| phase.name == name).with_context(|| format!("criterion did not measure {name}"))?;
        phase.each_ns().map(|each| each.median).with_context(|| format!("{name} has no samples"))
    };
    Ok(median("preemption/signal, suspension, resumption")? / median("preemption/signal that suspends nothing")?)
}
