//! One worker thread: it carries out what the order decides.
//!
//! ```text
//!   http --admitted--> Local: Scheduler decides, Driver runs --Reply--> http
//!      \----> injector (dedicated) --/  \--> its queue: what it hands off to idle workers, started or not
//! ```
//!
//! * [`local`]: the worker's loop; [`waits`]: what its blocked sandboxes wait for; `shared`: its place among the workers;
//! * [`spin`]: whether it looks for more before it sleeps, and [`pause`] whether it stops the timer then; [`alone`]: when a guest runs on without ticks;
//! * `spans`: what a collector learns of a request on its way; [`interleavings`]: what can happen in which state, and the test of each.

pub mod alone;
pub mod interleavings;
pub mod local;
pub mod pause;
mod shared;
mod spans;
pub mod spin;
pub mod waits;

pub use local::{Following, Local, WorkerSettings, before_wait};
