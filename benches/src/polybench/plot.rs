//! The ratios as a picture: for each kernel a point for each variant, and lines where native code is.

use anyhow::Result;

use super::plan::Plan;
use super::summary::{Summary, WITHIN};
use super::variant::Variant;
use crate::plot::Plot;

/// Writes `...ratios.svg` and `...ratios.png`, if there is a font.
///
/// # Errors
///
/// If one of them cannot be drawn or written.
pub fn write(summary: &Summary, plan: &Plan) -> Result<()> {
    let mut series = Vec::new();
    for variant in summary.variants.iter().copied().filter(|variant| *variant != Variant::Native) {
        let mean = summary.over(variant, Variant::Native)?.geometric;
        let ratios = summary.ratios(variant, Variant::Native)?;
        series.push((format!("{variant}: {mean:.3}"), ratios.into_iter().map(Some).collect()));
    }
    let plot = Plot {
        caption: format!("PolyBench {}: time relative to clang -O3", plan.dataset),
        names: summary.kernels().map(str::to_owned).collect(),
        series,
        lines: vec![(1.0, 0.8), (WITHIN, 0.3)],
    };
    plot.write(&plan.file("ratios"))
}
