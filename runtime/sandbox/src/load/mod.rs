//! Artifacts: parsed and checked while they are nothing but bytes, then mapped.
//!
//! `bytes -> elf (which bytes belong where) -> descriptor (awsm-abi) -> check -> arena -> Artifact`
//!
//! What is checked is the descriptor's consistency, so that the runtime can index without asking again. That the code does what the descriptor
//! says is the compiler's word: an artifact is native code, and is loaded because its operator, or the cache's keyed digest, vouches for it.

pub(crate) mod arena;
mod artifact;
mod check;
mod cpu;
mod elf;
mod lines;
mod module;

pub(crate) use artifact::Loaded;
pub use artifact::{Artifact, WeakArtifact};
pub use check::LoadPolicy;
pub use cpu::cpu_features;
pub(crate) use module::{Entry, FunctionImport, Module};
