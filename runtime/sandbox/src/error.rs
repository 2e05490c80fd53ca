//! What can go wrong before a guest runs. A trap is not among these: it is an outcome, [`Event::Trapped`](crate::Event::Trapped).

use std::io;
use std::path::PathBuf;

use awsm_abi::descriptor::ExternKind;
use awsm_abi::text;
use awsm_abi::types::FuncType;
use awsm_abi::{ABI_VERSION, TrapCode};

/// Why an artifact was not loaded. Nothing of it was mapped executable.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The file could not be read.
    #[error("cannot read the artifact: {0}")]
    Read(#[source] io::Error),
    /// One of the other errors, in this file.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: Box<LoadError>,
    },
    /// It does not begin as an ELF file does.
    #[error("not an artifact: it is no ELF shared object{hint}")]
    NotElf {
        /// What it is instead, where that is known, and what to do.
        hint: &'static str,
    },
    /// An ELF file, but not one that this machine and runtime are for.
    #[error("a foreign file: {what}; give a .so made by `awsm compile` for this machine")]
    Foreign {
        /// What tells it apart.
        what: String,
    },
    /// Made for another version of the contract between compiler and runtime.
    #[error(
        "made for ABI version {found}, this runtime has version {ABI_VERSION}: compile it again with the awsm of the same release"
    )]
    AbiVersion {
        /// The artifact's version.
        found: u32,
    },
    /// It needs a processor feature that this machine has not, or that this runtime cannot check.
    #[error(
        "needs the processor feature `{name}`, which {why}: compile it on this machine, or with `awsm compile --cpu baseline`"
    )]
    CpuFeature {
        /// LLVM's name of the feature.
        name: String,
        /// What is the matter with it.
        why: &'static str,
    },
    /// Shorter than its own headers say.
    #[error("truncated: {what} ends after the file's {bytes} bytes; copy or compile it again")]
    Truncated {
        /// The part that is missing.
        what: &'static str,
        /// Size of what there is.
        bytes: usize,
    },
    /// Memory accesses are not checked in it.
    #[error(
        "compiled with `--bounds none`, which isolates nothing: it is for measurements only and is refused unless forced by `--allow-unchecked` or the key `allow_unchecked`"
    )]
    Unchecked,
    /// Its code reaches memory through a segment register that this machine has not.
    #[error(
        "compiled with `--bounds segment`, but this system lets no program set a segment register (it has neither FSGSBASE nor arch_prctl): compile it with `--bounds guard` or `--bounds software`"
    )]
    NoSegment,
    /// A part contradicts the rules for artifacts or another part.
    #[error("refused: {what}; compile it again, and report this if awsm made it so")]
    Rejected {
        /// What is wrong.
        what: String,
    },
    /// There is no memory or address space left for its code.
    #[error("no memory for its code: {0}")]
    OutOfMemory(#[source] io::Error),
}

impl LoadError {
    /// Something contradicts the rules.
    pub(crate) fn rejected(what: impl Into<String>) -> LoadError {
        LoadError::Rejected { what: what.into() }
    }
}

/// Why a sandbox or an instance was not made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InstantiateError {
    /// An import has no counterpart.
    #[error("unknown import: `{}` `{}` ({kind})", text::name(module), text::name(name))]
    UnknownImport {
        /// Module name of the import.
        module: String,
        /// Field name of the import.
        name: String,
        /// Kind of the import.
        kind: ExternKind,
    },
    /// An import's counterpart has another type.
    #[error("incompatible import type: `{}` `{}` wants {wanted}, was given {given}", text::name(module), text::name(name))]
    IncompatibleImport {
        /// Module name of the import.
        module: String,
        /// Field name of the import.
        name: String,
        /// The type it is declared with.
        wanted: String,
        /// The type of what it was given.
        given: String,
    },
    /// Its code returns exceptions and that of the sandbox's other instances does not, or the other way round.
    #[error(
        "of the modules of one sandbox, some were compiled for exceptions and some not: compile those without tags with `--foreign-exceptions`"
    )]
    Exceptions,
    /// Only some of the sandbox's modules keep the segment register.
    #[error(
        "modules compiled with `--bounds segment` can be in one sandbox only with others compiled so: compile all of them with one mode"
    )]
    Segment,
    /// More imports were given than the module has, or a handle belongs to another sandbox, or there is no such module.
    #[error("{0}")]
    Misuse(&'static str),
    /// An active segment does not fit. Effects of earlier segments remain, as the specification wants it.
    #[error("{0} while the initial contents were written")]
    Trap(TrapCode),
    /// It would need more than the sandbox may have.
    #[error("{what} needs {wanted}, the limit is {limit}")]
    Limit {
        /// Of what.
        what: &'static str,
        /// How much it needs.
        wanted: u64,
        /// How much there may be.
        limit: u64,
    },
    /// What all sandboxes share is used up.
    #[error("a sandbox needs {wanted} bytes, of the {limit} that all together may use fewer are left")]
    Exhausted {
        /// How much it needs.
        wanted: u64,
        /// How much all together may use.
        limit: u64,
    },
    /// The system has no memory or address space left.
    #[error("no memory for {what}: {source}")]
    OutOfMemory {
        /// What for.
        what: &'static str,
        /// The system's answer.
        source: io::Error,
    },
}

impl InstantiateError {
    /// Whether it might have been made if others had used less.
    #[must_use]
    pub fn is_exhaustion(&self) -> bool {
        match self {
            InstantiateError::Exhausted { wanted, limit } => wanted <= limit,
            InstantiateError::OutOfMemory { .. } => true,
            _ => false,
        }
    }
}

/// Why a function was not called, or a host call not answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The sandbox is in the middle of another call, or was killed.
    #[error("the sandbox is {state}: it takes no call now")]
    Busy {
        /// Its state.
        state: &'static str,
    },
    /// The values do not have the function's types.
    #[error("the function is of type {wanted}: these values do not match")]
    Types {
        /// The function's type.
        wanted: FuncType,
    },
    /// The handle or a reference among the values belongs to another sandbox.
    #[error("a handle of another sandbox")]
    Foreign,
    /// The sandbox has as many fibers as it may have.
    #[error("the sandbox has {limit} calls at the same time, which is the limit")]
    Fibers {
        /// How many it may have.
        limit: usize,
    },
    /// There is no memory for another stack: by the sandbox's limit, by the budget, or the system has none.
    #[error("no memory for the stack of another call")]
    NoStack,
    /// The fiber has ended, or is another sandbox's.
    #[error("there is no such fiber in this sandbox")]
    NoFiber,
    /// The artifact has no entry for functions of this type, since none of them is exported.
    #[error("the artifact has no entry for functions of type {0}")]
    NoEntry(FuncType),
}
