//! What the object code of a part depends on, as a hash.
//!
//! Parts that one process compiles are a *batch*. A part's key is a hash over
//!
//! 1. the compiler: its bytes, the libraries that it loads, LLVM's version, the ABI version,
//! 2. the options, and the processor that they mean,
//! 3. of each module that has parts in the batch, all that translation knows of a function's surroundings: types, signatures, names, the layout of an
//!    instance, and what its imports are in its program,
//! 4. of each part in the batch, which functions it has, how hard they are optimised, and their bodies; the names of the host's functions, where it has their thunks,
//! 5. which of these parts it is.
//!
//! The bytes of data segments, element segments, sizes of memories and tables, initial values of variable globals and the code of other batches are not in it. What
//! translation may use of a [`Module`] is listed once, in [`Environment::add_module`], where each new field has to be decided on.
//!
//! A part depends on less than its batch. All of that is in the key because a function that takes over the process that compiles it could give wrong code for
//! the other parts. So wrong code can be kept only under keys of batches that hold the same function.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use awsm_abi::ABI_VERSION;
use awsm_abi::descriptor::ExternKind;
use awsm_abi::types::{Bounds, MemoryType, TableType};
use blake3::{Hash, Hasher};
use serde::Serialize;

use crate::linked::Linked;
use crate::llvm::{self, TargetCpu};
use crate::module::{FuncId, FuncIdx, Import, ImportType, Module};
use crate::options::{CompileOptions, Effort};
use crate::partition::Part;
use crate::translate::function_symbol;

/// What a part is kept under.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PartKey {
    /// Of the parts that the same process compiles.
    pub(crate) batch: Hash,
    /// Of this one.
    pub(crate) part: Hash,
    /// The part's functions, which a process for it may give up.
    pub(crate) functions: Vec<FuncId>,
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

/// The hash of what all code depends on.
///
/// # Errors
/// When something cannot be written as bytes: a bug.
pub(crate) fn base(compiler: &Compiler, options: &CompileOptions, cpu: &TargetCpu) -> io::Result<Hash> {
    let mut hasher = Hasher::new_derive_key("awsm 2026-11-23 cache of parts: compiler and options");
    hasher.update(compiler.0.as_bytes());
    // No code depends on how many threads there are, nor on lines of the source.
    add(&mut hasher, &CompileOptions { jobs: 0, debug: false, ..options.clone() })?;
    add(&mut hasher, &(cpu.arch.name(), &cpu.tune, &cpu.features))?;
    Ok(hasher.finalize())
}

/// What translation knows of a function's surroundings.
pub(crate) struct Environment<'a> {
    pub(crate) module: &'a Module<'a>,
    /// How accesses to each memory are checked.
    pub(crate) bounds: &'a [Bounds],
    /// Size of the fixed part of an instance.
    pub(crate) layout_bytes: u32,
    pub(crate) linked: &'a Linked,
    pub(crate) modules: &'a [Module<'a>],
    pub(crate) segment: bool,
}

impl Environment<'_> {
    /// Its hash.
    ///
    /// # Errors
    /// As for [`base`].
    pub(crate) fn hash(&self) -> io::Result<Hash> {
        let mut hasher = Hasher::new_derive_key("awsm 2026-11-23 cache of parts: environment");
        add(&mut hasher, &(self.bounds, self.layout_bytes, self.segment, self.modules.len() > 1))?;
        self.add_linked(&mut hasher)?;
        self.add_module(&mut hasher)?;
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

    /// Adds what translation may use of the module besides bodies. What is left out, it must not use: see the reasons.
    fn add_module(&self, hasher: &mut Hasher) -> io::Result<()> {
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
            // Names are for thunks; types stand with functions, tables, memories, globals and tags.
            imports: _,
            functions,
            imported_functions,
            // Of the functions of a batch.
            bodies: _,
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
        } = self.module;
        let module = self.module;
        // Which functions exports let escape is in `escapes`; accesses to shared globals are others.
        let exported_globals = exports.iter().filter(|export| export.kind == ExternKind::Global).map(|export| export.index);
        let exported_globals: Vec<_> = exported_globals.collect();
        add(hasher, &(index.0, types, exceptions, escapes, tail_calls, throws))?;
        // A throw says where it stands in the module.
        add(hasher, &exceptions.then_some(*code_start))?;
        add(hasher, &declared.iter().map(|declared| (declared.supertype, declared.is_final)).collect::<Vec<_>>())?;
        add(hasher, &functions.iter().chain(tags).map(|ty| ty.0).collect::<Vec<_>>())?;
        add(hasher, &(functions.len() as u64, tags.len() as u64, function_names, exported_globals, globals))?;
        add(hasher, &[imported_functions, imported_tables, imported_memories, imported_globals, imported_tags])?;
        add(hasher, &(0..globals.len() as u32).map(|global| module.constant_global(global)).collect::<Vec<_>>())?;
        let table = |&TableType { element, elements_min: _, elements_max: _, table64 }: &TableType| (element, table64);
        add(hasher, &tables.iter().map(table).collect::<Vec<_>>())?;
        let memory = |&MemoryType { pages_min: _, pages_max: _, memory64, shared }: &MemoryType| (memory64, shared);
        add(hasher, &memories.iter().map(memory).collect::<Vec<_>>())?;
        Ok(())
    }
}

/// What a module gives to a part.
pub(crate) struct Member<'a> {
    /// The part's index in the program.
    pub(crate) index: usize,
    /// The hash of the module's [`Environment`].
    pub(crate) environment: Hash,
    pub(crate) module: &'a Module<'a>,
    pub(crate) part: &'a Part,
    /// Whether it is the module's first, which has entries and thunks.
    pub(crate) is_first: bool,
    /// See [`crate::partition::Plan`].
    pub(crate) shared: &'a [bool],
    /// The line behind which the module's lines begin.
    pub(crate) line: u32,
}

/// A batch's hash in the making.
pub(crate) struct Batch(Hasher);

impl Batch {
    pub(crate) fn new(base: Hash) -> Batch {
        let mut hasher = Hasher::new_derive_key("awsm 2026-11-23 cache of parts: batch");
        hasher.update(base.as_bytes());
        Batch(hasher)
    }

    /// Adds what a module gives to one of its parts.
    ///
    /// # Errors
    /// As for [`base`].
    pub(crate) fn add(&mut self, member: &Member<'_>) -> io::Result<()> {
        let &Member { index, environment, module, part, is_first, shared, line } = member;
        let hasher = &mut self.0;
        hasher.update(environment.as_bytes());
        let effort = match part.effort {
            Effort::Level(level) => (level.number(), false),
            Effort::GivenUp => (part.effort.level().number(), true),
        };
        let thunks = is_first.then(|| module.imports.iter().map(thunk).collect::<Vec<_>>());
        add(hasher, &(index as u64, effort, line, thunks))?;
        for functions in [&part.functions, &part.copies] {
            add(hasher, &(functions.len() as u64))?;
            for &function in functions {
                let Some(defined) = module.defined(function) else { continue };
                let body = &module.bodies[defined];
                let place = body.range().start - u64::from(module.code_start);
                add(hasher, &(function.0, shared[defined], place, body.as_bytes().len() as u64))?;
                hasher.update(body.as_bytes());
            }
        }
        Ok(())
    }

    pub(crate) fn finish(self) -> Hash {
        self.0.finalize()
    }
}

/// The key of the program's part of that index in a batch, which has these functions.
pub(crate) fn key(batch: Hash, index: usize, functions: Vec<FuncId>) -> PartKey {
    let mut hasher = Hasher::new_derive_key("awsm 2026-11-23 cache of parts: a part");
    let part = hasher.update(batch.as_bytes()).update(&(index as u64).to_le_bytes()).finalize();
    PartKey { batch, part, functions }
}

/// Where the functions are kept that a batch's process gave up within a time limit.
pub(crate) fn given_up(batch: Hash, seconds_max: u64) -> Hash {
    let mut hasher = Hasher::new_derive_key("awsm 2026-11-23 cache of parts: functions that take too long");
    hasher.update(batch.as_bytes()).update(&seconds_max.to_le_bytes()).finalize()
}

/// What the thunk of an import is named for, if it has one.
fn thunk(import: &Import) -> Option<(&str, &str)> {
    matches!(import.ty, ImportType::Function(_)).then_some((&import.module, &import.name))
}

/// Adds a value, and where it ends.
fn add(hasher: &mut Hasher, value: &impl Serialize) -> io::Result<()> {
    let bytes = postcard::to_allocvec(value).map_err(io::Error::other)?;
    hasher.update(&(bytes.len() as u64).to_le_bytes()).update(&bytes);
    Ok(())
}
