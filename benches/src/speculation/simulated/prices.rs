//! What things cost in the model, from what was measured without speculation in the same run.
//!
//! Known are the processor time of each function's runs and of whole executions, both of one client, what the server does when it is busy, a wait for the store, and how long each execution took.
//! A function takes less time where the core was busy before it than where it had been idle: caches are warm. So an execution of one client takes more processor time than one on a busy server. The model has
//! that as the time that a core takes to come back from having nothing to do: what is more, divided by how often that happens.

use std::collections::BTreeMap;

use super::super::ceiling::{Computes, Costs};
use super::server::play;
use super::setup::{Arrivals, Outcome, Setup};
use super::trace::{Run, Trace};

/// A busy server takes at least this part of the processor time that one client's executions take.
const BUSY_MIN: f64 = 0.3;
/// What the client's part of a request takes at least, so that the server is idle meanwhile, and at most.
const OUTSIDE_MS: (f64, f64) = (0.01, 0.5);
/// By these factors at most the wait is corrected so that the mean is that which was measured.
const WAIT: (f64, f64) = (0.5, 2.0);

/// What things cost, in milliseconds.
#[derive(Debug, Clone, PartialEq)]
pub struct Prices {
    /// Processor time of a run, by function.
    pub run_ms: BTreeMap<String, f64>,
    /// Processor time of anything that the server does beside: to take a request, to begin a run, to take in an answer of the store.
    pub event_ms: f64,
    /// Processor time that a core takes to come back from having nothing to do.
    pub wake_ms: f64,
    /// A wait for the store.
    pub wait_ms: f64,
    /// By how much waits differ from that: as often each.
    pub deviations_ms: Vec<f64>,
    /// What of a request is not in the server.
    pub outside_ms: f64,
    /// When functions compute.
    pub computes: Computes,
    /// Whether to compare versions takes a round trip.
    pub is_remote: bool,
}

/// What was measured without speculation.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a> {
    /// What the server's metrics say.
    pub costs: &'a Costs,
    /// The mean of one client.
    pub mean_ms: f64,
    /// Of each execution.
    pub latencies_ms: &'a [f64],
    /// When functions compute.
    pub computes: Computes,
    /// Whether the store is in another process.
    pub is_remote: bool,
    /// Workers.
    pub cores: usize,
}

/// How it is known what a core takes to come back.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Busy {
    /// So many executions a second are all that the server can do.
    Capacity(f64),
    /// It takes so long in another measurement.
    Wake(f64),
}

impl Prices {
    /// Processor time of a run.
    pub fn of_run(&self, run: &Run) -> f64 {
        run.weight * self.run_ms.get(&run.function).copied().unwrap_or_default()
    }

    /// Those with which the executions of one client take what they took.
    pub fn of(traces: &[Trace], seen: &Seen<'_>, busy: Busy) -> Prices {
        let Seen { costs, mean_ms, latencies_ms, computes, is_remote, cores } = *seen;
        let mut prices = Prices {
            run_ms: costs.run_cpu_ms.clone(),
            event_ms: 0.0,
            wake_ms: 0.0,
            wait_ms: costs.wait_ms,
            deviations_ms: Vec::new(),
            outside_ms: OUTSIDE_MS.0,
            computes,
            is_remote,
        };
        let each = traces.len().max(1) as f64;
        let alone = |prices: &Prices| play(traces, prices, &Setup::off(cores), Arrivals::OneClient, traces.len(), 1);
        let outcome = alone(&prices);
        let (events, wakes) = (outcome.events as f64 / each, outcome.wakes as f64 / each);
        let alone_ms = costs.execution_cpu_ms;
        let part = match busy {
            Busy::Capacity(per_second) => 1e3 * cores as f64 / per_second / alone_ms,
            Busy::Wake(wake_ms) => 1.0 - wake_ms * wakes / alone_ms,
        };
        let part = part.clamp(BUSY_MIN, 1.0);
        let runs_ms = outcome.used_ms / each;
        prices.wake_ms = (1.0 - part) * alone_ms / wakes.max(1.0);
        prices.event_ms = part * (alone_ms - runs_ms).max(0.0) / events.max(1.0);
        prices.run_ms.values_mut().for_each(|ms| *ms *= part);
        let outcome = alone(&prices);
        let missing = mean_ms - mean(&outcome.latencies_ms) + prices.outside_ms;
        prices.outside_ms = missing.clamp(OUTSIDE_MS.0, OUTSIDE_MS.1);
        let waits = outcome.waits as f64 / each;
        if waits > 0.0 && prices.wait_ms > 0.0 {
            let factor = 1.0 + (missing - prices.outside_ms) / (waits * prices.wait_ms);
            prices.wait_ms *= factor.clamp(WAIT.0, WAIT.1);
        }
        prices.deviations_ms = deviations(&alone(&prices), latencies_ms);
        prices
    }
}

/// What each execution took more or less than in the model is that of one of its waits.
fn deviations(played: &Outcome, latencies_ms: &[f64]) -> Vec<f64> {
    let more: Vec<f64> = latencies_ms.iter().zip(&played.latencies_ms).map(|(measured, played)| measured - played).collect();
    let center = mean(&more);
    let each = more.into_iter().zip(&played.waits_each);
    each.flat_map(|(more, waits)| (0..*waits).map(move |wait| if wait == 0 { more - center } else { 0.0 })).collect()
}

/// NaN of none.
pub fn mean(numbers: &[f64]) -> f64 {
    numbers.iter().sum::<f64>() / numbers.len() as f64
}
