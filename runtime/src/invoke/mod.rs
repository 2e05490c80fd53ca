//! An invocation, from its admission to its reply.
//!
//! ```text
//!   Function --admit (Dispatcher, Gate)--> Job --worker: Execution--> Reply
//! ```
//!
//! * [`function`]: what is invoked: a template for sandboxes, the calls that make up an invocation, limits; [`snapshot`]: calling some of them once, when it is
//!   loaded;
//! * [`dispatcher`]: how many invocations there are, and the way to a worker; [`gate`]: how many of one function are taken and run at the same time;
//! * [`job`]: an invocation that waits or runs, and its reply; [`record`]: what is known of it besides;
//! * [`driver`]: the loop that runs it in its sandbox.

pub mod dispatcher;
pub mod driver;
pub mod function;
pub mod gate;
pub mod job;
pub mod record;
pub mod snapshot;

pub use dispatcher::{Admission, Dispatcher, Phase};
pub use gate::Gate;
pub use job::{Content, Job, Reply, ReplyTo};
pub use record::Record;

/// A worker's queue, from which others may steal.
pub type WorkDeque = crossbeam_deque::Worker<job::Work>;
