//! ML-tr: trains a logistic regression by gradient descent on examples from four shards.

use crate::world::{Error, World, read};

use super::{Output, float};

pub(super) const SHARDS: usize = 4;
pub(super) const FEATURES: usize = 16;
/// Of the gradient, each step.
const RATE: f32 = 0.5;
/// A feature of 1.
pub(super) const UNIT: f32 = 1_024.0;

/// What is known of something, and which of two kinds it is (0 or 1).
struct Example {
    features: [f32; FEATURES],
    kind: f32,
}

/// A weight for each feature, and one for all.
type Model = [f32; FEATURES + 1];

pub(super) fn train(world: &mut dyn World, input: u32, work: u32) -> Result<Output, Error> {
    let mut examples = Vec::new();
    for shard in 0..SHARDS {
        let blob = read(world, &format!("shard/{input}/{shard}"))?;
        examples.extend(blob.as_chunks().0.iter().map(example));
    }
    let mut model = Model::default();
    let before = error(&model, &examples);
    for _ in 0..work {
        step(&mut model, &examples);
    }
    let after = error(&model, &examples);
    if after > before {
        return Err(Error::Broken(format!("training has made it worse: {before} became {after}")));
    }
    let bytes = model.iter().flat_map(|weight| weight.to_le_bytes()).collect::<Vec<u8>>();
    world.set(&format!("model/{input}"), &bytes)?;
    let result = format!("{} examples, squared error {before:.4} to {after:.4}", examples.len());
    Ok(Output { bytes, result })
}

/// Numbers of 16 bits: the features, and the kind.
fn example(bytes: &[u8; 2 * (FEATURES + 1)]) -> Example {
    let (numbers, _) = bytes.as_chunks::<2>();
    let features = std::array::from_fn(|at| f32::from(i16::from_le_bytes(numbers[at])) / UNIT);
    Example { features, kind: f32::from(i16::from_le_bytes(numbers[FEATURES])) }
}

fn likelihood(model: &Model, example: &Example) -> f32 {
    let sum = model.iter().zip(&example.features).fold(model[FEATURES], |sum, (weight, feature)| sum + weight * feature);
    float::logistic(sum)
}

fn step(model: &mut Model, examples: &[Example]) {
    let mut gradient = Model::default();
    for example in examples {
        let error = likelihood(model, example) - example.kind;
        for (sum, feature) in gradient.iter_mut().zip(example.features.iter().chain([&1.0])) {
            *sum += error * feature;
        }
    }
    for (weight, sum) in model.iter_mut().zip(gradient) {
        *weight -= RATE * sum / examples.len().max(1) as f32;
    }
}

/// The mean squared error.
fn error(model: &Model, examples: &[Example]) -> f32 {
    let of = |example: &Example| {
        let error = likelihood(model, example) - example.kind;
        error * error
    };
    examples.iter().map(of).sum::<f32>() / examples.len().max(1) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_learns_which_feature_decides() {
        let example = |at: usize| {
            let mut features: [f32; FEATURES] = std::array::from_fn(|feature| ((at * 7 + feature * 3) % 5) as f32 / 5.0 - 0.4);
            features[4] = if at.is_multiple_of(2) { 1.0 } else { -1.0 };
            Example { features, kind: if at.is_multiple_of(2) { 1.0 } else { 0.0 } }
        };
        let examples: Vec<Example> = (0..50).map(example).collect();
        let mut model = Model::default();
        (0..200).for_each(|_| step(&mut model, &examples));
        assert!(error(&model, &examples) < 0.01, "{}", error(&model, &examples));
        assert!(model.iter().enumerate().all(|(at, weight)| at == 4 || weight.abs() < model[4] / 4.0), "{model:?}");
    }
}
