//! Programs of several modules: one artifact, whose plan binds the imports of one instance to the exports of another.

use crate::{MODES, parts};
use awsm::frontend::{self, ProducerOptions};
use awsm::isolated::{self, Limits};
use awsm::{CompileOptions, Instance, OptLevel, Phase, Program, Progress};
use sledge_sandbox::{Artifact, Event, LoadPolicy, Sandbox, SandboxLimits, Template, TrapCode, Value, WorkerThread};
use sledge_tests::{hostile, programs};
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::Duration;

/// Has what the other uses: a function, a memory, a table, a global.
const PROVIDER: &str = r#"(module
  (import "env" "host" (func $host (param i32) (result i32)))
  (memory (export "memory") 1)
  (global (export "global") (mut i32) (i32.const 7))
  (table (export "table") 2 funcref)
  (elem (i32.const 0) $twice)
  (data (i32.const 16) "\2a\00\00\00")
  (func $twice (param i32) (result i32) (i32.mul (local.get 0) (i32.const 2)))
  (func (export "ask host") (param i32) (result i32) (call $host (local.get 0))))"#;

/// 2 * memory[16] (by the table) + global + host(5), and adds one to the provider's memory, so that a second instance would show.
const USER: &str = r#"(module
  (type $unary (func (param i32) (result i32)))
  (import "p" "ask" (func $ask (param i32) (result i32)))
  (import "p" "memory" (memory 1))
  (import "p" "table" (table 2 funcref))
  (import "p" "global" (global $global (mut i32)))
  (data (i32.const 32) "\01\00\00\00")
  (func (export "run") (result i32)
    (i32.store (i32.const 16) (i32.add (i32.load (i32.const 16)) (i32.load (i32.const 32))))
    (i32.add
      (i32.add (call_indirect (type $unary) (i32.load (i32.const 16)) (i32.const 0)) (global.get $global))
      (call $ask (i32.const 5)))))"#;

fn plan() -> Vec<Instance> {
    let user = Instance::of(1).with("p", "ask", 0, "ask host").with("p", "memory", 0, "memory");
    vec![Instance::of(0), user.with("p", "table", 0, "table").with("p", "global", 0, "global")]
}

#[test]
fn modules_of_a_program_share_functions_memories_tables_and_globals() {
    let (provider, user) = (wat::parse_str(PROVIDER).unwrap(), wat::parse_str(USER).unwrap());
    let worker = WorkerThread::enter(Duration::from_millis(10)).unwrap();
    for &(bounds, opt_level) in MODES {
        let options = CompileOptions { bounds, opt_level, ..CompileOptions::default() };
        let program = Program::new([&*provider, &*user], plan());
        let artifact = awsm::compile(&program, &options, &()).unwrap();
        let limits = Limits { memory_bytes_max: 4 << 30, time_max: Duration::from_secs(60) };
        let isolated = isolated::compile(programs::awsm(), &program, &options, &limits, &()).unwrap();
        assert!(isolated == artifact, "another process makes the same of it");
        let artifact = Artifact::load(&artifact, &LoadPolicy::default()).unwrap();
        let template = Template::new(&artifact, &SandboxLimits::default()).unwrap();
        for round in 0..3 {
            let mut sandbox = template.instantiate().unwrap();
            let last = sandbox.instances().last().unwrap();
            let run = sandbox.export_function(last, "run").unwrap();
            sandbox.prepare(run, &[]).unwrap();
            worker.arm();
            loop {
                match sandbox.resume() {
                    Event::HostCall(call) => {
                        assert_eq!(call.instance.index(), 0, "the provider's import");
                        assert_eq!(sandbox.host_values(), [Value::I32(5)]);
                        sandbox.host_results(&[Value::I32(100)]).unwrap();
                    }
                    Event::Preempted => {}
                    Event::Returned => break,
                    other => panic!("{other:?}"),
                }
            }
            let mode = format!("{bounds} at -O{}, sandbox {round}", opt_level.number());
            assert_eq!(sandbox.results(), [Value::I32(2 * 43 + 7 + 100)], "{mode}");
        }
    }
}

#[test]
fn a_plan_that_does_not_fit_is_refused_by_name() {
    let (provider, user) = (wat::parse_str(PROVIDER).unwrap(), wat::parse_str(USER).unwrap());
    let refused = |plan: Vec<Instance>| {
        let program = Program::new([&*provider, &*user], plan);
        awsm::compile(&program, &CompileOptions::default(), &()).unwrap_err().to_string()
    };
    let user = || Instance::of(1);
    for (plan, words) in [
        (vec![Instance::of(2)], "instance 0: it is of module 2"),
        (vec![user().with("p", "memory", 1, "memory")], "instance 0: its import \"p\" \"memory\" comes from instance 1"),
        (vec![Instance::of(0), user().with("p", "memory", 0, "mem")], "which has no export \"mem\""),
        (vec![Instance::of(0), user().with("p", "memory", 0, "table")], "whose export \"table\" is a table, not a memory"),
        (vec![Instance::of(0), user().with("p", "nothing", 0, "table")], "has no import \"p\" \"nothing\""),
    ] {
        let error = refused(plan);
        assert!(error.contains(words), "{words:?} is not in {error:?}");
    }
    let broken = Program::new([&*provider, b"\0asm\x01\0\0\0 nonsense"], vec![Instance::of(0)]);
    let error = awsm::compile(&broken, &CompileOptions::default(), &()).unwrap_err().to_string();
    assert!(error.starts_with("module 1: "), "{error}");
}

/// Calls what the last instance exports. The host offers nothing.
fn call(artifact: &Artifact, export: &str, arguments: &[Value]) -> (Event, Sandbox) {
    let worker = WorkerThread::enter(Duration::from_millis(10)).unwrap();
    let mut sandbox = Template::new(artifact, &SandboxLimits::default()).unwrap().instantiate().unwrap();
    let last = sandbox.instances().last().unwrap();
    let function = sandbox.export_function(last, export).unwrap();
    sandbox.prepare(function, arguments).unwrap();
    (parts::resume(&worker, &mut sandbox), sandbox)
}

fn load(program: &Program<'_>, options: &CompileOptions) -> Artifact {
    Artifact::load(&awsm::compile(program, options, &()).unwrap(), &LoadPolicy::default()).unwrap()
}

/// Divides, or lets the next module divide by 100 less.
const DIVIDE: &str = r#"__attribute__((import_module("next"), import_name("divide"))) int next(int dividend, int divisor);
__attribute__((export_name("divide"))) int divide(int dividend, int divisor)
{
    if (divisor >= 100)
        return next(dividend, divisor - 100) + 1;
    return dividend / divisor;
}
"#;

/// Both modules are of one text, so that each offset is a place in both: only the module says from which file it came.
#[test]
fn a_backtrace_has_the_source_lines_of_every_module() {
    let folder = tempfile::tempdir().unwrap();
    let [first, second] = ["first.c", "second.c"].map(|name| {
        let source = folder.path().join(name);
        std::fs::write(&source, DIVIDE).unwrap();
        let arguments = ["-g", "-nostdlib", "-Wl,--no-entry"].map(str::to_owned).to_vec();
        frontend::to_wasm(&source, &ProducerOptions { opt_level: 1, arguments }).unwrap()
    });
    let plan = vec![Instance::of(0), Instance::of(1).with("next", "divide", 0, "divide")];
    // Nothing is inlined, so that each has a frame.
    let options = CompileOptions { debug: true, opt_level: OptLevel::O0, ..CompileOptions::default() };
    let artifact = load(&Program::new([&*first, &*second], plan), &options);
    let (event, sandbox) = call(&artifact, "divide", &[Value::I32(7), Value::I32(100)]);
    assert!(matches!(event, Event::Trapped(trap) if trap.code == TrapCode::IntegerDivideByZero), "{event:?}");
    let frames = sandbox.backtrace().frames;
    for (frame, (module, place)) in frames.iter().zip([(0, "first.c:6"), (1, "second.c:5")]) {
        let source = frame.source.as_deref().unwrap_or_default();
        assert!(frame.location.module == module && source.contains(place), "{place}: {frames:?}");
    }
    assert_eq!(frames.len(), 2, "{frames:?}");
}

#[test]
fn every_large_module_is_cut_into_parts_of_its_own() {
    let chain = parts::module();
    let user = wat::parse_str(
        r#"(module (import "a" "first" (func $a (param i32) (result i32))) (import "b" "first" (func $b (param i32) (result i32)))
          (func (export "run") (param i32 i32) (result i32) (i32.sub (call $a (local.get 0)) (call $b (local.get 1)))))"#,
    )
    .unwrap();
    let plan =
        vec![Instance::of(0), Instance::of(1), Instance::of(2).with("a", "first", 0, "first").with("b", "first", 1, "first")];
    let options = CompileOptions { opt_level: OptLevel::O1, ..CompileOptions::default() };
    let artifact = load(&Program::new([&*chain, &*chain, &*user], plan), &options);
    let texts = |module: usize| -> BTreeSet<u32> {
        artifact.descriptor().modules[module].functions.iter().filter_map(|function| Some(function.code?.text)).collect()
    };
    let [first, second, last] = [0, 1, 2].map(texts);
    assert!(first.len() > 2 && first.len() == second.len() && last.len() == 1, "{first:?} {second:?} {last:?}");
    assert!(first.last() < second.first() && second.last() < last.first(), "{first:?} {second:?} {last:?}");

    let (event, sandbox) = call(&artifact, "run", &[Value::I32(64), Value::I32(64)]);
    assert!(event == Event::Returned && sandbox.results() == [Value::I32(0)], "{event:?}");
    for (arguments, module) in [([65536, 64], 0), ([64, 65536], 1)] {
        let (event, sandbox) = call(&artifact, "run", &arguments.map(Value::I32));
        assert!(matches!(event, Event::Trapped(trap) if trap.code == TrapCode::MemoryOutOfBounds), "{event:?}");
        let frames = sandbox.backtrace().frames;
        assert!(frames.len() > 20 && frames.iter().all(|frame| frame.location.module == module), "{module}: {frames:?}");
    }
}

/// What was warned of.
#[derive(Default)]
struct Warnings(Mutex<Vec<String>>);

impl Progress for Warnings {
    fn begin(&self, _: Phase, _: usize) {}

    fn advance(&self, _: usize) {}

    fn warn(&self, message: &str) {
        self.0.lock().unwrap().push(message.to_owned());
    }
}

/// The third module is the largest, so it is finished when the second is begun again.
#[test]
fn a_function_of_a_later_module_can_be_given_up() {
    let hostile = hostile::function();
    let statements: String =
        (0..100).map(|i| format!("(global.set 0 (i32.xor (global.get 0) (i32.mul (local.get 0) (i32.const {i}))))")).collect();
    let steps: String = (0..12).map(|i| format!("(func $step{i} (param i32) {statements})")).collect();
    let calls: String = (0..12).map(|i| format!("(call $step{i} (local.get 0))")).collect();
    let texts = [
        r#"(module (import "b" "hostile" (func $b (param i32) (result i32))) (import "c" "large" (func $c (param i32) (result i32)))
          (func (export "run") (param i32) (result i32) (i32.xor (call $b (local.get 0)) (call $c (local.get 0)))))"#,
        &format!(r#"(module (func (param i32)) {hostile} (export "hostile" (func $hostile)))"#),
        &format!(
            r#"(module (global (mut i32) (i32.const 0)) {steps}
              (func (export "large") (param i32) (result i32) {calls} (global.get 0)))"#
        ),
    ];
    let modules = texts.map(|text| wat::parse_str(text).unwrap());
    let user = Instance::of(0).with("b", "hostile", 0, "hostile").with("c", "large", 1, "large");
    let program = Program::new(modules.iter().map(Vec::as_slice), vec![Instance::of(1), Instance::of(2), user]);
    let limits = Limits { memory_bytes_max: 4 << 30, time_max: Duration::from_secs(8) };
    let warnings = Warnings::default();
    let bytes = isolated::compile(programs::awsm(), &program, &CompileOptions::default(), &limits, &warnings).unwrap();
    let warnings = warnings.0.into_inner().unwrap();
    assert!(warnings.len() == 1 && warnings[0].starts_with("module 1, function 1 \"hostile\" takes more"), "{warnings:?}");

    let unoptimised = load(&program, &CompileOptions { opt_level: OptLevel::O0, ..CompileOptions::default() });
    let results = [Artifact::load(&bytes, &LoadPolicy::default()).unwrap(), unoptimised].map(|artifact| {
        let (event, sandbox) = call(&artifact, "run", &[Value::I32(6)]);
        assert_eq!(event, Event::Returned);
        sandbox.results().to_vec()
    });
    assert_eq!(results[0], results[1]);
}

/// Neither throws nor catches.
const BETWEEN: &str = r#"(module
  (import "t" "throw" (func $throw (param i32)))
  (func (export "between") (param i32) (result i32) (call $throw (local.get 0)) (i32.const -1)))"#;

const THROWER: &str = r#"(module
  (tag $e (export "e") (param i32))
  (func (export "throw") (param i32) (throw $e (local.get 0))))"#;

const CATCHER: &str = r#"(module
  (import "t" "e" (tag $e (param i32)))
  (import "b" "between" (func $between (param i32) (result i32)))
  (func (export "run") (param i32) (result i32)
    (block $caught (result i32) (try_table (result i32) (catch $e $caught) (call $between (local.get 0))))))"#;

#[test]
fn exceptions_pass_through_a_module_that_has_none() {
    let [between, thrower, catcher] = [BETWEEN, THROWER, CATCHER].map(|text| wat::parse_str(text).unwrap());
    for &(bounds, opt_level) in MODES {
        let options = CompileOptions { bounds, opt_level, ..CompileOptions::default() };
        // The one without exceptions comes first, and last.
        for modules in [[&between, &thrower, &catcher], [&thrower, &catcher, &between]] {
            let index = |wanted: &Vec<u8>| modules.iter().position(|module| *module == wanted).unwrap();
            let mut plan = vec![Instance::of(index(&thrower)), Instance::of(index(&between)).with("t", "throw", 0, "throw")];
            let uncaught = Program::new(modules.map(Vec::as_slice), plan.clone());
            let (event, sandbox) = call(&load(&uncaught, &options), "between", &[Value::I32(5)]);
            assert!(matches!(event, Event::Trapped(trap) if trap.code == TrapCode::UncaughtException), "{event:?}");
            assert_eq!(sandbox.backtrace().frames[0].location.module as usize, index(&thrower));

            plan.push(Instance::of(index(&catcher)).with("t", "e", 0, "e").with("b", "between", 1, "between"));
            let caught = Program::new(modules.map(Vec::as_slice), plan);
            let (event, sandbox) = call(&load(&caught, &options), "run", &[Value::I32(5)]);
            assert!(event == Event::Returned && sandbox.results() == [Value::I32(5)], "{bounds} at -O{}", opt_level.number());
        }
    }
}
