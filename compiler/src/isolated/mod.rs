//! Compiling in a process of its own.
//!
//! LLVM ends the process when it runs out of memory or finds itself in a state that it did not expect, and it cannot be said how long it works on
//! a module that was made to keep it busy. So [`compile()`] starts the program `awsm` again as `awsm codegen`, which sets limits on itself, reads
//! the program from its standard input and writes [`Message`]s. However that process ends, its parent lives and says what happened.
//!
//! ```text
//! parent --stdin--> Request as a line of JSON, what parts gave before, then the modules
//! parent <--stdout-- Messages, a line of JSON each; after Finished and Output their bytes
//! parent <--stderr-- what LLVM says when it fails, with the pass and the function
//! ```
//!
//! A function that takes more than its share of the time (`crate::watch`) ends the process, too: the parent starts another, with what was finished and
//! what is left of the time, in which that function is compiled with less effort.
//!
//! Parts of large modules are kept in a cache (`kept.rs`).
//!
//! What is only said of a component ([`outline()`]) comes out of such a process, too: it takes a translation, and the bytes are as hostile.

mod child;
mod kept;
mod parent;
mod verdict;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::module::FuncId;
use crate::options::CompileOptions;
use crate::program::Instance;
use crate::progress::Phase;

pub use child::serve;
pub use parent::{compile, compile_cached, outline};

/// What a compilation may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Memory that code generation may have, besides its stacks.
    pub memory_bytes_max: u64,
    /// Processor time that it may take, of all its threads. By the clock it may take [`awsm_abi::limits::COMPILE_WALL_MULTIPLE`] times as long.
    pub time_max: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { memory_bytes_max: 4 << 30, time_max: Duration::from_secs(600) }
    }
}

/// What is asked of the child. The bytes of finished parts and of modules follow.
#[derive(Debug, Serialize, Deserialize)]
struct Request {
    options: CompileOptions,
    limits: Limits,
    /// How many bytes each module of the program has.
    modules: Vec<u64>,
    /// Whether the only one is a component.
    component: bool,
    /// Whether no code is wanted, but what there is to say of the component.
    outline: bool,
    plan: Vec<Instance>,
    /// Functions that were given up.
    slow: Vec<FuncId>,
    /// Parts that are finished, with how many bytes they have.
    finished: Vec<(usize, u64)>,
    /// The parts that are wanted, if not the artifact.
    only: Option<Vec<usize>>,
}

/// What the child says.
#[derive(Debug, Serialize, Deserialize)]
enum Message {
    /// A phase began; see [`crate::Progress::begin`].
    Begin { phase: Phase, total: usize },
    /// Steps of it are done.
    Advance { done: usize },
    /// A part of the module is being worked on, or is done where there is no text.
    Part { index: usize, what: Option<String> },
    /// A warning.
    Warn { text: String },
    /// A part of several is done; its bytes follow.
    Finished { index: usize, bytes: u64 },
    /// All parts that are wanted are done, and took `used` of processor time; the last message.
    Parts { used: Duration },
    /// A function takes too long, and this process ends, which had `used` so much processor time; the last message.
    GivenUp { function: FuncId, used: Duration },
    /// It failed; the last message.
    Failed { text: String },
    /// It is done, the bytes follow; the last message.
    Output { bytes: u64 },
}
