//! What every sandbox of an artifact begins as.

use std::sync::Arc;

use super::prefetch::prefetch;
use crate::budget::Budget;
use crate::error::InstantiateError;
use crate::load::Artifact;
use crate::sandbox::{Parts, Sandbox};
use crate::store::image::{StoreImage, instantiate_plan};
use crate::store::memory::Memory;
use crate::store::{SandboxLimits, Store, no_memory};
use crate::sys::room;

/// What sandboxes of an artifact are made from. Cheap to clone, shared by threads.
#[derive(Clone, Debug)]
pub struct Template(Arc<StoreImage>);

impl Template {
    /// Instantiates the artifact's plan once, start functions apart. Imported functions that the plan takes from the host are served as host
    /// calls; other things it does not take from there.
    ///
    /// # Errors
    /// When the limits do not suffice, an active segment does not fit, or the host is asked for something other than functions.
    pub fn new(artifact: &Artifact, limits: &SandboxLimits) -> Result<Template, InstantiateError> {
        let mut sandbox = Sandbox::for_images(limits, artifact.descriptor().plan.len());
        instantiate_plan(&mut sandbox.store, artifact, Store::instantiate)?;
        let template = Template(Arc::new(StoreImage::of(artifact, limits, None, &sandbox.store, sandbox.room())));
        if room::never_has(template.0.room) {
            let what = sandbox.store.memories.iter().map(Memory::what).next().unwrap_or("a sandbox");
            return Err(no_memory(what));
        }
        sandbox.store.memories.into_iter().for_each(Memory::keep_scratch);
        Ok(template)
    }

    /// The same, with sandboxes that use no more than `budget` has: making one fails, and memory does not grow, when nothing is left.
    #[must_use]
    pub fn within(&self, budget: &Arc<Budget>) -> Template {
        Template(Arc::new(self.0.within(budget)))
    }

    /// The artifact.
    #[must_use]
    pub fn artifact(&self) -> &Artifact {
        &self.0.artifact
    }

    /// What its sandboxes share with others.
    #[must_use]
    pub fn budget(&self) -> Option<&Arc<Budget>> {
        self.0.budget.as_ref()
    }

    /// What its sandboxes may use.
    #[must_use]
    pub fn limits(&self) -> &SandboxLimits {
        &self.0.limits
    }

    /// Has the caches fetch what a reset reads of it.
    pub(crate) fn prefetch(&self) {
        prefetch(&*self.0);
    }

    /// What tells it from other templates while it exists.
    pub(crate) fn key(&self) -> usize {
        Template::key_of(&self.0)
    }

    /// That of the template from which a sandbox was made.
    pub(crate) fn key_of(origin: &Arc<StoreImage>) -> usize {
        Arc::as_ptr(origin) as usize
    }

    /// A new sandbox.
    ///
    /// # Errors
    /// When the system has no memory left.
    pub fn instantiate(&self) -> Result<Sandbox, InstantiateError> {
        self.instantiate_of(Parts::default())
    }

    /// The same, of what another sandbox left, as far as that fits. Fails while there still is some room for what is no sandbox.
    pub(crate) fn instantiate_in_room(&self, parts: Parts) -> Result<Sandbox, InstantiateError> {
        if !room::has(self.0.room, parts.room()) {
            return Err(no_memory("a sandbox: addresses or mappings (vm.max_map_count)"));
        }
        self.instantiate_of(parts)
    }

    fn instantiate_of(&self, parts: Parts) -> Result<Sandbox, InstantiateError> {
        let mut sandbox = Sandbox::of_parts(&self.0.limits, self.0.instances(), parts)?;
        self.0.begin(&mut sandbox.store)?;
        sandbox.note_memories();
        sandbox.origin = Some(Arc::clone(&self.0));
        Ok(sandbox)
    }
}

impl From<Arc<StoreImage>> for Template {
    fn from(image: Arc<StoreImage>) -> Template {
        Template(image)
    }
}

impl Sandbox {
    /// What it holds now, as a template: memories, tables, globals, dropped segments. None while a call is in progress or other fibers exist, after a trap or a kill, and for a sandbox that was not made from a template or [holds exceptions](Self::holds_exceptions).
    #[must_use]
    pub fn snapshot(&self) -> Option<Template> {
        let origin = self.origin.as_ref().filter(|_| self.is_settled() && !self.holds_exceptions())?;
        let image = StoreImage::of(&origin.artifact, &origin.limits, origin.budget.clone(), &self.store, self.room());
        Some(Template(Arc::new(image)))
    }
}
