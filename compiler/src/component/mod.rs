//! Components: a component becomes the core modules that it holds, those that let its parts call each other, and glue, with the plan by which a sandbox makes
//! instances of them. What comes after compiles them as it compiles any program.
//!
//! * `translate`: from the component's bytes to modules and plan; the only place that knows wasmtime-environ;
//! * `glue`: the core modules that are generated, with `state/` (what is kept between calls, tasks included) and `transcode.wat`;
//! * `labels`: names of fields and cases as the adapters' writer wants them;
//! * `starts`: modules that become instances behind a start function;
//! * `names`, `world`: what its instances are called, and its imports and exports in WIT.

mod glue;
mod labels;
mod names;
mod outline;
mod starts;
mod translate;
mod world;

use std::collections::HashSet;

use awsm_abi::component::{Description, Role};
use wasmtime_environ::wasmparser::BinaryReaderError;

use crate::error::CompileError;
use crate::linked::Linked;
use crate::module::{FuncIdx, Module};
use crate::program::{Instance, Program};

pub use outline::{Outline, Seen};

/// Whether a component is valid, with what components may use where they are compiled.
///
/// # Errors
/// What is wrong, and where.
pub(crate) fn validate(bytes: &[u8]) -> Result<(), BinaryReaderError> {
    translate::validate(bytes)
}

/// A component as a program.
#[derive(Debug)]
pub(crate) struct Composition {
    /// Core modules in the binary format.
    pub(crate) modules: Vec<Vec<u8>>,
    /// Instances of them.
    pub(crate) plan: Vec<Instance>,
    /// What the artifact says of it.
    pub(crate) description: Description,
    /// What the caller is told.
    pub(crate) warnings: Vec<String>,
}

impl Composition {
    /// What a program becomes, if it is a component. `unknown_imports`: whether it may import functions that the host does not offer.
    pub(crate) fn of(program: &Program<'_>, unknown_imports: bool) -> Result<Option<Composition>, CompileError> {
        match program.modules() {
            [wasm] if program.is_component() => translate::translate(wasm, unknown_imports).map(Some),
            _ => Ok(None),
        }
    }

    /// What the artifact says of it, with what is known of calls between these modules.
    pub(crate) fn described(&self, modules: &[Module<'_>], linked: &Linked) -> Description {
        let mut description = self.description.clone();
        let mut known = HashSet::new();
        for (instance, role) in self.plan.iter().zip(&description.roles) {
            let (Some(module), Role::Code(_)) = (modules.get(instance.module()), role) else { continue };
            let imported = (0..module.imported_functions).filter_map(|index| linked.function(module, FuncIdx(index)));
            known.extend(imported.map(|target| target.function));
        }
        for call in &mut description.calls {
            let Some(adapter) = modules.get(call.module as usize) else { continue };
            let is_called = known.contains(&adapter.id(FuncIdx(call.function)));
            call.direct = is_called && linked.function(adapter, FuncIdx(call.target)).is_some();
        }
        description
    }

    /// The same, to be compiled.
    pub(crate) fn program(&self) -> Program<'_> {
        Program::new(self.modules.iter().map(Vec::as_slice), self.plan.clone())
    }
}
