//! Load on a server over HTTP/1.1: on any (`load url`), or on `sledge` and what it is compared with (`load scenarios`).
//!
//! Exit status 0 only if every reply was what it should be.
#![forbid(unsafe_code)]

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use clap::{Args, Parser, Subcommand};
use hyper::Uri;
use sledge_benches::client::Client;
use sledge_benches::load::{self, Expected, Load};
use sledge_benches::row::{self, Row};
use sledge_benches::scenario;

/// Sends requests over HTTP/1.1 and says how many were answered and how long that took.
#[derive(Parser)]
struct Options {
    #[command(subcommand)]
    command: Command,
    /// Write every run here as CSV.
    #[arg(long, value_name = "FILE", global = true)]
    csv: Option<PathBuf>,
    /// Write every run here as JSON.
    #[arg(long, value_name = "FILE", global = true)]
    json: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Command {
    /// Send POST requests to a server that is running.
    Url(Target),
    /// Start sledge and what it is compared with, and send them all the same requests.
    Scenarios {
        /// Only those whose names begin so.
        names: Vec<String>,
        /// How often each is run.
        #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=1000))]
        turns: u16,
        /// Print their names, and run none.
        #[arg(long)]
        list: bool,
    },
}

#[derive(Args)]
struct Target {
    /// http://HOST:PORT/PATH
    url: Uri,
    /// Connections at a time; several numbers are runs one after the other.
    #[arg(long, value_delimiter = ',', default_value = "10")]
    clients: Vec<u16>,
    /// Open loop: so many requests a second, whether others were answered or not. Latency counts from when a request was due.
    #[arg(long, value_name = "PER-SECOND")]
    rate: Option<f64>,
    /// A new connection for each request.
    #[arg(long)]
    reconnect: bool,
    /// How long, after the warm-up.
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    /// How long requests are sent before they count.
    #[arg(long, value_name = "SECONDS", default_value_t = 0.5)]
    warm_up: f64,
    /// Most requests, those of the warm-up included.
    #[arg(long, default_value_t = u64::MAX, hide_default_value = true)]
    requests: u64,
    /// The body; none if not given.
    #[arg(long, value_name = "FILE")]
    body: Option<PathBuf>,
    /// What each reply has to be; if not given, what the first one is.
    #[arg(long, value_name = "FILE")]
    expect: Option<PathBuf>,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("load: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<()> {
    let rows = match &options.command {
        Command::Url(target) => url(target)?,
        Command::Scenarios { names, turns, list } => {
            let mut scenarios = scenario::all()?;
            scenarios.retain(|scenario| names.is_empty() || names.iter().any(|name| scenario.name.starts_with(name)));
            ensure!(
                !scenarios.is_empty(),
                "no scenario's name begins with {}; `load scenarios --list` shows all",
                names.join(" or ")
            );
            if *list {
                scenarios.iter().for_each(|scenario| println!("{}", scenario.name));
                return Ok(());
            }
            let folder = tempfile::Builder::new().prefix("sledge-load-").tempdir().context("no temporary folder")?;
            scenario::run(&scenarios, usize::from(*turns), folder.path())?
        }
    };
    print!("{}", row::table(&rows));
    if let Some(file) = &options.csv {
        std::fs::write(file, row::csv(&rows)).with_context(|| format!("cannot write {}", file.display()))?;
    }
    if let Some(file) = &options.json {
        std::fs::write(file, serde_json::to_vec_pretty(&rows)?).with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(())
}

fn url(target: &Target) -> Result<Vec<Row>> {
    let address = address(&target.url)?;
    let path = target.url.path_and_query().map_or("/", |path| path.as_str()).to_owned();
    let body = target.body.as_deref().map(read).transpose()?.unwrap_or_default();
    let expected = match &target.expect {
        Some(file) => Bytes::from(read(file)?),
        None => {
            let reply = Client::connect(address)?.post(&path, &Bytes::copy_from_slice(&body), &[])?;
            ensure!(reply.status.is_success(), "POST {path}: status {}", reply.status);
            reply.body
        }
    };
    let [warm_up, time] = [target.warm_up, target.seconds].map(Duration::try_from_secs_f64);
    let (warm_up, time) = (warm_up.context("--warm-up")?, time.context("--seconds")?);
    ensure!(target.rate.is_none_or(|rate| rate > 0.0 && rate.is_finite()), "--rate has to be more than none");
    let mut rows = Vec::new();
    for clients in &target.clients {
        let load = Load {
            expected: Expected::Body(expected.clone()),
            reconnect: target.reconnect,
            rate: target.rate,
            requests_max: target.requests,
            ..Load::new(usize::from(*clients), &path, body.clone(), 0)
        };
        for outcome in load::run(address, std::slice::from_ref(&load), warm_up, time)? {
            rows.push(Row::new(&format!("{path} {clients}"), &target.url.to_string(), 0, &load, &outcome));
        }
    }
    Ok(rows)
}

fn address(url: &Uri) -> Result<SocketAddr> {
    let (Some("http"), Some(authority)) = (url.scheme_str(), url.authority()) else {
        bail!("{url}: expected is http://HOST:PORT/PATH");
    };
    let mut addresses =
        (authority.host(), authority.port_u16().unwrap_or(80)).to_socket_addrs().with_context(|| url.to_string())?;
    addresses.next().with_context(|| format!("{url}: the host has no address"))
}

fn read(file: &Path) -> Result<Vec<u8>> {
    std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))
}
