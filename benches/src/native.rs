//! What `sledge` is measured against, as a child process: `bin/native.rs`.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};

use crate::checkout;

/// The same HTTP server with handlers compiled in, or a process for each request. Dropping it kills it.
#[derive(Debug)]
pub struct Native {
    child: Child,
    address: SocketAddr,
}

impl Native {
    /// Starts it where this thread is pinned to. `programs` are NAME=PROGRAM.
    ///
    /// # Errors
    ///
    /// If it is not built or does not say that it listens.
    pub fn start(programs: &[String]) -> Result<Native> {
        let program = checkout::program("native")?;
        let child = Command::new(&program)
            .args(programs)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot run {}", program.display()))?;
        let mut native = Native { child, address: SocketAddr::from(([127, 0, 0, 1], 0)) };
        let mut line = String::new();
        BufReader::new(native.child.stdout.take().context("its output is piped")?).read_line(&mut line)?;
        let address = line.trim_end().strip_prefix("listening on http://").and_then(|address| address.parse().ok());
        native.address = address.with_context(|| format!("the native server says {line:?}"))?;
        Ok(native)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Native {
    fn drop(&mut self) {
        // Both fail harmlessly when it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
