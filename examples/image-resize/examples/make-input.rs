//! Draws the photograph that `input.jpg` is: a road into the hills on a summer's day.
//!
//!     cargo run --release --example make-input
//!
//! Everything is computed from integer hashes and a few arithmetic operations, so that the same picture
//! comes out wherever this runs. The JPEG quality is the one that brings the file nearest to the
//! 28.9 KB of the photograph in the Sledge paper.

use std::path::Path;

use image::codecs::jpeg::JpegEncoder;
use image::{Rgb, RgbImage};

const WIDTH: u32 = 512;
const HEIGHT: u32 = 384;
const JPEG_BYTES: usize = 28_900;

/// Where the plain ends and the sky or the hills begin, as a fraction of the height.
const HORIZON: f32 = 0.52;

type Colour = [f32; 3];

fn main() {
    let picture = RgbImage::from_fn(WIDTH, HEIGHT, pixel);
    let jpeg = (30..=95)
        .map(|quality| encode(&picture, quality))
        .min_by_key(|jpeg| jpeg.len().abs_diff(JPEG_BYTES))
        .expect("there are qualities to choose from");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("input.jpg");
    if let Err(error) = std::fs::write(&path, &jpeg) {
        eprintln!("make-input: cannot write {}: {error}", path.display());
        std::process::exit(1);
    }
    println!("{}: {WIDTH} x {HEIGHT}, {} bytes", path.display(), jpeg.len());
}

fn encode(picture: &RgbImage, quality: u8) -> Vec<u8> {
    let mut jpeg = Vec::new();
    picture.write_with_encoder(JpegEncoder::new_with_quality(&mut jpeg, quality)).expect("writing to memory does not fail");
    jpeg
}

/// The colour at a pixel: four samples around it, averaged, as a lens would.
fn pixel(x: u32, y: u32) -> Rgb<u8> {
    let mut sum = [0.0; 3];
    for (dx, dy) in [(0.25, 0.25), (0.75, 0.25), (0.25, 0.75), (0.75, 0.75)] {
        let u = (x as f32 + dx) / WIDTH as f32;
        let v = (y as f32 + dy) / HEIGHT as f32;
        let colour = scene(u, v);
        for channel in 0..3 {
            sum[channel] += colour[channel] / 4.0;
        }
    }
    let vignette = 1.0 - 0.25 * squared(x as f32 / WIDTH as f32 - 0.5) - 0.2 * squared(y as f32 / HEIGHT as f32 - 0.5);
    let grain = (hash(x as i32, y as i32, 99) - 0.5) * 3.0;
    Rgb(sum.map(|value| (value * 255.0 * vignette + grain).clamp(0.0, 255.0) as u8))
}

/// What is to be seen at (u, v), both from 0 at the top left to 1: the nearest thing wins.
fn scene(u: f32, v: f32) -> Colour {
    if let Some(colour) = tree(u, v).or_else(|| house(u, v)) {
        return colour;
    }
    if v > HORIZON {
        return plain(u, v);
    }
    hills(u, v).unwrap_or_else(|| sky(u, v))
}

fn sky(u: f32, v: f32) -> Colour {
    let height = v / HORIZON;
    let blue = mix([0.24, 0.47, 0.80], [0.74, 0.85, 0.93], height);
    // Clouds flatten towards the horizon, as seen from below.
    let depth = 1.0 / (1.08 - height);
    let density = turbulence((u - 0.5) * 3.0 * depth, depth * 2.2, 3);
    let lit = turbulence((u - 0.52) * 3.0 * depth, depth * 2.2 + 0.15, 4);
    let cloud = mix([0.66, 0.70, 0.76], [0.99, 0.98, 0.96], smooth(0.35, 0.6, lit));
    mix(blue, cloud, smooth(0.46, 0.68, density) * (1.0 - 0.5 * height))
}

/// Three ranges, paler the farther they are.
fn hills(u: f32, v: f32) -> Option<Colour> {
    let ranges = [
        (0.50, 0.05, 9.0, [0.25, 0.38, 0.22], 21),
        (0.46, 0.10, 5.0, [0.36, 0.47, 0.42], 22),
        (0.40, 0.16, 3.0, [0.52, 0.62, 0.70], 23),
    ];
    ranges.iter().find_map(|&(base, swing, pitch, colour, seed)| {
        let ridge = base - swing * (turbulence(u * pitch, 0.0, seed) - 0.25);
        if v < ridge {
            return None;
        }
        let wood = turbulence(u * 90.0, v * 110.0, seed + 10);
        let slope = turbulence(u * pitch * 4.0, (v - ridge) * 40.0, seed + 20);
        Some(scale(colour, 0.72 + 0.35 * wood + 0.25 * slope))
    })
}

/// Fields on both sides and the road in the middle, which narrows towards the horizon.
fn plain(u: f32, v: f32) -> Colour {
    let near = (v - HORIZON) / (1.0 - HORIZON);
    let distance = 1.0 / (near + 0.02);
    let bend = 0.5 + 0.06 * squared(1.0 - near) * (1.0 - near);
    let across = (u - bend) * distance;
    let along = distance * 6.0;
    if across.abs() < 0.42 {
        return road(across, along, near);
    }
    let verge = turbulence(across * 14.0, along * 5.0, 31);
    if across.abs() < 0.55 {
        return mix([0.52, 0.47, 0.32], [0.42, 0.48, 0.22], verge);
    }
    let field = hash((across * 0.35).floor() as i32, (along * 0.12).floor() as i32, 32);
    let crop = mix([0.62, 0.55, 0.22], [0.30, 0.46, 0.16], smooth(0.35, 0.65, field));
    let rows = turbulence(across * 9.0, along * 0.7, 33);
    let blades = turbulence(u * 160.0, v * 190.0, 34);
    scale(crop, 0.68 + 0.3 * rows + 0.35 * blades * near)
}

fn road(across: f32, along: f32, near: f32) -> Colour {
    let asphalt = 0.33 + 0.10 * (turbulence(across * 60.0, along * 20.0, 41) - 0.5) + 0.05 * (1.0 - near);
    let wear = 0.05 * smooth(0.10, 0.0, (across.abs() - 0.21).abs());
    let grey = [asphalt - wear, asphalt - wear, asphalt - wear + 0.015];
    let centre = across.abs() < 0.014 && (along * 0.7).rem_euclid(2.0) < 1.1;
    let edge = (across.abs() - 0.385).abs() < 0.011;
    if centre || edge {
        let paint = turbulence(across * 80.0, along * 30.0, 42);
        return mix(grey, [0.88, 0.87, 0.82], 0.55 + 0.45 * paint);
    }
    grey
}

/// A farmhouse with a tiled roof, windows and a door.
fn house(u: f32, v: f32) -> Option<Colour> {
    let (x, y) = ((u - 0.70) / 0.17, (v - 0.42) / 0.16);
    let roof_half = 0.56 - 0.30 * (1.0 - y / 0.42).clamp(0.0, 1.0);
    if (0.0..0.42).contains(&y) && (x - 0.5).abs() < roof_half {
        let course = (y * 26.0).floor();
        let tile = hash((x * 30.0 + 0.5 * (course % 2.0)).floor() as i32, course as i32, 51);
        return Some(scale([0.58, 0.27, 0.18], 0.75 + 0.4 * tile));
    }
    if !(0.42..1.0).contains(&y) || !(0.0..1.0).contains(&x) {
        return None;
    }
    let door = (0.44..0.56).contains(&x) && y > 0.62;
    let pane_x = (x * 5.0 + 0.1).rem_euclid(1.0);
    let window = !(0.36..0.64).contains(&x) && (0.55..0.78).contains(&y) && (0.25..0.75).contains(&pane_x);
    if door {
        return Some([0.30, 0.19, 0.11]);
    }
    if window {
        let bar = (pane_x - 0.5).abs() < 0.04 || (y - 0.66).abs() < 0.012;
        return Some(if bar { [0.90, 0.89, 0.85] } else { mix([0.16, 0.20, 0.26], [0.50, 0.60, 0.70], 1.9 - 2.0 * y) });
    }
    let plaster = turbulence(x * 24.0, y * 20.0, 52);
    let shade = if y < 0.47 { 0.72 } else { 1.0 };
    Some(scale([0.88, 0.82, 0.70], shade * (0.86 + 0.2 * plaster)))
}

/// Trees along the road, nearest first: a trunk and a crown of leaves.
fn tree(u: f32, v: f32) -> Option<Colour> {
    let trees = [(0.07, 0.80, 0.56, 61), (0.95, 0.74, 0.44, 62), (0.24, 0.63, 0.27, 63), (0.60, 0.575, 0.15, 64)];
    trees.iter().find_map(|&(foot_u, foot_v, size, seed)| {
        let (x, y) = ((u - foot_u) / size, (foot_v - v) / size);
        let ragged = 0.14 * (turbulence(x * 12.0, y * 12.0, seed) - 0.5);
        let crown = (squared(x / 0.30) + squared((y - 0.72) / 0.42)).sqrt() + ragged * 4.0;
        if crown < 1.0 {
            let leaves = turbulence(x * 46.0, y * 46.0, seed + 10);
            let light = smooth(-0.9, 0.9, x * 1.6 + (y - 0.72) * 2.0 + (leaves - 0.5) * 1.4);
            return Some(scale(mix([0.10, 0.20, 0.07], [0.44, 0.55, 0.18], light), 0.6 + 0.7 * leaves));
        }
        if (0.0..0.5).contains(&y) && x.abs() < 0.030 - 0.012 * y {
            let bark = turbulence(x * 160.0, y * 30.0, seed + 20);
            return Some(scale([0.34, 0.26, 0.18], 0.6 + 0.6 * bark));
        }
        None
    })
}

// ---- noise and colours ---------------------------------------------------------------------------

/// A number from 0 to 1 that belongs to the point (x, y): the bits of an integer, well mixed.
fn hash(x: i32, y: i32, seed: u32) -> f32 {
    let mut bits = (x as u32).wrapping_mul(0x9E37_79B1) ^ (y as u32).wrapping_mul(0x85EB_CA77) ^ seed.wrapping_mul(0xC2B2_AE3D);
    bits = (bits ^ (bits >> 15)).wrapping_mul(0x2C1B_3C6D);
    bits = (bits ^ (bits >> 12)).wrapping_mul(0x297A_2D39);
    (bits ^ (bits >> 15)) as f32 / u32::MAX as f32
}

/// Smooth noise: hashes at whole numbers, blended in between.
fn noise(x: f32, y: f32, seed: u32) -> f32 {
    let (left, top) = (x.floor(), y.floor());
    let (fx, fy) = (smooth(0.0, 1.0, x - left), smooth(0.0, 1.0, y - top));
    let corner = |dx: i32, dy: i32| hash(left as i32 + dx, top as i32 + dy, seed);
    let upper = corner(0, 0) + (corner(1, 0) - corner(0, 0)) * fx;
    let lower = corner(0, 1) + (corner(1, 1) - corner(0, 1)) * fx;
    upper + (lower - upper) * fy
}

/// Five octaves of noise, each half as strong and twice as fine; from 0 to 1.
fn turbulence(x: f32, y: f32, seed: u32) -> f32 {
    let (mut sum, mut weight, mut pitch) = (0.0, 0.5, 1.0);
    for octave in 0..5 {
        sum += weight * noise(x * pitch, y * pitch, seed * 8 + octave);
        weight *= 0.5;
        pitch *= 2.0;
    }
    sum / 0.96875
}

/// From 0 at `from` to 1 at `to`, without corners.
fn smooth(from: f32, to: f32, value: f32) -> f32 {
    let t = ((value - from) / (to - from)).clamp(0.0, 1.0);
    t * t * (3.0 - 2.0 * t)
}

fn squared(value: f32) -> f32 {
    value * value
}

fn mix(a: Colour, b: Colour, share: f32) -> Colour {
    let share = share.clamp(0.0, 1.0);
    std::array::from_fn(|channel| a[channel] + (b[channel] - a[channel]) * share)
}

fn scale(colour: Colour, factor: f32) -> Colour {
    colour.map(|value| value * factor)
}
