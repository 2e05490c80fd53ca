//! wasmtime's own test programs (github.com/bytecodealliance/wasmtime, `crates/test-programs`), as components that its build has made, from the
//! folder WASI_PROGRAMS: `make test-wasi-programs DIR=FOLDER`, with files `NAME.component.wasm`.
//!
//! Each runs as the test of wasmtime that has its name runs it: with the same arguments, folders, servers and sockets, and the same end. What is
//! known to end otherwise stands in `known-failures.txt`, with its reason. WASI_FILTER=NAME,NAME runs some of them.

mod commands;
mod composed;
mod grants;
mod http;
mod known;
mod outbound;
mod services;
mod upstream;

use std::collections::VecDeque;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use known::Known;
use sledge_tests::process;
use sledge_tests::programs::{self, awsm_command};

/// For one run of one program, and for compiling it.
pub(crate) const TIME_MAX: Duration = Duration::from_secs(60);

const SUFFIX: &str = ".component.wasm";

/// A component of the folder, compiled.
pub(crate) struct Program {
    /// What it is called there.
    pub(crate) name: String,
    pub(crate) wasm: PathBuf,
    pub(crate) artifact: PathBuf,
}

/// What became of a program.
enum Outcome {
    Passed,
    Failed(String),
    /// Nothing here says how it is run.
    Unknown,
}

fn folder() -> PathBuf {
    PathBuf::from(std::env::var_os("WASI_PROGRAMS").expect("WASI_PROGRAMS: the folder of the components"))
}

fn names() -> Vec<String> {
    let folder = folder();
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let name = |entry: std::io::Result<fs::DirEntry>| entry.ok()?.file_name().to_str()?.strip_suffix(SUFFIX).map(str::to_owned);
    let mut names: Vec<String> = entries.filter_map(name).collect();
    let filter = std::env::var("WASI_FILTER").unwrap_or_default();
    names.retain(|name| filter.split(',').any(|part| name.contains(part)));
    names.sort();
    names
}

/// Compiles a component into the folder of this run; its artifact, or why there is none.
pub(crate) fn compile(wasm: &Path) -> Result<PathBuf, String> {
    let stem = wasm.file_stem().and_then(|stem| stem.to_str()).expect("a name");
    let artifact = programs::folder().join(format!("{stem}.so"));
    let compiled = process::run(awsm_command(&["compile", "-O", "0"]).arg(wasm).arg("-o").arg(&artifact), b"", TIME_MAX * 4);
    if compiled.code() == 0 { Ok(artifact) } else { Err(format!("awsm: {}", compiled.stderr)) }
}

fn run(name: &str) -> Outcome {
    let wasm = folder().join(format!("{name}{SUFFIX}"));
    let composed = composed::of(name);
    let is_whole = composed.is_none();
    let found = composed.or_else(|| commands::of(name)).or_else(|| outbound::of(name)).or_else(|| services::of(name));
    let Some(check) = found else { return Outcome::Unknown };
    // A check says what it found by panicking.
    let run = AssertUnwindSafe(|| {
        // What imports another one is compiled with that.
        let artifact = if is_whole { compile(&wasm)? } else { PathBuf::new() };
        let program = Program { name: name.to_owned(), wasm, artifact };
        let result = check(&program);
        let _ = fs::remove_file(&program.artifact);
        result
    });
    match catch_unwind(run) {
        Ok(Ok(())) => Outcome::Passed,
        Ok(Err(why)) => Outcome::Failed(why),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            Outcome::Failed(text.or_else(|| panic.downcast_ref::<&str>().map(|&text| text.to_owned())).unwrap_or_default())
        }
    }
}

#[test]
fn programs_of_wasmtime() {
    let names = names();
    assert!(!names.is_empty(), "no {SUFFIX} in {}", folder().display());
    let (total, queue) = (names.len(), Mutex::new(VecDeque::from(names)));
    let outcomes = Mutex::new(Vec::new());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                while let Some(name) = { queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front() } {
                    let outcome = run(&name);
                    outcomes.lock().unwrap_or_else(PoisonError::into_inner).push((name, outcome));
                }
            });
        }
    });
    let mut outcomes = outcomes.into_inner().unwrap_or_else(PoisonError::into_inner);
    outcomes.sort_by(|(one, _), (other, _)| one.cmp(other));
    let mut known = Known::read();
    let (mut passed, mut problems) = (0, Vec::new());
    for (name, outcome) in outcomes {
        match (outcome, known.reason(&name)) {
            (Outcome::Passed, None) => passed += 1,
            (_, Some(_)) if known.may_do_either(&name) => {}
            (Outcome::Passed, Some(_)) => problems.push(format!("{name} passes: take it out of known-failures.txt")),
            (Outcome::Failed(_) | Outcome::Unknown, Some(_)) => {}
            (Outcome::Failed(why), None) => problems.push(format!("{name}: {why}")),
            (Outcome::Unknown, None) => problems.push(format!("{name}: no test here says how to run it")),
        }
    }
    println!("{passed} of {total} programs of wasmtime pass, {} are known not to", known.used());
    if std::env::var_os("WASI_FILTER").is_none() && !known.unused().is_empty() {
        println!("lines of known-failures.txt that stand for none of them: {}", known.unused().join(", "));
    }
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n\n"));
}
