//! Calls that wait and learn of a cancellation meanwhile. The component model has them no more, but tools that were made before make them. The text format cannot
//! say them.

use sledge_tests::command::End;
use wasmparser::{CanonicalFunction, Parser, Payload};

use super::components::run_binary;

/// A command whose callees wait in their calls, for what never comes, and are cancelled.
const COMMAND: &str = r#"(component
  (component $Callee
    (core module $memory (memory (export "mem") 1))
    (core instance $memory (instantiate $memory))
    (core module $m
      (import "" "cancel" (func $cancel))
      (import "" "set-new" (func $set_new (result i32)))
      (import "" "wait" (func $wait (param i32 i32) (result i32)))
      (import "" "yield" (func $yield (result i32)))
      (func $waits
        (if (i32.ne (call $wait (call $set_new) (i32.const 0)) (i32.const 6)) (then unreachable))
        (call $cancel))
      (func (export "waits") (result i32) (call $waits) (i32.const 0))
      (func (export "keeps") (call $waits))
      (func (export "yields") (result i32)
        (loop $more (br_if $more (i32.eqz (call $yield))))
        (call $cancel)
        (i32.const 0))
      (func (export "callback") (param i32 i32 i32) (result i32) unreachable))
    (core func $cancel (canon task.cancel))
    (core func $set_new (canon waitable-set.new))
    (core func $wait (canon waitable-set.wait (memory (core memory $memory "mem"))))
    (core func $yield (canon thread.yield))
    (core instance $i (instantiate $m (with "" (instance
      (export "cancel" (func $cancel))
      (export "set-new" (func $set_new))
      (export "wait" (func $wait))
      (export "yield" (func $yield))))))
    (func (export "waits") async (canon lift (core func $i "waits") async (callback (core func $i "callback"))))
    (func (export "keeps") async (canon lift (core func $i "keeps") async))
    (func (export "yields") async (canon lift (core func $i "yields") async (callback (core func $i "callback")))))
  (component $Caller
    (import "callee" (func $callee async))
    (core module $m
      (import "" "callee" (func $callee (result i32)))
      (import "" "subtask-cancel" (func $subtask_cancel (param i32) (result i32)))
      (import "" "subtask-cancel-async" (func $subtask_cancel_async (param i32) (result i32)))
      (import "" "subtask-drop" (func $subtask_drop (param i32)))
      (import "" "return" (func $return (param i32)))
      (func $started (result i32)
        (local $packed i32)
        (local.set $packed (call $callee))
        (if (i32.ne (i32.and (local.get $packed) (i32.const 15)) (i32.const 1)) (then unreachable))
        (i32.shr_u (local.get $packed) (i32.const 4)))
      (func (export "run") (result i32)
        (local $subtask i32)
        (local.set $subtask (call $started))
        (if (i32.ne (call $subtask_cancel (local.get $subtask)) (i32.const 4)) (then unreachable))
        (call $subtask_drop (local.get $subtask))
        ;; It learns of that at once.
        (local.set $subtask (call $started))
        (if (i32.ne (call $subtask_cancel_async (local.get $subtask)) (i32.const 4)) (then unreachable))
        (call $subtask_drop (local.get $subtask))
        (call $return (i32.const 0))
        (i32.const 0))
      (func (export "callback") (param i32 i32 i32) (result i32) unreachable))
    (core func $callee (canon lower (func $callee) async))
    (core func $subtask_cancel (canon subtask.cancel))
    (core func $subtask_cancel_async (canon subtask.cancel async))
    (core func $subtask_drop (canon subtask.drop))
    (core func $return (canon task.return (result (result))))
    (core instance $i (instantiate $m (with "" (instance
      (export "callee" (func $callee))
      (export "subtask-cancel" (func $subtask_cancel))
      (export "subtask-cancel-async" (func $subtask_cancel_async))
      (export "subtask-drop" (func $subtask_drop))
      (export "return" (func $return))))))
    (func (export "run") async (result (result)) (canon lift (core func $i "run") async (callback (core func $i "callback")))))
  (instance $callee (instantiate $Callee))
  (instance $caller (instantiate $Caller (with "callee" (func $callee "CALLEE"))))
  (instance $command (export "run" (func $caller "run")))
  (export "wasi:cli/run@0.3.0" (instance $command)))"#;

/// The command in the binary format, with calls that learn of a cancellation: the byte behind the number of their function says so.
fn command(callee: &str) -> Vec<u8> {
    let mut wasm = wat::parse_str(COMMAND.replace("CALLEE", callee)).expect("a component");
    let mut places = Vec::new();
    for payload in Parser::new(0).parse_all(&wasm) {
        let Payload::ComponentCanonicalSection(section) = payload.expect("a component") else { continue };
        for function in section.into_iter_with_offsets() {
            let (offset, function) = function.expect("a function");
            if matches!(function, CanonicalFunction::ThreadYield | CanonicalFunction::WaitableSetWait { .. }) {
                places.push(usize::try_from(offset).expect("a place in a file") + 1);
            }
        }
    }
    assert_eq!(places.len(), 2);
    for place in places {
        assert_eq!(wasm[place], 0);
        wasm[place] = 1;
    }
    wasm
}

#[test]
fn a_call_that_waits_learns_of_a_cancellation() {
    for callee in ["waits", "keeps", "yields"] {
        assert_eq!(run_binary(&command(callee)), End::Exit(0), "{callee}");
    }
}
