//! A run's figures beside those of another: which have changed by more than noise.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::figure::{Better, Figure};

/// What a machine's days differ by, whatever is measured: nothing below that is called a change.
pub const NOISE_MIN: f64 = 0.05;
/// `2026-01-31`, which a run's folder begins with.
const DATE_BYTES: usize = 10;

/// A figure, then and now.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    /// The figure's.
    pub name: String,
    /// The figure's.
    pub unit: String,
    /// What it is.
    pub now: f64,
    /// What it was.
    pub before: f64,
    /// What it is to what it was.
    pub ratio: f64,
    /// By which share both could differ by chance.
    pub noise: f64,
    /// What that means.
    pub verdict: Verdict,
}

/// What a ratio means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// No more than noise.
    Same,
    /// More than noise, for the better.
    Better,
    /// More than noise, for the worse.
    Worse,
}

/// The figures that both runs have, in the order of the first.
pub fn compare(now: &[Figure], before: &[Figure]) -> Vec<Change> {
    let change = |now: &Figure| {
        let before = before.iter().find(|before| before.name == now.name && before.unit == now.unit)?;
        let (ratio, noise) = (now.value / before.value, NOISE_MIN.max(now.noise + before.noise));
        let verdict = match now.better {
            // As a factor, in both directions; neither of what is no number.
            _ if !ratio.is_finite() || ratio <= 0.0 || ratio.max(1.0 / ratio) <= 1.0 + noise => Verdict::Same,
            Better::Lower if ratio < 1.0 => Verdict::Better,
            Better::Higher if ratio > 1.0 => Verdict::Better,
            Better::Lower | Better::Higher => Verdict::Worse,
        };
        let Figure { name, unit, value, .. } = now.clone();
        Some(Change { name, unit, now: value, before: before.value, ratio, noise, verdict })
    };
    now.iter().filter_map(change).collect()
}

/// The last run of the same machine before that of `folder`: beside it, with the same name but for an earlier date.
pub fn previous(folder: &Path) -> Option<PathBuf> {
    let split = |name: &str| {
        let (date, machine) = name.split_at_checked(DATE_BYTES)?;
        Some((date.to_owned(), machine.strip_prefix('-')?.to_owned()))
    };
    let (date, machine) = split(folder.file_name()?.to_str()?)?;
    let beside = fs::read_dir(folder.parent()?).ok()?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let earlier = beside.filter(|name| split(name).is_some_and(|(other, its)| its == machine && other < date));
    earlier.max().map(|name| folder.with_file_name(name))
}
