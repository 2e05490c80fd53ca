//! Clients that may only read, and those that may only ask for metrics.

use crate::deploy::saying;
use crate::{entry, eventually};
use serde_json::{Value, json};
use sledge_tests::http::{Client, Reply, TIME_MAX};
use sledge_tests::process;
use sledge_tests::programs::sledge_command;
use sledge_tests::server::Server;
use std::fs;
use std::io::{BufReader, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// What clients present for all rights, and for reading.
const TOKENS: [&str; 2] = ["a token for everything", "a token for reading"];

pub(crate) fn token_file(folder: &Path, name: &str, token: &str) -> Value {
    let path = folder.join(name);
    fs::write(&path, token).expect("write a file");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("set the mode");
    json!({ "file": path })
}

/// The address that the server's log names behind that.
pub(crate) fn address(server: &Server, what: &str) -> String {
    let what = format!("{what} address=");
    server.wait_for_log(&what);
    let log = server.log();
    log.split(&what).nth(1).and_then(|rest| rest.lines().next()).expect("an address").to_owned()
}

pub(crate) fn ask(address: &str, request: &str, token: Option<&str>, body: &[u8]) -> Reply {
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(TIME_MAX)).expect("a timeout");
    let token = token.map(|token| format!("authorization: Bearer {token}\r\n")).unwrap_or_default();
    let head = format!("{request} HTTP/1.1\r\nhost: sledge\r\ncontent-length: {}\r\n{token}\r\n", body.len());
    // What is refused by its head need not be read to its end.
    let _ = stream.write_all(&[head.as_bytes(), body].concat());
    sledge_tests::http::read_reply(&mut BufReader::new(stream)).expect("an answer")
}

#[test]
fn a_token_for_reading_changes_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let [all, read] = [("all", TOKENS[0]), ("read", TOKENS[1])].map(|(name, token)| token_file(folder.path(), name, token));
    let server = Server::start(
        json!({ "admin": "127.0.0.1:0", "admin_token": all, "admin_read_token": read, "functions": [entry("echo", "echo.wat")] }),
    );
    let address = address(&server, "admin API");
    let module = saying("hello");
    let requests: [(&str, [u16; 3]); 9] = [
        ("GET /healthz", [200, 200, 200]),
        ("GET /readyz", [200, 200, 200]),
        ("GET /metrics", [200, 200, 401]),
        ("GET /functions", [200, 200, 401]),
        ("GET /functions/echo", [200, 200, 401]),
        ("GET /functions/echo/logs", [200, 200, 401]),
        ("PUT /functions/hello", [200, 403, 401]),
        ("POST /functions/echo/rollback", [409, 403, 401]),
        ("DELETE /functions/hello", [200, 403, 401]),
    ];
    for (request, expected) in requests {
        // The reader first, since the other's changes count.
        let [without, reader, admin] =
            [None, Some(TOKENS[1]), Some(TOKENS[0])].map(|token| ask(&address, request, token, &module));
        assert_eq!([admin.status, reader.status, without.status], expected, "{request}: {reader:?}");
    }
    let refused = ask(&address, "POST /drain", Some(TOKENS[1]), b"");
    assert!(refused.status == 403 && refused.text().contains("`admin_token`"), "{refused:?}");
    assert_eq!(server.client().post("/echo", "x").text(), "x");

    let run = |args: &[&str]| {
        let file = folder.path().join("read");
        process::run(sledge_command(args).args(["--admin", &address, "--token-file"]).arg(file), b"", TIME_MAX)
    };
    assert!(run(&["list"]).text().contains("/echo"));
    let done = run(&["remove", "echo"]);
    assert!(done.code() == 1 && done.stderr.contains("for reading"), "{}", done.stderr);
    server.stop();
}

#[test]
fn metrics_have_an_address_of_their_own() {
    let server = Server::start(json!({ "metrics_listen": "127.0.0.1:0", "functions": [entry("echo", "echo.wat")] }));
    let address = address(&server, "metrics");
    let client = Client::new(address.parse().expect("an address"), TIME_MAX);
    assert_eq!(server.client().post("/echo", "x").status, 200);
    eventually("it is counted", || client.get("/metrics").text().contains("sledge_requests_total{function=\"echo\""));
    let metrics = client.get("/metrics");
    assert_eq!(metrics.status, 200);
    assert!(metrics.text().ends_with("# EOF\n") && metrics.header("content-type").is_some_and(|of| of.contains("openmetrics")));
    assert_eq!([client.get("/healthz").status, client.get("/readyz").status], [200, 200]);
    for target in ["/functions", "/functions/echo", "/functions/echo/logs", "/status", "/", "/metrics/"] {
        let reply = client.get(target);
        assert!(reply.status == 403 && reply.text().contains("/metrics"), "{target}: {reply:?}");
    }
    assert_eq!([client.post("/metrics", "").status, client.post("/drain", "").status], [403, 403]);
    assert_eq!(ask(&address, "DELETE /functions/echo", None, b"").status, 403);
    // The admin API is where it was, with all rights.
    assert_eq!(server.admin().get("/functions").status, 200);
    server.stop();
}

#[test]
fn what_is_wrong_with_rights_is_said_at_the_start() {
    let folder = tempfile::tempdir().expect("a folder");
    let read = token_file(folder.path(), "read", TOKENS[1]);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = taken.local_addr().map(|address| (taken, address.to_string())).expect("an address");
    for (settings, words) in [
        (json!({ "admin_read_token": read }), ["admin_read_token", "`admin_token`"]),
        (json!({ "metrics_listen": "everywhere" }), ["metrics_listen", "`everywhere`"]),
        (json!({ "metrics_listen": taken.1 }), ["metrics_listen: cannot listen on", "in use"]),
    ] {
        let mut config = json!({ "listen": "127.0.0.1:0", "admin": folder.path().join("admin.sock"), "functions": [entry("echo", "echo.wat")] });
        config.as_object_mut().expect("an object").extend(settings.as_object().expect("an object").clone());
        let file = folder.path().join("refused.json");
        fs::write(&file, config.to_string()).expect("write a configuration");
        let done = process::run(sledge_command(&["serve", "--config"]).arg(&file), b"", TIME_MAX);
        assert!(done.code() == 1 && words.iter().all(|word| done.stderr.contains(word)), "{words:?}: {}", done.stderr);
    }
}
