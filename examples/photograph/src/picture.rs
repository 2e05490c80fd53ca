//! A photograph in memory, and how it gets there.

use std::fmt;

use zune_core::bytestream::ZCursor;
use zune_core::colorspace::ColorSpace;
use zune_core::options::DecoderOptions;
use zune_jpeg::JpegDecoder;
use zune_jpeg::errors::DecodeErrors;

/// Why there is no reply. The text is for the client that sent the photograph.
#[derive(Debug)]
pub enum Error {
    /// The body was empty.
    Empty,
    /// The body is not a JPEG, or a broken one, or larger than the limit.
    Decode {
        /// What is wrong with it.
        cause: DecodeErrors,
        /// Widest and highest photograph that the function accepts.
        side_pixels_max: usize,
    },
    /// The reply could not be encoded.
    Encode(Box<dyn std::error::Error + Send + Sync>),
}

/// What becomes of a photograph without colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colours {
    /// It has one channel.
    AsTheyAre,
    /// It has three equal ones.
    Three,
}

/// Pixels of one channel (grey) or three (red, green and blue), row by row.
#[derive(Debug)]
pub struct Photograph {
    /// Pixels of a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// Bytes of a pixel.
    pub channels: usize,
    /// `width * height * channels` bytes.
    pub pixels: Vec<u8>,
}

impl Photograph {
    /// Decodes a JPEG.
    ///
    /// # Errors
    ///
    /// What is not a JPEG of at most `side_pixels_max` in both directions is an [`Error::Decode`].
    pub fn decode(jpeg: &[u8], side_pixels_max: usize, colours: Colours) -> Result<Photograph, Error> {
        if jpeg.is_empty() {
            return Err(Error::Empty);
        }
        let refused = |cause| Error::Decode { cause, side_pixels_max };
        let options =
            DecoderOptions::default().set_strict_mode(true).set_max_width(side_pixels_max).set_max_height(side_pixels_max);
        let mut decoder = JpegDecoder::new_with_options(ZCursor::new(jpeg), options);
        decoder.decode_headers().map_err(refused)?;
        let is_grey = colours == Colours::AsTheyAre && decoder.input_colorspace() == Some(ColorSpace::Luma);
        let (space, channels) = if is_grey { (ColorSpace::Luma, 1) } else { (ColorSpace::RGB, 3) };
        decoder.set_options(options.jpeg_set_out_colorspace(space));
        let pixels = decoder.decode().map_err(refused)?;
        let (width, height) = decoder.dimensions().unwrap_or_default();
        if pixels.is_empty() || pixels.len() != width * height * channels {
            return Err(refused(DecodeErrors::FormatStatic("its pixels are neither grey nor red, green and blue")));
        }
        Ok(Photograph { width, height, channels, pixels })
    }

    /// The channels of a pixel.
    pub fn pixel(&mut self, x: usize, y: usize) -> &mut [u8] {
        let at = (y * self.width + x) * self.channels;
        &mut self.pixels[at..at + self.channels]
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Empty => write!(f, "the body is empty; expected is a JPEG"),
            Error::Decode { cause, side_pixels_max: most } => {
                write!(f, "the body cannot be decoded as a JPEG of at most {most} x {most} pixels: {cause:?}")
            }
            Error::Encode(cause) => write!(f, "the reply cannot be encoded: {cause}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Empty => None,
            Error::Decode { cause, .. } => Some(cause),
            Error::Encode(cause) => Some(&**cause),
        }
    }
}
