//! Components that `awsm compose` has made one, run.

use sledge_tests::components;
use sledge_tests::process;
use sledge_tests::programs::{awsm_command, sledge_command};
use std::path::Path;
use std::time::Duration;

const TIME_MAX: Duration = Duration::from_secs(60);

/// Composes in a folder, compiles and runs; the exit status.
fn run(folder: &Path, arguments: &[&str]) -> i32 {
    for arguments in [&[&["compose"], arguments, &["-o", "all.wasm"]].concat()[..], &["compile", "all.wasm", "-o", "all.so"]] {
        let done = process::run(awsm_command(arguments).current_dir(folder), b"", TIME_MAX);
        assert_eq!(done.code(), 0, "{arguments:?}: {}", done.stderr);
    }
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
    let done = process::run(
        awsm_command(&["compose", "twice.wat", "--plug", "plain.wat", "-o", "inner.wasm"]).current_dir(folder),
        b"",
        TIME_MAX,
    );
    assert!(done.code() == 0 && composed.is_file(), "{}", done.stderr);
    assert_eq!(run(folder, &["app.wat", "--plug", "inner.wasm"]), 84);
}
