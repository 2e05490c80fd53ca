//! Photographs half as large, and as PNGs.

use photograph::{Error, Photograph};
use png::{BitDepth, ColorType, Compression, Encoder, EncodingError};

/// Half as wide and half as high, rounded down, but at least one pixel. Each pixel is the average of the 16 around it, weighted by 1, 3, 3
/// and 1 in each direction: a triangle two output pixels wide. What is beyond an edge is like the edge.
pub(crate) fn of(whole: &Photograph) -> Photograph {
    let (width, height, channels) = ((whole.width / 2).max(1), (whole.height / 2).max(1), whole.channels);
    let mut pixels = Vec::with_capacity(width * height * channels);
    let mut sums = vec![0_u16; whole.width * channels];
    for y in 0..height {
        let row = |above: usize, below: usize| {
            let at = (2 * y + below).saturating_sub(above).min(whole.height - 1);
            &whole.pixels[at * whole.width * channels..][..whole.width * channels]
        };
        let (above, upper, lower, below) = (row(1, 0), row(0, 0), row(0, 1), row(0, 2));
        for (sum, (((a, b), c), d)) in sums.iter_mut().zip(above.iter().zip(upper).zip(lower).zip(below)) {
            *sum = u16::from(*a) + u16::from(*d) + 3 * (u16::from(*b) + u16::from(*c));
        }
        row_of(whole, &sums, width, &mut pixels);
    }
    Photograph { width, height, channels, pixels }
}

/// The same across: from sums of a column's four pixels.
fn row_of(whole: &Photograph, sums: &[u16], width: usize, to: &mut Vec<u8>) {
    for x in 0..width {
        let last = whole.width - 1;
        let column = |x: usize| &sums[x.min(last) * whole.channels..][..whole.channels];
        let (left, near, far, right) = (column((2 * x).saturating_sub(1)), column(2 * x), column(2 * x + 1), column(2 * x + 2));
        for channel in 0..whole.channels {
            let sum = left[channel] + right[channel] + 3 * (near[channel] + far[channel]);
            to.push(((sum + 32) >> 6) as u8);
        }
    }
}

/// Encodes a photograph as a PNG.
pub(crate) fn png(photograph: &Photograph) -> Result<Vec<u8>, Error> {
    encoded(photograph).map_err(|cause| Error::Encode(cause.into()))
}

fn encoded(photograph: &Photograph) -> Result<Vec<u8>, EncodingError> {
    let mut bytes = Vec::new();
    let mut encoder = Encoder::new(&mut bytes, photograph.width as u32, photograph.height as u32);
    encoder.set_color(if photograph.channels == 1 { ColorType::Grayscale } else { ColorType::Rgb });
    encoder.set_depth(BitDepth::Eight);
    encoder.set_compression(Compression::Fast);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&photograph.pixels)?;
    writer.finish()?;
    Ok(bytes)
}
