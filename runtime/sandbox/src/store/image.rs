//! What a store begins as.

use std::io;
use std::sync::Arc;

use awsm_abi::descriptor::{ImportSource, ImportType};

use crate::budget::{Budget, Share};
use crate::error::InstantiateError;
use crate::limits::BESIDE_MEMORY_FREE_BYTES;
use crate::load::Artifact;
use crate::store::instance::Dropped;
use crate::store::link;
use crate::store::memory_image::MemoryImage;
use crate::store::shared_image::SharedImage;
use crate::store::spans::Span;
use crate::store::table::TableImage;
use crate::store::writable::{SHARED_MAPPINGS, private_wanted};
use crate::store::{SandboxLimits, Store};
use crate::sys::room;
use crate::value::{Extern, InstanceId, Slot};

/// The images of memories, tables and globals from which the stores of an artifact are made.
#[derive(Debug)]
pub(crate) struct StoreImage {
    pub(crate) artifact: Artifact,
    pub(crate) limits: SandboxLimits,
    /// What its stores share with others.
    pub(crate) budget: Option<Arc<Budget>>,
    memories: Vec<MemoryImage>,
    tables: Vec<TableImage>,
    instances: Vec<InstanceImage>,
    /// Addresses and mappings that each sandbox takes.
    pub(crate) room: [usize; 2],
}

/// What an instance begins as. References to functions in there hold for every store, since they name instances by index.
#[derive(Clone, Debug)]
struct InstanceImage {
    globals: Box<[Slot]>,
    dropped: Dropped,
}

impl StoreImage {
    /// What `store`, made by the artifact's plan, holds now.
    pub(crate) fn of(
        artifact: &Artifact,
        limits: &SandboxLimits,
        budget: Option<Arc<Budget>>,
        store: &Store,
        room: [usize; 2],
    ) -> StoreImage {
        let instances = store.instances.iter();
        let memories: Vec<MemoryImage> = store.memories.iter().map(|memory| memory.image()).collect();
        let shared = memories.iter().filter(|image| image.shared().is_some()).count();
        StoreImage {
            artifact: artifact.clone(),
            limits: *limits,
            budget,
            room: room::sum([room, [0, shared * SHARED_MAPPINGS]].into_iter()),
            memories,
            tables: store.tables.iter().map(|table| table.image()).collect(),
            instances: instances
                .map(|instance| InstanceImage { globals: instance.vmctx.globals().into(), dropped: instance.dropped.clone() })
                .collect(),
        }
    }

    /// Gives back what resets have read of the images that sandboxes share. The next reset maps it again.
    pub(crate) fn forget_views(&self) {
        self.memories.iter().filter_map(MemoryImage::shared).for_each(SharedImage::forget_view);
    }

    /// The same with another budget.
    pub(crate) fn within(&self, budget: &Arc<Budget>) -> StoreImage {
        let StoreImage { artifact, limits, budget: _, memories, tables, instances, room } = self;
        StoreImage {
            artifact: artifact.clone(),
            limits: *limits,
            budget: Some(Arc::clone(budget)),
            memories: memories.clone(),
            tables: tables.clone(),
            instances: instances.clone(),
            room: *room,
        }
    }

    /// What the first memory begins with.
    pub(crate) fn first_memory(&self) -> Option<&[u8]> {
        self.memories.first().map(MemoryImage::bytes)
    }

    /// How many instances its stores have.
    pub(crate) fn instances(&self) -> usize {
        self.instances.len()
    }

    /// What of its memories is shared by all its stores, and counted for them only where they write to it.
    fn shared_bytes(&self) -> u64 {
        self.memories.iter().map(MemoryImage::shared_bytes).sum()
    }

    /// What of a store's limit is used when it begins.
    fn begin_bytes(&self) -> u64 {
        let tables: u64 = self.tables.iter().map(TableImage::bytes).sum();
        self.memories.iter().map(|image| image.length).sum::<u64>() + tables.saturating_sub(BESIDE_MEMORY_FREE_BYTES)
    }

    /// Makes an empty store what it says.
    pub(crate) fn begin(&self, store: &mut Store) -> Result<(), InstantiateError> {
        if self.artifact.descriptor().modules.iter().any(|module| module.counts().tags > 0) {
            store.need_exceptions()?;
        }
        if let Some(budget) = &self.budget {
            store.shared_bytes = self.shared_bytes();
            let wanted = store.fixed_bytes() + self.begin_bytes() - store.shared_bytes;
            let share = budget.reserve(wanted);
            store.share = Some(share.ok_or_else(|| exhausted(budget, wanted))?);
        }
        instantiate_plan(store, &self.artifact, Store::instantiate_bare)?;
        for (memory, image) in store.memories.iter_mut().zip(&self.memories) {
            let private = self.budget.as_ref().zip(image.shared());
            let private = private.map(|(budget, shared)| private_of(image, shared, budget)).transpose()?;
            memory.begin(image, private).map_err(|source| InstantiateError::OutOfMemory { what: "a memory", source })?;
        }
        self.restore_rest(store).map_err(|source| InstantiateError::OutOfMemory { what: "a table", source })?;
        store.keep_no_spare();
        Ok(())
    }

    /// Makes a store that began so, whatever it did, the same again. On an error it is not usable any more.
    pub(crate) fn restore(&self, store: &mut Store) -> io::Result<()> {
        for (memory, image) in store.memories.iter_mut().zip(&self.memories) {
            memory.restore(image)?;
        }
        self.restore_rest(store)
    }

    fn restore_rest(&self, store: &mut Store) -> io::Result<()> {
        for (table, image) in store.tables.iter_mut().zip(&self.tables) {
            table.restore(image)?;
        }
        for (instance, image) in store.instances.iter_mut().zip(&self.instances) {
            copy(instance.vmctx.globals_mut(), &image.globals);
            // Copied and not compared: libc's memcmp reads nothing of nothing with a masked load, which costs 130 ns at an address such as that of
            // an empty slice.
            copy(&mut instance.dropped.data, &image.dropped.data);
            copy(&mut instance.dropped.elements, &image.dropped.elements);
        }
        if let Some(exceptions) = &mut store.exceptions {
            exceptions.clear();
        }
        store.refusal = None;
        store.host_bytes = 0;
        store.fiber_bytes = 0;
        let bytes = store.fixed_bytes() + self.begin_bytes() - store.shared_bytes;
        if let Some(share) = store.share.as_mut().filter(|share| share.bytes() > bytes) {
            // Fewer are always to be had.
            let _ = share.resize(bytes);
        }
        Ok(())
    }
}

/// Copies all of a slice, of as many things. Most are empty, of the dozen instances of a component: then libc need not be called.
fn copy<T: Copy>(to: &mut [T], from: &[T]) {
    if !(to.is_empty() && from.is_empty()) {
        to.copy_from_slice(from);
    }
}

/// What is reserved for what a new memory writes of an image that is shared. The image itself is reserved with the first one.
fn private_of(image: &MemoryImage, shared: &SharedImage, budget: &Arc<Budget>) -> Result<Share, InstantiateError> {
    let part = Span { start: image.start(), end: image.end() };
    let written = shared.learned().map_or(0, |spans| spans.within(part).map(Span::len).sum());
    let wanted = private_wanted(written, part.len());
    if !shared.count_in(budget) {
        return Err(exhausted(budget, image.shared_bytes() + wanted));
    }
    budget.reserve(wanted).ok_or_else(|| exhausted(budget, wanted))
}

fn exhausted(budget: &Budget, wanted: u64) -> InstantiateError {
    InstantiateError::Exhausted { wanted, limit: budget.bytes_max() }
}

/// Makes the instances of an artifact's plan.
pub(crate) fn instantiate_plan(
    store: &mut Store,
    artifact: &Artifact,
    instantiate: fn(&mut Store, &Artifact, usize, &[Extern]) -> Result<InstanceId, InstantiateError>,
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
                (ImportSource::Instance { instance, export }, _) => store.export(InstanceId(*instance), export),
            };
            imports.push(given.ok_or_else(|| link::unknown(import))?);
        }
        instantiate(store, artifact, step.module as usize, &imports)?;
    }
    Ok(())
}
