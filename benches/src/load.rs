//! Load: so many clients, each of which sends the next request when the last one was answered.
//!
//! They share one thread, the caller's. Requests are bytes made once, replies are read as far as their `content-length` says, so that the
//! generator costs less than any server. That thread never sleeps: waking one costs whoever sends to it a microsecond or two of its own
//! time, and whether it sleeps depends on how fast the server is, so that the slower of two servers would pay for being slower once more.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use hdrhistogram::Histogram;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, LocalOptions};
use tokio::task::JoinHandle;

/// Longest that anything is waited for.
const TIMEOUT: Duration = Duration::from_secs(30);

/// What to send.
#[derive(Debug, Clone)]
pub struct Load {
    /// How many clients.
    pub clients: usize,
    /// The path.
    pub path: &'static str,
    /// The body.
    pub body: Vec<u8>,
    /// Length of the replies; others are errors.
    pub reply_bytes: usize,
    /// Whether a client makes a connection for each request.
    pub reconnect: bool,
    /// How often each client sends; none to send as soon as it was answered.
    pub every: Option<Duration>,
    /// Time over which the clients begin, one after the other. Where requests share the processor evenly, those that begin together end
    /// together, and how many batches fall into the time that is measured is luck.
    pub stagger: Duration,
    /// Whether refusals (429, 503) are counted instead of being errors.
    pub may_be_refused: bool,
}

impl Load {
    /// Clients that keep their connections.
    pub fn new(clients: usize, path: &'static str, body: Vec<u8>, reply_bytes: usize) -> Load {
        Load { clients, path, body, reply_bytes, reconnect: false, every: None, stagger: Duration::ZERO, may_be_refused: false }
    }
}

/// What came of it.
#[derive(Debug)]
pub struct Outcome {
    /// Good replies a second.
    pub per_second: f64,
    /// How long they took, in nanoseconds.
    pub latencies: Histogram<u64>,
    /// Refusals.
    pub refused: u64,
}

impl Outcome {
    /// Half took at most that long, in microseconds.
    pub fn median_us(&self) -> f64 {
        self.latencies.value_at_quantile(0.5) as f64 / 1e3
    }

    /// Ninety-nine in a hundred took at most that long, in microseconds.
    pub fn p99_us(&self) -> f64 {
        self.latencies.value_at_quantile(0.99) as f64 / 1e3
    }
}

/// What one client has seen: how long good replies took, and how often it was refused.
type Counts = (Histogram<u64>, u64);

/// Sends several loads at the same time to `address`: for `warm_up` without looking, then for `time`; what ends in that time counts. An outcome for each.
///
/// # Errors
///
/// When a connection breaks or a reply is not what it should be.
pub fn run(address: SocketAddr, loads: &[Load], warm_up: Duration, time: Duration) -> Result<Vec<Outcome>> {
    let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default()).context("no runtime")?;
    runtime.block_on(async {
        let awake = tokio::task::spawn_local(stay_awake());
        let start = Instant::now() + warm_up;
        let end = start + time;
        let clients = |load: &Load| -> Vec<JoinHandle<Result<Counts>>> {
            (0..load.clients)
                .map(|number| tokio::task::spawn_local(client(address, load.clone(), number as u32, start, end)))
                .collect()
        };
        let running: Vec<_> = loads.iter().map(clients).collect();
        let mut outcomes = Vec::new();
        for clients in running {
            let (mut latencies, mut refused) = (Histogram::new(3)?, 0);
            for client in clients {
                let (its, its_refused) = client.await??;
                latencies.add(its)?;
                refused += its_refused;
            }
            let per_second = latencies.len() as f64 / time.as_secs_f64();
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

async fn client(address: SocketAddr, load: Load, number: u32, start: Instant, end: Instant) -> Result<Counts> {
    let close = if load.reconnect { "connection: close\r\n" } else { "" };
    let head = format!("POST {} HTTP/1.1\r\nhost: {address}\r\n{close}content-length: {}\r\n\r\n", load.path, load.body.len());
    let request = [head.as_bytes(), &load.body].concat();
    let mut buffer = vec![0; load.reply_bytes + 4096];
    let (mut latencies, mut refused) = (Histogram::new(3)?, 0);
    let mut kept = None;
    tokio::time::sleep(load.stagger.mul_f64(f64::from(number) / load.clients as f64)).await;
    // Who sends at intervals begins anywhere in the first.
    let mut due = load.every.map(|every| Instant::now() + every.mul_f64(f64::from(number) / load.clients as f64));
    loop {
        if let (Some(due), Some(every)) = (&mut due, load.every) {
            tokio::time::sleep_until((*due).into()).await;
            *due += every;
        }
        let sent = Instant::now();
        if sent >= end {
            return Ok((latencies, refused));
        }
        let mut stream = match kept.take() {
            Some(stream) => stream,
            None => connect(address).await?,
        };
        let exchange = exchange(&mut stream, &request, &mut buffer);
        let status = if load.reconnect || load.body.len() > 10_000 {
            tokio::time::timeout(TIMEOUT, exchange).await.context("no reply")?
        } else {
            exchange.await
        };
        let (status, body) = status.with_context(|| format!("POST {}", load.path))?;
        let received = Instant::now();
        // What was under way at the end counts for nobody.
        if received >= end {
            return Ok((latencies, refused));
        }
        match status {
            200 => {
                ensure!(body == load.reply_bytes, "POST {}: a reply of {body} bytes", load.path);
                if received >= start {
                    latencies.record((received - sent).as_nanos() as u64)?;
                }
            }
            429 | 503 if load.may_be_refused => refused += u64::from(received >= start),
            other => bail!("POST {}: status {other}", load.path),
        }
        if !load.reconnect {
            kept = Some(stream);
        }
    }
}

async fn connect(address: SocketAddr) -> Result<TcpStream> {
    let stream = TcpStream::connect(address).await.context("cannot connect")?;
    stream.set_nodelay(true)?;
    // So that ports of closed connections are free again at once.
    stream.set_zero_linger()?;
    Ok(stream)
}

/// Sends a request and reads the whole reply: its status and the length of its body.
async fn exchange(stream: &mut TcpStream, request: &[u8], buffer: &mut [u8]) -> Result<(u16, usize)> {
    let (mut reader, mut writer) = stream.split();
    let receive = async {
        let mut filled = 0;
        loop {
            let count = reader.read(&mut buffer[filled..]).await?;
            ensure!(count > 0, "the connection was closed after {filled} bytes");
            filled += count;
            if let Some((status, head, body)) = parse(&buffer[..filled])
                && filled >= head + body
            {
                return Ok((status, body));
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

/// Status, length of the head and of the body, once the head is there.
fn parse(bytes: &[u8]) -> Option<(u16, usize, usize)> {
    let shown = &bytes[..bytes.len().min(1024)];
    let head = shown.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let text = std::str::from_utf8(&shown[..head]).ok()?;
    let status = text.get(9..12)?.parse().ok()?;
    let length = text.lines().find_map(|line| line.strip_prefix("content-length: "));
    Some((status, head, length.map_or(Some(0), |length| length.parse().ok())?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_read_as_far_as_its_head_says() {
        assert_eq!(parse(b"HTTP/1.1 200 OK\r\ncontent-length: 12\r\n"), None);
        assert_eq!(parse(b"HTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r\nab"), Some((200, 39, 12)));
        assert_eq!(parse(b"HTTP/1.1 503 Busy\r\n\r\n"), Some((503, 21, 0)));
    }
}
