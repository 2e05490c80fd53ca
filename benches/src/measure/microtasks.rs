//! The group `microtasks`: the distributed sort on a Redis 5 ms away, and the online game, beside their bounds. What has to do with classes is measured
//! with them where the server has them. What is no comparison with "without classes" is otherwise measured without.

use std::time::Duration;

use anyhow::{Context, Result};

use super::Bench;
use crate::workload::classes::{self, Classes};
use crate::workload::sort::{self, Place, PlaceReport, VariantReport};
use crate::workload::{Cores, game};

/// How often each variant sorts.
const REPEAT: usize = 3;
/// How far Redis is away.
const DELAY: Duration = Duration::from_millis(5);

/// What the sort came to.
#[derive(Debug)]
pub(super) struct Sorted(sort::Report);

pub(super) fn sorted(bench: &Bench) -> Result<Sorted> {
    let settings = sort::Settings {
        megabytes: 400,
        chunks: 100,
        categories: 256,
        repeat: REPEAT,
        workers: Cores::halved()?.workers(),
        places: vec![Place::Redis(DELAY)],
        classes: classes::usable(Classes::Inferred)?,
        seed: 1,
        transfers: None,
    };
    let report = sort::run(&settings, bench.folder.path())?;
    eprint!("{}", report.table());
    Ok(Sorted(report))
}

impl Sorted {
    fn place(&self) -> Result<&PlaceReport> {
        self.0.places.first().context("the sort was in one place")
    }

    /// So many tasks at a time, with classes if there are any.
    fn best(&self, in_flight: usize) -> Result<&VariantReport> {
        let place = self.place()?;
        place.variant(in_flight, true).or_else(|| place.variant(in_flight, false)).context("it was measured")
    }

    /// With classes and without.
    fn both(&self, in_flight: usize) -> Result<[&VariantReport; 2]> {
        let with = self.place()?.variant(in_flight, true).context("this server has no classes")?;
        Ok([with, self.place()?.variant(in_flight, false).context("it was measured")?])
    }
}

/// The makespan to the larger of both bounds.
pub(super) fn makespan_ratio(bench: &mut Bench) -> Result<f64> {
    let sorted = bench.sorted()?;
    let (best, cpu_s) = (sorted.best(16)?, sorted.place()?.cpu_alone_s);
    Ok(best.makespan_s() / cpu_s.max(best.io_critical_path_s()))
}

/// The makespan to the processor time alone.
pub(super) fn cpu_ratio(bench: &mut Bench) -> Result<f64> {
    let sorted = bench.sorted()?;
    Ok(sorted.best(16)?.makespan_s() / sorted.place()?.cpu_alone_s)
}

/// The makespan with classes to that without.
pub(super) fn classes_ratio(bench: &mut Bench) -> Result<f64> {
    let [with, without] = bench.sorted()?.both(8)?;
    Ok(with.makespan_s() / without.makespan_s())
}

/// How long blocking tasks write, to how long those at 8 in flight do.
pub(super) fn write_ratio(bench: &mut Bench) -> Result<f64> {
    let sorted = bench.sorted()?;
    let blocking = sorted.place()?.variant(1, false).context("it was measured")?;
    Ok(blocking.lasted_ms("write") / sorted.best(8)?.lasted_ms("write"))
}

/// Phases that compute, with classes to without.
pub(super) fn computing_ratio(bench: &mut Bench) -> Result<f64> {
    let sorted = bench.sorted()?;
    let ratios = sort::IN_FLIGHT.map(|in_flight| sorted.both(in_flight).map(|[with, without]| with.computing_ratio(without)));
    ratios.into_iter().try_fold(0.0, |worst, ratio| Ok(f64::max(worst, ratio?)))
}

/// How far ticks beside initialisations are above those alone.
pub(super) fn tick_slices(bench: &mut Bench) -> Result<f64> {
    let settings = game::Settings {
        passes: 2_000,
        repeat: 1,
        seconds: 20.0,
        workers: Cores::halved()?.workers(),
        classes: classes::usable(Classes::Inferred)?,
        seed: 1,
    };
    let report = game::run(&settings, bench.folder.path())?;
    eprint!("{}", report.table());
    Ok(report.slices())
}
