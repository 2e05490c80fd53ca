//! Guests that wait (`memory.atomic.wait`): in vain, for a time, and without keeping the worker.

use crate::{LISTENERS, assert_failure, entry, entry_with};
use serde_json::json;
use sledge_tests::http::{Raw, post_bytes};
use sledge_tests::process;
use sledge_tests::programs::{self, sledge_command};
use sledge_tests::server::Server;
use std::time::{Duration, Instant};

/// What the operator says after its time, and that the sandbox was new.
const TIMED_OUT: [u8; 8] = [2, 0, 0, 0, 1, 0, 0, 0];

const TIME_MAX: Duration = Duration::from_secs(120);

fn nanoseconds(time: Duration) -> [u8; 8] {
    i64::try_from(time.as_nanos()).expect("a time").to_le_bytes()
}

/// A worker has as many guests that wait as there are requests, none of them uses it, and each goes on in time: the shortest first.
#[test]
fn a_guest_that_waits_leaves_the_worker_to_others() {
    for listeners in LISTENERS {
        let functions = json!([entry("wait", "wait.wat"), entry("echo", "echo.wat")]);
        let server = Server::start(json!({ "listeners": listeners, "workers": 1, "functions": functions }));
        let times = [4_500, 2_100, 3_300, 2_700, 3_900].map(Duration::from_millis);
        let mut waiting: Vec<Raw> = times.iter().map(|_| Raw::connect(server.address)).collect();
        let start = Instant::now();
        for (raw, time) in waiting.iter_mut().zip(times) {
            raw.send(post_bytes("/wait", &nanoseconds(time), ""));
        }
        let (client, mut answered) = (server.client(), 0);
        while start.elapsed() < Duration::from_millis(500) || answered < 4 {
            assert_eq!(client.post("/echo", "quick").text(), "quick");
            answered += 1;
        }
        assert!(start.elapsed() < times[0], "{listeners}: {answered} quick requests took {:?}", start.elapsed());
        let before = server.cpu_time();
        for (raw, time) in waiting.iter_mut().zip(times) {
            let reply = raw.reply().expect("a reply");
            assert_eq!((reply.status, reply.body.as_slice()), (200, TIMED_OUT.as_slice()), "{listeners}: {reply:?}");
            assert!(start.elapsed() >= time, "{listeners}: {time:?} were over after {:?}", start.elapsed());
        }
        // One after the other they would have taken 16.5 s.
        assert!(start.elapsed() < Duration::from_secs(14), "{listeners}: {:?}", start.elapsed());
        let used = server.cpu_time() - before;
        assert!(used < Duration::from_millis(600), "{listeners}: {used:?} of processor time while everybody waited");
        // Back in the pool, and as new.
        let reply = client.post("/wait", nanoseconds(Duration::ZERO));
        assert_eq!(reply.body, TIMED_OUT);
        server.stop();
    }
}

/// The deadline ends a function that waits for ever, or for too long.
#[test]
fn a_guest_that_waits_beyond_its_deadline_is_a_504() {
    let wait = entry_with("wait", "wait.wat", &json!({ "deadline_ms": 300 }));
    let server = Server::start(json!({ "workers": 1, "functions": [wait, entry("echo", "echo.wat")] }));
    for time in [-1_i64, i64::MIN, i64::MAX, 1_000_000_000] {
        let start = Instant::now();
        let reply = server.client().post("/wait", time.to_le_bytes());
        assert_failure(&reply, 504, "deadline", "deadline_exceeded", Some("wait"));
        assert!(start.elapsed() >= Duration::from_millis(300), "{time}: too early: {:?}", start.elapsed());
        assert!(start.elapsed() < TIME_MAX, "{time}: too late: {:?}", start.elapsed());
        assert_eq!(server.client().post("/echo", "x").text(), "x");
    }
    server.stop();
}

/// At the server's end those that wait are ended as all others are.
#[test]
fn a_guest_that_waits_does_not_hold_up_the_end() {
    let wait = entry_with("wait", "wait.wat", &json!({ "deadline_ms": 600_000 }));
    let server = Server::start(json!({ "workers": 1, "drain_timeout_ms": 300, "functions": [wait, entry("echo", "echo.wat")] }));
    let mut raw = Raw::connect(server.address);
    raw.send(post_bytes("/wait", &(-1_i64).to_le_bytes(), ""));
    // An answer that comes behind it: it was taken before.
    assert_eq!(server.client().post("/echo", "x").text(), "x");
    let start = Instant::now();
    server.stop();
    assert!(start.elapsed() < Duration::from_secs(60), "the end took {:?}", start.elapsed());
    assert_eq!(raw.reply().expect("a reply").status, 503);
}

#[test]
fn run_waits_for_the_guests_time_or_for_its_own() {
    let wait = programs::function("wait.wat");
    let run = |time: [u8; 8], arguments: &[&str]| {
        let start = Instant::now();
        let done = process::run(sledge_command(&["run"]).args(arguments).arg(&wait), &time, TIME_MAX);
        (done, start.elapsed())
    };
    for arguments in [[].as_slice(), &["--timeout", "20s"]] {
        let (done, took) = run(nanoseconds(Duration::from_millis(200)), arguments);
        assert_eq!((done.code(), done.stdout.as_slice()), (0, TIMED_OUT.as_slice()), "{}", done.stderr);
        assert!(took >= Duration::from_millis(200), "{took:?}");
    }
    let (done, took) = run((-1_i64).to_le_bytes(), &["--timeout", "300ms"]);
    assert_eq!(done.code(), 124, "{}", done.stderr);
    assert!(took >= Duration::from_millis(300), "{took:?}");
}
