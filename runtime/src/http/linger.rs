//! A stream that is closed with patience, written to without too much of it, and read with a look at what it says of itself.
//!
//! A client that fetches nothing of its reply would keep it in memory for ever: where nothing can be written for a while, the connection ends.
//!
//! A server that answers before it has read the whole request (413) and then closes the socket makes the kernel send a reset, which may
//! overtake the answer. So the sending side is closed first, and what the client still sends is read and dropped for a while.
//!
//! A small reply is written in one piece, its head and its body together: the kernel takes one piece cheaper than two.
//!
//! What comes is [followed](Watch): a request whose chunks are too long is read no further, and a client that sends nothing but frames of HTTP/2
//! that carry nothing is told so and left.

use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use smallvec::SmallVec;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

use super::calm::Calm;
use super::connections::Activity;
use super::framing::Framing;
use crate::tls::Stream;

/// How long a client may go on sending after it was answered.
const TIME_MAX: Duration = Duration::from_secs(2);
/// How much it may send.
const BYTES_MAX: usize = 64 << 20;

/// Pieces that have so many bytes together at most are written as one.
const JOINED_BYTES_MAX: usize = 1 << 10;

/// How what comes is followed.
#[derive(Debug)]
pub(super) enum Watch {
    /// With HTTP/1.
    Http1(Framing),
    /// With HTTP/2.
    Http2(Calm),
}

/// A stream whose shutdown, when it is told so, waits until the client has stopped sending.
#[derive(Debug)]
pub(super) struct Lingering {
    stream: Stream,
    /// Which says at the end whether to wait.
    activity: Rc<Activity>,
    /// How long the client may fetch nothing.
    stall_max: Duration,
    /// While it does.
    stalled: Option<Pin<Box<Sleep>>>,
    closing: Option<Closing>,
    /// Whether the client has closed its side.
    at_end: bool,
    watch: Watch,
    /// Whether everything that was to be written is: nothing stops in the middle of a frame.
    is_written: bool,
    /// Whether the client was told that it is left.
    is_left: bool,
}

#[derive(Debug)]
struct Closing {
    deadline: Pin<Box<Sleep>>,
    dropped: usize,
}

impl Lingering {
    /// Takes a stream over.
    pub(super) const fn new(stream: Stream, activity: Rc<Activity>, stall_max: Duration, watch: Watch) -> Lingering {
        Lingering {
            stream,
            activity,
            stall_max,
            stalled: None,
            closing: None,
            at_end: false,
            watch,
            is_written: true,
            is_left: false,
        }
    }

    /// Follows what has come; whether anything may be done with it.
    fn follow(&mut self, bytes: &mut [u8]) -> bool {
        match &mut self.watch {
            Watch::Http1(framing) => {
                framing.follow(bytes);
                if let Some((request, refusal)) = framing.refused() {
                    self.activity.refuse(request, refusal);
                }
                true
            }
            Watch::Http2(calm) => calm.bears(bytes),
        }
    }

    /// Tells a client why it is left, where it can be told.
    fn say_goodbye(&mut self, task: &mut Context<'_>) {
        let Watch::Http2(calm) = &self.watch else { return };
        tracing::debug!("a client sends too many frames that carry nothing");
        if self.is_written {
            // The client is told once. One that fetches nothing is not told.
            let _ = Pin::new(&mut self.stream).poll_write(task, &calm.goodbye());
            let _ = Pin::new(&mut self.stream).poll_flush(task);
        }
        self.activity.linger();
        self.is_left = true;
    }

    /// Notes what came of writing so many bytes.
    fn note_written(&mut self, bytes: usize, written: &Poll<io::Result<usize>>) {
        if let Watch::Http2(calm) = &mut self.watch {
            self.is_written = matches!(written, Poll::Ready(Ok(written)) if *written == bytes);
            if let Poll::Ready(Ok(written)) = written {
                calm.sent(*written);
            }
        }
    }

    /// Passes on what came of writing; an error when nothing did for too long.
    fn unless_stalled<T>(&mut self, task: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            if self.stalled.take().is_some() {
                self.activity.writes(false);
            }
            return written;
        }
        let time = self.stall_max;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep(time)));
        self.activity.writes(true);
        stalled.as_mut().poll(task).map(|()| Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not fetch its reply")))
    }
}

impl AsyncRead for Lingering {
    fn poll_read(mut self: Pin<&mut Self>, task: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.activity.is_any_too_large() {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, "a chunk is longer than `body_bytes_max`")));
        }
        if self.is_left {
            // What else it sends is dropped for a while, so that it learns why; then, as if it had closed its side.
            return self.poll_shutdown(task);
        }
        let before = into.filled().len();
        let result = Pin::new(&mut self.stream).poll_read(task, into);
        if matches!(result, Poll::Ready(Ok(()))) {
            self.at_end = into.filled().len() == before && into.remaining() > 0;
            if !self.follow(&mut into.filled_mut()[before..]) {
                self.say_goodbye(task);
                into.set_filled(before);
                return self.poll_shutdown(task);
            }
        }
        result
    }
}

impl AsyncWrite for Lingering {
    fn poll_write(mut self: Pin<&mut Self>, task: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.is_left {
            return Poll::Ready(Ok(bytes.len()));
        }
        let written = Pin::new(&mut self.stream).poll_write(task, bytes);
        self.note_written(bytes.len(), &written);
        self.unless_stalled(task, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let bytes = buffers.iter().map(|buffer| buffer.len()).sum();
        if self.is_left {
            return Poll::Ready(Ok(bytes));
        }
        let stream = Pin::new(&mut self.stream);
        let written = if bytes <= JOINED_BYTES_MAX {
            let mut joined = SmallVec::<[u8; JOINED_BYTES_MAX]>::new();
            buffers.iter().for_each(|buffer| joined.extend_from_slice(buffer));
            stream.poll_write(task, &joined)
        } else {
            stream.poll_write_vectored(task, buffers)
        };
        self.note_written(bytes, &written);
        self.unless_stalled(task, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        // With TLS, what was written may still wait here.
        let flushed = Pin::new(&mut self.stream).poll_flush(task);
        self.unless_stalled(task, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.closing.is_none() {
            let shut = Pin::new(&mut this.stream).poll_shutdown(task);
            std::task::ready!(this.unless_stalled(task, shut))?;
        }
        let begin = || Closing { deadline: Box::pin(tokio::time::sleep(TIME_MAX)), dropped: 0 };
        let closing = this.closing.get_or_insert_with(begin);
        this.activity.writes(true);
        let mut buffer = [0; 8 << 10];
        while this.activity.lingers()
            && !this.at_end
            && closing.dropped < BYTES_MAX
            && closing.deadline.as_mut().poll(task).is_pending()
        {
            let mut buffer = ReadBuf::new(&mut buffer);
            // An error means that the client has gone.
            if std::task::ready!(Pin::new(&mut this.stream).poll_read(task, &mut buffer)).is_err() {
                break;
            }
            this.at_end = buffer.filled().is_empty();
            closing.dropped += buffer.filled().len();
        }
        Poll::Ready(Ok(()))
    }
}
