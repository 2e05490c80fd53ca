//! Workflows, and where clients start them.

use std::net::SocketAddr;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::check::{Problems, is_name, name_rule, route};
use super::{DEADLINE_MS_MAX, tenant_default};

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
    /// The workflow's tenant: it calls functions of that tenant by their names, and has its share of the key-value store.
    #[serde(default = "tenant_default")]
    #[schemars(length(min = 1, max = 200))]
    pub tenant: String,
    /// The most time of an execution, in milliseconds. Then the client gets 504.
    #[serde(default = "deadline_ms_default")]
    #[schemars(range(min = 1, max = 86_400_000))]
    pub deadline_ms: u64,
}

/// As long as an express execution of AWS Step Functions.
const fn deadline_ms_default() -> u64 {
    300_000
}

impl WorkflowConfig {
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
pub(super) fn check(at: &str, workflow: &WorkflowConfig, listens: impl Fn(&str) -> bool, problems: &mut Problems<'_>) {
    let WorkflowConfig { name, listen, tenant, deadline_ms, .. } = workflow;
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
    if let Some(listen) = listen.as_deref().filter(|listen| !listens(listen)) {
        problems.push(format!("{at}.listen"), format!("`{}` is not the address of a function", listen.escape_default()));
    }
}
