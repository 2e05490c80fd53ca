//! The official WASI test suite's programs for preview 1 (github.com/WebAssembly/wasi-testsuite), from a folder that the user gives:
//! `make test-wasi SUITE=DIR`. Its layout is that of the branch with compiled programs: below `tests/`, folders `testsuite` with `NAME.wasm` and,
//! beside it, `NAME.json`: arguments, environment, a folder to be granted as `/`, and what is expected.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use sledge_tests::process;
use sledge_tests::programs::{self, awsm_command, sledge_command};

const TIME_MAX: Duration = Duration::from_secs(120);

/// What stands beside a program.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Expected {
    args: Vec<String>,
    env: BTreeMap<String, String>,
    /// Folders below the suite's that are granted; older suites.
    dirs: Vec<String>,
    /// The folder that is granted as `/`.
    root: Option<String>,
    exit_code: i32,
    stdout: Option<String>,
}

/// Programs below a folder, those for other versions of WASI left out.
fn programs_below(folder: &Path, found: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for path in entries.map(|entry| entry.expect("an entry").path()) {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if path.is_dir() && !name.ends_with(".dir") && !["wasm32-wasip2", "wasm32-wasip3"].contains(&name) {
            programs_below(&path, found);
        } else if name.ends_with(".wasm") {
            found.push(path);
        }
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).unwrap_or_else(|error| panic!("{}: {error}", from.display())) {
        let path = entry.expect("an entry").path();
        let to = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            copy(&path, &to);
        } else {
            fs::copy(&path, &to).expect("copy a file");
        }
    }
}

/// What is wrong with a program's run; none when it is as expected.
fn run(wasm: &Path) -> Option<String> {
    let json = wasm.with_extension("json");
    let expected: Expected = match fs::read_to_string(&json) {
        Ok(text) => serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", json.display())),
        Err(_) => Expected::default(),
    };
    let scratch = tempfile::tempdir_in(programs::folder()).expect("a folder");
    let artifact = scratch.path().join("program.so");
    let compiled = process::run(awsm_command(&["compile"]).arg(wasm).arg("-o").arg(&artifact), b"", TIME_MAX);
    if compiled.code() != 0 {
        return Some(compiled.stderr);
    }
    let mut command = sledge_command(&["run"]);
    for (name, value) in &expected.env {
        command.arg("--env").arg(format!("{name}={value}"));
    }
    let folder = wasm.parent().expect("it lies in a folder");
    // A copy of its own, as programs leave things behind.
    for (index, (dir, guest)) in
        expected.root.iter().map(|root| (root, "/")).chain(expected.dirs.iter().map(|dir| (dir, dir.as_str()))).enumerate()
    {
        let host = scratch.path().join(index.to_string());
        copy(&folder.join(dir), &host);
        command.arg("--dir").arg(format!("{}::{guest}::rw", host.display()));
    }
    command.arg(&artifact).arg("--").args(&expected.args);
    let done = process::run(&mut command, b"", TIME_MAX);
    let as_expected = done.code() == expected.exit_code && expected.stdout.is_none_or(|stdout| stdout == done.text());
    (!as_expected).then(|| format!("status {}\n{}{}", done.code(), done.text(), done.stderr))
}

#[test]
fn official_programs() {
    let suite = std::env::var_os("WASI_SUITE").expect("the suite's folder: make test-wasi SUITE=DIR");
    let mut programs = Vec::new();
    programs_below(&Path::new(&suite).join("tests"), &mut programs);
    assert!(!programs.is_empty(), "no programs below {}", Path::new(&suite).display());
    programs.sort();
    let failed: Vec<String> =
        programs.iter().filter_map(|wasm| run(wasm).map(|why| format!("{}: {why}", wasm.display()))).collect();
    println!("{} of {} programs of the WASI test suite pass", programs.len() - failed.len(), programs.len());
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
