//! From a component to a program: wasmtime-environ translates it, resolves which core instance calls which, and writes the modules that pass values from one
//! component to another; here its plan becomes ours, with glue where its runtime would have code.

mod builtins;
mod census;
mod closed;
mod concurrency;
mod copiers;
mod definitions;
mod description;
mod ends;
mod flat;
mod instances;
mod lowered;
mod options;
mod resources;
mod root;
mod tasks;
mod trampolines;
mod transcoders;
mod ways;
mod wit;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use awsm_abi::component::{self as abi, Violation};
use awsm_abi::text;
use awsm_abi::types::ValType;
use wasmtime_environ::component::{
    Component, ComponentTypes, ComponentTypesBuilder, GlobalInitializer, InstantiateModule, LoweredIndex, ResourceIndex,
    RuntimeCallbackIndex, RuntimeComponentInstanceIndex, RuntimeImportIndex, RuntimeMemoryIndex, RuntimePostReturnIndex,
    RuntimeReallocIndex, Trampoline, TrampolineIndex, Translator, TypeResourceTableIndex,
};
use wasmtime_environ::wasmparser::{
    BinaryReaderError, CanonicalFunction, CanonicalOption, Parser, Payload, Validator, WasmFeatures,
};
use wasmtime_environ::{
    EntityIndex, ModuleInternedTypeIndex, ModuleTranslation, PrimaryMap, ScopeVec, StaticModuleIndex, Trap, Tunables, WasmValType,
};

use self::copiers::{Copiers, Writing};
use self::instances::CoreInstance;
use self::lowered::{Missing, rebuilt_for};
use self::root::HANDLER_ASYNC;
use super::glue::{Signature, Source, State};
use super::{Composition, labels};
use crate::error::CompileError;
use crate::program::Instance;

/// Translates a component.
///
/// # Errors
/// When it is not valid or too large, needs what is not supported, or imports what the host does not offer and may not (`unknown_imports`).
pub(super) fn translate(bytes: &[u8], unknown_imports: bool) -> Result<Composition, CompileError> {
    // Adapters catch what leaves a component where something may be thrown, which costs every call: first without.
    let translated = || match translate_with(bytes, features(), unknown_imports) {
        Err(CompileError::Invalid { .. }) => translate_with(bytes, features() | WasmFeatures::EXCEPTIONS, unknown_imports),
        other => other,
    };
    census::check(bytes).and_then(|()| translated()).map_err(|error| match error {
        // The binary format of async functions changed until the release.
        CompileError::Invalid { .. } => of_candidate(bytes, &error).unwrap_or(error),
        error => error,
    })
}

/// What is said of a component that is not valid and names an interface of a release candidate, if it does.
fn of_candidate(bytes: &[u8], error: &CompileError) -> Option<CompileError> {
    let mut names = Parser::new(0).parse_all(bytes).map_while(Result::ok).flat_map(|payload| -> Vec<&str> {
        match payload {
            Payload::ComponentImportSection(section) => {
                section.into_iter().map_while(Result::ok).map(|import| import.name.name).collect()
            }
            Payload::ComponentExportSection(section) => {
                section.into_iter().map_while(Result::ok).map(|export| export.name.name).collect()
            }
            _ => Vec::new(),
        }
    });
    let (name, release) = names.find_map(|name| Some((name, abi::candidate(name)?)))?;
    let message = format!("this component names the interface `{}`; {} ({error})", text::name(name), rebuilt_for(release));
    Some(CompileError::Component { message })
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
        closed: BTreeSet::new(),
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
        builder.closed = builder.closed_instances();
    }
    builder.build()?;
    // What becomes code as it is, is validated as it is compiled.
    let unused = modules.iter().filter(|(index, _)| !builder.compiled.contains_key(index));
    for (_, module) in unused {
        let valid = Validator::new_with_features(features).validate_all(module.wasm);
        valid.map_err(|error| CompileError::invalid(error.offset() as u64, error.message()))?;
    }
    let description = builder.description(bytes);
    Ok(Composition {
        modules: builder.modules,
        plan: builder.plan,
        description,
        warnings: builder.warnings.into_iter().collect(),
    })
}

/// Whether a component is valid, with what components may use where they are compiled.
///
/// # Errors
/// What is wrong, and where.
pub(super) fn validate(bytes: &[u8]) -> Result<(), BinaryReaderError> {
    Validator::new_with_features(features() | WasmFeatures::EXCEPTIONS).validate_all(bytes).map(drop)
}

/// Whether a component has tasks: functions that are lifted or lowered as async, or built-in functions for them; what the server calls as a task; or streams of the
/// host, which it may give back without a built-in function.
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
        Payload::ComponentImportSection(section) => {
            section.into_iter().map_while(Result::ok).any(|import| gives_ends(&abi::track(import.name.name)))
        }
        _ => false,
    })
}

/// Whether an interface of the host has functions that return streams or futures.
fn gives_ends(interface: &str) -> bool {
    let offered = abi::INTERFACES.iter().find(|offered| offered.name == interface);
    offered.is_some_and(|offered| offered.functions.iter().any(|function| !function.ends.is_empty()))
}

/// A generated module in the binary format.
fn assemble(text: &str) -> Result<Vec<u8>, CompileError> {
    wat::parse_str(text).map_err(|error| CompileError::component(&format!("glue that is not valid (a bug): {error}")))
}

/// What components may use, or are refused for by name: wherever awsm reads components. Exceptions are left out.
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
    match error.downcast_ref::<BinaryReaderError>() {
        Some(error) => CompileError::invalid(error.offset() as u64, error.message()),
        None => CompileError::component(&format!("{error:#}")),
    }
}

fn unsupported(what: impl Into<String>) -> CompileError {
    CompileError::component(&format!("{} is not supported", what.into()))
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
    /// The same of those that became instances behind a start function and write their segments themselves ([`super::starts`]).
    compiled_late: HashMap<StaticModuleIndex, Option<usize>>,
    /// Whether one of the instances so far has a start function.
    has_start: bool,
    /// Component instances whose functions are called without a record ([`closed`]).
    closed: BTreeSet<u32>,
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
    missing: Vec<Missing>,
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
