//! A sandbox: a store and a fiber, which is what a pool keeps and a request is given.

use std::io;
use std::sync::Arc;

use awsm_abi::types::{FuncType, GlobalType, MemoryType, TableType};

use crate::budget::Share;
use crate::error::{CallError, InstantiateError};
use crate::event::{Event, HostCall, WasmLocation};
use crate::fiber::stack::Stack;
use crate::fiber::{Backtrace, Callee, Fiber, Others};
use crate::limits::{FIBERS_MAX, INSTANCES_MAX};
use crate::load::Artifact;
use crate::store::image::StoreImage;
use crate::store::{GuestMemory, Outside, Refusal, SandboxLimits, Store};
use crate::sys;
use crate::sys::page::Pages;
use crate::sys::room;
use crate::value::{Extern, FiberId, FunctionHandle, GlobalHandle, InstanceId, MemoryHandle, Slot, TableHandle, Value};

/// Instances with their memories, tables and globals, and a fiber: a call with its stack. Others can be [started](Sandbox::start) beside it. May be
/// moved to another thread, or dropped, whenever no method runs.
#[derive(Debug)]
pub struct Sandbox {
    /// The fiber that is selected, which is mostly the first and only one.
    pub(crate) fiber: Fiber,
    /// Its other fibers; none where none was ever started since the last reset, so that it costs nothing.
    others: Option<Box<Others>>,
    /// How many fibers were ever started.
    started: u64,
    /// Whether a fiber ended whose call had trapped.
    trapped: bool,
    pub(crate) store: Store,
    /// What it was made from.
    pub(crate) origin: Option<Arc<StoreImage>>,
}

// SAFETY: All raw pointers lead to what the sandbox itself owns (record, stack, vmctx, cells) or keeps alive (artifacts). Its guest runs only
// within `resume`, on the calling thread, and a suspended guest holds nothing of the thread it ran on: see `preempt::before_resumption`.
unsafe impl Send for Sandbox {}

/// Its life.
impl Sandbox {
    /// An empty sandbox, to which instances are added.
    ///
    /// # Errors
    /// When the system has no memory for its stack.
    pub fn new(limits: &SandboxLimits) -> Result<Sandbox, InstantiateError> {
        Sandbox::of_parts(limits, INSTANCES_MAX, Parts::default())
    }

    /// An empty sandbox for at most that many instances, to take images of: nothing is ever to run in it. So it has no stack, and its memories have
    /// no address space but for their first pages, which makes it cheaper by half.
    pub(crate) fn for_images(limits: &SandboxLimits, instances: usize) -> Sandbox {
        Sandbox::on(Stack::none(), limits, instances, Vec::new())
    }

    /// The same, of what another sandbox left, as far as that fits.
    pub(crate) fn of_parts(limits: &SandboxLimits, instances: usize, mut spare: Parts) -> Result<Sandbox, InstantiateError> {
        let stack = spare.stack(limits.stack_bytes).map_or_else(|| Stack::new(limits.stack_bytes), Ok);
        let stack = stack.map_err(|source| InstantiateError::OutOfMemory { what: "a stack", source })?;
        Ok(Sandbox::on(stack, limits, instances, spare.memories))
    }

    fn on(stack: Stack, limits: &SandboxLimits, instances: usize, spare: Vec<Pages>) -> Sandbox {
        let stack_bytes = (!stack.is_none()).then(|| (stack.high() - stack.low()) as u64);
        let fiber = Fiber::new(stack);
        let outside = Outside {
            host_call: sys::host_call_address(),
            record: fiber.record.as_ptr().cast_const().cast(),
            segment: fiber.record.segment(),
        };
        let store = Store::new(limits, instances, outside, stack_bytes, spare);
        Sandbox { fiber, others: None, started: 0, trapped: false, store, origin: None }
    }

    /// Tells the fiber which memories there are, after some were added.
    pub(crate) fn note_memories(&mut self) {
        self.fiber.set_ranges(self.store.ranges());
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
        if !self.fiber.is_idle() || self.others.as_ref().is_some_and(|others| !others.are_idle()) {
            return Err(InstantiateError::Misuse("an instance cannot be added while the sandbox runs"));
        }
        let done = self.store.instantiate(artifact, module, imports);
        self.note_memories();
        done
    }

    /// What it takes of the process's room, or would if something were to run in it: addresses and mappings.
    pub(crate) fn room(&self) -> [usize; 2] {
        room::sum([self.store.room(), Stack::room_of(self.store.limits().stack_bytes)].into_iter())
    }

    /// Bytes that it has reserved of what it shares with others.
    #[must_use]
    pub fn reserved_bytes(&self) -> u64 {
        self.store.reserved_bytes()
    }

    /// Whether its first call is known to have ended in good order, and no other trapped. Those that were started beside it may be suspended.
    pub(crate) fn is_clean(&mut self) -> bool {
        self.is_settled() || self.is_clean_with_others()
    }

    /// Whether it has no fiber but the first, whose call is known to have ended in good order.
    pub(crate) fn is_settled(&self) -> bool {
        self.others.as_ref().is_none_or(|others| others.len() == 0) && !self.trapped && self.fiber.is_clean()
    }

    #[cold]
    fn is_clean_with_others(&mut self) -> bool {
        let is_sound = !self.trapped && self.fiber.is_sound() && self.others.as_ref().is_none_or(|others| others.are_sound());
        is_sound && self.select_number(0).is_ok() && self.fiber.is_clean()
    }

    /// Makes it what `origin`, from which it was made, says; of fibers nothing is left but the first. On an error it is not usable any more.
    pub(crate) fn restore(&mut self, origin: &StoreImage) -> io::Result<()> {
        if self.others.is_some() {
            self.end_others();
        }
        self.trapped = false;
        origin.restore(&mut self.store)?;
        self.fiber.reset();
        Ok(())
    }

    /// Ends all fibers but the first.
    #[cold]
    fn end_others(&mut self) {
        // Only what may be left is ever reset.
        let _ = self.select_number(0);
        self.others = None;
    }

    /// Takes it apart: its address space, emptied and inaccessible, for other sandboxes.
    pub(crate) fn into_parts(self) -> Parts {
        Parts { stack: self.fiber.stack.emptied(), memories: self.store.into_pages() }
    }
}

/// What it holds.
impl Sandbox {
    /// A linear memory that no instance defines, to be given for an import.
    ///
    /// # Errors
    /// When a limit is reached or the system has no memory.
    pub fn new_memory(&mut self, ty: MemoryType) -> Result<MemoryHandle, InstantiateError> {
        let memory = self.store.new_memory(ty);
        self.note_memories();
        memory
    }

    /// A table that no instance defines, with `init` in every element, to be given for an import.
    ///
    /// # Errors
    /// When `init` is not of the element's type, a limit is reached or the system has no memory.
    pub fn new_table(&mut self, ty: TableType, init: Value) -> Result<TableHandle, InstantiateError> {
        self.store.new_table(ty, init)
    }

    /// A global that no instance defines, to be given for an import.
    ///
    /// # Errors
    /// When `value` is not of the global's type.
    pub fn new_global(&mut self, ty: GlobalType, value: Value) -> Result<GlobalHandle, InstantiateError> {
        self.store.new_global(ty, value)
    }

    /// The instances, in the order in which they were made.
    pub fn instances(&self) -> impl ExactSizeIterator<Item = InstanceId> + use<> {
        self.store.instances()
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
        self.store.module(instance)
    }

    /// What an instance exports under a name.
    #[must_use]
    pub fn export(&self, instance: InstanceId, name: &str) -> Option<Extern> {
        self.store.export(instance, name)
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
        self.store.start_function(instance)
    }

    /// The type of a function. Types that it names are given by their canonical ids.
    ///
    /// # Panics
    /// Never: a handle's type is known as long as the process lives.
    #[must_use]
    pub fn function_type(&self, function: FunctionHandle) -> FuncType {
        self.store.function_type(function)
    }

    /// The value of a global.
    ///
    /// # Panics
    /// When it belongs to another sandbox.
    #[must_use]
    pub fn global_get(&self, global: GlobalHandle) -> Value {
        self.store.global_get(global)
    }

    /// The value of a global that an instance defines, by its number among these; after a trap as far as it was written by then.
    #[must_use]
    pub fn defined_global(&self, instance: InstanceId, index: usize) -> Option<Slot> {
        self.store.defined_global(instance, index)
    }

    /// An element of a table; none when the table is shorter.
    ///
    /// # Panics
    /// When it belongs to another sandbox.
    #[must_use]
    pub fn table_get(&self, table: TableHandle, index: u64) -> Option<Value> {
        self.store.table_get(table, index)
    }

    /// Number of elements of a table.
    ///
    /// # Panics
    /// When it belongs to another sandbox.
    #[must_use]
    pub fn table_len(&self, table: TableHandle) -> u64 {
        self.store.table_len(table)
    }

    /// The memory of an instance through which host calls exchange data: the one exported as `memory`, or else its first.
    #[must_use]
    pub fn memory(&mut self, instance: InstanceId) -> Option<GuestMemory<'_>> {
        self.store.memory(instance)
    }

    /// The first memory of an instance, and its last where it has more than one.
    #[inline]
    #[must_use]
    pub fn first_and_last_memory(&mut self, instance: InstanceId) -> Option<(GuestMemory<'_>, Option<GuestMemory<'_>>)> {
        self.store.first_and_last_memory(instance)
    }

    /// A linear memory.
    ///
    /// # Panics
    /// When it belongs to another sandbox.
    #[must_use]
    pub fn memory_of(&mut self, memory: MemoryHandle) -> GuestMemory<'_> {
        self.store.memory_of(memory)
    }

    /// Two linear memories at once; none where they are the same one.
    ///
    /// # Panics
    /// When one belongs to another sandbox.
    #[must_use]
    pub fn memories_of(&mut self, first: MemoryHandle, second: MemoryHandle) -> Option<[GuestMemory<'_>; 2]> {
        self.store.memories_of(first, second)
    }

    /// Bytes of all linear memories together.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.store.memory_bytes()
    }

    /// Bytes that count against [`SandboxLimits::memory_bytes_max`].
    #[must_use]
    pub fn counted_bytes(&self) -> u64 {
        self.store.counted_bytes()
    }

    /// Notes how many bytes the host keeps for what runs in this sandbox: a request's body, a reply. False, and nothing changed, when that is more
    /// than its limit or the budget allow; that counts as a [`refusal`](Self::refusal).
    #[inline]
    #[must_use]
    pub fn set_host_bytes(&mut self, bytes: u64) -> bool {
        self.store.set_host_bytes(bytes)
    }

    /// Takes over what was reserved for what the host keeps, before that is [noted](Self::set_host_bytes).
    pub fn join_share(&mut self, share: Share) {
        self.store.join_share(share);
    }

    /// What is reserved for `bytes` that the host keeps for longer than this sandbox runs, such as a reply that is being sent. Of what every
    /// sandbox has for free nothing is given away; where the budget has nothing in its place, the share is smaller by that.
    #[must_use]
    pub fn split_share(&mut self, bytes: u64) -> Option<Share> {
        self.store.split_share(bytes)
    }

    /// Why it did not get memory or a larger table, since the last reset, if that was not by the module's own maximum.
    #[must_use]
    pub fn refusal(&self) -> Option<Refusal> {
        self.store.refusal.or_else(|| self.was_refused_copy().then_some(Refusal::Exhausted))
    }

    /// Whether a first write to a page that it shared with other sandboxes was refused since the last reset, because nothing was left of the budget. If its
    /// guest wrote, that was a trap: [`MemoryOutOfBounds`](crate::TrapCode::MemoryOutOfBounds).
    #[must_use]
    pub fn was_refused_copy(&self) -> bool {
        self.store.was_refused_copy()
    }

    /// Whether a global or a table holds an exception, which no template can.
    #[must_use]
    pub fn holds_exceptions(&self) -> bool {
        self.store.holds_exceptions()
    }
}

/// Its call.
impl Sandbox {
    /// Makes `function` with these arguments the next thing that [`resume`](Self::resume) runs. A call prepared before and not begun is forgotten.
    ///
    /// # Errors
    /// When a call is in progress, the sandbox was killed, or the arguments are not of the function's types.
    pub fn prepare(&mut self, function: FunctionHandle, args: &[Value]) -> Result<(), CallError> {
        self.fiber.prepare(&self.store, function, args)
    }

    /// What [`prepare_callee`](Self::prepare_callee) calls in the place of that function, in this sandbox and in all others of its artifact's templates.
    ///
    /// # Errors
    /// When this sandbox was not made from a template, or the function is another sandbox's, has parameters, or has no entry.
    pub fn callee(&self, function: FunctionHandle) -> Result<Callee, CallError> {
        if self.origin.is_none() {
            return Err(CallError::Foreign);
        }
        Callee::new(&self.store, function)
    }

    /// As [`prepare`](Self::prepare), without looking anything up.
    ///
    /// # Errors
    /// When a call is in progress, the sandbox was killed, or it was not made from a template of the callee's artifact.
    pub fn prepare_callee(&mut self, callee: &Callee) -> Result<(), CallError> {
        if self.origin.is_none() {
            return Err(CallError::Foreign);
        }
        self.fiber.prepare_callee(&self.store, callee)
    }

    /// Lets the guest run until it returns, traps, calls the host or is preempted.
    ///
    /// # Panics
    /// When no call is prepared or in progress, a host call that has results was not answered, or this thread has no
    /// [`WorkerThread`](crate::WorkerThread).
    pub fn resume(&mut self) -> Event {
        let others = &self.others;
        // SAFETY: Fiber and store of a sandbox are made together, and neither is ever lent or exchanged. Fibers that are selected later take over the
        // first one's record, to which the store leads, and their calls were prepared with this store.
        unsafe { self.fiber.resume(&mut self.store, |each| others.iter().for_each(|others| others.words(each))) }
    }

    /// How execution came to where the guest is suspended or has trapped, innermost first. Empty before a call and after it returned. Of an
    /// exception that was not caught only where it was thrown: the functions that it left are gone.
    #[must_use]
    pub fn backtrace(&self) -> Backtrace {
        self.fiber.backtrace(&self.store)
    }

    /// The places in that backtrace: what it costs to find names and lines is saved.
    #[must_use]
    pub fn locations(&self) -> Vec<WasmLocation> {
        self.fiber.locations(&self.store)
    }

    /// Results of the call that has returned; empty otherwise.
    #[must_use]
    pub fn results(&self) -> Vec<Value> {
        self.fiber.results(&self.store)
    }

    /// Result number `index` of the call that has returned, as it stands.
    #[must_use]
    pub fn result(&self, index: usize) -> Option<Slot> {
        self.fiber.result(index)
    }

    /// The call of an imported function in which the guest is suspended.
    #[must_use]
    pub fn host_call(&self) -> Option<HostCall> {
        self.fiber.host_call()
    }

    /// The type of the imported function that the guest is calling.
    #[must_use]
    pub fn host_call_type(&self) -> Option<&FuncType> {
        self.fiber.host_call_type(&self.store)
    }

    /// Arguments of the host call in which the guest is suspended, typed by the imported function's parameters; empty otherwise.
    #[inline]
    #[must_use]
    pub fn host_args(&self) -> &[Slot] {
        self.fiber.host_args()
    }

    /// As [`host_args`](Self::host_args), as values.
    #[must_use]
    pub fn host_values(&self) -> Vec<Value> {
        self.fiber.host_values(&self.store)
    }

    /// Answers the host call in which the guest is suspended; then resume. Where there are no results, that may be done at once.
    ///
    /// # Errors
    /// When there is no such call, or the values are not of the imported function's result types.
    pub fn host_results(&mut self, results: &[Value]) -> Result<(), CallError> {
        self.fiber.host_results(&self.store, results)
    }

    /// As [`host_results`](Self::host_results) for a function with at most one result, which is a number, given by its bits; those of an `i32` or an `f32`
    /// are the low ones. Where there is no result, nothing is done.
    ///
    /// # Errors
    /// When there is no such call, or the imported function has other results.
    #[inline]
    pub fn host_number(&mut self, bits: u64) -> Result<(), CallError> {
        self.fiber.host_number(&self.store, bits)
    }

    /// Ends the call in good order at the host call in which the guest is suspended, because the guest asked to exit: the sandbox takes other
    /// calls, and a pool takes it back. Anywhere else a call in progress is [killed](Self::kill). Where the selected fiber is not the first, that ends in
    /// the same way, and is selected.
    pub fn finish(&mut self) {
        self.fiber.finish();
        // Where the selected one was killed, there is no other to be selected.
        if self.fiber.number != 0 && self.select_number(0).is_ok() {
            self.fiber.finish();
        }
    }

    /// Ends whatever the sandbox does, with all its fibers. It never runs again.
    pub fn kill(&mut self) {
        self.fiber.kill();
    }
}

/// Its fibers, where it has several: calls on one store, of which one runs at a time. All methods about a call are about the one that is selected.
impl Sandbox {
    /// Starts another call, of `function` with these arguments, beside those that there are, and selects it: [`resume`](Self::resume) runs it next. The
    /// fiber that was selected stays as it is until it is [selected](Self::select) again.
    ///
    /// # Errors
    /// * When the selected fiber was preempted or waits, since only a call of the host is a place where others may change what it uses: resume it
    ///   first.
    /// * When there are [`FIBERS_MAX`] fibers, or there is no memory for another stack.
    /// * As [`prepare`](Self::prepare). Then no fiber is started.
    pub fn start(&mut self, function: FunctionHandle, args: &[Value]) -> Result<FiberId, CallError> {
        if !self.fiber.may_be_left() {
            return Err(CallError::Busy { state: self.fiber.state() });
        }
        let before = self.fiber.number;
        let stack = self.another_stack()?;
        self.started += 1;
        self.others.get_or_insert_default().start(&mut self.fiber, self.started, stack);
        if let Err(error) = self.prepare(function, args) {
            let started = self.fiber.number;
            self.select_number(before).expect("it was just left, and what was started has not run");
            self.others.get_or_insert_default().end(started);
            return Err(error);
        }
        Ok(self.fiber())
    }

    /// A stack for another fiber: of one that ended, or a new one.
    fn another_stack(&mut self) -> Result<Stack, CallError> {
        let others = self.others.get_or_insert_default();
        if 1 + others.len() >= FIBERS_MAX {
            return Err(CallError::Fibers { limit: FIBERS_MAX });
        }
        if let Some(stack) = others.spare() {
            return Ok(stack);
        }
        let bytes = self.store.limits().stack_bytes;
        if !room::has(Stack::room_of(bytes), [0, 0]) || !self.store.make_fiber_room(Stack::size(bytes) as u64) {
            return Err(CallError::NoStack);
        }
        Stack::new(bytes).map_err(|_| {
            self.store.fiber_bytes -= Stack::size(bytes) as u64;
            CallError::NoStack
        })
    }

    /// The fiber that is selected.
    #[must_use]
    pub fn fiber(&self) -> FiberId {
        FiberId { sandbox: self.store.id(), number: self.fiber.number }
    }

    /// All fibers, the selected one first.
    pub fn fibers(&self) -> impl Iterator<Item = FiberId> + '_ {
        let sandbox = self.store.id();
        let others = self.others.iter().flat_map(|others| others.numbers());
        std::iter::once(self.fiber.number).chain(others).map(move |number| FiberId { sandbox, number })
    }

    /// Selects a fiber: `resume` and all methods about a call are about that one from now on.
    ///
    /// # Errors
    /// When there is no such fiber, or another one was preempted or waits: resume that one first.
    pub fn select(&mut self, fiber: FiberId) -> Result<(), CallError> {
        if fiber.sandbox != self.store.id() {
            return Err(CallError::NoFiber);
        }
        self.select_number(fiber.number)
    }

    fn select_number(&mut self, number: u64) -> Result<(), CallError> {
        if number == self.fiber.number {
            return Ok(());
        }
        let others = self.others.as_mut().filter(|others| others.numbers().any(|other| other == number));
        let others = others.ok_or(CallError::NoFiber)?;
        if !self.fiber.may_be_left() {
            return Err(CallError::Busy { state: self.fiber.state() });
        }
        others.select(&mut self.fiber, number);
        Ok(())
    }

    /// Ends a fiber that was started, whatever its call does: done, trapped, or suspended in a host call, which it never leaves. Its stack is kept
    /// for the next. Where it is the selected one, the first is selected.
    ///
    /// # Errors
    /// When there is no such fiber, it is the first, or the selected one was preempted or waits: resume or [kill](Self::kill) that.
    pub fn end(&mut self, fiber: FiberId) -> Result<(), CallError> {
        if fiber.sandbox != self.store.id() || fiber.number == 0 {
            return Err(CallError::NoFiber);
        }
        if !self.fiber.may_be_left() {
            return Err(CallError::Busy { state: self.fiber.state() });
        }
        if fiber.number == self.fiber.number {
            self.select_number(0)?;
        }
        let is_sound = self.others.as_mut().and_then(|others| others.end(fiber.number)).ok_or(CallError::NoFiber)?;
        self.trapped |= !is_sound;
        Ok(())
    }
}

/// Address space of a sandbox that is no more. Nothing of what it held is left.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    stack: Option<Stack>,
    memories: Vec<Pages>,
}

impl Parts {
    /// What they take of the process's room.
    pub(crate) fn room(&self) -> [usize; 2] {
        room::sum(self.memories.iter().map(Pages::room).chain(self.stack.iter().map(Stack::room)))
    }

    /// A stack of that size.
    fn stack(&mut self, bytes: usize) -> Option<Stack> {
        self.stack.take_if(|stack| stack.high() - stack.low() == Stack::size(bytes))
    }
}
