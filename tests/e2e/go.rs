//! The SDK for Go, by stock Go: everything that it has, in a command, and a reactor. And a component by stock Go, without it.

use serde_json::json;
use sledge_tests::http::{Raw, post_bytes};
use sledge_tests::server::Server;
use sledge_tests::{process, programs};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const BUILD_TIME_MAX: Duration = Duration::from_secs(600);

/// What `keys` of examples/conformance writes.
const KEYS: &str = "get: not found
set: true <nil>
get: true true <nil>
exists: true <nil>
increment: 40 <nil>
increment: 42 <nil>
increment: true
swap: false true <nil>
swap: true true <nil>
commit: false true <nil>
commit: true <nil>
get many: \"bee\" true
get many: \"\" false
get many: \"x\" true
get many: \"\" true
get many: <nil>
keys: [\"a\" \"b\" \"empty\"] <nil>
keys: [] <nil>
";

/// Runs `go` in the SDK's folder; whether there is one.
fn go(arguments: &[&str]) -> bool {
    go_in(&programs::tests_folder().join("../sdk/go"), arguments)
}

fn go_in(folder: &Path, arguments: &[&str]) -> bool {
    if Command::new("go").arg("version").output().is_err() {
        eprintln!("{}: NOT CHECKED: it needs go", folder.display());
        return false;
    }
    let mut go = Command::new("go");
    go.args(arguments).current_dir(folder);
    if arguments[0] == "build" {
        go.envs([("GOOS", "wasip1"), ("GOARCH", "wasm")]);
    }
    let done = process::run(&mut go, b"", BUILD_TIME_MAX);
    assert!(done.status.success(), "{go:?}: {}{}", done.text(), done.stderr);
    true
}

/// The artifact of an example, if there is a `go`.
fn example(name: &str, mode: &str) -> Option<PathBuf> {
    let module = programs::folder().join(format!("go-{name}.wasm"));
    let (artifact, path) = (module.with_extension("so"), module.to_str().expect("UTF-8"));
    if !go(&["build", mode, "-o", path, &format!("./examples/{name}")]) {
        return None;
    }
    let compiled = programs::run_awsm(&["compile", "-O", "0", path, "-o", artifact.to_str().expect("UTF-8")]);
    assert_eq!(compiled.code(), 0, "{}{}", compiled.text(), compiled.stderr);
    Some(artifact)
}

#[test]
fn the_go_sdk_passes_its_own_tests() {
    if go(&["vet", "./..."]) {
        go(&["test", "./..."]);
    }
}

/// The module that takes the place of google.golang.org/grpc, beside a host in the process.
#[test]
fn the_grpc_module_for_go_passes_its_own_tests() {
    let folder = programs::tests_folder().join("../sdk/grpc/go");
    if go_in(&folder, &["vet", "./..."]) {
        go_in(&folder, &["test", "./..."]);
    }
}

#[test]
fn a_command_uses_everything_of_the_go_sdk() {
    let Some(artifact) = example("conformance", "-buildmode=exe") else { return };
    let upstream = Server::start(json!({ "functions": [{ "name": "up", "path": artifact, "route": "/up/*" }] }));
    let function = json!({
        "name": "conformance", "path": artifact, "route": "/c/*", "deadline_ms": 20_000,
        "http_hosts": [upstream.address.to_string()], "phases": [{ "id": 1, "name": "one", "cpu_us": 500 }],
    });
    let server = Server::start(json!({ "kv": "memory", "functions": [function] }));
    let ask = |path: &str, body: &str| server.client().post(&format!("/c/{path}"), body);

    let head = ask("head?q=1", "");
    assert_eq!((head.status, head.text().as_str()), (201, "POST /c/head?q=1 \"\" \"\"\n"));
    assert_eq!((head.header("content-type"), head.header("x-one")), (Some("text/plain"), Some("1")));
    server.wait_for_log("a warning");
    assert_eq!(ask("kv", "").text(), KEYS);
    let replies = "7 \"INVOKED\" <nil>\n10000 \"LONG LONG\" <nil>\n3 \"TWO\" <nil>\n3 \"ONE\" <nil>\n0 \"\" not found\n";
    assert_eq!(ask("call", "").text(), replies);
    assert_eq!(ask("fetch", &format!("http://{}/up/echo", upstream.address)).text(), "200 true \"FETCHED\" <nil>\n");
    assert_eq!(ask("fetch", "http://127.0.0.1:1/").text(), "not allowed\n");
    assert_eq!(ask("error", "").status, 500);
    server.wait_for_log("no reply today");
    assert_eq!(ask("status", "").status, 500);
    server.wait_for_log("status 99: invalid");

    let mut raw = Raw::connect(server.address);
    raw.send(post_bytes("/c/stream", b"", "te: trailers\r\nconnection: close\r\n"));
    let reply = String::from_utf8(raw.everything()).expect("text");
    assert!(reply.contains("trailer: x-end\r\n") && reply.ends_with("0\r\nx-end: yes\r\n\r\n"), "{reply}");
    server.stop();
    upstream.stop();
}

#[test]
fn a_reactor_in_go_keeps_counts_in_the_store() {
    let Some(artifact) = example("counter", "-buildmode=c-shared") else { return };
    let function = |snapshot: &str| json!({ "name": snapshot, "path": artifact, "snapshot": snapshot });
    let server = Server::start(json!({ "kv": "memory", "functions": [function("off"), function("shared-seed")] }));
    for name in ["off", "shared-seed"] {
        for count in 1..=3 {
            let reply = server.client().post(&format!("/{name}"), "");
            assert_eq!((reply.status, reply.text()), (200, format!("/{name}: {count}\n")));
        }
    }
    server.stop();
}

/// A component whose functions for memory are those of examples/four-languages. Go's garbage collector would begin while the host passes it a part of the body.
#[test]
fn a_component_in_go_reads_large_bodies() {
    let folder = programs::folder().join("go-component");
    fs::create_dir_all(&folder).expect("a folder");
    let tests = programs::tests_folder();
    let source = tests.join("e2e/functions/go-component");
    let memory = tests.join("../examples/four-languages/ledger/memory.go");
    for file in [source.join("main.go"), source.join("go.mod"), memory] {
        fs::copy(&file, folder.join(file.file_name().expect("a name"))).expect("copy a file");
    }
    if !go_in(&folder, &["build", "-buildmode=c-shared", "-o", "app.core.wasm", "."]) {
        return;
    }
    let file = |name: &str| folder.join(name).to_str().expect("UTF-8").to_owned();
    let wit = tests.join("../benches/peers/component.wit").to_str().expect("UTF-8").to_owned();
    let (core, component, artifact) = (file("app.core.wasm"), file("app.wasm"), file("app.so"));
    for arguments in [
        ["componentize", &core, "--wit", &wit, "--world", "function", "-o", &component].as_slice(),
        &["compile", "-O", "0", &component, "-o", &artifact],
    ] {
        let done = programs::run_awsm(arguments);
        assert_eq!(done.code(), 0, "{arguments:?}: {}{}", done.text(), done.stderr);
    }
    let function = json!({ "name": "app", "path": artifact, "snapshot": "shared-seed" });
    let server = Server::start(json!({ "functions": [function] }));
    for bytes in [1, 700_000, 3_000_000] {
        let reply = server.client().post("/app", vec![b'a'; bytes]);
        assert_eq!((reply.status, reply.text()), (200, bytes.to_string()), "{}", server.log());
    }
    server.stop();
}
