//! Changing what is served while it is served: the admin API, SIGHUP, the commands that use it.

use crate::{entry, entry_with, eventually};
use rustix::process::Signal;
use serde_json::{Value, json};
use sledge::config::{Config, FunctionConfig};
use sledge::deploy::Deployer;
use sledge::load;
use sledge_tests::http::{Client, Raw, TIME_MAX, post_bytes, read_reply};
use sledge_tests::machine;
use sledge_tests::process::{self, Finished};
use sledge_tests::programs::{self, sledge_command};
use sledge_tests::server::Server;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The number of a user without any files or privileges.
const UNPRIVILEGED: u32 = 65_534;

/// A module that replies with `text`.
pub(crate) fn saying(text: &str) -> Vec<u8> {
    let length = text.len();
    let text = format!(
        r#"(module
            (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
            (memory (export "memory") 1)
            (data (i32.const 64) "{text}")
            (func (export "sledge_handle") (result i32)
                (i32.store (i32.const 0) (i32.const 64))
                (i32.store (i32.const 4) (i32.const {length}))
                (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8))))"#
    );
    wat::parse_str(text).expect("WAT")
}

fn module(file: &str) -> Vec<u8> {
    wat::parse_file(programs::tests_folder().join("e2e/functions").join(file)).expect("WAT")
}

pub(crate) fn command(server: &Server, args: &[&str]) -> Finished {
    process::run(sledge_command(args).arg("--admin").arg(server.admin().path()), b"", TIME_MAX)
}

#[test]
fn functions_are_deployed_replaced_listed_and_removed() {
    let server = Server::start(json!({ "functions": [entry("echo", "echo.wat")] }));
    let (admin, client) = (server.admin(), server.client());
    assert_eq!(client.post("/hello", "").status, 404);
    let settings = json!({ "route": "/api/hello", "methods": ["GET"], "content_type": "text/plain", "tenant": "acme" });
    let reply = admin.deploy("hello", &settings, &saying("one"));
    assert_eq!((reply.status, reply.json()), (200, json!({ "added": ["hello"], "replaced": [], "removed": [] })));
    let got = client.get("/api/hello");
    assert_eq!((got.status, got.text().as_str(), got.header("content-type")), (200, "one", Some("text/plain")));
    let first = admin.function("hello").expect("it was deployed");
    for (key, value) in [("route", "/api/hello"), ("tenant", "acme"), ("origin", "deployed")] {
        assert_eq!(first[key], value, "{first}");
    }

    assert_eq!(admin.deploy("hello", &json!({}), &saying("two")).json()["replaced"], json!(["hello"]));
    assert_eq!(client.get("/api/hello").text(), "two");
    let second = admin.function("hello").expect("it was deployed");
    assert!(second["version"].as_u64() > first["version"].as_u64(), "{first} {second}");
    assert_ne!(first["digest"], second["digest"]);

    let names: Vec<Value> =
        admin.get("/functions").json().as_array().expect("a list").iter().map(|f| f["name"].clone()).collect();
    assert_eq!(names, ["echo", "hello"]);
    assert_eq!(admin.ask("DELETE", "/functions/hello", "", b"").json()["removed"], json!(["hello"]));
    assert_eq!(client.get("/api/hello").status, 404);
    assert_eq!(admin.ask("DELETE", "/functions/hello", "", b"").status, 404);
    assert_eq!(client.post("/echo", "x").text(), "x");
    server.stop();
}

/// A module that replies with how often it was asked, as its tenant's store knows.
fn counting() -> Vec<u8> {
    let text = r#"(module
        (import "sledge:kv" "open" (func $open (param i32 i32) (result i32)))
        (import "sledge:kv" "increment" (func $increment (param i32 i32 i32 i64 i32) (result i32)))
        (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
        (memory (export "memory") 1)
        (data (i32.const 64) "n")
        (func (export "sledge_handle") (result i32)
            (drop (call $increment (call $open (i32.const 64) (i32.const 1)) (i32.const 64) (i32.const 1) (i64.const 1) (i32.const 72)))
            (i32.store8 (i32.const 72) (i32.add (i32.load8_u (i32.const 72)) (i32.const 48)))
            (i32.store (i32.const 0) (i32.const 72))
            (i32.store (i32.const 4) (i32.const 1))
            (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8))))"#;
    wat::parse_str(text).expect("WAT")
}

/// A deployment of the next version may give the module alone: its tenant's data, its route and its limits are there as before, after a restart, too.
#[test]
fn settings_stay_unless_they_are_set_or_reset() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = json!({ "state_dir": folder.path().join("state"), "kv": folder.path().join("kv"), "functions": [entry("echo", "echo.wat")] });
    let server = Server::start(config.clone());
    let file = folder.path().join("count.wasm");
    std::fs::write(&file, counting()).expect("write the module");
    let path = file.to_str().expect("a path").to_owned();
    let deploy = |server: &Server, args: &[&str]| {
        let done = command(server, &[&["deploy", &path], args].concat());
        assert_eq!(done.code(), 0, "{args:?}: {}", done.stderr);
        done.text()
    };
    let set = ["--set", "tenant=blue", "--set", "route=/api/count", "--set", "methods=[\"GET\"]", "--set", "deadline_ms=20700"];
    assert_eq!(deploy(&server, &set), "added count\n");
    assert_eq!(server.client().get("/api/count").text(), "1");
    assert_eq!(deploy(&server, &[]), "replaced count\n");
    assert_eq!(server.client().get("/api/count").text(), "2");
    // As a client that knows no settings asks.
    assert_eq!(server.admin().ask("PUT", "/functions/count", "", &counting()).status, 200);
    assert_eq!(server.client().get("/api/count").text(), "3");

    let changed = deploy(&server, &["--set", "route=null", "--set", "queue_max=5", "--set", "concurrency_max=2"]);
    let expected = "replaced count\nconcurrency_max: none -> 2\nqueue_max: none -> 5\nroute: /api/count -> /count\n";
    assert_eq!(changed, expected);
    assert_eq!((server.client().get("/count").text().as_str(), server.client().get("/api/count").status), ("4", 404));
    let settings = server.admin().function("count").expect("it is there")["settings"].clone();
    let shown = ["tenant", "route", "methods", "deadline_ms", "queue_max", "memory_bytes_max"].map(|key| settings[key].clone());
    assert_eq!(shown, [json!("blue"), json!("/count"), json!(["GET"]), json!(20700), json!(5), json!(256 << 20)], "{settings}");
    let status = command(&server, &["status", "count"]);
    assert!(
        status.code() == 0 && status.text().lines().any(|line| line.split_whitespace().eq(["deadline_ms", "20700"])),
        "{}{}",
        status.text(),
        status.stderr
    );
    assert_eq!(command(&server, &["status", "nothing"]).code(), 1);
    server.stop();

    let server = Server::start(config);
    assert_eq!(server.admin().function("count").expect("it is there")["settings"], settings);
    assert_eq!(deploy(&server, &[]), "replaced count\n");
    assert_eq!(server.client().get("/count").text(), "5");
    let changed = deploy(&server, &["--reset", "--set", "deadline_ms=20800"]);
    let expected = [
        "replaced count",
        "concurrency_max: 2 -> none",
        "deadline_ms: 20700 -> 20800",
        "methods: [\"GET\"] -> [\"GET\",\"POST\"]",
        "queue_max: 5 -> none",
        "tenant: blue -> default",
    ];
    assert_eq!(changed.lines().collect::<Vec<_>>(), expected);
    assert_eq!(server.client().post("/count", "").text(), "1");

    // A setting that would be wrong is named, and nothing changes.
    for (wrong, word) in [("rout=null", "did you mean `route`?"), ("queue_max=1", "settings.queue_max"), ("name=null", "`name`")]
    {
        let done = command(&server, &["deploy", &path, "--set", wrong]);
        assert!(done.code() == 1 && done.stderr.contains(word), "{wrong}: {}", done.stderr);
    }
    let reply = server.admin().ask("PUT", "/functions/count?reset=yes", "", &counting());
    assert!(reply.status == 400 && reply.text().contains("true or false"), "{reply:?}");
    assert_eq!(server.client().post("/count", "").text(), "2");
    server.stop();
}

/// A setting that is changed while a next version is prepared is not lost.
#[test]
fn two_deployments_at_once_lose_no_setting() {
    // It says so when it is prepared, and takes its time.
    let slow = wat::parse_str(
        r#"(module
            (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
            (memory (export "memory") 1)
            (global $n (mut i64) (i64.const 7))
            (data (i32.const 64) "preparing\n")
            (func (export "_initialize") (local $i i32)
                (i32.store (i32.const 0) (i32.const 64))
                (i32.store (i32.const 4) (i32.const 10))
                (drop (call $fd_write (i32.const 2) (i32.const 0) (i32.const 1) (i32.const 8)))
                (loop $again
                    (global.set $n (i64.rem_u (i64.mul (global.get $n) (i64.const 1103515245)) (i64.const 2147483647)))
                    (br_if $again (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 200000000)))))
            (func (export "sledge_handle") (result i32) (i64.eqz (global.get $n))))"#,
    )
    .expect("WAT");
    let server = Server::start(json!({ "functions": [entry("echo", "echo.wat")] }));
    let deploy_at_once = |number: usize| {
        let (admin, slow) = (server.admin(), slow.clone());
        let (name, route) = (format!("f{number}"), format!("/there/{number}"));
        assert_eq!(admin.deploy(&name, &json!({ "tenant": "blue" }), &saying("one")).status, 200);
        let next = thread::spawn({
            let name = name.clone();
            move || admin.deploy(&name, &json!({ "content_type": "text/plain" }), &slow)
        });
        eventually("it is prepared", || server.log().matches("preparing").count() > number);
        assert_eq!(server.admin().deploy(&name, &json!({ "route": route }), &saying("two")).status, 200);
        let is_at_once = !next.is_finished();
        let reply = next.join().expect("no panic");
        assert_eq!(reply.status, 200, "{}", reply.text());
        let settings = server.admin().function(&name).expect("it is there")["settings"].clone();
        let shown = ["tenant", "content_type", "route"].map(|key| settings[key].clone());
        assert_eq!(shown, [json!("blue"), json!("text/plain"), json!(route)]);
        assert_eq!(server.client().post(&route, "").header("content-type"), Some("text/plain"));
        is_at_once
    };
    // Where the machine is busy, the first one may be over before the second one is.
    assert!((0..20).any(deploy_at_once), "too fast to say anything");
    server.stop();
}

/// The main promise: a client that asks while a function is replaced gets the answer of the old version or of the new one. From the moment that the
/// deployment is answered, it gets that of the new one.
#[test]
fn a_thousand_replacements_under_load_lose_no_request_and_answer_none_wrongly() {
    const REPLACEMENTS: usize = 1_000;
    const MODULES: usize = 8;
    const CLIENTS: usize = 6;
    for listeners in crate::LISTENERS {
        let server = Server::start(json!({ "listeners": listeners, "workers": 2, "functions": [entry("echo", "echo.wat")] }));
        let admin = server.admin();
        let modules: Vec<Vec<u8>> = (0..MODULES).map(|i| saying(&format!("version {i}"))).collect();
        assert_eq!(admin.deploy("f", &json!({}), &modules[0]).status, 200);
        // The version that is being deployed, and the one that is.
        let (begun, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let (stop, asked) = (AtomicBool::new(false), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for client in 0..CLIENTS {
                let (server, begun, done, stop, asked) = (&server, &begun, &done, &stop, &asked);
                scope.spawn(move || {
                    let mut raw = Raw::connect(server.address);
                    while !stop.load(Ordering::SeqCst) {
                        // Half of them with new connections, which other threads may accept.
                        if client % 2 == 0 {
                            raw = Raw::connect(server.address);
                        }
                        let earliest = done.load(Ordering::SeqCst);
                        raw.send(post_bytes("/f", b"", ""));
                        let reply = raw.reply().expect("a reply");
                        let latest = begun.load(Ordering::SeqCst);
                        assert_eq!(reply.status, 200, "{reply:?}");
                        let right = (earliest..=latest).any(|version| reply.text() == format!("version {}", version % MODULES));
                        assert!(right, "{} between {earliest} and {latest}", reply.text());
                        asked.fetch_add(1, Ordering::SeqCst);
                    }
                });
            }
            for version in 1..=REPLACEMENTS {
                begun.store(version, Ordering::SeqCst);
                let reply = admin.deploy("f", &json!({}), &modules[version % MODULES]);
                if reply.status != 200 {
                    stop.store(true, Ordering::SeqCst);
                }
                assert_eq!(reply.status, 200, "{reply:?}");
                done.store(version, Ordering::SeqCst);
            }
            eventually("there are enough requests to say anything", || asked.load(Ordering::SeqCst) > REPLACEMENTS);
            stop.store(true, Ordering::SeqCst);
        });
        eventually("all old versions are gone", || admin.function("f").expect("it is there")["retired"] == 0);
        server.stop();
    }
}

/// What was replaced is unmapped: the process has as many mappings after many versions as after a few.
#[test]
fn versions_that_were_replaced_are_unloaded() {
    let server = Server::start(json!({ "workers": 2, "functions": [] }));
    let (admin, client) = (server.admin(), server.client());
    let modules = [saying("one"), saying("two")];
    let mappings = || std::fs::read_to_string(format!("/proc/{}/maps", server.pid())).expect("/proc").lines().count();
    let replace = |times: usize| {
        for i in 0..times {
            assert_eq!(admin.deploy("f", &json!({}), &modules[i % 2]).status, 200);
            assert_eq!(client.post("/f", "").status, 200);
        }
        eventually("only one version is left", || admin.get("/status").json()["retired_versions"] == 0);
        mappings()
    };
    let few = replace(20);
    let many = replace(200);
    assert!(many <= few + 20, "{few} mappings after 20 versions, {many} after 220");
    server.stop();
}

#[test]
fn a_request_keeps_the_version_to_which_it_was_routed() {
    let server = Server::start(json!({ "workers": 1, "functions": [] }));
    let admin = server.admin();
    assert_eq!(admin.deploy("f", &json!({}), &module("echo.wat")).status, 200);
    let mut raw = Raw::connect(server.address);
    raw.send("POST /f HTTP/1.1\r\nhost: test\r\ncontent-length: 5\r\nexpect: 100-continue\r\n\r\n");
    assert_eq!(raw.reply().expect("an interim reply").status, 100);
    assert_eq!(admin.deploy("f", &json!({}), &saying("new")).status, 200);
    assert_eq!(server.client().post("/f", "").text(), "new");
    assert_eq!(admin.function("f").expect("it is there")["retired"], 1);
    raw.send("hello");
    assert_eq!(raw.reply().expect("a reply").text(), "hello");
    eventually("the old version is gone", || admin.function("f").expect("it is there")["retired"] == 0);
    // Also one whose function is gone altogether.
    raw.send("POST /f HTTP/1.1\r\nhost: test\r\ncontent-length: 5\r\nexpect: 100-continue\r\n\r\n");
    assert_eq!(raw.reply().expect("an interim reply").status, 100);
    assert_eq!(admin.ask("DELETE", "/functions/f", "", b"").status, 200);
    raw.send("hello");
    assert_eq!(raw.reply().expect("a reply").text(), "new");
    server.stop();
}

/// A function's limits are kept by all its versions together: what the old version has taken is not there for the new one.
#[test]
fn a_new_version_has_the_places_of_the_one_before() {
    let server = Server::start(json!({ "workers": 1, "functions": [] }));
    let (admin, client) = (server.admin(), server.client());
    let one = json!({ "concurrency_max": 1, "queue_max": 0 });
    assert_eq!(admin.deploy("f", &one, &module("echo.wat")).status, 200);
    let mut raw = Raw::connect(server.address);
    raw.send("POST /f HTTP/1.1\r\nhost: test\r\ncontent-length: 5\r\nexpect: 100-continue\r\n\r\n");
    assert_eq!(raw.reply().expect("an interim reply").status, 100);
    assert_eq!(admin.deploy("f", &one, &saying("new")).status, 200);
    assert_eq!(client.post("/f", "").status, 429, "the old version has the only place");
    raw.send("hello");
    assert_eq!(raw.reply().expect("a reply").text(), "hello");
    eventually("the place is free again", || client.post("/f", "").text() == "new");
    server.stop();
}

/// A request that ends after its function was replaced leaves nothing behind: its sandbox would be of use to no other.
#[test]
fn the_sandbox_of_a_version_that_was_replaced_is_not_kept() {
    let server = Server::start(json!({ "workers": 1, "idle_memory_ms": 0, "functions": [] }));
    let admin = server.admin();
    let idle = || {
        let metrics = admin.get("/metrics").text();
        let line = metrics.lines().find_map(|line| line.strip_prefix("sledge_idle_sandboxes "));
        line.and_then(|count| count.parse::<u64>().ok()).expect("a number")
    };
    assert_eq!(admin.deploy("f", &json!({}), &module("echo.wat")).status, 200);
    let mut raw = Raw::connect(server.address);
    raw.send("POST /f HTTP/1.1\r\nhost: test\r\ncontent-length: 5\r\nexpect: 100-continue\r\n\r\n");
    assert_eq!(raw.reply().expect("an interim reply").status, 100);
    assert_eq!(admin.deploy("f", &json!({}), &saying("new")).status, 200);
    let before = idle();
    raw.send("hello");
    assert_eq!(raw.reply().expect("a reply").text(), "hello");
    eventually("the old version is gone", || admin.get("/status").json()["retired_versions"] == 0);
    assert_eq!(idle(), before);
    // One of the version that is served is.
    assert_eq!(server.client().post("/f", "").text(), "new");
    eventually("its sandbox is kept", || idle() == before.max(1));
    server.stop();
}

#[test]
fn a_deployment_that_fails_changes_nothing_and_says_why() {
    let server = Server::start(json!({ "functions": [entry("echo", "echo.wat")] }));
    let admin = server.admin();
    assert_eq!(admin.deploy("f", &json!({ "route": "/x" }), &saying("good")).status, 200);
    let artifact = std::fs::read(programs::function("echo.wat")).expect("the artifact");
    let good = saying("other");
    let refused: [(&str, Value, &[u8], u16, &str); 11] = [
        ("f", json!({}), &artifact, 415, ".so"),
        ("f", json!({}), b"", 415, "WebAssembly"),
        ("f", json!({}), b"\0asm\x01\0\0\0 nonsense", 422, "awsm could not compile it"),
        ("f", json!({}), &module("no-entry.wat"), 422, "sledge_handle"),
        ("f", json!({}), &module("import-unknown.wat"), 422, "launch_missiles"),
        ("f", json!({ "deadlin_ms": 1 }), &good, 400, "deadline_ms"),
        ("f", json!({ "deadline_ms": 0 }), &good, 400, "settings.deadline_ms"),
        ("f", json!({ "path": "/etc/passwd" }), &good, 400, "`path`"),
        ("f", json!({ "route": "/echo" }), &good, 409, "`echo`"),
        ("echo", json!({}), &good, 409, "configuration"),
        ("f", json!({ "cpu": "pentium-17" }), &good, 422, "pentium-17"),
    ];
    for (name, settings, module, status, word) in refused {
        let reply = admin.deploy(name, &settings, module);
        assert_eq!(reply.status, status, "{settings}: {reply:?} {}", reply.text());
        let error = reply.json()["error"].as_str().expect("an error").to_string();
        assert!(error.contains(word), "{word:?} is missing in {error:?}");
    }
    assert_eq!(admin.ask("PUT", "/functions/f", "sledge-settings: {\r\n", &good).status, 400);
    assert_eq!(server.client().post("/x", "").text(), "good");
    assert_eq!(admin.function("f").expect("it is there")["retired"], 0);
    server.stop();
}

/// What an operator sees when the file is edited while the server runs.
#[test]
fn sighup_makes_the_functions_what_the_file_says() {
    let server = Server::start(
        json!({ "functions": [entry("keep", "echo.wat"), entry("change", "echo.wat"), entry("drop", "echo.wat")] }),
    );
    let (admin, client) = (server.admin(), server.client());
    assert_eq!(admin.deploy("deployed", &json!({}), &saying("deployed")).status, 200);
    let version = |name: &str| admin.function(name).map(|function| function["version"].as_u64());
    let (keep, change) = (version("keep"), version("change"));
    let file = server.folder().join("sledge.json");
    let mut config: Value = serde_json::from_slice(&std::fs::read(&file).expect("the configuration")).expect("JSON");
    let mut write = |key: &str, value: Value| {
        config[key] = value;
        std::fs::write(&file, config.to_string()).expect("write the configuration");
        server.signal(Signal::HUP);
    };
    let changed = entry_with("change", "echo.wat", &json!({ "route": "/changed" }));
    let good = [entry("keep", "echo.wat"), changed, entry("new", "busy.wat")];
    write("functions", json!(good));
    server.wait_for_log("added new; replaced change; removed drop");
    assert_eq!(client.post("/changed", "x").text(), "x");
    assert_eq!((client.post("/change", "").status, client.post("/drop", "").status), (404, 404));
    assert_eq!(client.post("/new", [0; 8]).body, [0; 8]);
    assert_eq!(client.post("/deployed", "").text(), "deployed");
    assert_eq!(version("keep"), keep, "what has not changed is not loaded again");
    assert_ne!(version("change"), change);

    // Nothing of one that is wrong as a whole counts, and the reason is in the log.
    let with = |more: Value| Value::from([&good[..], &[more]].concat());
    write("functions", json!([{ "name": "bad", "path": "/nonexistent.so", "deadlin_ms": 1 }]));
    server.wait_for_log("did you mean `deadline_ms`?");
    write("functions", json!([entry("keep", "echo.wat"), entry_with("other", "echo.wat", &json!({ "route": "/keep" }))]));
    server.wait_for_log("functions[1].route");
    assert_eq!((client.post("/new", [0; 8]).body, version("keep")), (vec![0; 8], keep));
    // One function that is wrong concerns no other.
    write("functions", with(entry("no-entry", "no-entry.wat")));
    server.wait_for_log("sledge_handle");
    write("functions", with(json!({ "name": "bad", "path": "/nonexistent.so" })));
    server.wait_for_log("removed no-entry; quarantined bad");
    assert_eq!((client.post("/new", [0; 8]).body, client.post("/bad", "").status), (vec![0; 8], 503));
    assert_eq!(version("keep"), keep);

    // What counts at a start only is named.
    write("functions", json!([]));
    server.wait_for_log("removed bad, change, keep, new");
    write("quantum_us", 700.into());
    server.wait_for_log("quantum_us");
    server.stop();
}

#[test]
fn only_the_owner_may_use_the_admin_socket_and_one_left_by_a_killed_server_is_replaced() {
    let mut server = Server::start(json!({ "functions": [entry("echo", "echo.wat")] }));
    let path = server.admin().path().to_path_buf();
    let mode = |path: &Path| std::fs::symlink_metadata(path).expect("the socket").permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o600);
    // A second server does not take it away from the first.
    let second = json!({ "listen": "127.0.0.1:0", "admin": path, "functions": [entry("echo", "echo.wat")] });
    let file = server.folder().join("second.json");
    std::fs::write(&file, second.to_string()).expect("write a configuration");
    let done = process::run(sledge_command(&["serve", "--config"]).arg(&file), b"", TIME_MAX);
    assert!(done.code() == 1 && done.stderr.contains("another server"), "{}", done.stderr);
    assert_eq!(server.admin().get("/status").json()["pid"], server.pid());

    server.signal(Signal::KILL);
    assert!(!server.wait(TIME_MAX).success());
    assert!(path.exists(), "a killed server leaves its socket");
    let again = Server::start_with(sledge_command(&["serve", "--config"]).arg(&file));
    assert_eq!(server.admin().get("/status").json()["pid"], again.pid());
    again.stop();
    assert!(!path.exists(), "a server that ends well removes it");
}

#[test]
fn the_admin_api_on_tcp_wants_a_token() {
    let folder = tempfile::tempdir().expect("a folder");
    let token = folder.path().join("token");
    let write = |text: &str, mode: u32| {
        std::fs::write(&token, text).expect("write the token");
        std::fs::set_permissions(&token, std::fs::Permissions::from_mode(mode)).expect("chmod");
    };
    let refused = |config: Value| {
        let file = folder.path().join("refused.json");
        std::fs::write(&file, config.to_string()).expect("write a configuration");
        let done = process::run(sledge_command(&["serve", "--config"]).arg(&file), b"", TIME_MAX);
        assert_eq!(done.code(), 1, "{}", done.stderr);
        done.stderr
    };
    let config = |admin: &str| json!({ "listen": "127.0.0.1:0", "admin": admin, "functions": [entry("echo", "echo.wat")] });
    assert!(refused(config("127.0.0.1:0")).contains("admin_token"));
    assert!(refused(config("nowhere")).contains("`nowhere`"));
    let mut config = config("127.0.0.1:0");
    config["admin_token"] = json!("long enough to be a token");
    let said = refused(config.clone());
    assert!(said.contains("{ file = ") && !said.contains("long enough"), "{said}");
    config["admin_token"] = json!({ "file": token });
    assert!(refused(config.clone()).contains("No such file"));
    write("short", 0o600);
    assert!(refused(config.clone()).contains("at least 16"));
    write("long enough to be a token\n", 0o644);
    assert!(refused(config.clone()).contains("mode 644"));
    write("long enough to be a token\n", 0o600);
    let server = Server::start(config);
    server.wait_for_log("admin API address=");
    let log = server.log();
    let address = log.split("admin API address=").nth(1).and_then(|rest| rest.lines().next()).expect("an address");
    let client = Client::new(address.parse().expect("an address"), TIME_MAX);
    let ask = |headers: &[(&str, &str)]| client.try_post("/functions", b"", headers).expect("an answer").status;
    assert_eq!(ask(&[]), 401);
    assert_eq!(ask(&[("authorization", "Bearer long enough to be a tokem")]), 401);
    assert_eq!(ask(&[("authorization", "Bearer long enough to be a token")]), 405);
    // A client without the token does not keep a place, even where no token is required.
    let is_kept = |target: &str, headers: &str| {
        let mut stream = TcpStream::connect(address).expect("the door");
        stream.set_read_timeout(Some(TIME_MAX)).expect("a timeout");
        stream.write_all(format!("GET {target} HTTP/1.1\r\nhost: sledge\r\n{headers}\r\n").as_bytes()).expect("to be heard");
        let reply = read_reply(&mut BufReader::new(&stream)).expect("an answer");
        reply.header("connection") != Some("close")
    };
    assert!(!is_kept("/healthz", "") && !is_kept("/status", ""));
    assert!(is_kept("/status", "authorization: Bearer long enough to be a token\r\n"));
    let list = |token: &Path| {
        let mut command = sledge_command(&["list", "--admin", address, "--token-file"]);
        process::run(command.arg(token), b"", TIME_MAX)
    };
    assert!(list(&token).text().contains("/echo"));
    let other = folder.path().join("other");
    std::fs::write(&other, "quite another token").expect("write a file");
    assert!(list(&other).code() == 1 && list(&other).stderr.contains("token"));
    server.stop();
}

#[test]
fn commands_speak_to_the_admin_api() {
    let mut server = Server::start(json!({ "functions": [entry("echo", "echo.wat")] }));
    let file = server.folder().join("greet.wasm");
    std::fs::write(&file, saying("hello")).expect("write the module");
    let path = file.to_str().expect("a path");
    let done = command(&server, &["deploy", path, "--set", "methods=[\"GET\"]", "--set", "route=/greeting"]);
    assert_eq!((done.code(), done.text().as_str()), (0, "added greet\n"), "{}", done.stderr);
    assert_eq!(server.client().get("/greeting").text(), "hello");
    let done = command(&server, &["list"]);
    let lines: Vec<String> = done.text().lines().map(str::to_string).collect();
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert!(lines[0].starts_with("name") && lines[2].starts_with("greet  /greeting"), "{lines:?}");
    let json: Value = serde_json::from_str(&command(&server, &["list", "--json"]).text()).expect("JSON");
    assert_eq!(json[1]["name"], "greet");
    assert!(command(&server, &["status"]).text().contains("serving"));
    let done = command(&server, &["deploy", path, "--set", "rout=/x"]);
    assert!(done.code() == 1 && done.stderr.contains("did you mean `route`?"), "{}", done.stderr);
    let done = command(&server, &["remove", "greet"]);
    assert_eq!((done.code(), done.text().as_str()), (0, "removed greet\n"));
    let done = command(&server, &["remove", "greet"]);
    assert!(done.code() == 1 && done.stderr.contains("no function `greet`"), "{}", done.stderr);
    assert_eq!(command(&server, &["drain"]).code(), 0);
    assert!(server.wait(TIME_MAX).success());
    let done = command(&server, &["list"]);
    assert!(done.code() == 1 && done.stderr.contains("no admin API"), "{}", done.stderr);
}

#[test]
fn a_socket_of_another_user_is_not_taken_for_none() {
    let server = Server::start(json!({ "functions": [] }));
    let folder = tempfile::tempdir().expect("a folder");
    let door = server.admin().path().to_owned();
    // Where another user finds both: a program and a socket of one's own.
    let program = folder.path().join("sledge");
    std::fs::copy(programs::sledge(), &program).expect("copy");
    for path in [folder.path(), server.folder()] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("permissions");
    }
    std::fs::set_permissions(&door, std::fs::Permissions::from_mode(0o000)).expect("permissions");
    let mut list = machine::command(&program);
    list.args(["list", "--admin"]).arg(&door);
    if rustix::process::geteuid().is_root() {
        // Root may everything.
        list.uid(UNPRIVILEGED).gid(UNPRIVILEGED);
    }
    let done = process::run(&mut list, b"", TIME_MAX);
    assert_eq!(done.code(), 1, "{}", done.text());
    assert!(done.stderr.contains("permission denied for the admin API"), "{}", done.stderr);
    assert!(
        done.stderr.contains("root") && done.stderr.contains("sudo") && !done.stderr.contains("no admin API"),
        "{}",
        done.stderr
    );
    server.stop();
}

#[test]
fn commands_look_for_the_admin_api_where_servers_have_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let own = folder.path().join("sledge-8080.sock");
    let list = || {
        let mut list = sledge_command(&["list"]);
        list.env_remove("RUNTIME_DIRECTORY").env("XDG_RUNTIME_DIR", folder.path());
        process::run(&mut list, b"", TIME_MAX)
    };
    let server = Server::start(json!({ "admin": own, "functions": [entry("echo", "echo.wat")] }));
    assert!(list().text().contains("/echo"), "{}", list().stderr);
    server.stop();
    let none = list();
    for place in [&*own.display().to_string(), "/run/sledge-8080.sock", "/run/sledge/"] {
        assert!(none.code() == 1 && none.stderr.contains(place), "{place} is missing in: {}", none.stderr);
    }
}

/// Killed at any moment, the next server serves what was deployed; a removed function stays removed.
#[test]
fn deployed_functions_outlive_the_server_where_there_is_a_folder_for_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let state = folder.path().join("state");
    let config = json!({ "state_dir": state, "functions": [entry("echo", "echo.wat")] });
    let mut server = Server::start(config.clone());
    let admin = server.admin();
    assert_eq!(admin.deploy("stays", &json!({ "route": "/there" }), &saying("one")).status, 200);
    assert_eq!(admin.deploy("stays", &json!({ "route": "/here" }), &saying("two")).status, 200);
    assert_eq!(admin.deploy("goes", &json!({}), &saying("three")).status, 200);
    assert_eq!(admin.ask("DELETE", "/functions/goes", "", b"").status, 200);
    server.signal(Signal::KILL);
    assert!(!server.wait(TIME_MAX).success());

    let server = Server::start(config);
    let client = server.client();
    assert_eq!(client.post("/here", "").text(), "two");
    assert_eq!((client.post("/there", "").status, client.post("/goes", "").status), (404, 404));
    assert_eq!(server.admin().function("stays").expect("it is there")["origin"], "deployed");
    server.stop();
}

#[test]
fn a_listing_does_not_wait_for_a_change() {
    let none = Config::default();
    let deployer = Arc::new(Deployer::new(&none, load::compiler(&none)).expect("a deployer"));
    // A thread that does not take what is published: the change waits for it, 10 s.
    let _stuck = deployer.subscribe();
    let mut config = none;
    config.functions.push(FunctionConfig::new("echo".to_owned(), programs::function("echo.wat")));
    let changing = {
        let deployer = Arc::clone(&deployer);
        thread::spawn(move || deployer.reload(&config))
    };
    eventually("echo is there", || !deployer.list().is_empty());
    let begin = Instant::now();
    assert!(!deployer.list().is_empty() && deployer.gauges().functions == 1 && deployer.log("echo").is_some());
    assert!(!changing.is_finished(), "after {:?}", begin.elapsed());
    let change = changing.join().expect("no panic").expect("a change");
    assert_eq!(change.added, ["echo"]);
}

#[test]
fn modules_that_stop_arriving_are_given_up() {
    const DEPLOYMENTS_MAX: usize = 4;
    let server = Server::start(json!({ "functions": [entry("echo", "echo.wat")] }));
    let slow: Vec<_> = (0..DEPLOYMENTS_MAX)
        .map(|i| {
            let mut stream = server.admin().connect();
            let head = format!("PUT /functions/slow{i} HTTP/1.1\r\nhost: sledge\r\ncontent-length: 100\r\n\r\n\0asm");
            stream.write_all(head.as_bytes()).expect("to be heard");
            stream
        })
        .collect();
    eventually("all places are taken", || server.admin().deploy("another", &json!({}), &saying("hello")).status == 503);
    for stream in slow {
        let reply = read_reply(&mut BufReader::new(stream)).expect("an answer");
        assert!(reply.status == 408 && reply.text().contains("no data for 10 s"), "{} {}", reply.status, reply.text());
    }
    assert_eq!(server.admin().deploy("another", &json!({}), &saying("hello")).status, 200);
    server.stop();
}

/// However many follow logs, others are answered.
#[test]
fn clients_that_follow_logs_leave_places_to_others() {
    const FOLLOWERS_MAX: usize = 32;
    let server = Server::start(json!({ "functions": [entry("echo", "echo.wat")] }));
    let follow = || {
        let mut stream = server.admin().connect();
        stream.write_all(b"GET /functions/echo/logs?follow=true HTTP/1.1\r\nhost: sledge\r\n\r\n").expect("to be heard");
        let mut head = String::new();
        BufReader::new(&stream).read_line(&mut head).expect("an answer");
        assert!(head.contains("200"), "{head}");
        stream
    };
    let followers: Vec<_> = (0..FOLLOWERS_MAX).map(|_| follow()).collect();
    let refused = server.admin().get("/functions/echo/logs?follow=true");
    assert!(refused.status == 503 && refused.text().contains("without following"), "{} {}", refused.status, refused.text());
    assert_eq!(server.admin().get("/functions/echo/logs").status, 200);
    assert_eq!(server.admin().get("/status").status, 200);
    drop(followers);
    server.stop();
}

/// A deployment keeps its place until it has finished, also when its client has gone.
#[test]
fn a_client_that_gives_up_does_not_make_room_for_another_compilation() {
    const DEPLOYMENTS_MAX: usize = 4;
    // Of processor time: what is compiled takes more, and is given up then.
    let server = Server::start(json!({ "compile_ms_max": 6_000, "functions": [entry("echo", "echo.wat")] }));
    let body = "(local.set 0 (i64.rem_u (i64.mul (local.get 0) (i64.const 7)) (i64.const 11)))".repeat(100);
    let functions = format!("(func (param i64) (result i64) {body} local.get 0)").repeat(2_000);
    let slow = wat::parse_str(format!("(module {functions})")).expect("WAT");
    let deploy = || server.admin().deploy("another", &json!({}), &saying("hello")).status;
    let asking: Vec<_> = (0..DEPLOYMENTS_MAX)
        .map(|name| {
            let mut stream = server.admin().connect();
            let head = format!("PUT /functions/slow{name} HTTP/1.1\r\nhost: sledge\r\ncontent-length: {}\r\n\r\n", slow.len());
            stream.write_all(&[head.as_bytes(), &slow].concat()).expect("to be heard");
            stream
        })
        .collect();
    eventually("all places are taken", || deploy() == 503);
    // Time for all of them to have arrived, and then for the server to see that their clients have gone.
    thread::sleep(Duration::from_millis(500));
    drop(asking);
    thread::sleep(Duration::from_millis(500));
    assert_eq!(deploy(), 503);
    eventually("the places are free again", || deploy() == 200);
    server.stop();
}
