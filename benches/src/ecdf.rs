//! Distributions beside each other: which share of the measurements took at most so long. As SVG and as PNG.

use std::error::Error;
use std::path::Path;

use anyhow::Result;
use plotters::coord::Shift;
use plotters::prelude::*;

use crate::plot::{self, Draw, TEXT};

/// Room to both sides of the measurements, as a part of their range.
const MARGIN: f64 = 0.04;
/// The least range, as a part of the largest measurement: two that are nearly alike should look so.
const RANGE_MIN: f64 = 0.02;

/// One picture: panels beside each other, with the same series in each.
#[derive(Debug)]
pub struct Ecdf {
    /// What stands above all.
    pub caption: String,
    /// The panels.
    pub panels: Vec<Panel>,
}

/// One of them.
#[derive(Debug)]
pub struct Panel {
    /// What is measured, with its unit.
    pub caption: String,
    /// Labels, and what was measured.
    pub series: Vec<(String, Vec<f64>)>,
    /// Bounds: labels, and where they are.
    pub lines: Vec<(String, f64)>,
}

impl Ecdf {
    /// Writes `path` with the endings `.svg` and `.png`, if there is a font.
    ///
    /// # Errors
    ///
    /// If one of them cannot be drawn or written.
    pub fn write(&self, path: &Path) -> Result<()> {
        plot::write(self, path)
    }
}

impl Panel {
    fn range(&self) -> Option<(f64, f64)> {
        let lines = self.lines.iter().map(|(_, at)| *at);
        let all: Vec<f64> = self.series.iter().flat_map(|(_, all)| all.iter().copied()).chain(lines).collect();
        let (low, high) = (all.iter().copied().reduce(f64::min)?, all.iter().copied().reduce(f64::max)?);
        let margin = (high - low).max(high * RANGE_MIN) * MARGIN;
        Some((low - margin, high + margin))
    }
}

/// The corners of the steps: a share for each measurement, in order.
fn steps(measured: &[f64]) -> Vec<(f64, f64)> {
    let mut sorted = measured.to_vec();
    sorted.sort_by(f64::total_cmp);
    let share = |count: usize| count as f64 / sorted.len() as f64;
    sorted.iter().enumerate().flat_map(|(index, at)| [(*at, share(index)), (*at, share(index + 1))]).collect()
}

impl Draw for Ecdf {
    fn draw<B>(&self, area: &DrawingArea<B, Shift>) -> Result<(), Box<dyn Error>>
    where
        B: DrawingBackend,
        B::ErrorType: 'static,
    {
        area.fill(&WHITE)?;
        let area = area.titled(&self.caption, ("sans-serif", 22))?;
        let columns = self.panels.len().min(3);
        let parts = area.split_evenly((self.panels.len().div_ceil(columns.max(1)), columns));
        for (panel, part) in self.panels.iter().zip(parts) {
            let Some((low, high)) = panel.range() else { continue };
            let mut chart = ChartBuilder::on(&part)
                .caption(&panel.caption, ("sans-serif", 16))
                .margin(12)
                .x_label_area_size(30)
                .y_label_area_size(45)
                .build_cartesian_2d(low..high, 0.0..1.0)?;
            let digits = if high - low < 0.1 {
                3
            } else if high - low < 10.0 {
                2
            } else {
                0
            };
            let label = |value: &f64| format!("{value:.digits$}");
            chart.configure_mesh().light_line_style(WHITE).x_labels(6).x_label_formatter(&label).label_style(TEXT).draw()?;
            for (label, at) in &panel.lines {
                let style = BLACK.mix(0.5);
                let line = chart.draw_series([PathElement::new([(*at, 0.0), (*at, 1.0)], style)])?;
                line.label(label).legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], style));
            }
            for (index, (label, measured)) in panel.series.iter().enumerate() {
                let style = Palette99::pick(index).stroke_width(2);
                let line = chart.draw_series([PathElement::new(steps(measured), style)])?;
                line.label(label).legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], style));
            }
            chart
                .configure_series_labels()
                .position(SeriesLabelPosition::LowerRight)
                .background_style(WHITE.mix(0.85))
                .border_style(BLACK.mix(0.3))
                .label_font(TEXT)
                .draw()?;
        }
        area.present()?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_rise_at_each_measurement() {
        assert_eq!(steps(&[3.0, 1.0]), [(1.0, 0.0), (1.0, 0.5), (3.0, 0.5), (3.0, 1.0)]);
        assert!(steps(&[]).is_empty());
    }

    #[test]
    fn a_picture_is_written_twice() {
        let folder = tempfile::tempdir().unwrap();
        let series = vec![("a".to_owned(), vec![1.0, 2.0]), ("b".to_owned(), vec![1.5])];
        let panel =
            |caption: &str| Panel { caption: caption.to_owned(), series: series.clone(), lines: vec![("bound".to_owned(), 1.2)] };
        let plot = Ecdf { caption: "c".to_owned(), panels: vec![panel("one, s"), panel("two, s")] };
        plot.write(&folder.path().join("plot.x")).unwrap();
        for file in ["plot.x.svg", "plot.x.png"] {
            assert!(std::fs::metadata(folder.path().join(file)).unwrap().len() > 1_000, "{file}");
        }
    }
}
