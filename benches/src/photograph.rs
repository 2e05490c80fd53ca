//! Judges replies of `image-resize`: decoded, they have to be pixel by pixel what the same code computes natively.

use anyhow::{Context, Result, ensure};
use image::{ImageFormat, RgbImage};

/// Decodes `reply` (a PNG) and compares it with the native run of the same function on `request` (a JPEG).
///
/// # Errors
///
/// If it is not a PNG, has another size or has a single pixel that differs.
pub fn judge(request: &[u8], reply: &[u8]) -> Result<Vec<String>> {
    let photograph = decode(request, ImageFormat::Jpeg).context("the input")?;
    let half = decode(reply, ImageFormat::Png).context("the reply")?;
    let native = image_resize::halve(request).context("the native run of image-resize")?;
    let wanted = decode(&native, ImageFormat::Png).context("the native run's output")?;
    let size = (photograph.width() / 2, photograph.height() / 2);
    ensure!(half.dimensions() == size, "it has {:?} pixels, half of the input is {size:?}", half.dimensions());
    ensure!(wanted.dimensions() == size, "the native run has {:?} pixels, half of the input is {size:?}", wanted.dimensions());
    let difference = half.as_raw().iter().zip(wanted.as_raw()).map(|(a, b)| a.abs_diff(*b)).max().unwrap_or(0);
    ensure!(difference == 0, "its pixels differ from the native run's by up to {difference} of 255");
    Ok(vec![
        format!("in:  JPEG, {} x {}, {} bytes", photograph.width(), photograph.height(), request.len()),
        format!("out: PNG, {} x {}, {} bytes; every pixel as in the native run", half.width(), half.height(), reply.len()),
    ])
}

fn decode(bytes: &[u8], format: ImageFormat) -> Result<RgbImage> {
    let decoded = image::load_from_memory_with_format(bytes, format)
        .with_context(|| format!("is not a {} ({} bytes)", format.extensions_str()[0], bytes.len()))?;
    Ok(decoded.into_rgb8())
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use image::Rgb;

    use super::*;
    use crate::example::IMAGE_RESIZE;

    #[test]
    fn the_native_reply_passes_and_one_changed_pixel_does_not() {
        let request = IMAGE_RESIZE.input().unwrap();
        let right = image_resize::halve(&request).unwrap();
        judge(&request, &right).unwrap();

        let mut changed = decode(&right, ImageFormat::Png).unwrap();
        let Rgb([red, green, blue]) = *changed.get_pixel(10, 10);
        changed.put_pixel(10, 10, Rgb([red ^ 1, green, blue]));
        let mut wrong = Vec::new();
        changed.write_to(&mut Cursor::new(&mut wrong), ImageFormat::Png).unwrap();
        assert!(judge(&request, &wrong).is_err());
        assert!(judge(&request, &request).is_err());
        assert!(judge(&request, b"").is_err());
    }
}
