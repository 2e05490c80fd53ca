//! What is simulated: functions as processor time and waits, what a request costs beside that, and how requests come.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use sledge_schedule::Policy;

use crate::random::Random;

/// Nanoseconds of simulated time.
pub type Nanoseconds = u64;

/// A function: bursts of processor time, and between two of them a wait or a call.
#[derive(Debug, Clone)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Processor time, one burst after the other; at least one.
    pub bursts: Vec<Nanoseconds>,
    /// What is between them: one less than bursts.
    pub between: Vec<Between>,
    /// Processor time of its initialisation, for each request where images are not shared.
    pub initialise: Nanoseconds,
    /// By how much bursts vary.
    pub varies: Varies,
    /// By how much its latency differs from its mean on a server that has nothing else to do: percentiles from 0 to 100, in nanoseconds. Empty for not at all.
    pub noise: Vec<f64>,
}

/// What a function does between two bursts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Between {
    /// It waits for the store: from when the command is sent until the answer has come.
    Waits(Nanoseconds),
    /// It calls the function with this index, and waits for its reply.
    Calls(usize),
}

/// By how much bursts vary.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Varies {
    /// Not at all.
    Never,
    /// Evenly, by at most this part of them.
    By(f64),
    /// As the exponential distribution does.
    Exponentially,
}

impl Function {
    /// One that computes for so long in all, and waits so often for so long in between, evenly.
    pub fn even(name: &str, computes: Nanoseconds, waits: usize, wait: Nanoseconds) -> Function {
        Function {
            name: name.to_owned(),
            bursts: vec![computes / (waits as u64 + 1); waits + 1],
            between: vec![Between::Waits(wait); waits],
            initialise: 0,
            varies: Varies::Never,
            noise: Vec::new(),
        }
    }

    /// One of its bursts, drawn; the first one with its initialisation.
    pub(super) fn burst(&self, index: usize, initialises: bool, random: &mut Random) -> Nanoseconds {
        let mean = self.bursts[index] as f64;
        let drawn = match self.varies {
            Varies::Never => mean,
            Varies::By(part) => mean * (1.0 + part * (2.0 * random.unit() - 1.0)),
            Varies::Exponentially => mean * exponential(random),
        };
        let first = if initialises && index == 0 { self.initialise } else { 0 };
        drawn as Nanoseconds + first
    }

    /// What is added to a latency, drawn.
    pub(super) fn noise(&self, random: &mut Random) -> f64 {
        let Some(last) = self.noise.len().checked_sub(1) else { return 0.0 };
        let at = random.unit() * last as f64;
        let (low, part) = (at as usize, at.fract());
        self.noise[low] * (1.0 - part) + self.noise[(low + 1).min(last)] * part
    }
}

/// The exponential distribution with the mean 1.
pub(super) fn exponential(random: &mut Random) -> f64 {
    -(1.0 - random.unit()).ln()
}

/// What a request costs outside of its function. All but `away` is a worker's time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Costs {
    /// Reading it, with routing, admission and its sandbox.
    pub read: Nanoseconds,
    /// Writing its reply.
    pub write: Nanoseconds,
    /// A wait for the store: the host call, the command, the answer, and the way back to the guest.
    pub trip: Nanoseconds,
    /// A call of another function.
    pub call: Nanoseconds,
    /// A worker's way from its sleep to work.
    pub wake: Nanoseconds,
    /// A tick that suspends a guest.
    pub tick: Nanoseconds,
    /// Looking after connections that have nothing.
    pub look: Nanoseconds,
    /// What is no worker's time: the client and the network.
    pub away: Nanoseconds,
}

impl Costs {
    /// Nothing costs anything, but that looking after connections takes some time: simulated time has to go on.
    pub const NONE: Costs = Costs { read: 0, write: 0, trip: 0, call: 0, wake: 0, tick: 0, look: 100, away: 0 };
    /// What `docs/benchmarks.md` has of a virtual machine, for where nothing was measured.
    pub const USUAL: Costs =
        Costs { read: 5_000, write: 4_000, trip: 16_000, call: 3_400, wake: 4_000, tick: 30_000, look: 1_000, away: 5_000 };
}

/// How many invocations of a function are in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Concurrency {
    /// Any number.
    Unlimited,
    /// As the rule M3 says: `concurrency_max = "auto"`.
    Auto,
    /// So many, and the others wait.
    Fixed(usize),
}

/// Where requests come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listeners {
    /// At a worker, any of them.
    PerCore,
    /// At a thread that is not simulated, which queues them for all workers.
    Dedicated,
}

/// A server.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Workers, each on a core.
    pub workers: usize,
    /// The order of each.
    pub policy: Policy,
    /// The time slice.
    pub quantum: Duration,
    /// The limit of each function.
    pub concurrency: Concurrency,
    /// Whether a request begins with the function's image, or initialises it.
    pub images: bool,
    /// Whether idle workers help others. Otherwise each core is a group of its own.
    pub steals: bool,
    /// Where requests come in.
    pub listeners: Listeners,
    /// What a request costs.
    pub costs: Costs,
    /// After how long a request is late.
    pub deadline: Duration,
}

impl Settings {
    /// A server as it is by default, on so many cores.
    pub fn new(workers: usize, costs: Costs) -> Settings {
        Settings {
            workers,
            policy: Policy::RoundRobin,
            quantum: Duration::from_micros(500),
            concurrency: Concurrency::Unlimited,
            images: true,
            steals: true,
            listeners: Listeners::PerCore,
            costs,
            deadline: Duration::from_secs(3_600),
        }
    }
}

/// How the requests of a stream come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Arrivals {
    /// One in so much time.
    Even,
    /// As a Poisson process.
    Poisson,
    /// So many at a time, as a Poisson process.
    Bursts(u32),
}

/// Requests of a function that come whether others were answered or not.
#[derive(Debug, Clone, Copy)]
pub struct Stream {
    /// The function's index.
    pub function: usize,
    /// How many come in a second.
    pub per_second: f64,
    /// How they come.
    pub arrivals: Arrivals,
    /// The worker through whose connections all of them come; else through any.
    pub worker: Option<usize>,
}

/// What comes.
#[derive(Debug, Clone)]
pub enum Load {
    /// Streams beside each other: an open loop.
    Open(Vec<Stream>),
    /// So many clients, each of which sends the next request when the last one was answered; and the functions that they ask for, with how often.
    Closed {
        /// How many clients.
        clients: usize,
        /// Indices, and parts of all requests.
        functions: Vec<(usize, f64)>,
    },
}
