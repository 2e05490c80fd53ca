//! What happens, in numbers.
//!
//! ```text
//!   thread: Shard --row of a function--> Counters (counts, histograms)  <--reads-- Metrics --text--> admin API
//! ```
//!
//! Every thread that serves counts in rows of its own, so that no two cores write to the same cache line; the reader adds them up.
//!
//! * [`shard`]: a thread's rows; [`text`]: all of it in the OpenMetrics format;
//! * [`process`]: what the system says of this process; `readiness`: what functions are scaled out on.

#[cfg(test)]
mod counting;
pub mod process;
mod readiness;
pub mod shard;
pub mod text;

pub use shard::{Metrics, Shard};
