//! Makes what `examples/image-classify` works with: pictures to classify, and the network that does it.
//!
//!     picture draw --class star --seed 7 star.ppm
//!     picture train > examples/image-classify/network.h
#![forbid(unsafe_code)]

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
use sledge_benches::network;
use sledge_benches::pictures::{self, CLASSES};

/// Pictures of ten classes, and the network that tells which.
#[derive(Debug, Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Draws a picture as a portable pixmap. Training takes seeds from 0 upwards.
    Draw {
        /// What is to be on it.
        #[arg(long, value_parser = clap::builder::PossibleValuesParser::new(CLASSES))]
        class: String,
        /// Of everything else.
        #[arg(long, default_value_t = 1 << 32)]
        seed: u64,
        /// Where it goes.
        pixmap: PathBuf,
    },
    /// Trains the network and prints it as a C header.
    Train {
        /// Of the weights at the start.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Steps, of 50 pictures each.
        #[arg(long, default_value_t = 8_000)]
        steps: u64,
    },
}

fn main() -> Result<()> {
    match Arguments::parse().command {
        Command::Draw { class, seed, pixmap } => {
            let class = CLASSES.iter().position(|name| *name == class).context("clap knows the classes")?;
            let picture = pictures::to_ppm(&pictures::draw(class, seed));
            fs::write(&pixmap, picture).with_context(|| format!("cannot write {}", pixmap.display()))?;
        }
        Command::Train { seed, steps } => {
            print!("{}", network::train(seed, steps, |step, right| eprintln!("step {step} of {steps}: {right:.4}")));
        }
    }
    Ok(())
}
