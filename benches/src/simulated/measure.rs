//! A real run to predict: one function that computes and asks the store as often as its request says, on a real server with a real Redis at a distance.
//!
//! The server has the first cores; clients, Redis and the delay have the others. In the open loop each request is due at a time of its own, drawn before, and is sent by whichever
//! of many clients has nothing to do; each is a thread that sleeps until then.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;

use super::calibration::{Cell, Column, PING, Pair, Program, READS, Run};
use super::model::{Arrivals, exponential};
use crate::client::Client;
use crate::load::{self, Load};
use crate::random::Random;
use crate::server::Server;
use crate::store::{Far, Redis};
use crate::{checkout, compiler, cores};

/// How far the store is away.
const DELAY: Duration = Duration::from_millis(1);
/// Invocations of a function at the same time, for each core, in the column `nightcore`.
const NIGHTCORE: usize = 4;
/// Names, microseconds of computing, and accesses. The loaded ones compute for so long that the cores of clients and store are not what is slow.
const PROGRAMS: [(&str, u32, u32); 6] =
    [(PING, 0, 0), (READS, 0, 4), ("waits", 500, 4), ("computes", 2_000, 0), ("both", 2_000, 2), ("hog", 20_000, 0)];
/// Those that are predicted alone.
const LOADED: [&str; 3] = ["waits", "computes", "both"];
/// Loads as parts of the capacity, and how requests come.
const CELLS: [(f64, Arrivals); 4] =
    [(0.25, Arrivals::Poisson), (0.5, Arrivals::Poisson), (0.7, Arrivals::Poisson), (0.5, Arrivals::Bursts(8))];
/// Beside each other: parts of the cores' time.
const PAIR: [(&str, f64); 2] = [("waits", 0.4), ("hog", 0.4)];
/// The columns, with lines of the server's configuration and of each function's.
const COLUMNS: [(&str, &str, &str); 4] = [
    ("prewarmed", "policy = \"round-robin-strict\"\n", ""),
    ("fifo", "policy = \"fifo\"\n", ""),
    ("nightcore", "policy = \"round-robin-strict\"\n", "concurrency_max = "),
    ("sledge", "", "concurrency_max = \"auto\"\n"),
];
/// The number in place of the accesses that stores what others get, as `benches/functions/kv-steps.c` says.
const WRITES: u32 = u32::MAX;
/// Rounds of computing with which is measured how many there are in a microsecond, and how often.
const ROUNDS: u32 = 2_000_000;
const ROUNDS_TIMES: usize = 20;
/// Clients of the open loop, and those that keep the server busy.
const CLIENTS: usize = 64;
const BUSY_CLIENTS: usize = 32;
/// The part of the time that comes first and does not count.
const WARM_UP: f64 = 0.2;
const REPLY: &[u8] = b"done";

/// A server in a column, and how much a core computes.
struct Bed {
    server: Server,
    workers: usize,
    rounds_per_us: f64,
    time: Duration,
}

/// Latencies in milliseconds, and processor time of the server for each request.
struct Seen {
    latencies_ms: Vec<f64>,
    cpu_ms: f64,
}

/// A request of the open loop.
#[derive(Clone)]
struct Answered {
    due: Duration,
    index: usize,
    /// How long after it was due it was sent, and answered.
    late_ms: f64,
    took_ms: f64,
}

/// Measures a run; each load lasts so long.
///
/// # Errors
///
/// If there are too few cores, redis-server is not installed, the programs are not built, or a reply is wrong.
pub fn run(workers: usize, time: Duration, seed: u64, folder: &Path) -> Result<Run> {
    let all = cores::all()?;
    ensure!((1..all.len()).contains(&workers), "{workers} workers of {} cores; clients need one, too", all.len());
    let (own, others) = all.split_at(workers);
    let artifact = folder.join("kv-steps.so");
    let source = checkout::root().join("benches/functions/kv-steps.c");
    compiler::compile_with(&source, &artifact, &["--", "-mexec-model=reactor"])?;
    cores::pin_to(others)?;
    let redis = Redis::start()?;
    let far = Far::start(redis.address(), DELAY)?;
    let program = |&(name, _, accesses): &(&str, u32, u32)| Program {
        program: name.to_owned(),
        accesses: accesses as usize,
        delay_ms: DELAY.as_secs_f64() * 1e3,
        best: 0,
        columns: Vec::new(),
    };
    let mut run = Run { workers, nightcore: NIGHTCORE, programs: PROGRAMS.iter().map(program).collect(), pairs: Vec::new() };
    for (column, server, function) in COLUMNS {
        let number = if column == "nightcore" { format!("{}\n", NIGHTCORE * workers) } else { String::new() };
        let config = config(
            &format!("workers = {workers}\nkv = \"redis://{}\"\n{server}", far.address()),
            &format!("{function}{number}"),
            &artifact,
        );
        cores::pin_to(own)?;
        let server = Server::start_config(folder, &config);
        cores::pin_to(others)?;
        let bed = Bed::new(server?, workers, time)?;
        for (index, (name, ..)) in PROGRAMS.iter().enumerate() {
            eprintln!("{name}, {column}");
            run.programs[index].columns.push(bed.column(column, index, seed)?);
        }
        run.pairs.push(bed.pair(column, &run.programs, seed)?);
    }
    Ok(run)
}

fn config(server: &str, function: &str, artifact: &Path) -> String {
    let path = toml::Value::String(artifact.display().to_string());
    let mut config = format!("listen = \"127.0.0.1:0\"\nadmin = \"none\"\n{server}");
    for (name, ..) in PROGRAMS {
        let _ = write!(config, "\n[[functions]]\nname = \"{name}\"\npath = {path}\ndeadline_ms = 600000\n{function}");
    }
    config
}

/// When requests are due, so many a second until `end`.
fn due(pattern: Arrivals, rate: f64, end: Duration, random: &mut Random) -> Vec<Duration> {
    let (count, mut at, mut due) = (if let Arrivals::Bursts(count) = pattern { count as usize } else { 1 }, 0.0, Vec::new());
    loop {
        at += count as f64 / rate * if pattern == Arrivals::Even { 1.0 } else { exponential(random) };
        if at >= end.as_secs_f64() {
            return due;
        }
        due.extend(std::iter::repeat_n(Duration::from_secs_f64(at), count));
    }
}

impl Bed {
    fn new(server: Server, workers: usize, time: Duration) -> Result<Bed> {
        let mut bed = Bed { server, workers, rounds_per_us: 0.0, time };
        let mut client = Client::connect(bed.server.address())?;
        ask(&mut client, PING, &body(WRITES, 0))?;
        let mut cpu_us = |rounds| -> Result<f64> {
            let before = bed.server.processor_time()?;
            for _ in 0..ROUNDS_TIMES {
                ask(&mut client, PING, &body(0, rounds))?;
            }
            Ok((bed.server.processor_time()?.saturating_sub(before)).as_secs_f64() * 1e6)
        };
        let (none, all) = (cpu_us(0)?, cpu_us(ROUNDS)?);
        ensure!(all > none, "{ROUNDS} rounds of computing take no processor time");
        bed.rounds_per_us = f64::from(ROUNDS) * ROUNDS_TIMES as f64 / (all - none);
        Ok(bed)
    }

    fn body(&self, program: usize) -> Bytes {
        let (_, computes_us, accesses) = PROGRAMS[program];
        body(accesses, (f64::from(computes_us) * self.rounds_per_us) as u32)
    }

    /// One client, then as many as keep the server busy, then the loads.
    fn column(&self, column: &str, program: usize, seed: u64) -> Result<Column> {
        let (name, ..) = PROGRAMS[program];
        let one = self.closed(program, 1)?;
        let cpu_ms = self.busy_cpu_ms(program)?;
        let mut sorted = one.latencies_ms.clone();
        sorted.sort_by(f64::total_cmp);
        let percentile = |percent: usize| sorted[(sorted.len() - 1) * percent / 100];
        let mut column = Column {
            column: column.to_owned(),
            unloaded_ms: sorted.iter().sum::<f64>() / sorted.len() as f64,
            cpu_ms,
            unloaded_cpu_ms: Some(one.cpu_ms),
            percentiles_ms: (0..=100).map(percentile).collect(),
            cells: Vec::new(),
        };
        let capacity = self.workers as f64 * 1e3 / cpu_ms;
        for (load, pattern) in CELLS.into_iter().filter(|_| LOADED.contains(&name)) {
            let cells = self.open(&[(program, load * capacity)], pattern, seed)?;
            column.cells.extend(cells.into_iter().map(|cell| Cell { load, ..cell }));
        }
        Ok(column)
    }

    fn pair(&self, column: &str, programs: &[Program], seed: u64) -> Result<Pair> {
        let rate = |(name, part): (&str, f64)| -> Result<(usize, f64)> {
            let index = programs.iter().position(|program| program.program == name).context("a program of the pair")?;
            let measured = programs[index].columns.iter().find(|known| known.column == column).context("its column")?;
            Ok((index, part * self.workers as f64 * 1e3 / measured.cpu_ms))
        };
        let rates = PAIR.into_iter().map(rate).collect::<Result<Vec<_>>>()?;
        let cells = self.open(&rates, Arrivals::Poisson, seed)?;
        let load = PAIR.iter().map(|(_, part)| part).sum();
        let named = PAIR.iter().zip(cells).map(|((name, _), cell)| ((*name).to_owned(), Cell { load, ..cell }));
        Ok(Pair { column: column.to_owned(), programs: named.collect() })
    }

    /// Clients that each wait for their answer before they ask again.
    fn closed(&self, program: usize, clients: usize) -> Result<Seen> {
        let (address, body, name) = (self.server.address(), self.body(program), PROGRAMS[program].0);
        let (begin, cpu) = (Instant::now(), self.server.processor_time()?);
        let client = || -> Result<Vec<f64>> {
            let (mut client, mut latencies_ms) = (Client::connect(address)?, Vec::new());
            while latencies_ms.is_empty() || begin.elapsed() < self.time {
                latencies_ms.push(ask(&mut client, name, &body)?.as_secs_f64() * 1e3);
            }
            Ok(latencies_ms)
        };
        let latencies_ms = on_threads(clients, client)?.concat();
        let cpu = self.server.processor_time()?.saturating_sub(cpu);
        Ok(Seen { cpu_ms: cpu.as_secs_f64() * 1e3 / latencies_ms.len() as f64, latencies_ms })
    }

    /// Processor time of a request where the server is busy.
    fn busy_cpu_ms(&self, program: usize) -> Result<f64> {
        let (name, computes_us, accesses) = PROGRAMS[program];
        let clients = BUSY_CLIENTS * self.workers;
        if accesses > 0 || computes_us > 0 {
            return Ok(self.closed(program, clients)?.cpu_ms);
        }
        // Other clients cost more than a server that does nothing. These never sleep: beside a store they would be in its way.
        let load = Load::new(clients, &format!("/{name}"), self.body(program).to_vec(), REPLY.len());
        let cpu = self.server.processor_time()?;
        let outcomes = load::run(self.server.address(), &[load], Duration::ZERO, self.time)?;
        let cpu = self.server.processor_time()?.saturating_sub(cpu);
        let replies: u64 = outcomes.iter().map(|outcome| outcome.latencies.len()).sum();
        ensure!(replies > 0, "{name}: no reply in {:?}", self.time);
        Ok(cpu.as_secs_f64() * 1e3 / replies as f64)
    }

    /// Requests of programs that are due at so many a second each; a cell for each program.
    fn open(&self, rates: &[(usize, f64)], pattern: Arrivals, seed: u64) -> Result<Vec<Cell>> {
        let mut random = Random(seed);
        let mut plan: Vec<(Duration, usize)> = Vec::new();
        for (index, (_, rate)) in rates.iter().enumerate() {
            plan.extend(due(pattern, *rate, self.time, &mut random).into_iter().map(|due| (due, index)));
        }
        plan.sort();
        let bodies: Vec<Bytes> = rates.iter().map(|(program, _)| self.body(*program)).collect();
        let (next, begin, address) = (AtomicUsize::new(0), Instant::now() + Duration::from_millis(50), self.server.address());
        let client = || -> Result<Vec<Answered>> {
            let (mut client, mut seen) = (Client::connect(address)?, Vec::new());
            while let Some((due, index)) = plan.get(next.fetch_add(1, Ordering::Relaxed)) {
                thread::sleep((begin + *due).saturating_duration_since(Instant::now()));
                let late = (begin + *due).elapsed();
                ask(&mut client, PROGRAMS[rates[*index].0].0, &bodies[*index])?;
                let took = (begin + *due).elapsed();
                seen.push(Answered {
                    due: *due,
                    index: *index,
                    late_ms: late.as_secs_f64() * 1e3,
                    took_ms: took.as_secs_f64() * 1e3,
                });
            }
            Ok(seen)
        };
        let seen = on_threads(CLIENTS, client)?.concat();
        let counted = self.time.mul_f64(WARM_UP);
        let cell = |(index, (_, rate)): (usize, &(usize, f64))| -> Result<Cell> {
            let counts = |answered: &&Answered| answered.due >= counted && answered.index == index;
            let own: Vec<&Answered> = seen.iter().filter(counts).collect();
            let requests = own.len();
            ensure!(
                requests > 0,
                "no request of {} was due in {:?}; give it more --seconds",
                PROGRAMS[rates[index].0].0,
                self.time
            );
            let mut took: Vec<f64> = own.iter().map(|answered| answered.took_ms).collect();
            took.sort_by(f64::total_cmp);
            let (mean_ms, p99_ms) = (took.iter().sum::<f64>() / requests as f64, took[(requests * 99).div_ceil(100) - 1]);
            let late_ms = own.iter().map(|answered| answered.late_ms).sum::<f64>() / requests as f64;
            Ok(Cell { load: 0.0, pattern, rate: *rate, requests, unanswered: 0, late_ms, mean_ms, p99_ms })
        };
        rates.iter().enumerate().map(cell).collect()
    }
}

fn body(accesses: u32, rounds: u32) -> Bytes {
    Bytes::from([accesses.to_le_bytes(), rounds.to_le_bytes()].concat())
}

/// How long one request took.
fn ask(client: &mut Client, program: &str, body: &Bytes) -> Result<Duration> {
    let reply = client.post(&format!("/{program}"), body, &[])?;
    ensure!(reply.status == 200 && reply.body == REPLY, "/{program}: status {}, {} bytes", reply.status, reply.body.len());
    Ok(reply.elapsed)
}

/// What so many threads come to.
fn on_threads<T: Send>(count: usize, work: impl Fn() -> Result<T> + Sync) -> Result<Vec<T>> {
    thread::scope(|scope| {
        let threads: Vec<_> = (0..count).map(|_| scope.spawn(&work)).collect();
        threads.into_iter().map(|thread| thread.join().ok().context("a client panicked")?).collect()
    })
}
