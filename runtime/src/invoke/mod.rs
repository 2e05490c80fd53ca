//! An invocation, from its admission to its reply.
//!
//! ```text
//!   Function --admit (Dispatcher, Gate)--> Invocation --worker: Driver--> Reply
//! ```
//!
//! * [`loaded`]: from an artifact and settings to a function of no server; [`snapshot`]: calling some of what makes up an invocation once, when it is loaded;
//! * [`function`]: what is invoked: that, with what the server gives it; [`program`]: the calls that make up an invocation, and the imports;
//! * [`dispatcher`]: how many invocations there are, and the way to a worker;
//! * [`invocation`]: its identity, what it runs, and where its time went; [`caller`]: what its callees know of it, and `kept` the instances
//!   that they leave for each other; `ahead`: what of its calls is begun with it;
//! * [`tier`]: how far a function's code is optimised, until the optimised code is there;
//! * [`urgency`]: whether one is asked for that was begun ahead;
//! * [`work`]: what a worker has of it, before it runs and after;
//! * [`driver`]: the loop that runs it in its sandbox; [`alone`]: on a thread that does nothing else.

pub(crate) mod ahead;
pub mod alone;
mod busy;
#[cfg(test)]
pub(crate) mod by_hand;
pub mod caller;
pub mod dispatcher;
pub mod driver;
pub mod function;
pub mod invocation;
mod kept;
pub mod loaded;
pub mod program;
pub mod snapshot;
pub mod tier;
pub mod urgency;
pub mod work;

pub use dispatcher::{Admission, Dispatcher, Intake};
pub use invocation::{Identity, Input, Invocation, Times};

/// The limits of one function.
pub type Gate = crate::schedule::Gate<Box<Invocation>>;

/// A worker's queue, from which others may steal.
pub type WorkDeque = crossbeam_deque::Worker<work::Work>;
