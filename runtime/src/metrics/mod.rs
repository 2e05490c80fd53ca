//! What happens, in numbers.
//!
//! ```text
//!   thread: Board --row of a function--> Row (counts, histograms)  <--reads-- Metrics --text--> admin door
//! ```
//!
//! Every thread that serves counts in rows of its own, so that no two cores write to the same cache line; the reader adds them up.
//!
//! * [`board`]: a thread's rows; [`text`]: all of it in the OpenMetrics format;
//! * [`process`]: what the system says of this process.

pub mod board;
pub mod process;
pub mod text;

pub use board::{Board, Metrics};
