//! Making an instance in a sandbox (core specification, section 4.5.4), the call of its start function apart.
//!
//! The order is that of the specification, and more of it matters than shows:
//!
//! 1. What is given is compared with what is wanted, before anything of the sandbox changes.
//! 2. Memories, tables and tags are made; the vmctx is filled. From then on generated code takes all of it as constant: nothing but the cells of globals
//!    and the slots of arguments is ever written there again ([`awsm_abi::vmctx`]).
//! 3. The instance is added, **before** segments are applied. When one does not fit, functions that earlier ones put into tables of other instances stay
//!    callable, as the specification wants it. Their vmctx must exist then: a half-made instance is never taken out again.
//! 4. Globals, then elements, then data.
//!
//! Addresses in a vmctx lead to boxes, pages and other vmctx, which never move, although the vectors that own them do. `instance_table` has its
//! final size from the start, for the same reason.

use awsm_abi::descriptor::SegmentMode;
use awsm_abi::types::Bounds;
use awsm_abi::types::{GlobalType, TableType};
use awsm_abi::{TrapCode, vmctx};

use crate::error::InstantiateError;
use crate::limits::TAGS_MAX;
use crate::load::Artifact;
use crate::store::constexpr;
use crate::store::instance::Instance;
use crate::store::link::{self, Linked};
use crate::store::memory::Reservation;
use crate::store::{GlobalCell, Store, check_limit, no_memory};
use crate::value::{Extern, InstanceId};

impl Store {
    /// Adds an instance of a module of `artifact`. `imports` stand for the module's imports in their order. Active segments are applied; the
    /// start function is not run: see [`start_function`](Self::start_function).
    ///
    /// # Errors
    /// When imports do not match, a limit is reached, or an active segment does not fit. In the last case the effects of earlier segments remain,
    /// and functions that they put into tables stay callable, as the specification wants it.
    pub(crate) fn instantiate(
        &mut self,
        artifact: &Artifact,
        module: usize,
        imports: &[Extern],
    ) -> Result<InstanceId, InstantiateError> {
        let instance = self.instantiate_bare(artifact, module, imports)?;
        self.fill_tables_and_memories(instance).map_err(InstantiateError::Trap)?;
        Ok(instance)
    }

    /// As `instantiate`, without segments and initial values of tables.
    pub(crate) fn instantiate_bare(
        &mut self,
        artifact: &Artifact,
        module: usize,
        imports: &[Extern],
    ) -> Result<InstanceId, InstantiateError> {
        if module >= artifact.descriptor().modules.len() {
            return Err(InstantiateError::Misuse("the artifact has no module with that index"));
        }
        let exceptions = artifact.descriptor().modules[module].exceptions;
        if self.instances.first().is_some_and(|first| first.descriptor().exceptions != exceptions) {
            return Err(InstantiateError::Exceptions);
        }
        let segment = artifact.descriptor().modules[module].segment;
        if self.instances.iter().any(|instance| instance.descriptor().segment != segment) {
            return Err(InstantiateError::Segment);
        }
        let index = self.instances.len();
        check_limit("the number of instances", index as u64 + 1, self.instance_table.len() as u64)?;
        let instance = Instance::new(artifact.clone(), module as u32, index as u32);
        let mut instance = instance.ok_or_else(|| no_memory("an instance"))?;
        let mut linked = link::link(self, &instance, imports)?;
        self.define_memories_and_tables(&instance, &mut linked)?;
        self.define_tags(&instance, &mut linked)?;
        self.fill_vmctx(&mut instance, &linked);
        self.define_globals(&mut instance, linked.globals);
        instance.functions = linked.functions.into();
        instance.memories = linked.memories.into();
        instance.tables = linked.tables.into();
        instance.tags = linked.tags.into();
        self.instance_table[index] = instance.vmctx.base();
        self.instances.push(instance);
        Ok(InstanceId(index as u32))
    }

    fn define_memories_and_tables(&mut self, instance: &Instance, linked: &mut Linked) -> Result<(), InstantiateError> {
        let descriptor = instance.descriptor();
        for memory in &descriptor.memories {
            let bounds = descriptor.bounds[linked.memories.len()];
            linked.memories.push(self.add_memory(memory.ty, Reservation::for_bounds(bounds))?);
        }
        for table in &descriptor.tables {
            let element = instance.module().canonical(table.ty.element);
            linked.tables.push(self.add_table(TableType { element, ..table.ty })?);
        }
        Ok(())
    }

    fn define_tags(&mut self, instance: &Instance, linked: &mut Linked) -> Result<(), InstantiateError> {
        let tags = &instance.descriptor().tags;
        check_limit("the number of tags", (self.tags.len() + tags.len()) as u64, TAGS_MAX as u64)?;
        for &ty in tags {
            linked.tags.push(self.tags.len() as u32);
            self.tags.push(instance.module().type_ids[ty as usize]);
        }
        if linked.tags.is_empty() { Ok(()) } else { self.need_exceptions() }
    }

    /// Everything but globals that the instance defines.
    fn fill_vmctx(&self, instance: &mut Instance, linked: &Linked) {
        let layout = instance.vmctx.layout;
        let own = instance.vmctx.base();
        let type_ids = instance.module().type_ids.clone();
        let bounds = instance.descriptor().bounds.clone();
        let vmctx = &mut instance.vmctx;
        vmctx.write_pointer(vmctx::HOST_CALL, self.outside.host_call as *const u8);
        vmctx.write_pointer(vmctx::SANDBOX, self.outside.record);
        vmctx.write_pointer(vmctx::INSTANCES, self.instance_table.as_ptr());
        vmctx.write_u32(vmctx::INSTANCE_INDEX, instance.index);
        vmctx.write_pointer(vmctx::SEGMENT, self.outside.segment);
        for (i, &memory) in linked.memories.iter().enumerate() {
            let memory = &self.memories[memory as usize];
            if bounds[i] == Bounds::Segment {
                vmctx.write_pointer(vmctx::SEGMENT_BASE, memory.base());
            }
            vmctx.write_pointer(layout.memory(i as u32) + vmctx::memory::BASE, memory.base());
            vmctx.write_pointer(layout.memory(i as u32) + vmctx::memory::RECORD, memory.record());
        }
        for (i, &table) in linked.tables.iter().enumerate() {
            vmctx.write_pointer(layout.table(i as u32), self.tables[table as usize].record());
        }
        for (i, function) in linked.functions.iter().enumerate() {
            let callee = if function.instance == instance.index { own } else { self.instance_table[function.instance as usize] };
            let at = layout.imported_function(i as u32);
            vmctx.write_pointer(at + vmctx::function::CODE, function.code as *const u8);
            vmctx.write_pointer(at + vmctx::function::VMCTX, callee);
            vmctx.write_u32(at + vmctx::function::TYPE_ID, function.type_id);
        }
        for (i, &global) in linked.globals.iter().enumerate() {
            vmctx.write_pointer(layout.imported_global(i as u32), self.globals[global as usize].cell);
        }
        for (i, &tag) in linked.tags.iter().enumerate() {
            vmctx.write_u32(layout.tag(i as u32), tag);
        }
        if let Some(exceptions) = self.exceptions.as_ref().filter(|_| !linked.tags.is_empty()) {
            vmctx.write_pointer(layout.exceptions(), exceptions.record());
        }
        for (i, &id) in type_ids.iter().enumerate() {
            vmctx.write_u32(layout.type_id(i as u32), id);
        }
    }

    fn define_globals(&mut self, instance: &mut Instance, mut linked: Vec<u32>) {
        // References to functions need the instance's imports, which are known; `functions` is set for `constexpr` meanwhile.
        let layout = instance.vmctx.layout;
        for i in 0..instance.descriptor().globals.len() {
            let ty = instance.descriptor().globals[i].ty;
            let ty = GlobalType { value: instance.module().canonical(ty.value), ..ty };
            let cell = instance.vmctx.slot_address(layout.global(i as u32));
            linked.push(self.globals.len() as u32);
            self.globals.push(GlobalCell { cell, ty });
        }
        instance.globals = linked.into();
    }

    /// Initial values of globals and tables, then active segments: elements first, then data, each in order.
    fn fill_tables_and_memories(&mut self, id: InstanceId) -> Result<(), TrapCode> {
        let (sandbox, at) = (self.id(), id.index());
        let layout = self.instances[at].vmctx.layout;
        for i in 0..self.instances[at].descriptor().globals.len() {
            let instance = &mut self.instances[at];
            let value = constexpr::evaluate(instance, sandbox, &instance.descriptor().globals[i].init);
            instance.vmctx.write_slot(layout.global(i as u32), value);
        }
        let instance = &self.instances[at];
        let imported_tables = instance.tables.len() - instance.descriptor().tables.len();
        for (i, table) in instance.descriptor().tables.iter().enumerate() {
            if let Some(init) = &table.init {
                let value = constexpr::evaluate(instance, sandbox, init);
                self.tables[instance.tables[imported_tables + i] as usize].elements_mut().fill(value);
            }
        }
        for segment in 0..self.instances[at].descriptor().elements.len() {
            let instance = &self.instances[at];
            match &instance.descriptor().elements[segment].mode {
                SegmentMode::Active { target, offset } => {
                    // As for data below.
                    let start = constexpr::evaluate(instance, sandbox, offset).u64();
                    let (target, length) = (*target, instance.elements(segment as u32).unwrap_or(0));
                    self.table_init(id, target, segment as u32, start, 0, length)?;
                }
                SegmentMode::Passive => continue,
                SegmentMode::Declared => {}
            }
            self.instances[at].dropped.elements[segment] = true;
        }
        for segment in 0..self.instances[at].descriptor().data.len() {
            let instance = &self.instances[at];
            if let SegmentMode::Active { target, offset } = &instance.descriptor().data[segment].mode {
                // An i32 is zero-extended in its slot, so that this serves both kinds of addresses.
                let start = constexpr::evaluate(instance, sandbox, offset).u64();
                let (target, length) = (*target, instance.descriptor().data[segment].bytes);
                self.memory_init(id, target, segment as u32, start, 0, length)?;
                self.instances[at].dropped.data[segment] = true;
            }
        }
        Ok(())
    }
}
