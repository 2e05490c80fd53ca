//! The server's task, which ends the invocation when it is over, on whatever stack that is.

use awsm_abi::component::Violation;
use sledge_tests::command::End;

use super::components::run;

/// A command of WASI 0.3 whose code gives the stack back when it waits. What it calls returns, and does `THEN`
/// behind that. If it waits there, the command goes on upon its stack, and is over on it.
const COMMAND: &str = r#"(component
      (component $Waiter
        (core module $memory (memory (export "mem") 1))
        (core instance $memory (instantiate $memory))
        (core module $m
          (import "" "return" (func $return))
          (import "" "set-new" (func $set_new (result i32)))
          (import "" "wait" (func $wait (param i32 i32) (result i32)))
          (import "" "yield" (func $yield (result i32)))
          ;; By then its caller waits.
          (func (export "returns")
            (drop (call $yield))
            (call $return)
            THEN))
        (core func $return (canon task.return))
        (core func $set_new (canon waitable-set.new))
        (core func $wait (canon waitable-set.wait (memory (core memory $memory "mem"))))
        (core func $yield (canon thread.yield))
        (core instance $i (instantiate $m (with "" (instance
          (export "return" (func $return))
          (export "set-new" (func $set_new))
          (export "wait" (func $wait))
          (export "yield" (func $yield))))))
        (func (export "returns") async (canon lift (core func $i "returns") async)))
      (component $Root
        (import "returns" (func $returns async))
        (core module $m
          (import "" "returns" (func $returns (result i32)))
          (import "" "set-new" (func $set_new (result i32)))
          (import "" "join" (func $join (param i32 i32)))
          (import "" "return" (func $return (param i32)))
          (func (export "run") (result i32)
            (local $packed i32) (local $set i32)
            (local.set $packed (call $returns))
            (if (i32.ne (i32.and (local.get $packed) (i32.const 15)) (i32.const 1)) (then unreachable))
            (local.set $set (call $set_new))
            (call $join (i32.shr_u (local.get $packed) (i32.const 4)) (local.get $set))
            (i32.or (i32.const 2) (i32.shl (local.get $set) (i32.const 4))))
          (func (export "callback") (param $event i32) (param i32) (param $state i32) (result i32)
            (if (i32.ne (local.get $event) (i32.const 1)) (then unreachable))
            (if (i32.ne (local.get $state) (i32.const 2)) (then unreachable))
            (call $return (i32.const 0))
            (i32.const 0)))
        (core func $returns (canon lower (func $returns) async))
        (core func $set_new (canon waitable-set.new))
        (core func $join (canon waitable.join))
        (core func $return (canon task.return (result (result))))
        (core instance $i (instantiate $m (with "" (instance
          (export "returns" (func $returns))
          (export "set-new" (func $set_new))
          (export "join" (func $join))
          (export "return" (func $return))))))
        (func (export "run") async (result (result))
          (canon lift (core func $i "run") async (callback (core func $i "callback")))))
      (instance $waiter (instantiate $Waiter))
      (instance $root (instantiate $Root (with "returns" (func $waiter "returns"))))
      (instance $command (export "run" (func $root "run")))
      (export "wasi:cli/run@0.3.0" (instance $command)))"#;

/// The same, whose calls have as many stacks as there may be when it is over: one waits in its callback, on the stack on which the command was begun.
const FULL: &str = r#"(component
      (component $Waiter
        (core module $memory (memory (export "mem") 1))
        (core instance $memory (instantiate $memory))
        (core module $m
          (import "" "return" (func $return))
          (import "" "set-new" (func $set_new (result i32)))
          (import "" "wait" (func $wait (param i32 i32) (result i32)))
          (func $wait_for_ever (drop (call $wait (call $set_new) (i32.const 0))))
          (func (export "waits") (call $return) (call $wait_for_ever))
          (func (export "later") (result i32) (i32.const 1))
          (func (export "callback") (param i32 i32 i32) (result i32)
            (call $return)
            (call $wait_for_ever)
            unreachable))
        (core func $return (canon task.return))
        (core func $set_new (canon waitable-set.new))
        (core func $wait (canon waitable-set.wait (memory (core memory $memory "mem"))))
        (core instance $i (instantiate $m (with "" (instance
          (export "return" (func $return))
          (export "set-new" (func $set_new))
          (export "wait" (func $wait))))))
        (func (export "waits") async (canon lift (core func $i "waits") async))
        (func (export "later") async (canon lift (core func $i "later") async (callback (core func $i "callback")))))
      (component $Root
        (import "waits" (func $waits async))
        (import "later" (func $later async))
        (core module $m
          (import "" "waits" (func $waits (result i32)))
          (import "" "later" (func $later (result i32)))
          (import "" "set-new" (func $set_new (result i32)))
          (import "" "join" (func $join (param i32 i32)))
          (import "" "return" (func $return (param i32)))
          (func (export "run") (result i32)
            (local $packed i32) (local $set i32) (local $left i32)
            (local.set $packed (call $later))
            (if (i32.ne (i32.and (local.get $packed) (i32.const 15)) (i32.const 1)) (then unreachable))
            (local.set $left (i32.const CALLS))
            (loop $more
              (if (i32.ne (call $waits) (i32.const 2)) (then unreachable))
              (local.set $left (i32.sub (local.get $left) (i32.const 1)))
              (br_if $more (local.get $left)))
            (local.set $set (call $set_new))
            (call $join (i32.shr_u (local.get $packed) (i32.const 4)) (local.get $set))
            (i32.or (i32.const 2) (i32.shl (local.get $set) (i32.const 4))))
          (func (export "callback") (param $event i32) (param i32) (param $state i32) (result i32)
            (if (i32.ne (local.get $event) (i32.const 1)) (then unreachable))
            (if (i32.ne (local.get $state) (i32.const 2)) (then unreachable))
            (call $return (i32.const 0))
            (i32.const 0)))
        (core func $waits (canon lower (func $waits) async))
        (core func $later (canon lower (func $later) async))
        (core func $set_new (canon waitable-set.new))
        (core func $join (canon waitable.join))
        (core func $return (canon task.return (result (result))))
        (core instance $i (instantiate $m (with "" (instance
          (export "waits" (func $waits))
          (export "later" (func $later))
          (export "set-new" (func $set_new))
          (export "join" (func $join))
          (export "return" (func $return))))))
        (func (export "run") async (result (result))
          (canon lift (core func $i "run") async (callback (core func $i "callback")))))
      (instance $waiter (instantiate $Waiter))
      (instance $later (instantiate $Waiter))
      (instance $root (instantiate $Root (with "waits" (func $waiter "waits")) (with "later" (func $later "later"))))
      (instance $command (export "run" (func $root "run")))
      (export "wasi:cli/run@0.3.0" (instance $command)))"#;

#[test]
fn a_command_whose_calls_have_all_stacks_is_over_when_its_task_is() {
    for calls in [1, 62, 63] {
        assert_eq!(run(&FULL.replace("CALLS", &calls.to_string())), End::Exit(0), "{calls} calls");
    }
    let more = run(&FULL.replace("CALLS", "64"));
    assert!(matches!(&more, End::Violation(Violation::StacksExhausted)), "{more:?}");
}

#[test]
fn a_command_is_over_when_its_task_is() {
    let ends = |then: &str| run(&COMMAND.replace("THEN", then));
    assert_eq!(ends(""), End::Exit(0), "what it has called is over, too");
    assert_eq!(ends("(drop (call $wait (call $set_new) (i32.const 0)))"), End::Exit(0), "that waits for what never comes");
    assert_eq!(ends("(loop $more (drop (call $yield)) (br $more))"), End::Exit(0), "that yields for ever");
}
