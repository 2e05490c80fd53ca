//! What a caller may choose about a compilation.

pub use awsm_abi::cpu::Arch;
pub use awsm_abi::types::Bounds;
use serde::{Deserialize, Serialize};

/// Choices for one compilation. The default is what `awsm compile` does without options.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompileOptions {
    /// How accesses to linear memory are checked.
    pub bounds: Bounds,
    /// The instruction set for which code is generated.
    pub arch: Arch,
    /// The processor for which code is generated.
    pub cpu: Cpu,
    /// How hard to optimise.
    pub opt_level: OptLevel,
    /// What to produce.
    pub emit: Emit,
    /// Threads that generate code of a large module; as many as there are processors if zero. What they produce does not depend on it.
    pub jobs: usize,
    /// Accept exceptions in the form of the proposal before it was finished: `try`, `catch`, `delegate`, `rethrow`.
    pub legacy_exceptions: bool,
    /// Let exceptions of other modules through, in a module that has no tag of its own. All instances of a sandbox have to agree whether there
    /// are exceptions; those of modules with tags always have them.
    pub foreign_exceptions: bool,
    /// Compile a component although it imports what the server does not offer: a call of that traps.
    pub unknown_imports: bool,
    /// Whether the artifact gets a line table, if the module has debug information.
    pub debug: bool,
    /// Compile every function as one that took too long, for tests of that.
    #[doc(hidden)]
    #[serde(default)]
    pub given_up: bool,
}

impl Default for CompileOptions {
    fn default() -> CompileOptions {
        CompileOptions {
            bounds: Bounds::Guard,
            arch: Arch::HOST,
            cpu: Cpu::Native,
            opt_level: OptLevel::O3,
            emit: Emit::So,
            jobs: 0,
            legacy_exceptions: false,
            foreign_exceptions: false,
            unknown_imports: false,
            debug: false,
            given_up: false,
        }
    }
}

/// The processor for which code is generated. Instructions that the choice does not promise are never used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cpu {
    /// The one that `awsm` runs on, which must be of the instruction set that is asked for.
    #[default]
    Native,
    /// Any processor of the architecture.
    Baseline,
    /// One of [`cpu_names`](crate::cpu_names).
    Named(String),
}

/// How hard to optimise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum OptLevel {
    /// Compile quickly; only locals are promoted to registers.
    O0,
    /// Simplify and inline.
    O1,
    /// As `O1`, more thoroughly, and vectorise.
    O2,
    /// All that LLVM has.
    #[default]
    O3,
}

impl OptLevel {
    /// The level of that number.
    #[must_use]
    pub const fn from_number(number: u8) -> Option<OptLevel> {
        match number {
            0 => Some(OptLevel::O0),
            1 => Some(OptLevel::O1),
            2 => Some(OptLevel::O2),
            3 => Some(OptLevel::O3),
            _ => None,
        }
    }

    /// Its number, 0 to 3.
    #[must_use]
    pub const fn number(self) -> u8 {
        self as u8
    }
}

/// How much effort goes into a part of a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effort {
    /// That of a level.
    Level(OptLevel),
    /// As little as gives decent code, for functions that were given up: nothing that may take longer than in proportion to the code.
    GivenUp,
}

impl Effort {
    /// The level that comes next to it.
    pub(crate) const fn level(self) -> OptLevel {
        match self {
            Effort::Level(level) => level,
            Effort::GivenUp => OptLevel::O1,
        }
    }
}

/// What to produce.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Emit {
    /// LLVM IR as text, after optimisation.
    LlvmIr,
    /// Assembly as text.
    Asm,
    /// The relocatable object that holds the functions' code, without descriptor and helpers.
    Obj,
    /// The artifact: a shared object with its descriptor.
    #[default]
    So,
}
