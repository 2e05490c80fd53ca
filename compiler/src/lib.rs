//! Ahead-of-time compiler from WebAssembly to sandboxed native shared objects, through LLVM.
//!
//! ```text
//! program: bytes -> module: parse, validate -> translate: LLVM IR -> llvm: optimise, generate -> artifact: describe, link -> function.so
//! ```
//!
//! [`compile()`] is the way in, [`isolated::compile`] the same in a process of its own, within limits. Both take a [`Program`]: modules, and the plan by
//! which a sandbox makes instances of them. What generated code and the runtime that loads it must agree on is in the crate `awsm-abi`.

#![deny(unsafe_code)]
// They panic where the reader has gone.
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

mod artifact;
mod compile;
mod component;
pub mod componentize;
pub mod compose;
mod divided;
mod error;
pub mod frontend;
mod helpers;
pub mod isolated;
mod lines;
mod linked;
mod llvm;
mod module;
mod options;
mod parallel;
mod partition;
mod parts;
mod program;
mod progress;
pub mod proto;
mod text_parser;
mod translate;
mod watch;

pub use compile::{check, compile};
pub use component::{Outline, Seen};
pub use error::{CompileError, LinkerError};
pub use options::{Arch, Bounds, CompileOptions, Cpu, Emit, OptLevel};
pub use parts::{PartCache, cache_folder_default};
pub use program::{Instance, Program};
pub use progress::{Phase, Progress};

/// The names that [`Cpu::Named`] accepts for an instruction set.
#[must_use]
pub fn cpu_names(arch: Arch) -> Vec<&'static str> {
    llvm::cpu_names(arch)
}
