//! The group `io`: what functions wait for, and what waiting costs.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use bytes::Bytes;

use super::Bench;
use crate::client::Client;
use crate::load::{self, Load};
use crate::server::Server;
use crate::{checkout, compiler};

/// How often a function that times something is asked; each asks many times itself.
pub(super) const ROUNDS: usize = 5;
/// Sandboxes that wait.
const WAITING: usize = 1_000;
/// How long they wait: longer than anybody looks.
const WAIT: Duration = Duration::from_secs(60);

/// A server with one worker and a key-value store, and these functions of `benches/functions`.
pub(super) fn server(bench: &Bench, kv: &str, files: &[&str]) -> Result<Server> {
    server_with(bench, kv, files, "")
}

/// The same with more keys for each function.
fn server_with(bench: &Bench, kv: &str, files: &[&str], keys: &str) -> Result<Server> {
    let mut config = format!("listen = \"127.0.0.1:0\"\nworkers = 1\nadmin = \"none\"\nkv = \"{kv}\"\n");
    for file in files {
        let source = checkout::root().join("benches/functions").join(file);
        let artifact = bench.folder.path().join(Path::new(file).with_extension("so"));
        compiler::compile(&source, &artifact)?;
        let name = source.file_stem().context("a name")?.to_string_lossy();
        let path = toml::Value::String(artifact.display().to_string());
        config.push_str(&format!("\n[[functions]]\nname = \"{name}\"\npath = {path}\ndeadline_ms = 120000\n{keys}"));
    }
    let folder = tempfile::tempdir_in(bench.folder.path())?.keep();
    Server::start_config(&folder, &config)
}

/// Asks a function that replies with a number of nanoseconds; in microseconds.
pub(super) fn ask(client: &mut Client, path: &str) -> Result<f64> {
    let reply = client.post(path, &Bytes::new(), &[])?;
    ensure!(reply.status == 200, "{path}: status {}", reply.status);
    let text = String::from_utf8_lossy(&reply.body).into_owned();
    let nanoseconds: f64 = text.trim().parse().with_context(|| format!("{path}: {text:?}"))?;
    Ok(nanoseconds / 1e3)
}

pub(super) fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

fn asked(server: &Server, path: &str) -> Result<f64> {
    let mut client = Client::connect(server.address())?;
    ask(&mut client, path)?;
    Ok(median((0..ROUNDS).map(|_| ask(&mut client, path)).collect::<Result<_>>()?))
}

/// A get from the store in the process, from the guest's call to its result.
pub(super) fn kv_get_median_us(bench: &mut Bench) -> Result<f64> {
    asked(&server(bench, "memory", &["kv-get.c"])?, "/kv-get")
}

/// A call of the empty function, from the guest's call to its result.
pub(super) fn invoke_median_us(bench: &mut Bench) -> Result<f64> {
    asked(&server(bench, "memory", &["invoke.c", "empty.wat"])?, "/invoke")
}

/// Sandboxes that wait, until this is dropped.
struct Waiting(Vec<TcpStream>);

impl Waiting {
    /// Those of the function `wait`.
    fn start(server: &Server) -> Result<Waiting> {
        Waiting::start_with(server, "/wait", &i64::try_from(WAIT.as_nanos())?.to_le_bytes())
    }

    /// Has them made, and waits until they are.
    fn start_with(server: &Server, path: &str, body: &[u8]) -> Result<Waiting> {
        let head = format!("POST {path} HTTP/1.1\r\nhost: a\r\ncontent-length: {}\r\n\r\n", body.len());
        let request = [head.as_bytes(), body].concat();
        let mut streams = Vec::with_capacity(WAITING);
        for _ in 0..WAITING {
            let mut stream = TcpStream::connect(server.address())?;
            stream.write_all(&request)?;
            streams.push(stream);
        }
        // They all came before what is asked now, to the same worker.
        for _ in 0..20 {
            let load = Load::new(1, "/ping", Vec::new(), 1);
            load::run(server.address(), &[load], Duration::ZERO, Duration::from_millis(20))?;
        }
        let answered = streams.iter_mut().any(|stream| {
            let quiet = stream.set_nonblocking(true).is_ok() && stream.read(&mut [0]).is_err();
            !quiet
        });
        ensure!(!answered, "not all of them wait");
        Ok(Waiting(streams))
    }
}

/// What one more sandbox that waits adds to the server's resident memory, its connection included, in kB.
pub(super) fn blocked_sandbox_kb(bench: &mut Bench) -> Result<f64> {
    let server = server(bench, "memory", &["wait.wat", "ping.wat"])?;
    let warm = Load::new(4, "/ping", Vec::new(), 1);
    load::run(server.address(), &[warm], Duration::ZERO, Duration::from_millis(300))?;
    let before = server.resident_bytes()?;
    let waiting = Waiting::start(&server)?;
    let after = server.resident_bytes()?;
    Ok((after.saturating_sub(before)) as f64 / waiting.0.len() as f64 / 1e3)
}

/// The 99th percentile of ping beside a thousand sandboxes that wait to that without them, medians of turns.
pub(super) fn blocked_ping_p99_ratio(bench: &mut Bench) -> Result<f64> {
    let server = server(bench, "memory", &["wait.wat", "ping.wat"])?;
    ping_p99_ratio(&server, || Waiting::start(&server))
}

/// The same beside a thousand that wait for the reply of another server.
pub(super) fn fetch_ping_p99_ratio(bench: &mut Bench) -> Result<f64> {
    let slow = server(bench, "memory", &["wait.wat", "ping.wat"])?;
    let hosts = format!("http_hosts = [\"{}\"]\n", slow.address());
    let server = server_with(bench, "memory", &["fetch-wait.c", "ping.wat"], &hosts)?;
    let url = format!("http://{}/wait", slow.address());
    ping_p99_ratio(&server, || Waiting::start_with(&server, "/fetch-wait", url.as_bytes()))
}

fn ping_p99_ratio(server: &Server, wait: impl Fn() -> Result<Waiting>) -> Result<f64> {
    let p99 = || -> Result<f64> {
        let load = Load::new(10, "/ping", Vec::new(), 1);
        let outcomes = load::run(server.address(), &[load], Duration::from_millis(300), Duration::from_secs(2))?;
        Ok(outcomes.first().context("an outcome")?.p99_us())
    };
    let mut ratios = Vec::new();
    for _ in 0..ROUNDS {
        let alone = p99()?;
        let waiting = wait()?;
        ratios.push(p99()? / alone);
        drop(waiting);
        // The requests whose clients have gone end before the next turn.
        thread::sleep(Duration::from_millis(500));
    }
    Ok(median(ratios))
}
