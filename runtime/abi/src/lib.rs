//! The contract between `awsm` (which writes artifacts) and `sledge` (which loads and runs them).
//!
//! Compiler and runtime never import each other; what both must agree on stands here, once:
//!
//! * [`descriptor`]: the one exported symbol of an artifact, byte for byte;
//! * [`vmctx`]: the memory that generated code reads through its first argument;
//! * [`calls`]: how guest and host call each other;
//! * [`exceptions`]: what an exception is in memory;
//! * [`trap`]: why a guest may end early, and how the code says so;
//! * [`types`]: WebAssembly's types, as the descriptor carries them;
//! * [`cpu`]: the processor features an artifact may require;
//! * [`imports`]: what a module may import, and [`importable`]: whether it imports nothing else;
//! * [`component`]: what the glue of components and the host agree on;
//! * [`sources`]: what files are that are no modules;
//! * [`text`]: names and messages of strangers, as people may see them;
//! * [`limits`]: every number that both sides check against.
//!
//! A leaf: it knows neither LLVM nor the operating system, allocates only to decode a descriptor and to say what is wrong
//! with imports, and contains no `unsafe`. Any change to a layout or to a meaning here raises [`ABI_VERSION`].

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod calls;
pub mod component;
pub mod cpu;
pub mod descriptor;
pub mod exceptions;
pub mod importable;
pub mod imports;
pub mod limits;
pub mod sources;
pub mod text;
pub mod trap;
pub mod types;
pub mod vmctx;

pub use descriptor::{Descriptor, ModuleDescriptor};
pub use trap::TrapCode;

/// Version of everything in this crate. An artifact with another version is refused: compile it again.
pub const ABI_VERSION: u32 = 9;

/// Name of the artifact's one exported symbol: the start of the section [`DESCRIPTOR_SECTION`].
pub const DESCRIPTOR_SYMBOL: &str = "awsm_descriptor";

/// Name of the read-only ELF section that holds nothing but the descriptor.
pub const DESCRIPTOR_SECTION: &str = ".awsm";
