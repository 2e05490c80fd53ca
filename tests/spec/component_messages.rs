//! Components: what a person is told where the component model forbids something. Which function of which instance, which value, and how it came there.

use std::fmt::Write as _;
use std::time::Duration;

use awsm::{Bounds, CompileOptions, OptLevel};
use sledge::component_trap::ComponentTrap;
use sledge_sandbox::{Artifact, LoadPolicy, SandboxLimits, Template, WorkerThread};
use sledge_tests::canonical::Encoding;
use sledge_tests::command::{self, End};

use super::components::{compile, pair, string_passed, with_resource};

/// The message and the backtrace of a command that ends early.
fn told_by(text: &str, opt_level: OptLevel) -> (String, String) {
    let options = CompileOptions { bounds: Bounds::Guard, opt_level, ..CompileOptions::default() };
    let artifact = compile(text, &options).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let artifact = Artifact::load(&artifact, &LoadPolicy::default()).unwrap();
    let mut sandbox = Template::new(&artifact, &SandboxLimits::default()).unwrap().instantiate().unwrap();
    let worker = WorkerThread::enter(Duration::from_millis(10)).unwrap();
    let (end, trace) = command::run_traced(&worker, &mut sandbox, Duration::from_secs(60));
    let message = match end {
        End::Violation(violation) => {
            let frames = trace.backtrace.frames.iter().map(|frame| frame.location);
            let frames = frames.map(|place| (place.module, place.function, place.offset));
            let called = (awsm_abi::component::CANONICAL, awsm_abi::component::TRAP);
            ComponentTrap::of(violation, trace.value).told(artifact.descriptor(), frames, called)
        }
        End::Trap(code) => code.to_string(),
        other => panic!("{other:?}"),
    };
    (message, trace.backtrace.to_string())
}

/// The message, which is the same at all levels.
fn message(text: &str) -> String {
    let [o0, o1, o3] = [OptLevel::O0, OptLevel::O1, OptLevel::O3].map(|level| told_by(text, level));
    assert_eq!(o0.0, o1.0, "{}\n{}", o0.1, o1.1);
    assert_eq!(o0.0, o3.0, "{}\n{}", o0.1, o3.1);
    o3.0
}

/// A call of the provider's function by the user.
fn called(function: &str) -> String {
    format!("`{function}` of instance `provider`, called by instance `user`")
}

#[test]
fn a_string_that_is_not_valid_says_where() {
    let texts: [&[u8]; 8] = [
        b"\x80",
        b"twelve bytes\xff and more",
        b"ok\xc3",
        b"\xe0\x9f\xbf",
        b"a\xed\xa0\x80",
        b"abc\xf4\x90\x80\x80",
        b"\xe2\x82",
        b"sixteen bytes of text and then \xff",
    ];
    for bytes in texts {
        let at = std::str::from_utf8(bytes).unwrap_err().valid_up_to();
        let expected = format!("{}: invalid utf8 at byte {at} of the argument", called("check"));
        for to in Encoding::ALL {
            let text = string_passed(Encoding::Utf8, (bytes, bytes.len() as u32), to, "");
            assert_eq!(told_by(&text, OptLevel::O1).0, expected, "{bytes:x?} to {to:?}");
        }
        assert_eq!(message(&string_passed(Encoding::Utf8, (bytes, bytes.len() as u32), Encoding::Utf8, "")), expected);
    }
    for (units, at) in [(&[0xd800_u16][..], 0), (&[0x41, 0x42, 0xdc00, 0x41], 4), (&[0x41, 0xd800, 0x41], 2)] {
        let bytes: Vec<u8> = units.iter().flat_map(|unit| unit.to_le_bytes()).collect();
        let expected = format!("{}: invalid utf16 at byte {at} of the argument", called("check"));
        for to in Encoding::ALL {
            let text = string_passed(Encoding::Utf16, (&bytes, units.len() as u32), to, "");
            assert_eq!(told_by(&text, OptLevel::O1).0, expected, "{units:x?} to {to:?}");
        }
    }
    // Where it goes on after a first pass, the place of the pass in the string is not known.
    let bytes = "é€".as_bytes().iter().copied().chain([0xff]).collect::<Vec<_>>();
    let text = string_passed(Encoding::Utf8, (&bytes, bytes.len() as u32), Encoding::Compact, "");
    assert_eq!(message(&text), format!("{}: invalid utf8 encoding, in the argument", called("check")));
    let text = string_passed(Encoding::Utf8, (b"", 0x7fff_ffff), Encoding::Utf8, "");
    assert_eq!(message(&text), format!("{}: string content out-of-bounds, in the argument", called("check")));
}

/// A command that takes a string of its provider, in whose memory it stands at 100. The place of its pointer and length is `to`.
fn string_returned(bytes: &[u8], to: u32) -> String {
    let data = bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "\\{byte:02x}");
        text
    });
    let provider = format!(
        r#"(core module $m (memory (export "memory") 1) (data (i32.const 100) "{data}")
          (func (export "demo:text/text#text") (result i32)
            (i32.store (i32.const 0) (i32.const 100))
            (i32.store (i32.const 4) (i32.const {}))
            (i32.const 0)))
        (core instance $i (instantiate $m))
        (func (export "text") (result string) (canon lift (core func $i "demo:text/text#text") (memory (core memory $i "memory"))))"#,
        bytes.len()
    );
    let imports = r#"(import "p" (instance $p (export "text" (func (result string)))))"#;
    let lowered = r#"
        (core module $r (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 4096)))
        (core instance $r (instantiate $r))
        (core func $text (canon lower (func $p "text")
          (memory (core memory $memory "memory")) (realloc (core func $r "realloc"))))
        (core instance $lowered (export "text" (func $text)))"#;
    let core = format!(
        r#"(import "p" "text" (func $text (param i32)))
        (func (export "run") (result i32) (call $text (i32.const {})) (i32.const 0))"#,
        to.cast_signed()
    );
    pair(&provider, imports, lowered, &core)
}

#[test]
fn results_are_told_from_arguments() {
    let expected = format!("{}: invalid utf8 at byte 2 of the result", called("text"));
    assert_eq!(message(&string_returned(b"ok\xff", 16)), expected);
}

#[test]
fn a_place_for_a_result_lies_in_memory() {
    let expected = format!("{}: pointer out of bounds of memory, in the result", called("text"));
    assert_eq!(message(&string_returned(b"text", 0xffff_fff0)), expected);
    assert_eq!(message(&string_returned(b"text", 0x1_fffc)), expected);
}

#[test]
fn a_handle_is_named() {
    let make = "(drop (call $make (i32.const 5)))";
    for (body, expected) in [
        ("(drop (call $value (i32.const 7)))", format!("{}: unknown handle index 7, in the argument", called("value"))),
        (
            &format!("{make} (call $take (i32.const 1)) (call $take (i32.const 1))"),
            format!("{}: unknown handle index 1, in the argument", called("take")),
        ),
        ("(call $drop (i32.const -1))", "instance `user`: unknown handle index 4294967295".to_owned()),
    ] {
        assert_eq!(message(&with_resource(body)), expected, "{body}");
    }
}

#[test]
fn a_backtrace_names_component_module_and_function() {
    let text = string_passed(Encoding::Utf8, (b"\xff", 1), Encoding::Utf8, "");
    for level in [OptLevel::O0, OptLevel::O3] {
        let (_, backtrace) = told_by(&text, level);
        let position = |words: &str| {
            let found = backtrace.lines().position(|line| line.contains(words));
            found.unwrap_or_else(|| panic!("{words:?} is not in\n{backtrace}"))
        };
        let adapter = position(&format!("({})", called("check")));
        let run = position("run of module");
        assert!(adapter < run, "{backtrace}");
        let line = backtrace.lines().nth(run).unwrap();
        assert!(line.contains("\"main\" of instance `user` at wasm offset 0x"), "{line}");
    }
}

#[test]
fn a_trap_of_core_code_is_found_behind_calls_that_were_inlined() {
    let provider = r#"(core module $m (func (export "fail") unreachable))
        (core instance $i (instantiate $m))
        (func (export "fail") (canon lift (core func $i "fail")))"#;
    let imports = r#"(import "p" (instance $p (export "fail" (func))))"#;
    let lowered = r#"(core func $fail (canon lower (func $p "fail"))) (core instance $lowered (export "fail" (func $fail)))"#;
    let core = r#"(import "p" "fail" (func $fail)) (func (export "run") (result i32) (call $fail) (i32.const 0))"#;
    let text = pair(provider, imports, lowered, core);
    for level in [OptLevel::O0, OptLevel::O3] {
        let (message, backtrace) = told_by(&text, level);
        assert_eq!(message, "unreachable");
        let names: Vec<&str> =
            backtrace.lines().filter_map(|line| line.split_once(": ")?.1.split_once(" of ")).map(|(name, _)| name).collect();
        assert_eq!(names[0], "fail", "{backtrace}");
        assert!(
            names.iter().position(|name| name.starts_with("adapter")) < names.iter().position(|name| *name == "run"),
            "{backtrace}"
        );
        assert!(backtrace.lines().next().unwrap().contains("of instance `provider`"), "{backtrace}");
    }
}

/// A command that reads a stream of strings of its provider, in whose memory the only one stands at 100.
fn string_streamed(bytes: &[u8]) -> String {
    let data = bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "\\{byte:02x}");
        text
    });
    let provider = format!(
        r#"(core module $memory (memory (export "memory") 1) (data (i32.const 100) "{data}"))
        (core instance $memory (instantiate $memory))
        (type $s (stream string))
        (core func $new (canon stream.new $s))
        (core func $write (canon stream.write $s async (memory (core memory $memory "memory"))))
        (core module $m (import "m" "memory" (memory 1))
          (import "s" "new" (func $new (result i64))) (import "s" "write" (func $write (param i32 i32 i32) (result i32)))
          (func (export "start") (result i32) (local $ends i64)
            (i32.store (i32.const 0) (i32.const 100))
            (i32.store (i32.const 4) (i32.const {}))
            (local.set $ends (call $new))
            (drop (call $write (i32.wrap_i64 (i64.shr_u (local.get $ends) (i64.const 32))) (i32.const 0) (i32.const 1)))
            (i32.wrap_i64 (local.get $ends))))
        (core instance $i (instantiate $m (with "m" (instance $memory))
          (with "s" (instance (export "new" (func $new)) (export "write" (func $write))))))
        (func (export "start") (result $s) (canon lift (core func $i "start")))"#,
        bytes.len()
    );
    let imports = r#"(type $s (stream string)) (import "p" (instance $p (export "start" (func (result $s)))))"#;
    let lowered = r#"
        (core module $r (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 4096)))
        (core instance $r (instantiate $r))
        (core func $start (canon lower (func $p "start")))
        (core func $read (canon stream.read $s async
          (memory (core memory $memory "memory")) (realloc (core func $r "realloc"))))
        (core instance $lowered (export "start" (func $start)) (export "read" (func $read)))"#;
    let core = r#"(import "p" "start" (func $start (result i32))) (import "p" "read" (func $read (param i32 i32 i32) (result i32)))
        (func (export "run") (result i32) (drop (call $read (call $start) (i32.const 16) (i32.const 1))) (i32.const 0))"#;
    pair(&provider, imports, lowered, core)
}

#[test]
fn what_is_wrong_in_a_stream_is_found_by_the_second_that_comes() {
    let expected = "instance `user`: invalid utf8 at byte 3 of a string in a stream or future";
    assert_eq!(message(&string_streamed(b"abc\xff")), expected);
}

/// A command that ends with that flat result. `lifted`: its type and how it is lifted.
fn ended(interface: &str, lifted: &str) -> String {
    format!(
        r#"(component
          (component $user
            (core func $return (canon task.return (result (result))))
            (core module $m (import "" "return" (func $return (param i32)))
              (func (export "two") (result i32) (i32.const 2))
              (func (export "returns-two") (result i32) (call $return (i32.const 2)) (i32.const 0))
              (func (export "twice") (result i32) (call $return (i32.const 0)) (call $return (i32.const 0)) (i32.const 0))
              (func (export "never") (result i32) (i32.const 0))
              (func (export "synchronous") (result i32) (call $return (i32.const 0)) (i32.const 0))
              (func (export "callback") (param i32 i32 i32) (result i32) unreachable))
            (core instance $i (instantiate $m (with "" (instance (export "return" (func $return))))))
            (func (export "run") {lifted}))
          (instance $user (instantiate $user))
          (instance $run (export "run" (func $user "run")))
          (export "{interface}" (instance $run)))"#
    )
}

#[test]
fn a_result_that_is_none_is_no_failure() {
    let expected = "`run` of instance `user`: invalid variant discriminant, in the result";
    let callback = r#"async (callback (core func $i "callback"))"#;
    for (interface, lifted) in [
        ("wasi:cli/run@0.2.3", r#"(result (result)) (canon lift (core func $i "two"))"#.to_owned()),
        ("wasi:cli/run@0.3.0", r#"async (result (result)) (canon lift (core func $i "two"))"#.to_owned()),
        ("wasi:cli/run@0.3.0", format!(r#"async (result (result)) (canon lift (core func $i "returns-two") {callback})"#)),
    ] {
        assert_eq!(message(&ended(interface, &lifted)), expected, "{lifted}");
    }
}

#[test]
fn how_a_task_returned_is_told() {
    let callback = r#"async (callback (core func $i "callback"))"#;
    for (function, options, expected) in [
        ("twice", callback, "instance `user`: `task.return` by a task that has returned or was cancelled before"),
        ("never", callback, "an async function ended without `task.return`"),
        ("synchronous", "", "instance `user`: `task.return` where no function runs that is lifted as async"),
    ] {
        let lifted = format!(r#"async (result (result)) (canon lift (core func $i "{function}") {options})"#);
        assert_eq!(message(&ended("wasi:cli/run@0.3.0", &lifted)), expected, "{function}");
    }
}
