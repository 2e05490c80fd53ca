//! Components that import what no server offers, as those of Spin's SDK for Python do: refused with advice that fits the place, or accepted by a setting.

use serde_json::{Value, json};
use sledge_tests::http::TIME_MAX;
use sledge_tests::process::{self, Finished};
use sledge_tests::programs::sledge_command;
use sledge_tests::server::Server;
use std::fs;
use std::path::{Path, PathBuf};

/// A command that imports what is not offered; `calls` makes it call that.
fn component(folder: &Path, name: &str, calls: bool) -> PathBuf {
    let body = if calls { "(call $f)" } else { "(i32.const 0)" };
    let text = format!(
        r#"(component
          (import "a:b/c@1.0.0" (instance $i (export "f" (func (result u32)))))
          (core func $f (canon lower (func $i "f")))
          (core module $m (import "" "f" (func $f (result i32))) (func (export "run") (result i32) {body}))
          (core instance $c (instantiate $m (with "" (instance (export "f" (func $f))))))
          (func $run (result (result)) (canon lift (core func $c "run")))
          (instance $r (export "run" (func $run))) (export "wasi:cli/run@0.2.0" (instance $r)))"#
    );
    let file = folder.join(name);
    fs::write(&file, wat::parse_str(text).expect("a component")).expect("write a component");
    file
}

/// Whether it was refused with these words and no advice for another place.
#[track_caller]
fn assert_refused(said: &str, advice: &str) {
    assert!(said.contains("`a:b/c@1.0.0` `f`: the interface is not offered"), "{said}");
    assert!(said.trim_end().ends_with(&format!("if it calls none of them, {advice}")), "{advice:?} does not end {said:?}");
}

fn sledge(folder: &Path, arguments: &[&str], file: &Path) -> Finished {
    let mut command = sledge_command(arguments);
    process::run(command.arg(file).env("CACHE_DIRECTORY", folder.join("cache")), b"", TIME_MAX)
}

/// Each way twice, in turns, with one cache: an artifact of one setting is none of the other.
#[test]
fn sledge_run_accepts_unknown_imports_by_a_flag() {
    let folder = tempfile::tempdir().expect("a folder");
    let component = component(folder.path(), "app.wasm", false);
    for _ in 0..2 {
        let done = sledge(folder.path(), &["run", "--allow-unknown-imports"], &component);
        assert_eq!(done.code(), 0, "{}", done.stderr);
        let done = sledge(folder.path(), &["run"], &component);
        assert_eq!(done.code(), 1, "{}", done.stderr);
        assert_refused(&done.stderr, "give --allow-unknown-imports");
    }
    let calling = self::component(folder.path(), "calling.wasm", true);
    let done = sledge(folder.path(), &["run", "--allow-unknown-imports"], &calling);
    assert_eq!(done.code(), 134, "{}", done.stderr);
}

#[test]
fn sledge_serve_accepts_unknown_imports_by_a_flag() {
    let folder = tempfile::tempdir().expect("a folder");
    let (good, calling) = (component(folder.path(), "good.wasm", false), component(folder.path(), "calling.wasm", true));
    let serve = ["serve", "--listen", "127.0.0.1:0", "--admin", "none"];
    assert_refused(&sledge(folder.path(), &serve, &good).stderr, "give --allow-unknown-imports");
    let mut command = sledge_command(&serve);
    command.arg("--allow-unknown-imports").args([&good, &calling]).env("CACHE_DIRECTORY", folder.path().join("cache"));
    let server = Server::start_with(&mut command);
    assert_eq!(server.client().post("/good", "").status, 200);
    let reply = server.client().post("/calling", "");
    assert_eq!((reply.status, &reply.json()["reason"]), (500, &json!("component")), "{}", reply.text());
    server.stop();
}

#[test]
fn a_configured_function_accepts_unknown_imports_by_a_setting() {
    let folder = tempfile::tempdir().expect("a folder");
    let component = component(folder.path(), "app.wasm", false);
    let config = |more: &Value| {
        let mut function = json!({ "name": "app", "path": component });
        for (key, value) in more.as_object().expect("an object") {
            function[key] = value.clone();
        }
        json!({ "listen": "127.0.0.1:0", "cache_dir": folder.path().join("cache"), "functions": [function] })
    };
    let server = Server::start(config(&json!({ "allow_unknown_imports": true })));
    assert_eq!(server.client().post("/app", "").status, 200);
    server.stop();
    let file = folder.path().join("refused.json");
    fs::write(&file, config(&json!({ "allow_unknown_imports": false })).to_string()).expect("write a configuration");
    for command in [["serve", "--config"].as_slice(), &["config", "check"]] {
        let done = sledge(folder.path(), command, &file);
        assert_eq!(done.code(), 1, "{}", done.stderr);
        assert_refused(&done.stderr, "set `allow_unknown_imports = true` for the function");
    }
}

#[test]
fn a_deployed_function_accepts_unknown_imports_by_a_setting() {
    let folder = tempfile::tempdir().expect("a folder");
    let module = fs::read(component(folder.path(), "app.wasm", false)).expect("the component");
    let server = Server::start(json!({ "cache_dir": folder.path().join("cache"), "functions": [] }));
    let deploy = |settings: &Value| server.admin().deploy("app", settings, &module);
    let assert_not_deployed = |settings: &Value| {
        let reply = deploy(settings);
        assert_eq!(reply.status, 422, "{}", reply.text());
        let advice = "deploy it with the setting `allow_unknown_imports` (`sledge deploy FILE --set allow_unknown_imports=true`)";
        assert_refused(reply.json()["error"].as_str().expect("an error"), advice);
    };
    assert_not_deployed(&json!({}));
    let reply = deploy(&json!({ "allow_unknown_imports": true }));
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_eq!(server.client().post("/app", "").status, 200);
    // It stays as the other settings do, and goes as they do.
    assert_eq!(deploy(&json!({})).status, 200);
    assert_not_deployed(&json!({ "allow_unknown_imports": null }));
    assert_eq!(server.admin().function("app").expect("the function")["settings"]["allow_unknown_imports"], json!(true));
    server.stop();
}
