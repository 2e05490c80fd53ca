//! A module so large that its functions are compiled apart from each other: calls, tail calls, tables, traps and backtraces across the parts.

use awsm::{Bounds, CompileOptions, OptLevel, Program};
use sledge_sandbox::{Artifact, Event, LoadPolicy, Sandbox, SandboxLimits, TrapCode, Value, WorkerThread};
use std::fmt::Write;
use std::time::Duration;

/// Functions that call each other in turn. Their bodies come to more than two parts.
pub(crate) const LINKS: u32 = 600;

/// A chain through all parts: each link calls the next, by turns directly, in the tail, through the table, and through a function that is small
/// enough to be copied and inlined. The last loads from the address that the first got.
pub(crate) fn module() -> Vec<u8> {
    let mut text = String::from(
        "(module (memory 1) (type $link (func (param i32) (result i32))) (global $steps (export \"steps\") (mut i32) (i32.const 0))",
    );
    let filler: String = (1..55)
        .map(|i| format!("(global.set $steps (i32.xor (global.get $steps) (i32.mul (local.get 0) (i32.const {i}))))"))
        .collect();
    for link in 0..LINKS {
        let next = link + 1;
        let call = match link % 4 {
            0 => format!("(i32.add (i32.const 1) (call $link{next} (local.get 0)))"),
            1 => format!("(return_call $link{next} (local.get 0))"),
            2 => format!("(call_indirect (type $link) (local.get 0) (i32.const {next}))"),
            _ => format!("(call $small{next} (local.get 0))"),
        };
        write!(
            text,
            "(func $link{link} (type $link) {filler} (global.set $steps (i32.add (global.get $steps) (i32.const 1))) {call})"
        )
        .unwrap();
        write!(text, "(func $small{next} (type $link) (i32.sub (call $link{next} (local.get 0)) (i32.const 2)))").unwrap();
    }
    let names: String = (0..=LINKS).map(|link| format!(" $link{link}")).collect();
    write!(
        text,
        "(func $link{LINKS} (type $link) (i32.load (local.get 0))) (table funcref (elem {names})) (export \"first\" (func $link0)))"
    )
    .unwrap();
    wat::parse_str(text).unwrap()
}

#[test]
fn parts_work_together_and_do_not_depend_on_the_number_of_threads() {
    let wasm = module();
    for (bounds, opt_level) in [(Bounds::Guard, OptLevel::O3), (Bounds::Software, OptLevel::O0), (Bounds::Guard, OptLevel::O1)] {
        let compile = |jobs| {
            awsm::compile(&Program::single(&wasm), &CompileOptions { bounds, opt_level, jobs, ..CompileOptions::default() }, &())
                .unwrap()
        };
        let three = compile(3);
        assert!(opt_level != OptLevel::O1 || three == compile(1), "-j 1 and -j 3 differ");
        let artifact = Artifact::load(&three, &LoadPolicy::default()).unwrap();
        let functions = &artifact.descriptor().modules[0].functions;
        let mut texts: Vec<_> = functions.iter().filter_map(|function| function.code).map(|code| code.text).collect();
        texts.dedup();
        assert!(texts.len() > 2 && texts.is_sorted(), "functions lie in their order in parts {texts:?}");
        run(&artifact, opt_level);
    }
}

/// Runs what was prepared until it ends or asks for something.
pub(crate) fn resume(worker: &WorkerThread, sandbox: &mut Sandbox) -> Event {
    worker.arm();
    let event = loop {
        match sandbox.resume() {
            Event::Preempted => {}
            event => break event,
        }
    };
    worker.disarm();
    event
}

fn run(artifact: &Artifact, opt_level: OptLevel) {
    let worker = WorkerThread::enter(Duration::from_millis(10)).unwrap();
    let call = |address: i32| {
        let mut sandbox = Sandbox::new(&SandboxLimits::default()).unwrap();
        let instance = sandbox.instantiate(artifact, 0, &[]).unwrap();
        let first = sandbox.export_function(instance, "first").unwrap();
        sandbox.prepare(first, &[Value::I32(address)]).unwrap();
        (resume(&worker, &mut sandbox), sandbox)
    };
    let (event, sandbox) = call(64);
    assert!(matches!(event, Event::Returned), "{event:?}");
    // Of four links one adds 1 and one takes 2 away.
    assert_eq!(sandbox.results(), [Value::I32(-(LINKS as i32) / 4)]);
    let (event, sandbox) = call(65536);
    let Event::Trapped(trap) = event else { panic!("{event:?}") };
    assert_eq!(trap.code, TrapCode::MemoryOutOfBounds);
    let names: Vec<_> = sandbox.backtrace().frames.into_iter().filter_map(|frame| frame.name).collect();
    let innermost = format!("link{LINKS}");
    assert!(names[0] == innermost || names[0] == format!("small{LINKS}"), "{names:?}");
    // Of four links one has given up its frame; calls of the small ones may be inlined. What remains goes down without a gap.
    let links: Vec<u32> = names.iter().filter_map(|name| name.strip_prefix("link")?.parse().ok()).collect();
    assert!(
        links.len() > 20 && links.windows(2).all(|pair| (1..=2).contains(&(pair[0] - pair[1]))),
        "-O{}: {links:?}",
        opt_level.number()
    );
}
