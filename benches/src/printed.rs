//! Pages of printed text for `examples/ocr`: drawn from a seed, with noise, and judged by how many characters were read right; and the table of
//! glyphs that the function matches with.
//!
//! The fonts are two of DejaVu's, which `scripts/setup` installs.

use std::fmt::Write as _;
use std::fs;

use ab_glyph::{Font as _, FontVec, Glyph, PxScale, point};
use anyhow::{Context, Result, ensure};

use crate::random::Random;

/// Fonts that the function knows, in its order.
pub const FONTS: [&str; 2] = ["DejaVuSansMono.ttf", "DejaVuSerif.ttf"];
/// Where Debian, Fedora and Arch have them.
const FOLDERS: [&str; 3] = ["/usr/share/fonts/truetype/dejavu", "/usr/share/fonts/dejavu", "/usr/share/fonts/TTF"];
/// Fields of a glyph's raster, each way.
const SIDE: u32 = 16;
/// Pixels of an em when the table is made.
const TABLE_EM: f32 = 256.0;
/// From this share of a pixel on it is ink.
const INK_MIN: f32 = 0.5;

/// How a page is printed.
#[derive(Clone, Copy, Debug)]
pub struct Print {
    /// Index into [`FONTS`].
    pub font: usize,
    /// Pixels of an em.
    pub em: f32,
    /// The share of pixels that are turned over, ink or paper.
    pub noise: f64,
    /// Seed of the noise.
    pub seed: u64,
}

/// A bitmap, one byte a pixel, 1 for ink.
#[derive(Debug)]
struct Page {
    width: usize,
    height: usize,
    ink: Vec<u8>,
}

/// Text of words that mean nothing: letters as often as in print, capitals, numbers and the marks between them.
#[must_use]
pub fn text(seed: u64, lines: usize, columns: usize) -> String {
    const LETTERS: &[u8] = b"eeeeeeetttttaaaaaoooooiiiiinnnnnssssshhhhrrrrddddlllccuuummmwwffggyyppbbvvkjxqz";
    let mut random = Random(seed);
    let mut page = String::new();
    for _ in 0..lines {
        let mut line = String::new();
        loop {
            let mut word = String::new();
            match random.below(12) {
                0 => {
                    for _ in 0..=random.below(5) {
                        word.push(char::from(b'0' + random.below(10) as u8));
                    }
                }
                1 => {
                    // Every printable character, also those that hardly occur.
                    for _ in 0..2 + random.below(4) {
                        word.push(char::from(b'!' + random.below(94) as u8));
                    }
                }
                kind => {
                    for letter in 0..2 + random.below(8) {
                        let byte = LETTERS[random.below(LETTERS.len() as u64) as usize];
                        let capital = kind == 2 || kind < 5 && letter == 0;
                        word.push(char::from(if capital { byte.to_ascii_uppercase() } else { byte }));
                    }
                    match random.below(10) {
                        0 => word.push(','),
                        1 => word.push('.'),
                        2 => word = format!("({word})"),
                        3 => word.push(b";:!?"[random.below(4) as usize].into()),
                        _ => {}
                    }
                }
            }
            if line.len() + 1 + word.len() > columns {
                break;
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(&word);
        }
        page.push_str(&line);
        page.push('\n');
    }
    page
}

pub(crate) fn font(index: usize) -> Result<FontVec> {
    let name = FONTS[index];
    let bytes = FOLDERS.iter().find_map(|folder| fs::read(format!("{folder}/{name}")).ok());
    let bytes = bytes.with_context(|| format!("there is no font {name}; on Debian: apt install fonts-dejavu-core"))?;
    FontVec::try_from_vec(bytes).with_context(|| format!("{name} is no font"))
}

/// Prints `text` as a portable bitmap (P4).
///
/// # Errors
///
/// If the font is not installed.
pub fn print(text: &str, how: Print) -> Result<Vec<u8>> {
    let font = font(how.font)?;
    let mut random = Random(how.seed);
    let line_pixels = (how.em * 1.35).ceil();
    let advance = |c: char| font.h_advance_unscaled(font.glyph_id(c)) / units_per_em(&font) * how.em;
    let widest = text.lines().map(|line| line.chars().map(advance).sum::<f32>()).fold(0.0, f32::max);
    let margin = how.em;
    let mut page =
        Page::new((widest + 2.0 * margin) as usize + 1, (text.lines().count() as f32 * line_pixels + 2.0 * margin) as usize);
    for (number, line) in text.lines().enumerate() {
        // Where a line begins is between pixels, as on paper.
        let mut pen = margin + random.unit() as f32;
        let baseline = margin + line_pixels * (number as f32 + 0.8) + random.unit() as f32;
        for c in line.chars() {
            page.draw(&font, font.glyph_id(c).with_scale_and_position(scale(&font, how.em), point(pen, baseline)));
            pen += advance(c);
        }
    }
    for pixel in &mut page.ink {
        *pixel ^= u8::from(random.unit() < how.noise);
    }
    Ok(page.to_pbm())
}

pub(crate) fn units_per_em(font: &FontVec) -> f32 {
    font.units_per_em().unwrap_or(2048.0)
}

/// What ab_glyph calls a scale is the height of a line; an em is less.
pub(crate) fn scale(font: &FontVec, em: f32) -> PxScale {
    PxScale::from(em * font.height_unscaled() / units_per_em(font))
}

impl Page {
    fn new(width: usize, height: usize) -> Page {
        Page { width, height, ink: vec![0; width * height] }
    }

    fn draw(&mut self, font: &FontVec, glyph: Glyph) {
        let Some(outline) = font.outline_glyph(glyph) else { return };
        let bounds = outline.px_bounds();
        outline.draw(|x, y, share| {
            let (x, y) = (x as f32 + bounds.min.x, y as f32 + bounds.min.y);
            if share >= INK_MIN && x >= 0.0 && y >= 0.0 && (x as usize) < self.width && (y as usize) < self.height {
                self.ink[y as usize * self.width + x as usize] = 1;
            }
        });
    }

    fn to_pbm(&self) -> Vec<u8> {
        let mut bytes = format!("P4\n{} {}\n", self.width, self.height).into_bytes();
        for row in self.ink.chunks(self.width) {
            bytes.extend(row.chunks(8).map(|pixels| pixels.iter().enumerate().fold(0, |byte, (i, ink)| byte | ink << (7 - i))));
        }
        bytes
    }

    /// The rows and columns between which there is ink: left, top, right, bottom.
    fn bounds(&self) -> Option<[usize; 4]> {
        let inked =
            || self.ink.iter().enumerate().filter(|(_, ink)| **ink != 0).map(|(at, _)| (at % self.width, at / self.width));
        let left = inked().map(|at| at.0).min()?;
        Some([left, inked().map(|at| at.1).min()?, inked().map(|at| at.0).max()? + 1, inked().map(|at| at.1).max()? + 1])
    }
}

/// The C header with the glyphs of all [`FONTS`], from which the function knows them.
///
/// # Errors
///
/// If a font is not installed.
pub fn table() -> Result<String> {
    let mut rows = String::new();
    let mut spaces = Vec::new();
    for (index, name) in FONTS.iter().enumerate() {
        let font = font(index)?;
        let thousandth = |unscaled: f32| (unscaled / units_per_em(&font) * 1000.0).round();
        spaces.push(thousandth(font.h_advance_unscaled(font.glyph_id(' '))).to_string());
        for c in '!'..='~' {
            let (origin, baseline) = (TABLE_EM, 2.0 * TABLE_EM);
            let mut page = Page::new(4 * TABLE_EM as usize, 4 * TABLE_EM as usize);
            page.draw(&font, font.glyph_id(c).with_scale_and_position(scale(&font, TABLE_EM), point(origin, baseline)));
            let [left, top, right, bottom] = page.bounds().with_context(|| format!("{name} has no {c}"))?;
            let pixels = |pixels: f32| (pixels / TABLE_EM * 1000.0).round();
            let quoted = if matches!(c, '\'' | '\\') { format!("'\\{c}'") } else { format!("'{c}'") };
            writeln!(
                rows,
                "    {{{index}, {quoted}, {}, {}, {}, {}, {}, \"{}\"}},",
                pixels((right - left) as f32),
                pixels((bottom - top) as f32),
                pixels(bottom as f32 - baseline),
                pixels(left as f32 - origin),
                thousandth(font.h_advance_unscaled(font.glyph_id(c))),
                raster(&page, [left, top, right, bottom]),
            )?;
        }
    }
    Ok(format!(
        "/* Written by `cargo run --release -p sledge-benches --bin page glyphs`: the printable characters of {}. */\n\
         #ifndef OCR_GLYPHS_H\n#define OCR_GLYPHS_H\n\n\
         enum {{\n    GLYPH_FONTS = {},\n    GLYPH_SIDE = {SIDE},\n}};\n\n\
         /* Lengths in thousandths of an em. */\n\
         typedef struct glyph {{\n    int font;\n    char character;\n    int width, height;\n    int below;         /* how far it goes below the baseline */\n    \
         int left, advance; /* from the pen to its ink; from the pen to the next one's */\n    \
         const char *ink;   /* share of ink in GLYPH_SIDE x GLYPH_SIDE fields, row by row, 0 to f */\n}} glyph;\n\n\
         static const int glyph_spaces[GLYPH_FONTS] = {{{}}};\n\n\
         static const glyph glyphs[] = {{\n{rows}}};\n\n#endif\n",
        FONTS.join(" and "),
        FONTS.len(),
        spaces.join(", "),
    ))
}

/// The share of ink in each field, as a digit of 0 to f.
fn raster(page: &Page, [left, top, right, bottom]: [usize; 4]) -> String {
    const STEPS: usize = 8; // samples of a field, each way
    let (width, height) = (right - left, bottom - top);
    let mut digits = String::new();
    for row in 0..SIDE as usize {
        for column in 0..SIDE as usize {
            let mut ink = 0;
            for sample in 0..STEPS * STEPS {
                let x = ((column * STEPS + sample % STEPS) * 2 + 1) * width / (2 * STEPS * SIDE as usize);
                let y = ((row * STEPS + sample / STEPS) * 2 + 1) * height / (2 * STEPS * SIDE as usize);
                ink += u32::from(page.ink[(top + y) * page.width + left + x]);
            }
            let level = (f64::from(ink) / (STEPS * STEPS) as f64 * 15.0).round() as u32;
            digits.push(char::from_digit(level, 16).unwrap_or('f'));
        }
    }
    digits
}

/// The share of characters that were read right: 1 - edit distance / length.
#[must_use]
pub fn accuracy(wanted: &str, read: &str) -> f64 {
    let (wanted, read): (Vec<char>, Vec<char>) = (wanted.chars().collect(), read.chars().collect());
    let mut row: Vec<usize> = (0..=read.len()).collect();
    for (i, a) in wanted.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in read.iter().enumerate() {
            let replaced = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    1.0 - row[read.len()] as f64 / wanted.len().max(1) as f64
}

/// Judges a reply.
///
/// # Errors
///
/// If fewer than 98 of 100 characters are right.
pub fn judge(wanted: &str, reply: &[u8]) -> Result<Vec<String>> {
    let read = std::str::from_utf8(reply).context("the text is not UTF-8")?;
    let share = accuracy(wanted, read);
    ensure!(share >= 0.98, "{:.2} % of the characters are right, wanted are 98 %; read was:\n{read}", share * 100.0);
    Ok(vec![format!("{} of {} characters are right", (share * wanted.len() as f64).round(), wanted.len())])
}
