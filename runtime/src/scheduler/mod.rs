//! From a request to a reply: queues, workers, and who runs when.
//!
//! ```text
//!   http --gate--> worker: Core decides, Execution runs --Reply--> http
//!      \----> injector (dedicated) --/  \--> its queue: what it gives to idle workers, begun or not
//! ```
//!
//! * [`gate`]: how many requests of one function are taken and run at the same time;
//! * [`core`]: decisions, as a pure function of events and time; [`shares`]: equal shares for tenants; [`blocked`]: who waits, by time;
//! * [`crew`]: what the workers share: queues, who is idle, how many requests there are, whether the server is stopping;
//! * [`worker`]: one worker's loop, which carries the decisions out; [`spin`]: whether it looks for more before it sleeps, and [`pause`]
//!   whether it stops the timer then; [`waits`]: what its blocked sandboxes wait for;
//! * [`job`]: a request on its way to a sandbox; [`record`]: what is known of it besides; `spans`: what a collector learns of it;
//! * [`interleavings`]: what can happen in which state, and the test of each.

pub mod blocked;
pub mod core;
pub mod crew;
pub mod gate;
pub mod interleavings;
pub mod job;
pub mod pause;
pub mod record;
pub mod shares;
mod spans;
pub mod spin;
pub mod waits;
pub mod worker;

pub use core::{FunctionId, STARTED_MAX};
pub use crew::{Admission, Crew, Phase};
pub use gate::Gate;
pub use job::{Content, Job, Reply, ReplyTo};
pub use record::Record;
pub use shares::TenantId;
pub use worker::{Local, WorkerSettings};

/// A worker's queue, from which others may steal.
pub type WorkDeque = crossbeam_deque::Worker<job::Work>;
