//! One function that cannot be served keeps no other from being served: it is quarantined, by name, and operators see why.

use crate::deploy::{command, saying};
use crate::{assert_failure, entry, entry_with};
use rustix::process::Signal;
use serde_json::{Value, json};
use sledge_tests::http::{Client, Reply, TIME_MAX};
use sledge_tests::process;
use sledge_tests::programs::{self, sledge_command};
use sledge_tests::server::Server;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};

/// An artifact of which the second half is missing.
fn truncated(folder: &Path) -> PathBuf {
    let bytes = fs::read(programs::function("echo.wat")).expect("the artifact");
    let path = folder.join("truncated.so");
    fs::write(&path, &bytes[..bytes.len() / 2]).expect("write a file");
    path
}

#[track_caller]
fn assert_quarantined(reply: &Reply, name: &str) {
    assert_failure(reply, 503, "quarantined", "quarantined", Some(name));
    assert_eq!(reply.header("retry-after"), None, "trying again does not help");
}

/// The subjects that `/readyz` lists; none when it says ready.
fn degraded(server: &Server) -> Vec<String> {
    let text = server.admin().get("/readyz").text();
    if text == "ready\n" {
        return Vec::new();
    }
    let lines = text.strip_prefix("degraded\n").unwrap_or_else(|| panic!("{text}")).lines();
    lines.map(|line| line.split(": ").next().unwrap_or_default().to_owned()).collect()
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| format!("function {name}")).collect()
}

/// Reads the configuration anew, changed, and waits until that is done.
fn reload(server: &Server, functions: &Value, words: &str) {
    let file = server.folder().join("sledge.json");
    let mut config: Value = serde_json::from_slice(&fs::read(&file).expect("the configuration")).expect("JSON");
    config["functions"] = functions.clone();
    fs::write(&file, config.to_string()).expect("write the configuration");
    server.signal(Signal::HUP);
    server.wait_for_log(words);
}

#[test]
fn what_is_wrong_with_one_function_concerns_no_other() {
    let folder = tempfile::tempdir().expect("a folder");
    let trapping = folder.path().join("trapping.wasm");
    let text = r#"(module (func (export "_initialize") unreachable) (func (export "sledge_handle") (result i32) (i32.const 0)))"#;
    fs::write(&trapping, wat::parse_str(text).expect("WAT")).expect("write the module");
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let truncated = truncated(folder.path());
    let with = |name: &str, more: &Value| entry_with(name, "echo.wat", more);
    let config = json!({ "workers": 1, "functions": [
        with("all", &json!({ "route": "/*" })),
        { "name": "half", "path": truncated, "route": "/half/*", "methods": ["GET"], "tenant": "blue" },
        { "name": "gone", "path": folder.path().join("gone.so") },
        { "name": "trapping", "path": trapping },
        with("secretive", &json!({ "env": { "KEY": { "file": folder.path().join("nowhere") } } })),
        with("granted", &json!({ "dirs": [{ "host": folder.path().join("no-folder"), "guest": "/data" }] })),
        with("asking", &json!({ "http_hosts": ["not a host"] })),
        with("apart", &json!({ "listen": address })),
        entry("caller", "caller.c"),
        entry_with("blue-caller", "caller.c", &json!({ "tenant": "blue" })),
    ] });
    let bad = ["apart", "asking", "gone", "granted", "half", "secretive", "trapping"];
    let server = Server::start(config.clone());
    let client = server.client();
    assert_eq!(client.post("/anything/else", "x").text(), "x");
    for name in bad.iter().filter(|name| !["apart", "half"].contains(name)) {
        assert_quarantined(&client.post(&format!("/{name}"), "x"), name);
    }
    for path in ["/half/", "/half/a/b"] {
        assert_quarantined(&client.get(path), "half");
        assert_quarantined(&client.post(path, "x"), "half");
    }
    assert_eq!(client.post("/half", "x").text(), "x", "that is another path");

    assert_eq!(degraded(&server), names(&bad));
    let ready = server.admin().get("/readyz").text();
    for word in [
        "functions[2].path",
        "truncated",
        "env.KEY",
        "functions[5].dirs[0].host",
        "functions[6].http_hosts",
        &address,
        "unreachable",
    ] {
        assert!(ready.contains(word), "{word} is missing in {ready}");
        server.wait_for_log(word);
    }
    let status = server.admin().get("/status").json();
    assert_eq!((&status["functions"], &status["quarantined"]), (&json!(3), &json!(7)), "{status}");
    let half = server.admin().function("half").expect("it is listed");
    assert_eq!((&half["state"], &half["settings"]["methods"]), (&json!("quarantined"), &json!(["GET"])), "{half}");
    assert!(half["problem"].as_str().expect("a reason").contains("truncated"), "{half}");
    let list = command(&server, &["list"]).text();
    assert!(list.lines().any(|line| line.starts_with("half ") && line.contains(" quarantined ")), "{list}");
    let status = command(&server, &["status"]).text();
    assert!(status.contains("  function half: "), "{status}");
    let logs = command(&server, &["logs", "half"]);
    assert!(logs.code() == 1 && logs.stderr.contains("quarantined"), "{}", logs.stderr);
    let metrics = server.admin().get("/metrics").text();
    for line in [
        r#"sledge_requests_total{function="half",tenant="blue",outcome="quarantined"} 4"#,
        r#"sledge_requests_total{function="gone",tenant="default",outcome="quarantined"} 1"#,
        r#"sledge_problems{subject="function gone"} 1"#,
        "sledge_functions 3",
    ] {
        assert!(metrics.lines().any(|other| other == line), "{line} is missing in {metrics}");
    }
    // A function of its tenant that calls it gets the same error; other tenants do not learn that it exists.
    assert_eq!(client.post("/blue-caller", "invoke half x").text(), "error 56\n");
    assert_eq!(client.post("/caller", "invoke half x\ninvoke gone x").text(), "error 44\nerror 56\n");
    server.stop();

    let mut config = config;
    config["ready_when_degraded"] = false.into();
    let server = Server::start(config);
    assert_eq!(server.admin().get("/readyz").status, 503);
    assert_eq!(server.client().post("/anything", "x").text(), "x");
    server.stop();
}

#[test]
fn on_the_command_line_one_bad_file_is_not_all() {
    let folder = tempfile::tempdir().expect("a folder");
    let bad = truncated(folder.path());
    let mut command = sledge_command(&["serve", "--listen", "127.0.0.1:0"]);
    let server = Server::start_with(command.arg(&bad).arg(programs::function("echo.wat")));
    assert_eq!(server.client().post("/echo", "x").text(), "x");
    assert_quarantined(&server.client().post("/truncated", "x"), "truncated");
    server.stop();
    let other = folder.path().join("other.so");
    fs::copy(&bad, &other).expect("a copy");
    let done = process::run(sledge_command(&["serve", "--listen", "127.0.0.1:0"]).args([&bad, &other]), b"", TIME_MAX);
    assert_eq!(done.code(), 1, "{}", done.stderr);
    assert!(done.stderr.contains("function other: ") && done.stderr.contains("function truncated: "), "{}", done.stderr);
}

/// A version that works is never given up for one that does not.
#[test]
fn sighup_with_one_bad_file_keeps_what_was_served() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("f.wasm");
    fs::write(&path, saying("one")).expect("write the module");
    let f = |route: &str| json!({ "name": "f", "path": path, "route": route });
    let all = entry_with("all", "echo.wat", &json!({ "route": "/*" }));
    let server = Server::start(json!({ "functions": [f("/f"), all] }));
    let client = server.client();
    fs::write(&path, b"\0asm nonsense").expect("write the module");
    let new = json!({ "name": "new", "path": folder.path().join("new.so") });
    reload(&server, &json!([f("/f"), all, new, entry("added", "echo.wat")]), "added added; quarantined f, new");
    assert_eq!((client.post("/f", "").text(), client.post("/added", "x").text()), ("one".to_owned(), "x".to_owned()));
    assert_quarantined(&client.post("/new", ""), "new");
    assert_eq!(degraded(&server), names(&["f", "new"]));
    let shown = server.admin().function("f").expect("it is there");
    assert_eq!(shown["state"], "served");
    assert!(shown["problem"].as_str().expect("a reason").contains("the previous version stays in service"), "{shown}");
    // Where its route goes to another, it cannot stay.
    let other = entry_with("other", "echo.wat", &json!({ "route": "/f" }));
    reload(&server, &json!([f("/elsewhere"), all, other]), "added other; removed added, new; quarantined f");
    assert_eq!(client.post("/f", "x").text(), "x");
    assert_quarantined(&client.post("/elsewhere", ""), "f");
    // Put right, it is there again.
    fs::write(&path, saying("two")).expect("write the module");
    reload(&server, &json!([f("/elsewhere"), all]), "added f; removed other");
    assert_eq!((client.post("/elsewhere", "").text().as_str(), client.post("/f", "x").text().as_str()), ("two", "x"));
    assert_eq!(degraded(&server), [""; 0]);
    server.stop();
}

/// A server whose deployed functions are `a`, `b` and `c`, each of a tenant and at a route of its own, beside one at all other paths; stopped.
fn deployed(state: &Path) -> Value {
    let config = json!({ "state_dir": state, "functions": [entry_with("all", "echo.wat", &json!({ "route": "/*" }))] });
    let server = Server::start(config.clone());
    for name in ["a", "b", "c"] {
        let settings = json!({ "route": format!("/of/{name}"), "tenant": format!("tenant-{name}") });
        assert_eq!(server.admin().deploy(name, &settings, &saying(name)).status, 200);
    }
    server.stop();
    config
}

/// The file of a deployed function's module.
fn module_of(state: &Path, name: &str) -> PathBuf {
    let mut files = fs::read_dir(state).expect("the folder").map(|file| file.expect("a file").path());
    let is_module = |path: &PathBuf| {
        let file = path.file_name().expect("a name").to_string_lossy().into_owned();
        file.starts_with(&format!("{name}-")) && file.ends_with(".wasm")
    };
    files.find(is_module).expect("the module")
}

fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).expect("the file");
    bytes[at] ^= 1;
    fs::write(path, bytes).expect("write the file");
}

fn file_names(state: &Path, name: &str) -> Vec<String> {
    let files =
        fs::read_dir(state).expect("the folder").map(|file| file.expect("a file").file_name().to_string_lossy().into_owned());
    files.filter(|file| file.starts_with(name)).collect()
}

#[test]
fn a_flipped_byte_in_state_dir_concerns_one_function() {
    let folder = tempfile::tempdir().expect("a folder");
    let state = folder.path();
    let config = deployed(state);
    let settings = state.join("a.json");
    let good = fs::read(&settings).expect("the settings");
    let tenant = good.windows(8).position(|bytes| bytes == b"tenant-a").expect("the tenant");
    flip(&settings, tenant);
    flip(&module_of(state, "b"), 20);
    fs::write(state.join("no name.json"), "{}").expect("write a file");

    let server = Server::start(config.clone());
    let client = server.client();
    assert_eq!((client.post("/of/c", "").text().as_str(), client.post("/x", "x").text().as_str()), ("c", "x"));
    assert_quarantined(&client.post("/of/a", ""), "a");
    assert_quarantined(&client.post("/of/b", ""), "b");
    assert_eq!(degraded(&server), [names(&["a", "b"]), vec!["state_dir no name.json".to_owned()]].concat());
    assert_eq!(server.admin().function("b").expect("it is listed")["settings"]["tenant"], "tenant-b");
    assert!(server.admin().function("a").expect("it is listed").get("settings").is_none(), "they cannot be relied on");

    // A good version clears it, and keeps what is known of its settings.
    assert_eq!(server.admin().deploy("b", &json!({}), &saying("new b")).status, 200);
    assert_eq!((client.post("/of/b", "").text().as_str(), client.post("/b", "x").text().as_str()), ("new b", "x"));
    assert_eq!(server.admin().function("b").expect("it is there")["settings"]["tenant"], "tenant-b");
    // Settings that are lost are not silently the defaults.
    let refused = server.admin().deploy("a", &json!({}), &saying("new a"));
    assert!(refused.status == 409 && refused.text().contains("--reset"), "{}", refused.text());
    // No other function can take its path.
    let refused = server.admin().deploy("d", &json!({ "route": "/of/a" }), &saying("d"));
    assert!(refused.status == 409 && refused.text().contains("belongs to `a`, which is quarantined"), "{}", refused.text());
    // The file from a backup is as good.
    fs::write(&settings, &good).expect("write the settings");
    fs::remove_file(state.join("no name.json")).expect("remove the file");
    server.signal(Signal::HUP);
    server.wait_for_log("added a");
    assert_eq!(client.post("/of/a", "").text(), "a");
    assert_eq!(degraded(&server), [""; 0]);
    server.stop();

    // Where not even the route is known, the path of its name is held. With --reset it is served again; removed, nothing of it is left.
    fs::write(&settings, b"{").expect("write the settings");
    fs::write(module_of(state, "c"), b"").expect("write the module");
    let server = Server::start(config.clone());
    let client = server.client();
    assert_quarantined(&client.post("/a", ""), "a");
    assert_quarantined(&client.post("/of/c", ""), "c");
    let reset =
        server.admin().ask("PUT", "/functions/a?reset=true", "sledge-settings: {\"tenant\": \"tenant-a\"}\r\n", &saying("reset"));
    assert_eq!((reset.status, client.post("/a", "").text().as_str()), (200, "reset"), "{}", reset.text());
    let removed = command(&server, &["remove", "c"]);
    assert_eq!((removed.code(), removed.text().as_str()), (0, "removed c\n"), "{}", removed.stderr);
    assert_eq!(file_names(state, "c"), [""; 0]);
    assert_eq!((client.post("/of/c", "x").text().as_str(), degraded(&server)), ("x", Vec::new()));
    server.stop();
    let server = Server::start(config);
    assert_eq!((server.client().post("/a", "").text().as_str(), degraded(&server)), ("reset", Vec::new()));
    server.stop();
}

/// The configuration comes first, at SIGHUP as at a start; what was deployed is not lost, and can be removed.
#[test]
fn a_function_that_is_configured_and_deployed_is_the_configurations() {
    let folder = tempfile::tempdir().expect("a folder");
    let state = folder.path();
    let mut config = deployed(state);
    let server = Server::start(config.clone());
    let client = server.client();
    let all = config["functions"][0].clone();
    // One has the name of `a`, the other one the route of `b`.
    let both = json!([all, entry("a", "echo.wat"), entry_with("mine", "echo.wat", &json!({ "route": "/of/b" }))]);
    let shows = |client: &Client, server: &Server| {
        assert_eq!((client.post("/a", "x").text().as_str(), client.post("/of/b", "x").text().as_str()), ("x", "x"));
        assert_quarantined(&client.post("/of/a", ""), "a");
        assert_eq!((client.post("/of/c", "").text(), degraded(server)), ("c".to_owned(), names(&["a", "b"])));
        let list = server.admin().get("/functions").json();
        let of_a = list.as_array().expect("a list").iter().filter(|function| function["name"] == "a");
        let of_a: Vec<_> = of_a.map(|function| (function["origin"].clone(), function["state"].clone())).collect();
        assert_eq!(of_a, [(json!("config"), json!("served")), (json!("deployed"), json!("quarantined"))]);
    };
    reload(&server, &both, "added mine; replaced a; quarantined b");
    server.wait_for_log("sledge remove a");
    shows(&client, &server);
    let refused = server.admin().deploy("a", &json!({}), &saying("a"));
    assert!(refused.status == 409 && refused.text().contains("SIGHUP"), "{}", refused.text());
    // Where the configuration leaves them room, they are there again.
    reload(&server, &json!([all]), "added a, b; removed a, mine");
    assert_eq!((client.post("/of/a", "").text().as_str(), client.post("/of/b", "").text().as_str()), ("a", "b"));
    assert_eq!(degraded(&server), [""; 0]);
    server.stop();

    config["functions"] = both;
    let server = Server::start(config.clone());
    shows(&server.client(), &server);
    for name in ["a", "b"] {
        let removed = command(&server, &["remove", name]);
        assert_eq!((removed.code(), removed.text()), (0, format!("removed {name}\n")), "{}", removed.stderr);
    }
    assert_eq!(server.client().post("/a", "x").text(), "x");
    assert_eq!(degraded(&server), [""; 0]);
    assert_eq!((file_names(state, "a"), file_names(state, "b")), (Vec::new(), Vec::new()));
    server.stop();

    // Of two that have the name, one that can be served comes before one that cannot.
    config["functions"][1] = json!({ "name": "c", "path": "/nonexistent/c.so", "route": "/c" });
    let server = Server::start(config);
    assert_eq!(server.client().post("/of/c", "").text(), "c");
    assert_quarantined(&server.client().post("/c", ""), "c");
    assert_eq!(degraded(&server), names(&["c"]));
    server.stop();
}
