//! Names in modules and components are strangers': in what `awsm` says they write no lines of their own, and nothing that acts on a terminal.

use super::{TIME_MAX, awsm, path};
use sledge_tests::process::{self, Finished};
use sledge_tests::programs;
use std::fs;
use std::path::Path;

/// A name as the text format spells it: it ends its line, forges one, clears the terminal and turns the direction of what follows.
const NAME: &str = r"a\nforged: line\1b[2J\c2\9b2J\e2\80\ae\0d";
/// How it is shown.
const SHOWN: &str = r"a\nforged: line\u{1b}[2J\u{9b}2J\u{202e}\r";

/// That a command said no more than its own lines, and `words` among them.
fn assert_said(done: &Finished, words: &str) {
    let said = done.text() + &done.stderr;
    assert!(said.contains(words), "{words:?} is not in {said:?}");
    let acts = |c: &char| c.is_control() && *c != '\n' || ('\u{202a}'..='\u{202e}').contains(c);
    assert_eq!(said.chars().find(acts), None, "{said:?}");
    assert!(!said.lines().any(|line| line.starts_with("forged")), "{said:?}");
}

fn write(folder: &Path, name: &str, text: &str) -> String {
    let file = folder.join(name);
    let bytes = if name.ends_with(".wasm") { wat::parse_str(text).expect("it parses") } else { text.as_bytes().to_vec() };
    fs::write(&file, bytes).expect("write a file");
    path(&file)
}

/// A component that does not validate: an instance lacks what its module imports.
fn lacking() -> String {
    format!(r#"(component (core module $m (import "{NAME}" "f" (func))) (core instance (instantiate $m)))"#)
}

#[test]
fn validators() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let twice = write(folder, "twice.wasm", &format!(r#"(module (func (export "{NAME}")) (func (export "{NAME}")))"#));
    let lacking = write(folder, "lacking.wasm", &lacking());
    let importing = write(folder, "importing.wasm", &format!(r#"(module (import "{NAME}" "f" (func)))"#));
    for arguments in [
        &["compile", &twice][..],
        &["compile", &lacking],
        &["inspect", &lacking],
        &["compose", &lacking, "--plug", &lacking],
        &["componentize", &importing],
        &["compile", &importing],
    ] {
        let done = awsm(folder, &[arguments, if arguments[0] == "inspect" { &[] } else { &["-o", "out"] }].concat());
        assert_eq!(done.code(), 1, "{arguments:?}: {}", done.stderr);
        assert_said(&done, SHOWN);
    }
}

/// What was made of them shows them in the same way.
#[test]
fn artifacts() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let text = format!(
        r#"(module $"{NAME}" (func $"{NAME}" (export "{NAME}") (result i32) unreachable) (func (export "_start") (drop (call 0))))"#
    );
    let module = write(folder, "named.wasm", &text);
    let done = awsm(folder, &["compile", &module, "-o", "named.so", "-O", "0"]);
    assert_eq!(done.code(), 0, "{}", done.stderr);
    assert_said(&awsm(folder, &["inspect", "named.so", "--functions"]), SHOWN);
    let ran = process::run(programs::sledge_command(&["run", "named.so"]).current_dir(folder), b"", TIME_MAX);
    assert_eq!(ran.code(), 134, "{}", ran.stderr);
    assert_said(&ran, SHOWN);
    let frame = ran.stderr.lines().find(|line| line.contains(" at wasm offset ")).expect("a frame");
    let explained = awsm(folder, &["explain", frame, "named.so"]);
    assert_said(&explained, SHOWN);
    assert!(explained.text().contains(", wasm[0]::a?forged: line?"), "{}", explained.text());
}

/// The parser's message has lines: the place, the line of the source, the caret below its column. The line and the names are the file's.
#[test]
fn text_parser() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let source = format!("(module\n  (func (; \u{1b}[2J ;) (call $\"{NAME}\")))\n");
    let unknown = write(folder, "unknown.wat", &source);
    for arguments in [
        &["compile", &unknown, "-o", "out"][..],
        &["componentize", &unknown, "-o", "out"],
        &["compose", &unknown, "--plug", &unknown, "-o", "out"],
    ] {
        let done = awsm(folder, arguments);
        assert_eq!(done.code(), 1, "{arguments:?}");
        assert_said(&done, &format!("unknown func: failed to find name `${SHOWN}`\n     --> "));
        let lines: Vec<&str> = done.stderr.lines().collect();
        let [_, place, margin, source, caret] = lines[..] else { panic!("{}", done.stderr) };
        assert!(place.ends_with(":2:26"), "{}", done.stderr);
        assert!(margin == "      |" && source.starts_with("    2 |   (func (; \\u{1b}[2J ;) (call $\""), "{}", done.stderr);
        assert_eq!(caret.find('^'), source.find("$\""), "{}", done.stderr);
    }
}

/// A file that says how components are wired repeats its wrong line.
#[test]
fn wirings() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let wrong = write(folder, "wrong.toml", "exports = \"a\" # \u{1b}[2J\u{202e}\n");
    let done = awsm(folder, &["compose", &wrong, "-o", "out"]);
    assert_eq!(done.code(), 1);
    assert_said(&done, "\\u{1b}[2J\\u{202e}");
    let plain = r#"(component (core module $m))"#;
    write(folder, "plain.wasm", plain);
    let text = "exports = \"a\\nforged\"\n[instances.\"a\\nforged\"]\ncomponent = \"plain.wasm\"\nwith = { \"x\\nforged\" = \"a\\nforged\" }\n";
    let named = write(folder, "named.toml", text);
    let done = awsm(folder, &["compose", &named, "-o", "out"]);
    assert_eq!(done.code(), 1);
    assert_said(&done, "a\\nforged (");
}
