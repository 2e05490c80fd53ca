//! `peers` as a program, with `sledge` as it is and peers that are missing, broken or wrong.
#![forbid(unsafe_code)]

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// What building functions and naming results takes; nothing else is in PATH.
const TOOLS: [&str; 6] = ["clang-22", "date", "git", "ld", "ld.lld-22", "wasm-ld-22"];

/// What a run left: its output, and the files.
struct Run {
    output: Output,
    csv: String,
    markdown: String,
}

impl Run {
    /// Asks `sledge` and `peers` for `ping`, shortly, with nothing installed but what is in `folder`.
    fn new(folder: &Path, peers: &str) -> Run {
        let path = std::env::var_os("PATH").expect("there is a PATH");
        for tool in TOOLS {
            let found = std::env::split_paths(&path).map(|folder| folder.join(tool)).find(|file| file.is_file());
            symlink(found.unwrap_or_else(|| panic!("{tool} is in PATH")), folder.join(tool)).unwrap();
        }
        let results = folder.join("results");
        let output = Command::new(env!("CARGO_BIN_EXE_peers"))
            .args(["--peers", peers, "--functions", "ping", "--turns", "2", "--seconds", "0.1", "--folder"])
            .arg(&results)
            .env("PATH", folder)
            .env_remove("NUCLIO_PROCESSOR")
            .output()
            .expect("it runs");
        let read =
            |name: &str| fs::read_to_string(results.join(name)).unwrap_or_else(|error| panic!("{name}: {error}; {output:?}"));
        Run { csv: read("peers.csv"), markdown: read("peers.md"), output }
    }

    /// The rows of a server in the tables: with one client, with ten, fifty and a hundred.
    fn rows(&self, server: &str) -> Vec<&str> {
        self.markdown.lines().filter(|line| line.starts_with(&format!("| {server} |"))).collect()
    }

    /// Whether `sledge` was measured, even if other servers were not.
    fn has_sledge(&self) -> bool {
        let measured = |row: &&&str| row.split('|').nth(2).is_some_and(|cell| cell.trim().parse::<f64>().is_ok_and(|n| n > 0.0));
        let turns = self.csv.lines().filter(|line| line.contains(",sledge,")).count();
        self.rows("sledge").iter().filter(measured).count() == 4 && turns == 8
    }
}

/// A `node` that says that it is at `address`.
fn install_node(folder: &Path, script: &str) {
    install(folder, "node", &format!("[ \"$1\" = --version ] && echo v0 && exit\n{script}"));
}

fn install(folder: &Path, name: &str, script: &str) {
    let program = folder.join(name);
    fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
}

/// A server that answers `ping` rightly so many times, and then wrongly, with as many bytes. Its script for [`install_node`].
fn server(right: usize) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let answered = Arc::new(AtomicUsize::new(0));
    thread::spawn(move || {
        for stream in listener.incoming() {
            let answered = Arc::clone(&answered);
            thread::spawn(move || answer(stream.unwrap(), &answered, right));
        }
    });
    format!("echo listening on http://{address}; exec /bin/cat")
}

fn answer(mut stream: TcpStream, answered: &AtomicUsize, right: usize) {
    let (mut request, mut buffer) = (Vec::new(), [0; 4096]);
    while let Ok(count @ 1..) = stream.read(&mut buffer) {
        request.extend_from_slice(&buffer[..count]);
        if !request.ends_with(b"\r\n\r\n") {
            continue;
        }
        request.clear();
        let body = if answered.fetch_add(1, Ordering::Relaxed) < right { "pong\n" } else { "pang\n" };
        if stream.write_all(format!("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n{body}").as_bytes()).is_err() {
            break;
        }
    }
}

#[test]
fn a_peer_that_is_not_installed_is_a_row_and_no_failure() {
    let folder = tempfile::tempdir().unwrap();
    // Another program of that name.
    install(folder.path(), "processor", "echo 'usage: processor FILE' >&2; exit 1");
    let run = Run::new(folder.path(), "hyper node nuclio nuclio-go");
    assert!(run.output.status.success(), "{:?}", run.output);
    assert!(run.has_sledge(), "{}", run.markdown);
    for peer in ["node", "nuclio", "nuclio-go"] {
        assert!(run.rows(peer).len() == 4 && run.rows(peer).iter().all(|row| row.contains("not installed")), "{}", run.markdown);
        assert!(run.csv.lines().any(|line| line.contains(peer) && line.contains("\"not installed")), "{}", run.csv);
    }
    // The ratio to one that is there is that of the turns.
    let field = |row: &str, number: usize| row.split('|').nth(number).unwrap().trim().parse::<f64>().unwrap();
    for (sledge, hyper) in run.rows("sledge").iter().zip(run.rows("hyper")) {
        assert!(field(hyper, 2) > 0.0 && field(hyper, 7) > 0.0 && field(sledge, 2) > 0.0, "{hyper}");
    }
    let columns: Vec<_> = run.csv.lines().skip(1).map(|line| line.split(',').count()).collect();
    assert!(columns.iter().all(|count| *count == columns[0]), "{}", run.csv);
}

#[test]
fn a_wrong_reply_is_a_failure_of_its_server() {
    let folder = tempfile::tempdir().unwrap();
    install_node(folder.path(), &server(0));
    let run = Run::new(folder.path(), "node");
    assert!(!run.output.status.success() && run.has_sledge(), "{}", run.markdown);
    assert!(run.rows("node").iter().all(|row| row.contains("failed: ping: a wrong reply")), "{}", run.markdown);
}

#[test]
fn replies_are_compared_while_they_are_measured() {
    let folder = tempfile::tempdir().unwrap();
    install_node(folder.path(), &server(200));
    let run = Run::new(folder.path(), "node");
    assert!(!run.output.status.success() && run.has_sledge(), "{}", run.markdown);
    assert!(run.rows("node")[0].contains("failed: POST /ping: a wrong reply, 200 with 5 bytes: pang"), "{}", run.markdown);
}

#[test]
fn a_server_that_does_not_start_says_why() {
    let folder = tempfile::tempdir().unwrap();
    install_node(folder.path(), "echo cannot find module >&2; exit 1");
    let run = Run::new(folder.path(), "node");
    assert!(!run.output.status.success() && run.has_sledge(), "{}", run.markdown);
    assert!(run.rows("node").iter().all(|row| row.contains("failed: does not start") && row.contains("cannot find module")));
}

/// What Nuclio's processor is told, and that its log is in the table where it ends: a program that prints both and ends is in its place.
#[test]
fn nuclios_processor_has_a_worker_for_each_core_and_its_log_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    let script = "[ \"$1\" = --help ] && echo '-platform-config string' >&2 && exit\n[ \"$1\" = --version ] && exit\n\
                  while read -r line; do case $line in numWorkers*|runtime*|handler*|kind*|level*) echo \"$line\" >&2; esac; done < \"$2\"; exit 3";
    install(folder.path(), "processor", script);
    let run = Run::new(folder.path(), "nuclio nuclio-go");
    assert!(!run.output.status.success() && run.has_sledge(), "{}", run.markdown);
    let wanted = "failed: does not start: it ended before it listened (exit status: 3); its log ends with: kind: NuclioFunction / \
                  runtime: shell / handler: ping.sh:main / kind: http / numWorkers: 1 |";
    assert!(run.rows("nuclio").len() == 4 && run.rows("nuclio").iter().all(|row| row.contains(wanted)), "{}", run.markdown);
    // Its plugin cannot be built without Go.
    assert!(run.rows("nuclio-go").iter().all(|row| row.contains("not built: it needs Go")), "{}", run.markdown);
}

#[test]
fn a_processor_that_is_named_and_is_another_program_is_said_to_be() {
    let folder = tempfile::tempdir().unwrap();
    install(folder.path(), "other", "exit 0");
    let output = Command::new(env!("CARGO_BIN_EXE_promises"))
        .arg("nuclio-ping-ratio")
        .env("NUCLIO_PROCESSOR", folder.path().join("other"))
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("other, which NUCLIO_PROCESSOR names, is not Nuclio's `processor`"), "{errors}");
    let line = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && line.starts_with("nuclio-ping-ratio") && line.trim_end().ends_with("MISS"), "{line}");
}

#[test]
fn unknown_names_are_errors() {
    let output = Command::new(env!("CARGO_BIN_EXE_peers")).args(["--peers", "nodejs"]).output().unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("there is no peer 'nodejs'; there are hyper, "), "{output:?}");
}
