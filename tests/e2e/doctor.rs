//! `sledge doctor`: what is good, what is not, and what to do.

use crate::{entry, entry_with};
use serde_json::json;
use sledge_tests::http::TIME_MAX;
use sledge_tests::process::{self, Finished};
use sledge_tests::programs::{self, sledge_command};
use sledge_tests::server::Server;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// Runs it where no server runs.
fn doctor(command: &mut Command, folder: &Path) -> Finished {
    process::run(command.env("XDG_CACHE_HOME", folder).env("XDG_RUNTIME_DIR", folder), b"", TIME_MAX)
}

/// The verdict of a check, and what it says.
fn found(done: &Finished, subject: &str) -> (String, String) {
    let text = done.text();
    let of = |line: &str| {
        let (verdict, rest) = line.split_once(' ')?;
        Some((verdict.to_owned(), rest.trim_start().strip_prefix(subject)?.trim_start().to_owned()))
    };
    text.lines().find_map(of).unwrap_or_else(|| panic!("nothing of {subject} in: {text}{}", done.stderr))
}

#[test]
fn a_machine_on_which_everything_works_is_found_good() {
    let folder = tempfile::tempdir().expect("a folder");
    let done = doctor(&mut sledge_command(&["doctor", "--admin", "/nonexistent/sledge.sock"]), folder.path());
    assert_eq!(done.code(), 0, "{}{}", done.text(), done.stderr);
    for subject in [
        "cores",
        "memory",
        "kernel",
        "open files",
        "confinement",
        "cache",
        "compiler",
        "sandboxes",
        "preemption",
        "state",
        "server",
    ] {
        let (verdict, text) = found(&done, subject);
        assert!(["good", "weak"].contains(&verdict.as_str()) && !text.is_empty(), "{subject}: {}", done.text());
    }
    for subject in ["cache", "compiler", "sandboxes", "preemption"] {
        assert_eq!(found(&done, subject).0, "good", "{}", done.text());
    }
    assert!(found(&done, "preemption").1.starts_with("an endless loop was stopped after "), "{}", done.text());
    assert!(!done.text().contains('\x1b'), "colours are for terminals");
}

#[test]
fn what_a_running_server_complains_of_is_passed_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let bad = entry_with("bad", "echo.wat", &json!({ "path": "/nonexistent/f.so" }));
    let server = Server::start(json!({ "functions": [entry("echo", "echo.wat"), bad] }));
    let admin = server.admin();
    let done = doctor(sledge_command(&["doctor", "--admin"]).arg(admin.path()), folder.path());
    let (verdict, text) = found(&done, "server");
    assert!(done.code() == 0 && verdict == "weak", "{}", done.text());
    assert!(text.contains(&format!("pid {}", server.pid())) && text.contains("/nonexistent/f.so"), "{text}");
    server.stop();
}

#[test]
fn what_does_not_work_is_found_with_what_to_do() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    // Alone: artifacts are served.
    let sledge = at("sledge");
    fs::copy(programs::sledge(), &sledge).expect("copy the program");
    let alone = |args: &[&str]| doctor(Command::new(&sledge).arg("doctor").args(args).env("PATH", "/nonexistent"), folder.path());
    let done = alone(&[]);
    let (verdict, text) = found(&done, "compiler");
    assert!(done.code() == 0 && verdict == "weak" && text.contains("only artifacts"), "{}", done.text());
    // Beside a compiler that does not work.
    fs::write(at("awsm"), "#!/bin/sh\necho out of order >&2; exit 1\n").expect("write a script");
    fs::set_permissions(at("awsm"), fs::Permissions::from_mode(0o755)).expect("set the mode");
    let done = alone(&[]);
    let (verdict, text) = found(&done, "compiler");
    assert!(done.code() == 1 && verdict == "bad" && text.contains("out of order"), "{}", done.text());
    fs::remove_file(at("awsm")).expect("remove the script");

    // As a configuration wants it.
    fs::write(at("file"), "").expect("write a file");
    let check = |config: &str| {
        fs::write(at("sledge.toml"), config).expect("write a configuration");
        alone(&["--config", at("sledge.toml").to_str().expect("a path")])
    };
    let done = check("wrokers = 3\n");
    assert!(done.code() == 1 && found(&done, "config").1.contains("workers"), "{}", done.text());
    let done = check(&format!("state_dir = {:?}\n", at("file")));
    assert!(done.code() == 1 && found(&done, "state").0 == "bad" && found(&done, "config").0 == "good", "{}", done.text());
    let done =
        check(&format!("cache_dir = {:?}\nconfined = false\nmemory_total_bytes_max = 16777216\n", at("file").join("below")));
    for (subject, word) in [("cache", "compiled anew"), ("confinement", "`confined`"), ("memory", "16 MiB")] {
        let (verdict, text) = found(&done, subject);
        assert!(done.code() == 0 && verdict == "weak" && text.contains(word), "{}", done.text());
    }

    let limited = ["-c", "ulimit -n 200; exec \"$0\" doctor", sledge.to_str().expect("a path")];
    let done = doctor(Command::new("bash").args(limited), folder.path());
    let (verdict, text) = found(&done, "open files");
    assert!(verdict == "weak" && text.starts_with("200 at most") && text.contains("LimitNOFILE"), "{}", done.text());
}
