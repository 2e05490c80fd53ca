//! What commands of `sledge` do whose output is not read to the end, as in `sledge list | head -1`: they end without a word. The server serves on.

use crate::entry;
use serde_json::json;
use sledge_tests::http::TIME_MAX;
use sledge_tests::process;
use sledge_tests::programs::sledge_command;
use sledge_tests::server::Server;
use std::process::{Command, Stdio};

/// What a shell shows of a program that SIGPIPE ended.
const CLOSED: i32 = 128 + 13;

fn assert_quiet(command: &mut Command) {
    let done = process::run_unread(command, TIME_MAX);
    assert_eq!((done.code(), done.stderr.as_str()), (CLOSED, ""), "{command:?}");
}

#[test]
fn commands_whose_reader_has_gone_end_quietly() {
    let folder = tempfile::tempdir().expect("a folder");
    let kv = folder.path().join("kv.redb");
    let server = Server::start(json!({ "kv": kv, "functions": [entry("kv", "kv.c"), entry("echo", "echo.wat")] }));
    let put = server.client().post("/kv", "set k 1\n");
    assert_eq!(put.status, 200, "{}", put.text());
    let admin = server.folder().join("admin.sock");
    let admin = admin.to_str().expect("UTF-8");
    for arguments in [["list"].as_slice(), &["list", "--json"], &["status"], &["status", "kv"]] {
        assert_quiet(sledge_command(arguments).args(["--admin", admin]));
    }
    let url = format!("http://{}", server.address);
    for more in [[].as_slice(), &["-i"]] {
        assert_quiet(sledge_command(&["invoke", "echo", "--data", "text", "--server", &url]).args(more));
    }
    server.stop();
    for command in ["export", "check"] {
        assert_quiet(sledge_command(&["kv", command]).arg(&kv));
    }
}

/// The reader that has learnt where a server listens may go.
#[test]
fn a_server_whose_reader_has_gone_serves_on() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let folder = tempfile::tempdir().expect("a folder");
    let admin = folder.path().join("admin.sock");
    let mut command = sledge_command(&["serve", "--listen", "127.0.0.1:0", "--admin"]);
    command.arg(&admin).arg(sledge_tests::programs::function("echo.wat"));
    let mut child = command.stdin(Stdio::null()).stdout(writer).stderr(Stdio::null()).spawn().expect("sledge");
    let status = || {
        let mut command = sledge_command(&["status", "--admin"]);
        process::run(command.arg(&admin), b"", TIME_MAX)
    };
    let deadline = std::time::Instant::now() + TIME_MAX;
    while status().code() != 0 {
        assert!(std::time::Instant::now() < deadline, "the server does not answer");
        assert!(child.try_wait().expect("wait").is_none(), "the server has ended");
    }
    process::signal(&child, rustix::process::Signal::TERM);
    let ended = process::wait(&mut child, TIME_MAX).expect("an end");
    assert!(ended.success(), "{ended}");
}
