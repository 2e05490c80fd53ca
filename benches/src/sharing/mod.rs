//! The evaluation of *MXFaaS* (Stojkovic et al., ISCA 2023) on the real server: its suite beside an emulation of its baseline, and beside ourselves without
//! each of the things that invocations share.
//!
//! The server has cores of its own; the driver, Redis and the delay before it have the others. Everything that is drawn follows from a seed: all columns get the
//! same requests at the same times.

pub mod arrivals;
pub mod bed;
pub mod column;
pub mod example;
pub mod load;
pub mod measured;
pub mod modelled;
pub mod others;
pub mod report;
pub mod runner;
pub mod suite;
pub mod timeline;
pub mod watch;

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use arrivals::Pattern;
use bed::Bed;
use column::Column;
use report::Report;
use suite::Parts;

/// What is measured.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Workers of the server, each on a core.
    pub workers: usize,
    /// Names of functions and applications.
    pub programs: Vec<String>,
    /// How far Redis is away.
    pub delays: Vec<Duration>,
    /// Requests a second, as parts of what the server can do.
    pub loads: Vec<f64>,
    /// Further ways in which they come, beside each for itself.
    pub bursts: Vec<usize>,
    /// Whether bursts come at all loads, or at the middle one only.
    pub bursts_at_all_loads: bool,
    /// What is compared with [`Column::Nightcore`] and the best of the sweep.
    pub columns: Vec<Column>,
    /// Invocations of a function at the same time, for each core, in the paper's baseline.
    pub nightcore: usize,
    /// The same for the sweep of which the best is taken.
    pub sweep: Vec<usize>,
    /// How long each load lasts, in seconds.
    pub seconds: f64,
    /// It lasts longer if there would be fewer requests,
    pub requests_min: usize,
    /// but not longer than this.
    pub seconds_max: f64,
    /// How often everything is measured, the columns in turns.
    pub turns: usize,
    /// Everything that is drawn follows from this.
    pub seed: u64,
    /// Which of the other measurements are made.
    pub others: Others,
}

/// Measurements beside those of the programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Others {
    /// The highest rate with a mean of at most twice the unloaded one.
    pub throughput: bool,
    /// A function that waits, beside one that computes.
    pub hogs: bool,
    /// More that can run than there are cores.
    pub runnable: bool,
    /// Utilisation over time.
    pub utilisation: bool,
    /// Reads that wait for others.
    pub merging: bool,
    /// Memory of images.
    pub memory: bool,
}

impl Others {
    /// All of them.
    pub const ALL: Others =
        Others { throughput: true, hogs: true, runnable: true, utilisation: true, merging: true, memory: true };
    /// None.
    pub const NONE: Others =
        Others { throughput: false, hogs: false, runnable: false, utilisation: false, merging: false, memory: false };
}

impl Settings {
    /// The default selection, an hour on two cores: the memory of images takes most of it.
    pub fn short(workers: usize) -> Settings {
        let programs = ["lr-serv-modelled", "rnn-serv", "img-resize", "create-order", "ts-left"];
        Settings {
            workers,
            programs: programs.map(str::to_owned).to_vec(),
            delays: vec![Duration::from_millis(5)],
            loads: vec![0.25, 0.5, 0.7],
            bursts: vec![8, 32],
            bursts_at_all_loads: false,
            columns: column::ALL.to_vec(),
            nightcore: 8,
            sweep: vec![1, 2, 4, 8, 16, 32, 64],
            seconds: 1.5,
            requests_min: 100,
            seconds_max: 4.0,
            turns: 1,
            seed: 1,
            others: Others::ALL,
        }
    }

    /// Everything, most of a day.
    pub fn full(workers: usize) -> Settings {
        Settings {
            programs: suite::names().map(str::to_owned).collect(),
            delays: [1, 5, 20].map(Duration::from_millis).to_vec(),
            bursts_at_all_loads: true,
            seconds: 5.0,
            requests_min: 500,
            seconds_max: 30.0,
            ..Settings::short(workers)
        }
    }

    /// All loads and patterns that are measured.
    fn cells(&self) -> Vec<(f64, Pattern)> {
        let middle = self.loads.get(self.loads.len() / 2);
        let mut cells: Vec<_> = self.loads.iter().map(|load| (*load, Pattern::Poisson)).collect();
        for load in self.loads.iter().filter(|load| self.bursts_at_all_loads || Some(*load) == middle) {
            cells.extend(self.bursts.iter().map(|size| (*load, Pattern::Bursts(*size))));
        }
        cells
    }

    /// The highest load.
    fn load_max(&self) -> f64 {
        self.loads.iter().copied().fold(0.0, f64::max)
    }

    fn check(&self) -> Result<()> {
        ensure!(!self.programs.is_empty() && !self.delays.is_empty() && !self.loads.is_empty(), "nothing is measured");
        ensure!(
            self.loads.iter().all(|load| *load > 0.0 && *load <= 1.0),
            "loads are parts of the capacity, above 0 and at most 1"
        );
        ensure!(self.bursts.iter().chain(&self.sweep).all(|count| *count > 0), "bursts and the sweep have numbers from 1");
        ensure!(self.nightcore > 0 && self.turns > 0 && self.seconds > 0.0, "numbers have to be above 0");
        for name in &self.programs {
            suite::check(name)?;
        }
        Ok(())
    }
}

/// Measures all of it; says on standard error what it is at.
///
/// # Errors
///
/// If a reply is wrong, or a server or Redis does not start.
pub fn run(settings: &Settings, folder: &Path) -> Result<Report> {
    settings.check()?;
    let bed = Bed::new(settings.workers, &settings.delays, folder)?;
    let parts = Parts::of(&settings.programs, &bed)?;
    let suite = measured::Suite { bed: &bed, settings, parts };
    let mut programs = Vec::new();
    for name in &settings.programs {
        for delay in &settings.delays {
            let program = suite.parts.program(name, &bed)?;
            programs.push(suite.measure(&*program, *delay).with_context(|| format!("{name} with Redis {delay:?} away"))?);
        }
    }
    let Others { hogs, runnable, utilisation, merging, memory, .. } = settings.others;
    Ok(Report {
        workers: settings.workers,
        nightcore: settings.nightcore,
        seed: settings.seed,
        programs,
        hogs: hogs.then(|| others::hogs(&suite)).transpose()?,
        runnable: if runnable { others::runnable(&suite)? } else { Vec::new() },
        utilisation: if utilisation { others::utilisation(&suite)? } else { Vec::new() },
        merging: if merging { others::merging(&suite)? } else { Vec::new() },
        memory: if memory { others::memory(&suite)? } else { Vec::new() },
    })
}
