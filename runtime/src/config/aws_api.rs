//! The API of AWS Step Functions: where it listens, and which clients may use it.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::check::{Problems, is_name, name_rule};
use super::tenant_default;
use crate::secret::Secret;

/// Keys of one server.
const KEYS_MAX: usize = 1_000;
/// Bytes of a key's ID. As at AWS.
const ID_BYTES_MAX: usize = 128;
/// Bytes of a tenant's name: ARNs, in which it stands with the names of a workflow and an execution, have 256.
const TENANT_BYTES_MAX: usize = 40;

/// The API of AWS Step Functions: clients such as `aws stepfunctions --endpoint-url` and boto3 start and watch executions of workflows. It takes effect when the server starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AwsApiConfig {
    /// Its address, `IP:PORT`. It speaks plain HTTP: requests are signed, but not encrypted. For clients on other machines put a proxy with TLS in front of it that leaves the header `Host` as it is.
    #[serde(default = "listen_default")]
    pub listen: String,
    /// The access keys with which clients sign their requests.
    #[serde(default)]
    #[schemars(length(min = 1, max = 1000))]
    pub keys: Vec<AwsKeyConfig>,
}

/// An access key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AwsKeyConfig {
    /// The key's ID (`aws_access_key_id`): letters, digits, `.`, `-` and `_`.
    #[schemars(length(min = 1, max = 128))]
    pub id: String,
    /// The secret (`aws_secret_access_key`), at least 16 bytes: `{ file = "PATH" }` or `{ env = "NAME" }`.
    pub secret: Secret,
    /// The tenant whose workflows its clients see: the account in ARNs.
    #[serde(default = "tenant_default")]
    #[schemars(length(min = 1, max = 40))]
    pub tenant: String,
    /// Whether its clients may only look: `Describe...`, `List...` and `GetExecutionHistory`.
    #[serde(default)]
    pub read_only: bool,
}

fn listen_default() -> String {
    "127.0.0.1:8083".to_owned()
}

/// Checks all but the secrets, which are read when the server is prepared.
pub(super) fn check(config: &AwsApiConfig, kv: Option<&Path>, problems: &mut Problems<'_>) {
    let AwsApiConfig { listen, keys } = config;
    if listen.parse::<SocketAddr>().is_err() {
        let message = format!("`{}` is not an address; give IP:PORT, such as {}", listen.escape_default(), listen_default());
        problems.push("aws_api.listen", message);
    }
    if kv.is_none() {
        let message = "executions are kept in the key-value store, and there is none: set `kv` to a file or to a Redis server, or leave `aws_api` out";
        problems.push("aws_api", message);
    }
    problems.range("aws_api.keys", keys.len() as u64, 1, KEYS_MAX as u64);
    let mut ids = HashMap::new();
    for (index, AwsKeyConfig { id, tenant, .. }) in keys.iter().enumerate() {
        let at = format!("aws_api.keys[{index}]");
        if !is_name(id) || id.len() > ID_BYTES_MAX {
            let message = format!("`{}` is not a valid ID of at most {ID_BYTES_MAX} bytes; {}", id.escape_default(), name_rule());
            problems.push(format!("{at}.id"), message);
        }
        if !is_name(tenant) || tenant.len() > TENANT_BYTES_MAX {
            let name = tenant.escape_default();
            let message = format!("`{name}` is not a valid name of at most {TENANT_BYTES_MAX} bytes; {}", name_rule());
            problems.push(format!("{at}.tenant"), message);
        }
        if let Some(other) = ids.insert(id, index) {
            problems.push(format!("{at}.id"), format!("`{}` is also used by aws_api.keys[{other}]", id.escape_default()));
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
        let good = "kv = 'kv.redb'\n[aws_api]\nkeys = [{ id = 'KEY', secret = { env = 'A' } }]";
        assert_eq!(problems(good), [""; 0]);
        let config: Config = toml::from_str(good).unwrap();
        let api = config.aws_api.unwrap();
        assert_eq!(
            (api.listen.as_str(), api.keys[0].tenant.as_str(), api.keys[0].read_only),
            ("127.0.0.1:8083", "default", false)
        );

        let long = "t".repeat(41);
        let wrong = format!(
            "[aws_api]\nlisten = 'everywhere'\nkeys = [{{ id = 'a/b', secret = {{ env = 'A' }} }}, {{ id = 'K', secret = {{ env = 'A' }}, tenant = '{long}' }}, \
             {{ id = 'K', secret = {{ file = 'k' }} }}]"
        );
        let told = problems(&wrong);
        let starts =
            ["aws_api.listen: `everywhere`", "aws_api: executions", "aws_api.keys[0].id: `a/b`", "aws_api.keys[1].tenant: `ttt"];
        for (told, start) in told.iter().zip(starts) {
            assert!(told.starts_with(start), "{told}");
        }
        assert!(told[4].starts_with("aws_api.keys[2].id: `K` is also used by aws_api.keys[1]"), "{told:?}");
        assert_eq!(told.len(), 5, "{told:?}");
        let none = problems("kv = 'redis://h'\n[aws_api]\n");
        assert!(none.len() == 1 && none[0].starts_with("aws_api.keys: 0 is out of range"), "{none:?}");
    }
}
