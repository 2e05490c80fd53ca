//! What becomes one artifact: core modules, and the plan by which a sandbox makes instances of them.
//!
//! A program is what a caller asks for, in bytes and names; the compiler has read nothing of it. [`compile`](crate::compile()) parses and validates the modules
//! where it runs, which for [`isolated::compile`](crate::isolated::compile) is the process with the limits, and holds the plan against them
//! ([`Program::check`]). What comes after works on [`Checked`], and may index.

use std::collections::BTreeMap;

use awsm_abi::descriptor::{ExternKind, ImportSource, Instantiation};
use awsm_abi::limits::MODULES_MAX;
use serde::{Deserialize, Serialize};

use crate::error::CompileError;
use crate::module::{self, ImportType, Module, ModuleIdx};
use crate::options::CompileOptions;
use crate::progress::Progress;

/// Core modules in the binary format, and the instances that a sandbox makes of them, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program<'a> {
    modules: Vec<&'a [u8]>,
    plan: Vec<Instance>,
    /// Whether it is a component, in the place of its only module, and the plan is still to be made.
    component: bool,
}

/// A step of a program's plan: an instance of a module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instance {
    /// Index of the module.
    module: usize,
    /// Which imports come from earlier instances.
    links: Vec<Link>,
}

/// An import that is bound to an export of an earlier instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Link {
    module: String,
    name: String,
    /// Index of the instance.
    from: usize,
    export: String,
}

/// Modules that are valid, and a plan that fits them.
pub(crate) struct Checked<'a> {
    pub(crate) modules: Vec<Module<'a>>,
    pub(crate) plan: Vec<Instantiation>,
}

impl Instance {
    /// An instance of the program's module of that index. The host provides what it imports.
    #[must_use]
    pub const fn of(module: usize) -> Instance {
        Instance { module, links: Vec::new() }
    }

    /// The same, but the import `name` of `module` is what the instance `from`, by its index in the plan, exports as `export`.
    #[must_use]
    pub fn with(mut self, module: &str, name: &str, from: usize, export: &str) -> Instance {
        self.links.push(Link { module: module.to_owned(), name: name.to_owned(), from, export: export.to_owned() });
        self
    }

    /// Index of the module.
    pub(crate) const fn module(&self) -> usize {
        self.module
    }

    /// The step with an answer for each import, in the order of its module.
    fn resolve(&self, modules: &[Module<'_>], earlier: &[Instantiation]) -> Result<Instantiation, String> {
        let Some(module) = modules.get(self.module) else {
            return Err(format!("it is of module {}, but the program has {}", self.module, modules.len()));
        };
        let mut links: BTreeMap<(&str, &str), &Link> = BTreeMap::new();
        for link in &self.links {
            if links.insert((&link.module, &link.name), link).is_some() {
                return Err(format!("its import {:?} {:?} is bound twice", link.module, link.name));
            }
            if !module.imports.iter().any(|import| (&import.module, &import.name) == (&link.module, &link.name)) {
                return Err(format!("its module has no import {:?} {:?}", link.module, link.name));
            }
        }
        let source = |import: &module::Import| match links.get(&(&*import.module, &*import.name)) {
            None => Ok(ImportSource::Host),
            Some(link) => link.source(kind(import.ty), modules, earlier),
        };
        let imports = module.imports.iter().map(source).collect::<Result<_, _>>()?;
        Ok(Instantiation { module: self.module as u32, imports })
    }
}

impl Link {
    /// Where the import of that kind comes from. Types are compared where sandboxes are made: those of a memory or table depend on how it has grown.
    fn source(&self, kind: ExternKind, modules: &[Module<'_>], earlier: &[Instantiation]) -> Result<ImportSource, String> {
        let Link { module, name, from, export } = self;
        let import = format!("its import {module:?} {name:?} comes from instance {from}");
        let Some(step) = earlier.get(*from) else {
            return Err(format!("{import}, which is not an earlier one"));
        };
        let found = modules[step.module as usize].exports.iter().find(|found| found.name == *export);
        match found {
            None => Err(format!("{import}, which has no export {export:?}")),
            Some(found) if found.kind != kind => {
                Err(format!("{import}, whose export {export:?} is a {}, not a {kind}", found.kind))
            }
            Some(_) => Ok(ImportSource::Instance { instance: *from as u32, export: export.clone() }),
        }
    }
}

const fn kind(ty: ImportType) -> ExternKind {
    match ty {
        ImportType::Function(_) => ExternKind::Function,
        ImportType::Table(_) => ExternKind::Table,
        ImportType::Memory(_) => ExternKind::Memory,
        ImportType::Global(_) => ExternKind::Global,
        ImportType::Tag(_) => ExternKind::Tag,
    }
}

impl<'a> Program<'a> {
    /// A program of these modules and instances. Whether they fit each other, [`compile`](crate::compile()) says.
    #[must_use]
    pub fn new(modules: impl IntoIterator<Item = &'a [u8]>, plan: Vec<Instance>) -> Program<'a> {
        Program { modules: modules.into_iter().collect(), plan, component: false }
    }

    /// A component, which may hold other components.
    #[must_use]
    pub fn component(wasm: &'a [u8]) -> Program<'a> {
        Program { modules: vec![wasm], plan: Vec::new(), component: true }
    }

    /// What the bytes are by how they begin: a component, or else a [single](Self::single) module.
    #[must_use]
    pub fn of(wasm: &'a [u8]) -> Program<'a> {
        let is_component = wasm.starts_with(b"\0asm") && wasm.get(6..8) == Some(&[1, 0]);
        if is_component { Program::component(wasm) } else { Program::single(wasm) }
    }

    /// Whether it is a component.
    pub(crate) const fn is_component(&self) -> bool {
        self.component
    }

    /// A program of one module with one instance. The host provides what it imports.
    #[must_use]
    pub fn single(wasm: &'a [u8]) -> Program<'a> {
        Program::new([wasm], vec![Instance::of(0)])
    }

    /// The modules' bytes.
    pub(crate) fn modules(&self) -> &[&'a [u8]] {
        &self.modules
    }

    /// The instances.
    pub(crate) fn plan(&self) -> &[Instance] {
        &self.plan
    }

    /// Parses and validates the modules, and resolves the plan.
    ///
    /// # Errors
    /// Those of modules, which say of which one if there are several, [`CompileError::Limit`], and [`CompileError::Plan`].
    pub(crate) fn check(&self, options: &CompileOptions, progress: &dyn Progress) -> Result<Checked<'a>, CompileError> {
        for (what, found) in [("modules of a program", self.modules.len()), ("instances of a program", self.plan.len())] {
            module::limit(what, found as u64, MODULES_MAX as u64, 0)?;
        }
        if self.modules.is_empty() {
            return Err(CompileError::Plan { message: "a program has at least one module".to_owned() });
        }
        let mut modules = self.parse(options, progress)?;
        // All instances of a sandbox have to agree whether functions return exceptions.
        if modules.iter().any(|module| module.exceptions) && !modules.iter().all(|module| module.exceptions) {
            modules = self.parse(&CompileOptions { foreign_exceptions: true, ..options.clone() }, progress)?;
        }
        let mut plan = Vec::new();
        for (index, instance) in self.plan.iter().enumerate() {
            let wrong = |message| CompileError::Plan { message: format!("instance {index}: {message}") };
            plan.push(instance.resolve(&modules, &plan).map_err(wrong)?);
        }
        Ok(Checked { modules, plan })
    }

    fn parse(&self, options: &CompileOptions, progress: &dyn Progress) -> Result<Vec<Module<'a>>, CompileError> {
        let is_one = self.modules.len() == 1;
        let parse = |(index, wasm): (usize, &&'a [u8])| match module::parse(wasm, options, progress) {
            Ok(module) => Ok(Module { index: ModuleIdx(index as u32), ..module }),
            Err(error) if is_one => Err(error),
            Err(error) => Err(CompileError::Module { index, source: Box::new(error) }),
        };
        let mut modules = self.modules.iter().enumerate().map(parse).collect::<Result<Vec<_>, _>>()?;
        let mut bytes = 0;
        for module in &mut modules {
            // Of one the limit is lower.
            module.wasm_base = bytes as u32;
            bytes += u64::from(module.bytes);
            module::limit("bytes of all modules of a program", bytes, u64::from(u32::MAX), 0)?;
        }
        Ok(modules)
    }
}
