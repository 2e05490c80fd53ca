//! Gradual deployments: a part of a function's requests goes to its next version, which is promoted or given up.

use crate::deploy::{command, saying};
use crate::{entry, eventually};
use rustix::process::Signal;
use serde_json::{Value, json};
use sledge_tests::http::TIME_MAX;
use sledge_tests::server::Server;
use std::fs;
use std::path::Path;

/// What a command prints when it succeeds.
fn printed(server: &Server, args: &[&str]) -> String {
    let done = command(server, args);
    assert_eq!(done.code(), 0, "{args:?}: {}", done.stderr);
    done.text()
}

/// What it says when it fails.
fn refused(server: &Server, args: &[&str]) -> String {
    let done = command(server, args);
    assert_eq!(done.code(), 1, "{args:?}: {}", done.text());
    done.stderr
}

/// Deploys a module as the next version of `f`.
fn deploy(server: &Server, folder: &Path, module: &[u8], args: &[&str]) -> String {
    let file = folder.join("f.wasm");
    fs::write(&file, module).expect("write the module");
    printed(server, &[&["deploy", file.to_str().expect("a path")], args].concat())
}

/// A module that ends each request like that.
fn ending(code: &str) -> Vec<u8> {
    let text = format!(
        r#"(module
            (import "sledge:http" "status" (func $status (param i32) (result i32)))
            (import "sledge:http" "stream" (func $stream (param i64) (result i32)))
            (memory (export "memory") 1)
            (func (export "sledge_handle") (result i32) {code}))"#
    );
    wat::parse_str(text).expect("WAT")
}

/// How many of so many requests are answered with that.
fn answered(server: &Server, count: usize, with: &str) -> usize {
    let client = server.client();
    (0..count).filter(|_| client.get("/f").text() == with).count()
}

fn info(server: &Server) -> Value {
    server.admin().function("f").expect("it is there")
}

#[test]
fn a_part_of_the_requests_goes_to_the_next_version_until_it_is_promoted() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(json!({ "state_dir": folder.path().join("state"), "functions": [] }));
    deploy(&server, folder.path(), &saying("one"), &[]);
    let said = deploy(&server, folder.path(), &saying("two"), &["--percent", "30", "--set", "deadline_ms=20700"]);
    assert!(said.starts_with("30 % of the requests of f go to version 2; `sledge promote f`"), "{said}");
    assert!(said.ends_with("\ndeadline_ms: 30000 -> 20700\n"), "{said}");
    let two = answered(&server, 600, "two");
    assert!((100..260).contains(&two), "{two}");
    let present = json!({ "requests": 600 - two, "failures": 0 });
    eventually("all are counted", || {
        let seen = info(&server);
        seen["canary"]["requests"] == two && seen["canary"]["present"] == present
    });
    let seen = info(&server);
    assert_eq!((&seen["version"], &seen["canary"]["version"], &seen["canary"]["percent"]), (&json!(1), &json!(2), &json!(30)));
    assert!(printed(&server, &["list"]).contains("  1, 30 % 2  "), "{}", printed(&server, &["list"]));
    let versions = || server.admin().get("/functions/f/versions").json().as_array().expect("a list").len();
    assert_eq!(versions(), 1);

    let said = printed(&server, &["promote", "f", "--percent", "99"]);
    assert!(said.starts_with("99 % of the requests of f go to version 2"), "{said}");
    assert!(answered(&server, 200, "two") > 180);
    let said = printed(&server, &["promote", "f"]);
    assert_eq!(said, "all requests of f go to its next version as version 2\ndeadline_ms: 30000 -> 20700\n");
    assert_eq!((answered(&server, 100, "two"), versions(), &info(&server)["version"]), (100, 2, &json!(2)));
    assert!(info(&server)["canary"].is_null());
    // What is deployed gradually from now on is beside that version.
    deploy(&server, folder.path(), &saying("three"), &["--percent", "50"]);
    assert_eq!(info(&server)["canary"]["version"], 3);
    assert_eq!(answered(&server, 100, "one"), 0);
    server.stop();
}

#[test]
fn requests_with_the_same_header_go_to_the_same_version() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(json!({ "functions": [] }));
    deploy(&server, folder.path(), &saying("one"), &[]);
    let said = deploy(&server, folder.path(), &saying("two"), &["--percent", "40", "--sticky", "X-User"]);
    assert!(said.contains("go to version 2, by `x-user`; "), "{said}");
    let client = server.client();
    let said = |user: usize| {
        let user = format!("user-{user}");
        let reply = client.try_request("GET", "/f", b"", &[("x-user", &user)]).expect("a reply");
        reply.text()
    };
    let to_two = || (0..100).filter(|user| said(*user) == "two").collect::<Vec<_>>();
    let before = to_two();
    assert!((15..65).contains(&before.len()), "{before:?}");
    assert_eq!(to_two(), before);
    printed(&server, &["promote", "f", "--percent", "80"]);
    let after = to_two();
    assert!(after.len() > before.len() && before.iter().all(|user| after.contains(user)), "{before:?} {after:?}");
    server.stop();
}

/// Whether it traps, answers with a status, or breaks off.
#[test]
fn a_version_that_fails_more_often_is_given_up() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(json!({ "functions": [] }));
    deploy(&server, folder.path(), &saying("one"), &[]);
    let bad = [
        "unreachable",
        "(drop (call $status (i32.const 500))) (i32.const 0)",
        "(drop (call $stream (i64.const 5))) (i32.const 0)",
    ];
    for code in bad {
        deploy(&server, folder.path(), &ending(code), &["--percent", "50"]);
        let client = server.client();
        let ask = || client.try_request("GET", "/f", b"", &[]);
        // Fewer than are compared.
        while info(&server)["canary"]["requests"].as_u64().expect("it is under way") < 150 {
            let _ = ask();
        }
        eventually("the version is given up", || {
            (0..20).for_each(|_| drop(ask()));
            info(&server)["canary"].is_null()
        });
        assert_eq!(answered(&server, 50, "one"), 50, "{code}");
        let why = info(&server)["given_up"].as_str().expect("it says why").to_owned();
        let failed = why.split_once("was given up: 100.0 % of ").and_then(|(_, rest)| rest.split_once(' '));
        let count = failed.and_then(|(count, _)| count.parse::<u64>().ok());
        assert!(count >= Some(200) && why.contains("failed, and 0.0 % of "), "{why}");
        server.wait_for_log("the gradual deployment was given up");
    }
    // A status that is the client's fault is none of the version's.
    deploy(&server, folder.path(), &ending("(drop (call $status (i32.const 404))) (i32.const 0)"), &["--percent", "60"]);
    let client = server.client();
    (0..500).for_each(|_| drop(client.get("/f")));
    let seen = info(&server);
    assert!(seen["given_up"].is_null() && seen["canary"]["failures"] == 0, "{seen}");
    assert!(seen["canary"]["requests"].as_u64() > Some(200), "{seen}");
    server.stop();
}

#[test]
fn a_gradual_deployment_ends_with_a_rollback_another_deployment_and_the_server() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = json!({ "state_dir": folder.path().join("state"), "functions": [] });
    let mut server = Server::start(config.clone());
    deploy(&server, folder.path(), &saying("one"), &[]);
    deploy(&server, folder.path(), &saying("two"), &["--percent", "99"]);
    let said = printed(&server, &["rollback", "f"]);
    assert_eq!(said, "version 2 of f was given up; all requests go to the version before it\n");
    assert_eq!((answered(&server, 50, "one"), info(&server)["given_up"].is_null()), (50, true));

    deploy(&server, folder.path(), &saying("two"), &["--percent", "99"]);
    deploy(&server, folder.path(), &saying("three"), &["--percent", "99"]);
    assert!(answered(&server, 100, "two") == 0 && answered(&server, 100, "three") > 80);
    deploy(&server, folder.path(), &saying("four"), &[]);
    assert_eq!((answered(&server, 50, "four"), info(&server)["canary"].is_null()), (50, true));
    assert_eq!(info(&server)["version"], 2);

    // Not for the next server.
    deploy(&server, folder.path(), &saying("five"), &["--percent", "99"]);
    server.signal(Signal::KILL);
    assert!(!server.wait(TIME_MAX).success());
    let server = Server::start(config);
    assert_eq!((answered(&server, 50, "four"), info(&server)["canary"].is_null()), (50, true));
    deploy(&server, folder.path(), &saying("five"), &["--percent", "99"]);
    assert_eq!(printed(&server, &["remove", "f"]), "removed f\n");
    assert_eq!(server.client().get("/f").status, 404);
    // Nothing of what has gone is kept.
    eventually("all versions have gone", || server.admin().get("/status").json()["retired_versions"] == 0);
    server.stop();
}

#[test]
fn what_cannot_be_deployed_gradually_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(json!({ "functions": [entry("echo", "echo.wat")] }));
    let file = folder.path().join("f.wasm");
    fs::write(&file, saying("one")).expect("write the module");
    let file = file.to_str().expect("a path");
    let gradually = ["deploy", file, "--percent", "10"];
    assert!(refused(&server, &gradually).contains("no version of `f` is served"));
    printed(&server, &["deploy", file]);
    let message = refused(&server, &[&gradually[..], &["--set", "route=/other"]].concat());
    assert!(message.contains("settings.route") && message.contains("without --percent"), "{message}");
    let message = refused(&server, &[&gradually[..], &["--set", "methods=[\"PUT\"]"]].concat());
    assert!(message.contains("settings.methods"), "{message}");
    assert!(refused(&server, &[&gradually[..], &["--name", "echo"]].concat()).contains("`echo` is in the configuration"));
    assert!(refused(&server, &["promote", "f"]).contains("no version of `f` is being deployed gradually"));
    assert!(refused(&server, &["promote", "nothing"]).contains("there is no function `nothing`"));
    for args in [["--percent", "0"], ["--percent", "100"], ["--sticky", "x-user"]] {
        let done = command(&server, &[&["deploy", file], &args[..]].concat());
        assert_eq!(done.code(), 2, "{args:?}: {}", done.stderr);
    }
    for (query, word) in [("percent=100", "from 1 to 99"), ("percent=x", "from 1 to 99"), ("percent=5&sticky=a(b", "header")] {
        let reply = server.admin().ask("PUT", &format!("/functions/f?{query}"), "", &saying("two"));
        assert!(reply.status == 400 && reply.text().contains(word), "{query}: {reply:?}");
    }
    assert_eq!(server.admin().ask("GET", "/functions/f/promote", "", b"").status, 405);
    assert_eq!(answered(&server, 10, "one"), 10);
    server.stop();
}
