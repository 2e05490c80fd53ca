//! LR-serv: how much a text is liked, by logistic regression over its words.

use crate::digest::hash;
use crate::world::{Error, World, read};

use super::{Output, float, sized};

/// Weights of all regressions; a word has one by its hash.
pub(super) const WEIGHTS: usize = 4_096;
/// A weight of 1.
const UNIT: f32 = 256.0;

pub(super) fn serve(world: &mut dyn World, input: u32, work: u32) -> Result<Output, Error> {
    let weights = read(world, "lr/weights")?;
    let weights: Vec<i16> =
        sized("lr/weights", &weights, 2 * WEIGHTS)?.as_chunks().0.iter().map(|bytes| i16::from_le_bytes(*bytes)).collect();
    let stopwords = read(world, "lr/stopwords")?;
    let text = read(world, &format!("text/{input}"))?;
    let words = words(&text, &stopwords);
    let liked = (0..work).map(|salt| regression(&words, &weights, salt)).sum::<f32>() / work as f32;
    let result = format!("{} words, {} %", words.len(), (liked * 100.0).round());
    let bytes = format!("{result} {:08x}", liked.to_bits()).into_bytes();
    world.set(&format!("lr/{input}"), &bytes)?;
    Ok(Output { bytes, result })
}

/// The words of a text in small letters, without those of the other one.
fn words(text: &[u8], stopwords: &[u8]) -> Vec<Vec<u8>> {
    let split = |text: &[u8]| -> Vec<Vec<u8>> {
        let words = text.split(|byte| !byte.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
        words.map(<[u8]>::to_ascii_lowercase).collect()
    };
    let mut stopwords = split(stopwords);
    stopwords.sort_unstable();
    let mut words = split(text);
    words.retain(|word| stopwords.binary_search(word).is_err());
    words
}

/// One regression of an ensemble: the salt decides which words share a weight.
fn regression(words: &[Vec<u8>], weights: &[i16], salt: u32) -> f32 {
    let weight = |word: &Vec<u8>| i32::from(weights[hash(word, u64::from(salt)) as usize % weights.len()]);
    let sum: i32 = words.iter().map(weight).sum();
    float::logistic(sum as f32 / UNIT / (words.len().max(1) as f32).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_small_and_without_stopwords() {
        assert_eq!(words(b"The cat, THE dog; a 2nd cat!", b"the\na\n"), [&b"cat"[..], b"dog", b"2nd", b"cat"]);
    }

    #[test]
    fn weights_decide() {
        let words = words(b"fine fine fine", b"");
        let like = |weight: i16| regression(&words, &[weight; WEIGHTS], 1);
        assert!(like(1_000) > 0.9 && like(-1_000) < 0.1 && like(0) == 0.5);
    }
}
