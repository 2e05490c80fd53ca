//! A stream that is closed with patience, and written to without too much of it.
//!
//! A client that fetches nothing of its reply would keep it in memory for ever: where nothing can be written for a while, the connection ends.
//!
//! A server that answers before it has read the whole request (413) and then closes the socket makes the kernel send a reset, which may
//! overtake the answer. So the sending side is closed first, and what the client still sends is read and dropped for a while.

use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

use super::connections::Activity;
use super::tls::Stream;

/// How long a client may go on sending after it was answered.
const TIME_MAX: Duration = Duration::from_secs(2);
/// How much it may send.
const BYTES_MAX: usize = 64 << 20;

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
}

#[derive(Debug)]
struct Closing {
    deadline: Pin<Box<Sleep>>,
    dropped: usize,
}

impl Lingering {
    /// Takes a stream over.
    pub(super) const fn new(stream: Stream, activity: Rc<Activity>, stall_max: Duration) -> Lingering {
        Lingering { stream, activity, stall_max, stalled: None, closing: None, at_end: false }
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
        let before = into.filled().len();
        let result = Pin::new(&mut self.stream).poll_read(task, into);
        if matches!(result, Poll::Ready(Ok(()))) && into.filled().len() == before && into.remaining() > 0 {
            self.at_end = true;
        }
        result
    }
}

impl AsyncWrite for Lingering {
    fn poll_write(mut self: Pin<&mut Self>, task: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(task, bytes);
        self.unless_stalled(task, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(task, buffers);
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
            // An error means that nobody is there any more.
            if std::task::ready!(Pin::new(&mut this.stream).poll_read(task, &mut buffer)).is_err() {
                break;
            }
            this.at_end = buffer.filled().is_empty();
            closing.dropped += buffer.filled().len();
        }
        Poll::Ready(Ok(()))
    }
}
