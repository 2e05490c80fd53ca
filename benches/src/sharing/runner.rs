//! A program in one column: a server that is started when it is needed, and again where requests of an earlier load may still be under way.

use std::time::Duration;

use anyhow::Result;

use super::arrivals::{Draw, Pattern};
use super::bed::{Bed, Running};
use super::column::Column;
use super::load::{Asked, Seen, Span};
use super::suite::{Parts, Program, Served};
use super::watch::{self, Watched};

/// Different requests of a closed loop.
const REQUESTS: usize = 500;
/// How long a server that was just started is used before it is measured.
const WARM_UP: Duration = Duration::from_millis(400);
/// Clients that use it then, at most, by worker: all of them wait for each other where few run at the same time.
const WARM_UP_CLIENTS: usize = 32;
/// Clients with which the search begins for as many as keep the server busy, by worker.
const CLIENTS: (f64, f64) = (4.0, 256.0);
/// How much more they are than what it needs, by the times that one client sees.
const CLIENTS_FACTOR: f64 = 3.0;
/// It ends at so many clients by worker, where the cores are used so much, or where twice as many get less than so much more done. Clients that ask at the same time wait for the store at the same
/// time, and leave the cores idle meanwhile: how many keep these busy cannot be told from what one client sees.
const CLIENTS_MAX: usize = 1_024;
const BUSY: f64 = 0.95;
const MORE: f64 = 1.1;
/// Longest that answers in a closed loop are waited for.
const GRACE: Duration = Duration::from_secs(120);
/// Part of a load that does not count, at its beginning.
const UNCOUNTED: f64 = 0.2;

/// A program in one column.
pub struct Runner<'a> {
    bed: &'a Bed,
    program: &'a dyn Program,
    column: Column,
    delay: Duration,
    more: String,
    functions: Vec<Served>,
    seed: u64,
    /// Clients that keep it busy.
    clients: usize,
    running: Option<Running>,
}

/// What one client alone sees.
#[derive(Debug, Clone, Copy)]
pub struct Unloaded {
    /// The mean, in milliseconds.
    pub mean_ms: f64,
    /// Processor time of the server for each request, in milliseconds.
    pub cpu_ms: f64,
}

/// What as many clients see as keep it busy.
#[derive(Debug, Clone, Copy)]
pub struct Capacity {
    /// Requests a second.
    pub per_second: f64,
    /// Processor time of the server for each request, in milliseconds.
    pub cpu_ms: f64,
    /// Share of the workers' cores that the server used. Where it is far below 1, the driver's cores are the limit.
    pub utilisation: f64,
}

impl<'a> Runner<'a> {
    /// Nothing is started yet. `more` are lines of the configuration.
    pub fn new(
        bed: &'a Bed,
        program: &'a dyn Program,
        parts: &Parts,
        place: (Column, Duration),
        seed: u64,
        more: &str,
    ) -> Runner<'a> {
        let (column, delay) = place;
        let functions = program.functions(parts);
        Runner { bed, program, column, delay, more: more.to_owned(), functions, seed, clients: 1, running: None }
    }

    /// The server, warm.
    pub fn running(&mut self) -> Result<&Running> {
        let running = match self.running.take() {
            Some(running) => running,
            None => {
                let running = self.bed.serve(&[(self.column, &self.functions)], self.delay, &self.more)?;
                let span = Span { counted: Duration::ZERO, end: WARM_UP, grace: GRACE };
                let clients = self.clients.min(WARM_UP_CLIENTS * running.workers);
                running.closed(clients, &self.requests(), span)?;
                running
            }
        };
        Ok(self.running.insert(running))
    }

    fn requests(&self) -> Vec<Asked> {
        let mut draw = Draw::new(self.seed, self.program.keys());
        (0..REQUESTS).map(|_| self.program.ask(&mut draw)).collect()
    }

    /// One client for so long; from then on the runner knows with how many to look for [as many as keep it busy](Runner::capacity).
    pub fn unloaded(&mut self, time: Duration) -> Result<Unloaded> {
        let requests = self.requests();
        let running = self.running()?;
        let span = Span { counted: Duration::ZERO, end: time, grace: GRACE };
        let (seen, watched) = watch::during(&running.server, running.workers, || running.closed(1, &requests, span))?;
        let (mean_ms, cpu_ms) = (seen.mean_ms(), watched.cpu.as_secs_f64() * 1e3 / seen.replies as f64);
        let (least, most) = CLIENTS;
        self.clients = (CLIENTS_FACTOR * mean_ms / cpu_ms).clamp(least, most).ceil() as usize * running.workers;
        Ok(Unloaded { mean_ms, cpu_ms })
    }

    /// As many clients as keep it busy, each number of them that is tried for so long. From then on the runner knows how many these are.
    pub fn capacity(&mut self, time: Duration) -> Result<Capacity> {
        let mut best = self.kept_busy(time)?;
        let clients_max = CLIENTS_MAX * self.bed.cores.workers();
        while best.utilisation < BUSY && self.clients < clients_max {
            let before = self.clients;
            self.clients = (2 * before).min(clients_max);
            let more = self.kept_busy(time)?;
            if more.per_second < MORE * best.per_second {
                self.clients = before;
                break;
            }
            best = more;
        }
        Ok(best)
    }

    fn kept_busy(&mut self, time: Duration) -> Result<Capacity> {
        let (requests, clients) = (self.requests(), self.clients);
        let running = self.running()?;
        let span = Span { counted: time.mul_f64(UNCOUNTED), end: time, grace: GRACE };
        let (seen, watched) = watch::during(&running.server, running.workers, || running.closed(clients, &requests, span))?;
        Ok(Capacity {
            per_second: seen.per_second,
            cpu_ms: watched.cpu.as_secs_f64() * 1e3 / seen.replies as f64,
            utilisation: watched.mean_utilisation(),
        })
    }

    /// Private memory meanwhile, in bytes.
    pub fn private_bytes(&mut self, time: Duration) -> Result<f64> {
        let (requests, clients) = (self.requests(), self.clients);
        let running = self.running()?;
        let span = Span { counted: Duration::ZERO, end: time, grace: GRACE };
        let (_, watched) = watch::during(&running.server, running.workers, || running.closed(clients, &requests, span))?;
        Ok(watched.mean_bytes())
    }

    /// `rate` requests a second for so long. What is not answered in as long a time after that has no answer.
    pub fn open(&mut self, rate: f64, pattern: Pattern, time: Duration) -> Result<(Seen, Watched)> {
        let mut draw = Draw::new(self.seed, self.program.keys());
        let counted = time.mul_f64(UNCOUNTED);
        let due = pattern.due(rate, counted, time, self.seed);
        let plan = due.into_iter().map(|due| (due, self.program.ask(&mut draw))).collect();
        let running = self.running()?;
        let span = Span { counted, end: time, grace: time };
        let (seen, watched) = watch::during(&running.server, running.workers, || running.open(plan, span))?;
        if seen.unanswered > 0 {
            self.running = None;
        }
        Ok((seen, watched))
    }

    /// So many clients for each worker keep it busy.
    pub fn with_clients(mut self, each: usize) -> Runner<'a> {
        self.clients = each * self.bed.cores.workers();
        self
    }

    /// Clients that keep it busy, as another runner of the program has measured.
    pub fn with_clients_of(mut self, other: &Runner<'_>) -> Runner<'a> {
        self.clients = other.clients;
        self
    }
}
