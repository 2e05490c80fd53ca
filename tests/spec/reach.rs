//! The farthest that code without checks reaches: the largest index, plus the largest offset, plus the width of each operator that accesses memory.
//! A fault there is a trap only if the address belongs to the memory's reservation; otherwise the handler of faults ends the process, and
//! with it this test.

use crate::endless::prepared;
use awsm::{Bounds, CompileOptions, OptLevel, Program};
use awsm_abi::limits::{ACCESS_BYTES_MAX, GUARD_RESERVATION_BYTES};
use sledge_sandbox::{Artifact, Event, LoadPolicy, TrapCode, Value, WorkerThread};
use std::fmt::Write;
use std::time::Duration;

/// Those that may name any address. Behind each: what its operand is besides the index (`_` for none), and whether it has a result.
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

/// The names of atomic operators by what they access: behind each type the width in bytes, what the width is called, and what extends the rest.
const ATOMIC_CELLS: &[(&str, u32, &str, &str)] = &[
    ("i32", 4, "", ""),
    ("i32", 1, "8", "_u"),
    ("i32", 2, "16", "_u"),
    ("i64", 8, "", ""),
    ("i64", 1, "8", "_u"),
    ("i64", 2, "16", "_u"),
    ("i64", 4, "32", "_u"),
];

/// An operator with what it takes besides the index.
struct Access {
    operator: String,
    operands: String,
    has_result: bool,
    /// The largest with which the largest index makes an address that the operator may name.
    offset: u32,
}

fn plain() -> Vec<Access> {
    let access = |&(operator, operand, has_result): &(&str, &str, bool)| Access {
        operator: operator.to_owned(),
        operands: if operand == "_" { String::new() } else { operand.to_owned() },
        has_result,
        offset: u32::MAX,
    };
    OPERATORS.iter().map(access).collect()
}

/// Atomic operators trap at addresses that are no multiples of their width, before anything is accessed.
fn atomic() -> Vec<Access> {
    let access = |operator: String, operands: String, has_result, bytes| {
        let offset = u32::MAX - (bytes - 1) + u32::from(bytes > 1);
        Access { operator, operands, has_result, offset }
    };
    let mut accesses = vec![
        access("memory.atomic.notify".to_owned(), "(i32.const 1)".to_owned(), true, 4),
        access("memory.atomic.wait32".to_owned(), "(i32.const 0) (i64.const 0)".to_owned(), true, 4),
        access("memory.atomic.wait64".to_owned(), "(i64.const 0) (i64.const 0)".to_owned(), true, 8),
    ];
    for &(ty, bytes, width, extension) in ATOMIC_CELLS {
        let one = format!("({ty}.const 1)");
        accesses.push(access(format!("{ty}.atomic.load{width}{extension}"), String::new(), true, bytes));
        accesses.push(access(format!("{ty}.atomic.store{width}"), one.clone(), false, bytes));
        for update in ["add", "sub", "and", "or", "xor", "xchg"] {
            accesses.push(access(format!("{ty}.atomic.rmw{width}.{update}{extension}"), one.clone(), true, bytes));
        }
        accesses.push(access(format!("{ty}.atomic.rmw{width}.cmpxchg{extension}"), format!("{one} {one}"), true, bytes));
    }
    accesses
}

#[test]
fn the_farthest_access_of_each_operator_is_within_the_reservation() {
    let _worker = WorkerThread::enter(Duration::from_secs(1)).unwrap();
    for (memory, accesses) in [("1", plain()), ("1 1 shared", atomic())] {
        let wasm = wat::parse_str(module(memory, &accesses)).unwrap();
        for bounds in [Bounds::Guard, Bounds::Segment, Bounds::Software] {
            for opt_level in [OptLevel::O0, OptLevel::O3] {
                let options = CompileOptions { bounds, opt_level, ..CompileOptions::default() };
                let artifact = awsm::compile(&Program::single(&wasm), &options, &()).unwrap();
                let artifact = Artifact::load(&artifact, &LoadPolicy::default()).unwrap();
                for Access { operator, .. } in &accesses {
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
}

/// A function for each operator with its index as a parameter, and one with a constant index, at the largest offset.
fn module(memory: &str, accesses: &[Access]) -> String {
    let mut text = format!("(module (memory {memory})");
    for Access { operator, operands, has_result, offset } in accesses {
        let (name, lane) = operator.split_once(' ').unwrap_or((operator, ""));
        for (way, param, index) in [("index", "(param i32)", "(local.get 0)"), ("constant", "", "(i32.const -1)")] {
            let access = format!("({name} offset={offset} {lane} {index} {operands})");
            let body = if *has_result { format!("(drop {access})") } else { access };
            write!(text, r#"(func (export "{operator} {way}") {param} {body})"#).expect("strings take everything");
        }
    }
    text.push(')');
    text
}
