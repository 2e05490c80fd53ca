//! References and exceptions at the border with the host, and modules that do not go together.

use awsm::{CompileOptions, OptLevel, Program};
use awsm_abi::types::{FuncType, HeapType, RefType, ValType};
use sledge_sandbox::{
    Artifact, CallError, Event, Extern, InstantiateError, LoadPolicy, Sandbox, SandboxLimits, TrapCode, Value, WorkerThread,
};
use std::time::Duration;

fn artifact(text: &str, foreign_exceptions: bool) -> Artifact {
    let options = CompileOptions { opt_level: OptLevel::O1, foreign_exceptions, ..CompileOptions::default() };
    let wasm = wat::parse_str(text).unwrap();
    Artifact::load(&awsm::compile(&Program::single(&wasm), &options, &()).unwrap(), &LoadPolicy::default()).unwrap()
}

fn sandbox() -> Sandbox {
    Sandbox::new(&SandboxLimits::default()).unwrap()
}

#[test]
fn modules_that_throw_are_linked_only_with_modules_that_know_of_it() {
    let thrower = artifact("(module (tag) (func (export \"f\") (throw 0)))", false);
    let caller = "(module (import \"a\" \"f\" (func)) (func (export \"g\") (call 0)))";
    let mut sandbox = sandbox();
    let exporter = sandbox.instantiate(&thrower, 0, &[]).unwrap();
    let imports = [sandbox.export(exporter, "f").unwrap()];
    let refused = sandbox.instantiate(&artifact(caller, false), 0, &imports).unwrap_err();
    assert!(matches!(refused, InstantiateError::Exceptions), "{refused}");
    assert!(refused.to_string().contains("--foreign-exceptions"), "{refused}");
    let instance = sandbox.instantiate(&artifact(caller, true), 0, &imports).unwrap();

    let _worker = WorkerThread::enter(Duration::from_millis(10)).unwrap();
    let function = sandbox.export_function(instance, "g").unwrap();
    sandbox.prepare(function, &[]).unwrap();
    let Event::Trapped(trap) = sandbox.resume() else { panic!("no trap") };
    let location = trap.location.expect("where it was thrown");
    assert_eq!((trap.code, location.function), (TrapCode::UncaughtException, 0));
    assert_eq!(sandbox.backtrace().frames[0].name.as_deref(), Some("f"));
}

#[test]
fn values_from_the_host_are_of_the_types_that_are_wanted() {
    let text = "(module
      (type $f (func)) (type $g (func (param i32)))
      (func $one (export \"one\") (type $f)) (func (export \"two\") (type $g))
      (func (export \"some\") (param (ref $f)))
      (func (export \"any\") (param (ref null $f) funcref))
      (func (export \"extern\") (param (ref extern)))
      (func (export \"exception\") (param exnref))
      (func (export \"no exception\") (param (ref exn))))";
    let artifact = artifact(text, false);
    let mut sandbox = sandbox();
    let instance = sandbox.instantiate(&artifact, 0, &[]).unwrap();
    let function = |name: &str| match sandbox.export(instance, name) {
        Some(Extern::Function(function)) => function,
        other => panic!("{name}: {other:?}"),
    };
    let [one, two] = ["one", "two"].map(|name| Value::FuncRef(Some(function(name))));
    let [some, any, host, exception, none] = ["some", "any", "extern", "exception", "no exception"].map(function);
    let null = Value::FuncRef(None);
    for (function, arguments, fits) in [
        (some, vec![one], true),
        (some, vec![two], false),
        (some, vec![null], false),
        (any, vec![one, two], true),
        (any, vec![null, null], true),
        (any, vec![two, one], false),
        (any, vec![Value::ExternRef(None), one], false),
        (host, vec![Value::ExternRef(Some(1))], true),
        (host, vec![Value::ExternRef(None)], false),
        (exception, vec![Value::ExnRef { null: true }], true),
        (exception, vec![Value::ExnRef { null: false }], false),
        (none, vec![Value::ExnRef { null: true }], false),
    ] {
        assert_eq!(sandbox.prepare(function, &arguments).is_ok(), fits, "{arguments:?}");
    }
}

/// Numbers are what nearly every host call answers with, so they have a way of their own that looks at nothing but the result's type.
#[test]
fn a_number_from_the_host_answers_a_call_that_wants_one_and_no_other() {
    let text = "(module
      (import \"h\" \"i\" (func $i (result i32))) (import \"h\" \"l\" (func $l (result i64)))
      (import \"h\" \"f\" (func $f (result f32))) (import \"h\" \"d\" (func $d (result f64)))
      (import \"h\" \"none\" (func $none (param i32)))
      (import \"h\" \"two\" (func $two (result i32 i32))) (import \"h\" \"any\" (func $any (result funcref)))
      (func (export \"i\") (result i64) (i64.extend_i32_u (call $i)))
      (func (export \"l\") (result i64) (call $l))
      (func (export \"f\") (result i64) (i64.extend_i32_u (i32.reinterpret_f32 (call $f))))
      (func (export \"d\") (result i64) (i64.reinterpret_f64 (call $d)))
      (func (export \"none\") (result i64) (call $none (i32.const 7)) (i64.const 5))
      (func (export \"two\") (result i64) (call $two) (drop) (i64.extend_i32_u))
      (func (export \"any\") (result i64) (i64.extend_i32_u (ref.is_null (call $any)))))";
    let _worker = WorkerThread::enter(Duration::from_millis(10)).unwrap();
    let mut sandbox = sandbox();
    let host = |params: &[ValType], results: &[ValType]| {
        Extern::HostFunction(FuncType { params: params.into(), results: results.into() })
    };
    let any = ValType::Ref(RefType { nullable: true, heap: HeapType::Func });
    let [i, l, f, d] = [ValType::I32, ValType::I64, ValType::F32, ValType::F64].map(|ty| host(&[], &[ty]));
    let imports = [i, l, f, d, host(&[ValType::I32], &[]), host(&[], &[ValType::I32; 2]), host(&[], &[any])];
    let instance = sandbox.instantiate(&artifact(text, false), 0, &imports).unwrap();
    assert!(matches!(sandbox.host_number(1), Err(CallError::Busy { .. })), "no call");

    const ALL: u64 = 0xfedc_ba98_8765_4321;
    let answers = [("i", Some(ALL & 0xffff_ffff)), ("l", Some(ALL)), ("f", Some(ALL & 0xffff_ffff)), ("d", Some(ALL))];
    for (name, answer) in answers.into_iter().chain([("none", Some(5)), ("two", None), ("any", None)]) {
        let function = sandbox.export_function(instance, name).unwrap();
        sandbox.prepare(function, &[]).unwrap();
        assert!(matches!(sandbox.resume(), Event::HostCall(_)), "{name}");
        let answered = sandbox.host_number(ALL);
        let Some(answer) = answer else {
            let wanted = sandbox.host_call_type().unwrap().clone();
            assert_eq!(answered, Err(CallError::Types { wanted }), "{name}");
            sandbox.finish();
            continue;
        };
        assert_eq!(answered, Ok(()), "{name}");
        // What the host was told is still there where no answer took its place.
        assert_eq!(sandbox.host_args().len(), usize::from(name == "none"), "{name}");
        assert!(matches!(sandbox.resume(), Event::Returned), "{name}");
        assert_eq!(sandbox.results(), [Value::I64(answer.cast_signed())], "{name}");
    }
}
