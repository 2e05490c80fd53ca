//! Async functions of the host: what a component asks of WASI 0.3 goes on while it does something else.

use std::time::{Duration, Instant};

use serde_json::json;
use sledge_tests::process;
use sledge_tests::programs::{self, sledge_command};
use sledge_tests::server::Server;

const TIME_MAX: Duration = Duration::from_secs(30);

#[test]
fn a_command_waits_for_several_things_at_once() {
    let done = process::run(sledge_command(&["run"]).arg(programs::function("waits.wat")), b"", TIME_MAX);
    assert!(done.status.success(), "{:?} {}", done.status, done.stderr);
}

/// Twice as many invocations as workers wait; the worker runs others meanwhile.
#[test]
fn an_invocation_that_waits_for_operations_keeps_no_worker() {
    let waits = json!({ "name": "waits", "path": programs::function("waits.wat"), "methods": ["POST"] });
    let echo = json!({ "name": "echo", "path": programs::function("echo.wat"), "methods": ["POST"] });
    let server = Server::start(json!({ "workers": 1, "functions": [waits, echo] }));
    std::thread::scope(|scope| {
        let waiting: Vec<_> = (0..4).map(|_| scope.spawn(|| server.client().post("/waits", b"").status)).collect();
        std::thread::sleep(Duration::from_millis(100));
        let begin = Instant::now();
        assert_eq!(server.client().post("/echo", "x").text(), "x");
        assert!(begin.elapsed() < Duration::from_millis(500), "{:?}", begin.elapsed());
        for reply in waiting {
            assert_eq!(reply.join().expect("a client"), 200, "{}", server.log());
        }
    });
    server.stop();
}

#[test]
fn a_command_writes_what_it_reads_from_streams_of_the_host() {
    let input: Vec<u8> = (0..1_000_000_u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let done = process::run(sledge_command(&["run"]).arg(programs::function("stdio.wat")), &input, TIME_MAX);
    assert!(done.status.success(), "{:?} {}", done.status, done.stderr);
    assert!(done.stdout == input, "{} bytes", done.stdout.len());
}

/// Each request has streams of its own.
#[test]
fn a_function_answers_through_streams_of_the_host() {
    let stdio = json!({ "name": "stdio", "path": programs::function("stdio.wat"), "methods": ["POST"] });
    let server = Server::start(json!({ "workers": 1, "functions": [stdio] }));
    for body in ["", "one", "another one"] {
        assert_eq!(server.client().post("/stdio", body).text(), body, "{}", server.log());
    }
    let long = "0123456789".repeat(50_000);
    assert_eq!(server.client().post("/stdio", &long).text(), long);
    server.stop();
}
