//! SIGHUP: the configuration is read anew, in a thread of its own.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{self, SyncSender};
use std::thread;

use serde_json::Value;

use super::Deployer;
use crate::config::{Config, ConfigError};
use crate::server::{ServerError, thread_error};
use crate::systemd;

/// The thread that reads configurations anew.
#[derive(Debug)]
pub struct Reloader {
    wanted: SyncSender<()>,
}

impl Reloader {
    /// Starts it; `config` is what the server at `address` runs with, `reread` what it is to become.
    ///
    /// # Errors
    /// When the system has no thread.
    pub fn start(
        config: Config,
        address: SocketAddr,
        deployer: Arc<Deployer>,
        reread: impl Fn() -> Result<Config, ConfigError> + Send + 'static,
    ) -> Result<Reloader, ServerError> {
        // One that waits is as good as many.
        let (wanted, reload) = mpsc::sync_channel(1);
        let run = move || {
            for () in reload {
                systemd::reloading();
                again(&config, &deployer, &reread);
                systemd::ready(address);
            }
        };
        let started = thread::Builder::new().name("reload".to_owned()).spawn(run);
        started.map_err(|error| thread_error("the thread for SIGHUP", error))?;
        Ok(Reloader { wanted })
    }

    /// Has it done, soon.
    pub fn reload(&self) {
        let _ = self.wanted.try_send(());
    }
}

fn again(config: &Config, deployer: &Deployer, reread: &impl Fn() -> Result<Config, ConfigError>) {
    tracing::info!("reading the configuration anew");
    let new = match reread() {
        Ok(new) => new,
        Err(error) => return tracing::error!("the configuration is refused and nothing has changed: {error}"),
    };
    match deployer.reload(&new) {
        Ok(change) => {
            let keys = waiting_keys(config, &new);
            if !keys.is_empty() {
                tracing::warn!(keys = keys.join(", "), "these have changed too, which counts after a restart");
            }
            tracing::info!(%change, "configuration read anew");
        }
        Err(error) => tracing::error!("the configuration is refused and nothing has changed: {error}"),
    }
}

/// Keys that differ and count only when a server starts: all but the functions.
fn waiting_keys(old: &Config, new: &Config) -> Vec<String> {
    let (Ok(Value::Object(old)), Ok(Value::Object(new))) = (serde_json::to_value(old), serde_json::to_value(new)) else {
        return Vec::new();
    };
    new.into_iter().filter(|(key, value)| key != "functions" && old.get(key) != Some(value)).map(|(key, _)| key).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_count_at_a_start_only_are_named() {
        let new = Config { quantum_us: 77, state_dir: Some("/x".into()), functions: Vec::new(), ..Config::default() };
        assert_eq!(waiting_keys(&Config::default(), &new), ["quantum_us", "state_dir"]);
    }
}
