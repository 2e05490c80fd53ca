//! Paths that have moved.

use crate::deploy::saying;
use crate::http::{ask as ask_http2, connect, run, speak_http2};
use crate::{assert_failure, entry, entry_with, eventually};
use hyper::Method;
use rustix::process::Signal;
use serde_json::{Value, json};
use sledge_tests::http::{Raw, Reply};
use sledge_tests::server::{Server, free_address};

fn config() -> Value {
    json!({
        "workers": 1,
        "functions": [entry_with("all", "echo.wat", &json!({ "route": "/*" })), entry_with("new", "echo.wat", &json!({ "route": "/new/*" }))],
        "redirects": [
            { "route": "/gone", "to": "/new/" },
            { "route": "/moved", "to": "https://other.example/?from=here#top", "status": 301 },
            { "route": "/found/*", "to": "https://other.example/a/*", "status": 302 },
            { "route": "/old/*", "to": "/*", "status": 308 },
        ],
    })
}

/// The reply to a request as it is, with a body of some bytes where one is sent.
fn ask(server: &Server, method: &str, target: &str, body: &str) -> Reply {
    let mut raw = Raw::connect(server.address);
    let length = if body.is_empty() { String::new() } else { format!("content-length: {}\r\n", body.len()) };
    raw.send(format!("{method} {target} HTTP/1.1\r\nhost: here\r\n{length}\r\n{body}"));
    raw.reply().expect("a reply")
}

/// Writes the server's configuration anew, has it read, and waits until the server says what came of it.
pub(crate) fn reload(server: &Server, mut config: Value, said: &str) {
    config["listen"] = "127.0.0.1:0".into();
    config["admin"] = server.folder().join("admin.sock").to_string_lossy().into();
    std::fs::write(server.folder().join("sledge.json"), config.to_string()).expect("write the configuration");
    server.signal(Signal::HUP);
    server.wait_for_log(said);
}

#[test]
fn clients_are_sent_on_and_no_function_runs() {
    let server = Server::start(config());
    for (method, target, body, status, location) in [
        ("GET", "/gone", "", 307, "/new/"),
        ("HEAD", "/gone?a=b", "", 307, "/new/?a=b"),
        ("POST", "/gone", "a body", 307, "/new/"),
        ("DELETE", "/moved?a=b", "", 301, "https://other.example/?from=here#top"),
        ("GET", "/found/x/y?a=%20b", "", 302, "https://other.example/a/x/y?a=%20b"),
        ("OPTIONS", "/old/new/x", "", 308, "/new/x"),
        ("GET", "http://there/old/new/x", "", 308, "/new/x"),
        // Neither is the address of another host.
        ("GET", "/old//evil.example/x", "", 308, "/evil.example/x"),
        ("GET", "/old/\\evil.example/x", "", 308, "/evil.example/x"),
    ] {
        let reply = ask(&server, method, target, body);
        assert_eq!((reply.status, reply.header("location")), (status, Some(location)), "{method} {target}");
        let length = if method == "HEAD" { None } else { Some("0") };
        assert_eq!((reply.header("content-length"), reply.body.len()), (length, 0), "{method} {target}: {reply:?}");
    }
    // What has not moved is answered by functions, and where they are sent on clients find one.
    assert_eq!([ask(&server, "POST", "/older", "x").text(), ask(&server, "POST", "/new/x", "y").text()], ["x", "y"]);
    let metrics = || server.admin().get("/metrics").text();
    eventually("all are counted", || metrics().contains("sledge_redirected_requests_total{thread=\"worker-0\"} 9"));
    let metrics = metrics();
    assert!(!metrics.contains("sledge_requests_total{function=\"all\",tenant=\"default\",outcome=\"ok\"} 2"), "{metrics}");
    server.stop();
}

#[test]
fn a_connection_goes_on_after_a_redirect() {
    let server = Server::start(config());
    let mut raw = Raw::connect(server.address);
    raw.send("GET /gone HTTP/1.1\r\nhost: a\r\n\r\nGET /gone?again HTTP/1.1\r\nhost: a\r\n\r\n");
    for location in ["/new/", "/new/?again"] {
        assert_eq!(raw.reply().expect("a reply").header("location"), Some(location));
    }
    run(async {
        let client = speak_http2(connect(&server).await).await;
        let reply = ask_http2(&client, Method::GET, "/found/x", "").await;
        assert!(reply.status == 302 && reply.headers["location"] == "https://other.example/a/x");
        assert!(reply.body.is_empty());
    });
    server.stop();
}

#[test]
fn a_redirect_applies_at_its_address() {
    let own = free_address();
    let config = json!({
        "functions": [entry("echo", "echo.wat"), entry_with("own", "echo.wat", &json!({ "listen": own.to_string() }))],
        "redirects": [{ "route": "/gone", "to": "/own", "listen": own.to_string() }],
    });
    let server = Server::start(config);
    assert_eq!(ask(&server, "GET", "/gone", "").status, 404);
    let mut raw = Raw::connect(own);
    raw.send("GET /gone HTTP/1.1\r\nhost: a\r\n\r\n");
    assert_eq!(raw.reply().expect("a reply").header("location"), Some("/own"));
    server.stop();
}

/// The configuration's redirects change with it, and a function that was deployed gives way.
#[test]
fn redirects_change_at_sighup_and_come_before_deployed_functions() {
    let state = tempfile::tempdir().expect("a folder");
    let with =
        |redirects: Value| json!({ "state_dir": state.path(), "functions": [entry("echo", "echo.wat")], "redirects": redirects });
    let server = Server::start(with(json!([{ "route": "/a", "to": "/echo" }])));
    let refused = server.admin().deploy("a", &json!({}), &saying("a"));
    assert!(refused.status == 409 && refused.text().contains("route /a is a redirect of the configuration"), "{refused:?}");
    let deployed = server.admin().deploy("b", &json!({}), &saying("b"));
    assert_eq!(deployed.status, 200, "{deployed:?}");
    assert_eq!(server.client().get("/b").text(), "b");

    reload(&server, with(json!([{ "route": "/b", "to": "/a", "status": 302 }])), "redirects changed; quarantined b");
    assert_failure(&ask(&server, "GET", "/a", ""), 404, "not_found", "no_such_route", None);
    assert_eq!((ask(&server, "GET", "/b", "").status, ask(&server, "GET", "/b", "").header("location")), (302, Some("/a")));
    let listed = server.admin().get("/functions/b").text();
    assert!(listed.contains("quarantined") && listed.contains("route /b is a redirect"), "{listed}");

    reload(&server, with(json!([])), "redirects changed; added b");
    assert_eq!(server.client().get("/b").text(), "b");
    server.stop();
}
