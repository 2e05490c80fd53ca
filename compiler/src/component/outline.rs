//! What can be said of a component without generating code.

use awsm_abi::component::Description;
use awsm_abi::descriptor::{ImportSource, Instantiation};
use serde::{Deserialize, Serialize};

use super::{Composition, world};
use crate::error::CompileError;
use crate::linked::Linked;
use crate::options::CompileOptions;
use crate::program::{Checked, Program};

/// What there is to say of a component that is not compiled.
#[derive(Debug, Serialize, Deserialize)]
pub struct Seen {
    /// How it would be compiled; or why it cannot be, which is no error: it may be a part of others.
    pub outline: Result<Outline, String>,
    /// Its imports and exports in WIT. None where they have no such form, or a longer one than an artifact would say.
    pub world: Option<String>,
}

/// A component as it would be compiled.
#[derive(Debug, Serialize, Deserialize)]
pub struct Outline {
    /// What the artifact would say of it.
    pub description: Description,
    /// How a sandbox would be made of it.
    pub plan: Vec<Instantiation>,
    /// For each step of the plan, the imports that the host meets: the names of the interface and of the function.
    pub host: Vec<Vec<(String, String)>>,
}

impl Seen {
    /// A component, in this process. What is not trusted is for [`crate::isolated::outline`].
    pub(crate) fn of(component: &[u8]) -> Seen {
        let outline = Outline::of(component).map_err(|error| error.to_string());
        let world = match &outline {
            Ok(outline) => Some(outline.description.world.clone()).filter(|world| !world.is_empty()),
            Err(_) => world::text(component),
        };
        Seen { outline, world }
    }
}

impl Outline {
    fn of(component: &[u8]) -> Result<Outline, CompileError> {
        let Some(composition) = Composition::of(&Program::component(component), false)? else {
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
}
