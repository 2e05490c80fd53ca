//! What `awsm` says: each case is a command and a golden file beside this one, `golden/NAME.txt`, with exit status and output.
//!
//! `BLESS=1 cargo test -p sledge-tests --test cli` writes the golden files. What differs between machines (paths, sizes, times, versions,
//! the host's processor) is replaced by a word in capitals first.

mod advice;
mod c;
mod componentize;
mod compose;
mod cpp;
mod entries;
mod explain;
mod inputs;
mod inspect_component;
mod instances;
mod limits;
mod names;
mod parts;
mod proto;
mod unread;

use sledge_tests::process::{self, Finished};
use sledge_tests::{golden, programs};
use std::path::{Path, PathBuf};
use std::time::Duration;

const TIME_MAX: Duration = Duration::from_secs(300);

/// An input for `awsm`: its name, and what it holds.
struct Input {
    name: &'static str,
    bytes: Vec<u8>,
}

struct Case {
    /// The golden file's name.
    name: &'static str,
    input: Option<Input>,
    /// `IN` stands for the input's path, `OUT` for that of an output.
    arguments: &'static [&'static str],
}

fn text(name: &'static str, text: &str) -> Option<Input> {
    Some(Input { name, bytes: text.as_bytes().to_vec() })
}

fn module(name: &'static str, text: &str) -> Option<Input> {
    Some(Input { name, bytes: wat::parse_str(text).expect("a module") })
}

fn bytes(name: &'static str, bytes: &[u8]) -> Option<Input> {
    Some(Input { name, bytes: bytes.to_vec() })
}

/// What no server offers: an unknown module, a slip of the pen, another signature, a memory; and what it does.
const FOREIGN_IMPORTS: &str = r#"(module
  (import "rb-js-abi-host" "eval-js: func(code: string) -> variant" (func (param i32 i32 i32)))
  (import "wasi_snapshot_preview" "fd_write" (func (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_wrte" (func (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_close" (func (param i64) (result i32)))
  (import "wasi_snapshot_preview1" "sched_yield" (func (result i32)))
  (import "env" "memory" (memory 1))
  (func (export "_start")))"#;

/// A small module with one of everything that `inspect` shows.
const SAMPLE: &str = r#"(module $sample
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 1 4)
  (table (export "table") 2 8 funcref)
  (global (export "level") (mut i32) (i32.const 3))
  (data (i32.const 16) "data")
  (elem (i32.const 0) func $add)
  (func $add (export "add") (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1)))
  (func $load (export "load") (param i32) (result f64) (f64.load offset=8 (local.get 0)))
  (func (export "_start") (call $exit (i32.const 0))))"#;

/// A machine that no test runs on.
const FOREIGN: &str = "aarch64-unknown-linux-gnu";

fn cases() -> Vec<Case> {
    let case = |name, input, arguments| Case { name, input, arguments };
    let truncated = module("truncated.wasm", SAMPLE).map(|mut input| {
        input.bytes.truncate(input.bytes.len() - 7);
        input
    });
    vec![
        case("no-arguments", None, &[]),
        case("missing-file", None, &["compile", "/nonexistent/f.wasm"]),
        case("unknown-extension", text("notes.txt", "hello"), &["compile", "IN"]),
        case("python", text("app.py", "print('hello')"), &["compile", "IN"]),
        case("javascript", text("app.mjs", "export default 1"), &["compile", "IN"]),
        case("c++-header", text("app.hpp", "int f();"), &["compile", "IN"]),
        case("go", text("main.go", "package main"), &["compile", "IN"]),
        case("component", bytes("app.wasm", b"\0asm\x0d\0\x01\0"), &["compile", "IN", "-o", "OUT"]),
        case("imports", module("f.wasm", FOREIGN_IMPORTS), &["compile", "IN", "-o", "OUT"]),
        case("imports-allowed", module("f.wasm", FOREIGN_IMPORTS), &["compile", "IN", "-o", "OUT", "--allow-unknown-imports"]),
        case("not-wasm", text("text.wasm", "hello"), &["compile", "IN", "-o", "OUT"]),
        case("empty", text("empty.wasm", ""), &["compile", "IN", "-o", "OUT"]),
        case("readme", text("README.md", "# Title\n\nWords.\n"), &["compile", "IN"]),
        case("native", bytes("app", b"\x7fELF\x02\x01\x01\0"), &["compile", "IN"]),
        case("native-wasm", bytes("app.wasm", b"\x7fELF\x02\x01\x01\0"), &["compile", "IN", "-o", "OUT"]),
        case("native-text", bytes("app.wat", b"\x7fELF\x02\x01\x01\0"), &["compile", "IN", "-o", "OUT"]),
        case("words-text", text("app.wat", "# Title\n\nWords.\n"), &["compile", "IN", "-o", "OUT"]),
        case("empty-text", text("empty.wat", "\n"), &["compile", "IN", "-o", "OUT"]),
        case("text-wasm", text("app.wasm", "(module)\n"), &["compile", "IN", "-o", "OUT"]),
        case("truncated", truncated, &["compile", "IN", "-o", "OUT"]),
        case("invalid-type", module("f.wasm", "(module (func (result i32) (i64.const 1)))"), &["compile", "IN", "-o", "OUT"]),
        case("invalid-text", text("f.wat", "(module\n  (func (export \"f\") (i32.konst 1)))\n"), &["compile", "IN", "-o", "OUT"]),
        case("unsupported-gc", module("f.wasm", "(module (type (struct (field i32))))"), &["compile", "IN", "-o", "OUT"]),
        case("unknown-cpu", module("f.wasm", SAMPLE), &["compile", "IN", "--cpu", "pentium-17"]),
        case("unknown-target", module("f.wasm", SAMPLE), &["compile", "IN", "--target", "aarch64-apple-darwin"]),
        case("foreign-native", module("f.wasm", SAMPLE), &["compile", "IN", "--target", FOREIGN, "--cpu", "native"]),
        case("foreign-cpu", module("f.wasm", SAMPLE), &["compile", "IN", "--target", FOREIGN, "--cpu", "znver4"]),
        case("unknown-bounds", module("f.wasm", SAMPLE), &["compile", "IN", "--bounds", "hope"]),
        case("bounds-mpx", module("f.wasm", SAMPLE), &["compile", "IN", "--bounds", "mpx"]),
        case("unknown-level", module("f.wasm", SAMPLE), &["compile", "IN", "-O", "4"]),
        case("unwritable-output", module("f.wasm", SAMPLE), &["compile", "IN", "-o", "/nonexistent/out.so"]),
        case("c-error", text("broken.c", "int main(void) { return x; }\n"), &["compile", "IN", "-o", "OUT"]),
        case("compiled", module("sample.wasm", SAMPLE), &["compile", "IN", "-o", "OUT"]),
        case("inspect-missing", None, &["inspect", "/nonexistent/f.so"]),
        case("inspect-text", text("f.so", "hello"), &["inspect", "IN"]),
        case("inspect-module", module("f.wasm", SAMPLE), &["inspect", "IN"]),
        case("inspect-component-text", text("f.wat", "(component (import \"a\" (func)))\n"), &["inspect", "IN"]),
    ]
}

#[test]
fn messages() {
    let mut failures = Vec::new();
    for case in cases() {
        let folder = tempfile::tempdir().expect("a folder");
        let (input, output) = case.paths(folder.path());
        let done = awsm(folder.path(), &case.expand(&input, &output));
        failures.extend(compare(case.name, &shown(&done, folder.path())));
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn inspect() {
    let mut failures = Vec::new();
    for (name, options) in [("inspect", ["--bounds", "guard", "-O3"]), ("inspect-software", ["--bounds", "software", "-O0"])] {
        let folder = tempfile::tempdir().expect("a folder");
        let (input, output) = (folder.path().join("sample.wat"), folder.path().join("sample.so"));
        std::fs::write(&input, SAMPLE).expect("write a file");
        let (input, output) = (path(&input), path(&output));
        let arguments = [&["compile", &input, "-o", &output, "--cpu", "baseline", "--quiet"], options.as_slice()].concat();
        let made = awsm(folder.path(), &arguments);
        assert_eq!(made.code(), 0, "{}", made.stderr);
        let done = awsm(folder.path(), &["inspect", &output, "--functions"]);
        failures.extend(compare(name, &shown(&done, folder.path())));
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Folders are told apart by what lies in them.
#[test]
fn folders_are_named_for_what_they_are() {
    for (file, words) in [
        ("go.mod", "this is a Go module: its own compiler makes a module of it: GOOS=wasip1"),
        ("package.json", "this is a JavaScript project"),
        ("pyproject.toml", "this is a Python project"),
        ("CMakeLists.txt", "this is a C or C++ project"),
        ("notes", "no Cargo.toml there: a folder to compile must be a cargo package"),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("app")).expect("a folder");
        std::fs::write(folder.path().join("app").join(file), "").expect("write a file");
        let done = awsm(folder.path(), &["compile", "app"]);
        assert!(done.code() == 1 && done.stderr.starts_with(&format!("awsm: app: {words}")), "{file}: {}", done.stderr);
    }
}

/// Each `--emit` gives what it is called, on standard output as well.
#[test]
fn emit() {
    let folder = tempfile::tempdir().expect("a folder");
    let input = folder.path().join("sample.wat");
    std::fs::write(&input, SAMPLE).expect("write a file");
    let emit = |kind: &str| {
        let done = awsm(folder.path(), &["compile", &path(&input), "--emit", kind, "-o", "-"]);
        assert_eq!(done.code(), 0, "{kind}: {}", done.stderr);
        done
    };
    assert!(emit("wasm").stdout.starts_with(b"\0asm\x01\0\0\0"));
    let ir = emit("llvm-ir").text();
    assert!(ir.contains("define ") && ir.contains("target triple = "), "{ir}");
    let asm = emit("asm").text();
    assert!(asm.contains(".text") && asm.contains("ret"), "{asm}");
    // ELF's e_type: 1 is relocatable, 3 is a shared object.
    for (kind, elf_type) in [("obj", 1), ("so", 3)] {
        let bytes = emit(kind).stdout;
        assert!(bytes.starts_with(b"\x7fELF"), "{kind}");
        assert_eq!(u16::from_le_bytes([bytes[16], bytes[17]]), elf_type, "{kind}");
    }
    // Without -o the output lies in the current folder and is named after the input.
    let done = awsm(folder.path(), &["compile", "sample.wat"]);
    assert_eq!(done.code(), 0, "{}", done.stderr);
    assert!(folder.path().join("sample.so").is_file());
}

/// A failed compilation leaves an older output alone.
#[test]
fn a_failure_keeps_the_old_output() {
    let folder = tempfile::tempdir().expect("a folder");
    let (input, output) = (folder.path().join("f.wat"), folder.path().join("f.so"));
    std::fs::write(&input, "(module (func (result i32)))").expect("write a file");
    std::fs::write(&output, "old").expect("write a file");
    let done = awsm(folder.path(), &["compile", &path(&input), "-o", &path(&output)]);
    assert_eq!(done.code(), 1, "{}", done.stderr);
    assert_eq!(std::fs::read(&output).expect("the old output"), b"old");
    let left: Vec<_> = std::fs::read_dir(folder.path()).expect("the folder").flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(left.len(), 2, "{left:?}");
}

impl Case {
    /// Writes the input; paths of input and output.
    fn paths(&self, folder: &Path) -> (String, String) {
        let input = self.input.as_ref().map(|input| {
            let path = folder.join(input.name);
            std::fs::write(&path, &input.bytes).expect("write a file");
            path
        });
        (path(&input.unwrap_or_default()), path(&folder.join("out.so")))
    }

    fn expand<'a>(&self, input: &'a str, output: &'a str) -> Vec<&'a str> {
        let one = |argument: &&'static str| match *argument {
            "IN" => input,
            "OUT" => output,
            other => other,
        };
        self.arguments.iter().map(one).collect()
    }
}

fn path(path: &Path) -> String {
    path.to_str().expect("a path in UTF-8").to_string()
}

fn awsm(folder: &Path, arguments: &[&str]) -> Finished {
    process::run(programs::awsm_command(arguments).current_dir(folder).env("COLUMNS", "100").env("NO_COLOR", "1"), b"", TIME_MAX)
}

fn compare(name: &str, got: &str) -> Option<String> {
    let file = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/cli/golden")).join(format!("{name}.txt"));
    golden::check(&file, got).err()
}

/// Exit status and output, without what differs between machines.
fn shown(done: &Finished, folder: &Path) -> String {
    let mut text = format!("exit status {}\n", done.code());
    for (name, stream) in [("stdout", &done.text()), ("stderr", &done.stderr)] {
        if !stream.is_empty() {
            text += &format!("--- {name}\n{stream}");
        }
    }
    if !text.ends_with('\n') {
        text.push('\n');
    }
    let text = text.replace(&format!("{}/", path(folder)), "");
    text.lines().map(|line| neutral(line) + "\n").collect()
}

/// A line without sizes, times and versions.
fn neutral(line: &str) -> String {
    if let Some((name, _)) = line.split_once(" in ").filter(|_| line.ends_with(" s") && line.contains(" KiB in ")) {
        return format!("{} SIZE in TIME", name.split(':').next().unwrap_or_default());
    }
    for key in ["file", "code", "trap table", "compiler"] {
        if line.strip_prefix(key).is_some_and(|rest| rest.starts_with("   ")) {
            return format!("{key:<13}VALUE");
        }
    }
    if line.starts_with("  function ")
        && let Some((before, after)) = line.split_once(" bytes")
    {
        return format!("{} SIZE bytes{after}", before.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end());
    }
    line.split(' ').map(neutral_word).collect::<Vec<_>>().join(" ")
}

/// A word without the random names of temporary files and the place of a compiler.
fn neutral_word(word: &str) -> String {
    let cut = |at: usize, by: &str| {
        let rest = word[at..].find(['/', '"']).map_or("", |end| &word[at + end..]);
        format!("{by}{rest}")
    };
    if word.starts_with("/tmp/awsm-") {
        return cut("/tmp/".len(), "TMP");
    }
    if let Some(at) = word.find("/.awsm-") {
        return word[..at].to_string() + &cut(at + 1, "/TMP");
    }
    let is_clang = word.rsplit('/').next().is_some_and(|name| name == "clang" || name.starts_with("clang-"));
    if is_clang { "CLANG".to_string() } else { word.to_string() }
}
