//! Replies that are compressed on their way out.

use crate::http::{ask as ask_http2, connect, run, speak_http2};
use crate::{entry, entry_with, eventually};
use flate2::write::GzDecoder;
use hyper::Method;
use serde_json::{Value, json};
use sledge_tests::http::{Raw, Reply};
use sledge_tests::server::Server;
use std::io::Write;

fn server(compression: &Value) -> Server {
    let methods = json!(["POST", "HEAD", "GET"]);
    let with = |name: &str, file: &str, ty: &str| {
        entry_with(name, file, &json!({ "methods": methods, "content_type": ty, "compression": compression }))
    };
    let functions = vec![
        with("text", "echo.wat", "text/plain"),
        with("image", "echo.wat", "image/png"),
        with("head", "head.c", "application/json; charset=utf-8"),
        with("stream", "stream.c", "text/event-stream"),
        entry_with("plain", "echo.wat", &json!({ "content_type": "text/plain" })),
        entry("caller", "caller.c"),
    ];
    Server::start(json!({ "workers": 1, "kv": "memory", "functions": functions }))
}

fn send(server: &Server, method: &str, path: &str, accepted: &str, body: &str) -> Raw {
    let mut raw = Raw::connect(server.address);
    let accepted = if accepted.is_empty() { String::new() } else { format!("accept-encoding: {accepted}\r\n") };
    raw.send(format!("{method} {path} HTTP/1.1\r\nhost: here\r\ncontent-length: {}\r\n{accepted}\r\n{body}", body.len()));
    raw
}

fn post(server: &Server, path: &str, accepted: &str, body: &str) -> Reply {
    let mut raw = send(server, "POST", path, accepted, body);
    let mut reply = raw.head().expect("a reply");
    match reply.header("content-length") {
        Some(length) => reply.body = raw.bytes(length.parse().expect("a length")),
        None if matches!(reply.status, 204 | 304) => {}
        None => {
            let chunks = std::iter::repeat_with(|| chunk(&mut raw)).take_while(|chunk| !chunk.is_empty());
            reply.body = chunks.collect::<Vec<_>>().concat();
        }
    }
    reply
}

/// A chunk of HTTP/1.1; empty at the end.
fn chunk(raw: &mut Raw) -> Vec<u8> {
    let mut line = Vec::new();
    while !line.ends_with(b"\r\n") {
        line.extend(raw.bytes(1));
    }
    let length = std::str::from_utf8(&line).expect("text").trim_end();
    let chunk = raw.bytes(usize::from_str_radix(length, 16).unwrap_or_else(|_| panic!("no length: {length:?}")));
    assert_eq!(raw.bytes(2), b"\r\n");
    chunk
}

fn unpacked(reply: &Reply) -> Vec<u8> {
    match reply.header("content-encoding") {
        None => reply.body.clone(),
        Some("gzip") => {
            let mut decoder = GzDecoder::new(Vec::new());
            decoder.write_all(&reply.body).expect("gzip");
            decoder.finish().expect("the end of it")
        }
        Some("br") => {
            let mut decoder = brotli::DecompressorWriter::new(Vec::new(), 4_096);
            decoder.write_all(&reply.body).expect("brotli");
            decoder.into_inner().expect("the end of it")
        }
        Some("zstd") => zstd::decode_all(&*reply.body).expect("Zstandard"),
        Some(other) => panic!("nothing can read {other}"),
    }
}

/// Lines that differ and are alike.
fn text(bytes: usize) -> String {
    let lines = (0_u64..).map(|number| format!("line {number} of {}\n", number * 7919 % 1009));
    let mut text: String = lines.take(bytes / 12 + 1).collect();
    text.truncate(bytes);
    text
}

#[test]
fn replies_are_compressed_as_the_client_likes() {
    let server = server(&json!({}));
    // What is compressed at once, in several steps, and in very many.
    for bytes in [1_024, 16 << 10, (16 << 10) + 1, 300_000, 5_000_000] {
        let body = text(bytes);
        for (accepted, encoding) in [
            ("gzip", Some("gzip")),
            ("zstd", Some("zstd")),
            ("gzip, deflate, br, zstd", Some("zstd")),
            ("gzip, zstd;q=0.5", Some("gzip")),
            ("gzip, deflate, br", Some("br")),
            ("*;q=0.1", Some("zstd")),
            ("gzip;q=0, identity;q=0, zstd", Some("zstd")),
            ("gzip;q=0.5, identity", None),
            ("compress", None),
            ("", None),
        ] {
            let reply = post(&server, "/text", accepted, &body);
            assert_eq!((reply.status, reply.header("content-encoding")), (200, encoding), "{bytes} {accepted}");
            assert_eq!(reply.header("vary"), Some("accept-encoding"), "{bytes} {accepted}");
            assert!(unpacked(&reply) == body.as_bytes(), "{bytes} {accepted}");
            assert_eq!(reply.body.len() < bytes / 2, encoding.is_some(), "{bytes} {accepted}: {}", reply.body.len());
            let has_length = encoding.is_none() || bytes <= 16 << 10;
            assert_eq!(reply.header("content-length").is_some(), has_length, "{bytes} {accepted}");
        }
    }
    server.stop();
}

#[test]
fn what_would_gain_nothing_goes_out_as_it_is() {
    let server = server(&json!({ "bytes_min": 2_000 }));
    let (short, long) = (text(1_999), text(4_000));
    for (path, accepted, body, vary) in [
        ("/text", "gzip", &short, Some("accept-encoding")),
        ("/text", "gzip", &String::new(), Some("accept-encoding")),
        ("/image", "gzip", &long, None),
        ("/plain", "gzip", &long, None),
    ] {
        let reply = post(&server, path, accepted, body);
        assert_eq!((reply.header("content-encoding"), reply.header("vary")), (None, vary), "{path} {reply:?}");
        assert!(reply.body == body.as_bytes(), "{path}");
    }
    // Unless the client takes nothing else.
    for (path, body) in [("/text", &short), ("/image", &long)] {
        let reply = post(&server, path, "gzip, *;q=0", body);
        assert_eq!(reply.header("content-encoding"), Some("gzip"), "{path}");
        assert!(unpacked(&reply) == body.as_bytes(), "{path}");
    }
    server.stop();
}

#[test]
fn what_the_function_says_of_its_bytes_counts() {
    let server = server(&json!({ "bytes_min": 0 }));
    // It replies with a line for each of its own.
    let ask = |lines: &str| post(&server, "/head", "gzip", lines);
    for said in [
        "set content-encoding br",
        "set cache-control max-age=5, No-Transform",
        "set content-range bytes 0-1/2",
        "set content-digest sha-256=:AAAA:",
        "status 206",
        "set content-type image/png",
    ] {
        let reply = ask(said);
        assert_eq!((reply.header("content-encoding").filter(|given| *given == "gzip"), &*reply.text()), (None, "0\n"), "{said}");
    }
    for (said, etag) in [("\"a\"", "W/\"a\""), ("W/\"a\"", "W/\"a\"")] {
        let reply = ask(&format!("set etag {said}\nset accept-ranges bytes\nset vary accept"));
        assert_eq!((reply.header("content-encoding"), reply.header("etag")), (Some("gzip"), Some(etag)));
        assert_eq!(reply.header("accept-ranges"), None);
        let vary: Vec<_> = reply.headers.iter().filter(|(name, _)| name == "vary").map(|(_, value)| &**value).collect();
        assert_eq!(vary, ["accept", "accept-encoding"]);
        assert_eq!(unpacked(&reply), b"0\n0\n0\n");
    }
    // Not to a client that gets it as it is.
    assert_eq!(post(&server, "/head", "", "set etag \"a\"").header("etag"), Some("\"a\""));
    let unchanged = ask("status 304\nset etag \"a\"");
    assert_eq!((unchanged.status, unchanged.header("vary")), (304, Some("accept-encoding")));
    assert_eq!(unchanged.header("content-encoding"), None);
    server.stop();
}

/// The head is that of GET; a length is said where it is known.
#[test]
fn the_answer_to_head_says_what_get_would_get() {
    let server = server(&json!({ "bytes_min": 0 }));
    let mut raw = Raw::connect(server.address);
    for (bytes, encoding) in [(500, Some("gzip")), (100_000, Some("gzip")), (0, None)] {
        let body = text(bytes);
        // One connection: a body, or a wrong length, would be taken for the next reply.
        raw.send(format!("HEAD /text HTTP/1.1\r\nhost: a\r\naccept-encoding: gzip\r\ncontent-length: {bytes}\r\n\r\n{body}"));
        let reply = raw.head().expect("a reply");
        assert_eq!(
            (reply.status, reply.header("content-encoding"), reply.header("vary")),
            (200, encoding, Some("accept-encoding"))
        );
        let length = post(&server, "/text", "gzip", &body).header("content-length").map(str::to_owned);
        assert_eq!(
            reply.header("content-length").map(str::to_owned).filter(|length| length != "0"),
            length.filter(|length| length != "0"),
            "{bytes}"
        );
    }
    raw.send("HEAD /stream HTTP/1.1\r\nhost: a\r\naccept-encoding: gzip\r\ncontent-length: 20\r\n\r\nstream 9 0\nsay 12345\n");
    let reply = raw.head().expect("a reply");
    assert_eq!((reply.header("content-encoding"), reply.header("content-length")), (Some("gzip"), None), "{reply:?}");
    raw.send("POST /plain HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\n\r\nx");
    assert_eq!(raw.reply().expect("a reply").text(), "x");
    server.stop();
}

/// A function writes, and waits for a mark before it goes on: what it has written must be there before.
#[test]
fn a_stream_is_flushed_as_it_comes() {
    let server = server(&json!({}));
    for encoding in ["gzip", "zstd"] {
        let mark = format!("{encoding}-read");
        let mut raw =
            send(&server, "POST", "/stream", encoding, &format!("whole one and\nawait {mark}\nsay two\nfill 200000\nsay three"));
        let head = raw.head().expect("a head");
        assert_eq!((head.header("content-encoding"), head.header("transfer-encoding")), (Some(encoding), Some("chunked")));
        let mut decoder: Box<dyn Unpack> = match encoding {
            "gzip" => Box::new(GzDecoder::new(Vec::new())),
            _ => Box::new(zstd::stream::write::Decoder::new(Vec::new()).expect("a decoder")),
        };
        let mut seen = Vec::new();
        while seen != b"one\nand\n" {
            seen = decoder.unpack(&chunk(&mut raw));
        }
        assert_eq!(server.client().post("/stream", format!("mark {mark}")).status, 200);
        loop {
            let chunk = chunk(&mut raw);
            if chunk.is_empty() {
                break;
            }
            seen = decoder.unpack(&chunk);
        }
        assert!(seen.starts_with(b"one\nand\ntwo\n") && seen.ends_with(b"three\n"), "{encoding}");
        assert_eq!(seen.len(), 8 + 4 + 200_000 + 6);
    }
    server.stop();
}

/// What can be read of a body before its end.
trait Unpack {
    /// All so far, with that.
    fn unpack(&mut self, bytes: &[u8]) -> Vec<u8>;
}

impl Unpack for GzDecoder<Vec<u8>> {
    fn unpack(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.write_all(bytes).and_then(|()| self.flush()).expect("gzip");
        self.get_ref().clone()
    }
}

impl Unpack for zstd::stream::write::Decoder<'_, Vec<u8>> {
    fn unpack(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.write_all(bytes).and_then(|()| self.flush()).expect("Zstandard");
        self.get_ref().clone()
    }
}

/// What was written before the failure goes out, and then the connection breaks off.
#[test]
fn a_stream_that_breaks_off_does_so_compressed() {
    let server = server(&json!({}));
    let mut raw = send(&server, "POST", "/stream", "gzip", "torn 50000");
    assert_eq!(raw.head().expect("a head").header("content-encoding"), Some("gzip"));
    let rest = raw.everything();
    assert!(!rest.ends_with(b"0\r\n\r\n"), "it does not look whole");
    let mut decoder = GzDecoder::new(Vec::new());
    let mut rest = &*rest;
    while let Some(at) = rest.windows(2).position(|pair| pair == b"\r\n") {
        let length = usize::from_str_radix(std::str::from_utf8(&rest[..at]).expect("text"), 16).expect("a length");
        decoder.write_all(&rest[at + 2..at + 2 + length]).expect("gzip");
        rest = &rest[at + 4 + length..];
    }
    decoder.flush().expect("gzip");
    assert_eq!(decoder.get_ref().len(), 50_000);
    server.stop();
}

#[test]
fn http2_gets_the_same_and_calls_between_functions_do_not() {
    let server = server(&json!({}));
    run(async {
        let client = speak_http2(connect(&server).await).await;
        for bytes in [2_000, 200_000] {
            let body = text(bytes);
            let reply = ask_http2(&client, Method::POST, "/text", body.clone()).await;
            assert!(reply.headers.get("content-encoding").is_none() && reply.body == body.as_bytes());
        }
    });
    let called = server.client().post("/caller", format!("invoke text {}", "x".repeat(3_000)));
    assert!(called.header("content-encoding").is_none() && called.text().contains("xxx"), "{}", called.text());
    server.stop();
}

#[test]
fn the_access_log_and_spans_end_with_the_reply() {
    let function = entry_with("text", "echo.wat", &json!({ "content_type": "text/plain", "compression": {} }));
    let server = Server::start(json!({ "workers": 1, "access_log": true, "functions": [function] }));
    let body = text(1_000_000);
    assert!(unpacked(&post(&server, "/text", "zstd", &body)) == body.as_bytes());
    assert_eq!(post(&server, "/text", "zstd", "short").text(), "short");
    let counted = "sledge_requests_total{function=\"text\",tenant=\"default\",outcome=\"ok\"} 2\n";
    eventually("both are counted", || server.admin().get("/metrics").text().contains(counted));
    assert_eq!(server.stop_for_log().matches("sledge::access").count(), 2);
}
