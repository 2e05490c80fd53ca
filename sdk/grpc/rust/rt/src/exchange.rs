//! The request that is answered, and its reply.

use std::task::{Context, Poll};

use crate::park;
use crate::sys::{self, Errno};

const STANDARD_INPUT: u32 = 0;
const STANDARD_OUTPUT: u32 = 1;

/// Its method.
///
/// # Errors
/// When there is no request; so for all that follow.
pub fn method() -> Result<Vec<u8>, Errno> {
    sys::method()
}

/// Path and query.
///
/// # Errors
/// As for [`method`].
pub fn target() -> Result<Vec<u8>, Errno> {
    sys::target()
}

/// Its headers as rows.
///
/// # Errors
/// As for [`method`].
pub fn headers() -> Result<Vec<u8>, Errno> {
    sys::headers()
}

/// The request's body.
#[derive(Debug)]
pub struct Body {
    /// How much of it is still to come, where that was said.
    left: Option<u64>,
}

impl Body {
    /// `length`: what `content-length` says.
    pub fn new(length: Option<u64>) -> Body {
        Body { left: length }
    }

    /// Reads more of it behind what `buffer` holds, up to its capacity: how much; 0 at the end.
    pub fn poll_read(&mut self, context: &mut Context<'_>, buffer: &mut Vec<u8>) -> Poll<Result<usize, Errno>> {
        if self.left == Some(0) {
            return Poll::Ready(Ok(0));
        }
        // Standard input waits in `fd_read`, and everything else with it. Where the length is known the client waits for nothing of ours;
        // else nothing is read before it is there.
        if self.left.is_none() && !park::is_readable(STANDARD_INPUT) {
            park::until_readable(STANDARD_INPUT, context.waker());
            return Poll::Pending;
        }
        let result = sys::read(STANDARD_INPUT, buffer);
        if let (Ok(count), Some(left)) = (&result, &mut self.left) {
            *left = if *count == 0 { 0 } else { left.saturating_sub(*count as u64) };
        }
        Poll::Ready(result)
    }
}

/// Sets the reply's status.
///
/// # Errors
/// When its head has gone out, or it is no status.
pub fn set_status(code: u16) -> Result<(), Errno> {
    sys::status(code)
}

/// Sets a header of the reply, or adds one more of that name.
///
/// # Errors
/// When its head has gone out, or it is none.
pub fn set_header(name: &[u8], value: &[u8], more: bool) -> Result<(), Errno> {
    sys::header(name, value, more)
}

/// The same for a trailer.
///
/// # Errors
/// When it is none.
pub fn set_trailer(name: &[u8], value: &[u8], more: bool) -> Result<(), Errno> {
    sys::trailer(name, value, more)
}

/// Sends the head. What is written from then on goes out at once.
///
/// # Errors
/// When that was done before.
pub fn begin_stream() -> Result<(), Errno> {
    sys::stream()
}

/// Writes all of it to the reply's body.
///
/// # Errors
/// When the reply is too large, or the client has left.
pub fn write(mut bytes: &[u8]) -> Result<(), Errno> {
    while !bytes.is_empty() {
        let taken = sys::write(STANDARD_OUTPUT, bytes)?;
        bytes = &bytes[taken..];
    }
    Ok(())
}
