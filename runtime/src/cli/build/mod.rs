//! `sledge build`: the functions of applications, from the sources of programs that are servers of their own elsewhere.
//!
//! ```text
//! .proto -> awsm proto -> protos.binpb
//! source + our gRPC library -> go, cargo -> FUNCTION.wasm -> awsm -> FUNCTION.so
//! ```
//!
//! Each program is built by its own toolchain, which finds our library in the place of the one that the program names. Nothing is written into its
//! folder: all that is made is in `.sledge` beside the configuration.

mod go;
mod library;
mod protos;
mod rust;
mod signals;
mod toolchain;
mod tree;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use super::{fail, print_line, usage};
use crate::compile::{CompileError, Compiler};
use crate::config::{self, ApplicationConfig, ApplicationFunction, BUILT_FOLDER, Config, Language};
use crate::load;
use crate::notice::To;

use toolchain::ToolchainError;

/// Files that only the outermost folder of a program's sources has.
const ROOTS: [&str; 2] = ["go.mod", "Cargo.lock"];

/// Build applications.
#[derive(Debug, Args)]
pub(super) struct BuildArgs {
    /// Applications of the configuration [default: all]
    #[arg(value_name = "APPLICATION")]
    applications: Vec<String>,
    /// The configuration, which has the applications
    #[arg(long, value_name = "FILE", default_value = "sledge.toml")]
    config: PathBuf,
}

/// Why a function was not built.
#[derive(Debug, thiserror::Error)]
pub(super) enum BuildError {
    /// The program is not there.
    #[error("source: {}: {source}; give the program's folder, from the configuration's folder on", path.display())]
    NoSource {
        /// Where it should be.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A part of the source cannot be read.
    #[error("source: {}: {source}", path.display())]
    Source {
        /// Which.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// It is not known what it is.
    #[error("source: neither go.mod nor Cargo.toml in {} or above; a program is a Go module or a cargo package", .0.display())]
    Language(PathBuf),
    /// Something cannot be written.
    #[error("{}: {source}", path.display())]
    Write {
        /// What.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A toolchain fails, or would.
    #[error(transparent)]
    Toolchain(#[from] ToolchainError),
    /// The module that was built cannot be read.
    #[error(transparent)]
    Read(#[from] load::OpenError),
    /// The module that was built cannot be compiled.
    #[error(transparent)]
    Compile(#[from] CompileError),
}

impl BuildError {
    fn write(path: &Path) -> impl FnOnce(io::Error) -> BuildError + use<> {
        let path = path.to_owned();
        |source| BuildError::Write { path, source }
    }
}

/// A program that is to be built.
#[derive(Debug)]
struct Job<'a> {
    /// The function's full name.
    name: String,
    /// The program's folder.
    source: PathBuf,
    /// What is written besides the module, of this function alone.
    work: PathBuf,
    /// Our libraries, and what functions have in common.
    libraries: &'a Path,
    /// The module.
    module: PathBuf,
    to: To,
}

pub(super) fn build(args: &BuildArgs) -> ExitCode {
    if !args.config.is_file() {
        return usage(format_args!("{}: no such file; give a configuration with --config FILE", args.config.display()));
    }
    let mut config = match config::read(&args.config) {
        Ok(config) => config,
        Err(error) => return fail(error),
    };
    let chosen = match choose(&config, args) {
        Ok(chosen) => chosen,
        Err(why) => return usage(format_args!("{}: {why}", args.config.display())),
    };
    // First of all: names of services are checked by them.
    for application in &mut config.applications {
        if chosen.iter().all(|one| one.name != application.name) {
            continue;
        }
        if let Err(error) = protos::describe(application, To::Caller) {
            return fail(error);
        }
        application.is_described = true;
    }
    if let Err(error) = config::check(&config, Some(&args.config)) {
        return fail(error);
    }
    if let Err(error) = check_sources(&chosen) {
        return fail(error);
    }
    let compiler = load::compiler(&config).telling(To::Caller);
    config.applications = chosen;
    for application in &config.applications {
        for function in &application.functions {
            let name = application.full_name(function);
            let built = module(application, function, To::Caller).and_then(|module| artifact(&config, &name, &module, &compiler));
            match built {
                Ok(artifact) => drop(print_line(&format!("{name}: {}", artifact.display()))),
                Err(error) => return fail(format_args!("{name}: {error}")),
            }
        }
    }
    ExitCode::SUCCESS
}

/// The applications that are to be built.
fn choose(config: &Config, args: &BuildArgs) -> Result<Vec<ApplicationConfig>, String> {
    let names = || config.applications.iter().map(|application| application.name.as_str()).collect::<Vec<_>>().join(", ");
    if config.applications.is_empty() {
        return Err("has no applications ([[applications]]); `sledge dev` runs `build` of functions".to_owned());
    }
    if let Some(unknown) = args.applications.iter().find(|name| config.applications.iter().all(|one| one.name != **name)) {
        return Err(format!("has no application `{}`; its applications: {}", unknown.escape_default(), names()));
    }
    let is_chosen = |one: &&ApplicationConfig| args.applications.is_empty() || args.applications.contains(&one.name);
    Ok(config.applications.iter().filter(is_chosen).cloned().collect())
}

/// Builds the modules of all applications, as `sledge dev` needs them.
///
/// # Errors
/// What to tell its user.
pub(super) fn modules(config: &Config, to: To) -> Result<(), String> {
    check_sources(&config.applications)?;
    for application in &config.applications {
        protos::describe(application, to)?;
        for function in &application.functions {
            let name = application.full_name(function);
            tracing::info!(function = name, "building");
            module(application, function, to).map_err(|error| format!("{name}: {error}"))?;
        }
    }
    Ok(())
}

/// The folders that have what applications are built from: .proto files, and the module or workspace of each program.
pub(super) fn sources(config: &Config) -> impl Iterator<Item = PathBuf> + use<> {
    let folders = config.applications.iter().flat_map(|application| {
        let programs = application.functions.iter().map(|function| {
            let source = fs::canonicalize(&function.source).unwrap_or_else(|_| function.source.clone());
            let is_root = |folder: &&Path| ROOTS.iter().any(|file| folder.join(file).is_file());
            source.ancestors().find(is_root).map(Path::to_owned).unwrap_or(source)
        });
        application.protos.iter().cloned().chain(programs)
    });
    folders.collect::<Vec<_>>().into_iter()
}

/// Looks for the sources of all functions, before minutes go into the first of them.
fn check_sources(applications: &[ApplicationConfig]) -> Result<(), String> {
    for application in applications {
        for function in &application.functions {
            source(function).map_err(|error| format!("{}: {error}", application.full_name(function)))?;
        }
    }
    Ok(())
}

/// Where a program is, and its language.
fn source(function: &ApplicationFunction) -> Result<(PathBuf, Language), BuildError> {
    let missing = |source| BuildError::NoSource { path: function.source.clone(), source };
    let source = fs::canonicalize(&function.source).map_err(missing)?;
    if !source.is_dir() {
        return Err(missing(io::ErrorKind::NotADirectory.into()));
    }
    let language = match function.language {
        Some(language) => language,
        None => detected(&source).ok_or_else(|| BuildError::Language(function.source.clone()))?,
    };
    Ok((source, language))
}

/// Builds a function; its module.
fn module(application: &ApplicationConfig, function: &ApplicationFunction, to: To) -> Result<PathBuf, BuildError> {
    let (source, language) = source(function)?;
    let folder = own_folder(application)?;
    let libraries = folder.parent().unwrap_or(&folder).join("lib");
    let module = folder.join(format!("{}.wasm", function.name));
    let work = folder.join("work").join(&function.name);
    let job = Job { name: application.full_name(function), source, work, libraries: &libraries, module, to };
    match language {
        Language::Go => go::build(&job)?,
        Language::Rust => rust::build(&job)?,
    }
    Ok(application.artifact(function).with_extension("wasm"))
}

/// The folder of what is built of an application, as an absolute path. Version control leaves it alone.
fn own_folder(application: &ApplicationConfig) -> Result<PathBuf, BuildError> {
    let folder = &application.folder;
    fs::create_dir_all(folder).map_err(BuildError::write(folder))?;
    let folder = fs::canonicalize(folder).map_err(BuildError::write(folder))?;
    if let Some(all) = folder.parent().filter(|all| all.ends_with(BUILT_FOLDER)) {
        library::write_changed(&all.join(".gitignore"), b"*\n")?;
    }
    Ok(folder)
}

/// Compiles what was built; the artifact.
fn artifact(config: &Config, name: &str, module: &Path, compiler: &Compiler) -> Result<PathBuf, BuildError> {
    let bytes = load::read_module(module)?;
    let target = config.functions.iter().find(|function| function.name == name).map(config::FunctionConfig::target);
    let compiled = compiler.compile(name, &bytes, &target.unwrap_or_default())?;
    let artifact = module.with_extension("so");
    // A server may be reading the one that there is.
    let part = module.with_extension("so.part");
    fs::write(&part, compiled.artifact).map_err(BuildError::write(&part))?;
    fs::rename(&part, &artifact).map_err(BuildError::write(&artifact))?;
    Ok(artifact)
}

/// What the nearest manifest says.
fn detected(source: &Path) -> Option<Language> {
    source.ancestors().find_map(|folder| match (folder.join("go.mod").is_file(), folder.join("Cargo.toml").is_file()) {
        (true, false) => Some(Language::Go),
        (false, true) => Some(Language::Rust),
        // Of both the one that its sources are in.
        (true, true) => Some(if source.join("src").is_dir() { Language::Rust } else { Language::Go }),
        (false, false) => None,
    })
}
