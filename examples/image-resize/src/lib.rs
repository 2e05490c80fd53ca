//! Halves a photograph: JPEG in, PNG of half the width and height out.
//!
//! The function itself is [`halve`]; `main.rs` only connects it to standard input and output. It is a
//! library as well so that a native program can compute what the sandboxed function has to answer.
//! Knows nothing of WebAssembly, Sledge or HTTP.

use std::fmt;
use std::io::Cursor;

use image::codecs::jpeg::JpegDecoder;
use image::codecs::png::PngEncoder;
use image::imageops::FilterType;
use image::{DynamicImage, ImageDecoder, ImageError, Limits};

/// Widest and highest photograph that is accepted, in pixels.
pub const SIDE_PIXELS_MAX: u32 = 8192;

/// Memory that decoding may take, in bytes: a JPEG of a few kilobytes can claim gigabytes.
pub const DECODE_BYTES_MAX: u64 = 256 << 20;

/// Why there is no reply. The text is for the one who sent the photograph.
#[derive(Debug)]
pub enum Error {
    /// The body was empty.
    Empty,
    /// The body is not a JPEG, or a broken one, or larger than the limits.
    Decode(ImageError),
    /// The smaller image could not be written as a PNG.
    Encode(ImageError),
}

/// Decodes `jpeg`, halves width and height (rounded down, at least one pixel) and encodes the result as
/// a PNG with the same kind of pixels (grey or RGB).
///
/// Each output pixel is the average of the input around it, weighted by a triangle two output pixels wide.
///
/// # Errors
///
/// What is not a JPEG within [`SIDE_PIXELS_MAX`] and [`DECODE_BYTES_MAX`] is an [`Error::Decode`].
pub fn halve(jpeg: &[u8]) -> Result<Vec<u8>, Error> {
    let photograph = decode(jpeg)?;
    let half = photograph.resize_exact((photograph.width() / 2).max(1), (photograph.height() / 2).max(1), FilterType::Triangle);
    let mut png = Vec::new();
    half.write_with_encoder(PngEncoder::new(&mut png)).map_err(Error::Encode)?;
    Ok(png)
}

fn decode(jpeg: &[u8]) -> Result<DynamicImage, Error> {
    if jpeg.is_empty() {
        return Err(Error::Empty);
    }
    let mut limits = Limits::default();
    limits.max_image_width = Some(SIDE_PIXELS_MAX);
    limits.max_image_height = Some(SIDE_PIXELS_MAX);
    limits.max_alloc = Some(DECODE_BYTES_MAX);
    let mut decoder = JpegDecoder::new(Cursor::new(jpeg)).map_err(Error::Decode)?;
    decoder.set_limits(limits).map_err(Error::Decode)?;
    DynamicImage::from_decoder(decoder).map_err(Error::Decode)
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Empty => write!(f, "the body is empty; expected is a JPEG"),
            Error::Decode(cause) => {
                write!(f, "the body cannot be decoded as a JPEG of at most {SIDE_PIXELS_MAX} x {SIDE_PIXELS_MAX} pixels: {cause}")
            }
            Error::Encode(cause) => write!(f, "the half-size image cannot be written as a PNG: {cause}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Empty => None,
            Error::Decode(cause) | Error::Encode(cause) => Some(cause),
        }
    }
}

#[cfg(test)]
mod tests {
    use image::codecs::jpeg::JpegEncoder;
    use image::{ImageFormat, Rgb, RgbImage};

    use super::*;

    fn jpeg_of(width: u32, height: u32) -> Vec<u8> {
        let picture = RgbImage::from_fn(width, height, |x, y| Rgb([(x * 3) as u8, (y * 5) as u8, 128]));
        let mut jpeg = Vec::new();
        picture.write_with_encoder(JpegEncoder::new_with_quality(&mut jpeg, 90)).unwrap();
        jpeg
    }

    #[test]
    fn halves_both_sides_rounding_down() {
        for (width, height, expected) in [(64, 48, (32, 24)), (33, 7, (16, 3)), (1, 1, (1, 1))] {
            let png = halve(&jpeg_of(width, height)).unwrap();
            let half = image::load_from_memory_with_format(&png, ImageFormat::Png).unwrap();
            assert_eq!((half.width(), half.height()), expected);
        }
    }

    #[test]
    fn the_shipped_photograph_is_halved() {
        let png = halve(include_bytes!("../input.jpg")).unwrap();
        let half = image::load_from_memory_with_format(&png, ImageFormat::Png).unwrap();
        assert_eq!((half.width(), half.height()), (256, 192));
    }

    #[test]
    fn what_is_not_a_jpeg_is_refused() {
        assert!(matches!(halve(b""), Err(Error::Empty)));
        assert!(matches!(halve(b"GIF89a"), Err(Error::Decode(_))));
        let jpeg = jpeg_of(64, 48);
        assert!(matches!(halve(&jpeg[..40]), Err(Error::Decode(_))));
    }

    #[test]
    fn a_picture_beyond_the_limits_is_refused() {
        let jpeg = jpeg_of(SIDE_PIXELS_MAX + 1, 1);
        let error = halve(&jpeg).unwrap_err();
        assert!(error.to_string().contains("8192"), "{error}");
    }
}
