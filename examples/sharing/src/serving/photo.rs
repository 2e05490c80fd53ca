//! ImgRot and ImgRes: photographs as PNGs, rotated and reduced. In whole numbers, so that each pixel is the same everywhere.

use crate::world::{Error, World, read};

use super::Output;
use super::picture::Picture;

/// A number of 1, of coordinates and of sines.
const ONE: i64 = 1 << 16;

pub(super) fn rotate(world: &mut dyn World, input: u32, work: u32) -> Result<Output, Error> {
    let key = format!("photo/{input}");
    let photo = Picture::decode(&key, &read(world, &key)?)?;
    let tilt = number(&format!("tilt/{input}"), world)?;
    let frame = number("frame", world)? as u8;
    let rotated = rotated(&photo, tilt, frame, work);
    let bytes = rotated.encode()?;
    world.set(&format!("rotated/{input}"), &bytes)?;
    Ok(Output { bytes, result: format!("{} x {} pixels", rotated.width, rotated.height) })
}

pub(super) fn resize(world: &mut dyn World, input: u32, work: u32) -> Result<Output, Error> {
    let key = format!("photo/{input}");
    let mut photo = Picture::decode(&key, &read(world, &key)?)?;
    let side = number(&format!("album/{}", input % super::data::ALBUMS), world)? as usize;
    let smoothing = number("smoothing", world)? as u32;
    for _ in 0..smoothing.max(1) * work {
        photo.smooth();
    }
    let thumb = reduced(&photo, side);
    let bytes = thumb.encode()?;
    world.set(&format!("thumb/{input}"), &bytes)?;
    Ok(Output { bytes, result: format!("{} x {} pixels", thumb.width, thumb.height) })
}

/// A setting: a number from 0 to 255, in decimal digits.
fn number(key: &str, world: &mut dyn World) -> Result<i64, Error> {
    let value = read(world, key)?;
    let number = std::str::from_utf8(&value).ok().and_then(|text| text.parse::<u8>().ok());
    number.map(i64::from).ok_or_else(|| Error::Broken(format!("{key} is no number from 0 to 255")))
}

/// Sine and cosine of the angle whose half has the tangent `tilt` / 256: both are fractions of whole numbers.
fn sine_and_cosine(tilt: i64) -> (i64, i64) {
    let (p, q) = (tilt, 256);
    let radius = p * p + q * q;
    (2 * p * q * ONE / radius, (q * q - p * p) * ONE / radius)
}

/// Around the middle; each pixel is the mean of so many samples of the photograph inside of it.
fn rotated(photo: &Picture, tilt: i64, frame: u8, samples: u32) -> Picture {
    let (sine, cosine) = sine_and_cosine(tilt);
    let (middle_x, middle_y) = (photo.width as i64 * ONE / 2, photo.height as i64 * ONE / 2);
    let mut pixels = Vec::with_capacity(photo.pixels.len());
    let mut sums = vec![0_u64; photo.channels];
    for y in 0..photo.height as i64 {
        for x in 0..photo.width as i64 {
            sums.fill(0);
            for sample in 0..i64::from(samples) {
                // Steps by irrational parts of a pixel fill it evenly.
                let (across, down) = (((2 * sample + 1) * 49_471 / 2) % ONE, ((2 * sample + 1) * 37_343 / 2) % ONE);
                let (dx, dy) = (x * ONE + across - middle_x, y * ONE + down - middle_y);
                let from_x = (dx * cosine + dy * sine) / ONE + middle_x;
                let from_y = (dy * cosine - dx * sine) / ONE + middle_y;
                let found = photo.pixel(from_x.div_euclid(ONE), from_y.div_euclid(ONE));
                for (channel, sum) in sums.iter_mut().enumerate() {
                    *sum += u64::from(found.map_or(frame, |pixel| pixel[channel]));
                }
            }
            pixels.extend(sums.iter().map(|sum| (sum / u64::from(samples.max(1))) as u8));
        }
    }
    Picture { pixels, ..photo.clone() }
}

/// To a square of at most `side` pixels: each is the mean of those of the photograph in its place.
fn reduced(photo: &Picture, side: usize) -> Picture {
    let (width, height) = (side.clamp(1, photo.width.max(1)), side.clamp(1, photo.height.max(1)));
    let mut pixels = Vec::with_capacity(width * height * photo.channels);
    for y in 0..height {
        let rows = y * photo.height / height..((y + 1) * photo.height / height);
        for x in 0..width {
            let columns = x * photo.width / width..(x + 1) * photo.width / width;
            let count = (rows.len() * columns.len()).max(1);
            for channel in 0..photo.channels {
                let at = |row: usize, column: usize| {
                    usize::from(photo.pixels[(row * photo.width + column) * photo.channels + channel])
                };
                let sum: usize = rows.clone().map(|row| columns.clone().map(|column| at(row, column)).sum::<usize>()).sum();
                pixels.push((sum / count) as u8);
            }
        }
    }
    Picture { width, height, channels: photo.channels, pixels }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn photo(width: usize, height: usize) -> Picture {
        let pixels = (0..width * height * 3).map(|at| (at * 7 % 251) as u8).collect();
        Picture { width, height, channels: 3, pixels }
    }

    #[test]
    fn no_tilt_changes_nothing_and_a_quarter_turns() {
        let photo = photo(16, 16);
        assert_eq!(rotated(&photo, 0, 9, 4), photo);
        let turned = rotated(&photo, 256, 9, 1);
        // Up becomes right: the pixel at (x, y) comes from (y, 15 - x).
        for y in 0..16 {
            for x in 0..16 {
                assert_eq!(turned.pixel(x, y), photo.pixel(y, 15 - x), "{x} {y}");
            }
        }
    }

    #[test]
    fn corners_are_the_frame() {
        let turned = rotated(&photo(40, 40), 106, 255, 2);
        assert_eq!((turned.pixel(0, 0), turned.pixel(39, 39)), (Some(&[255; 3][..]), Some(&[255; 3][..])));
    }

    #[test]
    fn a_reduced_pixel_is_a_mean() {
        let photo = Picture { width: 4, height: 2, channels: 1, pixels: vec![0, 10, 100, 100, 20, 30, 100, 108] };
        assert_eq!(reduced(&photo, 2).pixels, [5, 100, 25, 104]);
        assert_eq!((reduced(&photo, 1).pixels, reduced(&photo, 99)), (vec![58], photo));
    }
}
