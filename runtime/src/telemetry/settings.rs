//! Where spans go, and how: the configuration's `[telemetry]`, read and found good.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hyper::Uri;
use hyper::header::{
    CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use hyper::http::uri::{PathAndQuery, Scheme};

use super::TelemetryConfig;
use crate::secret::{SecretError, Variable};
use crate::upstream::{self, Allowed, Roots, RootsError};

/// Where collectors take spans, below their address (OTLP 1.x, "OTLP/HTTP request").
const TRACES_PATH: &str = "/v1/traces";
/// What a connection needs, or the exporter says itself.
const RESERVED: [HeaderName; 8] = [CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, TE, TRAILER, TRANSFER_ENCODING, UPGRADE];

/// Why spans cannot be exported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TelemetryError {
    /// A key is wrong.
    #[error("{key}: {why}")]
    Key {
        /// Which one.
        key: String,
        /// What is wrong, and what to do.
        why: String,
    },
    /// A header's secret cannot be had.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// There are no certificates to believe.
    #[error(transparent)]
    Roots(#[from] RootsError),
    /// The exporter does not start.
    #[error("cannot start the exporter of spans: {0}")]
    Thread(#[source] io::Error),
}

/// Where spans go, and how.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where the collector takes them.
    pub(super) target: Uri,
    /// Its host alone may be asked.
    pub(super) allowed: Arc<Allowed>,
    pub(super) roots: Arc<Roots>,
    /// What is said to it besides.
    pub(super) headers: HeaderMap,
    /// Where that is said.
    pub(super) service_name: String,
    pub(super) resource: BTreeMap<String, String>,
    /// The part of the traces that begin here which is wanted.
    pub(super) sample_ratio: f64,
    /// How long a request to the collector may take.
    pub(super) timeout: Duration,
}

impl Settings {
    /// Reads what a configuration says, secrets included; `http_ca_file` has authorities besides the system's.
    ///
    /// # Errors
    /// When that cannot work: everything that is wrong.
    pub fn read(telemetry: &TelemetryConfig, http_ca_file: Option<&Path>) -> Result<Settings, Vec<TelemetryError>> {
        let mut errors = Vec::new();
        let mut headers = HeaderMap::new();
        for (name, variable) in &telemetry.headers {
            match header(name, variable) {
                Ok((name, value)) => drop(headers.insert(name, value)),
                Err(error) => errors.push(error),
            }
        }
        let collector = collector(&telemetry.endpoint).map_err(|error| errors.push(error));
        let roots = upstream::roots(http_ca_file).map_err(|error| errors.push(error.into()));
        let (Ok((target, allowed)), Ok(roots), true) = (collector, roots, errors.is_empty()) else { return Err(errors) };
        Ok(Settings {
            target,
            allowed,
            roots,
            headers,
            service_name: telemetry.service_name.clone(),
            resource: telemetry.resource.clone(),
            sample_ratio: telemetry.sample_ratio,
            timeout: Duration::from_millis(telemetry.timeout_ms),
        })
    }
}

fn wrong(key: &str, why: String) -> TelemetryError {
    TelemetryError::Key { key: format!("telemetry.{key}"), why }
}

/// Where the collector takes spans, and that it alone may be asked.
fn collector(endpoint: &str) -> Result<(Uri, Arc<Allowed>), TelemetryError> {
    let target = target(endpoint).map_err(|why| wrong("endpoint", why))?;
    let (host, port) = upstream::host_and_port(&target).ok_or_else(|| wrong("endpoint", "names no host".to_owned()))?;
    let allowed = Arc::new(Allowed::wherever(host, port));
    Ok((target, allowed))
}

fn header(name: &str, variable: &Variable) -> Result<(HeaderName, HeaderValue), TelemetryError> {
    let at = format!("headers.{name}");
    let name = header_name(name).map_err(|why| wrong("headers", why))?;
    // What is wrong with it is not said: it may be a secret.
    let value = HeaderValue::try_from(variable.value(&format!("telemetry.{at}"))?);
    let mut value = value.map_err(|_| wrong(&at, "is no value of a header; it has to be visible ASCII".to_owned()))?;
    value.set_sensitive(true);
    Ok((name, value))
}

/// Where a collector takes spans.
///
/// # Errors
/// When that is no URL of one.
pub fn target(endpoint: &str) -> Result<Uri, String> {
    let wrong = |why: &str| format!("`{}` {why}; give a URL such as http://127.0.0.1:4318", endpoint.escape_default());
    let uri = Uri::try_from(endpoint).map_err(|error| wrong(&format!("is no URL: {error}")))?;
    if !uri.scheme().is_some_and(|scheme| [Scheme::HTTP, Scheme::HTTPS].contains(scheme)) {
        return Err(wrong("does not begin with http:// or https://"));
    }
    let (authority, host) = (uri.authority().map_or("", |authority| authority.as_str()), uri.host().unwrap_or_default());
    // It would stand in the log.
    if authority.contains('@') {
        return Err("holds a name or a password; give those in `headers`".to_owned());
    }
    // What is no number passes for a port elsewhere.
    let port = authority.strip_prefix(host).and_then(|behind| behind.strip_prefix(':'));
    if host.is_empty() || port.is_some_and(|port| !matches!(port.parse(), Ok(1_u16..))) {
        return Err(wrong("names no host, or no port"));
    }
    if uri.query().is_some() || endpoint.contains('#') {
        return Err(wrong("has a query or a fragment"));
    }
    let path = uri.path().trim_end_matches('/');
    let path = if path.ends_with(TRACES_PATH) { path.to_owned() } else { format!("{path}{TRACES_PATH}") };
    let mut parts = uri.into_parts();
    parts.path_and_query = Some(PathAndQuery::try_from(path).map_err(|error| wrong(&error.to_string()))?);
    Uri::from_parts(parts).map_err(|error| wrong(&error.to_string()))
}

/// The name of a header that may be sent to a collector.
///
/// # Errors
/// When it is none, or one that the exporter sends itself.
pub fn header_name(name: &str) -> Result<HeaderName, String> {
    let shown = name.escape_default();
    let known = HeaderName::try_from(name).map_err(|_| format!("`{shown}` is no name of a header"))?;
    if RESERVED.contains(&known) { Err(format!("`{shown}` is sent by the exporter itself; leave it out")) } else { Ok(known) }
}

/// Checks a configuration as far as that needs no secrets; all problems, each with its key.
pub(crate) fn problems(telemetry: &TelemetryConfig) -> Vec<(String, String)> {
    let mut problems = Vec::new();
    problems.extend(target(&telemetry.endpoint).err().map(|why| ("endpoint".to_owned(), why)));
    for name in telemetry.headers.keys() {
        problems.extend(header_name(name).err().map(|why| ("headers".to_owned(), why)));
    }
    if telemetry.service_name.is_empty() {
        problems.push(("service_name".to_owned(), "is empty; give a name, or leave it out".to_owned()));
    }
    if !(0.0..=1.0).contains(&telemetry.sample_ratio) {
        let why = format!("{} is out of range; give 0.0 for no trace to 1.0 for all", telemetry.sample_ratio);
        problems.push(("sample_ratio".to_owned(), why));
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collector_takes_spans_below_its_address() {
        let cases = [
            ("http://localhost:4318", "http://localhost:4318/v1/traces"),
            ("http://localhost:4318/", "http://localhost:4318/v1/traces"),
            ("https://collector/otlp/", "https://collector/otlp/v1/traces"),
            ("https://[::1]:4318/v1/traces", "https://[::1]:4318/v1/traces"),
        ];
        for (endpoint, expected) in cases {
            assert_eq!(target(endpoint).unwrap().to_string(), expected);
        }
        for wrong in ["", "localhost:4318", "grpc://a:1", "http://", "/v1/traces", "http://a:0", "http://a:x", "http://a/?b=c"] {
            let why = target(wrong).unwrap_err();
            assert!(
                why.starts_with(&format!("`{wrong}` ")) && why.ends_with("give a URL such as http://127.0.0.1:4318"),
                "{why}"
            );
        }
        let why = target("http://me:hunter2@a").unwrap_err();
        assert!(!why.contains("hunter2"), "{why}");
    }
}
