//! File descriptors that are known by number only.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

/// A descriptor of one's own for the open file that `number` stands for, whichever library opened it.
///
/// # Errors
/// When that number stands for none, or the process has as many as it may have.
pub fn duplicate(number: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: Numbers only: where nothing has that number, the call fails.
    let own = unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 0) };
    if own < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: Made by the call, so open, and nothing else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(own) })
}
