//! From a file, or from bytes that were sent, to a function that can be [served](Loaded): a `.so` directly, a `.wasm` through the [compiler](crate::compile).

use std::io;
use std::path::{Path, PathBuf};

use awsm_abi::importable::{self, ALLOW_ADVICE, Refused};
use awsm_abi::limits::{ARTIFACT_BYTES_MAX, MODULE_BYTES_MAX};
use awsm_abi::sources;
use awsm_abi::types::Bounds;
use sledge_sandbox::{Artifact, LoadError, LoadPolicy};

use crate::compile::{self, Cache, Cancel, CompileError, Compiled, Compiler, Limits, MODULE_MAGIC, Target, cache_folder_default};
use crate::config::{Config, FunctionConfig};
use crate::invoke::function::Function;
use crate::invoke::loaded::{FunctionError, Loaded};
use crate::invoke::tier::{self, Tier};
use crate::symbols;

/// The first bytes of an artifact, among others.
const ELF_MAGIC: &[u8] = b"\x7fELF";

/// Why a file did not become a function.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// It cannot be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Neither an artifact nor a module.
    #[error("{}: {what}", path.display())]
    Kind {
        /// The file.
        path: PathBuf,
        /// What it is, if that is known, and what to do.
        what: String,
    },
    /// The module cannot be served.
    #[error("{}: {source}", path.display())]
    Refused {
        /// The module.
        path: PathBuf,
        /// Why not.
        source: Refused,
    },
    /// What came from outside is no module.
    #[error(
        "not a WebAssembly module in binary form (.wasm); nothing else is taken here: a .so would be native code of unknown origin. To serve a .so, \
         make it the `path` of a function in the server's configuration, and reload that (kill -HUP, or systemctl reload)"
    )]
    NoModule,
    /// It could not be compiled.
    #[error("{}: {source}", path.display())]
    Compile {
        /// The module.
        path: PathBuf,
        /// Why not.
        source: CompileError,
    },
    /// The artifact is not usable.
    #[error("{}: {source}", path.display())]
    Load {
        /// The file that was given.
        path: PathBuf,
        /// What is wrong with it.
        source: Box<LoadError>,
    },
    /// The artifact is not a function.
    #[error("{}: {source}", path.display())]
    Function {
        /// The file that was given.
        path: PathBuf,
        /// What is missing.
        source: Box<FunctionError>,
    },
}

/// The compiler as a configuration wants it. Without a cache it works too.
#[must_use]
pub fn compiler(config: &Config) -> Compiler {
    let limits = Limits { ms_max: config.compile_ms_max, memory_bytes_max: config.compile_memory_bytes_max };
    let folder: Option<PathBuf> = config.cache_dir.clone().or_else(cache_folder_default);
    let cache = move || {
        let folder = folder?;
        let opened = Cache::open(&folder, config.cache_bytes_max);
        opened.map_err(|error| tracing::warn!(folder = %folder.display(), %error, "compiled modules are not kept")).ok()
    };
    Compiler::new(limits, cache())
}

/// Reads a function's file.
///
/// # Errors
/// When that fails, or it is larger than any artifact, or module where its name says that it is one.
pub fn read(path: &Path) -> Result<Vec<u8>, OpenError> {
    let is_module = path.extension().is_some_and(|extension| extension == "wasm");
    if is_module { read_module(path) } else { read_at_most(path, ARTIFACT_BYTES_MAX) }
}

/// Reads a module.
///
/// # Errors
/// When that fails, or it is larger than any.
pub fn read_module(path: &Path) -> Result<Vec<u8>, OpenError> {
    read_at_most(path, MODULE_BYTES_MAX)
}

fn read_at_most(path: &Path, bytes_max: u64) -> Result<Vec<u8>, OpenError> {
    compile::read_at_most(path, bytes_max).map_err(|source| OpenError::Read { path: path.to_owned(), source })
}

/// Reads, compiles if need be, and loads a function.
///
/// # Errors
/// Names the file, what is wrong and what to do.
pub fn function(config: &FunctionConfig, compiler: &Compiler) -> Result<Loaded, OpenError> {
    function_of(&read(&config.path)?, config, compiler).map(|(loaded, _)| loaded)
}

/// The same of a file that was read already; of a module also whether it was in the cache. Where the compiler has [tiers](Tier), a module that was not compiled before is loaded in its first one.
///
/// # Errors
/// As for [`function`].
pub fn function_of(bytes: &[u8], config: &FunctionConfig, compiler: &Compiler) -> Result<(Loaded, Option<bool>), OpenError> {
    match open(bytes, config, || compile_soon(bytes, config, compiler)) {
        Err(OpenError::Function { source, .. }) if source.may_be_of_tier() && compiler.has_tiers() => {
            function_in_one_tier(bytes, config, compiler)
        }
        opened => opened,
    }
}

/// The same of a function that has one tier, whatever the compiler has.
///
/// # Errors
/// As for [`function`].
pub fn function_in_one_tier(
    bytes: &[u8],
    config: &FunctionConfig,
    compiler: &Compiler,
) -> Result<(Loaded, Option<bool>), OpenError> {
    let compile = || Ok((compiler.compile(&file_name(config), bytes, &config.target())?, Tier::Only));
    open(bytes, config, compile)
}

fn open(
    bytes: &[u8],
    config: &FunctionConfig,
    compile: impl FnOnce() -> Result<(Compiled, Tier), CompileError>,
) -> Result<(Loaded, Option<bool>), OpenError> {
    let path = &config.path;
    if bytes.starts_with(MODULE_MAGIC) {
        check_imports(path, bytes)?;
        let (compiled, tier) = compile().map_err(|source| compile_error(config, source))?;
        if !compiled.cached {
            tracing::info!(function = config.name, took = ?compiled.took, tier = tier.name(), "compiled");
        }
        let artifact = load(&compiled.artifact, path, config.allow_unchecked)?;
        let loaded = Loaded::of_tier(&artifact, config, tier).map_err(|error| function_error(path, error))?;
        return Ok((loaded, Some(compiled.cached)));
    }
    if bytes.starts_with(ELF_MAGIC) || path.extension().is_some_and(|extension| extension == "so") {
        // A damaged artifact gets the loader's own words.
        let artifact = load(bytes, path, config.allow_unchecked)?;
        return Ok((Loaded::new(&artifact, config).map_err(|error| function_error(path, error))?, None));
    }
    Err(no_function(path))
}

/// An artifact of a module, and its tier: the optimised one if that is kept, else what is there soon.
fn compile_soon(module: &[u8], config: &FunctionConfig, compiler: &Compiler) -> Result<(Compiled, Tier), CompileError> {
    let (name, target) = (file_name(config), config.target());
    if !compiler.has_tiers() || !tier::has_first(config, importable::function_bytes(module)) {
        return Ok((compiler.compile(&name, module, &target)?, Tier::Only));
    }
    if let Some(found) = compiler.find(module, &target)? {
        return Ok((found, Tier::Optimised));
    }
    let first = Target { opt_level: tier::FIRST_LEVEL, ..target };
    Ok((compiler.compile(&name, module, &first)?, Tier::First))
}

/// The optimised code of a module, which is to take the place of its first tier. Nothing waits for it, and it can be cancelled.
///
/// # Errors
/// As for [`function`], and when it is cancelled.
pub fn optimised(
    module: &[u8],
    config: &FunctionConfig,
    (compiler, cancel): (&Compiler, &Cancel),
    first: &Function,
) -> Result<Loaded, OpenError> {
    let compiled = compiler.compile_behind(&file_name(config), module, &config.target(), cancel);
    let compiled = compiled.map_err(|source| compile_error(config, source))?;
    tracing::info!(function = config.name, cached = compiled.cached, took = ?compiled.took, "compiled optimised code");
    let artifact = load(&compiled.artifact, &config.path, config.allow_unchecked)?;
    Loaded::in_place_of(first, &artifact, config).map_err(|error| function_error(&config.path, error))
}

/// What a client or user knows a module by.
fn file_name(config: &FunctionConfig) -> String {
    config.path.file_name().unwrap_or(config.name.as_ref()).to_string_lossy().into_owned()
}

fn compile_error(config: &FunctionConfig, source: CompileError) -> OpenError {
    let source = source.advising(ALLOW_ADVICE, config.source.allowing_unknown_imports());
    OpenError::Compile { path: config.path.clone(), source }
}

fn function_error(path: &Path, error: FunctionError) -> OpenError {
    OpenError::Function { path: path.to_owned(), source: Box::new(error) }
}

/// Says what is wrong with what is to be deployed, as far as that is known without a compiler.
///
/// # Errors
/// When it is no module, or imports what no server offers.
pub fn check_module(path: &Path, bytes: &[u8]) -> Result<(), OpenError> {
    if !bytes.starts_with(MODULE_MAGIC) {
        return Err(if bytes.starts_with(ELF_MAGIC) { OpenError::NoModule } else { no_function(path) });
    }
    check_imports(path, bytes)
}

/// Before minutes go into what cannot be served.
fn check_imports(path: &Path, module: &[u8]) -> Result<(), OpenError> {
    importable::check(module).map_err(|source| OpenError::Refused { path: path.to_owned(), source })
}

fn no_function(path: &Path) -> OpenError {
    let known = path.extension().and_then(|extension| extension.to_str()).and_then(sources::known);
    let what = match known {
        Some((what, advice)) => format!("this is {what}: {advice}"),
        None => "neither an artifact (.so, made by `awsm compile`) nor a WebAssembly module (.wasm)".to_owned(),
    };
    OpenError::Kind { path: path.to_owned(), what }
}

/// Loads an artifact; `allow_unchecked` accepts what was compiled with `--bounds none`, with a warning.
fn load(bytes: &[u8], given: &Path, allow_unchecked: bool) -> Result<Artifact, OpenError> {
    let policy = LoadPolicy { allow_unchecked };
    let loaded = Artifact::load(bytes, &policy);
    let artifact = loaded.map_err(|error| OpenError::Load { path: given.to_owned(), source: Box::new(error) })?;
    symbols::loaded(&artifact, given);
    if artifact.descriptor().modules.iter().any(|module| module.bounds.contains(&Bounds::None)) {
        tracing::warn!(path = %given.display(), "loaded although compiled with --bounds none: it can read and write all memory of this process");
    }
    Ok(artifact)
}
