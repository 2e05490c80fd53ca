//! A socket's descriptor, and the runtime that says when it is ready.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::task::Poll;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::{socket_recv_buffer_size, socket_send_buffer_size};
use tokio::io::unix::{AsyncFd, AsyncFdReadyGuard};

use super::reach::Share;
use crate::host::canonical::Look;

/// Bytes that the kernel keeps for a socket beside its buffers: about.
const SOCKET_BYTES: usize = 8 << 10;

/// A socket of the system, closed with the last that has it. Its buffers count for as long: a connection's streams may outlive its socket.
#[derive(Debug)]
pub(in crate::host) struct Descriptor {
    fd: OwnedFd,
    share: Share,
}

impl Descriptor {
    /// Counts it with its buffers, whose sizes were set before.
    ///
    /// # Errors
    /// What the system says.
    pub(in crate::host) fn new(fd: OwnedFd, share: Share) -> rustix::io::Result<Descriptor> {
        let descriptor = Descriptor { fd, share };
        descriptor.count_buffers()?;
        Ok(descriptor)
    }

    /// Counts what the kernel made of the sizes of its buffers.
    pub(in crate::host) fn count_buffers(&self) -> rustix::io::Result<()> {
        self.share.count(SOCKET_BYTES + socket_recv_buffer_size(&self.fd)? + socket_send_buffer_size(&self.fd)?);
        Ok(())
    }
}

impl AsFd for Descriptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl AsRawFd for Descriptor {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

/// Bytes that wait until the kernel takes them. They count with what it keeps for their socket.
#[derive(Debug)]
pub(in crate::host) struct Waiting {
    bytes: Vec<u8>,
    descriptor: Arc<Descriptor>,
}

impl Waiting {
    /// Counts them.
    pub(in crate::host) fn new(bytes: Vec<u8>, descriptor: Arc<Descriptor>) -> Waiting {
        descriptor.share.keep(bytes.capacity());
        Waiting { bytes, descriptor }
    }

    /// The bytes.
    pub(in crate::host) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.descriptor.share.release(self.bytes.capacity());
    }
}

/// A socket that the runtime watches.
#[derive(Debug)]
pub(in crate::host) struct Watched(AsyncFd<Arc<Descriptor>>);

impl Watched {
    /// Has this thread's runtime watch it: to be called within the runtime.
    ///
    /// # Errors
    /// When the system refuses.
    #[expect(deprecated, reason = "sound for what owns its descriptor and always names the same; the other way is unsafe")]
    pub(in crate::host) fn new(descriptor: Arc<Descriptor>) -> io::Result<Watched> {
        AsyncFd::new(descriptor).map(Watched)
    }

    /// Whether it is so now, as the kernel says. An error and an end are news of both directions.
    fn is(&self, wanted: PollFlags) -> bool {
        let mut fds = [PollFd::new(self.0.get_ref(), wanted)];
        poll(&mut fds, Some(&Timespec::default())).is_ok_and(|count| count > 0)
    }

    /// Whether something can be written now, or a connection is made or has failed.
    pub(in crate::host) fn can_write(&self) -> bool {
        self.is(PollFlags::OUT)
    }

    /// Whether something can be read or accepted; otherwise what looks is woken when it may be so.
    pub(in crate::host) fn read_ready(&self, look: &Look<'_>) -> bool {
        self.ready(PollFlags::IN, || forget(self.0.poll_read_ready(&mut look.context())))
    }

    /// The same for writing.
    pub(in crate::host) fn write_ready(&self, look: &Look<'_>) -> bool {
        self.ready(PollFlags::OUT, || forget(self.0.poll_write_ready(&mut look.context())))
    }

    /// Waits until something may be read or accepted. Several may wait so at a time, of which each is woken; whether there is anything is to be looked at anew.
    pub(in crate::host) async fn readable(&self) {
        for _ in 0..2 {
            if self.is(PollFlags::IN) {
                return;
            }
            // What fails is looked at, too.
            let Ok(mut guard) = self.0.readable().await else { return };
            guard.clear_ready();
        }
    }

    /// The same for writing.
    pub(in crate::host) async fn writable(&self) {
        for _ in 0..2 {
            if self.is(PollFlags::OUT) {
                return;
            }
            let Ok(mut guard) = self.0.writable().await else { return };
            guard.clear_ready();
        }
    }

    /// Asks the kernel first, since what the runtime has noted may be used up by now. `noted` asks the runtime, and has it forget what it had noted.
    fn ready(&self, wanted: PollFlags, mut noted: impl FnMut() -> bool) -> bool {
        for _ in 0..2 {
            if self.is(wanted) {
                return true;
            }
            if !noted() {
                return false;
            }
        }
        // The runtime does not forget that something has ended.
        true
    }
}

impl AsFd for Watched {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.get_ref().as_fd()
    }
}

/// Whether the runtime had noted that it is ready, which it forgets.
fn forget<T: AsRawFd>(noted: Poll<io::Result<AsyncFdReadyGuard<'_, T>>>) -> bool {
    match noted {
        Poll::Ready(Ok(mut guard)) => {
            guard.clear_ready();
            true
        }
        Poll::Ready(Err(_)) => true,
        Poll::Pending => false,
    }
}
