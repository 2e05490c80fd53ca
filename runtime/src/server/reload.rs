//! SIGHUP: the configuration is read anew, in a thread of its own.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{self, SyncSender};
use std::thread;

use serde_json::Value;

use super::error::{ServerError, thread_error};
use crate::config::{Config, ConfigError};
use crate::deploy::Deployer;
use crate::health::{Health, Subject};
use crate::systemd;
use crate::tls::{Current, Pair};

/// The thread that reads configurations anew.
#[derive(Debug)]
pub(super) struct Reloader {
    wanted: SyncSender<()>,
}

impl Reloader {
    /// Starts it; `config` is what the server at `address` runs with, `reread` what it is to become, `certificate` what it shows, if it speaks TLS.
    ///
    /// # Errors
    /// When the system has no thread.
    pub(super) fn start(
        config: Config,
        address: SocketAddr,
        deployer: Arc<Deployer>,
        certificate: Option<Arc<Current>>,
        reread: impl Fn() -> Result<Config, ConfigError> + Send + 'static,
    ) -> Result<Reloader, ServerError> {
        // One that waits is as good as many.
        let (wanted, reload) = mpsc::sync_channel(1);
        let run = move || {
            for () in reload {
                systemd::reloading();
                again(&config, &deployer, certificate.as_deref(), &reread);
                systemd::ready(address);
            }
        };
        let started = thread::Builder::new().name("reload".to_owned()).spawn(run);
        started.map_err(|error| thread_error("the thread for SIGHUP", error))?;
        Ok(Reloader { wanted })
    }

    /// Has it done, soon.
    pub(super) fn reload(&self) {
        let _ = self.wanted.try_send(());
    }
}

fn again(config: &Config, deployer: &Deployer, certificate: Option<&Current>, reread: &impl Fn() -> Result<Config, ConfigError>) {
    tracing::info!("reading the configuration anew");
    let new = match reread() {
        Ok(new) => new,
        Err(error) => return tracing::error!("the configuration is refused and nothing has changed: {error}"),
    };
    if let Some(certificate) = certificate {
        renew(certificate, &new, deployer.health());
    }
    match deployer.reload(&new) {
        Ok(change) => {
            let keys = waiting_keys(config, &new, certificate.is_some());
            if !keys.is_empty() {
                tracing::warn!(keys = keys.join(", "), "these have changed too, which counts after a restart");
            }
            tracing::info!(%change, "configuration read anew");
        }
        Err(error) => tracing::error!("the configuration is refused and nothing has changed: {error}"),
    }
}

/// Has new connections get the certificate that a configuration names, whatever becomes of its functions: the one that there is ends on its day.
fn renew(certificate: &Current, config: &Config, health: &Health) {
    // A server that speaks TLS goes on doing so.
    let Some((path, key)) = config.tls_certificate_file.as_deref().zip(config.tls_key.as_ref()) else { return };
    match Pair::read(path, key) {
        Ok(pair) => {
            if certificate.replace(pair) {
                tracing::info!(path = %path.display(), "new connections get the new certificate");
            }
            health.clear(&Subject::Certificate);
        }
        Err(errors) => {
            let errors = errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
            let what = "the certificate before it is still in use; put it right and send SIGHUP";
            health.report(Subject::Certificate, format!("{errors}; {what}"));
        }
    }
}

/// Keys that differ and count only when a server starts: all but functions, grants, workflows, schedules, redirects, folders and, where TLS is spoken and still to be, the certificate.
fn waiting_keys(old: &Config, new: &Config, is_renewed: bool) -> Vec<String> {
    let is_renewed = is_renewed && new.tls_certificate_file.is_some();
    let (Ok(Value::Object(old)), Ok(Value::Object(new))) = (serde_json::to_value(old), serde_json::to_value(new)) else {
        return Vec::new();
    };
    let counts = |key: &str| {
        ["functions", "applications", "redirects", "folders", "schedules", "workflows", "grants"].contains(&key)
            || is_renewed && ["tls_certificate_file", "tls_key"].contains(&key)
    };
    new.into_iter().filter(|(key, value)| !counts(key) && old.get(key) != Some(value)).map(|(key, _)| key).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_count_at_a_start_only_are_named() {
        let new = Config { quantum_us: Some(77), state_dir: Some("/x".into()), functions: Vec::new(), ..Config::default() };
        assert_eq!(waiting_keys(&Config::default(), &new, false), ["quantum_us", "state_dir"]);
        let tls = Config { tls_certificate_file: Some("/y".into()), ..Config::default() };
        assert_eq!(waiting_keys(&Config::default(), &tls, false), ["tls_certificate_file"]);
        assert_eq!(waiting_keys(&Config::default(), &tls, true), [""; 0]);
        assert_eq!(waiting_keys(&tls, &Config::default(), true), ["tls_certificate_file"]);
    }
}
