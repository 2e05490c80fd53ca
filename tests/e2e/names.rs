//! Names in what strangers send to the admin API: they write no lines into the server's log, and nothing that acts on an operator's terminal.

use crate::deploy::command;
use crate::entry;
use serde_json::json;
use sledge_tests::server::Server;
use std::fs;

/// A name as the text format spells it: it ends its line, forges one, clears the terminal and turns the direction of what follows.
const NAME: &str = r"a\nforged: line\1b[2J\c2\9b2J\e2\80\ae\0d";
/// How it is shown.
const SHOWN: &str = r"a\nforged: line\u{1b}[2J\u{9b}2J\u{202e}\r";

/// That a text says that, and nothing that acts.
fn assert_said(said: &str, words: &str) {
    assert!(said.contains(words), "{words:?} is not in {said:?}");
    let acts = |c: &char| c.is_control() && *c != '\n' || ('\u{202a}'..='\u{202e}').contains(c);
    assert_eq!(said.chars().find(acts), None, "{said:?}");
    assert!(!said.lines().any(|line| line.starts_with("forged")), "{said:?}");
}

/// Modules and components that are refused for their names, by what looks at imports, by the compiler's validators, and as functions.
#[test]
fn in_modules() {
    let server = Server::start(json!({ "functions": [entry("echo", "echo.wat")] }));
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in [
        ("twice", format!(r#"(module (func (export "{NAME}")) (func (export "{NAME}")))"#)),
        ("lacking", format!(r#"(component (core module $m (import "{NAME}" "f" (func))) (core instance (instantiate $m)))"#)),
        ("importing", format!(r#"(module (import "{NAME}" "f" (func)))"#)),
        ("entering", format!(r#"(module (func (export "{NAME}")))"#)),
    ] {
        let module = wat::parse_str(text).expect("it parses");
        let reply = server.admin().deploy(name, &json!({}), &module);
        assert_eq!(reply.status, 422, "{name}: {reply:?}");
        assert_said(reply.json()["error"].as_str().expect("an error"), SHOWN);
        let file = folder.path().join(format!("{name}.wasm"));
        fs::write(&file, module).expect("write the module");
        let done = command(&server, &["deploy", file.to_str().expect("a path")]);
        assert_eq!(done.code(), 1, "{name}");
        assert_said(&done.stderr, SHOWN);
    }
    let log = server.stop_for_log();
    assert_eq!(log.matches("a change through the admin API was refused").count(), 7, "{log}");
    // One line each: quotes and backslashes are escaped once more there.
    assert_said(&log, &SHOWN.replace('\\', r"\\"));
    assert!(log.lines().filter(|line| line.contains("refused")).all(|line| line.contains("forged: line")), "{log}");
}

/// Paths and settings that name nothing.
#[test]
fn in_requests() {
    let server = Server::start(json!({ "functions": [entry("echo", "echo.wat")] }));
    let admin = server.admin();
    let name = "f\u{9b}2J\u{202e}";
    for (method, target, status) in [
        ("GET", format!("/functions/{name}"), 404),
        ("GET", format!("/functions/{name}/logs"), 404),
        ("DELETE", format!("/functions/{name}"), 404),
        ("PUT", format!("/functions/{name}"), 400),
        ("GET", format!("/{name}"), 404),
    ] {
        let reply = admin.ask(method, &target, "", b"");
        assert_eq!(reply.status, status, "{method} {target}: {reply:?}");
        assert_said(reply.json()["error"].as_str().expect("an error"), "f\\u{9b}2J\\u{202e}");
    }
    let module = wat::parse_str(r#"(module (func (export "_start")))"#).expect("it parses");
    let hostile = "a\nforged: line\u{1b}[2J";
    for settings in [json!({ hostile: 1 }), json!({ "body": hostile }), json!({ "init": hostile })] {
        // As JSON may be written: what is no ASCII stands for itself.
        let reply = admin.deploy("f", &settings, &module);
        assert!([400, 422].contains(&reply.status), "{settings}: {reply:?}");
        assert_said(reply.json()["error"].as_str().expect("an error"), r"a\nforged: line\u{1b}[2J");
    }
    // What a client sets, an operator sees.
    assert_eq!(admin.deploy("f", &json!({ "args": ["\u{9b}2J"], "env": { "A": "b\nforged" } }), &module).status, 200);
    let shown = command(&server, &["status", "f"]);
    assert_said(&shown.text(), "f");
    assert_said(&server.stop_for_log(), "a change through the admin API was refused");
}
