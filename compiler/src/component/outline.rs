//! What can be said of a component without generating code.

use awsm_abi::component::Description;
use awsm_abi::descriptor::{ImportSource, Instantiation};

use super::{Composition, world};
use crate::error::CompileError;
use crate::linked::Linked;
use crate::options::CompileOptions;
use crate::program::{Checked, Program};

/// A component as it would be compiled.
#[derive(Debug)]
pub struct Outline {
    /// What the artifact would say of it.
    pub description: Description,
    /// How a sandbox would be made of it.
    pub plan: Vec<Instantiation>,
    /// For each step of the plan, the imports that the host meets: the names of the interface and of the function.
    pub host: Vec<Vec<(String, String)>>,
}

impl Outline {
    /// That of a component.
    ///
    /// # Errors
    /// Those of [`compile`](crate::compile()) that are found without generating code. A program that is no component has no outline.
    pub fn of(program: &Program<'_>) -> Result<Outline, CompileError> {
        let Some(composition) = Composition::of(program, false)? else {
            return Err(CompileError::Component { message: "this is no component".to_owned() });
        };
        let composed = composition.program();
        let Checked { modules, plan } = composed.check(&CompileOptions::default(), &())?;
        let description = composition.described(&modules, &Linked::new(&modules, &plan));
        let host = plan.iter().map(|step| {
            let imports = modules[step.module as usize].imports.iter().zip(&step.imports);
            let from_host = imports.filter(|(_, source)| **source == ImportSource::Host);
            from_host.map(|(import, _)| (import.module.to_string(), import.name.to_string())).collect()
        });
        Ok(Outline { description, host: host.collect(), plan })
    }

    /// A component's imports and exports in WIT, also where it cannot be compiled. None where they have no such form, or a longer one than an artifact would
    /// say.
    #[must_use]
    pub fn world(component: &[u8]) -> Option<String> {
        world::text(component)
    }
}
