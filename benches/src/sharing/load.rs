//! Requests that are sent when they are due, whether others were answered or not, and clients that each wait for their answer.
//!
//! The thread sleeps while nothing happens: Redis and the delay before it are on the same cores. When requests are due a thread of its own says, since the
//! runtime's timers have a grain of a millisecond.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;

use crate::load::{Expected, connect, exchange};

/// Connections at the same time. What is due beyond waits for one.
const CONNECTIONS_MAX: usize = 2_000;
/// Bytes of the longest reply with its head.
const REPLY_BYTES_MAX: usize = 128 << 10;

/// A request, and what has to come of it.
#[derive(Debug, Clone)]
pub struct Asked {
    /// Its path.
    pub path: String,
    /// Its body.
    pub body: Vec<u8>,
    /// The reply.
    pub expected: Expected,
}

impl Asked {
    fn bytes(&self, address: SocketAddr) -> Vec<u8> {
        let Asked { path, body, .. } = self;
        let head = format!("POST {path} HTTP/1.1\r\nhost: {address}\r\ncontent-length: {}\r\n\r\n", body.len());
        [head.as_bytes(), body].concat()
    }
}

/// What came of it.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// How long each request took, in milliseconds.
    pub latencies_ms: Vec<f64>,
    /// Of these, so many were not answered, or refused: they took at least so long.
    pub unanswered: usize,
    /// Good replies a second.
    pub per_second: f64,
    /// Good replies, also of requests that do not count.
    pub replies: usize,
}

impl Seen {
    /// The mean, in milliseconds; NaN of none.
    pub fn mean_ms(&self) -> f64 {
        self.latencies_ms.iter().sum::<f64>() / self.latencies_ms.len() as f64
    }
}

/// Connections that no request uses.
#[derive(Clone)]
struct Connections {
    address: SocketAddr,
    idle: Rc<RefCell<Vec<TcpStream>>>,
    places: Rc<Semaphore>,
}

impl Connections {
    fn new(address: SocketAddr) -> Connections {
        Connections { address, idle: Rc::default(), places: Rc::new(Semaphore::new(CONNECTIONS_MAX)) }
    }

    /// Whether it was answered, or refused.
    async fn ask(&self, asked: &Asked) -> Result<bool> {
        let _place = self.places.acquire().await.context("the places are never closed")?;
        let kept = self.idle.borrow_mut().pop();
        let mut stream = match kept {
            Some(stream) => stream,
            None => connect(self.address).await?,
        };
        let mut buffer = vec![0; REPLY_BYTES_MAX];
        let answer = exchange(&mut stream, &asked.bytes(self.address), &mut buffer).await;
        let (status, body) = answer.with_context(|| format!("POST {}", asked.path))?;
        let good = asked.expected.is(status, body);
        ensure!(
            good || matches!(status, 429 | 503 | 504),
            "POST {}: a wrong reply, {status} with {} bytes: {}",
            asked.path,
            body.len(),
            body[..body.len().min(200)].escape_ascii()
        );
        self.idle.borrow_mut().push(stream);
        Ok(good)
    }
}

/// When a load begins and ends.
#[derive(Debug, Clone, Copy)]
pub struct Span {
    /// Requests that are due, or begin, earlier do not count.
    pub counted: Duration,
    /// None is due later.
    pub end: Duration,
    /// For so long after that answers are waited for.
    pub grace: Duration,
}

/// Sends each request when it is due; the times ascend.
///
/// # Errors
///
/// If a connection breaks, or a reply is wrong.
pub fn open(address: SocketAddr, plan: Vec<(Duration, Asked)>, span: Span) -> Result<Seen> {
    let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default()).context("no runtime")?;
    runtime.block_on(async {
        let (sender, mut ready) = mpsc::unbounded_channel();
        let begin = Instant::now();
        let due: Vec<Duration> = plan.iter().map(|(due, _)| *due).collect();
        let clock = thread::spawn({
            let due = due.clone();
            move || {
                for (index, due) in due.into_iter().enumerate() {
                    thread::sleep((begin + due).saturating_duration_since(Instant::now()));
                    // The loop below has failed then.
                    let Ok(()) = sender.send(index) else { break };
                }
            }
        });
        let connections = Connections::new(address);
        let answered: Rc<RefCell<Vec<Option<Duration>>>> = Rc::new(RefCell::new(vec![None; due.len()]));
        let (mut plan, mut running) = (plan.into_iter(), JoinSet::new());
        while let Some(index) = ready.recv().await {
            let Some((_, asked)) = plan.next() else { break };
            let (connections, answered) = (connections.clone(), Rc::clone(&answered));
            running.spawn_local(async move {
                if connections.ask(&asked).await? {
                    answered.borrow_mut()[index] = Some(begin.elapsed());
                }
                anyhow::Ok(())
            });
        }
        clock.join().ok().context("the clock panicked")?;
        let until = begin + span.end + span.grace;
        while let Ok(Some(ended)) = tokio::time::timeout_at(until.into(), running.join_next()).await {
            ended.context("a request panicked")??;
        }
        Ok(seen(&due, &answered.borrow(), begin.elapsed(), span))
    })
}

/// Of what was due in time; what was not answered has taken until `now`, at least.
fn seen(due: &[Duration], answered: &[Option<Duration>], now: Duration, span: Span) -> Seen {
    let counted = || due.iter().zip(answered).filter(|(due, _)| **due >= span.counted);
    let latency = |(due, answered): (&Duration, &Option<Duration>)| (answered.unwrap_or(now) - *due).as_secs_f64() * 1e3;
    let in_time = counted().filter(|(_, answered)| answered.is_some_and(|answered| answered <= span.end)).count();
    Seen {
        latencies_ms: counted().map(latency).collect(),
        unanswered: counted().filter(|(_, answered)| answered.is_none()).count(),
        per_second: in_time as f64 / (span.end - span.counted).as_secs_f64(),
        replies: answered.iter().flatten().count(),
    }
}

/// So many clients, which each send the next request when the last one was answered; the requests in turn, and again.
///
/// # Errors
///
/// If a connection breaks, or a reply is wrong or a refusal.
pub fn closed(address: SocketAddr, clients: usize, requests: &[Asked], span: Span) -> Result<Seen> {
    ensure!(!requests.is_empty(), "no requests");
    let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default()).context("no runtime")?;
    let (next, replies) = (Rc::new(Cell::new(0)), Rc::new(RefCell::new(Vec::new())));
    let requests: Rc<[Asked]> = requests.into();
    runtime.block_on(async {
        let begin = Instant::now();
        let connections = Connections::new(address);
        let mut running = JoinSet::new();
        for _ in 0..clients {
            let (connections, requests) = (connections.clone(), Rc::clone(&requests));
            let (next, replies) = (Rc::clone(&next), Rc::clone(&replies));
            running.spawn_local(async move {
                // Each sends one at least, however late it begins.
                loop {
                    let asked = &requests[next.replace(next.get() + 1) % requests.len()];
                    let start = begin.elapsed();
                    let good = connections.ask(asked).await?;
                    ensure!(good, "POST {}: refused", asked.path);
                    replies.borrow_mut().push((start, begin.elapsed()));
                    if begin.elapsed() >= span.end {
                        return anyhow::Ok(());
                    }
                }
            });
        }
        let until = begin + span.end + span.grace;
        while let Ok(Some(ended)) = tokio::time::timeout_at(until.into(), running.join_next()).await {
            ended.context("a client panicked")??;
        }
        let replies = replies.borrow();
        let counted = || replies.iter().filter(|(_, end)| *end >= span.counted);
        let in_time = counted().filter(|(_, end)| *end <= span.end).count();
        Ok(Seen {
            latencies_ms: counted().map(|(start, end)| (*end - *start).as_secs_f64() * 1e3).collect(),
            unanswered: 0,
            per_second: in_time as f64 / (span.end - span.counted).as_secs_f64(),
            replies: replies.len(),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_answered_counts_with_the_time_until_then() {
        let ms = |ms: u64| Duration::from_millis(ms);
        let span = Span { counted: ms(100), end: ms(1_100), grace: ms(400) };
        let due = [ms(50), ms(100), ms(600), ms(1_000)];
        let answered = [None, Some(ms(130)), None, Some(ms(1_200))];
        let seen = seen(&due, &answered, ms(1_500), span);
        assert_eq!(seen.latencies_ms, [30.0, 900.0, 200.0]);
        assert_eq!((seen.unanswered, seen.per_second), (1, 1.0));
    }
}
