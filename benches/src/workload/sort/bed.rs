//! One run of the sort: a server with the function, its data in a place of their own, and the tasks of both stages.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;

use super::data::{self, Sorted, Sum};
use super::task::{Done, PHASES, TASKS};
use super::{Place, Settings, Transfers};
use crate::client::Client;
use crate::server::Server;
use crate::store::{Far, Redis};
use crate::workload::classes::Classes;
use crate::workload::records::RECORD_BYTES;
use crate::workload::{Cores, artifact, quoted};

/// The function's name.
const NAME: &str = "distributed-sort";
/// Connections over which data are put and got.
const CONNECTIONS: usize = 4;
/// Bytes of a value in Redis. Files hold whatever there is.
const VALUE_BYTES: usize = 64 << 10;
/// What the function may take in all, queued requests included.
const DEADLINE_MS: u64 = 600_000;

/// How tasks are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variant {
    /// Tasks at a time for each core.
    pub in_flight: usize,
    /// Classes of the server.
    pub classes: Classes,
}

/// What a phase of the function needs, as the configuration declares it.
#[derive(Debug, Clone, Copy)]
pub struct Need {
    /// Processor time in microseconds.
    pub cpu_us: u64,
    /// Part of a core.
    pub cpu_percent: u64,
}

/// A run.
#[derive(Debug, Clone)]
pub struct Run {
    /// From the first task's start to the last one's end, in seconds.
    pub makespan_s: f64,
    /// Processor time of the server meanwhile, all threads and system calls included, in seconds.
    pub cpu_s: f64,
    /// The tasks of both stages.
    pub tasks: [Vec<Done>; 2],
}

/// Where runs take place.
#[derive(Debug)]
pub struct Bed {
    settings: Settings,
    cores: Cores,
    place: Place,
    folder: PathBuf,
    redis: Option<(Redis, Far)>,
    expected: Sum,
    /// What phases need, for the configuration.
    pub needs: [Need; 6],
}

impl Bed {
    /// Prepares a place: a folder, or a Redis server.
    ///
    /// # Errors
    ///
    /// If the function does not compile, or Redis does not start.
    pub fn new(settings: &Settings, place: Place, folder: &Path) -> Result<Bed> {
        let cores = Cores::divided(settings.workers)?;
        artifact(NAME, folder)?;
        let delayed = |delay: Duration| {
            let redis = Redis::start()?;
            let far = Far::start(redis.address(), delay)?;
            anyhow::Ok((redis, far))
        };
        // Both are on the driver's cores.
        cores.start(|| Ok(()))?;
        let redis = match place {
            Place::Files => None,
            Place::Redis(delay) => Some(delayed(delay)?),
        };
        let sums = (0..settings.chunks).map(|number| Sum::of(&data::chunk(settings.seed, number, settings.chunk_records())));
        let expected = sums.fold(Sum::default(), Sum::and);
        let needs = [Need { cpu_us: 1_000, cpu_percent: 100 }; 6];
        Ok(Bed { settings: settings.clone(), cores, place, folder: folder.to_owned(), redis, expected, needs })
    }

    /// Workers of the server.
    pub fn workers(&self) -> usize {
        self.cores.workers()
    }

    /// Records of all chunks together.
    pub fn records(&self) -> usize {
        self.settings.records()
    }

    /// Where files are, if they are files.
    pub fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// Sorts once, and looks at the result. `between` is done between the stages.
    ///
    /// # Errors
    ///
    /// If a task fails, or the result is not what it has to be.
    pub fn run(&self, variant: Variant, transfers: Transfers, between: impl FnOnce() -> Result<()>) -> Result<Run> {
        self.clear()?;
        let config = self.config(variant.classes)?;
        let server = self.cores.start(|| Server::start_config(&self.folder, &config))?;
        let run = self.run_on(&server, variant, transfers, between).with_context(|| format!("the sort{}", server.log_end()))?;
        server.stop()?;
        Ok(run)
    }

    fn run_on(
        &self,
        server: &Server,
        variant: Variant,
        transfers: Transfers,
        between: impl FnOnce() -> Result<()>,
    ) -> Result<Run> {
        let Settings { chunks, categories, seed, .. } = self.settings;
        let records = self.settings.chunk_records();
        let path = |task: &str, number: usize| self.path(task, number, transfers);
        at_once(server, CONNECTIONS, chunks, |client, number| {
            let body = Bytes::from(data::chunk(seed, number, records));
            ensure_ok(client.post(&path("put", number), &body, &[])?)
        })?;
        let task = |client: &mut Client, stage: usize, number: usize| {
            let reply = client.post(&path(TASKS[stage], number), &Bytes::new(), &[("server-timing-request", "1")])?;
            Done::read(stage, &reply)
        };
        let in_flight = variant.in_flight * self.settings.workers;
        let (cpu, begin) = (server.processor_time()?, Instant::now());
        let first = at_once(server, in_flight, chunks, |client, number| task(client, 0, number))?;
        let middle = Instant::now();
        between()?;
        let pause = middle.elapsed();
        let second = at_once(server, in_flight, categories, |client, number| task(client, 1, number))?;
        let makespan = begin.elapsed() - pause;
        let cpu = server.processor_time()?.saturating_sub(cpu);

        for (stage, tasks) in [(0, &first), (1, &second)] {
            let sum = tasks.iter().map(|done| done.sum).fold(Sum::default(), Sum::and);
            sum.check(self.expected).with_context(|| format!("what the tasks `{}` have read", TASKS[stage]))?;
        }
        let sorted = Mutex::new((0, Sorted::default(), std::collections::HashMap::new()));
        at_once(server, CONNECTIONS, categories, |client, number| {
            let bytes = ensure_ok(client.post(&path("get", number), &Bytes::new(), &[])?)?;
            // In their order, whichever comes first.
            let Ok(mut guard) = sorted.lock() else { bail!("another category was wrong") };
            let (next, sorted, waiting) = &mut *guard;
            waiting.insert(number, bytes);
            while let Some(bytes) = waiting.remove(&*next) {
                sorted.add(&bytes).with_context(|| format!("category {next}"))?;
                *next += 1;
            }
            Ok(())
        })?;
        let (_, sorted, _) = sorted.into_inner().ok().context("a category was wrong")?;
        sorted.check(self.expected).context("the sorted records")?;
        Ok(Run { makespan_s: makespan.as_secs_f64(), cpu_s: cpu.as_secs_f64(), tasks: [first, second] })
    }

    /// Nothing of an earlier run may be taken for this one's.
    fn clear(&self) -> Result<()> {
        if let Some((redis, _)) = &self.redis {
            return redis.clear();
        }
        let data = self.data();
        if data.exists() {
            fs::remove_dir_all(&data).with_context(|| format!("cannot remove {}", data.display()))?;
        }
        fs::create_dir_all(&data).with_context(|| format!("cannot create {}", data.display()))
    }

    fn path(&self, task: &str, number: usize, transfers: Transfers) -> String {
        let Settings { chunks, categories, .. } = self.settings;
        let chunk_bytes = self.settings.chunk_records() * RECORD_BYTES;
        let (place, block_bytes) = match self.place {
            Place::Files => ("files", usize::MAX >> 33),
            Place::Redis(_) => ("kv", VALUE_BYTES),
        };
        let Transfers { bytes, rounds } = transfers;
        format!(
            "/{NAME}?do={task}&number={number}&chunks={chunks}&categories={categories}&chunk_bytes={chunk_bytes}&place={place}\
             &block_bytes={block_bytes}&transfer={bytes}&rounds={rounds}"
        )
    }

    fn config(&self, classes: Classes) -> Result<String> {
        let workers = self.settings.workers;
        let room = self.settings.records() as u64 * RECORD_BYTES as u64 * 8 + (1 << 30);
        let mut config = format!(
            "listen = \"127.0.0.1:0\"\nadmin = \"none\"\nworkers = {workers}\n{}body_bytes_max = {}\nreply_bytes_max = {}\n",
            classes.line()?,
            512 << 20,
            512 << 20,
        );
        if let Some((_, far)) = &self.redis {
            let address = far.address();
            config.push_str(&format!("kv = \"redis://{address}\"\nkv_bytes_max = {room}\nkv_tenant_bytes_max = {room}\n"));
        }
        let path = quoted(&self.folder.join(NAME).with_extension("so"));
        config.push_str(&format!(
            "\n[[functions]]\nname = \"{NAME}\"\npath = {path}\ndeadline_ms = {DEADLINE_MS}\nmemory_bytes_max = {}\n",
            1_u64 << 30
        ));
        if self.place == Place::Files {
            config.push_str(&format!("dirs = [{{ host = {}, guest = \"/data\", write = true }}]\n", quoted(&self.data())));
        }
        for (index, (name, need)) in PHASES.iter().zip(&self.needs).enumerate() {
            let (id, Need { cpu_us, cpu_percent }) = (index + 1, need);
            config.push_str(&format!(
                "[[functions.phases]]\nid = {id}\nname = \"{name}\"\ncpu_us = {cpu_us}\ncpu_percent = {cpu_percent}\n"
            ));
        }
        Ok(config)
    }
}

/// The body of a reply that is one.
fn ensure_ok(reply: crate::client::Reply) -> Result<Bytes> {
    ensure!(reply.status.is_success(), "status {}: {}", reply.status, String::from_utf8_lossy(&reply.body));
    Ok(reply.body)
}

/// Does something for each number below `count`, over so many connections, each with one request at a time; the results in the order of the numbers.
fn at_once<T: Send>(
    server: &Server,
    connections: usize,
    count: usize,
    work: impl Fn(&mut Client, usize) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let one = || -> Result<Vec<(usize, T)>> {
        let mut client = Client::connect(server.address())?;
        let mut done = Vec::new();
        while !failed.load(Ordering::Relaxed) {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                break;
            }
            match work(&mut client, number) {
                Ok(result) => done.push((number, result)),
                Err(error) => {
                    failed.store(true, Ordering::Relaxed);
                    return Err(error);
                }
            }
        }
        Ok(done)
    };
    let mut all = thread::scope(|scope| {
        let clients: Vec<_> = (0..connections.min(count)).map(|_| scope.spawn(one)).collect();
        let mut all = Vec::with_capacity(count);
        for client in clients {
            all.extend(client.join().ok().context("a client panicked")??);
        }
        anyhow::Ok(all)
    })?;
    all.sort_by_key(|(number, _)| *number);
    Ok(all.into_iter().map(|(_, result)| result).collect())
}
