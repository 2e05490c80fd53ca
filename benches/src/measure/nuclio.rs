//! The group `cores`, beside Nuclio: the Sledge paper's Figures 6 to 8 (section 5.2), which compare with its shell runtime. `make bench-peers` measures
//! the same by the same code.

use std::time::Duration;

use anyhow::{Context as _, Error, Result};

use super::Bench;
use crate::peers::nuclio;
use crate::peers::peer::Peer;
use crate::peers::plan::Plan;
use crate::peers::report::Report;
use crate::peers::session;

/// What the paper asks for; fibonacci is not among it.
const FUNCTIONS: [&str; 7] = ["ping", "echo", "gps-ekf", "ocr", "image-classify", "image-resize", "plate-detect"];
const TURNS: usize = 3;
/// How long each turn is at least.
const TIME: Duration = Duration::from_millis(1_500);

/// Figure 6: a ping at any number of clients.
pub(super) fn ping(bench: &mut Bench) -> Result<f64> {
    least(bench, &["ping-1", "ping-10", "ping-50", "ping"])
}

/// Figure 7: small bodies.
pub(super) fn echo_small(bench: &mut Bench) -> Result<f64> {
    least(bench, &["echo-1k", "echo"])
}

/// Figure 7: the largest body.
pub(super) fn echo_1m(bench: &mut Bench) -> Result<f64> {
    least(bench, &["echo-1m"])
}

/// Figure 8: the Kalman filter.
pub(super) fn gps_ekf(bench: &mut Bench) -> Result<f64> {
    least(bench, &["gps-ekf"])
}

/// Figure 8: printed text.
pub(super) fn ocr(bench: &mut Bench) -> Result<f64> {
    least(bench, &["ocr"])
}

/// Figure 8: CIFAR10.
pub(super) fn image_classify(bench: &mut Bench) -> Result<f64> {
    least(bench, &["image-classify"])
}

/// Figure 8: RESIZE.
pub(super) fn image_resize(bench: &mut Bench) -> Result<f64> {
    least(bench, &["image-resize"])
}

/// Figure 8: LPD.
pub(super) fn plate_detect(bench: &mut Bench) -> Result<f64> {
    least(bench, &["plate-detect"])
}

/// The least ratio of throughput of these.
fn least(bench: &mut Bench, scenarios: &[&str]) -> Result<f64> {
    let report = bench.nuclio()?;
    let peer = Peer::Nuclio.name();
    let ratio = |scenario: &&str| {
        let said = || report.lines.iter().filter(|line| line.scenario == **scenario).map(ToString::to_string).collect::<Vec<_>>();
        report.throughput(scenario, peer).with_context(|| said().join("; "))
    };
    let ratios = scenarios.iter().map(ratio).collect::<Result<Vec<_>>>()?;
    Ok(ratios.into_iter().fold(f64::INFINITY, f64::min))
}

/// Everything that is asked for above.
pub(super) fn measured() -> Result<Report> {
    // Otherwise minutes would pass before it is said that there is no peer.
    nuclio::program().map_err(Error::msg)?;
    let functions = FUNCTIONS.map(str::to_owned);
    let report = session::measure(&Plan::new(&[Peer::Nuclio.name().to_owned()], &functions, TURNS, TIME)?)?;
    eprintln!("{}", report.tables());
    Ok(report)
}
