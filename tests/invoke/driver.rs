//! The loop, one step after the other.

use crate::guest::{self, begun, command, context, function, on_worker};
use awsm_abi::component::Violation;
use bytes::Bytes;
use sledge::component_trap::ComponentTrap;
use sledge::config::FunctionConfig;
use sledge::host::{Body, Waiter, Watch};
use sledge::invoke::driver::{Driver, Progress};
use sledge::invoke::function::{Function, Home};
use sledge::invoke::program::Stage;
use sledge::outcome::Failure;
use sledge::phases::PhaseConfig;
use sledge_sandbox::{Budget, Pool, TrapCode};
use std::time::{Duration, Instant};

/// Runs it to its end, however often it is preempted; what it waits for is waited for.
fn end(driver: &mut Driver, function: &Function) -> Result<(), Failure> {
    loop {
        match driver.run(&function.program) {
            Progress::Ended(result) => return result,
            Progress::Preempted | Progress::Yields => {}
            Progress::Waits { until } => panic!("it waits until {until:?}"),
            Progress::Stale => panic!("it has no transaction"),
            Progress::Pends(pending) => {
                let mut next = Some(pending);
                while let Some(pending) = next.take() {
                    let completion = Waiter::default().wait(pending, None).map(|completion| completion.expect("no deadline"));
                    next = driver.complete(&function.program, completion);
                }
            }
        }
    }
}

/// How it ends, and what it has replied.
fn ended(function: &Function) -> (Result<(), Failure>, Bytes) {
    on_worker(|| {
        let mut driver = begun(function);
        let result = end(&mut driver, function);
        (result, driver.finish().reply)
    })
}

fn failure(function: &Function) -> Failure {
    ended(function).0.expect_err("it fails")
}

/// How a command ends that makes one call of the host.
fn called(kind: i32, number: i32) -> (Result<(), Failure>, Bytes) {
    ended(&command(&format!("(call $do (i32.const {kind}) (i32.const {number}))")))
}

#[test]
fn calls_are_made_in_their_order_and_their_status_counts() {
    let reactor = |handle: &str| {
        let fields = format!(
            r#"(func $start (call $say (i32.const 97))) (start $start)
            (func (export "_initialize") (call $say (i32.const 98)))
            (func (export "init") (call $say (i32.const 99)))
            (func (export "sledge_handle") (result i32) (call $say (i32.const 100)) {handle})"#
        );
        let change = |config: &mut FunctionConfig| {
            config.init = Some("init".to_owned());
            config.snapshot = sledge::config::Snapshot::Off;
        };
        Function::new(guest::loaded(&fields, change).expect("a function"), Home::alone())
    };
    assert_eq!(ended(&reactor("(i32.const 0)")), (Ok(()), Bytes::from("abcd")));
    assert_eq!(ended(&reactor("(i32.const 7)")), (Err(Failure::Exit(7)), Bytes::from("abcd")));
    assert_eq!(failure(&reactor("unreachable")), Failure::Trap(TrapCode::Unreachable));
    on_worker(|| {
        let function = reactor("(call $act (i32.const 6) (i32.const 0))");
        let mut driver = begun(&function);
        assert_eq!(driver.stage(&function.program), Some(&Stage::Start(0)));
        assert_eq!(driver.host_function(&function.program), None);
        assert!(matches!(end(&mut driver, &function), Err(Failure::Component { trap: ComponentTrap::Case, .. })));
        assert_eq!(driver.stage(&function.program).map(ToString::to_string).as_deref(), Some("`sledge_handle`"));
        assert_eq!(driver.host_function(&function.program), Some("act"));
        assert_eq!(driver.backtrace().frames.len(), 1);
        assert_eq!(driver.context().host_calls(), 5);
    });
    // A command's numbers mean nothing.
    let command = function(
        r#"(func $start (call $say (i32.const 97))) (start $start) (func (export "_start") (call $say (i32.const 98)))"#,
    );
    assert_eq!(ended(&command), (Ok(()), Bytes::from("ab")));
    on_worker(|| {
        let mut driver = begun(&command);
        assert_eq!((end(&mut driver, &command), driver.stage(&command.program)), (Ok(()), None));
    });
    let names = [Stage::Start(0), Stage::Run("f".into()), Stage::Status("g")].map(|stage| stage.to_string());
    assert_eq!(names, ["the start function", "`f`", "`g`"]);
}

#[test]
fn a_host_call_ends_as_it_says() {
    let text = |byte: u8| Bytes::copy_from_slice(&[byte]);
    assert_eq!(called(guest::ANSWERS, 120), (Ok(()), text(b'x')));
    assert_eq!(called(guest::FAILS, 0), (Ok(()), text(8_u8.wrapping_neg())));
    assert_eq!(called(guest::EXITS, 0), (Ok(()), Bytes::new()));
    assert_eq!(called(guest::EXITS, 3), (Err(Failure::Exit(3)), Bytes::new()));
    assert_eq!(called(guest::REPLY_TOO_LARGE, 0).0, Err(Failure::ReplyTooLarge));
    assert_eq!(called(guest::DEADLINE, 0).0, Err(Failure::Deadline));
    assert_eq!(called(guest::BODY_BROKEN, 0).0, Err(Failure::BodyBroken));
    for bug in [guest::PANICS, guest::PANICS_LATER, guest::WAITS_FOR_NOTHING] {
        assert_eq!(called(bug, 0).0, Err(Failure::Internal), "{bug}");
    }
    let Err(Failure::Component { trap: ComponentTrap::Case, message }) = called(guest::TRAPS, 0).0 else { panic!("no trap") };
    assert!(message.starts_with("argument has a case that its type does not have"), "{message}");
    assert_eq!(called(guest::AGAIN, 121), (Ok(()), text(b'y')));
    for waits in [guest::SLEEPS, guest::TWICE] {
        assert_eq!(called(waits, 50), (Ok(()), text(b'2')), "{waits}");
    }
    assert_eq!(called(guest::EXITS_LATER, 0), (Ok(()), Bytes::new()));
    assert_eq!(called(guest::EXITS_LATER, 5).0, Err(Failure::Exit(5)));
}

/// Each call that does a part of its work lets others run, and one that waits is run only when it has been completed.
#[test]
fn a_host_call_leaves_the_worker_to_others() {
    on_worker(|| {
        let function = command("(call $do (i32.const 7) (i32.const 3))");
        let mut driver = begun(&function);
        let mut steps = Vec::new();
        loop {
            match driver.run(&function.program) {
                Progress::Yields => steps.push("yields"),
                Progress::Preempted => {}
                Progress::Ended(result) => break assert_eq!(result, Ok(())),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(steps, ["yields", "yields"]);
        assert_eq!(driver.context().host_calls(), 2, "each is counted once");

        let function = command("(call $do (i32.const 9) (i32.const 1))");
        let mut driver = begun(&function);
        let pends = |driver: &mut Driver| loop {
            match driver.run(&function.program) {
                Progress::Pends(pending) => return pending,
                Progress::Preempted => {}
                other => panic!("{other:?}"),
            }
        };
        let completed = |pending| Waiter::default().wait(pending, None).map(|completion| completion.expect("no deadline"));
        assert!(
            driver.complete(&function.program, completed(pends(&mut begun(&function)))).is_none(),
            "there is nothing to complete"
        );
        let first = completed(pends(&mut driver));
        let second = driver.complete(&function.program, first).expect("it waits again");
        assert!(driver.complete(&function.program, completed(second)).is_none());
        assert_eq!(end(&mut driver, &function), Ok(()));
        assert_eq!(driver.finish().reply, "\u{1}");
        // Run before it was completed.
        let mut driver = begun(&function);
        drop(pends(&mut driver));
        assert!(matches!(driver.run(&function.program), Progress::Ended(Err(Failure::Internal))));
    });
}

#[test]
fn what_runs_too_long_is_preempted_and_what_waits_says_until_when() {
    on_worker(|| {
        let function = command("(loop $on (br $on))");
        let mut driver = begun(&function);
        for _ in 0..3 {
            assert!(matches!(driver.run(&function.program), Progress::Preempted));
        }
        assert_eq!(driver.backtrace().frames.len(), 1);
        let waits = |nanoseconds: i64| {
            let function =
                command(&format!("(drop (memory.atomic.wait32 (i32.const 0) (i32.const 0) (i64.const {nanoseconds})))"));
            let mut driver = begun(&function);
            let before = Instant::now();
            let until = loop {
                match driver.run(&function.program) {
                    Progress::Waits { until } => break until,
                    Progress::Preempted => {}
                    other => panic!("{other:?}"),
                }
            };
            assert_eq!(end(&mut driver, &function), Ok(()), "it goes on when it is run");
            until.map(|until| until.saturating_duration_since(before))
        };
        let second = Duration::from_secs(1);
        assert!(waits(1_000_000_000).is_some_and(|wait| wait >= second && wait < 30 * second));
        assert_eq!(waits(-1), None);
    });
}

/// Guests that are refused memory commonly abort; whatever they do then was due to that.
#[test]
fn who_was_refused_memory_has_failed_for_that() {
    // Pages of 64 KiB: one of its own, and two more.
    let grow = "(memory.grow (i32.const 3))";
    let limited = |body: &str| {
        let change = |config: &mut FunctionConfig| config.memory_bytes_max = 3 << 16;
        let fields = format!(r#"(func (export "sledge_handle") (result i32) {body})"#);
        Function::new(guest::loaded(&fields, change).expect("a function"), Home::alone())
    };
    assert_eq!(ended(&limited(&format!("(drop {grow}) (i32.const 0)"))).0, Ok(()));
    assert_eq!(failure(&limited(&format!("(drop {grow}) unreachable"))), Failure::MemoryLimit);
    assert_eq!(failure(&limited(&format!("(drop {grow}) (i32.const 1)"))), Failure::MemoryLimit);
    assert_eq!(
        failure(&limited(&format!("(drop {grow}) (drop (call $act (i32.const 2) (i32.const 1))) (i32.const 0)"))),
        Failure::MemoryLimit
    );
    // What it could have done without being refused is its own.
    assert_eq!(failure(&limited("(drop (memory.grow (i32.const 2))) unreachable")), Failure::Trap(TrapCode::Unreachable));
    assert_eq!(
        failure(&limited(&format!("(drop {grow}) (i32.div_u (i32.const 1) (i32.load (i32.const 128)))"))),
        Failure::Trap(TrapCode::IntegerDivideByZero)
    );
    // It was the server's memory: enough for a stack and two pages.
    let change = |config: &mut FunctionConfig| config.memory_bytes_max = 1 << 20;
    let fields = format!(r#"(func (export "sledge_handle") (result i32) (drop {grow}) (i32.const 1))"#);
    let home = Home { budget: Some(Budget::new((1 << 20) + (4 << 16))), ..Home::alone() };
    assert_eq!(failure(&Function::new(guest::loaded(&fields, change).expect("a function"), home)), Failure::NoMemory);
}

/// A page of an image that all sandboxes share becomes its own with the first write. Where there is none for that, it has accessed nothing wrongly.
#[test]
fn who_was_refused_a_page_of_its_own_has_failed_for_that() {
    let image = "x".repeat(4 << 20);
    let fields = format!(
        r#"(memory $big 64) (data (memory $big) (i32.const 0) "{image}")
        (func (export "sledge_handle") (result i32) (local $at i32)
          (loop $on
            (i32.store $big (local.get $at) (i32.const 1))
            (local.set $at (i32.add (local.get $at) (i32.const 4096)))
            (br_if $on (i32.lt_u (local.get $at) (i32.const 0x400000))))
          (i32.const 0))"#
    );
    // The image, what each sandbox takes, and that much beside.
    let with = |bytes: u64| {
        let home = Home { budget: Some(Budget::new((6 << 20) + bytes)), ..Home::alone() };
        ended(&Function::new(guest::loaded(&fields, |_| {}).expect("a function"), home)).0
    };
    assert_eq!((with(6 << 20), with(1 << 20)), (Ok(()), Err(Failure::NoMemory)));
}

/// What the host keeps for it counts as its own: the body, and the reply.
#[test]
fn what_the_host_keeps_counts() {
    let change = |config: &mut FunctionConfig| config.memory_bytes_max = 1 << 17;
    let loaded = |fields: &str| Function::new(guest::loaded(fields, change).expect("a function"), Home::alone());
    let idle = loaded(r#"(func (export "_start"))"#);
    let with_body = |bytes: usize| {
        let sandbox = Box::new(idle.template.instantiate().expect("a sandbox"));
        let mut driver = Driver::new(sandbox, context(&idle, Body::from(Bytes::from(vec![0; bytes]))));
        on_worker(|| end(&mut driver, &idle))
    };
    assert_eq!((with_body(1 << 12), with_body(1 << 18)), (Ok(()), Err(Failure::MemoryLimit)));
    // A page at a time, so often.
    let writes = |times: u32| {
        loaded(&format!(
            r#"(func (export "_start") (local $times i32)
              (i32.store (i32.const 0) (i32.const 0)) (i32.store (i32.const 4) (i32.const 4096))
              (loop $on
                (drop (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))
                (local.set $times (i32.add (local.get $times) (i32.const 1)))
                (br_if $on (i32.lt_u (local.get $times) (i32.const {times})))))"#
        ))
    };
    let (result, reply) = ended(&writes(3));
    assert_eq!((result, reply.len()), (Ok(()), 3 * 4096));
    assert_eq!(failure(&writes(64)), Failure::MemoryLimit);
}

#[test]
fn an_overflow_of_the_stack_in_memory_is_told_from_other_accesses() {
    let overflows = |end: u32, left: i32| {
        function(&format!(
            r#"(global $stack (mut i32) (i32.const {end}))
              (func (export "_start")
                (global.set $stack (i32.const {left}))
                (i32.store (i32.sub (global.get $stack) (i32.const 0x1000)) (i32.const 1))
                (i32.store (i32.const 0x7fff0000) (i32.const 1)))"#
        ))
    };
    assert!(matches!(failure(&overflows(32_768, 16)), Failure::MemoryStack(_)));
    assert_eq!(failure(&overflows(32_768, 30_000)), Failure::Trap(TrapCode::MemoryOutOfBounds));
}

/// Only the first stack is one that returns; what is on another is the glue's, and goes on for ever.
#[test]
fn stacks_are_switched_to_by_their_numbers() {
    let switching = |stack: &str, body: &str| {
        function(&format!(
            r#"(import "sledge:canonical" "switch" (func $switch (param i32))) ;;
              (global $count (mut i32) (i32.const 0)) {stack}
              (func (export "_start") {body})"#
        ))
    };
    let talks = r#"(func (export "stack") (loop $on (call $say (i32.const 98)) (call $switch (i32.const 0)) (br $on)))"#;
    let twice = "(call $say (i32.const 97)) (call $switch (i32.const 1)) (call $say (i32.const 99)) (call $switch (i32.const 1))";
    assert_eq!(ended(&switching(talks, twice)), (Ok(()), Bytes::from("abcb")));
    let no_such = |function: &Function| matches!(failure(function), Failure::Component { trap: ComponentTrap::NoSuchStack, .. });
    assert!(no_such(&switching(talks, "(call $switch (i32.const 2))")), "it is not the next");
    assert!(no_such(&switching("", "(call $switch (i32.const 1))")), "nothing is exported for it");
    assert!(no_such(&switching(r#"(func (export "stack") (param i32))"#, "(call $switch (i32.const 1))")), "that is none");
    assert!(no_such(&switching(r#"(func (export "stack"))"#, "(call $switch (i32.const 1))")), "it returns");
    let more = r#"(func (export "stack") (global.set $count (i32.add (global.get $count) (i32.const 1))) (call $switch (global.get $count)) unreachable)"#;
    let many = switching(more, "(global.set $count (i32.const 1)) (call $switch (i32.const 1))");
    assert!(matches!(failure(&many), Failure::Component { trap: ComponentTrap::Violation(Violation::StacksExhausted), .. }));
    // Its memory is its first stack's: there is none for another.
    let change = |config: &mut FunctionConfig| {
        config.stack_bytes = 1 << 20;
        config.memory_bytes_max = 1 << 20;
    };
    let fields = r#"(import "sledge:canonical" "switch" (func $switch (param i32))) ;;
        (func (export "stack") unreachable) (func (export "_start") (call $switch (i32.const 1)))"#;
    let small = Function::new(guest::loaded(fields, change).expect("a function"), Home::alone());
    assert_eq!(failure(&small), Failure::MemoryLimit);
}

#[test]
fn what_was_killed_is_not_used_again() {
    on_worker(|| {
        let function = command("(call $say (i32.const 97))");
        let mut pool = Pool::new();
        let mut run = |kill: bool| {
            let mut driver = begun(&function);
            assert_eq!(end(&mut driver, &function), Ok(()));
            if kill {
                driver.kill();
            }
            pool.put(driver.finish().sandbox);
            pool.idle()
        };
        assert_eq!((run(true), run(false), run(true)), (0, 1, 1));
        // One that ended by itself is as good as one that returned.
        let function = command("(call $do (i32.const 2) (i32.const 0))");
        let mut driver = begun(&function);
        assert_eq!(end(&mut driver, &function), Ok(()));
        pool.put(driver.finish().sandbox);
        assert_eq!(pool.idle(), 2);
    });
}

#[test]
fn an_instance_is_used_again_by_the_last_of_its_calls() {
    on_worker(|| {
        let change = |config: &mut FunctionConfig| {
            config.init = Some("init".to_owned());
            config.snapshot = sledge::config::Snapshot::Off;
            config.memory_bytes_max = 1 << 17;
        };
        let fields = r#"(global $count (mut i32) (i32.const 48))
            (func (export "_initialize") (call $say (i32.const 97)))
            (func (export "init") (call $say (i32.const 98)))
            (func (export "sledge_handle") (result i32)
              (global.set $count (i32.add (global.get $count) (i32.const 1)))
              (if (i32.lt_u (global.get $count) (i32.const 52)) (then (call $say (global.get $count))))
              (i32.const 0))"#;
        let function = Function::new(guest::loaded(fields, change).expect("a function"), Home::alone());
        let mut driver = begun(&function);
        assert!(!driver.is_reusable(&function.program), "it has not begun");
        assert_eq!(end(&mut driver, &function), Ok(()));
        assert!(driver.is_reusable(&function.program));
        let mut remains = driver.finish();
        assert_eq!(remains.reply, "ab1");
        for reply in ["2", "3", ""] {
            let mut driver = Driver::again(remains.sandbox, context(&function, Body::default()), &function.program);
            assert!(!driver.is_reusable(&function.program));
            assert_eq!(driver.stage(&function.program).map(ToString::to_string).as_deref(), Some("`sledge_handle`"));
            assert_eq!(end(&mut driver, &function), Ok(()));
            assert!(driver.is_reusable(&function.program));
            remains = driver.finish();
            assert_eq!(remains.reply, reply);
        }
        // What it is given counts from its beginning on, also where it calls nothing of the host.
        let body = Body::from(Bytes::from(vec![0; 1 << 18]));
        let mut driver = Driver::again(remains.sandbox, context(&function, body), &function.program);
        assert_eq!(end(&mut driver, &function), Err(Failure::MemoryLimit));
        assert!(!driver.is_reusable(&function.program));
    });
}

#[test]
fn an_instance_that_was_left_with_something_open_is_not_used_again() {
    // A call on another stack that has not ended.
    let stacks = r#"(import "sledge:canonical" "switch" (func $switch (param i32))) ;;
        (func (export "stack") (call $switch (i32.const 0)))
        (func (export "_start") (call $switch (i32.const 1)) (call $say (i32.const 97)))"#;
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("f"), "x").expect("a file");
    let opens = |is_closed: bool| {
        let close = if is_closed { "(drop (call $close (i32.load (i32.const 32))))" } else { "" };
        let fields = format!(
            r#"(import "wasi_snapshot_preview1" "path_open"
                 (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
               (import "wasi_snapshot_preview1" "fd_close" (func $close (param i32) (result i32))) ;;
               (data (i32.const 256) "f")
               (func (export "_start")
                 (if (call $open (i32.const 3) (i32.const 0) (i32.const 256) (i32.const 1) (i32.const 0) (i64.const 2) (i64.const 0)
                       (i32.const 0) (i32.const 32))
                   (then unreachable))
                 {close})"#
        );
        let change = |config: &mut FunctionConfig| {
            config.dirs = vec![sledge::config::DirConfig {
                host: folder.path().to_owned(),
                guest: "/".to_owned(),
                write: sledge::config::DirWrite::No,
                within: None,
            }];
        };
        Function::new(guest::loaded(&fields, change).expect("a function"), Home::alone())
    };
    let is_reusable = |function: &Function| {
        on_worker(|| {
            let mut driver = begun(function);
            assert_eq!(end(&mut driver, function), Ok(()));
            driver.is_reusable(&function.program)
        })
    };
    assert!(!is_reusable(&function(stacks)));
    assert_eq!([true, false].map(|is_closed| is_reusable(&opens(is_closed))), [true, false]);
}

#[test]
fn only_a_reactor_can_have_an_instance_that_lasts() {
    let lasts = |fields: &str| guest::loaded(fields, |config| config.instance = sledge::config::Instance::Request);
    assert!(lasts(r#"(func (export "sledge_handle") (result i32) (i32.const 0))"#).is_ok());
    let Err(error) = lasts(r#"(func (export "_start"))"#) else { panic!("it is taken") };
    assert!(error.to_string().contains("a command runs from its start for each call"), "{error}");
}

#[test]
fn a_stack_is_as_large_as_is_set() {
    // Each call leaves something to do behind it, so that it keeps its frame.
    let fields = r#"(func $deep (param i32)
          (if (local.get 0) (then (call $deep (i32.sub (local.get 0) (i32.const 1)))))
          (i32.store (i32.const 2048) (i32.add (i32.load (i32.const 2048)) (i32.const 1))))
        (func (export "_start") (call $deep (i32.const 20000)))"#;
    let ends = |stack_bytes: u64| {
        let change = |config: &mut FunctionConfig| config.stack_bytes = stack_bytes;
        ended(&Function::new(guest::loaded(fields, change).expect("a function"), Home::alone())).0
    };
    assert_eq!(ends(128 << 10), Err(Failure::Trap(TrapCode::StackExhausted)));
    assert_eq!(ends(16 << 20), Ok(()));
}

const STREAM: &str = r#"(import "sledge:http" "stream" (func $stream (param i64) (result i32)))
    (import "sledge:http" "set-trailer" (func $set_trailer (param i32 i32 i32 i32) (result i32)))
    (import "sledge:http" "status" (func $status (param i32) (result i32))) ;;"#;

fn streaming(body: &str) -> Function {
    function(&format!(r#"{STREAM} (data (i32.const 256) "x-a") (func (export "_start") {body})"#))
}

#[test]
fn a_reply_is_taken_while_it_is_written_or_as_a_whole() {
    on_worker(|| {
        let begin = "(drop (call $status (i32.const 201))) (drop (call $stream (i64.const -1))) (call $say (i32.const 97))";
        let function = streaming(begin);
        let mut driver = begun(&function);
        assert!(driver.take_stream().is_none(), "nothing was begun");
        assert_eq!(end(&mut driver, &function), Ok(()));
        assert!(driver.complete_stream(), "it is over before its head was sent");
        assert!(!driver.complete_stream() && driver.take_stream().is_none(), "it is one no longer");
        let remains = driver.finish();
        assert_eq!((&remains.reply[..], remains.head.is_some()), (&b"a"[..], true));

        let mut driver = begun(&function);
        assert_eq!(end(&mut driver, &function), Ok(()));
        let (_pipe, _stream, head) = driver.take_stream().expect("a stream");
        assert!(head.is_some() && driver.take_stream().is_none(), "it is taken once");
        assert!(!driver.complete_stream(), "it is on its way");
        assert!(driver.finish().reply.is_empty());

        // What was said and not kept.
        let short = streaming("(drop (call $stream (i64.const 2))) (call $say (i32.const 97))");
        assert_eq!(end(&mut begun(&short), &short), Err(Failure::ReplyIncomplete));
        // Trailers come behind what was written.
        let trailing = "(drop (call $set_trailer (i32.const 256) (i32.const 3) (i32.const 256) (i32.const 3)))";
        let trailing = streaming(&format!("{trailing} {begin}"));
        let mut driver = begun(&trailing);
        assert_eq!(end(&mut driver, &trailing), Ok(()));
        assert!(!driver.complete_stream(), "no whole reply has any");
        assert!(driver.take_trailers().is_some() && driver.take_trailers().is_none());
    });
}

#[test]
fn calls_of_other_functions_are_taken_and_answered() {
    let calls = r#"(import "sledge:call" "invoke" (func $invoke (param i32 i32 i32 i32 i32 i32) (result i32)))
        (import "sledge:call" "send" (func $send (param i32 i32 i32 i32) (result i32))) ;;
        (data (i32.const 256) "other")"#;
    let text = "(i32.const 256) (i32.const 5) (i32.const 256) (i32.const 2)";
    let function = function(&format!(
        r#"{calls} (func (export "_start")
          (drop (call $send {text}))
          (call $say (i32.sub (i32.const 0) (call $invoke {text} (i32.const 0) (i32.const 0)))))"#
    ));
    on_worker(|| {
        let mut driver = begun(&function);
        assert!(driver.next_outgoing().is_none());
        while !matches!(driver.run(&function.program), Progress::Yields) {}
        let calls: Vec<_> = std::iter::from_fn(|| driver.next_outgoing()).collect();
        let told: Vec<_> = calls.iter().map(|call| (&*call.name, &call.input[..], call.host_call, call.id.is_some())).collect();
        assert_eq!(told, [("other", &b"ot"[..], 1, false), ("other", &b"ot"[..], 2, true)]);
        assert!(driver.next_outgoing().is_none(), "they are taken");
        driver.called(calls[1].id.expect("it waits"), Err(sledge::host::CallFailure::TooDeep));
        assert_eq!(end(&mut driver, &function), Ok(()));
        assert_eq!(driver.finish().reply, "\u{20}", "ELOOP");
        // Where there are none.
        let mut driver = begun(&function);
        while !matches!(driver.run(&function.program), Progress::Yields) {}
        driver.refuse_calls();
        assert_eq!(end(&mut driver, &function), Ok(()));
        assert_eq!(driver.finish().reply, "\u{2c}", "ENOENT");
    });
}

#[test]
fn time_is_counted_by_phases_and_what_watches_is_given_back() {
    let change = |config: &mut FunctionConfig| {
        let phase = |id: u32, name: &str| PhaseConfig { id, name: name.to_owned(), cpu_us: 10, cpu_percent: 100 };
        config.phases = vec![phase(0, "one"), phase(3, "two")];
    };
    let function = Function::new(guest::loaded(r#"(func (export "_start"))"#, change).expect("a function"), Home::alone());
    on_worker(|| {
        let sandbox = Box::new(function.template.instantiate().expect("a sandbox"));
        let mut driver = Driver::new(sandbox, context(&function, Body::default()).watched(Watch::default()));
        let now = Instant::now();
        driver.start_clock(now);
        driver.count_time(now + Duration::from_millis(30));
        driver.start_clock(now + Duration::from_millis(70));
        driver.count_time(now + Duration::from_millis(75));
        let clock = driver.take_phases().expect("phases");
        assert_eq!(
            clock.times().map(|(index, phase, time)| (index, &*phase.name, time)).collect::<Vec<_>>(),
            [(0, "one", Duration::from_millis(35))]
        );
        assert!(driver.take_phases().is_none());
        assert!(driver.take_watch().is_some() && driver.take_watch().is_none());
    });
}

#[test]
fn what_is_profiled_is_told_how_long_it_waited() {
    let function = command("");
    let profiling = function.process.profiler.begin().expect("it is not profiled yet");
    on_worker(|| {
        let (mut driver, now) = (begun(&function), Instant::now());
        driver.start_clock(now);
        driver.count_time(now + Duration::from_millis(30));
        driver.count_wait(Duration::from_millis(90));
        assert_eq!(end(&mut driver, &function), Ok(()));
        assert!(driver.take_phases().expect("a clock").end(true).is_none(), "it declares none");
    });
    let measured = profiling.measured(None);
    let [phase] = &measured.phases[..] else { panic!("{measured:?}") };
    assert_eq!((phase.config.cpu_us, phase.config.cpu_percent), (30_000, 25));
}

/// Bursts are learned by where they begin, so places must differ, and be the same each time.
#[test]
fn a_microtask_begins_where_the_host_was_called() {
    let phase = PhaseConfig { id: 0, name: "one".to_owned(), cpu_us: 700, cpu_percent: 100 };
    let fields = r#"(func (export "_start")
        (call $say (i32.const 97))
        (drop (call $act (i32.const 0) (i32.const 1)))
        (call $say (i32.const 98)))"#;
    let loaded = guest::loaded(fields, |config: &mut FunctionConfig| config.phases = vec![phase]).expect("a function");
    let function = Function::new(loaded, Home::alone());
    on_worker(|| {
        let mut driver = begun(&function);
        let mut begins = || {
            assert!(matches!(driver.run_to_host_call(&function.program), Progress::Yields));
            driver.microtask()
        };
        let [say, act, again] = [begins(), begins(), begins()];
        assert_eq!(say, again);
        assert_ne!(say.site, act.site);
        assert_eq!(say.declared, Some(Duration::from_micros(700)));
    });
}
