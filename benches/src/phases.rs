//! The phases of a request and what they cost, as criterion measures them (`cargo bench`): its samples, read from the folder where it leaves them, and
//! as CSV.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use crate::spread::Spread;
use crate::{checkout, tables};

/// The variable by which criterion is told where to leave its files.
const FOLDER: &str = "CRITERION_HOME";

/// One of criterion's benchmarks.
#[derive(Debug, Clone, PartialEq)]
pub struct Phase {
    /// Its group and its name, with a slash between them.
    pub name: String,
    /// Iterations, and nanoseconds for all of them.
    pub samples: Vec<(f64, f64)>,
}

/// criterion's `benchmark.json`, what is read of it.
#[derive(Deserialize)]
struct Benchmark {
    full_id: String,
}

/// criterion's `sample.json`, what is read of it.
#[derive(Deserialize)]
struct Sample {
    iters: Vec<f64>,
    times: Vec<f64>,
}

impl Phase {
    /// Nanoseconds of an iteration; none if there are no samples.
    pub fn each_ns(&self) -> Option<Spread> {
        Spread::of(self.samples.iter().map(|(iterations, nanoseconds)| nanoseconds / iterations))
    }
}

/// Runs one of the files in a package's `benches/`, with options for criterion: what it measured, by name.
///
/// # Errors
///
/// If cargo does not build or run it, one of its checks fails, or it measures nothing.
pub fn measure(bench: &str, options: &[&str]) -> Result<Vec<Phase>> {
    let folder = tempfile::Builder::new().prefix("sledge-phases-").tempdir().context("cannot create a temporary folder")?;
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // The whole workspace, so that what it is made of is what `make build` has built.
    cargo.args(["bench", "--quiet", "--locked", "--workspace", "--bench", bench, "--"]).args(options);
    let output = cargo.current_dir(checkout::root()).env(FOLDER, folder.path()).output().context("cannot run cargo bench")?;
    ensure!(
        output.status.success(),
        "{cargo:?} failed ({}):\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr).trim_end()
    );
    read(folder.path())
}

/// What criterion left in `folder`, by name.
///
/// # Errors
///
/// If it left nothing, or something else.
pub fn read(folder: &Path) -> Result<Vec<Phase>> {
    let mut phases = Vec::new();
    visit(folder, &mut phases)?;
    ensure!(!phases.is_empty(), "criterion left no samples in {}", folder.display());
    phases.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(phases)
}

/// A benchmark's files are in GROUP/NAME/new, or NAME/new.
fn visit(folder: &Path, phases: &mut Vec<Phase>) -> Result<()> {
    let new = folder.join("new");
    if new.join("benchmark.json").is_file() {
        let Benchmark { full_id: name } = json(&new.join("benchmark.json"))?;
        let Sample { iters, times } = json(&new.join("sample.json"))?;
        phases.push(Phase { name, samples: iters.into_iter().zip(times).collect() });
        return Ok(());
    }
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            visit(&path, phases)?;
        }
    }
    Ok(())
}

fn json<T: for<'a> Deserialize<'a>>(path: &Path) -> Result<T> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_str(&text).with_context(|| path.display().to_string())
}

/// A sample as a line of a table.
#[derive(Serialize, Deserialize)]
struct Line {
    phase: String,
    sample: usize,
    iterations: f64,
    nanoseconds: f64,
}

/// A line for each sample.
///
/// # Errors
///
/// If the file cannot be written.
pub fn save(phases: &[Phase], file: &Path) -> Result<()> {
    let lines = phases.iter().flat_map(|phase| {
        let lines = phase.samples.iter().enumerate();
        lines.map(|(sample, (iterations, nanoseconds))| Line {
            phase: phase.name.clone(),
            sample,
            iterations: *iterations,
            nanoseconds: nanoseconds.round(),
        })
    });
    tables::write(file, lines)
}

/// What [`save`] wrote.
///
/// # Errors
///
/// If it is something else.
pub fn load(file: &Path) -> Result<Vec<Phase>> {
    let mut phases: Vec<Phase> = Vec::new();
    for Line { phase: name, iterations, nanoseconds, .. } in tables::read(file)? {
        ensure!(iterations > 0.0 && nanoseconds >= 0.0, "{}: a sample of '{name}' has no iterations or no time", file.display());
        match phases.last_mut() {
            Some(phase) if phase.name == name => phase.samples.push((iterations, nanoseconds)),
            _ => phases.push(Phase { name, samples: vec![(iterations, nanoseconds)] }),
        }
    }
    Ok(phases)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_found_where_criterion_leaves_them_and_outlive_csv() {
        let folder = tempfile::tempdir().unwrap();
        for (at, id, times) in [("trap/ud1", "trap/ud1, whole", "[20.0,10.0,90.0]"), ("alone", "alone", "[4.0]")] {
            let new = folder.path().join(at).join("new");
            fs::create_dir_all(&new).unwrap();
            fs::write(new.join("benchmark.json"), format!(r#"{{"group_id":"g","full_id":"{id}"}}"#)).unwrap();
            let iterations = if at == "alone" { "[2.0]" } else { "[2.0,2.0,3.0]" };
            let sample = format!(r#"{{"sampling_mode":"Flat","iters":{iterations},"times":{times}}}"#);
            fs::write(new.join("sample.json"), sample).unwrap();
        }
        let phases = read(folder.path()).unwrap();
        assert_eq!(phases.iter().map(|phase| phase.name.as_str()).collect::<Vec<_>>(), ["alone", "trap/ud1, whole"]);
        assert_eq!(phases[1].each_ns().map(|each| (each.low, each.median, each.high)), Some((10.0, 10.0, 30.0)));
        let file = folder.path().join("phases.csv");
        save(&phases, &file).unwrap();
        assert_eq!(load(&file).unwrap(), phases);
        fs::write(&file, "phase,sample,iterations,nanoseconds\nalone,0,0,1\n").unwrap();
        assert!(load(&file).is_err());
        assert!(read(&folder.path().join("alone/new")).is_err());
    }
}
