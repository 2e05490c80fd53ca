//! The workloads of *MXFaaS* on a server in simulated time, for more cores than a machine has.
//!
//! What decides is real: each worker's [`Scheduler`](sledge_schedule::Scheduler), the [`Exchange`](sledge_schedule::Exchange) between workers, and each function's
//! [`Gate`](sledge_schedule::Gate). What takes time is a model: functions are bursts and waits ([`model`]), and what a request costs beside them was
//! [measured](calibration). Whether that is right is [predicted and compared](predict) with a real run.
//!
//! ```text
//!   measure ──▶ calibration ──▶ model ──▶ server ──▶ outcome ──▶ predict (beside what was measured)
//!   (real server)    suite ────────┘                        └──▶ figures (2, 4, 8, 16 cores)
//! ```

pub mod calibration;
pub mod figures;
pub mod measure;
pub mod model;
pub mod outcome;
pub mod predict;
mod report;
mod requests;
pub mod server;
mod side;
pub mod suite;

#[cfg(test)]
mod tests;
