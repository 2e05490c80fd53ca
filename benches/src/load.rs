//! Load: so many clients, each with a connection of its own, which either send the next request when the last one was answered (a closed loop), or
//! share a rate at which requests are due whether others were answered or not (an open loop).
//!
//! In an open loop a request's latency counts from when it was due, so that a server that stalls cannot hide how long those had to wait that were not
//! even sent meanwhile. All clients share one thread, the caller's. Requests are bytes made once, and replies are read as far as their
//! framing says, so that the generator costs less than any server. That thread never sleeps: waking one costs the server that sends to it a
//! microsecond or two, and whether it sleeps depends on how fast the server is, so that the slower of two servers would pay for being slower once
//! more.

use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use bytes::Bytes;
use hdrhistogram::Histogram;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, LocalOptions};
use tokio::task::JoinHandle;

/// Longest that anything is waited for.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Headers of a reply that are read.
const HEADERS_MAX: usize = 64;
/// Room for a reply's head, in bytes.
const HEAD_BYTES_MAX: usize = 4096;
/// Longest that an error says what was wrong.
const MESSAGE_BYTES_MAX: usize = 64 << 10;
/// Sleeping wakes up to this much too late.
const SLEEP_TOO_LONG: Duration = Duration::from_millis(2);

/// What a good reply is.
#[derive(Debug, Clone)]
pub enum Expected {
    /// Any body of so many bytes.
    Length(usize),
    /// This body.
    Body(Bytes),
    /// Whatever has this status.
    Status(u16),
}

impl Expected {
    fn length_max(&self) -> usize {
        match self {
            Expected::Length(length) => *length,
            Expected::Body(body) => body.len(),
            Expected::Status(_) => MESSAGE_BYTES_MAX,
        }
    }

    pub(crate) fn is(&self, status: u16, body: &[u8]) -> bool {
        match self {
            Expected::Length(length) => status == 200 && *length == body.len(),
            Expected::Body(expected) => status == 200 && expected == body,
            Expected::Status(expected) => status == *expected,
        }
    }
}

/// What to send.
#[derive(Debug, Clone)]
pub struct Load {
    /// How many clients.
    pub clients: usize,
    /// The path.
    pub path: String,
    /// Others, which are asked in turn with it.
    pub more_paths: Vec<String>,
    /// The body.
    pub body: Vec<u8>,
    /// Headers beside the usual ones.
    pub headers: Vec<(&'static str, &'static str)>,
    /// The reply; others are errors.
    pub expected: Expected,
    /// Whether a client makes a connection for each request.
    pub reconnect: bool,
    /// Requests a second of all clients together, in an open loop; none for a closed one.
    pub rate: Option<f64>,
    /// Most requests of all clients together, those of the warm-up included.
    pub requests_max: u64,
    /// Time over which the clients begin, one after the other. Where requests share the processor evenly, those that begin together end
    /// together, and how many batches fall into the time that is measured is luck.
    pub stagger: Duration,
    /// Whether refusals (429, 503) and what is late (504) are counted instead of being errors.
    pub may_be_refused: bool,
}

impl Load {
    /// Clients in a closed loop that keep their connections.
    pub fn new(clients: usize, path: &str, body: Vec<u8>, reply_bytes: usize) -> Load {
        Load {
            clients,
            path: path.to_owned(),
            more_paths: Vec::new(),
            body,
            headers: Vec::new(),
            expected: Expected::Length(reply_bytes),
            reconnect: false,
            rate: None,
            requests_max: u64::MAX,
            stagger: Duration::ZERO,
            may_be_refused: false,
        }
    }
}

/// What came of it.
#[derive(Debug)]
pub struct Outcome {
    /// Good replies a second.
    pub per_second: f64,
    /// How long they took, in nanoseconds.
    pub latencies: Histogram<u64>,
    /// Refusals, and what was late.
    pub refused: u64,
}

impl Outcome {
    /// The longest that `share` of all took at most, in microseconds.
    pub fn quantile_us(&self, share: f64) -> f64 {
        self.latencies.value_at_quantile(share) as f64 / 1e3
    }

    /// Half took at most that long, in microseconds.
    pub fn median_us(&self) -> f64 {
        self.quantile_us(0.5)
    }

    /// Ninety-nine in a hundred took at most that long, in microseconds.
    pub fn p99_us(&self) -> f64 {
        self.quantile_us(0.99)
    }

    /// The mean, in microseconds.
    pub fn mean_us(&self) -> f64 {
        self.latencies.mean() / 1e3
    }
}

/// From when to when replies count.
#[derive(Debug, Clone, Copy)]
struct Span {
    begin: Instant,
    start: Instant,
    end: Instant,
}

/// What one client has seen.
struct Counts {
    latencies: Histogram<u64>,
    refused: u64,
    /// When it received the last reply that counts.
    last: Instant,
}

/// Sends several loads at the same time to `address`: for `warm_up` without looking, then for `time`, or until there were as many requests as
/// wanted; what ends in that time counts. An outcome for each.
///
/// # Errors
///
/// When a connection breaks or a reply is not what it should be.
pub fn run(address: SocketAddr, loads: &[Load], warm_up: Duration, time: Duration) -> Result<Vec<Outcome>> {
    let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default()).context("no runtime")?;
    runtime.block_on(async {
        let awake = tokio::task::spawn_local(stay_awake());
        let begin = Instant::now();
        let span = Span { begin, start: begin + warm_up, end: begin + warm_up + time };
        let clients = |load: &Load| -> Vec<JoinHandle<Result<Counts>>> {
            let sent = Rc::new(Cell::new(0));
            let client = |number| client(address, load.clone(), number, Rc::clone(&sent), span);
            (0..load.clients).map(|number| tokio::task::spawn_local(client(number))).collect()
        };
        let running: Vec<_> = loads.iter().map(|load| (load, clients(load))).collect();
        let mut outcomes = Vec::new();
        for (load, clients) in running {
            let (mut latencies, mut refused, mut last) = (Histogram::new(3)?, 0, span.start);
            for client in clients {
                let its = client.await??;
                latencies.add(its.latencies)?;
                refused += its.refused;
                last = last.max(its.last);
            }
            // A number of requests may be over before the time is.
            let measured = if load.requests_max == u64::MAX { time } else { last - span.start };
            let per_second = if latencies.is_empty() { 0.0 } else { latencies.len() as f64 / measured.as_secs_f64() };
            outcomes.push(Outcome { per_second, latencies, refused });
        }
        awake.abort();
        Ok(outcomes)
    })
}

/// Keeps the runtime looking for what has arrived.
async fn stay_awake() {
    loop {
        tokio::task::yield_now().await;
    }
}

async fn client(address: SocketAddr, load: Load, number: usize, sent: Rc<Cell<u64>>, span: Span) -> Result<Counts> {
    let close = if load.reconnect { "connection: close\r\n" } else { "" };
    let more: String = load.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let request = |path: &String| {
        let bytes = load.body.len();
        let head = format!("POST {path} HTTP/1.1\r\nhost: {address}\r\n{close}{more}content-length: {bytes}\r\n\r\n");
        [head.as_bytes(), &load.body].concat()
    };
    let requests: Vec<Vec<u8>> = std::iter::once(&load.path).chain(&load.more_paths).map(request).collect();
    let mut buffer = vec![0; load.expected.length_max() + HEAD_BYTES_MAX];
    let mut counts = Counts { latencies: Histogram::new(3)?, refused: 0, last: span.start };
    let mut kept = None;
    tokio::time::sleep(load.stagger.mul_f64(number as f64 / load.clients as f64)).await;
    loop {
        let index = sent.replace(sent.get() + 1);
        let due = match load.rate {
            Some(rate) => span.begin + Duration::from_secs_f64(index as f64 / rate),
            None => Instant::now(),
        };
        if due >= span.end || index >= load.requests_max {
            return Ok(counts);
        }
        wait_until(due).await;
        let mut stream = match kept.take() {
            Some(stream) => stream,
            None => connect(address).await?,
        };
        let exchange = exchange(&mut stream, &requests[index as usize % requests.len()], &mut buffer);
        let answered = if load.reconnect || load.body.len() > 10_000 {
            tokio::time::timeout(TIMEOUT, exchange).await.context("no reply")?
        } else {
            exchange.await
        };
        let (status, body) = answered.with_context(|| format!("POST {}", load.path))?;
        let received = Instant::now();
        // A request still under way at the end is not counted.
        if received >= span.end {
            return Ok(counts);
        }
        if load.may_be_refused && matches!(status, 429 | 503 | 504) {
            counts.refused += u64::from(received >= span.start);
        } else {
            let shown = || body[..body.len().min(200)].escape_ascii();
            ensure!(
                load.expected.is(status, body),
                "POST {}: a wrong reply, {status} with {} bytes: {}",
                load.path,
                body.len(),
                shown()
            );
            if received >= span.start {
                counts.latencies.record((received - due).as_nanos() as u64)?;
                counts.last = received;
            }
        }
        if !load.reconnect {
            kept = Some(stream);
        }
    }
}

/// To the microsecond, which sleeping alone is not.
async fn wait_until(due: Instant) {
    let now = Instant::now();
    if due > now + SLEEP_TOO_LONG {
        tokio::time::sleep_until((due - SLEEP_TOO_LONG).into()).await;
    }
    while Instant::now() < due {
        tokio::task::yield_now().await;
    }
}

pub(crate) async fn connect(address: SocketAddr) -> Result<TcpStream> {
    let stream = TcpStream::connect(address).await.context("cannot connect")?;
    stream.set_nodelay(true)?;
    // So that ports of closed connections are free again at once.
    stream.set_zero_linger()?;
    Ok(stream)
}

/// Sends a request and reads the whole reply: its status and its body.
pub(crate) async fn exchange<'a>(stream: &mut TcpStream, request: &[u8], buffer: &'a mut [u8]) -> Result<(u16, &'a [u8])> {
    let (mut reader, mut writer) = stream.split();
    let receive = async {
        let mut filled = 0;
        loop {
            let count = reader.read(&mut buffer[filled..]).await?;
            ensure!(count > 0, "the connection was closed after {filled} bytes");
            filled += count;
            if let Some(head) = parse(&buffer[..filled])?
                && let Some(body_bytes) = head.body.end(&mut buffer[head.bytes..filled])?
            {
                return Ok((head.status, &buffer[head.bytes..head.bytes + body_bytes]));
            }
            ensure!(filled < buffer.len(), "the reply is too long");
        }
    };
    if request.len() <= 10_000 {
        writer.write_all(request).await?;
        return receive.await;
    }
    // A server may answer while it still reads.
    let send = async { writer.write_all(request).await.map_err(anyhow::Error::from) };
    Ok(tokio::try_join!(send, receive)?.1)
}

/// What the head of a reply says.
#[derive(Debug, PartialEq, Eq)]
struct Head {
    status: u16,
    bytes: usize,
    body: Framing,
}

/// How a body ends.
#[derive(Debug, PartialEq, Eq)]
enum Framing {
    /// After so many bytes.
    Length(usize),
    /// With a chunk of nothing.
    Chunks,
}

impl Framing {
    /// The length of the body, once all of it is there; then it stands at the beginning of `bytes`.
    fn end(&self, bytes: &mut [u8]) -> Result<Option<usize>> {
        let Framing::Length(length) = self else { return end_of_chunks(bytes) };
        Ok((bytes.len() >= *length).then_some(*length))
    }
}

/// The length of a body in chunks (RFC 9112, section 7.1), once all of it is there, and its trailers; then its chunks stand at the beginning of `bytes` one behind the
/// other.
fn end_of_chunks(bytes: &mut [u8]) -> Result<Option<usize>> {
    let (mut at, mut pieces) = (0, Vec::new());
    loop {
        let size = httparse::parse_chunk_size(&bytes[at..]).map_err(|_| anyhow!("a chunk without a size"))?;
        let httparse::Status::Complete((line, size)) = size else { return Ok(None) };
        at += line;
        let size = usize::try_from(size)?;
        if size == 0 {
            break;
        }
        pieces.push(at..at + size);
        at += size + b"\r\n".len();
        if at > bytes.len() {
            return Ok(None);
        }
    }
    let mut trailers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let is_there = httparse::parse_headers(&bytes[at..], &mut trailers).context("trailers")?.is_complete();
    let mut length = 0;
    for piece in pieces.into_iter().filter(|_| is_there) {
        let size = piece.len();
        bytes.copy_within(piece, length);
        length += size;
    }
    Ok(is_there.then_some(length))
}

/// The head, once it is there.
fn parse(bytes: &[u8]) -> Result<Option<Head>> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut response = httparse::Response::new(&mut headers);
    let httparse::Status::Complete(length) = response.parse(bytes).context("the reply is not HTTP")? else { return Ok(None) };
    let value =
        |name: &str| response.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name)).map(|header| header.value);
    let body = match (value("transfer-encoding"), value("content-length")) {
        (Some(b"chunked"), _) => Framing::Chunks,
        (Some(other), _) => bail!("the reply is sent as {}", other.escape_ascii()),
        (None, Some(digits)) => Framing::Length(std::str::from_utf8(digits)?.parse().context("content-length")?),
        (None, None) => Framing::Length(0),
    };
    Ok(Some(Head { status: response.code.context("a reply without a status")?, bytes: length, body }))
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_reply_is_read_as_far_as_its_head_says() {
        assert_eq!(parse(b"HTTP/1.1 200 OK\r\ncontent-length: 12\r\n").unwrap(), None);
        let head = |status, bytes, length| Some(Head { status, bytes, body: Framing::Length(length) });
        assert_eq!(parse(b"HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\nab").unwrap(), head(200, 39, 12));
        assert_eq!(parse(b"HTTP/1.1 503 Busy\r\n\r\n").unwrap(), head(503, 21, 0));
        let chunked = parse(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n").unwrap();
        assert_eq!(chunked, Some(Head { status: 200, bytes: 47, body: Framing::Chunks }));
        assert!(parse(b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\n").is_err());
        assert!(parse(b"SSH-2.0\r\n\r\n").is_err());
        let whole = b"2\r\nab\r\n10\r\n0123456789abcdef\r\n0\r\nx: y\r\n\r\n";
        for end in 0..whole.len() {
            assert_eq!(end_of_chunks(&mut whole[..end].to_vec()).unwrap(), None, "{end}");
        }
        let mut bytes = whole.to_vec();
        assert_eq!(end_of_chunks(&mut bytes).unwrap(), Some(18));
        assert_eq!(&bytes[..18], b"ab0123456789abcdef");
        assert!(end_of_chunks(&mut b"x\r\n".to_vec()).is_err());
    }

    /// A server of one connection, which answers `body` and stalls before its first reply.
    fn server(body: &'static str, stall: Duration) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut stall = Some(stall);
            let mut request = [0; 1024];
            // Each request fits into one segment, and no client sends a second before the reply.
            while stream.read(&mut request).is_ok_and(|count| count > 0) {
                std::thread::sleep(stall.take().unwrap_or_default());
                let reply = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
                if stream.write_all(reply.as_bytes()).is_err() {
                    break;
                }
            }
        });
        address
    }

    #[test]
    fn a_stall_is_seen_by_all_that_were_due_meanwhile() {
        const STALL: Duration = Duration::from_millis(200);
        let open = Load { rate: Some(100.0), requests_max: 40, ..Load::new(1, "/", Vec::new(), 2) };
        let closed = Load { rate: None, ..open.clone() };
        let time = Duration::from_secs(20);
        let late = |load: Load| {
            let outcome = run(server("ok", STALL), &[load], Duration::ZERO, time).unwrap().remove(0);
            assert_eq!(outcome.latencies.len(), 40);
            outcome
                .latencies
                .iter_recorded()
                .filter(|step| step.value_iterated_to() > 20_000_000)
                .map(|step| step.count_since_last_iteration())
                .sum::<u64>()
        };
        // Twenty were due in 200 ms; the last two of them hardly had to wait.
        assert!(late(open) >= 15);
        assert!(late(closed) < 10);
    }

    #[test]
    fn a_wrong_body_is_an_error() {
        let expecting = |body: &'static str| Load {
            requests_max: 3,
            expected: Expected::Body(Bytes::from_static(body.as_bytes())),
            ..Load::new(1, "/", Vec::new(), 0)
        };
        let run = |load| run(server("ok", Duration::ZERO), &[load], Duration::ZERO, Duration::from_secs(20));
        assert_eq!(run(expecting("ok")).unwrap()[0].latencies.len(), 3);
        let error = format!("{:#}", run(expecting("no")).unwrap_err());
        assert!(error.contains("a wrong reply, 200 with 2 bytes: ok"), "{error}");
    }
}
