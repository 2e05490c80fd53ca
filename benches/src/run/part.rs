//! What a whole run is made of. Each part measures by what `make promises`, `make polybench`, `make load` and `cargo bench` measure by, too.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use crate::applications::{self, TURNS};
use crate::example::{APPLICATIONS, Example, GPS_EKF};
use crate::polybench::plan::Plan;
use crate::polybench::variant::Variant;
use crate::scenario::{self, Scenario};
use crate::{phases, polybench, row, steps, tables};

/// The size of PolyBench that a whole run has time for; LARGE is `make polybench`.
const DATASET: &str = "MEDIUM";
const ROUNDS: usize = 3;
const LOAD_TURNS: usize = 3;
/// criterion's options where a little of everything is enough.
const SHORT: [&str; 6] = ["--warm-up-time", "0.05", "--measurement-time", "0.1", "--sample-size", "10"];

/// A part of a run.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    /// Its name.
    pub name: &'static str,
    /// What it leaves in the run's folder.
    pub file: &'static str,
    /// How long it takes, on two cores of 2025.
    pub about_s: u64,
    /// Measures it, and writes [`Part::file`].
    pub measure: fn(&Path) -> Result<()>,
}

const fn part(name: &'static str, file: &'static str, about_s: u64, measure: fn(&Path) -> Result<()>) -> Part {
    Part { name, file, about_s, measure }
}

/// Everything.
pub const WHOLE: [Part; 8] = [
    part("applications", APPLICATIONS_FILE, 45, |folder| applications(folder, &APPLICATIONS, TURNS)),
    part("polybench", "polybench-medium-raw.csv", 190, |folder| kernels(folder, DATASET, &[], &Variant::PROMISED, ROUNDS)),
    part("costs", "phases-costs.csv", 35, |folder| criterion(folder, "costs", &[])),
    part("in_process", "phases-in_process.csv", 60, |folder| criterion(folder, "in_process", &[])),
    part("compile", "phases-compile.csv", 15, |folder| criterion(folder, "compile", &[])),
    part("request", "phases-request.csv", 55, |folder| criterion(folder, "request", &[])),
    part("execute", "phases-execute.csv", 110, |folder| criterion(folder, "execute", &[])),
    part("load", LOAD_FILE, 560, |folder| load(folder, &scenario::all()?, LOAD_TURNS)),
];

/// A little of everything, which shows that all can be measured.
pub const QUICK: [Part; 8] = [
    part("applications", APPLICATIONS_FILE, 5, |folder| applications(folder, &[&GPS_EKF], 1)),
    part("polybench", "polybench-mini-raw.csv", 5, |folder| {
        let variants = [Variant::Native, Variant::NativeMarch, Variant::C_GUARD];
        kernels(folder, "MINI", &["gemm", "lu"], &variants, 1)
    }),
    part("costs", "phases-costs.csv", 10, |folder| criterion(folder, "costs", &SHORT)),
    part("in_process", "phases-in_process.csv", 20, |folder| criterion(folder, "in_process", &SHORT)),
    part("compile", "phases-compile.csv", 10, |folder| criterion(folder, "compile", &SHORT)),
    part("request", "phases-request.csv", 20, |folder| criterion(folder, "request", &SHORT)),
    part("execute", "phases-execute.csv", 80, |folder| criterion(folder, "execute", &SHORT)),
    part("load", LOAD_FILE, 20, |folder| {
        let mut scenarios = scenario::all()?;
        scenarios.retain(|scenario| ["ping-10", GPS_EKF.name].contains(&scenario.name.as_str()));
        load(folder, &scenarios, 1)
    }),
];

/// Where the part `load` leaves its rows.
pub(super) const LOAD_FILE: &str = "load.csv";
/// Where the part `applications` leaves its turns.
pub(super) const APPLICATIONS_FILE: &str = "applications.csv";

/// A turn of an application, natively and in a sandbox.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// Its name.
    pub application: String,
    /// Which repetition.
    pub turn: usize,
    /// Seconds of a call in a process.
    pub native_s: f64,
    /// The same in a sandbox.
    pub sandbox_s: f64,
}

fn temporary() -> Result<TempDir> {
    tempfile::Builder::new().prefix("sledge-bench-").tempdir().context("cannot create a temporary folder")
}

fn applications(folder: &Path, examples: &[&'static Example], count: usize) -> Result<()> {
    let built = temporary()?;
    let bar = steps::bar("applications", examples.len() as u64);
    let mut turns = Vec::new();
    for example in examples {
        for (turn, (native_s, sandbox_s)) in applications::turns(example, built.path(), count)?.into_iter().enumerate() {
            turns.push(Turn { application: example.name.to_owned(), turn, native_s, sandbox_s });
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    tables::write(&folder.join(APPLICATIONS_FILE), turns)
}

fn kernels(folder: &Path, dataset: &str, kernels: &[&str], variants: &[Variant], rounds: usize) -> Result<()> {
    let kernels: Vec<_> = kernels.iter().map(|&kernel| kernel.to_owned()).collect();
    let plan = Plan { folder: folder.to_owned(), ..Plan::new(dataset, &kernels, variants, rounds)? };
    polybench::run(&plan).map(drop)
}

fn criterion(folder: &Path, bench: &str, options: &[&str]) -> Result<()> {
    phases::save(&phases::measure(bench, options)?, &folder.join(format!("phases-{bench}.csv")))
}

fn load(folder: &Path, scenarios: &[Scenario], turns: usize) -> Result<()> {
    let rows = scenario::run(scenarios, turns, temporary()?.path())?;
    let file = folder.join(LOAD_FILE);
    fs::write(&file, row::csv(&rows)).with_context(|| format!("cannot write {}", file.display()))
}
