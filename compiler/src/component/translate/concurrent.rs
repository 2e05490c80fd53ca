//! What is asynchronous in a component: adapters that start tasks, built-in functions, streams and futures.

use std::collections::{BTreeSet, HashMap};

use awsm_abi::component as abi;
use wasmtime_environ::component::{
    Component, CoreDef, InterfaceType, OptionsIndex, RuntimeComponentInstanceIndex, RuntimeMemoryIndex, RuntimeReallocIndex,
    Trampoline, TypeComponentLocalErrorContextTableIndex, TypeFuncIndex, TypeFutureTableIndex, TypeResult, TypeStreamTableIndex,
};
use wasmtime_environ::wasmparser::{Operator, Parser, Payload};
use wasmtime_environ::{EntityIndex, EntityRef as _, EntityType, FuncIndex, StaticModuleIndex};

use super::super::glue::{
    Adapter, Builtin, Concurrency, Copied, ENTRIES_PER_ADAPTER, End, EndParam, EndResult, Ends, Form, Glue, Signature, Source,
};
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

/// How names begin under which an adapter imports what starts a task, and exports what belongs to it.
const PREPARE: &str = "[prepare-call]";
const COPY_PARAMS: &str = "[async-start]";
const COPY_RESULT: &str = "[async-return]";
const CALLEE: &str = "[adapter-callee]";

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

/// In the place of the number of results: the caller is asynchronous, with or without a result.
const ASYNC_WITH_RESULT: i32 = -2;
const ASYNC_WITHOUT_RESULT: i32 = -1;

/// The last number when a task is started whose function is lifted as async.
const CALLEE_IS_ASYNC: i32 = 1;

/// Numbers that an adapter passes when it prepares a call.
const PREPARE_NUMBERS: usize = 6;

/// The adapters of a module of which one side is asynchronous.
#[derive(Debug, Default)]
pub(super) struct TaskAdapters {
    /// What the module imports for them, by name.
    sources: HashMap<String, Source>,
    /// Each with its name.
    adapters: Vec<(String, Adapter)>,
    module: Option<StaticModuleIndex>,
}

impl TaskAdapters {
    /// What stands for an import.
    pub(super) fn source(&self, name: &str) -> Option<Source> {
        self.sources.get(name).cloned()
    }
}

/// Whether a trampoline belongs to an adapter that starts tasks; it is made for each adapter by itself.
pub(super) const fn is_of_adapter(trampoline: &Trampoline) -> bool {
    matches!(trampoline, Trampoline::PrepareCall { .. } | Trampoline::SyncStartCall { .. } | Trampoline::AsyncStartCall { .. })
}

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

    /// Notes which instances may wait to enter another one by an adapter of a module, both sides of which are synchronous.
    pub(super) fn note_entered(&mut self, index: StaticModuleIndex, arguments: &[CoreDef]) -> Result<(), CompileError> {
        let translated = &self.static_modules[index];
        let functions = translated.module.imports().zip(arguments).filter(|((.., ty), _)| matches!(ty, EntityType::Function(_)));
        let enter = functions.map(|(_, argument)| argument).position(|argument| {
            matches!(argument, CoreDef::Trampoline(index) if matches!(self.trampolines[*index], Trampoline::EnterSyncCall))
        });
        if let Some(enter) = enter {
            for caller in callers_that_wait(translated.wasm, enter as u32)? {
                self.may_wait(caller);
            }
        }
        Ok(())
    }

    /// Makes what the adapters of a module import to start tasks.
    pub(super) fn task_adapters(
        &mut self,
        index: StaticModuleIndex,
        arguments: &[CoreDef],
    ) -> Result<TaskAdapters, CompileError> {
        let mut made = TaskAdapters { module: Some(index), ..TaskAdapters::default() };
        if !arguments.iter().any(|def| matches!(def, CoreDef::Trampoline(index) if is_of_adapter(&self.trampolines[*index]))) {
            return Ok(made);
        }
        let prepared = prepared_calls(self.static_modules[index].wasm)?;
        let translated = &self.static_modules[index];
        let imports: Vec<_> = translated.module.imports().zip(arguments).collect();
        let functions = imports.iter().filter(|((_, _, ty), _)| matches!(ty, EntityType::Function(_)));
        let functions: Vec<_> = functions.map(|((_, name, ty), argument)| (*name, ty.clone(), (*argument).clone())).collect();
        for (place, (name, ty, argument)) in functions.iter().enumerate() {
            let Some(adapter) = name.strip_prefix(PREPARE) else { continue };
            let prepare = self.function_type(ty)?;
            let prepared = prepared.get(&(place as u32));
            let Some((prepared, (start_name, start_type, start))) =
                prepared.and_then(|prepared| Some((prepared, functions.get(prepared.start as usize)?)))
            else {
                return Err(unsupported("an adapter of an unknown form (a bug)"));
            };
            let numbers = &prepared.numbers;
            let (callee, callee_type) = self.callee(index, adapter, &functions)?;
            let CoreDef::Trampoline(prepare_index) = argument else { return Err(unsupported("an adapter without task (a bug)")) };
            let Trampoline::PrepareCall { memory } = &self.trampolines[*prepare_index] else {
                return Err(unsupported("an adapter without task (a bug)"));
            };
            let options = return_options(memory.map(|index| index.as_u32()), numbers[4] as u32);
            let CoreDef::Trampoline(start) = start else { return Err(unsupported("an adapter without start (a bug)")) };
            let (callback, post_return, is_sync) = match &self.trampolines[*start] {
                Trampoline::SyncStartCall { callback } => (*callback, None, true),
                Trampoline::AsyncStartCall { callback, post_return } => (*callback, *post_return, false),
                _ => return Err(unsupported("an adapter without start (a bug)")),
            };
            let caller_index = numbers[0] as u32;
            if is_sync {
                self.may_wait(caller_index);
            }
            let instance = RuntimeComponentInstanceIndex::from_u32(numbers[1] as u32);
            let sync_results = if is_sync { Some(self.function_type(start_type)?.results) } else { None };
            let post_return = post_return.and_then(|index| self.post_returns.get(&index)).cloned();
            let post_return = match post_return {
                Some(function) => {
                    let ty = Signature::new(&callee_type.results, &[]);
                    Some(self.post_return(&function, instance, &ty)?)
                }
                None => None,
            };
            let has_result_pointer = match numbers[5] {
                ASYNC_WITH_RESULT => true,
                ASYNC_WITHOUT_RESULT => false,
                count => count > 1,
            };
            let adapter = (
                adapter.to_owned(),
                Adapter {
                    caller: self.state.instance(caller_index),
                    caller_index,
                    callee_instance: self.state.instance(instance.as_u32()),
                    result_type: numbers[2] as u32,
                    options,
                    is_async_type: numbers[3] != 0,
                    is_lifted_async: is_sync || prepared.last == CALLEE_IS_ASYNC,
                    params: prepare.params,
                    has_result_pointer,
                    entry: self.new_entries(ENTRIES_PER_ADAPTER),
                    callee,
                    callee_type,
                    callback: callback.and_then(|index| self.callbacks.get(&index)).cloned(),
                    post_return,
                },
            );
            let mut glue = Glue::new(None);
            let prepare = glue.prepare(&adapter.1);
            let run = sync_results.map(|results| glue.run_task(&results));
            let (text, linked) = glue.finish();
            let instance = self.instantiate(&text, &linked)?;
            made.sources.insert((*name).to_owned(), Source { instance, export: prepare });
            let start = run.map_or(Source::state("task start"), |export| Source { instance, export });
            made.sources.insert((*start_name).to_owned(), start);
            made.adapters.push(adapter);
        }
        Ok(made)
    }

    /// Adds the functions of an adapter module's tasks, after the module, which copies what they are given and return.
    pub(super) fn task_functions(&mut self, made: TaskAdapters) -> Result<(), CompileError> {
        let (Some(module), place) = (made.module, self.plan.len() - 1) else { return Ok(()) };
        for (name, adapter) in made.adapters {
            let exported = |prefix: &str| {
                let export = format!("{prefix}{name}");
                let (_, ty) = self.exported_function(module, &export)?;
                Ok::<_, CompileError>((Source { instance: place, export }, ty))
            };
            let (start, give_back) = (exported(COPY_PARAMS)?, exported(COPY_RESULT)?);
            let mut glue = Glue::new(None);
            glue.task_functions(&adapter, &start, &give_back, self.throws);
            let (text, linked) = glue.finish();
            self.instantiate(&text, &linked)?;
        }
        Ok(())
    }

    /// What an adapter calls in the end.
    fn callee(
        &mut self,
        index: StaticModuleIndex,
        adapter: &str,
        functions: &[(&str, EntityType, CoreDef)],
    ) -> Result<(Source, Signature), CompileError> {
        let (function, ty) = self.exported_function(index, &format!("{CALLEE}{adapter}"))?;
        let (_, _, argument) =
            functions.get(function.index()).ok_or_else(|| unsupported("an adapter that calls itself (a bug)"))?;
        Ok((self.source(argument)?, ty))
    }

    /// A function that a module exports.
    fn exported_function(&self, index: StaticModuleIndex, name: &str) -> Result<(FuncIndex, Signature), CompileError> {
        let module = &self.static_modules[index].module;
        let found = module.exports.iter().find(|(export, _)| module.strings[**export] == *name);
        let Some((_, EntityIndex::Function(function))) = found else {
            return Err(unsupported(format!("an adapter without `{name}` (a bug)")));
        };
        let ty = module.functions[*function].signature.unwrap_module_type_index();
        Ok((*function, self.signature(ty)?))
    }

    /// The type of a function of an adapter, without the functions and numbers that come first.
    fn function_type(&self, ty: &EntityType) -> Result<Signature, CompileError> {
        let EntityType::Function(ty) = ty else { return Err(unsupported("an adapter without function (a bug)")) };
        let ty = self.types.module_types()[ty.unwrap_module_type_index()].unwrap_func();
        let mut params: Vec<_> = ty.params().iter().collect();
        let references = params.iter().filter(|ty| super::value(ty).is_err()).count();
        if references == 2 {
            params.drain(..2 + PREPARE_NUMBERS);
        } else {
            params.clear();
        }
        let values = params.into_iter().map(super::value).collect::<Result<_, _>>()?;
        Ok(Signature { params: values, results: ty.results().iter().map(super::value).collect::<Result<_, _>>()? })
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

/// What an adapter passes when it prepares a call: the instance that calls, the one that is called, the result's type, whether the function's type is
/// async, how strings are encoded, and how many results there are or which asynchronous form. Then it calls what starts the task.
struct Prepared {
    numbers: [i32; PREPARE_NUMBERS],
    start: u32,
    /// The last number that an asynchronous caller passes to that: whether the callee is lifted as async.
    last: i32,
}

/// The calls that adapters of a module prepare, by the function that they call for that.
fn prepared_calls(wasm: &[u8]) -> Result<HashMap<u32, Prepared>, CompileError> {
    let unknown = |_| unsupported("an adapter of an unknown form (a bug)");
    let mut found = HashMap::new();
    for payload in Parser::new(0).parse_all(wasm) {
        let Payload::CodeSectionEntry(body) = payload.map_err(unknown)? else { continue };
        let mut references = 0;
        let mut numbers = Vec::new();
        let mut prepare = None;
        let mut last = 0;
        for operator in body.get_operators_reader().map_err(unknown)? {
            match (operator.map_err(unknown)?, references) {
                // What copies parameters, what copies the result, what is called.
                (Operator::RefFunc { .. }, _) => references += 1,
                (Operator::I32Const { value }, 2) if numbers.len() < PREPARE_NUMBERS => numbers.push(value),
                (Operator::I32Const { value }, 3) => last = value,
                (Operator::Call { function_index }, 2) => prepare = Some(function_index),
                (Operator::Call { function_index }, 3) => {
                    let numbers = <[i32; PREPARE_NUMBERS]>::try_from(std::mem::take(&mut numbers));
                    if let (Some(prepare), Ok(numbers)) = (prepare, numbers) {
                        found.insert(prepare, Prepared { numbers, start: function_index, last });
                    }
                    break;
                }
                _ => {}
            }
        }
    }
    Ok(found)
}

/// The instances whose calls by adapters of a module enter functions of an async type. `enter` is what adapters call first, with the number of the instance that calls,
/// whether the function's type is async, and the instance that is called.
fn callers_that_wait(wasm: &[u8], enter: u32) -> Result<Vec<u32>, CompileError> {
    let unknown = |_| unsupported("an adapter of an unknown form (a bug)");
    let mut callers = Vec::new();
    for payload in Parser::new(0).parse_all(wasm) {
        let Payload::CodeSectionEntry(body) = payload.map_err(unknown)? else { continue };
        let mut numbers = [0; 3];
        for operator in body.get_operators_reader().map_err(unknown)? {
            match operator.map_err(unknown)? {
                Operator::I32Const { value } => numbers = [numbers[1], numbers[2], value],
                Operator::Call { function_index } if function_index == enter && numbers[1] != 0 => {
                    callers.push(numbers[0] as u32)
                }
                _ => {}
            }
        }
    }
    Ok(callers)
}
