//! What is emitted for groups of operators.

use awsm::{Bounds, CompileOptions, Cpu, Emit, OptLevel};

use super::{emit, options};

fn ir(text: &str) -> String {
    emit(text, Emit::LlvmIr, options())
}

/// The body of a function in emitted IR.
fn body<'t>(ir: &'t str, symbol: &str) -> &'t str {
    let start = ir.find(&format!("@\"{symbol}\"(ptr noundef")).unwrap_or_else(|| panic!("{symbol} is not in\n{ir}"));
    let end = ir[start..].find("\n}\n").expect("functions end");
    &ir[start..start + end]
}

fn count(text: &str, part: &str) -> usize {
    text.matches(part).count()
}

const ACCESSES: &str = r#"(module (memory 1)
  (func (export "used") (param i32) (result i32) (i32.load offset=8 (local.get 0)))
  (func (export "dropped") (param i32) (drop (i32.load (local.get 0))))
  (func (export "masked") (param i32) (result i32) (i32.and (i32.load (local.get 0)) (i32.const 0)))
  (func (export "twice") (param i32) (result i32) (i32.add (i32.load (local.get 0)) (i32.load (local.get 0))))
  (func (export "conditional") (param i32 i32) (result i32) (local i32)
    (local.set 2 (i32.load (local.get 0)))
    (if (local.get 1) (then (i32.store (i32.const 0) (local.get 2))))
    (i32.const 5)))"#;

#[test]
fn guarded_loads_are_volatile_only_where_the_value_is_not_needed_for_sure() {
    let ir = ir(ACCESSES);
    assert_eq!(count(body(&ir, "wasm[0]::used"), "load volatile"), 0);
    assert_eq!(count(body(&ir, "wasm[0]::used"), "icmp"), 0, "no check");
    assert_eq!(count(body(&ir, "wasm[1]::dropped"), "load volatile i32"), 1);
    assert_eq!(count(body(&ir, "wasm[2]::masked"), "load volatile i32"), 1);
    assert_eq!(count(body(&ir, "wasm[3]::twice"), " i32, ptr"), 1, "equal loads are merged");
    assert_eq!(count(body(&ir, "wasm[4]::conditional"), "load volatile i32"), 1);
    assert_eq!(count(&ir, "awsm.keep"), 0, "nothing is held in the end");
}

#[test]
fn software_checks_compare_before_each_access() {
    let ir = emit(ACCESSES, Emit::LlvmIr, CompileOptions { bounds: Bounds::Software, ..options() });
    let used = body(&ir, "wasm[0]::used");
    assert!(used.contains("add nuw nsw i64") && used.contains(", 12") && used.contains("@llvm.ubsantrap(i8 2)"), "{used}");
    assert_eq!(count(&ir, "volatile"), 0);
    assert_eq!(count(body(&ir, "wasm[3]::twice"), "ubsantrap"), 1, "one check serves both");
}

#[test]
fn without_checks_there_are_none() {
    let ir = emit(ACCESSES, Emit::LlvmIr, CompileOptions { bounds: Bounds::None, ..options() });
    assert_eq!(count(&ir, "volatile") + count(&ir, "@llvm.ubsantrap("), 0);
}

#[test]
fn calls_keep_their_frames_and_their_effects() {
    let ir = ir(r#"(module (memory 1)
      (func $loads (param i32) (result i32) (i32.load (local.get 0)))
      (func (export "drops") (param i32) (drop (call $loads (local.get 0))))
      (func $forever (export "forever") (call $forever))
      (func (export "spin") (loop (br 0))))"#);
    assert_eq!(count(body(&ir, "wasm[1]::drops"), "load volatile"), 1);
    assert_eq!(count(body(&ir, "wasm[2]::forever"), "notail call tailcc"), 1);
    assert_eq!(count(body(&ir, "wasm[3]::spin"), "br label"), 2, "an endless loop stays");
    assert!(!ir.contains("mustprogress") && !ir.contains("willreturn }"));
}

#[test]
fn indirect_calls_are_checked_three_times() {
    let ir = ir(r#"(module (table 4 funcref) (type $t (func (result i32)))
      (func (export "call") (param i32) (result i32) (call_indirect (type $t) (local.get 0))))"#);
    let body = body(&ir, "wasm[0]::call");
    for trap in [4, 5, 6] {
        assert_eq!(count(body, &format!("@llvm.ubsantrap(i8 {trap})")), 1, "{body}");
    }
}

#[test]
fn division_and_truncation_are_checked() {
    let ir = ir(r#"(module
      (func (export "div_s") (param i64 i64) (result i64) (i64.div_s (local.get 0) (local.get 1)))
      (func (export "rem_s") (param i32 i32) (result i32) (i32.rem_s (local.get 0) (local.get 1)))
      (func (export "trunc") (param f64) (result i32) (i32.trunc_f64_s (local.get 0)))
      (func (export "known") (param i32) (result i32) (i32.div_s (local.get 0) (i32.const 10))))"#);
    assert_eq!(count(body(&ir, "wasm[0]::div_s"), "ubsantrap"), 2);
    assert_eq!(count(body(&ir, "wasm[1]::rem_s"), "ubsantrap"), 1);
    assert_eq!(count(body(&ir, "wasm[2]::trunc"), "ubsantrap"), 2);
    assert_eq!(count(body(&ir, "wasm[3]::known"), "ubsantrap"), 0);
}

#[test]
fn loops_vectorise() {
    let text = r#"(module (memory 64)
      (func (export "add") (param $a i32) (param $b i32) (param $c i32) (param $n i32) (local $i i32)
        (loop $next
          (f64.store (i32.add (local.get $a) (i32.shl (local.get $i) (i32.const 3)))
            (f64.add
              (f64.load (i32.add (local.get $b) (i32.shl (local.get $i) (i32.const 3))))
              (f64.load (i32.add (local.get $c) (i32.shl (local.get $i) (i32.const 3))))))
          (br_if $next (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n)))))
      (func (export "min") (param $a i32) (param $n i32) (local $i i32)
        (loop $next
          (f64.store (i32.add (local.get $a) (i32.shl (local.get $i) (i32.const 3)))
            (f64.min (f64.const 5) (f64.load (i32.add (local.get $a) (i32.shl (local.get $i) (i32.const 3))))))
          (br_if $next (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))))"#;
    let ir = ir(text);
    for symbol in ["wasm[0]::add", "wasm[1]::min"] {
        let body = body(&ir, symbol);
        assert!(body.contains("load <4 x double>") || body.contains("load <8 x double>"), "{body}");
    }
    let asm = emit(text, Emit::Asm, CompileOptions { cpu: Cpu::Named("haswell".to_owned()), ..options() });
    assert!(asm.contains("%ymm") && !asm.contains("%zmm"));
}

#[test]
fn signalling_nans_are_quieted_by_arithmetic_that_changes_nothing() {
    let text = r#"(module
      (func (export "mul") (param f64) (result f64) (f64.mul (local.get 0) (f64.const 1)))
      (func (export "sub") (param f32) (result f32) (f32.sub (local.get 0) (f32.const 0)))
      (func (export "convert") (param f32) (result f32) (f32.demote_f64 (f64.promote_f32 (local.get 0)))))"#;
    let asm = emit(text, Emit::Asm, options());
    for instruction in ["vmulsd", "vsubss", "vcvtss2sd", "vcvtsd2ss"] {
        assert!(asm.contains(instruction), "{instruction} is not in\n{asm}");
    }
}

#[test]
fn large_frames_are_probed() {
    let sum = "(f64.add (local.get 0) (local.get 1))";
    let asm = emit(
        &format!(
            r#"(module (import "e" "f" (func $f (param {many})))
              (func (export "g") (param f64 f64) (call $f {values})))"#,
            many = "f64 ".repeat(900),
            values = sum.repeat(900),
        ),
        Emit::Asm,
        CompileOptions { opt_level: OptLevel::O1, ..options() },
    );
    assert!(asm.contains("subq\t$4096, %rsp"), "the stack pointer moves page by page");
}

#[test]
fn objects_hold_the_functions() {
    let object = super::compile(ACCESSES, &CompileOptions { emit: Emit::Obj, ..options() });
    assert_eq!(&object[..4], b"\x7fELF");
}
