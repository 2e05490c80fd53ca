//! What a server has given up when it serves, and the process that starts compilers in its place.

use crate::entry;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use sledge_tests::http::TIME_MAX;
use sledge_tests::server::Server;
use std::path::Path;
use std::time::{Duration, Instant};

/// SIGINT and SIGTERM, as `status` has them.
const STOPPING: u64 = 1 << 1 | 1 << 14;

/// A line of a process's or a thread's `status`.
fn status(of: &Path, key: &str) -> Option<String> {
    let text = std::fs::read_to_string(of.join("status")).ok()?;
    text.lines().find_map(|line| Some(line.strip_prefix(key)?.strip_prefix(':')?.trim().to_owned()))
}

/// The process that starts this server's compilers.
fn broker(server: &Server) -> Pid {
    let parent = server.pid().to_string();
    let processes = std::fs::read_dir("/proc").expect("/proc").filter_map(Result::ok);
    let children = processes.filter(|process| status(&process.path(), "PPid").as_ref() == Some(&parent));
    let pids: Vec<i32> = children.filter_map(|process| process.file_name().to_str()?.parse().ok()).collect();
    assert_eq!(pids.len(), 1, "one child: {pids:?}");
    Pid::from_raw(pids[0]).expect("a number")
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + TIME_MAX;
    while !is_so() {
        assert!(Instant::now() < deadline, "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A module that the cache has not seen: `number` is in it.
fn module(number: u32) -> Vec<u8> {
    let text = format!(
        "(module (memory (export \"memory\") 1) (func (export \"sledge_handle\") (result i32) (drop (i32.const {number})) (i32.const 0)))"
    );
    wat::parse_str(text).expect("WAT")
}

#[test]
fn every_thread_of_a_server_has_no_privileges_and_few_system_calls() {
    // Compiled anew at the start, so that the thread for that is older than the server's confinement, as the store's is.
    let folder = tempfile::tempdir().expect("a folder");
    let first = folder.path().join("first.wasm");
    std::fs::write(&first, module(std::process::id() ^ 2)).expect("write a module");
    let functions = json!([entry("echo", "echo.wat"), { "name": "first", "path": first }]);
    let telemetry = json!({ "endpoint": "http://127.0.0.1:1" });
    let config = json!({ "workers": 2, "kv": folder.path().join("kv"), "telemetry": telemetry, "functions": functions });
    let server = Server::start(config);
    assert_eq!(server.client().post("/echo", "x").text(), "x");
    assert_eq!(server.admin().deploy("later", &json!({}), &module(std::process::id())).status, 200);
    assert_eq!(server.client().post("/later", "").status, 200);
    let tasks = std::fs::read_dir(format!("/proc/{}/task", server.pid())).expect("/proc");
    let mut names = Vec::new();
    for task in tasks.map(|task| task.expect("a thread").path()) {
        // One that ends meanwhile has none.
        let Some(name) = status(&task, "Name") else { continue };
        let of = |key: &str| status(&task, key).unwrap_or_default();
        assert_eq!((of("NoNewPrivs"), of("Seccomp")), ("1".to_owned(), "2".to_owned()), "{name}");
        for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
            assert_eq!(of(set).trim_start_matches('0'), "", "{set} of {name}");
        }
        // Signals that stop the server are for its main thread, also before that waits for them.
        let blocked = u64::from_str_radix(&of("SigBlk"), 16).expect("a mask");
        assert!(task.ends_with(server.pid().to_string()) || blocked & STOPPING == STOPPING, "{name} takes signals: {blocked:x}");
        names.push(name);
    }
    for name in ["worker-1", "log", "kv", "compilations", "admin", "telemetry"] {
        assert!(names.iter().any(|there| there == name), "{name}: {names:?}");
    }
    let log = server.stop_for_log();
    assert!(!log.contains("could not be given up"), "{log}");

    let free = Server::start(json!({ "confined": false, "functions": [entry("echo", "echo.wat")] }));
    assert_eq!(status(Path::new(&format!("/proc/{}", free.pid())), "Seccomp").as_deref(), Some("0"));
    free.stop();
}

#[test]
fn without_the_process_that_starts_compilers_a_server_serves_what_it_has() {
    let server = Server::start(json!({ "functions": [entry("echo", "echo.wat")] }));
    let broker = broker(&server);
    kill_process(broker, Signal::KILL).expect("kill");
    wait_until("the broker has ended", || {
        status(Path::new(&format!("/proc/{}", broker.as_raw_nonzero())), "State").is_none_or(|state| state.starts_with('Z'))
    });
    let refused = server.admin().deploy("never", &json!({}), &module(std::process::id() ^ 1));
    assert!(refused.status == 422 && refused.text().contains("started again"), "{} {}", refused.status, refused.text());
    assert_eq!(server.client().post("/echo", "x").text(), "x");
    server.stop();
}

#[test]
fn the_process_that_starts_compilers_ends_with_its_server() {
    let server = Server::start(json!({ "functions": [entry("echo", "echo.wat")] }));
    let broker = broker(&server);
    server.signal(Signal::KILL);
    wait_until("the broker has ended", || status(Path::new(&format!("/proc/{}", broker.as_raw_nonzero())), "Name").is_none());
}
