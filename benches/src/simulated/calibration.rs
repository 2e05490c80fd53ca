//! What was measured on a real server, and the model that follows from it.
//!
//! The format is what `make sharing` writes, of which this reads a part, and [`measure`](super::measure) writes a little more. A column is a configuration of the server.
//!
//! A function's processor time is what a request takes where the server is busy, less what is known to be the server's part of it: so all of it is accounted for once. Its wait
//! for the store is what is left of the latency of one client. So the model meets what was measured without load by its construction; what it says under load is a prediction.

use std::fmt;
use std::fs;
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, Error, Result, bail, ensure};
use serde::{Deserialize, Serialize};
use sledge_schedule::Policy;

use super::model::{Arrivals, Concurrency, Costs, Function, Nanoseconds, Settings};

/// Programs that say what requests cost: one that does nothing, and one that does nothing but ask the store.
pub const PING: &str = "ping";
/// The other.
pub const READS: &str = "reads";
/// The column by which they say it.
const PLAIN: &str = "prewarmed";

/// How late requests may be sent, as a part of their mean latency.
const LATE_MAX: f64 = 0.05;

/// A run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Run {
    /// Workers of the server, each on a core.
    pub workers: usize,
    /// Invocations of a function at the same time, for each core, in the column `nightcore`.
    pub nightcore: usize,
    /// The programs.
    pub programs: Vec<Program>,
    /// Programs beside each other.
    #[serde(default)]
    pub pairs: Vec<Pair>,
}

/// A program with the store at one distance.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Program {
    /// Its name.
    pub program: String,
    /// How often a request asks the store, one after the other.
    pub accesses: usize,
    /// How far the store is away.
    pub delay_ms: f64,
    /// Invocations at the same time, for each core, in the column `nightcore-best`.
    #[serde(default)]
    pub best: usize,
    /// The columns.
    pub columns: Vec<Column>,
}

/// A program in one column.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Column {
    /// Its name.
    pub column: String,
    /// The mean of one client.
    pub unloaded_ms: f64,
    /// Processor time of a request where the server is busy.
    pub cpu_ms: f64,
    /// The same of one client's requests.
    #[serde(default)]
    pub unloaded_cpu_ms: Option<f64>,
    /// Percentiles from 0 to 100 of one client's latencies.
    #[serde(default)]
    pub percentiles_ms: Vec<f64>,
    /// Loads.
    pub cells: Vec<Cell>,
}

/// A program in one column at one load.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Cell {
    /// Part of the capacity.
    pub load: f64,
    /// How requests come.
    pub pattern: Arrivals,
    /// How many a second.
    pub rate: f64,
    /// How many there were.
    pub requests: usize,
    /// Of these, which were not answered.
    #[serde(default)]
    pub unanswered: usize,
    /// How long after they were due they were sent, in the mean.
    #[serde(default)]
    pub late_ms: f64,
    /// The mean.
    pub mean_ms: f64,
    /// The 99th percentile.
    pub p99_ms: f64,
}

impl Cell {
    /// Whether it says what the server does: all were answered, and clients sent them when they were due.
    pub fn is_sound(&self) -> bool {
        self.unanswered == 0 && self.late_ms <= LATE_MAX * self.mean_ms
    }
}

/// Programs that were asked at the same time.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Pair {
    /// The column.
    pub column: String,
    /// Their names, with what was seen of each.
    pub programs: Vec<(String, Cell)>,
}

impl fmt::Display for Arrivals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Arrivals::Even => f.pad("even"),
            Arrivals::Poisson => f.pad("poisson"),
            Arrivals::Bursts(count) => f.pad(&format!("bursts of {count}")),
        }
    }
}

impl FromStr for Arrivals {
    type Err = Error;

    fn from_str(text: &str) -> Result<Arrivals> {
        match text.strip_prefix("bursts of ") {
            Some(count) => Ok(Arrivals::Bursts(count.parse().with_context(|| format!("arrivals {text:?}"))?)),
            None if text == "even" => Ok(Arrivals::Even),
            None if text == "poisson" => Ok(Arrivals::Poisson),
            None => bail!("arrivals {text:?} are not known; known are: even, poisson, bursts of N"),
        }
    }
}

impl TryFrom<String> for Arrivals {
    type Error = Error;

    fn try_from(text: String) -> Result<Arrivals> {
        text.parse()
    }
}

impl From<Arrivals> for String {
    fn from(arrivals: Arrivals) -> String {
        arrivals.to_string()
    }
}

impl Run {
    /// Reads one.
    ///
    /// # Errors
    ///
    /// If the file is not there, or is none.
    pub fn read(file: &Path) -> Result<Run> {
        let text = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
        let run: Run = serde_json::from_slice(&text).with_context(|| format!("{} is no run of `sharing`", file.display()))?;
        ensure!(run.workers > 0, "{}: a run of no workers", file.display());
        Ok(run)
    }

    /// A program in a column.
    fn column(&self, program: &str, column: &str) -> Option<(&Program, &Column)> {
        let program = self.programs.iter().find(|known| known.program == program)?;
        Some((program, program.columns.iter().find(|known| known.column == column)?))
    }

    /// What requests cost beside their functions. What was not measured is as [usual](Costs::USUAL).
    pub fn costs(&self) -> Costs {
        let mut costs = Costs::USUAL;
        let Some((_, ping)) = self.column(PING, PLAIN) else { return costs };
        let busy = nanoseconds(ping.cpu_ms);
        (costs.read, costs.write) = (busy - busy / 2, busy / 2);
        // What one client costs more is the way from sleep to work.
        costs.wake = ping.unloaded_cpu_ms.map_or(costs.wake, |cpu_ms| nanoseconds(cpu_ms).saturating_sub(busy));
        costs.away = nanoseconds(ping.unloaded_ms).saturating_sub(busy + costs.wake);
        if let Some((program, reads)) = self.column(READS, PLAIN).filter(|(program, _)| program.accesses > 0) {
            costs.trip = nanoseconds(reads.cpu_ms).saturating_sub(busy) / program.accesses as u64;
        }
        costs
    }

    /// A server in a column, and whether it is known.
    pub fn settings(&self, column: &str, best: usize, costs: Costs) -> Option<Settings> {
        let fixed = |each: usize| Concurrency::Fixed((each * self.workers).max(1));
        let (policy, concurrency) = match column {
            "nightcore" => (Policy::RoundRobinStrict, fixed(self.nightcore)),
            "nightcore-best" => (Policy::RoundRobinStrict, fixed(best)),
            "prewarmed" => (Policy::RoundRobinStrict, Concurrency::Unlimited),
            "without order" => (Policy::RoundRobinStrict, Concurrency::Auto),
            "fifo" => (Policy::Fifo, Concurrency::Unlimited),
            "sledge" | "without images" | "without joins" => (Policy::RoundRobin, Concurrency::Auto),
            _ => return None,
        };
        // What initialising costs is part of what was measured in that column.
        Some(Settings { policy, concurrency, ..Settings::new(self.workers, costs) })
    }
}

/// The function that a program is in a column.
pub fn function(program: &Program, column: &Column, costs: &Costs, quantum: Duration) -> Function {
    let (accesses, busy) = (program.accesses as u64, nanoseconds(column.cpu_ms));
    let servers = costs.read + costs.write + accesses * costs.trip;
    let mut own = busy.saturating_sub(servers);
    let quantum = quantum.as_nanos() as Nanoseconds;
    if own / (accesses + 1) > quantum {
        // Where the server is busy each quantum ends by a tick, and the simulation adds these.
        own = (own as f64 * quantum as f64 / (quantum + costs.tick) as f64) as Nanoseconds;
    }
    // Each answer finds a worker that sleeps.
    let left = column.unloaded_ms * 1e6 - (own + servers + (accesses + 1) * costs.wake + costs.away) as f64;
    let wait = (left.max(0.0) as u64).checked_div(accesses).unwrap_or(0);
    // Where nothing waits, the difference is the client's.
    let rest = left - (wait * accesses) as f64;
    let mut function = Function::even(&program.program, own, program.accesses, wait);
    let mean = column.percentiles_ms.iter().sum::<f64>() / column.percentiles_ms.len() as f64;
    function.noise = column.percentiles_ms.iter().map(|took| (took - mean) * 1e6 + rest).collect();
    if function.noise.is_empty() {
        function.noise.push(rest);
    }
    function
}

/// Milliseconds in simulated time.
pub(super) fn nanoseconds(ms: f64) -> Nanoseconds {
    (ms * 1e6).max(0.0) as Nanoseconds
}
