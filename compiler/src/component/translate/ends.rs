//! Ends of streams and futures: how they are read and written, and which of them functions of the host take and give.

use awsm_abi::component as abi;
use wasmtime_environ::component::{
    InterfaceType, OptionsIndex, RuntimeComponentInstanceIndex, RuntimeMemoryIndex, RuntimeReallocIndex, TypeFuncIndex,
    TypeFutureTableIndex, TypeResult, TypeStreamTableIndex,
};

use super::super::glue::{Copied, End, EndParam, EndResult, Ends, Form, Glue};
use super::copiers::{Side, is_number};
use super::options::{encoding, realloc};
use super::ways::Table;
use super::{Builder, unsupported};
use crate::error::CompileError;

/// Types of entries of handle tables; `tasks.wat` and `streams.wat` have them, too.
pub(super) const READABLE_STREAM: u32 = 0x8100_0000;
pub(super) const WRITABLE_STREAM: u32 = 0x8200_0000;
pub(super) const READABLE_FUTURE: u32 = 0x8300_0000;
pub(super) const WRITABLE_FUTURE: u32 = 0x8400_0000;

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

impl Builder<'_> {
    fn end(&self, instance: RuntimeComponentInstanceIndex, entry: u32, is_future: bool) -> End {
        End { instance: instance.as_u32(), record: self.record(instance), entry, is_future }
    }

    /// An end of streams of that type, and what they carry.
    pub(super) fn stream(
        &self,
        instance: RuntimeComponentInstanceIndex,
        ty: TypeStreamTableIndex,
        kind: u32,
    ) -> (End, Option<InterfaceType>) {
        let ty = self.types[ty].ty;
        (self.end(instance, kind | ty.as_u32(), false), self.types[ty].payload)
    }

    /// The same of futures.
    pub(super) fn future(
        &self,
        instance: RuntimeComponentInstanceIndex,
        ty: TypeFutureTableIndex,
        kind: u32,
    ) -> (End, Option<InterfaceType>) {
        let ty = self.types[ty].ty;
        (self.end(instance, kind | ty.as_u32(), true), self.types[ty].payload)
    }

    /// Reads or writes.
    pub(super) fn copy(
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
