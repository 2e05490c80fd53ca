//! Behaviour of `awsm::compile` that can be seen without running anything: what artifacts look like, what is emitted, what is refused.

mod artifact;
mod emitted;
mod limits;
mod refused;

use awsm::{Arch, CompileError, CompileOptions, Cpu, Emit, Program};

/// Options that make results the same on every machine.
fn options() -> CompileOptions {
    CompileOptions { arch: Arch::X86_64, cpu: Cpu::Named("x86-64-v4".to_owned()), ..CompileOptions::default() }
}

fn try_compile(text: &str, options: &CompileOptions) -> Result<Vec<u8>, CompileError> {
    let wasm = wat::parse_str(text).expect("the test's text is well-formed");
    awsm::compile(&Program::single(&wasm), options, &())
}

fn compile(text: &str, options: &CompileOptions) -> Vec<u8> {
    try_compile(text, options).expect("compiles")
}

/// The module as LLVM IR or assembly.
fn emit(text: &str, emit: Emit, options: CompileOptions) -> String {
    String::from_utf8(compile(text, &CompileOptions { emit, ..options })).expect("text is UTF-8")
}
