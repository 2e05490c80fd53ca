//! What commands do whose output is not read to the end, as in `awsm inspect FILE | head -1`: they end without a word, with the status of programs that the
//! signal SIGPIPE ends.

use super::{SAMPLE, TIME_MAX, awsm, path};
use sledge_tests::{components, process, programs};
use std::process::Command;

/// What a shell shows of a program that SIGPIPE ended.
const CLOSED: i32 = 128 + 13;

fn assert_quiet(command: &mut Command, folder: &std::path::Path) {
    let done = process::run_unread(command.current_dir(folder), TIME_MAX);
    assert_eq!((done.code(), done.stderr.as_str()), (CLOSED, ""), "{command:?}");
}

#[test]
fn commands_whose_reader_has_gone_end_quietly() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in components::files() {
        std::fs::write(folder.path().join(name), text).expect("write a file");
    }
    std::fs::write(folder.path().join("sample.wat"), SAMPLE).expect("write a file");
    let component = wat::parse_file(folder.path().join("app.wat")).expect("a component");
    std::fs::write(folder.path().join("app.wasm"), component).expect("write a file");
    let made = awsm(folder.path(), &["compile", "sample.wat", "--quiet"]);
    assert_eq!(made.code(), 0, "{}", made.stderr);
    for arguments in [
        ["inspect", "sample.so"].as_slice(),
        &["inspect", "app.wasm"],
        &["explain", "wasm[1]::add", "sample.so"],
        &["compile", "sample.wat", "--emit", "wasm", "-o", "-"],
        &["compile", "sample.wat", "-o", "-"],
        &["compile", "sample.wat", "--quiet", "-o", "/dev/stdout"],
        &["componentize", "adding.wat", "--wit", "math.wit", "-o", "-"],
        &["compose", "app.wat", "--plug", "plain.wat", "-o", "-"],
        &["--help"],
        &["compile", "--help"],
        &["--version"],
    ] {
        assert_quiet(&mut programs::awsm_command(arguments), folder.path());
    }
    for arguments in [["config", "schema"].as_slice(), &["--help"], &["serve", "--help"], &["--version"]] {
        assert_quiet(&mut programs::sledge_command(arguments), folder.path());
    }
}

/// Where the reader of its messages has gone, the work is done all the same.
#[test]
fn work_goes_on_where_nobody_reads_the_messages() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("sample.wat"), SAMPLE).expect("write a file");
    let awsm = path(programs::awsm());
    let mut shell = Command::new("sh");
    shell.args(["-c", "exec \"$0\" compile sample.wat -o out.so 2>&1", &awsm]).current_dir(folder.path());
    let done = process::run_unread(&mut shell, TIME_MAX);
    assert!(done.code() == 0 && folder.path().join("out.so").is_file(), "{}", done.code());
}
