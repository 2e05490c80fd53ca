//! A fiber, which is a stack and the call on it: prepared, resumed until it returns or traps, suspended in between.
//!
//! ```text
//!                 prepare          resume
//!   Fresh ---------------> Ready ----------> (runs) ----> Returned
//!   Returned  ------^                         ^   |-----> Trapped
//!   Trapped   ------|       host_results,     |   |-----> HostCall ---- finish ---> Finished
//!   Finished  ------'       resume            |   '-----> Preempted       |
//!                                             '---------------'-----------'
//!   kill: from any state to Killed, which is the end
//! ```
//!
//! | state | the guest's stack | may be resumed | another fiber may run | may be reset |
//! |---|---|---|---|---|
//! | Fresh, Returned, Finished | nothing that is needed | no | yes | yes |
//! | Ready | the start stub's frame | yes | yes | yes |
//! | HostCall | the stub's frame, `guest_sp` | when answered | yes | of fibers beside the first |
//! | Preempted, by the timer | the kernel's frame and the handler's | yes | no | no |
//! | Preempted, behind a builtin; waiting | the stub's frame | yes | no | no |
//! | Trapped | as the trap left it, for the backtrace | no | yes | no |
//! | Killed | unknown | never | no | no |
//!
//! Indices and addresses that come from the guest are looked at when its call comes ([`Fiber::on_host_call`]), once: the call's number and its instance against
//! the store, the slots against the bounds of this stack. What is read later, in `host_args` and `host_results`, relies on that. Without the look at the slots, a
//! guest with a bug of the compiler in it would have the host write anywhere.

use std::time::Duration;

use awsm_abi::TrapCode;
use awsm_abi::calls::builtin;
use awsm_abi::types::{FuncType, ValType};

use crate::error::CallError;
use crate::event::{Event, HostCall, Trap, WasmLocation};
use crate::fiber::backtrace::{self, Backtrace, Place};
use crate::fiber::record::{Context, RecordBox};
use crate::fiber::stack::Stack;
use crate::fiber::{preempt, worker};
use crate::load::{Artifact, Entry, FunctionImport, Loaded, Module};
use crate::store::instance::{Instance, Vmctx};
use crate::store::writable::AddressRange;
use crate::store::{self, Outcome, Store};
use crate::sys::switch::{EVENT_HOST_CALL, EVENT_PREEMPTED, EVENT_RETURNED, EVENT_TRAPPED};
use crate::sys::{self, Registers};
use crate::value::{FunctionHandle, InstanceId, Slot, Value};

/// Where a call stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// No call since the sandbox was made or reset. Next: Ready.
    #[default]
    Fresh,
    /// Prepared, nothing run yet. Next: whatever `resume` leads to, or Ready for another call.
    Ready,
    /// Suspended in a call of an imported function. Next: whatever `resume` leads to, Finished.
    HostCall {
        call: HostCall,
        /// What is called, as it was looked up when the call came.
        import: FunctionImport,
        /// Whether it may be resumed: the results are in place, or there are none.
        answered: bool,
    },
    /// Suspended at the end of a quantum, or while the guest waits. Next: whatever `resume` leads to.
    Preempted {
        /// In the alarm handler; otherwise after a builtin.
        in_handler: bool,
    },
    /// It returned. Next: Ready.
    Returned,
    /// It trapped. Next: Ready.
    Trapped,
    /// The host ended it in good order. Next: Ready.
    Finished,
    /// The end.
    Killed,
}

/// What `memory.atomic.wait` says when its time is over.
const TIMED_OUT: i64 = 2;

/// A call and its values.
#[derive(Debug, Default)]
pub(super) struct Call {
    state: State,
    /// Arguments, then results. At a fixed address while the call lasts.
    slots: Vec<Slot>,
    /// Its function's type: instance, and the type's index in the instance's module.
    ty: (u32, u32),
    /// How many results it has.
    results: u32,
}

/// A function without parameters, found once for all sandboxes of an artifact's templates: calling it reads nothing of the artifact's description.
#[derive(Clone, Debug)]
pub struct Callee {
    artifact: Artifact,
    instance: u32,
    code: usize,
    entry: Entry,
    results: u32,
    /// Whether its code reaches memory through the segment register.
    uses_segment: bool,
}

impl Callee {
    /// That function of a store, which has to be without parameters.
    pub(crate) fn new(store: &Store, function: FunctionHandle) -> Result<Callee, CallError> {
        if function.sandbox != store.id() {
            return Err(CallError::Foreign);
        }
        let (instance, entry, ty) = callable(store, function)?;
        if !ty.params.is_empty() {
            return Err(CallError::Types { wanted: ty.clone() });
        }
        Ok(Callee {
            artifact: instance.artifact().clone(),
            instance: function.instance,
            code: function.code as usize,
            entry,
            results: ty.results.len() as u32,
            uses_segment: instance.module().uses_segment,
        })
    }
}

/// What calling a function of a store needs: its instance, how to enter it, its type.
fn callable(store: &Store, function: FunctionHandle) -> Result<(&Instance, Entry, &FuncType), CallError> {
    let instance = &store.instances[function.instance as usize];
    let entry = instance.module().entry(function.type_id);
    let entry = entry.ok_or_else(|| CallError::NoEntry(store.function_type(function)))?;
    Ok((instance, entry, &instance.descriptor().types[entry.ty as usize].ty))
}

impl Call {
    /// Whether it is not in progress and another may begin.
    pub(super) fn is_idle(&self) -> bool {
        matches!(self.state, State::Fresh | State::Ready | State::Returned | State::Trapped | State::Finished)
    }

    /// Whether everything that it did is known to have ended in good order.
    pub(super) fn is_clean(&self) -> bool {
        matches!(self.state, State::Fresh | State::Ready | State::Returned | State::Finished)
    }

    /// Whether everything that it did is in good order, and stays so if it never goes on: also in a host call.
    pub(super) fn is_sound(&self) -> bool {
        self.is_clean() || matches!(self.state, State::HostCall { .. })
    }

    /// Whether another call on the same store may go on before this one does; see `others.rs`.
    fn may_be_left(&self) -> bool {
        !matches!(self.state, State::Preempted { .. } | State::Killed)
    }

    /// Calls `each` with all words of its stack that may lead to exceptions. In a host call, all registers that the guest may need again are among
    /// them. A call that trapped with an exception has it in its first slot.
    pub(super) fn words(&self, stack: &Stack, context: &Context, each: &mut dyn FnMut(u64)) {
        match self.state {
            State::HostCall { .. } | State::Preempted { .. } | State::Killed => words(stack, context.switch.guest_sp, each),
            State::Trapped => self.slots.first().into_iter().for_each(|slot| each(slot.u64())),
            // Nothing is on the stack yet, or any more.
            State::Fresh | State::Ready | State::Returned | State::Finished => {}
        }
    }

    fn name(&self) -> &'static str {
        match self.state {
            State::Fresh => "new",
            State::Ready => "ready to run",
            State::HostCall { .. } => "suspended in a host call",
            State::Preempted { .. } => "preempted",
            State::Returned => "done",
            State::Trapped => "trapped",
            State::Finished => "finished",
            State::Killed => "killed",
        }
    }
}

/// Calls `each` with all words from `sp` on.
fn words(stack: &Stack, sp: usize, each: &mut dyn FnMut(u64)) {
    let addresses = (sp..stack.high()).step_by(size_of::<usize>());
    addresses.filter_map(|address| stack.read_word(address)).for_each(|word| each(word as u64));
}

/// A stack and the call on it: the one of its store's fibers that is selected, so that it may run.
#[derive(Debug)]
pub(crate) struct Fiber {
    pub(crate) record: RecordBox,
    pub(crate) stack: Stack,
    pub(super) call: Call,
    /// Which of its store's fibers it is: the first has the number 0.
    pub(crate) number: u64,
}

impl Fiber {
    /// The first of a store, without a call, on that stack.
    pub(crate) fn new(stack: Stack) -> Fiber {
        let record = RecordBox::new(Context::new(stack.guard_low(), stack.low(), stack.high()));
        Fiber { record, stack, call: Call::default(), number: 0 }
    }

    /// Says where its guest's memories lie: before it runs, and whenever that changed. The list stays where it is until the next time.
    pub(crate) fn set_ranges(&mut self, ranges: &[AddressRange]) {
        self.record.set_ranges(ranges);
    }

    /// Whether no call is in progress and another may begin.
    pub(crate) fn is_idle(&self) -> bool {
        self.call.is_idle()
    }

    /// Whether everything that the call did is known to have ended in good order.
    pub(crate) fn is_clean(&self) -> bool {
        self.call.is_clean()
    }

    /// Whether everything that the call did is in good order, and stays so if it never goes on.
    pub(crate) fn is_sound(&self) -> bool {
        self.call.is_sound()
    }

    /// Whether another fiber of the store may run before this one goes on.
    pub(crate) fn may_be_left(&self) -> bool {
        self.call.may_be_left()
    }

    /// As if there had been no call.
    pub(crate) fn reset(&mut self) {
        self.call.state = State::Fresh;
    }

    /// Where the call's values lie.
    pub(crate) fn slots_address(&self) -> usize {
        self.call.slots.as_ptr().addr()
    }

    /// Where its call stands, in words.
    pub(crate) fn state(&self) -> &'static str {
        self.call.name()
    }

    /// Makes `function` with these arguments the next thing that [`resume`](Self::resume) runs.
    pub(crate) fn prepare(&mut self, store: &Store, function: FunctionHandle, args: &[Value]) -> Result<(), CallError> {
        if !self.is_idle() {
            return Err(CallError::Busy { state: self.state() });
        }
        if function.sandbox != store.id() || args.iter().any(|value| value.is_foreign(store.id())) {
            return Err(CallError::Foreign);
        }
        let (instance, entry, ty) = callable(store, function)?;
        if !are_of(args, &ty.params, instance.module()) {
            return Err(CallError::Types { wanted: ty.clone() });
        }
        let results = ty.results.len() as u32;
        self.call.slots.clear();
        self.call.slots.extend(args.iter().map(|value| value.to_slot()));
        self.ready(store, function.instance, function.code as usize, entry, results, instance.module().uses_segment);
        Ok(())
    }

    /// As [`prepare`](Self::prepare), without looking anything up. The store is one of a template.
    pub(crate) fn prepare_callee(&mut self, store: &Store, callee: &Callee) -> Result<(), CallError> {
        if !self.is_idle() {
            return Err(CallError::Busy { state: self.state() });
        }
        // This comparison is what makes it safe to call an address that was found in another sandbox.
        // A store of a template has the instances of its artifact's plan and room for no other: the callee's code belongs to that instance here, too.
        let instance = store.instances.get(callee.instance as usize);
        if !instance.is_some_and(|instance| instance.artifact().is(&callee.artifact)) {
            return Err(CallError::Foreign);
        }
        self.call.slots.clear();
        self.ready(store, callee.instance, callee.code, callee.entry, callee.results, callee.uses_segment);
        Ok(())
    }

    /// Makes the record ready for a call of `code` in an instance, through an entry of its module; the arguments stand in the call's slots.
    fn ready(&mut self, store: &Store, instance: u32, code: usize, entry: Entry, results: u32, uses_segment: bool) {
        // At least one: an exception that is not caught comes back there.
        let slots = self.call.slots.len().max(results as usize).max(1);
        self.call.slots.resize(slots, Slot::default());
        self.call.ty = (instance, entry.ty);
        self.call.results = results;
        self.call.state = State::Ready;
        if uses_segment {
            self.select_segment(store, instance);
        }
        let vmctx = store.instances[instance as usize].vmctx.base();
        let switch = &mut self.record.get_mut().switch;
        switch.entry = entry.address;
        switch.entry_vmctx = vmctx;
        switch.entry_code = code;
        switch.entry_slots = self.call.slots.as_mut_ptr();
        // SAFETY: This fiber's stack; no call is in progress, so nothing is live on it.
        self.record.get_mut().switch.guest_sp = unsafe { sys::prepare_start(self.record.as_ptr().cast(), self.stack.high()) };
    }

    /// Lets the guest run until it returns, traps, calls the host or is preempted. `others` calls what it is given with all words of the store's other
    /// stacks.
    ///
    /// # Safety
    /// `store` is the one with which the call was prepared, and its instances' vmctx lead to this fiber's record.
    ///
    /// # Panics
    /// When no call is prepared or in progress, a host call that has results was not answered, or this thread has no
    /// [`WorkerThread`](crate::WorkerThread).
    pub(crate) unsafe fn resume(&mut self, store: &mut Store, others: impl Fn(&mut dyn FnMut(u64))) -> Event {
        match self.call.state {
            // A guest may spend nearly all of its time in host calls, where ticks are only noted.
            State::HostCall { answered: true, .. } if preempt::take_tick() => return Event::Preempted,
            State::Ready | State::Preempted { .. } | State::HostCall { answered: true, .. } => {}
            State::HostCall { .. } => panic!("a host call was resumed without its results"),
            _ => panic!("no call to resume: the sandbox is {}", self.state()),
        }
        worker::with_worker(|worker| {
            if self.call.state == (State::Preempted { in_handler: true }) {
                // SAFETY: It was suspended by the alarm handler, which left its frame's address.
                unsafe { preempt::before_resumption(self.record.get().interrupted, worker.signal_stack(), worker.mask()) };
                if preempt::ends_resumption() {
                    return Event::Preempted;
                }
            }
            loop {
                // SAFETY: The state says that the record leads to a prepared call or a suspension. Everything it uses belongs to the fiber and its
                // store, which is this one by the caller's promise, or is kept alive by that; `&mut` of both excludes other borrows. The thread is
                // a worker's; it runs no guest, since this is no handler and guests call no Rust code but those.
                let event = unsafe { self.record.switch() };
                match event {
                    EVENT_RETURNED => {
                        self.call.state = State::Returned;
                        return Event::Returned;
                    }
                    EVENT_PREEMPTED => {
                        preempt::after_suspension();
                        self.call.state = State::Preempted { in_handler: true };
                        return Event::Preempted;
                    }
                    EVENT_HOST_CALL => {
                        if let Some(event) = self.on_host_call(store, &others) {
                            return event;
                        }
                        if preempt::take_tick() {
                            self.call.state = State::Preempted { in_handler: false };
                            return Event::Preempted;
                        }
                    }
                    other => {
                        debug_assert_eq!(other, EVENT_TRAPPED);
                        sys::clear_vector_uppers();
                        return self.trapped(store);
                    }
                }
            }
        })
    }

    /// Serves a builtin, or says what the worker has to do.
    fn on_host_call(&mut self, store: &mut Store, others: &impl Fn(&mut dyn FnMut(u64))) -> Option<Event> {
        let (call, caller) = (self.record.get().switch.call, self.record.get().switch.caller);
        // SAFETY: The stub wrote `caller`: the vmctx that a thunk was called with.
        let instance = InstanceId(unsafe { Vmctx::instance_index(caller) });
        if call & builtin::FLAG == 0 {
            let import = store.instances.get(instance.index()).and_then(|instance| instance.function_import(call));
            let Some(import) = import.filter(|import| self.are_guest_slots(import.slots())) else {
                return Some(self.trapped_in_host_call(store, TrapCode::Internal));
            };
            let call = HostCall { instance, import: call };
            self.call.state = State::HostCall { call, import, answered: import.results == 0 };
            return Some(Event::HostCall(call));
        }
        let count =
            store::builtin_slots(call).filter(|&count| self.are_guest_slots(count) && instance.index() < store.instances.len());
        let Some(count) = count else {
            return Some(self.trapped_in_host_call(store, TrapCode::Internal));
        };
        let mut slots = [Slot::default(); builtin::SLOTS_MAX];
        slots[..count].copy_from_slice(self.guest_slots(count));
        if call == builtin::MEMORY_WAIT {
            return Some(self.waits(slots[0]));
        }
        match self.builtin(store, others, instance, call, &slots[..count]) {
            Ok(result) => {
                if let Some(result) = result {
                    self.guest_slots_mut(1)[0] = result;
                }
                None
            }
            Err(code) => Some(self.trapped_in_host_call(store, code)),
        }
    }

    /// Serves a builtin: those that are about this call here, the others where what they change is.
    fn builtin(
        &mut self,
        store: &mut Store,
        others: &impl Fn(&mut dyn FnMut(u64)),
        instance: InstanceId,
        call: u32,
        slots: &[Slot],
    ) -> Outcome {
        match call {
            builtin::EXCEPTION_ROOM => store.exception_room(slots[0].u64(), |each| {
                words(&self.stack, self.record.get().switch.guest_sp, each);
                others(each);
            }),
            builtin::SEGMENT if (slots[0].u64() as u32 as usize) < store.instances.len() => {
                self.select_segment(store, slots[0].u64() as u32);
                Ok(None)
            }
            _ => store.builtin(instance, call, slots),
        }
    }

    /// Makes the segment register lead to the first memory of an instance when the guest goes on, if its code reaches it so.
    fn select_segment(&mut self, store: &Store, instance: u32) {
        if let Some(base) = store.segment_base(instance) {
            self.record.get_mut().segment = base;
        }
    }

    /// The guest waits. Nothing can happen meanwhile, so the answer is known now.
    fn waits(&mut self, timeout: Slot) -> Event {
        self.guest_slots_mut(1)[0] = Value::I64(TIMED_OUT).to_slot();
        self.call.state = State::Preempted { in_handler: false };
        let nanoseconds = timeout.u64();
        Event::Waits { time: (nanoseconds.cast_signed() >= 0).then(|| Duration::from_nanos(nanoseconds)) }
    }

    /// Whether the slots of the host call lie on the guest's stack, as they must.
    fn are_guest_slots(&self, count: usize) -> bool {
        if count == 0 {
            return true;
        }
        let start = self.record.get().switch.slots as usize;
        let end = start.checked_add(count * size_of::<Slot>());
        start >= self.stack.low() && end.is_some_and(|end| end <= self.stack.high()) && start.is_multiple_of(align_of::<Slot>())
    }

    /// The slots of the host call, which [`are_guest_slots`](Self::are_guest_slots) has checked.
    fn guest_slots(&self, count: usize) -> &[Slot] {
        if count == 0 {
            return &[];
        }
        // SAFETY: On the guest's stack and aligned, as was checked when the call came; the guest is suspended while the sandbox is borrowed.
        unsafe { std::slice::from_raw_parts(self.record.get().switch.slots, count) }
    }

    fn guest_slots_mut(&mut self, count: usize) -> &mut [Slot] {
        if count == 0 {
            return &mut [];
        }
        // SAFETY: As for `guest_slots`; `&mut self` makes this the only reference.
        unsafe { std::slice::from_raw_parts_mut(self.record.get().switch.slots, count) }
    }

    /// A trap in a builtin: as if the guest had trapped where it called.
    fn trapped_in_host_call(&mut self, store: &Store, code: TrapCode) -> Event {
        let registers = self.suspended_registers().unwrap_or_default();
        let record = self.record.get_mut();
        record.trap = code.number();
        record.registers = registers;
        record.after_call = true;
        self.trapped(store)
    }

    /// Ends the call as the record says.
    fn trapped(&mut self, store: &Store) -> Event {
        self.call.state = State::Trapped;
        let (trap, registers) = (self.record.get().trap, self.record.get().registers);
        let number = match trap {
            0 => backtrace::trap_row(store, registers.pc()).map_or(0, |row| row.trap),
            number => number,
        };
        let code = TrapCode::from_number(number).unwrap_or(TrapCode::Internal);
        let location =
            self.thrown_at(store).map_or_else(|| backtrace::innermost(&self.place(store)), |(_, location)| Some(location));
        Event::Trapped(Trap { code, location })
    }

    /// Where the exception was thrown that was not caught, if that was the trap: the entry's first slot holds it.
    fn thrown_at<'a>(&self, store: &'a Store) -> Option<(&'a Loaded, WasmLocation)> {
        if self.call.state != State::Trapped || self.record.get().trap != TrapCode::UncaughtException.number() {
            return None;
        }
        let thrown = store.exceptions.as_ref()?.thrown(self.call.slots.first()?.u64())?;
        let instance = store.instances.get(thrown.instance as usize)?;
        let (artifact, module, offset) = (instance.artifact().loaded(), instance.module_index(), thrown.offset);
        let function = artifact.function_of_wasm_offset(module, offset)?;
        Some((artifact, WasmLocation { module, function, offset }))
    }

    /// Registers of a guest that a host call suspended: as they are on its return.
    fn suspended_registers(&self) -> Option<Registers> {
        Registers::from_suspended(self.record.get().switch.guest_sp, |address| self.stack.read_word(address))
    }

    /// Where the guest is, if it is anywhere: its registers, and whether `pc` is a return address.
    fn position(&self) -> Option<(Registers, bool)> {
        match self.call.state {
            State::HostCall { .. } | State::Preempted { in_handler: false } => Some((self.suspended_registers()?, true)),
            State::Preempted { in_handler: true } => {
                // SAFETY: The kernel's frame on the stack of the guest, which is suspended below it.
                Some((unsafe { Registers::from_context(self.record.get().interrupted) }, false))
            }
            State::Trapped => Some((self.record.get().registers, self.record.get().after_call)),
            State::Fresh | State::Ready | State::Returned | State::Finished | State::Killed => None,
        }
    }

    /// Where the guest is, for a backtrace.
    fn place<'a>(&'a self, store: &'a Store) -> Place<'a> {
        Place { store, stack: &self.stack, position: self.position() }
    }

    /// How execution came to where the guest is suspended or has trapped, innermost first. Empty before a call and after it returned. Of an
    /// exception that was not caught only where it was thrown: the functions that it left are gone.
    pub(crate) fn backtrace(&self, store: &Store) -> Backtrace {
        match self.thrown_at(store) {
            Some((artifact, location)) => {
                Backtrace { frames: vec![backtrace::frame(artifact, location, false)], truncated: false }
            }
            None => backtrace::backtrace(&self.place(store)),
        }
    }

    /// The places in that backtrace.
    pub(crate) fn locations(&self, store: &Store) -> Vec<WasmLocation> {
        match self.thrown_at(store) {
            Some((_, location)) => vec![location],
            None => backtrace::locations(&self.place(store)).0.into_iter().map(|(_, location, _)| location).collect(),
        }
    }

    /// Results of the call that has returned; empty otherwise.
    pub(crate) fn results(&self, store: &Store) -> Vec<Value> {
        if self.call.state != State::Returned {
            return Vec::new();
        }
        let (instance, ty) = self.call.ty;
        let types = store.instances[instance as usize].descriptor().types[ty as usize].ty.results.iter();
        types.zip(&self.call.slots).map(|(&ty, &slot)| store.value(ty, slot)).collect()
    }

    /// Result number `index` of the call that has returned, as it stands.
    pub(crate) fn result(&self, index: usize) -> Option<Slot> {
        let known = self.call.state == State::Returned && index < self.call.results as usize;
        known.then(|| self.call.slots[index])
    }

    /// The call of an imported function in which the guest is suspended.
    pub(crate) fn host_call(&self) -> Option<HostCall> {
        match self.call.state {
            State::HostCall { call, .. } => Some(call),
            _ => None,
        }
    }

    /// The type of the imported function that the guest is calling.
    pub(crate) fn host_call_type<'a>(&self, store: &'a Store) -> Option<&'a FuncType> {
        let call = self.host_call()?;
        store.instances[call.instance.index()].import_type(call.import)
    }

    /// Arguments of the host call in which the guest is suspended, typed by the imported function's parameters; empty otherwise.
    #[inline]
    pub(crate) fn host_args(&self) -> &[Slot] {
        match self.call.state {
            // The results stand where the arguments stood.
            State::HostCall { answered: true, import, .. } if import.results > 0 => &[],
            State::HostCall { import, .. } => self.guest_slots(import.params as usize),
            _ => &[],
        }
    }

    /// As [`host_args`](Self::host_args), as values.
    pub(crate) fn host_values(&self, store: &Store) -> Vec<Value> {
        let Some(ty) = self.host_call_type(store) else { return Vec::new() };
        self.host_args().iter().zip(&ty.params).map(|(&slot, &ty)| store.value(ty, slot)).collect()
    }

    /// Answers the host call in which the guest is suspended; then resume. Where there are no results, that may be done at once.
    ///
    /// # Errors
    /// When there is no such call, or the values are not of the imported function's result types.
    pub(crate) fn host_results(&mut self, store: &Store, results: &[Value]) -> Result<(), CallError> {
        let State::HostCall { call, import, .. } = self.call.state else {
            return Err(CallError::Busy { state: self.state() });
        };
        if results.iter().any(|value| value.is_foreign(store.id())) {
            return Err(CallError::Foreign);
        }
        let instance = &store.instances[call.instance.index()];
        let fits = match (results, import.result) {
            ([value], Some(result)) => value.matches(result),
            _ => {
                let ty = &instance.descriptor().types[import.ty as usize].ty;
                are_of(results, &ty.results, instance.module())
            }
        };
        if !fits {
            return Err(CallError::Types { wanted: wanted(store, call, import) });
        }
        for (slot, value) in self.guest_slots_mut(results.len()).iter_mut().zip(results) {
            *slot = value.to_slot();
        }
        self.call.state = State::HostCall { call, import, answered: true };
        Ok(())
    }

    /// As [`host_results`](Self::host_results) for at most one result, which is a number, by its bits: nothing is looked up.
    ///
    /// # Errors
    /// When there is no such call, or it has other results: a reference that the host made up would lead anywhere.
    #[inline]
    pub(crate) fn host_number(&mut self, store: &Store, bits: u64) -> Result<(), CallError> {
        let State::HostCall { call, import, .. } = self.call.state else {
            return Err(CallError::Busy { state: self.state() });
        };
        let bits = match import.result {
            Some(ValType::I32 | ValType::F32) => bits & u64::from(u32::MAX),
            Some(ValType::I64 | ValType::F64) => bits,
            _ => return if import.results == 0 { Ok(()) } else { Err(CallError::Types { wanted: wanted(store, call, import) }) },
        };
        self.guest_slots_mut(1)[0] = Slot::from_bits(bits.into());
        self.call.state = State::HostCall { call, import, answered: true };
        Ok(())
    }

    /// Ends the call in good order at the host call in which the guest is suspended, because the guest asked to exit: the sandbox takes other
    /// calls, and a pool takes it back. Anywhere else a call in progress is [killed](Self::kill).
    pub(crate) fn finish(&mut self) {
        match self.call.state {
            State::HostCall { .. } => self.call.state = State::Finished,
            State::Preempted { .. } => self.kill(),
            _ => {}
        }
    }

    /// Ends whatever the fiber does. Neither it nor another one of the store ever runs again.
    pub(crate) fn kill(&mut self) {
        self.call.state = State::Killed;
    }
}

/// The type of an imported function that an instance is calling.
#[cold]
fn wanted(store: &Store, call: HostCall, import: FunctionImport) -> FuncType {
    store.instances[call.instance.index()].descriptor().types[import.ty as usize].ty.clone()
}

/// Whether these values, given by the host, are of these types of a module.
fn are_of(values: &[Value], types: &[ValType], module: &Module) -> bool {
    values.len() == types.len() && values.iter().zip(types).all(|(value, &ty)| value.matches(module.canonical(ty)))
}
