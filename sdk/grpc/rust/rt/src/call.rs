//! Calls of other functions: `sledge:rpc`.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll};

use crate::once::Single;
use crate::park;
pub use crate::sys::Sizes;
use crate::sys::{self, Errno, EAGAIN, EBADF};

/// Calls in a row that have their reply at once, before other tasks and timers have their turn.
const AT_ONCE_MAX: u32 = 64;

static AT_ONCE: Single<u32> = Single::new(0);

/// Whether a task that is about to make a call lets others go first. A task whose calls have their replies at once would never wait.
pub fn is_turn_over() -> bool {
    AT_ONCE.with(|count| {
        *count = (*count + 1) % AT_ONCE_MAX;
        *count == 0
    })
}

/// A call under way. It is cancelled when this is dropped.
#[derive(Debug)]
pub struct Call {
    fd: u32,
    /// By [`Call::cancel`]; then its number may be another call's.
    closed: AtomicBool,
}

/// What became of a call of one message.
#[derive(Debug)]
pub enum Begun {
    /// The reply is there: headers, body and trailers, headers and trailers as rows, behind each other.
    Whole(Sizes),
    /// It goes on.
    Runs(Call),
}

impl Call {
    /// Makes one whose body is the message, as [`begin`](Call::begin). What it calls runs meanwhile; where that ends soon, and its reply has room in `reply`'s capacity, it is there.
    ///
    /// # Errors
    /// As for `begin`.
    pub fn make(path: &[u8], head: &[u8], message: &[u8], timeout_ns: i64, reply: &mut Vec<u8>) -> Result<Begun, Errno> {
        Ok(match sys::call(path, head, message, timeout_ns, reply)? {
            sys::Begun::Whole(sizes) => Begun::Whole(sizes),
            sys::Begun::Runs(fd) => Begun::Runs(Call { fd, closed: AtomicBool::new(false) }),
        })
    }

    /// Begins one. `head`: metadata as rows; `message`: the first bytes of the request's body; `timeout_ns` < 0: none; `ends`: whether the
    /// request's body ends there.
    ///
    /// # Errors
    /// ENOENT when there is no edge for that service, ENOTSUP outside of an application; limits.
    pub fn begin(path: &[u8], head: &[u8], message: &[u8], timeout_ns: i64, ends: bool) -> Result<Call, Errno> {
        let fd = sys::begin(path, head, message, timeout_ns, ends)?;
        Ok(Call { fd, closed: AtomicBool::new(false) })
    }

    /// The reply's headers as rows.
    pub fn poll_head(&self, context: &mut Context<'_>) -> Poll<Result<Vec<u8>, Errno>> {
        self.ready(context, false, || sys::head(self.fd))
    }

    /// Reads more of the reply's body behind what `buffer` holds, up to its capacity: how much; 0 at the end.
    pub fn poll_read(&self, context: &mut Context<'_>, buffer: &mut Vec<u8>) -> Poll<Result<usize, Errno>> {
        self.ready(context, false, || sys::read(self.fd, buffer))
    }

    /// The trailers as rows, behind the end of the body.
    ///
    /// # Errors
    /// EAGAIN before.
    pub fn trailers(&self) -> Result<Vec<u8>, Errno> {
        self.open()?;
        sys::trailers(self.fd)
    }

    /// Sends more of the request's body: how much was taken.
    pub fn poll_write(&self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize, Errno>> {
        self.ready(context, true, || sys::write(self.fd, bytes))
    }

    /// Ends the request's body.
    ///
    /// # Errors
    /// When the call is over.
    pub fn shutdown(&self) -> Result<(), Errno> {
        self.open()?;
        sys::shutdown(self.fd)
    }

    /// Cancels what is not over of it.
    pub fn cancel(&self) {
        if !self.closed.swap(true, Relaxed) {
            park::forget(self.fd);
            sys::close(self.fd);
        }
    }

    fn open(&self) -> Result<(), Errno> {
        if self.closed.load(Relaxed) {
            Err(EBADF)
        } else {
            Ok(())
        }
    }

    fn ready<T>(&self, context: &mut Context<'_>, write: bool, act: impl FnOnce() -> Result<T, Errno>) -> Poll<Result<T, Errno>> {
        match self.open().and_then(|()| act()) {
            Err(EAGAIN) => {
                if write {
                    park::until_writable(self.fd, context.waker());
                } else {
                    park::until_readable(self.fd, context.waker());
                }
                Poll::Pending
            }
            result => Poll::Ready(result),
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.cancel();
    }
}
