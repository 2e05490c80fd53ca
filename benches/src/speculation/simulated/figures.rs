//! What the model says of each cell that was measured, and of more cores.

use anyhow::Result;
use serde::Serialize;

use super::super::ceiling::Costs;
use super::super::measured::{self, median};
use super::super::place::Place;
use super::super::program::{Program, Suite};
use super::super::source::Execution;
use super::Ahead;
use super::drops::{Dropped, dropped};
use super::prices::{Busy, Prices, Seen, mean};
use super::server::play;
use super::setup::{Arrivals, Outcome, Setup};
use super::trace::{Trace, traces};
use crate::workload::quantile;

/// A cell is predicted where the mean is within this part of what was measured.
pub const WITHIN: f64 = 0.15;
/// How many cores are simulated beside those that the server had.
pub const CORES: [usize; 3] = [4, 8, 16];
/// Executions of a cell: of one client as many as were measured, up to so often; and at a load.
const TIMES: usize = 8;
const EXECUTIONS: usize = 1_000;
const SEED: u64 = 1;
/// Between these factors it is searched for that of the waits at a load, by so many halvings.
const WAITS: (f64, f64) = (0.5, 4.0);
const STEPS: usize = 7;

/// What is simulated of a program with its store in one place.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Simulated {
    /// Processor time that a core takes to come back from having nothing to do, in milliseconds.
    pub wake_ms: f64,
    /// The columns that were measured.
    pub columns: Vec<Column>,
    /// The same on more cores.
    pub cores: Vec<Cores>,
    /// What wrong runs cost that do not stop at once.
    pub drops: Vec<Dropped>,
}

/// A column.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Column {
    /// Its name.
    pub level: String,
    /// The part of what may go ahead that does, so that as many runs are adopted or left out as by the server.
    pub share: f64,
    /// The mean of one client.
    pub alone_ms: f64,
    /// The 99th percentile of as many executions as were measured.
    pub p99_ms: f64,
    /// Processor time of an execution.
    pub cpu_ms: f64,
    /// Open loops.
    pub loads: Vec<Cell>,
}

/// A load.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Cell {
    /// Part of the capacity without speculation.
    pub load: f64,
    /// The mean.
    pub mean_ms: f64,
    /// The 99th percentile of as many executions as were measured.
    pub p99_ms: f64,
}

/// A column on more cores.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Cores {
    /// How many.
    pub cores: usize,
    /// The column.
    pub level: String,
    /// How many times faster one client has its answers, where the column is predicted.
    pub speed_up: Option<f64>,
    /// The same at the highest load, where the column is predicted there.
    pub at_load: Option<f64>,
}

/// What is known of a measurement.
#[derive(Debug)]
pub struct Given<'a> {
    /// The program.
    pub program: Program,
    /// Where its store is.
    pub place: Place,
    /// What ran: first what only taught the server, then what one client saw.
    pub executions: &'a [Execution],
    /// How many of these taught.
    pub learned: usize,
    /// How long each of the others took without speculation.
    pub off_ms: &'a [f64],
    /// What things cost without speculation.
    pub costs: &'a Costs,
    /// Executions a second that the server can do without speculation.
    pub capacity: Option<f64>,
    /// What a core takes to come back, by another measurement of the program: for one without a capacity.
    pub wake_ms: f64,
    /// What was measured.
    pub columns: &'a [measured::Column],
    /// Workers.
    pub cores: usize,
}

/// What is simulated beside the cells that were measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct More {
    /// More cores.
    pub cores: bool,
    /// What wrong runs cost that do not stop at once, of workflows.
    pub drops: bool,
}

/// Everything that is needed to play a program.
struct Model {
    traces: Vec<Trace>,
    prices: Prices,
    /// The same at each load that was measured.
    loads: Vec<Load>,
    cores: usize,
}

/// A load.
struct Load {
    /// Executions a second.
    rate: f64,
    /// Executions that come in one measurement, those included that do not count.
    each: usize,
    prices: Prices,
}

impl Load {
    /// That of a cell without speculation. Waits take longer than those of one client, so that the mean is what was measured: the store, the way to it, and the driver share cores of their own.
    fn of(model: &Model, cell: &measured::Cell) -> Load {
        let turns = cell.mean_ms.len().max(1);
        let each = (cell.replies as f64 / turns as f64 / (1.0 - measured::UNCOUNTED)).ceil() as usize;
        let mut load = Load { rate: cell.rate, each: each.max(1), prices: model.prices.clone() };
        let (mut low, mut high) = WAITS;
        for _ in 0..STEPS {
            let factor = f64::midpoint(low, high);
            load.prices.wait_ms = model.prices.wait_ms * factor;
            let is_less = mean(&model.at_load(&load, &Setup::off(model.cores), 1.0)) < median(&cell.mean_ms);
            if is_less { low = factor } else { high = factor }
        }
        load
    }
}

impl Model {
    fn alone(&self, setup: &Setup) -> Outcome {
        let count = (TIMES * self.traces.len()).min(EXECUTIONS.max(self.traces.len()));
        play(&self.traces, &self.prices, setup, Arrivals::OneClient, count, SEED)
    }

    /// How long executions take where so many times as many come as in a load. As in a measurement, the server is idle at first, and the first part does not count.
    fn at_load(&self, load: &Load, setup: &Setup, times: f64) -> Vec<f64> {
        let each = (load.each as f64 * times).ceil() as usize;
        let uncounted = (each as f64 * measured::UNCOUNTED) as usize;
        let played = |seed: usize| {
            let arrivals = Arrivals::Poisson(load.rate * times);
            let outcome = play(&self.traces, &load.prices, setup, arrivals, each, SEED + seed as u64);
            outcome.latencies_ms.into_iter().skip(uncounted)
        };
        (0..EXECUTIONS.div_ceil(each)).flat_map(played).collect()
    }

    /// What as many runs are adopted or left out with as were by the server.
    fn setup(&self, column: &measured::Column) -> Option<Setup> {
        let mut setup = Setup { ahead: Ahead::named(&column.level)?, ..Setup::off(self.cores) };
        if setup.ahead == Ahead::Off {
            return Some(setup);
        }
        let counted = |outcome: &Outcome| (outcome.adopted + outcome.skipped) as f64 / outcome.latencies_ms.len() as f64;
        let counts = |result: &String| *result == "adopted" || result.starts_with("skip");
        let seen: f64 = column.ahead.iter().filter(|(result, _)| counts(result)).map(|(_, count)| count).sum();
        let most = counted(&self.alone(&setup));
        setup.share = if most > 0.0 { (seen / most).min(1.0) } else { 1.0 };
        Some(setup)
    }

    fn column(&self, column: &measured::Column, setup: &Setup) -> Column {
        let outcome = self.alone(setup);
        let cell = |(cell, load): (&measured::Cell, &Load)| {
            let latencies_ms = self.at_load(load, setup, 1.0);
            Cell { load: cell.load, mean_ms: mean(&latencies_ms), p99_ms: p99(&latencies_ms, cell.replies) }
        };
        Column {
            level: column.level.clone(),
            share: setup.share,
            alone_ms: mean(&outcome.latencies_ms),
            p99_ms: p99(&outcome.latencies_ms, self.traces.len()),
            cpu_ms: outcome.used_ms / outcome.latencies_ms.len() as f64,
            loads: column.loads.iter().zip(&self.loads).map(cell).collect(),
        }
    }
}

/// The median over as many executions each as there were in what it is compared with: of few executions the 99th percentile is the longest.
fn p99(latencies_ms: &[f64], count: usize) -> f64 {
    let parts = latencies_ms.chunks_exact(count.clamp(1, latencies_ms.len().max(1)));
    quantile(parts.map(|part| quantile(part.iter().copied(), 0.99)), 0.5)
}

/// Whether a mean is predicted.
pub fn is_within(simulated: f64, measured: f64) -> bool {
    (simulated / measured - 1.0).abs() <= WITHIN
}

impl Simulated {
    /// Plays everything that was measured, and the same on more cores if that is wanted.
    ///
    /// # Errors
    ///
    /// If it is not known what the executions do.
    pub fn of(given: &Given<'_>, more: More) -> Result<Simulated> {
        let Given { program, place, executions, learned, off_ms, costs, capacity, wake_ms, columns, cores } = *given;
        let traces = traces(program, executions, learned)?;
        let mean_ms = columns.first().map_or(f64::NAN, |off| median(&off.alone_ms));
        let (computes, is_remote) = (program.computes(), place.is_remote());
        let seen = Seen { costs, mean_ms, latencies_ms: off_ms, computes, is_remote, cores };
        let prices = Prices::of(&traces, &seen, capacity.map_or(Busy::Wake(wake_ms), Busy::Capacity));
        let mut model = Model { traces, prices, loads: Vec::new(), cores };
        let loads = columns.first().map_or(&[][..], |off| &off.loads);
        model.loads = loads.iter().map(|cell| Load::of(&model, cell)).collect();
        let setups: Vec<(&measured::Column, Setup)> =
            columns.iter().filter_map(|column| Some((column, model.setup(column)?))).collect();
        let simulated = setups.iter().map(|(column, setup)| model.column(column, setup)).collect();
        let mut all = Simulated { wake_ms: model.prices.wake_ms, columns: simulated, ..Simulated::default() };
        if more.cores {
            for cores in CORES.into_iter().filter(|more| *more > cores) {
                all.cores.extend(model.more_cores(cores, &setups, &all.columns));
            }
        }
        if more.drops && program.suite() == Suite::FaasChain {
            all.drops = dropped(&model.traces, &model.prices, cores);
        }
        Ok(all)
    }

    /// The column of this name.
    pub fn column(&self, level: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.level == level)
    }
}

impl Model {
    /// Of each column with speculation that is predicted on the cores that the server had.
    fn more_cores(&self, cores: usize, setups: &[(&measured::Column, Setup)], simulated: &[Column]) -> Vec<Cores> {
        let off = Setup::off(cores);
        let off_ms = mean(&self.alone(&off).latencies_ms);
        // As much of them is to be used as of those that the server had.
        let times = cores as f64 / self.cores as f64;
        let load = self.loads.last();
        let off_load_ms = load.map(|load| mean(&self.at_load(load, &off, times)));
        let mut all = Vec::new();
        for ((column, setup), model) in setups.iter().zip(simulated).filter(|((_, setup), _)| setup.ahead != Ahead::Off) {
            let setup = Setup { cores, ..*setup };
            let is_alone = is_within(model.alone_ms, median(&column.alone_ms));
            let last = || Some((model.loads.last()?.mean_ms, median(&column.loads.last()?.mean_ms)));
            let is_loaded = last().is_some_and(|(simulated, measured)| is_within(simulated, measured));
            all.push(Cores {
                cores,
                level: column.level.clone(),
                speed_up: is_alone.then(|| off_ms / mean(&self.alone(&setup).latencies_ms)),
                at_load: load
                    .filter(|_| is_loaded)
                    .and_then(|load| Some(off_load_ms? / mean(&self.at_load(load, &setup, times)))),
            });
        }
        all
    }
}
