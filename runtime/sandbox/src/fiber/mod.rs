//! Fibers: a stack and the call on it, the switch to it, and the handlers of signals that end or suspend what runs there.

mod backtrace;
mod call;
mod fault;
mod others;
mod preempt;
pub(crate) mod record;
pub(crate) mod stack;
mod unwind;
mod worker;

pub use backtrace::{Backtrace, Frame};
pub use call::Callee;
pub(crate) use call::Fiber;
pub(crate) use others::Others;
pub use worker::{Alarm, WorkerThread, affinity};
