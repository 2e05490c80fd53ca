//! The standard streams: a request's [body](Body) or a real file goes in, a reply, a real file or the log comes out.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{Body, LogLines, Stop};
use crate::host::wasi::Errno;
use crate::reply::{Refused, ReplyBytes, Writer};

/// Where standard input comes from.
#[derive(Debug)]
pub(super) enum Input {
    /// A request's body.
    Body(Body),
    /// A file of this process, for `sledge run`. Reading may wait, until the deadline.
    File {
        /// The file.
        file: File,
        /// When to stop waiting.
        deadline: Option<Instant>,
    },
}

impl Input {
    /// Reads into `into`; zero at the end.
    ///
    /// # Errors
    /// What the system says, or [`Stop::Deadline`].
    pub(super) fn read(&mut self, into: &mut [u8]) -> Result<usize, Stop> {
        match self {
            Input::Body(body) => body.read(into),
            Input::File { file, deadline } => {
                if deadline.is_some() {
                    wait_readable(file, *deadline, *deadline)?;
                }
                retry(|| file.read(into))
            }
        }
    }

    /// Waits until reading a file would not, or until a time comes; whether reading would not wait. What a body waits for is [`Body::next`].
    ///
    /// # Errors
    /// [`Stop::Deadline`] when that came first.
    pub(super) fn wait_until(&self, until: Option<Instant>) -> Result<bool, Stop> {
        match self {
            Input::Body(_) => Ok(true),
            Input::File { file, deadline } => wait_readable(file, until, *deadline),
        }
    }
}

/// Waits until there is something to read, the other side closed, or `until` has come; whether it was none of the latter.
///
/// # Errors
/// [`Stop::Deadline`] when that was earlier than all of it.
fn wait_readable(file: &File, until: Option<Instant>, deadline: Option<Instant>) -> Result<bool, Stop> {
    loop {
        let now = Instant::now();
        if deadline.is_some_and(|deadline| deadline <= now) {
            return Err(Stop::Deadline);
        }
        let left = until.into_iter().chain(deadline).min().map(|end| end.saturating_duration_since(now));
        let timeout = left.map(|left| Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: i64::from(left.subsec_nanos()) });
        match poll(&mut [PollFd::new(file, PollFlags::IN)], timeout.as_ref()) {
            Ok(0) if until.is_some_and(|until| until <= Instant::now()) => return Ok(false),
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) => return Ok(true),
            // Not to be waited for, such as a regular file on some systems: reading decides.
            Err(_) => return Ok(true),
        }
    }
}

/// Where standard output or standard error goes.
#[derive(Debug)]
pub(super) enum Output {
    /// A reply, kept until the invocation is over.
    Reply {
        /// What was written.
        bytes: ReplyBytes,
        /// How much may be.
        bytes_max: usize,
    },
    /// A reply that goes out while it is written.
    Stream(Writer),
    /// A file of this process, for `sledge run`.
    File(File),
    /// The log.
    Log(LogLines),
}

impl Output {
    /// Takes some of `bytes`, all of them except where a file takes less, or a stream has less room.
    ///
    /// # Errors
    /// What the system says, or [`Stop::ReplyTooLarge`].
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<usize, Stop> {
        match self {
            Output::Reply { bytes: reply, bytes_max } => {
                if bytes.len() > *bytes_max - reply.len() {
                    return Err(Stop::ReplyTooLarge);
                }
                reply.extend(bytes);
                Ok(bytes.len())
            }
            Output::Stream(writer) => writer.write(bytes).map_err(|refused| match refused {
                Refused::Length => Errno::FBIG.into(),
                Refused::Limit => Stop::ReplyTooLarge,
            }),
            Output::File(file) => retry(|| file.write(bytes)),
            Output::Log(lines) => {
                lines.write(bytes);
                Ok(bytes.len())
            }
        }
    }
}

/// Does it again when a signal (of the quantum's timer) came in between, and turns errors into error numbers of WASI.
fn retry(mut operation: impl FnMut() -> io::Result<usize>) -> Result<usize, Stop> {
    loop {
        match operation() {
            Ok(count) => return Ok(count),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Errno::from(error).into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_ends_at_its_limit() {
        let mut reply = Output::Reply { bytes: ReplyBytes::default(), bytes_max: 4 };
        assert_eq!(reply.write(b"abc"), Ok(3));
        assert_eq!(reply.write(b"de"), Err(Stop::ReplyTooLarge));
        assert_eq!(reply.write(b"d"), Ok(1));
    }
}
