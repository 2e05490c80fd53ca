//! What comes behind a reply, and behind a request's body.

use crate::{LISTENERS, entry, entry_with, eventually, lifted};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2;
use hyper::{HeaderMap, Request};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::json;
use sledge_tests::http::{Raw, TIME_MAX, post_bytes};
use sledge_tests::server::Server;

fn server(listeners: &str) -> Server {
    let stream = entry_with("stream", "stream.c", &json!({ "methods": ["POST", "HEAD"], "deadline_ms": 60_000 }));
    let functions = json!([stream, entry("echo", "echo.wat")]);
    Server::start(json!({ "listeners": listeners, "workers": 1, "kv": "memory", "functions": functions }))
}

fn mark(server: &Server, name: &str) {
    assert_eq!(server.client().post("/stream", format!("mark {name}")).status, 200);
}

fn is_marked(server: &Server, name: &str) -> bool {
    server.client().post("/stream", format!("marked {name}")).text() == "yes\n"
}

fn line(raw: &mut Raw) -> String {
    let mut line = Vec::new();
    while !line.ends_with(b"\r\n") {
        line.extend(raw.bytes(1));
    }
    String::from_utf8(line).expect("text").trim_end().to_owned()
}

/// A body in chunks, and what comes behind it.
fn chunks_and_trailers(raw: &mut Raw) -> (String, Vec<String>) {
    let mut body = Vec::new();
    loop {
        let length = usize::from_str_radix(&line(raw), 16).expect("a length");
        if length == 0 {
            break;
        }
        body.extend(raw.bytes(length));
        assert_eq!(line(raw), "");
    }
    let mut trailers = Vec::new();
    loop {
        let line = line(raw);
        if line.is_empty() {
            return (String::from_utf8(body).expect("text"), trailers);
        }
        trailers.push(line);
    }
}

const TE: &str = "te: trailers\r\n";

#[test]
fn http1_sends_trailers_in_chunks_to_clients_that_accept_them() {
    for listeners in LISTENERS {
        let server = server(listeners);
        let mut raw = Raw::connect(server.address);
        for (text, expected) in [
            ("trailer x-sum 7\nsay one", "one\n"),
            ("trailer x-sum 7", ""),
            ("trailer x-sum 0\nstream -1 0\nsay one\nsleep 20\ntrailer x-sum 7\ntrailer x-late 1", "one\n"),
            ("trailer x-sum 0\nstream 4 0\nsay one\nsleep 20\ntrailer x-sum 7", "one\n"),
            ("trailer x-sum 0\nstream -1 0\nsay one\nsleep 20\nsay two\nsleep 20\ntrailer x-sum 7", "one\ntwo\n"),
        ] {
            raw.send(post_bytes("/stream", text.as_bytes(), TE));
            let head = raw.head().expect("a head");
            assert_eq!((head.status, head.header("trailer")), (200, Some("x-sum")), "{text}: {head:?}");
            assert_eq!((head.header("transfer-encoding"), head.header("content-length")), (Some("chunked"), None), "{text}");
            // On the same connection: each ends where it should.
            assert_eq!(chunks_and_trailers(&mut raw), (expected.to_owned(), vec!["x-sum: 7".to_owned()]), "{text}");
        }
        // Names that were not announced are not sent.
        raw.send(post_bytes("/stream", b"stream -1 0\nsay one\nsleep 20\ntrailer x-late 1", TE));
        assert_eq!(raw.head().expect("a head").header("trailer"), None);
        assert_eq!(chunks_and_trailers(&mut raw), ("one\n".to_owned(), vec![]));
        server.stop();
    }
}

/// A component of WASI 0.3 gives the two streams of a request that came as a whole straight to its response.
#[test]
fn trailers_that_a_component_passes_on_whole_are_announced() {
    let web = json!({ "name": "web", "path": lifted::passing("passed-trailers"), "body": "whole", "deadline_ms": 20_000 });
    let server = Server::start(json!({ "workers": 1, "functions": [web] }));
    let mut raw = Raw::connect(server.address);
    let large = "large ".repeat(500_000);
    for (body, trailers) in [("small", &["x-sum: 7", "x-two: 8"][..]), (&large, &["x-sum: 7"]), ("none", &[])] {
        let behind: String = trailers.iter().map(|trailer| format!("{trailer}\r\n")).collect();
        let chunks = format!("{:x}\r\n{body}\r\n0\r\n{behind}\r\n", body.len());
        for te in [TE, ""] {
            let size = body.len();
            raw.send(format!("POST /web?x HTTP/1.1\r\nhost: a\r\n{te}transfer-encoding: chunked\r\n\r\n{chunks}"));
            let is_announced = !te.is_empty() && !trailers.is_empty();
            let names = is_announced.then(|| trailers.iter().map(|trailer| &trailer[..5]).collect::<Vec<_>>().join(", "));
            let head = raw.head().expect("a head");
            assert_eq!((head.status, head.header("trailer")), (200, names.as_deref()), "{size} {te}: {head:?}");
            let (got, got_behind) = match head.header("content-length") {
                Some(length) => {
                    let bytes = raw.bytes(length.parse().expect("a length"));
                    (String::from_utf8(bytes).expect("text"), Vec::new())
                }
                None => chunks_and_trailers(&mut raw),
            };
            assert_eq!(got_behind, if is_announced { trailers } else { &[] }, "{size} {te}");
            assert!(got == body, "{size}");
        }
    }
    server.stop();
}

#[test]
fn clients_that_do_not_accept_trailers_get_the_same_reply_without() {
    let server = server("per-core");
    let mut raw = Raw::connect(server.address);
    for (count, text) in
        ["trailer x-sum 7\nsay one", "trailer x-sum 0\nstream 4 0\nsay one\nsleep 50\ntrailer x-sum 7"].into_iter().enumerate()
    {
        raw.send(post_bytes("/stream", format!("{text}\nmark over-{count}").as_bytes(), "te: gzip\r\n"));
        let reply = raw.reply().expect("a reply");
        assert_eq!((reply.text().as_str(), reply.header("content-length")), ("one\n", Some("4")), "{text}");
        assert_eq!((reply.header("trailer"), reply.header("transfer-encoding")), (None, None), "{text}");
        eventually("it runs to its end", || is_marked(&server, &format!("over-{count}")));
    }
    // Replies without a body have none.
    raw.send("HEAD /stream HTTP/1.1\r\nhost: a\r\nte: trailers\r\ncontent-length: 23\r\n\r\ntrailer x-sum 7\nsay one");
    let head = raw.head().expect("a head");
    assert_eq!((head.header("content-length"), head.header("trailer")), (Some("4"), None), "{head:?}");
    raw.send(post_bytes("/stream", b"status 204 0\ntrailer x-sum 7", TE));
    let reply = raw.reply().expect("a reply");
    assert_eq!((reply.status, reply.header("trailer"), reply.header("transfer-encoding")), (204, None, None));
    raw.send(post_bytes("/echo", b"again", TE));
    assert_eq!(raw.reply().expect("a reply").text(), "again");
    server.stop();
}

#[test]
fn http2_sends_all_trailers() {
    for listeners in LISTENERS {
        let server = server(listeners);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let exchange = async {
            let stream = tokio::net::TcpStream::connect(server.address).await.expect("connect");
            let (sender, connection) =
                http2::handshake::<_, _, Full<Bytes>>(TokioExecutor::new(), TokioIo::new(stream)).await.expect("HTTP/2");
            tokio::spawn(connection);
            for (text, expected, names) in [
                ("trailer x-sum 7\nsay one", "one\n", &["x-sum"][..]),
                ("trailer x-sum 7", "", &["x-sum"]),
                ("stream -1 0\nsay one\nsleep 20\ntrailer x-sum 7\ntrailer x-late 8", "one\n", &["x-late", "x-sum"]),
                ("trailer x-sum 0\nstream 4 0\nsay one\nsleep 20\ntrailer x-sum 7", "one\n", &["x-sum"]),
                ("stream -1 0\nsay one\nsleep 20", "one\n", &[]),
            ] {
                let request = Request::post("http://test/stream").body(Full::from(text.to_owned())).expect("a request");
                let response = sender.clone().send_request(request).await.expect("a head");
                let body = response.into_body().collect().await.expect("all of it");
                let trailers = body.trailers().cloned().unwrap_or_else(HeaderMap::new);
                let mut got: Vec<&str> = trailers.keys().map(|name| name.as_str()).collect();
                got.sort_unstable();
                assert_eq!((got.as_slice(), body.to_bytes().as_ref()), (names, expected.as_bytes()), "{text}");
                assert!(names.is_empty() || trailers["x-sum"] == "7", "{trailers:?}");
            }
        };
        runtime.block_on(async { tokio::time::timeout(TIME_MAX, exchange).await.expect("done in time") });
        server.stop();
    }
}

#[test]
fn what_cannot_come_behind_a_body_is_refused() {
    let server = server("per-core");
    let refused = [
        ("content-length", 58),
        ("transfer-encoding", 58),
        ("trailer", 58),
        ("connection", 58),
        ("keep-alive", 58),
        ("host", 58),
        ("authorization", 58),
        ("Set-Cookie", 58),
        ("content-type", 58),
        ("a:b", 28),
    ];
    for (name, errno) in refused {
        for before in ["", "stream -1 0\n"] {
            let reply = server.client().post("/stream", format!("{before}untrailer {name} -{errno}"));
            assert_eq!(reply.status, 200, "{before}{name}");
        }
    }
    // No more of them than of headers.
    assert_eq!(server.client().post("/stream", "trailers 64 -1").text(), "64\n");
    mark(&server, "on");
    server.stop();
}
