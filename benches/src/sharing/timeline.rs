//! Shares over time, as SVG and as PNG.

use std::error::Error;

use plotters::coord::Shift;
use plotters::prelude::*;

use super::others::Utilisation;
use super::watch::EVERY;
use crate::plot::{Draw, TEXT};

/// Lines of all programs and columns.
pub struct Timeline<'a>(pub &'a [Utilisation]);

impl Draw for Timeline<'_> {
    fn draw<B>(&self, area: &DrawingArea<B, Shift>) -> Result<(), Box<dyn Error>>
    where
        B: DrawingBackend,
        B::ErrorType: 'static,
    {
        let longest = self.0.iter().map(|one| one.shares.len()).max().filter(|longest| *longest > 0).ok_or("nothing to draw")?;
        area.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(area)
            .caption("Utilisation of the server's cores over time", ("sans-serif", 22))
            .margin(12)
            .x_label_area_size(45)
            .y_label_area_size(70)
            .build_cartesian_2d(0.0..longest as f64 * EVERY.as_secs_f64(), 0.0..1.3)?;
        chart.configure_mesh().x_desc("seconds").y_desc("share of the cores").label_style(TEXT).draw()?;
        for (index, one) in self.0.iter().enumerate() {
            let colour = Palette99::pick(index).to_rgba();
            let points: Vec<_> =
                one.shares.iter().enumerate().map(|(at, share)| (at as f64 * EVERY.as_secs_f64(), *share)).collect();
            chart
                .draw_series([PathElement::new(points, colour.stroke_width(2))])?
                .label(format!("{}, {}", one.program, one.column))
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2)));
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperRight)
            .background_style(WHITE.mix(0.85))
            .border_style(BLACK.mix(0.3))
            .label_font(TEXT)
            .draw()?;
        area.present()?;
        Ok(())
    }
}
