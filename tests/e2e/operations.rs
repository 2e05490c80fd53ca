//! Async functions of the host: what a component asks of WASI 0.3 goes on while it does something else.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::json;
use sledge_tests::machine;
use sledge_tests::process;
use sledge_tests::programs::{self, sledge_command};
use sledge_tests::server::Server;

use crate::{eventually, fastest_below};

const TIME_MAX: Duration = Duration::from_secs(120);

#[test]
fn a_command_waits_for_several_things_at_once() {
    let done = process::run(sledge_command(&["run"]).arg(programs::function("waits.wat")), b"", TIME_MAX);
    assert!(done.status.success(), "{:?} {}", done.status, done.stderr);
}

/// Twice as many invocations as workers wait; the worker runs others meanwhile.
#[test]
fn an_invocation_that_waits_for_operations_keeps_no_worker() {
    let waits = json!({ "name": "waits", "path": programs::function("waits.wat"), "methods": ["POST"] });
    let echo = json!({ "name": "echo", "path": programs::function("echo.wat"), "methods": ["POST"] });
    let server = Server::start(json!({ "workers": 1, "functions": [waits, echo] }));
    // They wait for 800 ms.
    fastest_below("a request beside those that wait", Duration::from_millis(500), || {
        std::thread::scope(|scope| {
            let waiting: Vec<_> = (0..4).map(|_| scope.spawn(|| server.client().post("/waits", b"").status)).collect();
            std::thread::sleep(Duration::from_millis(100));
            let begin = Instant::now();
            assert_eq!(server.client().post("/echo", "x").text(), "x");
            let took = begin.elapsed();
            for reply in waiting {
                assert_eq!(reply.join().expect("a client"), 200, "{}", server.log());
            }
            took
        })
    });
    server.stop();
}

/// Two calls that wait for the host at once, each on its own stack: in time, one after the other in a sandbox that is used again, and while others run.
#[test]
fn calls_that_wait_inside_of_themselves_go_on_when_their_own_time_has_come() {
    let done = process::run(sledge_command(&["run"]).arg(programs::function("stacks.wat")), b"", TIME_MAX);
    assert!(done.status.success(), "{:?} {}", done.status, done.stderr);
    let stacks = json!({ "name": "stacks", "path": programs::function("stacks.wat"), "methods": ["POST"] });
    let short = json!({ "name": "short", "path": programs::function("stacks.wat"), "methods": ["POST"], "deadline_ms": 100 });
    let echo = json!({ "name": "echo", "path": programs::function("echo.wat"), "methods": ["POST"] });
    let server = Server::start(json!({ "workers": 1, "functions": [stacks, short, echo] }));
    for _ in 0..2 {
        std::thread::scope(|scope| {
            let waiting: Vec<_> = (0..3).map(|_| scope.spawn(|| server.client().post("/stacks", b"").status)).collect();
            std::thread::sleep(Duration::from_millis(100));
            assert_eq!(server.client().post("/echo", "x").text(), "x");
            // Killed with all its stacks.
            assert_eq!(server.client().post("/short", b"").status, 504, "{}", server.log());
            for reply in waiting {
                assert_eq!(reply.join().expect("a client"), 200, "{}", server.log());
            }
        });
    }
    server.stop();
}

/// The part of a component that wakes up on another stack than the first.
fn awakes(folder: &Path, name: &str, awake: &str) -> PathBuf {
    let text = std::fs::read_to_string(programs::tests_folder().join("e2e/functions/stacks.wat")).expect("a component");
    let changed = text.replace("(func $awake)", &format!("(func $awake {awake})"));
    assert_ne!(changed, text);
    let source = folder.join(format!("{name}.wat"));
    std::fs::write(&source, changed).expect("a file");
    let artifact = folder.join(format!("{name}.so"));
    let arguments = ["compile", source.to_str().expect("a name"), "-o", artifact.to_str().expect("a name")];
    let done = programs::run_awsm(&arguments);
    assert!(done.status.success(), "{}", done.stderr);
    artifact
}

/// What runs on another stack than the first is preempted, traps with its own backtrace, runs out of its own stack, and is refused memory as any code.
#[test]
fn each_stack_is_a_guests_like_the_first() {
    let folder = tempfile::tempdir().expect("a folder");
    // What it computes is looked at, so that the loop stays.
    let busy = "(local $count i64) (local $hash i64)
        (loop $more
          (local.set $hash (i64.add (i64.rotl (local.get $hash) (i64.const 5)) (local.get $count)))
          (local.set $count (i64.add (local.get $count) (i64.const 1)))
          (br_if $more (i64.lt_u (local.get $count) (i64.const 100_000_000_000))))
        (if (i64.eqz (local.get $hash)) (then unreachable))";
    let functions = [("busy", busy), ("trap", "unreachable"), ("deep", "(call $awake) (call $awake)")]
        .map(|(name, awake)| json!({ "name": name, "path": awakes(folder.path(), name, awake), "methods": ["POST"], "deadline_ms": 6_000 }));
    let small = json!({
        "name": "small", "path": programs::function("stacks.wat"), "methods": ["POST"], "stack_bytes": 1 << 20, "memory_bytes_max": 3 << 19,
    });
    let echo = json!({ "name": "echo", "path": programs::function("echo.wat"), "methods": ["POST"] });
    let functions: Vec<_> = functions.into_iter().chain([small, echo]).collect();
    let server = Server::start(json!({ "workers": 1, "functions": functions }));
    std::thread::scope(|scope| {
        let busy = scope.spawn(|| server.client().post("/busy", b"").status);
        std::thread::sleep(Duration::from_millis(600));
        let begin = Instant::now();
        assert_eq!(server.client().post("/echo", "x").text(), "x");
        assert!(begin.elapsed() < Duration::from_secs(4), "{:?}", begin.elapsed());
        assert_eq!(busy.join().expect("a client"), 504);
    });
    for (name, message) in [("trap", "unreachable"), ("deep", "stack exhausted")] {
        assert_eq!(server.client().post(&format!("/{name}"), b"").status, 500, "{name}");
        // The log is written beside the reply.
        eventually(&format!("{name} is in the log"), || {
            let log = server.log();
            log.contains(message) && log.contains("awake of")
        });
    }
    assert_eq!(server.client().post("/small", b"").status, 500, "{}", server.log());
    server.stop();
}

#[test]
fn a_command_writes_what_it_reads_from_streams_of_the_host() {
    let input: Vec<u8> = (0..1_000_000_u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let done = process::run(sledge_command(&["run"]).arg(programs::function("stdio.wat")), &input, TIME_MAX);
    assert!(done.status.success(), "{:?} {}", done.status, done.stderr);
    assert!(done.stdout == input, "{} bytes", done.stdout.len());
}

#[test]
fn what_allocates_a_result_sees_no_context() {
    let done =
        process::run(sledge_command(&["run"]).arg(programs::function("allocates.wat")).args(["--", "one", "two"]), b"", TIME_MAX);
    assert!(done.status.success(), "{:?} {}", done.status, done.stderr);
}

/// What the component has not taken of a write is written once more: the host must not have it by then.
#[test]
fn a_stream_is_passed_to_the_host_in_the_middle_of_a_write() {
    let done = process::run(sledge_command(&["run"]).arg(programs::function("passed-on.wat")), b"", TIME_MAX);
    assert!(done.status.success(), "{:?} {}", done.status, done.stderr);
    assert_eq!(done.stdout, b"5678");
}

/// Each request has streams of its own.
#[test]
fn a_function_answers_through_streams_of_the_host() {
    let stdio = json!({ "name": "stdio", "path": programs::function("stdio.wat"), "methods": ["POST"] });
    let server = Server::start(json!({ "workers": 1, "functions": [stdio] }));
    for body in ["", "one", "another one"] {
        assert_eq!(server.client().post("/stdio", body).text(), body, "{}", server.log());
    }
    let long = "0123456789".repeat(50_000);
    assert_eq!(server.client().post("/stdio", &long).text(), long);
    server.stop();
}

/// Stacks are for the glue of components. A plain module may import what starts them, too; what it asks for in vain ends its invocation, and no other.
#[test]
fn a_plain_module_that_asks_for_stacks_gets_as_many_as_there_are() {
    let folder = tempfile::tempdir().expect("a folder");
    let functions = [
        ("none", "", "(call $switch (i32.const 7))", Some("no such stack")),
        ("nothing", "", "(call $switch (i32.const 1))", Some("no such stack")),
        ("wrong", r#"(func (export "stack") (param i32))"#, "(call $switch (i32.const 1))", Some("no such stack")),
        ("returning", r#"(func (export "stack"))"#, "(call $switch (i32.const 1))", Some("no such stack")),
        (
            "many",
            r#"(func $stack (export "stack") (global.set $count (i32.add (global.get $count) (i32.const 1)))
                (call $switch (global.get $count)) unreachable)"#,
            "(global.set $count (i32.const 1)) (call $switch (i32.const 1))",
            Some("too many calls wait at once"),
        ),
        (
            "three",
            r#"(func (export "stack") (call $switch (i32.const 0)) (call $switch (i32.const 2)) unreachable)"#,
            "(call $switch (i32.const 1)) (call $switch (i32.const 1)) (call $switch (i32.const 0))",
            None,
        ),
    ];
    let entries: Vec<_> = functions
        .iter()
        .map(|(name, stack, body, _)| {
            let source = folder.path().join(format!("{name}.wat"));
            let text = format!(
                r#"(module (import "sledge:canonical" "switch" (func $switch (param i32))) (global $count (mut i32) (i32.const 0))
                  (memory (export "memory") 1) {stack} (func (export "sledge_handle") (result i32) {body} (i32.const 0)))"#
            );
            std::fs::write(&source, text).expect("a file");
            json!({ "name": name, "path": programs::compiled(&source, &["--allow-unknown-imports"]), "methods": ["POST"] })
        })
        .collect();
    let server = Server::start(json!({ "workers": 1, "functions": entries }));
    for (name, _, _, message) in functions {
        for _ in 0..2 {
            let reply = server.client().post(&format!("/{name}"), b"");
            assert_eq!(reply.status, if message.is_some() { 500 } else { 200 }, "{name}: {reply:?}");
            let Some(message) = message else { continue };
            assert_eq!(reply.json()["code"], "trap", "{name}");
            eventually(&format!("{name} is in the log"), || {
                let log = server.log();
                log.lines().any(|line| line.contains(message) && line.contains(name))
            });
        }
    }
    let log = server.stop_for_log();
    assert!(!log.contains("the host failed"), "{log}");
}

/// A module that adds up on three stacks in turn, each in its own part of one memory, for longer than a quantum at a time. `first` is what the first of the others does when it begins.
fn adding(first: &str) -> String {
    const ROUNDS: u32 = 6;
    /// How often in each place.
    const TIMES: u32 = 2_000;
    let (steps, expected) = (1_024 * TIMES, ROUNDS * TIMES);
    format!(
        r#"(module
          (import "sledge:canonical" "switch" (func $switch (param i32)))
          (memory (export "memory") 1)
          (global $stacks (mut i32) (i32.const 0))
          ;; One more in each of 1,024 places in turn.
          (func $add (param $stack i32)
            (local $step i32) (local $at i32)
            (loop $more
              (local.set $at (i32.add
                (i32.shl (local.get $stack) (i32.const 12))
                (i32.shl (i32.and (local.get $step) (i32.const 1023)) (i32.const 2))))
              (i32.store (local.get $at) (i32.add (i32.load (local.get $at)) (i32.const 1)))
              (local.set $step (i32.add (local.get $step) (i32.const 1)))
              (br_if $more (i32.lt_u (local.get $step) (i32.const {steps})))))
          (func (export "stack")
            (local $stack i32)
            (global.set $stacks (i32.add (global.get $stacks) (i32.const 1)))
            (local.set $stack (global.get $stacks))
            {first}
            (loop $on
              (call $add (local.get $stack))
              (call $switch (i32.rem_u (i32.add (local.get $stack) (i32.const 1)) (i32.const 3)))
              (br $on)))
          (func (export "sledge_handle") (result i32)
            (local $round i32) (local $at i32)
            (loop $on
              (call $add (i32.const 0))
              (call $switch (i32.const 1))
              (local.set $round (i32.add (local.get $round) (i32.const 1)))
              (br_if $on (i32.lt_u (local.get $round) (i32.const {ROUNDS}))))
            (loop $look
              (if (i32.ne (i32.load (local.get $at)) (i32.const {expected})) (then (return (i32.const 9))))
              (local.set $at (i32.add (local.get $at) (i32.const 4)))
              (br_if $look (i32.lt_u (local.get $at) (i32.const 12288))))
            (i32.const 0)))"#
    )
}

/// Where memory is reached through a segment register, each stack reaches it, on whichever thread it goes on, and among guests that have no such register. A component has several
/// memories, and is refused by name.
#[test]
fn each_stack_reaches_a_memory_behind_a_segment_register() {
    if cfg!(not(target_arch = "x86_64")) || machine::is_emulated() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let compiled = |name: &str, text: &str, bounds: &str| {
        let source = folder.path().join(format!("{name}.wat"));
        std::fs::write(&source, text).expect("a file");
        let path = programs::compiled(&source, &["--allow-unknown-imports", "--bounds", bounds]);
        json!({ "name": name, "path": path, "methods": ["POST"] })
    };
    let beyond = "(i32.store (i32.const 0x7fffffff) (i32.const 1))";
    let functions = [
        compiled("segment", &adding(""), "segment"),
        compiled("guard", &adding(""), "guard"),
        compiled("beyond", &adding(beyond), "segment"),
    ];
    let server = Server::start(json!({ "workers": 2, "quantum_us": 500, "functions": functions }));
    std::thread::scope(|scope| {
        for path in ["/segment", "/guard", "/segment", "/guard"] {
            let client = server.client();
            scope.spawn(move || {
                for _ in 0..5 {
                    let reply = client.post(path, b"");
                    assert_eq!(reply.status, 200, "{path}: {reply:?}");
                }
            });
        }
    });
    let metrics = server.admin().get("/metrics").text();
    let preempted = metrics.lines().find(|line| line.starts_with("sledge_preemptions_total{function=\"segment\""));
    assert!(preempted.is_some_and(|line| !line.ends_with(" 0")), "{preempted:?}");
    let reply = server.client().post("/beyond", b"");
    assert_eq!((reply.status, &reply.json()["reason"]), (500, &json!("memory_out_of_bounds")), "{reply:?}");
    assert_eq!(server.client().post("/segment", b"").status, 200);
    server.stop();

    let source = programs::tests_folder().join("e2e/functions/stacks.wat");
    let out = folder.path().join("stacks.so");
    let arguments = ["compile", "--bounds", "segment", source.to_str().expect("a name"), "-o", out.to_str().expect("a name")];
    let done = programs::run_awsm(&arguments);
    assert!(done.code() == 1 && done.stderr.contains("bounds `segment`: a component has several memories"), "{}", done.stderr);
    assert!(!out.exists());
}
