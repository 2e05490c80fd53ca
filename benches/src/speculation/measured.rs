//! A program in all its columns.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Serialize;
use speculation::Step;

use super::bed::{Alone, Bed, Running};
use super::ceiling::Costs;
use super::level::Level;
use super::native::Native;
use super::place::Place;
use super::program::{Program, Suite};
use super::simulated::figures::{Given, More, Simulated};
use super::source::{Execution, Kind, Source, Work, requests};
use super::{Settings, USUAL};
use crate::sharing::arrivals::Pattern;
use crate::sharing::load::{Asked, Seen, Span};
use crate::workload::quantile;

/// Executions before anything is measured, by how many clients; without speculation there is less to learn.
const WARM_UP: usize = 192;
const WARM_UP_OFF: usize = 24;
const WARM_UP_CLIENTS: usize = 4;
/// Executions of one client in a turn.
const ALONE: (f64, f64) = (6.0, 400.0);
/// Executions after a start that count as cold.
const COLD: usize = 20;
/// Clients with which the search begins for as many as keep the server busy, and with which it ends, by worker.
const CLIENTS: (f64, f64) = (4.0, 256.0);
/// How much more they are than what it needs, by the times that one client sees.
const CLIENTS_FACTOR: f64 = 3.0;
/// It ends where the cores are used so much, or where twice as many get less than so much more done.
const BUSY: f64 = 0.95;
/// With so many executions at a time at most that they take so many times as long as is measured.
const SPANS_MAX: f64 = 1.5;
const MORE: f64 = 1.1;
/// So many times as many executions are drawn for a closed loop as come without speculation.
const DRAWN: f64 = 3.0;
/// Answers that a client of a closed loop has at least, about.
const ANSWERS_EACH: f64 = 3.0;
/// Clients of a crowd.
const CROWD: usize = 8;
/// Steps of the search for the highest rate, and what the mean may be then, of that of one client without speculation.
const STEPS: usize = 5;
const MEAN_MAX: f64 = 2.0;
/// Part of a load that does not count, at its beginning.
pub(super) const UNCOUNTED: f64 = 0.2;
/// Longest that answers are waited for.
const GRACE: Duration = Duration::from_secs(60);

/// What is measured beside one client.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The first executions after a start.
    pub cold: bool,
    /// Open loops.
    pub loads: bool,
    /// As many clients as keep the server busy.
    pub saturated: bool,
    /// The highest rate with a mean of at most twice that of one client without speculation.
    pub throughput: bool,
    /// Some clients at the same time, and what memory grew by.
    pub crowd: bool,
}

/// A program with its store in one place.
#[derive(Debug, Clone, Serialize)]
pub struct Measured {
    /// The program.
    pub program: Program,
    /// Its suite.
    pub suite: Suite,
    /// Where the store is.
    pub place: Place,
    /// What inputs are like.
    pub kind: Kind,
    /// Functions of an execution, on average.
    pub functions: f64,
    /// Functions of the longest one.
    pub functions_max: usize,
    /// What an execution takes at best, in milliseconds.
    pub ideal_ms: f64,
    /// What things cost without speculation.
    pub costs: Costs,
    /// Executions a second that the server can do without speculation, if that was measured.
    pub capacity: Option<f64>,
    /// The columns, `off` first.
    pub columns: Vec<Column>,
    /// What a model says of the same, and of more cores; of inputs that are made to do harm nothing.
    pub simulated: Option<Simulated>,
}

/// A program in one column. Lists have a number for each turn.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Column {
    /// The column.
    pub level: String,
    /// Means of one client, in milliseconds.
    pub alone_ms: Vec<f64>,
    /// The 99th percentile, of all turns.
    pub p99_ms: f64,
    /// Processor time of the server for an execution, in milliseconds.
    pub cpu_ms: Vec<f64>,
    /// Of that, for how long functions ran, those among them that were in vain.
    pub guest_ms: Vec<f64>,
    /// Runs that were begun ahead or left out, by what became of them, for each execution.
    pub ahead: BTreeMap<String, f64>,
    /// Runs of functions, for each execution.
    pub runs: f64,
    /// Means of the first executions after a start.
    pub cold_ms: Vec<f64>,
    /// Open loops.
    pub loads: Vec<Cell>,
    /// Executions a second of as many clients as keep the server busy without speculation.
    pub saturated: Vec<f64>,
    /// The highest rate, if it was searched.
    pub throughput: Option<f64>,
    /// Means of some clients at the same time.
    pub crowd_ms: Vec<f64>,
    /// By how much memory that belongs to no file has grown, in millions of bytes.
    pub grown_mb: Option<f64>,
}

/// A load.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Cell {
    /// Part of the capacity without speculation.
    pub load: f64,
    /// Executions a second.
    pub rate: f64,
    /// Means.
    pub mean_ms: Vec<f64>,
    /// The 99th percentile, of all turns.
    pub p99_ms: f64,
    /// Executions that were answered, of all turns.
    pub replies: usize,
    /// Executions that were not.
    pub unanswered: usize,
    /// Processor time of the server for an execution, in milliseconds.
    pub cpu_ms: Vec<f64>,
}

/// The median; of no numbers NaN.
pub fn median(numbers: &[f64]) -> f64 {
    quantile(numbers.iter().copied(), 0.5)
}

/// The median of the ratios of the turns.
pub fn ratio(over: &[f64], under: &[f64]) -> f64 {
    quantile(over.iter().zip(under).map(|(over, under)| over / under), 0.5)
}

/// What all cases have in common.
pub struct Suites<'a> {
    /// Where they run.
    pub bed: &'a Bed,
    /// What is measured.
    pub settings: &'a Settings,
    /// How much functions compute.
    pub work: Work,
    /// The functions natively.
    pub native: Native,
    /// What a core takes to come back from having nothing to do, in milliseconds, by programs whose capacity was measured.
    pub wakes: BTreeMap<&'static str, f64>,
}

/// A program with its servers.
struct Case<'a, 'b> {
    suites: &'a mut Suites<'b>,
    source: Source,
    servers: Vec<(&'static Level, Running)>,
    columns: Vec<Column>,
    turns: usize,
    seconds: f64,
    /// What taught the servers, and then what one client saw.
    executions: Vec<Execution>,
    learned: usize,
}

impl Suites<'_> {
    /// Measures a program.
    ///
    /// # Errors
    ///
    /// If a reply is wrong, or a server does not start.
    pub fn measure(&mut self, program: Program, kind: Kind, place: Place, wanted: Wanted) -> Result<Measured> {
        eprintln!("{}, {place}, {kind}", program.name());
        let levels: Vec<&'static Level> = self.settings.levels.iter().copied().filter(|level| level.is_of(program)).collect();
        let source = Source::new(program, kind, place, &self.work, self.settings.seed);
        let columns = levels.iter().map(|level| Column { level: level.name.to_owned(), ..Column::default() }).collect();
        // What only one client sees is measured in less time.
        let is_short = wanted == Wanted::default();
        let Settings { turns, seconds, .. } = *self.settings;
        let (turns, seconds) = if is_short { (turns.min(2), seconds * 0.7) } else { (turns, seconds) };
        let (executions, learned) = (Vec::new(), 0);
        let mut case = Case { suites: self, source, servers: Vec::new(), columns, turns, seconds, executions, learned };
        if wanted.cold {
            case.cold(program, &levels, place)?;
        }
        for level in levels {
            case.servers.push((level, case.suites.bed.serve(program, level, place)?));
        }
        let memory = case.warm_up(wanted.crowd)?;
        let (off_ms, costs) = case.alone(place)?;
        if wanted.crowd {
            case.crowd(&memory)?;
        }
        let mut capacity = None;
        if wanted.loads || wanted.saturated || wanted.throughput {
            let (clients, per_second) = case.capacity(&costs)?;
            capacity = Some(per_second);
            if wanted.loads {
                case.loads(per_second)?;
            }
            if wanted.saturated || wanted.throughput {
                case.saturated(clients, per_second)?;
            }
            if wanted.throughput {
                case.throughput()?;
            }
        }
        let Case { columns, executions, learned, .. } = case;
        let cores = self.bed.cores.workers();
        let wake_ms = self.wake_ms(program);
        let given = Given {
            program,
            place,
            executions: &executions,
            learned,
            off_ms: &off_ms,
            costs: &costs,
            capacity,
            wake_ms,
            columns: &columns,
            cores,
        };
        // Where only hit rates differ, it is simulated what wrong runs cost.
        let more = More { cores: wanted.loads, drops: wanted == Wanted::default() && place == USUAL };
        let simulated = if wanted.crowd { None } else { Some(Simulated::of(&given, more)?) };
        if let Some(simulated) = simulated.as_ref().filter(|_| capacity.is_some() && place == USUAL) {
            self.wakes.insert(program.name(), simulated.wake_ms);
        }
        let executions = &executions[learned..];
        let lengths = || executions.iter().map(|execution| execution.steps.len());
        let count = executions.len() as f64;
        let ideal_ms = |execution: &Execution| costs.ideal_ms(&execution.steps, program.computes(), cores, place.is_remote());
        Ok(Measured {
            program,
            suite: program.suite(),
            place,
            kind,
            functions: lengths().sum::<usize>() as f64 / count,
            functions_max: lengths().max().unwrap_or_default(),
            ideal_ms: executions.iter().map(ideal_ms).sum::<f64>() / count,
            costs,
            capacity,
            columns,
            simulated,
        })
    }

    /// What a core takes to come back, as it was measured with the program, or with the others.
    fn wake_ms(&self, program: Program) -> f64 {
        let all = || self.wakes.values().copied();
        self.wakes.get(program.name()).copied().unwrap_or_else(|| if self.wakes.is_empty() { 0.0 } else { quantile(all(), 0.5) })
    }
}

impl Case<'_, '_> {
    fn take(&mut self, count: usize) -> Result<Vec<Execution>> {
        self.source.take(count.max(1), &mut self.suites.native)
    }

    /// The numbers of the columns in the order of a turn: each comes first as often as last.
    fn order(&self, turn: usize) -> Vec<usize> {
        let all = 0..self.columns.len();
        if turn.is_multiple_of(2) { all.collect() } else { all.rev().collect() }
    }

    fn cold(&mut self, program: Program, levels: &[&'static Level], place: Place) -> Result<()> {
        for turn in 0..self.turns {
            let executions = self.take(COLD)?;
            for index in self.order(turn) {
                let running = self.suites.bed.serve(program, levels[index], place)?;
                self.columns[index].cold_ms.push(running.one_by_one(&executions)?.mean_ms());
            }
        }
        Ok(())
    }

    /// Has servers learn; what memory each has then, if that is wanted.
    fn warm_up(&mut self, memory: bool) -> Result<Vec<u64>> {
        let executions = self.take(WARM_UP.min(self.suites.settings.warm_up))?;
        for (level, running) in &self.servers {
            let count = if level.is_off() { WARM_UP_OFF.min(executions.len()) } else { executions.len() };
            running.once(&executions[..count], WARM_UP_CLIENTS)?;
        }
        (self.learned, self.executions) = (executions.len(), executions);
        self.servers.iter().filter(|_| memory).map(|(_, running)| running.anonymous_bytes()).collect()
    }

    /// One client; how long executions took without speculation, and what things cost.
    fn alone(&mut self, place: Place) -> Result<(Vec<f64>, Costs)> {
        let first = self.take(2)?;
        let mean_ms = self.servers[0].1.one_by_one(&first)?.mean_ms();
        let (least, most) = ALONE;
        let count = (self.seconds * 1e3 / mean_ms).clamp(least, most) as usize;
        let mut seen: Vec<Alone> = vec![Alone::default(); self.columns.len()];
        for turn in 0..self.turns {
            let executions = self.take(count)?;
            for index in self.order(turn) {
                let alone = self.servers[index].1.one_by_one(&executions)?;
                let each = executions.len() as f64;
                let column = &mut self.columns[index];
                column.alone_ms.push(alone.mean_ms());
                column.cpu_ms.push(alone.cpu_ms / each);
                column.guest_ms.push(alone.counts.running_ms() / each);
                let sum = &mut seen[index];
                sum.counts.add(&alone.counts);
                sum.latencies_ms.extend(alone.latencies_ms);
                sum.cpu_ms += alone.cpu_ms;
            }
            self.executions.extend(executions);
        }
        for (column, seen) in self.columns.iter_mut().zip(&mut seen) {
            let each = seen.latencies_ms.len() as f64;
            column.p99_ms = quantile(seen.latencies_ms.iter().copied(), 0.99);
            column.ahead = seen.counts.ahead.iter().map(|(result, count)| (result.clone(), count / each)).collect();
            column.runs = seen.counts.functions.values().map(|used| used.runs).sum::<f64>() / each;
        }
        let off = seen.swap_remove(0);
        let all: Vec<&[Step]> = self.executions[self.learned..].iter().map(|execution| execution.steps.as_slice()).collect();
        let costs = Costs::of(&all, &off.counts, off.cpu_ms, place.is_remote());
        Ok((off.latencies_ms, costs))
    }

    /// Enough for so long, if so many come in a second.
    fn enough(&mut self, per_second: f64, clients: usize) -> Result<Vec<Asked>> {
        let count = DRAWN * per_second * self.seconds;
        Ok(requests(&self.take(count as usize + 2 * clients)?))
    }

    /// Long enough for each client to have some answers, if the cores are all that they wait for.
    fn closed(&self, index: usize, clients: usize, requests: &[Asked]) -> Result<(Seen, f64)> {
        let each_s = median(&self.columns[0].cpu_ms) / 1e3 / self.suites.bed.cores.workers() as f64;
        let end = Duration::from_secs_f64(self.seconds.max(ANSWERS_EACH * clients as f64 * each_s));
        let span = Span { counted: end.mul_f64(UNCOUNTED), end, grace: GRACE };
        let (seen, watched) = self.servers[index].1.closed(clients, requests, span)?;
        Ok((seen, watched.mean_utilisation()))
    }

    fn crowd(&mut self, memory: &[u64]) -> Result<()> {
        let about = 1e3 * CROWD as f64 / median(&self.columns[0].alone_ms);
        for turn in 0..self.turns {
            let requests = self.enough(about, CROWD)?;
            for index in self.order(turn) {
                let (seen, _) = self.closed(index, CROWD, &requests)?;
                self.columns[index].crowd_ms.push(seen.mean_ms());
            }
        }
        for ((column, (_, running)), before) in self.columns.iter_mut().zip(&self.servers).zip(memory) {
            column.grown_mb = Some((running.anonymous_bytes()? as f64 - *before as f64) / 1e6);
        }
        Ok(())
    }

    /// How many clients keep the server busy without speculation, and how many executions a second it does.
    fn capacity(&mut self, costs: &Costs) -> Result<(usize, f64)> {
        let workers = self.suites.bed.cores.workers();
        let cpu_ms = costs.execution_cpu_ms.max(1e-3);
        let about = 1e3 * workers as f64 / cpu_ms;
        let (least, most) = CLIENTS;
        let needed = (CLIENTS_FACTOR * median(&self.columns[0].alone_ms) / cpu_ms).max(least);
        // Each has one execution at least, and all of these are waited for.
        let in_time = SPANS_MAX * self.seconds * 1e3 / cpu_ms;
        let clients_max = in_time.clamp(needed.min(most), most).ceil() as usize * workers;
        let mut clients = needed.min(most).ceil() as usize * workers;
        let requests = self.enough(about / DRAWN, clients_max)?;
        let (seen, mut utilisation) = self.closed(0, clients, &requests)?;
        let mut best = seen.per_second;
        while utilisation < BUSY && clients < clients_max {
            let twice = (2 * clients).min(clients_max);
            let (seen, used) = self.closed(0, twice, &requests)?;
            if seen.per_second < MORE * best {
                break;
            }
            (clients, best, utilisation) = (twice, seen.per_second, used);
        }
        Ok((clients, best))
    }

    fn open(&mut self, rate: f64, seconds: f64, turn: usize) -> Result<Vec<(Duration, Asked)>> {
        let end = Duration::from_secs_f64(seconds);
        let due = Pattern::Poisson.due(rate, end.mul_f64(UNCOUNTED), end, self.suites.settings.seed + turn as u64);
        let asked = requests(&self.take(due.len())?);
        Ok(due.into_iter().zip(asked).collect())
    }

    /// How long a load lasts: long enough for some executions, but not too long.
    fn time(&self, rate: f64) -> f64 {
        (self.suites.settings.executions_min as f64 / rate).clamp(self.seconds, 3.0 * self.seconds)
    }

    fn loads(&mut self, capacity: f64) -> Result<()> {
        for load in self.suites.settings.loads.clone() {
            let rate = load * capacity;
            let seconds = self.time(rate);
            let end = Duration::from_secs_f64(seconds);
            let span = Span { counted: end.mul_f64(UNCOUNTED), end, grace: end };
            let mut seen: Vec<Vec<(Seen, f64)>> = vec![Vec::new(); self.columns.len()];
            for turn in 0..self.turns {
                let plan = self.open(rate, seconds, turn)?;
                for index in self.order(turn) {
                    let (load, watched) = self.servers[index].1.open(plan.clone(), span)?;
                    seen[index].push((load, watched.cpu.as_secs_f64() * 1e3));
                }
            }
            for (column, seen) in self.columns.iter_mut().zip(seen) {
                column.loads.push(Cell::new(load, rate, &seen));
            }
        }
        Ok(())
    }

    fn saturated(&mut self, clients: usize, capacity: f64) -> Result<()> {
        for turn in 0..self.turns {
            let requests = self.enough(capacity, clients)?;
            for index in self.order(turn) {
                let (seen, _) = self.closed(index, clients, &requests)?;
                self.columns[index].saturated.push(seen.per_second);
            }
        }
        Ok(())
    }

    /// The highest rates, by halves of what each column can do.
    fn throughput(&mut self) -> Result<()> {
        let mean_max = MEAN_MAX * median(&self.columns.first().context("a column")?.alone_ms);
        for index in 0..self.columns.len() {
            let (mut low, mut high) = (0.0, median(&self.columns[index].saturated));
            for step in 0..STEPS {
                let rate = f64::midpoint(low, high);
                let seconds = self.time(rate);
                let end = Duration::from_secs_f64(seconds);
                let plan = self.open(rate, seconds, step)?;
                let span = Span { counted: end.mul_f64(UNCOUNTED), end, grace: end };
                let (seen, _) = self.servers[index].1.open(plan, span)?;
                if seen.unanswered == 0 && seen.mean_ms() <= mean_max {
                    low = rate;
                } else {
                    high = rate;
                }
            }
            self.columns[index].throughput = Some(low);
        }
        Ok(())
    }
}

impl Cell {
    fn new(load: f64, rate: f64, turns: &[(Seen, f64)]) -> Cell {
        Cell {
            load,
            rate,
            mean_ms: turns.iter().map(|(seen, _)| seen.mean_ms()).collect(),
            p99_ms: quantile(turns.iter().flat_map(|(seen, _)| seen.latencies_ms.iter().copied()), 0.99),
            replies: turns.iter().map(|(seen, _)| seen.latencies_ms.len()).sum(),
            unanswered: turns.iter().map(|(seen, _)| seen.unanswered).sum(),
            cpu_ms: turns.iter().map(|(seen, cpu_ms)| cpu_ms / seen.replies.max(1) as f64).collect(),
        }
    }
}
