//! Components of WASI 0.3, made by its Rust bindings: a service of `wasi:http`, and a command.

use crate::components::built;
use crate::{LISTENERS, assert_failure, fastest_below};
use serde_json::{Value, json};
use sledge_tests::http::{Raw, Reply, post_bytes};
use sledge_tests::process;
use sledge_tests::programs::sledge_command;
use sledge_tests::server::Server;
use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

const TIME_MAX: Duration = Duration::from_secs(300);

fn artifact() -> PathBuf {
    static MADE: LazyLock<PathBuf> = LazyLock::new(|| built("service"));
    MADE.clone()
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

#[test]
fn a_service_answers_with_what_it_has_put_together() {
    let server = server();
    let reply = ask(&server, "hello", "");
    assert_eq!((reply.status, reply.text().as_str(), reply.header("content-type")), (200, "Hello, world!\n", Some("text/plain")));
    assert_eq!(reply.header("content-length"), Some("14"), "what is complete is sent as a whole: {reply:?}");
    assert_eq!(ask(&server, "status:418", "").status, 418);
    assert_eq!(ask(&server, "status:101", "").status, 500);
    let text = ask(&server, "head", "x").text();
    let expected = format!("Method::Post\nhttp://{}/web?head\n", server.address);
    assert!(text.starts_with(&expected) && text.contains("content-length: 1") && !text.contains("host:"), "{text}");
    assert_eq!(
        ask(&server, "fields", "").text(),
        "[[49], [50]] true 3\nOk([[49], [50]]) false\n\
         Err(HeaderError::Forbidden) Err(HeaderError::InvalidSyntax) true\nErr(HeaderError::Immutable) true\nfalse true"
    );
    fastest_below("at once", Duration::from_millis(500), || {
        let begin = Instant::now();
        assert_eq!(ask(&server, "waits", "").text(), "waited\n");
        begin.elapsed()
    });
    assert_eq!(ask(&server, "self", "").text(), "0 196608 Some(1) Ok(())");
    assert_eq!(ask(&server, "print", "").text(), "printed");
    server.wait_for_log("to standard output");
    server.wait_for_log("to standard error");
    server.stop();
}

/// What is complete goes out at once, and what wakes a task is seen although the task yields all the time.
#[test]
fn a_task_does_not_hold_up_what_the_host_does() {
    let server = server();
    fastest_below("at once", Duration::from_millis(900), || {
        let begin = Instant::now();
        assert_eq!(ask(&server, "later", "").text(), "at once\n");
        begin.elapsed()
    });
    server.wait_for_log("afterwards");
    assert_eq!(ask(&server, "yields", "").text(), "yielded\n");
    server.stop();
}

#[test]
fn bodies_go_through_a_service_while_they_come() {
    for listeners in LISTENERS {
        let server = server_with(&json!({ "listeners": listeners }));
        for verb in ["echo", "pass"] {
            let mut raw = Raw::connect(server.address);
            let head = "host: a\r\nte: trailers\r\ntransfer-encoding: chunked\r\n\r\n";
            raw.send(format!("POST /stream?{verb} HTTP/1.1\r\n{head}3\r\none\r\n"));
            let head = raw.head().expect("a head");
            assert_eq!((head.status, head.header("transfer-encoding")), (200, Some("chunked")), "{head:?}");
            assert_eq!(raw.bytes(8), b"3\r\none\r\n", "{verb} {listeners}");
            raw.send("3\r\ntwo\r\n");
            assert_eq!(raw.bytes(8), b"3\r\ntwo\r\n", "{verb} {listeners}");
            raw.send("0\r\nx-sum: 7\r\n\r\n");
            assert_eq!(raw.bytes(15), b"0\r\nx-sum: 7\r\n\r\n", "{verb} {listeners}");
            let large = "large ".repeat(300_000);
            assert_eq!(ask(&server, verb, &large).text(), large, "{verb} {listeners}");
        }
        server.stop();
    }
}

#[test]
fn a_service_waits_for_its_client() {
    let server = server();
    let mut raw = Raw::connect(server.address);
    raw.send(post_bytes("/web?fill:8000000", b"", "connection: close\r\n"));
    assert_eq!(raw.head().expect("a head").status, 200);
    // Others are served while it waits.
    assert_eq!(ask(&server, "hello", "").status, 200);
    drop(raw);
    server.wait_for_log("reason=\"client_gone\"");
    let all = ask(&server, "fill:8000000", "").body;
    assert!(all.len() == 8_000_000 && all.iter().enumerate().all(|(at, byte)| *byte == (at % 251) as u8), "{}", all.len());
    server.stop();
}

#[test]
fn trailers_go_both_ways_through_a_service() {
    let server = server();
    let mut raw = Raw::connect(server.address);
    let head = "host: a\r\nte: trailers\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n";
    raw.send(format!("POST /web?trailers HTTP/1.1\r\n{head}4\r\nbody\r\n0\r\nx-sum: 7\r\n\r\n"));
    let text = String::from_utf8(raw.everything()).expect("text");
    let (_, rest) = text.split_once("\r\n\r\n").expect("a head");
    assert!(
        rest.starts_with("8\r\n4 bytes\n\r\n0\r\n") && rest.contains("x-sum: 7\r\n") && rest.contains("x-count: 4\r\n"),
        "{text}"
    );
    server.wait_for_log("sent with trailers");
    server.stop();
}

#[test]
fn a_service_that_fails_is_answered_for() {
    let server = server();
    assert_failure(&ask(&server, "panic", ""), 500, "trap", "unreachable", Some("web"));
    assert_eq!(ask(&server, "error", "").status, 500);
    server.wait_for_log("wasi:http: the component answered with internal-error: as asked");
    for (query, said) in [("short", "sending: Err(ErrorCode::HttpResponseBodySize(Some(5)))"), ("break", "unreachable")] {
        let mut raw = Raw::connect(server.address);
        raw.send(post_bytes(&format!("/web?{query}"), b"", "connection: close\r\n"));
        let text = String::from_utf8_lossy(&raw.everything()).into_owned();
        assert!(!text.ends_with("0\r\n\r\n"), "{query}: {text}");
        server.wait_for_log(said);
    }
    assert_eq!(ask(&server, "hello", "").status, 200);
    server.stop();
}

#[test]
fn a_service_asks_listed_hosts_and_no_others() {
    let upstream = server();
    let address = upstream.address;
    let server = server_with(&json!({ "http_hosts": [address.to_string(), "127.0.0.1:1"] }));
    let reply = ask(&server, &format!("get:http://{address}/web?hello"), "").text();
    assert!(reply.starts_with("200\n") && reply.contains("Hello, world!\n") && reply.ends_with("Ok(None)"), "{reply}");
    let reply = ask(&server, &format!("get:http://{address}/web?head"), "").text();
    assert!(reply.contains("x-from: component"), "{reply}");
    for (url, code) in [
        ("http://127.0.0.1:2/", "ErrorCode::HttpRequestDenied"),
        ("http://127.0.0.1:1/", "ErrorCode::ConnectionRefused"),
        (&format!("http://{address}/web?break"), "Err(ErrorCode::ConnectionTerminated)"),
    ] {
        let reply = ask(&server, &format!("get:{url}"), "").text();
        assert!(reply.contains(code), "{url}: {reply}");
    }
    server.wait_for_log("wasi:http: 127.0.0.1:2 is not in the function's `http_hosts`");
    let large = "large ".repeat(300_000);
    for verb in ["post", "proxy"] {
        // Through both, while it comes.
        let mut raw = Raw::connect(server.address);
        let head = "host: a\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n3\r\none\r\n";
        raw.send(format!("POST /stream?{verb}:http://{address}/stream?echo HTTP/1.1\r\n{head}"));
        assert_eq!(raw.head().expect("a head").status, 200, "{verb}");
        assert_eq!(raw.bytes(8), b"3\r\none\r\n", "{verb}");
        raw.send("3\r\ntwo\r\n0\r\n\r\n");
        assert_eq!(raw.everything(), b"3\r\ntwo\r\n0\r\n\r\n", "{verb}");
        let reply = ask(&server, &format!("{verb}:http://{address}/web?pass"), &large);
        assert!(reply.text() == large, "{verb}: {} bytes", reply.body.len());
    }
    // A request without a body goes on without one.
    let reply = server.client().get(&format!("/web?proxy:http://{address}/web?head"));
    assert!(reply.text().starts_with("Method::Get\n") && !reply.text().contains("transfer-encoding"), "{}", reply.text());
    server.stop();
    upstream.stop();
}

fn command(options: &[&str], arguments: &[&str]) -> std::process::Command {
    static MADE: LazyLock<PathBuf> = LazyLock::new(|| built("command"));
    let mut command = sledge_command(&["run"]);
    command.args(options).arg(&*MADE).arg("--").args(arguments);
    command
}

#[test]
fn a_command_uses_the_standard_streams() {
    let input: Vec<u8> = (0..1_000_000_u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    for (argument, said) in [("copy", "1000000 bytes\n"), ("pass", "")] {
        let done = process::run(&mut command(&[], &[argument]), &input, TIME_MAX);
        assert!(done.status.success() && done.stderr == said, "{argument}: {:?} {}", done.status, done.stderr);
        assert!(done.stdout == input, "{argument}: {} bytes", done.stdout.len());
    }
    let done = process::run(&mut command(&["--env", "A=b"], &["environment", "one"]), b"", TIME_MAX);
    assert_eq!(String::from_utf8_lossy(&done.stdout), r#"["environment", "one"] [("A", "b")]"#, "{}", done.stderr);
    assert!(!process::run(&mut command(&[], &[]), b"", TIME_MAX).status.success());
}

#[test]
fn a_command_uses_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let granted = format!("{}::/::rw", folder.path().display());
    let done = process::run(&mut command(&["--dir", &granted], &["files"]), b"", TIME_MAX);
    assert_eq!(
        String::from_utf8_lossy(&done.stdout),
        "TWO three four\n7 DescriptorType::RegularFile\nSome((1000000000, 5))\nSome(ErrorCode::Exist)\n\
         Some(ErrorCode::NoEntry) Some(ErrorCode::NotPermitted)\nfile\n303 1 renamed\n\
         0 Some(ErrorCode::NotDirectory)\nSome(ErrorCode::IsDirectory)\ntrue false",
        "{}",
        done.stderr
    );
    assert_eq!(std::fs::read_dir(folder.path()).expect("the folder").count(), 0);
}
