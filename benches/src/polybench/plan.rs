//! What a run measures, and where it leaves its results.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};

use super::machine;
use super::variant::Variant;
use crate::checkout;

/// PolyBench's sizes.
const DATASETS: [&str; 5] = ["MINI", "SMALL", "MEDIUM", "LARGE", "EXTRALARGE"];

/// What is measured.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The size, by PolyBench's name.
    pub dataset: String,
    /// Names of kernels, without repetition.
    pub kernels: Vec<String>,
    /// The first is [`Variant::Native`].
    pub variants: Vec<Variant>,
    /// How often each program runs at least; short ones run more often.
    pub rounds: usize,
    /// Where the results go.
    pub folder: PathBuf,
}

impl Plan {
    /// A plan for today and this machine. Without `kernels`, all of them.
    ///
    /// # Errors
    ///
    /// If there is no such data set or kernel, nothing would be measured, or the date is unknown.
    pub fn new(dataset: &str, kernels: &[String], wanted: &[Variant], rounds: usize) -> Result<Plan> {
        ensure!(DATASETS.contains(&dataset), "there is no data set '{dataset}'; there are {}", DATASETS.join(", "));
        ensure!(rounds > 0, "at least one round is needed");
        let mut variants = Vec::new();
        for &variant in wanted {
            if !variants.contains(&variant) {
                variants.push(variant);
            }
        }
        let folder = checkout::root().join("benches/runs").join(format!("{}-{}", machine::today()?, machine::slug()));
        Ok(Plan { dataset: dataset.to_owned(), kernels: chosen(kernels)?, variants, rounds, folder })
    }

    /// One of the files that belong to this data set.
    pub fn file(&self, ending: &str) -> PathBuf {
        self.folder.join(format!("polybench-{}-{ending}", self.dataset.to_lowercase()))
    }
}

/// The folder of the kernels' sources.
pub fn sources() -> PathBuf {
    checkout::root().join("polybench/kernels")
}

fn chosen(wanted: &[String]) -> Result<Vec<String>> {
    let folder = sources();
    let entries = fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut all = Vec::new();
    for entry in entries {
        let path = entry.with_context(|| format!("cannot read {}", folder.display()))?.path();
        if let (Some(name), Some("c")) = (path.file_stem(), path.extension().and_then(|e| e.to_str())) {
            all.push(name.to_string_lossy().into_owned());
        }
    }
    all.sort();
    if let Some(unknown) = wanted.iter().find(|name| !all.contains(name)) {
        bail!("there is no kernel '{unknown}'; there are {}", all.join(", "));
    }
    all.retain(|name| wanted.is_empty() || wanted.contains(name));
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::super::variant::{Bounds, Source};
    use super::*;

    #[test]
    fn the_thirty_kernels_are_there_and_some_can_be_chosen() {
        let wanted = Variant::all(&[Bounds::Guard, Bounds::Software, Bounds::Guard], &Source::ALL);
        let all = Plan::new("LARGE", &[], &wanted, 1).unwrap();
        assert_eq!((all.kernels.len(), all.variants.len()), (30, 11));
        assert!(Variant::PROMISED.iter().all(|promised| all.variants.contains(promised)));
        let some = Plan::new("MINI", &["lu".to_owned(), "2mm".to_owned(), "lu".to_owned()], &wanted, 1).unwrap();
        assert_eq!(some.kernels, ["2mm", "lu"]);
        assert!(Plan::new("HUGE", &[], &wanted, 1).is_err());
        assert!(Plan::new("MINI", &["lun".to_owned()], &wanted, 1).unwrap_err().to_string().contains("ludcmp"));
    }
}
