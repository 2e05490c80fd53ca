//! Rows of pieces, and how much each looks like a plate.

use crate::Rectangle;
use crate::ink::Grey;
use crate::pieces::Piece;

/// Characters of a plate.
const CHARACTERS_MIN: usize = 4;
const CHARACTERS_MAX: usize = 9;
/// What may be between two characters, in heights of one.
const GAP_MAX: f32 = 1.5;
/// A plate's width over its height.
const ASPECT: f32 = 4.5;
/// The share of ink in characters, at most: windows and stripes have more.
const FILL_MAX: f32 = 0.8;
/// Beyond these it is none.
const ASPECT_MIN: f32 = 3.0;
const ASPECT_MAX: f32 = 6.5;
/// How far the ground is followed, in heights of a character.
const REACH_ACROSS: f32 = 1.6;
const REACH_ALONG: f32 = 0.9;
/// Where no end is found: how far a plate usually goes.
const USUAL_ACROSS: f32 = 0.45;
const USUAL_ALONG: f32 = 0.25;
/// Nearer to characters than that, in heights of one, it is their shadow that is dark.
const SHADOW: f32 = 0.12;
/// How much of the way from ground to ink is no longer ground: a border may be thin and out of focus.
const EDGE: f32 = 0.2;
/// Ground and ink differ at least so much.
const CONTRAST_MIN: f32 = 30.0;
/// What is worse than that is no plate.
const COST_MAX: f32 = 1.6;

/// What may be a plate.
pub(crate) struct Candidate {
    /// How little it looks like one.
    pub(crate) cost: f32,
    pub(crate) rectangle: Rectangle,
}

/// The likeliest plate.
pub(crate) fn likeliest(grey: &Grey, pieces: &[Piece]) -> Option<Candidate> {
    let mut best: Option<Candidate> = None;
    for first in 0..pieces.len() {
        let row = row_from(pieces, first);
        // Dirt at either end may look like one more character: without it the plate is better.
        for skip in 0..=row.len().saturating_sub(CHARACTERS_MIN).min(1) {
            let row = &row[..row.len() - skip];
            if !(CHARACTERS_MIN..=CHARACTERS_MAX).contains(&row.len()) {
                continue;
            }
            if let Some(candidate) = judge(grey, row)
                && best.as_ref().is_none_or(|best| candidate.cost < best.cost)
            {
                best = Some(candidate);
            }
        }
    }
    best.filter(|best| best.cost < COST_MAX)
}

/// The pieces that stand in a row with the one at `first`, from there to the right.
fn row_from(pieces: &[Piece], first: usize) -> Vec<Piece> {
    let mut row = vec![pieces[first]];
    for piece in &pieces[first + 1..] {
        let last = &row[row.len() - 1];
        let height = last.height();
        let gap = piece.left as f32 - last.right as f32;
        if gap > height * GAP_MAX {
            break;
        }
        let alike = (piece.height() / height - 1.0).abs() < 0.25 && (piece.middle() - last.middle()).abs() < height * 0.25;
        if alike && gap > -0.1 * height {
            row.push(*piece);
            if row.len() > CHARACTERS_MAX {
                break;
            }
        }
    }
    row
}

fn mean(values: impl Iterator<Item = f32>) -> f32 {
    let (sum, count) = values.fold((0.0, 0.0_f32), |(sum, count), value| (sum + value, count + 1.0));
    sum / count.max(1.0)
}

/// The standard deviation over the mean.
fn unevenness(values: impl Iterator<Item = f32> + Clone) -> f32 {
    let mean_value = mean(values.clone());
    mean(values.map(|value| (value - mean_value) * (value - mean_value))).sqrt() / mean_value
}

/// A row as a plate, if it may be one.
fn judge(grey: &Grey, row: &[Piece]) -> Option<Candidate> {
    let height = mean(row.iter().map(Piece::height));
    let (ground, ink) = brightness(grey, row)?;
    if ground - ink < CONTRAST_MIN || mean(row.iter().map(Piece::fill)) > FILL_MAX {
        return None;
    }
    let (plate, open_sides) = follow(grey, row, height, ground - (ground - ink) * EDGE);
    let (across, along) = ((plate.right - plate.left) as f32, (plate.bottom - plate.top) as f32);
    let aspect = across / along;
    if !(ASPECT_MIN..ASPECT_MAX).contains(&aspect) {
        return None;
    }
    let bottoms = row.windows(2).map(|pair| (pair[1].bottom as f32 - pair[0].bottom as f32) / height);
    let slopes = mean(bottoms.clone().map(|slope| slope.abs()));
    let widths = mean(row.iter().map(|piece| (piece.width() / height - 0.6).abs()));
    let cost = (aspect / ASPECT).ln().abs()
        + 3.0 * unevenness(row.iter().map(Piece::height))
        + slopes
        + widths
        + 0.35 * open_sides as f32
        + (height / along - 0.65).abs() * 2.0
        + 0.1 * (row.len() as f32 - 7.0).abs()
        + 20.0 / (ground - ink);
    Some(Candidate { cost, rectangle: plate })
}

/// The brightness of the ground between the characters, and of these.
fn brightness(grey: &Grey, row: &[Piece]) -> Option<(f32, f32)> {
    let mut levels = [0_u32; 256];
    for piece in row {
        for y in piece.top..piece.bottom {
            for pixel in &grey.row(y)[piece.left..piece.right] {
                levels[usize::from(*pixel)] += 1;
            }
        }
    }
    let total: u32 = levels.iter().sum();
    let quantile = |share: u32| {
        let mut seen = 0;
        levels.iter().position(|count| {
            seen += count;
            seen * 100 >= total * share
        })
    };
    Some((quantile(92)? as f32, quantile(15)? as f32))
}

/// The light ground round a row, as far as it goes in each direction, and on how many sides no end was found.
fn follow(grey: &Grey, row: &[Piece], height: f32, light: f32) -> (Rectangle, usize) {
    let (first, last) = (&row[0], &row[row.len() - 1]);
    // Plates are never quite level.
    let slope = (last.middle() - first.middle()) / (last.left as f32 - first.left as f32).max(1.0);
    let middle = |x: usize| first.middle() + slope * (x as f32 - first.left as f32);
    let is_light = |sum: f32, count: usize| count > 0 && sum / count as f32 > light;
    let at = |x: usize, y: f32| Some(f32::from(*grey.pixels.get((y as usize).min(grey.height) * grey.width + x)?));
    let column = |x: usize| {
        let quarter = (height / 4.0) as i32;
        let pixels = (-quarter..=quarter).filter_map(|dy| at(x, (middle(x) + dy as f32).max(0.0)));
        let (sum, count) = pixels.fold((0.0, 0), |(sum, count), pixel| (sum + pixel, count + 1));
        is_light(sum, count)
    };
    let line = |dy: f32| {
        let pixels = (first.left..last.right).filter_map(|x| at(x, (middle(x) + dy).max(0.0)));
        let (sum, count) = pixels.fold((0.0, 0), |(sum, count), pixel| (sum + pixel, count + 1));
        is_light(sum, count)
    };
    let mut open = 0;
    let mut end = |reach: f32, usual: f32, is_ground: &dyn Fn(usize) -> bool| {
        let steps = (height * SHADOW) as usize + 1..(height * reach) as usize;
        let found = steps.clone().find(|step| !is_ground(*step));
        open += usize::from(found.is_none());
        found.unwrap_or((height * usual) as usize)
    };
    let left = end(REACH_ACROSS, USUAL_ACROSS, &|step| first.left > step && column(first.left - 1 - step));
    let right = end(REACH_ACROSS, USUAL_ACROSS, &|step| last.right + step < grey.width && column(last.right + step));
    let above = end(REACH_ALONG, USUAL_ALONG, &|step| line(-height / 2.0 - 1.0 - step as f32));
    let below = end(REACH_ALONG, USUAL_ALONG, &|step| line(height / 2.0 + step as f32));
    let top = row.iter().map(|piece| piece.top).min().unwrap_or(first.top);
    let bottom = row.iter().map(|piece| piece.bottom).max().unwrap_or(first.bottom);
    let plate = Rectangle {
        left: first.left.saturating_sub(left),
        top: top.saturating_sub(above),
        right: (last.right + right).min(grey.width),
        bottom: (bottom + below).min(grey.height),
    };
    (plate, open)
}
