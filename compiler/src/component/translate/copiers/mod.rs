//! What copies values that are more than numbers from a writable end of a stream or future to a readable one of another instance.
//!
//! For each pair of ends that can meet, wasmtime-environ writes an adapter, as if there were a function that takes a list of such values: the writer calls it,
//! and the reader's `realloc` gives the place that the reader has named. So strings, lists, handles and what is wrong with them are treated as in calls.
//!
//! Which ends can meet is found in the adapters: the writable end of a stream stays where it was made, and a readable one leaves an instance only where an adapter
//! passes it on. Without that, there would be a copier for each pair of instances that know the type.

mod imports;

use std::collections::{BTreeMap, BTreeSet};

use wasmtime_environ::component::dfg;
use wasmtime_environ::component::{
    Adapter, AdapterOptions, CanonicalAbiInfo, CanonicalOptions, Component, ComponentTypesBuilder, DataModel, ExportItem,
    GlobalInitializer, InstantiateModule, InterfaceType, RuntimeComponentInstanceIndex, RuntimeMemoryIndex, RuntimeReallocIndex,
    StringEncoding, Trampoline, TrampolineIndex, TypeFunc, TypeFuncIndex, TypeList, TypeTuple,
};
use wasmtime_environ::fact;
use wasmtime_environ::wasmparser::{Parser, Validator, WasmFeatures};
use wasmtime_environ::{
    EntityType, IndexType, Limits, Memory, MemoryIndex, ModuleEnvironment, ModuleInternedTypeIndex, ModuleTranslation,
    PrimaryMap, StaticModuleIndex, Tunables,
};

use self::imports::{CALLEE, Imported, REALLOC_START, What, import_names, what};
use super::super::glue::{Glue, Source};
use super::options::realloc;
use super::ways::{Passed, Table, Ways};
use super::{Builder, invalid, unsupported};
use crate::error::CompileError;
use crate::program::Instance;

/// Pairs of ends that can meet, in one component.
const PAIRS_MAX: usize = 1024;

/// Size of a page of memory, as a power of two.
const PAGE_BITS: u8 = 16;

/// How an instance reads or writes streams or futures of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Side {
    table: Table,
    instance: RuntimeComponentInstanceIndex,
    memory: RuntimeMemoryIndex,
    realloc: Option<RuntimeReallocIndex>,
    encoding: u8,
}

impl Side {
    /// None where it has no memory.
    pub(super) fn of(table: Table, is_writer: bool, options: &CanonicalOptions) -> Option<Side> {
        Some(Side {
            table,
            instance: options.instance,
            memory: options.memory()?,
            // It is not called for what is written.
            realloc: realloc(options).filter(|_| !is_writer),
            encoding: options.string_encoding as u8,
        })
    }

    /// What an adapter is made with.
    fn options(
        &self,
        instance: RuntimeComponentInstanceIndex,
        core_type: ModuleInternedTypeIndex,
        realloc: Option<dfg::CoreDef>,
    ) -> AdapterOptions {
        let memory =
            Memory { idx_type: IndexType::I32, limits: Limits { min: 0, max: None }, shared: false, page_size_log2: PAGE_BITS };
        // Instances and functions are ours: the numbers only have to be different.
        let place = dfg::CoreExport {
            instance: dfg::InstanceId::from_u32(self.memory.as_u32()),
            item: ExportItem::Index(MemoryIndex::from_u32(0)),
        };
        AdapterOptions {
            instance,
            ancestors: Vec::new(),
            string_encoding: StringEncoding::from_u8(self.encoding).unwrap_or(StringEncoding::Utf8),
            callback: None,
            post_return: None,
            async_: false,
            cancellable: false,
            core_type,
            data_model: DataModel::LinearMemory { memory: Some((place, memory)), realloc },
        }
    }
}

/// Ends in the order of their numbers.
#[derive(Debug, Default)]
struct Sides {
    list: Vec<Side>,
    numbers: BTreeMap<Side, usize>,
}

impl Sides {
    fn add(&mut self, side: Side) {
        let next = self.list.len();
        if *self.numbers.entry(side).or_insert(next) == next {
            self.list.push(side);
        }
    }
}

/// What copies to a reader from some writers.
#[derive(Debug)]
struct Module {
    /// The reader, and the writers: of each it exports a function under [`name`].
    reader: usize,
    writers: Vec<usize>,
    wasm: Vec<u8>,
    imports: Vec<Imported>,
}

/// The name of what copies from a writer.
fn name(writer: usize) -> String {
    format!("copy {writer}")
}

/// All copiers of a component.
#[derive(Debug, Default)]
pub(super) struct Copiers {
    /// The ends that read and write what is more than numbers.
    readers: Sides,
    writers: Sides,
    modules: Vec<Module>,
    /// The memories between which numbers are copied: from which to which.
    pub(super) numbers: BTreeSet<(RuntimeMemoryIndex, RuntimeMemoryIndex)>,
}

impl Copiers {
    /// Writes those of a component that was translated.
    pub(super) fn of(
        component: &Component,
        trampolines: &PrimaryMap<TrampolineIndex, Trampoline>,
        modules: &PrimaryMap<StaticModuleIndex, ModuleTranslation<'_>>,
        mut writing: Writing<'_>,
    ) -> Result<Copiers, CompileError> {
        let mut copiers = Copiers::default();
        // The ends that read and write numbers.
        let (mut number_readers, mut number_writers) = (BTreeSet::new(), BTreeSet::new());
        for (_, trampoline) in trampolines.iter() {
            let (table, is_writer, options) = match trampoline {
                Trampoline::StreamRead { ty, options, .. } => (Table::Stream(*ty), false, *options),
                Trampoline::StreamWrite { ty, options, .. } => (Table::Stream(*ty), true, *options),
                Trampoline::FutureRead { ty, options, .. } => (Table::Future(*ty), false, *options),
                Trampoline::FutureWrite { ty, options, .. } => (Table::Future(*ty), true, *options),
                _ => continue,
            };
            let (Some(payload), Some(side)) =
                (table.payload(writing.types), Side::of(table, is_writer, &component.options[options]))
            else {
                continue;
            };
            match (is_number(&payload), is_writer) {
                (true, true) => drop(number_writers.insert((table, side.memory))),
                (true, false) => drop(number_readers.insert((table, side.memory))),
                (false, true) => copiers.writers.add(side),
                (false, false) => copiers.readers.add(side),
            }
        }
        let has_values = !copiers.readers.list.is_empty() && !copiers.writers.list.is_empty();
        if !has_values && (number_readers.is_empty() || number_writers.is_empty()) {
            return Ok(copiers);
        }
        let mut ways = Ways::default();
        for initializer in &component.initializers {
            if let GlobalInitializer::InstantiateModule(InstantiateModule::Static(index, arguments), None) = initializer {
                let module = &modules[*index];
                let imports = module.module.imports().zip(arguments);
                let functions = imports.filter(|((.., ty), _)| matches!(ty, EntityType::Function(_)));
                let functions: Vec<_> = functions.map(|(_, argument)| Passed::of(argument, trampolines)).collect();
                ways.add(module.wasm, &functions)?;
            }
        }
        if has_values {
            let core_type = writing.core_type()?;
            copiers.write(&mut ways, core_type, &mut writing)?;
        }
        for (table, from) in number_writers {
            let reached = ways.from(table);
            let readers = number_readers.iter().filter(|(table, _)| reached.contains(table));
            copiers.numbers.extend(readers.map(|(_, to)| (from, *to)));
        }
        Ok(copiers)
    }

    /// Writes what is missing, until no more ends can meet: streams are passed on in streams, too.
    fn write(
        &mut self,
        ways: &mut Ways,
        core_type: ModuleInternedTypeIndex,
        writing: &mut Writing<'_>,
    ) -> Result<(), CompileError> {
        let mut readers: BTreeMap<Table, Vec<usize>> = BTreeMap::new();
        for (number, reader) in self.readers.list.iter().enumerate() {
            readers.entry(reader.table).or_default().push(number);
        }
        let mut known = BTreeSet::new();
        loop {
            let mut missing: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
            for (number, writer) in self.writers.list.iter().enumerate() {
                for &reader in ways.from(writer.table).iter().filter_map(|table| readers.get(table)).flatten() {
                    // What an instance reads that it wrote itself traps before.
                    if self.readers.list[reader].instance == writer.instance {
                        continue;
                    }
                    if known.insert((reader, number)) {
                        missing.entry(reader).or_default().push(number);
                    }
                    if known.len() > PAIRS_MAX {
                        return Err(unsupported(format!(
                            "more than {PAIRS_MAX} ways from an instance that streams values to another"
                        )));
                    }
                }
            }
            if missing.is_empty() {
                return Ok(());
            }
            for (reader, writers) in missing {
                let module = self.module(reader, writers, core_type, ways, writing)?;
                self.modules.push(module);
            }
        }
    }

    /// Writes what copies to a reader from these writers, and adds the ways on which it passes streams and futures.
    fn module(
        &self,
        reader: usize,
        writers: Vec<usize>,
        core_type: ModuleInternedTypeIndex,
        ways: &mut Ways,
        writing: &mut Writing<'_>,
    ) -> Result<Module, CompileError> {
        let adapters = writers.iter().map(|&writer| self.adapter(reader, writer, core_type, writing));
        let adapters = adapters.collect::<Option<Vec<_>>>().ok_or_else(|| unsupported("a copier of nothing (a bug)"))?;
        let mut module = fact::Module::new(writing.types, writing.tunables, writing.features);
        for (&writer, adapter) in writers.iter().zip(&adapters) {
            module.adapt(&name(writer), adapter);
        }
        let wasm = module.encode();
        let imports = module.imports();
        let named = import_names(&wasm)?;
        let functions = named.iter().zip(imports).filter(|((.., is_function), _)| *is_function);
        let functions: Vec<_> = functions.map(|(_, import)| Passed::of_import(import)).collect();
        ways.add(&wasm, &functions)?;
        let imports = named.into_iter().zip(imports);
        let imports =
            imports.map(|((module, name, _), import)| Ok(Imported { module, name, what: what(import, writing.outside)? }));
        let imports = imports.collect::<Result<_, CompileError>>()?;
        Ok(Module { reader, writers, wasm, imports })
    }

    /// The call for which an adapter is written.
    fn adapter(
        &self,
        reader: usize,
        writer: usize,
        core_type: ModuleInternedTypeIndex,
        writing: &mut Writing<'_>,
    ) -> Option<Adapter> {
        let (to, from) = (&self.readers.list[reader], &self.writers.list[writer]);
        let realloc = dfg::CoreDef::Trampoline(TrampolineIndex::from_u32(REALLOC_START + reader as u32));
        Some(Adapter {
            lift_ty: list_function(to.table, writing.types)?,
            lift_options: to.options(to.instance, core_type, Some(realloc)),
            lower_ty: list_function(from.table, writing.types)?,
            // The writer may be anywhere when the reader gets its values: whether it may call out does not matter.
            lower_options: from.options(writing.outside, core_type, None),
            func: dfg::CoreDef::Trampoline(TrampolineIndex::from_u32(CALLEE)),
        })
    }

    /// How many functions they have that are called by number: one for each reader.
    pub(super) fn entries(&self) -> u32 {
        self.readers.list.len() as u32
    }

    /// The number of an end: of a reader which of these functions copies to it, of a writer that by which it is known there.
    pub(super) fn number(&self, side: &Side, is_writer: bool) -> Option<u32> {
        let sides = if is_writer { &self.writers } else { &self.readers };
        sides.numbers.get(side).map(|index| *index as u32)
    }
}

/// What adapters are written with.
pub(super) struct Writing<'a> {
    pub(super) types: &'a mut ComponentTypesBuilder,
    pub(super) validator: &'a mut Validator,
    pub(super) tunables: &'a Tunables,
    pub(super) features: WasmFeatures,
    /// A number that no component instance has.
    pub(super) outside: RuntimeComponentInstanceIndex,
}

impl Writing<'_> {
    /// The core type of a function that takes a list. A component need not have it: it comes from a module that has nothing else.
    fn core_type(&mut self) -> Result<ModuleInternedTypeIndex, CompileError> {
        const MODULE: &[u8] = b"\0asm\x01\0\0\0\x01\x06\x01\x60\x02\x7f\x7f\0";
        self.validator.reset();
        let (types, index) = (self.types.module_types_builder_mut(), StaticModuleIndex::from_u32(0));
        let module = ModuleEnvironment::new(self.tunables, self.validator, types, index).translate(Parser::new(0), MODULE);
        let module = module.map_err(|error| invalid(&error))?.module;
        let ty = module.types.values().next().ok_or_else(|| unsupported("a module without its type (a bug)"))?;
        Ok(ty.unwrap_module_type_index())
    }
}

/// The function that takes a list of what ends of a type carry.
fn list_function(table: Table, types: &mut ComponentTypesBuilder) -> Option<TypeFuncIndex> {
    let element = table.payload(types)?;
    let list = InterfaceType::List(types.add_list_type(TypeList { element }));
    let abi = CanonicalAbiInfo::record(std::iter::once(types.canonical_abi(&list)));
    let params = types.add_tuple_type(TypeTuple { types: Box::new([list]), abi });
    let abi = CanonicalAbiInfo::record(std::iter::empty());
    let results = types.add_tuple_type(TypeTuple { types: Box::new([]), abi });
    Some(types.add_func_type(TypeFunc { async_: false, param_names: vec!["values".to_owned()], params, results }))
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

impl Builder<'_> {
    /// Adds what copies values that are more than numbers.
    pub(super) fn instantiate_copiers(&mut self) -> Result<(), CompileError> {
        let Copiers { readers, modules, .. } = std::mem::take(&mut self.copiers);
        if modules.is_empty() {
            return Ok(());
        }
        let mut glue = Glue::new(None);
        let reallocs: Vec<_> =
            readers.list.iter().map(|reader| reader.realloc.and_then(|index| self.reallocs.get(&index))).collect();
        glue.seats(&reallocs);
        let (text, linked) = glue.finish();
        let seats = self.instantiate(&text, &linked)?;
        let mut transcoders = BTreeMap::new();
        let mut copiers: BTreeMap<u32, Vec<(u32, Source)>> = BTreeMap::new();
        for Module { reader, writers, wasm, imports } in modules {
            self.modules.push(wasm);
            let mut instance = Instance::of(self.modules.len() - 1);
            for Imported { module, name, what } in imports {
                let source = match what {
                    What::Source(source) => source,
                    What::Seat(export) => Source { instance: seats, export },
                    What::Memory(index) => self.memory(index)?,
                    What::Transcoder { name, from, to } => {
                        let made = match transcoders.get(&(from, to)) {
                            Some(made) => *made,
                            None => self.transcoders(from, to)?,
                        };
                        transcoders.insert((from, to), made);
                        Source { instance: made, export: name.to_owned() }
                    }
                };
                instance = instance.with(&module, &name, source.instance, &source.export);
            }
            self.plan.push(instance);
            let place = self.plan.len() - 1;
            let exports = writers.into_iter().map(|writer| (writer as u32, Source { instance: place, export: name(writer) }));
            copiers.entry(self.copy_entries() + reader as u32).or_default().extend(exports);
        }
        let mut glue = Glue::new(None);
        glue.copiers(seats, &copiers);
        let (text, linked) = glue.finish();
        self.instantiate(&text, &linked).map(drop)
    }
}
