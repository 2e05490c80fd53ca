//! What becomes of wrong runs, in the ways that the paper compares: they stop at once, they go on to their end, or what they run in is killed.

use serde::Serialize;

use super::Ahead;
use super::prices::{Prices, mean};
use super::server::play;
use super::setup::{Arrivals, Drops, Setup};
use super::trace::Trace;

/// The paper's server has more cores than those on which is measured.
const CORES: usize = 8;
const TIMES: usize = 8;
const SEED: u64 = 1;

/// All ways, in the order of the tables.
pub const ALL: [Drops; 4] = [Drops::AtOnce, Drops::AtEnd, Drops::Process, Drops::Container];

/// One of the ways, on so many cores.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Dropped {
    /// Cores.
    pub cores: usize,
    /// The way.
    pub drops: Drops,
    /// How many times faster one client has its answers than without speculation.
    pub speed_up: f64,
    /// Processor time of wrong runs, in percent of what executions take without speculation.
    pub wasted_percent: f64,
}

/// All ways, where reads wait for writes and all may go ahead that is predicted: edges that have cost more than they have saved would hide what it costs to be wrong.
pub fn dropped(traces: &[Trace], prices: &Prices, cores: usize) -> Vec<Dropped> {
    let count = TIMES * traces.len();
    let both = |cores: usize| {
        let off = play(traces, prices, &Setup::off(cores), Arrivals::OneClient, count, SEED);
        ALL.map(|drops| {
            let setup = Setup { ahead: Ahead::Stalls, drops, ..Setup::off(cores) };
            let outcome = play(traces, prices, &setup, Arrivals::OneClient, count, SEED);
            Dropped {
                cores,
                drops,
                speed_up: mean(&off.latencies_ms) / mean(&outcome.latencies_ms),
                wasted_percent: outcome.wasted_ms / off.used_ms * 1e2,
            }
        })
    };
    let mut all = both(cores).to_vec();
    if cores < CORES {
        all.extend(both(CORES));
    }
    all
}
