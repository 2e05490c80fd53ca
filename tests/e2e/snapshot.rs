//! Reactors are initialised once, when they are loaded, and every request begins with what that left.

use serde_json::{Value, json};
use sledge_tests::process;
use sledge_tests::programs::{self, sledge_command};
use sledge_tests::server::Server;
use std::time::Duration;

use crate::entry_with;

const TIME_MAX: Duration = Duration::from_secs(120);

/// What a server says that does not start with this function.
pub(crate) fn refused(file: &str, more: &Value) -> String {
    let config = json!({ "listen": "127.0.0.1:0", "functions": [entry_with("f", file, more)] });
    let path = programs::folder().join(format!("refused-{}.json", more.to_string().replace(|c: char| !c.is_alphanumeric(), "-")));
    std::fs::write(&path, config.to_string()).expect("write the configuration");
    let done = process::run(sledge_command(&["serve", "--config"]).arg(&path), b"", TIME_MAX);
    assert_eq!((done.code(), done.text().as_str()), (1, ""), "{}", done.stderr);
    assert!(!done.stderr.contains("panicked"), "{}", done.stderr);
    done.stderr
}

/// Replies to some requests, one after the other.
fn replies(server: &Server, count: usize) -> Vec<Vec<u8>> {
    let client = server.client();
    let reply = |_| {
        let reply = client.post("/f", b"");
        assert_eq!(reply.status, 200, "{reply:?}");
        reply.body
    };
    (0..count).map(reply).collect()
}

#[test]
fn every_request_begins_with_what_the_initialisation_left() {
    for snapshot in ["on", "off", "shared-seed"] {
        let more = json!({ "init": "prepare", "snapshot": snapshot });
        let server = Server::start(json!({ "functions": [entry_with("f", "initial.wat", &more)] }));
        for reply in replies(&server, 20) {
            assert_eq!(String::from_utf8_lossy(&reply), "bbbbmt", "{snapshot}");
        }
        let server = Server::start(json!({ "functions": [entry_with("f", "initial.wat", &json!({ "snapshot": snapshot }))] }));
        assert_eq!(replies(&server, 1), [b"bbab--"], "{snapshot}, without `prepare`");
    }
}

#[test]
fn what_all_requests_would_share_is_refused_unless_accepted() {
    for (init, call) in [("random", "random_get"), ("clock", "clock_time_get"), ("input", "fd_read")] {
        let message = refused("initial-calls.wat", &json!({ "init": init }));
        for word in [call, init, "all requests", "snapshot = \"off\"", "snapshot = \"shared-seed\""] {
            let expected = if init == "input" && word == "all requests" { "each request" } else { word };
            assert!(message.contains(expected), "{init}: {expected:?} is missing in: {message}");
        }
        let server = |snapshot: &str| {
            let more = json!({ "init": init, "snapshot": snapshot });
            Server::start(json!({ "functions": [entry_with("f", "initial-calls.wat", &more)] }))
        };
        let shared = replies(&server("shared-seed"), 5);
        assert!(shared.iter().all(|reply| *reply == shared[0]), "{init}: {shared:?}");
        let own = replies(&server("off"), 5);
        let differ = own.iter().any(|reply| *reply != own[0]);
        assert_eq!(differ, init != "input", "{init}: {own:?}");
    }
    let message = refused("initial-calls.wat", &json!({ "init": "output", "snapshot": "shared-seed" }));
    assert!(
        message.contains("fd_write") && message.contains("snapshot = \"off\"") && !message.contains("or snapshot"),
        "{message}"
    );
}

/// As the settings of the same name do.
#[test]
fn the_command_line_says_when_functions_are_initialised() {
    let folder = tempfile::tempdir().expect("a folder");
    // `_initialize` asks for random numbers.
    let text = r#"(module
      (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
      (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
      (memory (export "memory") 1)
      (data (i32.const 0) "\10\00\00\00\08\00\00\00")
      (func (export "_initialize") (drop (call $random (i32.const 16) (i32.const 8))))
      (func (export "sledge_handle") (result i32)
        (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8))))"#;
    let file = folder.path().join("f.wasm");
    std::fs::write(&file, wat::parse_str(text).expect("WAT")).expect("write the module");
    let command = |snapshot: &[&str]| {
        let mut command = sledge_command(&["serve", "--listen", "127.0.0.1:0", "--admin", "none", "-O", "0"]);
        command.args(snapshot).arg(&file);
        command
    };
    for snapshot in [[].as_slice(), &["--snapshot", "on"]] {
        let done = process::run(&mut command(snapshot), b"", TIME_MAX);
        assert!(done.code() == 1 && done.stderr.contains("snapshot = \"shared-seed\""), "{snapshot:?}: {}", done.stderr);
    }
    for (snapshot, are_same) in [("shared-seed", true), ("off", false)] {
        let server = Server::start_with(&mut command(&["--snapshot", snapshot]));
        let replies = replies(&server, 5);
        assert_eq!(replies.iter().all(|reply| *reply == replies[0]), are_same, "{snapshot}: {replies:?}");
        server.stop();
    }
}

#[test]
fn what_is_the_same_for_every_request_is_allowed() {
    let more = json!({ "init": "environment", "env": { "A": "1", "B": "22" } });
    let server = Server::start(json!({ "functions": [entry_with("f", "initial-calls.wat", &more)] }));
    let reply = replies(&server, 1).remove(0);
    assert_eq!(reply[..8], [2, 0, 0, 0, 9, 0, 0, 0], "two variables of nine bytes");
    let server = Server::start(json!({ "functions": [entry_with("f", "initial-calls.wat", &json!({ "init": "log" }))] }));
    assert_eq!(replies(&server, 1), [b"0123456789abcdef"]);
    server.wait_for_log("said by init");
}

#[test]
fn an_initialisation_that_traps_exits_or_never_ends_is_an_error_when_loading() {
    let message = refused("initial-calls.wat", &json!({ "init": "trap" }));
    assert!(message.contains("`trap` trapped: out of bounds memory access"), "{message}");
    let message = refused("initial-calls.wat", &json!({ "init": "exit" }));
    assert!(message.contains("`exit` ended the program with status 3"), "{message}");
    let message = refused("initial-calls.wat", &json!({ "init": "exit-zero" }));
    assert!(message.contains("`exit-zero` ended the program with status 0"), "{message}");
    let message = refused("initial-calls.wat", &json!({ "init": "loop" }));
    assert!(message.contains("not done after 10 s: `loop`"), "{message}");
}

/// A program whose `main` never returns, as one that serves in `Runtime::block_on`.
#[test]
fn an_initialisation_may_be_left_by_an_exit_that_says_so() {
    for snapshot in ["on", "off"] {
        let more = json!({ "init": "leave", "snapshot": snapshot });
        let server = Server::start(json!({ "functions": [entry_with("f", "initial-calls.wat", &more)] }));
        for reply in replies(&server, 3) {
            assert_eq!(String::from_utf8_lossy(&reply), "L123456789abcdef", "{snapshot}");
        }
        server.stop();
    }
    // What a snapshot must not hold is refused all the same.
    let message = refused("initial-calls.wat", &json!({ "init": "leave-open" }));
    assert!(message.contains("fd_write"), "{message}");
}

#[test]
fn an_init_that_cannot_be_called_is_named() {
    let message = refused("initial-calls.wat", &json!({ "init": "nothing" }));
    assert!(message.contains("`init` is `nothing`, but it exports"), "{message}");
    let message = refused("initial-calls.wat", &json!({ "init": "parameter" }));
    assert!(message.contains("exports `parameter` as (i32) -> (), but it must be a function () -> ()"), "{message}");
    let message = refused("echo.wat", &json!({ "init": "main" }));
    assert!(message.contains("a command runs from its start for each request"), "{message}");
    let message = refused("echo.wat", &json!({ "snapshot": "sometimes" }));
    assert!(message.contains("functions[0].snapshot") && message.contains("shared-seed"), "{message}");
}
