//! Replies that go out while they are written.

use crate::{LISTENERS, assert_failure, entry, entry_with, eventually};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};
use sledge_tests::http::{Raw, Reply, TIME_MAX, post_bytes};
use sledge_tests::server::Server;
use std::time::Duration;

fn server_with(more: &Value) -> Server {
    let stream = entry_with("stream", "stream.c", &json!({ "methods": ["POST", "HEAD"], "deadline_ms": 60_000 }));
    let mut functions = vec![stream, entry("echo", "echo.wat"), entry("caller", "caller.c")];
    functions.push(entry_with("hasty", "stream.c", &json!({ "deadline_ms": 2_000 })));
    let mut config = json!({ "workers": 1, "kv": "memory", "functions": functions });
    for (key, value) in more.as_object().expect("an object") {
        config[key] = value.clone();
    }
    Server::start(config)
}

fn post(server: &Server, path: &str, text: &str) -> Raw {
    let mut raw = Raw::connect(server.address);
    raw.send(post_bytes(path, text.as_bytes(), ""));
    raw
}

fn mark(server: &Server, name: &str) {
    assert_eq!(server.client().post("/stream", format!("mark {name}")).status, 200);
}

fn is_marked(server: &Server, name: &str) -> bool {
    server.client().post("/stream", format!("marked {name}")).text() == "yes\n"
}

/// How many requests of a function have ended so.
fn ended(server: &Server, function: &str, outcome: &str) -> u64 {
    let sample = format!("sledge_requests_total{{function=\"{function}\",tenant=\"default\",outcome=\"{outcome}\"}} ");
    let text = server.admin().get("/metrics").text();
    text.lines().find_map(|line| line.strip_prefix(&sample)).map_or(0, |count| count.parse().expect("a number"))
}

/// A chunk of HTTP/1.1; empty at the end.
fn chunk(raw: &mut Raw) -> Vec<u8> {
    let mut line = Vec::new();
    while !line.ends_with(b"\r\n") {
        line.extend(raw.bytes(1));
    }
    let length = std::str::from_utf8(&line).expect("text").trim_end();
    let length = usize::from_str_radix(length, 16).unwrap_or_else(|_| panic!("no length: {length:?}"));
    let chunk = raw.bytes(length);
    assert_eq!(raw.bytes(2), b"\r\n");
    chunk
}

/// What comes until the last chunk.
fn chunks(raw: &mut Raw) -> Vec<u8> {
    let mut all = Vec::new();
    loop {
        let next = chunk(raw);
        if next.is_empty() {
            return all;
        }
        all.extend(next);
    }
}

fn is_filled(bytes: &[u8], count: usize) -> bool {
    bytes.len() == count && bytes.iter().enumerate().all(|(at, byte)| *byte == (at % 251) as u8)
}

/// The head of a reply that goes on in chunks.
fn chunked_head(raw: &mut Raw) -> Reply {
    let head = raw.head().expect("a head");
    assert_eq!((head.header("transfer-encoding"), head.header("content-length")), (Some("chunked"), None), "{head:?}");
    head
}

#[test]
fn the_client_has_the_first_piece_while_the_function_waits_for_it() {
    for listeners in LISTENERS {
        let server = server_with(&json!({ "listeners": listeners }));
        let text =
            "status 201 0\nset x-kind live\nstream -1 0\nstream -1 -7\nstatus 404 -7\nrefused x-a -7\nsay one\nawait go\nsay two";
        let mut raw = post(&server, "/stream", text);
        let head = chunked_head(&mut raw);
        assert_eq!((head.status, head.header("x-kind")), (201, Some("live")), "{head:?}");
        // What was written in one quantum may come in one piece or in two.
        let mut first = chunk(&mut raw);
        while first.len() < 4 {
            first.extend(chunk(&mut raw));
        }
        assert_eq!(first, b"one\n", "{listeners}");
        assert!(!raw.answers_within(Duration::from_millis(50)), "it waits");
        mark(&server, "go");
        assert_eq!(chunks(&mut raw), b"two\n", "{listeners}");
        // The connection goes on.
        raw.send(post_bytes("/echo", b"again", ""));
        assert_eq!(raw.reply().expect("a reply").text(), "again");
        eventually("it is counted once", || ended(&server, "stream", "ok") == 2);
        server.stop();
    }
}

#[test]
fn a_body_of_any_size_arrives_whole() {
    for listeners in LISTENERS {
        let server = server_with(&json!({ "listeners": listeners, "reply_bytes_max": 20_000_000, "workers": 2 }));
        for bytes in [0, 1, 65_535, 65_536, 65_537, 3_000_000] {
            let reply = server.client().post("/stream", format!("stream -1 0\nfill {bytes}"));
            assert!(reply.status == 200 && is_filled(&reply.body, bytes), "{listeners}: {bytes}: {}", reply.body.len());
            let reply = server.client().post("/stream", format!("stream {bytes} 0\nfill {bytes}"));
            assert!(reply.status == 200 && is_filled(&reply.body, bytes), "{listeners}: {bytes}: {}", reply.body.len());
            assert_eq!(reply.header("content-length"), Some(bytes.to_string().as_str()));
        }
        // What was written before belongs to it.
        let reply = server.client().post("/stream", "say a\nfill 200000\nstream -1 0\nsay b");
        assert!(reply.body.starts_with(b"a\n") && reply.body.ends_with(b"b\n") && reply.body.len() == 200_004);
        server.stop();
    }
}

#[test]
fn a_client_that_reads_slowly_holds_up_no_other_and_costs_little_memory() {
    const BYTES: usize = 64 << 20;
    let server = server_with(&json!({ "reply_bytes_max": BYTES }));
    let slow = |name: &str| {
        let mut raw = post(&server, "/stream", &format!("mark begun-{name}\nstream -1 0\nfill {BYTES}\nmark done-{name}"));
        chunked_head(&mut raw);
        raw
    };
    // One to have everything warm.
    drop(slow("first"));
    eventually("it has gone", || ended(&server, "stream", "cancelled") == 1);
    let before = server.private_bytes();
    let mut readers: Vec<Raw> = (0..10).map(|i| slow(&format!("{i}"))).collect();
    eventually("they all wait", || {
        let cpu = server.cpu_time();
        std::thread::sleep(Duration::from_millis(100));
        server.cpu_time() == cpu
    });
    for i in 0..50 {
        assert_eq!(server.client().post("/echo", format!("{i}")).text(), format!("{i}"));
    }
    assert!((0..10).all(|i| is_marked(&server, &format!("begun-{i}")) && !is_marked(&server, &format!("done-{i}"))));
    // Of 640 MiB, a few hundred kilobytes for each: its sandbox, and what is under way.
    let grown = server.private_bytes().saturating_sub(before);
    assert!(grown < 10 << 20, "{grown}");
    let mut last = readers.pop().expect("a reader");
    assert!(is_filled(&chunks(&mut last), BYTES));
    eventually("it is done", || is_marked(&server, "done-9"));
    assert!((0..9).all(|i| !is_marked(&server, &format!("done-{i}"))));
    drop(readers);
    eventually("the others have gone", || ended(&server, "stream", "cancelled") == 10);
    server.stop();
}

/// Wherever it is: waiting for something else, waiting to write, computing.
#[test]
fn an_invocation_ends_with_its_client() {
    for listeners in LISTENERS {
        let server = server_with(&json!({ "listeners": listeners, "reply_bytes_max": 1 << 30 }));
        for (count, then) in (1..).zip(["sleep 50000", "fill 1000000000", "spin"]) {
            let mut raw = post(&server, "/stream", &format!("stream -1 0\nsay x\n{then}\nmark late"));
            chunked_head(&mut raw);
            drop(raw);
            eventually("it ends", || ended(&server, "stream", "cancelled") == count);
        }
        assert!(!is_marked(&server, "late"));
        server.stop();
    }
}

#[test]
fn what_fails_after_its_head_breaks_off() {
    for listeners in LISTENERS {
        let server = server_with(&json!({ "listeners": listeners, "reply_bytes_max": 1_000 }));
        let cases = [
            ("/stream", "stream -1 0", "trap", "trap"),
            ("/stream", "stream -1 0", "exit 3", "exit"),
            ("/stream", "stream -1 0", "fill 1000", "reply_too_large"),
            ("/stream", "stream 10 0", "say short", "reply_incomplete"),
            ("/hasty", "stream -1 0", "sleep 50000", "deadline"),
            ("/hasty", "stream -1 0", "spin", "deadline"),
        ];
        for (index, (path, begin, then, outcome)) in cases.into_iter().enumerate() {
            let function = &path[1..];
            let before = ended(&server, function, outcome);
            let wait = if function == "hasty" { String::new() } else { format!("await go-{index}\n") };
            let mut raw = post(&server, path, &format!("{begin}\nsay x\n{wait}{then}"));
            assert_eq!(raw.head().expect("a head").status, 200);
            // Two bytes of a body, as they are or as a chunk.
            let first = raw.bytes(if begin.contains("10") { 2 } else { 7 });
            assert!(first.ends_with(b"x\n") || first.ends_with(b"x\n\r\n"), "{first:?}");
            mark(&server, &format!("go-{index}"));
            let rest = raw.everything();
            assert!(!rest.ends_with(b"0\r\n\r\n"), "{then}: nothing says that it is whole: {rest:?}");
            eventually(outcome, || ended(&server, function, outcome) == before + 1);
        }
        // Each was counted once, by how it ended.
        assert_eq!(ended(&server, "hasty", "ok"), 0);
        server.wait_for_log("unreachable");
        server.stop();
    }
}

/// The client learns why, as long as nothing was said to it.
#[test]
fn what_fails_in_its_first_quantum_is_answered_like_any_failure() {
    let server = server_with(&json!({ "quantum_us": 1_000_000, "reply_bytes_max": 1_000 }));
    let ask = |text: &str| post(&server, "/stream", text).reply().expect("a reply");
    assert_failure(&ask("stream -1 0\nsay x\ntrap"), 500, "trap", "unreachable", Some("stream"));
    assert_failure(&ask("stream -1 0\nsay x\nexit 3"), 500, "exit", "status_3", Some("stream"));
    assert_failure(&ask("stream 10 0\nsay x"), 500, "reply_incomplete", "declared_length", Some("stream"));
    // And what is over in it is one piece.
    let reply = ask("stream -1 0\nsay x");
    assert_eq!((reply.status, reply.text().as_str(), reply.header("content-length")), (200, "x\n", Some("2")));
    for outcome in ["trap", "exit", "reply_incomplete", "ok"] {
        eventually(outcome, || ended(&server, "stream", outcome) == 1);
    }
    server.stop();
}

#[test]
fn a_length_that_was_said_is_kept() {
    let server = server_with(&json!({ "reply_bytes_max": 1_000 }));
    let mut raw = post(&server, "/stream", "stream 8 0\nsay one\nawait go\nsay two\nerror 22\nsleep 100\nmark over");
    let head = raw.head().expect("a head");
    assert_eq!((head.header("content-length"), head.header("transfer-encoding")), (Some("8"), None));
    assert_eq!(raw.bytes(4), b"one\n");
    mark(&server, "go");
    assert_eq!(raw.bytes(4), b"two\n");
    // The client has all of it, the function goes on.
    eventually("more is refused", || is_marked(&server, "over"));
    raw.send(post_bytes("/echo", b"again", ""));
    assert_eq!(raw.reply().expect("a reply").text(), "again");
    assert_eq!(ended(&server, "stream", "cancelled"), 0);
    // None that no reply may have, or that is passed already; none that is no number of bytes.
    for refused in ["stream 1001 -22", "say x\nstream 1 -22", "stream -2 -28"] {
        assert_eq!(server.client().post("/stream", refused).status, 200, "{refused}");
    }
    server.stop();
}

#[test]
fn the_answer_to_head_is_complete_with_its_head() {
    let server = server_with(&json!({}));
    let mut raw = Raw::connect(server.address);
    for (text, length) in
        [("stream 4 0\nsay one\nsleep 50\nmark first", Some("4")), ("stream -1 0\nfill 500000\nmark second", None)]
    {
        raw.send(format!("HEAD /stream HTTP/1.1\r\nhost: a\r\ncontent-length: {}\r\n\r\n{text}", text.len()));
        let head = raw.head().expect("a head");
        assert_eq!((head.status, head.header("content-length")), (200, length), "{head:?}");
    }
    // What follows is the next reply.
    raw.send(post_bytes("/echo", b"again", ""));
    assert_eq!(raw.reply().expect("a reply").text(), "again");
    eventually("the functions go on", || is_marked(&server, "first") && is_marked(&server, "second"));
    let reply = post(&server, "/stream", "status 204 0\nstream -1 0\nsay nothing\nsleep 10").reply().expect("a reply");
    assert_eq!((reply.status, reply.body.len(), reply.header("transfer-encoding")), (204, 0, None));
    eventually("all are counted", || ended(&server, "stream", "ok") >= 5 && ended(&server, "stream", "cancelled") == 0);
    server.stop();
}

#[test]
fn a_function_that_calls_gets_a_stream_in_one_piece() {
    for listeners in LISTENERS {
        let server = server_with(&json!({ "listeners": listeners, "reply_bytes_max": 600_000 }));
        let ask = |text: &str| server.client().post("/caller", text).body;
        assert_eq!(ask("invoke stream whole one two"), b"8 one\ntwo\n\n");
        // More than is under way at a time, while the caller waits.
        for bytes in [0, 1, 65_536, 65_537, 500_000] {
            let reply = ask(&format!("digest stream flood {bytes}"));
            let sum = (0..bytes).fold(0_u32, |sum, at| sum.wrapping_mul(31).wrapping_add((at % 251) as u32));
            assert_eq!(String::from_utf8_lossy(&reply), format!("{bytes} {sum}\n"));
        }
        // What fails is no reply, however much of it there was; what is too large neither.
        assert_eq!(ask("invoke stream torn 200000\ninvoke stream flood 600001\ninvoke echo on"), b"error 12\nerror 12\n2 on\n");
        // What is not waited for goes nowhere, to its end.
        assert_eq!(ask("send stream flood 500000"), b"sent 0\n");
        eventually("it ends", || ended(&server, "stream", "ok") == 7);
        assert_eq!((ended(&server, "stream", "trap"), ended(&server, "stream", "cancelled")), (1, 0));
        server.stop();
    }
}

/// It counts as the caller's, and as the server's.
#[test]
fn a_reply_that_is_collected_is_bounded() {
    const TOTAL: u64 = 64 << 20;
    let server = server_with(&json!({ "memory_total_bytes_max": TOTAL, "reply_bytes_max": 200 << 20 }));
    assert_eq!(server.client().post("/caller", "invoke stream flood 1000").status, 200);
    let before = server.private_bytes();
    let reply = server.client().post("/caller", "invoke stream flood 200000000");
    assert_failure(&reply, 503, "unavailable", "no_memory", Some("caller"));
    let grown = server.private_bytes().saturating_sub(before);
    assert!(grown < TOTAL, "{grown}");
    eventually("it ends with its caller", || ended(&server, "stream", "cancelled") == 1);
    assert_eq!(server.client().post("/caller", "invoke stream flood 1000").status, 200);
    server.stop();
}

#[test]
fn a_connection_with_a_reply_under_way_is_not_idle() {
    let server = server_with(&json!({ "head_timeout_ms": 1_500 }));
    let mut raw = post(&server, "/stream", "stream -1 0\nsay one\nsleep 5000\nsay two");
    chunked_head(&mut raw);
    assert_eq!(chunks(&mut raw), b"one\ntwo\n");
    server.stop();
}

#[test]
fn a_client_that_reads_nothing_for_too_long_is_disconnected() {
    let server = server_with(&json!({ "reply_timeout_ms": 2_000, "reply_bytes_max": 1 << 30 }));
    let mut raw = post(&server, "/stream", "stream -1 0\nfill 1000000000");
    chunked_head(&mut raw);
    eventually("it ends", || ended(&server, "stream", "cancelled") == 1);
    assert!(raw.everything().len() < 1_000_000_000);
    server.stop();
}

#[test]
fn sigterm_waits_for_replies_under_way() {
    let mut server = server_with(&json!({ "drain_timeout_ms": 30_000 }));
    let mut raw = post(&server, "/stream", "stream -1 0\nsay one\nsleep 500\nsay two");
    chunked_head(&mut raw);
    server.signal(rustix::process::Signal::TERM);
    assert_eq!(chunks(&mut raw), b"one\ntwo\n");
    assert!(server.wait(TIME_MAX).success());
}

async fn speak_http2(server: &Server) -> http2::SendRequest<Full<Bytes>> {
    let stream = tokio::net::TcpStream::connect(server.address).await.expect("connect");
    let (sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.expect("HTTP/2");
    tokio::spawn(connection);
    sender
}

async fn ask(sender: &http2::SendRequest<Full<Bytes>>, method: &str, path: &str, text: &str) -> Response<Incoming> {
    let request = Request::builder().method(method).uri(format!("http://test{path}"));
    sender.clone().send_request(request.body(Full::from(text.to_owned())).expect("a request")).await.expect("a head")
}

#[test]
fn http2_streams_too() {
    for listeners in LISTENERS {
        let server = server_with(&json!({ "listeners": listeners, "reply_bytes_max": 20_000_000 }));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let exchange = async {
            let sender = speak_http2(&server).await;
            let response = ask(&sender, "POST", "/stream", "status 201 0\nstream -1 0\nsay one\nawait go\nsay two").await;
            assert_eq!(response.status(), 201);
            let mut body = response.into_body();
            let first = body.frame().await.expect("a frame").expect("no error").into_data().expect("data");
            assert!(b"one\n".starts_with(&first[..]) && !first.is_empty(), "{first:?}");
            assert_eq!(ask(&sender, "POST", "/stream", "mark go").await.status(), 200);
            let rest = body.collect().await.expect("the rest").to_bytes();
            assert_eq!([&first[..], &rest[..]].concat(), b"one\ntwo\n");

            let large = ask(&sender, "POST", "/stream", "stream -1 0\nfill 20000000").await.into_body();
            assert!(is_filled(&large.collect().await.expect("all of it").to_bytes(), 20_000_000));

            // A failure resets its stream, and no other.
            let mut broken = ask(&sender, "POST", "/stream", "stream -1 0\nsay x\nawait fail\ntrap").await.into_body();
            let first = broken.frame().await.expect("a frame").expect("no error").into_data().expect("data");
            assert!(!first.is_empty());
            assert_eq!(ask(&sender, "POST", "/stream", "mark fail").await.status(), 200);
            let error = loop {
                match broken.frame().await.expect("no end") {
                    Ok(_) => {}
                    Err(error) => break error,
                }
            };
            assert!(format!("{error:?}").contains("INTERNAL_ERROR"), "{error:?}");

            // And so does a client that wants no more.
            let unwanted = ask(&sender, "POST", "/stream", "stream -1 0\nsay x\nsleep 50000").await;
            drop(unwanted);
            let head = ask(&sender, "HEAD", "/stream", "stream 4 0\nsay one\nsleep 20").await;
            assert_eq!(head.headers()["content-length"], "4");
            assert_eq!(head.into_body().collect().await.expect("an end").to_bytes().len(), 0);
            assert_eq!(
                ask(&sender, "POST", "/echo", "again").await.into_body().collect().await.expect("a body").to_bytes(),
                "again"
            );
        };
        runtime.block_on(async { tokio::time::timeout(TIME_MAX, exchange).await.expect("done in time") });
        eventually("they are counted", || ended(&server, "stream", "trap") == 1 && ended(&server, "stream", "cancelled") == 1);
        server.stop();
    }
}
