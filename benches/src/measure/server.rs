//! The group `server`: starting, memory, replacing functions under load, clients that mean no good, HTTP/2 by its specification.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;
use sledge::admin::{Address, Client};

use super::Bench;
use crate::load::{self, Load};
use crate::server::Server;
use crate::{checkout, compiler, cores};

const FUNCTIONS: usize = 10;
const STARTS: usize = 21;
const REPLACEMENTS: usize = 1_000;
const SLOW_CLIENTS: usize = 1_000;
const TURNS: usize = 5;
const WARM_UP: Duration = Duration::from_millis(300);
const TIME: Duration = Duration::from_millis(1_500);
const OBSERVED_TURNS: usize = 15;
const OBSERVED_PAUSE: Duration = Duration::from_millis(250);

/// Ping, compiled, and a configuration with ten functions that are it.
fn ten_functions(folder: &Path) -> Result<PathBuf> {
    let artifact = folder.join("ping-of-ten.so");
    compiler::compile(&checkout::root().join("benches/functions/ping.wat"), &artifact)?;
    let path = toml::Value::String(artifact.display().to_string());
    let mut config = "listen = \"127.0.0.1:0\"\nadmin = \"none\"\n".to_owned();
    for index in 0..FUNCTIONS {
        config.push_str(&format!("[[functions]]\nname = \"ping-{index}\"\npath = {path}\n"));
    }
    let file = folder.join("ten.toml");
    fs::write(&file, config).with_context(|| format!("cannot write {}", file.display()))?;
    Ok(file)
}

/// A server that is killed when it is not needed any more.
struct Started(Child);

impl Drop for Started {
    fn drop(&mut self) {
        // Both fail harmlessly when it has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(config: &Path) -> Result<(Started, SocketAddr)> {
    let mut command = Command::new(checkout::program("sledge")?);
    command.args(["serve", "--config"]).arg(config).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut started = Started(command.spawn().context("cannot start sledge")?);
    let mut line = String::new();
    BufReader::new(started.0.stdout.take().context("its output is piped")?).read_line(&mut line)?;
    let address = line.trim_end().rsplit('/').next().and_then(|address| address.parse().ok());
    Ok((started, address.with_context(|| format!("sledge says {line:?}"))?))
}

fn ping(address: SocketAddr, function: usize) -> Result<()> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    write!(stream, "POST /ping-{function} HTTP/1.1\r\nhost: bench\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")?;
    let mut reply = String::new();
    stream.read_to_string(&mut reply)?;
    ensure!(reply.starts_with("HTTP/1.1 200"), "the reply is {reply:?}");
    Ok(())
}

/// From the start of the process to the first reply.
pub(super) fn start_ms(bench: &mut Bench) -> Result<f64> {
    let config = ten_functions(bench.folder.path())?;
    let mut times = Vec::new();
    for _ in 0..STARTS {
        let begin = Instant::now();
        let (_server, address) = start(&config)?;
        ping(address, FUNCTIONS - 1)?;
        times.push(begin.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    Ok(times[STARTS / 2])
}

/// Resident memory after each function was asked once.
pub(super) fn idle_mb(bench: &mut Bench) -> Result<f64> {
    let (server, address) = start(&ten_functions(bench.folder.path())?)?;
    (0..FUNCTIONS).try_for_each(|function| ping(address, function))?;
    let kb = |pid: u32, key: &str| -> Result<f64> {
        let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
        let line = status.lines().find_map(|line| line.strip_prefix(key)).with_context(|| format!("no {key}"))?;
        Ok(line.trim().trim_end_matches("kB").trim().parse()?)
    };
    let pid = server.0.id();
    // What starts compilers for it belongs to it; the program's pages are there once.
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))?;
    let of_children = children.split_whitespace().map(|child| kb(child.parse()?, "RssAnon:")).sum::<Result<f64>>()?;
    Ok((kb(pid, "VmRSS:")? + of_children) * 1024.0 / 1e6)
}

/// Throughput of ping that is counted, timed, limited and watched, to that of ping that is not.
pub(super) fn observed(bench: &mut Bench) -> Result<f64> {
    let artifact = bench.folder.path().join("ping-observed.so");
    compiler::compile(&checkout::root().join("benches/functions/ping.wat"), &artifact)?;
    let path = toml::Value::String(artifact.display().to_string());
    let [servers, load] = cores::two()?;
    cores::pin(servers)?;
    let start = |name: &str, general: &str, limits: &str| {
        let folder = bench.folder.path().join(name);
        fs::create_dir_all(&folder)?;
        let door = folder.join("admin.sock");
        let head = format!("listen = \"127.0.0.1:0\"\nworkers = 1\nadmin = \"{}\"\n{general}", door.display());
        let server = Server::start_config(&folder, &format!("{head}[[functions]]\nname = \"ping\"\npath = {path}\n{limits}"))?;
        anyhow::Ok((server, Client::new(vec![Address::Unix(door)], None)?))
    };
    let (plain, _) = start("plain", "metrics = false\n", "")?;
    let (observed, client) = start("observed", "", "concurrency_max = 64\nqueue_max = 64\n")?;
    cores::pin(load)?;
    let ping = [Load::new(10, "/ping", Vec::new(), 1)];
    let per_second = |server: &Server| anyhow::Ok(load::run(server.address(), &ping, WARM_UP, TIME)?[0].per_second);
    let mut ratios = Vec::new();
    for _ in 0..OBSERVED_TURNS {
        let alone = per_second(&plain)?;
        let done = AtomicBool::new(false);
        let watched = std::thread::scope(|scope| -> Result<f64> {
            let watch = scope.spawn(|| -> Result<()> {
                while !done.load(Ordering::Relaxed) {
                    let mut text = Vec::new();
                    client.copy(Request::get("/metrics").body(Full::default())?, &mut text)?;
                    ensure!(text.ends_with(b"# EOF\n"), "/metrics ends early");
                    std::thread::sleep(OBSERVED_PAUSE);
                }
                Ok(())
            });
            let watched = per_second(&observed);
            done.store(true, Ordering::Relaxed);
            watch.join().map_err(|_| anyhow::anyhow!("the thread that watches panicked"))??;
            watched
        })?;
        ratios.push(watched / alone);
    }
    ratios.sort_by(f64::total_cmp);
    Ok(ratios[OBSERVED_TURNS / 2])
}

/// Functions replaced while they are asked: the number of replacements that were refused. A wrong or missing reply is an error.
pub(super) fn replacements_failed(bench: &mut Bench) -> Result<f64> {
    let folder = bench.folder.path().join("replaced");
    fs::create_dir_all(&folder)?;
    let door = folder.join("admin.sock");
    let cache = toml::Value::String(folder.join("cache").display().to_string());
    let text = format!("listen = \"127.0.0.1:0\"\nadmin = \"{}\"\ncache_dir = {cache}\n", door.display());
    let server = Server::start_config(&folder, &text)?;
    let client = Client::new(vec![Address::Unix(door)], None)?;
    let source = fs::read_to_string(checkout::root().join("benches/functions/ping.wat"))?;
    // Two versions that differ in nothing that a client sees.
    let end = source.rfind(')').context("ping.wat is a module")?;
    let modules: Vec<Bytes> = [source.clone(), format!("{}(global i32 (i32.const 1)))", &source[..end])]
        .into_iter()
        .map(|text| anyhow::Ok(Bytes::from(wat::parse_str(text)?)))
        .collect::<Result<_>>()?;
    let deploy = |index: usize| {
        let request = Request::put("/functions/ping").body(Full::new(modules[index % modules.len()].clone()))?;
        client.ask(request).context("a replacement was refused")
    };
    deploy(0)?;
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let load = scope.spawn(|| -> Result<u64> {
            let mut answered = 0;
            while !done.load(Ordering::Relaxed) {
                let outcome = &load::run(server.address(), &[Load::new(8, "/ping", Vec::new(), 1)], Duration::ZERO, TIME)?[0];
                answered += outcome.latencies.len();
            }
            Ok(answered)
        });
        let begin = Instant::now();
        let refused = (1..=REPLACEMENTS).filter(|index| deploy(*index).is_err()).count();
        let took = begin.elapsed();
        done.store(true, Ordering::Relaxed);
        let answered = load.join().map_err(|_| anyhow::anyhow!("the load generator panicked"))??;
        let each = took.as_secs_f64() * 1e3 / REPLACEMENTS as f64;
        eprintln!("replacements: {answered} requests answered meanwhile, {each:.1} ms for each replacement");
        Ok(refused as f64)
    })
}

/// The 99th percentile of ping beside a thousand clients that send a header a second, to that without them.
pub(super) fn slow_heads_p99(bench: &mut Bench) -> Result<f64> {
    let folder = bench.folder.path().join("slow");
    fs::create_dir_all(&folder)?;
    let artifact = folder.join("ping.so");
    compiler::compile(&checkout::root().join("benches/functions/ping.wat"), &artifact)?;
    let path = toml::Value::String(artifact.display().to_string());
    let text = format!("listen = \"127.0.0.1:0\"\nadmin = \"none\"\n[[functions]]\nname = \"ping\"\npath = {path}\n");
    let server = Server::start_config(&folder, &text)?;
    let p99 = || -> Result<f64> {
        Ok(load::run(server.address(), &[Load::new(10, "/ping", Vec::new(), 1)], WARM_UP, TIME)?[0].p99_us())
    };
    let mut ratios = Vec::new();
    for _ in 0..TURNS {
        let alone = p99()?;
        let mut slow = (0..SLOW_CLIENTS).map(|_| TcpStream::connect(server.address())).collect::<Result<Vec<_>, _>>()?;
        let done = AtomicBool::new(false);
        let beside = std::thread::scope(|scope| {
            scope.spawn(|| {
                for round in 0.. {
                    for stream in &mut slow {
                        let line: &[u8] = if round == 0 { b"POST /ping HTTP/1.1\r\n" } else { b"x-slow: y\r\n" };
                        // Those that the server has closed are done.
                        let _ = stream.write_all(line);
                        std::thread::sleep(Duration::from_millis(1));
                    }
                    if done.load(Ordering::Relaxed) {
                        return;
                    }
                }
            });
            let beside = p99();
            done.store(true, Ordering::Relaxed);
            beside
        })?;
        ratios.push(beside / alone);
    }
    ratios.sort_by(f64::total_cmp);
    Ok(ratios[TURNS / 2])
}

/// Cases of h2spec, strict, that did not pass, in the clear and over TLS.
pub(super) fn h2spec_failed(_: &mut Bench) -> Result<f64> {
    let programs = checkout::program("sledge")?;
    let target = programs.parent().and_then(Path::parent).context("sledge lies in target/release")?;
    let output = Command::new(checkout::root().join("scripts/test-h2spec")).env("TARGET", target).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let number = |text: &str| text.split_whitespace().next().and_then(|number| number.parse::<u32>().ok());
    let mut failed = None;
    for line in text.lines().filter(|line| line.contains(" tests, ")) {
        let parts: Vec<u32> = line.rsplit(": ").next().unwrap_or_default().split(", ").filter_map(number).collect();
        ensure!(parts.len() == 4, "no summary of h2spec: {line}");
        failed = Some(failed.unwrap_or(0) + parts[2] + parts[3]);
    }
    eprint!("{text}");
    failed.map(f64::from).with_context(|| format!("h2spec did not run: {}", String::from_utf8_lossy(&output.stderr)))
}
