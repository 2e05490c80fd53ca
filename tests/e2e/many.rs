//! Many functions: how often one is asked changes what it costs, how many others there are does not.

use serde_json::{Value, json};
use sledge_tests::http::{Raw, post_bytes};
use sledge_tests::programs;
use sledge_tests::server::Server;
use sledge_tests::traced::{OF_MEMORY, system_calls};
use std::process::Command;
use std::time::{Duration, Instant};

const FUNCTIONS: usize = 300;

/// Time in which something must have happened that usually takes milliseconds.
const TIMEOUT: Duration = Duration::from_secs(120);

/// A server of one worker with so many functions, all of one module.
fn server(functions: usize, more: &Value) -> Server {
    Server::start(config(functions, more))
}

fn config(functions: usize, more: &Value) -> Value {
    let path = programs::function("../../../benches/functions/ping.wat");
    let entries: Vec<_> = (0..functions).map(|number| json!({ "name": format!("f{number}"), "path": path })).collect();
    // Under a tracer a system call takes so long that, with the usual quantum, a guest would do little but take signals.
    let mut config = json!({ "workers": 1, "quantum_us": 1_000_000, "functions": entries });
    more.as_object().expect("an object").iter().for_each(|(key, value)| config[key] = value.clone());
    config
}

/// System calls for memory that the worker makes while these functions are asked, one after the other.
fn calls_of_memory(server: &Server, raw: &mut Raw, functions: impl Iterator<Item = usize>) -> usize {
    let worker = server.threads().iter().find(|(name, _)| name == "worker-0").expect("the worker").1;
    let calls = system_calls(worker, || functions.for_each(|number| ask(raw, number)));
    calls.iter().filter(|call| OF_MEMORY.contains(call)).count()
}

fn ask(raw: &mut Raw, number: usize) {
    raw.send(post_bytes(&format!("/f{number}"), b"", ""));
    let reply = raw.reply().expect("a reply");
    assert_eq!((reply.status, reply.text().as_str()), (200, "p"), "function {number}");
}

fn idle(server: &Server) -> u64 {
    let metrics = server.admin().get("/metrics").text();
    let line = metrics.lines().find_map(|line| line.strip_prefix("sledge_idle_sandboxes "));
    line.and_then(|count| count.parse().ok()).expect("a number")
}

#[test]
fn hundreds_of_functions_in_rotation_keep_their_sandboxes_and_so_does_the_one_that_is_always_asked() {
    let server = server(FUNCTIONS, &json!({ "idle_memory_ms": 0 }));
    let mut raw = Raw::connect(server.address);
    // What is new is learned from.
    for _ in 0..3 {
        (0..FUNCTIONS).for_each(|number| ask(&mut raw, number));
    }
    // The last one's is reset behind its reply.
    crate::eventually("idle sandboxes", || idle(&server) == FUNCTIONS as u64);
    assert_eq!(calls_of_memory(&server, &mut raw, 0..FUNCTIONS), 0, "in rotation");
    assert_eq!(calls_of_memory(&server, &mut raw, (0..20).map(|_| 0)), 0, "the same one again and again, after that");
    server.stop();
}

/// The functions that were used least recently lose their sandboxes to others, not the one that is used all the time.
fn a_scan_leaves_the_one_that_is_always_asked(server: &Server) {
    let mut raw = Raw::connect(server.address);
    for number in 1..100 {
        ask(&mut raw, 0);
        ask(&mut raw, number);
    }
    let others = calls_of_memory(server, &mut raw, 1..20);
    assert!(others >= 19, "{others} calls for sandboxes that were given up");
    // What is new is learned from.
    (0..3).for_each(|_| ask(&mut raw, 0));
    assert_eq!(calls_of_memory(server, &mut raw, (0..20).map(|_| 0)), 0, "the one that is always asked");
    let (mut with_it, mut without_it) = (0, 0);
    for number in (20..60).step_by(2) {
        with_it += calls_of_memory(server, &mut raw, [number, 0].into_iter());
        without_it += calls_of_memory(server, &mut raw, [number + 1, number + 1].into_iter());
    }
    // A sandbox that was given up costs several calls each time. The worker's heap may grow once in between.
    assert!(with_it.abs_diff(without_it) <= 2, "{with_it} calls with the one that is always asked, {without_it} without");
}

#[test]
fn a_scan_of_more_functions_than_there_is_memory_for_leaves_the_one_that_is_always_asked() {
    let server = server(100, &json!({ "idle_memory_ms": 0, "memory_total_bytes_max": 16 << 20 }));
    a_scan_leaves_the_one_that_is_always_asked(&server);
    assert!((2..100).contains(&idle(&server)), "{} idle sandboxes", idle(&server));
    server.stop();
}

#[test]
fn a_scan_of_more_functions_than_there_are_addresses_for_leaves_the_one_that_is_always_asked() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("sledge.json");
    let mut config = config(100, &json!({ "idle_memory_ms": 0 }));
    config["listen"] = "127.0.0.1:0".into();
    config["admin"] = "none".into();
    std::fs::write(&file, config.to_string()).expect("write the configuration");
    // Kilobytes: room for the code arena's smallest form and for five guarded memories.
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -v \"$0\" && exec \"$@\"", &(48 << 20).to_string()]);
    command.arg(programs::sledge()).args(["serve", "--config"]).arg(&file);
    let server = Server::start_with(&mut command);
    a_scan_leaves_the_one_that_is_always_asked(&server);
    server.stop();
}

#[test]
fn the_sandboxes_of_many_functions_go_back_to_the_system_without_requests() {
    let server = server(FUNCTIONS, &json!({ "idle_memory_ms": 100 }));
    let mut raw = Raw::connect(server.address);
    (0..FUNCTIONS).for_each(|number| ask(&mut raw, number));
    let start = Instant::now();
    while idle(&server) > 0 {
        assert!(start.elapsed() < TIMEOUT, "{} are still there", idle(&server));
        std::thread::yield_now();
    }
    ask(&mut raw, 7);
    server.stop();
}
