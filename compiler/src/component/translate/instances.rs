//! Core instances of a component, and where what they import and export is found in the plan.

use std::collections::HashMap;

use wasmtime_environ::component::{
    CoreDef, CoreExport, ExportItem, RuntimeComponentInstanceIndex, RuntimeMemoryIndex, UnsafeIntrinsic,
};
use wasmtime_environ::{EntityIndex, EntityRef as _, EntityType, StaticModuleIndex};

use super::super::glue::{Glue, LINKED, MAY_BLOCK, Signature, Source, flags};
use super::super::starts;
use super::{Builder, assemble, unsupported};
use crate::error::CompileError;
use crate::program::Instance;

/// The module name under which adapters import what is called when a result has been taken.
const POST_RETURN: &str = "post_return";

/// A core instance of the component.
#[derive(Clone, Copy)]
pub(super) struct CoreInstance {
    /// Its place in the plan.
    pub(super) place: usize,
    pub(super) module: StaticModuleIndex,
    /// The component instance that made it; none for adapters.
    pub(super) owner: Option<RuntimeComponentInstanceIndex>,
}

impl Builder<'_> {
    /// Adds a glue module and its instance, whose imports from [`LINKED`] are these. The instance's place in the plan.
    pub(super) fn instantiate(&mut self, text: &str, linked: &[Source]) -> Result<usize, CompileError> {
        self.modules.push(assemble(text)?);
        let mut instance = Instance::of(self.modules.len() - 1);
        for (index, source) in linked.iter().enumerate() {
            instance = instance.with(LINKED, &index.to_string(), source.instance, &source.export);
        }
        self.plan.push(instance);
        Ok(self.plan.len() - 1)
    }

    pub(super) fn instantiate_static(
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
            None => match self.compiled.get(&index) {
                Some(module) => *module,
                None => {
                    let is_adapters = owner.is_none();
                    let wasm = if is_adapters { self.without_records(index, arguments)? } else { translated.wasm.to_vec() };
                    self.modules.push(wasm);
                    self.compiled.insert(index, self.modules.len() - 1);
                    self.modules.len() - 1
                }
            },
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
        let unreadable = |error| CompileError::component(&format!("a core module that cannot be read: {error}"));
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
    pub(super) fn post_return(
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
    pub(super) fn source(&mut self, def: &CoreDef) -> Result<Source, CompileError> {
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

    pub(super) fn export(&self, export: &CoreExport<EntityIndex>) -> Result<Source, CompileError> {
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

    /// A memory of the component.
    pub(super) fn memory(&self, index: RuntimeMemoryIndex) -> Result<Source, CompileError> {
        let memory = self.memories.get(&index).cloned();
        memory.ok_or_else(|| CompileError::Component { message: "a memory that is not there yet (a bug)".to_owned() })
    }
}

/// Where a task keeps what it finds again.
pub(super) fn context_storage(intrinsic: UnsafeIntrinsic) -> Result<Source, CompileError> {
    Ok(Source::state(match intrinsic {
        UnsafeIntrinsic::ContextGetI32_0 => "context get 0",
        UnsafeIntrinsic::ContextGetI32_1 => "context get 1",
        UnsafeIntrinsic::ContextSetI32_0 => "context set 0",
        UnsafeIntrinsic::ContextSetI32_1 => "context set 1",
        other => return Err(unsupported(format!("the intrinsic `{}`", other.name()))),
    }))
}
