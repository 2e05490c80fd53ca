//! From a file to an [`Artifact`]: a `.so` directly, a `.wasm` through the compiler `awsm`, which runs as a child process.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use awsm_abi::types::Bounds;
use sledge_sandbox::{Artifact, LoadError, LoadPolicy};

use crate::config::FunctionConfig;
use crate::function::{Function, FunctionError};

/// What is shown of a failed compilation.
const MESSAGE_BYTES_MAX: usize = 8 << 10;

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
    #[error("{}: neither an artifact (.so, made by `awsm compile`) nor a WebAssembly module (.wasm)", path.display())]
    Kind {
        /// The file.
        path: PathBuf,
    },
    /// There is no compiler.
    #[error(
        "{}: a WebAssembly module has to be compiled, but there is no `awsm` beside {} nor in PATH; \
         install it, or compile elsewhere with `awsm compile {}` and give the .so", path.display(), beside.display(), path.display()
    )]
    NoCompiler {
        /// The module.
        path: PathBuf,
        /// This program.
        beside: PathBuf,
    },
    /// The compiler did not start.
    #[error("{}: cannot start {}: {source}", path.display(), compiler.display())]
    Start {
        /// The module.
        path: PathBuf,
        /// The compiler.
        compiler: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The compiler failed.
    #[error("{}: awsm could not compile it ({status}):\n{message}", path.display())]
    Compile {
        /// The module.
        path: PathBuf,
        /// How the compiler ended.
        status: std::process::ExitStatus,
        /// What it said.
        message: String,
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
        /// What is wrong with it.
        source: Box<FunctionError>,
    },
}

/// Opens, compiles if need be, and loads a function.
///
/// # Errors
/// Names the file, what is wrong and what to do.
pub fn function(config: &FunctionConfig) -> Result<Function, OpenError> {
    let artifact = artifact(&config.path, config.allow_unchecked)?;
    Function::new(&artifact, config).map_err(|error| OpenError::Function { path: config.path.clone(), source: Box::new(error) })
}

/// Opens an artifact, or compiles a module to one; `allow_unchecked` accepts what was compiled with `--bounds none`, with a warning.
///
/// # Errors
/// Names the file, what is wrong and what to do.
pub fn artifact(path: &Path, allow_unchecked: bool) -> Result<Artifact, OpenError> {
    match kind(path)? {
        Kind::Artifact => load(path, path, allow_unchecked),
        Kind::Module => {
            let folder = tempfile::Builder::new().prefix("sledge-").tempdir();
            let folder = folder.map_err(|source| OpenError::Read { path: std::env::temp_dir(), source })?;
            let artifact = folder.path().join("function.so");
            compile(path, &artifact)?;
            load(&artifact, path, allow_unchecked)
        }
    }
}

fn load(artifact: &Path, given: &Path, allow_unchecked: bool) -> Result<Artifact, OpenError> {
    let policy = LoadPolicy { allow_unchecked };
    let artifact = Artifact::open(artifact, &policy).map_err(|error| {
        let source = match error {
            // The file that the user knows is named already.
            LoadError::File { source, .. } => source,
            other => Box::new(other),
        };
        OpenError::Load { path: given.to_owned(), source }
    })?;
    if artifact.descriptor().modules.iter().any(|module| module.bounds.contains(&Bounds::None)) {
        tracing::warn!(path = %given.display(), "loaded although compiled with --bounds none: it can read and write all memory of this process");
    }
    Ok(artifact)
}

enum Kind {
    Artifact,
    Module,
}

/// What a file is by its first bytes; the name decides nothing.
fn kind(path: &Path) -> Result<Kind, OpenError> {
    use io::Read as _;
    let read = |source| OpenError::Read { path: path.to_owned(), source };
    let mut first = Vec::with_capacity(4);
    std::fs::File::open(path).map_err(read)?.take(4).read_to_end(&mut first).map_err(read)?;
    match first.as_slice() {
        b"\x7fELF" => Ok(Kind::Artifact),
        b"\0asm" => Ok(Kind::Module),
        // A damaged artifact gets the loader's own words.
        _ if path.extension().is_some_and(|extension| extension == "so") => Ok(Kind::Artifact),
        _ => Err(OpenError::Kind { path: path.to_owned() }),
    }
}

/// Compiles `module` to `artifact` with the compiler beside this program, or else the one in PATH.
fn compile(module: &Path, artifact: &Path) -> Result<(), OpenError> {
    let compiler = compiler().map_err(|beside| OpenError::NoCompiler { path: module.to_owned(), beside })?;
    tracing::info!(module = %module.display(), compiler = %compiler.display(), "compiling");
    // A name that begins with a dash is no option.
    let module_arg = if module.is_relative() { Path::new(".").join(module) } else { module.to_owned() };
    let output = Command::new(&compiler)
        .arg("compile")
        .arg(&module_arg)
        .arg("-o")
        .arg(artifact)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .output()
        .map_err(|source| OpenError::Start { path: module.to_owned(), compiler, source })?;
    if output.status.success() {
        return Ok(());
    }
    let said = &output.stderr[output.stderr.len().saturating_sub(MESSAGE_BYTES_MAX)..];
    let message = String::from_utf8_lossy(said).trim_end().to_owned();
    Err(OpenError::Compile { path: module.to_owned(), status: output.status, message })
}

/// The compiler; the path of this program when there is none.
fn compiler() -> Result<PathBuf, PathBuf> {
    let this = std::env::current_exe().unwrap_or_default();
    let beside = this.with_file_name("awsm");
    let search = std::env::var_os("PATH").unwrap_or_default();
    let candidates = std::iter::once(beside).chain(std::env::split_paths(&search).map(|folder| folder.join(OsStr::new("awsm"))));
    candidates.into_iter().find(|candidate| candidate.is_file()).ok_or(this)
}
