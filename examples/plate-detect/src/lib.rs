//! Finds the licence plate in a photograph of a street: JPEG in, JPEG with a box round the plate out.
//!
//! The function itself is [`mark`]; `main.rs` only connects it to standard input and output. Nothing was learned from examples: a plate is
//! four to nine dark pieces of one height in a row, on a light ground that ends soon behind them and is about four and a half times as wide
//! as high. Knows nothing of WebAssembly, Sledge or HTTP.

mod ink;
mod pieces;
mod plate;

use jpeg_encoder::{ColorType, Encoder};
pub use photograph::Error;
use photograph::{Colours, Photograph};

/// Widest and highest photograph that is accepted, in pixels: 48 MB.
pub const SIDE_PIXELS_MAX: usize = 4096;

/// Of the JPEG that is the reply, in percent.
const QUALITY: u8 = 85;

/// The colour of the box.
pub const BOX_COLOUR: [u8; 3] = [0, 255, 0];

/// Pixels of its lines, which are outside of what they surround.
pub const BOX_PIXELS: usize = 3;

/// A rectangle of pixels: those from `left` to `right` and from `top` to `bottom`, without the latter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rectangle {
    /// The first column.
    pub left: usize,
    /// The first row.
    pub top: usize,
    /// The first column that is no longer in it.
    pub right: usize,
    /// The first row that is no longer in it.
    pub bottom: usize,
}

/// The reply and what it shows.
#[derive(Debug)]
pub struct Marked {
    /// The photograph with the box.
    pub jpeg: Vec<u8>,
    /// What the box surrounds; none where nothing looks like a plate.
    pub plate: Option<Rectangle>,
}

/// Decodes `jpeg`, finds the plate, draws a box round it and encodes the photograph again.
///
/// # Errors
///
/// What is not a JPEG within [`SIDE_PIXELS_MAX`] is an [`Error::Decode`].
pub fn mark(jpeg: &[u8]) -> Result<Marked, Error> {
    let mut photograph = Photograph::decode(jpeg, SIDE_PIXELS_MAX, Colours::Three)?;
    let plate = find(&photograph);
    if let Some(plate) = plate {
        draw(&mut photograph, plate);
    }
    Ok(Marked { jpeg: encode(&photograph)?, plate })
}

/// The likeliest plate in a photograph.
#[must_use]
pub fn find(photograph: &Photograph) -> Option<Rectangle> {
    let grey = ink::Grey::of(photograph);
    let candidates = ink::LEVELS.iter().filter_map(|level| {
        let pieces = pieces::find(&ink::of(&grey, *level), grey.width);
        plate::likeliest(&grey, &pieces)
    });
    candidates.min_by(|a, b| a.cost.total_cmp(&b.cost)).map(|candidate| candidate.rectangle)
}

/// Encodes a photograph as a JPEG.
fn encode(photograph: &Photograph) -> Result<Vec<u8>, Error> {
    let mut jpeg = Vec::new();
    let size = |pixels: usize| u16::try_from(pixels).unwrap_or(u16::MAX);
    Encoder::new(&mut jpeg, QUALITY)
        .encode(&photograph.pixels, size(photograph.width), size(photograph.height), ColorType::Rgb)
        .map_err(|cause| Error::Encode(cause.into()))?;
    Ok(jpeg)
}

/// Draws the box round `inside`, as far as there are pixels.
fn draw(photograph: &mut Photograph, inside: Rectangle) {
    let (left, top) = (inside.left.saturating_sub(BOX_PIXELS), inside.top.saturating_sub(BOX_PIXELS));
    let right = (inside.right + BOX_PIXELS).min(photograph.width);
    let bottom = (inside.bottom + BOX_PIXELS).min(photograph.height);
    for y in top..bottom {
        for x in left..right {
            if x < inside.left || x >= inside.right || y < inside.top || y >= inside.bottom {
                photograph.pixel(x, y).copy_from_slice(&BOX_COLOUR);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jpeg_of(width: usize, height: usize) -> Vec<u8> {
        let pixels = (0..width * height).flat_map(|at| [(at % width * 3) as u8, (at / width * 5) as u8, 128]).collect();
        encode(&Photograph { width, height, channels: 3, pixels }).unwrap()
    }

    #[test]
    fn the_shipped_photograph_has_a_plate() {
        let marked = mark(include_bytes!("../input.jpg")).unwrap();
        let plate = marked.plate.expect("a plate");
        let mut photograph = Photograph::decode(&marked.jpeg, SIDE_PIXELS_MAX, Colours::Three).unwrap();
        let colour = photograph.pixel(plate.left - 2, plate.top - 2);
        assert!(colour[0] < 90 && colour[1] > 180 && colour[2] < 90, "{colour:?} beside {plate:?}");
    }

    #[test]
    fn nothing_is_marked_where_there_is_no_plate() {
        for (width, height) in [(320, 240), (1, 1), (9, 400)] {
            assert_eq!(mark(&jpeg_of(width, height)).unwrap().plate, None);
        }
    }

    #[test]
    fn what_is_not_a_jpeg_within_the_limit_is_refused() {
        assert!(matches!(mark(b""), Err(Error::Empty)));
        assert!(matches!(mark(b"GIF89a"), Err(Error::Decode { .. })));
        assert!(matches!(mark(&jpeg_of(64, 48)[..40]), Err(Error::Decode { .. })));
        let error = mark(&jpeg_of(SIDE_PIXELS_MAX + 1, 1)).unwrap_err();
        assert!(error.to_string().contains("4096"), "{error}");
    }

    #[test]
    fn the_box_ends_where_the_photograph_does() {
        let mut photograph = Photograph { width: 20, height: 10, channels: 3, pixels: vec![0; 600] };
        draw(&mut photograph, Rectangle { left: 1, top: 2, right: 20, bottom: 9 });
        assert_eq!(photograph.pixel(0, 9), BOX_COLOUR);
        assert_eq!(photograph.pixel(1, 2), [0, 0, 0]);
    }
}
