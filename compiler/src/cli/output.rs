//! Standard output of commands that print. Its reader may go before the end, as `head` does: that is no failure of the command's to report.

use std::io::{self, Write as _};

use anyhow::{Context as _, Result};

/// Exit status where the reader of standard output has gone: as of programs that the signal SIGPIPE (13) ends, as a shell shows it.
pub(crate) const CLOSED_EXIT_STATUS: u8 = 128 + 13;

/// Whoever read what a command writes has closed it.
#[derive(Debug, thiserror::Error)]
#[error("whoever read the output has closed it")]
pub(crate) struct Closed;

/// Writes to standard output, to the end.
pub(super) fn print(bytes: &[u8]) -> Result<()> {
    let mut output = io::stdout().lock();
    check(output.write_all(bytes).and_then(|()| output.flush())).context("standard output")
}

/// Tells an output that was closed from one that failed.
pub(super) fn check(written: io::Result<()>) -> Result<()> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(Closed.into()),
        other => Ok(other?),
    }
}
