//! An invocation on a thread that has nothing else to do.

use crate::guest::{begun, command, function, on_worker};
use bytes::Bytes;
use sledge::host::Waiter;
use sledge::invoke::alone;
use sledge::invoke::function::Function;
use sledge::outcome::Failure;
use std::time::{Duration, Instant};

const TIME: Duration = Duration::from_millis(60);

/// How it ended, what it replied, and how long that took.
fn run(function: &Function, deadline: Option<Duration>) -> (Result<(), Failure>, Bytes, Duration) {
    on_worker(|| {
        let start = Instant::now();
        let mut driver = begun(function);
        let result = alone::run(&mut driver, &function.program, deadline.map(|time| start + time), Waiter::default());
        (result, driver.finish().reply, start.elapsed())
    })
}

#[track_caller]
fn is_late(function: &Function) {
    let (result, _, took) = run(function, Some(TIME));
    assert_eq!(result, Err(Failure::Deadline));
    assert!(took >= TIME && took < 100 * TIME, "{took:?}");
}

#[test]
fn it_ends_in_its_own_time_or_at_its_deadline() {
    // For some quanta.
    let counts = command(
        "(local $i i32) (loop $on (i32.store (i32.const 128) (i32.add (i32.load (i32.const 128)) (local.get $i)))
          (br_if $on (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 10000000)))) (call $say (i32.const 97))",
    );
    for deadline in [None, Some(1_000 * TIME)] {
        let (result, reply, _) = run(&counts, deadline);
        assert_eq!((result, reply), (Ok(()), Bytes::from("a")));
    }
    is_late(&command("(loop $on (br $on))"));
    // Each time that it lets others run it is looked whether there is time left.
    is_late(&command("(drop (call $act (i32.const 7) (i32.const 0x7fffffff)))"));
}

#[test]
fn a_wait_ends_when_its_time_has_come_or_at_the_deadline() {
    let waits = |time: Duration, nanoseconds: i64| {
        let wait = format!("(call $say (memory.atomic.wait32 (i32.const 0) (i32.const 0) (i64.const {nanoseconds})))");
        let function = function(&format!(r#"(func (export "_start") {wait})"#));
        for deadline in [None, Some(1_000 * TIME)] {
            let (result, reply, took) = run(&function, deadline);
            assert_eq!((result, &reply[..]), (Ok(()), &[2][..]), "it is told that its time is over");
            assert!(took >= time && took < time + 100 * TIME, "{took:?}");
        }
        function
    };
    waits(TIME, 60_000_000);
    waits(Duration::ZERO, 0);
    for nanoseconds in [-1_i64, 30_000_000_000] {
        is_late(&command(&format!("(drop (memory.atomic.wait32 (i32.const 0) (i32.const 0) (i64.const {nanoseconds})))")));
    }
}

#[test]
fn a_host_call_is_waited_for_until_the_deadline() {
    for waits in [8, 9] {
        let sleeps = |ms: u32| command(&format!("(call $do (i32.const {waits}) (i32.const {ms}))"));
        for deadline in [None, Some(1_000 * TIME)] {
            let (result, reply, took) = run(&sleeps(60), deadline);
            assert_eq!((result, &reply[..]), (Ok(()), &[60][..]));
            assert!(took >= TIME, "{took:?}");
        }
        is_late(&sleeps(20_000));
    }
    let (result, _, _) = run(&command("(call $do (i32.const 11) (i32.const 0))"), Some(TIME));
    assert_eq!(result, Err(Failure::Internal), "it panics while it is waited for");
}

#[test]
fn there_are_no_other_functions() {
    let text = "(i32.const 256) (i32.const 5) (i32.const 256) (i32.const 5) (i32.const 0) (i32.const 0)";
    let calls = function(&format!(
        r#"(import "sledge:call" "invoke" (func $invoke (param i32 i32 i32 i32 i32 i32) (result i32))) ;;
          (data (i32.const 256) "other") (func (export "_start") (call $say (i32.sub (i32.const 0) (call $invoke {text}))))"#
    ));
    let (result, reply, _) = run(&calls, Some(100 * TIME));
    assert_eq!((result, &reply[..]), (Ok(()), &[44][..]), "ENOENT");
}
