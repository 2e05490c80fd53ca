//! What is asynchronous in a component: built-in functions, streams and futures.

use std::collections::BTreeSet;

use awsm_abi::component as abi;
use wasmtime_environ::component::{
    Component, InterfaceType, OptionsIndex, RuntimeComponentInstanceIndex, RuntimeMemoryIndex, RuntimeReallocIndex, Trampoline,
    TypeComponentLocalErrorContextTableIndex, TypeFuncIndex, TypeFutureTableIndex, TypeResult, TypeStreamTableIndex,
};

use super::super::glue::{Builtin, Concurrency, Copied, End, EndParam, EndResult, Ends, Form, Glue, Signature};
use super::copiers::Side;
use super::options::{encoding, realloc, return_options};
use super::ways::Table;
use super::{Builder, unsupported};
use crate::error::CompileError;

/// Types of entries of handle tables; `tasks.wat` and `streams.wat` have them, too.
const READABLE_STREAM: u32 = 0x8100_0000;
const WRITABLE_STREAM: u32 = 0x8200_0000;
const READABLE_FUTURE: u32 = 0x8300_0000;
const WRITABLE_FUTURE: u32 = 0x8400_0000;
const ERROR_CONTEXT: u32 = 0x8000_0003;

/// How values are copied between a memory and the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Outside {
    /// As their bytes, which hold no strings, lists or handles.
    Bytes(RuntimeMemoryIndex),
    /// As what they are to that instance.
    Values {
        memory: RuntimeMemoryIndex,
        realloc: Option<RuntimeReallocIndex>,
        instance: RuntimeComponentInstanceIndex,
        /// How strings are encoded.
        encoding: u32,
    },
}

/// How many functions each of them has: one that begins, and one that goes on.
const ENTRIES_PER_OUTSIDE: u32 = 2;

/// The options of a built-in function.
pub(super) const fn options(trampoline: &Trampoline) -> Option<OptionsIndex> {
    match trampoline {
        Trampoline::WaitableSetWait { options, .. }
        | Trampoline::WaitableSetPoll { options, .. }
        | Trampoline::StreamRead { options, .. }
        | Trampoline::StreamWrite { options, .. }
        | Trampoline::FutureRead { options, .. }
        | Trampoline::FutureWrite { options, .. }
        | Trampoline::ErrorContextNew { options, .. }
        | Trampoline::ErrorContextDebugMessage { options, .. } => Some(*options),
        _ => None,
    }
}

/// The instance that waits inside of its call of a built-in function, if that waits.
fn waits(trampoline: &Trampoline, component: &Component) -> Option<RuntimeComponentInstanceIndex> {
    let (instance, is_async) = match trampoline {
        Trampoline::StreamRead { instance, options, .. }
        | Trampoline::StreamWrite { instance, options, .. }
        | Trampoline::FutureRead { instance, options, .. }
        | Trampoline::FutureWrite { instance, options, .. } => (instance, component.options[*options].async_),
        Trampoline::SubtaskCancel { instance, async_ } => (instance, *async_),
        Trampoline::WaitableSetWait { instance, .. } | Trampoline::ThreadYield { instance, .. } => (instance, false),
        _ => return None,
    };
    (!is_async).then_some(*instance)
}

impl Builder<'_> {
    /// What the state has to know of streams, futures and error contexts.
    pub(super) fn concurrency(&self) -> Concurrency {
        let streams = (0..self.component.num_stream_tables as u32).map(TypeStreamTableIndex::from_u32).map(|index| {
            let table = &self.types[index];
            (table.instance.as_u32(), READABLE_STREAM | table.ty.as_u32())
        });
        let futures = (0..self.component.num_future_tables as u32).map(TypeFutureTableIndex::from_u32).map(|index| {
            let table = &self.types[index];
            (table.instance.as_u32(), READABLE_FUTURE | table.ty.as_u32())
        });
        let errors = (0..self.component.num_error_context_tables as u32)
            .map(TypeComponentLocalErrorContextTableIndex::from_u32)
            .map(|index| (self.types[index].instance.as_u32(), ERROR_CONTEXT));
        Concurrency {
            streams: streams.collect(),
            futures: futures.collect(),
            errors: errors.collect(),
            has_operations: false,
            may_wait: BTreeSet::new(),
            entries: self.copy_entries() + self.copiers.entries(),
        }
    }

    /// The first of so many numbers of functions that are called by number.
    pub(super) fn new_entries(&mut self, count: u32) -> u32 {
        let Some(concurrency) = &mut self.state.concurrency else { return 0 };
        concurrency.entries += count;
        concurrency.entries - count
    }

    /// Code of that instance may wait inside of a call.
    pub(super) fn may_wait(&mut self, instance: u32) {
        if let Some(concurrency) = &mut self.state.concurrency {
            concurrency.may_wait.insert(instance);
        }
    }

    /// How many functions copy numbers from one memory to another: they come first, and behind them those that copy other values.
    pub(super) fn copy_entries(&self) -> u32 {
        self.component.num_runtime_memories.pow(2)
    }

    /// The wrapper of a built-in function of the asynchronous component model.
    pub(super) fn builtin(&mut self, trampoline: &Trampoline, ty: &Signature, glue: &mut Glue) -> Result<String, CompileError> {
        if let Some(instance) = waits(trampoline, self.component) {
            self.may_wait(instance.as_u32());
        }
        let simple = |name| Builtin { name, option: None, option_last: false, leaves: true, takes_instance: true };
        let with = |name, option| Builtin { option: Some(option), ..simple(name) };
        let (builtin, instance) = match trampoline {
            Trampoline::TaskReturn { instance, results, options } => {
                let options = &self.component.options[*options];
                let memory = options.memory();
                let number = return_options(memory.map(|index| index.as_u32()), encoding(options.string_encoding));
                let mask = if memory.is_some() { u32::MAX } else { 3 };
                return Ok(glue.task_return(instance.as_u32(), results.as_u32(), number, mask, ty));
            }
            Trampoline::WaitableSetWait { instance, options } => return Ok(self.event("set wait", *instance, *options, glue)),
            Trampoline::WaitableSetPoll { instance, options } => return Ok(self.event("set poll", *instance, *options, glue)),
            Trampoline::StreamNew { instance, ty } => {
                let ty = self.types[*ty].ty.as_u32();
                return Ok(self.pair(*instance, READABLE_STREAM | ty, WRITABLE_STREAM | ty, glue));
            }
            Trampoline::FutureNew { instance, ty } => {
                let ty = self.types[*ty].ty.as_u32();
                return Ok(self.pair(*instance, READABLE_FUTURE | ty, WRITABLE_FUTURE | ty, glue));
            }
            Trampoline::StreamRead { instance, ty, options } => {
                return self.copy(self.stream(*instance, *ty, READABLE_STREAM), Table::Stream(*ty), *options, glue);
            }
            Trampoline::StreamWrite { instance, ty, options } => {
                return self.copy(self.stream(*instance, *ty, WRITABLE_STREAM), Table::Stream(*ty), *options, glue);
            }
            Trampoline::FutureRead { instance, ty, options } => {
                return self.copy(self.future(*instance, *ty, READABLE_FUTURE), Table::Future(*ty), *options, glue);
            }
            Trampoline::FutureWrite { instance, ty, options } => {
                return self.copy(self.future(*instance, *ty, WRITABLE_FUTURE), Table::Future(*ty), *options, glue);
            }
            Trampoline::StreamCancelRead { instance, ty, async_ } => {
                return Ok(glue.copy_cancel(&self.stream(*instance, *ty, READABLE_STREAM).0, *async_));
            }
            Trampoline::StreamCancelWrite { instance, ty, async_ } => {
                return Ok(glue.copy_cancel(&self.stream(*instance, *ty, WRITABLE_STREAM).0, *async_));
            }
            Trampoline::FutureCancelRead { instance, ty, async_ } => {
                return Ok(glue.copy_cancel(&self.future(*instance, *ty, READABLE_FUTURE).0, *async_));
            }
            Trampoline::FutureCancelWrite { instance, ty, async_ } => {
                return Ok(glue.copy_cancel(&self.future(*instance, *ty, WRITABLE_FUTURE).0, *async_));
            }
            Trampoline::StreamDropReadable { instance, ty } => {
                return Ok(glue.end_drop(&self.stream(*instance, *ty, READABLE_STREAM).0));
            }
            Trampoline::StreamDropWritable { instance, ty } => {
                return Ok(glue.end_drop(&self.stream(*instance, *ty, WRITABLE_STREAM).0));
            }
            Trampoline::FutureDropReadable { instance, ty } => {
                return Ok(glue.end_drop(&self.future(*instance, *ty, READABLE_FUTURE).0));
            }
            Trampoline::FutureDropWritable { instance, ty } => {
                return Ok(glue.end_drop(&self.future(*instance, *ty, WRITABLE_FUTURE).0));
            }
            Trampoline::ErrorContextNew { instance, .. } => {
                return Ok(glue.error_new(instance.as_u32(), self.record(*instance)));
            }
            Trampoline::ErrorContextDebugMessage { instance, options, .. } => {
                let realloc = realloc(&self.component.options[*options]);
                let realloc = realloc.and_then(|index| self.reallocs.get(&index));
                return Ok(glue.error_message(instance.as_u32(), self.record(*instance), realloc));
            }
            Trampoline::BackpressureInc { instance } => (Builtin { leaves: false, ..simple("backpressure inc") }, instance),
            Trampoline::BackpressureDec { instance } => (Builtin { leaves: false, ..simple("backpressure dec") }, instance),
            Trampoline::TaskCancel { instance } => (Builtin { takes_instance: false, ..simple("task cancel") }, instance),
            Trampoline::WaitableSetNew { instance } => (simple("set new"), instance),
            Trampoline::WaitableSetDrop { instance } => (simple("set drop"), instance),
            Trampoline::WaitableJoin { instance } => (simple("join"), instance),
            Trampoline::SubtaskDrop { instance } => (simple("subtask drop"), instance),
            Trampoline::SubtaskCancel { instance, async_ } => (with("subtask cancel", *async_), instance),
            Trampoline::ErrorContextDrop { instance, .. } => (simple("error drop"), instance),
            Trampoline::ThreadYield { instance, cancellable } => {
                (Builtin { takes_instance: false, ..with("yield", *cancellable) }, instance)
            }
            Trampoline::ThreadIndex { instance }
            | Trampoline::ThreadNewIndirect { instance, .. }
            | Trampoline::ThreadResumeLater { instance }
            | Trampoline::ThreadSuspend { instance, .. }
            | Trampoline::ThreadSuspendThenResume { instance, .. }
            | Trampoline::ThreadYieldThenResume { instance, .. }
            | Trampoline::ThreadSuspendThenPromote { instance, .. }
            | Trampoline::ThreadYieldThenPromote { instance, .. } => return Ok(self.not_offered(trampoline, *instance, ty, glue)),
            other => return Err(unsupported(format!("`{}`", other.symbol_name()))),
        };
        Ok(glue.builtin(&builtin, instance.as_u32(), self.record(*instance), ty))
    }

    /// A built-in function whose call traps.
    fn not_offered(
        &mut self,
        trampoline: &Trampoline,
        instance: RuntimeComponentInstanceIndex,
        ty: &Signature,
        glue: &mut Glue,
    ) -> String {
        let name = trampoline.symbol_name();
        self.warnings.insert(format!("`{name}` of the asynchronous component model is not supported: a call of it traps"));
        glue.unsupported(instance.as_u32(), ty)
    }

    /// Address of an instance's record in the state.
    pub(super) fn record(&self, instance: RuntimeComponentInstanceIndex) -> u32 {
        self.state.instance(instance.as_u32())
    }

    fn event(
        &self,
        name: &'static str,
        instance: RuntimeComponentInstanceIndex,
        options: OptionsIndex,
        glue: &mut Glue,
    ) -> String {
        glue.event(name, instance.as_u32(), self.record(instance), self.component.options[options].cancellable)
    }

    fn pair(&self, instance: RuntimeComponentInstanceIndex, readable: u32, writable: u32, glue: &mut Glue) -> String {
        glue.pair(instance.as_u32(), self.record(instance), readable, writable)
    }

    fn end(&self, instance: RuntimeComponentInstanceIndex, entry: u32, is_future: bool) -> End {
        End { instance: instance.as_u32(), record: self.record(instance), entry, is_future }
    }

    /// An end of streams of that type, and what they carry.
    fn stream(
        &self,
        instance: RuntimeComponentInstanceIndex,
        ty: TypeStreamTableIndex,
        kind: u32,
    ) -> (End, Option<InterfaceType>) {
        let ty = self.types[ty].ty;
        (self.end(instance, kind | ty.as_u32(), false), self.types[ty].payload)
    }

    /// The same of futures.
    fn future(
        &self,
        instance: RuntimeComponentInstanceIndex,
        ty: TypeFutureTableIndex,
        kind: u32,
    ) -> (End, Option<InterfaceType>) {
        let ty = self.types[ty].ty;
        (self.end(instance, kind | ty.as_u32(), true), self.types[ty].payload)
    }

    /// Reads or writes.
    fn copy(
        &mut self,
        (end, payload): (End, Option<InterfaceType>),
        table: Table,
        options: OptionsIndex,
        glue: &mut Glue,
    ) -> Result<String, CompileError> {
        let options = &self.component.options[options];
        let is_writer = end.entry >> 24 & 1 == 0;
        let memory = options.memory();
        let (size, align, form) = match payload {
            None => (0, 1, Form::Plain),
            Some(ty) => {
                let abi = self.types.canonical_abi(&ty);
                (abi.size32, abi.align32, if is_number(&ty) { Form::Plain } else { Form::Checked })
            }
        };
        let (mut entry, mut outside) = (0, 0);
        if let Some(index) = memory.filter(|_| size > 0) {
            entry = match form {
                Form::Plain => index.as_u32() * if is_writer { self.component.num_runtime_memories } else { 1 },
                Form::Checked => {
                    let number = Side::of(table, is_writer, options).and_then(|side| self.copiers.number(&side, is_writer));
                    let number = number.ok_or_else(|| unsupported("an end that nothing copies (a bug)"))?;
                    number + if is_writer { 0 } else { self.copy_entries() }
                }
            };
            let is_plain = payload.is_none_or(|ty| self.is_within(&ty));
            outside = self.outside(if is_plain {
                Outside::Bytes(index)
            } else {
                Outside::Values {
                    memory: index,
                    realloc: realloc(options),
                    instance: options.instance,
                    encoding: encoding(options.string_encoding),
                }
            });
        }
        Ok(glue.copy(&end, &Copied { size, align, form, entry, outside, is_async: options.async_ }))
    }

    /// The number of the first of the functions that copy so.
    fn outside(&mut self, outside: Outside) -> u32 {
        if let Some(entry) = self.outside.get(&outside) {
            return *entry;
        }
        let entry = self.new_entries(ENTRIES_PER_OUTSIDE);
        self.outside.insert(outside, entry);
        entry
    }

    /// Whether values of a type lie within their own bytes: they have no strings, lists or handles.
    fn is_within(&self, ty: &InterfaceType) -> bool {
        match *ty {
            InterfaceType::Bool | InterfaceType::Char | InterfaceType::Flags(_) | InterfaceType::Enum(_) => true,
            InterfaceType::Record(index) => self.types[index].fields.iter().all(|field| self.is_within(&field.ty)),
            InterfaceType::Tuple(index) => self.types[index].types.iter().all(|ty| self.is_within(ty)),
            InterfaceType::Variant(index) => self.types[index].cases.values().flatten().all(|ty| self.is_within(ty)),
            InterfaceType::Option(index) => self.is_within(&self.types[index].ty),
            InterfaceType::Result(index) => {
                let TypeResult { ok, err, .. } = &self.types[index];
                ok.iter().chain(err).all(|ty| self.is_within(ty))
            }
            InterfaceType::FixedLengthList(index) => self.is_within(&self.types[index].element),
            ref other => is_number(other),
        }
    }

    /// The type of the entry of a stream or future, and what that carries.
    fn end_of(&self, ty: &InterfaceType) -> Option<(u32, abi::End)> {
        let (entry, payload, is_future) = match *ty {
            InterfaceType::Stream(index) => {
                let ty = self.types[index].ty;
                (READABLE_STREAM | ty.as_u32(), self.types[ty].payload, false)
            }
            InterfaceType::Future(index) => {
                let ty = self.types[index].ty;
                (READABLE_FUTURE | ty.as_u32(), self.types[ty].payload, true)
            }
            _ => return None,
        };
        let (size, align) = payload.map_or((0, 1), |ty| {
            let abi = self.types.canonical_abi(&ty);
            (abi.size32, abi.align32)
        });
        let is_value = payload.is_some_and(|ty| !self.is_within(&ty));
        Some((entry, abi::End { is_future, size, align, is_value }))
    }

    /// The streams and futures among a function's parameters, which are flat, and in its result.
    fn ends(&self, function: TypeFuncIndex) -> Ends {
        let function = &self.types[function];
        let mut ends = Ends::default();
        let mut at = 0;
        for ty in &self.types[function.params].types {
            if let Some((entry, carries)) = self.end_of(ty) {
                ends.params.push(EndParam { at, is_optional: false, entry, carries });
            } else if let InterfaceType::Option(index) = ty
                && let Some((entry, carries)) = self.end_of(&self.types[*index].ty)
            {
                ends.params.push(EndParam { at: at + 1, is_optional: true, entry, carries });
            }
            at += self.types.canonical_abi(ty).flat_count.map_or(0, usize::from);
        }
        let (mut fields, mut end, mut is_in_ok) = (&*self.types[function.results].types, 0_u32, false);
        if let [InterfaceType::Result(index)] = fields
            && let TypeResult { ok: Some(ok), info, .. } = &self.types[*index]
        {
            (fields, end, is_in_ok) = (std::slice::from_ref(ok), info.payload_offset32, true);
        }
        if let [InterfaceType::Tuple(index)] = fields {
            fields = &self.types[*index].types;
        }
        for ty in fields {
            let abi = self.types.canonical_abi(ty);
            let offset = end.checked_next_multiple_of(abi.align32).unwrap_or(u32::MAX);
            if let Some((entry, carries)) = self.end_of(ty) {
                ends.results.push(EndResult { offset, is_in_ok, entry, carries });
            }
            end = offset.saturating_add(abi.size32);
        }
        ends
    }

    /// The streams and futures of a function of the host; none where a component declares others, or hides them in its memory.
    pub(super) fn ends_of(&self, function: &abi::Function, ty: TypeFuncIndex) -> Option<Ends> {
        let params = InterfaceType::Tuple(self.types[ty].params);
        let ends = self.ends(ty);
        (self.types.canonical_abi(&params).flat_count.is_some() && ends.are_of(function)).then_some(ends)
    }

    /// Adds what copies between the memories that streams and futures use, and between them and the host.
    pub(super) fn copies(&mut self) -> Result<(), CompileError> {
        if self.state.concurrency.as_ref().is_some_and(|concurrency| concurrency.has_operations) {
            for (outside, entry) in std::mem::take(&mut self.outside) {
                let memory = match outside {
                    Outside::Bytes(memory) | Outside::Values { memory, .. } => memory,
                };
                let Some(memory) = self.memories.get(&memory) else { continue };
                let mut glue = Glue::new(Some(memory));
                match outside {
                    Outside::Bytes(_) => glue.copy_outside(entry),
                    Outside::Values { realloc, instance, encoding, .. } => {
                        let realloc = realloc.and_then(|index| self.reallocs.get(&index));
                        let instance = instance.as_u32();
                        glue.exchange_outside(entry, instance, self.state.table(instance), encoding, realloc);
                    }
                }
                let (text, linked) = glue.finish();
                self.instantiate(&text, &linked)?;
            }
        }
        for (from, to) in std::mem::take(&mut self.copiers.numbers) {
            let (Some(from_memory), Some(to_memory)) = (self.memories.get(&from), self.memories.get(&to)) else { continue };
            let mut glue = Glue::between(from_memory, to_memory);
            glue.copy_bytes(from.as_u32() * self.component.num_runtime_memories + to.as_u32());
            let (text, linked) = glue.finish();
            self.instantiate(&text, &linked)?;
        }
        self.instantiate_copiers()
    }
}

/// Whether values of a type are their bytes, whatever these are.
pub(super) const fn is_number(ty: &InterfaceType) -> bool {
    matches!(
        ty,
        InterfaceType::S8
            | InterfaceType::U8
            | InterfaceType::S16
            | InterfaceType::U16
            | InterfaceType::S32
            | InterfaceType::U32
            | InterfaceType::S64
            | InterfaceType::U64
            | InterfaceType::Float32
            | InterfaceType::Float64
    )
}
