//! What is played, and what it came to.

use serde::Serialize;

use super::Ahead;

/// What becomes of runs that turn out to be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Drops {
    /// They stop at once.
    AtOnce,
    /// They run on to their end, and nothing comes of it: lazy completion.
    AtEnd,
    /// They stop, for a millisecond of a core's time.
    Process,
    /// They stop, and nothing else has their place for ten seconds.
    Container,
}

/// A server, and what it does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Setup {
    /// Cores, each with a worker.
    pub cores: usize,
    /// What goes ahead.
    pub ahead: Ahead,
    /// The part of what may go ahead that does: edges that have cost more than they have saved do not.
    pub share: f64,
    /// What becomes of wrong runs.
    pub drops: Drops,
}

impl Setup {
    /// Without speculation.
    pub const fn off(cores: usize) -> Setup {
        Setup { cores, ahead: Ahead::Off, share: 1.0, drops: Drops::AtOnce }
    }
}

/// When executions come.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Arrivals {
    /// Each when the one before it is over.
    OneClient,
    /// So many a second, at random times.
    Poisson(f64),
}

/// What was played.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outcome {
    /// How long each execution took, in the order in which they came.
    pub latencies_ms: Vec<f64>,
    /// Waits of each for the store.
    pub waits_each: Vec<usize>,
    /// All of these.
    pub waits: usize,
    /// What the server did beside running functions: how often.
    pub events: usize,
    /// How often a core came back from having nothing to do.
    pub wakes: u64,
    /// Processor time.
    pub used_ms: f64,
    /// That of runs that turned out to be wrong.
    pub wasted_ms: f64,
    /// Runs that were begun ahead and were right.
    pub adopted: usize,
    /// Those that were on a wrong way.
    pub dropped: usize,
    /// Those that had read too early.
    pub squashed: usize,
    /// Functions that were left out.
    pub skipped: usize,
}
