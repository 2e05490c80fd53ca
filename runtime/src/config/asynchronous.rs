//! Calls of a function whose clients do not wait for the reply.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::check::{Problems, is_name, name_rule};

/// The most that may be set.
const RETRIES_MAX: u64 = 100;
const RETRY_AFTER_S_MAX: u64 = 86_400;
const CALLS_MAX_MAX: u64 = 10_000_000;
const RUNNING_MAX_MAX: u64 = 1_000_000;
const RETENTION_DAYS_MAX: u64 = 3_650;

/// Calls of a function whose clients do not wait for the reply (`Prefer: respond-async`): each is kept in the store until the function has answered it, also over restarts and crashes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AsynchronousConfig {
    /// How often a call is repeated that fails: that traps, takes too long, or is answered with a status from 400 on.
    #[serde(default = "retries_default")]
    #[schemars(range(min = 0, max = 100))]
    pub retries: u32,
    /// The time until the first repetition, in seconds. It doubles with each, up to a day.
    #[serde(default = "retry_after_s_default")]
    #[schemars(range(min = 1, max = 86_400))]
    pub retry_after_s: u64,
    /// A function of the same tenant that gets each call that has failed for good: `{"request": ..., "error": ..., "cause": ...}`. Default: such calls are kept as failed executions only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<String>,
    /// Calls that are not done, at most; further ones are refused.
    #[serde(default = "calls_max_default")]
    #[schemars(range(min = 1, max = 10_000_000))]
    pub calls_max: usize,
    /// Calls that are being carried out at the same time, at most; others are queued. Default: as many as there is room for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub running_max: Option<u64>,
    /// For how many days calls are kept after their end.
    #[serde(default = "retention_days_default")]
    #[schemars(range(min = 0, max = 3_650))]
    pub retention_days: u32,
}

impl Default for AsynchronousConfig {
    fn default() -> AsynchronousConfig {
        AsynchronousConfig {
            retries: retries_default(),
            retry_after_s: retry_after_s_default(),
            on_failure: None,
            calls_max: calls_max_default(),
            running_max: None,
            retention_days: retention_days_default(),
        }
    }
}

/// As AWS Lambda repeats asynchronous calls.
const fn retries_default() -> u32 {
    2
}

const fn retry_after_s_default() -> u64 {
    60
}

const fn calls_max_default() -> usize {
    100_000
}

const fn retention_days_default() -> u32 {
    7
}

/// Checks those of a function of that name; `at` is its key.
pub(super) fn check(at: &str, name: &str, asynchronous: &AsynchronousConfig, problems: &mut Problems<'_>) {
    let AsynchronousConfig { retries, retry_after_s, on_failure, calls_max, running_max, retention_days } = asynchronous;
    problems.range(format!("{at}.retries"), u64::from(*retries), 0, RETRIES_MAX);
    problems.range(format!("{at}.retry_after_s"), *retry_after_s, 1, RETRY_AFTER_S_MAX);
    problems.range(format!("{at}.calls_max"), *calls_max as u64, 1, CALLS_MAX_MAX);
    if let Some(running_max) = running_max {
        problems.range(format!("{at}.running_max"), *running_max, 1, RUNNING_MAX_MAX);
    }
    problems.range(format!("{at}.retention_days"), u64::from(*retention_days), 0, RETENTION_DAYS_MAX);
    match on_failure.as_deref() {
        Some(on_failure) if on_failure == name => {
            let message = "is the function itself, which has just failed: name another one, or leave it out";
            problems.push(format!("{at}.on_failure"), message);
        }
        Some(on_failure) if !is_name(on_failure) => {
            let message = format!("`{}` is not a valid name; {}", on_failure.escape_default(), name_rule());
            problems.push(format!("{at}.on_failure"), message);
        }
        _ => {}
    }
}
