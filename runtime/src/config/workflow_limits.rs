//! How many executions of a workflow run at the same time, and how many begin in a time: all together, or by a key in their input.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sledge_workflow::data::Path;

use super::check::Problems;

/// The most that may be set.
const RUNNING_MAX_MAX: u64 = 1_000_000;
const STARTS_MAX_MAX: u64 = 1_000_000;
const PERIOD_S_MAX: u64 = 86_400;
const KEY_BYTES_MAX: usize = 256;

/// How many standard executions of a workflow run at the same time and begin in a time. Those beyond are queued, in the order in which they were started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkflowLimits {
    /// What the limits are kept for, each by itself: a path into the input, such as `$.customer`. Without it they are kept for all executions together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub key: Option<String>,
    /// Executions that have begun and not ended, at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub running_max: Option<u64>,
    /// Executions that begin within `period_s`, at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub starts_max: Option<u64>,
    /// The time of `starts_max`, in seconds.
    #[serde(default = "period_s_default")]
    #[schemars(range(min = 1, max = 86_400))]
    pub period_s: u64,
}

const fn period_s_default() -> u64 {
    60
}

impl Default for WorkflowLimits {
    /// Those that limit nothing.
    fn default() -> WorkflowLimits {
        WorkflowLimits { key: None, running_max: None, starts_max: None, period_s: period_s_default() }
    }
}

impl WorkflowLimits {
    /// Where the key is in an input; none where the limits have none.
    #[must_use]
    pub fn path(&self) -> Option<Path> {
        self.key.as_deref().and_then(|key| Path::parse(key).ok())
    }
}

/// Checks those of a workflow; `at` is its key.
pub(super) fn check(at: &str, limits: &WorkflowLimits, problems: &mut Problems<'_>) {
    let WorkflowLimits { key, running_max, starts_max, period_s } = limits;
    if running_max.is_none() && starts_max.is_none() {
        problems.push(at.to_owned(), "nothing is limited: set `running_max`, `starts_max` or both, or leave `limits` out");
    }
    for (name, value, max) in [("running_max", running_max, RUNNING_MAX_MAX), ("starts_max", starts_max, STARTS_MAX_MAX)] {
        if let Some(value) = value {
            problems.range(format!("{at}.{name}"), *value, 1, max);
        }
    }
    problems.range(format!("{at}.period_s"), *period_s, 1, PERIOD_S_MAX);
    let Some(key) = key else { return };
    let at = format!("{at}.key");
    if key.len() > KEY_BYTES_MAX {
        problems.push(at, format!("the path has {} bytes; it may have {KEY_BYTES_MAX}", key.len()));
        return;
    }
    match Path::parse(key) {
        Ok(path) if path.is_reference() && !path.is_context() && path.variables().is_empty() => {}
        Ok(_) => {
            problems
                .push(at, format!("`{}` is not a path to one place of the input, such as `$.customer`", key.escape_default()));
        }
        Err(error) => problems.push(at, format!("`{}` is no path: {error}", key.escape_default())),
    }
}
