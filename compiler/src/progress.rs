//! How a caller watches a compilation.

use serde::{Deserialize, Serialize};

/// The parts of a compilation, in their order. Those that a choice of [`Emit`](crate::Emit) does not need are left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Phase {
    /// Parsing and validating the module.
    Validate,
    /// Translating functions to LLVM IR.
    Translate,
    /// Optimising.
    Optimise,
    /// Generating machine code; of a large module, which is divided among threads, translating and optimising as well.
    Generate,
    /// Writing the descriptor and linking.
    Link,
}

impl Phase {
    /// Its name, in lower case.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Phase::Validate => "validate",
            Phase::Translate => "translate",
            Phase::Optimise => "optimise",
            Phase::Generate => "generate",
            Phase::Link => "link",
        }
    }
}

/// Is told how far a compilation has come, from whatever thread does the work. `()` ignores it.
pub trait Progress: Sync {
    /// A phase begins. `total` is the number of steps (functions, mostly) that [`advance`](Progress::advance) will count, or zero where
    /// the phase cannot tell.
    fn begin(&self, phase: Phase, total: usize);

    /// `done` steps of the current phase are done.
    fn advance(&self, done: usize);

    /// Code of a part of the module begins to be generated, or no longer is where `what` is none. Several may be at a time.
    fn part(&self, _index: usize, _what: Option<&str>) {}

    /// Of `kept` parts of large modules, which a cache may hold, it had `found`.
    fn cached(&self, _found: usize, _kept: usize) {}

    /// The module compiles, but something about it should be known: one line, which names what it is about.
    fn warn(&self, _message: &str) {}
}

impl Progress for () {
    fn begin(&self, _: Phase, _: usize) {}
    fn advance(&self, _: usize) {}
}
