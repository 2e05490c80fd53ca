//! Components: a component becomes the core modules that it holds, those that let its parts call each other, and glue, with the plan by which a sandbox makes
//! instances of them. What comes after compiles them as it compiles any program.
//!
//! * `translate`: from the component's bytes to modules and plan; the only place that knows wasmtime-environ;
//! * `glue`: the core modules that are generated, with `state.wat` and `transcode.wat`.

mod glue;
mod translate;

pub(crate) use translate::translate;

use crate::program::{Instance, Program};

/// A component as a program.
#[derive(Debug)]
pub(crate) struct Composition {
    /// Core modules in the binary format.
    pub(crate) modules: Vec<Vec<u8>>,
    /// Instances of them.
    pub(crate) plan: Vec<Instance>,
}

impl Composition {
    /// The same, to be compiled.
    pub(crate) fn program(&self) -> Program<'_> {
        Program::new(self.modules.iter().map(Vec::as_slice), self.plan.clone())
    }
}

/// Whether bytes begin as a component in the binary format does.
pub(crate) fn is_component(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\0asm") && bytes.get(6..8) == Some(&[1, 0])
}
