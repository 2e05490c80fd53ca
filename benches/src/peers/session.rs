//! Asks `sledge` and its peers in turns.
//!
//! Servers have one core, the first that there is, and the load comes from the second. In each turn all of them are asked for a function, one
//! after the other, each turn beginning with another. A server that fails at a function is not asked for it again; the run goes on.

use std::io::IsTerminal as _;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use bytes::Bytes;

use super::function::Built;
use super::peer::SLEDGE;
use super::plan::{Plan, Scenario};
use super::report::{Line, Outcome, Report};
use super::running::{Running, Started};
use super::start;
use crate::client::Client;
use crate::load::{self, Expected, Load};
use crate::polybench::machine;
use crate::row::Row;
use crate::{cores, steps};

/// Replies that are judged before each turn. What compiles while it runs has done so afterwards.
const JUDGED: usize = 3;
/// How often the clients' requests fit into a turn, one after the other: those of what is slow take seconds.
const ROUNDS: u32 = 3;
/// Longest that a turn takes, not counting as much for warming up.
const TIME_MAX: Duration = Duration::from_secs(20);

/// `sledge` or a peer.
struct Server {
    name: &'static str,
    started: Result<Running, Outcome>,
}

/// Measures what the plan says.
///
/// # Errors
///
/// If no function can be built, or there are not two cores.
pub fn measure(plan: &Plan) -> Result<Report> {
    let [core, load_core] = cores::two()?;
    // As long as this thread may run on all cores, it knows how many there are.
    let place = format!("{}; servers on core {core}, load from core {load_core}", machine::description());
    let folder = tempfile::Builder::new().prefix("sledge-peers-").tempdir().context("no temporary folder")?;
    let mut built: Vec<Built> = Vec::new();
    for Scenario { function, .. } in &plan.scenarios {
        if built.iter().all(|known| known.function.name != function.name) {
            built.push(function.build(folder.path())?);
        }
    }
    cores::pin(core)?;
    let servers = servers(plan, &built, folder.path());
    cores::pin(load_core)?;
    let versions = servers.iter().filter_map(|server| server.started.as_ref().ok()?.version.clone());
    let mut conditions: Vec<_> = [place, format!("sledge {}", machine::commit())].into_iter().chain(versions).collect();
    // Two peers may be one program.
    conditions.dedup();
    let bar = steps::bar("measuring", (plan.scenarios.len() * plan.turns * servers.len()) as u64);
    let mut report = Report::new(plan, conditions.join("; "));
    for scenario in &plan.scenarios {
        let mut lines: Vec<_> = servers.iter().map(|server| line(scenario, server)).collect();
        for turn in 0..plan.turns {
            for index in (0..servers.len()).map(|index| (index + turn) % servers.len()) {
                bar.set_message(format!("turn {} {} {}", turn + 1, scenario.name(), servers[index].name));
                ask(plan, scenario, turn, &servers[index], &mut lines[index]);
                bar.inc(1);
            }
        }
        if !std::io::stderr().is_terminal() {
            lines.iter().for_each(|line| println!("{line}"));
        }
        report.lines.extend(lines);
    }
    bar.finish_and_clear();
    Ok(report)
}

fn servers(plan: &Plan, built: &[Built], folder: &Path) -> Vec<Server> {
    let failed = |error: anyhow::Error| Outcome::Failed(format!("does not start: {error:#}"));
    let mut servers = vec![Server { name: SLEDGE, started: start::sledge(built, folder).map_err(failed) }];
    for peer in &plan.peers {
        let started = match start::peer(*peer, built, folder) {
            Ok(Started::Running(running)) => Ok(running),
            Ok(Started::Missing(reason)) => Err(Outcome::Missing(reason)),
            Err(error) => Err(failed(error)),
        };
        if let Err(outcome) = &started {
            println!("{}: {outcome}", peer.name());
        }
        servers.push(Server { name: peer.name(), started });
    }
    servers
}

/// A line without numbers as yet.
fn line(scenario: &Scenario, server: &Server) -> Line {
    let outcome = match &server.started {
        Err(outcome) => outcome.clone(),
        Ok(running) => match running.target(scenario.function) {
            Ok(_) => Outcome::Measured(Vec::new()),
            Err(reason) => Outcome::Missing(reason),
        },
    };
    Line { scenario: scenario.name(), server: server.name, outcome }
}

fn ask(plan: &Plan, scenario: &Scenario, turn: usize, server: &Server, line: &mut Line) {
    let (Outcome::Measured(rows), Ok(running)) = (&mut line.outcome, &server.started) else { return };
    match one(plan, scenario, turn, server.name, running) {
        Ok(row) => rows.push(row),
        Err(error) => line.outcome = Outcome::Failed(format!("{error:#}{}", running.log_end())),
    }
}

fn one(plan: &Plan, scenario: &Scenario, turn: usize, name: &str, running: &Running) -> Result<Row> {
    let (address, path) = running.target(scenario.function).map_err(anyhow::Error::msg)?;
    let body = scenario.body()?;
    let mut client = Client::connect(address)?;
    let (mut right, mut shortest) = (Bytes::new(), Duration::MAX);
    for _ in 0..JUDGED {
        let reply = client.post(&path, &Bytes::copy_from_slice(&body), &[])?;
        ensure!(reply.status.is_success(), "status {}: {}", reply.status, reply.body[..reply.body.len().min(200)].escape_ascii());
        scenario.function.judge(&body, &reply.body)?;
        (right, shortest) = (reply.body, shortest.min(reply.elapsed));
    }
    // Where requests share the processor, those that begin together end together: clients begin one after the other, nothing counts
    // before all have been answered, and whole rounds of them are measured.
    let round = (shortest * scenario.asked.clients as u32).min(TIME_MAX / ROUNDS);
    let time = plan.time.max(round * ROUNDS);
    let load = Load {
        // Equal to what was judged: the functions always answer the same, to the last bit.
        expected: Expected::Body(right),
        stagger: round,
        ..Load::new(scenario.asked.clients, &path, body, 0)
    };
    let outcomes = load::run(address, std::slice::from_ref(&load), time.min(plan.time.max(round * 2)), time)?;
    let outcome = outcomes.first().context("one load has one outcome")?;
    ensure!(!outcome.latencies.is_empty(), "no reply within {time:?}");
    Ok(Row::new(&scenario.name(), name, turn, &load, outcome))
}
