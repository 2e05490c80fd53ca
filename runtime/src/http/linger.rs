//! A stream that is closed with patience.
//!
//! A server that answers before it has read the whole request (413) and then closes the socket makes the kernel send a reset, which may
//! overtake the answer. So the sending side is closed first, and what the client still sends is read and dropped for a while.

use std::cell::Cell;
use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;

/// How long a client may go on sending after it was answered.
const TIME_MAX: Duration = Duration::from_secs(2);
/// How much it may send.
const BYTES_MAX: usize = 64 << 20;

/// A TCP stream whose shutdown, when it is told so, waits until the client has stopped sending.
#[derive(Debug)]
pub(super) struct Lingering {
    stream: TcpStream,
    wanted: Rc<Cell<bool>>,
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
    /// Takes a stream over; `wanted` says at the end whether to wait.
    pub(super) const fn new(stream: TcpStream, wanted: Rc<Cell<bool>>) -> Lingering {
        Lingering { stream, wanted, closing: None, at_end: false }
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
        Pin::new(&mut self.stream).poll_write(task, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(task, buffers)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(task)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let closing = match &mut this.closing {
            Some(closing) => closing,
            None => {
                std::task::ready!(Pin::new(&mut this.stream).poll_shutdown(task))?;
                this.closing.insert(Closing { deadline: Box::pin(tokio::time::sleep(TIME_MAX)), dropped: 0 })
            }
        };
        let mut buffer = [0; 8 << 10];
        while this.wanted.get()
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
