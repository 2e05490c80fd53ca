//! The group `compile`: how fast `awsm compile` is on a large module, and how much memory it takes.
//!
//! The module is stock Go's (`tests/long/large-modules/go`), 3.5 MB, most of it the standard library.

use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::Bench;
use crate::checkout;

/// Between looks at how much memory the compiler has had at its peak so far.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);

/// What compiling the module at one level took.
#[derive(Clone, Copy, Debug)]
struct Cost {
    mb_per_s: f64,
    peak_mb: f64,
}

/// At the levels that are promised about.
#[derive(Clone, Copy, Debug)]
pub(super) struct Costs {
    o3: Cost,
    o1: Cost,
}

/// Builds the module, and compiles it at both levels.
pub(super) fn measured(bench: &Bench) -> Result<Costs> {
    let module = bench.folder.path().join("go.wasm");
    let mut go = Command::new("go");
    go.args(["build", "-o"]).arg(&module).arg(".").current_dir(checkout::root().join("tests/long/large-modules/go"));
    let status = go.env("GOOS", "wasip1").env("GOARCH", "wasm").status().context("cannot run go, which makes the module")?;
    ensure!(status.success(), "go build failed ({status})");
    let cost = |level: &str| -> Result<Cost> {
        let mut awsm = Command::new(checkout::program("awsm")?);
        awsm.args(["compile", "--quiet", "--no-cache", "-O", level])
            .arg(&module)
            .arg("-o")
            .arg(module.with_extension("so"))
            .stdin(Stdio::null());
        let start = Instant::now();
        let peak_kb = peak_kb(awsm)?;
        let elapsed = start.elapsed();
        let bytes = fs::metadata(&module).context("the module")?.len();
        Ok(Cost { mb_per_s: bytes as f64 / 1e6 / elapsed.as_secs_f64(), peak_mb: peak_kb as f64 * 1024.0 / 1e6 })
    };
    Ok(Costs { o3: cost("3")?, o1: cost("1")? })
}

/// Runs `awsm compile`; the most memory that one of its processes which generate code had.
pub(super) fn peak_kb(mut awsm: Command) -> Result<u64> {
    let mut child = awsm.spawn().context("cannot run awsm")?;
    let mut peak_kb = 0;
    let status = loop {
        match child.try_wait().context("cannot wait for awsm")? {
            Some(status) => break status,
            None => peak_kb = peak_kb.max(peak_of_children_kb(child.id())),
        }
        thread::sleep(LOOK_INTERVAL);
    };
    ensure!(status.success() && peak_kb > 0, "awsm compile failed ({status})");
    Ok(peak_kb)
}

/// The most memory that a process which generates code has had so far; what proc(5) calls `VmHWM`.
fn peak_of_children_kb(awsm: u32) -> u64 {
    let children = fs::read_to_string(format!("/proc/{awsm}/task/{awsm}/children")).unwrap_or_default();
    let peak = |pid: &str| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse().ok())
    };
    children.split_whitespace().filter_map(peak).max().unwrap_or(0)
}

/// Speed at `-O 3`.
pub(super) fn o3_mb_per_s(bench: &mut Bench) -> Result<f64> {
    Ok(bench.compile()?.o3.mb_per_s)
}

/// Speed at `-O 1`.
pub(super) fn o1_mb_per_s(bench: &mut Bench) -> Result<f64> {
    Ok(bench.compile()?.o1.mb_per_s)
}

/// Memory at `-O 3`.
pub(super) fn o3_peak_mb(bench: &mut Bench) -> Result<f64> {
    Ok(bench.compile()?.o3.peak_mb)
}

/// Memory at `-O 1`.
pub(super) fn o1_peak_mb(bench: &mut Bench) -> Result<f64> {
    Ok(bench.compile()?.o1.peak_mb)
}
