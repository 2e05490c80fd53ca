//! Where spans go: `[telemetry]`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::secret::Variable;

/// Where spans of requests go, and how: to a collector that speaks OTLP over HTTP (protocol buffers).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TelemetryConfig {
    /// The collector's URL, such as `http://127.0.0.1:4318`; spans go to `/v1/traces` below it. Authorities besides the system's: `http_ca_file`.
    pub endpoint: String,
    /// Headers of requests to it. Each is a text, or `{ file = "PATH" }` or `{ env = "NAME" }`, where a secret is.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, Variable>,
    /// The service whose spans these are.
    #[serde(default = "service_name_default")]
    pub service_name: String,
    /// What else is said of it with all spans, such as `"deployment.environment.name" = "staging"`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub resource: BTreeMap<String, String>,
    /// The part of the traces that begin here whose spans are wanted. Where a request brings a trace (`traceparent`), that says so itself.
    #[serde(default = "sample_ratio_default")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub sample_ratio: f64,
    /// How long the collector may take to answer, in milliseconds.
    #[serde(default = "timeout_ms_default")]
    #[schemars(range(min = 1, max = 86_400_000))]
    pub timeout_ms: u64,
}

fn service_name_default() -> String {
    "sledge".to_owned()
}

const fn sample_ratio_default() -> f64 {
    1.0
}

const fn timeout_ms_default() -> u64 {
    10_000
}
