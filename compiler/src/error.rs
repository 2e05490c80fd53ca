//! Why a compilation failed.

use std::fmt;
use std::io;

use awsm_abi::limits::COMPILE_WALL_MULTIPLE;
use awsm_abi::text;
use thiserror::Error;

/// How wasmparser begins where the first bytes are no module's.
const NO_MODULE: &str = "magic header not detected";

/// Why a compilation failed. Offsets are in bytes from the module's start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CompileError {
    /// The module is malformed or does not validate.
    #[error("invalid module at offset {offset:#x}: {message}")]
    Invalid {
        /// Where.
        offset: u64,
        /// What is wrong, in wasmparser's words.
        message: String,
    },
    /// The module uses something that `awsm` does not compile.
    #[error("unsupported feature at offset {offset:#x}: {feature}")]
    Unsupported {
        /// Name of the feature or proposal.
        feature: String,
        /// Where it is first used.
        offset: u64,
    },
    /// The module is larger in some respect than [`awsm_abi::limits`] allows.
    #[error("limit exceeded at offset {offset:#x}: {found} {what}, at most {limit} are allowed")]
    Limit {
        /// What is counted.
        what: &'static str,
        /// How many there are.
        found: u64,
        /// How many there may be.
        limit: u64,
        /// Where the count was found.
        offset: u64,
    },
    /// It is a component that cannot be compiled, or cannot be served.
    #[error("{message}")]
    Component {
        /// Why.
        message: String,
    },
    /// A module of several is at fault.
    #[error("module {index}: {source}")]
    Module {
        /// Which one of the program's.
        index: usize,
        /// What is wrong with it.
        source: Box<CompileError>,
    },
    /// A program's plan does not fit its modules.
    #[error("invalid plan: {message}")]
    Plan {
        /// What is wrong, and in which instance.
        message: String,
    },
    /// An option's value is not known, or does not go together with another.
    #[error("{option} `{value}`: {reason}")]
    Options {
        /// Name of the option.
        option: &'static str,
        /// Its value.
        value: String,
        /// What is wrong, and what may be given instead.
        reason: String,
    },
    /// LLVM refused; a bug of `awsm`.
    #[error("LLVM failed while {doing}: {message}")]
    Llvm {
        /// What was being done.
        doing: &'static str,
        /// LLVM's words.
        message: String,
    },
    /// No linker, or the linker refused.
    #[error(transparent)]
    Linker(#[from] LinkerError),
    /// The artifact breaks a rule that every artifact keeps; a bug of `awsm`.
    #[error("the linked artifact breaks a rule of its format: {rule}")]
    Artifact {
        /// The rule, and what was found.
        rule: String,
    },
    /// The process that generates code says why the module does not compile.
    #[error("{message}")]
    Child {
        /// Its error's text.
        message: String,
    },
    /// Code generation wanted more memory than it may have.
    #[error(
        "code generation wants more than {limit_mb} MB of memory ({doing}); allow more with --memory-max-mb, or use less with -j 1 or -O 1"
    )]
    Memory {
        /// What was being done.
        doing: String,
        /// The limit.
        limit_mb: u64,
    },
    /// Code generation took longer than it may.
    #[error(
        "code generation is not done after {limit_s} s of processor time, or {COMPILE_WALL_MULTIPLE} times as long by the clock ({doing}); \
         allow more with --time-max-s, or take less with -O 1"
    )]
    Time {
        /// What was being done.
        doing: String,
        /// The limit.
        limit_s: u64,
    },
    /// The process that generates code ended without an answer; a bug of LLVM or `awsm`.
    #[error("the process that generates code {ended} ({doing}); this is a bug, which -O 1 may avoid{said}")]
    Crashed {
        /// What was being done.
        doing: String,
        /// How it ended.
        ended: String,
        /// What it wrote to standard error.
        said: String,
    },
    /// A temporary file could not be written or read.
    #[error("{doing}: {source}")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// Why it failed.
        source: io::Error,
    },
}

/// Why linking failed.
#[derive(Debug, Error)]
pub enum LinkerError {
    /// None of the linkers could be started.
    #[error(
        "no linker found: looked for {} in PATH; install lld (Debian: `apt install lld-22` or `apt install lld`; \
         rust-lld comes with `rustup component add llvm-tools`)",
        looked_for.join(", ")
    )]
    NotFound {
        /// The names tried, in their order.
        looked_for: Vec<String>,
    },
    /// The linker failed; a bug of `awsm`, or a full disk.
    #[error("{linker} failed ({status}): {}", output.trim())]
    Failed {
        /// Its name.
        linker: String,
        /// Its exit status.
        status: String,
        /// What it wrote.
        output: String,
    },
}

impl CompileError {
    /// A module that a validator refuses. Its words may repeat names of the module.
    pub(crate) fn invalid(offset: u64, words: &str) -> CompileError {
        // Of what is no module it lists bytes, one a line.
        let words = if words.starts_with(NO_MODULE) { NO_MODULE } else { words };
        CompileError::Invalid { offset, message: text::line(words) }
    }

    /// A component that others refuse, or in words that repeat its names.
    pub(crate) fn component(words: &str) -> CompileError {
        CompileError::Component { message: text::line(words) }
    }

    /// A failure of LLVM.
    pub(crate) fn llvm(doing: &'static str, message: impl fmt::Display) -> CompileError {
        CompileError::Llvm { doing, message: message.to_string() }
    }

    /// A broken rule of the artifact's format.
    pub(crate) fn artifact(rule: impl fmt::Display) -> CompileError {
        CompileError::Artifact { rule: rule.to_string() }
    }

    /// Makes an input or output error say what was being done.
    pub(crate) fn io(doing: &'static str) -> impl FnOnce(io::Error) -> CompileError {
        move |source| CompileError::Io { doing, source }
    }
}

impl From<wasmparser::BinaryReaderError> for CompileError {
    fn from(error: wasmparser::BinaryReaderError) -> CompileError {
        CompileError::invalid(error.offset(), error.message())
    }
}

impl From<inkwell::builder::BuilderError> for CompileError {
    fn from(error: inkwell::builder::BuilderError) -> CompileError {
        CompileError::llvm("building IR", error)
    }
}
