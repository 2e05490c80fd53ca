//! Schedules: when workflows and functions are started without a request.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sledge_workflow::calendar::limits::CATCH_UP_MAX;
use sledge_workflow::calendar::{self, Schedule};

use super::check::{Problems, is_name, name_rule};
use super::tenant_default;

/// Schedules of one server.
pub const SCHEDULES_MAX: usize = 1_000;
/// So that the names of the executions that it starts have room.
const NAME_BYTES_MAX: usize = 60;

/// When a workflow or a function is started without a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScheduleConfig {
    /// The schedule's name: letters, digits, `.`, `-` and `_`.
    #[schemars(length(min = 1, max = 60))]
    pub name: String,
    /// When: `rate(5 minutes)`, `cron(0 3 * * ? *)` as Amazon EventBridge has it, `*/5 * * * *` as crontab has it, or `at(2027-01-31T18:00:00)`.
    #[schemars(length(min = 1, max = 256))]
    pub expression: String,
    /// The time zone of `cron`, crontab and `at`, such as `Europe/Berlin`. Default: UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// The workflow that is started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<String>,
    /// The function that is called, in place of a workflow. If it fails, it is called again after 1 and 2 minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// The input. Default: `{"schedule": NAME, "time": TIME}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// The tenant of the workflow or function.
    #[serde(default = "tenant_default")]
    #[schemars(length(min = 1, max = 200))]
    pub tenant: String,
    /// What becomes of times at which the server did not run: they are left out (`skip`), the last one is made up for (`last`), or each (`all`). Default: `skip`.
    #[serde(default)]
    pub catch_up: CatchUp,
    /// With `catch_up = "all"`: the last so many.
    #[serde(default = "catch_up_max_default")]
    #[schemars(range(min = 1, max = 1000))]
    pub catch_up_max: usize,
}

/// What becomes of times at which the server did not run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CatchUp {
    /// They are left out.
    #[default]
    Skip,
    /// The last one is made up for.
    Last,
    /// Each is made up for.
    All,
}

const fn catch_up_max_default() -> usize {
    100
}

impl ScheduleConfig {
    /// What becomes of times at which the server did not run.
    #[must_use]
    pub const fn policy(&self) -> calendar::CatchUp {
        match self.catch_up {
            CatchUp::Skip => calendar::CatchUp::Skip,
            CatchUp::Last => calendar::CatchUp::Last,
            CatchUp::All => calendar::CatchUp::All { max: self.catch_up_max },
        }
    }
}

/// Checks one by itself; `at` is its key, and `has_workflow` says whether the configuration has a workflow of that tenant and name.
pub(super) fn check(
    at: &str,
    schedule: &ScheduleConfig,
    kv: Option<&Path>,
    has_workflow: impl Fn(&str, &str) -> bool,
    problems: &mut Problems<'_>,
) {
    let ScheduleConfig { name, expression, zone, workflow, function, tenant, catch_up_max, .. } = schedule;
    if !is_name(name) || name.len() > NAME_BYTES_MAX {
        let message =
            format!("`{}` is not a valid name of at most {NAME_BYTES_MAX} bytes; {}", name.escape_default(), name_rule());
        problems.push(format!("{at}.name"), message);
    }
    if !is_name(tenant) {
        problems.push(format!("{at}.tenant"), format!("`{}` is not a valid name; {}", tenant.escape_default(), name_rule()));
    }
    if let Err(error) = Schedule::parse(expression, zone.as_deref()) {
        problems.push(format!("{at}.expression"), error.to_string());
    }
    problems.range(format!("{at}.catch_up_max"), *catch_up_max as u64, 1, CATCH_UP_MAX as u64);
    match (workflow, function) {
        (Some(workflow), None) if !has_workflow(tenant, workflow) => {
            let message =
                format!("there is no workflow `{}` of the tenant `{}`", workflow.escape_default(), tenant.escape_default());
            problems.push(format!("{at}.workflow"), message);
        }
        (Some(_), None) | (None, Some(_)) => {}
        _ => problems.push(at, "give either workflow or function"),
    }
    if kv.is_none() {
        let message = "schedules are kept in the key-value store, and there is none: set `kv` to a file, or to a Redis server";
        problems.push(at, message);
    }
}
