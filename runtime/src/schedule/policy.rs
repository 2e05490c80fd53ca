//! The orders that an operator can choose from.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Who runs next on a worker, of the requests of one tenant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// New requests first, as long as they leave half of the time to those that have begun; of those each in turn, for a quantum.
    #[default]
    RoundRobin,
    /// In the order of arrival, each to its end.
    Fifo,
    /// Whose deadline is earliest, also in place of one that has begun.
    Edf,
}
