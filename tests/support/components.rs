//! Small components for tests of composing: a command whose exit status is what `demo:math/add` of 40 and 2 is, and what exports that.

/// Which files tests write, and what they hold. `plain.wat` adds, `twice.wat` doubles what another adds, `wrong.wat` adds numbers of 64 bits, `other.wat`
/// exports something else, `needing.wat` doubles what that adds, `back.wat` exports it and needs `needing.wat`, `core.wat` is no component, `adding.wat`
/// becomes one by the world in `math.wit`. `async-app.wat` is a command of WASI 0.3 that fails unless what `async-plain.wat` adds is right.
#[must_use]
pub fn files() -> [(&'static str, String); 12] {
    [
        ("app.wat", APP.to_owned()),
        ("plain.wat", adding("demo:math/add@1.0.1", "u32", "i32")),
        ("twice.wat", doubling("demo:math/add@1.0.0", "demo:math/add@1.0.0")),
        ("wrong.wat", adding("demo:math/add@1.0.1", "u64", "i64")),
        ("other.wat", adding("demo:math/other@1.0.0", "u32", "i32")),
        ("needing.wat", doubling("demo:math/other@1.0.0", "demo:math/add@1.0.0")),
        ("back.wat", doubling("demo:math/add@1.0.0", "demo:math/other@1.0.0")),
        ("core.wat", "(module)".to_owned()),
        ("adding.wat", ADDING.to_owned()),
        ("math.wit", MATH.to_owned()),
        ("async-app.wat", ASYNC_APP.to_owned()),
        ("async-plain.wat", ASYNC_PLAIN.to_owned()),
    ]
}

const MATH: &str = "package demo:math@1.0.0;
interface add { add: func(a: u32, b: u32) -> u32; }
world adding { export add; }";

const ADDING: &str = r#"(module
  (func (export "demo:math/add@1.0.0#add") (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1))))"#;

const APP: &str = r#"(component
  (import "demo:math/add@1.0.0" (instance $add (export "add" (func (param "a" u32) (param "b" u32) (result u32)))))
  (import "wasi:cli/exit@0.2.0" (instance $exit (export "exit-with-code" (func (param "status-code" u8)))))
  (core func $add (canon lower (func $add "add")))
  (core func $exit (canon lower (func $exit "exit-with-code")))
  (core module $m
    (import "h" "add" (func $add (param i32 i32) (result i32)))
    (import "h" "exit" (func $exit (param i32)))
    (func (export "run") (result i32) (call $exit (call $add (i32.const 40) (i32.const 2))) (i32.const 0)))
  (core instance $i (instantiate $m (with "h" (instance (export "add" (func $add)) (export "exit" (func $exit))))))
  (func $run (result (result)) (canon lift (core func $i "run")))
  (instance $run (export "run" (func $run)))
  (export "wasi:cli/run@0.2.0" (instance $run)))"#;

const ASYNC_APP: &str = r#"(component
  (import "demo:math/add@1.0.0" (instance $add (export "add" (func async (param "a" u32) (param "b" u32) (result u32)))))
  (core func $add (canon lower (func $add "add")))
  (core module $m
    (import "h" "add" (func $add (param i32 i32) (result i32)))
    (func (export "run") (result i32) (i32.ne (call $add (i32.const 40) (i32.const 2)) (i32.const 42))))
  (core instance $i (instantiate $m (with "h" (instance (export "add" (func $add))))))
  (func $run async (result (result)) (canon lift (core func $i "run")))
  (instance $run (export "run" (func $run)))
  (export "wasi:cli/run@0.3.0" (instance $run)))"#;

/// It imports built-in functions that wait in the call; what it multiplies by is what a write says whose reader is gone.
const ASYNC_PLAIN: &str = r#"(component
  (core module $memory (memory (export "memory") 1))
  (core instance $memory (instantiate $memory))
  (type $stream (stream u8))
  (type $future (future u8))
  (core func $stream_new (canon stream.new $stream))
  (core func $stream_drop (canon stream.drop-readable $stream))
  (core func $stream_write (canon stream.write $stream (memory (core memory $memory "memory"))))
  (core func $stream_read (canon stream.read $stream (memory (core memory $memory "memory"))))
  (core func $future_read (canon future.read $future (memory (core memory $memory "memory"))))
  (core func $future_write (canon future.write $future (memory (core memory $memory "memory"))))
  (core module $m
    (import "h" "stream-new" (func $stream_new (result i64)))
    (import "h" "stream-drop" (func $stream_drop (param i32)))
    (import "h" "stream-write" (func $stream_write (param i32 i32 i32) (result i32)))
    (import "h" "stream-read" (func $stream_read (param i32 i32 i32) (result i32)))
    (import "h" "future-read" (func $future_read (param i32 i32) (result i32)))
    (import "h" "future-write" (func $future_write (param i32 i32) (result i32)))
    (func (export "add") (param i32 i32) (result i32)
      (local $ends i64)
      (local.set $ends (call $stream_new))
      (call $stream_drop (i32.wrap_i64 (local.get $ends)))
      ;; 1: the other end was dropped.
      (i32.mul
        (call $stream_write (i32.wrap_i64 (i64.shr_u (local.get $ends) (i64.const 32))) (i32.const 0) (i32.const 4))
        (i32.add (local.get 0) (local.get 1)))))
  (core instance $i (instantiate $m (with "h" (instance
    (export "stream-new" (func $stream_new))
    (export "stream-drop" (func $stream_drop))
    (export "stream-write" (func $stream_write))
    (export "stream-read" (func $stream_read))
    (export "future-read" (func $future_read))
    (export "future-write" (func $future_write))))))
  (func $add async (param "a" u32) (param "b" u32) (result u32) (canon lift (core func $i "add")))
  (instance $add (export "add" (func $add)))
  (export "demo:math/add@1.0.0" (instance $add)))"#;

fn doubling(import: &str, export: &str) -> String {
    format!(
        r#"(component
  (import "{import}" (instance $add (export "add" (func (param "a" u32) (param "b" u32) (result u32)))))
  (core func $add (canon lower (func $add "add")))
  (core module $m
    (import "h" "add" (func $add (param i32 i32) (result i32)))
    (func (export "add") (param i32 i32) (result i32)
      (i32.mul (i32.const 2) (call $add (local.get 0) (local.get 1)))))
  (core instance $i (instantiate $m (with "h" (instance (export "add" (func $add))))))
  (func $twice (param "a" u32) (param "b" u32) (result u32) (canon lift (core func $i "add")))
  (instance $twice (export "add" (func $twice)))
  (export "{export}" (instance $twice)))"#
    )
}

fn adding(interface: &str, ty: &str, core: &str) -> String {
    format!(
        r#"(component
  (core module $m
    (func (export "add") (param {core} {core}) (result {core}) ({core}.add (local.get 0) (local.get 1))))
  (core instance $i (instantiate $m))
  (func $add (param "a" {ty}) (param "b" {ty}) (result {ty}) (canon lift (core func $i "add")))
  (instance $add (export "add" (func $add)))
  (export "{interface}" (instance $add)))"#
    )
}
