//! The group `cores`, images that are shared: what sandboxes of a reactor cost that has initialised 32 MiB.

use std::fs;
use std::thread;

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use rustix::time::{ClockId, clock_gettime};

use super::Bench;
use crate::warm::{self, Warm};
use crate::{checkout, compiler};

/// Sandboxes at the same time.
const SANDBOXES: usize = 48;
/// What the function initialises, in bytes.
const IMAGE_BYTES: usize = 32 << 20;
/// Turns, of which the median counts.
const TURNS: usize = 5;

/// Private memory of 48 sandboxes that each run a request, to 48 copies of the image.
pub(super) fn private_ratio(bench: &mut Bench) -> Result<f64> {
    measured(bench, |warm| {
        let before = private_bytes()?;
        let held = (0..SANDBOXES)
            .map(|_| {
                let sandbox = warm.sandbox()?;
                let (ended, sandbox) = warm.run(sandbox, &Bytes::new())?;
                ensure!(ended.outcome.is_ok(), "the request came to {ended:?}");
                Ok(sandbox)
            })
            .collect::<Result<Vec<_>>>()?;
        let private = private_bytes()?.saturating_sub(before);
        drop(held);
        Ok(private as f64 / (SANDBOXES * IMAGE_BYTES) as f64)
    })
}

/// Processor time of a new sandbox, once a request has run in another one.
pub(super) fn new_sandbox_us(bench: &mut Bench) -> Result<f64> {
    measured(bench, |warm| {
        let before = processor_us();
        let held = (0..SANDBOXES).map(|_| warm.sandbox()).collect::<Result<Vec<_>>>()?;
        let each = (processor_us() - before) / SANDBOXES as f64;
        drop(held);
        Ok(each)
    })
}

/// The median of some turns on a thread of its own, with a function of which two requests have run.
fn measured(bench: &Bench, turn: fn(&mut Warm) -> Result<f64>) -> Result<f64> {
    let artifact = bench.folder.path().join("reactor-32m.so");
    compiler::compile(&checkout::root().join("benches/functions/reactor-32m.wat"), &artifact)?;
    let measure = move || -> Result<f64> {
        let _worker = warm::worker()?;
        let mut warm = Warm::new(&artifact)?;
        for request in 0..2 {
            let ended = warm.request(&Bytes::new())?;
            ensure!(ended.outcome.is_ok(), "request {request} came to {ended:?}");
        }
        // Each turn begins with the sandbox that has learned, which would be none of the new ones.
        let learned = warm.sandbox()?;
        let mut turns = (0..TURNS).map(|_| turn(&mut warm)).collect::<Result<Vec<_>>>()?;
        drop(learned);
        turns.sort_by(f64::total_cmp);
        turns.get(TURNS / 2).copied().context("a turn")
    };
    // A worker's thread has signal handling of its own.
    thread::spawn(measure).join().ok().context("the measurement panicked")?
}

/// Private memory of this process.
fn private_bytes() -> Result<usize> {
    let text = fs::read_to_string("/proc/self/smaps_rollup")?;
    let lines = text.lines().filter(|line| line.starts_with("Private_"));
    lines
        .map(|line| {
            let kb = line.split_whitespace().nth(1).context("a line of smaps_rollup without a number")?;
            Ok(kb.parse::<usize>()? << 10)
        })
        .sum()
}

fn processor_us() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3
}
