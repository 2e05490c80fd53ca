//! What a request costs the system once everything is warm, from the socket to the socket: no page fault, and no system call for memory.

use serde_json::json;
use sledge_tests::http::{Raw, post_bytes};
use sledge_tests::programs;
use sledge_tests::server::Server;
use sledge_tests::traced::{OF_MEMORY, system_calls};

/// Requests that are counted together.
const BATCH: usize = 20;
/// Batches, of which the cheapest counts: the kernel has reasons of its own to take a page away.
const BATCHES: usize = 10;
/// Of which there are as many as there is time for: a worker that looks for more work asks again and again, and ticks come (and a tracer takes its
/// time).
const OF_TIME: [i64; 2] = [nix::libc::SYS_epoll_wait, nix::libc::SYS_rt_sigreturn];

#[test]
fn a_warm_request_takes_no_page_fault_and_no_system_call_for_memory() {
    let functions = [
        ("ping", programs::function("../../../benches/functions/ping.wat"), "p", 0),
        ("hello", programs::function("../../../benches/functions/hello.c"), "Hello, world! 7\n", 0),
        // Pages behind the end of a guarded memory have to be made accessible, and inaccessible again.
        ("growing", programs::function("growing.wat"), "g", 2),
        ("growing-checked", programs::function_with("growing.wat", &["--bounds", "software"]), "g", 0),
    ];
    let entries: Vec<_> = functions.iter().map(|(name, path, ..)| json!({ "name": name, "path": path })).collect();
    // Under a tracer a system call takes so long that, with the usual quantum, a guest would do little but take signals.
    let server = Server::start(json!({ "workers": 1, "idle_memory_ms": 0, "quantum_us": 1_000_000, "functions": entries }));
    let threads = server.threads();
    let worker = threads.iter().find(|(name, _)| name == "worker-0").expect("the worker").1;
    for (name, _, reply, calls_of_memory) in functions {
        let mut raw = Raw::connect(server.address);
        let request = post_bytes(&format!("/{name}"), b"", "");
        let mut batch = || {
            for _ in 0..BATCH {
                raw.send(&request);
                assert_eq!(raw.reply().expect("a reply").text(), reply);
            }
        };
        (0..BATCHES).for_each(|_| batch());
        let faults = (0..BATCHES).map(|_| {
            let before = server.page_faults(worker);
            batch();
            server.page_faults(worker) - before
        });
        assert_eq!(faults.min(), Some(0), "{name}: page faults of {BATCH} requests");
        let of_memory = |calls: &Vec<i64>| calls.iter().filter(|call| OF_MEMORY.contains(call)).count();
        let calls = (0..BATCHES).map(|_| system_calls(worker, &mut batch)).min_by_key(of_memory).expect("some batches");
        assert_eq!(of_memory(&calls), BATCH * calls_of_memory, "{name}: system calls of {BATCH} requests: {calls:?}");
        let others = calls.iter().filter(|call| !OF_MEMORY.contains(call) && !OF_TIME.contains(call)).count();
        // Reading, writing, and now and then the timer.
        assert!((2 * BATCH..=5 * BATCH).contains(&others), "{name}: {others} system calls of {BATCH} requests: {calls:?}");
        println!("{name}: {:.2} system calls a request beside waiting", (others + of_memory(&calls)) as f64 / BATCH as f64);
    }
    server.stop();
}
