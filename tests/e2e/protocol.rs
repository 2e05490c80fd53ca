//! HTTP: routes, methods, sizes, connections.

use crate::{assert_failure, entry, entry_with};
use serde_json::json;
use sledge_tests::http::{Raw, post_bytes};
use sledge_tests::server::Server;

fn server() -> Server {
    let both = entry_with("both", "echo.wat", &json!({ "route": "/api/both" }));
    let post = entry_with("post", "echo.wat", &json!({ "methods": ["POST"] }));
    Server::start(json!({ "body_bytes_max": 10_000, "functions": [entry("echo", "echo.wat"), both, post] }))
}

#[test]
fn an_unknown_route_is_a_404() {
    let server = server();
    let client = server.client();
    for path in ["/", "/ech", "/echo/", "/echo/x", "/Echo", "/both", "/%65cho", "//echo"] {
        assert_failure(&client.post(path, "x"), 404, "not_found", "no_such_route", None);
    }
    assert_eq!(client.post("/echo?query=1", "x").text(), "x");
    server.stop();
}

#[test]
fn a_wrong_method_is_a_405_that_says_which_are_right() {
    let server = server();
    let client = server.client();
    let reply = client.get("/post");
    assert_failure(&reply, 405, "method_not_allowed", "see_allow", Some("post"));
    assert_eq!(reply.header("allow"), Some("POST"));
    // Unless told otherwise, both.
    assert_eq!(client.get("/api/both").status, 200);
    assert_eq!(client.post("/api/both", "x").text(), "x");
    let mut raw = Raw::connect(server.address);
    raw.send("DELETE /api/both HTTP/1.1\r\nhost: test\r\n\r\n");
    let reply = raw.reply().expect("a reply");
    assert_eq!((reply.status, reply.header("allow")), (405, Some("GET, HEAD, POST")));
    server.stop();
}

/// A client that is not told would send its next request into a connection that ends, and could not know whether that was heard.
#[test]
fn a_client_is_told_when_its_connection_ends_because_its_body_was_not_read() {
    let server = server();
    for (path, status) in [("/nothing", 404), ("/post/", 404)] {
        let mut raw = Raw::connect(server.address);
        raw.send(format!("POST {path} HTTP/1.1\r\nhost: test\r\ncontent-length: 1\r\n\r\n"));
        let reply = raw.reply().expect("a reply");
        assert_eq!((reply.status, reply.header("connection")), (status, Some("close")));
        raw.send("x");
        assert!(raw.is_closed());

        // A body that has come with its head is dropped, and the connection stays.
        let mut raw = Raw::connect(server.address);
        for _ in 0..2 {
            raw.send(format!("POST {path} HTTP/1.1\r\nhost: test\r\ncontent-length: 1\r\n\r\nx"));
            let reply = raw.reply().expect("a reply");
            assert_eq!((reply.status, reply.header("connection")), (status, None));
        }
    }
    server.stop();
}

#[test]
fn too_large_a_body_is_a_413() {
    let server = server();
    let client = server.client();
    assert_eq!(client.post("/echo", [7; 10_000]).body, [7; 10_000]);
    assert_failure(&client.post("/echo", [7; 10_001]), 413, "body_too_large", "body_bytes_max", Some("echo"));

    // Announced and never sent: the answer does not wait for it.
    let mut raw = Raw::connect(server.address);
    raw.send("POST /echo HTTP/1.1\r\nhost: test\r\ncontent-length: 99999999999\r\n\r\n");
    assert_failure(&raw.reply().expect("a reply"), 413, "body_too_large", "body_bytes_max", Some("echo"));
    assert!(raw.is_closed(), "what follows on that connection cannot be told from the body");

    // Not announced: chunks until it is too much.
    let mut raw = Raw::connect(server.address);
    raw.send("POST /echo HTTP/1.1\r\nhost: test\r\ntransfer-encoding: chunked\r\n\r\n");
    for _ in 0..11 {
        raw.send(format!("3e8\r\n{}\r\n", "x".repeat(1000)));
    }
    assert_failure(&raw.reply().expect("a reply"), 413, "body_too_large", "body_bytes_max", Some("echo"));
    assert_eq!(client.post("/echo", "fine").text(), "fine");
    server.stop();
}

#[test]
fn chunked_bodies_are_put_together() {
    let server = server();
    let mut raw = Raw::connect(server.address);
    raw.send("POST /echo HTTP/1.1\r\nhost: test\r\ntransfer-encoding: chunked\r\n\r\n4\r\nab");
    raw.send("cd\r\n1\r\ne\r\n");
    raw.send("0\r\n\r\n");
    let reply = raw.reply().expect("a reply");
    assert_eq!((reply.status, reply.text().as_str()), (200, "abcde"));
    server.stop();
}

#[test]
fn connections_are_kept_alive_and_pipelined_requests_answered_in_order() {
    let server = server();
    let mut raw = Raw::connect(server.address);
    for i in 0..20 {
        let body = format!("request {i}");
        raw.send(post_bytes("/echo", body.as_bytes(), ""));
        assert_eq!(raw.reply().expect("a reply").text(), body);
    }
    let all: Vec<u8> = (0..10).flat_map(|i| post_bytes("/echo", format!("pipelined {i}").as_bytes(), "")).collect();
    raw.send(all);
    for i in 0..10 {
        assert_eq!(raw.reply().expect("a reply").text(), format!("pipelined {i}"));
    }
    // Errors keep it too.
    raw.send(post_bytes("/nowhere", b"some body", ""));
    assert_eq!(raw.reply().expect("a reply").status, 404);
    raw.send(post_bytes("/echo", b"last", "connection: close\r\n"));
    assert_eq!(raw.reply().expect("a reply").text(), "last");
    assert!(raw.is_closed());
    server.stop();
}

#[test]
fn malformed_requests_are_refused() {
    let server = server();
    for bytes in [
        "nonsense\r\n\r\n",
        "POST /echo HTTP/1.1\r\nhost: test\r\ncontent-length: 4\r\ncontent-length: 5\r\n\r\nabcde",
        "POST /echo HTTP/1.1\r\nhost: test\r\ncontent-length: -1\r\n\r\n",
        "POST /echo HTTP/1.1\r\nhost: test\r\ncontent-length: 1x\r\n\r\na",
        "POST /echo HTTP/1.1\r\nhost: test\r\nno colon\r\n\r\n",
        "POST /echo HTTP/1.1\r\nhost: test\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
    ] {
        let mut raw = Raw::connect(server.address);
        raw.send(bytes);
        let reply = raw.reply();
        assert!(reply.as_ref().is_none_or(|reply| reply.status == 400), "{bytes:?}: {reply:?}");
        assert!(raw.is_closed(), "{bytes:?}");
    }
    let mut raw = Raw::connect(server.address);
    raw.send(format!(
        "GET /echo HTTP/1.1\r\nhost: test\r\n{}\r\n",
        "x-long: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n".repeat(50_000)
    ));
    assert!(raw.reply().is_none_or(|reply| reply.status == 431));
    assert_eq!(server.client().post("/echo", "fine").text(), "fine");
    server.stop();
}

/// A body that ends early: the function is not run with half of it.
#[test]
fn a_body_that_breaks_off_is_no_request() {
    let server = server();
    let mut raw = Raw::connect(server.address);
    raw.send("POST /echo HTTP/1.1\r\nhost: test\r\ncontent-length: 10\r\n\r\nabc");
    raw.shut_down_writing();
    let reply = raw.reply();
    assert!(reply.as_ref().is_none_or(|reply| reply.status == 400), "{reply:?}");
    assert_eq!(server.client().post("/echo", "fine").text(), "fine");
    server.stop();
}

#[test]
fn timing_is_reported_to_clients_that_ask() {
    let server = server();
    let client = server.client();
    let asked = client.try_post("/echo", b"x", &[("server-timing-request", "1")]).expect("a reply");
    assert!(asked.header("server-timing").is_some_and(|timing| timing.contains("dur=")), "{asked:?}");
    assert_eq!(client.post("/echo", "x").header("server-timing"), None);
    server.stop();
}
