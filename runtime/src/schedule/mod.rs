//! What runs when: the order of one worker, and what workers share to help each other.
//!
//! * [`core`]: one worker's decisions, as a pure function of events and time; [`turns`]: equal shares; [`group`]: what waits of one function; [`line`]: the same where functions
//!   do not matter; [`blocked`]: what is blocked, by time; [`percentile`]: what is to be expected; [`policy`]: the orders on offer;
//! * [`exchange`]: the queues between workers, which of them are idle, and how they are woken.
//!
//! Knows neither functions nor sandboxes: a task is a number with what the order needs to know of it.

pub mod blocked;
pub mod core;
pub mod exchange;
pub mod group;
pub mod line;
pub mod percentile;
pub mod policy;
pub mod turns;

pub use core::{FunctionId, STARTED_MAX, TenantId};
pub use exchange::Exchange;
pub use policy::Policy;
