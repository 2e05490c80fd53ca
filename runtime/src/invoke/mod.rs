//! An invocation, from its admission to its reply.
//!
//! ```text
//!   Function --admit (Dispatcher, Gate)--> Job --worker: Driver--> Reply
//! ```
//!
//! * [`loaded`]: from an artifact and settings to a function of no server; [`snapshot`]: calling some of what makes up an invocation once, when it is loaded;
//! * [`function`]: what is invoked: that, with what the server gives it; [`program`]: the calls that make up an invocation, and the imports;
//! * [`dispatcher`]: how many invocations there are, and the way to a worker;
//! * [`job`]: an invocation that waits or runs, and its reply; [`record`]: what is known of it besides;
//! * [`driver`]: the loop that runs it in its sandbox; [`alone`]: on a thread that does nothing else.

pub mod alone;
pub mod dispatcher;
pub mod driver;
pub mod function;
pub mod job;
pub mod loaded;
pub mod program;
pub mod record;
pub mod snapshot;

pub use dispatcher::{Admission, Dispatcher};
pub use job::{Content, Job, Reply, ReplyTo};
pub use record::Record;

/// The limits of one function.
pub type Gate = crate::schedule::Gate<Job>;

/// A worker's queue, from which others may steal.
pub type WorkDeque = crossbeam_deque::Worker<job::Work>;
