//! Components: a component becomes the core modules that it holds, those that let its parts call each other, and glue, with the plan by which a sandbox makes
//! instances of them. What comes after compiles them as it compiles any program.
//!
//! * `translate`: from the component's bytes to modules and plan; the only place that knows wasmtime-environ;
//! * `glue`: the core modules that are generated, with `state/` (what is kept between calls, tasks included) and `transcode.wat`.

mod glue;
mod translate;

use crate::error::CompileError;
use crate::program::{Instance, Program};

/// A component as a program.
#[derive(Debug)]
pub(crate) struct Composition {
    /// Core modules in the binary format.
    pub(crate) modules: Vec<Vec<u8>>,
    /// Instances of them.
    pub(crate) plan: Vec<Instance>,
    /// What the caller is told.
    pub(crate) warnings: Vec<String>,
}

impl Composition {
    /// What a program becomes, if it is a component.
    pub(crate) fn of(program: &Program<'_>) -> Result<Option<Composition>, CompileError> {
        match program.modules() {
            [wasm] if program.is_component() => translate::translate(wasm).map(Some),
            _ => Ok(None),
        }
    }

    /// The same, to be compiled.
    pub(crate) fn program(&self) -> Program<'_> {
        Program::new(self.modules.iter().map(Vec::as_slice), self.plan.clone())
    }
}
