//! Soak: a server under everything at once for a long time: right requests, traps, endless loops that meet their deadlines, connections kept and
//! thrown away, functions deployed, replaced and removed. What is mixed in which piece of the time is drawn from a seed.
//!
//! After each piece, when nothing runs, the server's memory and file descriptors are looked at. Wrong are: a reply that is not what it has to be, a
//! refused deployment, memory or descriptors that go on growing after the first minute, and a server that does not end as it should.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;
use sledge::admin::{Address, Client};

use crate::example::{FIBONACCI, GPS_EKF, IMAGE_RESIZE};
use crate::load::{self, Expected, Load};
use crate::random::Random;
use crate::server::Server;
use crate::{checkout, client, compiler, steps};

/// Load between two looks.
const PIECE: Duration = Duration::from_secs(2);
/// What the server may still have to put away when the load has ended.
const SETTLE: Duration = Duration::from_secs(5);
/// Until caches and pools are as full as they become.
const WARM: Duration = Duration::from_secs(60);
/// Growth that is none: the allocator's, and the kernel's batches when it counts pages.
const MEMORY_SHARE_MAX: f64 = 0.05;
const MEMORY_BYTES_MAX: f64 = 4e6;
/// When the server gives back what no request needs, in milliseconds: well before a look, so that looks do not differ by what was asked for last.
const IDLE_MEMORY_MS: u64 = 100;
/// Endless functions are stopped after this.
const DEADLINE_MS: u64 = 30;

/// A server at rest.
#[derive(Debug, Clone, Copy)]
struct Look {
    bytes: u64,
    descriptors: usize,
}

/// What a soak came to.
#[derive(Debug)]
pub struct Soaked {
    /// Replies, all of them right.
    pub replies: u64,
    /// Functions deployed, replaced and removed.
    pub deployments: u64,
    /// Lines to read.
    pub report: String,
}

/// Requests that may be part of a piece.
struct Mix {
    loads: Vec<Load>,
}

impl Mix {
    fn new(server: &Server) -> Result<Mix> {
        let mut loads = Vec::new();
        for example in [&FIBONACCI, &GPS_EKF, &IMAGE_RESIZE] {
            let body = example.input()?;
            let reply = client::Client::connect(server.address())?.post(example.route, &Bytes::copy_from_slice(&body), &[])?;
            example.judge(&body, &reply.body)?;
            loads.push(Load { expected: Expected::Body(reply.body), ..Load::new(1, example.route, body, 0) });
        }
        loads.push(Load::new(1, "/ping", Vec::new(), 1));
        for bytes in [1, 10_000, 1_000_000] {
            let body = vec![b'e'; bytes];
            loads.push(Load { expected: Expected::Body(Bytes::from(body.clone())), ..Load::new(1, "/echo", body, 0) });
        }
        for (path, status) in [("/trap", 500), ("/overflow", 500), ("/endless", 504), ("/nowhere", 404)] {
            loads.push(Load { expected: Expected::Status(status), ..Load::new(1, path, Vec::new(), 0) });
        }
        Ok(Mix { loads })
    }

    /// Between two and all of them, each with some clients.
    fn draw(&self, random: &mut Random) -> Vec<Load> {
        let mut chosen = self.loads.clone();
        while chosen.len() > 2 && random.below(4) > 0 {
            chosen.swap_remove(random.below(chosen.len() as u64) as usize);
        }
        for load in &mut chosen {
            load.clients = 1 + random.below(if load.body.len() > 100_000 { 4 } else { 20 }) as usize;
            load.reconnect = random.below(3) == 0;
        }
        chosen
    }
}

/// Starts a server and torments it for so long.
///
/// # Errors
///
/// When something is wrong.
pub fn run(time: Duration, seed: u64, folder: &Path) -> Result<Soaked> {
    let door = folder.join("admin.sock");
    let server = Server::start_config(folder, &config(folder, &door)?)?;
    let admin = Client::new(vec![Address::Unix(door)], None)?;
    let modules = ping_modules()?;
    deploy(&admin, "ping", &modules[0])?;
    let soaked = soak(&server, &admin, &modules, time, seed).with_context(|| format!("seed {seed}{}", server.log_end()))?;
    let ended = server.stop()?;
    Ok(Soaked { report: format!("{}the server ended {} ms after SIGTERM\n", soaked.report, ended.as_millis()), ..soaked })
}

fn soak(server: &Server, admin: &Client, modules: &[Bytes; 2], time: Duration, seed: u64) -> Result<Soaked> {
    let mut random = Random(seed);
    let mix = Mix::new(server)?;
    let begin = Instant::now();
    let bar = steps::bar("soak, seconds", time.as_secs());
    let (mut replies, mut deployments, mut looks) = (0, 0, Vec::new());
    while begin.elapsed() < time {
        let loads = mix.draw(&mut random);
        let mut deploying = random.clone();
        let done = AtomicBool::new(false);
        let piece = std::thread::scope(|scope| {
            let deployer = scope.spawn(|| deploy_on(server, admin, modules, &mut deploying, &done));
            let outcomes = load::run(server.address(), &loads, Duration::ZERO, PIECE);
            done.store(true, Ordering::Relaxed);
            let deployed = deployer.join().map_err(|_| anyhow::anyhow!("the thread that deploys panicked"))?;
            anyhow::Ok((outcomes?, deployed?))
        });
        let paths = || loads.iter().map(|load| format!("{} {}", load.clients, load.path)).collect::<Vec<_>>().join(", ");
        let (outcomes, deployed) = piece.with_context(|| format!("after {} s, with {}", begin.elapsed().as_secs(), paths()))?;
        replies += outcomes.iter().map(|outcome| outcome.latencies.len()).sum::<u64>();
        deployments += deployed;
        random = deploying;
        looks.push((begin.elapsed(), rest(server, looks.iter().map(|(_, look): &(_, Look)| look.descriptors).min())?));
        bar.set_position(begin.elapsed().as_secs().min(time.as_secs()));
    }
    bar.finish_and_clear();
    Ok(Soaked { replies, deployments, report: judge(&looks)? })
}

/// Waits until the server has put away what the load has left, as far as its descriptors show.
fn rest(server: &Server, least: Option<usize>) -> Result<Look> {
    let begin = Instant::now();
    loop {
        let look = Look { bytes: server.resident_bytes()?, descriptors: server.descriptors()? };
        if least.is_none_or(|least| look.descriptors <= least) && begin.elapsed() > SETTLE / 10 || begin.elapsed() > SETTLE {
            return Ok(look);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Replaces ping, and deploys, asks and removes others, until it is told to stop: how often.
fn deploy_on(server: &Server, admin: &Client, modules: &[Bytes; 2], random: &mut Random, done: &AtomicBool) -> Result<u64> {
    let mut deployments = 0;
    while !done.load(Ordering::Relaxed) {
        deploy(admin, "ping", &modules[random.below(2) as usize])?;
        let name = format!("guest-{}", random.below(3));
        deploy(admin, &name, &modules[random.below(2) as usize])?;
        let reply = client::Client::connect(server.address())?.post(&format!("/{name}"), &Bytes::new(), &[])?;
        ensure!(reply.status.is_success() && reply.body == b"p"[..], "{name} answers {} {:?}", reply.status, reply.body);
        admin.ask(Request::delete(format!("/functions/{name}")).body(Full::default())?).context("a removal was refused")?;
        deployments += 3;
        std::thread::sleep(Duration::from_millis(random.below(100)));
    }
    Ok(deployments)
}

fn deploy(admin: &Client, name: &str, module: &Bytes) -> Result<()> {
    let request = Request::put(format!("/functions/{name}")).body(Full::new(module.clone()))?;
    admin.ask(request).with_context(|| format!("a deployment of {name} was refused"))?;
    Ok(())
}

/// Whether memory and descriptors have stopped growing: what they came down to in the second half of the first minute, beside as many looks at the
/// end. The least of them, since what a single piece leaves behind may be put away later.
fn judge(looks: &[(Duration, Look)]) -> Result<String> {
    let between =
        |from: Duration, to: Duration| looks.iter().filter(move |(at, _)| (from..to).contains(at)).map(|(_, look)| *look);
    let before: Vec<Look> = between(WARM / 2, WARM).collect();
    let later: Vec<Look> = between(WARM, Duration::MAX).collect();
    let last = &later[later.len().saturating_sub(before.len())..];
    ensure!(!before.is_empty() && !last.is_empty(), "too short to tell whether anything grows: it needs more than a minute");
    let least = |looks: &[Look], number: fn(&Look) -> f64| looks.iter().map(number).fold(f64::INFINITY, f64::min);
    let both = |number: fn(&Look) -> f64| (least(&before, number), least(last, number));
    let (bytes, more_bytes) = both(|look| look.bytes as f64);
    let (descriptors, more_descriptors) = both(|look| look.descriptors as f64);
    let text = format!(
        "resident bytes at rest: {bytes} in the first minute, {more_bytes} at the end\n\
         file descriptors at rest: {descriptors} in the first minute, {more_descriptors} at the end\n"
    );
    ensure!(more_bytes <= bytes * (1.0 + MEMORY_SHARE_MAX) + MEMORY_BYTES_MAX, "memory grows: {text}");
    ensure!(more_descriptors <= descriptors, "file descriptors leak: {text}");
    Ok(text)
}

/// Two versions of ping that differ in nothing that a client sees.
fn ping_modules() -> Result<[Bytes; 2]> {
    let source = fs::read_to_string(checkout::root().join("benches/functions/ping.wat"))?;
    let end = source.rfind(')').context("ping.wat is a module")?;
    let other = format!("{}(global i32 (i32.const 1)))", &source[..end]);
    Ok([Bytes::from(wat::parse_str(source)?), Bytes::from(wat::parse_str(other)?)])
}

fn config(folder: &Path, door: &Path) -> Result<String> {
    let quoted = |path: &Path| toml::Value::String(path.display().to_string());
    let mut config =
        format!("listen = \"127.0.0.1:0\"\nadmin = {}\ncache_dir = {}\n", quoted(door), quoted(&folder.join("cache")));
    config.push_str(&format!("idle_memory_ms = {IDLE_MEMORY_MS}\n"));
    let own = [
        ("trap", "unreachable", String::new()),
        ("overflow", "(drop (call $handle))", String::new()),
        ("endless", "(loop $again (br $again))", format!("deadline_ms = {DEADLINE_MS}\n")),
    ];
    for (name, body, deadline) in own {
        let file = folder.join(name).with_extension("wat");
        fs::write(&file, format!("(module (func $handle (export \"sledge_handle\") (result i32) {body} (i32.const 0)))"))?;
        let artifact = file.with_extension("so");
        compiler::compile(&file, &artifact)?;
        let path = quoted(&artifact);
        config.push_str(&format!("\n[[functions]]\nname = \"{name}\"\npath = {path}\n{deadline}"));
    }
    let echo = checkout::root().join("benches/functions/echo.wat");
    for (name, source) in [
        ("echo", echo),
        ("fibonacci", FIBONACCI.source()),
        ("gps-ekf", GPS_EKF.source()),
        ("image-resize", IMAGE_RESIZE.source()),
    ] {
        let artifact = folder.join(name).with_extension("so");
        compiler::compile(&source, &artifact)?;
        config.push_str(&format!("\n[[functions]]\nname = \"{name}\"\npath = {}\n", quoted(&artifact)));
    }
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looks(numbers: impl Fn(u64) -> (u64, usize)) -> Vec<(Duration, Look)> {
        (1..100)
            .map(|piece| (2 * piece, numbers(piece)))
            .map(|(at, (bytes, descriptors))| (Duration::from_secs(at), Look { bytes, descriptors }))
            .collect()
    }

    #[test]
    fn what_goes_on_growing_is_noticed() {
        assert!(judge(&looks(|_| (50_000_000, 20))).is_ok());
        // More at times, but not at the end.
        assert!(judge(&looks(|piece| (50_000_000 + piece % 7 * 10_000_000, 20 + piece as usize % 3))).is_ok());
        assert!(judge(&looks(|piece| (50_000_000 + piece * 500_000, 20))).unwrap_err().to_string().contains("memory grows"));
        assert!(
            judge(&looks(|piece| (50_000_000, 20 + piece as usize / 10))).unwrap_err().to_string().contains("descriptors leak")
        );
        assert!(judge(&looks(|_| (50_000_000, 20))[..20]).unwrap_err().to_string().contains("too short"));
    }
}
