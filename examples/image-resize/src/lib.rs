//! Halves a photograph: JPEG in, PNG of half the width and height out.
//!
//! The function itself is [`halve`]; `main.rs` only connects it to standard input and output. It is a
//! library as well so that a native program can compute what the sandboxed function has to answer.
//! Knows nothing of WebAssembly, Sledge or HTTP.

mod half;

pub use photograph::Error;
use photograph::{Colours, Photograph};

/// Widest and highest photograph that is accepted, in pixels: 192 MB.
pub const SIDE_PIXELS_MAX: usize = 8192;

/// Decodes `jpeg`, halves width and height and encodes the result as a PNG with the same kind of pixels (grey or RGB).
///
/// # Errors
///
/// What is not a JPEG within [`SIDE_PIXELS_MAX`] is an [`Error::Decode`].
pub fn halve(jpeg: &[u8]) -> Result<Vec<u8>, Error> {
    half::png(&half::of(&Photograph::decode(jpeg, SIDE_PIXELS_MAX, Colours::AsTheyAre)?))
}

#[cfg(test)]
mod tests {
    use image::codecs::jpeg::JpegEncoder;
    use image::{GrayImage, ImageFormat, Luma, Rgb, RgbImage};

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
        assert!(matches!(halve(b"GIF89a"), Err(Error::Decode { .. })));
        let jpeg = jpeg_of(64, 48);
        assert!(matches!(halve(&jpeg[..40]), Err(Error::Decode { .. })));
    }

    #[test]
    fn a_picture_beyond_the_limits_is_refused() {
        let jpeg = jpeg_of(SIDE_PIXELS_MAX as u32 + 1, 1);
        let error = halve(&jpeg).unwrap_err();
        assert!(error.to_string().contains("8192"), "{error}");
    }

    #[test]
    fn grey_stays_grey_and_each_pixel_is_an_average() {
        // Steep enough to show the weights, even enough for a JPEG to keep it.
        let picture = GrayImage::from_fn(64, 32, |x, y| Luma([(x * 3 + y) as u8]));
        let mut jpeg = Vec::new();
        picture.write_with_encoder(JpegEncoder::new_with_quality(&mut jpeg, 100)).unwrap();
        let half = image::load_from_memory_with_format(&halve(&jpeg).unwrap(), ImageFormat::Png).unwrap();
        let half = half.as_luma8().expect("grey");
        for (x, y) in [(1, 1), (10, 5), (30, 14)] {
            let wanted = (2 * x * 3 + 2 * y) as f32 + 2.0;
            let is = f32::from(half.get_pixel(x, y).0[0]);
            assert!((is - wanted).abs() <= 2.0, "({x}, {y}) is {is}, not about {wanted}");
        }
    }
}
