//! What is about to be used is fetched into the caches, all at once.
//!
//! With many functions in turn, each request finds its sandbox, its stack and its memory neither in the processor's caches nor in its buffers for
//! addresses. One after the other, these misses cost half as much as the request; asked for together, they are waited for together.
//! Prefetching changes nothing and never faults, whatever the address.

use std::mem::{offset_of, size_of, size_of_val};

use crate::fiber::record::Context;
use crate::load::Module;
use crate::sandbox::Sandbox;
use crate::store::instance::Instance;
use crate::store::memory::Memory;
use crate::sys;

/// Bytes of a cache line, of all processors that we know of: where lines are longer, some are asked for twice.
const LINE_BYTES: usize = 64;
/// What a guest uses of its stack at least: the frames of the start stub, of its entry and of a host call.
const STACK_BYTES: usize = 6 * LINE_BYTES;
/// What generated code reads of a vmctx: its fixed part, and the first of the rest.
const VMCTX_BYTES: usize = 2 * LINE_BYTES;

/// Asks for all of a thing.
#[inline]
pub fn prefetch<T: ?Sized>(thing: &T) {
    range((&raw const *thing).addr(), size_of_val(thing));
}

#[inline]
fn range(start: usize, bytes: usize) {
    for line in (start / LINE_BYTES * LINE_BYTES..start + bytes).step_by(LINE_BYTES) {
        sys::prefetch(line);
    }
}

/// Where an idle sandbox lies that will run next, so that this can be asked for without reading any of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Whereabouts {
    sandbox: usize,
    record: usize,
    stack: usize,
    slots: usize,
    /// The instance that is called.
    instance: usize,
    vmctx: usize,
    /// The first memory; zero where there is none.
    memory: usize,
    writable: usize,
    /// Where the guest writes first.
    written: usize,
    /// What the first memory begins with.
    image: usize,
    /// What is known of the instance's module, and of the functions that it imports.
    module: usize,
    imports: usize,
}

impl Whereabouts {
    /// Those of a sandbox, until something is added to it.
    pub(crate) fn of(sandbox: &mut Sandbox) -> Whereabouts {
        let written = sandbox.store.memories.first_mut().map_or(0, Memory::first_written);
        let (instance, memory) = (sandbox.store.instances.last(), sandbox.store.memories.first());
        let module = instance.map(Instance::module);
        let image = sandbox.origin.as_ref().and_then(|origin| origin.first_memory());
        Whereabouts {
            sandbox: (&raw const *sandbox).addr(),
            record: sandbox.fiber.record.as_ptr().addr(),
            stack: sandbox.fiber.stack.high() - STACK_BYTES,
            slots: sandbox.fiber.slots_address(),
            instance: instance.map_or(0, |instance| (&raw const *instance).addr()),
            vmctx: instance.map_or(0, |instance| instance.vmctx.base().addr()),
            memory: memory.map_or(0, |memory| (&raw const *memory).addr()),
            writable: memory.map_or(0, |memory| memory.writable_address()),
            written,
            image: image.map_or(0, |image| image.as_ptr().addr()),
            module: module.map_or(0, |module| (&raw const *module).addr()),
            imports: module.map_or(0, |module| module.function_imports.as_ptr().addr()),
        }
    }

    /// Asks for it.
    pub(crate) fn prefetch(&self) {
        // First what lies alone on its page, whose address takes long to be found.
        range(self.written, LINE_BYTES);
        range(self.stack, STACK_BYTES);
        range(self.sandbox, size_of::<Sandbox>());
        range(self.record, offset_of!(Context, registers));
        range(self.instance, size_of::<Instance>());
        range(self.vmctx, VMCTX_BYTES);
        range(self.memory, size_of::<Memory>());
        range(self.writable, LINE_BYTES);
        range(self.slots, LINE_BYTES);
        range(self.module, size_of::<Module>());
        range(self.imports, LINE_BYTES);
        range(self.image, LINE_BYTES);
    }
}
