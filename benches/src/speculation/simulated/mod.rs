//! The suites on a server in simulated time: for more cores than a machine has, and for what the server cannot do, such as to let wrong runs go on.
//!
//! What things cost is what was measured in the same run without speculation ([`prices`]). What executions do is what the same functions do natively, and what of that is predicted follows from what ran
//! before ([`trace`]). How often what may go ahead does so is the server's own number. Each cell that was measured is simulated, too ([`figures`]): where both agree, the figures for more cores stand beside it.
//!
//! ```text
//!   native ──▶ trace ──────────────┐
//!   measured without speculation ──▶ prices ──▶ server (machine, chain, tree) ──▶ figures, drops ──▶ report
//! ```

pub mod agreement;
mod chain;
pub mod drops;
mod execution;
pub mod figures;
mod machine;
pub mod prices;
pub mod server;
pub mod setup;
mod table;
pub mod trace;
mod tree;
mod ways;

#[cfg(test)]
mod tests;

/// How long something computes before another has its turn: the server's quantum.
const QUANTUM_MS: f64 = 0.5;

/// What goes ahead: the levels, each with all that the one before it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ahead {
    /// Nothing.
    Off,
    /// What the ways of earlier executions tell.
    Paths,
    /// What answers to the same inputs tell.
    Outputs,
    /// Reads wait for writes.
    Stalls,
    /// Functions are left out whose answers are known.
    Skips,
    /// Calls are begun with their caller.
    Calls,
}

impl Ahead {
    /// That of a column.
    pub fn named(level: &str) -> Option<Ahead> {
        Some(match level {
            "off" => Ahead::Off,
            "paths" => Ahead::Paths,
            "outputs" => Ahead::Outputs,
            "stalls" => Ahead::Stalls,
            "skips" => Ahead::Skips,
            "calls" => Ahead::Calls,
            _ => return None,
        })
    }
}
