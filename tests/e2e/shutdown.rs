//! SIGTERM: what was accepted is answered, nothing more is, the end comes in time and with status 0.

use crate::{LISTENERS, entry, entry_with};
use rustix::process::Signal;
use serde_json::json;
use sledge_tests::http::{Raw, TIME_MAX, post_bytes};
use sledge_tests::server::Server;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// A body for `busy.wat`.
fn work(iterations: u64, text: &str) -> Vec<u8> {
    [&iterations.to_le_bytes(), text.as_bytes()].concat()
}

#[test]
fn accepted_requests_are_answered_after_sigterm() {
    for listeners in LISTENERS {
        accepted_requests_are_answered(listeners);
    }
}

fn accepted_requests_are_answered(listeners: &str) {
    const CONNECTIONS: usize = 16;
    let busy = entry_with("busy", "busy.wat", &json!({ "deadline_ms": 100_000 }));
    let config = json!({ "listeners": listeners, "workers": 2, "drain_timeout_ms": 110_000, "functions": [busy] });
    let mut server = Server::start(config);
    let bodies: Vec<Vec<u8>> = (0..CONNECTIONS).map(|i| work(20_000_000, &format!("request {i}"))).collect();
    let mut accepted: Vec<Raw> = bodies
        .iter()
        .map(|body| {
            let mut raw = Raw::connect(server.address);
            let head =
                format!("POST /busy HTTP/1.1\r\nhost: test\r\ncontent-length: {}\r\nexpect: 100-continue\r\n\r\n", body.len());
            raw.send(head);
            assert_eq!(raw.reply().expect("an interim reply").status, 100);
            raw
        })
        .collect();
    // The server has taken all of these; half of the bodies come before the signal, half after it.
    for (i, raw) in accepted.iter_mut().enumerate().filter(|(i, _)| i % 2 == 0) {
        raw.send(&bodies[i]);
    }
    server.signal(Signal::TERM);
    for (i, raw) in accepted.iter_mut().enumerate().filter(|(i, _)| i % 2 == 1) {
        raw.send(&bodies[i]);
    }
    for (raw, body) in accepted.iter_mut().zip(&bodies) {
        let reply = raw.reply().expect("a reply to a request that was accepted");
        assert_eq!((reply.status, &reply.body), (200, body));
        assert!(raw.is_closed());
    }
    let status = server.wait(TIME_MAX);
    assert!(status.success(), "{status}");
    assert!(TcpStream::connect_timeout(&server.address, TIME_MAX).is_err(), "a socket still listens");
}

/// Clients that send request after request until they are refused: no reply breaks off.
#[test]
fn sigterm_under_load_breaks_no_reply_off() {
    const CLIENTS: usize = 12;
    let mut server = Server::start(json!({ "workers": 2, "functions": [entry("busy", "busy.wat"), entry("echo", "echo.wat")] }));
    let answered = AtomicUsize::new(0);
    let (enough, wait_for_enough) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        // All clients are connected before the first sends a request, so none connects after the end.
        let connected: Vec<Raw> = (0..CLIENTS).map(|_| Raw::connect(server.address)).collect();
        for (client, mut raw) in connected.into_iter().enumerate() {
            let (answered, enough) = (&answered, enough.clone());
            scope.spawn(move || {
                for request in 0.. {
                    let body = work(100_000, &format!("{client}/{request}"));
                    raw.send(post_bytes(if request % 2 == 0 { "/busy" } else { "/echo" }, &body, ""));
                    // `reply` fails on half a reply. None, or "unavailable": the server has stopped taking requests.
                    match raw.reply() {
                        Some(reply) if reply.status == 200 => assert_eq!(reply.body, body),
                        Some(reply) => {
                            assert_eq!(reply.status, 503, "{reply:?}");
                            break;
                        }
                        None => break,
                    }
                    if answered.fetch_add(1, Ordering::Relaxed) == CLIENTS * 20 {
                        enough.send(()).expect("the test waits");
                    }
                }
            });
        }
        wait_for_enough.recv_timeout(TIME_MAX).expect("replies");
        server.signal(Signal::TERM);
        let status = server.wait(TIME_MAX);
        assert!(status.success(), "{status}:\n{}", server.log());
    });
    assert!(answered.into_inner() >= CLIENTS * 20);
}

/// Clients that connect for each request, without end: a client that was connected is answered, a client that was not is refused, and no connection
/// is reset.
#[test]
fn sigterm_resets_no_connection_that_was_made() {
    const CLIENTS: usize = 8;
    for round in 0..12 {
        let listeners = LISTENERS[round % 2];
        let mut server = Server::start(json!({ "listeners": listeners, "workers": 2, "functions": [entry("echo", "echo.wat")] }));
        let answered = AtomicUsize::new(0);
        let (enough, wait_for_enough) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            for client in 0..CLIENTS {
                let (server, answered, enough) = (server.address, &answered, enough.clone());
                scope.spawn(move || {
                    for request in 0.. {
                        let mut stream = match TcpStream::connect_timeout(&server, TIME_MAX) {
                            Ok(stream) => stream,
                            // At once: a client that has to try again should know.
                            Err(error) => return assert_eq!(error.kind(), ErrorKind::ConnectionRefused, "{error}"),
                        };
                        let body = format!("{client}/{request}");
                        let sent = stream.write_all(&post_bytes("/echo", body.as_bytes(), "connection: close\r\n"));
                        let mut reply = Vec::new();
                        let read = sent.and_then(|()| stream.read_to_end(&mut reply));
                        let reply = String::from_utf8_lossy(&reply);
                        let good = reply.starts_with("HTTP/1.1 200") && reply.ends_with(&body);
                        assert!(
                            good,
                            "round {round}, {listeners}: {read:?}, {reply:?} after {} replies",
                            answered.load(Ordering::Relaxed)
                        );
                        if answered.fetch_add(1, Ordering::Relaxed) == CLIENTS * 20 {
                            enough.send(()).expect("the test waits");
                        }
                    }
                });
            }
            wait_for_enough.recv_timeout(TIME_MAX).expect("replies");
            server.signal(Signal::TERM);
            let status = server.wait(TIME_MAX);
            assert!(status.success(), "{status}:\n{}", server.log());
        });
    }
}

/// What does not end is not waited for beyond `drain_timeout_ms`.
#[test]
fn an_endless_loop_does_not_hold_up_the_end() {
    let spin = entry_with("spin", "spin.wat", &json!({ "deadline_ms": 600_000 }));
    let mut server =
        Server::start(json!({ "workers": 1, "drain_timeout_ms": 300, "functions": [spin, entry("echo", "echo.wat")] }));
    let mut raw = Raw::connect(server.address);
    raw.send(post_bytes("/spin", b"", ""));
    assert_eq!(server.client().post("/echo", "x").text(), "x");
    let start = Instant::now();
    server.signal(Signal::TERM);
    let status = server.wait(Duration::from_secs(60));
    assert!(status.success(), "{status}");
    assert!(start.elapsed() >= Duration::from_millis(300), "it did not wait at all");
    // It was told, or cut off; but not left waiting.
    let reply = raw.reply();
    assert!(reply.as_ref().is_none_or(|reply| reply.status >= 500), "{reply:?}");
}

#[test]
fn an_idle_server_stops_at_once() {
    let mut server = Server::start(
        json!({ "drain_timeout_ms": 600_000, "head_timeout_ms": 600_000, "functions": [entry("echo", "echo.wat")] }),
    );
    // A connection that is kept alive holds up nothing.
    let mut raw = Raw::connect(server.address);
    raw.send(post_bytes("/echo", b"x", ""));
    assert_eq!(raw.reply().expect("a reply").text(), "x");
    server.signal(Signal::TERM);
    let status = server.wait(Duration::from_secs(60));
    assert!(status.success(), "{status}");
    assert!(raw.is_closed());
}

/// A second signal ends the server without waiting for the rest.
#[test]
fn a_second_sigterm_ends_it_at_once() {
    let spin = entry_with("spin", "spin.wat", &json!({ "deadline_ms": 600_000 }));
    let mut server =
        Server::start(json!({ "workers": 1, "drain_timeout_ms": 600_000, "functions": [spin, entry("echo", "echo.wat")] }));
    let mut raw = Raw::connect(server.address);
    raw.send(post_bytes("/spin", b"", ""));
    assert_eq!(server.client().post("/echo", "x").text(), "x");
    server.signal(Signal::TERM);
    server.wait_for_log("stopping");
    server.signal(Signal::TERM);
    let status = server.wait(Duration::from_secs(60));
    assert_eq!(status.code(), Some(130));
}
