//! Points by name, on a logarithmic scale: as SVG and as PNG.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use anyhow::{Context, Result, anyhow};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{FontStyle, FontTransform, register_font};

const SIZE: (u32, u32) = (1400, 760);
pub(crate) const TEXT: (&str, u32) = ("sans-serif", 14);
/// Room above the highest point, as a factor of the range.
const LEGEND: f64 = 0.25;
/// A letter's width below the points, about, and most of all letters.
const LETTER: u32 = 7;
const LETTERS_MAX: usize = 56;
/// Where Debian, Fedora, Arch and Alpine have a font without serifs. Text is measured by it, in both files.
const FONTS: [&str; 6] = [
    "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf",
    "/usr/share/fonts/dejavu-sans-fonts/DejaVuSans.ttf",
    "/usr/share/fonts/TTF/DejaVuSans.ttf",
    "/usr/share/fonts/dejavu/DejaVuSans.ttf",
    "/usr/share/fonts/truetype/liberation/LiberationSans-Regular.ttf",
    "/usr/share/fonts/truetype/freefont/FreeSans.ttf",
];

/// A picture.
#[derive(Debug)]
pub struct Plot {
    /// What stands above it.
    pub caption: String,
    /// What the points are about, from left to right.
    pub names: Vec<String>,
    /// What is compared: a label, and a point for each name, or none. All are above zero.
    pub series: Vec<(String, Vec<Option<f64>>)>,
    /// Lines across it: how high, and how dark.
    pub lines: Vec<(f64, f64)>,
}

impl Plot {
    /// Writes `path` with the endings `.svg` and `.png`, if there is a font.
    ///
    /// # Errors
    ///
    /// If one of them cannot be drawn or written, or there is nothing to draw.
    pub fn write(&self, path: &Path) -> Result<()> {
        write(self, path)
    }

    /// From where to where, the lines and room for the legend included.
    fn range(&self) -> Option<(f64, f64)> {
        let points = self.series.iter().flat_map(|(_, points)| points.iter().flatten().copied());
        let all: Vec<f64> = points.chain(self.lines.iter().map(|(at, _)| *at)).filter(|point| *point > 0.0).collect();
        let (low, high) = (all.iter().copied().reduce(f64::min)? / 1.25, all.iter().copied().reduce(f64::max)? * 1.25);
        Some((low, high * (high / low).powf(LEGEND)))
    }
}

impl Draw for Plot {
    fn draw<B>(&self, area: &DrawingArea<B, Shift>) -> Result<(), Box<dyn Error>>
    where
        B: DrawingBackend,
        B::ErrorType: 'static,
    {
        let (low, high) = self.range().ok_or("there are no points")?;
        let letters = self.names.iter().map(|name| name.chars().count()).max().unwrap_or(0).min(LETTERS_MAX);
        area.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(area)
            .caption(&self.caption, ("sans-serif", 22))
            .margin(12)
            .x_label_area_size(letters as u32 * LETTER + 20)
            .y_label_area_size(70)
            .build_cartesian_2d(0.0..self.names.len() as f64, (low..high).log_scale())?;
        let label = |value: &f64| if *value < 100.0 { format!("{value:.2}") } else { format!("{value:.0}") };
        chart.configure_mesh().disable_mesh().x_labels(0).y_labels(12).y_label_formatter(&label).label_style(TEXT).draw()?;
        for (place, darkness) in &self.lines {
            chart.draw_series([PathElement::new([(0.0, *place), (self.names.len() as f64, *place)], BLACK.mix(*darkness))])?;
        }
        let upright = Pos::new(HPos::Right, VPos::Center);
        for (index, name) in self.names.iter().enumerate() {
            let start = index as f64;
            chart.draw_series([PathElement::new([(start, low), (start, high)], BLACK.mix(0.15))])?;
            let (x, y) = chart.backend_coord(&(start + 0.5, low));
            let style = TextStyle::from(TEXT.into_font().transform(FontTransform::Rotate270)).pos(upright);
            let shown: String = name.chars().take(LETTERS_MAX).collect();
            area.draw(&Text::new(shown, (x, y + 8), style))?;
        }
        for (index, (label, points)) in self.series.iter().enumerate() {
            let colour = Palette99::pick(index).to_rgba();
            // Beside each other, so that none hides another.
            let place = |name: usize| name as f64 + (index as f64 + 1.0) / (self.series.len() as f64 + 1.0);
            let points = points.iter().enumerate().filter_map(|(name, point)| Some((place(name), (*point)?)));
            let points = points.map(|place| Circle::new(place, 4, colour.filled()));
            chart.draw_series(points)?.label(label).legend(move |(x, y)| Circle::new((x + 8, y), 4, colour.filled()));
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperLeft)
            .background_style(WHITE.mix(0.85))
            .border_style(BLACK.mix(0.3))
            .label_font(TEXT)
            .draw()?;
        area.present()?;
        Ok(())
    }
}

/// What can be drawn as SVG and as PNG.
pub(crate) trait Draw {
    /// Draws it, over the whole area.
    fn draw<B>(&self, area: &DrawingArea<B, Shift>) -> Result<(), Box<dyn Error>>
    where
        B: DrawingBackend,
        B::ErrorType: 'static;
}

/// Writes `path` with the endings `.svg` and `.png`, if there is a font.
pub(crate) fn write(picture: &impl Draw, path: &Path) -> Result<()> {
    if !has_font() {
        eprintln!("no plot, since there is none of the fonts {}; on Debian: apt install fonts-dejavu-core", FONTS.join(", "));
        return Ok(());
    }
    let named = |ending: &str| path.with_file_name(format!("{}.{ending}", path.file_name().unwrap_or_default().display()));
    // plotters' errors are generic over the back end and not Send.
    let svg = named("svg");
    picture
        .draw(&SVGBackend::new(&svg, SIZE).into_drawing_area())
        .map_err(|error| anyhow!("cannot draw {}: {error}", svg.display()))?;
    let png = named("png");
    let mut pixels = vec![255; SIZE.0 as usize * SIZE.1 as usize * 3];
    picture
        .draw(&BitMapBackend::with_buffer(&mut pixels, SIZE).into_drawing_area())
        .map_err(|error| anyhow!("cannot draw {}: {error}", png.display()))?;
    image::save_buffer(&png, &pixels, SIZE.0, SIZE.1, image::ColorType::Rgb8)
        .with_context(|| format!("cannot write {}", png.display()))
}

/// Whether text can be drawn: with the first font that is there, for the rest of the process's life.
fn has_font() -> bool {
    static FOUND: OnceLock<bool> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let font = FONTS.iter().find_map(|path| fs::read(path).ok());
        font.is_some_and(|font| register_font("sans-serif", FontStyle::Normal, font.leak()).is_ok())
    })
}
