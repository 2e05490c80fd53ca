//! The farthest that code without checks reaches: the largest index, plus the largest offset, plus the width of each operator that accesses memory.
//! A fault there is a trap only if the address belongs to the memory's reservation; otherwise the handler of faults ends the process, and
//! with it this test.

use crate::endless::prepared;
use awsm::{Bounds, CompileOptions, OptLevel};
use awsm_abi::limits::{ACCESS_BYTES_MAX, GUARD_RESERVATION_BYTES};
use sledge_sandbox::{Artifact, Event, LoadPolicy, TrapCode, Value, WorkerThread};
use std::fmt::Write;
use std::time::Duration;

/// Behind each: what its operand is besides the index (`_` for none), and whether it has a result.
const OPERATORS: &[(&str, &str, bool)] = &[
    ("i32.load", "_", true),
    ("i64.load", "_", true),
    ("f32.load", "_", true),
    ("f64.load", "_", true),
    ("i32.load8_s", "_", true),
    ("i32.load8_u", "_", true),
    ("i32.load16_s", "_", true),
    ("i32.load16_u", "_", true),
    ("i64.load8_s", "_", true),
    ("i64.load8_u", "_", true),
    ("i64.load16_s", "_", true),
    ("i64.load16_u", "_", true),
    ("i64.load32_s", "_", true),
    ("i64.load32_u", "_", true),
    ("i32.store", "(i32.const 1)", false),
    ("i64.store", "(i64.const 1)", false),
    ("f32.store", "(f32.const 1)", false),
    ("f64.store", "(f64.const 1)", false),
    ("i32.store8", "(i32.const 1)", false),
    ("i32.store16", "(i32.const 1)", false),
    ("i64.store8", "(i64.const 1)", false),
    ("i64.store16", "(i64.const 1)", false),
    ("i64.store32", "(i64.const 1)", false),
    ("v128.load", "_", true),
    ("v128.load8x8_s", "_", true),
    ("v128.load8x8_u", "_", true),
    ("v128.load16x4_s", "_", true),
    ("v128.load16x4_u", "_", true),
    ("v128.load32x2_s", "_", true),
    ("v128.load32x2_u", "_", true),
    ("v128.load8_splat", "_", true),
    ("v128.load16_splat", "_", true),
    ("v128.load32_splat", "_", true),
    ("v128.load64_splat", "_", true),
    ("v128.load32_zero", "_", true),
    ("v128.load64_zero", "_", true),
    ("v128.load8_lane 15", "(v128.const i64x2 1 2)", true),
    ("v128.load16_lane 7", "(v128.const i64x2 1 2)", true),
    ("v128.load32_lane 3", "(v128.const i64x2 1 2)", true),
    ("v128.load64_lane 1", "(v128.const i64x2 1 2)", true),
    ("v128.store", "(v128.const i64x2 1 2)", false),
    ("v128.store8_lane 15", "(v128.const i64x2 1 2)", false),
    ("v128.store16_lane 7", "(v128.const i64x2 1 2)", false),
    ("v128.store32_lane 3", "(v128.const i64x2 1 2)", false),
    ("v128.store64_lane 1", "(v128.const i64x2 1 2)", false),
];

/// The last byte that an access may name, and how many a vector that LLVM makes of several accesses has behind its first: none of which is
/// behind the last byte of an access that the module makes.
const FARTHEST: u64 = u32::MAX as u64 + u32::MAX as u64 + ACCESS_BYTES_MAX;
const _: () = assert!(FARTHEST <= GUARD_RESERVATION_BYTES, "guards end before what code can reach");

#[test]
fn the_farthest_access_of_each_operator_is_within_the_reservation() {
    let _worker = WorkerThread::enter(Duration::from_secs(1)).unwrap();
    for bounds in [Bounds::Guard, Bounds::Segment, Bounds::Software] {
        for opt_level in [OptLevel::O0, OptLevel::O3] {
            let options = CompileOptions { bounds, opt_level, ..CompileOptions::default() };
            let wasm = wat::parse_str(module()).unwrap();
            let artifact = Artifact::load(&awsm::compile(&wasm, &options, &()).unwrap(), &LoadPolicy::default()).unwrap();
            for (operator, _, _) in OPERATORS {
                for (way, arguments) in [("index", &[Value::I32(-1)][..]), ("constant", &[])] {
                    let mut sandbox = prepared(&artifact, &format!("{operator} {way}"), arguments);
                    let event = sandbox.resume();
                    let trapped = matches!(event, Event::Trapped(trap) if trap.code == TrapCode::MemoryOutOfBounds);
                    assert!(trapped, "{operator} by {way}, {bounds} at -O{}: {event:?}", opt_level.number());
                }
            }
        }
    }
}

/// A function for each operator with its index as a parameter, and one with a constant index, at the largest offset.
fn module() -> String {
    let mut text = "(module (memory 1)".to_owned();
    for (operator, operand, has_result) in OPERATORS {
        let (name, lane) = operator.split_once(' ').unwrap_or((operator, ""));
        let operand = if *operand == "_" { "" } else { operand };
        for (way, param, index) in [("index", "(param i32)", "(local.get 0)"), ("constant", "", "(i32.const -1)")] {
            let access = format!("({name} offset=4294967295 {lane} {index} {operand})");
            let body = if *has_result { format!("(drop {access})") } else { access };
            write!(text, r#"(func (export "{operator} {way}") {param} {body})"#).expect("strings take everything");
        }
    }
    text.push(')');
    text
}
