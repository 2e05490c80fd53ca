//! What streets are painted on: rectangles and labels with soft edges, and a camera.

use ab_glyph::{Font as _, FontVec, PxScale, point};
use image::{Rgb, RgbImage};

use crate::printed;
use crate::random::Random;

/// Red, green and blue, from 0 to 255.
pub(super) type Colour = [f32; 3];

/// Samples of a label in a pixel, each way.
const SAMPLES: usize = 4;
/// How wide a plate's border is, and its distance from the edge, in the label's pixels.
const BORDER: [f32; 2] = [3.0, 5.0];
/// The share of a label's width that its text may take.
const TEXT_WIDTH: f32 = 0.92;

/// What is written on, and what with.
#[derive(Clone, Copy)]
pub(super) struct Paints {
    pub(super) ground: Colour,
    pub(super) ink: Colour,
}

/// Text on a ground, as large as it was made.
pub(super) struct Label {
    width: usize,
    height: usize,
    pixels: Vec<Colour>,
}

/// A picture that grows from back to front.
pub(super) struct Canvas {
    width: usize,
    height: usize,
    pixels: Vec<Colour>,
}

fn mix(under: Colour, over: Colour, share: f32) -> Colour {
    std::array::from_fn(|i| under[i] + (over[i] - under[i]) * share)
}

impl Label {
    /// As large as the text with these margins, left and right, above and below.
    pub(super) fn new(font: &FontVec, text: &str, em: f32, margins: [f32; 2], paints: Paints) -> Label {
        let width = width_of(font, text, em) + 2.0 * margins[0];
        let mut label = Label::empty([width, em + 2.0 * margins[1]], paints.ground);
        label.write(font, text, em, 1.0, paints.ink);
        label
    }

    /// Of a given size, with a border.
    pub(super) fn framed(font: &FontVec, text: &str, em: f32, size: [f32; 2], paints: Paints) -> Label {
        let mut label = Label::empty(size, paints.ground);
        for y in 0..label.height {
            for x in 0..label.width {
                let edge = x.min(y).min(label.width - 1 - x).min(label.height - 1 - y) as f32;
                if (BORDER[1]..BORDER[0] + BORDER[1]).contains(&edge) {
                    label.pixels[y * label.width + x] = paints.ink;
                }
            }
        }
        let narrower = (size[0] * TEXT_WIDTH / width_of(font, text, em)).min(1.0);
        label.write(font, text, em, narrower, paints.ink);
        label
    }

    fn empty(size: [f32; 2], ground: Colour) -> Label {
        let (width, height) = (size[0].ceil() as usize, size[1].ceil() as usize);
        Label { width, height, pixels: vec![ground; width * height] }
    }

    /// Writes in the middle.
    fn write(&mut self, font: &FontVec, text: &str, em: f32, narrower: f32, ink: Colour) {
        let mut pen = (self.width as f32 - width_of(font, text, em) * narrower) / 2.0;
        // Capitals are about 0.73 em high.
        let baseline = self.height as f32 / 2.0 + em * 0.365;
        let upright = printed::scale(font, em);
        let scale = PxScale { x: upright.x * narrower, y: upright.y };
        for c in text.chars() {
            if let Some(outline) = font.outline_glyph(font.glyph_id(c).with_scale_and_position(scale, point(pen, baseline))) {
                let bounds = outline.px_bounds();
                outline.draw(|x, y, share| {
                    let (x, y) = (x as f32 + bounds.min.x, y as f32 + bounds.min.y);
                    if x >= 0.0 && y >= 0.0 && (x as usize) < self.width && (y as usize) < self.height {
                        let pixel = &mut self.pixels[y as usize * self.width + x as usize];
                        *pixel = mix(*pixel, ink, share.clamp(0.0, 1.0));
                    }
                });
            }
            pen += advance(font, c, em) * narrower;
        }
    }
}

fn advance(font: &FontVec, c: char, em: f32) -> f32 {
    font.h_advance_unscaled(font.glyph_id(c)) / printed::units_per_em(font) * em
}

fn width_of(font: &FontVec, text: &str, em: f32) -> f32 {
    text.chars().map(|c| advance(font, c, em)).sum()
}

impl Canvas {
    pub(super) fn new(width: usize, height: usize) -> Canvas {
        Canvas { width, height, pixels: vec![[0.0; 3]; width * height] }
    }

    /// The pixels from `low` to `high`, as far as there are any, out of `end`.
    fn span(low: f32, high: f32, end: usize) -> std::ops::Range<usize> {
        (low.floor().max(0.0) as usize).min(end)..(high.ceil().max(0.0) as usize).min(end)
    }

    pub(super) fn rectangle(&mut self, left: f32, top: f32, right: f32, bottom: f32, colour: Colour) {
        let share = |low: f32, high: f32, at: usize| (high.min(at as f32 + 1.0) - low.max(at as f32)).clamp(0.0, 1.0);
        for y in Canvas::span(top, bottom, self.height) {
            for x in Canvas::span(left, right, self.width) {
                let pixel = &mut self.pixels[y * self.width + x];
                *pixel = mix(*pixel, colour, share(left, right, x) * share(top, bottom, y));
            }
        }
    }

    /// Half as wide as `halves` says, above and below.
    pub(super) fn trapezoid(&mut self, centre: f32, halves: [f32; 2], top: f32, bottom: f32, colour: Colour) {
        for y in Canvas::span(top, bottom, self.height) {
            let half = halves[0] + (halves[1] - halves[0]) * ((y as f32 - top) / (bottom - top)).clamp(0.0, 1.0);
            self.rectangle(centre - half, y as f32, centre + half, y as f32 + 1.0, colour);
        }
    }

    /// Puts a label's middle to `centre`, turned by `angle`. Returns what is round it: left, top, right, bottom.
    pub(super) fn label(&mut self, label: &Label, centre: [f32; 2], scale: f32, angle: f32) -> [f32; 4] {
        let (cosine, sine) = (angle.cos(), angle.sin());
        let (half_x, half_y) = (label.width as f32 * scale / 2.0, label.height as f32 * scale / 2.0);
        let reach_x = half_x * cosine.abs() + half_y * sine.abs();
        let reach_y = half_x * sine.abs() + half_y * cosine.abs();
        let around = [centre[0] - reach_x, centre[1] - reach_y, centre[0] + reach_x, centre[1] + reach_y];
        for y in Canvas::span(around[1], around[3], self.height) {
            for x in Canvas::span(around[0], around[2], self.width) {
                let (mut sum, mut hits) = ([0.0; 3], 0.0);
                for sample in 0..SAMPLES * SAMPLES {
                    let part = |of: usize| (of as f32 + 0.5) / SAMPLES as f32;
                    let dx = x as f32 + part(sample % SAMPLES) - centre[0];
                    let dy = y as f32 + part(sample / SAMPLES) - centre[1];
                    let u = ((dx * cosine + dy * sine + half_x) / scale).floor();
                    let v = ((dy * cosine - dx * sine + half_y) / scale).floor();
                    if u >= 0.0 && v >= 0.0 && (u as usize) < label.width && (v as usize) < label.height {
                        let colour = label.pixels[v as usize * label.width + u as usize];
                        sum = std::array::from_fn(|i| sum[i] + colour[i]);
                        hits += 1.0;
                    }
                }
                if hits > 0.0 {
                    let pixel = &mut self.pixels[y * self.width + x];
                    *pixel = mix(*pixel, sum.map(|value| value / hits), hits / (SAMPLES * SAMPLES) as f32);
                }
            }
        }
        around
    }

    /// What a camera makes of it: out of focus, too dark or too light, noisy.
    pub(super) fn photograph(mut self, random: &mut Random) -> RgbImage {
        for _ in 0..random.below(3) {
            self.blur(1);
            self.blur(self.width);
        }
        let (gain, noise) = (random.between(0.5, 1.15), random.between(1.0, 7.0));
        RgbImage::from_fn(self.width as u32, self.height as u32, |x, y| {
            let grain = noise * random.normal();
            Rgb(self.pixels[y as usize * self.width + x as usize].map(|value| (value * gain + grain).clamp(0.0, 255.0) as u8))
        })
    }

    /// Each pixel with a quarter of both neighbours, which are `step` away.
    fn blur(&mut self, step: usize) {
        let sharp = self.pixels.clone();
        for at in step..sharp.len() - step {
            self.pixels[at] = std::array::from_fn(|i| sharp[at][i] * 0.5 + (sharp[at - step][i] + sharp[at + step][i]) * 0.25);
        }
    }
}
