//! Inputs that never end are read to a limit.

use super::awsm;
use sledge_tests::{components, process, programs};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, Instant};

/// Time for a file of which only so much is read as may be: a gibibyte.
const TIME_MAX: Duration = Duration::from_secs(30);

/// Files that tests write in a folder.
fn write(folder: &Path) {
    for (name, text) in components::files() {
        fs::write(folder.join(name), text).expect("write a file");
    }
}

/// A device that gives bytes for ever, and a file that says that it is larger than any input, without having anything of it.
#[test]
fn too_large() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    write(folder);
    let large = fs::File::create(folder.join("large.wasm")).expect("a file");
    large.set_len((1 << 30) + 1).expect("a sparse file");
    for name in ["zero.wasm", "zero.wat", "zero.toml", "zero.wit", "zero.so"] {
        symlink("/dev/zero", folder.join(name)).expect("a link");
    }
    let commands: [&[&str]; 11] = [
        &["compile", "zero.wasm", "-o", "out"],
        &["compile", "zero.wat", "-o", "out"],
        &["compile", "large.wasm", "-o", "out"],
        &["inspect", "zero.wasm"],
        &["inspect", "/dev/zero"],
        &["explain", "0x10", "zero.so"],
        &["componentize", "zero.wasm", "-o", "out"],
        &["componentize", "core.wat", "--wit", "zero.wit", "-o", "out"],
        &["compose", "zero.wasm", "--plug", "plain.wat", "-o", "out"],
        &["compose", "app.wat", "--plug", "zero.wasm", "-o", "out"],
        &["compose", "zero.toml", "-o", "out"],
    ];
    for arguments in commands {
        let begun = Instant::now();
        let done = awsm(folder, arguments);
        let file = arguments.iter().find(|argument| argument.contains("zero") || argument.contains("large")).expect("a file");
        let words = format!("awsm: {file}: larger than 1073741824 bytes, the limit for an input of awsm\n");
        assert_eq!((done.code(), done.stderr.as_str()), (1, words.as_str()), "{arguments:?}");
        assert!(begun.elapsed() < TIME_MAX, "{arguments:?}: {:?}", begun.elapsed());
    }
    for command in ["run", "deploy"] {
        for file in ["zero.wasm", "large.wasm"] {
            let begun = Instant::now();
            let done = process::run(programs::sledge_command(&[command, file]).current_dir(folder), b"", TIME_MAX);
            assert_eq!(done.stderr, format!("sledge: {file}: larger than 268435456 bytes\n"));
            assert!(done.code() == 1 && begun.elapsed() < TIME_MAX, "{:?}", begun.elapsed());
        }
    }
}

/// What the system says is said once.
#[test]
fn unreadable() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    symlink("/proc/self/mem", folder.join("unreadable.wasm")).expect("a link");
    for arguments in
        [&["compile", "unreadable.wasm"][..], &["inspect", "unreadable.wasm"], &["componentize", "unreadable.wasm", "-o", "out"]]
    {
        let done = awsm(folder, arguments);
        assert_eq!(
            (done.code(), done.stderr.as_str()),
            (1, "awsm: unreadable.wasm: Input/output error (os error 5)\n"),
            "{arguments:?}"
        );
    }
}
