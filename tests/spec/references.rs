//! References and exceptions at the border with the host, and modules that do not go together.

use awsm::{CompileOptions, OptLevel, Program};
use sledge_sandbox::{
    Artifact, Event, Extern, InstantiateError, LoadPolicy, Sandbox, SandboxLimits, TrapCode, Value, WorkerThread,
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
