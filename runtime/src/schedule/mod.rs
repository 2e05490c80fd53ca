//! Who runs when: the order of one worker, and what workers share to help each other.
//!
//! * [`core`]: one worker's decisions, as a pure function of events and time; [`shares`]: equal shares for tenants; [`blocked`]: what waits, by time;
//!   [`policy`]: the orders on offer;
//! * [`exchange`]: the queues between workers, which of them are idle, and how they are woken.
//!
//! Knows neither functions nor sandboxes: a task is a number with what the order needs to know of it.

pub mod blocked;
pub mod core;
pub mod exchange;
pub mod policy;
pub mod shares;

pub use core::{FunctionId, STARTED_MAX};
pub use exchange::Exchange;
pub use policy::Policy;
pub use shares::TenantId;
