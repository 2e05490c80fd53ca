//! CNN-serv: the class of a picture of 32 x 32 pixels, by two convolutions and a dense layer in numbers of 8 bits.

use crate::world::{Error, World, read};

use super::{Output, sized};

pub(super) const SIDE: usize = 32;
pub(super) const CHANNELS: usize = 3;
pub(super) const FILTERS: usize = 16;
pub(super) const CLASSES: usize = 10;
const KERNEL: usize = 5;
pub(super) const FIRST_WEIGHTS: usize = FILTERS * KERNEL * KERNEL * CHANNELS;
pub(super) const SECOND_WEIGHTS: usize = FILTERS * KERNEL * KERNEL * FILTERS;
/// Of the second pooling's output, for each class.
pub(super) const DENSE_WEIGHTS: usize = CLASSES * FEATURES;
const FEATURES: usize = (SIDE / 4) * (SIDE / 4) * FILTERS;

struct Network<'a> {
    first: &'a [i8],
    second: &'a [i8],
    dense: &'a [i8],
}

pub(super) fn serve(world: &mut dyn World, input: u32, work: u32) -> Result<Output, Error> {
    let layer = |world: &mut dyn World, key: &str, weights: usize| -> Result<Vec<i8>, Error> {
        let blob = read(world, key)?;
        Ok(sized(key, &blob, weights)?.iter().map(|byte| *byte as i8).collect())
    };
    let first = layer(world, "cnn/first", FIRST_WEIGHTS)?;
    let second = layer(world, "cnn/second", SECOND_WEIGHTS)?;
    let dense = layer(world, "cnn/dense", DENSE_WEIGHTS)?;
    let key = format!("picture/{input}");
    let picture = read(world, &key)?;
    let picture = sized(&key, &picture, SIDE * SIDE * CHANNELS)?;
    let network = Network { first: &first, second: &second, dense: &dense };
    let mut scores = [0_i64; CLASSES];
    for copy in 0..work as usize {
        let shifted = shifted(picture, copy % KERNEL, copy / KERNEL % KERNEL);
        for (sum, score) in scores.iter_mut().zip(network.scores(&shifted)) {
            *sum += i64::from(score);
        }
    }
    let best = (0..CLASSES).max_by_key(|class| scores[*class]).unwrap_or_default();
    let bytes = scores.iter().flat_map(|score| score.to_le_bytes()).collect::<Vec<u8>>();
    world.set(&format!("class/{input}"), &bytes)?;
    Ok(Output { bytes, result: format!("class {best}") })
}

/// The picture in signed numbers, moved right and down by up to 4 pixels; what comes in is dark.
fn shifted(picture: &[u8], right: usize, down: usize) -> Vec<i8> {
    let mut moved = vec![i8::MIN / 2; SIDE * SIDE * CHANNELS];
    for y in down..SIDE {
        let from = &picture[(y - down) * SIDE * CHANNELS..][..(SIDE - right) * CHANNELS];
        let to = &mut moved[(y * SIDE + right) * CHANNELS..(y + 1) * SIDE * CHANNELS];
        for (to, from) in to.iter_mut().zip(from) {
            *to = (i16::from(*from) / 2 - 64) as i8;
        }
    }
    moved
}

impl Network<'_> {
    fn scores(&self, picture: &[i8]) -> [i32; CLASSES] {
        let first = pooled(&convolved(picture, SIDE, CHANNELS, self.first), SIDE);
        let second = pooled(&convolved(&first, SIDE / 2, FILTERS, self.second), SIDE / 2);
        std::array::from_fn(|class| dot(&second, &self.dense[class * FEATURES..][..FEATURES]))
    }
}

fn dot(a: &[i8], b: &[i8]) -> i32 {
    a.iter().zip(b).map(|(a, b)| i32::from(*a) * i32::from(*b)).sum()
}

/// Each filter at each pixel, over what is beyond the edges as zeros; negative sums become 0 (ReLU), others get 8 bits.
fn convolved(picture: &[i8], side: usize, channels: usize, weights: &[i8]) -> Vec<i8> {
    const MARGIN: usize = KERNEL / 2;
    let wide = side + 2 * MARGIN;
    let mut margined = vec![0; wide * wide * channels];
    for (y, row) in picture.chunks_exact(side * channels).enumerate() {
        margined[((y + MARGIN) * wide + MARGIN) * channels..][..side * channels].copy_from_slice(row);
    }
    let across = KERNEL * channels;
    let mut out = Vec::with_capacity(side * side * FILTERS);
    let mut patch = vec![0; KERNEL * across];
    for y in 0..side {
        for x in 0..side {
            for (row, part) in patch.chunks_exact_mut(across).enumerate() {
                part.copy_from_slice(&margined[((y + row) * wide + x) * channels..][..across]);
            }
            out.extend(weights.chunks_exact(patch.len()).map(|filter| (dot(&patch, filter) >> 9).clamp(0, 127) as i8));
        }
    }
    out
}

/// The maximum of each 2 x 2 pixels.
fn pooled(picture: &[i8], side: usize) -> Vec<i8> {
    let at = |x: usize, y: usize, filter: usize| picture[(y * side + x) * FILTERS + filter];
    let mut out = Vec::with_capacity(picture.len() / 4);
    for y in (0..side).step_by(2) {
        for x in (0..side).step_by(2) {
            let most =
                |filter| at(x, y, filter).max(at(x + 1, y, filter)).max(at(x, y + 1, filter)).max(at(x + 1, y + 1, filter));
            out.extend((0..FILTERS).map(most));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_of_one_weight_copies_the_channel() {
        let picture: Vec<i8> = (0..SIDE * SIDE * CHANNELS).map(|at| (at % 127) as i8).collect();
        let mut weights = vec![0; FIRST_WEIGHTS];
        // The middle of filter 3, of the second channel.
        let middle = 3 * KERNEL * KERNEL * CHANNELS + (KERNEL * KERNEL / 2) * CHANNELS + 1;
        weights[middle] = 64;
        let out = convolved(&picture, SIDE, CHANNELS, &weights);
        for (pixel, filters) in picture.chunks_exact(CHANNELS).zip(out.chunks_exact(FILTERS)) {
            assert_eq!(filters[3], pixel[1] >> 3);
            assert!(filters.iter().enumerate().all(|(filter, value)| filter == 3 || *value == 0));
        }
    }

    #[test]
    fn pooling_keeps_the_largest() {
        let mut picture = vec![0; 4 * 4 * FILTERS];
        picture[(4 * 3 + 2) * FILTERS + 5] = 9;
        let out = pooled(&picture, 4);
        assert_eq!((out.len(), out[3 * FILTERS + 5], out.iter().filter(|value| **value != 0).count()), (4 * FILTERS, 9, 1));
    }

    #[test]
    fn a_shift_moves_pixels() {
        let mut picture = vec![0; SIDE * SIDE * CHANNELS];
        picture[0] = 255;
        let moved = shifted(&picture, 2, 3);
        assert_eq!((moved[(3 * SIDE + 2) * CHANNELS], moved.iter().filter(|value| **value == 63).count()), (63, 1));
    }
}
