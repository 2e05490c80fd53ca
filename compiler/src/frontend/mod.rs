//! From what users have to a WebAssembly module: `.wasm` as it is, `.wat` through the text parser, C through clang and wasi-libc, C++
//! also through libc++, Rust through rustc or cargo with the target `wasm32-wasip1`.
//!
//! Knows where to look for those tools and how to call them; knows nothing about what becomes of the module. Every error says what was
//! looked for and how to get it.

mod c;
mod clang;
mod cpp;
mod diagnostics;
mod foreign;
mod runtimes;
mod rust;
mod tool;

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use awsm_abi::limits::INPUT_BYTES_MAX;
use awsm_abi::sources;
use thiserror::Error;

use crate::text_parser;

/// What can be compiled.
const EXPECTED: &str = "expected .wasm, .wat, .c, .cpp, .rs, or the folder of a cargo package";

/// What an input is, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// A binary module, `.wasm`.
    Wasm,
    /// A module in the text format, `.wat`.
    Wat,
    /// A C source file, `.c`.
    C,
    /// A C++ source file, `.cpp`, `.cc` or `.cxx`.
    Cpp,
    /// A Rust source file, `.rs`.
    Rust,
    /// A folder with a `Cargo.toml`.
    CargoPackage,
}

impl Language {
    /// Tells an input's language from its path.
    ///
    /// # Errors
    /// When the path does not exist, or is nothing that awsm compiles.
    pub fn of(input: &Path) -> Result<Language, FrontendError> {
        if input.is_dir() {
            if input.join("Cargo.toml").is_file() {
                return Ok(Language::CargoPackage);
            }
            return Err(FrontendError::NoPackage { folder: input.to_owned(), instead: project(input) });
        }
        if !input.exists() {
            return Err(FrontendError::Missing { path: input.to_owned() });
        }
        match input.extension().and_then(|extension| extension.to_str()) {
            Some("wasm") => Ok(Language::Wasm),
            Some("wat") => Ok(Language::Wat),
            Some("c") => Ok(Language::C),
            Some("rs") => Ok(Language::Rust),
            Some(extension) if cpp::EXTENSIONS.contains(&extension) => Ok(Language::Cpp),
            extension => Err(match extension.and_then(sources::known) {
                Some((what, advice)) => FrontendError::Foreign { path: input.to_owned(), what, advice },
                None => match foreign::unnamed(input) {
                    Some(what) => FrontendError::NotWasm { path: input.to_owned(), what: format!("{what}; {EXPECTED}") },
                    None => FrontendError::UnknownLanguage { path: input.to_owned() },
                },
            }),
        }
    }

    /// Whether another compiler turns it into WebAssembly.
    #[must_use]
    pub const fn has_producer(self) -> bool {
        matches!(self, Language::C | Language::Cpp | Language::Rust | Language::CargoPackage)
    }
}

/// Why an input did not become a WebAssembly module.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FrontendError {
    /// The input does not exist.
    #[error("{}: no such file or folder", path.display())]
    Missing {
        /// The input.
        path: PathBuf,
    },
    /// A folder that is no cargo package.
    #[error("{}: {instead}", folder.display())]
    NoPackage {
        /// The folder.
        folder: PathBuf,
        /// What it is instead, and what to do.
        instead: String,
    },
    /// It is known what the input is, but not compiled.
    #[error("{}: this is {what}: {advice}", path.display())]
    Foreign {
        /// The input.
        path: PathBuf,
        /// What it is.
        what: &'static str,
        /// What to do.
        advice: &'static str,
    },
    /// Neither of the known endings.
    #[error("{}: cannot tell what this is by its name: {EXPECTED}", path.display())]
    UnknownLanguage {
        /// The input.
        path: PathBuf,
    },
    /// The bytes say that it is no WebAssembly, and the name not that it is something that becomes some.
    #[error("{} is not WebAssembly: {what}", path.display())]
    NotWasm {
        /// The input.
        path: PathBuf,
        /// What it is instead, and what to do.
        what: String,
    },
    /// Reading or writing failed.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file is larger than any input.
    #[error("{}: larger than {INPUT_BYTES_MAX} bytes, the limit for an input of awsm", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// No room for temporary files.
    #[error("cannot use the folder for temporary files ({}): {_0}", std::env::temp_dir().display())]
    Scratch(io::Error),
    /// The text does not parse.
    #[error("{}: {message}", path.display())]
    Text {
        /// The input.
        path: PathBuf,
        /// The parser's message, with line and column.
        message: String,
    },
    /// A tool is not installed.
    #[error("{what} not found: looked for {looked_for}. {advice}")]
    ToolMissing {
        /// What it is needed for.
        what: &'static str,
        /// Where it was looked for.
        looked_for: String,
        /// How to get it.
        advice: &'static str,
    },
    /// A tool could not be started or ended with an error, which it has printed itself.
    #[error("{}: {program} failed ({outcome}){advice}", input.display())]
    ToolFailed {
        /// What it was to compile.
        input: PathBuf,
        /// Its name.
        program: String,
        /// Exit status, or why it did not start.
        outcome: String,
        /// What can be done about it, on lines of their own.
        advice: String,
    },
    /// The C++ library with exceptions did not build. What failed has been printed.
    #[error("cannot build the C++ library with exceptions of {}: {source}\n  `awsm compile FILE -- -fno-exceptions` does without", folder.display())]
    Runtimes {
        /// Where its sources are.
        folder: PathBuf,
        /// Why not.
        source: Box<FrontendError>,
    },
    /// Cargo built no WebAssembly module, or more than one.
    #[error("{}: cargo built {found}; {advice}", package.display())]
    Modules {
        /// The package.
        package: PathBuf,
        /// What it built.
        found: String,
        /// What to do.
        advice: &'static str,
    },
}

/// How a producer (clang, rustc, cargo) is to be called.
#[derive(Clone, Debug, Default)]
pub struct ProducerOptions {
    /// Optimisation level, 0 to 3.
    pub opt_level: u8,
    /// Further arguments, handed on as they are.
    pub arguments: Vec<String>,
}

/// Turns an input into the bytes of a WebAssembly module. Producers print their diagnostics on standard error.
///
/// # Errors
/// When the input cannot be read or a producer is missing or fails.
pub fn to_wasm(input: &Path, options: &ProducerOptions) -> Result<Vec<u8>, FrontendError> {
    match Language::of(input)? {
        Language::Wasm => {
            let bytes = read(input)?;
            match foreign::instead_of_binary(&bytes) {
                Some(what) => Err(FrontendError::NotWasm { path: input.to_owned(), what: what.to_owned() }),
                None => Ok(bytes),
            }
        }
        Language::Wat => {
            let text = read(input)?;
            if let Some(what) = foreign::instead_of_text(&text) {
                return Err(FrontendError::NotWasm { path: input.to_owned(), what: what.to_owned() });
            }
            let binary = text_parser::to_binary(Some(input), &text).map(std::borrow::Cow::into_owned);
            binary.map_err(|message| FrontendError::Text { path: input.to_owned(), message })
        }
        Language::C | Language::Cpp => c::compile(input, options),
        Language::Rust => rust::compile_file(input, options),
        Language::CargoPackage => rust::compile_package(input, options),
    }
}

/// What a folder that is no cargo package may be.
fn project(folder: &Path) -> String {
    let has = |names: &[&str]| names.iter().any(|name| folder.join(name).exists());
    if has(&["go.mod"]) {
        return format!("this is a Go module: {}", sources::GO);
    }
    let what = [
        (["pyproject.toml", "setup.py", "requirements.txt"].as_slice(), "a Python project"),
        (&["package.json"], "a JavaScript project"),
        (&["CMakeLists.txt", "Makefile", "configure", "meson.build"], "a C or C++ project with a build of its own"),
    ];
    match what.iter().find(|(names, _)| has(names)) {
        Some((_, what)) => format!(
            "this is {what}: of folders only cargo packages are compiled; give a .c or .cpp file (more of them after `--`), or the module (.wasm) that its \
             build makes for wasm32-wasip1"
        ),
        None => "no Cargo.toml there: a folder to compile must be a cargo package".to_owned(),
    }
}

/// Reads an input; no more of it than an input may have.
///
/// # Errors
/// When it cannot be read or is larger.
pub fn read(path: &Path) -> Result<Vec<u8>, FrontendError> {
    let failed = |source| FrontendError::Io { path: path.to_owned(), source };
    let too_large = || FrontendError::TooLarge { path: path.to_owned() };
    let file = File::open(path).map_err(failed)?;
    // What a device or a pipe holds is known only when it was read.
    let length = file.metadata().map_err(failed)?.len();
    if length > INPUT_BYTES_MAX {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(length as usize).map_err(|_| failed(io::ErrorKind::OutOfMemory.into()))?;
    file.take(INPUT_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > INPUT_BYTES_MAX { Err(too_large()) } else { Ok(bytes) }
}

/// A folder for a producer's output, removed with the value.
fn scratch() -> Result<tempfile::TempDir, FrontendError> {
    tempfile::Builder::new().prefix("awsm-").tempdir().map_err(FrontendError::Scratch)
}
