//! What `examples/image-classify` is trained on and judged by: pictures of ten classes, drawn from a seed.
//!
//! A shape or a pattern of any size, place, direction and colour, on a ground that shades into another colour, beneath lines that have
//! nothing to do with it, with noise. Colours say nothing about the class.

use anyhow::{Context, Result, ensure};

use crate::random::Random;

/// Pixels, each way.
pub const SIDE: usize = 32;
/// Bytes of a picture: red, green and blue for each pixel, row by row.
pub const BYTES: usize = SIDE * SIDE * 3;

/// What there is to see. The first six are one shape, the last three fill the picture.
pub const CLASSES: [&str; 10] =
    ["disc", "ring", "triangle", "square", "cross", "star", "crescent", "stripes", "chequers", "dots"];

/// Samples of a pixel, each way.
const SAMPLES: usize = 3;
/// The least by which the colours of the shape and of the ground differ in one channel.
const CONTRAST_MIN: f32 = 80.0;
/// The strongest noise: its standard deviation.
const NOISE_MAX: f32 = 16.0;

type Colour = [f32; 3];

/// Where the shape is: from pixels to its own coordinates, in which it is about 1 in radius.
struct Place {
    centre: [f32; 2],
    cosine: f32,
    sine: f32,
    /// Pixels of its radius, along and across its direction.
    radius: [f32; 2],
}

/// A line across the picture: the points where `a x + b y - c` is nearly 0.
struct Line {
    a: f32,
    b: f32,
    c: f32,
    colour: Colour,
}

/// Draws a picture of a class.
#[must_use]
pub fn draw(class: usize, seed: u64) -> [u8; BYTES] {
    let mut random = Random(seed.wrapping_mul(CLASSES.len() as u64) + class as u64);
    let place = place(&mut random, class);
    let (shape, ground) = colours(&mut random);
    let shade: Colour = std::array::from_fn(|_| random.between(-35.0, 35.0));
    let angle = random.between(0.0, std::f32::consts::TAU);
    let (shade_x, shade_y) = (angle.cos() / SIDE as f32, angle.sin() / SIDE as f32);
    let lines: Vec<Line> = (0..random.below(3)).map(|_| line(&mut random)).collect();
    let noise = random.between(2.0, NOISE_MAX);
    let mut picture = [0; BYTES];
    for y in 0..SIDE {
        for x in 0..SIDE {
            let middle = [x as f32 + 0.5, y as f32 + 0.5];
            let light = (middle[0] - 16.0) * shade_x + (middle[1] - 16.0) * shade_y;
            let share = covered(class, &place, x, y);
            let mut colour: Colour =
                std::array::from_fn(|i| (ground[i] + shade[i] * light * 2.0) * (1.0 - share) + shape[i] * share);
            for line in &lines {
                let near = (1.0 - (line.a * middle[0] + line.b * middle[1] - line.c).abs()).clamp(0.0, 1.0);
                colour = std::array::from_fn(|i| colour[i] + (line.colour[i] - colour[i]) * near);
            }
            for (i, value) in colour.iter().enumerate() {
                picture[(y * SIDE + x) * 3 + i] = (value + noise * random.normal()).clamp(0.0, 255.0) as u8;
            }
        }
    }
    picture
}

/// The picture as a portable pixmap (P6).
#[must_use]
pub fn to_ppm(picture: &[u8; BYTES]) -> Vec<u8> {
    [format!("P6\n{SIDE} {SIDE}\n255\n").as_bytes(), picture].concat()
}

/// What a reply says is in the picture: the name in its first line.
///
/// # Errors
///
/// If the reply is not a class and ten scores that add up to one, the first of them the highest.
pub fn label(reply: &[u8]) -> Result<&str> {
    let text = std::str::from_utf8(reply).context("the reply is not UTF-8")?;
    let mut scores = Vec::new();
    for line in text.lines() {
        let (name, score) = line.split_once(' ').with_context(|| format!("no class and score: {line:?}"))?;
        ensure!(CLASSES.contains(&name), "there is no class {name:?}");
        scores.push((name, score.parse::<f64>().with_context(|| format!("no score: {line:?}"))?));
    }
    ensure!(scores.len() == CLASSES.len(), "there are {} scores instead of {}", scores.len(), CLASSES.len());
    ensure!(scores.is_sorted_by(|a, b| a.1 >= b.1), "the scores are in no order:\n{text}");
    let sum: f64 = scores.iter().map(|(_, score)| score).sum();
    ensure!((sum - 1.0).abs() < 0.01, "the scores add up to {sum}:\n{text}");
    Ok(scores[0].0)
}

/// Judges a reply by the one that was committed.
///
/// # Errors
///
/// If it says anything else.
pub fn judge(wanted: &[u8], reply: &[u8]) -> Result<Vec<String>> {
    let (wanted_label, label) = (label(wanted)?, label(reply)?);
    ensure!(wanted == reply, "wanted are these scores:\n{}\nnot\n{}", wanted.escape_ascii(), reply.escape_ascii());
    Ok(vec![format!("it is a {label}, as it should be: {wanted_label}")])
}

fn place(random: &mut Random, class: usize) -> Place {
    let angle = random.between(0.0, std::f32::consts::TAU);
    // A pattern's radius is half a period.
    let size = if class < 7 { random.between(8.0, 13.0) } else { random.between(2.2, 4.5) };
    let room = if class < 7 { (16.0 - size).max(1.0) } else { size };
    Place {
        centre: std::array::from_fn(|_| 16.0 + random.between(-room, room)),
        cosine: angle.cos(),
        sine: angle.sin(),
        radius: [size, size * random.between(0.85, 1.0)],
    }
}

/// Of the shape and of the ground.
fn colours(random: &mut Random) -> (Colour, Colour) {
    loop {
        let [shape, ground]: [Colour; 2] = std::array::from_fn(|_| std::array::from_fn(|_| random.between(0.0, 255.0)));
        if shape.iter().zip(&ground).any(|(a, b)| (a - b).abs() >= CONTRAST_MIN) {
            return (shape, ground);
        }
    }
}

fn line(random: &mut Random) -> Line {
    let angle = random.between(0.0, std::f32::consts::TAU);
    let (a, b) = (angle.cos(), angle.sin());
    let (x, y) = (random.between(0.0, 32.0), random.between(0.0, 32.0));
    Line { a, b, c: a * x + b * y, colour: std::array::from_fn(|_| random.between(0.0, 255.0)) }
}

/// Which share of a pixel the shape covers.
fn covered(class: usize, place: &Place, x: usize, y: usize) -> f32 {
    let mut inside = 0;
    for sample in 0..SAMPLES * SAMPLES {
        let along = |at: usize, step: usize| at as f32 + (step as f32 + 0.5) / SAMPLES as f32;
        let (dx, dy) = (along(x, sample % SAMPLES) - place.centre[0], along(y, sample / SAMPLES) - place.centre[1]);
        let u = (dx * place.cosine + dy * place.sine) / place.radius[0];
        let v = (dy * place.cosine - dx * place.sine) / place.radius[1];
        inside += usize::from(is_inside(class, u, v));
    }
    inside as f32 / (SAMPLES * SAMPLES) as f32
}

fn is_inside(class: usize, u: f32, v: f32) -> bool {
    let radius = u.hypot(v);
    let odd = |x: f32| x.rem_euclid(2.0) >= 1.0;
    match CLASSES[class] {
        "disc" => radius < 0.95,
        "ring" => (0.55..1.0).contains(&radius),
        "triangle" => v > -0.55 && 0.866 * u.abs() + 0.5 * v < 0.55,
        "square" => u.abs().max(v.abs()) < 0.82,
        "cross" => u.abs().min(v.abs()) < 0.28 && u.abs().max(v.abs()) < 1.0,
        "star" => {
            // Between a point and the notch beside it, in one of ten equal slices.
            let slice = std::f32::consts::PI / 5.0;
            let angle = v.atan2(u).rem_euclid(2.0 * slice);
            let angle = angle.min(2.0 * slice - angle);
            let (notch_x, notch_y) = (0.42 * slice.cos(), 0.42 * slice.sin());
            let (x, y) = (radius * angle.cos(), radius * angle.sin());
            (1.1 - x) * notch_y - y * (1.1 - notch_x) > 0.0
        }
        "crescent" => radius < 1.0 && (u - 0.45).hypot(v) > 0.8,
        "stripes" => odd(u),
        "chequers" => odd(u) != odd(v),
        _ => (u.rem_euclid(2.0) - 1.0).hypot(v.rem_euclid(2.0) - 1.0) < 0.62,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(picture: &[u8; BYTES]) -> Colour {
        std::array::from_fn(|i| picture.iter().skip(i).step_by(3).map(|v| f32::from(*v)).sum::<f32>() / (SIDE * SIDE) as f32)
    }

    #[test]
    fn colours_do_not_give_the_class_away() {
        const SEEDS: u64 = 200;
        let means: Vec<Vec<Colour>> =
            (0..CLASSES.len()).map(|class| (0..SEEDS).map(|seed| mean(&draw(class, seed))).collect()).collect();
        let centre = |class: usize| -> Colour {
            std::array::from_fn(|i| means[class].iter().map(|mean| mean[i]).sum::<f32>() / SEEDS as f32)
        };
        let centres: Vec<Colour> = (0..CLASSES.len()).map(centre).collect();
        let distance = |a: &Colour, b: &Colour| a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f32>();
        let mut right = 0;
        for class in 0..CLASSES.len() {
            for seed in SEEDS..2 * SEEDS {
                let its = mean(&draw(class, seed));
                let nearest =
                    (0..CLASSES.len()).min_by(|a, b| distance(&its, &centres[*a]).total_cmp(&distance(&its, &centres[*b])));
                right += u64::from(nearest == Some(class));
            }
        }
        let share = right as f64 / (SEEDS * CLASSES.len() as u64) as f64;
        assert!(share < 0.2, "the mean colour alone tells the class of {share} of the pictures");
    }

    #[test]
    fn a_reply_is_a_class_and_its_scores() {
        let reply = |first: &str| {
            let rest: String = CLASSES[1..].iter().map(|name| format!("{name} 0.010\n")).collect();
            format!("{first}\n{rest}").into_bytes()
        };
        assert_eq!(label(&reply("disc 0.910")).unwrap(), "disc");
        for wrong in ["disc 0.500", "disc 0.001", "dog 0.910", "disc"] {
            assert!(label(&reply(wrong)).is_err(), "{wrong}");
        }
        assert!(judge(&reply("disc 0.910"), &reply("disc 0.911")).is_err());
    }
}
