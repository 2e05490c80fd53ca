//! Commands that are components, run without a host: they call nothing but what glue calls.

use std::time::{Duration, Instant};

use awsm_abi::component::{CANONICAL, EXIT, STACK, SWITCH, TRAP, UNFINISHED, Violation};
use awsm_abi::descriptor::ImportType;
use sledge_sandbox::{Backtrace, Event, Sandbox, Stacks, TrapCode, Value, WorkerThread};

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// With this flat result: zero for success.
    Exit(i32),
    /// The component model forbids what it did.
    Violation(Violation),
    /// A trap of core code.
    Trap(TrapCode),
    /// It ran for too long, and was killed.
    Timeout,
}

/// What there is to tell of a violation.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// The value that is wrong, where the glue says it.
    pub value: Option<u32>,
    /// How it came there.
    pub backtrace: Backtrace,
}

/// Runs the start functions of a fresh sandbox in their order, then its command, to the end.
///
/// # Panics
/// When it is no command, calls the host, or there is no memory for a stack that it asks for.
pub fn run(worker: &WorkerThread, sandbox: &mut Sandbox, time_max: Duration) -> End {
    run_traced(worker, sandbox, time_max).0
}

/// The same, with how it came to a violation or a trap.
///
/// # Panics
/// As [`run`].
pub fn run_traced(worker: &WorkerThread, sandbox: &mut Sandbox, time_max: Duration) -> (End, Trace) {
    let deadline = Instant::now() + time_max;
    let instances: Vec<_> = sandbox.instances().collect();
    let mut functions: Vec<_> = instances.iter().filter_map(|instance| sandbox.start_function(*instance)).collect();
    let mut stacks = Stacks::default();
    let main = sandbox.main_instance().expect("a program has instances");
    functions.push(sandbox.export_function(main, "_start").expect("a command"));
    for function in functions {
        sandbox.prepare(function, &[]).expect("a function without parameters");
        worker.arm();
        let end = run_function(sandbox, &mut stacks, deadline);
        worker.disarm();
        if let Some(end) = end {
            return end;
        }
    }
    panic!("a command that does not say how it ended");
}

/// None where the function returned.
fn run_function(sandbox: &mut Sandbox, stacks: &mut Stacks, deadline: Instant) -> Option<(End, Trace)> {
    loop {
        match sandbox.resume() {
            Event::HostCall(call) => {
                let (artifact, module) = sandbox.module(call.instance);
                let imports = artifact.descriptor().modules[module].imports.iter();
                let mut functions = imports.filter(|import| matches!(import.ty, ImportType::Function { .. }));
                let import = functions.nth(call.import as usize).expect("the import that is called");
                assert_eq!(import.module, CANONICAL, "{}", import.name);
                let end = match (import.name.as_str(), sandbox.host_values().as_slice()) {
                    (TRAP, &[Value::I32(number), Value::I64(value)]) => {
                        let violation = Violation::of(number.cast_unsigned()).expect("a number that is one");
                        let value = Violation::value(value.cast_unsigned());
                        let backtrace = sandbox.backtrace();
                        sandbox.kill();
                        (End::Violation(violation), Trace { value, backtrace })
                    }
                    (EXIT, &[Value::I32(number)]) => {
                        // A pool takes it back.
                        sandbox.finish();
                        (End::Exit(number), Trace::default())
                    }
                    (SWITCH, &[Value::I32(number)]) => {
                        let start = |sandbox: &Sandbox| sandbox.export_function(call.instance, STACK);
                        stacks.switch(sandbox, number.cast_unsigned(), start).expect("a stack");
                        continue;
                    }
                    // There is no host that could have begun anything.
                    (UNFINISHED, []) => {
                        sandbox.host_results(&[Value::I32(0)]).expect("a number");
                        continue;
                    }
                    (other, values) => panic!("a call of {other} with {values:?}"),
                };
                return Some(end);
            }
            Event::Returned => return None,
            Event::Trapped(trap) => {
                return Some((End::Trap(trap.code), Trace { value: None, backtrace: sandbox.backtrace() }));
            }
            Event::Preempted if Instant::now() < deadline => {}
            Event::Waits { time: Some(time) } if Instant::now() + time < deadline => std::thread::sleep(time),
            Event::Preempted | Event::Waits { .. } => {
                sandbox.kill();
                return Some((End::Timeout, Trace::default()));
            }
        }
    }
}
