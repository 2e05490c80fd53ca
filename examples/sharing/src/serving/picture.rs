//! Pictures: rows of pixels, the channels of a pixel side by side; from and to PNG; smoothed.

use std::io::Cursor;

use png::{BitDepth, ColorType, Compression, Decoder, Encoder, EncodingError};

use crate::world::Error;

/// Widest and highest that is read.
const SIDE_MAX: usize = 1_024;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Picture {
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) channels: usize,
    pub(super) pixels: Vec<u8>,
}

impl Picture {
    /// From a PNG of 8 bits in grey or RGB.
    pub(super) fn decode(key: &str, bytes: &[u8]) -> Result<Picture, Error> {
        let broken = |reason: &dyn std::fmt::Display| Error::Broken(format!("{key}: {reason}"));
        let mut reader = Decoder::new(Cursor::new(bytes)).read_info().map_err(|error| broken(&error))?;
        let info = reader.info();
        let (width, height) = (info.width as usize, info.height as usize);
        let channels = match (info.color_type, info.bit_depth) {
            (ColorType::Grayscale, BitDepth::Eight) => 1,
            (ColorType::Rgb, BitDepth::Eight) => 3,
            other => return Err(broken(&format_args!("{other:?} in place of grey or RGB in 8 bits"))),
        };
        if width > SIDE_MAX || height > SIDE_MAX {
            return Err(broken(&format_args!("{width} x {height} pixels; {SIDE_MAX} x {SIDE_MAX} are the most")));
        }
        let mut pixels = vec![0; width * height * channels];
        reader.next_frame(&mut pixels).map_err(|error| broken(&error))?;
        Ok(Picture { width, height, channels, pixels })
    }

    /// To a PNG.
    pub(super) fn encode(&self) -> Result<Vec<u8>, Error> {
        self.encoded().map_err(|error| Error::Broken(format!("a picture cannot be encoded: {error}")))
    }

    fn encoded(&self) -> Result<Vec<u8>, EncodingError> {
        let mut bytes = Vec::new();
        let mut encoder = Encoder::new(&mut bytes, self.width as u32, self.height as u32);
        encoder.set_color(if self.channels == 1 { ColorType::Grayscale } else { ColorType::Rgb });
        encoder.set_depth(BitDepth::Eight);
        encoder.set_compression(Compression::Fast);
        let mut writer = encoder.write_header()?;
        writer.write_image_data(&self.pixels)?;
        writer.finish()?;
        Ok(bytes)
    }

    /// One pixel; beyond the edges there is none.
    pub(super) fn pixel(&self, x: i64, y: i64) -> Option<&[u8]> {
        let (x, y) = (usize::try_from(x).ok()?, usize::try_from(y).ok()?);
        (x < self.width && y < self.height).then(|| &self.pixels[(y * self.width + x) * self.channels..][..self.channels])
    }

    /// Each pixel becomes the mean of itself and its neighbours in the two directions, with the weights 1, 2 and 1. Beyond an edge is what is at the edge.
    pub(super) fn smooth(&mut self) {
        let across = self.width * self.channels;
        for row in self.pixels.chunks_exact_mut(across.max(1)) {
            let before = row.to_vec();
            for at in 0..across {
                let left = before[if at < self.channels { at } else { at - self.channels }];
                let right = before[if at + self.channels < across { at + self.channels } else { at }];
                row[at] = mean(left, before[at], right);
            }
        }
        let before = self.pixels.clone();
        for y in 0..self.height {
            let above = &before[y.saturating_sub(1) * across..][..across];
            let here = &before[y * across..][..across];
            let below = &before[(y + 1).min(self.height - 1) * across..][..across];
            let row = &mut self.pixels[y * across..][..across];
            for (at, pixel) in row.iter_mut().enumerate() {
                *pixel = mean(above[at], here[at], below[at]);
            }
        }
    }
}

fn mean(before: u8, at: u8, after: u8) -> u8 {
    ((u16::from(before) + 2 * u16::from(at) + u16::from(after) + 2) / 4) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_decoded() {
        for (channels, width, height) in [(1, 7, 3), (3, 5, 9)] {
            let pixels = (0..width * height * channels).map(|at| (at * 37 % 256) as u8).collect();
            let picture = Picture { width, height, channels, pixels };
            let png = picture.encode().unwrap();
            assert_eq!(Picture::decode("p", &png).unwrap(), picture);
            let error = Picture::decode("photo/1", &png[..png.len() / 2]).unwrap_err().to_string();
            assert!(error.starts_with("photo/1: "), "{error}");
        }
    }

    #[test]
    fn smoothing_spreads_a_pixel_and_keeps_what_is_even() {
        let mut even = Picture { width: 4, height: 3, channels: 3, pixels: vec![77; 36] };
        even.smooth();
        assert_eq!(even.pixels, [77; 36]);
        let mut one = Picture { width: 5, height: 5, channels: 1, pixels: vec![0; 25] };
        one.pixels[12] = 160;
        one.smooth();
        let row = |y: usize| &one.pixels[5 * y..5 * y + 5];
        assert_eq!((row(0), row(1), row(2)), (&[0; 5][..], &[0, 10, 20, 10, 0][..], &[0, 20, 40, 20, 0][..]));
    }
}
