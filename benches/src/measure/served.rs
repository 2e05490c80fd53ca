//! The group `applications`, serving: the paper's programs in sandboxes, against a process for each request.
//!
//! `bin/native.rs` starts the native program anew for each request, as runtimes without sandboxes do; its HTTP is the same. Both servers have
//! one core, the first that there is; 100 clients come from the second. What is compared is measured in turns.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use bytes::Bytes;

use super::Bench;
use crate::client::{Client, Reply};
use crate::example::{APPLICATIONS, Example, GPS_EKF};
use crate::load::{self, Expected, Load, Outcome};
use crate::native::Native;
use crate::server::Server;
use crate::{applications, compiler, cores};

const CLIENTS: usize = 100;
const TURNS: usize = 3;
/// Every turn takes at least that long, not counting as much for warming up.
const TIME_MIN: Duration = Duration::from_secs(2);
/// How often the clients' requests fit into a turn, one after the other: those of the heaviest take seconds.
const ROUNDS: u32 = 3;

/// One application, sandboxes to processes: medians of the turns.
#[derive(Debug, Clone, Copy)]
pub(super) struct Served {
    name: &'static str,
    throughput: f64,
    mean: f64,
    p99: f64,
}

/// Both servers.
struct Servers {
    sledge: Server,
    native: Native,
}

/// All applications, one after the other.
pub(super) fn measured(folder: &Path) -> Result<Vec<Served>> {
    let mut config = "listen = \"127.0.0.1:0\"\nworkers = 1\n".to_owned();
    let mut programs = Vec::new();
    for example in APPLICATIONS {
        let artifact = folder.join(format!("{}-served.so", example.name));
        compiler::compile(&example.source(), &artifact)?;
        let path = toml::Value::String(artifact.display().to_string());
        config.push_str(&format!("\n[[functions]]\nname = \"{}\"\npath = {path}\n", example.name));
        programs.push(format!("{}={}", example.name, applications::native(example, false, folder)?.display()));
    }
    let [server_core, load_core] = cores::two()?;
    cores::pin(server_core)?;
    let sledge = Server::start_config(folder, &config)?;
    let native = Native::start(&programs)?;
    cores::pin(load_core)?;
    let servers = Servers { sledge, native };
    APPLICATIONS.iter().map(|example| compare(&servers, example)).collect()
}

fn compare(servers: &Servers, example: &'static Example) -> Result<Served> {
    let body = example.input()?;
    let (mut throughput, mut mean, mut p99) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..TURNS {
        let turn = |address: SocketAddr| -> Result<Outcome> {
            let reply = reply(example, address, &body)?;
            // Both servers share the processor among all that they have begun, so what begins together ends together: clients begin one after
            // the other, and nothing counts before all have been answered.
            let round = reply.elapsed * CLIENTS as u32;
            let load = Load {
                expected: Expected::Body(reply.body),
                stagger: round,
                ..Load::new(CLIENTS, example.route, body.clone(), 0)
            };
            let time = TIME_MIN.max(round * ROUNDS);
            load::run(address, &[load], TIME_MIN.max(round * 2), time)?.pop().context("one load has one outcome")
        };
        let processes = turn(servers.native.address()).context("processes")?;
        let sandboxes = turn(servers.sledge.address()).context("sandboxes")?;
        throughput.push(sandboxes.per_second / processes.per_second);
        mean.push(sandboxes.mean_us() / processes.mean_us());
        p99.push(sandboxes.p99_us() / processes.p99_us());
        eprintln!(
            "{}: processes {:.0} a second, mean {:.2} ms, p99 {:.2} ms; sandboxes {:.0} a second, mean {:.2} ms, p99 {:.2} ms",
            example.name,
            processes.per_second,
            processes.mean_us() / 1e3,
            processes.p99_us() / 1e3,
            sandboxes.per_second,
            sandboxes.mean_us() / 1e3,
            sandboxes.p99_us() / 1e3,
        );
    }
    let median = |mut numbers: Vec<f64>| {
        numbers.sort_by(f64::total_cmp);
        numbers[TURNS / 2]
    };
    Ok(Served { name: example.name, throughput: median(throughput), mean: median(mean), p99: median(p99) })
}

/// A server's reply, once it was judged: all others have to be the same.
fn reply(example: &Example, address: SocketAddr, body: &[u8]) -> Result<Reply> {
    let reply = Client::connect(address)?.post(example.route, &Bytes::copy_from_slice(body), &[])?;
    example.judge(body, &reply.body)?;
    Ok(reply)
}

/// The worst of all applications.
fn worst(bench: &mut Bench, number: fn(&Served) -> f64, worse: fn(f64, f64) -> f64) -> Result<f64> {
    bench.served()?.iter().map(number).reduce(worse).context("there are applications")
}

/// Throughput of the filter.
pub(super) fn gps_ekf(bench: &mut Bench) -> Result<f64> {
    let served = bench.served()?.iter().find(|served| served.name == GPS_EKF.name).context("it is one of them")?;
    Ok(served.throughput)
}

/// The least throughput.
pub(super) fn throughput(bench: &mut Bench) -> Result<f64> {
    worst(bench, |served| served.throughput, f64::min)
}

/// The longest mean.
pub(super) fn mean(bench: &mut Bench) -> Result<f64> {
    worst(bench, |served| served.mean, f64::max)
}

/// The longest 99th percentile.
pub(super) fn p99(bench: &mut Bench) -> Result<f64> {
    worst(bench, |served| served.p99, f64::max)
}
