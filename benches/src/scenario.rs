//! Scenarios of load after the Sledge paper (section 5): the same requests to `sledge`, to the same HTTP with handlers compiled in, and to the
//! same HTTP with a process for each request.
//!
//! Servers have one core, the first that there is, and the load comes from the second. In each turn all servers of a scenario are asked, one
//! after the other. Which reply is right is judged once for each server; all others have to be equal to it.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use bytes::Bytes;

use crate::client::Client;
use crate::example::{APPLICATIONS, Example, FIBONACCI, GPS_EKF, IMAGE_RESIZE, PING};
use crate::load::{self, Expected, Load};
use crate::native::Native;
use crate::row::Row;
use crate::server::Server;
use crate::{applications, checkout, compiler, cores, simple, steps};

const WARM_UP: Duration = Duration::from_millis(500);
const TIME: Duration = Duration::from_millis(1_500);
/// Where a hundred requests take seconds, or few of those that matter are answered in a second.
const TIME_LONG: Duration = Duration::from_secs(3);
/// An application takes at least that long, not counting as much for warming up.
const TIME_MIN: Duration = Duration::from_secs(2);
/// How often the requests of all an application's clients fit into its time, one after the other: those of the heaviest take seconds.
const ROUNDS: u32 = 3;
const CLIENTS: usize = 100;
/// Requests a second in an open loop: less than any server here can answer.
const RATE: f64 = 5_000.0;
/// Microseconds to tens of milliseconds.
const FIBONACCI_SWEEP: [u32; 4] = [10, 20, 25, 30];

/// The server that answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// A fresh sandbox for each request.
    Sledge,
    /// A handler in the server's process.
    Handler,
    /// A process for each request.
    Process,
}

impl Peer {
    /// As rows name it.
    pub fn name(self) -> &'static str {
        match self {
            Peer::Sledge => "sledge",
            Peer::Handler => "handler in process",
            Peer::Process => "process per request",
        }
    }
}

/// What is asked for.
#[derive(Debug, Clone, Copy)]
enum Function {
    /// One byte, in WebAssembly's text and as a handler.
    Ping,
    /// The body, likewise.
    Echo,
    /// One of the examples; natively a program. What it is called on the servers.
    Example(&'static str, &'static Example),
}

impl Function {
    fn name(self) -> &'static str {
        match self {
            Function::Ping => "ping",
            Function::Echo => "echo",
            Function::Example(name, _) => name,
        }
    }

    fn artifact(self, folder: &Path) -> Result<String> {
        let artifact = folder.join(format!("{}.so", self.name()));
        let source = match self {
            Function::Ping | Function::Echo => checkout::root().join("benches/functions").join(format!("{}.wat", self.name())),
            Function::Example(_, example) => example.source(),
        };
        compiler::compile(&source, &artifact)?;
        Ok(artifact.display().to_string())
    }

    fn judge(self, body: &[u8], reply: &[u8]) -> Result<()> {
        match self {
            Function::Ping => ensure!(reply.len() == 1, "ping answers {} bytes", reply.len()),
            Function::Echo => drop(simple::judge(body, reply)?),
            Function::Example(_, example) => drop(example.judge(body, reply)?),
        }
        Ok(())
    }
}

/// One of the loads that a scenario sends at the same time.
#[derive(Debug, Clone)]
struct Part {
    function: Function,
    load: Load,
}

impl Part {
    fn new(function: Function, clients: usize, body: Vec<u8>) -> Part {
        Part { function, load: Load::new(clients, &format!("/{}", function.name()), body, 0) }
    }

    fn example(name: &'static str, example: &'static Example, clients: usize) -> Result<Part> {
        Ok(Part::new(Function::Example(name, example), clients, example.input()?))
    }
}

/// How long requests count.
#[derive(Debug, Clone, Copy)]
enum Time {
    Fixed(Duration),
    /// Whole rounds of the clients, [`ROUNDS`] of them. Servers share the processor among all that they have begun, so what begins together ends
    /// together: clients begin one after the other, and nothing counts before all have been answered.
    Rounds,
}

/// What is sent, and to whom.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// Its name.
    pub name: String,
    peers: &'static [Peer],
    parts: Vec<Part>,
    time: Time,
}

const HANDLERS: &[Peer] = &[Peer::Sledge, Peer::Handler];
const PROCESSES: &[Peer] = &[Peer::Sledge, Peer::Process];

/// The applications of the paper, in sandboxes and as processes: what the promises are about.
///
/// # Errors
///
/// If one has no input.
pub fn applications() -> Result<Vec<Scenario>> {
    let scenario = |example: &'static Example| {
        let parts = vec![Part::example(example.name, example, CLIENTS)?];
        Ok(Scenario { name: example.name.to_owned(), peers: PROCESSES, parts, time: Time::Rounds })
    };
    APPLICATIONS.into_iter().map(scenario).collect()
}

/// All of them.
///
/// # Errors
///
/// If an example has no input.
pub fn all() -> Result<Vec<Scenario>> {
    let scenario = |name: String, peers, parts, time| Scenario { name, peers, parts, time: Time::Fixed(time) };
    let ping = |clients| Part::new(Function::Ping, clients, Vec::new());
    let fibonacci =
        |clients, index: u32| Part::new(Function::Example("fibonacci", &FIBONACCI), clients, index.to_string().into_bytes());
    let mut all = Vec::new();
    for clients in [1, 10, 50, 100] {
        all.push(scenario(format!("ping-{clients}"), HANDLERS, vec![ping(clients)], TIME));
        let mut part = ping(clients);
        part.load.reconnect = true;
        all.push(scenario(format!("ping-{clients}-new"), HANDLERS, vec![part], TIME));
    }
    let mut part = ping(CLIENTS);
    part.load.rate = Some(RATE);
    all.push(scenario("ping-100-open".to_owned(), HANDLERS, vec![part], TIME_LONG));
    for (size, bytes) in [("1k", 1_000), ("10k", 10_000), ("100k", 100_000), ("1m", 1_000_000)] {
        let part = Part::new(Function::Echo, CLIENTS, vec![b'e'; bytes]);
        all.push(scenario(format!("echo-{size}"), HANDLERS, vec![part], TIME));
    }
    for index in FIBONACCI_SWEEP {
        all.push(scenario(format!("fibonacci-{index}"), PROCESSES, vec![fibonacci(CLIENTS, index)], TIME_LONG));
    }
    all.extend(applications()?);
    // A C program that does next to nothing: what is left is the sandbox or the process.
    for clients in [1, 100] {
        all.push(scenario(format!("churn-{clients}"), PROCESSES, vec![Part::example("churn", &PING, clients)?], TIME));
    }
    all.push(scenario("alone".to_owned(), &[Peer::Sledge], vec![ping(10)], TIME_LONG));
    all.push(scenario("beside-cpu".to_owned(), &[Peer::Sledge], vec![ping(10), fibonacci(20, 30)], TIME_LONG));
    let tenants = vec![
        ping(10),
        Part::new(Function::Echo, 10, vec![b'e'; 10_000]),
        Part::example("gps-ekf", &GPS_EKF, 10)?,
        Part::example("image-resize", &IMAGE_RESIZE, 4)?,
        fibonacci(4, 25),
    ];
    all.push(scenario("tenants".to_owned(), &[Peer::Sledge], tenants, TIME_LONG));
    Ok(all)
}

/// All servers, with all functions that some scenarios need.
struct Servers {
    sledge: Server,
    native: Native,
}

impl Servers {
    fn start(folder: &Path, scenarios: &[Scenario], core: usize, load_core: usize) -> Result<Servers> {
        let mut config = "listen = \"127.0.0.1:0\"\nadmin = \"none\"\nworkers = 1\n".to_owned();
        let (mut programs, mut known) = (Vec::new(), Vec::new());
        for (scenario, part) in scenarios.iter().flat_map(|scenario| scenario.parts.iter().map(move |part| (scenario, part))) {
            let name = part.function.name();
            if !known.contains(&name) {
                known.push(name);
                let path =
                    toml::Value::String(steps::step(name, || Ok((part.function.artifact(folder)?, "compiled".to_owned())))?);
                config.push_str(&format!("\n[[functions]]\nname = \"{name}\"\npath = {path}\n"));
            }
            let program = format!("{name}=");
            if let Function::Example(_, example) = part.function
                && scenario.peers.contains(&Peer::Process)
                && !programs.iter().any(|known: &String| known.starts_with(&program))
            {
                programs.push(format!("{program}{}", applications::native(example, false, folder)?.display()));
            }
        }
        cores::pin(core)?;
        let sledge = Server::start_config(folder, &config)?;
        let native = Native::start(&programs)?;
        cores::pin(load_core)?;
        Ok(Servers { sledge, native })
    }

    fn address(&self, peer: Peer) -> SocketAddr {
        match peer {
            Peer::Sledge => self.sledge.address(),
            Peer::Handler | Peer::Process => self.native.address(),
        }
    }
}

/// Runs the scenarios, each so many times: a row for each part, server and turn.
///
/// # Errors
///
/// If something does not build or start, a connection breaks, or a reply is wrong.
pub fn run(scenarios: &[Scenario], turns: usize, folder: &Path) -> Result<Vec<Row>> {
    let [core, load_core] = cores::two()?;
    let servers = Servers::start(folder, scenarios, core, load_core)?;
    let bar = steps::bar("scenarios", scenarios.iter().map(|scenario| (scenario.peers.len() * turns) as u64).sum());
    let mut rows = Vec::new();
    for scenario in scenarios {
        for turn in 0..turns {
            for peer in scenario.peers {
                let run = one(scenario, turn, *peer, servers.address(*peer));
                rows.extend(run.with_context(|| format!("{}, {}{}", scenario.name, peer.name(), servers.sledge.log_end()))?);
                bar.inc(1);
            }
        }
    }
    bar.finish_and_clear();
    servers.sledge.stop()?;
    Ok(rows)
}

fn one(scenario: &Scenario, turn: usize, peer: Peer, address: SocketAddr) -> Result<Vec<Row>> {
    let mut loads = Vec::new();
    let (mut warm_up, mut time) = (WARM_UP, TIME);
    for Part { function, load } in &scenario.parts {
        let body = Bytes::copy_from_slice(&load.body);
        let reply = Client::connect(address)?.post(&load.path, &body, &[])?;
        ensure!(reply.status.is_success(), "status {}", reply.status);
        function.judge(&body, &reply.body)?;
        let mut load = Load { expected: Expected::Body(reply.body), ..load.clone() };
        match scenario.time {
            Time::Fixed(fixed) => time = fixed,
            Time::Rounds => {
                load.stagger = reply.elapsed * load.clients as u32;
                (warm_up, time) = (TIME_MIN.max(load.stagger * 2), TIME_MIN.max(load.stagger * ROUNDS));
            }
        }
        loads.push(load);
    }
    let outcomes = load::run(address, &loads, warm_up, time)?;
    let several = loads.len() > 1;
    let name = |part: &Part| if several { format!("{}/{}", scenario.name, part.function.name()) } else { scenario.name.clone() };
    let rows = scenario.parts.iter().zip(&loads).zip(&outcomes);
    Ok(rows.map(|((part, load), outcome)| Row::new(&name(part), peer.name(), turn, load, outcome)).collect())
}
