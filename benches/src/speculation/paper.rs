//! The paper's figures.

use super::program::Suite;

/// What the paper has of a suite, to its baseline.
#[derive(Debug)]
pub struct Paper {
    /// The suite.
    pub suite: Suite,
    /// Speed-ups at low, medium and high load.
    pub loads: [f64; 3],
    /// The speed-up with cold containers, of all loads.
    pub cold: f64,
    /// Highest rates.
    pub throughput: f64,
    /// By how many percent the 99th percentile is lower, of all loads.
    pub p99_percent: f64,
}

/// All suites.
pub const PAPER: [Paper; 3] = [
    Paper { suite: Suite::FaasChain, loads: [5.2, 5.0, 4.9], cold: 5.2, throughput: 4.1, p99_percent: 62.0 },
    Paper { suite: Suite::TrainTicket, loads: [4.2, 4.4, 4.3], cold: 4.5, throughput: 3.8, p99_percent: 56.0 },
    Paper { suite: Suite::Alibaba, loads: [4.4, 4.5, 4.6], cold: 4.7, throughput: 3.7, p99_percent: 58.0 },
];
/// Its speed-up of FaaSChain by hit rate, and the processor time to that without speculation: lazy completion, and squashing.
pub const PAPER_HITS: [(u32, f64, [f64; 2]); 4] =
    [(100, 5.2, [1.0, 1.0]), (90, 5.0, [1.09, 1.03]), (70, 4.6, [1.24, 1.08]), (50, 4.0, [1.43, 1.15])];
