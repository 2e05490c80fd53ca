//! Guests that are killed in the middle of a long operation on their memory: the sandbox is never used again, the thread is as good as
//! before, and the next sandbox of the artifact finds nothing of what was being written. No script can say this: it has no time.

use crate::MODES;
use crate::endless::prepared;
use awsm::{CompileOptions, Program};
use sledge_sandbox::{Artifact, Event, LoadPolicy, Value, WorkerThread};
use std::time::Duration;

/// Name and body of a function that is still running when its first quantum ends.
const CASES: &[(&str, &str)] = &[
    ("copy of 1 GiB", "(memory.copy (i32.const 0x40000000) (i32.const 0) (i32.const 0x40000000))"),
    ("copy of 1 GiB, backwards", "(memory.copy (i32.const 16) (i32.const 0) (i32.const 0x40000000))"),
    ("fill of 1 GiB", "(memory.fill (i32.const 0) (i32.const 0xaa) (i32.const 0x40000000))"),
    ("growing, page by page", "(loop (drop (memory.grow (i32.const 1))) (i32.store8 (i32.const 0) (i32.const 0xaa)) (br 0))"),
    ("growing by nothing", "(loop (drop (memory.grow (i32.const 0))) (i32.store8 (i32.const 0) (i32.const 0xaa)) (br 0))"),
];

#[test]
fn a_guest_killed_while_it_changes_its_memory_leaves_nothing_behind() {
    for &(bounds, opt_level) in MODES {
        for (name, body) in CASES {
            let case = format!("{name}, {bounds} at -O{}", opt_level.number());
            let artifact = compile(body, &CompileOptions { bounds, opt_level, ..CompileOptions::default() });
            let worker = WorkerThread::enter(Duration::from_millis(1)).unwrap();
            let mut sandbox = prepared(&artifact, "f", &[]);
            worker.arm();
            assert_eq!(sandbox.resume(), Event::Preempted, "{case}");
            worker.disarm();
            sandbox.kill();
            let function = sandbox.main_instance().and_then(|instance| sandbox.export_function(instance, "f")).unwrap();
            assert!(sandbox.prepare(function, &[]).is_err(), "{case}: a killed sandbox takes a call");
            drop(sandbox);

            for address in [0, 0x4000_0000] {
                let mut next = prepared(&artifact, "load", &[Value::I32(address)]);
                assert_eq!(next.resume(), Event::Returned, "{case}");
                assert_eq!(next.results(), [Value::I64(0)], "{case}");
            }
        }
    }
}

fn compile(body: &str, options: &CompileOptions) -> Artifact {
    let text = format!(
        r#"(module
          (memory 32769)
          (func (export "f") {body})
          (func (export "load") (param i32) (result i64) (i64.load (local.get 0))))"#
    );
    let wasm = wat::parse_str(text).unwrap();
    Artifact::load(&awsm::compile(&Program::single(&wasm), options, &()).unwrap(), &LoadPolicy::default()).unwrap()
}
