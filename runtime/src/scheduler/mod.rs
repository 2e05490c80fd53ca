//! From a request to a reply: queues, workers, and who runs when.
//!
//! ```text
//!   http --Job--> a worker's queue ---------> worker: Core decides, Execution runs --Reply--> http
//!          \----> injector (dedicated) --/        ^ idle workers steal what has not started
//! ```
//!
//! * [`core`]: decisions, as a pure function of events and time;
//! * [`crew`]: what the workers share: queues, who is idle, how many requests there are, whether the server is stopping;
//! * [`worker`]: one worker's loop, which carries the decisions out;
//! * [`job`]: a request on its way to a sandbox.

pub mod core;
pub mod crew;
pub mod job;
pub mod worker;

pub use crew::{Admission, Crew, Phase};
pub use job::{Job, Reply};
pub use worker::{Local, WorkerSettings};
