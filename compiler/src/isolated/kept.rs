//! The parent's side of the cache of parts: which parts are in it, which processes are needed for the others, and what they may put there.
//!
//! A process that generates code may have been taken over by what it compiles. So it has no say in keys, which this process computes from the modules. And all that
//! it can give for one of these keys is of one module's code: each module whose parts are kept has processes of its own, and what others give for
//! its parts is not used. The last process generates what is not kept, and links.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use blake3::Hash;

use super::Limits;
use crate::compile;
use crate::error::CompileError;
use crate::module::{FuncId, FuncIdx, ModuleIdx};
use crate::options::{CompileOptions, Emit};
use crate::partition;
use crate::parts::{self, Compiler, PartCache, PartKey};
use crate::program::Program;
use crate::progress::Progress;

/// Functions of a module that are known to take too long.
const SLOW_MAX: usize = 1000;

/// The parts of a program that are in the cache, or should be.
pub(super) struct Kept<'a> {
    cache: &'a PartCache,
    program: &'a Program<'a>,
    options: &'a CompileOptions,
    compiler: Compiler,
    seconds_max: u64,
    keys: Vec<Option<PartKey>>,
    /// Functions that were given up by processes of their module.
    slow: BTreeMap<ModuleIdx, Vec<FuncIdx>>,
    /// Why parts could not be kept, if so.
    failure: Option<io::Error>,
}

/// Parts of one module, for one process.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Batch {
    module: ModuleIdx,
    pub(super) parts: BTreeSet<usize>,
}

impl Batch {
    /// Whether all of its parts are finished.
    pub(super) fn is_within(&self, finished: &BTreeMap<usize, Vec<u8>>) -> bool {
        self.parts.iter().all(|index| finished.contains_key(index))
    }
}

impl<'a> Kept<'a> {
    /// None for programs that have nothing to be kept, and where the cache cannot be used, which is a warning.
    ///
    /// # Errors
    /// When the program is refused, which the process that compiles it will say as well.
    pub(super) fn new(
        awsm: &Path,
        cache: &'a PartCache,
        program: &'a Program<'a>,
        options: &'a CompileOptions,
        limits: &Limits,
        progress: &dyn Progress,
    ) -> Result<Option<Kept<'a>>, CompileError> {
        // Without reading them: most programs are small.
        let is_small = program.modules().iter().all(|wasm| wasm.len() <= partition::WHOLE_BYTES);
        if is_small || options.emit != Emit::So {
            return Ok(None);
        }
        let compiler = Compiler::of(awsm).map_err(CompileError::io("reading the compiler"))?;
        let seconds_max = limits.time_max.as_secs();
        let (slow, failure) = (BTreeMap::new(), None);
        let mut kept = Kept { cache, program, options, compiler, seconds_max, keys: Vec::new(), slow, failure };
        kept.find_keys(&[])?;
        if kept.keys.iter().all(Option::is_none) {
            return Ok(None);
        }
        if let Err(error) = cache.open() {
            let folder = cache.folder().display();
            progress.warn(&format!("{folder}: not used as a cache: {error}; give another folder with --cache, or --no-cache"));
            return Ok(None);
        }
        kept.slow = kept.groups().into_iter().filter_map(|(module, group)| Some((module, kept.known_slow(group)?))).collect();
        if !kept.slow.is_empty() {
            kept.find_keys(&kept.slow())?;
        }
        Ok(Some(kept))
    }

    /// Functions that are known to take too long.
    pub(super) fn slow(&self) -> Vec<FuncId> {
        let of = |(&module, functions): (&ModuleIdx, &Vec<FuncIdx>)| {
            functions.iter().map(move |&function| FuncId { module, function }).collect::<Vec<_>>()
        };
        self.slow.iter().flat_map(of).collect()
    }

    /// Finds the keys anew, after functions were given up.
    pub(super) fn find_keys(&mut self, slow: &[FuncId]) -> Result<(), CompileError> {
        self.keys = compile::part_keys(self.program, self.options, slow, &self.compiler)?;
        Ok(())
    }

    /// Adds the parts that are in the cache to those that are finished.
    pub(super) fn load(&self, finished: &mut BTreeMap<usize, Vec<u8>>) {
        for (index, key) in self.keys.iter().enumerate() {
            let (Some(key), false) = (key, finished.contains_key(&index)) else { continue };
            finished.extend(self.cache.get(&key.part).map(|object| (index, object)));
        }
    }

    /// Says how many parts there are, of those that are kept.
    pub(super) fn report(&self, finished: &BTreeMap<usize, Vec<u8>>, progress: &dyn Progress) {
        let kept = || (0..self.keys.len()).filter(|&index| self.keys[index].is_some());
        progress.cached(kept().filter(|index| finished.contains_key(index)).count(), kept().count());
    }

    /// What a process has to be started for before the last; none where all parts that are kept are finished.
    pub(super) fn next(&self, finished: &BTreeMap<usize, Vec<u8>>) -> Option<Batch> {
        let missing = |index: &usize| !finished.contains_key(index);
        let missing = (0..self.keys.len()).filter(missing).filter_map(|index| Some((index, self.keys[index]?.module)));
        let missing: Vec<_> = missing.collect();
        let &(_, module) = missing.first()?;
        Some(Batch { module, parts: missing.into_iter().filter(|(_, of)| *of == module).map(|(index, _)| index).collect() })
    }

    /// Whether the part is one that is kept.
    pub(super) fn has(&self, index: usize) -> bool {
        self.keys.get(index).is_some_and(Option::is_some)
    }

    /// Keeps what a batch's process gave for one of its parts.
    pub(super) fn put(&mut self, index: usize, object: &[u8]) {
        let Some(key) = self.keys.get(index).copied().flatten() else { return };
        if self.failure.is_none() {
            self.failure = self.cache.put(&key.part, object).err();
        }
    }

    /// Notes that a batch's process gave a function up: the next compilation does not try it.
    pub(super) fn give_up(&mut self, batch: &Batch, function: FuncId) {
        if function.module != batch.module {
            return;
        }
        let functions = self.slow.entry(function.module).or_default();
        functions.push(function.function);
        let functions: Vec<u32> = functions.iter().take(SLOW_MAX).map(|function| function.0).collect();
        let group = self.groups().get(&function.module).copied();
        if let (Some(group), Ok(text)) = (group, serde_json::to_vec(&functions)) {
            let id = parts::given_up(group, self.seconds_max);
            self.failure = self.failure.take().or(self.cache.put(&id, &text).err());
        }
    }

    /// Removes what is too much, before and after parts are put there.
    pub(super) fn shrink(&mut self) {
        self.failure = self.failure.take().or(self.cache.shrink().err());
    }

    /// Says why parts are not kept, if they are not.
    pub(super) fn warn(&self, progress: &dyn Progress) {
        if let Some(failure) = &self.failure {
            progress.warn(&format!("parts of the module could not be kept for later compilations: {failure}"));
        }
    }

    /// The modules whose parts are kept.
    fn groups(&self) -> BTreeMap<ModuleIdx, Hash> {
        self.keys.iter().flatten().map(|key| (key.module, key.group)).collect()
    }

    fn known_slow(&self, group: Hash) -> Option<Vec<FuncIdx>> {
        let functions: Vec<u32> = serde_json::from_slice(&self.cache.get(&parts::given_up(group, self.seconds_max))?).ok()?;
        Some(functions.into_iter().map(FuncIdx).collect())
    }
}
