//! Photographs, from JPEG and to JPEG.

use std::fmt;

use jpeg_encoder::{ColorType, Encoder, EncodingError};
use zune_core::bytestream::ZCursor;
use zune_core::colorspace::ColorSpace;
use zune_core::options::DecoderOptions;
use zune_jpeg::JpegDecoder;
use zune_jpeg::errors::DecodeErrors;

/// Widest and highest photograph that is accepted, in pixels: 48 MB.
pub const SIDE_PIXELS_MAX: usize = 4096;

const QUALITY: u8 = 85;

/// Why a photograph could not be read or written. The text is for the one who sent it.
#[derive(Debug)]
pub enum Error {
    /// The body was empty.
    Empty,
    /// The body is not a JPEG, or a broken one, or larger than the limit.
    Decode(DecodeErrors),
    /// The photograph could not be written as a JPEG again.
    Encode(EncodingError),
}

/// Pixels in red, green and blue.
#[derive(Debug)]
pub struct Photograph {
    /// Pixels of a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// Three bytes a pixel, row by row.
    pub rgb: Vec<u8>,
}

impl Photograph {
    /// Decodes a JPEG; what is grey has three equal colours then.
    ///
    /// # Errors
    ///
    /// What is not a JPEG within [`SIDE_PIXELS_MAX`] is an [`Error::Decode`].
    pub fn decode(jpeg: &[u8]) -> Result<Photograph, Error> {
        if jpeg.is_empty() {
            return Err(Error::Empty);
        }
        let options = DecoderOptions::default()
            .jpeg_set_out_colorspace(ColorSpace::RGB)
            .set_strict_mode(true)
            .set_max_width(SIDE_PIXELS_MAX)
            .set_max_height(SIDE_PIXELS_MAX);
        let mut decoder = JpegDecoder::new_with_options(ZCursor::new(jpeg), options);
        let rgb = decoder.decode().map_err(Error::Decode)?;
        let (width, height) = decoder.dimensions().ok_or(Error::Decode(DecodeErrors::FormatStatic("it has no size")))?;
        if rgb.is_empty() || rgb.len() != width * height * 3 {
            return Err(Error::Decode(DecodeErrors::FormatStatic("its pixels are not red, green and blue")));
        }
        Ok(Photograph { width, height, rgb })
    }

    /// Encodes it as a JPEG.
    ///
    /// # Errors
    ///
    /// When the encoder fails.
    pub fn encode(&self) -> Result<Vec<u8>, Error> {
        let mut jpeg = Vec::new();
        let size = |pixels: usize| u16::try_from(pixels).unwrap_or(u16::MAX);
        let encoder = Encoder::new(&mut jpeg, QUALITY);
        encoder.encode(&self.rgb, size(self.width), size(self.height), ColorType::Rgb).map_err(Error::Encode)?;
        Ok(jpeg)
    }

    /// The colour of a pixel.
    pub fn pixel(&mut self, x: usize, y: usize) -> &mut [u8] {
        let at = (y * self.width + x) * 3;
        &mut self.rgb[at..at + 3]
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
            Error::Encode(cause) => write!(f, "the photograph cannot be written as a JPEG: {cause}"),
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
