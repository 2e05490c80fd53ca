//! `sledge run` and `sledge invoke`.

use crate::encoded::{self, WASI3};
use crate::{entry, entry_with, eventually};
use serde_json::json;
use sledge_tests::admin::Admin;
use sledge_tests::process::{self, Finished};
use sledge_tests::programs::{self, run_awsm, sledge_command};
use sledge_tests::server::Server;
use std::cell::Cell;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;
use wit_component::StringEncoding;

const TIME_MAX: Duration = Duration::from_secs(120);

fn run(file: &Path, stdin: &[u8], arguments: &[&str]) -> Finished {
    let mut command = sledge_command(&["run"]);
    command.arg(file);
    if !arguments.is_empty() {
        command.arg("--").args(arguments);
    }
    process::run(&mut command, stdin, TIME_MAX)
}

#[test]
fn run_copies_standard_input_and_output_and_the_exit_status() {
    let exit = programs::function("exit.c");
    let done = run(&exit, b"shout", &[]);
    assert_eq!((done.code(), done.text().as_str()), (0, "SHOUT"), "{}", done.stderr);
    assert!(done.stderr.contains("to the log"), "{}", done.stderr);
    for status in [1, 7, 42] {
        let done = run(&exit, b"x", &[&status.to_string()]);
        assert_eq!((done.code(), done.text().as_str()), (status, "X"), "{}", done.stderr);
    }
    let large = vec![b'a'; 3_000_000];
    let done = run(&programs::function("echo.wat"), &large, &[]);
    assert!(done.code() == 0 && done.stdout == large, "{} bytes, {}", done.stdout.len(), done.stderr);
}

/// `run` of WASI 0.3, lifted as synchronous: it gives the stream of standard input to standard output, and returns at once.
const PASSING: &str = r#"(module
  (import "wasi:cli/stdin@V" "read-via-stream" (func $read (param i32)))
  (import "wasi:cli/stdout@V" "write-via-stream" (func $write (param i32) (result i32)))
  IMPORTS
  (memory (export "memory") 1)
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) unreachable)
  (func (export "wasi:cli/run@V#run") (result i32)
    (local $told i32)
    (call $read (i32.const 16))
    (local.set $told (call $write (i32.load (i32.const 16))))
    DROPS
    (i32.const STATUS)))"#;

#[test]
fn what_a_command_has_passed_on_arrives_before_it_ends() {
    let world = "import wasi:cli/stdin@V; import wasi:cli/stdout@V; export wasi:cli/run@V;";
    let imports = r#"(import "wasi:cli/stdin@V" "[future-drop-readable-1]read-via-stream" (func $drop_read (param i32)))
      (import "wasi:cli/stdout@V" "[future-drop-readable-1]write-via-stream" (func $drop_written (param i32)))"#;
    let drops = "(call $drop_read (i32.load (i32.const 20))) (call $drop_written (local.get $told))";
    let large = vec![b'a'; 3_000_000];
    // With built-in functions for tasks, and without.
    for (name, imports, drops, status) in [("passing", imports, drops, 0), ("passing-only", "", "", 1)] {
        let core = PASSING.replace("IMPORTS", imports).replace("DROPS", drops).replace("STATUS", &status.to_string());
        let file = encoded::artifact(name, WASI3, world, &core, StringEncoding::UTF8);
        for stdin in [b"passed on".as_slice(), b"", &large] {
            let done = run(&file, stdin, &[]);
            assert_eq!(done.code(), status, "{name}: {}", done.stderr);
            assert!(done.stdout == stdin, "{name}: {} of {} bytes", done.stdout.len(), stdin.len());
        }
    }
}

#[test]
fn run_gives_arguments() {
    let done = run(&programs::function("args.c"), b"", &["one", "--two", "three four"]);
    let text = done.text();
    assert!(text.ends_with("\narg one\narg --two\narg three four\n"), "{text}");
    assert_eq!(done.code(), 0, "{}", done.stderr);
}

#[test]
fn run_of_a_trap_ends_with_134_and_a_backtrace() {
    // Without optimisation every function has a frame of its own; with it, the innermost at least is named.
    for (level, names) in [("-O0", ["innermost", "middle", "outer", "_start"].as_slice()), ("-O3", &["innermost"])] {
        let done = run(&programs::function_with("traps.wat", &[level]), b"u", &[]);
        assert_eq!(done.code(), 134, "{}", done.stderr);
        let mut rest = done.stderr.as_str();
        for word in ["unreachable"].iter().chain(names) {
            let at = rest.find(word).unwrap_or_else(|| panic!("{word} is missing, or not in its place, in:\n{}", done.stderr));
            rest = &rest[at + word.len()..];
        }
    }
    let traps = programs::function("traps.wat");
    for (body, message) in [("m", "out of bounds memory access"), ("r", "call stack exhausted"), ("d", "integer divide by zero")]
    {
        let done = run(&traps, body.as_bytes(), &[]);
        assert_eq!(done.code(), 134, "{}", done.stderr);
        assert!(done.stderr.contains(message), "{}", done.stderr);
    }
    assert_eq!(run(&traps, b"-", &[]).code(), 0);
}

#[test]
fn run_compiles_a_module() {
    let wasm = programs::folder().join("echo-module.wasm");
    let source = programs::tests_folder().join("e2e/functions/echo.wat");
    let path = |path: &Path| path.to_str().expect("a path in UTF-8").to_string();
    let made = run_awsm(&["compile", &path(&source), "--emit", "wasm", "-o", &path(&wasm)]);
    assert_eq!(made.code(), 0, "{}", made.stderr);
    let done = run(&wasm, b"through the compiler", &[]);
    assert_eq!((done.code(), done.text().as_str()), (0, "through the compiler"), "{}", done.stderr);
    // A module that does not compile: the compiler's words, and exit status 1.
    let broken = programs::folder().join("broken-module.wasm");
    std::fs::write(&broken, b"\0asm\x01\0\0\0\x0b\x7f").expect("write a file");
    let done = run(&broken, b"", &[]);
    assert_eq!(done.code(), 1, "{}", done.stderr);
    assert!(done.stderr.contains("invalid module"), "{}", done.stderr);
}

#[test]
fn invoke_calls_a_function_of_a_running_server() {
    let server = Server::start(json!({ "functions": [
        entry("echo", "echo.wat"),
        entry("traps", "traps.wat"),
        entry_with("elsewhere", "exit.c", &json!({ "route": "/api/elsewhere" })),
    ] }));
    let invoke = |arguments: &[&str], stdin: &[u8]| {
        let mut command = sledge_command(&["invoke", "--server", &format!("http://{}", server.address)]);
        process::run(command.args(arguments), stdin, TIME_MAX)
    };
    let file = programs::folder().join("invoke-data");
    std::fs::write(&file, b"from a file\0\xff").expect("write a file");
    let done = invoke(&["echo", "--data", &format!("@{}", file.display())], b"");
    assert_eq!((done.code(), done.stdout.as_slice()), (0, b"from a file\0\xff".as_slice()), "{}", done.stderr);
    let done = invoke(&["echo", "--data", "as it stands"], b"");
    assert_eq!((done.code(), done.text().as_str()), (0, "as it stands"), "{}", done.stderr);
    let done = invoke(&["traps", "--data", "u"], b"");
    assert_ne!(done.code(), 0);
    assert!(done.stderr.contains("unreachable"), "{}", done.stderr);
    let done = invoke(&["missing", "--data", ""], b"");
    assert_ne!(done.code(), 0);
    assert!(done.stderr.contains("404"), "{}", done.stderr);
    server.stop();
}

#[test]
fn invoke_sends_methods_and_headers_and_shows_the_replys_head() {
    let server = Server::start(json!({ "functions": [entry_with("head", "head.c", &json!({ "methods": ["GET", "POST"] }))] }));
    let url = format!("http://{}", server.address);
    let invoke = |arguments: &[&str]| process::run(sledge_command(&["invoke", "--server", &url]).args(arguments), b"", TIME_MAX);
    let body = "method\ntarget\nheader x-one\nheader x-two\n";
    let done = invoke(&["/head?a=b", "-X", "GET", "-H", "x-one: 1", "-H", "X-Two:two words", "-i", "--data", body]);
    assert_eq!(done.code(), 0, "{}", done.stderr);
    let text = done.text();
    assert!(text.starts_with("HTTP/1.1 200 OK\n") && text.contains("\ncontent-length: "), "{text}");
    assert!(text.ends_with("\n\nGET\n/head?a=b\n1\ntwo words\n"), "{text}");
    // Where nothing is said.
    assert_eq!(invoke(&["head", "--data", "method\n"]).text(), "POST\n");
    let refused = invoke(&["head", "-X", "DELETE"]);
    assert!(refused.code() == 1 && refused.stderr.contains("405"), "{}", refused.stderr);
    for wrong in [["-H", "no colon"], ["-H", "a b: c"], ["-X", "A B"]] {
        let done = invoke(&["head", wrong[0], wrong[1]]);
        assert!(done.code() == 2 && done.stderr.contains(wrong[1]), "{wrong:?}: {}", done.stderr);
    }
    server.stop();
}

#[test]
fn serve_takes_files_and_serves_each_under_its_stem() {
    let mut command = sledge_command(&["serve", "--listen", "127.0.0.1:0", "--workers", "1", "--quantum-us", "200"]);
    let server = Server::start_with(command.arg(programs::function("echo.wat")).arg(programs::function("traps.wat")));
    let client = server.client();
    assert_eq!(client.post("/echo", "x").text(), "x");
    assert_eq!(client.post("/traps", "-").text(), "ok");
    server.stop();
}

#[test]
fn serve_of_a_taken_address_says_so() {
    let server = Server::start(json!({ "functions": [entry("echo", "echo.wat")] }));
    let address = server.address.to_string();
    let mut command = sledge_command(&["serve", "--listen", &address]);
    let done = process::run(command.arg(programs::function("echo.wat")), b"", TIME_MAX);
    assert_eq!(done.code(), 1, "{}", done.stderr);
    assert!(done.stderr.contains(&address), "{}", done.stderr);
    server.stop();
}

/// What perf and gdb are told is where the code lies: the address of a function in its file, moved by as much as gdb is told.
#[test]
fn serve_tells_perf_and_gdb_where_functions_lie() {
    let traps = programs::function_with("traps.wat", &["-O0"]);
    let server = Server::start_with(sledge_command(&["serve", "--listen", "127.0.0.1:0", "--symbols"]).arg(&traps));
    server.wait_for_log("add-symbol-file ");
    let log = server.log();
    let told = log.split_once(&format!("add-symbol-file {} -o 0x", traps.display()));
    let (_, rest) = told.unwrap_or_else(|| panic!("nothing for gdb in: {log}"));
    let hexadecimal = |text: &str| u64::from_str_radix(text, 16).unwrap_or_else(|_| panic!("{text} is no address"));
    let base = hexadecimal(rest.split(|c: char| !c.is_ascii_hexdigit()).next().expect("an address"));
    let map = Path::new("/tmp").join(format!("perf-{}.map", server.pid()));
    let lines = std::fs::read_to_string(&map).expect("perf's map");
    let mode = std::fs::metadata(&map).expect("perf's map").permissions().mode();
    let _ = std::fs::remove_file(&map);
    assert_eq!(mode & 0o777, 0o600);
    // Behind two imports and two others.
    for (index, name) in (4..).zip(["innermost", "middle", "outer"]) {
        let end = format!(" {name} [{}]", traps.file_name().expect("a name").display());
        let line = lines.lines().find(|line| line.ends_with(&end)).unwrap_or_else(|| panic!("no {name} in:\n{lines}"));
        let (address, size) = line.strip_suffix(&end).and_then(|line| line.split_once(' ')).expect("address and size");
        let explained =
            run_awsm(&["explain", &format!("wasm[{index}]::{name}"), traps.to_str().expect("a path in UTF-8")]).text();
        let line = explained.lines().find_map(|line| line.strip_prefix("address")).expect("its address in the file").trim_start();
        let in_file = line.strip_prefix("0x").and_then(|line| line.split(',').next()).expect("an address");
        assert_eq!(hexadecimal(address), base + hexadecimal(in_file), "{name}");
        assert!((1..4096).contains(&hexadecimal(size)), "{name}: {size}");
    }
    server.stop();
}

/// What is loaded again and again may lie where something else lay: perf is told of what is there.
#[test]
fn perf_is_not_told_of_what_is_gone() {
    let folder = tempfile::tempdir().expect("a folder");
    let door = folder.path().join("admin.sock");
    let mut command = sledge_command(&["serve", "--listen", "127.0.0.1:0", "--symbols", "--admin"]);
    let server = Server::start_with(command.arg(&door));
    let admin = Admin::new(door);
    let module =
        |name: &str| wat::parse_str(format!("(module (func ${name} (export \"sledge_handle\") (result i32) i32.const 0))"));
    let map = Path::new("/tmp").join(format!("perf-{}.map", server.pid()));
    let versions = Cell::new(0);
    // An earlier version may not be unloaded yet when the next one is there.
    eventually("the last versions are named", || {
        let version = versions.replace(versions.get() + 1);
        let module = module(&format!("version{version}")).expect("WAT");
        assert_eq!(admin.deploy("changes", &json!({}), &module).status, 200);
        let lines = std::fs::read_to_string(&map).expect("perf's map");
        let named = |version: usize| lines.lines().filter(|line| line.contains(&format!(" version{version} "))).count();
        assert_eq!(named(version), 1, "{lines}");
        version >= 7 && (0..version - 2).map(named).sum::<usize>() == 0
    });
    let _ = std::fs::remove_file(&map);
    server.stop();
}
