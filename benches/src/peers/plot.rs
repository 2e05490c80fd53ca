//! The throughput ratios as a picture: for each function a point for each peer, and a line where both answer as much.

use anyhow::Result;

use super::plan::Plan;
use super::report::Report;
use crate::plot::Plot;

/// Writes `peers.svg` and `peers.png`, if there is a font and anything was compared.
///
/// # Errors
///
/// If one of them cannot be drawn or written.
pub fn write(report: &Report, plan: &Plan) -> Result<()> {
    let scenarios = report.scenarios();
    let mut series = Vec::new();
    for peer in report.peers() {
        let ratios: Vec<_> = scenarios.iter().map(|scenario| report.throughput(scenario, peer.name())).collect();
        if ratios.iter().any(Option::is_some) {
            series.push((peer.name().to_owned(), ratios));
        }
    }
    if series.is_empty() {
        eprintln!("no plot, since nothing could be compared");
        return Ok(());
    }
    let plot = Plot {
        caption: "sledge's replies a second by those of its peers: above 1 sledge answers more".to_owned(),
        names: scenarios.iter().map(|name| (*name).to_owned()).collect(),
        series,
        lines: vec![(1.0, 0.8)],
    };
    plot.write(&plan.folder.join("peers"))
}
