//! What every sandbox of an artifact begins as.

use std::sync::Arc;

use awsm_abi::descriptor::{ImportSource, ImportType};

use crate::budget::Budget;
use crate::error::InstantiateError;
use crate::image::MemoryImage;
use crate::instance::Dropped;
use crate::limits::BESIDE_MEMORY_FREE_BYTES;
use crate::link;
use crate::load::Artifact;
use crate::memory::Memory;
use crate::prefetch::prefetch;
use crate::sandbox::{Parts, Sandbox, SandboxLimits, no_memory};
use crate::sys::room;
use crate::table::TableImage;
use crate::value::{Extern, InstanceId, Slot};

/// The images of memories, tables and globals from which sandboxes of an artifact are made. Cheap to clone, shared by threads.
#[derive(Clone, Debug)]
pub struct Template(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    artifact: Artifact,
    limits: SandboxLimits,
    /// What its sandboxes share with others.
    budget: Option<Arc<Budget>>,
    memories: Vec<MemoryImage>,
    tables: Vec<TableImage>,
    instances: Vec<InstanceImage>,
    /// Addresses and mappings that each sandbox takes.
    room: [usize; 2],
}

/// What an instance begins as. References to functions in there hold for every sandbox, since they name instances by index.
#[derive(Clone, Debug)]
struct InstanceImage {
    globals: Box<[Slot]>,
    dropped: Dropped,
}

impl Template {
    /// Instantiates the artifact's plan once, start functions apart. Imported functions that the plan takes from the host are served as host
    /// calls; other things it does not take from there.
    ///
    /// # Errors
    /// When the limits do not suffice, an active segment does not fit, or the host is asked for something other than functions.
    pub fn new(artifact: &Artifact, limits: &SandboxLimits) -> Result<Template, InstantiateError> {
        let mut sandbox = Sandbox::for_images(limits, artifact.descriptor().plan.len());
        instantiate_plan(&mut sandbox, artifact, Sandbox::instantiate)?;
        let template = Template::of(artifact, limits, None, &sandbox);
        if room::never_has(template.0.room) {
            let what = sandbox.memories.iter().map(Memory::what).next().unwrap_or("a sandbox");
            return Err(no_memory(what));
        }
        sandbox.memories.into_iter().for_each(Memory::keep_scratch);
        Ok(template)
    }

    /// The same, with sandboxes that use no more than `budget` has: making one fails, and memory does not grow, when nothing is left.
    #[must_use]
    pub fn within(&self, budget: &Arc<Budget>) -> Template {
        let Inner { artifact, limits, budget: _, memories, tables, instances, room } = &*self.0;
        Template(Arc::new(Inner {
            artifact: artifact.clone(),
            limits: *limits,
            budget: Some(Arc::clone(budget)),
            memories: memories.clone(),
            tables: tables.clone(),
            instances: instances.clone(),
            room: *room,
        }))
    }

    /// What `sandbox`, made by the artifact's plan, holds now.
    fn of(artifact: &Artifact, limits: &SandboxLimits, budget: Option<Arc<Budget>>, sandbox: &Sandbox) -> Template {
        let instances = sandbox.instances.iter();
        Template(Arc::new(Inner {
            artifact: artifact.clone(),
            limits: *limits,
            budget,
            memories: sandbox.memories.iter().map(|memory| memory.image()).collect(),
            tables: sandbox.tables.iter().map(|table| table.image()).collect(),
            instances: instances
                .map(|instance| InstanceImage { globals: instance.vmctx.globals().into(), dropped: instance.dropped.clone() })
                .collect(),
            room: sandbox.room(),
        }))
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

    /// What the first memory of its sandboxes begins with.
    pub(crate) fn first_image(&self) -> Option<&[u8]> {
        self.0.memories.first().map(MemoryImage::bytes)
    }

    /// Has the caches fetch what a reset reads of it.
    pub(crate) fn prefetch(&self) {
        prefetch(&*self.0);
    }

    /// What tells it from other templates while it exists.
    pub(crate) fn key(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
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
        let inner = &*self.0;
        let mut sandbox = Sandbox::of_parts(&inner.limits, inner.instances.len(), parts)?;
        if inner.artifact.descriptor().modules.iter().any(|module| module.counts().tags > 0) {
            sandbox.need_exceptions()?;
        }
        if let Some(budget) = &inner.budget {
            let wanted = sandbox.fixed_bytes() + self.begin_bytes();
            let limit = budget.bytes_max();
            let share = budget.reserve(wanted);
            sandbox.share = Some(share.ok_or(InstantiateError::Exhausted { wanted, limit })?);
        }
        instantiate_plan(&mut sandbox, &inner.artifact, Sandbox::instantiate_bare)?;
        for (memory, image) in sandbox.memories.iter_mut().zip(&inner.memories) {
            memory.begin(image).map_err(|source| InstantiateError::OutOfMemory { what: "a memory", source })?;
        }
        self.restore_rest(&mut sandbox).map_err(|source| InstantiateError::OutOfMemory { what: "a table", source })?;
        sandbox.template = Some(self.clone());
        sandbox.keep_no_parts();
        Ok(sandbox)
    }

    /// Makes a sandbox of this template, whatever it did, what it was when new. On an error it is not usable any more.
    pub(crate) fn restore(&self, sandbox: &mut Sandbox) -> std::io::Result<()> {
        for (memory, image) in sandbox.memories.iter_mut().zip(&self.0.memories) {
            memory.restore(image)?;
        }
        self.restore_rest(sandbox)
    }

    /// What of a sandbox's limit is used when it begins.
    fn begin_bytes(&self) -> u64 {
        let tables: u64 = self.0.tables.iter().map(TableImage::bytes).sum();
        self.0.memories.iter().map(|image| image.length).sum::<u64>() + tables.saturating_sub(BESIDE_MEMORY_FREE_BYTES)
    }

    fn restore_rest(&self, sandbox: &mut Sandbox) -> std::io::Result<()> {
        for (table, image) in sandbox.tables.iter_mut().zip(&self.0.tables) {
            table.restore(image)?;
        }
        for (instance, image) in sandbox.instances.iter_mut().zip(&self.0.instances) {
            instance.vmctx.globals_mut().copy_from_slice(&image.globals);
            // Copied and not compared: libc's memcmp reads nothing of nothing with a masked load, which costs 130 ns at an address such as that of
            // an empty slice.
            instance.dropped.data.copy_from_slice(&image.dropped.data);
            instance.dropped.elements.copy_from_slice(&image.dropped.elements);
        }
        if let Some(exceptions) = &mut sandbox.exceptions {
            exceptions.clear();
        }
        sandbox.refusal = None;
        sandbox.host_bytes = 0;
        let bytes = sandbox.fixed_bytes() + self.begin_bytes();
        if let Some(share) = sandbox.share.as_mut().filter(|share| share.bytes() > bytes) {
            // Fewer are always to be had.
            let _ = share.resize(bytes);
        }
        sandbox.call.reset();
        Ok(())
    }
}

impl Sandbox {
    /// What it holds now, as a template: memories, tables, globals, dropped segments. None while a call is in progress, after a trap or a kill, and
    /// for a sandbox that was not made from a template or [holds exceptions](Self::holds_exceptions).
    #[must_use]
    pub fn snapshot(&self) -> Option<Template> {
        let template = self.template.as_ref().filter(|_| self.call.is_clean() && !self.holds_exceptions())?;
        Some(Template::of(template.artifact(), template.limits(), template.0.budget.clone(), self))
    }
}

/// Makes the instances of an artifact's plan.
fn instantiate_plan(
    sandbox: &mut Sandbox,
    artifact: &Artifact,
    instantiate: fn(&mut Sandbox, &Artifact, usize, &[Extern]) -> Result<InstanceId, InstantiateError>,
) -> Result<(), InstantiateError> {
    let descriptor = artifact.descriptor();
    for step in &descriptor.plan {
        let module = &descriptor.modules[step.module as usize];
        let mut imports = Vec::with_capacity(step.imports.len());
        for (import, source) in module.imports.iter().zip(&step.imports) {
            let given = match (source, import.ty) {
                (ImportSource::Host, ImportType::Function { ty, .. }) => {
                    Some(Extern::HostFunction(module.types[ty as usize].ty.clone()))
                }
                (ImportSource::Host, _) => None,
                (ImportSource::Instance { instance, export }, _) => sandbox.export(InstanceId(*instance), export),
            };
            imports.push(given.ok_or_else(|| link::unknown(import))?);
        }
        instantiate(sandbox, artifact, step.module as usize, &imports)?;
    }
    Ok(())
}
