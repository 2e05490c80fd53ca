//! The official WASI test suite's programs for preview 1 and WASI 0.3 (github.com/WebAssembly/wasi-testsuite), from a folder that the user gives:
//! `make test-wasi SUITE=DIR`. Its layout is that of the branch with compiled programs: below `tests/`, folders `testsuite` with `NAME.wasm` and,
//! beside it, `NAME.json`: arguments, environment, a folder to be granted as `/`, and what is expected, or operations that say it step by step.
//! WASI_FILTER=NAME,NAME runs some of them.

mod endpoints;
mod operations;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use endpoints::ServerSpec;
use operations::Operation;
use serde::Deserialize;
use sledge_tests::process;
use sledge_tests::programs::{self, awsm_command, sledge_command};

/// For one program.
pub(crate) const TIME_MAX: Duration = Duration::from_secs(120);

/// Programs that are known to fail, and why.
const KNOWN_FAILURES: [(&str, &str); 1] = [(
    "wasm32-wasip3/http-request.wasm",
    "a path that does not begin with a slash would be another server's address; wasmtime refuses it, too",
)];

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
    /// In place of what is above.
    operations: Option<Vec<Operation>>,
    /// `wasi:http/service` for what answers requests.
    world: Option<String>,
    /// Which it may ask.
    servers: Vec<ServerSpec>,
}

/// Programs below a folder, those for other versions of WASI left out.
fn programs_below(folder: &Path, found: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for path in entries.map(|entry| entry.expect("an entry").path()) {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if path.is_dir() && !name.ends_with(".dir") && name != "wasm32-wasip2" {
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
    // Its name without `.so` is argument 0, which has to be that of the program.
    let name = wasm.file_name().and_then(|name| name.to_str()).expect("a name");
    let artifact = scratch.path().join(format!("{name}.so"));
    let is_component = wasm.iter().any(|part| part == "wasm32-wasip3");
    // A component brings its library along, of which little is tested here.
    let level = if is_component { "0" } else { "3" };
    let compiled = process::run(awsm_command(&["compile", "-O", level]).arg(wasm).arg("-o").arg(&artifact), b"", TIME_MAX);
    if compiled.code() != 0 {
        return Some(compiled.stderr);
    }
    let folder = wasm.parent().expect("it lies in a folder");
    // A copy of its own, as programs leave things behind.
    let granted = |dir: &str, index: usize, guest: &str| {
        let host = scratch.path().join(index.to_string());
        copy(&folder.join(dir), &host);
        format!("{}::{guest}::rw", host.display())
    };
    if is_component {
        let Expected { args, env, root, exit_code, .. } = expected;
        let usual = || vec![Operation::Run { args, env, root }, Operation::Wait { exit_code }];
        let operations = expected.operations.unwrap_or_else(usual);
        let done = match expected.world.as_deref() {
            Some("wasi:http/service") => operations::service(&artifact, &operations, &expected.servers),
            _ => operations::command(&artifact, &operations, |root| granted(root, 0, "/")),
        };
        return done.err();
    }
    let mut command = sledge_command(&["run"]);
    for (name, value) in &expected.env {
        command.arg("--env").arg(format!("{name}={value}"));
    }
    let folders = expected.root.iter().map(|root| (root, "/")).chain(expected.dirs.iter().map(|dir| (dir, dir.as_str())));
    for (index, (dir, guest)) in folders.enumerate() {
        command.arg("--dir").arg(granted(dir, index, guest));
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
    let filter = std::env::var("WASI_FILTER").unwrap_or_default();
    programs.retain(|wasm| filter.split(',').any(|part| wasm.to_string_lossy().contains(part)));
    programs.sort();
    let mut failed = Vec::new();
    let mut known = 0;
    for wasm in &programs {
        let is_known = KNOWN_FAILURES.iter().any(|(name, _)| wasm.ends_with(name));
        match (run(wasm), is_known) {
            (Some(_), true) => known += 1,
            (Some(why), false) => failed.push(format!("{}: {why}", wasm.display())),
            (None, true) => failed.push(format!("{}: it passes: take it out of KNOWN_FAILURES", wasm.display())),
            (None, false) => {}
        }
    }
    let passed = programs.len() - failed.len() - known;
    println!("{passed} of {} programs of the WASI test suite pass, {known} are known not to", programs.len());
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
