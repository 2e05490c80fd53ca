//! What the deployed functions of a tenant may have at most, of this machine and its network.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::check::{Problems, is_name, name_rule};
use super::{Config, DIRS_MAX, FunctionConfig, HOSTS_MAX, NAME_BYTES_MAX, Source};
use crate::secret::Secret;
use crate::upstream::{Allowed, SocketPolicy};

/// Tenants of one server with grants.
const GRANTS_MAX: usize = 1_000;
/// Secrets of one tenant, and likewise of one function.
const SECRETS_MAX: usize = 64;

/// What the deployed functions of a tenant may have at most. Each function has what it asks for (`sledge deploy --grant`), and nothing that is not within this.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GrantConfig {
    /// The tenant.
    #[schemars(length(min = 1, max = 200))]
    pub tenant: String,
    /// Servers that its functions may call over HTTP, as in `http_hosts` of a function. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub http_hosts: Vec<String>,
    /// Where sockets of its components may connect and send to, as in `socket_hosts` of a function. Default: nowhere.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub socket_hosts: Vec<String>,
    /// Where sockets of its components may be reached, as in `socket_listen` of a function. Default: nowhere.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub socket_listen: Vec<String>,
    /// Folders that its functions may use, with all that is below them. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub dirs: Vec<GrantedDirConfig>,
    /// Secrets that its functions may have in their environment, by name: `{ file = "PATH" }` or `{ env = "NAME" }`. Default: none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub secrets: BTreeMap<String, Secret>,
}

/// A folder that the deployed functions of a tenant may use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GrantedDirConfig {
    /// The folder. Relative to the configuration file's folder.
    pub host: PathBuf,
    /// Whether functions may write to it. Without it they can read it, or write to private copies (`"scratch"`).
    #[serde(default)]
    pub write: bool,
}

impl GrantConfig {
    /// Whether sockets of its functions may go or be anywhere.
    #[must_use]
    pub const fn has_sockets(&self) -> bool {
        !self.socket_hosts.is_empty() || !self.socket_listen.is_empty()
    }
}

/// Checks all grants. Whether there are such folders and secrets concerns the functions that ask for them.
pub(super) fn check(config: &Config, problems: &mut Problems<'_>) {
    if config.grants.len() > GRANTS_MAX {
        problems.push("grants", format!("{} tenants with grants; a server has at most {GRANTS_MAX}", config.grants.len()));
    }
    let mut tenants = HashMap::new();
    for (index, grant) in config.grants.iter().enumerate() {
        let key = |name: &str| format!("grants[{index}].{name}");
        let tenant = &grant.tenant;
        if tenant.is_empty() || tenant.len() > NAME_BYTES_MAX {
            problems.push(key("tenant"), format!("give 1 to {NAME_BYTES_MAX} bytes"));
        }
        if let Some(other) = tenants.insert(tenant, index) {
            let what = format!("`{}` also has grants[{other}]; put both together", tenant.escape_default());
            problems.push(key("tenant"), what);
        }
        let GrantConfig { http_hosts, socket_hosts, socket_listen, dirs, secrets, .. } = grant;
        for (name, list) in [("http_hosts", http_hosts), ("socket_hosts", socket_hosts), ("socket_listen", socket_listen)] {
            if list.len() > HOSTS_MAX {
                problems.push(key(name), format!("{} hosts; a tenant has at most {HOSTS_MAX}", list.len()));
            }
        }
        if let Err(error) = Allowed::new(http_hosts) {
            problems.push(key("http_hosts"), error.to_string());
        }
        if let Err(error) = SocketPolicy::new(socket_hosts, socket_listen) {
            problems.push(key(error.key), error.to_string());
        }
        if dirs.len() > DIRS_MAX {
            problems.push(key("dirs"), format!("{} folders; a tenant has at most {DIRS_MAX}", dirs.len()));
        }
        for (index, dir) in dirs.iter().enumerate() {
            if dir.host.as_os_str().is_empty() {
                problems.push(key(&format!("dirs[{index}].host")), "is empty; give a folder");
            }
        }
        if secrets.len() > SECRETS_MAX {
            problems.push(key("secrets"), format!("{} secrets; a tenant has at most {SECRETS_MAX}", secrets.len()));
        }
        for name in secrets.keys().filter(|name| !is_name(name)) {
            let what = format!("`{}` is not a valid name of a secret; {}", name.escape_default(), name_rule());
            problems.push(key("secrets"), what);
        }
    }
}

/// Checks `secrets` of a function.
pub(super) fn check_function(at: &str, function: &FunctionConfig, problems: &mut Problems<'_>) {
    let secrets = &function.secrets;
    if secrets.is_empty() {
        return;
    }
    let key = format!("{at}.secrets");
    if function.source != Source::Deployment {
        let why = "is for functions that are deployed: set the variable in `env` to { file = \"PATH\" } or { env = \"NAME\" }";
        return problems.push(key, why);
    }
    if secrets.len() > SECRETS_MAX {
        problems.push(&key, format!("{} secrets; a function has at most {SECRETS_MAX}", secrets.len()));
    }
    for (variable, name) in secrets {
        let shown = variable.escape_default();
        if variable.is_empty() || variable.contains(['=', '\0']) {
            problems.push(&key, format!("`{shown}` is not a variable: a name must not be empty, nor contain `=` or a zero byte"));
        }
        if function.env.contains_key(variable) {
            problems.push(&key, format!("the variable `{shown}` is also in `env`; leave one of them out"));
        }
        if !is_name(name) {
            problems.push(&key, format!("`{}` is not a valid name of a secret; {}", name.escape_default(), name_rule()));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::config::{Config, ConfigError, check};

    fn problems(text: &str) -> Vec<String> {
        let config: Config = toml::from_str(text).unwrap();
        match check(&config, None) {
            Ok(()) => Vec::new(),
            Err(ConfigError::Problems(list)) => list.iter().map(ToString::to_string).collect(),
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn all_that_is_wrong_is_told_at_once() {
        let good = "[[grants]]\ntenant = 'blue'\nhttp_hosts = ['api.example.com']\nsocket_hosts = ['10.0.0.0/8:1-9']\n\
                    dirs = [{ host = 'data', write = true }]\nsecrets = { key = { file = 'key' } }\n[[grants]]\ntenant = 'red'\n";
        assert_eq!(problems(good), [""; 0]);
        let wrong = "[[grants]]\ntenant = ''\nhttp_hosts = ['http://a']\nsocket_listen = ['a:1']\ndirs = [{ host = '' }]\n\
                     secrets = { 'a b' = { env = 'A' } }\n[[grants]]\ntenant = 'blue'\n[[grants]]\ntenant = 'blue'\n\
                     [[functions]]\nname = 'f'\npath = 'f.so'\nsecrets = { A = 'key' }\n";
        let starts = [
            "functions[0].secrets: is for functions that are deployed",
            "grants[0].tenant: give 1 to 200 bytes",
            "grants[0].http_hosts: `http://a` is no host",
            "grants[0].socket_listen: `a:1` is no entry",
            "grants[0].dirs[0].host: is empty",
            "grants[0].secrets: `a b` is not a valid name of a secret",
            "grants[2].tenant: `blue` also has grants[1]",
        ];
        let mut told = problems(wrong);
        told.sort();
        assert_eq!(told.len(), starts.len(), "{told:#?}");
        for start in starts {
            assert!(told.iter().any(|told| told.starts_with(start)), "{start}: {told:#?}");
        }
    }
}
