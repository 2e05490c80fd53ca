//! What runs when: the order of one worker, and what workers share to help each other.
//!
//! ```text
//!   worker --Event, time--> Scheduler::step --Action--> worker
//!                              |        `-> Core      (the order: a pure function of events and time)
//!                              `-> Shared             (what workers share: Exchange, or a simulator's)
//! ```
//!
//! * [`scheduler`]: one worker's state, and the one way into it: [`Scheduler::step`]; [`task`]: what it knows of an invocation;
//! * `core`: the order; `turns`: equal shares; `group`: what waits of one function; `run_queue`: the same where functions do not matter;
//!   [`classes`]: microtasks by how long they run;
//!   `slack`: what is speculative, and runs where nothing else is to be run; [`demand`]: whether it is asked for meanwhile;
//!   `blocked`: what is blocked, by time; [`percentile`]: what is to be expected; [`policy`]: the orders on offer;
//! * [`shared`]: what a worker needs of the others; [`exchange`]: the real one: queues, idle workers, wake-ups; [`wakeups`]: blocked tasks that may go on;
//!   [`requests`]: how many there are, and the server's end;
//!   [`gate`]: limits of one function; [`in_flight`]: one of them that follows what its invocations do.
//!
//! This crate knows neither functions nor sandboxes, and reads no clock: a task is a number with what the order needs to know of it, and the caller passes
//! the time in. So tests play any schedule to it (`tests/simulation`), and what is truly concurrent is tried in every interleaving (`tests/interleavings`).

#![forbid(unsafe_code)]

mod blocked;
pub mod classes;
mod core;
pub mod demand;
pub mod exchange;
pub mod gate;
mod group;
pub mod in_flight;
pub mod percentile;
pub mod policy;
pub mod requests;
mod run_queue;
pub mod scheduler;
pub mod shared;
mod slack;
mod sync;
pub mod task;
mod turns;
pub mod wakeups;

pub use classes::{CLASSES, Classes, Microtask, Shares, Site};
pub use core::{IO_INTERVAL, STARTED_MAX, Why};
pub use demand::Demand;
pub use exchange::{Exchange, Woken};
pub use gate::Gate;
pub use in_flight::{InFlight, Used};
pub use policy::Policy;
pub use requests::Requests;
pub use scheduler::{Action, Event, Scheduler, Work};
pub use shared::{Phase, Rest, Shared};
pub use task::{FunctionId, Rank, Task, TaskId, TenantId};
pub use wakeups::Wakeups;
