//! Sandboxes, their memories and their stacks one after the other, of modules that trust each other in nothing: what one leaves, no other finds.
//! One pool serves them all, as a worker's does. No script can say this: a script has one sandbox.

use crate::MODES;
use awsm::{Bounds, CompileOptions, OptLevel, Program};
use sledge_sandbox::{
    Artifact, Budget, Event, InstantiateError, LoadPolicy, Pools, Sandbox, SandboxLimits, Template, TrapCode, Value, WorkerThread,
};
use std::time::{Duration, Instant};

/// Less than the sandboxes of this file take together, and more than each.
const PLACES_BYTES: u64 = 6 << 20;

/// Fills all it has with a word that no other module holds: memory, new pages, globals, its table, its stack.
const TENANT: &str = r#"(module
  (memory (export "memory") 4 40)
  (data (i32.const 65536) "\c5\c5\c5\c5\c5\c5\c5\c5")
  (global $g (mut i64) (i64.const 0))
  (global $v (mut v128) (v128.const i64x2 0 0))
  (table $t 10 20 funcref)
  (elem declare func $fill)
  (func $fill (export "run") (result i64)
    (drop (memory.grow (i32.const 16)))
    (memory.fill (i32.const 0) (i32.const 0xc5) (i32.shl (memory.size) (i32.const 16)))
    (global.set $g (i64.const 0xc5c5c5c5c5c5c5c5))
    (global.set $v (v128.const i64x2 0xc5c5c5c5c5c5c5c5 0xc5c5c5c5c5c5c5c5))
    (table.fill $t (i32.const 0) (ref.func $fill) (i32.const 10))
    (drop (table.grow $t (ref.func $fill) (i32.const 5)))
    (call $deep (i64.const 0xc5c5c5c5c5c5c5c5) (i32.const 400)))
  (func $deep (param i64 i32) (result i64) (local i64 i64 i64 i64)
    (local.set 2 (i64.load (i32.const 0))) (local.set 3 (i64.load (i32.const 8)))
    (if (result i64) (local.get 1)
      (then (i64.and (local.get 2) (i64.and (local.get 3) (call $deep (local.get 0) (i32.sub (local.get 1) (i32.const 1))))))
      (else (local.get 0)))))"#;

/// Says how much it finds of what it did not put there, in its memory and in whatever its memory grows by.
fn searching(memory: &str, data: &str) -> String {
    format!(
        r#"(module
  (memory (export "memory") {memory})
  {data}
  (global $g (mut i64) (i64.const 0))
  (table $t 10 20 funcref)
  (func (export "run") (result i64) (local $at i32) (local $found i64)
    (drop (memory.grow (i32.const 16)))
    (loop $each
      (local.set $found (i64.or (local.get $found) (i64.load (local.get $at))))
      (local.set $at (i32.add (local.get $at) (i32.const 8)))
      (br_if $each (i32.lt_u (local.get $at) (i32.shl (memory.size) (i32.const 16)))))
    (local.set $found (i64.or (local.get $found) (global.get $g)))
    (if (i32.eqz (ref.is_null (table.get $t (i32.const 9)))) (then (local.set $found (i64.const -1))))
    (if (i32.ne (table.size $t) (i32.const 10)) (then (local.set $found (i64.const -2))))
    (local.get $found)))"#
    )
}

/// The first segment fits, the second does not.
const FAILS_HALF_WAY: &str = r#"(module
  (memory (export "memory") 4)
  (data (i32.const 0) "\c5\c5\c5\c5\c5\c5\c5\c5")
  (data (i32.const 131072) "\c5\c5\c5\c5\c5\c5\c5\c5")
  (data (i32.const 262141) "\c5\c5\c5\c5"))"#;

fn load(text: &str, bounds: Bounds, opt_level: OptLevel) -> Artifact {
    let options = CompileOptions { bounds, opt_level, ..CompileOptions::default() };
    Artifact::load(
        &awsm::compile(&Program::single(&wat::parse_str(text).unwrap()), &options, &()).unwrap(),
        &LoadPolicy::default(),
    )
    .unwrap()
}

fn run(sandbox: &mut Sandbox) -> Result<Vec<Value>, TrapCode> {
    let function = sandbox.main_instance().and_then(|instance| sandbox.export_function(instance, "run")).unwrap();
    sandbox.prepare(function, &[]).unwrap();
    match sandbox.resume() {
        Event::Returned => Ok(sandbox.results()),
        Event::Trapped(trap) => Err(trap.code),
        other => panic!("{other:?}"),
    }
}

#[test]
fn nothing_of_one_tenant_is_found_by_another() {
    let _worker = WorkerThread::enter(Duration::from_secs(1)).unwrap();
    for (bounds, opt_level) in MODES {
        let case = format!("{bounds} at -O{}", opt_level.number());
        let template = |text: &str| Template::new(&load(text, *bounds, *opt_level), &SandboxLimits::default()).unwrap();
        let tenant = template(TENANT);
        // As large and without data, smaller, larger than what the tenant grew to, without a page.
        let searches: Vec<Template> = [("4 40", ""), ("1 40", ""), ("30 60", ""), ("0 40", ""), ("0", "")]
            .map(|(memory, data)| template(&searching(memory, data)))
            .into();
        let zeros = template(&searching("4 40", r#"(data (i32.const 100) "\00\00")"#));
        // With room for all, and with so little that one takes the place of others.
        for bytes_max in [u64::MAX, PLACES_BYTES] {
            let budget = Budget::new(bytes_max);
            let tenant = tenant.within(&budget);
            let searches: Vec<Template> = searches.iter().chain([&zeros]).map(|search| search.within(&budget)).collect();
            let pools = Pools::new(1);
            pools.lend_to(&budget);
            for round in 0..4 {
                let mut sandbox = pools.take(0, &tenant).unwrap();
                let full = run(&mut sandbox).unwrap();
                assert_eq!(full, [Value::I64(0xc5c5_c5c5_c5c5_c5c5_u64.cast_signed())], "{case}, round {round}");
                pools.put(0, sandbox, Instant::now());
                for search in &searches {
                    let mut sandbox = pools.take(0, search).unwrap();
                    assert_eq!(run(&mut sandbox), Ok(vec![Value::I64(0)]), "{case}, round {round}");
                    pools.put(0, sandbox, Instant::now());
                }
            }
        }
    }
}

#[test]
fn nothing_is_left_of_an_instantiation_that_fails_half_way() {
    let _worker = WorkerThread::enter(Duration::from_secs(1)).unwrap();
    for (bounds, opt_level) in MODES {
        let case = format!("{bounds} at -O{}", opt_level.number());
        let failing = load(FAILS_HALF_WAY, *bounds, *opt_level);
        let search = load(&searching("4 40", ""), *bounds, *opt_level);
        for _ in 0..4 {
            // As a template, and by itself in a sandbox that another instance joins.
            let error = Template::new(&failing, &SandboxLimits::default()).unwrap_err();
            assert!(matches!(error, InstantiateError::Trap(TrapCode::MemoryOutOfBounds)), "{case}: {error}");
            let mut sandbox = Sandbox::new(&SandboxLimits::default()).unwrap();
            let error = sandbox.instantiate(&failing, 0, &[]).unwrap_err();
            assert!(matches!(error, InstantiateError::Trap(TrapCode::MemoryOutOfBounds)), "{case}: {error}");
            sandbox.instantiate(&search, 0, &[]).unwrap();
            assert_eq!(run(&mut sandbox), Ok(vec![Value::I64(0)]), "{case}");
            drop(sandbox);
            let mut sandbox = Template::new(&search, &SandboxLimits::default()).unwrap().instantiate().unwrap();
            assert_eq!(run(&mut sandbox), Ok(vec![Value::I64(0)]), "{case}");
        }
    }
}
