//! Tail calls whose target is the host's, with more parameters and results than there are registers. The official suite's host has few.

use crate::MODES;
use awsm::{CompileOptions, Program};
use awsm_abi::types::FuncType;
use awsm_abi::types::ValType::{F64, I32, I64};
use sledge_sandbox::{Artifact, Event, Extern, LoadPolicy, Sandbox, SandboxLimits, Value, WorkerThread};
use std::time::Duration;

/// Calls of the host by one call of the guest, each by a tail call: more than its stack has room for frames.
const ROUNDS: i32 = 20_000;

const MODULE: &str = r#"(module
  (type $wide (func (param i32 i64 i64 i64 i64 i64 i64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64) (result i32 i64 f64 i64 i64)))
  (type $host (func (param i32 i64 i64 i64 i64 i64 i64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64) (result i32 i64 f64 i64 i64)))
  (import "test" "host" (func $host (type $host)))
  (table funcref (elem $host $once))
  (func $once (export "once") (type $wide)
    (return_call $host (local.get 0) (local.get 6) (local.get 5) (local.get 4) (local.get 3) (local.get 2) (local.get 1)
      (local.get 16) (local.get 15) (local.get 14) (local.get 13) (local.get 12) (local.get 11) (local.get 10) (local.get 9)
      (local.get 8) (local.get 7)))
  (func (export "by table") (type $wide)
    (return_call_indirect (type $host) (local.get 0) (local.get 6) (local.get 5) (local.get 4) (local.get 3) (local.get 2)
      (local.get 1) (local.get 16) (local.get 15) (local.get 14) (local.get 13) (local.get 12) (local.get 11) (local.get 10)
      (local.get 9) (local.get 8) (local.get 7) (i32.const 0)))
  ;; Calls the host and then itself, until the host says zero.
  (func $many (export "many") (type $wide) (local i32 i64 f64 i64 i64)
    (call $once (local.get 0) (local.get 1) (local.get 2) (local.get 3) (local.get 4) (local.get 5) (local.get 6) (local.get 7)
      (local.get 8) (local.get 9) (local.get 10) (local.get 11) (local.get 12) (local.get 13) (local.get 14) (local.get 15)
      (local.get 16))
    (local.set 21) (local.set 20) (local.set 19) (local.set 18) (local.set 17)
    (if (i32.eqz (local.get 17))
      (then (return (local.get 17) (local.get 18) (local.get 19) (local.get 20) (local.get 21))))
    (return_call $many (local.get 17) (local.get 1) (local.get 2) (local.get 3) (local.get 4) (local.get 5) (local.get 6)
      (local.get 7) (local.get 8) (local.get 9) (local.get 10) (local.get 11) (local.get 12) (local.get 13) (local.get 14)
      (local.get 15) (local.get 16))))"#;

#[test]
fn the_host_is_tail_called_with_many_parameters_and_results() {
    let wasm = wat::parse_str(MODULE).unwrap();
    for &(bounds, opt_level) in MODES {
        let options = CompileOptions { bounds, opt_level, ..CompileOptions::default() };
        let artifact =
            Artifact::load(&awsm::compile(&Program::single(&wasm), &options, &()).unwrap(), &LoadPolicy::default()).unwrap();
        for (name, rounds) in [("once", 1), ("by table", 1), ("many", ROUNDS)] {
            assert_eq!(run(&artifact, name, rounds), rounds, "{name}, {bounds} at -O{}", opt_level.number());
        }
    }
}

/// Calls a function with `rounds` and as many numbers as it takes; answers each host call with one less. Returns how many there were.
fn run(artifact: &Artifact, name: &str, rounds: i32) -> i32 {
    let worker = WorkerThread::enter(Duration::from_millis(10)).unwrap();
    let mut sandbox = Sandbox::new(&SandboxLimits::default()).unwrap();
    let params: Vec<_> = [I32].into_iter().chain([I64; 6]).chain([F64; 10]).collect();
    let host = Extern::HostFunction(FuncType { params, results: vec![I32, I64, F64, I64, I64] });
    let instance = sandbox.instantiate(artifact, 0, &[host]).unwrap();
    let function = sandbox.export_function(instance, name).unwrap();
    let numbers = |first: i32| {
        let integers = (1..=6).map(Value::I64);
        let floats = (1..=10).map(|number| Value::F64(f64::from(number).to_bits()));
        [Value::I32(first)].into_iter().chain(integers).chain(floats).collect::<Vec<_>>()
    };
    let reversed = |first: i32| {
        let mut numbers = numbers(first);
        numbers[1..7].reverse();
        numbers[7..].reverse();
        numbers
    };
    let answer = |rest: i32| {
        [Value::I32(rest), Value::I64(-2), Value::F64(0.5f64.to_bits()), Value::I64(i64::MIN), Value::I64(i64::from(rest))]
    };
    sandbox.prepare(function, &numbers(rounds)).unwrap();
    let mut calls = 0;
    worker.arm();
    loop {
        match sandbox.resume() {
            Event::HostCall(_) => {
                assert_eq!(sandbox.host_values(), reversed(rounds - calls));
                calls += 1;
                sandbox.host_results(&answer(rounds - calls)).unwrap();
            }
            Event::Preempted => {}
            Event::Returned => break,
            other @ (Event::Trapped(_) | Event::Waits { .. }) => panic!("{other:?} after {calls} calls"),
        }
    }
    worker.disarm();
    assert_eq!(sandbox.results(), answer(rounds - calls));
    calls
}
