//! RNN-serv: names of a language, written letter by letter by a recurrent network.

use crate::random::Random;
use crate::world::{Error, World, read};

use super::{Output, float, sized};

pub(super) const HIDDEN: usize = 64;
/// The letters, and the end of a name.
pub(super) const LETTERS: usize = 27;
const END: usize = LETTERS - 1;
const LENGTH_MAX: usize = 12;
/// How many names are kept.
const KEPT_MAX: usize = 64;
/// A weight of 1.
const UNIT: f32 = 32.0;

/// Weights: from letters, to letters, and from one hidden state to the next; and what the language adds to each letter.
struct Network {
    from_letters: Vec<f32>,
    to_letters: Vec<f32>,
    memory: Vec<f32>,
    language: Vec<f32>,
}

pub(super) fn serve(world: &mut dyn World, input: u32, work: u32) -> Result<Output, Error> {
    let numbers = |key: &str, blob: Vec<u8>, count: usize| -> Result<Vec<f32>, Error> {
        Ok(sized(key, &blob, count)?.iter().map(|byte| f32::from(*byte as i8) / UNIT).collect())
    };
    let letters = read(world, "rnn/letters")?;
    let mut from_letters = numbers("rnn/letters", letters, 2 * LETTERS * HIDDEN)?;
    let memory = read(world, "rnn/memory")?;
    let memory = numbers("rnn/memory", memory, HIDDEN * HIDDEN)?;
    let key = format!("language/{input}");
    let language = read(world, &key)?;
    let language = numbers(&key, language, LETTERS)?;
    let to_letters = from_letters.split_off(LETTERS * HIDDEN);
    let network = Network { from_letters, to_letters, memory, language };
    let mut random = Random::of("name", input);
    let (mut kept, mut written) = (Vec::new(), 0);
    for number in 0..work as usize {
        let name = network.name(&mut random);
        written += name.len();
        if number < KEPT_MAX {
            kept.push(name);
        }
    }
    let first = kept.first().cloned().unwrap_or_default();
    let bytes = format!("{}\n{written}\n", kept.join("\n")).into_bytes();
    world.set(&format!("names/{input}"), &bytes)?;
    Ok(Output { bytes, result: format!("{work} names of {written} letters, such as {first}") })
}

impl Network {
    fn name(&self, random: &mut Random) -> String {
        let mut hidden = vec![0.0; HIDDEN];
        let mut name = String::new();
        let mut letter = END;
        while name.len() < LENGTH_MAX {
            hidden = self.next(&hidden, letter);
            letter = self.choose(&hidden, name.len(), random);
            if letter == END {
                break;
            }
            name.push(char::from(b'a' + letter as u8));
        }
        name
    }

    fn next(&self, hidden: &[f32], letter: usize) -> Vec<f32> {
        let rows = self.memory.chunks_exact(HIDDEN).zip(&self.from_letters[letter * HIDDEN..]);
        rows.map(|(row, from)| float::tanh(*from + dot(row, hidden))).collect()
    }

    /// A letter by its likelihood. A name has three letters or more.
    fn choose(&self, hidden: &[f32], written: usize, random: &mut Random) -> usize {
        let choices = if written < 3 { END } else { LETTERS };
        let rows = self.to_letters.chunks_exact(HIDDEN).zip(&self.language).take(choices);
        let likely: Vec<f32> = rows.map(|(row, language)| float::exp(*language + dot(row, hidden))).collect();
        let mut left = likely.iter().sum::<f32>() * (random.below(1 << 20) as f32 / (1 << 20) as f32);
        for (letter, likely) in likely.iter().enumerate() {
            left -= likely;
            if left < 0.0 {
                return letter;
            }
        }
        choices - 1
    }
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(language: Vec<f32>) -> Network {
        let zeros = || vec![0.0; LETTERS * HIDDEN];
        Network { from_letters: zeros(), to_letters: zeros(), memory: vec![0.0; HIDDEN * HIDDEN], language }
    }

    #[test]
    fn the_language_decides_where_the_network_says_nothing() {
        let mut language = vec![-70.0; LETTERS];
        (language[2], language[END]) = (0.0, 60.0);
        assert_eq!(network(language.clone()).name(&mut Random::of("name", 0)), "ccc");
        language[END] = -70.0;
        assert_eq!(network(language).name(&mut Random::of("name", 0)), "c".repeat(LENGTH_MAX));
    }

    #[test]
    fn what_was_written_decides_what_follows() {
        let mut network = network(vec![-70.0; LETTERS]);
        // Letter 0 sets a hidden number by which letter 1 is most likely.
        network.language[0] = 0.0;
        network.from_letters[7] = 5.0;
        network.to_letters[HIDDEN + 7] = 80.0;
        let name = network.name(&mut Random::of("name", 0));
        assert!(name.starts_with("ab"), "{name}");
    }
}
