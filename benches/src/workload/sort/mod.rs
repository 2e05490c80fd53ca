//! The distributed sort: tasks that read, compute and write, one after the other on each core, or several at a time.
//!
//! Compared are, as in the paper's Figure 7: a task per core that blocks it while it waits; this runtime without classes; and with them, where
//! the server has them.

use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::classes::Classes;
use super::records::RECORD_BYTES;
use crate::steps;

pub mod bed;
mod calibrate;
pub mod data;
pub mod report;
pub mod task;

pub use bed::{Bed, Need, Run, Variant};
pub use report::{Outcome, PlaceReport, Report, VariantReport};

/// Tasks at a time for each core that are compared with one.
pub const IN_FLIGHT: [usize; 2] = [8, 16];

/// Where the data are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In files of a folder that the function has.
    Files,
    /// In Redis, whose answers come so much later.
    Redis(Duration),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Files => f.pad("files"),
            Place::Redis(delay) => f.pad(&format!("redis-{}", delay.as_millis())),
        }
    }
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Place, String> {
        let delay = text.strip_prefix("redis-").and_then(|number| number.parse().ok()).filter(|delay| *delay <= 1_000);
        match (text, delay) {
            ("files", _) => Ok(Place::Files),
            (_, Some(delay)) => Ok(Place::Redis(Duration::from_millis(delay))),
            _ => Err("expected is `files` or `redis-MS`, with milliseconds until Redis answers: `redis-5`".to_owned()),
        }
    }
}

/// How much is read or written at a time, and how much is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transfers {
    /// Bytes of one read or write. Files are read and written as a whole.
    pub bytes: usize,
    /// How often each stage hashes each record beside what sorting takes.
    pub rounds: u64,
}

/// What is sorted, and how often.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Millions of bytes.
    pub megabytes: u64,
    /// Tasks of the first stage.
    pub chunks: usize,
    /// Tasks of the second stage.
    pub categories: usize,
    /// How often each variant sorts.
    pub repeat: usize,
    /// Workers of the server, each on a core.
    pub workers: usize,
    /// Where the data are, one after the other.
    pub places: Vec<Place>,
    /// Classes to compare with none, if any.
    pub classes: Option<Classes>,
    /// Of the records.
    pub seed: u64,
    /// Transfers; if none, they are calibrated so that blocking tasks use 60 to 65 % of their cores.
    pub transfers: Option<Transfers>,
}

impl Settings {
    /// Records of all chunks together.
    pub fn records(&self) -> usize {
        self.chunk_records() * self.chunks
    }

    fn chunk_records(&self) -> usize {
        (self.megabytes as usize * 1_000_000 / RECORD_BYTES / self.chunks).max(1)
    }

    /// The paper's baseline first.
    fn variants(&self) -> Vec<Variant> {
        let mut variants = vec![Variant { in_flight: 1, classes: Classes::Off }];
        variants.extend(IN_FLIGHT.map(|in_flight| Variant { in_flight, classes: Classes::Off }));
        if let Some(classes) = self.classes {
            variants.extend(IN_FLIGHT.map(|in_flight| Variant { in_flight, classes }));
        }
        variants
    }
}

/// Sorts in all places, by all variants, as often as wanted. Each result is checked.
///
/// # Errors
///
/// If something does not start, a task fails, or a result is wrong.
pub fn run(settings: &Settings, folder: &Path) -> Result<Report> {
    ensure!((1..=256).contains(&settings.categories), "{} categories; there can be 1 to 256", settings.categories);
    ensure!(settings.chunks > 0 && settings.repeat > 0, "there is nothing to do");
    let mut outcomes = Vec::new();
    for place in &settings.places {
        outcomes.push(in_place(settings, *place, folder).with_context(|| place.to_string())?);
    }
    Ok(Report::new(settings, outcomes))
}

fn in_place(settings: &Settings, place: Place, folder: &Path) -> Result<Outcome> {
    let mut bed = steps::step(&format!("{place}: function and data"), || {
        let bed = Bed::new(settings, place, folder)?;
        Ok((bed, format!("{} records in {} chunks", settings.records(), settings.chunks)))
    })?;
    let blocking = settings.variants()[0];
    // Local files hardly wait: there is nothing to calibrate.
    let transfers = match (settings.transfers, place) {
        (Some(transfers), _) => transfers,
        (None, Place::Files) => calibrate::BEGIN,
        (None, Place::Redis(_)) => calibrate::transfers(&bed, blocking)?,
    };
    let mut runs: Vec<(Variant, Vec<Run>)> = settings.variants().into_iter().map(|variant| (variant, Vec::new())).collect();
    let bar = steps::bar(&format!("{place}: sorts"), (settings.repeat * runs.len()) as u64);
    for turn in 0..settings.repeat {
        for (variant, runs) in &mut runs {
            let run = bed.run(*variant, transfers, || Ok(()))?;
            // What the phases turned out to need is what the configuration declares from then on.
            if *variant == blocking {
                bed.needs = report::needs(&run);
            }
            if !steps::are_visible() {
                steps::say(&format!("{place}, turn {}, {variant}: {:.3} s", turn + 1, run.makespan_s));
            }
            runs.push(run);
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    Ok(Outcome { place, transfers, runs })
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.in_flight, self.classes) {
            (1, Classes::Off) => f.write_str("blocking"),
            (in_flight, Classes::Off) => write!(f, "{in_flight} in flight"),
            (in_flight, classes) => write!(f, "{in_flight} in flight, classes {}", classes.name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_named() {
        for (text, place) in [("files", Place::Files), ("redis-5", Place::Redis(Duration::from_millis(5)))] {
            assert_eq!(text.parse(), Ok(place));
            assert_eq!(place.to_string(), text);
        }
        for wrong in ["redis", "redis-", "redis-x", "redis-5000", "s3"] {
            assert!(wrong.parse::<Place>().unwrap_err().contains("`redis-5`"));
        }
    }
}
