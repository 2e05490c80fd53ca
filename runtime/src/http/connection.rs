//! One connection's life: HTTP/1.1 with keep-alive, or HTTP/2, until either side closes it, it is idle for too long, or the server stops.
//!
//! Whoever begins with HTTP/2's preface gets HTTP/2; with TLS, whoever agrees to it in the handshake (ALPN). Whoever begins with a line that
//! names no HTTP is not answered.

use std::cell::Cell;
use std::convert::Infallible;
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::{Body as _, Incoming};
use hyper::header::{CONNECTION, HeaderValue};
use hyper::rt::Executor;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode, Version};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::linger::Lingering;
use super::{Door, Open, request, tls};
use crate::scheduler::Phase;

/// How long a connection is kept for one more request when the server stops: a client that is about to send one, or has sent it already, is
/// answered and told to close, instead of finding the connection closed.
const LAST_REQUEST: Duration = Duration::from_millis(100);
/// How long a connection has to be idle to be closed when there is no room for others.
const SHED_IDLE: Duration = Duration::from_secs(1);
/// What is kept of a connection that has not been read: a request's head has to fit.
const BUFFER_BYTES_MAX: usize = 128 << 10;
/// How much of a request's head HTTP/2 takes.
const HEAD_BYTES_MAX: u32 = 64 << 10;
/// Requests at the same time on one connection with HTTP/2.
const STREAMS_MAX: u32 = 128;
/// Frames of HTTP/2 that wait to be sent, for each stream.
const SEND_BYTES_MAX: usize = 256 << 10;
/// How often somebody with HTTP/2 is asked whether he is still there, and how long he has to answer.
const PING_INTERVAL: Duration = Duration::from_secs(30);
/// What whoever speaks HTTP/2 begins with (RFC 9113, 3.4).
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// How much of what a client begins with is looked at.
const GREETING_BYTES: usize = 64;
/// How long to wait for more of what may be the preface; twice as long each time, so that those who send no more of it cost little.
const PREFACE_PAUSE: Duration = Duration::from_millis(5);
/// But no longer than that.
const PREFACE_PAUSE_MAX: Duration = Duration::from_secs(1);

/// A connection that is counted, and counted again when it ends.
struct Counted(Rc<Door>);

impl Counted {
    fn new(door: Rc<Door>) -> Counted {
        door.board.thread().accepted.add(1);
        Counted(door)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.board.thread().closed.add(1);
    }
}

/// What happens on a connection.
struct Activity {
    /// Requests that are not answered yet.
    requests: Cell<usize>,
    /// When the last one was answered, or the connection began.
    since: Cell<Instant>,
    /// Whether to close with patience.
    linger: Rc<Cell<bool>>,
}

impl Activity {
    fn is_idle_for(&self, time: Duration) -> bool {
        self.requests.get() == 0 && self.since.get().elapsed() >= time
    }
}

/// A request that is not answered yet.
struct UnderWay<'a>(&'a Activity);

impl<'a> UnderWay<'a> {
    fn new(activity: &'a Activity) -> UnderWay<'a> {
        activity.requests.set(activity.requests.get() + 1);
        UnderWay(activity)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.requests.set(self.0.requests.get() - 1);
        self.0.since.set(Instant::now());
    }
}

/// What two sides agreed to speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    Http1,
    Http2,
}

/// Serves a connection until it is closed. When `stop` changes, it is closed after the request that is being answered, or that comes soon.
pub async fn serve(open: Open, stream: TcpStream, mut stop: watch::Receiver<bool>) {
    let door = Rc::clone(open.door());
    let _counted = Counted::new(Rc::clone(&door));
    // Replies are written at once; delaying small ones gains nothing.
    let _ = stream.set_nodelay(true);
    let linger = Rc::new(Cell::new(false));
    let activity = Rc::new(Activity { requests: Cell::new(0), since: Cell::new(Instant::now()), linger: Rc::clone(&linger) });
    let last_call = async {
        let _ = stop.wait_for(|stop| *stop).await;
        sleep(LAST_REQUEST).await;
    };
    let mut last_call = pin!(last_call);
    let head_timeout = door.timeouts.head;
    if let Some(acceptor) = &door.tls {
        let handshake = tokio::select! {
            handshake = timeout(head_timeout, acceptor.accept(stream)) => handshake,
            () = last_call.as_mut() => return,
            () = shed(&door, &activity) => return,
        };
        let Ok(Ok(stream)) = handshake else {
            tracing::debug!("a TLS handshake failed");
            return;
        };
        let protocol = if tls::is_http2(&stream) { Protocol::Http2 } else { Protocol::Http1 };
        let stream = Lingering::new(stream, linger, door.timeouts.reply);
        speak(protocol, stream, &door, &activity, last_call).await;
        return;
    }
    let protocol = tokio::select! {
        biased;
        protocol = timeout(head_timeout, begins_with(&stream)) => protocol,
        () = last_call.as_mut() => return,
        () = shed(&door, &activity) => return,
    };
    let Ok(Ok(protocol)) = protocol else { return };
    speak(protocol, Lingering::new(stream, linger, door.timeouts.reply), &door, &activity, last_call).await;
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
            // With bytes that nobody read, the connection would be closed with a reset.
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

/// Whether a first line is there that is no request's. RFC 9113 wants such a connection closed (3.4), where RFC 9112 suggests an answer (3): whoever
/// does not speak HTTP/1.1 does not understand it.
fn names_no_http(greeting: &[u8]) -> bool {
    let mut lines = greeting.split(|byte| *byte == b'\n');
    // What is behind the last end of a line is none yet. hyper skips empty lines.
    let (line, is_whole) = (lines.next().unwrap_or_default().trim_ascii_end(), lines.next().is_some());
    is_whole && !line.is_empty() && !line.rsplit(|byte| *byte == b' ').next().is_some_and(|version| version.starts_with(b"HTTP/"))
}

async fn speak(
    protocol: Protocol,
    stream: Lingering<impl AsyncRead + AsyncWrite + Unpin + 'static>,
    door: &Rc<Door>,
    activity: &Rc<Activity>,
    stopping: impl Future<Output = ()>,
) {
    let io = TokioIo::new(stream);
    let service = service_fn(|request: Request<Incoming>| {
        let (door, activity) = (Rc::clone(door), Rc::clone(activity));
        async move { Ok::<_, Infallible>(answer(&door, &activity, request).await) }
    });
    let result = match protocol {
        Protocol::Http1 => {
            let mut builder = http1::Builder::new();
            builder.timer(TokioTimer::new()).header_read_timeout(door.timeouts.head).max_buf_size(BUFFER_BYTES_MAX);
            let mut connection = pin!(builder.serve_connection(io, service));
            tokio::select! {
                biased;
                result = connection.as_mut() => result,
                () = stopping => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
                () = shed(door, activity) => return,
            }
        }
        Protocol::Http2 => {
            let mut builder = http2::Builder::new(SameThread);
            builder
                .timer(TokioTimer::new())
                .max_concurrent_streams(STREAMS_MAX)
                .max_header_list_size(HEAD_BYTES_MAX)
                .max_send_buf_size(SEND_BYTES_MAX)
                .keep_alive_interval(PING_INTERVAL)
                .keep_alive_timeout(PING_INTERVAL);
            let mut connection = pin!(builder.serve_connection(io, service));
            tokio::select! {
                biased;
                result = connection.as_mut() => result,
                () = stopping => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
                () = idle(door.timeouts.head, activity) => {
                    connection.as_mut().graceful_shutdown();
                    // Replies that nobody fetches are not kept for ever.
                    timeout(door.timeouts.reply, connection).await.unwrap_or(Ok(()))
                }
                () = shed(door, activity) => return,
            }
        }
    };
    if let Err(error) = result {
        tracing::debug!(%error, "a connection ended early");
    }
}

async fn answer(door: &Door, activity: &Activity, request: Request<Incoming>) -> Response<Full<Bytes>> {
    let _under_way = UnderWay::new(activity);
    let has_body = !request.body().is_end_stream();
    let version = request.version();
    let mut response = request::answer(door, request).await;
    if version >= Version::HTTP_2 {
        // Which has another way to say that (RFC 9113, 8.2.2).
        response.headers_mut().remove(CONNECTION);
        return response;
    }
    if door.crew.phase() != Phase::Serving {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    // Perhaps the body was not read: then hyper closes the connection while the client still sends.
    if has_body && response.status() != StatusCode::OK {
        activity.linger.set(true);
    }
    response
}

/// Waits until nobody has asked for anything for that long.
async fn idle(time: Duration, activity: &Activity) {
    while !activity.is_idle_for(time) {
        let left = time.saturating_sub(activity.since.get().elapsed());
        // While there are requests, the time does not run.
        sleep(if activity.requests.get() > 0 { time } else { left }).await;
    }
}

/// Waits until there is no room for other connections, and this one is idle.
async fn shed(door: &Door, activity: &Activity) {
    loop {
        door.shed.notified().await;
        if activity.is_idle_for(SHED_IDLE) {
            return;
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
