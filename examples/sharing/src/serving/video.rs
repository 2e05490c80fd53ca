//! VidConv: a clip in YUV4MPEG2, in parts, becomes grey.

use crate::world::{Error, World, read};

use super::Output;
use super::picture::Picture;

pub(super) const PARTS: usize = 4;
/// Widest and highest frame that is read.
const SIDE_MAX: usize = 1_024;

pub(super) fn convert(world: &mut dyn World, input: u32, work: u32) -> Result<Output, Error> {
    let mut clip = Vec::new();
    for part in 0..PARTS {
        clip.extend(read(world, &format!("clip/{input}/{part}"))?);
    }
    let (bytes, frames) = grey(&clip, work).map_err(|reason| Error::Broken(format!("clip/{input}: {reason}")))?;
    world.set(&format!("grey/{input}"), &bytes)?;
    Ok(Output { bytes, result: format!("{frames} frames") })
}

/// The text up to a line's end, and what comes behind it.
fn line(bytes: &[u8]) -> Result<(&str, &[u8]), String> {
    let end = bytes.iter().take(256).position(|byte| *byte == b'\n').ok_or("a line has no end")?;
    let text = std::str::from_utf8(&bytes[..end]).map_err(|_| "a line is no text")?;
    Ok((text, &bytes[end + 1..]))
}

/// The same clip without colours, each frame smoothed so often; and how many frames it has.
fn grey(clip: &[u8], passes: u32) -> Result<(Vec<u8>, usize), String> {
    let (head, mut rest) = line(clip)?;
    let fields = head.strip_prefix("YUV4MPEG2 ").ok_or("it does not begin with YUV4MPEG2")?;
    let field = |letter: char| fields.split(' ').find_map(|field| field.strip_prefix(letter));
    let side = |letter: char| match field(letter).and_then(|text| text.parse::<usize>().ok()) {
        Some(side) if (2..=SIDE_MAX).contains(&side) && side % 2 == 0 => Ok(side),
        _ => Err(format!("`{fields}` has no even {letter} up to {SIDE_MAX}")),
    };
    let (width, height, rate) = (side('W')?, side('H')?, field('F').unwrap_or("25:1"));
    if field('C') != Some("420") {
        return Err(format!("`{fields}` is not in the colour space C420"));
    }
    let mut out = format!("YUV4MPEG2 W{width} H{height} F{rate} Cmono\n").into_bytes();
    let mut frames = 0;
    while !rest.is_empty() {
        let (mark, behind) = line(rest)?;
        let (luma, colours) = (width * height, width * height / 2);
        if mark != "FRAME" || behind.len() < luma + colours {
            return Err(format!("frame {frames} is not whole"));
        }
        let mut frame =
            Picture { width, height, channels: 1, pixels: behind[..luma].iter().map(|luma| full_range(*luma)).collect() };
        (0..passes).for_each(|_| frame.smooth());
        out.extend_from_slice(b"FRAME\n");
        out.extend_from_slice(&frame.pixels);
        frames += 1;
        rest = &behind[luma + colours..];
    }
    Ok((out, frames))
}

/// Brightness of studios (16 to 235) as that of computers.
fn full_range(luma: u8) -> u8 {
    ((u16::from(luma.clamp(16, 235)) - 16) * 255 / 219) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_go_and_brightness_stays() {
        let frame = |luma: u8| [b"FRAME\n".to_vec(), vec![luma; 8], vec![9; 4]].concat();
        let clip = [b"YUV4MPEG2 W4 H2 F30:1 C420\n".to_vec(), frame(16), frame(235)].concat();
        let expected = [b"YUV4MPEG2 W4 H2 F30:1 Cmono\nFRAME\n".to_vec(), vec![0; 8], b"FRAME\n".to_vec(), vec![255; 8]].concat();
        assert_eq!(grey(&clip, 2), Ok((expected, 2)));
    }

    #[test]
    fn what_is_no_clip_is_refused() {
        for (clip, reason) in [
            (&b"RIFF\n"[..], "begin with YUV4MPEG2"),
            (b"YUV4MPEG2 W4 H3 C420\n", "no even H"),
            (b"YUV4MPEG2 W4 H2 C444\n", "colour space"),
            (b"YUV4MPEG2 W4 H2 C420\nFRAME\n12", "frame 0 is not whole"),
            (b"YUV4MPEG2", "no end"),
        ] {
            let error = grey(clip, 1).unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
    }
}
