//! From a WebAssembly module to an artifact's bytes: the compiler `awsm` as a child with limits, and a cache of what it made.
//!
//! ```text
//!   module --hash--> cache --hit, and its digest is right----------------> artifact
//!                      \--miss--> [broker ->] child (limits) -> awsm -> cache (digest) --/
//! ```
//!
//! What is hashed is what is compiled: the module is in memory from the first look on. Knows neither functions nor configurations.

mod broker;
mod cache;
mod cancel;
mod child;
mod error;

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use awsm_abi::ABI_VERSION;
use awsm_abi::limits::{ARTIFACT_BYTES_MAX, MODULE_BYTES_MAX};
use awsm_abi::types::Bounds;
use rustix::buffer::spare_capacity;
use rustix::io::retry_on_intr;
use serde::{Deserialize, Serialize};

use crate::counters::{Count, Histogram, Sum};
use crate::notice::{self, To};

pub use broker::{BROKER_COMMAND, Broker, serve as serve_broker};
pub use cache::{Cache, Id};
pub use cancel::Cancel;
pub use child::{LIMITED_COMMAND, Limits, exec_limited};
pub use error::CompileError;

/// How a module is to be compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// How accesses are kept inside the memory.
    pub bounds: Bounds,
    /// The processor: `native`, `baseline` or a name.
    pub cpu: String,
    /// How much is optimised: 0 to [`OPT_LEVEL_MAX`].
    pub opt_level: u8,
    /// Whether a component may import functions that no server offers; a call of one traps.
    pub unknown_imports: bool,
}

impl Target {
    /// What `awsm compile` is told of it, with what the artifact is for.
    fn arguments(&self, purpose: Purpose) -> Vec<String> {
        let mut arguments = vec!["--bounds".to_owned(), self.bounds.name().to_owned(), "--cpu".to_owned(), self.cpu.clone()];
        arguments.extend(purpose.arguments(self.opt_level));
        if self.unknown_imports {
            arguments.push("--allow-unknown-imports".to_owned());
        }
        arguments
    }
}

/// The highest level of optimisation: what is taken unless told otherwise.
pub const OPT_LEVEL_MAX: u8 = 3;

impl Default for Target {
    fn default() -> Target {
        Target { bounds: Bounds::Guard, cpu: "native".to_owned(), opt_level: OPT_LEVEL_MAX, unknown_imports: false }
    }
}

/// What artifacts are for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Purpose {
    /// To run fast.
    #[default]
    Service,
    /// To be there fast, with the lines of their source for backtraces.
    Development,
}

impl Purpose {
    /// What `awsm compile` is told of it, with the level that the function wants.
    fn arguments(self, opt_level: u8) -> Vec<String> {
        match self {
            Purpose::Service => vec!["-O".to_owned(), opt_level.to_string()],
            Purpose::Development => ["-O", "0", "--debug"].map(str::to_owned).to_vec(),
        }
    }
}

/// What a compilation is waited for by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Priority {
    /// A client, or a server that starts: it has as many threads as there are processors.
    #[default]
    Awaited,
    /// Nothing: it has one thread, and what else there is to do goes first.
    Background,
}

/// What became of a module.
#[derive(Debug)]
pub struct Compiled {
    /// The artifact.
    pub artifact: Vec<u8>,
    /// Whether it was made earlier.
    pub cached: bool,
    /// How long it took.
    pub took: Duration,
}

/// Compiles modules.
#[derive(Debug)]
pub struct Compiler {
    purpose: Purpose,
    /// Whether artifacts that are there sooner may take the place of optimised ones for a while.
    has_tiers: bool,
    limits: Limits,
    cache: Option<Cache>,
    /// What starts compilers; none if this process does.
    broker: Option<Broker>,
    /// The compiler, once it was found.
    program: OnceLock<PathBuf>,
    /// Where progress is reported.
    to: To,
    /// What tells the compiler from others, once that was asked for.
    identity: OnceLock<blake3::Hash>,
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    made: Count,
    cached: Count,
    failed: Count,
    took: Histogram,
}

impl Compiler {
    /// A compiler that keeps these limits, and what it made in `cache`.
    #[must_use]
    pub fn new(limits: Limits, cache: Option<Cache>) -> Compiler {
        let purpose = Purpose::default();
        Compiler {
            purpose,
            has_tiers: false,
            limits,
            cache,
            broker: None,
            to: To::Log,
            program: OnceLock::new(),
            identity: OnceLock::new(),
            counts: Mutex::default(),
        }
    }

    /// The same, whose artifacts are for that.
    #[must_use]
    pub fn with_purpose(self, purpose: Purpose) -> Compiler {
        Compiler { purpose, ..self }
    }

    /// The same, where artifacts that are there sooner may take the place of optimised ones for a while.
    #[must_use]
    pub fn with_tiers(self, has_tiers: bool) -> Compiler {
        Compiler { has_tiers, ..self }
    }

    /// Whether they may. Artifacts for development are there soon in any case.
    #[must_use]
    pub fn has_tiers(&self) -> bool {
        self.has_tiers && self.purpose == Purpose::Service
    }

    /// The same, which has another process start compilers.
    #[must_use]
    pub fn through(self, broker: Broker) -> Compiler {
        Compiler { broker: Some(broker), ..self }
    }

    /// The same, which tells another how far it is.
    #[must_use]
    pub fn telling(self, to: To) -> Compiler {
        Compiler { to, ..self }
    }

    /// How many modules were compiled, found in the cache, and refused; how long compiling took.
    #[must_use]
    pub fn counts(&self) -> ([(&'static str, u64); 3], Sum) {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let mut took = Sum::default();
        took.add(&counts.took);
        ([("compiled", counts.made.get()), ("cached", counts.cached.get()), ("failed", counts.failed.get())], took)
    }

    /// Compiles a module, or finds what was made of it earlier. `name` is what the client or user knows it by.
    ///
    /// # Errors
    /// When there is no compiler, it fails, or it exceeds a limit.
    pub fn compile(&self, name: &str, module: &[u8], target: &Target) -> Result<Compiled, CompileError> {
        self.counted(|| self.compile_or_find(name, module, target, (Priority::Awaited, &Cancel::default())))
    }

    /// The same while nothing waits for it, unless it is cancelled.
    ///
    /// # Errors
    /// As for [`Compiler::compile`], and when it is cancelled.
    pub fn compile_behind(&self, name: &str, module: &[u8], target: &Target, cancel: &Cancel) -> Result<Compiled, CompileError> {
        self.counted(|| self.compile_or_find(name, module, target, (Priority::Background, cancel)))
    }

    /// What was made of a module earlier; none where it would have to be compiled.
    ///
    /// # Errors
    /// When there is no compiler, or the module is larger than any.
    pub fn find(&self, module: &[u8], target: &Target) -> Result<Option<Compiled>, CompileError> {
        match self.find_kept(module, target)? {
            Some(compiled) => self.counted(|| Ok(compiled)).map(Some),
            None => Ok(None),
        }
    }

    fn counted(&self, compile: impl FnOnce() -> Result<Compiled, CompileError>) -> Result<Compiled, CompileError> {
        let result = compile();
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        match &result {
            Ok(Compiled { cached: true, .. }) => counts.cached.add(1),
            Ok(Compiled { cached: false, took, .. }) => {
                counts.made.add(1);
                counts.took.observe(*took);
            }
            // Nothing is wrong with the module.
            Err(CompileError::Cancelled) => {}
            Err(_) => counts.failed.add(1),
        }
        drop(counts);
        result
    }

    fn compile_or_find(
        &self,
        name: &str,
        module: &[u8],
        target: &Target,
        how: (Priority, &Cancel),
    ) -> Result<Compiled, CompileError> {
        if let Some(found) = self.find_kept(module, target)? {
            return Ok(found);
        }
        let began = Instant::now();
        let program = self.program()?;
        let artifact = self.run(program, name, module, target, how)?;
        if let Some(cache) = &self.cache
            && let Err(error) = cache.put(&self.id(program, module, target)?, &artifact)
        {
            tracing::warn!(folder = %cache.folder().display(), %error, "an artifact could not be kept; it will be compiled again");
        }
        Ok(Compiled { artifact, cached: false, took: began.elapsed() })
    }

    fn find_kept(&self, module: &[u8], target: &Target) -> Result<Option<Compiled>, CompileError> {
        let began = Instant::now();
        if module.len() as u64 > MODULE_BYTES_MAX {
            return Err(CompileError::TooLarge { bytes: module.len() as u64, bytes_max: MODULE_BYTES_MAX });
        }
        let program = self.program()?;
        let Some(cache) = &self.cache else { return Ok(None) };
        match cache.get(&self.id(program, module, target)?) {
            Ok(found) => Ok(found.map(|artifact| Compiled { artifact, cached: true, took: began.elapsed() })),
            Err(error) => {
                tracing::warn!(%error, "a cached artifact is not used; compiling again");
                Ok(None)
            }
        }
    }

    /// The compiler: found once, and looked for again where there was none.
    fn program(&self) -> Result<&Path, CompileError> {
        match self.program.get() {
            Some(program) => Ok(program),
            None => program().map(|program| self.program.get_or_init(|| program).as_path()),
        }
    }

    /// What an artifact depends on: the module, how it is compiled and by what, and the processor.
    fn id(&self, program: &Path, module: &[u8], target: &Target) -> Result<Id, CompileError> {
        let identity = match self.identity.get() {
            Some(identity) => *identity,
            None => {
                let start = |source| CompileError::Start { compiler: program.to_owned(), source };
                let mut hasher = blake3::Hasher::new();
                fs::File::open(program).and_then(|file| hasher.update_reader(file).map(drop)).map_err(start)?;
                sledge_sandbox::cpu_features().for_each(|feature| add_text(&mut hasher, feature));
                *self.identity.get_or_init(|| hasher.finalize())
            }
        };
        let mut hasher = blake3::Hasher::new_derive_key("sledge 2026-11-25 cache of artifacts: module, compiler with processor");
        hasher.update(blake3::hash(module).as_bytes()).update(identity.as_bytes()).update(&ABI_VERSION.to_le_bytes());
        // All that the compiler is told, so that no option can be forgotten here.
        target.arguments(self.purpose).iter().for_each(|text| add_text(&mut hasher, text));
        Ok(Id::from(hasher.finalize()))
    }

    fn run(
        &self,
        program: &Path,
        name: &str,
        module: &[u8],
        target: &Target,
        (priority, cancel): (Priority, &Cancel),
    ) -> Result<Vec<u8>, CompileError> {
        let folder = tempfile::Builder::new().prefix("sledge-").tempdir().map_err(CompileError::Folder)?;
        fs::write(folder.path().join(child::INPUT), module).map_err(CompileError::Folder)?;
        let parts = self.cache.as_ref().and_then(Cache::parts);
        let work = child::Work { target: target.clone(), purpose: self.purpose, priority, limits: self.limits, parts };
        let compile = || match &self.broker {
            Some(broker) => broker.run(folder.path(), &work, cancel),
            None => child::run(program, folder.path(), &work, cancel),
        };
        let progress = folder.path().join(child::PROGRESS);
        match priority {
            Priority::Awaited => notice::during(self.to, || format!("compiling {name}{}", child::progress(&progress)), compile)?,
            Priority::Background => compile()?,
        }
        let output = folder.path().join(child::OUTPUT);
        let mut artifact = Vec::new();
        let read = fs::File::open(&output).and_then(|file| file.take(ARTIFACT_BYTES_MAX + 1).read_to_end(&mut artifact));
        read.map_err(CompileError::Folder)?;
        Ok(artifact)
    }
}

/// The compiler beside this program, or else the one in PATH.
///
/// # Errors
/// When there is none.
pub fn program() -> Result<PathBuf, CompileError> {
    let this = std::env::current_exe().unwrap_or_default();
    let beside = this.with_file_name("awsm");
    let search = std::env::var_os("PATH").unwrap_or_default();
    let candidates = std::iter::once(beside).chain(std::env::split_paths(&search).map(|folder| folder.join(OsStr::new("awsm"))));
    candidates.into_iter().find(|candidate| candidate.is_file()).ok_or(CompileError::NoCompiler { beside: this })
}

/// Where artifacts are kept unless told otherwise: what systemd, the desktop or the system has for this.
#[must_use]
pub fn cache_folder_default() -> Option<PathBuf> {
    let of = |variable: &str| std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    of("CACHE_DIRECTORY")
        .or_else(|| Some(of("XDG_CACHE_HOME")?.join("sledge")))
        .or_else(|| Some(of("HOME")?.join(".cache/sledge")))
}

/// The first bytes of a module in binary form.
pub const MODULE_MAGIC: &[u8] = b"\0asm";

/// Reads a file that is at most so large.
pub(crate) fn read_at_most(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let too_large = || io::Error::other(format!("larger than {bytes_max} bytes"));
    let file = fs::File::open(path)?;
    let length = file.metadata()?.len();
    if length > bytes_max {
        return Err(too_large());
    }
    let bytes = read_to_end(&file, length, bytes_max + 1)?;
    if bytes.len() as u64 > bytes_max { Err(too_large()) } else { Ok(bytes) }
}

/// Adds a text and where it ends.
fn add_text(hasher: &mut blake3::Hasher, text: &str) {
    hasher.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
}

/// Reads a file that had `length` bytes, as far as `bytes_max`; in one go, if it did not grow meanwhile.
fn read_to_end(file: &fs::File, length: u64, bytes_max: u64) -> io::Result<Vec<u8>> {
    let bytes_max = usize::try_from(bytes_max).unwrap_or(usize::MAX);
    let mut bytes = Vec::new();
    // One more than there are, so that the end is found by what is read nowhere.
    let mut wanted = usize::try_from(length).unwrap_or(usize::MAX).saturating_add(1);
    while bytes.len() < bytes_max {
        if bytes.len() == bytes.capacity() {
            bytes.try_reserve_exact(wanted.min(bytes_max - bytes.len())).map_err(|_| io::ErrorKind::OutOfMemory)?;
            wanted = GROWN_BYTES;
        }
        if retry_on_intr(|| rustix::io::read(file, spare_capacity(&mut bytes)))? == 0 {
            break;
        }
    }
    bytes.truncate(bytes_max);
    Ok(bytes)
}

/// How much more is read at a time of a file that grows.
const GROWN_BYTES: usize = 64 << 10;
