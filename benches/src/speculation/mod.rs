//! The evaluation of *SpecFaaS* (Stojkovic et al., HPCA 2023) on the real server: its three suites with speculation, beside the same server without it.
//!
//! The server has cores of its own; the driver, Redis and the delay before it have the others. All columns run at the same time, idle but for the one that is measured, and are
//! measured in turns with the same inputs: a slow phase of the machine hits all of them.
//!
//! ```text
//!   program, source ──▶ measured (bed, level, place) ──▶ gains ──▶ report, pictures
//!         └─▶ native ──▶ ceiling ◀── counts ─┤                        ▲
//!                └─────▶ simulated ◀─────────┴── agreement ───────────┘
//! ```

pub mod bed;
pub mod ceiling;
pub mod counts;
pub mod gains;
pub mod level;
pub mod measured;
pub mod native;
pub mod paper;
pub mod pictures;
pub mod place;
pub mod program;
pub mod report;
pub mod simulated;
pub mod source;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use speculation::graphs::Split;

use bed::Bed;
use level::Level;
use measured::{Suites, Wanted};
use native::Native;
use place::Place;
use program::{Program, Suite};
use report::Report;
use source::{Hits, Kind, POISON};

/// Where the store is unless something else is said: the nearest at which the paper's speed-ups are to be had.
pub const USUAL: Place = Place::Redis(Duration::from_millis(1));
/// The paper's hit rates, in percent.
pub const HITS: [u32; 4] = [100, 90, 70, 50];
/// Programs whose inputs are made to do harm: one that changes what it reads, one with many ways, and two that read what they have written.
const POISONED: [&str; 4] = ["banking", "flight-book", "hotel-book", "online-purchase"];

/// What is measured.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Workers of a server, each on a core.
    pub workers: usize,
    /// The columns, `off` first.
    pub levels: Vec<&'static Level>,
    /// What is executed.
    pub programs: Vec<Program>,
    /// Which measurements are made.
    pub parts: Parts,
    /// Executions a second, as parts of what the server can do without speculation.
    pub loads: Vec<f64>,
    /// Hit rates, in percent, beside the paper's usual one.
    pub hits: Vec<u32>,
    /// Suites that are measured at these.
    pub hits_of: Vec<Suite>,
    /// Where else the store is.
    pub stores: Vec<Place>,
    /// How long functions compute, in milliseconds; those of graphs have times of their own.
    pub busy_ms: f64,
    /// Hundredths of the graphs' times, for each millisecond of a read.
    pub graph_percent: f64,
    /// For how much of that functions of graphs compute.
    pub graph_busy: Split,
    /// Executions before anything is measured, at most.
    pub warm_up: usize,
    /// How long each measurement lasts, in seconds.
    pub seconds: f64,
    /// It lasts up to three times as long if there would be fewer executions.
    pub executions_min: usize,
    /// How often everything is measured, the columns in turns.
    pub turns: usize,
    /// Everything that is drawn follows from this.
    pub seed: u64,
}

/// Groups of measurements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parts {
    /// All programs at the paper's hit rates, alone and under load.
    pub speed_up: bool,
    /// Other hit rates.
    pub hits: bool,
    /// Other places of the store.
    pub stores: bool,
    /// Inputs that are made to do harm.
    pub poison: bool,
    /// Of the first: the first executions after a start, too.
    pub cold: bool,
}

impl Parts {
    /// All of them.
    pub const ALL: Parts = Parts { speed_up: true, hits: true, stores: true, poison: true, cold: true };

    /// Those of these names.
    ///
    /// # Errors
    ///
    /// If there is none of a name.
    pub fn named(names: &[String]) -> Result<Parts> {
        let mut parts = Parts { speed_up: false, hits: false, stores: false, poison: false, cold: true };
        for name in names {
            let part = match name.as_str() {
                "speed-up" => &mut parts.speed_up,
                "hits" => &mut parts.hits,
                "stores" => &mut parts.stores,
                "poison" => &mut parts.poison,
                _ => anyhow::bail!("there is no part {name}; there are: speed-up, hits, stores, poison"),
            };
            *part = true;
        }
        Ok(parts)
    }
}

impl Settings {
    /// Everything: less than 40 minutes on two cores.
    pub fn usual(workers: usize) -> Settings {
        Settings {
            workers,
            levels: level::ALL.iter().collect(),
            programs: Program::all().collect(),
            parts: Parts::ALL,
            loads: vec![0.25, 0.5, 0.7],
            hits: HITS.to_vec(),
            hits_of: Suite::ALL.to_vec(),
            stores: vec![
                Place::Embedded,
                Place::Redis(Duration::ZERO),
                Place::Redis(Duration::from_micros(200)),
                Place::Redis(Duration::from_millis(5)),
            ],
            busy_ms: 0.2,
            graph_percent: 20.0,
            graph_busy: Split::default(),
            warm_up: usize::MAX,
            seconds: 0.7,
            executions_min: 60,
            turns: 3,
            seed: 1,
        }
    }

    /// The same in some minutes, with figures that say little.
    pub fn quick(workers: usize) -> Settings {
        Settings { seconds: 0.2, turns: 1, warm_up: 64, executions_min: 20, loads: vec![0.5], ..Settings::usual(workers) }
    }

    /// What the promises are about: about ten minutes.
    pub fn promised(workers: usize) -> Settings {
        let levels = level::ALL.iter().filter(|level| !["paths", "outputs"].contains(&level.name));
        Settings {
            levels: levels.collect(),
            loads: vec![0.7],
            stores: vec![Place::Embedded],
            hits_of: vec![Suite::FaasChain],
            seconds: 0.45,
            parts: Parts { cold: false, ..Parts::ALL },
            ..Settings::usual(workers)
        }
    }

    fn check(&self) -> Result<()> {
        ensure!(!self.programs.is_empty() && !self.levels.is_empty(), "nothing is measured");
        ensure!(
            self.loads.iter().all(|load| *load > 0.0 && *load <= 1.0),
            "loads are parts of the capacity, above 0 and at most 1"
        );
        ensure!(self.hits.iter().all(|percent| *percent <= 100), "hit rates are percent, from 0 to 100");
        ensure!(self.seconds > 0.0 && self.turns > 0, "numbers have to be above 0");
        Ok(())
    }

    /// What is measured of a program at the paper's hit rates.
    fn wanted(&self) -> Wanted {
        Wanted { cold: self.parts.cold, loads: true, saturated: true, throughput: true, crowd: false }
    }
}

/// Measures all of it; says on standard error what it is at.
///
/// # Errors
///
/// If a reply is wrong, or a server or Redis does not start: also if a server does not know a column.
pub fn run(settings: &Settings, folder: &Path) -> Result<Report> {
    settings.check()?;
    let Settings { programs, parts, .. } = settings;
    let places: Vec<Place> = settings.stores.iter().copied().filter(|_| parts.stores).chain([USUAL]).collect();
    let bed = Bed::new(settings.workers, programs, &places, folder)?;
    let work = bed.work(settings)?;
    let mut suites = Suites { bed: &bed, settings, work, native: Native::new()?, wakes: BTreeMap::new() };
    let mut measure = |program: Program, kind, place, wanted| {
        suites.measure(program, kind, place, wanted).with_context(|| format!("{}, {place}, {kind}", program.name()))
    };
    let mut report = Report::new(settings, work);
    for program in programs.iter().copied() {
        let usual = Hits::of_paper(program.suite());
        let has_hits = parts.hits && settings.hits_of.contains(&program.suite());
        if parts.speed_up {
            report.programs.push(measure(program, Kind::Hits(usual), USUAL, settings.wanted())?);
        }
        for hits in settings.hits.iter().map(|percent| Hits::both(*percent)).filter(|_| has_hits) {
            report.hits.push(measure(program, Kind::Hits(hits), USUAL, Wanted::default())?);
        }
        for place in places.iter().copied().filter(|place| parts.stores && *place != USUAL) {
            let wanted = Wanted { saturated: place == Place::Embedded, ..Wanted::default() };
            report.stores.push(measure(program, Kind::Hits(usual), place, wanted)?);
        }
        for kind in POISON.into_iter().filter(|_| parts.poison && POISONED.contains(&program.name())) {
            report.poison.push(measure(program, kind, USUAL, Wanted { crowd: true, ..Wanted::default() })?);
        }
    }
    Ok(report)
}
