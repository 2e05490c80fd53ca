//! The programs that use all that the gRPC libraries for functions promise, as functions, and their clients, which are built with the original libraries.

use serde_json::{Value, json};
use sledge_tests::process::{self, Finished};
use sledge_tests::programs::{self, sledge_command};
use sledge_tests::server::{Server, free_address};
use sledge_tests::sources::copy;
use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Toolchains compile gRPC libraries, and awsm what comes of them, on a machine that does other things too.
const BUILD_TIME_MAX: Duration = Duration::from_secs(900);

/// A client asks for everything.
const CLIENT_TIME_MAX: Duration = Duration::from_secs(120);

fn done(command: &mut Command, time_max: Duration) -> Finished {
    let done = process::run(command, b"", time_max);
    assert!(done.status.success(), "{command:?}: {}{}", done.text(), done.stderr);
    done
}

/// An application of one function that calls itself: how it is configured, and where it listens.
fn application(folder: &Path, source: &str, service: &str, env: &Value) -> SocketAddr {
    let address = free_address();
    let function = json!({
        "name": "f", "source": source, "services": [service], "calls": { service: "local" }, "expose": true,
        "opt_level": 0, "deadline_ms": 30_000, "env": env,
    });
    let applications = json!([{ "name": "check", "listen": address.to_string(), "functions": [function] }]);
    let config = json!({ "listen": "127.0.0.1:0", "admin": "none", "workers": 1, "applications": applications });
    fs::write(folder.join("sledge.json"), config.to_string()).expect("write the configuration");
    address
}

/// Builds and serves it.
fn serve(folder: &Path) -> Server {
    done(sledge_command(&["build", "--config", "sledge.json"]).current_dir(folder), BUILD_TIME_MAX);
    Server::start_with(sledge_command(&["serve", "--config", "sledge.json"]).current_dir(folder))
}

fn source(path: &str) -> PathBuf {
    programs::tests_folder().join("../sdk/grpc").join(path)
}

/// What the client says of each scenario, without times.
fn answers(text: &str) -> BTreeMap<&str, String> {
    let answer = |line: &str| {
        let line = line.rsplit_once(" [").map_or(line, |(line, _)| line);
        let mut parts = line.split(" (");
        let mut answer = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            match part.split_once(')').filter(|(time, _)| time.starts_with(|first: char| first.is_ascii_digit())) {
                Some((_, rest)) => answer.push_str(rest),
                None => answer.extend([" (", part]),
            }
        }
        answer
    };
    text.lines().filter_map(|line| line.split_once(" -> ")).map(|(scenario, rest)| (scenario, answer(rest))).collect()
}

#[test]
fn the_program_in_go_does_what_is_promised() {
    let folder = tempfile::tempdir().expect("a folder");
    copy(&source("go/testdata/scenarios"), &folder.path().join("scenarios"));
    let client = programs::folder().join("grpc-scenarios-client");
    let mut build = Command::new("go");
    build.args(["build", "-o"]).arg(&client).arg("./client").current_dir(folder.path().join("scenarios"));
    done(&mut build, BUILD_TIME_MAX);
    let address = application(folder.path(), "scenarios", "scenarios.Scenarios", &json!({}));
    let server = serve(folder.path());

    let scenarios = EXPECTED.map(|(scenario, _)| scenario);
    let said = done(Command::new(&client).arg(address.to_string()).args(scenarios), CLIENT_TIME_MAX).text();
    let answers = answers(&said);
    for (scenario, expected) in EXPECTED {
        let answer = answers.get(scenario).unwrap_or_else(|| panic!("{scenario}: nothing\n{said}"));
        let is_good = match expected.strip_suffix('*') {
            Some(begin) => answer.starts_with(begin),
            None => answer == expected,
        };
        assert!(is_good, "{scenario}: {answer:?}, not {expected:?}\n{}", server.log());
    }
    server.wait_for_log("printed");
    // Streams in both directions from outside: what comes is sent back, and a server that sends while nothing comes. It ends with the client's half.
    let said = done(Command::new(&client).arg(address.to_string()).args(["bidi!", "ticks"]), CLIENT_TIME_MAX).text();
    let lines: Vec<&str> = said.lines().map(|line| line.rsplit_once(' ').map_or(line, |(line, _)| line)).collect();
    let ticks = ["ticks: tick <nil>"; 5];
    assert_eq!(lines[..2], ["bidi!: bidi! <nil>", "end: EOF"], "{said}");
    assert_eq!(lines[2..7], ticks, "{said}");
    assert_eq!(lines.last(), Some(&"end: EOF"), "{said}");
    server.stop();
}

/// `#[tokio::main]`, and a `main` that calls `Runtime::block_on` itself.
#[test]
fn the_program_in_rust_does_what_is_promised() {
    let package = source("rust/check");
    let target = programs::folder().join("grpc-check-client");
    let mut build = Command::new("cargo");
    build.args(["build", "--locked", "--bin", "client", "--target-dir"]).arg(&target).current_dir(&package);
    done(&mut build, BUILD_TIME_MAX);

    let folder = tempfile::tempdir().expect("a folder");
    let copied = folder.path().join("check");
    copy(&package, &copied);
    let address = application(folder.path(), "check", "check.Check", &json!({ "CHECK": "http://check.example" }));
    let manifest = copied.join("Cargo.toml");
    let text = fs::read_to_string(&manifest).expect("the manifest");
    for features in ["by-hand = []\n", "by-hand = []\ndefault = [\"by-hand\"]\n"] {
        fs::write(&manifest, text.replace("by-hand = []\n", features)).expect("write the manifest");
        let server = serve(folder.path());
        let mut client = Command::new(target.join("debug/client"));
        let done = process::run(client.arg(format!("http://{address}")), b"", CLIENT_TIME_MAX);
        assert_eq!(done.text(), "14 passed, 0 failed\n", "{features}: {}\n{}", done.stderr, server.log());
        server.stop();
    }
}

/// Scenarios of the program in Go, and what comes of each: its answer, its error, its trailers. What is behind `*` differs from time to time.
const EXPECTED: [(&str, &str); 24] = [
    ("hello", "hello <nil> map[t-bin:[\0]]"),
    ("sleep 1ms", "sleep 1ms <nil> map[]"),
    ("fail", " rpc error: code = FailedPrecondition desc = w\u{f6}rld % map[]"),
    ("panic", " rpc error: code = Internal desc = function `check.f` trapped: unreachable map[*"),
    ("print", "print <nil> map[]"),
    ("deadline", "true 5s <nil> map[]"),
    ("run u hello", "u hello: [y] [application/grpc] MDmap[content-type:[application/grpc] h:[1]] MDmap[t-bin:[\0]] <nil> map[]"),
    ("run u fail", "u fail: ERROR rpc error: code = FailedPrecondition desc = w\u{f6}rld % <nil> map[]"),
    ("run u panic", "u panic: ERROR rpc error: code = Internal desc = function `check.f` trapped: unreachable <nil> map[]"),
    ("run loop 20", "loop 20: *"),
    ("run overlap", "overlap: <nil> <nil> <nil> map[]"),
    ("run cancel", "cancel: ERROR rpc error: code = Canceled desc = context canceled <nil> map[]"),
    ("run timeout", "timeout: ERROR rpc error: code = DeadlineExceeded desc = context deadline exceeded <nil> map[]"),
    ("run gzip", "gzip: 10000 <nil> map[]"),
    ("run big", "big: 3145728 <nil> map[]"),
    ("run bidi", "bidi: EOF <nil> map[]"),
    ("run flood", "flood: 2000000 <nil> map[]"),
    ("run server", "server: 5 <nil> map[]"),
    ("run client", "client: 15 <nil> map[]"),
    ("run streamcancel", "streamcancel: ERROR rpc error: code = Canceled desc = context canceled <nil> map[]"),
    ("run health", "health: ERROR rpc error: code = Unavailable desc = grpc: calling /grpc.health.v1.Health/Check: *"),
    ("run nothing", "nothing: ERROR rpc error: code = NotFound desc = nothing <nil> map[]"),
    (
        "run u run u deep",
        "u run u deep: u deep: [y] [application/grpc] MDmap[content-type:[application/grpc] h:[1]] MDmap[t-bin:[\0]] MDmap[content-type:[application/grpc]] MDmap[] <nil> map[]",
    ),
    ("again", "again <nil> map[t-bin:[\0]]"),
];
