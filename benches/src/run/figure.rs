//! Numbers with names: what the raw CSV of a run comes to. They are made of files alone, so that a run can be reported again, and compared with.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::part::{APPLICATIONS_FILE, LOAD_FILE, Turn};
use super::record::Record;
use crate::applications;
use crate::phases::{self, Phase};
use crate::polybench::summary::Summary;
use crate::polybench::variant::Variant;
use crate::row::{self, Row};
use crate::scenario::Peer;
use crate::spread::Spread;
use crate::tables;

/// A number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// What was measured, unlike all others.
    pub name: String,
    /// How much.
    pub value: f64,
    /// Of what.
    pub unit: String,
    /// What is good.
    pub better: Better,
    /// How far repetitions in this run are apart, as a share of the value.
    pub noise: f64,
}

/// Which of two numbers is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// Times.
    Lower,
    /// Throughput.
    Higher,
}

/// All that a run left, as far as it is its own.
#[derive(Debug, Default)]
pub struct Raw {
    /// Of criterion, by name.
    pub phases: Vec<Phase>,
    /// Of the applications, natively and in sandboxes.
    pub turns: Vec<Turn>,
    /// Of PolyBench, a size each.
    pub kernels: Vec<Summary>,
    /// Of load.
    pub rows: Vec<Row>,
}

impl Raw {
    /// What is in `folder`. Of parts that `record` names, only those that are done; of a run without record, everything.
    ///
    /// # Errors
    ///
    /// If a file is not what it should be.
    pub fn read(folder: &Path, record: Option<&Record>) -> Result<Raw> {
        let is_good = |part: &str| record.is_none_or(|record| record.is_good(part));
        let mut raw = Raw::default();
        for file in files(folder)? {
            let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            match name.as_str() {
                APPLICATIONS_FILE if is_good("applications") => raw.turns = tables::read(&file)?,
                LOAD_FILE if is_good("load") => raw.rows = tables::read(&file)?,
                _ => {}
            }
            if let Some(bench) = name.strip_prefix("phases-").and_then(|name| name.strip_suffix(".csv"))
                && is_good(bench)
            {
                raw.phases.extend(phases::load(&file)?);
            }
            // Not all sizes are parts of a run; files of other sizes come from `make polybench`.
            let is_part = name == "polybench-medium-raw.csv" || name == "polybench-mini-raw.csv";
            if name.starts_with("polybench-") && name.ends_with("-raw.csv") && (!is_part || is_good("polybench")) {
                raw.kernels.push(Summary::read(&file)?);
            }
        }
        raw.phases.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(raw)
    }

    /// What it comes to.
    pub fn figures(&self) -> Vec<Figure> {
        let mut figures = Vec::new();
        for phase in &self.phases {
            let figure = |each: Spread| Figure::new(&phase.name, each, "ns", Better::Lower);
            figures.extend(phase.each_ns().map(figure));
        }
        for application in self.applications() {
            figures.push(application.figure());
        }
        for summary in &self.kernels {
            kernels(summary, &mut figures);
        }
        self.load(&mut figures);
        figures
    }

    fn load(&self, figures: &mut Vec<Figure>) {
        let mut known: Vec<(&str, &str)> = Vec::new();
        for Row { scenario, server, .. } in &self.rows {
            if known.contains(&(scenario, server)) {
                continue;
            }
            known.push((scenario, server));
            let sledge = Peer::Sledge.name();
            let named = |what: &str| format!("load {scenario}, {what}");
            if server == sledge {
                let spread = |number| row::spread(&self.rows, scenario, server, number);
                let (throughput, p99) = (spread(|row| row.per_second), spread(|row| row.p99_us));
                figures.extend(throughput.map(|s| Figure::new(&named("throughput"), s, "replies/s", Better::Higher)));
                figures.extend(p99.map(|s| Figure::new(&named("p99"), s, "us", Better::Lower)));
            } else {
                let ratio = row::ratio(&self.rows, scenario, [sledge, server], |row| row.per_second);
                let name = named(&format!("throughput to {server}"));
                figures.extend(ratio.map(|s| Figure::new(&name, s, "ratio", Better::Higher)));
            }
        }
    }

    /// The applications, in the order in which they were measured.
    pub fn applications(&self) -> Vec<Application> {
        let mut applications: Vec<Application> = Vec::new();
        for turn in &self.turns {
            if applications.iter().any(|known| known.name == turn.application) {
                continue;
            }
            let all = || self.turns.iter().filter(|other| other.application == turn.application);
            let (native_s, sandbox_s) =
                applications::best(&all().map(|turn| (turn.native_s, turn.sandbox_s)).collect::<Vec<_>>());
            let noise = Spread::of(all().map(|turn| turn.sandbox_s / turn.native_s)).map_or(0.0, Spread::noise);
            applications.push(Application { name: turn.application.clone(), native_s, sandbox_s, noise });
        }
        applications
    }
}

/// An application, natively and in a sandbox, both at their best.
#[derive(Debug, Clone)]
pub struct Application {
    /// Its name.
    pub name: String,
    /// Seconds of a call.
    pub native_s: f64,
    /// The same in a sandbox.
    pub sandbox_s: f64,
    noise: f64,
}

impl Application {
    /// How much longer it takes in a sandbox.
    pub fn ratio(&self) -> f64 {
        self.sandbox_s / self.native_s
    }

    fn figure(&self) -> Figure {
        let name = format!("application {}, execution to native", self.name);
        Figure { name, value: self.ratio(), unit: "ratio".to_owned(), better: Better::Lower, noise: self.noise }
    }
}

fn kernels(summary: &Summary, figures: &mut Vec<Figure>) {
    let ratio = |what: &str, value, noise| Figure {
        name: format!("polybench {}, {what}", summary.dataset().to_lowercase()),
        value,
        unit: "ratio".to_owned(),
        better: Better::Lower,
        noise,
    };
    for &variant in summary.variants.iter().filter(|variant| **variant != Variant::Native) {
        if let Ok(ratios) = summary.over(variant, Variant::Native) {
            figures.push(ratio(&format!("{variant} to native, geometric mean"), ratios.geometric, 0.0));
        }
    }
    let each = |noises: Vec<f64>| summary.ratios(Variant::C_GUARD, Variant::Native).map(|ratios| (ratios, noises));
    if let Ok((ratios, noises)) = summary.noises(Variant::C_GUARD).and_then(each) {
        for ((kernel, value), noise) in summary.kernels().zip(ratios).zip(noises) {
            figures.push(ratio(&format!("{kernel} {} to native", Variant::C_GUARD), value, noise));
        }
    }
}

impl Figure {
    fn new(name: &str, spread: Spread, unit: &str, better: Better) -> Figure {
        Figure { name: name.to_owned(), value: spread.median, unit: unit.to_owned(), better, noise: spread.noise() }
    }
}

fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut files = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    files.sort();
    Ok(files)
}
