//! What `sledge` is measured against, as a child process: `bin/native.rs`.

use std::net::SocketAddr;
use std::process::Command;

use anyhow::{Context, Result};

use crate::checkout;
use crate::child::Listener;

/// The same HTTP server with handlers compiled in, or a process for each request. Dropping it kills it.
#[derive(Debug)]
pub struct Native(Listener);

impl Native {
    /// Starts it where this thread is pinned to. `programs` are NAME=PROGRAM.
    ///
    /// # Errors
    ///
    /// If it is not built or does not say that it listens.
    pub fn start(programs: &[String]) -> Result<Native> {
        let mut command = Command::new(checkout::program("native")?);
        command.args(programs);
        Ok(Native(Listener::announced(command, None).context("the native server")?))
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.0.address()
    }
}
