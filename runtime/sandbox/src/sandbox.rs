//! A sandbox: instances, memories, tables, globals, a stack; and its instances' making.

use std::cell::UnsafeCell;
use std::io;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use awsm_abi::descriptor::{ExternKind, SegmentMode};
use awsm_abi::limits::PAGE_BYTES;
use awsm_abi::types::{FuncType, GlobalType, MemoryType, TableType, ValType};
use awsm_abi::{TrapCode, vmctx};

use crate::call::Call;
use crate::constexpr;
use crate::context::{AddressRange, RecordBox};
use crate::error::InstantiateError;
use crate::instance::Instance;
use crate::limits::{INSTANCES_MAX, MEMORIES_MAX, TABLES_MAX};
use crate::link::{self, Linked};
use crate::load::Artifact;
use crate::memory::{GuestMemory, Memory, Reservation};
use crate::stack::Stack;
use crate::sys;
use crate::table::Table;
use crate::template::Template;
use crate::types;
use crate::value::{Extern, FunctionHandle, GlobalHandle, InstanceId, MemoryHandle, SandboxId, Slot, TableHandle, Value};

/// What a sandbox may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SandboxLimits {
    /// Bytes of all its linear memories together.
    pub memory_bytes_max: u64,
    /// Elements of each of its tables.
    pub table_elements_max: u64,
    /// Its stack in bytes, without guard; kept between [`limits::STACK_BYTES_MIN`](crate::limits::STACK_BYTES_MIN) and
    /// [`limits::STACK_BYTES_MAX`](crate::limits::STACK_BYTES_MAX).
    pub stack_bytes: usize,
}

impl Default for SandboxLimits {
    /// 4 GiB of memories, tables as large as the specification's embedders allow, 1 MiB of stack.
    fn default() -> SandboxLimits {
        SandboxLimits {
            memory_bytes_max: 4 << 30,
            table_elements_max: awsm_abi::limits::TABLE_ELEMENTS_MAX,
            stack_bytes: 1 << 20,
        }
    }
}

/// Instances with their memories, tables and globals, and one guest thread of execution with its stack. May be moved to another thread, or
/// dropped, whenever no method runs.
#[derive(Debug)]
pub struct Sandbox {
    id: SandboxId,
    limits: SandboxLimits,
    pub(crate) record: RecordBox,
    pub(crate) stack: Stack,
    pub(crate) call: Call,
    pub(crate) instances: Vec<Instance>,
    /// Addresses of the instances' vmctx, at a fixed address: what generated code finds callees by.
    instance_table: Box<[*mut u8]>,
    pub(crate) memories: Vec<Memory>,
    pub(crate) tables: Vec<Table>,
    globals: Vec<GlobalCell>,
    /// Cells of globals that no instance defines.
    #[expect(clippy::vec_box, reason = "instances know the cells by address")]
    host_cells: Vec<Box<UnsafeCell<Slot>>>,
    /// Addresses of the memories, for the fault handler.
    ranges: Vec<AddressRange>,
    pub(crate) limit_hit: bool,
    /// What it was made from.
    pub(crate) template: Option<Template>,
}

// SAFETY: All raw pointers lead to what the sandbox itself owns (record, stack, vmctx, cells) or keeps alive (artifacts). Its guest runs only
// within `resume`, on the calling thread, and a suspended guest holds nothing of the thread it ran on: see `preempt::before_resumption`.
unsafe impl Send for Sandbox {}

/// A global of a sandbox.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GlobalCell {
    cell: *mut Slot,
    pub(crate) ty: GlobalType,
}

impl Sandbox {
    /// An empty sandbox, to which instances are added.
    ///
    /// # Errors
    /// When the system has no memory for its stack.
    pub fn new(limits: &SandboxLimits) -> Result<Sandbox, InstantiateError> {
        Sandbox::with_capacity(limits, INSTANCES_MAX)
    }

    /// An empty sandbox for at most that many instances.
    pub(crate) fn with_capacity(limits: &SandboxLimits, instances: usize) -> Result<Sandbox, InstantiateError> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let stack = Stack::new(limits.stack_bytes).map_err(|source| InstantiateError::OutOfMemory { what: "a stack", source })?;
        Ok(Sandbox {
            id: SandboxId(NEXT.fetch_add(1, Ordering::Relaxed)),
            limits: *limits,
            record: RecordBox::new(stack.guard_low(), stack.low(), stack.high()),
            stack,
            call: Call::default(),
            instances: Vec::new(),
            instance_table: vec![ptr::null_mut(); instances].into(),
            memories: Vec::new(),
            tables: Vec::new(),
            globals: Vec::new(),
            host_cells: Vec::new(),
            ranges: Vec::new(),
            limit_hit: false,
            template: None,
        })
    }

    pub(crate) fn id(&self) -> SandboxId {
        self.id
    }

    pub(crate) fn memories(&self) -> &[Memory] {
        &self.memories
    }

    pub(crate) fn tables(&self) -> &[Table] {
        &self.tables
    }

    pub(crate) fn globals(&self) -> &[GlobalCell] {
        &self.globals
    }

    /// Whether a handle belongs to another sandbox.
    pub(crate) fn is_foreign(&self, handle: &Extern) -> bool {
        let owner = match handle {
            Extern::Function(function) => function.sandbox,
            Extern::Table(table) => table.sandbox,
            Extern::Memory(memory) => memory.sandbox,
            Extern::Global(global) => global.sandbox,
            Extern::HostFunction(_) => self.id,
        };
        owner != self.id
    }

    /// Adds an instance of a module of `artifact`. `imports` stand for the module's imports in their order. Active segments are applied; the
    /// start function is not run: see [`start_function`](Self::start_function).
    ///
    /// # Errors
    /// When imports do not match, a limit is reached, or an active segment does not fit. In the last case the effects of earlier segments remain,
    /// and functions that they put into tables stay callable, as the specification wants it.
    pub fn instantiate(
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
        if !self.call.is_idle() {
            return Err(InstantiateError::Misuse("an instance cannot be added while the sandbox runs"));
        }
        let index = self.instances.len();
        check_limit("the number of instances", index as u64 + 1, self.instance_table.len() as u64)?;
        let instance = Instance::new(artifact.clone(), module as u32, index as u32);
        let mut instance = instance.ok_or_else(|| no_memory("an instance"))?;
        let mut linked = link::link(self, &instance, imports)?;
        self.define_memories_and_tables(&instance, &mut linked)?;
        self.fill_vmctx(&mut instance, &linked);
        self.define_globals(&mut instance, linked.globals);
        instance.functions = linked.functions.into();
        instance.memories = linked.memories.into();
        instance.tables = linked.tables.into();
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
            linked.tables.push(self.add_table(table.ty)?);
        }
        Ok(())
    }

    /// Everything but globals that the instance defines.
    fn fill_vmctx(&self, instance: &mut Instance, linked: &Linked) {
        let layout = instance.vmctx.layout;
        let own = instance.vmctx.base();
        let type_ids = instance.module().type_ids.clone();
        let vmctx = &mut instance.vmctx;
        vmctx.write_pointer(vmctx::HOST_CALL, sys::host_call_address() as *const u8);
        vmctx.write_pointer(vmctx::SANDBOX, self.record.as_ptr());
        vmctx.write_pointer(vmctx::INSTANCES, self.instance_table.as_ptr());
        vmctx.write_u32(vmctx::INSTANCE_INDEX, instance.index);
        for (i, &memory) in linked.memories.iter().enumerate() {
            let memory = &self.memories[memory as usize];
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
        }
        for (i, &global) in linked.globals.iter().enumerate() {
            vmctx.write_pointer(layout.imported_global(i as u32), self.globals[global as usize].cell);
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
            let cell = instance.vmctx.slot_address(layout.global(i as u32));
            linked.push(self.globals.len() as u32);
            self.globals.push(GlobalCell { cell, ty });
        }
        instance.globals = linked.into();
    }

    /// Initial values of globals and tables, then active segments: elements first, then data, each in order.
    fn fill_tables_and_memories(&mut self, id: InstanceId) -> Result<(), TrapCode> {
        let (sandbox, at) = (self.id, id.index());
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
                    let start = constexpr::evaluate(instance, sandbox, offset).u32();
                    let (target, length) = (*target, instance.elements(segment as u32).unwrap_or(0));
                    self.table_init(id, target, segment as u32, u64::from(start), 0, length)?;
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

    fn add_memory(&mut self, ty: MemoryType, reservation: Reservation) -> Result<u32, InstantiateError> {
        check_limit("the number of memories", self.memories.len() as u64 + 1, MEMORIES_MAX as u64)?;
        let (limit, wanted) = (self.limits.memory_bytes_max, ty.pages_min.saturating_mul(PAGE_BYTES));
        check_limit("the size of its memories in bytes", self.memory_bytes().saturating_add(wanted), limit)?;
        let memory = Memory::new(ty, reservation, limit);
        let memory = memory.map_err(|source| InstantiateError::OutOfMemory { what: "a memory", source })?;
        self.ranges.push(memory.addresses());
        self.memories.push(memory);
        let record = self.record.get_mut();
        (record.ranges, record.ranges_len) = (self.ranges.as_ptr(), self.ranges.len());
        Ok(self.memories.len() as u32 - 1)
    }

    fn add_table(&mut self, ty: TableType) -> Result<u32, InstantiateError> {
        check_limit("the number of tables", self.tables.len() as u64 + 1, TABLES_MAX as u64)?;
        check_limit("the number of a table's elements", ty.elements_min, self.limits.table_elements_max)?;
        let table = Table::new(ty, self.limits.table_elements_max);
        self.tables.push(table.map_err(|source| InstantiateError::OutOfMemory { what: "a table", source })?);
        Ok(self.tables.len() as u32 - 1)
    }

    /// A linear memory that no instance defines, to be given for an import.
    ///
    /// # Errors
    /// When a limit is reached or the system has no memory.
    pub fn new_memory(&mut self, ty: MemoryType) -> Result<MemoryHandle, InstantiateError> {
        Ok(MemoryHandle { sandbox: self.id, index: self.add_memory(ty, Reservation::Guard)? })
    }

    /// A table that no instance defines, with `init` in every element, to be given for an import.
    ///
    /// # Errors
    /// When `init` is not of the element's type, a limit is reached or the system has no memory.
    pub fn new_table(&mut self, ty: TableType, init: Value) -> Result<TableHandle, InstantiateError> {
        self.check_value(ty.element, &init)?;
        let index = self.add_table(ty)?;
        self.tables[index as usize].elements_mut().fill(init.to_slot());
        Ok(TableHandle { sandbox: self.id, index })
    }

    /// A global that no instance defines, to be given for an import.
    ///
    /// # Errors
    /// When `value` is not of the global's type.
    pub fn new_global(&mut self, ty: GlobalType, value: Value) -> Result<GlobalHandle, InstantiateError> {
        self.check_value(ty.value, &value)?;
        let cell = Box::new(UnsafeCell::new(value.to_slot()));
        self.globals.push(GlobalCell { cell: cell.get(), ty });
        self.host_cells.push(cell);
        Ok(GlobalHandle { sandbox: self.id, index: self.globals.len() as u32 - 1 })
    }

    fn check_value(&self, ty: ValType, value: &Value) -> Result<(), InstantiateError> {
        if value.ty() != ty || value.is_foreign(self.id) {
            return Err(InstantiateError::Misuse("a value of another type, or of another sandbox"));
        }
        Ok(())
    }

    /// The instances, in the order in which they were made.
    pub fn instances(&self) -> impl ExactSizeIterator<Item = InstanceId> + use<> {
        (0..self.instances.len() as u32).map(InstanceId)
    }

    /// The instance made last; of a plain function, the only one.
    #[must_use]
    pub fn main_instance(&self) -> Option<InstanceId> {
        self.instances().last()
    }

    /// The artifact of an instance, and the index of its module in there.
    ///
    /// # Panics
    /// When the sandbox has no such instance.
    #[must_use]
    pub fn module(&self, instance: InstanceId) -> (&Artifact, usize) {
        let instance = &self.instances[instance.index()];
        (instance.artifact(), instance.module_index() as usize)
    }

    /// What an instance exports under a name.
    #[must_use]
    pub fn export(&self, instance: InstanceId, name: &str) -> Option<Extern> {
        let instance = self.instances.get(instance.index())?;
        let export = instance.module().export(instance.descriptor(), name)?;
        let (sandbox, index) = (self.id, export.index as usize);
        Some(match export.kind {
            ExternKind::Function => Extern::Function(instance.function(sandbox, export.index)),
            ExternKind::Table => Extern::Table(TableHandle { sandbox, index: instance.tables[index] }),
            ExternKind::Memory => Extern::Memory(MemoryHandle { sandbox, index: instance.memories[index] }),
            ExternKind::Global => Extern::Global(GlobalHandle { sandbox, index: instance.globals[index] }),
        })
    }

    /// The function that an instance exports under a name.
    #[must_use]
    pub fn export_function(&self, instance: InstanceId, name: &str) -> Option<FunctionHandle> {
        match self.export(instance, name)? {
            Extern::Function(function) => Some(function),
            _ => None,
        }
    }

    /// The start function of an instance, to be called once before anything else of it.
    #[must_use]
    pub fn start_function(&self, instance: InstanceId) -> Option<FunctionHandle> {
        let instance = self.instances.get(instance.index())?;
        Some(instance.function(self.id, instance.descriptor().start?))
    }

    /// The type of a function.
    ///
    /// # Panics
    /// Never: a handle's type is known as long as the process lives.
    #[must_use]
    pub fn function_type(&self, function: FunctionHandle) -> FuncType {
        FuncType::clone(&types::by_id(function.type_id).expect("types are never forgotten"))
    }

    /// The value of a global.
    ///
    /// # Panics
    /// When it belongs to another sandbox.
    #[must_use]
    pub fn global_get(&self, global: GlobalHandle) -> Value {
        assert_eq!(global.sandbox, self.id, "a handle of this sandbox");
        let GlobalCell { cell, ty } = self.globals[global.index as usize];
        // SAFETY: Cells live as long as the sandbox: in a vmctx or in `host_cells`. The guest does not run.
        self.value(ty.value, unsafe { cell.read() })
    }

    /// An element of a table; none when the table is shorter.
    ///
    /// # Panics
    /// When it belongs to another sandbox.
    #[must_use]
    pub fn table_get(&self, table: TableHandle, index: u64) -> Option<Value> {
        assert_eq!(table.sandbox, self.id, "a handle of this sandbox");
        let table = &self.tables[table.index as usize];
        let slot = *table.elements().get(usize::try_from(index).ok()?)?;
        Some(self.value(table.ty().element, slot))
    }

    /// Number of elements of a table.
    ///
    /// # Panics
    /// When it belongs to another sandbox.
    #[must_use]
    pub fn table_len(&self, table: TableHandle) -> u64 {
        assert_eq!(table.sandbox, self.id, "a handle of this sandbox");
        self.tables[table.index as usize].length()
    }

    /// The memory of an instance through which host calls exchange data: the one exported as `memory`, or else its first.
    #[must_use]
    pub fn memory(&mut self, instance: InstanceId) -> Option<GuestMemory<'_>> {
        let instance = self.instances.get(instance.index())?;
        let memory = instance.memories[instance.module().main_memory? as usize];
        Some(GuestMemory::new(&mut self.memories[memory as usize]))
    }

    /// A linear memory.
    ///
    /// # Panics
    /// When it belongs to another sandbox.
    #[must_use]
    pub fn memory_of(&mut self, memory: MemoryHandle) -> GuestMemory<'_> {
        assert_eq!(memory.sandbox, self.id, "a handle of this sandbox");
        GuestMemory::new(&mut self.memories[memory.index as usize])
    }

    /// Bytes of all linear memories together.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.memories.iter().map(Memory::length).sum()
    }

    /// Whether a `memory.grow` failed for want of what [`SandboxLimits`] or the system gives, not by the module's own maximum, since the last reset.
    #[must_use]
    pub fn memory_limit_hit(&self) -> bool {
        self.limit_hit
    }

    pub(crate) fn limits(&self) -> &SandboxLimits {
        &self.limits
    }

    /// The value in a slot that guest code or the runtime wrote.
    pub(crate) fn value(&self, ty: ValType, slot: Slot) -> Value {
        match ty {
            ValType::I32 => Value::I32(slot.i32()),
            ValType::I64 => Value::I64(slot.i64()),
            ValType::F32 => Value::F32(slot.u32()),
            ValType::F64 => Value::F64(slot.u64()),
            ValType::V128 => Value::V128(slot.bits()),
            ValType::FuncRef => Value::FuncRef(self.function_in(slot)),
            ValType::ExternRef => Value::ExternRef(slot.u64().checked_sub(1).map(|index| index as u32)),
        }
    }

    /// The function that a slot refers to; none for null, and for anything that is no reference to code of this sandbox.
    fn function_in(&self, slot: Slot) -> Option<FunctionHandle> {
        let (code, type_id, instance) = (slot.u64(), (slot.bits() >> 64) as u32, (slot.bits() >> 96) as u32);
        let loaded = self.instances.get(instance as usize)?.artifact().loaded();
        let valid = loaded.is_code(code as usize) && types::by_id(type_id).is_some();
        valid.then_some(FunctionHandle { sandbox: self.id, code, type_id, instance })
    }
}

/// There is no memory.
pub(crate) fn no_memory(what: &'static str) -> InstantiateError {
    InstantiateError::OutOfMemory { what, source: io::ErrorKind::OutOfMemory.into() }
}

fn check_limit(what: &'static str, wanted: u64, limit: u64) -> Result<(), InstantiateError> {
    if wanted <= limit { Ok(()) } else { Err(InstantiateError::Limit { what, wanted, limit }) }
}
