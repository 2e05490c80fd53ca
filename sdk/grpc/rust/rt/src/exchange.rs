//! The request that is answered, and its reply.

use std::task::{Context, Poll};

use crate::park;
use crate::sys::{self, Errno};

const STANDARD_INPUT: u32 = 0;
const STANDARD_OUTPUT: u32 = 1;

/// The request, up to its body.
#[derive(Debug)]
pub struct Accepted {
    /// Path and query, headers as rows, and the body, if all of that was there, behind each other.
    pub text: Vec<u8>,
    /// Where the headers begin.
    pub headers: usize,
    /// Where the body begins.
    pub body: usize,
    /// Whether all of it is there.
    pub is_whole: bool,
}

/// Most requests fit into so many bytes.
const TEXT_BYTES: usize = 4 << 10;

/// The request that is to be answered. `room`: a buffer for its text, whose content has no meaning.
///
/// # Errors
/// When there is no request.
pub fn accept(room: Vec<u8>) -> Result<Accepted, Errno> {
    let mut text = room;
    text.clear();
    text.reserve_exact(TEXT_BYTES);
    let [target, headers, body] = sys::accept(&mut text)?;
    let body_at = (target + headers) as usize;
    Ok(Accepted { text, headers: target as usize, body: body_at, is_whole: body != sys::NOT_WHOLE })
}

/// Adds headers and trailers, as rows, and bytes of the body to the reply, whose head has not gone out.
///
/// # Errors
/// When it has, when something is no field, when the reply is too large.
pub fn answer(headers: &[u8], body: &[u8], trailers: &[u8]) -> Result<(), Errno> {
    sys::answer(headers, body, trailers)
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

/// Sets a trailer of the reply, or adds one more of that name.
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
