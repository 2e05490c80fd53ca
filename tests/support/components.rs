//! Small components for tests of composing: a command whose exit status is what `demo:math/add` of 40 and 2 is, and what exports that.

/// Which files tests write, and what they hold. `plain.wat` adds, `twice.wat` doubles what another adds, `wrong.wat` adds numbers of 64 bits, `other.wat`
/// exports something else, `needing.wat` doubles what that adds, `back.wat` exports it and needs `needing.wat`, `core.wat` is no component, `adding.wat`
/// becomes one by the world in `math.wit`.
#[must_use]
pub fn files() -> [(&'static str, String); 10] {
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
