//! Programs that are composed of several: a caller with what it calls, or what stands before a service.

use std::path::PathBuf;

use sledge_tests::process;
use sledge_tests::programs::{self, awsm_command, sledge_command};

use crate::commands::Check;
use crate::{Program, TIME_MAX, compile, services};

/// A command that calls `local:local/run` once.
const DRIVER: &str = r#"(component
  (import "local:local/run" (instance $run (export "run" (func async))))
  (core func $f (canon lower (func $run "run")))
  (core module $m
    (import "h" "f" (func $f))
    (func (export "run") (result i32) (call $f) (i32.const 0)))
  (core instance $i (instantiate $m (with "h" (instance (export "f" (func $f))))))
  (func $r async (result (result)) (canon lift (core func $i "run")))
  (instance $out (export "run" (func $r)))
  (export "wasi:cli/run@0.3.0" (instance $out)))"#;

/// How a program is run, if it needs another one.
pub(crate) fn of(name: &str) -> Option<Check> {
    match name {
        "async_backpressure_caller" | "async_post_return_caller" | "async_unit_stream_caller" => Some(Box::new(caller)),
        "p3_http_middleware" => Some(Box::new(|program| services::middleware(&with(program, "p3_http_echo")?))),
        _ => None,
    }
}

/// Composes components into a new one, in the folder of this run.
fn compose(name: &str, of: &str, plug: &str) -> Result<PathBuf, String> {
    let composed = programs::folder().join(format!("{name}.wasm"));
    let done = process::run(awsm_command(&["compose", of, "--plug", plug, "-o"]).arg(&composed), b"", TIME_MAX);
    if done.code() == 0 { Ok(composed) } else { Err(format!("awsm: {}", done.stderr)) }
}

/// A program with the other one, of the same folder, as what it calls.
fn with(program: &Program, other: &str) -> Result<Program, String> {
    let plug = program.wasm.with_file_name(format!("{other}.component.wasm"));
    let name = format!("{}-composed", program.name);
    let wasm = compose(&name, &program.wasm.display().to_string(), &plug.display().to_string())?;
    let artifact = compile(&wasm)?;
    Ok(Program { name, wasm, artifact })
}

/// A caller with its callee, run by the driver.
fn caller(program: &Program) -> Result<(), String> {
    let callee = program.name.replace("_caller", "_callee");
    let plug = program.wasm.with_file_name(format!("{callee}.component.wasm"));
    let both = compose(&format!("{}-both", program.name), &program.wasm.display().to_string(), &plug.display().to_string())?;
    let driver = programs::folder().join(format!("{}-driver.wat", program.name));
    std::fs::write(&driver, DRIVER).expect("it can be written");
    let wasm = compose(&format!("{}-driven", program.name), &driver.display().to_string(), &both.display().to_string())?;
    let artifact = compile(&wasm)?;
    let done = process::run(sledge_command(&["run"]).arg(&artifact), b"", TIME_MAX);
    if done.code() == 0 { Ok(()) } else { Err(format!("status {}\n{}{}", done.code(), done.text(), done.stderr)) }
}
