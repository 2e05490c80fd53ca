//! Requests that two programs could understand differently, so that one hides in another: each has one answer here, and no second one.

use crate::http::{connect, run, speak_http2};
use crate::{assert_failure, entry_with};
use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;
use serde_json::json;
use sledge_tests::http::{Raw, post_bytes};
use sledge_tests::server::Server;
use std::time::Duration;

const BODY_BYTES_MAX: u64 = 1_000;

fn server() -> Server {
    let echo = entry_with("echo", "echo.wat", &json!({ "methods": ["GET", "POST"] }));
    Server::start(json!({ "workers": 1, "body_bytes_max": BODY_BYTES_MAX, "functions": [echo] }))
}

/// What is answered to a request of two bytes, or none, and whether the connection is kept for the next one.
fn answer(server: &Server, head: &str) -> (Option<u16>, bool) {
    let mut raw = Raw::connect(server.address);
    // What follows is taken for the body, for a request, or for neither. Twice at most.
    raw.send(format!("{head}hi"));
    let next = "GET /next HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
    raw.send(next);
    let text = String::from_utf8_lossy(&raw.everything()).into_owned();
    let statuses: Vec<u16> =
        text.match_indices("HTTP/1.").map(|(at, _)| text[at + 9..at + 12].parse().expect("a status")).collect();
    assert!(statuses.len() <= 2 && statuses.get(1).is_none_or(|next| *next == 404), "{head:?}: {text}");
    (statuses.first().copied(), statuses.len() == 2)
}

#[test]
fn what_is_plain_is_answered() {
    let server = server();
    let length = "content-length: 2\r\n\r\n";
    for head in [
        format!("POST /echo HTTP/1.1\r\nhost: a\r\n{length}"),
        format!("\r\nPOST /echo HTTP/1.1\r\nHOST:a\r\n{length}"),
        format!("POST /echo HTTP/1.1\nhost: a\n{length}"),
        format!("POST /echo HTTP/1.2\r\nhost: a\r\n{length}"),
        format!("POST /echo HTTP/1.9\r\nhost: a\r\n{length}"),
        format!("POST /echo?HTTP/1.2 HTTP/1.3\r\nhost: a\r\n{length}"),
        format!("POST http://a/echo HTTP/1.1\r\nhost: b\r\n{length}"),
        format!("POST http://a:80/echo HTTP/1.1\r\nhost: a\r\n{length}"),
        format!("POST /echo HTTP/1.1\r\nhost: a.b-c:65535\r\n{length}"),
        format!("POST /echo HTTP/1.1\r\nhost: [::1]:80\r\n{length}"),
        format!("POST /echo HTTP/1.1\r\nhost: a\r\nx: content-length: 3\r\n{length}"),
        "POST /echo HTTP/1.1\r\nhost: a\r\ntransfer-encoding: Chunked\r\n\r\n2;x=\"y\"\r\nhi\r\n0\r\nt: u\r\n\r\nGET /next HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n"
            .to_owned(),
    ] {
        assert_eq!(answer(&server, &head), (Some(200), true), "{head:?}");
    }
    // HTTP/1.0 knew no Host, and keeps no connection.
    assert_eq!(answer(&server, &format!("POST /echo HTTP/1.0\r\n{length}")), (Some(200), false));
    server.stop();
}

/// Each is refused, nothing of it is run, and nothing that comes after it is taken for a request.
#[test]
fn what_is_not_plain_is_refused_and_ends_the_connection() {
    let server = server();
    let of_host = |host: &str| format!("POST /echo HTTP/1.1\r\n{host}content-length: 2\r\n\r\n");
    let of_head = |head: &str| format!("POST /echo HTTP/1.1\r\nhost: a\r\n{head}\r\n\r\n");
    let of_line = |line: &str| format!("{line}\r\nhost: a\r\ncontent-length: 2\r\n\r\n");
    let of_coding = |coding: &str| of_head(&format!("transfer-encoding: {coding}")) + "2\r\nhi\r\n0\r\n\r\n";
    let of_chunks = |chunks: &str| of_head("transfer-encoding: chunked") + chunks;
    let hosts = [
        "",
        "host: a\r\nhost: a\r\n",
        "host: a\r\nHost: b\r\n",
        "host:\r\n",
        "host: :80\r\n",
        "host: a b\r\n",
        "host: a, b\r\n",
        "host: u@a\r\n",
        "host: u:p@a\r\n",
        "host: a:b\r\n",
        "host: a:65536\r\n",
        "host: a:80:80\r\n",
        "host: a/b\r\n",
        "host: http://a\r\n",
        "host: [::1\r\n",
        "host: ::1\r\n",
        "host: a%zz\r\n",
    ];
    let heads = [
        "content-length: 2\r\ncontent-length: 3",
        "content-length: 2\r\nContent-Length: 2",
        "content-length: 2\r\nx: y\r\ntransfer-encoding: chunked",
        "content-length: 0\r\ntransfer-encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 2",
        "content-length: 2, 2",
        "content-length: +2",
        "content-length: -2",
        "content-length: 0x2",
        "content-length: 2x",
        "content-length:",
        "content-length: 99999999999999999999x",
        "content-length: 99999999999999999999, 2",
        "content-length: 2 2",
        "content-length : 2",
        "x : y",
        " x: y",
        "x: y\r\n z",
        "x: y\rz: u",
        "x: y\0",
        "x y",
        "(x): y",
    ];
    let lines = [
        "POST echo HTTP/1.1",
        "POST * HTTP/1.1",
        "POST a:80 HTTP/1.1",
        "CONNECT a:80 HTTP/1.1",
        "CONNECT /echo HTTP/1.1x",
        "POST http://u@a/echo HTTP/1.1",
        "POST http://a:b/echo HTTP/1.1",
        "POST  /echo HTTP/1.1",
        "POST\t/echo HTTP/1.1",
        "POST /echo HTTP/1.1 x",
        "POST /e cho HTTP/1.1",
        "POST /echo HTTP/2.0",
        "POST /echo HTTP/1.12",
        "POST /echo HTTP/1.",
        "POST /echo http/1.1",
        "POST /echo",
        "POST",
    ];
    let codings = [
        "gzip",
        "identity",
        "gzip, chunked",
        "chunked, chunked",
        "chunked, identity",
        "chunked, gzip",
        "xchunked",
        "chunked;q=1",
        "\u{b}chunked",
        "chunked\r\ntransfer-encoding: chunked",
        "gzip\r\ntransfer-encoding: chunked",
        "chunked\r\ntransfer-encoding: identity",
        "",
    ];
    let chunks = [
        "0x2\r\nhi\r\n",
        "-2\r\nhi\r\n",
        "+2\r\nhi\r\n",
        "2 2\r\nhi\r\n",
        "\r\nhi\r\n",
        "2\nhi\r\n",
        "2\r\nhix\r\n",
        "2\r\nhi\n0\r\n",
        " 2\r\nhi\r\n",
    ];
    let all = hosts.iter().map(|host| of_host(host));
    let all = all.chain(heads.iter().map(|head| of_head(head))).chain(lines.iter().map(|line| of_line(line)));
    let all = all.chain(codings.iter().map(|coding| of_coding(coding))).chain(chunks.iter().map(|chunks| of_chunks(chunks)));
    for head in all {
        let (status, is_kept) = answer(&server, &head);
        // A line that names no HTTP is not answered.
        let is_foreign =
            !head.lines().next().and_then(|line| line.split(' ').next_back()).is_some_and(|word| word.starts_with("HTTP/"));
        let is_right = if is_foreign { status.is_none_or(|status| status == 400) } else { status == Some(400) };
        assert!(is_right && !is_kept, "{head:?}: {status:?}");
    }
    assert_eq!(answer(&server, "POST /echo HTTP/1.0\r\nhost: a b\r\ncontent-length: 2\r\n\r\n").0, Some(400));
    // HTTP/1.0 knew no codings.
    for length in ["", "content-length: 2\r\n"] {
        let head = format!("POST /echo HTTP/1.0\r\n{length}transfer-encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n");
        assert_eq!(answer(&server, &head), (Some(400), false), "{head:?}");
    }
    assert_eq!(server.client().post("/echo", "fine").text(), "fine");
    server.stop();
}

#[test]
fn a_refusal_says_what_is_wrong() {
    let server = server();
    for (head, reason) in [
        ("POST /echo HTTP/1.1\r\n\r\n", "host_missing"),
        ("POST /echo HTTP/1.1\r\nhost: a\r\nhost: a\r\n\r\n", "host_repeated"),
        ("POST /echo HTTP/1.1\r\nhost: a b\r\n\r\n", "host_malformed"),
        ("POST * HTTP/1.1\r\nhost: a\r\n\r\n", "target_malformed"),
        ("POST /echo HTTP/1.1\r\nhost: a\r\ntransfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "transfer_encoding_unknown"),
        ("POST /echo HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\ncontent-length: 0\r\n\r\n", "length_ambiguous"),
        (
            "POST /echo HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
            "length_ambiguous",
        ),
    ] {
        let mut raw = Raw::connect(server.address);
        raw.send(head);
        assert_failure(&raw.reply().expect("a reply"), 400, "bad_request", reason, None);
        assert!(raw.is_closed(), "{head:?}");
    }
    server.stop();
}

/// A request of a later version is one of 1.1, also in that its connection is kept.
#[test]
fn later_versions_of_http_1_are_answered_as_1_1() {
    let server = server();
    let mut raw = Raw::connect(server.address);
    for version in 2..=9 {
        let request = post_bytes("/echo", b"GET / HTTP/1.2", "x: HTTP/1.2\r\n");
        let request = String::from_utf8(request).expect("text").replacen("HTTP/1.1", &format!("HTTP/1.{version}"), 1);
        // The line comes in two pieces, cut at each place; what is in the body stays.
        let (first, second) = request.split_at(2 + 3 * usize::from(version as u8));
        raw.send(first);
        raw.send(second);
        assert_eq!(raw.reply().expect("a reply").text(), "GET / HTTP/1.2");
    }
    server.stop();
}

/// However large the number is, and in whatever pieces it comes.
#[test]
fn a_length_beyond_any_number_is_too_large_a_body() {
    let server = server();
    for length in ["1001", "18446744073709551613", "18446744073709551615", "18446744073709551616", &"9".repeat(1_000)] {
        let head = format!("POST /echo HTTP/1.1\r\nhost: a\r\ncontent-length: {length}\r\n\r\n");
        for cut in [0, 40, 50, 60, 66] {
            let mut raw = Raw::connect(server.address);
            let (first, second) = head.split_at(cut.min(head.len() - 1));
            raw.send(first);
            // It is read by then, and nothing is answered yet.
            assert!(cut == 0 || !raw.answers_within(Duration::from_millis(50)));
            raw.send(second);
            assert_failure(&raw.reply().expect("a reply"), 413, "body_too_large", "body_bytes_max", Some("echo"));
            assert!(raw.is_closed(), "{head:?}");
        }
    }
    server.stop();
}

#[test]
fn a_chunk_that_is_too_long_is_refused_before_it_comes() {
    let server = server();
    let head = "POST /echo HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n";
    let some = Duration::from_secs(60);
    for (first, second) in [
        ("3e9\r\n", ""),
        ("ffffffffffffffff\r\n", ""),
        ("fffffffffffffffffffff;x\r\n", ""),
        ("", "3e9\r\n"),
        ("2\r\nhi\r\n", "3e7\r\n"),
    ] {
        let mut raw = Raw::connect(server.address);
        raw.send(format!("{head}{first}"));
        if !second.is_empty() {
            // The request has begun by then.
            assert!(!raw.answers_within(Duration::from_millis(200)));
            raw.send(second);
        }
        assert!(raw.answers_within(some), "{first:?} {second:?}");
        assert_failure(&raw.reply().expect("a reply"), 413, "body_too_large", "body_bytes_max", Some("echo"));
        assert!(raw.is_closed());
    }
    // As long as it may be; and the one before it has nothing of it.
    let whole = format!("{head}3e8\r\n{}\r\n0\r\n\r\n", "x".repeat(1_000));
    let mut raw = Raw::connect(server.address);
    raw.send(format!("{whole}{head}3e9\r\n"));
    assert_eq!(raw.reply().expect("a reply").body.len(), 1_000);
    assert_eq!(raw.reply().expect("a reply").status, 413);
    server.stop();
}

#[test]
fn http2_says_its_host_once() {
    let server = server();
    run(async {
        let sender = speak_http2(connect(&server).await).await;
        for (hosts, status) in
            [(&[][..], 200), (&["test"], 200), (&["TEST"], 200), (&["other"], 400), (&["test", "test"], 400), (&["t t"], 400)]
        {
            let request = hosts.iter().fold(Request::post("http://test/echo"), |request, host| request.header("host", *host));
            let request = request.body(Full::new(Bytes::from("hi"))).expect("a request");
            let answered = sender.clone().send_request(request).await.expect("a reply").status();
            assert_eq!(answered, status, "{hosts:?}");
        }
    });
    // What no client of hyper sends: heads of HPACK, the last three without :authority, and what they are answered with (:status of the static table).
    let (ok, bad) = (0x88, 0x8c);
    for (fields, status) in [
        (&b"\x83\x86\x44\x05/echo\x41\x01t"[..], ok),
        (b"\x83\x86\x44\x05/echo\x41\x03u@t", bad),
        (b"\x83\x86\x44\x05/echo\x66\x01t", ok),
        (b"\x83\x86\x44\x05/echo\x66\x01t\x66\x01t", bad),
        (b"\x83\x86\x44\x05/echo", bad),
    ] {
        let mut raw = Raw::connect(server.address);
        raw.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0");
        // HEADERS with END_STREAM and END_HEADERS.
        raw.send([&[0, 0, fields.len() as u8, 1, 5, 0, 0, 0, 1][..], fields].concat());
        let answered = loop {
            let head = raw.bytes(9);
            let payload = raw.bytes(usize::from(head[1]) << 8 | usize::from(head[2]));
            if head[3] == 1 {
                break payload.into_iter().find(|byte| byte & 0xe0 != 0x20);
            }
            assert_ne!(head[3], 7, "{fields:?}: the connection ends");
        };
        assert_eq!(answered, Some(status), "{fields:?}");
    }
    server.stop();
}
