//! Tokens for the admin API whose clients see and change the functions of one tenant.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::check::Problems;
use super::{Config, NAME_BYTES_MAX};
use crate::secret::Secret;

/// Tokens of one server.
const TOKENS_MAX: usize = 1_000;

/// A token for the admin API whose clients see and change only what belongs to one tenant: its functions with their versions and logs, its workflows and executions, its metrics. All else is to them as what does
/// not exist. It takes effect when the server starts, with `admin_token`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AdminTokenConfig {
    /// The tenant.
    #[schemars(length(min = 1, max = 200))]
    pub tenant: String,
    /// The token, at least 16 bytes: `{ file = "PATH" }` or `{ env = "NAME" }`.
    pub token: Secret,
    /// Whether its clients may only read.
    #[serde(default)]
    pub read_only: bool,
}

/// Checks all but the tokens themselves, which are read when the server is prepared.
pub(super) fn check(config: &Config, problems: &mut Problems<'_>) {
    let tokens = &config.admin_tokens;
    if !tokens.is_empty() && config.admin_token.is_none() {
        let why = "needs `admin_token`: without that, any client that reaches the admin API has all rights";
        problems.push("admin_tokens", why);
    }
    if tokens.len() > TOKENS_MAX {
        problems.push("admin_tokens", format!("{} tokens; a server has at most {TOKENS_MAX}", tokens.len()));
    }
    for (index, token) in tokens.iter().enumerate() {
        if token.tenant.is_empty() || token.tenant.len() > NAME_BYTES_MAX {
            problems.push(format!("admin_tokens[{index}].tenant"), format!("give 1 to {NAME_BYTES_MAX} bytes"));
        }
    }
}
