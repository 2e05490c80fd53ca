//! Workflows, and where clients start them.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::asynchronous::AsynchronousConfig;
use super::check::{Problems, is_name, name_rule, route};
use super::speculation::{self, SpeculationLevel};
use super::workflow_limits::{self, WorkflowLimits};
use super::{DEADLINE_MS_MAX, HOSTS_MAX, tenant_default};
use crate::upstream::Allowed;

/// Workflows of one server.
pub const WORKFLOWS_MAX: usize = 1_000;

/// A workflow: a definition in Amazon States Language, which calls functions. Clients start it by POST with its input and get its output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkflowConfig {
    /// The workflow's name: letters, digits, `.`, `-` and `_`.
    #[schemars(length(min = 1, max = 80))]
    pub name: String,
    /// The file with the definition, in JSON. Relative to the configuration file's folder.
    pub path: PathBuf,
    /// Path of its requests. Default: `/NAME`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 200))]
    pub route: Option<String>,
    /// The address, `IP:PORT`, if the path is one at an address that functions have to themselves (`listen`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listen: Option<String>,
    /// How long executions live: `express` ones as long as the request that starts them; `standard` ones are kept in the store (`kv`), also over restarts and crashes. Default: `express`.
    #[serde(default, rename = "type", skip_serializing_if = "WorkflowKind::is_express")]
    pub kind: WorkflowKind,
    /// The workflow's tenant: it calls functions of that tenant by their names, and has its share of the key-value store.
    #[serde(default = "tenant_default")]
    #[schemars(length(min = 1, max = 200))]
    pub tenant: String,
    /// Other servers that its tasks may ask (`http://...`, `https://...`, `http:invoke`): as `http_hosts` of functions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub http_hosts: Vec<String>,
    /// The most time of an express execution, in milliseconds. Then the client gets 504. Standard ones have `TimeoutSeconds` of their definition.
    #[serde(default = "deadline_ms_default")]
    #[schemars(range(min = 1, max = 86_400_000))]
    pub deadline_ms: u64,
    /// Standard executions that have not ended, at most; further ones are refused.
    #[serde(default = "executions_max_default")]
    #[schemars(range(min = 1, max = 10_000_000))]
    pub executions_max: usize,
    /// For how many days standard executions are kept after their end.
    #[serde(default = "retention_days_default")]
    #[schemars(range(min = 0, max = 3_650))]
    pub retention_days: u32,
    /// How many standard executions run at the same time and begin in a time. Those beyond are queued. Default: no limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<WorkflowLimits>,
    /// What executions speculate on: functions with `isolation = "serializable"` start before those before them have ended, and nothing of them is seen until it is right.
    #[serde(default, skip_serializing_if = "SpeculationLevel::is_off")]
    pub speculation: SpeculationLevel,
    /// How many functions of an execution run ahead of what is committed, at most. The busier the workers are, the fewer.
    #[serde(default = "speculation::depth_max_default", skip_serializing_if = "speculation::is_depth_max_default")]
    #[schemars(range(min = 1, max = 16))]
    pub speculation_depth_max: u32,
    /// States that never start before everything before them is committed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub speculation_excluded: Vec<String>,
}

/// How long executions live.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WorkflowKind {
    /// As long as the request that starts them.
    #[default]
    Express,
    /// Until they have ended, whatever becomes of the server meanwhile.
    Standard,
}

impl WorkflowKind {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
    const fn is_express(&self) -> bool {
        matches!(self, WorkflowKind::Express)
    }
}

/// The most that may be set for `executions_max` and `retention_days`.
const EXECUTIONS_MAX_MAX: u64 = 10_000_000;
const RETENTION_DAYS_MAX: u64 = 3_650;

const fn executions_max_default() -> usize {
    100_000
}

/// As long as AWS Step Functions keeps them.
const fn retention_days_default() -> u32 {
    90
}

/// As long as an express execution of AWS Step Functions.
const fn deadline_ms_default() -> u64 {
    300_000
}

impl WorkflowConfig {
    /// That of a workflow that is made of a function and has no route.
    #[must_use]
    pub fn of_function(tenant: &str, name: &str, asynchronous: &AsynchronousConfig) -> WorkflowConfig {
        let AsynchronousConfig { calls_max, running_max, retention_days, .. } = asynchronous;
        let limits = running_max.map(|max| WorkflowLimits { running_max: Some(max), ..WorkflowLimits::default() });
        WorkflowConfig {
            name: name.to_owned(),
            path: PathBuf::new(),
            route: None,
            listen: None,
            kind: WorkflowKind::Standard,
            tenant: tenant.to_owned(),
            http_hosts: Vec::new(),
            deadline_ms: deadline_ms_default(),
            executions_max: *calls_max,
            retention_days: *retention_days,
            limits,
            speculation: SpeculationLevel::default(),
            speculation_depth_max: speculation::depth_max_default(),
            speculation_excluded: Vec::new(),
        }
    }

    /// The address at which the path is, if that is not the server's own.
    #[must_use]
    pub fn site(&self) -> Option<SocketAddr> {
        self.listen.as_deref().and_then(|listen| listen.parse().ok())
    }

    /// The path of its requests.
    #[must_use]
    pub fn route(&self) -> String {
        self.route.clone().unwrap_or_else(|| format!("/{}", self.name))
    }
}

/// Checks one by itself; `at` is its key, and `listens` says whether functions have an address.
pub(super) fn check(
    at: &str,
    workflow: &WorkflowConfig,
    kv: Option<&Path>,
    listens: impl Fn(&str) -> bool,
    problems: &mut Problems<'_>,
) {
    let WorkflowConfig { name, listen, tenant, deadline_ms, executions_max, retention_days, .. } = workflow;
    if !is_name(name) || name.len() > 80 {
        problems.push(
            format!("{at}.name"),
            format!("`{}` is not a valid name of at most 80 bytes; {}", name.escape_default(), name_rule()),
        );
    }
    if !is_name(tenant) {
        problems.push(format!("{at}.tenant"), format!("`{}` is not a valid name; {}", tenant.escape_default(), name_rule()));
    }
    self::route(format!("{at}.route"), &workflow.route(), problems);
    problems.range(format!("{at}.deadline_ms"), *deadline_ms, 1, DEADLINE_MS_MAX);
    if workflow.http_hosts.len() > HOSTS_MAX {
        let message = format!("{} hosts; a workflow has at most {HOSTS_MAX}", workflow.http_hosts.len());
        problems.push(format!("{at}.http_hosts"), message);
    }
    if let Err(error) = Allowed::new(&workflow.http_hosts) {
        problems.push(format!("{at}.http_hosts"), error.to_string());
    }
    problems.range(format!("{at}.executions_max"), *executions_max as u64, 1, EXECUTIONS_MAX_MAX);
    problems.range(format!("{at}.retention_days"), u64::from(*retention_days), 0, RETENTION_DAYS_MAX);
    if workflow.kind == WorkflowKind::Standard && kv.is_none() {
        let message =
            "standard executions are kept in the key-value store, and there is none: set `kv` to a file, or to a Redis server";
        problems.push(format!("{at}.type"), message);
    }
    if let Some(limits) = &workflow.limits {
        let at = format!("{at}.limits");
        if workflow.kind == WorkflowKind::Express {
            problems.push(
                at.clone(),
                "express executions are not queued: make the workflow `type = \"standard\"`, or leave `limits` out",
            );
        }
        workflow_limits::check(&at, limits, problems);
    }
    speculation::check(at, workflow, problems);
    if let Some(listen) = listen.as_deref().filter(|listen| !listens(listen)) {
        problems.push(format!("{at}.listen"), format!("`{}` is not the address of a function", listen.escape_default()));
    }
}
