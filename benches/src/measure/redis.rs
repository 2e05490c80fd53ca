//! The group `io`: a store in Redis, which functions wait for, beside programs that use the same crate and do nothing else.

use std::future::Future;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use ::redis::aio::{ConnectionManager, ConnectionManagerConfig};
use ::redis::{Client as RedisClient, Cmd};
use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use tokio::runtime::{Builder, LocalOptions};

use super::Bench;
use super::io::{ROUNDS, ask, median, server};
use crate::client::Client;
use crate::store::{Far, Redis};

/// How long an answer may take, as for the server.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(5);
/// Gets that are timed one after the other.
const TIMES: usize = 2_001;
/// Sandboxes, or tasks, that wait at the same time.
const WAITING: usize = 50;
/// How often each does; as `benches/functions/kv-wait.c` says.
const WAITS: usize = 400;
/// After which time the sandboxes begin, all together, as the tasks do: by then all of them wait for that.
const START: Duration = Duration::from_millis(200);
/// How far away a store is that they wait for.
const DELAY: Duration = Duration::from_millis(5);

/// What a function's get becomes: of the same key, from the same server.
async fn get(connection: &mut ConnectionManager) -> Result<()> {
    let mut command = Cmd::new();
    command.arg("HGET").arg("{sledge:default}:values").arg("bench\0key");
    let stored: Bytes = command.query_async(connection).await?;
    ensure!(stored.len() > 100, "a value of {} bytes", stored.len());
    Ok(())
}

/// What `work` makes of a connection, on a thread of its own on the core on which the server's worker is.
fn natively<F: Future<Output = Result<T>>, T: Send + 'static>(
    redis: SocketAddr,
    work: impl FnOnce(ConnectionManager) -> F + Send + 'static,
) -> Result<T> {
    let run = move || -> Result<T> {
        let cores = sledge_sandbox::affinity()?;
        let mut set = rustix::thread::CpuSet::new();
        set.set(*cores.first().context("no core")?);
        rustix::thread::sched_setaffinity(None, &set)?;
        let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default())?;
        runtime.block_on(async move {
            let client = RedisClient::open(format!("redis://{redis}"))?;
            let config = ConnectionManagerConfig::new().set_response_timeout(Some(ANSWER_TIME_MAX));
            work(ConnectionManager::new_with_config(client, config).await?).await
        })
    };
    thread::spawn(run).join().ok().context("the measurement panicked")?
}

/// The round trip of a get in a guest to that of a program that does nothing else.
///
/// A worker looks for answers for a while before it sleeps, and waking up costs more than the whole round trip: so the program looks, too.
pub(super) fn get_ratio(bench: &mut Bench) -> Result<f64> {
    let redis = Redis::start()?;
    let server = server(bench, &format!("redis://{}", redis.address()), &["kv-get.c"])?;
    let mut client = Client::connect(server.address())?;
    ask(&mut client, "/kv-get")?;
    let mut ratios = Vec::new();
    for _ in 0..ROUNDS {
        let bare = natively(redis.address(), |connection| async { median_us(connection).await })?;
        let guest = ask(&mut client, "/kv-get")?;
        ratios.push(guest / bare);
    }
    Ok(median(ratios))
}

async fn median_us(mut connection: ConnectionManager) -> Result<f64> {
    let looking = tokio::task::spawn_local(async {
        loop {
            tokio::task::yield_now().await;
        }
    });
    let mut times = Vec::with_capacity(TIMES);
    for _ in 0..TIMES {
        let start = Instant::now();
        get(&mut connection).await?;
        times.push(start.elapsed().as_secs_f64() * 1e6);
    }
    looking.abort();
    Ok(median(times))
}

/// The processor time of a get for which a sandbox waits, among others, to that of the same get by a task of a program.
pub(super) fn waiting_cpu_ratio(bench: &mut Bench) -> Result<f64> {
    let redis = Redis::start()?;
    let far = Far::start(redis.address(), DELAY)?;
    // The value, which the other function sets.
    let near = server(bench, &format!("redis://{}", redis.address()), &["kv-get.c"])?;
    ask(&mut Client::connect(near.address())?, "/kv-get")?;
    drop(near);
    let server = server(bench, &format!("redis://{}", far.address()), &["kv-wait.c"])?;
    let all = || -> Result<Duration> {
        let start = (SystemTime::now() + START).duration_since(SystemTime::UNIX_EPOCH)?;
        let start = Bytes::copy_from_slice(&i64::try_from(start.as_nanos())?.to_le_bytes());
        let before = server.processor_time()?;
        thread::scope(|scope| {
            let one = || -> Result<()> {
                let reply = Client::connect(server.address())?.post("/kv-wait", &start, &[])?;
                ensure!(reply.status == 200, "/kv-wait: status {}", reply.status);
                Ok(())
            };
            let waiting: Vec<_> = (0..WAITING).map(|_| scope.spawn(one)).collect();
            waiting.into_iter().try_for_each(|one| one.join().ok().context("a client panicked")?)
        })?;
        Ok(server.processor_time()?.saturating_sub(before))
    };
    all()?;
    let mut ratios = Vec::new();
    for _ in 0..ROUNDS {
        let native = natively(far.address(), |connection| async { wait_natively(connection).await })?;
        ratios.push(all()?.as_secs_f64() / native.as_secs_f64());
    }
    Ok(median(ratios))
}

/// The same gets by tasks of one program: the processor time of its thread.
async fn wait_natively(connection: ConnectionManager) -> Result<Duration> {
    let used = || rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    let before = Duration::try_from(used())?;
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..WAITING {
        let mut connection = connection.clone();
        tasks.spawn_local(async move {
            for _ in 0..WAITS {
                get(&mut connection).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended.context("a task panicked")??;
    }
    Ok(Duration::try_from(used())?.saturating_sub(before))
}
