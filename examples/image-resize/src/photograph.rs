//! Photographs: from JPEG, to PNG, and half as large.

use std::fmt;

use png::{BitDepth, ColorType, Compression, Encoder, EncodingError};
use zune_core::bytestream::ZCursor;
use zune_core::colorspace::ColorSpace;
use zune_core::options::DecoderOptions;
use zune_jpeg::JpegDecoder;
use zune_jpeg::errors::DecodeErrors;

/// Widest and highest photograph that is accepted, in pixels: 192 MB.
pub const SIDE_PIXELS_MAX: usize = 8192;

/// Why there is no reply. The text is for the one who sent the photograph.
#[derive(Debug)]
pub enum Error {
    /// The body was empty.
    Empty,
    /// The body is not a JPEG, or a broken one, or larger than the limit.
    Decode(DecodeErrors),
    /// The smaller image could not be written as a PNG.
    Encode(EncodingError),
}

/// Pixels of one channel (grey) or three (red, green and blue), row by row.
#[derive(Debug)]
pub struct Photograph {
    width: usize,
    height: usize,
    channels: usize,
    pixels: Vec<u8>,
}

impl Photograph {
    /// Decodes a JPEG.
    ///
    /// # Errors
    ///
    /// What is not a JPEG within [`SIDE_PIXELS_MAX`] is an [`Error::Decode`].
    pub fn decode(jpeg: &[u8]) -> Result<Photograph, Error> {
        if jpeg.is_empty() {
            return Err(Error::Empty);
        }
        let options =
            DecoderOptions::default().set_strict_mode(true).set_max_width(SIDE_PIXELS_MAX).set_max_height(SIDE_PIXELS_MAX);
        let mut decoder = JpegDecoder::new_with_options(ZCursor::new(jpeg), options);
        decoder.decode_headers().map_err(Error::Decode)?;
        let grey = decoder.input_colorspace() == Some(ColorSpace::Luma);
        let (colours, channels) = if grey { (ColorSpace::Luma, 1) } else { (ColorSpace::RGB, 3) };
        decoder.set_options(options.jpeg_set_out_colorspace(colours));
        let pixels = decoder.decode().map_err(Error::Decode)?;
        let (width, height) = decoder.dimensions().unwrap_or_default();
        if pixels.is_empty() || pixels.len() != width * height * channels {
            return Err(Error::Decode(DecodeErrors::FormatStatic("its pixels are neither grey nor red, green and blue")));
        }
        Ok(Photograph { width, height, channels, pixels })
    }

    /// Half as wide and half as high, rounded down, but at least one pixel. Each pixel is the average of the 16 around it, weighted by 1, 3, 3
    /// and 1 in each direction: a triangle two output pixels wide. What is beyond an edge is like the edge.
    #[must_use]
    pub fn halved(&self) -> Photograph {
        let (width, height) = ((self.width / 2).max(1), (self.height / 2).max(1));
        let mut pixels = Vec::with_capacity(width * height * self.channels);
        let mut sums = vec![0_u16; self.width * self.channels];
        for y in 0..height {
            let row = |above: usize, below: usize| {
                let at = (2 * y + below).saturating_sub(above).min(self.height - 1);
                &self.pixels[at * self.width * self.channels..][..self.width * self.channels]
            };
            let (above, upper, lower, below) = (row(1, 0), row(0, 0), row(0, 1), row(0, 2));
            for (sum, (((a, b), c), d)) in sums.iter_mut().zip(above.iter().zip(upper).zip(lower).zip(below)) {
                *sum = u16::from(*a) + u16::from(*d) + 3 * (u16::from(*b) + u16::from(*c));
            }
            self.halve_row(&sums, width, &mut pixels);
        }
        Photograph { width, height, channels: self.channels, pixels }
    }

    /// The same across: from sums of a column's four pixels.
    fn halve_row(&self, sums: &[u16], width: usize, to: &mut Vec<u8>) {
        for x in 0..width {
            let last = self.width - 1;
            let column = |x: usize| &sums[x.min(last) * self.channels..][..self.channels];
            let (left, near, far, right) =
                (column((2 * x).saturating_sub(1)), column(2 * x), column(2 * x + 1), column(2 * x + 2));
            for channel in 0..self.channels {
                let sum = left[channel] + right[channel] + 3 * (near[channel] + far[channel]);
                to.push(((sum + 32) >> 6) as u8);
            }
        }
    }

    /// Encodes it as a PNG.
    ///
    /// # Errors
    ///
    /// When the encoder fails.
    pub fn encode(&self) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        let mut encoder = Encoder::new(&mut bytes, self.width as u32, self.height as u32);
        encoder.set_color(if self.channels == 1 { ColorType::Grayscale } else { ColorType::Rgb });
        encoder.set_depth(BitDepth::Eight);
        encoder.set_compression(Compression::Fast);
        let mut writer = encoder.write_header().map_err(Error::Encode)?;
        writer.write_image_data(&self.pixels).map_err(Error::Encode)?;
        writer.finish().map_err(Error::Encode)?;
        Ok(bytes)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Empty => write!(f, "the body is empty; expected is a JPEG"),
            Error::Decode(cause) => {
                write!(
                    f,
                    "the body cannot be decoded as a JPEG of at most {SIDE_PIXELS_MAX} x {SIDE_PIXELS_MAX} pixels: {cause:?}"
                )
            }
            Error::Encode(cause) => {
                write!(f, "the half-size image cannot be written as a PNG: {cause}")
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Empty => None,
            Error::Decode(cause) => Some(cause),
            Error::Encode(cause) => Some(cause),
        }
    }
}
