//! Where it is measured: a server on its cores; the driver, Redis and the delay before it on the others.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::column::Column;
use super::load::{self, Asked, Seen, Span};
use super::suite::{Program, Served};
use crate::server::Server;
use crate::store::{Far, Redis};
use crate::workload::{Cores, quoted};

/// From a request's arrival until it is killed: longer than any is waited for.
const DEADLINE_MS: u64 = 600_000;
/// Requests with which values are stored, at the same time.
const FILLING: usize = 4;
/// Bytes that all values together may have.
const STORE_BYTES_MAX: u64 = 1 << 30;

/// A Redis server, and the ways to it.
#[derive(Debug)]
pub struct Bed {
    folder: PathBuf,
    /// Which cores the server and the driver have.
    pub cores: Cores,
    redis: Redis,
    far: Vec<(Duration, Far)>,
}

/// A server that runs.
#[derive(Debug)]
pub struct Running {
    /// The process.
    pub server: Server,
    /// How many workers it has.
    pub workers: usize,
    metrics: SocketAddr,
}

impl Bed {
    /// Starts Redis, and a way to it for each delay.
    ///
    /// # Errors
    ///
    /// If it does not start, or there are too few cores.
    pub fn new(workers: usize, delays: &[Duration], folder: &Path) -> Result<Bed> {
        let cores = Cores::divided(workers)?;
        // This thread is on the driver's cores from here on.
        cores.start(|| Ok(()))?;
        let redis = Redis::start()?;
        let far = delays.iter().map(|delay| Ok((*delay, Far::start(redis.address(), *delay)?))).collect::<Result<_>>()?;
        Ok(Bed { folder: folder.to_owned(), cores, redis, far })
    }

    /// Where files of the run are.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Starts a server with functions, each in a column's configuration.
    ///
    /// # Errors
    ///
    /// If it does not start.
    pub fn serve(&self, columns: &[(Column, &[Served])], delay: Duration, more: &str) -> Result<Running> {
        let far = self.far.iter().find(|(known, _)| *known == delay);
        let store = if delay.is_zero() { self.redis.address() } else { far.context("a way of this delay")?.1.address() };
        let (column, _) = columns.first().context("a column")?;
        let workers = self.cores.workers();
        let mut config = format!(
            "listen = \"127.0.0.1:0\"\nadmin = \"none\"\nmetrics_listen = \"127.0.0.1:0\"\nworkers = {workers}\nkv = \"redis://{store}\"\n\
             kv_bytes_max = {STORE_BYTES_MAX}\nkv_tenant_bytes_max = {STORE_BYTES_MAX}\n{}{more}",
            column.server()
        );
        for (column, functions) in columns {
            for Served { name, artifact, lines } in *functions {
                let (path, column) = (quoted(artifact), column.function(workers));
                let _ = write!(
                    config,
                    "\n[[functions]]\nname = \"{name}\"\npath = {path}\ndeadline_ms = {DEADLINE_MS}\n{column}{lines}"
                );
            }
        }
        let server = self.cores.start(|| Server::start_config(&self.folder, &config))?;
        let metrics = server.metrics()?;
        Ok(Running { server, workers, metrics })
    }

    /// Stores what requests of a program read.
    ///
    /// # Errors
    ///
    /// If a value cannot be stored.
    pub fn fill(&self, program: &dyn Program, functions: &[Served]) -> Result<()> {
        self.redis.clear()?;
        let running = self.serve(&[(Column::Prewarmed, functions)], Duration::ZERO, "")?;
        let plan: Vec<Asked> = program.fill();
        for some in plan.chunks(FILLING) {
            let plan = some.iter().map(|asked| (Duration::ZERO, asked.clone())).collect();
            let span = Span { counted: Duration::ZERO, end: Duration::from_millis(1), grace: Duration::from_secs(60) };
            let seen = load::open(running.server.address(), plan, span)?;
            ensure!(seen.unanswered == 0, "a value was not stored{}", running.server.log_end());
        }
        Ok(())
    }
}

/// Reads of keys in Redis, by how they were answered.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Reads {
    /// All, where reads are joined.
    pub all: f64,
    /// By the answer to another one, or in one command with others.
    pub shared: f64,
}

impl Reads {
    /// Since `earlier`, which share had no command of their own; NaN of none.
    pub fn shared_since(self, earlier: Reads) -> f64 {
        (self.shared - earlier.shared) / (self.all - earlier.all)
    }
}

impl Running {
    /// What has become of reads until now.
    ///
    /// # Errors
    ///
    /// If the server does not say.
    pub fn reads(&self) -> Result<Reads> {
        let text = http_get(self.metrics, "/metrics")?;
        Ok(reads_of(&text))
    }

    /// Requests that are due at some times.
    ///
    /// # Errors
    ///
    /// As for [`load::open`]; the error shows the end of the server's log.
    pub fn open(&self, plan: Vec<(Duration, Asked)>, span: Span) -> Result<Seen> {
        load::open(self.server.address(), plan, span).map_err(|error| error.context(self.log()))
    }

    /// Clients that each wait for their answers.
    ///
    /// # Errors
    ///
    /// As for [`load::closed`]; the error shows the end of the server's log.
    pub fn closed(&self, clients: usize, requests: &[Asked], span: Span) -> Result<Seen> {
        load::closed(self.server.address(), clients, requests, span).map_err(|error| error.context(self.log()))
    }

    fn log(&self) -> String {
        format!("the server{}", self.server.log_end())
    }
}

/// What a server says at an address, with status 200.
pub(crate) fn http_get(address: SocketAddr, path: &str) -> Result<String> {
    use std::io::{Read as _, Write as _};
    let mut stream = std::net::TcpStream::connect(address).with_context(|| format!("no connection to {address}"))?;
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    write!(stream, "GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text).with_context(|| format!("GET {path}"))?;
    ensure!(text.starts_with("HTTP/1.1 200"), "GET {path}: {}", text.lines().next().unwrap_or_default());
    Ok(text)
}

/// From the text of the metrics.
fn reads_of(text: &str) -> Reads {
    let mut reads = Reads::default();
    for line in text.lines() {
        let Some((name, count)) = line.rsplit_once(' ') else { continue };
        let (Some((metric, way)), Ok(count)) = (name.split_once("{way=\""), count.parse::<f64>()) else { continue };
        match way.trim_end_matches("\"}") {
            _ if !metric.ends_with("kv_reads_total") => {}
            // These were counted as sent, too.
            "merged" => reads.shared += count,
            "joined" => {
                reads.shared += count;
                reads.all += count;
            }
            _ => reads.all += count,
        }
    }
    reads
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_are_those_of_the_metrics() {
        let text = "# TYPE sledge_kv_reads counter\nsledge_kv_reads_total{way=\"sent\"} 30\nsledge_kv_reads_total{way=\"alone\"} 10\n\
                    sledge_kv_reads_total{way=\"joined\"} 50\nsledge_kv_reads_total{way=\"merged\"} 10\nother_total{way=\"joined\"} 7\n";
        let reads = reads_of(text);
        assert_eq!(reads, Reads { all: 90.0, shared: 60.0 });
        assert_eq!(reads.shared_since(Reads { all: 30.0, shared: 30.0 }), 0.5);
        assert!(reads.shared_since(reads).is_nan());
    }
}
