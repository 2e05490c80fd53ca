//! Guests of text, and what one has that runs without a server.

use awsm::{CompileOptions, OptLevel, Program};
use awsm_abi::types::ValType::I32;
use sledge::component_trap::ComponentTrap;
use sledge::config::FunctionConfig;
use sledge::host::{
    Body, BodyError, Call, Code, Context, Effect, HostFunction, Imports, LogLines, Offer, ReplyBytes, Stop, Streams, Writer,
    offered, offered_to_components, wasi,
};
use sledge::invoke::driver::Driver;
use sledge::invoke::function::{Function, Home};
use sledge::invoke::loaded::{FunctionError, Loaded};
use sledge_sandbox::{Artifact, LoadPolicy, WorkerThread};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

/// Answered with the number.
pub(crate) const ANSWERS: i32 = 0;
/// Fails with an error number.
pub(crate) const FAILS: i32 = 1;
/// Ends the guest with that status.
pub(crate) const EXITS: i32 = 2;
pub(crate) const REPLY_TOO_LARGE: i32 = 3;
pub(crate) const DEADLINE: i32 = 4;
pub(crate) const BODY_BROKEN: i32 = 5;
pub(crate) const TRAPS: i32 = 6;
/// Does a part of its work each time, until the guest's memory says that it was called so often.
pub(crate) const AGAIN: i32 = 7;
/// Answered with the number after so many milliseconds.
pub(crate) const SLEEPS: i32 = 8;
/// The same, in two waits.
pub(crate) const TWICE: i32 = 9;
pub(crate) const PANICS: i32 = 10;
/// Panics while it is waited for.
pub(crate) const PANICS_LATER: i32 = 11;
/// Ends the guest with that status when it has waited.
pub(crate) const EXITS_LATER: i32 = 12;
/// Says that it waits, and for nothing.
pub(crate) const WAITS_FOR_NOTHING: i32 = 13;

fn act(call: &mut Call<'_>) -> Result<i32, Stop> {
    let number = call.args.u32(1).cast_signed();
    let time = Duration::from_millis(number.unsigned_abs().into());
    let sleep = move || tokio::time::sleep(time);
    Err(match call.args.u32(0).cast_signed() {
        ANSWERS => return Ok(number),
        FAILS => wasi::Errno::BADF.into(),
        EXITS => Stop::Exit(number.cast_unsigned()),
        REPLY_TOO_LARGE => Stop::ReplyTooLarge,
        DEADLINE => Stop::Deadline,
        BODY_BROKEN => Stop::Body(BodyError::Broken),
        TRAPS => Stop::Trap(ComponentTrap::Case),
        AGAIN => {
            let memory = call.memory_mut()?;
            let count = memory.read_u32(1024)? + 1;
            memory.write_u32(1024, count)?;
            if count == number.cast_unsigned() {
                return Ok(number);
            }
            Stop::Again
        }
        SLEEPS => call.wait(async move { sleep().await }, move |_, ()| Ok(number)),
        TWICE => call.wait(async move { sleep().await }, move |call, ()| {
            Err::<i32, Stop>(call.wait(async move { sleep().await }, move |_, ()| Ok(number)))
        }),
        PANICS => panic!("a host function that panics, as the test wants"),
        PANICS_LATER => call.wait(async { panic!("a future that panics, as the test wants") }, |_, ()| Ok(0)),
        EXITS_LATER => call.wait(async move { sleep().await }, move |_, ()| Err::<i32, Stop>(Stop::Exit(number.cast_unsigned()))),
        _ => Stop::Waits,
    })
}

static TEST: [HostFunction; 1] = [HostFunction {
    module: "test",
    name: "act",
    params: &[I32, I32],
    results: &[I32],
    effect: Effect::Safe,
    code: Code::Own(act),
}];

/// All that a server offers, and a function that does whatever a test wants.
static OFFERED: LazyLock<Offer> = LazyLock::new(|| {
    // One row for each function, which is as good as one for each module.
    let of_components = offered_to_components().filter(|function| function.module == "sledge:canonical");
    let rows = offered().chain(of_components).chain(&TEST).map(std::slice::from_ref);
    Box::leak(rows.collect::<Box<[_]>>())
});

/// What `_start`, `sledge_handle` and `_initialize` are made with.
pub(crate) const IMPORTS: &str = r#"
    (import "test" "act" (func $act (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
    (memory (export "memory") 1 4)
    ;; Writes one byte to a stream of its own.
    (func $write (param $stream i32) (param $byte i32)
      (i32.store8 (i32.const 64) (local.get $byte))
      (i32.store (i32.const 0) (i32.const 64))
      (i32.store (i32.const 4) (i32.const 1))
      (drop (call $fd_write (local.get $stream) (i32.const 0) (i32.const 1) (i32.const 8))))
    (func $say (param $byte i32) (call $write (i32.const 1) (local.get $byte)))
    (func $do (param $kind i32) (param $number i32) (call $say (call $act (local.get $kind) (local.get $number))))"#;

/// Compiles a module of these fields, behind [`IMPORTS`].
pub(crate) fn artifact(fields: &str) -> Artifact {
    // Imports come first.
    let (imports, fields) = fields.split_once(";;").unwrap_or(("", fields));
    // Only in a memory that is shared can be waited.
    let own = if fields.contains("memory.atomic.wait") { IMPORTS.replace(" 1 4)", " 1 4 shared)") } else { IMPORTS.to_owned() };
    let wasm = wat::parse_str(format!("(module {imports} {own} {fields})")).expect("WAT");
    let options = CompileOptions { unknown_imports: true, opt_level: OptLevel::O1, ..CompileOptions::default() };
    let bytes = awsm::compile(&Program::single(&wasm), &options, &()).expect("an artifact");
    Artifact::load(&bytes, &LoadPolicy::default()).expect("it loads")
}

/// The same as a function, with changes of its settings.
pub(crate) fn loaded(fields: &str, change: impl FnOnce(&mut FunctionConfig)) -> Result<Loaded, FunctionError> {
    let artifact = artifact(fields);
    let mut config = FunctionConfig::new("f", "f.wasm");
    change(&mut config);
    let imports = Imports::resolve_with(artifact.descriptor(), *OFFERED).expect("all are on offer");
    Loaded::with_imports(&artifact, &config, imports)
}

pub(crate) fn function(fields: &str) -> Function {
    Function::new(loaded(fields, |_| {}).expect("a function"), Home::alone())
}

/// A command that does this.
pub(crate) fn command(body: &str) -> Function {
    function(&format!(r#"(func (export "_start") {body})"#))
}

pub(crate) fn context(function: &Function, body: Body) -> Context {
    let log = LogLines::new(Arc::clone(&function.process), Arc::clone(&function.log), Writer::default());
    Context::new(Arc::clone(&function.process), Streams::of_request(body, ReplyBytes::default(), 1 << 20, log))
}

/// An invocation that has not begun.
pub(crate) fn begun(function: &Function) -> Driver {
    Driver::new(Box::new(function.template.instantiate().expect("a sandbox")), context(function, Body::default()))
}

/// Does something on a worker's thread, with a quantum of a millisecond.
pub(crate) fn on_worker<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let worker = WorkerThread::enter(Duration::from_millis(1)).expect("a worker");
            worker.arm();
            let result = work();
            worker.disarm();
            result
        });
        worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
