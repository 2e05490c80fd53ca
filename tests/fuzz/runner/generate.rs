//! The module of a seed: two of three from wasm-smith, the others loops of our own (`loops.rs`); all of them changed by `mutate.rs`.

use crate::features::Features;
use crate::random::Random;
use crate::{loops, mutate};
use anyhow::{Context, Result};
use arbitrary::Unstructured;
use wasm_smith::{Config, MemoryOffsetChoices};

/// Attempts to get a module out of wasm-smith: not all random bytes make one, and most make a tiny one.
const ATTEMPTS: usize = 20;

/// What is no tiny module.
const BYTES_MIN: usize = 2_000;

/// Where a seed's module comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Smith,
    Loops,
}

impl Source {
    pub(crate) fn of(seed: u64) -> Source {
        if seed % 3 == 2 { Source::Loops } else { Source::Smith }
    }
}

/// The seed's module, not yet prepared for comparison.
pub(crate) fn module(seed: u64, features: &Features) -> Result<Vec<u8>> {
    let mut random = Random::new(seed, "module");
    match Source::of(seed) {
        Source::Smith => {
            let wasm = smith(&mut random, features)?;
            mutate::mutate(&wasm, &mut random, true).context("changing what wasm-smith made")
        }
        Source::Loops => mutate::mutate(&loops::module(&mut random), &mut random, false).context("changing the loops"),
    }
}

fn smith(random: &mut Random, features: &Features) -> Result<Vec<u8>> {
    let mut largest = Vec::new();
    for _ in 0..ATTEMPTS {
        let length = *random.pick(&[2_000, 10_000, 40_000]);
        let bytes = random.bytes(length);
        let mut config = Config {
            export_everything: true,
            min_funcs: 4,
            max_funcs: 12,
            max_instructions: *random.pick(&[50, 150, 400]),
            min_memories: 1,
            max_memory32_bytes: 4 << 16,
            max_memory64_bytes: 4 << 16,
            memory_max_size_required: true,
            min_tables: 1,
            max_tables: 2,
            max_table_elements: 40,
            table_max_size_required: true,
            min_globals: 1,
            max_globals: 6,
            max_imports: 3,
            max_types: 12,
            max_data_segments: 4,
            max_element_segments: 4,
            max_elements: 20,
            max_nesting_depth: 6,
            memory_offset_choices: MemoryOffsetChoices(90, 9, 1),
            allow_invalid_funcs: false,
            compact_imports_enabled: false,
            // Of these we have no table of operands, and they are of no use here.
            generate_custom_sections: false,
            ..Config::default()
        };
        features.configure(&mut config);
        match wasm_smith::Module::new(config, &mut Unstructured::new(&bytes)) {
            Ok(module) => {
                let wasm = module.to_bytes();
                if wasm.len() > largest.len() {
                    largest = wasm;
                }
                if largest.len() >= BYTES_MIN {
                    break;
                }
            }
            Err(arbitrary::Error::NotEnoughData | arbitrary::Error::IncorrectFormat) => {}
            Err(error) => return Err(error.into()),
        }
    }
    anyhow::ensure!(!largest.is_empty(), "wasm-smith made no module in {ATTEMPTS} attempts");
    Ok(largest)
}
