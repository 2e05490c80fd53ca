//! Secrets of functions: a configuration says where they are, and only a configuration does.

use rustix::process::Signal;
use serde_json::{Value, json};
use sledge_tests::admin::Admin;
use sledge_tests::http::{Client, TIME_MAX};
use sledge_tests::process;
use sledge_tests::programs::{self, sledge_command};
use sledge_tests::server::Server;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

fn write(path: &Path, secret: &str, mode: u32) {
    fs::write(path, secret).expect("write a secret");
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("chmod");
}

fn config(folder: &Path, env: &Value) -> Value {
    let function = json!({ "name": "args", "path": programs::function("args.c"), "env": env });
    json!({ "listen": "127.0.0.1:0", "admin": folder.join("admin.sock"), "functions": [function] })
}

fn environment(client: &Client) -> String {
    let text = client.post("/args", "").text();
    text.lines().filter_map(|line| line.strip_prefix("env ")).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_function_has_secrets_from_files_and_from_the_servers_environment() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, secret) = (folder.path().join("sledge.json"), folder.path().join("secret"));
    write(&secret, "hunter2\n", 0o600);
    let env = json!({ "TEST_A": { "file": "secret" }, "TEST_B": { "env": "SLEDGE_TEST_SECRET" }, "TEST_C": "text" });
    fs::write(&file, config(folder.path(), &env).to_string()).expect("write the configuration");
    let mut command = sledge_command(&["serve", "--config"]);
    let mut server = Server::start_with(command.arg(&file).env("SLEDGE_TEST_SECRET", "swordfish").env("SLEDGE_LOG", "debug"));
    let (client, admin) = (server.client(), Admin::new(folder.path().join("admin.sock")));
    assert_eq!(environment(&client), "TEST_A=hunter2 TEST_B=swordfish TEST_C=text");

    // A secret is as much a part of a function as its file is.
    let version = || admin.function("args").expect("it is there")["version"].as_u64();
    let first = version();
    server.signal(Signal::HUP);
    server.wait_for_log("nothing has changed");
    assert_eq!(version(), first);
    write(&secret, "hunter3", 0o600);
    server.signal(Signal::HUP);
    server.wait_for_log("replaced args");
    assert_eq!(environment(&client), "TEST_A=hunter3 TEST_B=swordfish TEST_C=text");
    write(&secret, "hunter4", 0o644);
    server.signal(Signal::HUP);
    server.wait_for_log("env.TEST_A");
    server.wait_for_log("chmod 600");
    assert_eq!(environment(&client), "TEST_A=hunter3 TEST_B=swordfish TEST_C=text");

    // A client that may deploy may not read the server's secrets thereby.
    let module = wat::parse_str("(module (func (export \"_start\")))").expect("WAT");
    for place in [json!({ "env": "SLEDGE_TEST_SECRET" }), json!({ "file": secret })] {
        let reply = admin.deploy("thief", &json!({ "env": { "TEST_A": place } }), &module);
        assert_eq!(reply.status, 400, "{}", reply.text());
        assert!(
            reply.text().contains("settings.env.TEST_A") && reply.text().contains("only be set in the configuration file"),
            "{}",
            reply.text()
        );
    }

    let shown = ["list", "status"].map(|what| {
        let done = process::run(sledge_command(&[what, "--admin"]).arg(folder.path().join("admin.sock")), b"", TIME_MAX);
        assert_eq!(done.code(), 0, "{what}: {}", done.stderr);
        done.text()
    });
    server.signal(Signal::TERM);
    assert!(server.wait(TIME_MAX).success());
    // The secrets are words: digits would be found by chance in a time, a port or a digest.
    let shown = shown.concat() + &server.whole_log();
    assert!(shown.contains("args") && !shown.contains("hunter") && !shown.contains("swordfish"), "{shown}");
}

#[test]
fn a_secret_that_cannot_be_had_is_named_by_its_key_and_its_place() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, secret) = (folder.path().join("sledge.json"), folder.path().join("secret"));
    write(&secret, "hun\0ter2", 0o600);
    let place = secret.display().to_string();
    for (value, words) in [
        (json!({ "env": "SLEDGE_TEST_NO_SECRET" }), ["env.KEY", "SLEDGE_TEST_NO_SECRET: is not set"]),
        (json!({ "file": "nowhere" }), ["env.KEY", "nowhere: No such file"]),
        (json!({ "file": secret }), [place.as_str(), "zero byte"]),
        (json!({ "hunter2": "x" }), ["functions[0].env.KEY", "{ file = "]),
        (json!(["hunter2"]), ["functions[0].env.KEY", "{ file = "]),
    ] {
        fs::write(&file, config(folder.path(), &json!({ "KEY": value })).to_string()).expect("write the configuration");
        for command in [["config", "check"].as_slice(), &["serve", "--config"]] {
            let done = process::run(sledge_command(command).arg(&file), b"", TIME_MAX);
            assert_eq!(done.code(), 1, "{command:?} {value}: {}", done.stderr);
            assert!(words.iter().all(|word| done.stderr.contains(word)), "{command:?} {words:?}: {}", done.stderr);
            assert!(!done.stderr.contains("hunter2"), "{}", done.stderr);
        }
    }
}

#[test]
fn a_function_that_is_run_once_gets_variables_that_are_named() {
    let run = |options: &[&str]| {
        let mut command = sledge_command(&["run"]);
        process::run(command.args(options).arg(programs::function("args.c")).env("TEST_SECRET", "swordfish"), b"", TIME_MAX)
    };
    let done = run(&["--env", "TEST_SECRET", "--env", "TEST_A=1"]);
    assert!(
        done.code() == 0 && done.text().ends_with("env TEST_A=1\nenv TEST_SECRET=swordfish\n"),
        "{}{}",
        done.text(),
        done.stderr
    );
    let done = run(&["--env", "TEST_NO_SECRET"]);
    assert!(done.code() == 1 && done.stderr.contains("TEST_NO_SECRET: is not set"), "{}", done.stderr);
    assert_eq!(run(&["--env", "=1"]).code(), 2);
}
