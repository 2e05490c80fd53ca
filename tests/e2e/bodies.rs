//! Functions that read a request's body while it comes.

use crate::{LISTENERS, assert_failure, entry_with, eventually};
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, SizeHint};
use hyper::client::conn::http2;
use hyper::{HeaderMap, Request};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};
use sledge_tests::http::{Raw, TIME_MAX};
use sledge_tests::server::Server;
use std::convert::Infallible;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

fn server(more: &Value) -> Server {
    let settings = |body: &str| json!({ "body": body, "deadline_ms": 60_000 });
    let functions = [entry_with("body", "body.c", &settings("stream")), entry_with("whole", "body.c", &settings("whole"))];
    let mut config = json!({ "workers": 1, "kv": "memory", "functions": functions });
    for (key, value) in more.as_object().expect("an object") {
        config[key] = value.clone();
    }
    Server::start(config)
}

/// A request of which the body is still to come, in chunks.
fn begin(server: &Server, path: &str, what: &str) -> Raw {
    let mut raw = Raw::connect(server.address);
    raw.send(format!("POST {path} HTTP/1.1\r\nhost: a\r\nx-do: {what}\r\ntransfer-encoding: chunked\r\n\r\n"));
    raw
}

fn chunk(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}

const END: &str = "0\r\n\r\n";

fn ask(server: &Server, what: &str) -> String {
    let reply = server.client().try_post("/body", b"", &[("x-do", what)]).expect("a reply");
    assert_eq!(reply.status, 200, "{what}: {reply:?}");
    reply.text()
}

/// How many requests have ended so.
fn ended(server: &Server, outcome: &str) -> u64 {
    let sample = format!("sledge_requests_total{{function=\"body\",tenant=\"default\",outcome=\"{outcome}\"}} ");
    let text = server.admin().get("/metrics").text();
    text.lines().find_map(|line| line.strip_prefix(&sample)).map_or(0, |count| count.parse().expect("a number"))
}

#[test]
fn http1_is_answered_while_it_is_sent() {
    for listeners in LISTENERS {
        let server = server(&json!({ "listeners": listeners }));
        let mut raw = begin(&server, "/body", "echo");
        let head = raw.head().expect("a head");
        assert_eq!((head.status, head.header("transfer-encoding")), (200, Some("chunked")), "{listeners}");
        for text in ["one", "two", "three"] {
            raw.send(chunk(text));
            assert_eq!(raw.bytes(chunk(text).len()), chunk(text).as_bytes(), "{listeners}");
        }
        raw.send(END);
        assert_eq!(raw.bytes(END.len()), END.as_bytes());
        // The connection goes on.
        raw.send("POST /body HTTP/1.1\r\nhost: a\r\nx-do: count\r\ncontent-length: 5\r\n\r\nagain");
        assert_eq!(raw.reply().expect("a reply").text(), "5\n");
        server.stop();
    }
}

/// What a test sends, when it sends it.
struct Sent(mpsc::Receiver<Frame<Bytes>>);

impl Body for Sent {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(task).map(|frame| frame.map(Ok))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}

async fn speak_http2(server: &Server) -> http2::SendRequest<Sent> {
    let stream = tokio::net::TcpStream::connect(server.address).await.expect("connect");
    let (sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.expect("HTTP/2");
    tokio::spawn(connection);
    sender
}

fn request(what: &str) -> (mpsc::Sender<Frame<Bytes>>, Request<Sent>) {
    let (sender, receiver) = mpsc::channel(1);
    (sender, Request::post("http://test/body").header("x-do", what).body(Sent(receiver)).expect("a request"))
}

fn data(text: &'static str) -> Frame<Bytes> {
    Frame::data(Bytes::from_static(text.as_bytes()))
}

fn in_time(exchange: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async { tokio::time::timeout(TIME_MAX, exchange).await.expect("done in time") });
}

#[test]
fn http2_is_answered_while_it_is_sent_and_ends_with_trailers() {
    for listeners in LISTENERS {
        let server = server(&json!({ "listeners": listeners, "body_bytes_max": 200 << 20, "reply_bytes_max": 200 << 20 }));
        in_time(async {
            let mut http2 = speak_http2(&server).await;
            let (sender, echo) = request("echo");
            sender.send(data("one")).await.expect("it is taken");
            let mut body = http2.send_request(echo).await.expect("a head").into_body();
            for text in ["one", "two", "three"] {
                if text != "one" {
                    sender.send(data(text)).await.expect("it is taken");
                }
                assert_eq!(body.frame().await.expect("a frame").expect("no error").into_data().expect("data"), text);
            }
            drop(sender);
            assert!(body.collect().await.expect("the end").to_bytes().is_empty(), "{listeners}");

            // More than any window, in both directions at the same time.
            let (sender, echo) = request("echo");
            let send = async move {
                for _ in 0..200 {
                    sender.send(Frame::data(Bytes::from(vec![b'x'; 100_000]))).await.expect("it is taken");
                }
            };
            let receive =
                async { http2.send_request(echo).await.expect("a head").into_body().collect().await.expect("all of it") };
            let (_, all) = tokio::join!(send, receive);
            assert_eq!(all.to_bytes().len(), 20_000_000);

            let (sender, counted) = request("trailer x-sum");
            let server = &server;
            let send = async move {
                // The function asks before anything has come.
                while ask(server, "marked x-sum") != "1\n" {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                sender.send(data("12345")).await.expect("it is taken");
                let trailers = HeaderMap::from_iter([("x-sum".parse().expect("a name"), "7".parse().expect("a value"))]);
                sender.send(Frame::trailers(trailers)).await.expect("they are taken");
            };
            let receive =
                async { http2.send_request(counted).await.expect("a head").into_body().collect().await.expect("all of it") };
            let (_, all) = tokio::join!(send, receive);
            assert_eq!(all.to_bytes(), "error 6\n5\n7\n");
        });
        server.stop();
    }
}

#[test]
fn trailers_are_known_behind_the_body() {
    let server = server(&json!({}));
    for (path, expected) in [("/body", "error 6\n3\n7, 8\n"), ("/whole", "7, 8\n3\n7, 8\n")] {
        let mut raw = begin(&server, path, "trailer X-Sum");
        // The function asks before anything has come, or when all has.
        if path == "/body" {
            eventually("it has asked", || ask(&server, "marked X-Sum") == "1\n");
        }
        raw.send(format!("{}0\r\nx-sum: 7\r\nx-sum: 8\r\n\r\n", chunk("abc")));
        assert_eq!(raw.reply().expect("a reply").text(), expected, "{path}");
    }
    for path in ["/body", "/whole"] {
        let mut raw = begin(&server, path, "trailer x-sum");
        raw.send(END);
        let reply = raw.reply().expect("a reply").text();
        assert!(reply.ends_with("0\nerror 44\n"), "{path}: {reply}");
    }
    server.stop();
}

/// A client that sends faster than its function reads has to wait; it costs no memory.
#[test]
fn a_function_that_does_not_read_holds_its_client_up() {
    const BYTES: usize = 100 << 20;
    for listeners in LISTENERS {
        let server = server(&json!({ "listeners": listeners, "body_bytes_max": BYTES, "memory_total_bytes_max": 64 << 20 }));
        assert_eq!(ask(&server, "count"), "0\n");
        let before = server.private_bytes();
        let mut stream = TcpStream::connect(server.address).expect("connect");
        let head =
            format!("POST /body HTTP/1.1\r\nhost: a\r\nx-do: after go\r\ncontent-length: {BYTES}\r\nconnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).expect("sent");
        stream.set_write_timeout(Some(Duration::from_millis(500))).expect("a timeout");
        let block = vec![b'x'; 64 << 10];
        let mut sent = 0;
        while sent < BYTES
            && let Ok(count) = stream.write(&block[..block.len().min(BYTES - sent)])
        {
            sent += count;
        }
        // What fits into the kernel's buffers on both sides.
        assert!(sent < BYTES / 2, "{listeners}: {sent}");
        assert_eq!(ask(&server, "count"), "0\n", "others are answered");
        assert_eq!(ask(&server, "mark go"), "");
        stream.set_write_timeout(None).expect("no timeout");
        while sent < BYTES {
            sent += stream.write(&block[..block.len().min(BYTES - sent)]).expect("it goes on");
        }
        let mut reply = String::new();
        stream.read_to_string(&mut reply).expect("a reply");
        assert!(reply.ends_with(&format!("\r\n\r\n{BYTES}\n")), "{listeners}: {reply}");
        let grown = server.private_bytes().saturating_sub(before);
        assert!(grown < 8 << 20, "{listeners}: {grown}");
        server.stop();
    }
}

#[test]
fn an_invocation_ends_with_its_client() {
    for listeners in LISTENERS {
        let server = server(&json!({ "listeners": listeners }));
        let mut raw = begin(&server, "/body", "late");
        raw.send(chunk("one"));
        std::thread::sleep(Duration::from_millis(20));
        drop(raw);
        eventually("it ends", || ended(&server, "cancelled") + ended(&server, "bad_request") == 1);
        eventually("it is gone", || gauge(&server, "requests_under_way") == 0);
        // Its body does not end before its connection does.
        let mut kept = None;
        in_time(async {
            let mut http2 = speak_http2(&server).await;
            let (sender, late) = request("late");
            sender.send(data("one")).await.expect("it is taken");
            let mut answer = Box::pin(http2.send_request(late));
            while gauge(&server, "requests_under_way") == 0 {
                let answer = tokio::time::timeout(Duration::from_millis(50), &mut answer).await;
                assert!(answer.is_err(), "it waits for more");
            }
            kept = Some(sender);
        });
        eventually("it ends", || ended(&server, "cancelled") + ended(&server, "bad_request") == 2);
        assert_eq!(ask(&server, "marked late"), "0\n");
        drop(kept);
        server.stop();
    }
}

/// A number of the server's.
fn gauge(server: &Server, name: &str) -> u64 {
    let text = server.admin().get("/metrics").text();
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("sledge_{name} ")));
    line.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("no {name}: {text}"))
}

/// Wherever in its body it goes: its invocation ends, its place at the gate is another's, its sandbox goes back to the system (the host does not know what the guest was at), and nothing of it is left.
#[test]
fn a_client_that_goes_in_the_middle_of_its_body_leaves_nothing() {
    for listeners in LISTENERS {
        let limits = json!({ "body": "stream", "deadline_ms": 60_000, "concurrency_max": 1, "queue_max": 0 });
        let server =
            server(&json!({ "listeners": listeners, "idle_memory_ms": 0, "functions": [entry_with("body", "body.c", &limits)] }));
        assert_eq!(ask(&server, "count"), "0\n");
        // It is put back after the reply has gone.
        eventually("its sandbox is kept", || gauge(&server, "idle_sandboxes") == 1);
        let gauges = || ["idle_sandboxes", "memory_used_bytes", "requests_under_way"].map(|name| gauge(&server, name));
        let (before, files) = (gauges(), gauge(&server, "process_open_fds"));
        // In the length of a chunk, in a chunk, between two, in what comes behind the last one, before all; with a length that was said.
        let chunked = ["5", "5\r\n", "5\r\non", "3\r\none\r\n", "3\r\none\r\n0\r\nx-sum", ""];
        let cases = chunked.map(|sent| ("transfer-encoding: chunked", sent)).into_iter();
        let cases: Vec<_> = cases.chain([("content-length: 5", "on"), ("content-length: 5", "")]).collect();
        for (round, (kind, sent)) in (0..3).flat_map(|_| &cases).enumerate() {
            // It reads and answers at once what comes, or reads all of it and then answers.
            let what = ["echo", "late", "begun"][round % 3];
            let mut raw = Raw::connect(server.address);
            raw.send(format!("POST /body HTTP/1.1\r\nhost: a\r\nx-do: {what}\r\n{kind}\r\n\r\n{sent}"));
            if what != "late" {
                assert_eq!(raw.head().expect("a head").status, 200, "{listeners}: {what} {kind} {sent:?}");
            }
            let runs = |count: u64| gauge(&server, "requests_under_way") == count;
            eventually("it is taken", || runs(1));
            // The only place is its.
            let refused = server.client().try_post("/body", b"", &[("x-do", "count")]).expect("a reply");
            assert_eq!(refused.status, 429, "{listeners}: {what} {kind} {sent:?}");
            // It goes, or only says that nothing more comes.
            if round % 2 == 0 {
                raw.shut_down_writing();
                eventually("it ends", || runs(0));
            }
            drop(raw);
            eventually("it ends", || runs(0));
            assert_eq!(ask(&server, "count"), "0\n", "{listeners}: {what} {kind} {sent:?}");
            // Its place is given back after the reply has gone.
            eventually("its place is free", || runs(0));
        }
        assert_eq!(ask(&server, "marked late"), "0\n", "{listeners}");
        eventually("nothing is left of them", || gauges() == before && gauge(&server, "process_open_fds") <= files);
        eventually("they are counted", || ended(&server, "cancelled") + ended(&server, "bad_request") == 24);
        server.stop();
    }
}

#[test]
fn a_body_that_is_too_large_is_refused_as_ever() {
    for listeners in LISTENERS {
        let server = server(&json!({ "listeners": listeners, "body_bytes_max": 1_000 }));
        let large = "x".repeat(600);
        // As it says by itself, or as it turns out.
        let declared = server.client().try_post("/body", "x".repeat(1_001).as_bytes(), &[("x-do", "count")]).expect("a reply");
        assert_failure(&declared, 413, "body_too_large", "body_bytes_max", Some("body"));
        let mut raw = begin(&server, "/body", "count");
        raw.send(chunk(&large));
        std::thread::sleep(Duration::from_millis(20));
        raw.send(chunk(&large));
        let reply = raw.reply().expect("a reply");
        assert_failure(&reply, 413, "body_too_large", "body_bytes_max", Some("body"));
        assert_eq!(reply.header("connection"), Some("close"));
        eventually("they are counted", || ended(&server, "body_too_large") == 2);
        in_time(async {
            let mut http2 = speak_http2(&server).await;
            let (sender, counted) = request("count");
            let send = async move {
                let _ = sender.send(Frame::data(Bytes::from(vec![b'x'; 600]))).await;
                tokio::time::sleep(Duration::from_millis(20)).await;
                let _ = sender.send(Frame::data(Bytes::from(vec![b'x'; 600]))).await;
                tokio::time::sleep(Duration::from_millis(20)).await;
            };
            let (_, response) = tokio::join!(send, http2.send_request(counted));
            assert_eq!(response.expect("a head").status(), 413, "{listeners}");
        });
        eventually("it is counted", || ended(&server, "body_too_large") == 3);
        // Once the reply has begun, it breaks off.
        let mut raw = begin(&server, "/body", "begun");
        assert_eq!(raw.head().expect("a head").status, 200);
        raw.send(format!("{}{}", chunk(&large), chunk(&large)));
        let rest = raw.everything();
        assert!(rest.starts_with(b"6\r\nbegun\n") && !rest.ends_with(b"0\r\n\r\n"), "{rest:?}");
        eventually("it is counted", || ended(&server, "body_too_large") + ended(&server, "bad_request") == 4);
        server.stop();
    }
}

#[test]
fn a_body_that_breaks_off_is_refused_as_ever() {
    let server = server(&json!({}));
    let mut raw = begin(&server, "/body", "late");
    raw.send(format!("{}what\r\n", chunk("one")));
    assert_failure(&raw.reply().expect("a reply"), 400, "bad_request", "body_incomplete", Some("body"));
    assert_eq!(ask(&server, "marked late"), "0\n");
    server.stop();
}

/// The client has so much time in all; the function's own does not count.
#[test]
fn a_body_that_is_too_slow_is_refused_as_ever() {
    for listeners in LISTENERS {
        let server = server(&json!({ "listeners": listeners, "body_timeout_ms": 1_500 }));
        let start = Instant::now();
        let mut raw = begin(&server, "/body", "count");
        raw.send(chunk("one"));
        let reply = raw.reply().expect("a reply");
        assert_failure(&reply, 408, "request_timeout", "body_too_slow", Some("body"));
        assert!(start.elapsed() >= Duration::from_millis(1_500), "{:?}", start.elapsed());
        let mut raw = begin(&server, "/body", "slowly 2500");
        raw.send(format!("{}{}{END}", chunk("one"), chunk("two")));
        assert_eq!(raw.reply().expect("a reply").text(), "6\n");
        server.stop();
    }
}

#[test]
fn polling_tells_what_there_is() {
    let server = server(&json!({}));
    let mut raw = begin(&server, "/body", "poll go");
    eventually("nothing was there", || ask(&server, "marked go") == "1\n");
    raw.send(chunk("abc"));
    eventually("nothing more was", || ask(&server, "marked again") == "1\n");
    raw.send(END);
    assert_eq!(raw.reply().expect("a reply").text(), "0 0 1 0 3 0 1 0\n");
    server.stop();
}

#[test]
fn a_body_need_not_be_read() {
    for listeners in LISTENERS {
        let server = server(&json!({ "listeners": listeners }));
        let mut raw = begin(&server, "/body", "ignore");
        let reply = raw.reply().expect("a reply");
        assert_eq!((reply.status, reply.text().as_str()), (200, "ignored\n"));
        // And one that has none is as any.
        assert_eq!(ask(&server, "count"), "0\n");
        server.stop();
    }
}
