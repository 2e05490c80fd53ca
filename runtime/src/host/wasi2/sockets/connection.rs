//! A connection of TCP, as streams read and write it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use bytes::Bytes;
use rustix::io::Errno;
use rustix::net::sockopt::socket_send_buffer_size;
use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown};

use super::ErrorCode;
use super::watched::Watched;
use crate::host::canonical::{Look, Subject};
use crate::host::wasi2::error::Fault;
use crate::host::wasi2::streams::Content;
use crate::host::{Call, Flat, Stop};

/// Bytes that are read at once.
const READ_BYTES_MAX: usize = 64 << 10;
/// Bytes that are written at once, at most.
pub(in crate::host) const PERMIT_BYTES_MAX: usize = 64 << 10;
/// The kernel has a third of its buffer free when it says that something can be written, and needs some of that for itself.
const BUFFER_SHARE: usize = 4;

/// A connection. It is closed with the last of its socket and its two streams.
#[derive(Debug)]
pub(in crate::host) struct Connection {
    watched: Arc<Watched>,
    /// The other end. The kernel forgets it when both ends are done.
    pub(in crate::host) remote: SocketAddr,
    /// Whether nothing is received any more: the end was read, or the component said so, where the kernel would go on.
    is_read_closed: AtomicBool,
    is_write_closed: AtomicBool,
    /// How many of its socket and its output stream the component has; the socket only as long as it may write.
    writers: AtomicU8,
    /// Whether nothing is received any more when the component drops its input stream.
    ends_with_input: AtomicBool,
}

impl Connection {
    /// One whose only writer is its socket.
    pub(in crate::host) const fn new(watched: Arc<Watched>, remote: SocketAddr) -> Connection {
        Connection {
            watched,
            remote,
            is_read_closed: AtomicBool::new(false),
            is_write_closed: AtomicBool::new(false),
            writers: AtomicU8::new(1),
            ends_with_input: AtomicBool::new(false),
        }
    }

    /// The component has an output stream beside the socket.
    pub(in crate::host) fn add_writer(&self) {
        self.writers.fetch_add(1, Ordering::Relaxed);
    }

    /// Nothing is received any more when the component drops its input stream.
    pub(in crate::host) fn end_with_input(&self) {
        self.ends_with_input.store(true, Ordering::Relaxed);
    }

    /// The component has dropped its input stream.
    pub(in crate::host) fn drop_reader(&self) {
        if self.ends_with_input.load(Ordering::Relaxed) {
            // A connection that has failed has ended anyway.
            let _ = self.shutdown(true, false);
        }
    }

    /// The component has dropped its socket or its output stream. Without both it can neither write nor say that it will not, so the peer is told, even
    /// if the component still reads.
    pub(in crate::host) fn drop_writer(&self) {
        if self.writers.fetch_sub(1, Ordering::Relaxed) == 1 {
            // A connection that has failed has ended anyway.
            let _ = self.shutdown(false, true);
        }
    }

    /// Ends one direction or both.
    ///
    /// # Errors
    /// What the system says.
    pub(in crate::host) fn shutdown(&self, receive: bool, send: bool) -> Result<(), ErrorCode> {
        let how = match (receive, send) {
            (true, true) => Shutdown::Both,
            (true, false) => Shutdown::Read,
            _ => Shutdown::Write,
        };
        // Relaxed: one guest, which does one thing after the other.
        self.is_read_closed.fetch_or(receive, Ordering::Relaxed);
        self.is_write_closed.fetch_or(send, Ordering::Relaxed);
        match shutdown(&*self.watched, how) {
            // The other end was faster.
            Ok(()) | Err(Errno::NOTCONN) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads at most so many bytes; none where there are none yet. To read zero bytes asks whether the end has come, and never waits.
    pub(in crate::host) fn read(&self, bytes_max: usize) -> Option<Result<Bytes, Fault>> {
        if self.is_read_closed.load(Ordering::Relaxed) {
            return Some(Err(Fault::Closed));
        }
        // The kernel says the end only where there is room for a byte.
        let mut bytes = vec![0; bytes_max.clamp(1, READ_BYTES_MAX)];
        let flags = if bytes_max == 0 { RecvFlags::PEEK } else { RecvFlags::empty() };
        match recv(&*self.watched, &mut bytes[..], flags) {
            Ok((0, _)) => {
                self.is_read_closed.store(true, Ordering::Relaxed);
                Some(Err(Fault::Closed))
            }
            Ok(_) | Err(Errno::AGAIN | Errno::INTR) if bytes_max == 0 => Some(Ok(Bytes::new())),
            Ok((count, _)) => {
                bytes.truncate(count);
                // A few bytes are not to keep a large buffer.
                Some(Ok(if count < bytes.capacity() / 2 { Bytes::copy_from_slice(&bytes) } else { bytes.into() }))
            }
            Err(Errno::AGAIN | Errno::INTR) => None,
            Err(error) => Some(Err(Fault::Network(error.into()))),
        }
    }

    /// Whether reading would not wait.
    pub(in crate::host) fn read_ready(&self, look: &Look<'_>) -> bool {
        self.is_read_closed.load(Ordering::Relaxed) || self.watched.read_ready(look)
    }

    /// Bytes that the kernel takes at once.
    pub(in crate::host) fn room_bytes(&self) -> usize {
        if !self.watched.can_write() {
            return 0;
        }
        let buffer_bytes = socket_send_buffer_size(&*self.watched).unwrap_or(0);
        (buffer_bytes / BUFFER_SHARE).clamp(1, PERMIT_BYTES_MAX)
    }

    /// Whether nothing can be written any more.
    pub(in crate::host) fn is_write_closed(&self) -> bool {
        self.is_write_closed.load(Ordering::Relaxed)
    }

    /// Whether writing would not wait.
    pub(in crate::host) fn write_ready(&self, look: &Look<'_>) -> bool {
        self.is_write_closed() || self.watched.write_ready(look)
    }

    /// Writes some of the bytes; none where that has to wait.
    fn write(&self, bytes: &[u8]) -> Result<usize, Fault> {
        if self.is_write_closed() {
            return Err(Fault::Closed);
        }
        // The kernel reads from our buffer, never from the guest's memory.
        let copy = bytes[..bytes.len().min(PERMIT_BYTES_MAX)].to_vec();
        match send(&*self.watched, &copy, SendFlags::NOSIGNAL) {
            Ok(count) => Ok(count),
            Err(Errno::AGAIN | Errno::INTR) => Ok(0),
            Err(Errno::PIPE) => Err(Fault::Closed),
            Err(error) => Err(Fault::Network(error.into())),
        }
    }
}

/// Writes all of it to a connection that is the stream with that representation, however long that takes, and goes on with what became of it.
pub(in crate::host) fn send_then(
    call: &mut Call<'_>,
    representation: u32,
    connection: Arc<Connection>,
    content: Content,
    mut done: usize,
    length: usize,
    then: impl FnOnce(&mut Call<'_>, Result<(), Fault>) -> Result<Flat, Stop> + Send + 'static,
) -> Result<Flat, Stop> {
    while done < length {
        match connection.write(content.rest(call.memory.as_ref(), done, length)?) {
            Ok(0) => {
                return Err(call.until_ready(&[Subject::Of(representation)], move |call| {
                    send_then(call, representation, connection, content, done, length, then)
                }));
            }
            Ok(count) => done += count,
            Err(fault) => return then(call, Err(fault)),
        }
    }
    then(call, Ok(()))
}

/// Writes what the kernel takes at once of so many bytes of the component to a connection that is the stream with that representation, and goes on with how many these
/// were. As long as it waits, it has written none.
pub(in crate::host) fn send_some_then(
    call: &mut Call<'_>,
    representation: u32,
    connection: Arc<Connection>,
    address: u64,
    length: usize,
    then: impl FnOnce(&mut Call<'_>, Result<usize, Fault>) -> Result<Flat, Stop> + Send + 'static,
) -> Result<Flat, Stop> {
    match connection.write(Content::Guest(address).rest(call.memory.as_ref(), 0, length)?) {
        Ok(0) if length > 0 => Err(call.until_ready(&[Subject::Of(representation)], move |call| {
            send_some_then(call, representation, connection, address, length, then)
        })),
        result => then(call, result),
    }
}
