//! What is taken and what is refused: limits of functions and of the server, expected use, what has expired.

use crate::{LISTENERS, assert_failure, entry, entry_with};
use serde_json::json;
use sledge_tests::http::{Client, Raw, Reply, post_bytes};
use sledge_tests::server::Server;
use std::time::{Duration, Instant};

const TIMEOUT: Duration = Duration::from_secs(120);

/// The head of a request whose body has not come yet.
fn head(path: &str) -> String {
    format!("POST {path} HTTP/1.1\r\nhost: test\r\ncontent-length: 1000\r\n\r\n")
}

/// Sends a request to `/spin` and waits until it runs.
fn spinning(server: &Server) -> Raw {
    let before = server.cpu_time();
    let mut raw = Raw::connect(server.address);
    raw.send(post_bytes("/spin", b"", ""));
    let start = Instant::now();
    while server.cpu_time() - before < Duration::from_millis(30) {
        assert!(start.elapsed() < TIMEOUT, "the loop does not run");
        std::thread::yield_now();
    }
    raw
}

/// Sends two requests to `/spin`, of which one has a place and the other has none: whichever comes first. The refusal, and the one that waits.
fn one_of_two_refused(server: &Server) -> (Reply, Raw) {
    let mut sent: Vec<Raw> = (0..2).map(|_| Raw::connect(server.address)).collect();
    sent.iter_mut().for_each(|raw| raw.send(post_bytes("/spin", b"", "")));
    let start = Instant::now();
    loop {
        assert!(start.elapsed() < TIMEOUT, "never refused");
        if let Some(at) = sent.iter_mut().position(|raw| raw.answers_within(Duration::from_millis(20))) {
            let refused = sent.swap_remove(at).reply().expect("a reply");
            return (refused, sent.remove(0));
        }
    }
}

#[test]
fn a_function_at_its_limits_answers_429_before_the_body_is_read() {
    for listeners in LISTENERS {
        // Long enough for all that is asked meanwhile.
        let spin = json!({ "deadline_ms": 8000, "concurrency_max": 1, "queue_max": 1 });
        let functions = json!([entry_with("spin", "spin.wat", &spin), entry("echo", "echo.wat")]);
        let server = Server::start(json!({ "listeners": listeners, "functions": functions }));
        let running = spinning(&server);
        let client = server.client();
        let (refused, waiting) = one_of_two_refused(&server);
        assert_failure(&refused, 429, "too_many_requests", "queue_max", Some("spin"));
        assert!(refused.header("retry-after").is_some(), "{refused:?}");
        let mut raw = Raw::connect(server.address);
        raw.send(head("/spin"));
        assert_eq!(raw.reply().expect("a reply although the body is missing").status, 429);
        // Others are not concerned.
        assert_eq!(client.post("/echo", "x").text(), "x");
        // Admitted requests are answered; after that there is room again.
        assert!([running, waiting].iter_mut().all(|raw| raw.reply().expect("a reply").status == 504));
        assert_eq!(client.post("/spin", "").status, 504);
        server.stop();
    }
}

#[test]
fn no_more_run_at_the_same_time_than_the_limit_and_all_are_answered() {
    for listeners in LISTENERS {
        let limited = json!({ "concurrency_max": 1, "queue_max": 100 });
        let functions = json!([entry_with("echo", "echo.wat", &limited), entry("free", "echo.wat")]);
        let server = Server::start(json!({ "listeners": listeners, "workers": 2, "functions": functions }));
        std::thread::scope(|scope| {
            for number in 0..16 {
                let client = server.client();
                scope.spawn(move || {
                    for round in 0..50 {
                        let body = format!("{number}/{round}");
                        assert_eq!(client.post("/echo", &body).text(), body);
                    }
                });
            }
        });
        assert_eq!(server.client().post("/free", "x").text(), "x");
        server.stop();
    }
}

/// A request whose client has gone, or whose deadline has passed, gives its place in the queue back, and is never run.
#[test]
fn a_client_that_left_makes_room() {
    let spin = json!({ "deadline_ms": 60_000, "concurrency_max": 1, "queue_max": 1 });
    let server = Server::start(json!({ "functions": [entry_with("spin", "spin.wat", &spin)] }));
    let running = spinning(&server);
    let (refused, waiting) = one_of_two_refused(&server);
    assert_eq!(refused.status, 429);
    drop(waiting);
    // Taken: it is not refused at once, but waits. To see that, it is sent until nothing comes back for a while.
    let start = Instant::now();
    loop {
        assert!(start.elapsed() < TIMEOUT, "the place is not given back");
        let impatient = Client::new(server.address, Duration::from_millis(300));
        match impatient.try_post("/spin", b"", &[]) {
            Ok(reply) => assert_eq!(reply.status, 429, "{reply:?}"),
            Err(_) => break,
        }
    }
    drop(running);
    server.signal(rustix::process::Signal::TERM);
}

#[test]
fn a_saturated_server_answers_503_before_the_body_is_read() {
    let spin = entry_with("spin", "spin.wat", &json!({ "deadline_ms": 8000 }));
    let server = Server::start(json!({ "requests_max": 1, "functions": [spin, entry("echo", "echo.wat")] }));
    let mut taken = spinning(&server);
    let refused = server.client().post("/echo", "x");
    assert_failure(&refused, 503, "unavailable", "requests_max", Some("echo"));
    let mut raw = Raw::connect(server.address);
    raw.send(head("/echo"));
    let reply = raw.reply().expect("a reply although the body is missing");
    assert_eq!(reply.status, 503);
    assert!(reply.header("retry-after").is_some());
    assert_eq!(taken.reply().expect("a reply").status, 504);
    server.stop();
}

/// What waits behind a long one until its deadline has passed is answered with 504, and does not run.
#[test]
fn what_has_expired_is_not_run() {
    let functions = json!([
        entry_with("spin", "spin.wat", &json!({ "deadline_ms": 600_000 })),
        entry_with("short", "spin.wat", &json!({ "deadline_ms": 100 })),
    ]);
    let server = Server::start(json!({ "workers": 1, "policy": "fifo", "functions": functions }));
    let mut long = spinning(&server);
    for _ in 0..5 {
        assert_failure(&server.client().post("/short", ""), 504, "deadline", "deadline_exceeded", Some("short"));
    }
    assert!(!long.answers_within(Duration::from_millis(1)), "it runs still");
    drop(long);
    let log = server.stop_for_log();
    assert!(!log.contains("killed function=\"short\""), "it was begun:\n{log}");
}

#[test]
fn with_admission_by_utilisation_what_cannot_be_done_in_time_is_refused() {
    // A tenth of a second of work, to be done in two: with one worker twenty at a time at most, fewer on a busy machine, two on one that is
    // ten times as slow. As many again are done in two seconds of a client that is delayed while it asks.
    let busy = entry_with("spin", "spin.wat", &json!({ "deadline_ms": 2000, "cpu_ms_max": 100 }));
    let functions = json!([busy, entry("echo", "echo.wat")]);
    let server = Server::start(json!({ "workers": 1, "policy": "edf", "admission": "utilisation", "functions": functions }));
    // So that it is known how long it takes.
    for _ in 0..3 {
        assert_failure(&server.client().post("/spin", ""), 500, "cpu_limit", "cpu_limit", Some("spin"));
    }
    let mut clients: Vec<Raw> = (0..80).map(|_| Raw::connect(server.address)).collect();
    clients.iter_mut().for_each(|raw| raw.send(post_bytes("/spin", b"", "")));
    let replies: Vec<_> = clients.iter_mut().map(|raw| raw.reply().expect("a reply")).collect();
    let count = |status| replies.iter().filter(|reply| reply.status == status).count();
    assert!(count(503) >= 12, "{replies:?}");
    assert!(count(500) + count(504) >= 2, "{replies:?}");
    let refused = replies.iter().find(|reply| reply.status == 503).expect("one was refused");
    assert_failure(refused, 503, "unavailable", "utilisation", Some("spin"));
    assert_eq!(server.client().post("/echo", "x").text(), "x");
    server.stop();
}

/// Requests of `busy` that have run.
fn have_run(server: &Server) -> usize {
    let text = server.admin().get("/metrics").text();
    let sample = "sledge_run_seconds_count{function=\"busy\",tenant=\"default\"} ";
    text.lines().find_map(|line| line.strip_prefix(sample)?.parse().ok()).unwrap_or(0)
}

/// More than can be done by the deadline: what cannot be is refused before it runs, and what is taken is answered in time.
#[test]
fn by_default_what_cannot_be_done_in_time_is_refused_before_it_runs() {
    const DEADLINE: Duration = Duration::from_secs(4);
    let busy = entry_with("busy", "busy.wat", &json!({ "deadline_ms": DEADLINE.as_millis() as u64 }));
    let server = Server::start(json!({ "workers": 1, "functions": [busy, entry("echo", "echo.wat")] }));
    let work = |rounds: u64| post_bytes("/busy", &rounds.to_le_bytes(), "");
    let status = |rounds| {
        let mut raw = Raw::connect(server.address);
        raw.send(work(rounds));
        raw.reply().expect("a reply").status
    };
    // Of several, the one that nothing else on the machine has delayed.
    let fastest = |rounds| {
        let times = (0..5).map(|_| {
            let start = Instant::now();
            assert_eq!(status(rounds), 200);
            start.elapsed()
        });
        times.min().expect("five")
    };
    // What takes about 100 ms here; the server learns how long that is.
    let rounds = 100_000_000 / (fastest(1_000_000).as_micros() as u64).max(1) * 1_000;
    let possible = (DEADLINE.as_nanos() / fastest(rounds).as_nanos()).max(2) as usize;
    crate::eventually("all are counted", || have_run(&server) == 10);
    let mut clients: Vec<Raw> = (0..4 * possible).map(|_| Raw::connect(server.address)).collect();
    clients.iter_mut().for_each(|raw| raw.send(work(rounds)));
    let replies: Vec<Reply> = clients.iter_mut().map(|raw| raw.reply().expect("a reply")).collect();
    let count = |status| replies.iter().filter(|reply| reply.status == status).count();
    let shown = || format!("{} of {possible} possible, {} refused, {} late", count(200), count(503), count(504));
    // Where other processes take the processor away, some are late; how many is measured by `promises --group order`.
    assert!(count(200) >= 1 && count(503) >= possible, "{}", shown());
    // Those that are refused have not run, nor have some of those that are late.
    crate::eventually("all are counted", || have_run(&server) >= 10 + count(200));
    let ran = have_run(&server) - 10;
    assert!(ran <= count(200) + count(504), "{ran} ran, {}", shown());
    let refused = replies.iter().find(|reply| reply.status == 503).expect("one was refused");
    assert_failure(refused, 503, "unavailable", "overloaded", Some("busy"));
    assert!(refused.header("retry-after").is_some(), "{refused:?}");
    crate::eventually("there is time again", || status(rounds) == 200);
    assert_eq!(server.client().post("/echo", "x").text(), "x");
    server.stop();
}
