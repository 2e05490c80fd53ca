//! The parent's side of the cache of parts: which parts are in it, which processes are needed for the others, and what they may put there.
//!
//! A process that generates code may have been taken over by what it compiles. So it has no say in keys, which this process computes from the modules. And each
//! key has all code that its batch's process gives to LLVM: what a function makes of the others in its batch stays with modules that have this function. The last
//! process links. What it, or the process of another batch, reports for a part is not kept.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use blake3::Hash;

use super::Limits;
use crate::compile;
use crate::error::CompileError;
use crate::module::FuncId;
use crate::options::{CompileOptions, Emit};
use crate::partition;
use crate::parts::{self, Compiler, PartCache, PartKey};
use crate::program::Program;
use crate::progress::Progress;

/// Functions of a batch that are known to take too long.
const SLOW_MAX: usize = 1000;

/// The parts of a program that are in the cache, or should be.
pub(super) struct Kept<'a> {
    cache: &'a PartCache,
    program: &'a Program<'a>,
    options: &'a CompileOptions,
    compiler: Compiler,
    seconds_max: u64,
    keys: Vec<PartKey>,
    /// The keys where nothing is given up: what was given up is kept by these.
    original: Vec<PartKey>,
    /// Functions that were given up, by the original batch of the process that did.
    slow: Vec<(Hash, FuncId)>,
    /// How many bytes were put there.
    added: u64,
    /// Why parts could not be kept, if so.
    failure: Option<io::Error>,
}

/// Parts for one process.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Batch {
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
        let is_small = program.modules().iter().map(|wasm| wasm.len()).sum::<usize>() <= partition::WHOLE_BYTES;
        if is_small || options.emit != Emit::So {
            return Ok(None);
        }
        let compiler = match Compiler::of(awsm) {
            Ok(compiler) => compiler,
            Err(error) => {
                progress.warn(&format!("no cache of parts is used: reading the compiler {}: {error}", awsm.display()));
                return Ok(None);
            }
        };
        let seconds_max = limits.time_max.as_secs();
        let (keys, original, slow, failure) = (Vec::new(), Vec::new(), Vec::new(), None);
        let mut kept = Kept { cache, program, options, compiler, seconds_max, keys, original, slow, added: 0, failure };
        kept.find_keys(&[])?;
        if kept.keys.is_empty() {
            return Ok(None);
        }
        if let Err(error) = cache.open() {
            let folder = cache.folder().display();
            progress.warn(&format!("{folder}: not used as a cache: {error}; give another folder with --cache, or --no-cache"));
            return Ok(None);
        }
        kept.original.clone_from(&kept.keys);
        let batches: BTreeSet<[u8; blake3::OUT_LEN]> = kept.keys.iter().map(|key| *key.batch.as_bytes()).collect();
        for batch in batches.into_iter().map(Hash::from_bytes) {
            let known = kept.known_slow(batch);
            kept.slow.extend(known.into_iter().map(|function| (batch, function)));
        }
        if !kept.slow.is_empty() && kept.find_keys(&kept.slow()).is_err() {
            // The program itself is not refused. The keys are still those without them.
            kept.slow.clear();
        }
        Ok(Some(kept))
    }

    /// Functions that are known to take too long.
    pub(super) fn slow(&self) -> Vec<FuncId> {
        self.slow.iter().map(|&(_, function)| function).collect()
    }

    /// Finds the keys anew, after functions were given up. Where that fails, the keys stay what they were.
    pub(super) fn find_keys(&mut self, slow: &[FuncId]) -> Result<(), CompileError> {
        self.keys = compile::part_keys(self.program, self.options, slow, &self.compiler)?;
        Ok(())
    }

    /// Adds the parts that are in the cache to those that are finished.
    pub(super) fn load(&self, finished: &mut BTreeMap<usize, Vec<u8>>) {
        for (index, key) in self.keys.iter().enumerate() {
            if !finished.contains_key(&index) {
                finished.extend(self.cache.get(&key.part).map(|object| (index, object)));
            }
        }
    }

    /// Says how many parts there are, of those that are kept.
    pub(super) fn report(&self, finished: &BTreeMap<usize, Vec<u8>>, progress: &dyn Progress) {
        progress.cached(finished.len(), self.keys.len());
    }

    /// What a process has to be started for before the last; none where all parts that are kept are finished.
    pub(super) fn next(&self, finished: &BTreeMap<usize, Vec<u8>>) -> Option<Batch> {
        let missing: Vec<usize> = (0..self.keys.len()).filter(|index| !finished.contains_key(index)).collect();
        let batch = self.keys[*missing.first()?].batch;
        Some(Batch { parts: missing.into_iter().filter(|&index| self.keys[index].batch == batch).collect() })
    }

    /// Whether the part is one that is kept.
    pub(super) fn has(&self, index: usize) -> bool {
        index < self.keys.len()
    }

    /// Keeps what a batch's process gave for one of its parts.
    pub(super) fn put(&mut self, index: usize, object: &[u8]) {
        if let Some(key) = self.keys.get(index) {
            self.add(key.part, object);
        }
    }

    /// Puts an entry there. Entries are removed after the compilation only, and a process decides how much it gives: so the cache's size is the limit here, too.
    fn add(&mut self, id: Hash, bytes: &[u8]) {
        let added = self.added.saturating_add(bytes.len() as u64);
        if self.failure.is_none() && added <= self.cache.bytes_max() {
            self.added = added;
            self.failure = self.cache.put(&id, bytes).err();
        }
    }

    /// Notes that a batch's process gave a function up: the next compilation does not try it. It is kept for the original batch of the same parts, which has all of
    /// their functions. A process names any function that it likes: one of other parts would be slow wherever this batch is.
    pub(super) fn give_up(&mut self, batch: &Batch, function: FuncId) {
        let mut originals = batch.parts.iter().filter_map(|&index| self.original.get(index));
        let Some(original) = originals.find(|key| key.functions.contains(&function)).map(|key| key.batch) else { return };
        self.slow.push((original, function));
        let functions = self.slow.iter().filter(|(batch, _)| *batch == original).map(|(_, function)| function);
        if let Ok(text) = serde_json::to_vec(&functions.take(SLOW_MAX).collect::<Vec<_>>()) {
            self.add(parts::given_up(original, self.seconds_max), &text);
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

    fn known_slow(&self, batch: Hash) -> Vec<FuncId> {
        let text = self.cache.get(&parts::given_up(batch, self.seconds_max));
        let mut known: Vec<FuncId> = text.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
        known.retain(|function| self.original.iter().any(|key| key.batch == batch && key.functions.contains(function)));
        known
    }
}
