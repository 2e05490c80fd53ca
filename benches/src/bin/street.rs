//! Makes what `examples/plate-detect` works with: streets with a licence plate.
//!
//!     street --seed 7 street.jpg
//!
//! Prints where the plate is: left, top, right and bottom, in pixels.
#![forbid(unsafe_code)]

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Parser;
use sledge_benches::street;

/// A photograph of a street, drawn from a seed.
#[derive(Debug, Parser)]
struct Arguments {
    /// Of everything on it.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Where it goes.
    photograph: PathBuf,
}

fn main() -> Result<()> {
    let Arguments { seed, photograph } = Arguments::parse();
    let street = street::draw(seed)?;
    fs::write(&photograph, street.jpeg).with_context(|| format!("cannot write {}", photograph.display()))?;
    let [left, top, right, bottom] = street.plate;
    println!("{left:.1} {top:.1} {right:.1} {bottom:.1}");
    Ok(())
}
