//! What `awsm compile` advises where something else has to be done first: modules that are to become components, release candidates of WASI, and middleware.

use super::{awsm, compare, shown};

/// What a compiler leaves of a program for `wasi:http` that is to become a component.
const INTERFACES: &str = r#"(module
  (import "wasi:http/types@0.2.0" "[method]incoming-request.headers" (func (param i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func (param i32 i32 i32 i32) (result i32)))
  (func (export "wasi:http/incoming-handler@0.2.0#handle") (param i32 i32)))"#;

/// The same by the other rule for names.
const STANDARD: &str = r#"(module
  (import "cm32p2|wasi:cli/stdout@0.2" "get-stdout" (func (result i32)))
  (func (export "cm32p2|wasi:cli/run@0.2|run") (result i32) (i32.const 0)))"#;

/// A module that says its world.
const WORLD: &str = r#"(module
  (import "words" "shout" (func (param i32)))
  (func (export "run"))
  (@custom "component-type:app" "..."))"#;

/// What stock Go makes: only what it exports tells.
const EXPORTS: &str = r#"(module
  (import "wasi_snapshot_preview1" "adapter_monotonic_clock_set_paused" (func (param i32)))
  (func (export "demo:words/shout@1.0.0#shout") (param i32)))"#;

/// A component that passes requests on to another.
fn middleware(more: &str) -> String {
    format!(
        r#"(component
  (import "wasi:http/types@0.2.0" (instance $types
    (export "incoming-request" (type (sub resource))) (export "response-outparam" (type (sub resource)))))
  (alias export $types "incoming-request" (type $request))
  (alias export $types "response-outparam" (type $out))
  (import "wasi:http/incoming-handler@0.2.0" (instance $inner
    (export "handle" (func (param "request" (own $request)) (param "response-out" (own $out))))))
  (core func $inner (canon lower (func $inner "handle")))
  (core module $m
    (import "" "inner" (func $inner (param i32 i32)))
    (func (export "handle") (param i32 i32) (call $inner (local.get 0) (local.get 1))))
  (core instance $i (instantiate $m (with "" (instance (export "inner" (func $inner))))))
  (func $handle (param "request" (own $request)) (param "response-out" (own $out)) (canon lift (core func $i "handle")))
  (instance $handler (export "handle" (func $handle)))
  (export "wasi:http/incoming-handler@0.2.0" (instance $handler))
  {more})"#
    )
}

/// An import that no server offers.
const STRANGE: &str = r#"(import "a:b/c@1.0.0" (instance $strange (export "f" (func))))
  (core func $strange (canon lower (func $strange "f")))
  (core module $calls (import "" "f" (func)))
  (core instance (instantiate $calls (with "" (instance (export "f" (func $strange))))))"#;

/// What answers requests as a candidate of WASI 0.3 has it.
const CANDIDATE: &str = r#"(component
  (core module $m (func (export "handle") (param i32) (result i32) (local.get 0)))
  (core instance $i (instantiate $m))
  (func $handle (param "request" u32) (result u32) (canon lift (core func $i "handle")))
  (instance $handler (export "handle" (func $handle)))
  (export "wasi:http/handler@0.3.0-rc-2025-09-16" (instance $handler)))"#;

/// The same, lifted in a way that the release does not know any more.
const OLD_FORMAT: &str = r#"(component
  (core module $m
    (func (export "handle") (param i32) (result i32) (i32.const 0))
    (func (export "callback") (param i32 i32 i32) (result i32) (i32.const 0)))
  (core instance $i (instantiate $m))
  (func $handle (param "request" u32) (result u32)
    (canon lift (core func $i "handle") async (callback (core func $i "callback"))))
  (instance $handler (export "handle" (func $handle)))
  (export "wasi:http/handler@0.3.0-rc-2025-09-16" (instance $handler)))"#;

/// A command that asks a candidate for the time.
const IMPORTED_CANDIDATE: &str = r#"(component
  (import "wasi:clocks/monotonic-clock@0.3.0-rc-2025-09-16" (instance $clock (export "now" (func (result u64)))))
  (core func $now (canon lower (func $clock "now")))
  (core module $m (import "" "now" (func (result i64))) (func (export "run") (result i32) (i32.const 0)))
  (core instance $i (instantiate $m (with "" (instance (export "now" (func $now))))))
  (func $run (result (result)) (canon lift (core func $i "run")))
  (instance $r (export "run" (func $run)))
  (export "wasi:cli/run@0.2.0" (instance $r)))"#;

#[test]
fn what_has_to_be_done_first_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut failures = Vec::new();
    let mut case = |name: &str, text: &str| {
        std::fs::write(folder.path().join("app.wat"), text).expect("write a file");
        let done = awsm(folder.path(), &["compile", "app.wat", "-o", "out.so"]);
        assert_eq!(done.code(), 1, "{name}: {}", done.stderr);
        failures.extend(compare(&format!("advice-{name}"), &shown(&done, folder.path())));
    };
    case("interfaces", INTERFACES);
    case("standard", STANDARD);
    case("world", WORLD);
    case("exports", EXPORTS);
    case("middleware", &middleware(""));
    case("middleware-and-more", &middleware(STRANGE));
    case("candidate", CANDIDATE);
    case("candidate-format", OLD_FORMAT);
    case("candidate-import", IMPORTED_CANDIDATE);
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// What is advised leads to the goal.
#[test]
fn middleware_that_is_composed_compiles() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("write a file");
    write("outer.wat", &middleware(""));
    write(
        "inner.wat",
        r#"(component
  (import "wasi:http/types@0.2.0" (instance $types
    (export "incoming-request" (type (sub resource))) (export "response-outparam" (type (sub resource)))))
  (alias export $types "incoming-request" (type $request))
  (alias export $types "response-outparam" (type $out))
  (core module $m (func (export "handle") (param i32 i32)))
  (core instance $i (instantiate $m))
  (func $handle (param "request" (own $request)) (param "response-out" (own $out)) (canon lift (core func $i "handle")))
  (instance $handler (export "handle" (func $handle)))
  (export "wasi:http/incoming-handler@0.2.0" (instance $handler)))"#,
    );
    for arguments in [
        ["compose", "outer.wat", "--plug", "inner.wat", "-o", "all.wasm"].as_slice(),
        &["compile", "-O", "0", "all.wasm", "-o", "all.so"],
    ] {
        let done = awsm(folder.path(), arguments);
        assert_eq!(done.code(), 0, "{arguments:?}: {}", done.stderr);
    }
}
