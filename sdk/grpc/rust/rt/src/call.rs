//! Calls of other functions: `sledge:rpc`.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll};

use crate::park;
use crate::sys::{self, Errno, EAGAIN, EBADF};

/// A call under way. It is cancelled when this is dropped.
#[derive(Debug)]
pub struct Call {
    fd: u32,
    /// By [`Call::cancel`]; then its number may be another call's.
    closed: AtomicBool,
}

impl Call {
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

    /// Wakes it when the reply comes. Behind [`Call::begin`] it is not there yet.
    pub fn until_reply(&self, context: &Context<'_>) {
        park::until_readable(self.fd, context.waker());
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
