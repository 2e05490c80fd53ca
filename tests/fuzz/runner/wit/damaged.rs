//! Components whose bytes are changed: the compiler refuses them or compiles them, and never gives up in another way.

use crate::check::panic_text;
use anyhow::Result;
use awsm::Program;
use sledge_sandbox::{Artifact, LoadPolicy};
use sledge_tests::random::Random;
use sledge_tests::spec::Mode;
use std::panic::catch_unwind;

/// How many are made of one component.
const COPIES: u64 = 25;

/// Bytes of the preamble, without which there is no component.
const PREAMBLE_BYTES: usize = 8;

/// How many were refused, and how many were compiled.
pub(super) struct Counts {
    pub(super) refused: u64,
    pub(super) compiled: u64,
}

/// Compiles damaged copies of a component. Whatever else happens than that a copy is compiled, or refused for a reason, is an error.
pub(super) fn damaged(whole: &[u8], seed: u64, mode: Mode) -> Result<Counts> {
    let mut random = Random::new(seed, "damaged");
    let mut counts = Counts { refused: 0, compiled: 0 };
    for copy in 0..COPIES {
        let bytes = damage(whole, &mut random);
        let compiled = catch_unwind(|| awsm::compile(&Program::of(&bytes), &crate::subject::options(mode), &()));
        match compiled.map_err(|panic| anyhow::anyhow!("copy {copy}: {}", panic_text(&*panic)))? {
            Ok(artifact) => {
                counts.compiled += 1;
                anyhow::ensure!(
                    Artifact::load(&artifact, &LoadPolicy::default()).is_ok(),
                    "copy {copy} is compiled to what is no artifact"
                );
            }
            Err(error) => {
                counts.refused += 1;
                let text = error.to_string();
                anyhow::ensure!(!text.trim().is_empty(), "copy {copy} is refused without a reason");
                anyhow::ensure!(!text.contains("(a bug)"), "copy {copy}: {text}");
            }
        }
    }
    Ok(counts)
}

/// Changes some bytes, takes some out, doubles some, or cuts the end off.
fn damage(whole: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = whole.to_vec();
    for _ in 0..1 + random.below(3) {
        let Some(length) = bytes.len().checked_sub(PREAMBLE_BYTES).filter(|length| *length > 0) else { break };
        let at = PREAMBLE_BYTES + random.below(length as u64) as usize;
        let end = (at + 1 + random.below(8) as usize).min(bytes.len());
        match random.below(12) {
            0 => drop(bytes.drain(at..end)),
            1 => {
                let twice = bytes[at..end].to_vec();
                bytes.splice(at..at, twice);
            }
            2 if random.chance(20) => bytes.truncate(at),
            // Numbers of things are small: a neighbour is more often valid than any other.
            3..=6 => bytes[at] = bytes[at].wrapping_add(random.below(5) as u8).wrapping_sub(2),
            7 => bytes[at] ^= 1 << random.below(8),
            _ => bytes[at] = random.bits() as u8,
        }
    }
    bytes
}
