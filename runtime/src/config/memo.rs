//! Whether equal requests of a function are answered from a table.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::check::Problems;
use super::{BodyMode, FunctionConfig, Instance};

/// What becomes of a function's runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Memo {
    /// Nothing.
    #[default]
    Off,
    /// It is noted what they did, for `sledge explain-effects`. Every request runs.
    Observe,
    /// The same, and a request that equals an earlier one is answered from a table where the run of that one read nothing but the request and the key-value store.
    Auto,
}

/// Bytes of a function's table.
pub(super) const BYTES_MIN: u64 = 64 << 10;
/// See there.
pub(super) const BYTES_MAX: u64 = 1 << 40;

pub(super) const fn bytes_max_default() -> u64 {
    16 << 20
}

/// Checks these settings of a function.
pub(super) fn check(at: &str, function: &FunctionConfig, problems: &mut Problems<'_>) {
    let FunctionConfig { memo, pure, memo_bytes_max, body, instance, .. } = function;
    problems.range(format!("{at}.memo_bytes_max"), *memo_bytes_max, BYTES_MIN, BYTES_MAX);
    if *pure && *memo == Memo::Off {
        problems.push(
            format!("{at}.pure"),
            "says which runs may be answered from a table: set `memo = \"auto\"`, or leave `pure` out",
        );
    }
    if *memo == Memo::Off {
        return;
    }
    if *body == BodyMode::Stream {
        problems.push(
            format!("{at}.memo"),
            "requests are compared with their whole bodies: leave `body = \"stream\"` out, or `memo`",
        );
    }
    if *instance != Instance::Call {
        problems
            .push(format!("{at}.memo"), "what an instance keeps from call to call is in no key: leave `instance` out, or `memo`");
    }
}
