//! Endless loops stay loops, can be preempted, and can be killed. The official suite cannot say this: a script has no time.

use crate::MODES;
use awsm::{CompileOptions, Program};
use sledge_sandbox::{Artifact, Event, LoadPolicy, Sandbox, SandboxLimits, Value, WorkerThread};
use std::sync::mpsc;
use std::time::Duration;

/// Name and body of the function `f`. None of them may ever come to the `unreachable` behind it.
const LOOPS: &[(&str, &str)] = &[
    ("empty", "(loop (br 0))"),
    ("two levels", "(loop (loop (br 1)) (br 0))"),
    ("counting", "(local i32) (loop (local.set 0 (i32.add (local.get 0) (i32.const 1))) (br 0))"),
    ("condition that is never false", "(local i32) (loop (local.set 0 (i32.const 1)) (br_if 0 (local.get 0)))"),
    (
        "even number that is never odd",
        "(local i32) (loop (local.set 0 (i32.add (local.get 0) (i32.const 2))) (br_if 0 (i32.ne (local.get 0) (i32.const 1))))",
    ),
    ("waiting for a global", "(loop (br_if 0 (i32.eqz (global.get $g))))"),
    ("waiting for memory", "(loop (br_if 0 (i32.eqz (i32.load (i32.const 16)))))"),
    ("loading", "(loop (drop (i32.load (i32.const 8))) (br 0))"),
    ("storing", "(loop (i32.store (i32.const 8) (i32.const 1)) (br 0))"),
    ("calling", "(loop (call $nothing) (br 0))"),
    ("calling indirectly", "(loop (call_indirect (i32.const 0)) (br 0))"),
    ("in a callee", "(call $forever)"),
    ("in a callee, by table", "(call_indirect (i32.const 1))"),
    ("tail calls", "(call $again (i32.const 0))"),
    ("tail calls by table", "(call_indirect (i32.const 2))"),
    ("tail calls between types", "(call $many (i32.const 1) (i32.const 2))"),
    ("in a callee whose result is dropped", "(drop (call $forever_i32))"),
    ("br_table", "(loop (br_table 0 0 0 (i32.load (i32.const 8))))"),
    ("filling memory", "(loop (memory.fill (i32.const 0) (i32.const 0) (i32.const 65536)) (br 0))"),
    ("asking the size", "(loop (drop (memory.size)) (br 0))"),
    ("floats", "(local f64) (loop (local.set 0 (f64.sqrt (f64.add (local.get 0) (f64.const 1)))) (br 0))"),
];

/// Preemptions after which a loop counts as endless.
const PREEMPTIONS: usize = 5;

#[test]
fn endless_loops_are_preempted_and_killed() {
    for &(bounds, opt_level) in MODES {
        for (name, body) in LOOPS {
            let case = format!("{name}, {bounds} at -O{}", opt_level.number());
            let options = CompileOptions { bounds, opt_level, ..CompileOptions::default() };
            let artifact = compile(body, &options);
            within(Duration::from_secs(20), &case, move || run_and_kill(&artifact));
        }
    }
}

/// Several guests that never end share a thread: each gets its turns, and one that ends does so meanwhile.
#[test]
fn endless_loops_share_a_thread_with_one_that_ends() {
    let endless = compile("(loop (br 0))", &CompileOptions::default());
    within(Duration::from_secs(20), "sharing", move || {
        let worker = WorkerThread::enter(Duration::from_millis(1)).unwrap();
        let mut guests: Vec<Sandbox> = (0..3).map(|_| prepared(&endless, "f", &[])).collect();
        let mut counter = prepared(&endless, "count to", &[Value::I32(400_000_000)]);
        worker.arm();
        let mut turns = 0;
        loop {
            match counter.resume() {
                Event::Returned => break,
                Event::Preempted => turns += 1,
                other => panic!("the one that ends: {other:?}"),
            }
            for guest in &mut guests {
                assert_eq!(guest.resume(), Event::Preempted);
            }
        }
        worker.disarm();
        assert_eq!(counter.results(), [Value::I32(400_000_000)]);
        assert!(turns > 0, "it ended in its first millisecond, so nothing was shared");
        // Dropped in the middle of a loop, not killed first.
        drop(guests);
    });
}

fn run_and_kill(artifact: &Artifact) {
    let worker = WorkerThread::enter(Duration::from_millis(1)).unwrap();
    let mut sandbox = prepared(artifact, "f", &[]);
    worker.arm();
    for _ in 0..PREEMPTIONS {
        assert_eq!(sandbox.resume(), Event::Preempted);
    }
    worker.disarm();
    sandbox.kill();
    let function = sandbox.main_instance().and_then(|instance| sandbox.export_function(instance, "answer")).unwrap();
    assert!(sandbox.prepare(function, &[]).is_err(), "a killed sandbox takes a call");
    drop(sandbox);

    // The thread is as good as before.
    let mut next = prepared(artifact, "answer", &[]);
    worker.arm();
    let mut event = next.resume();
    while event == Event::Preempted {
        event = next.resume();
    }
    worker.disarm();
    assert_eq!(event, Event::Returned);
    assert_eq!(next.results(), [Value::I32(42)]);
}

/// A sandbox of the artifact's first module, about to call that export.
pub(crate) fn prepared(artifact: &Artifact, function: &str, arguments: &[Value]) -> Sandbox {
    let mut sandbox = Sandbox::new(&SandboxLimits::default()).unwrap();
    let instance = sandbox.instantiate(artifact, 0, &[]).unwrap();
    let function = sandbox.export_function(instance, function).unwrap();
    sandbox.prepare(function, arguments).unwrap();
    sandbox
}

fn compile(body: &str, options: &CompileOptions) -> Artifact {
    let text = format!(
        r#"(module
          (memory 1)
          (global $g (mut i32) (i32.const 0))
          (table funcref (elem $nothing $forever $again_by_table))
          (func $nothing)
          (func $forever (loop (br 0)))
          (func $again (param i32) (return_call $again (i32.add (local.get 0) (i32.const 1))))
          (func $again_by_table (return_call_indirect (i32.const 2)))
          (func $few (param i32) (return_call $many (local.get 0) (i32.const 5)))
          (func $many (param i32 i32) (result) (return_call $most (local.get 0) (f64.const 1) (i64.const 2) (i64.const 3) (i64.const 4)
            (i64.const 5) (i64.const 6) (i64.const 7) (local.get 1)))
          (func $most (param i32 f64 i64 i64 i64 i64 i64 i64 i32) (return_call $few (local.get 8)))
          (func $forever_i32 (result i32) (loop (br 0)) (i32.const 1))
          (func (export "set g") (global.set $g (i32.const 1)))
          (func (export "f") {body} (unreachable))
          (func (export "answer") (result i32) (i32.const 42))
          ;; Through memory, so that no closed form replaces the loop.
          (func (export "count to") (param i32) (result i32)
            (loop
              (i32.store (i32.const 0) (i32.add (i32.load (i32.const 0)) (i32.const 1)))
              (br_if 0 (i32.lt_u (i32.load (i32.const 0)) (local.get 0))))
            (i32.load (i32.const 0))))"#
    );
    let wasm = wat::parse_str(text).unwrap();
    Artifact::load(&awsm::compile(&Program::single(&wasm), options, &()).unwrap(), &LoadPolicy::default()).unwrap()
}

/// Runs on a thread of its own and fails when that takes longer: a guest that is not preempted would never come back.
fn within(time: Duration, case: &str, work: impl FnOnce() + Send + 'static) {
    let (done, wait) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        work();
        // The receiver is gone only after it has given up.
        let _ = done.send(());
    });
    match wait.recv_timeout(time) {
        Ok(()) => thread.join().unwrap(),
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("{case}: still not done after {time:?}"),
        Err(mpsc::RecvTimeoutError::Disconnected) => {
            panic!("{case}: {:?}", thread.join().err().and_then(|e| e.downcast::<String>().ok()))
        }
    }
}
