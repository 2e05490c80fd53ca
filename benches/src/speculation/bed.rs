//! Where it is measured: servers on cores of their own, one for each column; the driver, Redis and the delay before it on the others.

use std::cell::Cell;
use std::fmt::Write as _;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use bytes::Bytes;

use super::Settings;
use super::counts::Counts;
use super::level::{self, Level};
use super::place::Place;
use super::program::Program;
use super::source::{Execution, Work};
use crate::client::Client;
use crate::server::Server;
use crate::sharing::bed::http_get;
use crate::sharing::load::{self, Asked, Seen, Span};
use crate::sharing::watch::{self, Watched};
use crate::store::{Far, Redis};
use crate::workload::{Cores, quantile, quoted};
use crate::{checkout, child, compiler};

/// From a request's arrival until it is killed: longer than any is waited for.
const DEADLINE_MS: u64 = 600_000;
/// Units of work, and of seals, with which their speed is measured, and how often.
const UNITS: u64 = 500_000;
const SEALS: u32 = 20_000;
const SPEED_TURNS: usize = 3;
/// The function of the railway with which that is done, and how many functions of it compute.
const SEALED: (Program, f64) = (Program::Tickets("ts-left"), 5.0);

/// A Redis server with what all functions need, the ways to it, and the artifacts.
#[derive(Debug)]
pub struct Bed {
    folder: PathBuf,
    /// Which cores the servers and the driver have.
    pub cores: Cores,
    redis: Redis,
    far: Vec<(Duration, Far)>,
    workflows: PathBuf,
    railway: PathBuf,
    servers: Cell<u32>,
}

/// A server that runs.
#[derive(Debug)]
pub struct Running {
    server: Server,
    metrics: SocketAddr,
    workers: usize,
}

/// What one client has seen.
#[derive(Debug, Clone, Default)]
pub struct Alone {
    /// How long each execution took.
    pub latencies_ms: Vec<f64>,
    /// Processor time of the server for all of them.
    pub cpu_ms: f64,
    /// What the server counted meanwhile.
    pub counts: Counts,
}

impl Alone {
    /// The mean, in milliseconds.
    pub fn mean_ms(&self) -> f64 {
        self.latencies_ms.iter().sum::<f64>() / self.latencies_ms.len() as f64
    }
}

impl Bed {
    /// Compiles what the programs need, starts Redis with a way to it for each place, and fills it.
    ///
    /// # Errors
    ///
    /// If something does not compile or start, or there are too few cores.
    pub fn new(workers: usize, programs: &[Program], places: &[Place], folder: &Path) -> Result<Bed> {
        let cores = Cores::divided(workers)?;
        // This thread is on the driver's cores from here on.
        cores.start(|| Ok(()))?;
        let redis = Redis::start()?;
        let mut far: Vec<(Duration, Far)> = Vec::new();
        for delay in places.iter().map(|place| place.delay()).filter(|delay| !delay.is_zero()) {
            if far.iter().all(|(known, _)| *known != delay) {
                far.push((delay, Far::start(redis.address(), delay)?));
            }
        }
        let compiled = |name: &str, is_needed: bool| -> Result<PathBuf> {
            let artifact = folder.join(name).with_extension("so");
            if is_needed {
                compiler::compile(&checkout::root().join("examples").join(name), &artifact)?;
            }
            Ok(artifact)
        };
        let is_railway = |program: &Program| matches!(program, Program::Tickets(_));
        let workflows = compiled("speculation", !programs.iter().all(is_railway))?;
        let railway = compiled("sharing", programs.iter().any(is_railway))?;
        let bed = Bed { folder: folder.to_owned(), cores, redis, far, workflows, railway, servers: Cell::new(0) };
        if places.iter().any(|place| place.is_remote()) {
            let mut filled = Vec::new();
            for program in programs {
                if !filled.contains(&program.setup()) {
                    filled.push(program.setup());
                    bed.start(*program, &level::OFF, Place::Redis(Duration::ZERO))?.set_up(*program)?;
                }
            }
        }
        Ok(bed)
    }

    /// Starts a server with a program in a column. It has what the program needs.
    ///
    /// # Errors
    ///
    /// If it does not start: it may not know what stands in the configuration for the column.
    pub fn serve(&self, program: Program, level: &Level, place: Place) -> Result<Running> {
        let running = self.start(program, level, place)?;
        if place == Place::Embedded {
            running.set_up(program)?;
        }
        Ok(running)
    }

    fn start(&self, program: Program, level: &Level, place: Place) -> Result<Running> {
        let workers = self.cores.workers();
        let store = match place {
            Place::Embedded => "memory".to_owned(),
            Place::Redis(Duration::ZERO) => format!("redis://{}", self.redis.address()),
            Place::Redis(delay) => {
                let far = self.far.iter().find(|(known, _)| *known == delay);
                format!("redis://{}", far.context("a way of this delay")?.1.address())
            }
        };
        self.servers.set(self.servers.get() + 1);
        let folder = self.folder.join(format!("server-{}", self.servers.get()));
        fs::create_dir(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        // `sledge workflow explain` can be asked while a measurement is under way.
        let admin = quoted(&folder.join("admin.sock"));
        let head = format!(
            "listen = \"127.0.0.1:0\"\nadmin = {admin}\nmetrics_listen = \"127.0.0.1:0\"\nworkers = {workers}\nkv = \"{store}\"\n"
        );
        let artifact = if matches!(program, Program::Tickets(_)) { &self.railway } else { &self.workflows };
        let config = head + &config_of(program, level, artifact, &folder)?;
        let server = self.cores.start(|| Server::start_config(&folder, &config));
        let server = server.with_context(|| format!("{} with the level {}", program.name(), level.name))?;
        let metrics = server.metrics()?;
        Ok(Running { server, metrics, workers })
    }

    /// Measures how much functions compute in a millisecond.
    ///
    /// # Errors
    ///
    /// If they do not run.
    pub fn work(&self, settings: &Settings) -> Result<Work> {
        let Settings { programs, busy_ms, graph_percent, graph_busy, .. } = settings;
        let (railway, others): (Vec<Program>, Vec<Program>) =
            programs.iter().partition(|program| matches!(program, Program::Tickets(_)));
        let stub = |work: u64| {
            let node = format!(r#"{{"node": 0, "work": {work}, "reads": 1, "writes": false, "calls": []}}"#);
            format!(r#"{{"input": 1, "node": {node}}}"#)
        };
        let (busy_ms, graph_percent, graph_busy) = (*busy_ms, *graph_percent, *graph_busy);
        let mut work = Work { units_per_ms: 0.0, seals_per_ms: 0.0, busy_ms, graph_percent, graph_busy };
        if !others.is_empty() {
            let running = self.serve(Program::Graph(0), &level::OFF, Place::Embedded)?;
            work.units_per_ms = UNITS as f64 / running.more_ms(Program::Graph(0), [&stub(0), &stub(UNITS)])?;
        }
        if !railway.is_empty() {
            let (program, functions) = SEALED;
            let running = self.serve(program, &level::OFF, Place::Embedded)?;
            let body = |work| sharing::body(program.name(), 0, work);
            work.seals_per_ms = f64::from(SEALS) * functions / running.more_ms(program, [&body(0), &body(SEALS)])?;
        }
        Ok(work)
    }
}

/// The functions of a program and its workflow, if it has one; the definition is written into the folder.
fn config_of(program: Program, level: &Level, artifact: &Path, folder: &Path) -> Result<String> {
    let mut config = String::new();
    let path = quoted(artifact);
    let entry = program.path();
    for name in program.functions() {
        let routes = if program.calls() && entry[1..] == *name { "" } else { "routes = []\n" };
        let lines = if program.calls() { level.of_function() } else { "" };
        let _ = write!(
            config,
            "\n[[functions]]\nname = \"{name}\"\npath = {path}\ndeadline_ms = {DEADLINE_MS}\nisolation = \"serializable\"\n{routes}{lines}"
        );
    }
    let setup = program.setup();
    let _ = write!(config, "\n[[functions]]\nname = \"{setup}\"\npath = {path}\ndeadline_ms = {DEADLINE_MS}\n");
    if let Program::Workflow(application) = program {
        let definition = folder.join("workflow.asl.json");
        fs::write(&definition, application.definition()).with_context(|| format!("cannot write {}", definition.display()))?;
        let (name, path, lines) = (application.name(), quoted(&definition), level.of_workflow());
        let _ = write!(config, "\n[[workflows]]\nname = \"{name}\"\npath = {path}\ndeadline_ms = {DEADLINE_MS}\n{lines}");
    }
    Ok(config)
}

impl Running {
    fn set_up(&self, program: Program) -> Result<()> {
        let reply = self.client()?.post(&format!("/{}", program.setup()), &Bytes::from(program.setup_body()), &[])?;
        ensure!(reply.status == 200, "{}: {} {:?}{}", program.setup(), reply.status, reply.body, self.server.log_end());
        Ok(())
    }

    fn client(&self) -> Result<Client> {
        Client::connect(self.server.address())
    }

    /// How much more processor time the second request takes, in milliseconds.
    fn more_ms(&self, program: Program, bodies: [&str; 2]) -> Result<f64> {
        let mut client = self.client()?;
        let mut cpu_ms = |body: &str| -> Result<f64> {
            let before = self.server.processor_time()?;
            let reply = client.post(&program.path(), &Bytes::copy_from_slice(body.as_bytes()), &[])?;
            ensure!(reply.status == 200, "{}: {} {:?}", program.name(), reply.status, reply.body);
            Ok((self.server.processor_time()? - before).as_secs_f64() * 1e3)
        };
        cpu_ms(bodies[0])?;
        let mut more = Vec::new();
        for _ in 0..SPEED_TURNS {
            let less = cpu_ms(bodies[0])?;
            more.push(cpu_ms(bodies[1])? - less);
        }
        let more = quantile(more, 0.5);
        ensure!(more > 0.0, "{}: more work takes no longer", program.name());
        Ok(more)
    }

    /// What the server has counted until now.
    ///
    /// # Errors
    ///
    /// If it does not say.
    pub fn counts(&self) -> Result<Counts> {
        Ok(Counts::parsed(&http_get(self.metrics, "/metrics")?))
    }

    /// Executions one after the other.
    ///
    /// # Errors
    ///
    /// If a reply is wrong.
    pub fn one_by_one(&self, executions: &[Execution]) -> Result<Alone> {
        let mut client = self.client()?;
        let bodies: Vec<Bytes> = executions.iter().map(|one| Bytes::copy_from_slice(&one.asked.body)).collect();
        let (before, cpu) = (self.counts()?, self.server.processor_time()?);
        let mut latencies_ms = Vec::with_capacity(executions.len());
        for (Execution { asked: Asked { path, expected, .. }, .. }, body) in executions.iter().zip(&bodies) {
            let reply = client.post(path, body, &[]).map_err(|error| error.context(self.log()))?;
            ensure!(
                expected.is(reply.status.as_u16(), &reply.body),
                "POST {path} {body:?}: a wrong reply, {} {:?}{}",
                reply.status,
                reply.body,
                self.server.log_end()
            );
            latencies_ms.push(reply.elapsed.as_secs_f64() * 1e3);
        }
        let cpu_ms = (self.server.processor_time()? - cpu).as_secs_f64() * 1e3;
        Ok(Alone { latencies_ms, cpu_ms, counts: self.counts()?.since(&before) })
    }

    /// All executions once, by so many clients.
    ///
    /// # Errors
    ///
    /// As for [`Running::one_by_one`].
    pub fn once(&self, executions: &[Execution], clients: usize) -> Result<()> {
        let each = executions.len().div_ceil(clients).max(1);
        thread::scope(|scope| {
            let running: Vec<_> = executions.chunks(each).map(|some| scope.spawn(|| self.one_by_one(some))).collect();
            running.into_iter().try_for_each(|client| client.join().ok().context("a client panicked")?.map(drop))
        })
    }

    /// Clients that each wait for their answers, for so long.
    ///
    /// # Errors
    ///
    /// As for [`load::closed`]; the error shows the end of the server's log.
    pub fn closed(&self, clients: usize, requests: &[Asked], span: Span) -> Result<(Seen, Watched)> {
        let work = || load::closed(self.server.address(), clients, requests, span).map_err(|error| error.context(self.log()));
        watch::during(&self.server, self.workers, work)
    }

    /// Requests that are due at some times.
    ///
    /// # Errors
    ///
    /// As for [`load::open`]; the error shows the end of the server's log.
    pub fn open(&self, plan: Vec<(Duration, Asked)>, span: Span) -> Result<(Seen, Watched)> {
        let work = || load::open(self.server.address(), plan, span).map_err(|error| error.context(self.log()));
        watch::during(&self.server, self.workers, work)
    }

    /// Memory of the server that belongs to no file, in bytes.
    ///
    /// # Errors
    ///
    /// If the system does not say.
    pub fn anonymous_bytes(&self) -> Result<u64> {
        child::anonymous_bytes(self.server.pid())
    }

    fn log(&self) -> String {
        format!("the server{}", self.server.log_end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_is_a_line_of_the_workflow_or_of_its_functions() {
        let folder = tempfile::tempdir().unwrap();
        let config = |program: &str, level: &str| -> toml::Table {
            let level = level::ALL.iter().find(|known| known.name == level).unwrap();
            config_of(Program::named(program).unwrap(), level, Path::new("a.so"), folder.path()).unwrap().parse().unwrap()
        };
        let speculation = |table: &toml::Value| table.get("speculation").and_then(|level| level.as_str()).map(str::to_owned);
        let workflow = config("banking", "outputs");
        assert_eq!(speculation(&workflow["workflows"][0]).as_deref(), Some("outputs"));
        assert_eq!(speculation(&workflow["functions"][0]), None);
        assert_eq!(speculation(&config("banking", "off")["workflows"][0]), None);
        let calls = config("ts-left", "calls");
        let functions = calls["functions"].as_array().unwrap();
        assert!(calls.get("workflows").is_none());
        // All but the setup, which is no transaction; clients reach only two of them.
        let (transactions, others): (Vec<_>, Vec<_>) = functions.iter().partition(|one| one.get("isolation").is_some());
        assert_eq!((transactions.len(), others.len()), (32, 1));
        assert!(transactions.iter().all(|one| speculation(one).as_deref() == Some("calls")));
        let reached = functions.iter().filter(|one| one.get("routes").is_none());
        assert_eq!(reached.map(|one| one["name"].as_str().unwrap()).collect::<Vec<_>>(), ["ts-left", "ts-setup"]);
    }
}
