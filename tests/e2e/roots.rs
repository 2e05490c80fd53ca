//! The server's task is over, and the host still does something for it: another instance of the component goes on for as long as that takes.

use crate::encoded::{WASI3, component};
use serde_json::json;
use sledge_tests::http::Raw;
use sledge_tests::process;
use sledge_tests::programs::{self, awsm_command};
use sledge_tests::server::Server;
use std::path::{Path, PathBuf};
use std::time::Duration;
use wit_component::StringEncoding;

const TIME_MAX: Duration = Duration::from_secs(300);
/// How often the other instance goes on: much more often than there may be stacks.
const EVENTS: usize = 2_000;

const HANDLER: &str = "import wasi:http/types@V; import wasi:clocks/monotonic-clock@V; export wasi:http/handler@V;";

/// Answers with a stream that it writes to byte by byte. `BEFORE` is done before it returns the response, and `WITHIN` before each byte.
const STREAMING: &str = r#"(module
  (import "wasi:http/types@V" "[static]request.consume-body" (func $consume (param i32 i32 i32)))
  (import "wasi:http/types@V" "[future-new-0][static]request.consume-body" (func $outcome (result i64)))
  (import "wasi:http/types@V" "[stream-drop-readable-1][static]request.consume-body" (func $drop_readable (param i32)))
  (import "wasi:http/types@V" "[constructor]fields" (func $fields (result i32)))
  (import "wasi:http/types@V" "[static]response.new" (func $response (param i32 i32 i32 i32 i32)))
  (import "wasi:http/types@V" "[stream-new-0][static]response.new" (func $new (result i64)))
  (import "wasi:http/types@V" "[async-lower][stream-write-0][static]response.new" (func $write (param i32 i32 i32) (result i32)))
  (import "wasi:http/types@V" "[stream-drop-writable-0][static]response.new" (func $drop_writable (param i32)))
  (import "wasi:clocks/monotonic-clock@V" "wait-for" (func $wait (param i64)))
  (import "[export]wasi:http/handler@V" "[task-return]handle" (func $return (param i32 i32 i32 i64 i32 i32 i32 i32)))
  (import "$root" "[waitable-set-new]" (func $set_new (result i32)))
  (import "$root" "[waitable-join]" (func $join (param i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 512) "x")
  (global $writable (mut i32) (i32.const 0))
  (global $set (mut i32) (i32.const 0))
  (global $left (mut i32) (i32.const EVENTS))
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) unreachable)
  (func $go_on (result i32)
    (if (i32.eqz (global.get $left)) (then (call $drop_writable (global.get $writable)) (return (i32.const 0))))
    (global.set $left (i32.sub (global.get $left) (i32.const 1)))
    WITHIN
    (if (i32.eq (call $write (global.get $writable) (i32.const 512) (i32.const 1)) (i32.const -1))
      (then (return (i32.or (i32.const 2) (i32.shl (global.get $set) (i32.const 4))))))
    (i32.const 1))
  (func (export "[async-lift]wasi:http/handler@V#handle") (param $request i32) (result i32)
    (local $ends i64)
    BEFORE
    (call $consume (local.get $request) (i32.wrap_i64 (call $outcome)) (i32.const 32))
    (call $drop_readable (i32.load (i32.const 32)))
    (local.set $ends (call $new))
    (global.set $writable (i32.wrap_i64 (i64.shr_u (local.get $ends) (i64.const 32))))
    (global.set $set (call $set_new))
    (call $join (global.get $writable) (global.get $set))
    (call $response (call $fields) (i32.const 1) (i32.wrap_i64 (local.get $ends)) (i32.load (i32.const 36)) (i32.const 40))
    (call $return (i32.const 0) (i32.load (i32.const 40)) (i32.const 0) (i64.const 0) (i32.const 0) (i32.const 0) (i32.const 0)
      (i32.const 0))
    (call $go_on))
  (func (export "[callback][async-lift]wasi:http/handler@V#handle") (param i32 i32 i32) (result i32) (call $go_on)))"#;

const MIDDLEWARE: &str = "import wasi:http/handler@V; export wasi:http/handler@V;";

/// Passes a request on, in a call that waits.
const PASSES_ON: &str = r#"(module
  (import "wasi:http/handler@V" "handle" (func $handle (param i32 i32)))
  (memory (export "memory") 1)
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) unreachable)
  (func (export "wasi:http/handler@V#handle") (param $request i32) (result i32)
    (call $handle (local.get $request) (i32.const 256))
    (i32.const 256)))"#;

/// The same with a callback: where what it calls waits first, it goes on upon that one's stack, and is over there.
const CALLED_BACK: &str = r#"(module
  (import "wasi:http/handler@V" "[async-lower]handle" (func $handle (param i32 i32) (result i32)))
  (import "[export]wasi:http/handler@V" "[task-return]handle" (func $return (param i32 i32 i32 i64 i32 i32 i32 i32)))
  (import "$root" "[waitable-set-new]" (func $set_new (result i32)))
  (import "$root" "[waitable-join]" (func $join (param i32 i32)))
  (memory (export "memory") 1)
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) unreachable)
  (func $answer (result i32)
    (call $return (i32.load8_u (i32.const 256)) (i32.load (i32.const 264)) (i32.const 0) (i64.const 0) (i32.const 0) (i32.const 0)
      (i32.const 0) (i32.const 0))
    (i32.const 0))
  (func (export "[async-lift]wasi:http/handler@V#handle") (param $request i32) (result i32)
    (local $packed i32) (local $set i32)
    (local.set $packed (call $handle (local.get $request) (i32.const 256)))
    (if (i32.eq (local.get $packed) (i32.const 2)) (then (return (call $answer))))
    (if (i32.ne (i32.and (local.get $packed) (i32.const 15)) (i32.const 1)) (then unreachable))
    (local.set $set (call $set_new))
    (call $join (i32.shr_u (local.get $packed) (i32.const 4)) (local.get $set))
    (i32.or (i32.const 2) (i32.shl (local.get $set) (i32.const 4))))
  (func (export "[callback][async-lift]wasi:http/handler@V#handle") (param i32 i32) (param $state i32) (result i32)
    (if (i32.ne (local.get $state) (i32.const 2)) (then unreachable))
    (call $answer)))"#;

/// The artifact of a component with what it imports from another.
fn composed(name: &str, first: &Path, second: &Path) -> PathBuf {
    let path = programs::folder().join(format!("{name}.wasm"));
    let mut command = awsm_command(&["compose"]);
    let done = process::run(command.arg(first).arg("--plug").arg(second).arg("-o").arg(&path), b"", TIME_MAX);
    assert_eq!(done.code(), 0, "{command:?}: {}", done.stderr);
    programs::compiled(&path, &["-O", "0"])
}

#[test]
fn a_response_is_streamed_by_another_instance_than_the_servers() {
    let events = EVENTS.to_string();
    let wait = "(call $wait (i64.const 1_000))";
    let streaming = |name: &str, before: &str, within: &str| {
        let core = STREAMING.replace("EVENTS", &events).replace("BEFORE", before).replace("WITHIN", within);
        component(name, WASI3, HANDLER, &core, StringEncoding::UTF8)
    };
    let middleware = |name: &str, core: &str| component(name, WASI3, MIDDLEWARE, core, StringEncoding::UTF8);
    let firsts = [middleware("passes-on", PASSES_ON), middleware("called-back", CALLED_BACK)];
    // By events alone, and with calls that wait; with a root that is over on the first stack, and on another.
    let seconds = [
        streaming("events", "", ""),
        streaming("calls", "", wait),
        streaming("late", wait, ""),
        streaming("late-calls", wait, wait),
    ];
    let stem = |path: &Path| path.file_stem().expect("a name").to_str().expect("a name").to_owned();
    let pairs = || firsts.iter().flat_map(|first| seconds.iter().map(move |second| (first, second)));
    let name = |(first, second): (&PathBuf, &PathBuf)| format!("{}-{}", stem(first), stem(second));
    let functions: Vec<_> = pairs()
        .map(|(first, second)| {
            let name = name((first, second));
            json!({ "name": name, "path": composed(&name, first, second), "deadline_ms": 110_000 })
        })
        .collect();
    let server = Server::start(json!({ "workers": 1, "functions": functions }));
    // The second time in a sandbox that has been used.
    for name in pairs().map(name).flat_map(|name| [name.clone(), name]) {
        let reply = server.client().try_post(&format!("/{name}"), b"", &[]);
        let reply = reply.unwrap_or_else(|error| panic!("{name}: {error}\n{}", server.log()));
        assert_eq!((reply.status, reply.text()), (200, "x".repeat(EVENTS)), "{name}: {}", server.log());
    }
    server.stop();
}

const COMMAND: &str = "import wasi:cli/run@V; import wasi:cli/stdin@V; import wasi:cli/stdout@V; export wasi:cli/run@V;";

/// Runs what it imports, has the host pass on the standard input, and is over.
const PIPES: &str = r#"(module
  (import "wasi:cli/run@V" "run" (func $run (result i32)))
  (import "wasi:cli/stdin@V" "read-via-stream" (func $read_via_stream (param i32)))
  (import "wasi:cli/stdout@V" "write-via-stream" (func $write_via_stream (param i32) (result i32)))
  (import "[export]wasi:cli/run@V" "[task-return]run" (func $return (param i32)))
  (memory (export "memory") 1)
  (func (export "[async-lift]wasi:cli/run@V#run") (result i32)
    (call $read_via_stream (i32.const 16))
    (drop (call $write_via_stream (i32.load (i32.const 16))))
    (call $return (call $run))
    (i32.const 0))
  (func (export "[callback][async-lift]wasi:cli/run@V#run") (param i32 i32 i32) (result i32) unreachable))"#;

const TICKER: &str = "import wasi:cli/stderr@V; import wasi:clocks/monotonic-clock@V; export wasi:cli/run@V;";

/// Returns, goes on many times, and says so then. `WITHIN` is done each time.
const TICKS: &str = r#"(module
  (import "wasi:cli/stderr@V" "write-via-stream" (func $write_via_stream (param i32) (result i32)))
  (import "wasi:cli/stderr@V" "[stream-new-0]write-via-stream" (func $new (result i64)))
  (import "wasi:cli/stderr@V" "[async-lower][stream-write-0]write-via-stream" (func $write (param i32 i32 i32) (result i32)))
  (import "wasi:clocks/monotonic-clock@V" "wait-for" (func $wait (param i64)))
  (import "[export]wasi:cli/run@V" "[task-return]run" (func $return (param i32)))
  (memory (export "memory") 1)
  (data (i32.const 512) "done\n")
  (global $left (mut i32) (i32.const EVENTS))
  (func (export "[async-lift]wasi:cli/run@V#run") (result i32)
    (call $return (i32.const 0))
    (i32.const 1))
  (func (export "[callback][async-lift]wasi:cli/run@V#run") (param i32 i32 i32) (result i32)
    (local $ends i64)
    WITHIN
    (global.set $left (i32.sub (global.get $left) (i32.const 1)))
    (if (global.get $left) (then (return (i32.const 1))))
    (local.set $ends (call $new))
    (drop (call $write_via_stream (i32.wrap_i64 (local.get $ends))))
    (drop (call $write (i32.wrap_i64 (i64.shr_u (local.get $ends) (i64.const 32))) (i32.const 512) (i32.const 5)))
    (i32.const 0)))"#;

#[test]
fn a_command_that_the_host_still_works_for_goes_on_in_another_instance() {
    let first = component("pipes", WASI3, COMMAND, PIPES, StringEncoding::UTF8);
    for (name, within) in [("ticks", ""), ("ticks-in-calls", "(call $wait (i64.const 1_000))")] {
        let core = TICKS.replace("EVENTS", &EVENTS.to_string()).replace("WITHIN", within);
        let second = component(name, WASI3, TICKER, &core, StringEncoding::UTF8);
        let path = composed(&format!("pipes-{name}"), &first, &second);
        let command = json!({ "name": "command", "path": path, "methods": ["POST"], "body": "stream", "deadline_ms": 110_000 });
        let server = Server::start(json!({ "workers": 1, "functions": [command] }));
        let mut raw = Raw::connect(server.address);
        raw.send("POST /command HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n");
        // Its input has not ended, so neither has the command.
        server.wait_for_log("done");
        raw.send("9\r\npassed on\r\n0\r\n\r\n");
        let reply = raw.reply().unwrap_or_else(|| panic!("{name}: {}", server.log()));
        assert_eq!((reply.status, reply.text().as_str()), (200, "passed on"), "{name}: {}", server.log());
        server.stop();
    }
}
