//! Executions that go ahead of themselves: functions are begun before those before them have answered, and nothing of it is seen until it is right (SpecFaaS, HPCA 2023).
//!
//! ```text
//!   express --input--> driver --Event--> plan (pure) --Do--> the same
//!                        |  begins runs: Runner, each with a column of the execution's pipeline (txn::pipeline)
//!                        |  commits groups of columns; only then the plan's base hears of them
//!                        |- learns from what is committed: speculate
//!                        '- tells what it did: story
//! ```
//!
//! That is an express execution. Of a durable one the base is in the journal, and [`ahead`] stands in place of the driver.
//!
//! * A function takes part whose effects are a transaction that can be thrown away: with `isolation = "serializable"`, and without requests to other servers before the commit (`effects = "split"`). Anything else is
//!   carried out as in any execution, when all before it is committed.
//! * A run is dropped as the call of a client is that has gone. What its sandbox still does changes nothing: its column has left the pipeline.
//! * The reply of the execution leaves after its last commit.

mod ahead;
mod chain;
#[cfg(test)]
mod concurrent;
mod driver;
mod guides;
mod hole;
mod next;
mod oracle;
mod plan;
mod runs;
#[cfg(test)]
mod simulated;
pub(super) mod story;

pub(super) use self::ahead::{Ahead, Came, Ended, Host, Ready};
pub(super) use self::driver::execute;
pub(super) use self::guides::Watched;
pub(super) use self::oracle::goes_ahead;
pub(super) use self::plan::{Answer, Standing, is_same};
