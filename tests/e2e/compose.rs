//! Components that `awsm compose` has made one, run.

use sledge_tests::components;
use sledge_tests::process;
use sledge_tests::programs::{awsm_command, sledge_command};
use std::path::Path;
use std::time::Duration;

const TIME_MAX: Duration = Duration::from_secs(300);

/// Runs `awsm` in a folder.
fn awsm(folder: &Path, arguments: &[&str]) {
    let done = process::run(awsm_command(arguments).current_dir(folder), b"", TIME_MAX);
    assert_eq!(done.code(), 0, "{arguments:?}: {}", done.stderr);
}

/// Composes in a folder, compiles and runs; the exit status.
fn run(folder: &Path, arguments: &[&str]) -> i32 {
    awsm(folder, &[&["compose"], arguments, &["-o", "all.wasm"]].concat());
    awsm(folder, &["compile", "all.wasm", "-o", "all.so"]);
    process::run(sledge_command(&["run", "all.so"]).current_dir(folder), b"", TIME_MAX).code()
}

#[test]
fn composed_components_call_each_other() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in components::files() {
        std::fs::write(folder.path().join(name), text).expect("write a file");
    }
    assert_eq!(run(folder.path(), &["app.wat", "--plug", "plain.wat"]), 42);
    // The version that a name has not stands for any; another instance of the same file is another.
    let wiring = r#"
        [exports]
        "wasi:cli/run" = "app"
        [instances.app]
        component = "app.wat"
        with = { "demo:math/add" = "twice" }
        [instances.twice]
        component = "twice.wat"
        with = { "demo:math/add@1.0.0" = { instance = "again", export = "demo:math/add" } }
        [instances.again]
        component = "twice.wat"
        with = { "demo:math/add" = "plain" }
        [instances.plain]
        component = "plain.wat"
    "#;
    std::fs::write(folder.path().join("wiring.toml"), wiring).expect("write a file");
    assert_eq!(run(folder.path(), &["wiring.toml"]), 168);
    // What was composed is a component like any other.
    let (folder, composed) = (folder.path(), folder.path().join("inner.wasm"));
    awsm(folder, &["compose", "twice.wat", "--plug", "plain.wat", "-o", "inner.wasm"]);
    assert!(composed.is_file());
    assert_eq!(run(folder, &["app.wat", "--plug", "inner.wasm"]), 84);
    // A plug satisfies what another plug imports, whichever comes first.
    assert_eq!(run(folder, &["app.wat", "--plug", "needing.wat", "--plug", "other.wat"]), 84);
    assert_eq!(run(folder, &["app.wat", "--plug", "other.wat", "--plug", "needing.wat"]), 84);
}

/// What components may use is the same where they are composed as where they are compiled.
#[test]
fn components_that_wait_in_built_in_functions_are_composed() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in components::files() {
        std::fs::write(folder.path().join(name), text).expect("write a file");
    }
    assert_eq!(run(folder.path(), &["async-app.wat", "--plug", "async-plain.wat"]), 0);
}

#[test]
fn a_core_module_becomes_a_component() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    for (name, text) in components::files() {
        std::fs::write(folder.join(name), text).expect("write a file");
    }
    awsm(folder, &["componentize", "adding.wat", "--wit", "math.wit", "-o", "adding.wasm"]);
    assert_eq!(run(folder, &["app.wat", "--plug", "adding.wasm"]), 42);
    // A command of WASI preview 1 says all of itself.
    std::fs::write(folder.join("hello.wat"), HELLO).expect("write a file");
    awsm(folder, &["componentize", "hello.wat", "-o", "hello.wasm"]);
    awsm(folder, &["compile", "hello.wasm", "-o", "hello.so"]);
    let done = process::run(sledge_command(&["run", "hello.so"]).current_dir(folder), b"", TIME_MAX);
    assert_eq!((done.code(), done.text().as_str()), (0, "hello"), "{}", done.stderr);
}

const HELLO: &str = r#"(module
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 16) "\20\00\00\00\05\00\00\00")
  (data (i32.const 32) "hello")
  (func (export "_start") (drop (call $write (i32.const 1) (i32.const 16) (i32.const 1) (i32.const 24)))))"#;
