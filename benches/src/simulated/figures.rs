//! Figures for more cores than a machine has: each program of the suite in each column, on a server of so many workers.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use clap::ValueEnum;
use serde::Serialize;
use sledge_schedule::Policy;

use super::calibration::Run;
use super::model::{Arrivals, Concurrency, Costs, Load, Nanoseconds, Settings, Stream};
use super::outcome::Outcome;
use super::server::play;
use super::suite::{self, Program};

/// Parts of the capacity, which is what the cores can do: the paper's.
pub const LOADS: [f64; 3] = [0.25, 0.5, 0.7];
/// Invocations at the same time for each core, of which the best counts.
const SWEEP: [usize; 7] = [1, 2, 4, 8, 16, 32, 64];
/// Of the mean of one client, how much the mean may be at the highest rate.
const MEAN_MAX: f64 = 2.0;
/// Halvings of the search for that.
const STEPS: usize = 6;
/// What is simulated of a load at most for each core, beside the number of requests: processor time in seconds, and bursts. And requests at least.
const SECONDS_MAX: f64 = 50.0;
const BURSTS_MAX: usize = 100_000;
const REQUESTS_MIN: usize = 100;
/// A server that answers less than this part of what comes has too much to do, and its latency says how long that lasted.
const ANSWERED: f64 = 0.9;
/// What more can run than cores is measured with: the program, its load, and how it comes.
const RUNNABLE: (&str, f64, Arrivals) = ("create-order", 0.9, Arrivals::Bursts(8));
/// How many can run, for each core.
const BY_CORE: [f64; 3] = [1.0, 1.2, 1.5];

/// A configuration of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Column {
    /// The paper's baseline: as many invocations of a function as there are cores, each with its own image.
    Nightcore,
    /// The same with the number that is best of 1 to 64 for each core.
    NightcoreBest,
    /// Perfect pre-warming: any number, each from an image, in turn.
    Prewarmed,
    /// The same in the order of arrival.
    Fifo,
    /// `sledge` in turn.
    WithoutOrder,
    /// `sledge` where each core keeps what comes to it.
    OneCore,
    /// The server's default order, with as many invocations as rule M3 says.
    Sledge,
}

/// Those that are compared by default.
pub const COLUMNS: [Column; 4] = [Column::Nightcore, Column::NightcoreBest, Column::Prewarmed, Column::Sledge];

impl Column {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Column::Nightcore => "nightcore",
            Column::NightcoreBest => "nightcore-best",
            Column::Prewarmed => "prewarmed",
            Column::Fifo => "fifo",
            Column::WithoutOrder => "without order",
            Column::OneCore => "one core each",
            Column::Sledge => "sledge",
        }
    }

    /// A server; `best` is the number that is best of the sweep.
    fn settings(self, cores: usize, best: usize, costs: Costs) -> Settings {
        let settings = Settings::new(cores, costs);
        let strict = Settings { policy: Policy::RoundRobinStrict, ..settings };
        let auto = Settings { concurrency: Concurrency::Auto, ..settings };
        match self {
            Column::Nightcore => Settings { concurrency: Concurrency::Fixed(cores), images: false, ..strict },
            Column::NightcoreBest => Settings { concurrency: Concurrency::Fixed(best * cores), images: false, ..strict },
            Column::Prewarmed => strict,
            Column::Fifo => Settings { policy: Policy::Fifo, ..settings },
            Column::WithoutOrder => Settings { policy: Policy::RoundRobinStrict, ..auto },
            Column::OneCore => Settings { steals: false, ..auto },
            Column::Sledge => auto,
        }
    }
}

/// What is simulated.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// Numbers of cores.
    pub cores: Vec<usize>,
    /// The columns.
    pub columns: Vec<Column>,
    /// How far the store is away.
    pub delay: Nanoseconds,
    /// How requests come.
    pub arrivals: Arrivals,
    /// Requests of each load for each core, at most: a load has to last for much longer than a request.
    pub requests: usize,
    /// Names of programs; empty for all.
    pub programs: Vec<String>,
    /// From which everything is drawn.
    pub seed: u64,
}

/// A program in one column at one load.
#[derive(Debug, Clone, Serialize)]
pub struct Cell {
    /// The program.
    pub program: String,
    /// Workers, each on a core.
    pub cores: usize,
    /// The column.
    pub column: Column,
    /// Part of the capacity.
    pub load: f64,
    /// The mean; of several functions the geometric mean of theirs.
    pub mean_ms: f64,
    /// The same of 99th percentiles.
    pub p99_ms: f64,
    /// The part of their time for which workers did something.
    pub utilisation: f64,
    /// Whether more came than it could do: then latencies say how long that lasted.
    pub overloaded: bool,
}

/// The highest rate with a mean of at most twice that of one client.
#[derive(Debug, Clone, Serialize)]
pub struct Throughput {
    /// The program.
    pub program: String,
    /// Workers.
    pub cores: usize,
    /// The column.
    pub column: Column,
    /// Requests a second.
    pub per_second: f64,
}

/// So many invocations that can run at the same time.
#[derive(Debug, Clone, Serialize)]
pub struct Runnable {
    /// Workers.
    pub cores: usize,
    /// How many can run on average, for each core.
    pub by_core: f64,
    /// How many there are at the same time at most, waiting ones included.
    pub limit: usize,
    /// The mean.
    pub mean_ms: f64,
    /// The 99th percentile.
    pub p99_ms: f64,
}

/// What came of it.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// How far the store is away.
    pub delay_ms: f64,
    /// How requests came.
    pub pattern: Arrivals,
    /// From which everything was drawn.
    pub seed: u64,
    /// What requests cost beside their functions, in nanoseconds.
    pub costs: Costs,
    /// Loads.
    pub cells: Vec<Cell>,
    /// Highest rates.
    pub throughput: Vec<Throughput>,
    /// More that can run than cores.
    pub runnable: Vec<Runnable>,
    /// Events that were played.
    pub events: u64,
}

/// Simulates all of it, on all cores of this machine.
pub fn figures(wanted: &Wanted, run: Option<&Run>) -> Report {
    let costs = run.map_or(Costs::USUAL, Run::costs);
    let all = suite::programs(wanted.delay, run, &costs);
    let programs: Vec<&Program> =
        all.iter().filter(|program| wanted.programs.is_empty() || wanted.programs.contains(&program.name)).collect();
    let jobs: Vec<(usize, &Program)> =
        wanted.cores.iter().flat_map(|cores| programs.iter().map(move |program| (*cores, *program))).collect();
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some((index, (cores, program))) =
                    Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|index| Some((index, jobs.get(index)?)))
                {
                    let simulated = Simulated::of(program, *cores, wanted, costs);
                    done.lock().unwrap_or_else(PoisonError::into_inner).push((index, simulated));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(index, _)| *index);
    let (delay_ms, pattern, seed) = (wanted.delay as f64 / 1e6, wanted.arrivals, wanted.seed);
    let (cells, throughput, runnable, events) = (Vec::new(), Vec::new(), Vec::new(), 0);
    let mut report = Report { delay_ms, pattern, seed, costs, cells, throughput, runnable, events };
    for (_, simulated) in done {
        report.cells.extend(simulated.cells);
        report.throughput.extend(simulated.throughput);
        report.runnable.extend(simulated.runnable);
        report.events += simulated.events;
    }
    report
}

/// A program on so many cores.
struct Simulated<'a> {
    program: &'a Program,
    cores: usize,
    wanted: &'a Wanted,
    costs: Costs,
    /// Requests a second that the cores can do, with images.
    capacity: f64,
    requests: usize,
    cells: Vec<Cell>,
    throughput: Vec<Throughput>,
    runnable: Vec<Runnable>,
    events: u64,
}

impl<'a> Simulated<'a> {
    fn of(program: &'a Program, cores: usize, wanted: &'a Wanted, costs: Costs) -> Simulated<'a> {
        let busy = program.busy(&Settings::new(cores, costs)) as f64 / 1e9;
        let most = ((SECONDS_MAX / busy) as usize).min(BURSTS_MAX / program.bursts());
        let (requests, capacity) = (cores * wanted.requests.min(most.max(REQUESTS_MIN)), cores as f64 / busy);
        let (cells, throughput, runnable, events) = (Vec::new(), Vec::new(), Vec::new(), 0);
        let mut this = Simulated { program, cores, wanted, costs, capacity, requests, cells, throughput, runnable, events };
        let best = if wanted.columns.contains(&Column::NightcoreBest) { this.best() } else { 1 };
        for column in &wanted.columns {
            let settings = column.settings(cores, best, costs);
            for load in LOADS {
                this.cell(*column, &settings, load);
            }
            let per_second = this.highest_rate(&settings);
            this.throughput.push(Throughput { program: program.name.clone(), cores, column: *column, per_second });
        }
        if program.name == RUNNABLE.0 {
            this.more_runnable();
        }
        this
    }

    /// Plays so many requests at a rate.
    fn open(&mut self, settings: &Settings, rate: f64, arrivals: Arrivals, requests: usize) -> Outcome {
        let parts: f64 = self.program.asked.iter().map(|(_, part)| part).sum();
        let stream =
            |&(function, part): &(usize, f64)| Stream { function, per_second: rate * part / parts, arrivals, worker: None };
        let load = Load::Open(self.program.asked.iter().map(stream).collect());
        self.play(settings, &load, requests)
    }

    fn play(&mut self, settings: &Settings, load: &Load, requests: usize) -> Outcome {
        let outcome = play(settings, &self.program.functions, load, requests, self.wanted.seed);
        self.events += outcome.events;
        outcome
    }

    /// The geometric mean of what functions came to that were asked.
    fn mean(&self, of: impl Fn(usize) -> f64) -> f64 {
        let all: Vec<f64> = self.program.asked.iter().map(|(function, _)| of(*function)).filter(|value| *value > 0.0).collect();
        geometric(&all)
    }

    fn cell(&mut self, column: Column, settings: &Settings, load: f64) {
        let rate = load * self.capacity;
        let outcome = self.open(settings, rate, self.wanted.arrivals, self.requests);
        self.cells.push(Cell {
            program: self.program.name.clone(),
            cores: self.cores,
            column,
            load,
            mean_ms: self.mean(|function| outcome.latencies[function].mean_ms()),
            p99_ms: self.mean(|function| outcome.latencies[function].quantile_ms(0.99)),
            utilisation: outcome.utilisation,
            overloaded: outcome.per_second < ANSWERED * rate,
        });
    }

    /// The number of the sweep with the lowest mean at the highest load.
    fn best(&mut self) -> usize {
        let rate = LOADS[LOADS.len() - 1] * self.capacity;
        let mean = |each: usize| {
            let settings = Column::NightcoreBest.settings(self.cores, each, self.costs);
            let outcome = self.open(&settings, rate, self.wanted.arrivals, self.requests / 2);
            (self.mean(|function| outcome.latencies[function].mean_ms()), each)
        };
        let means: Vec<(f64, usize)> = SWEEP.into_iter().map(mean).collect();
        means.into_iter().min_by(|a, b| a.0.total_cmp(&b.0)).map_or(1, |(_, each)| each)
    }

    /// By halves of what the cores can do.
    fn highest_rate(&mut self, settings: &Settings) -> f64 {
        let one = Load::Closed { clients: 1, functions: self.program.asked.clone() };
        let requests = self.requests.min(REQUESTS_MIN);
        let unloaded = self.play(settings, &one, requests);
        let unloaded = self.mean(|function| unloaded.latencies[function].mean_ms());
        let (mut low, mut high) = (0.0, self.capacity);
        for _ in 0..STEPS {
            let rate = f64::midpoint(low, high);
            let outcome = self.open(settings, rate, self.wanted.arrivals, self.requests / 2);
            let mean = self.mean(|function| outcome.latencies[function].mean_ms());
            if outcome.per_second >= ANSWERED * rate && mean <= MEAN_MAX * unloaded {
                low = rate;
            } else {
                high = rate;
            }
        }
        low
    }

    /// So many at the same time that on average so many can run for each core, in turn.
    fn more_runnable(&mut self) {
        let settings = Column::Prewarmed.settings(self.cores, 1, self.costs);
        let waits = self.program.idle() as f64 / self.program.busy(&settings) as f64;
        let (_, load, arrivals) = RUNNABLE;
        for by_core in BY_CORE {
            let limit = (by_core * self.cores as f64 * (1.0 + waits)).round() as usize;
            let settings = Settings { concurrency: Concurrency::Fixed(limit), ..settings };
            let outcome = self.open(&settings, load * self.capacity, arrivals, self.requests);
            let (mean_ms, p99_ms) = (outcome.latencies[0].mean_ms(), outcome.latencies[0].quantile_ms(0.99));
            self.runnable.push(Runnable { cores: self.cores, by_core, limit, mean_ms, p99_ms });
        }
    }
}

/// NaN of none.
pub(super) fn geometric(values: &[f64]) -> f64 {
    (values.iter().map(|value| value.ln()).sum::<f64>() / values.len() as f64).exp()
}
