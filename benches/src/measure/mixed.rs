//! The group `sharing`, by the suite of MXFaaS: everything on beside the paper's baseline, beside the cores' ceiling, and a function that waits beside one that
//! computes.

use anyhow::{Context, Result};

use super::Bench;
use crate::sharing::column::Column;
use crate::sharing::report::Report;
use crate::sharing::{self, Others, Settings};
use crate::workload::Cores;

/// What the suite came to.
#[derive(Debug)]
pub(super) struct Mixed(Report);

pub(super) fn measured(bench: &Bench) -> Result<Mixed> {
    let settings = Settings {
        columns: vec![Column::Sledge],
        turns: 2,
        others: Others { throughput: true, hogs: true, memory: true, ..Others::NONE },
        ..Settings::short(Cores::halved()?.workers())
    };
    let report = sharing::run(&settings, bench.folder.path())?;
    eprint!("{}", report.table());
    Ok(Mixed(report))
}

/// The mean latency of the baseline to ours.
pub(super) fn mean_ratio(bench: &mut Bench) -> Result<f64> {
    Ok(bench.mixed()?.0.gain("nightcore").mean)
}

/// The same with the 99th percentile.
pub(super) fn p99_ratio(bench: &mut Bench) -> Result<f64> {
    Ok(bench.mixed()?.0.gain("nightcore").p99)
}

/// Our highest rate with a mean of at most twice the unloaded one, to the baseline's.
pub(super) fn throughput_ratio(bench: &mut Bench) -> Result<f64> {
    Ok(bench.mixed()?.0.gain("nightcore").throughput)
}

/// Memory with images of their own to that with a shared one.
pub(super) fn memory_ratio(bench: &mut Bench) -> Result<f64> {
    Ok(bench.mixed()?.0.memory())
}

/// What the program that comes least near to its ceiling has of it.
pub(super) fn ceiling_ratio(bench: &mut Bench) -> Result<f64> {
    Ok(bench.mixed()?.0.ceiling())
}

/// The 99th percentile of a function that waits beside one that computes, without the order to with it.
pub(super) fn hogs_ratio(bench: &mut Bench) -> Result<f64> {
    Ok(bench.mixed()?.0.hogs.as_ref().context("it was measured")?.gain())
}
