//! What the object code of a part depends on, as a hash.
//!
//! All parts of a module are one *group*. A part's key is a hash over
//!
//! 1. the compiler: its bytes, the libraries that it loads, LLVM's version, the ABI version,
//! 2. the options, and the processor that they mean,
//! 3. all code of the module, and all that translation knows of its surroundings: types, signatures, names, the layout of an instance, and what its imports
//!    are in its program,
//! 4. which functions the part has, and how hard they are optimised.
//!
//! The bytes of data segments, element segments, sizes of memories and tables, initial values of variable globals and other modules are not in it. What
//! translation may use of a [`Module`] is listed once, in [`add_module`], where each new field has to be decided on.
//!
//! A part depends on less than all code of its module. It is in the key because one process compiles all parts of a group: if a function took that process over, it
//! could give wrong code for the others. So wrong code can be kept only under keys of modules that hold the same function.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use awsm_abi::ABI_VERSION;
use awsm_abi::types::{Bounds, MemoryType, TableType};
use blake3::{Hash, Hasher};
use serde::Serialize;

use crate::linked::Linked;
use crate::llvm::{self, TargetCpu};
use crate::module::{FuncIdx, Import, ImportType, Module, ModuleIdx};
use crate::options::{CompileOptions, Effort};
use crate::partition::Part;
use crate::translate::function_symbol;

/// What a part is kept under.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PartKey {
    /// The module whose code it is.
    pub(crate) module: ModuleIdx,
    /// Of the module's parts together.
    pub(crate) group: Hash,
    /// Of this one.
    pub(crate) part: Hash,
}

/// The compiler, as a hash.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Compiler(Hash);

impl Compiler {
    /// The program `awsm`, run with the libraries that this process has loaded.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(crate) fn of(awsm: &Path) -> io::Result<Compiler> {
        let mut hasher = Hasher::new();
        hasher.update_reader(fs::File::open(awsm)?)?;
        // Their versions do not tell builds apart. Their times do, and cost nothing.
        let mut libraries: Vec<_> =
            fs::read_to_string("/proc/self/maps")?.lines().filter_map(library).map(str::to_owned).collect();
        libraries.sort_unstable();
        libraries.dedup();
        for path in libraries {
            let metadata = fs::metadata(&path)?;
            add(&mut hasher, &(path, metadata.len(), metadata.mtime(), metadata.mtime_nsec()))?;
        }
        add(&mut hasher, &(env!("CARGO_PKG_VERSION"), llvm::version(), ABI_VERSION))?;
        Ok(Compiler(hasher.finalize()))
    }
}

/// The path of a library in a line of `/proc/self/maps`.
fn library(line: &str) -> Option<&str> {
    let path = &line[line.find('/')?..];
    path.contains(".so").then_some(path)
}

/// A module whose parts are kept, in its program.
pub(crate) struct Group<'a> {
    pub(crate) module: &'a Module<'a>,
    /// How accesses to each memory are checked.
    pub(crate) bounds: &'a [Bounds],
    /// Size of the fixed part of an instance.
    pub(crate) layout_bytes: u32,
    pub(crate) linked: &'a Linked,
    pub(crate) modules: &'a [Module<'a>],
    pub(crate) segment: bool,
}

impl Group<'_> {
    /// The hash of what all of its parts depend on.
    ///
    /// # Errors
    /// When something cannot be written as bytes: a bug.
    pub(crate) fn hash(&self, compiler: &Compiler, options: &CompileOptions, cpu: &TargetCpu) -> io::Result<Hash> {
        let mut hasher = Hasher::new_derive_key("awsm 2026-11-23 cache of parts: code of a module, and its environment");
        hasher.update(compiler.0.as_bytes());
        // No code depends on how many threads there are, nor on lines of the source.
        add(&mut hasher, &CompileOptions { jobs: 0, debug: false, ..options.clone() })?;
        add(&mut hasher, &(cpu.arch.name(), &cpu.tune, &cpu.features))?;
        add(&mut hasher, &(self.bounds, self.layout_bytes, self.segment, self.modules.len() > 1))?;
        self.add_linked(&mut hasher)?;
        add_module(&mut hasher, self.module)?;
        Ok(hasher.finalize())
    }

    /// Adds what imports are.
    fn add_linked(&self, hasher: &mut Hasher) -> io::Result<()> {
        for function in 0..self.module.imported_functions {
            let target = self.linked.function(self.module, FuncIdx(function)).map(|target| {
                let module = &self.modules[target.function.module.0 as usize];
                (function_symbol(module, target.function.function), target.behind)
            });
            add(hasher, &target)?;
        }
        let memories = 0..self.module.memories.len() as u32;
        add(hasher, &memories.map(|memory| self.linked.memory(self.module, memory)).collect::<Vec<_>>())
    }

    /// The key of a part, which is the program's part of that index. `is_first`: of the module. `shared`: see [`crate::partition::Plan`].
    ///
    /// # Errors
    /// As for [`hash`](Self::hash).
    pub(crate) fn part(&self, group: Hash, index: usize, part: &Part, is_first: bool, shared: &[bool]) -> io::Result<PartKey> {
        let mut hasher = Hasher::new_derive_key("awsm 2026-11-23 cache of parts: a part");
        hasher.update(group.as_bytes());
        let numbers = |functions: &[FuncIdx]| functions.iter().map(|function| function.0).collect::<Vec<_>>();
        let effort = match part.effort {
            Effort::Level(level) => (level.number(), false),
            Effort::GivenUp => (part.effort.level().number(), true),
        };
        let defined = part.functions.iter().filter_map(|&function| self.module.defined(function));
        let is_shared: Vec<bool> = defined.map(|defined| shared[defined]).collect();
        add(&mut hasher, &(index as u64, is_first, effort))?;
        add(&mut hasher, &(numbers(&part.functions), numbers(&part.copies), is_shared))?;
        Ok(PartKey { module: self.module.index, group, part: hasher.finalize() })
    }
}

/// Where the functions of a group are kept that were given up within a time limit.
pub(crate) fn given_up(group: Hash, seconds_max: u64) -> Hash {
    let mut hasher = Hasher::new_derive_key("awsm 2026-11-23 cache of parts: functions that take too long");
    hasher.update(group.as_bytes()).update(&seconds_max.to_le_bytes()).finalize()
}

/// Adds what translation may use of a module. What is left out, it must not use: see the reasons.
fn add_module(hasher: &mut Hasher, module: &Module<'_>) -> io::Result<()> {
    let Module {
        index,
        // Lines, from which the trap table comes, count from the start of the module's code: what stands before it is added when they are read.
        bytes: _,
        wasm_base: _,
        code_start,
        // For the descriptor and the line table of the artifact.
        name: _,
        groups: _,
        table_inits: _,
        debug_sections: _,
        types,
        declared,
        imports,
        functions,
        imported_functions,
        bodies,
        function_names,
        escapes,
        tail_calls,
        exceptions,
        throws,
        tables,
        imported_tables,
        memories,
        imported_memories,
        globals,
        imported_globals,
        // Of globals that never change, the value; of others, no code knows it.
        global_inits: _,
        tags,
        imported_tags,
        exports,
        // Which functions they let escape is in `escapes`.
        start: _,
        elements: _,
        // Code knows segments by their index.
        data: _,
        blob: _,
    } = module;
    add(hasher, &(index.0, types, exceptions, escapes, tail_calls, throws))?;
    // A throw says where it stands in the module.
    add(hasher, &exceptions.then_some(*code_start))?;
    add(hasher, &declared.iter().map(|declared| (declared.supertype, declared.is_final)).collect::<Vec<_>>())?;
    add(hasher, &imports.iter().map(imported).collect::<Vec<_>>())?;
    add(hasher, &functions.iter().chain(tags).map(|ty| ty.0).collect::<Vec<_>>())?;
    add(hasher, &(functions.len() as u64, tags.len() as u64, function_names, exports, globals))?;
    add(hasher, &[imported_functions, imported_tables, imported_memories, imported_globals, imported_tags])?;
    add(hasher, &(0..globals.len() as u32).map(|global| module.constant_global(global)).collect::<Vec<_>>())?;
    let table = |&TableType { element, elements_min: _, elements_max: _, table64 }: &TableType| (element, table64);
    add(hasher, &tables.iter().map(table).collect::<Vec<_>>())?;
    let memory = |&MemoryType { pages_min: _, pages_max: _, memory64, shared }: &MemoryType| (memory64, shared);
    add(hasher, &memories.iter().map(memory).collect::<Vec<_>>())?;
    for body in bodies {
        let bytes = body.as_bytes();
        hasher.update(&(body.range().start - u64::from(*code_start)).to_le_bytes());
        hasher.update(&(bytes.len() as u64).to_le_bytes()).update(bytes);
    }
    Ok(())
}

/// An import's names, and whether it is a function: its thunk has these names. What other imports are, tables, memories, globals and tags say.
fn imported(import: &Import) -> (bool, &str, &str) {
    (matches!(import.ty, ImportType::Function(_)), &import.module, &import.name)
}

/// Adds a value, and where it ends.
fn add(hasher: &mut Hasher, value: &impl Serialize) -> io::Result<()> {
    let bytes = postcard::to_allocvec(value).map_err(io::Error::other)?;
    hasher.update(&(bytes.len() as u64).to_le_bytes()).update(&bytes);
    Ok(())
}
