//! From a component to a program: wasmtime-environ translates it, resolves which core instance calls which, and writes the modules that pass values from one
//! component to another; here its plan becomes ours, with glue where its runtime would have code.

mod builtins;
mod concurrency;
mod copiers;
mod description;
mod ends;
mod flat;
mod lowered;
mod options;
mod root;
mod tasks;
mod ways;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use awsm_abi::component::{self as abi, Violation};
use awsm_abi::types::ValType;
use wasmtime_environ::component::{
    Component, ComponentTypes, ComponentTypesBuilder, CoreDef, CoreExport, ExportItem, FixedEncoding, GlobalInitializer,
    InstantiateModule, LoweredIndex, ResourceIndex, RuntimeCallbackIndex, RuntimeComponentInstanceIndex, RuntimeImportIndex,
    RuntimeMemoryIndex, RuntimePostReturnIndex, RuntimeReallocIndex, Trampoline, TrampolineIndex, Transcode, Translator,
    TypeResourceTable, TypeResourceTableIndex, UnsafeIntrinsic,
};
use wasmtime_environ::wasmparser::{CanonicalFunction, CanonicalOption, Parser, Payload, Validator, WasmFeatures};
use wasmtime_environ::{
    EntityIndex, EntityRef as _, EntityType, ModuleInternedTypeIndex, ModuleTranslation, PrimaryMap, ScopeVec, StaticModuleIndex,
    Trap, Tunables, WasmValType,
};

use self::copiers::{Copiers, Writing};
use self::root::HANDLER_ASYNC;
use super::glue::{Destructor, Glue, MAY_BLOCK, Row, Signature, Source, State, flags};
use super::{Composition, labels, starts};
use crate::error::CompileError;
use crate::program::Instance;

/// The module name under which adapters import what is called when a result has been taken.
const POST_RETURN: &str = "post_return";

/// Where numbers of imported resources begin that the host does not know: a component may name them as long as it calls nothing of them.
const UNKNOWN_RESOURCES_START: u32 = 1 << 20;

/// Translates a component.
///
/// # Errors
/// When it is not valid, needs what is not supported, or imports what the host does not offer and may not (`unknown_imports`).
pub(super) fn translate(bytes: &[u8], unknown_imports: bool) -> Result<Composition, CompileError> {
    // Adapters catch what leaves a component where something may be thrown, which costs every call: first without.
    translate_with(bytes, features(), unknown_imports).or_else(|error| match error {
        CompileError::Invalid { .. } => translate_with(bytes, features() | WasmFeatures::EXCEPTIONS, unknown_imports),
        error => Err(error),
    })
}

fn translate_with(bytes: &[u8], features: WasmFeatures, unknown_imports: bool) -> Result<Composition, CompileError> {
    let mut tunables = Tunables::default_host();
    // Costs every call.
    tunables.concurrency_support = is_async(bytes);
    tunables.debug_adapter_modules = false;
    let mut validator = Validator::new_with_features(features);
    let mut types = ComponentTypesBuilder::new(&validator);
    let scope = ScopeVec::new();
    let lowered = labels::in_small_letters(bytes);
    let translated = Translator::new(&tunables, &mut validator, &mut types, &scope).translate(&lowered);
    let (translation, modules) = translated.map_err(|error| invalid(&error))?;
    let rows = types.num_resource_tables() as u32;
    let component = &translation.component;
    let outside = RuntimeComponentInstanceIndex::from_u32(component.num_runtime_component_instances);
    let writing = Writing { types: &mut types, validator: &mut validator, tunables: &tunables, features, outside };
    let copiers = Copiers::of(component, &translation.trampolines, &modules, writing)?;
    let (types, _) = types.finish(component);
    let mut builder = Builder {
        component,
        types: &types,
        trampolines: &translation.trampolines,
        static_modules: &modules,
        state: State { instances: component.num_runtime_component_instances, ..State::default() },
        modules: Vec::new(),
        plan: Vec::new(),
        throws: features.contains(WasmFeatures::EXCEPTIONS),
        compiled: HashMap::new(),
        compiled_late: HashMap::new(),
        has_start: false,
        instances: Vec::new(),
        memories: HashMap::new(),
        reallocs: HashMap::new(),
        post_returns: HashMap::new(),
        callbacks: HashMap::new(),
        copiers,
        outside: BTreeMap::new(),
        lowerings: HashMap::new(),
        destructors: HashMap::new(),
        made: HashMap::new(),
        unknown_imports,
        missing: Vec::new(),
        warnings: BTreeSet::new(),
    };
    builder.state.rows = (0..rows).map(|index| builder.row(TypeResourceTableIndex::from_u32(index))).collect();
    if tunables.concurrency_support {
        builder.state.concurrency = Some(builder.concurrency());
    }
    builder.build()?;
    // What becomes code as it is, is validated as it is compiled.
    let unused = modules.iter().filter(|(index, _)| !builder.compiled.contains_key(index));
    for (_, module) in unused {
        let valid = Validator::new_with_features(features).validate_all(module.wasm);
        valid.map_err(|error| CompileError::Invalid { offset: error.offset() as u64, message: error.message().to_owned() })?;
    }
    let description = builder.description(bytes);
    Ok(Composition {
        modules: builder.modules,
        plan: builder.plan,
        description,
        warnings: builder.warnings.into_iter().collect(),
    })
}

/// Whether a component has tasks: functions that are lifted or lowered as async, or built-in functions for them; or what the server calls as a task.
fn is_async(bytes: &[u8]) -> bool {
    let has_async = |options: &[CanonicalOption]| options.contains(&CanonicalOption::Async);
    let mut sections = Parser::new(0).parse_all(bytes).map_while(Result::ok);
    sections.any(|payload| match payload {
        Payload::ComponentCanonicalSection(section) => section.into_iter().map_while(Result::ok).any(|function| match function {
            CanonicalFunction::Lift { options, .. } | CanonicalFunction::Lower { options, .. } => has_async(&options),
            CanonicalFunction::ResourceNew { .. }
            | CanonicalFunction::ResourceDrop { .. }
            | CanonicalFunction::ResourceRep { .. } => false,
            _ => true,
        }),
        Payload::ComponentExportSection(section) => {
            section.into_iter().map_while(Result::ok).any(|export| abi::track(export.name.name) == HANDLER_ASYNC.0)
        }
        _ => false,
    })
}

/// A generated module in the binary format.
fn assemble(text: &str) -> Result<Vec<u8>, CompileError> {
    wat::parse_str(text).map_err(|error| CompileError::Component { message: format!("glue that is not valid (a bug): {error}") })
}

/// What components may use, or are refused for by name. Exceptions are left out.
fn features() -> WasmFeatures {
    let refused_by_name = WasmFeatures::CM_ASYNC_STACKFUL
        | WasmFeatures::CM_MORE_ASYNC_BUILTINS
        | WasmFeatures::CM_THREADING
        | WasmFeatures::CM_ERROR_CONTEXT;
    let mut features = WasmFeatures::default()
        | WasmFeatures::CM_FIXED_LENGTH_LISTS
        | WasmFeatures::CM_MAP
        | WasmFeatures::CM_IMPLEMENTS
        | refused_by_name;
    features.remove(WasmFeatures::EXCEPTIONS | WasmFeatures::LEGACY_EXCEPTIONS);
    features
}

fn invalid(error: &wasmtime_environ::error::Error) -> CompileError {
    match error.downcast_ref::<wasmtime_environ::wasmparser::BinaryReaderError>() {
        Some(error) => CompileError::Invalid { offset: error.offset() as u64, message: error.message().to_owned() },
        None => CompileError::Component { message: format!("{error:#}") },
    }
}

fn unsupported(what: impl Into<String>) -> CompileError {
    CompileError::Component { message: format!("{} is not supported", what.into()) }
}

/// A core instance of the component.
#[derive(Clone, Copy)]
struct CoreInstance {
    /// Its place in the plan.
    place: usize,
    module: StaticModuleIndex,
    /// The component instance that made it; none for adapters.
    owner: Option<RuntimeComponentInstanceIndex>,
}

/// Makes the program's modules and plan, initializer by initializer.
struct Builder<'a> {
    component: &'a Component,
    types: &'a ComponentTypes,
    trampolines: &'a PrimaryMap<TrampolineIndex, Trampoline>,
    static_modules: &'a PrimaryMap<StaticModuleIndex, ModuleTranslation<'a>>,
    state: State,
    modules: Vec<Vec<u8>>,
    plan: Vec<Instance>,
    /// Whether something may be thrown.
    throws: bool,
    /// Which of the modules each of the component's became.
    compiled: HashMap<StaticModuleIndex, usize>,
    /// The same of those that became instances behind a start function and write their segments themselves ([`starts`]).
    compiled_late: HashMap<StaticModuleIndex, Option<usize>>,
    /// Whether one of the instances so far has a start function.
    has_start: bool,
    instances: Vec<CoreInstance>,
    memories: HashMap<RuntimeMemoryIndex, Source>,
    reallocs: HashMap<RuntimeReallocIndex, Source>,
    post_returns: HashMap<RuntimePostReturnIndex, Source>,
    callbacks: HashMap<RuntimeCallbackIndex, Source>,
    /// What copies values of streams and futures from one instance to another.
    copiers: Copiers,
    /// How they are copied between memories and the host, and the number of the first function of each.
    outside: BTreeMap<ends::Outside, u32>,
    lowerings: HashMap<LoweredIndex, RuntimeImportIndex>,
    destructors: HashMap<ResourceIndex, Source>,
    /// Trampolines that are part of a glue instance already.
    made: HashMap<TrampolineIndex, Source>,
    /// Whether calls of functions that the host does not offer trap. Otherwise the component is refused.
    unknown_imports: bool,
    /// Imports for which the component is refused.
    missing: Vec<String>,
    /// What the caller is told.
    warnings: BTreeSet<String>,
}

impl Builder<'_> {
    fn build(&mut self) -> Result<(), CompileError> {
        let state = self.state.module(&traps());
        let state = self.instantiate(&state, &[])?;
        for initializer in &self.component.initializers {
            match initializer {
                GlobalInitializer::InstantiateModule(InstantiateModule::Static(module, arguments), owner) => {
                    self.instantiate_static(*module, arguments, *owner)?;
                }
                GlobalInitializer::InstantiateModule(InstantiateModule::Import(..), _) => {
                    return Err(unsupported("a component that imports a core module"));
                }
                GlobalInitializer::LowerImport { index, import } => {
                    self.lowerings.insert(*index, *import);
                }
                GlobalInitializer::ExtractMemory(memory) => {
                    let export = self.export(&memory.export.clone().map_index(EntityIndex::Memory))?;
                    self.memories.insert(memory.index, export);
                }
                GlobalInitializer::ExtractRealloc(realloc) => {
                    let source = self.source(&realloc.def)?;
                    self.reallocs.insert(realloc.index, source);
                }
                GlobalInitializer::ExtractPostReturn(post_return) => {
                    let source = self.source(&post_return.def)?;
                    self.post_returns.insert(post_return.index, source);
                }
                GlobalInitializer::ExtractCallback(callback) => {
                    let source = self.source(&callback.def)?;
                    self.callbacks.insert(callback.index, source);
                }
                // Only threads use them.
                GlobalInitializer::ExtractTable(_) => {}
                GlobalInitializer::Resource(resource) => {
                    if let Some(destructor) = &resource.dtor {
                        let source = self.source(destructor)?;
                        self.destructors.insert(self.component.resource_index(resource.index), source);
                    }
                }
            }
        }
        self.copies()?;
        // It comes last.
        self.entry()?;
        if self.state.concurrency.is_some() {
            // How many functions tasks have is known only now.
            let text = self.state.module(&traps());
            self.modules[state] = assemble(&text)?;
        }
        if self.missing.is_empty() { Ok(()) } else { Err(self.refusal()) }
    }

    /// Adds a glue module and its instance, whose imports from [`super::glue::LINKED`] are these. The instance's place in the plan.
    fn instantiate(&mut self, text: &str, linked: &[Source]) -> Result<usize, CompileError> {
        self.modules.push(assemble(text)?);
        let mut instance = Instance::of(self.modules.len() - 1);
        for (index, source) in linked.iter().enumerate() {
            instance = instance.with(super::glue::LINKED, &index.to_string(), source.instance, &source.export);
        }
        self.plan.push(instance);
        Ok(self.plan.len() - 1)
    }

    fn instantiate_static(
        &mut self,
        index: StaticModuleIndex,
        arguments: &[CoreDef],
        owner: Option<RuntimeComponentInstanceIndex>,
    ) -> Result<(), CompileError> {
        self.make_glue(arguments)?;
        let tasks = self.task_adapters(index, arguments)?;
        self.note_entered(index, arguments)?;
        let translated = &self.static_modules[index];
        let module = match self.late(index)? {
            Some(module) => module,
            None => *self.compiled.entry(index).or_insert_with(|| {
                self.modules.push(translated.wasm.to_vec());
                self.modules.len() - 1
            }),
        };
        self.has_start |= translated.start_func.is_some();
        let mut instance = Instance::of(module);
        let mut bound = HashMap::new();
        for ((module, name, ty), argument) in translated.module.imports().zip(arguments) {
            let mut source = match tasks.source(name) {
                Some(source) => source,
                None => self.source(argument)?,
            };
            if let (None, POST_RETURN, EntityType::Function(ty), Some(of)) = (owner, module, ty, self.owner(argument)) {
                let ty = self.signature(ty.unwrap_module_type_index())?;
                source = self.post_return(&source, of, &ty)?;
            }
            // A module may import the same thing twice.
            if bound.insert((module.to_owned(), name.to_owned()), ()).is_none() {
                instance = instance.with(module, name, source.instance, &source.export);
            }
        }
        self.plan.push(instance);
        self.instances.push(CoreInstance { place: self.plan.len() - 1, module: index, owner });
        self.task_functions(tasks)
    }

    /// Which of the program's modules it is that writes the segments of that one, where start functions have to see what was there before.
    fn late(&mut self, index: StaticModuleIndex) -> Result<Option<usize>, CompileError> {
        if !self.has_start {
            return Ok(None);
        }
        if let Some(module) = self.compiled_late.get(&index) {
            return Ok(*module);
        }
        let wasm = self.static_modules[index].wasm;
        let unreadable = |error| CompileError::Component { message: format!("a core module that cannot be read: {error}") };
        // A module may be instantiated a thousand times; it is rewritten once.
        let place = starts::with_written_segments(wasm).map_err(unreadable)?.map(|module| {
            self.modules.push(module);
            self.modules.len() - 1
        });
        self.compiled_late.insert(index, place);
        Ok(place)
    }

    /// The component instance whose core code something is.
    fn owner(&self, def: &CoreDef) -> Option<RuntimeComponentInstanceIndex> {
        match def {
            CoreDef::Export(export) => self.instances[export.instance.index()].owner,
            _ => None,
        }
    }

    /// A post-return function of a component instance, which may not call out meanwhile. Adapters leave that to what they call.
    fn post_return(
        &mut self,
        function: &Source,
        instance: RuntimeComponentInstanceIndex,
        ty: &Signature,
    ) -> Result<Source, CompileError> {
        let mut glue = Glue::new(None);
        let export = glue.post_return(function, instance.as_u32(), ty);
        let (text, linked) = glue.finish();
        Ok(Source { instance: self.instantiate(&text, &linked)?, export })
    }

    /// Where something of the core is found in the plan.
    fn source(&mut self, def: &CoreDef) -> Result<Source, CompileError> {
        match def {
            CoreDef::Export(export) => self.export(export),
            CoreDef::InstanceFlags(instance) => Ok(Source::state(flags(instance.as_u32()))),
            CoreDef::Trampoline(index) => {
                if !self.made.contains_key(index) {
                    self.make_glue(std::slice::from_ref(def))?;
                }
                let made = self.made.get(index).cloned();
                made.ok_or_else(|| CompileError::Component { message: "a function without glue (a bug)".to_owned() })
            }
            CoreDef::TaskMayBlock => Ok(Source::state(MAY_BLOCK)),
            CoreDef::UnsafeIntrinsic(intrinsic) => context_storage(*intrinsic),
        }
    }

    fn export(&self, export: &CoreExport<EntityIndex>) -> Result<Source, CompileError> {
        let CoreInstance { place: instance, module, .. } = self.instances[export.instance.index()];
        let name = match &export.item {
            ExportItem::Name(name) => Some(name.clone()),
            ExportItem::Index(index) => {
                let module = &self.static_modules[module].module;
                let name = module.exports.iter().find(|(_, found)| *found == index);
                name.map(|(name, _)| module.strings[name].to_owned())
            }
        };
        let export = name.ok_or_else(|| CompileError::Component { message: "an export without a name (a bug)".to_owned() })?;
        Ok(Source { instance, export })
    }

    /// Makes the glue instances for those trampolines among the arguments that have none. Those that work on the same memory share one.
    fn make_glue(&mut self, arguments: &[CoreDef]) -> Result<(), CompileError> {
        let mut groups: Vec<Making> = Vec::new();
        for argument in arguments {
            let CoreDef::Trampoline(index) = *argument else { continue };
            if self.made.contains_key(&index) || groups.iter().any(|making| making.has(index)) {
                continue;
            }
            let trampoline = &self.trampolines[index];
            if tasks::is_of_adapter(trampoline) {
                continue;
            }
            if let Some(source) = in_state(trampoline) {
                self.made.insert(index, source);
                continue;
            }
            let group = self.group(trampoline)?;
            let place = groups.iter().position(|making| making.group == group).unwrap_or_else(|| {
                let glue = match &group {
                    Group::Memory(memory) => Glue::new(memory.as_ref()),
                    Group::Between(from, to) => Glue::between(from, to),
                };
                groups.push(Making { group, glue, members: Vec::new() });
                groups.len() - 1
            });
            let ty = self.signature(self.component.trampolines[index])?;
            if let Some(export) = self.wrap(trampoline, &ty, &mut groups[place].glue)? {
                groups[place].members.push((index, export));
            } else {
                // It is refused in the end: until then anything stands for it.
                self.made.insert(index, Source::state("trap"));
            }
        }
        for Making { glue, members, .. } in groups {
            if members.is_empty() {
                continue;
            }
            let (text, linked) = glue.finish();
            let instance = self.instantiate(&text, &linked)?;
            self.made.extend(members.into_iter().map(|(index, export)| (index, Source { instance, export })));
        }
        Ok(())
    }

    /// A memory of the component.
    fn memory(&self, index: RuntimeMemoryIndex) -> Result<Source, CompileError> {
        let memory = self.memories.get(&index).cloned();
        memory.ok_or_else(|| CompileError::Component { message: "a memory that is not there yet (a bug)".to_owned() })
    }

    /// On which memories a trampoline works.
    fn group(&self, trampoline: &Trampoline) -> Result<Group, CompileError> {
        let memory = |index: &RuntimeMemoryIndex| self.memory(*index);
        Ok(match trampoline {
            Trampoline::LowerImport { options, .. } => {
                let memory = self.component.options[*options].memory().as_ref().map(memory).transpose()?;
                Group::Memory(memory)
            }
            Trampoline::Transcoder { from64: true, .. } | Trampoline::Transcoder { to64: true, .. } => {
                return Err(unsupported("a memory of 64 bits in a component"));
            }
            Trampoline::Transcoder { from, to, .. } => Group::Between(memory(from)?, memory(to)?),
            other => match builtins::options(other).and_then(|options| self.component.options[options].memory()) {
                Some(index) => Group::Memory(Some(memory(&index)?)),
                None => Group::Memory(None),
            },
        })
    }

    /// Adds the wrapper of a trampoline to glue; the name of its export. None where the host does not offer what it stands for, which is noted.
    fn wrap(&mut self, trampoline: &Trampoline, ty: &Signature, glue: &mut Glue) -> Result<Option<String>, CompileError> {
        let table = |builder: &Self, instance: RuntimeComponentInstanceIndex| builder.state.table(instance.as_u32());
        Ok(Some(match trampoline {
            Trampoline::LowerImport { index, lower_ty, options } => {
                return self.lower(*index, *lower_ty, *options, ty, glue);
            }
            Trampoline::ResourceNew { instance, ty } => {
                glue.resource_new(instance.as_u32(), table(self, *instance), self.row(*ty).resource)
            }
            Trampoline::ResourceRep { instance, ty } => glue.resource_rep(table(self, *instance), self.row(*ty).resource),
            Trampoline::ResourceDrop { instance, ty } => {
                let end = self.destructor(*ty);
                glue.resource_drop(instance.as_u32(), table(self, *instance), self.row(*ty).resource, &end, self.throws)
            }
            Trampoline::Transcoder { op, .. } => glue.transcoder(transcoder(*op)),
            other => self.builtin(other, ty, glue)?,
        }))
    }

    /// What ends a resource.
    fn destructor(&self, ty: TypeResourceTableIndex) -> Destructor {
        let TypeResourceTable::Concrete { ty, instance } = self.types[ty] else { return Destructor::None };
        let Some(defined) = self.component.defined_resource_index(ty) else { return Destructor::Host };
        let Some(function) = self.destructors.get(&ty).cloned() else { return Destructor::None };
        let home = self.component.defined_resource_instances[defined];
        let is_call = home != instance && self.state.concurrency.is_some();
        Destructor::Guest { function, home: is_call.then_some(home.as_u32()) }
    }

    /// A resource type, as the state knows it.
    fn row(&self, index: TypeResourceTableIndex) -> Row {
        let TypeResourceTable::Concrete { ty, instance } = self.types[index] else {
            return Row { instance: 0, resource: UNKNOWN_RESOURCES_START, is_home: false };
        };
        let instance_index = instance.as_u32();
        match self.component.defined_resource_index(ty) {
            Some(defined) => {
                let home = self.component.defined_resource_instances[defined];
                Row { instance: instance_index, resource: abi::OWN_RESOURCES_START + defined.as_u32(), is_home: home == instance }
            }
            None => {
                let (import, path) = &self.component.imports[self.component.imported_resources[ty]];
                let interface = abi::track(&self.component.import_types[*import].0);
                let known = path.first().and_then(|name| abi::resource(&interface, name));
                Row { instance: instance_index, resource: known.unwrap_or(UNKNOWN_RESOURCES_START + ty.as_u32()), is_home: false }
            }
        }
    }

    /// The type of a core function.
    fn signature(&self, ty: ModuleInternedTypeIndex) -> Result<Signature, CompileError> {
        let ty = self.types.module_types()[ty].unwrap_func();
        let params = ty.params().iter().map(value).collect::<Result<_, _>>()?;
        Ok(Signature { params, results: ty.results().iter().map(value).collect::<Result<_, _>>()? })
    }
}

/// A type of a value of the core.
fn value(ty: &WasmValType) -> Result<ValType, CompileError> {
    match ty {
        WasmValType::I32 => Ok(ValType::I32),
        WasmValType::I64 => Ok(ValType::I64),
        WasmValType::F32 => Ok(ValType::F32),
        WasmValType::F64 => Ok(ValType::F64),
        WasmValType::V128 | WasmValType::Ref(_) => Err(unsupported("a reference or vector in the canonical ABI")),
    }
}

/// What trampolines of a glue instance have in common.
#[derive(PartialEq, Eq)]
enum Group {
    /// They work on a memory of the component, or on none.
    Memory(Option<Source>),
    /// They copy from one to the other.
    Between(Source, Source),
}

/// A glue module in the making.
struct Making {
    group: Group,
    glue: Glue,
    /// The trampolines in it, and under which names it exports them.
    members: Vec<(TrampolineIndex, String)>,
}

impl Making {
    fn has(&self, index: TrampolineIndex) -> bool {
        self.members.iter().any(|member| member.0 == index)
    }
}

/// What the state exports itself.
fn in_state(trampoline: &Trampoline) -> Option<Source> {
    Some(Source::state(match trampoline {
        Trampoline::ResourceTransferOwn => "transfer own",
        Trampoline::ResourceTransferBorrow => "transfer borrow",
        Trampoline::EnterSyncCall => "enter",
        Trampoline::ExitSyncCall => "exit",
        Trampoline::Trap => "trap of adapter",
        Trampoline::StreamTransfer => "transfer stream",
        Trampoline::FutureTransfer => "transfer future",
        Trampoline::ErrorContextTransfer => "transfer error",
        _ => return None,
    }))
}

/// Where a task keeps what it finds again.
fn context_storage(intrinsic: UnsafeIntrinsic) -> Result<Source, CompileError> {
    Ok(Source::state(match intrinsic {
        UnsafeIntrinsic::ContextGetI32_0 => "context get 0",
        UnsafeIntrinsic::ContextGetI32_1 => "context get 1",
        UnsafeIntrinsic::ContextSetI32_0 => "context set 0",
        UnsafeIntrinsic::ContextSetI32_1 => "context set 1",
        other => return Err(unsupported(format!("the intrinsic `{}`", other.name()))),
    }))
}

/// The numbers with which adapters trap, as far as there are words for them.
fn traps() -> Vec<(u32, Violation)> {
    let known = [
        (Trap::CannotLeaveComponent, Violation::MayNotLeave),
        (Trap::CannotEnterComponent, Violation::Reentered),
        (Trap::InvalidChar, Violation::InvalidChar),
        (Trap::StringOutOfBounds, Violation::StringOutOfBounds),
        (Trap::ListOutOfBounds, Violation::ListOutOfBounds),
        (Trap::InvalidDiscriminant, Violation::InvalidDiscriminant),
        (Trap::UnalignedPointer, Violation::UnalignedPointer),
        (Trap::UncaughtException, Violation::UncaughtException),
        (Trap::MemoryOutOfBounds, Violation::PointerOutOfBounds),
        (Trap::CannotBlockSyncTask, Violation::MayNotBlock),
    ];
    known.into_iter().map(|(trap, violation)| (trap as u32, violation)).collect()
}

/// The name of a function of `transcode.wat`.
const fn transcoder(op: Transcode) -> &'static str {
    match op {
        Transcode::Copy(FixedEncoding::Utf8) => "copy utf8",
        Transcode::Copy(FixedEncoding::Utf16) => "copy utf16",
        Transcode::Copy(FixedEncoding::Latin1) => "copy latin1",
        Transcode::Latin1ToUtf16 => "latin1 to utf16",
        Transcode::Latin1ToUtf8 => "latin1 to utf8",
        Transcode::Utf16ToCompactProbablyUtf16 => "utf16 to compact probably utf16",
        Transcode::Utf16ToCompactUtf16 => "utf16 to compact utf16",
        Transcode::Utf16ToLatin1 => "utf16 to latin1",
        Transcode::Utf16ToUtf8 => "utf16 to utf8",
        Transcode::Utf8ToCompactUtf16 => "utf8 to compact utf16",
        Transcode::Utf8ToLatin1 => "utf8 to latin1",
        Transcode::Utf8ToUtf16 => "utf8 to utf16",
    }
}
