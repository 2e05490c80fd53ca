//! Makes what `examples/ocr` works with: pages to read, and the table of glyphs that it knows.
//!
//!     page draw --seed 7 --font 1 --em 40 page.pbm page.txt
//!     page glyphs > examples/ocr/glyphs.h
#![forbid(unsafe_code)]

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
use sledge_benches::printed::{self, FONTS, Print};

/// Pages of printed text and the glyphs on them.
#[derive(Debug, Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Draws a page of text that means nothing, and writes the text down.
    Draw {
        /// Of the text and the noise.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// 0: monospaced, 1: with serifs.
        #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u8).range(..FONTS.len() as i64))]
        font: u8,
        /// Size of the letters in pixels; 40 is 10 points at 288 dots an inch.
        #[arg(long, default_value_t = 40.0)]
        em: f32,
        /// The share of pixels that are turned over.
        #[arg(long, default_value_t = 0.005)]
        noise: f64,
        /// Lines on the page.
        #[arg(long, default_value_t = 12)]
        lines: usize,
        /// Characters in a line, at most.
        #[arg(long, default_value_t = 60)]
        columns: usize,
        /// Where the bitmap goes.
        bitmap: PathBuf,
        /// Where its text goes.
        text: PathBuf,
    },
    /// Prints the C header with the glyphs.
    Glyphs,
}

fn main() -> Result<()> {
    match Arguments::parse().command {
        Command::Glyphs => print!("{}", printed::table()?),
        Command::Draw { seed, font, em, noise, lines, columns, bitmap, text } => {
            let words = printed::text(seed, lines, columns);
            let page = printed::print(&words, Print { font: font.into(), em, noise, seed })?;
            fs::write(&bitmap, page).with_context(|| format!("cannot write {}", bitmap.display()))?;
            fs::write(&text, words).with_context(|| format!("cannot write {}", text.display()))?;
        }
    }
    Ok(())
}
