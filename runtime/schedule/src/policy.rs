//! The orders that an operator can choose from.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What runs next on a worker, of the requests of one tenant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// Functions get equal shares, a quantum at a time; of a function the oldest request runs first, unless it has used much more than the function usually does. A request that
    /// cannot be expected to meet its deadline is answered 503 before it runs.
    #[default]
    RoundRobin,
    /// Each request in turn, for a quantum.
    RoundRobinStrict,
    /// In the order of arrival, each to its end.
    Fifo,
    /// The request whose deadline is earliest, also in place of one that has begun.
    Edf,
}
