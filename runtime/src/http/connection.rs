//! One connection's life: HTTP/1.1 with keep-alive, or HTTP/2, until either side closes it, it is idle for too long, or the server stops.
//!
//! A client that begins with HTTP/2's preface gets HTTP/2; with TLS, one that agrees to it in the handshake (ALPN). A client that begins with a line that
//! names no HTTP is not answered.

use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use hyper::rt::Executor;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use super::calm::Calm;
use super::connections::{Activity, Order};
use super::framing::Framing;
use super::linger::{Lingering, Watch};
use super::request::Answering;
use super::{HttpService, Open, Site};
use crate::tls::{self, Stream};

/// What is kept of a connection that has not been read: a request's head has to fit.
const BUFFER_BYTES_MAX: usize = 128 << 10;
/// How much of a request's head HTTP/2 takes.
const HEAD_BYTES_MAX: u32 = 64 << 10;
/// Requests at the same time on one connection with HTTP/2.
const STREAMS_MAX: u32 = 128;
/// Frames of HTTP/2 that wait to be sent, for each stream.
const SEND_BYTES_MAX: usize = 256 << 10;
/// How often a client with HTTP/2 is asked whether it is still there, and how long it has to answer.
const PING_INTERVAL: Duration = Duration::from_secs(30);
/// The preface of HTTP/2 (RFC 9113, 3.4).
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// How much of what a client begins with is looked at.
const GREETING_BYTES: usize = 64;
/// How long to wait for more of what may be the preface; twice as long each time, so that clients that send no more of it cost little.
const PREFACE_PAUSE: Duration = Duration::from_millis(5);
/// But no longer than that.
const PREFACE_PAUSE_MAX: Duration = Duration::from_secs(1);

/// A connection that is counted, and counted again when it ends.
struct Counted(Rc<HttpService>);

impl Counted {
    fn new(service: Rc<HttpService>) -> Counted {
        service.shard.thread().accepted.add(1);
        Counted(service)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.shard.thread().closed.add(1);
    }
}

/// What two sides agreed to speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    Http1,
    Http2,
}

/// Serves a connection until it is closed, or told to end.
pub async fn serve(open: Open, site: Site, stream: TcpStream) {
    let service = open.service();
    let _counted = Counted::new(Rc::clone(service));
    let listed = service.connections.add();
    let activity = &listed.activity;
    // Replies are written at once; delaying small ones gains nothing.
    let _ = stream.set_nodelay(true);
    let greeted = tokio::select! {
        biased;
        greeted = greet(service, stream) => greeted,
        _ = activity.order() => return,
    };
    let (protocol, stream) = match greeted {
        Ok(greeted) => greeted,
        Err(error) => return tracing::debug!(%error, "a connection ended before its first request"),
    };
    let watch = match protocol {
        Protocol::Http1 => Watch::Http1(Framing::new(service.body_bytes_max)),
        Protocol::Http2 => Watch::Http2(Calm::new()),
    };
    let io = TokioIo::new(Lingering::new(stream, Rc::clone(activity), service.timeouts.reply, watch));
    let result = match protocol {
        Protocol::Http1 => speak_http1(io, service, site, activity).await,
        // Larger than the other, and rarer: not in every connection's task.
        Protocol::Http2 => Box::pin(speak_http2(io, service, site, activity)).await,
    };
    if let Err(error) = result {
        tracing::debug!(%error, "a connection ended early");
    }
}

/// Finds out what the client speaks.
async fn greet(service: &HttpService, stream: TcpStream) -> io::Result<(Protocol, Stream)> {
    match &service.tls {
        None => Ok((begins_with(&stream).await?, Stream::Plain(stream))),
        Some(certificate) => {
            let stream = Box::new(certificate.acceptor().accept(stream).await?);
            let protocol = if tls::is_http2(&stream) { Protocol::Http2 } else { Protocol::Http1 };
            Ok((protocol, Stream::Tls(stream)))
        }
    }
}

/// What the client begins to speak; looks without taking anything away.
async fn begins_with(stream: &TcpStream) -> io::Result<Protocol> {
    let mut greeting = [0; GREETING_BYTES];
    let mut pause = PREFACE_PAUSE;
    loop {
        let count = stream.peek(&mut greeting).await?;
        let greeting = &greeting[..count];
        if greeting.starts_with(PREFACE) {
            return Ok(Protocol::Http2);
        }
        if names_no_http(greeting) {
            // With unread bytes, the connection would be closed with a reset.
            let _ = stream.try_read(&mut [0; 16 * GREETING_BYTES]);
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the client speaks no HTTP"));
        }
        if count == 0 || !PREFACE.starts_with(greeting) {
            return Ok(Protocol::Http1);
        }
        // The kernel has told already that there is something; it does not tell that there is more.
        sleep(pause).await;
        pause = (pause * 2).min(PREFACE_PAUSE_MAX);
    }
}

/// Whether a first line is there that is no request's. RFC 9113 wants such a connection closed (3.4), where RFC 9112 suggests an answer (3): a client that
/// does not speak HTTP/1.1 does not understand it.
fn names_no_http(greeting: &[u8]) -> bool {
    let mut lines = greeting.split(|byte| *byte == b'\n');
    // What is behind the last end of a line is none yet. hyper skips empty lines.
    let (line, is_whole) = (lines.next().unwrap_or_default().trim_ascii_end(), lines.next().is_some());
    is_whole && !line.is_empty() && !line.rsplit(|byte| *byte == b' ').next().is_some_and(|version| version.starts_with(b"HTTP/"))
}

async fn speak_http1(
    io: TokioIo<Lingering>,
    service: &Rc<HttpService>,
    site: Site,
    activity: &Rc<Activity>,
) -> hyper::Result<()> {
    let handler = service_fn(|request| Answering::new(service, site, activity, request));
    let mut builder = http1::Builder::new();
    // Slow heads are the list's concern (`connections`).
    builder.header_read_timeout(None).max_buf_size(BUFFER_BYTES_MAX);
    let mut connection = pin!(builder.serve_connection(io, handler));
    loop {
        tokio::select! {
            biased;
            result = connection.as_mut() => return result,
            order = activity.order() => match order {
                Order::Finish => connection.as_mut().graceful_shutdown(),
                // A request may have come together with the order.
                Order::Expire | Order::Yield if activity.idle_since_ms().is_none() => {}
                Order::Expire | Order::Yield => return Ok(()),
            }
        }
    }
}

async fn speak_http2(
    io: TokioIo<Lingering>,
    service: &Rc<HttpService>,
    site: Site,
    activity: &Rc<Activity>,
) -> hyper::Result<()> {
    let handler = service_fn(|request| Answering::new(service, site, activity, request));
    let mut builder = http2::Builder::new(SameThread);
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_MAX)
        .max_header_list_size(HEAD_BYTES_MAX)
        .max_send_buf_size(SEND_BYTES_MAX)
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_INTERVAL);
    let mut connection = pin!(builder.serve_connection(io, handler));
    loop {
        tokio::select! {
            biased;
            result = connection.as_mut() => return result,
            order = activity.order() => match order {
                Order::Finish => connection.as_mut().graceful_shutdown(),
                Order::Expire => {
                    connection.as_mut().graceful_shutdown();
                    // Replies that the client does not fetch are not kept for ever.
                    return timeout(service.timeouts.reply, connection).await.unwrap_or(Ok(()));
                }
                Order::Yield if activity.idle_since_ms().is_none() => {}
                Order::Yield => return Ok(()),
            }
        }
    }
}

/// Runs what HTTP/2 does for each stream on the thread of its connection.
#[derive(Clone, Copy, Debug)]
struct SameThread;

impl<F: Future<Output: 'static> + 'static> Executor<F> for SameThread {
    fn execute(&self, future: F) {
        tokio::task::spawn_local(future);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_line_that_names_no_http_is_foreign() {
        for greeting in
            ["GET / HTTP/1.1\r\n", "GET / HTTP/9\n", "\r\nGET / HTTP/1.1\r\n", "INVALID CONNECTION PREFACE", "GET /a/long", ""]
        {
            assert!(!names_no_http(greeting.as_bytes()), "{greeting:?}");
        }
        for greeting in ["INVALID CONNECTION PREFACE\r\n\r\n", "SSH-2.0-OpenSSH\r\n", "GET /HTTP/1.1\n", "HELO\n"] {
            assert!(names_no_http(greeting.as_bytes()), "{greeting:?}");
        }
    }
}
