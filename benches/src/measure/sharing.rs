//! The group `sharing`: what transactions that only read, shared reads of a store and answers from a table cost, and what they save.
//!
//! Each server has one worker and one core; the load comes from another. What is divided by each other, or taken from each other, is measured in turns.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;

use super::Bench;
use super::io::median;
use crate::client::Client;
use crate::load::{self, Load};
use crate::server::Server;
use crate::store::{Counted, Far, Redis};
use crate::{checkout, compiler, cores};

const TURNS: usize = 5;
const WARM_UP: Duration = Duration::from_millis(300);
const TIME: Duration = Duration::from_millis(1_000);
const TIME_MAX: Duration = Duration::from_secs(120);
/// Requests of a turn that are counted in processor time, and their clients.
const REQUESTS: u64 = 20_000;
const CLIENTS: usize = 100;
/// Requests whose round trips are counted.
const COUNTED: u64 = 50;
/// How far away the store is whose hot key many clients read.
const DELAY: Duration = Duration::from_millis(1);
/// Turns of what differs by a hundredth, and how long one of them takes.
const CLOSE_TURNS: usize = 40;
const CLOSE_TIME: Duration = Duration::from_millis(400);
/// Rounds of `work.wat` by which its speed is measured, and for how long it is to run.
const ROUNDS_TIMED: u64 = 20_000_000;
const RUN: Duration = Duration::from_millis(1);
/// Runs of that length whose processor time is counted.
const RUNS: u64 = 1_000;
/// Round trips that are timed one after the other.
const TRIPS: usize = 2_001;

/// A function of a server: its name, its file in `benches/functions`, its own keys.
type Function<'a> = (&'a str, &'a str, &'a str);

/// A server with one worker, these keys and these functions, on a core of its own; this thread goes to another.
fn server(bench: &Bench, keys: &str, functions: &[Function<'_>]) -> Result<Server> {
    let folder = tempfile::tempdir_in(bench.folder.path())?.keep();
    let mut config = format!("listen = \"127.0.0.1:0\"\nworkers = 1\nadmin = \"none\"\n{keys}\n");
    for (name, file, keys) in functions {
        let artifact = folder.join(name).with_extension("so");
        compiler::compile(&checkout::root().join("benches/functions").join(file), &artifact)?;
        let path = toml::Value::String(artifact.display().to_string());
        config.push_str(&format!("\n[[functions]]\nname = \"{name}\"\npath = {path}\n{keys}\n"));
    }
    let [server_core, load_core] = cores::two()?;
    cores::pin(server_core)?;
    let server = Server::start_config(&folder, &config);
    cores::pin(load_core)?;
    server
}

fn redis_keys(address: SocketAddr, more: &str) -> String {
    format!("kv = \"redis://{address}\"\n{more}")
}

/// Asks once, with that body; the reply has one byte. Whether it came from the table.
fn once(server: &Server, path: &str, body: &[u8]) -> Result<bool> {
    let reply = Client::connect(server.address())?.post(path, &Bytes::copy_from_slice(body), &[])?;
    ensure!(reply.status == 200 && reply.body.len() == 1, "{path}: status {}", reply.status);
    Ok(reply.headers.get("cache-status").is_some_and(|status| status.as_bytes().ends_with(b"hit")))
}

/// The processor time of a request, of so many, in microseconds.
fn cpu_us(server: &Server, load: Load, requests: u64) -> Result<f64> {
    let before = server.processor_time()?;
    let load = Load { requests_max: requests, ..load };
    let answered = load::run(server.address(), &[load], Duration::ZERO, TIME_MAX)?[0].latencies.len();
    ensure!(answered == requests, "{answered} of {requests} requests were answered");
    Ok((server.processor_time()? - before).as_secs_f64() * 1e6 / requests as f64)
}

/// The median latency of one client, in microseconds.
fn p50_us(server: &Server, load: Load, time: Duration) -> Result<f64> {
    Ok(load::run(server.address(), &[load], WARM_UP, time)?[0].median_us())
}

/// One read of the embedded store as a transaction, and without one: the difference in processor time.
pub(super) fn serializable_read_us(bench: &mut Bench) -> Result<f64> {
    let functions = [("plain", "kv-read.c", ""), ("serializable", "kv-read.c", "isolation = \"serializable\"")];
    let server = server(bench, "kv = \"memory\"", &functions)?;
    once(&server, "/plain", b"w")?;
    let cost = |path| cpu_us(&server, Load::new(CLIENTS, path, Vec::new(), 1), REQUESTS);
    let mut more = Vec::new();
    for turn in 0..=2 * TURNS {
        let (plain, serializable) = (cost("/plain")?, cost("/serializable")?);
        eprintln!("a read: {plain:.2} us, {serializable:.2} us as a transaction");
        // The first one warms up.
        if turn > 0 {
            more.push(serializable - plain);
        }
    }
    Ok(median(more))
}

/// Four reads and four writes as a transaction: round trips to Redis, counted on the way there.
pub(super) fn redis_round_trips(bench: &mut Bench) -> Result<f64> {
    let redis = Redis::start()?;
    let way = Counted::start(redis.address())?;
    let server = server(bench, &redis_keys(way.address(), ""), &[("four", "kv-four.c", "isolation = \"serializable\"")])?;
    // A server asks once what time it is for Redis, and scripts are loaded once.
    once(&server, "/four", b"")?;
    let before = way.round_trips();
    for _ in 0..COUNTED {
        once(&server, "/four", b"")?;
    }
    Ok((way.round_trips() - before) as f64 / COUNTED as f64)
}

/// How many commands to read one key a Redis was sent.
fn reads_sent(redis: &Redis) -> Result<u64> {
    let mut stream = TcpStream::connect(redis.address())?;
    stream.write_all(b"INFO commandstats\r\nQUIT\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    let Some(line) = text.lines().find_map(|line| line.strip_prefix("cmdstat_hget:calls=")) else { return Ok(0) };
    line.split(',').next().and_then(|calls| calls.parse().ok()).with_context(|| format!("commandstats: {line}"))
}

/// Many clients that read one key of an exclusive Redis: commands for each read.
pub(super) fn hot_key_commands(bench: &mut Bench) -> Result<f64> {
    let redis = Redis::start()?;
    let far = Far::start(redis.address(), DELAY)?;
    let server = server(bench, &redis_keys(far.address(), "kv_exclusive = true"), &[("read", "kv-read.c", "")])?;
    once(&server, "/read", b"w")?;
    let before = reads_sent(&redis)?;
    let load = Load { requests_max: REQUESTS, ..Load::new(CLIENTS, "/read", Vec::new(), 1) };
    let reads = load::run(server.address(), &[load], Duration::ZERO, TIME_MAX)?[0].latencies.len();
    Ok((reads_sent(&redis)? - before) as f64 / reads as f64)
}

/// What one client waits for a read of Redis where reads may be shared, to the same where they are not.
pub(super) fn one_client_p50_ratio(bench: &mut Bench) -> Result<f64> {
    let redis = Redis::start()?;
    let start = |keys| server(bench, &redis_keys(redis.address(), keys), &[("read", "kv-read.c", "")]);
    let (exclusive, plain) = (start("kv_exclusive = true")?, start("")?);
    once(&plain, "/read", b"w")?;
    let p50 = |server: &Server| p50_us(server, Load::new(1, "/read", Vec::new(), 1), CLOSE_TIME);
    let mut ratios = Vec::new();
    for turn in 0..CLOSE_TURNS {
        // Each comes first as often as the other.
        let (shared, sent) = if turn % 2 == 0 {
            let shared = p50(&exclusive)?;
            (shared, p50(&plain)?)
        } else {
            let sent = p50(&plain)?;
            (p50(&exclusive)?, sent)
        };
        ratios.push(shared / sent);
    }
    Ok(median(ratios))
}

/// A server with `work.wat`, with and without a table, and the input with which it runs for [`RUN`].
fn remembering(bench: &Bench) -> Result<(Server, Vec<u8>)> {
    let functions = [("run", "work.wat", ""), ("memo", "work.wat", "memo = \"auto\""), ("ping", "ping.wat", "")];
    let server = server(bench, "", &functions)?;
    let long = ROUNDS_TIMED.to_le_bytes();
    once(&server, "/run", &long)?;
    let before = server.processor_time()?;
    once(&server, "/run", &long)?;
    let took = server.processor_time()? - before;
    let rounds = ROUNDS_TIMED as f64 * RUN.as_secs_f64() / took.as_secs_f64();
    Ok((server, (rounds as u64).to_le_bytes().to_vec()))
}

/// Has an answer remembered: it is when its key comes for the second time.
fn remembered(server: &Server, path: &str, body: &[u8]) -> Result<()> {
    once(server, path, body)?;
    once(server, path, body)?;
    ensure!(once(server, path, body)?, "{path} is not answered from the table");
    Ok(())
}

/// The processor time of an answer from the table to that of a run of a millisecond.
pub(super) fn memo_cpu_ratio(bench: &mut Bench) -> Result<f64> {
    let (server, body) = remembering(bench)?;
    remembered(&server, "/memo", &body)?;
    let cost = |path, requests| cpu_us(&server, Load::new(CLIENTS, path, body.clone(), 1), requests);
    let mut ratios = Vec::new();
    for _ in 0..TURNS {
        let (run, answer) = (cost("/run", RUNS)?, cost("/memo", REQUESTS)?);
        eprintln!("a run: {run:.0} us, an answer from the table {answer:.2}");
        ratios.push(answer / run);
    }
    Ok(median(ratios))
}

/// What one client waits for an answer from the table beyond what it waits for ping.
pub(super) fn memo_p50_us(bench: &mut Bench) -> Result<f64> {
    let (server, body) = remembering(bench)?;
    remembered(&server, "/memo", &body)?;
    let mut more = Vec::new();
    for _ in 0..TURNS {
        let ping = p50_us(&server, Load::new(1, "/ping", Vec::new(), 1), TIME)?;
        let answer = p50_us(&server, Load::new(1, "/memo", body.clone(), 1), TIME)?;
        eprintln!("ping: {ping:.1} us, an answer from the table {answer:.1}");
        more.push(answer - ping);
    }
    Ok(median(more))
}

/// What one client waits for an answer from the table that has read one key of Redis, beyond a round trip to Redis.
pub(super) fn memo_remote_us(bench: &mut Bench) -> Result<f64> {
    let redis = Redis::start()?;
    let functions = [("read", "kv-read.c", "memo = \"auto\""), ("write", "kv-read.c", "")];
    let server = server(bench, &redis_keys(redis.address(), ""), &functions)?;
    once(&server, "/write", b"w")?;
    remembered(&server, "/read", b"")?;
    let mut more = Vec::new();
    for _ in 0..TURNS {
        let trip = round_trip_us(redis.address())?;
        let answer = p50_us(&server, Load::new(1, "/read", Vec::new(), 1), TIME)?;
        eprintln!("a round trip: {trip:.1} us, an answer from the table {answer:.1}");
        more.push(answer - trip);
    }
    Ok(median(more))
}

/// The median time of a get of what the function reads, one after the other.
fn round_trip_us(redis: SocketAddr) -> Result<f64> {
    let mut connection = ::redis::Client::open(format!("redis://{redis}"))?.get_connection()?;
    let mut times = Vec::with_capacity(TRIPS);
    for _ in 0..TRIPS {
        let start = Instant::now();
        let stored: Vec<u8> = ::redis::cmd("HGET").arg("{sledge:default}:values").arg("bench\0key").query(&mut connection)?;
        times.push(start.elapsed().as_secs_f64() * 1e6);
        ensure!(stored.len() > 100, "a value of {} bytes", stored.len());
    }
    Ok(median(times))
}
