//! What the host sees of a guest that traps: every call made before the trap, none from behind it, in any mode.

use crate::MODES;
use awsm::{CompileOptions, Program};
use awsm_abi::types::{FuncType, ValType};
use sledge_sandbox::{Artifact, Event, Extern, LoadPolicy, Sandbox, SandboxLimits, TrapCode, Value, WorkerThread};
use std::time::{Duration, Instant};

/// Name, body of a function `(param $at i32) (param $d i32) (result i32) (local $x i32) (local $i i32)`, the numbers that `$say` must
/// have got when `$at` is 65536, just out of bounds, and `$d` zero, and the trap.
const CASES: &[(&str, &str, &[i32], TrapCode)] = &[
    (
        "dropped",
        "(call $say (i32.const 1)) (drop (i32.load (local.get $at))) (call $say (i32.const 2)) (i32.const 0)",
        &[1],
        TrapCode::MemoryOutOfBounds,
    ),
    (
        "used later",
        "(call $say (i32.const 1)) (local.set $x (i32.load (local.get $at))) (call $say (i32.const 2)) (local.get $x)",
        &[1],
        TrapCode::MemoryOutOfBounds,
    ),
    (
        "used on one way",
        "(local.set $x (i32.load (local.get $at))) (if (local.get $d) (then (call $say (local.get $x)))) (call $say (i32.const 2)) (i32.const 0)",
        &[],
        TrapCode::MemoryOutOfBounds,
    ),
    (
        "store, then call",
        "(i32.store (local.get $at) (i32.const 1)) (call $say (i32.const 1)) (i32.const 0)",
        &[],
        TrapCode::MemoryOutOfBounds,
    ),
    (
        "division dropped",
        "(call $say (i32.const 1)) (drop (i32.div_s (i32.const 1) (local.get $d))) (call $say (i32.const 2)) (i32.const 0)",
        &[1],
        TrapCode::IntegerDivideByZero,
    ),
    (
        "division used after the call",
        "(local.set $x (i32.div_u (i32.const 1) (local.get $d))) (call $say (i32.const 1)) (local.get $x)",
        &[],
        TrapCode::IntegerDivideByZero,
    ),
    (
        "invariant load in a loop",
        "(loop (call $say (local.get $i)) (local.set $x (i32.add (local.get $x) (i32.load (local.get $at)))) \
         (br_if 0 (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 3)))) (local.get $x)",
        &[0],
        TrapCode::MemoryOutOfBounds,
    ),
    (
        "invariant division in a loop, behind the call",
        "(loop (call $say (local.get $i)) (local.set $x (i32.add (local.get $x) (i32.div_u (i32.const 9) (local.get $d)))) \
         (br_if 0 (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 3)))) (local.get $x)",
        &[0],
        TrapCode::IntegerDivideByZero,
    ),
    (
        "walking out of memory",
        "(local.set $at (i32.sub (local.get $at) (i32.const 12))) \
         (loop (drop (i32.load (local.get $at))) (call $say (local.get $i)) (local.set $at (i32.add (local.get $at) (i32.const 4))) \
         (br_if 0 (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 9)))) (i32.const 0)",
        &[0, 1, 2],
        TrapCode::MemoryOutOfBounds,
    ),
    ("unreachable", "(call $say (i32.const 1)) (call $say (i32.const 2)) (unreachable)", &[1, 2], TrapCode::Unreachable),
    (
        "recursion that says how deep",
        "(if (i32.le_u (local.get $d) (i32.const 2)) (then (call $say (local.get $d)))) \
         (i32.add (call $f (local.get $at) (i32.add (local.get $d) (i32.const 1))) (i32.const 1))",
        &[0, 1, 2],
        TrapCode::StackExhausted,
    ),
];

/// For one call; none of them takes milliseconds.
const CALL_TIME_MAX: Duration = Duration::from_secs(20);

#[test]
fn the_host_sees_what_came_before_the_trap_and_nothing_else() {
    for &(bounds, opt_level) in MODES {
        for (name, body, said, trap) in CASES {
            let artifact = compile(body, &CompileOptions { bounds, opt_level, ..CompileOptions::default() });
            let got = run(&artifact);
            assert_eq!(got, (said.to_vec(), *trap), "{name}, {bounds} at -O{}", opt_level.number());
        }
    }
}

fn compile(body: &str, options: &CompileOptions) -> Artifact {
    let text = format!(
        r#"(module
          (import "test" "say" (func $say (param i32)))
          (memory 1)
          (func $f (export "f") (param $at i32) (param $d i32) (result i32) (local $x i32) (local $i i32) {body}))"#
    );
    let wasm = wat::parse_str(text).unwrap();
    Artifact::load(&awsm::compile(&Program::single(&wasm), options, &()).unwrap(), &LoadPolicy::default()).unwrap()
}

fn run(artifact: &Artifact) -> (Vec<i32>, TrapCode) {
    let worker = WorkerThread::enter(Duration::from_millis(10)).unwrap();
    let mut sandbox = Sandbox::new(&SandboxLimits::default()).unwrap();
    let say = Extern::HostFunction(FuncType { params: vec![ValType::I32], results: Vec::new() });
    let instance = sandbox.instantiate(artifact, 0, &[say]).unwrap();
    let function = sandbox.export_function(instance, "f").unwrap();
    sandbox.prepare(function, &[Value::I32(65536), Value::I32(0)]).unwrap();
    let deadline = Instant::now() + CALL_TIME_MAX;
    let mut said = Vec::new();
    worker.arm();
    let trap = loop {
        match sandbox.resume() {
            Event::HostCall(_) => said.push(sandbox.host_args()[0].i32()),
            Event::Preempted => assert!(Instant::now() < deadline, "still running after {CALL_TIME_MAX:?}"),
            Event::Trapped(trap) => break trap.code,
            Event::Returned | Event::Waits { .. } => panic!("returned {:?} after {said:?}", sandbox.results()),
        }
    };
    worker.disarm();
    (said, trap)
}
