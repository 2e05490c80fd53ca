//! The group `speculation`, by the suites of SpecFaaS: each level of speculation beside the same server without it, and beside what would be possible at best.

use anyhow::{Result, ensure};

use super::Bench;
use crate::speculation::program::Suite;
use crate::speculation::report::Report;
use crate::speculation::{self, Settings};
use crate::workload::Cores;

/// The columns in which no function is left out, of workflows and of functions that call each other, and in which those are whose answers are known.
const STALLS: &str = "stalls";
const SKIPS: &str = "skips";
const CALLS: &str = "calls";
/// Functions in a row with which workflows are long.
const LONG: usize = 7;

/// What the suites came to; or why they could not be measured, which holds for all rows.
#[derive(Debug)]
pub(super) struct Speculated(Result<Report, String>);

pub(super) fn measured(bench: &Bench) -> Result<Speculated> {
    let settings = Settings::promised(Cores::halved()?.workers());
    let folder = tempfile::tempdir_in(bench.folder.path())?;
    let report = speculation::run(&settings, folder.path());
    if let Ok(report) = &report {
        eprint!("{}", report.table());
    }
    Ok(Speculated(report.map_err(|error| format!("{error:#}"))))
}

/// A number of the report; one that is none was not measured.
fn number(bench: &mut Bench, of: impl FnOnce(&Report) -> f64) -> Result<f64> {
    let report = bench.speculated()?.0.as_ref().map_err(|error| anyhow::anyhow!("{error}"))?;
    let number = of(report);
    ensure!(number.is_finite(), "no column has such a number");
    Ok(number)
}

/// The mean speed-up of one client, functions left out whose answers are known.
pub(super) fn faaschain_ratio(bench: &mut Bench) -> Result<f64> {
    number(bench, |report| report.speed_up(Suite::FaasChain, SKIPS))
}

/// The same of functions that call each other.
pub(super) fn trainticket_ratio(bench: &mut Bench) -> Result<f64> {
    number(bench, |report| report.speed_up(Suite::TrainTicket, SKIPS))
}

/// The same of graphs.
pub(super) fn alibaba_ratio(bench: &mut Bench) -> Result<f64> {
    number(bench, |report| report.speed_up(Suite::Alibaba, SKIPS))
}

/// What the workflow that comes least near to its ceiling has of it, no function left out.
pub(super) fn ceiling_ratio(bench: &mut Bench) -> Result<f64> {
    number(bench, |report| report.share_min(STALLS))
}

/// The same of functions that call each other.
pub(super) fn calls_ceiling_ratio(bench: &mut Bench) -> Result<f64> {
    number(bench, |report| report.share_min(CALLS))
}

/// The least speed-up of long workflows, no function left out.
pub(super) fn seven_functions_ratio(bench: &mut Bench) -> Result<f64> {
    number(bench, |report| report.long_min(STALLS, LONG))
}

/// The highest rate with a mean of at most twice what one client sees without speculation, to that rate without it.
pub(super) fn throughput_ratio(bench: &mut Bench) -> Result<f64> {
    number(bench, |report| report.throughput(Suite::FaasChain, SKIPS))
}

/// The same, no function left out.
pub(super) fn throughput_stalls_ratio(bench: &mut Bench) -> Result<f64> {
    number(bench, |report| report.throughput(Suite::FaasChain, STALLS))
}

/// By how much the 99th percentile is lower at the highest load.
pub(super) fn p99_percent(bench: &mut Bench) -> Result<f64> {
    number(bench, |report| report.p99_percent(Suite::FaasChain, SKIPS))
}

/// How much longer functions run than without speculation.
pub(super) fn wasted_90_percent(bench: &mut Bench) -> Result<f64> {
    number(bench, |report| report.wasted_percent(STALLS, 90))
}

/// The same at another hit rate.
pub(super) fn wasted_70_percent(bench: &mut Bench) -> Result<f64> {
    number(bench, |report| report.wasted_percent(STALLS, 70))
}

/// The same at another hit rate.
pub(super) fn wasted_50_percent(bench: &mut Bench) -> Result<f64> {
    number(bench, |report| report.wasted_percent(STALLS, 50))
}

/// How much longer one client waits where there is nothing to gain.
pub(super) fn near_ratio(bench: &mut Bench) -> Result<f64> {
    number(bench, Report::near_max)
}

/// What is done where the cores are busy, to that without speculation.
pub(super) fn saturated_ratio(bench: &mut Bench) -> Result<f64> {
    number(bench, Report::saturated_min)
}

/// How much longer clients wait whose inputs are made to do harm.
pub(super) fn poison_ratio(bench: &mut Bench) -> Result<f64> {
    number(bench, Report::poison_max)
}

/// By how much more memory they make the server grow.
pub(super) fn poison_mb(bench: &mut Bench) -> Result<f64> {
    number(bench, Report::poison_mb)
}

/// How many means a model predicts.
pub(super) fn simulated_within_percent(bench: &mut Bench) -> Result<f64> {
    number(bench, Report::within_percent)
}

/// The 99th percentiles, to those of the model.
pub(super) fn p99_simulated_ratio(bench: &mut Bench) -> Result<f64> {
    number(bench, Report::p99_ratio)
}
