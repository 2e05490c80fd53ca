//! What a sandbox holds beside its calls: instances, memories, tables, globals. All of it is reset between requests.

mod builtins;
mod constexpr;
pub(crate) mod exceptions;
mod externs;
mod guest_memory;
pub(crate) mod image;
pub(crate) mod instance;
mod instantiate;
mod link;
pub(crate) mod memory;
mod memory_image;
mod shared_image;
mod spans;
mod table;
pub(crate) mod writable;

use std::cell::UnsafeCell;
use std::io;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use awsm_abi::limits::PAGE_BYTES;
use awsm_abi::types::{GlobalType, MemoryType, RefKind, TableType, ValType};

use crate::budget::Share;
use crate::error::InstantiateError;
use crate::limits::{BESIDE_MEMORY_FREE_BYTES, EXCEPTION_BYTES, MEMORIES_MAX, SANDBOX_OVERHEAD_BYTES, TABLES_MAX};
use crate::load::Artifact;
use crate::store::exceptions::Exceptions;
use crate::store::instance::Instance;
use crate::store::memory::{Memory, Reservation};
use crate::store::table::Table;
use crate::store::writable::AddressRange;
use crate::sys::page::Pages;
use crate::sys::room;
use crate::types;
use crate::value::{Extern, FunctionHandle, InstanceId, MemoryHandle, SandboxId, Slot, Value};

pub(crate) use builtins::{Outcome, slots as builtin_slots};
pub use guest_memory::{GuestMemory, OutOfBounds};

/// Size of a table's element.
pub(crate) const ELEMENT_BYTES: u64 = awsm_abi::vmctx::table::ELEMENT_BYTES as u64;

/// What a sandbox may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SandboxLimits {
    /// Bytes of all its linear memories together, of the stacks of calls that were [started](crate::Sandbox::start) and, beyond [`limits::BESIDE_MEMORY_FREE_BYTES`](crate::limits::BESIDE_MEMORY_FREE_BYTES), of
    /// its tables and of what the host keeps for it ([`Sandbox::set_host_bytes`](crate::Sandbox::set_host_bytes)).
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

/// Why a sandbox did not get memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It has as much as [`SandboxLimits`] allow.
    Limit,
    /// What it shares with others is used up, or the system has none left: it might get it at another time.
    Exhausted,
}

/// Where the instances' vmctx lead to outside of the store. All of it stays where it is while the store exists.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outside {
    /// Code that guests call to reach the host.
    pub(crate) host_call: usize,
    /// What that code is given: the record of the sandbox.
    pub(crate) record: *const u8,
    /// The cell for the segment register.
    pub(crate) segment: *const usize,
}

/// Instances with their memories, tables and globals.
#[derive(Debug)]
pub(crate) struct Store {
    id: SandboxId,
    limits: SandboxLimits,
    pub(crate) outside: Outside,
    pub(crate) instances: Vec<Instance>,
    /// Addresses of the instances' vmctx, at a fixed address: what generated code finds callees by.
    pub(crate) instance_table: Box<[*mut u8]>,
    pub(crate) memories: Vec<Memory>,
    pub(crate) tables: Vec<Table>,
    pub(crate) globals: Vec<GlobalCell>,
    /// Canonical id of the type of each tag.
    pub(crate) tags: Vec<u32>,
    /// Its exceptions, if any of its modules has tags.
    pub(crate) exceptions: Option<Exceptions>,
    /// Cells of globals that no instance defines.
    #[expect(clippy::vec_box, reason = "instances know the cells by address")]
    pub(crate) host_cells: Vec<Box<UnsafeCell<Slot>>>,
    /// Addresses of the memories, for the fault handler.
    ranges: Vec<AddressRange>,
    pub(crate) refusal: Option<Refusal>,
    /// What the host keeps for it, in bytes.
    pub(crate) host_bytes: u64,
    /// Stacks beside its first, in bytes.
    pub(crate) fiber_bytes: u64,
    /// Its part of what all sandboxes may use; none where that is not counted.
    pub(crate) share: Option<Share>,
    /// What of its memories is shared with others and not in `share`.
    pub(crate) shared_bytes: u64,
    /// What new memories are made of, if it fits.
    spare: Vec<Pages>,
    /// Size of its stack; none where nothing is ever to run, which is there for its images.
    stack_bytes: Option<u64>,
}

/// A global of a sandbox.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GlobalCell {
    pub(crate) cell: *mut Slot,
    pub(crate) ty: GlobalType,
}

impl Store {
    /// An empty store for at most that many instances, with a stack of `stack_bytes`. Without a stack nothing is ever to run in it, and its memories
    /// have no address space but for their first pages.
    pub(crate) fn new(
        limits: &SandboxLimits,
        instances: usize,
        outside: Outside,
        stack_bytes: Option<u64>,
        spare: Vec<Pages>,
    ) -> Store {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Store {
            id: SandboxId(NEXT.fetch_add(1, Ordering::Relaxed)),
            limits: *limits,
            outside,
            instances: Vec::new(),
            instance_table: vec![ptr::null_mut(); instances].into(),
            memories: Vec::new(),
            tables: Vec::new(),
            globals: Vec::new(),
            tags: Vec::new(),
            exceptions: None,
            host_cells: Vec::new(),
            ranges: Vec::new(),
            refusal: None,
            host_bytes: 0,
            fiber_bytes: 0,
            share: None,
            shared_bytes: 0,
            spare,
            stack_bytes,
        }
    }

    /// Gives back what was not needed to make it.
    pub(crate) fn keep_no_spare(&mut self) {
        self.spare = Vec::new();
    }

    /// What it may use.
    pub(crate) fn limits(&self) -> &SandboxLimits {
        &self.limits
    }

    /// Addresses of the memories. They move when a memory is added.
    pub(crate) fn ranges(&self) -> &[AddressRange] {
        &self.ranges
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

    pub(crate) fn tags(&self) -> &[u32] {
        &self.tags
    }

    /// Sets aside the memory for its exceptions.
    pub(crate) fn need_exceptions(&mut self) -> Result<(), InstantiateError> {
        if self.exceptions.is_none() {
            let exceptions = Exceptions::new();
            let what = "its exceptions";
            self.exceptions = Some(exceptions.map_err(|source| InstantiateError::OutOfMemory { what, source })?);
        }
        Ok(())
    }

    /// The references to exceptions in globals and tables, null or not.
    pub(crate) fn exception_references(&self) -> impl Iterator<Item = u64> {
        let is_exception = |ty: ValType| ty.ref_kind() == Some(RefKind::Exn);
        let globals = self.globals.iter().filter(move |global| is_exception(global.ty.value));
        // SAFETY: Cells live as long as the sandbox: in a vmctx or in `host_cells`. The guest does not run.
        let globals = globals.map(|global| unsafe { global.cell.read() });
        let tables = self.tables.iter().filter(move |table| is_exception(table.ty().element));
        globals.chain(tables.flat_map(|table| table.elements().iter().copied())).map(Slot::u64)
    }

    /// Whether a global or a table holds an exception, which no template can.
    pub(crate) fn holds_exceptions(&self) -> bool {
        self.exception_references().any(|exception| exception != 0)
    }

    /// Whether a handle belongs to another sandbox.
    pub(crate) fn is_foreign(&self, handle: &Extern) -> bool {
        let owner = match handle {
            Extern::Function(function) => function.sandbox,
            Extern::Table(table) => table.sandbox,
            Extern::Memory(memory) => memory.sandbox,
            Extern::Global(global) => global.sandbox,
            Extern::Tag(tag) => tag.sandbox,
            Extern::HostFunction(_) => self.id,
        };
        owner != self.id
    }

    pub(crate) fn add_memory(&mut self, ty: MemoryType, reservation: Reservation) -> Result<u32, InstantiateError> {
        check_limit("the number of memories", self.memories.len() as u64 + 1, MEMORIES_MAX as u64)?;
        let (limit, wanted) = (self.limits.memory_bytes_max, ty.pages_min.saturating_mul(PAGE_BYTES));
        check_limit("the size of its memories in bytes", self.counted_bytes().saturating_add(wanted), limit)?;
        let memory = if self.stack_bytes.is_none() {
            Memory::for_image(ty, reservation, limit)
        } else {
            Memory::of(ty, reservation, limit, &mut self.spare)
        };
        let memory = memory.map_err(|source| InstantiateError::OutOfMemory { what: reservation.what(), source })?;
        self.ranges.push(memory.addresses());
        self.memories.push(memory);
        Ok(self.memories.len() as u32 - 1)
    }

    pub(crate) fn add_table(&mut self, ty: TableType) -> Result<u32, InstantiateError> {
        check_limit("the number of tables", self.tables.len() as u64 + 1, TABLES_MAX as u64)?;
        check_limit("the number of a table's elements", ty.elements_min, self.limits.table_elements_max)?;
        let bytes = self
            .table_bytes()
            .saturating_add(ty.elements_min.saturating_mul(ELEMENT_BYTES))
            .saturating_sub(BESIDE_MEMORY_FREE_BYTES);
        let limit = self.limits.memory_bytes_max;
        check_limit("the size of its memories and tables in bytes", self.memory_bytes().saturating_add(bytes), limit)?;
        let table = Table::new(ty, self.limits.table_elements_max);
        self.tables.push(table.map_err(|source| InstantiateError::OutOfMemory { what: "a table", source })?);
        Ok(self.tables.len() as u32 - 1)
    }

    /// The instances, in the order in which they were made.
    pub(crate) fn instances(&self) -> impl ExactSizeIterator<Item = InstanceId> + use<> {
        (0..self.instances.len() as u32).map(InstanceId)
    }

    /// The artifact of an instance, and the index of its module in there.
    ///
    /// # Panics
    /// When the sandbox has no such instance.
    pub(crate) fn module(&self, instance: InstanceId) -> (&Artifact, usize) {
        let instance = &self.instances[instance.index()];
        (instance.artifact(), instance.module_index() as usize)
    }

    /// The value of a global that an instance defines, by its number among these; after a trap as far as it was written by then.
    pub(crate) fn defined_global(&self, instance: InstanceId, index: usize) -> Option<Slot> {
        self.instances.get(instance.index())?.vmctx.globals().get(index).copied()
    }

    /// The memory of an instance through which host calls exchange data: the one exported as `memory`, or else its first.
    pub(crate) fn memory(&mut self, instance: InstanceId) -> Option<GuestMemory<'_>> {
        let instance = self.instances.get(instance.index())?;
        let memory = instance.memories[instance.module().main_memory? as usize];
        Some(GuestMemory::new(&mut self.memories[memory as usize]))
    }

    /// The first memory of an instance, and its last where that is another.
    #[inline]
    pub(crate) fn first_and_last_memory(&mut self, instance: InstanceId) -> Option<(GuestMemory<'_>, Option<GuestMemory<'_>>)> {
        let memories = &self.instances.get(instance.index())?.memories;
        let (first, last) = (*memories.first()? as usize, *memories.last()? as usize);
        if first == last {
            return Some((GuestMemory::new(self.memories.get_mut(first)?), None));
        }
        let [first, last] = self.memories.get_disjoint_mut([first, last]).ok()?;
        Some((GuestMemory::new(first), Some(GuestMemory::new(last))))
    }

    /// Two linear memories at once; none where they are the same one.
    ///
    /// # Panics
    /// When one belongs to another sandbox.
    pub(crate) fn memories_of(&mut self, first: MemoryHandle, second: MemoryHandle) -> Option<[GuestMemory<'_>; 2]> {
        assert!(first.sandbox == self.id && second.sandbox == self.id, "handles of this sandbox");
        let both = self.memories.get_disjoint_mut([first.index as usize, second.index as usize]).ok()?;
        Some(both.map(GuestMemory::new))
    }

    /// A linear memory.
    ///
    /// # Panics
    /// When it belongs to another sandbox.
    pub(crate) fn memory_of(&mut self, memory: MemoryHandle) -> GuestMemory<'_> {
        assert_eq!(memory.sandbox, self.id, "a handle of this sandbox");
        GuestMemory::new(&mut self.memories[memory.index as usize])
    }

    /// Bytes of all linear memories together.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.memories.iter().map(Memory::length).sum()
    }

    /// Bytes of all tables together.
    fn table_bytes(&self) -> u64 {
        self.tables.iter().map(|table| table.length() * ELEMENT_BYTES).sum()
    }

    /// Bytes that count against [`SandboxLimits::memory_bytes_max`].
    pub(crate) fn counted_bytes(&self) -> u64 {
        self.counted_with(self.table_bytes() + self.host_bytes)
    }

    /// The same with so many bytes in tables and at the host.
    fn counted_with(&self, beside: u64) -> u64 {
        (self.memory_bytes() + self.fiber_bytes).saturating_add(beside.saturating_sub(BESIDE_MEMORY_FREE_BYTES))
    }

    /// Notes how many bytes the host keeps for what runs in this sandbox: a request's body, a reply. False, and nothing changed, when that is more
    /// than its limit or the budget allow; that counts as a [`refusal`](Self::refusal).
    #[inline]
    pub(crate) fn set_host_bytes(&mut self, bytes: u64) -> bool {
        if bytes > self.host_bytes && !self.may_keep(bytes) {
            return false;
        }
        // Giving back what a later call asks for again is not worth an atomic operation; the reset does it.
        self.host_bytes = bytes;
        true
    }

    /// Whether the limits allow that the host keeps so many bytes. Not inline: that is asked seldom, where the host keeps more than before.
    #[inline(never)]
    fn may_keep(&mut self, bytes: u64) -> bool {
        self.may_count(self.counted_with(self.table_bytes().saturating_add(bytes)))
    }

    /// Takes over what was reserved for what the host keeps, before that is [noted](Self::set_host_bytes).
    pub(crate) fn join_share(&mut self, share: Share) {
        if let Some(own) = &mut self.share {
            own.join(share);
        }
    }

    /// What is reserved for `bytes` that the host keeps for longer than this sandbox runs, such as a reply that is being sent. Of what every
    /// sandbox has for free nothing is given away; where the budget has nothing in its place, the share is smaller by that.
    pub(crate) fn split_share(&mut self, bytes: u64) -> Option<Share> {
        let kept = self.fixed_bytes() + self.counted_with(self.table_bytes()) - self.shared_bytes;
        let own = self.share.as_mut()?;
        let mut share = own.split(bytes.min(own.bytes().saturating_sub(kept)));
        let _ = share.resize(bytes);
        Some(share)
    }

    /// What it has reserved of what it shares with others.
    pub(crate) fn reserved_bytes(&self) -> u64 {
        self.share.as_ref().map_or(0, Share::bytes) + self.memories.iter().map(Memory::private_bytes).sum::<u64>()
    }

    /// Whether the budget had nothing left for a copy of a shared page when the guest, or the host for it, wrote there, since the last reset.
    pub(crate) fn was_refused_copy(&self) -> bool {
        self.memories.iter().any(Memory::was_refused)
    }

    /// Whether `more` bytes of memory may be used in addition; then they are its share until the reset.
    pub(crate) fn make_room(&mut self, more: u64) -> bool {
        self.may_count(self.counted_bytes().saturating_add(more))
    }

    /// The same for the stack of another fiber, which is noted.
    pub(crate) fn make_fiber_room(&mut self, more: u64) -> bool {
        let room = self.make_room(more);
        self.fiber_bytes += if room { more } else { 0 };
        room
    }

    /// The same for a table.
    pub(crate) fn make_table_room(&mut self, more: u64) -> bool {
        self.may_count(self.counted_with((self.table_bytes() + self.host_bytes).saturating_add(more)))
    }

    fn may_count(&mut self, after: u64) -> bool {
        if after > self.limits.memory_bytes_max {
            self.refuse(Refusal::Limit);
            return false;
        }
        let (fixed, shared) = (self.fixed_bytes(), self.shared_bytes);
        // Tables below the free amount are in the fixed part.
        let done = self.share.as_mut().is_none_or(|share| {
            let wanted = after.saturating_add(fixed) - shared;
            wanted <= share.bytes() || share.resize(wanted)
        });
        if !done {
            self.refuse(Refusal::Exhausted);
        }
        done
    }

    /// Notes that it did not get memory. What is its own fault counts more.
    pub(crate) fn refuse(&mut self, refusal: Refusal) {
        if self.refusal != Some(Refusal::Limit) {
            self.refusal = Some(refusal);
        }
    }

    /// What it costs whatever its guest does.
    pub(crate) fn fixed_bytes(&self) -> u64 {
        let exceptions = if self.exceptions.is_some() { EXCEPTION_BYTES as u64 } else { 0 };
        self.stack_bytes.unwrap_or(0) + BESIDE_MEMORY_FREE_BYTES + SANDBOX_OVERHEAD_BYTES + exceptions
    }

    /// What its memories and tables take of the process's room, or would if something were to run in it: addresses and mappings.
    pub(crate) fn room(&self) -> [usize; 2] {
        let memories = self.memories.iter().map(Memory::room);
        room::sum(memories.chain(self.tables.iter().map(Table::room)))
    }

    /// Takes it apart: the address space of its memories, emptied and inaccessible.
    pub(crate) fn into_pages(self) -> Vec<Pages> {
        self.memories.into_iter().filter_map(Memory::into_pages).collect()
    }

    /// The value in a slot that guest code or the runtime wrote.
    pub(crate) fn value(&self, ty: ValType, slot: Slot) -> Value {
        match ty {
            ValType::I32 => Value::I32(slot.i32()),
            ValType::I64 => Value::I64(slot.i64()),
            ValType::F32 => Value::F32(slot.u32()),
            ValType::F64 => Value::F64(slot.u64()),
            ValType::V128 => Value::V128(slot.bits()),
            ValType::Ref(ty) => match ty.heap.kind() {
                RefKind::Func => Value::FuncRef(self.function_in(slot)),
                RefKind::Extern => Value::ExternRef(slot.u64().checked_sub(1).map(|index| index as u32)),
                RefKind::Exn => Value::ExnRef { null: slot.u64() == 0 },
            },
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

pub(crate) fn check_limit(what: &'static str, wanted: u64, limit: u64) -> Result<(), InstantiateError> {
    if wanted <= limit { Ok(()) } else { Err(InstantiateError::Limit { what, wanted, limit }) }
}
