//! The ratios as a picture: for each kernel a point for each variant, on a logarithmic scale, and lines where native code is.

use std::error::Error;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{FontStyle, FontTransform, register_font};

use super::plan::Plan;
use super::summary::{Summary, WITHIN};
use super::variant::Variant;

const SIZE: (u32, u32) = (1400, 760);
/// Room above the highest point, as a factor.
const LEGEND: f64 = 2.5;
/// Where Debian, Fedora, Arch and Alpine have a font without serifs. Text is measured by it, in both files.
const FONTS: [&str; 6] = [
    "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf",
    "/usr/share/fonts/dejavu-sans-fonts/DejaVuSans.ttf",
    "/usr/share/fonts/TTF/DejaVuSans.ttf",
    "/usr/share/fonts/dejavu/DejaVuSans.ttf",
    "/usr/share/fonts/truetype/liberation/LiberationSans-Regular.ttf",
    "/usr/share/fonts/truetype/freefont/FreeSans.ttf",
];

/// Writes `...ratios.svg` and `...ratios.png`, if there is a font.
///
/// # Errors
///
/// If one of them cannot be drawn or written.
pub fn write(summary: &Summary, plan: &Plan) -> Result<()> {
    let Some(font) = FONTS.iter().find_map(|path| fs::read(path).ok()) else {
        eprintln!(
            "polybench: no plot, since there is none of the fonts {}; on Debian: apt install fonts-dejavu-core",
            FONTS.join(", ")
        );
        return Ok(());
    };
    // For the rest of the process's life, which draws once.
    if register_font("sans-serif", FontStyle::Normal, font.leak()).is_err() {
        bail!("the font for the plots is no font");
    }
    let svg = plan.file("ratios.svg");
    drawn(summary, plan, &SVGBackend::new(&svg, SIZE).into_drawing_area(), &svg)?;
    let png = plan.file("ratios.png");
    let mut pixels = vec![255; SIZE.0 as usize * SIZE.1 as usize * 3];
    drawn(summary, plan, &BitMapBackend::with_buffer(&mut pixels, SIZE).into_drawing_area(), &png)?;
    image::save_buffer(&png, &pixels, SIZE.0, SIZE.1, image::ColorType::Rgb8)
        .with_context(|| format!("cannot write {}", png.display()))
}

fn drawn<B>(summary: &Summary, plan: &Plan, area: &DrawingArea<B, plotters::coord::Shift>, path: &Path) -> Result<()>
where
    B: DrawingBackend,
    B::ErrorType: 'static,
{
    // plotters' errors are generic over the back end and not Send.
    draw(summary, plan, area).map_err(|error| anyhow!("cannot draw {}: {error}", path.display()))
}

fn draw<B>(summary: &Summary, plan: &Plan, area: &DrawingArea<B, plotters::coord::Shift>) -> Result<(), Box<dyn Error>>
where
    B: DrawingBackend,
    B::ErrorType: 'static,
{
    let kernels: Vec<_> = summary.kernels().map(str::to_owned).collect();
    let mut series = Vec::new();
    for variant in summary.variants.iter().copied().filter(|variant| *variant != Variant::Native) {
        series.push((variant, summary.ratios(variant, Variant::Native)?, summary.over(variant, Variant::Native)?.geometric));
    }
    let all = || series.iter().flat_map(|(_, ratios, _)| ratios.iter().copied());
    let (low, high) = (all().fold(0.8, f64::min) / 1.1, all().fold(1.25, f64::max) * LEGEND);

    area.fill(&WHITE)?;
    let caption = format!("PolyBench {}: time relative to clang -O3", plan.dataset);
    let mut chart = ChartBuilder::on(area)
        .caption(caption, ("sans-serif", 22))
        .margin(12)
        .x_label_area_size(110)
        .y_label_area_size(60)
        .build_cartesian_2d(0.0..kernels.len() as f64, (low..high).log_scale())?;
    let upright = Pos::new(HPos::Right, VPos::Center);
    chart
        .configure_mesh()
        .disable_mesh()
        .x_labels(0)
        .y_labels(12)
        .y_label_formatter(&|ratio| format!("{ratio:.2}"))
        .label_style(("sans-serif", 14))
        .draw()?;
    for (place, colour) in [(1.0, BLACK.mix(0.8)), (WITHIN, BLACK.mix(0.3))] {
        chart.draw_series([PathElement::new([(0.0, place), (kernels.len() as f64, place)], colour)])?;
    }
    for (index, kernel) in kernels.iter().enumerate() {
        let start = index as f64;
        chart.draw_series([PathElement::new([(start, low), (start, high)], BLACK.mix(0.15))])?;
        let (x, y) = chart.backend_coord(&(start + 0.5, low));
        let style = TextStyle::from(("sans-serif", 14).into_font().transform(FontTransform::Rotate270)).pos(upright);
        area.draw(&Text::new(kernel.clone(), (x, y + 8), style))?;
    }
    for (index, (variant, ratios, mean)) in series.iter().enumerate() {
        let colour = Palette99::pick(index).to_rgba();
        let label = format!("{variant}: {mean:.3}");
        // Beside each other, so that none hides another.
        let place = |kernel: usize| kernel as f64 + (index as f64 + 1.0) / (series.len() as f64 + 1.0);
        let points = ratios.iter().enumerate().map(|(kernel, ratio)| Circle::new((place(kernel), *ratio), 4, colour.filled()));
        chart.draw_series(points)?.label(label).legend(move |(x, y)| Circle::new((x + 8, y), 4, colour.filled()));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.85))
        .border_style(BLACK.mix(0.3))
        .label_font(("sans-serif", 14))
        .draw()?;
    area.present()?;
    Ok(())
}
