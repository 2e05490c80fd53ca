//! The raw times, in a file that grows while they are measured and from which an interrupted run goes on.
//!
//! A comment line with the conditions (tools, kernels, machine), a line of headings, then `kernel,variant,round,seconds`. Times that
//! were measured under other conditions are never mixed with new ones: they are dropped.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::tables;

const HEADINGS: &str = "kernel,variant,round,seconds";

/// Times by kernel and variant, in the order of their rounds.
#[derive(Debug)]
pub struct Samples {
    path: PathBuf,
    file: File,
    conditions: String,
    seconds: HashMap<(String, String), Vec<f64>>,
}

impl Samples {
    /// Opens `path`, or starts it anew if it is not there or is about other conditions. A last line that was cut off is dropped.
    ///
    /// # Errors
    ///
    /// If the file can be neither read nor written.
    pub fn open(path: &Path, conditions: &str) -> Result<Samples> {
        let head = format!("# {conditions}\n{HEADINGS}\n");
        let kept = fs::read_to_string(path).ok().filter(|text| text.starts_with(&head));
        let mut seconds: HashMap<_, Vec<f64>> = HashMap::new();
        let mut text = head.clone();
        for line in kept.iter().flat_map(|kept| kept[head.len()..].split_inclusive('\n')) {
            let Some((kernel, variant, round, time)) = parse(line) else { break };
            let times = seconds.entry((kernel, variant)).or_default();
            if times.len() != round {
                break;
            }
            times.push(time);
            text.push_str(line);
        }
        fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
        let file = File::options().append(true).open(path).with_context(|| format!("cannot open {}", path.display()))?;
        Ok(Samples { path: path.to_owned(), file, conditions: conditions.to_owned(), seconds })
    }

    /// The times of one program so far.
    pub fn of(&self, kernel: &str, variant: &str) -> &[f64] {
        self.seconds.get(&(kernel.to_owned(), variant.to_owned())).map_or(&[], Vec::as_slice)
    }

    /// Which tools, kernels and machine they are of.
    pub fn conditions(&self) -> &str {
        &self.conditions
    }

    /// How many there are of all programs.
    pub fn count(&self) -> usize {
        self.seconds.values().map(Vec::len).sum()
    }

    /// Keeps the time of one program's next round.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn keep(&mut self, kernel: &str, variant: &str, seconds: f64) -> Result<()> {
        let times = self.seconds.entry((kernel.to_owned(), variant.to_owned())).or_default();
        let line = format!("{kernel},{variant},{},{seconds:.9}\n", times.len());
        times.push(seconds);
        self.file.write_all(line.as_bytes()).with_context(|| format!("cannot write {}", self.path.display()))
    }
}

/// A line of such a file.
#[derive(Debug, Clone, Deserialize)]
pub struct Time {
    /// The kernel's name.
    pub kernel: String,
    /// The variant's.
    pub variant: String,
    /// What it took.
    pub seconds: f64,
}

/// What a file has, whatever its conditions: these, and the times.
///
/// # Errors
///
/// If it cannot be read or is something else.
pub fn read(path: &Path) -> Result<(String, Vec<Time>)> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let conditions = text.lines().next().and_then(|line| line.strip_prefix("# ")).unwrap_or_default().to_owned();
    Ok((conditions, tables::read(path)?))
}

fn parse(line: &str) -> Option<(String, String, usize, f64)> {
    let mut fields = line.strip_suffix('\n')?.split(',');
    let (kernel, variant) = (fields.next()?.to_owned(), fields.next()?.to_owned());
    Some((kernel, variant, fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_measured_is_found_again_unless_conditions_changed_or_the_line_is_cut() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("raw.csv");
        let mut samples = Samples::open(&path, "one").unwrap();
        samples.keep("lu", "native", 0.5).unwrap();
        samples.keep("lu", "native", 0.25).unwrap();
        drop(samples);
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, format!("{text}lu,native,2,0.12")).unwrap();
        let mut again = Samples::open(&path, "one").unwrap();
        assert_eq!(again.of("lu", "native"), [0.5, 0.25]);
        again.keep("lu", "native", 1.0).unwrap();
        drop(again);
        assert_eq!(fs::read_to_string(&path).unwrap(), format!("{text}lu,native,2,1.000000000\n"));
        assert_eq!(Samples::open(&path, "two").unwrap().count(), 0);
    }
}
