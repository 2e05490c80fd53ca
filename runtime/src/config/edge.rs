//! Where calls of a service go.

use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// Where calls of a service go: `{ function = "NAME" }` or `{ url = "https://HOST:PORT" }`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EdgeConfig {
    /// To the function of that name, of the same tenant.
    Function(String),
    /// To the server at that URL, which has no path.
    Url(String),
}

impl<'de> Deserialize<'de> for EdgeConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<EdgeConfig, D::Error> {
        let tree = Value::deserialize(deserializer)?;
        let entry = tree.as_object().filter(|entries| entries.len() == 1).and_then(|entries| entries.iter().next());
        match entry.map(|(to, value)| (to.as_str(), value.as_str())) {
            Some(("function", Some(name))) => Ok(EdgeConfig::Function(name.to_owned())),
            Some(("url", Some(url))) => Ok(EdgeConfig::Url(url.to_owned())),
            _ => Err(D::Error::custom("not an edge; give { function = \"NAME\" } or { url = \"https://HOST:PORT\" }")),
        }
    }
}
