//! An instance of a module: its vmctx, and what its index spaces stand for in the sandbox.

use std::alloc::{Layout as Allocation, alloc_zeroed, dealloc};
use std::ptr::NonNull;

use awsm_abi::ModuleDescriptor;
use awsm_abi::types::FuncType;
use awsm_abi::vmctx::{self, Layout};

use crate::load::{Artifact, FunctionImport, Module};
use crate::value::{FunctionHandle, SandboxId, Slot};

/// An instance.
#[derive(Debug)]
pub(crate) struct Instance {
    artifact: Artifact,
    module: u32,
    /// Its place among the sandbox's instances.
    pub(crate) index: u32,
    pub(crate) vmctx: Vmctx,
    /// What its index spaces stand for: indices into the sandbox's memories, tables, globals and tags.
    pub(crate) memories: Box<[u32]>,
    pub(crate) tables: Box<[u32]>,
    pub(crate) globals: Box<[u32]>,
    pub(crate) tags: Box<[u32]>,
    /// Imported functions: references to what serves them.
    pub(crate) functions: Box<[FunctionHandle]>,
    pub(crate) dropped: Dropped,
}

/// Which segments are dropped.
#[derive(Clone, Debug, Default)]
pub(crate) struct Dropped {
    pub(crate) data: Box<[bool]>,
    pub(crate) elements: Box<[bool]>,
}

impl Instance {
    /// An instance whose vmctx is all zero and whose index spaces are empty.
    pub(crate) fn new(artifact: Artifact, module: u32, index: u32) -> Option<Instance> {
        let descriptor = &artifact.descriptor().modules[module as usize];
        let vmctx = Vmctx::new(artifact.loaded().modules[module as usize].layout)?;
        let dropped =
            Dropped { data: vec![false; descriptor.data.len()].into(), elements: vec![false; descriptor.elements.len()].into() };
        let empty = Box::default;
        Some(Instance {
            artifact,
            module,
            index,
            vmctx,
            memories: empty(),
            tables: empty(),
            globals: empty(),
            tags: empty(),
            functions: Box::default(),
            dropped,
        })
    }

    pub(crate) fn artifact(&self) -> &Artifact {
        &self.artifact
    }

    /// Its module's index in the artifact.
    pub(crate) fn module_index(&self) -> u32 {
        self.module
    }

    /// What the loader derived of its module.
    pub(crate) fn module(&self) -> &Module {
        &self.artifact.loaded().modules[self.module as usize]
    }

    /// Its module.
    pub(crate) fn descriptor(&self) -> &ModuleDescriptor {
        &self.artifact.descriptor().modules[self.module as usize]
    }

    /// A reference to the function with that index, which the loader checked to have code.
    pub(crate) fn function(&self, sandbox: SandboxId, index: u32) -> FunctionHandle {
        if let Some(&imported) = self.functions.get(index as usize) {
            return imported;
        }
        let module = self.module();
        let function = module.functions[index as usize];
        debug_assert_ne!(function.code, 0);
        FunctionHandle {
            sandbox,
            code: function.code as u64,
            type_id: module.type_ids[function.ty as usize],
            instance: self.index,
        }
    }

    /// Type of the imported function with that index.
    pub(crate) fn import_type(&self, import: u32) -> Option<&FuncType> {
        let import = self.function_import(import)?;
        Some(&self.descriptor().types[import.ty as usize].ty)
    }

    /// What a call of the imported function with that index needs.
    pub(crate) fn function_import(&self, import: u32) -> Option<FunctionImport> {
        self.module().function_imports.get(import as usize).copied()
    }

    /// Bytes of a data segment; empty once it was dropped.
    pub(crate) fn data(&self, segment: u32) -> Option<&[u8]> {
        if *self.dropped.data.get(segment as usize)? {
            return Some(&[]);
        }
        let segment = &self.descriptor().data[segment as usize];
        // Checked by the loader to lie within.
        Some(&self.artifact.loaded().blob()[segment.blob_start as usize..][..segment.bytes as usize])
    }

    /// Number of elements of an element segment; zero once it was dropped.
    pub(crate) fn elements(&self, segment: u32) -> Option<u64> {
        let dropped = *self.dropped.elements.get(segment as usize)?;
        Some(if dropped { 0 } else { self.descriptor().elements[segment as usize].items.len() as u64 })
    }

    /// The value of a global, in the module's index space.
    pub(crate) fn global(&self, index: u32) -> Slot {
        let imported = self.module().imported_globals;
        match index.checked_sub(imported) {
            Some(defined) => self.vmctx.read_slot(self.vmctx.layout.global(defined)),
            None => {
                let cell = self.vmctx.read_pointer(self.vmctx.layout.imported_global(index)).cast::<Slot>();
                // SAFETY: Linking wrote the address of a global's cell, whose owner lives as long as the sandbox.
                unsafe { cell.read() }
            }
        }
    }
}

/// The memory of a vmctx: zeroed, aligned to 16, never moving.
#[derive(Debug)]
pub(crate) struct Vmctx {
    base: NonNull<u8>,
    pub(crate) layout: Layout,
}

impl Vmctx {
    fn allocation(layout: Layout) -> Allocation {
        Allocation::from_size_align(layout.size() as usize, 16).expect("a layout's size is limited")
    }

    fn new(layout: Layout) -> Option<Vmctx> {
        // SAFETY: The size is not zero, since every vmctx has its fixed part.
        let base = unsafe { alloc_zeroed(Self::allocation(layout)) };
        Some(Vmctx { base: NonNull::new(base)?, layout })
    }

    /// Its address.
    pub(crate) fn base(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    fn at<T>(&self, offset: u32) -> *mut T {
        let fits = offset as usize + size_of::<T>() <= self.layout.size() as usize;
        assert!(fits && (offset as usize).is_multiple_of(align_of::<T>()), "a place in the vmctx");
        // SAFETY: Within the allocation, by the assertion.
        unsafe { self.base.as_ptr().add(offset as usize).cast() }
    }

    pub(crate) fn write_pointer<T>(&mut self, offset: u32, pointer: *const T) {
        // SAFETY: `at` checked place and alignment; `&mut self`, and the guest is not running.
        unsafe { self.at::<*const T>(offset).write(pointer) };
    }

    pub(crate) fn write_u32(&mut self, offset: u32, value: u32) {
        // SAFETY: As above.
        unsafe { self.at::<u32>(offset).write(value) };
    }

    pub(crate) fn write_slot(&mut self, offset: u32, value: Slot) {
        // SAFETY: As above.
        unsafe { self.at::<Slot>(offset).write(value) };
    }

    pub(crate) fn read_slot(&self, offset: u32) -> Slot {
        // SAFETY: `at` checked place and alignment; any bits are a slot.
        unsafe { self.at::<Slot>(offset).read() }
    }

    fn read_pointer(&self, offset: u32) -> *const u8 {
        // SAFETY: As above.
        unsafe { self.at::<*const u8>(offset).read() }
    }

    /// Address of a slot within.
    pub(crate) fn slot_address(&self, offset: u32) -> *mut Slot {
        self.at(offset)
    }

    /// The cells of all defined globals.
    pub(crate) fn globals(&self) -> &[Slot] {
        let count = self.layout.counts().globals as usize;
        if count == 0 {
            return &[];
        }
        // SAFETY: The cells are the end of the layout; the guest is not running while the sandbox is borrowed.
        unsafe { std::slice::from_raw_parts(self.at(self.layout.global(0)), count) }
    }

    /// The cells of all defined globals, to be changed.
    pub(crate) fn globals_mut(&mut self) -> &mut [Slot] {
        let count = self.layout.counts().globals as usize;
        if count == 0 {
            return &mut [];
        }
        // SAFETY: As for `globals`; `&mut self` makes this the only reference.
        unsafe { std::slice::from_raw_parts_mut(self.at(self.layout.global(0)), count) }
    }

    /// The index of the instance whose vmctx this is.
    ///
    /// # Safety
    /// `vmctx` is the address of a vmctx.
    pub(crate) unsafe fn instance_index(vmctx: *const u8) -> u32 {
        // SAFETY: The caller's.
        unsafe { vmctx.add(vmctx::INSTANCE_INDEX as usize).cast::<u32>().read() }
    }
}

impl Drop for Vmctx {
    fn drop(&mut self) {
        // SAFETY: Allocated by `new` with the same layout.
        unsafe { dealloc(self.base.as_ptr(), Self::allocation(self.layout)) };
    }
}
