//! Functions that nothing else waits for run without ticks, and whatever arrives interrupts them.
//!
//! Ticks are made so rare here that what is noticed by a tick only is noticed too late.

use crate::{LISTENERS, assert_failure, entry, entry_with};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustix::process::Signal;
use serde_json::{Value, json};
use sledge_tests::http::{Raw, TIME_MAX, post_bytes};
use sledge_tests::programs::{self, sledge_command};
use sledge_tests::server::Server;
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Between two ticks of a function that runs alone.
const TICK: Duration = Duration::from_secs(20);
/// What takes longer was noticed by a tick; on a busy machine the rest takes some time, too.
const SOON: Duration = Duration::from_secs(8);

/// A server with one worker and rare ticks.
fn server(config: Value) -> (Server, TempDir) {
    start(sledge_command(&[]), config)
}

fn start(mut command: Command, mut config: Value) -> (Server, TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    config["listen"] = "127.0.0.1:0".into();
    config["admin"] = "none".into();
    config["workers"] = 1.into();
    let file = folder.path().join("sledge.json");
    std::fs::write(&file, config.to_string()).expect("write the configuration");
    command.env("SLEDGE_TICK_MAX_MS", TICK.as_millis().to_string());
    (Server::start_with(command.args(["serve", "--config"]).arg(&file)), folder)
}

/// An endless loop, which has run for a while: alone.
fn endless(server: &Server, path: &str) -> Raw {
    let mut raw = Raw::connect(server.address);
    raw.send(post_bytes(path, b"", ""));
    run_for(server, Duration::from_millis(30));
    raw
}

/// Waits until the server has used that much more processor time.
fn run_for(server: &Server, time: Duration) {
    let (before, start) = (server.cpu_time(), Instant::now());
    while server.cpu_time() - before < time {
        assert!(start.elapsed() < TIME_MAX, "the function does not run");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A tenth of the times is shorter: the machine may delay any of them, and a server that is slow delays all.
fn tenth(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 10]
}

/// Requests of new connections and of one that is kept, while an endless loop runs: the time of the slower kind.
fn quick_requests(server: &Server) -> Duration {
    let kept = server.client();
    let mut times = [Vec::new(), Vec::new()];
    for round in 0..60 {
        // It gets back to where it runs alone.
        std::thread::sleep(Duration::from_millis(5));
        let new = server.client();
        let sent = Instant::now();
        let client = if round % 2 == 0 { &kept } else { &new };
        assert_eq!(client.post("/echo", "quick").text(), "quick");
        let took = sent.elapsed();
        assert!(took < SOON, "{took:?} in round {round}");
        times[round % 2].push(took);
    }
    times.into_iter().map(tenth).max().expect("two kinds")
}

fn loop_and_echo() -> Value {
    json!([entry_with("spin", "spin.wat", &json!({ "deadline_ms": 60_000 })), entry("echo", "echo.wat")])
}

#[test]
fn what_arrives_interrupts_a_function_that_runs_alone() {
    for listeners in LISTENERS {
        let (server, _folder) = server(json!({ "listeners": listeners, "functions": loop_and_echo() }));
        let raw = endless(&server, "/spin");
        let took = quick_requests(&server);
        assert!(took < Duration::from_millis(20), "{listeners}: {took:?} of the quickest tenth");
        drop(raw);
        server.stop();
    }
}

/// The watcher's thread has the same core as everything else.
#[test]
fn it_is_interrupted_on_one_core_too() {
    let cores = rustix::thread::sched_getaffinity(None).expect("this process's cores");
    let core = (0..rustix::thread::CpuSet::MAX_CPU).find(|core| cores.is_set(*core)).expect("a core").to_string();
    for listeners in LISTENERS {
        let mut command = Command::new("taskset");
        command.args(["-c", &core]).arg(programs::sledge());
        let (server, _folder) = start(command, json!({ "listeners": listeners, "functions": loop_and_echo() }));
        let raw = endless(&server, "/spin");
        let took = quick_requests(&server);
        assert!(took < Duration::from_millis(50), "{listeners}: {took:?} of the quickest tenth");
        drop(raw);
        server.stop();
    }
}

/// Each request of HTTP/2 is the work of several tasks, one of which wakes the next.
#[test]
fn requests_of_http2_interrupt_it() {
    let (server, _folder) = server(json!({ "functions": loop_and_echo() }));
    let raw = endless(&server, "/spin");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let took = runtime.block_on(async {
        let stream = tokio::net::TcpStream::connect(server.address).await.expect("connect");
        // Otherwise the client may keep the body until the server has acknowledged the head, which it does 40 ms later.
        stream.set_nodelay(true).expect("no delay");
        let (mut sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.expect("HTTP/2");
        tokio::spawn(connection);
        let mut times = Vec::new();
        for _ in 0..60 {
            tokio::time::sleep(Duration::from_millis(5)).await;
            let sent = Instant::now();
            let request = Request::post("http://test/echo").body(Full::new(Bytes::from_static(b"quick"))).expect("a request");
            let reply = sender.send_request(request).await.expect("a reply");
            assert_eq!(reply.into_body().collect().await.expect("a body").to_bytes(), "quick");
            times.push(sent.elapsed());
        }
        tenth(times)
    });
    assert!(took < Duration::from_millis(20), "{took:?} of the quickest tenth");
    drop(raw);
    server.stop();
}

/// The pings by which clients of HTTP/2 find out whether a connection is alive.
#[test]
fn pings_of_http2_are_answered_beside_it() {
    let (server, _folder) = server(json!({ "functions": loop_and_echo() }));
    let _raw = endless(&server, "/spin");
    let mut raw = Raw::connect(server.address);
    raw.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0");
    for number in 0..5_u8 {
        std::thread::sleep(Duration::from_millis(20));
        let sent = Instant::now();
        raw.send([0, 0, 8, 6, 0, 0, 0, 0, 0, number, 1, 2, 3, 4, 5, 6, 7]);
        // Frames until the ping's answer: length, kind, flags, stream.
        let answer = loop {
            let head = raw.bytes(9);
            let rest = raw.bytes((usize::from(head[1]) << 8) + usize::from(head[2]));
            if head[3..5] == [6, 1] {
                break rest;
            }
        };
        assert_eq!(answer, [number, 1, 2, 3, 4, 5, 6, 7]);
        assert!(sent.elapsed() < SOON, "{:?}", sent.elapsed());
    }
    server.stop();
}

#[test]
fn its_deadline_and_its_budget_end_it_in_time() {
    let functions = json!([
        entry_with("late", "spin.wat", &json!({ "deadline_ms": 300 })),
        entry_with("much", "spin.wat", &json!({ "cpu_ms_max": 300 })),
    ]);
    let (server, _folder) = server(json!({ "functions": functions }));
    let client = server.client();
    for _ in 0..2 {
        let sent = Instant::now();
        assert_failure(&client.post("/late", ""), 504, "deadline", "deadline_exceeded", Some("late"));
        assert!(sent.elapsed() >= Duration::from_millis(300) && sent.elapsed() < SOON, "{:?}", sent.elapsed());
        let sent = Instant::now();
        assert_failure(&client.post("/much", ""), 500, "cpu_limit", "cpu_limit", Some("much"));
        assert!(sent.elapsed() >= Duration::from_millis(300) && sent.elapsed() < SOON, "{:?}", sent.elapsed());
    }
    server.stop();
}

/// One that waits for a time, and one that waits for its client, which with a listener of its own is another thread's news.
#[test]
fn what_other_functions_wait_for_interrupts_it() {
    for listeners in LISTENERS {
        let body = entry_with("body", "body.c", &json!({ "body": "stream", "deadline_ms": 60_000 }));
        let spin = entry_with("spin", "spin.wat", &json!({ "deadline_ms": 60_000 }));
        let functions = json!([spin, entry("wait", "wait.wat"), body]);
        let (server, _folder) = server(json!({ "listeners": listeners, "kv": "memory", "functions": functions }));
        let _raw = endless(&server, "/spin");
        let time = Duration::from_millis(100);
        let sent = Instant::now();
        let reply = server.client().post("/wait", i64::try_from(time.as_nanos()).expect("a time").to_le_bytes());
        assert_eq!(reply.status, 200, "{reply:?}");
        assert!(sent.elapsed() >= time && sent.elapsed() < SOON, "{listeners}: {:?}", sent.elapsed());

        let mut echo = Raw::connect(server.address);
        echo.send("POST /body HTTP/1.1\r\nhost: a\r\nx-do: echo\r\ntransfer-encoding: chunked\r\n\r\n");
        assert_eq!(echo.head().expect("a head").status, 200);
        for text in ["one", "two", "six"] {
            // The loop runs alone again.
            run_for(&server, Duration::from_millis(20));
            let sent = Instant::now();
            let chunk = format!("3\r\n{text}\r\n");
            echo.send(&chunk);
            assert_eq!(echo.bytes(chunk.len()), chunk.as_bytes());
            assert!(sent.elapsed() < SOON, "{listeners}: {:?}", sent.elapsed());
        }
        drop(echo);
        server.stop();
    }
}

/// What it writes itself leaves as soon as ever.
#[test]
fn what_it_streams_is_not_kept_until_the_next_tick() {
    let late = entry_with("late", "late.wat", &json!({ "deadline_ms": 60_000 }));
    let (server, _folder) = server(json!({ "functions": [late] }));
    let mut raw = Raw::connect(server.address);
    let sent = Instant::now();
    raw.send(post_bytes("/late", b"", ""));
    assert_eq!(raw.head().expect("a head").status, 200);
    assert_eq!(raw.bytes(8), b"3\r\nnow\r\n");
    assert!(sent.elapsed() < TICK / 2, "{:?}", sent.elapsed());
    drop(raw);
    server.stop();
}

#[test]
fn a_client_that_leaves_and_a_server_that_stops_end_it() {
    let (mut server, _folder) = server(json!({ "drain_timeout_ms": 100, "functions": loop_and_echo() }));
    drop(endless(&server, "/spin"));
    let start = Instant::now();
    let quiet = || {
        let before = server.cpu_time();
        std::thread::sleep(Duration::from_millis(100));
        server.cpu_time() - before <= Duration::from_millis(10)
    };
    while !quiet() {
        assert!(start.elapsed() < TICK / 2, "it runs on after its client has gone");
    }
    let _raw = endless(&server, "/spin");
    server.signal(Signal::TERM);
    assert!(server.wait(TIME_MAX).success());
    let log = server.whole_log();
    assert!(!log.contains("connections are still open"), "it was not told in time:\n{log}");
}

/// How often work is interrupted: by default seldom, with a quantum that was asked for at the end of each. Rare ticks come by the
/// clock. Those that end quanta are joined while the server waits for its core, so they are counted by its processor time.
#[test]
fn ticks_are_few_unless_a_quantum_is_asked_for() {
    const TICK_DEFAULT: Duration = Duration::from_millis(5);
    const QUANTUM_US: u64 = 500;
    let few = preemptions(json!({}));
    let ticks = few.passed.div_duration_f64(TICK_DEFAULT);
    assert!(few.count >= 1.0 && few.count <= 1.1 * ticks + 10.0, "by default: {few:?}");
    // A host that takes the processor away counts that, too; by default there would be a tenth.
    let many = preemptions(json!({ "quantum_us": QUANTUM_US }));
    assert!(many.count >= 0.25 * many.used.div_duration_f64(Duration::from_micros(QUANTUM_US)), "with a quantum: {many:?}");
}

/// How often a function was stopped, in how much time, and in how much processor time.
#[derive(Debug)]
struct Preemptions {
    count: f64,
    passed: Duration,
    used: Duration,
}

fn preemptions(mut config: Value) -> Preemptions {
    config["workers"] = 1.into();
    config["functions"] = json!([entry_with("busy", "busy.wat", &json!({ "deadline_ms": 60_000 }))]);
    let server = Server::start(config);
    let (before, start) = (server.cpu_time(), Instant::now());
    assert_eq!(server.client().post("/busy", 200_000_000_u64.to_le_bytes()).status, 200);
    let (passed, used) = (start.elapsed(), server.cpu_time() - before);
    assert!(used > Duration::from_millis(100), "too short to tell: {used:?}");
    let text = server.admin().get("/metrics").text();
    let lines = text.lines().filter(|line| line.starts_with("sledge_preemptions_total{"));
    let count = lines.map(|line| line.rsplit_once(' ').expect("a value").1.parse::<f64>().expect("a number")).sum();
    server.stop();
    Preemptions { count, passed, used }
}
