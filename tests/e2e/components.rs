//! Components: what `wasi:http` promises them, from a real client to a real server and to others.

use crate::{LISTENERS, assert_failure};
use serde_json::{Value, json};
use sledge_tests::http::{Raw, Reply, post_bytes};
use sledge_tests::process;
use sledge_tests::programs;
use sledge_tests::server::Server;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Command;
use std::sync::LazyLock;
use std::thread;
use std::time::Duration;

/// How long cargo may take.
const BUILD_TIME_MAX: Duration = Duration::from_secs(600);

/// The artifact of the component in `functions/components/http`.
fn artifact() -> PathBuf {
    static MADE: LazyLock<PathBuf> = LazyLock::new(|| built("http"));
    MADE.clone()
}

/// Builds the component of that name in `functions/components`; its artifact.
pub(crate) fn built(name: &str) -> PathBuf {
    let target = programs::awsm().with_file_name("tests-components");
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--release", "--locked", "--target", "wasm32-wasip2"]);
    let folder = programs::tests_folder().join("e2e/functions/components").join(name);
    cargo.current_dir(folder).env("CARGO_TARGET_DIR", &target);
    let built = process::run(&mut cargo, b"", BUILD_TIME_MAX);
    assert!(built.status.success(), "{cargo:?}: {}", built.stderr);
    let component = target.join(format!("wasm32-wasip2/release/component_{name}.wasm")).display().to_string();
    let artifact = programs::folder().join(format!("component-{name}.so"));
    // One by default options. Of the others it matters what they do: optimising them takes longer than all else.
    let level = if name == "http" { "3" } else { "0" };
    let compiled = programs::run_awsm(&["compile", "-O", level, &component, "-o", &artifact.display().to_string()]);
    assert_eq!(compiled.code(), 0, "{}{}", compiled.text(), compiled.stderr);
    artifact
}

/// The component under the names `web` and `stream`, which gets bodies while they come.
fn server_with(more: &Value) -> Server {
    let methods = ["GET", "POST", "PUT", "HEAD"];
    let mut web = json!({ "name": "web", "path": artifact(), "methods": methods, "deadline_ms": 20_000 });
    if let Some(hosts) = more.get("http_hosts") {
        web["http_hosts"] = hosts.clone();
    }
    let mut stream = web.clone();
    (stream["name"], stream["body"]) = (json!("stream"), json!("stream"));
    let mut config = json!({ "workers": 1, "functions": [web, stream] });
    if let Some(listeners) = more.get("listeners") {
        config["listeners"] = listeners.clone();
    }
    Server::start(config)
}

fn server() -> Server {
    server_with(&json!({}))
}

fn ask(server: &Server, query: &str, body: &str) -> Reply {
    server.client().post(&format!("/web?{query}"), body)
}

/// A line that ends as HTTP's do.
fn line(raw: &mut Raw) -> String {
    let mut line = Vec::new();
    while !line.ends_with(b"\r\n") {
        line.extend(raw.bytes(1));
    }
    String::from_utf8(line).expect("text").trim_end().to_owned()
}

/// A chunk; empty at the end.
fn chunk(raw: &mut Raw) -> Vec<u8> {
    let length = usize::from_str_radix(&line(raw), 16).expect("a length");
    let chunk = raw.bytes(length);
    if length > 0 {
        assert_eq!(line(raw), "");
    }
    chunk
}

#[test]
fn a_component_answers_with_what_it_has_put_together() {
    let server = server();
    let reply = ask(&server, "hello", "");
    assert_eq!((reply.status, reply.text().as_str(), reply.header("x-kind")), (200, "hello\n", Some("greeting")));
    assert_eq!(reply.header("content-length"), Some("6"), "{reply:?}");
    assert_eq!(ask(&server, "status:418", "").status, 418);
    assert_eq!(ask(&server, "status:101", "").status, 500);
    let reply = ask(&server, "head", "x");
    let expected = format!("POST /web?head http {}\n", server.address);
    assert!(reply.text().starts_with(&expected), "{}", reply.text());
    assert!(reply.text().contains("content-length: 1\n") && !reply.text().contains("host:"), "{}", reply.text());
    let reply = server.client().get("/web?fields");
    assert_eq!(
        reply.text(),
        "[\"1\", \"2\"] true 3\nfalse true false\n[HeaderError::Forbidden, HeaderError::Forbidden, HeaderError::InvalidSyntax, \
         HeaderError::InvalidSyntax, HeaderError::Immutable, HeaderError::Forbidden]\n"
    );
    assert_eq!(ask(&server, "print", "").text(), "printed");
    server.wait_for_log("to standard output");
    server.wait_for_log("to standard error");
    server.stop();
}

#[test]
fn bodies_go_through_a_component_while_they_come() {
    for listeners in LISTENERS {
        let server = server_with(&json!({ "listeners": listeners }));
        for verb in ["echo", "splice"] {
            let mut raw = Raw::connect(server.address);
            let head = "host: a\r\ntransfer-encoding: chunked\r\n\r\n";
            raw.send(format!("POST /stream?{verb} HTTP/1.1\r\n{head}3\r\none\r\n"));
            let head = raw.head().expect("a head");
            assert_eq!((head.status, head.header("transfer-encoding")), (200, Some("chunked")), "{head:?}");
            assert_eq!(chunk(&mut raw), b"one", "{verb} {listeners}");
            raw.send("3\r\ntwo\r\n");
            assert_eq!(chunk(&mut raw), b"two", "{verb} {listeners}");
            raw.send("0\r\n\r\n");
            assert_eq!(chunk(&mut raw), b"", "{verb} {listeners}");
            let large = "large ".repeat(300_000);
            assert_eq!(ask(&server, verb, &large).text(), large, "{verb} {listeners}");
        }
        server.stop();
    }
}

#[test]
fn a_component_waits_for_its_client() {
    let server = server();
    let mut raw = Raw::connect(server.address);
    raw.send(post_bytes("/web?fill:8000000", b"", ""));
    assert_eq!(raw.head().expect("a head").status, 200);
    // Others are served while it waits.
    assert_eq!(ask(&server, "hello", "").status, 200);
    let mut all = Vec::new();
    loop {
        let piece = chunk(&mut raw);
        if piece.is_empty() {
            break;
        }
        all.extend(piece);
    }
    assert!(all.len() == 8_000_000 && all.iter().enumerate().all(|(at, byte)| *byte == (at % 251) as u8));
    server.stop();
}

#[test]
fn trailers_go_both_ways() {
    let server = server();
    let mut raw = Raw::connect(server.address);
    let head = "host: a\r\nte: trailers\r\ntransfer-encoding: chunked\r\n\r\n";
    raw.send(format!("POST /web?trailers HTTP/1.1\r\n{head}4\r\nbody\r\n0\r\nx-sum: 7\r\n\r\n"));
    let head = raw.head().expect("a head");
    assert_eq!((head.status, head.header("trailer")), (200, Some("x-sum, x-count")), "{head:?}");
    assert_eq!((chunk(&mut raw), chunk(&mut raw)), (b"4 bytes\n".to_vec(), Vec::new()));
    let mut trailers = [line(&mut raw), line(&mut raw)];
    trailers.sort();
    assert_eq!((trailers, line(&mut raw).as_str()), (["x-count: 4".to_owned(), "x-sum: 7".to_owned()], ""));
    server.stop();
}

#[test]
fn a_length_that_a_component_says_is_kept() {
    let server = server();
    let reply = ask(&server, "exact", "");
    assert_eq!((reply.text().as_str(), reply.header("content-length")), ("exact", Some("5")), "{reply:?}");
    for (query, said) in [
        ("short", "finishing: ErrorCode::HttpResponseBodySize(Some(5))"),
        ("long", "writing: Some(ErrorCode::HttpResponseBodySize(Some(4)))"),
        ("dropped", "reply_incomplete: unfinished"),
    ] {
        let mut raw = Raw::connect(server.address);
        raw.send(post_bytes(&format!("/web?{query}"), b"", "connection: close\r\n"));
        let _ = raw.everything();
        server.wait_for_log(said);
    }
    let head = Raw::connect(server.address);
    let mut head = head;
    head.send("HEAD /web?exact HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
    let text = String::from_utf8(head.everything()).expect("text");
    assert!(text.contains("content-length: 5\r\n") && text.ends_with("\r\n\r\n"), "{text}");
    server.stop();
}

#[test]
fn a_component_without_a_response_is_answered_for() {
    let server = server();
    assert_failure(&ask(&server, "none", ""), 500, "reply_incomplete", "no_response", Some("web"));
    assert_failure(&ask(&server, "panic", ""), 500, "trap", "unreachable", Some("web"));
    assert_eq!(ask(&server, "error", "").status, 500);
    server.wait_for_log("wasi:http: the component answered with internal-error: as asked");
    assert_eq!(ask(&server, "gateway", "").status, 502);
    server.stop();
}

#[test]
fn a_component_asks_listed_hosts_and_no_others() {
    let upstream = server();
    let address = upstream.address;
    // It breaks off in the middle of what it says.
    let broken = TcpListener::bind("127.0.0.1:0").expect("an address");
    let broken_address = broken.local_addr().expect("an address");
    let breaking = thread::spawn(move || {
        let (mut stream, _) = broken.accept().expect("a connection");
        let mut request = [0; 4096];
        let _ = stream.read(&mut request).expect("a request");
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nshort").expect("a response");
    });
    let hosts = json!([address.to_string(), broken_address.to_string(), "127.0.0.1:1"]);
    let server = server_with(&json!({ "http_hosts": hosts }));
    let reply = ask(&server, &format!("get:http://{address}/web?hello"), "").text();
    assert!(reply.starts_with("200\n") && reply.contains("x-kind: greeting\n") && reply.ends_with("hello\n"), "{reply}");
    let reply = ask(&server, &format!("get:http://{address}/web?head"), "").text();
    assert!(reply.contains("x-from: component\n"), "{reply}");
    for (url, code) in [
        ("http://127.0.0.1:2/", "ErrorCode::HttpRequestDenied"),
        ("http://127.0.0.1:1/", "ErrorCode::ConnectionRefused"),
        (&format!("http://{broken_address}/"), "ErrorCode::Connection"),
    ] {
        let reply = ask(&server, &format!("get:{url}"), "").text();
        assert!(reply.contains(code), "{url}: {reply}");
    }
    breaking.join().expect("it broke off");
    server.wait_for_log("wasi:http: 127.0.0.1:2 is not in the function's `http_hosts`");
    // Through both, while it comes.
    let mut raw = Raw::connect(server.address);
    let head = "host: a\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n3\r\none\r\n";
    raw.send(format!("POST /stream?proxy:http://{address}/stream?echo HTTP/1.1\r\n{head}"));
    raw.send("3\r\ntwo\r\n0\r\n\r\n");
    // In one piece, if all of it was there before the first was passed on.
    let text = String::from_utf8(raw.everything()).expect("text");
    let (head, body) = text.split_once("\r\n\r\n").expect("a head");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{text}");
    assert!(["onetwo", "6\r\nonetwo\r\n0\r\n\r\n", "3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n"].contains(&body), "{text}");
    server.stop();
    upstream.stop();
}
