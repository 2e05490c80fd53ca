//! Trains the network of `examples/image-classify` on [`pictures`], and writes it as a C header of 8-bit numbers.
//!
//! The shape is that of the CIFAR-10 example in CMSIS-NN: three times a convolution of 5 x 5, ReLU and the maximum of 3 x 3 at every second
//! pixel, with 32, 16 and 32 channels; then one layer from all that is left to the classes. Trained in f32 by Adam on pictures that are
//! drawn as they are needed, none of them twice. Numbers become 8-bit by powers of two, one for each layer, so that the function only shifts.

use std::fmt::Write as _;

use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis};

use crate::pictures::{self, BYTES, CLASSES, SIDE};
use crate::random::Random;

/// Width of a kernel, and how far it reaches beyond the picture.
const KERNEL: usize = 5;
const PADDING: usize = KERNEL / 2;
/// Width of a maximum; two steps from one to the next.
const POOL: usize = 3;
/// Channels of the picture, and after each convolution.
const CHANNELS: [usize; 4] = [3, 32, 16, 32];
const LAYERS: usize = 3;
/// Numbers that the last layer sees.
const FEATURES: usize = (SIDE >> LAYERS) * (SIDE >> LAYERS) * CHANNELS[LAYERS];
/// Pictures of a step.
const BATCH: usize = 50;
const RATE: f32 = 2e-3;
/// A picture's bytes, less their mean, are the numbers from -1 to 1 times this.
const PIXEL_SCALE: f32 = 128.0;
/// Weights of a filter are a multiple of this in the header: the rest are zeros.
const VECTOR: usize = 16;
/// Pictures from which the ranges of numbers in between are taken.
const RANGE_PICTURES: u64 = 1_000;

/// Weights, one row for each number that comes out, and what Adam keeps about them.
struct Layer {
    weights: Array2<f32>,
    bias: Array1<f32>,
    mean: Array2<f32>,
    square: Array2<f32>,
    bias_mean: Array1<f32>,
    bias_square: Array1<f32>,
}

impl Layer {
    fn new(inputs: usize, outputs: usize, random: &mut Random) -> Layer {
        let spread = (2.0 / inputs as f32).sqrt();
        let shape = (outputs, inputs);
        Layer {
            weights: Array2::from_shape_simple_fn(shape, || random.normal() * spread),
            bias: Array1::zeros(outputs),
            mean: Array2::zeros(shape),
            square: Array2::zeros(shape),
            bias_mean: Array1::zeros(outputs),
            bias_square: Array1::zeros(outputs),
        }
    }

    fn forward(&self, inputs: &Array2<f32>) -> Array2<f32> {
        inputs.dot(&self.weights.t()) + &self.bias
    }

    /// A step of Adam against the gradient of the outputs. Returns that of the inputs, by the weights before.
    fn backward(&mut self, inputs: &Array2<f32>, gradient: &Array2<f32>, rate: f32) -> Array2<f32> {
        let before = gradient.dot(&self.weights);
        adam(self.weights.iter_mut(), &gradient.t().dot(inputs), self.mean.iter_mut(), self.square.iter_mut(), rate);
        adam(self.bias.iter_mut(), &gradient.sum_axis(Axis(0)), self.bias_mean.iter_mut(), self.bias_square.iter_mut(), rate);
        before
    }
}

fn adam<'a>(
    values: impl Iterator<Item = &'a mut f32>,
    gradient: impl IntoIterator<Item = &'a f32>,
    means: impl Iterator<Item = &'a mut f32>,
    squares: impl Iterator<Item = &'a mut f32>,
    rate: f32,
) {
    for (((value, gradient), mean), square) in values.zip(gradient).zip(means).zip(squares) {
        *mean += (gradient - *mean) * 0.1;
        *square += (gradient * gradient - *square) * 0.01;
        *value -= rate * *mean / (square.sqrt() + 1e-8);
    }
}

/// What a convolution has seen and made, for the way back.
struct Step {
    patches: Array2<f32>,
    /// After ReLU; rows are pixels.
    outputs: Array2<f32>,
    /// Which output each maximum is.
    chosen: Vec<usize>,
}

/// The network and the ranges of its numbers.
struct Network {
    layers: Vec<Layer>,
}

impl Network {
    fn new(seed: u64) -> Network {
        let mut random = Random(seed);
        let mut layers: Vec<Layer> =
            (0..LAYERS).map(|layer| Layer::new(KERNEL * KERNEL * CHANNELS[layer], CHANNELS[layer + 1], &mut random)).collect();
        layers.push(Layer::new(FEATURES, CLASSES.len(), &mut random));
        Network { layers }
    }

    /// The scores of pictures, and what was seen on the way.
    fn forward(&self, pictures: &Array2<f32>) -> (Array2<f32>, Array2<f32>, Vec<Step>) {
        let count = pictures.nrows();
        let mut steps = Vec::new();
        let mut values = pictures.to_owned();
        for (number, layer) in self.layers[..LAYERS].iter().enumerate() {
            let (side, channels) = (SIDE >> number, CHANNELS[number + 1]);
            let patches = patches(values.view(), side, CHANNELS[number]);
            let outputs = layer.forward(&patches).mapv_into(|value| value.max(0.0));
            let chosen = maxima(&outputs, count, side, channels);
            let flat = outputs.as_slice().expect("rows follow each other");
            let pooled = chosen.iter().map(|at| flat[*at]).collect();
            values = Array2::from_shape_vec((count, side * side / 4 * channels), pooled).expect("a quarter of the pixels");
            steps.push(Step { patches, outputs, chosen });
        }
        (self.layers[LAYERS].forward(&values), values, steps)
    }

    /// One step of training. Returns how many were right.
    fn train(&mut self, pictures: &Array2<f32>, classes: &[usize], rate: f32) -> usize {
        let (scores, features, steps) = self.forward(pictures);
        let (mut gradient, mut right) = (scores, 0);
        for (mut row, class) in gradient.rows_mut().into_iter().zip(classes) {
            let highest = row.fold(f32::NEG_INFINITY, |a, b| a.max(*b));
            right += usize::from(row[*class] == highest);
            row.mapv_inplace(|score| (score - highest).exp());
            let sum = row.sum();
            row.mapv_inplace(|score| score / sum / classes.len() as f32);
            row[*class] -= 1.0 / classes.len() as f32;
        }
        let mut gradient = self.layers[LAYERS].backward(&features, &gradient, rate);
        for (number, step) in steps.iter().enumerate().rev() {
            let mut back = Array2::zeros(step.outputs.raw_dim());
            let flat = back.as_slice_mut().expect("rows follow each other");
            for (at, gradient) in step.chosen.iter().zip(&gradient) {
                flat[*at] += gradient;
            }
            back.zip_mut_with(&step.outputs, |gradient, output| *gradient *= f32::from(*output > 0.0));
            let seen = self.layers[number].backward(&step.patches, &back, rate);
            gradient = unpatch(&seen, classes.len(), SIDE >> number, CHANNELS[number]);
        }
        right
    }
}

/// Calls `visit` for each row of a patch that lies in the picture: its patch, where it begins there and in the picture, and its length.
fn patch_rows(count: usize, side: usize, channels: usize, mut visit: impl FnMut(usize, usize, usize, usize)) {
    for pixel in 0..count * side * side {
        let (picture, y, x) = (pixel / (side * side), pixel / side % side, pixel % side);
        for row in 0..KERNEL {
            let Some(from_y) = (y + row).checked_sub(PADDING).filter(|y| *y < side) else { continue };
            let (left, right) = (PADDING.saturating_sub(x), KERNEL.min(side + PADDING - x));
            let from = ((picture * side + from_y) * side + x + left - PADDING) * channels;
            visit(pixel, (row * KERNEL + left) * channels, from, (right - left) * channels);
        }
    }
}

/// Each pixel's surroundings as a row.
fn patches(values: ArrayView2<'_, f32>, side: usize, channels: usize) -> Array2<f32> {
    let length = KERNEL * KERNEL * channels;
    let mut patches = Array2::zeros((values.nrows() * side * side, length));
    let (to, from) = (patches.as_slice_mut().expect("new"), values.as_slice().expect("rows follow each other"));
    patch_rows(values.nrows(), side, channels, |pixel, at, start, count| {
        to[pixel * length + at..][..count].copy_from_slice(&from[start..start + count]);
    });
    patches
}

/// The way back of [`patches`].
fn unpatch(patches: &Array2<f32>, count: usize, side: usize, channels: usize) -> Array2<f32> {
    let length = KERNEL * KERNEL * channels;
    let mut values = Array2::zeros((count, side * side * channels));
    let (to, from) = (values.as_slice_mut().expect("new"), patches.as_slice().expect("rows follow each other"));
    patch_rows(count, side, channels, |pixel, at, start, count| {
        for (to, from) in to[start..start + count].iter_mut().zip(&from[pixel * length + at..]) {
            *to += from;
        }
    });
    values
}

/// Where in `outputs` the maxima are: the windows begin at every second pixel and end where the picture does.
fn maxima(outputs: &Array2<f32>, count: usize, side: usize, channels: usize) -> Vec<usize> {
    let flat = outputs.as_slice().expect("rows follow each other");
    let mut chosen = Vec::with_capacity(outputs.len() / 4);
    for window in 0..count * side * side / 4 {
        let half = side / 2;
        let (picture, y, x) = (window / (half * half), window / half % half * 2, window % half * 2);
        for channel in 0..channels {
            let places = (y..side.min(y + POOL)).flat_map(|y| (x..side.min(x + POOL)).map(move |x| (y, x)));
            let all = places.map(|(y, x)| ((picture * side + y) * side + x) * channels + channel);
            chosen.extend(all.reduce(|a, b| if flat[b] > flat[a] { b } else { a }));
        }
    }
    chosen
}

fn batch(first: u64, classes: &[usize]) -> Array2<f32> {
    let mut pictures = Array2::zeros((classes.len(), BYTES));
    for (number, (mut row, class)) in pictures.rows_mut().into_iter().zip(classes).enumerate() {
        let picture = pictures::draw(*class, first + number as u64);
        let mean: [u32; 3] = std::array::from_fn(|channel| {
            picture.iter().skip(channel).step_by(3).map(|byte| u32::from(*byte)).sum::<u32>() / (SIDE * SIDE) as u32
        });
        for (at, (to, byte)) in row.iter_mut().zip(picture).enumerate() {
            *to = (i32::from(byte) - mean[at % 3] as i32).clamp(-128, 127) as f32 / PIXEL_SCALE;
        }
    }
    pictures
}

/// Trains for so many steps of 50 pictures, and returns the C header. `report` is told how many steps are done and which share of the last
/// hundred's pictures was right.
pub fn train(seed: u64, steps: u64, mut report: impl FnMut(u64, f64)) -> String {
    let mut network = Network::new(seed);
    let classes: Vec<usize> = (0..BATCH).map(|number| number % CLASSES.len()).collect();
    let mut right = 0;
    for step in 0..steps {
        // From the full rate slowly down to none.
        let rate = RATE * 0.5 * (1.0 + (std::f32::consts::PI * step as f32 / steps as f32).cos());
        right += network.train(&batch(step * BATCH as u64, &classes), &classes, rate);
        if (step + 1) % 100 == 0 {
            report(step + 1, right as f64 / (100 * BATCH) as f64);
            right = 0;
        }
    }
    header(&network, seed, steps)
}

/// The largest power of two, as its exponent, by which numbers of up to `largest` still fit into eight bits with a sign.
fn scale(largest: f32) -> i32 {
    (127.0 / largest).log2().floor() as i32
}

fn header(network: &Network, seed: u64, steps: u64) -> String {
    let (mut ranges, mut text) = ([0_f32; LAYERS], String::new());
    for first in (0..RANGE_PICTURES).step_by(CLASSES.len()) {
        let classes: Vec<usize> = (0..CLASSES.len()).collect();
        let (_, _, passed) = network.forward(&batch(first, &classes));
        for (range, step) in ranges.iter_mut().zip(&passed) {
            *range = step.outputs.fold(*range, |a, b| a.max(*b));
        }
    }
    let mut input_scale = PIXEL_SCALE.log2() as i32;
    for (number, layer) in network.layers.iter().enumerate() {
        let name = if number < LAYERS { format!("conv{}", number + 1) } else { "full".to_owned() };
        let weight_scale = scale(layer.weights.fold(0.0, |a, b| a.max(b.abs())));
        let sum_scale = input_scale + weight_scale;
        if let Some(range) = ranges.get(number) {
            input_scale = scale(*range);
            writeln!(text, "enum {{ {name}_shift = {} }};", sum_scale - input_scale).expect("into a string");
        } else {
            writeln!(text, "enum {{ {name}_scale = {sum_scale} }};").expect("into a string");
        }
        let row = layer.weights.ncols().next_multiple_of(VECTOR);
        let bias = layer.bias.mapv(|value| (value * 2_f32.powi(sum_scale)).round() as i32);
        write!(text, "static const int32_t {name}_bias[{}] = {{", bias.len()).expect("into a string");
        numbers(&mut text, bias.iter().copied());
        write!(text, "static const int8_t {name}_weights[{} * {row}] = {{", bias.len()).expect("into a string");
        let zeros = row - layer.weights.ncols();
        let rounded = |row: ArrayView1<'_, f32>| -> Vec<i32> {
            let rounded = row.iter().map(|value| (value * 2_f32.powi(weight_scale)).round() as i32);
            rounded.chain(std::iter::repeat_n(0, zeros)).collect()
        };
        numbers(&mut text, layer.weights.rows().into_iter().flat_map(rounded));
    }
    let names: Vec<String> = CLASSES.iter().map(|name| format!("\"{name}\"")).collect();
    format!(
        "/* Written by `picture train --seed {seed} --steps {steps}` (benches/src/network.rs).\n *\n * Rows of weights are filters, from the top \
         left, channels innermost, filled up with zeros to a multiple of {VECTOR}. A sum of\n * products has to be shifted right by the layer's \
         shift to be the next layer's input; the last one's are scores times 2^full_scale. */\n#ifndef NETWORK_H\n#define NETWORK_H\n\n#include \
         <stdint.h>\n\nstatic const char *const classes[{}] = {{{}}};\n\n{text}\n#endif\n",
        CLASSES.len(),
        names.join(", "),
    )
}

fn numbers(text: &mut String, all: impl Iterator<Item = i32>) {
    for (at, number) in all.enumerate() {
        text.push_str(if at == 0 {
            "\n"
        } else if at % 32 == 0 {
            ",\n"
        } else {
            ","
        });
        write!(text, "{number}").expect("into a string");
    }
    text.push_str("};\n");
}
