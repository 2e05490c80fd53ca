//! Why a module was not compiled.

use std::env::consts::ARCH;
use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;

/// Why a module was not compiled.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompileError {
    /// There is no compiler.
    #[error(
        "a WebAssembly module has to be compiled, but there is no `awsm` beside {} nor in PATH. Install it; or, on a machine that has it, run \
         `awsm compile MODULE.wasm --target {ARCH}-unknown-linux-gnu --cpu baseline`, copy the .so here, make it the `path` of a function in \
         the server's configuration, and reload that (kill -HUP, or systemctl reload)", beside.display()
    )]
    NoCompiler {
        /// This program.
        beside: PathBuf,
    },
    /// The compiler did not start.
    #[error("cannot start {}: {source}", compiler.display())]
    Start {
        /// The compiler.
        compiler: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The module is larger than any.
    #[error("the module has {bytes} bytes or more; at most {bytes_max} are compiled")]
    TooLarge {
        /// What it has.
        bytes: u64,
        /// What it may have.
        bytes_max: u64,
    },
    /// No room for temporary files, or they are gone.
    #[error("cannot use a temporary folder for compiling ({}): {_0}", std::env::temp_dir().display())]
    Folder(io::Error),
    /// The process that starts compilers has ended.
    #[error(
        "the process that starts compilers for this server has ended; nothing can be compiled until the server is started again"
    )]
    NoBroker,
    /// It does not start this one.
    #[error("the compiler was not started: {_0}")]
    Refused(String),
    /// It was not wanted any more.
    #[error("compiling was ended, since the module was no longer to be served")]
    Cancelled,
    /// The compiler failed.
    #[error("awsm could not compile it ({status}): {message}")]
    Failed {
        /// How the compiler ended.
        status: ExitStatus,
        /// What it said.
        message: String,
    },
    /// The compiler took too long.
    #[error(
        "compiling took longer than {ms_max} ms of processor time and was ended; raise `compile_ms_max`, or compile with `awsm compile -O 1` and give the .so"
    )]
    Time {
        /// The limit.
        ms_max: u64,
    },
    /// The compiler, or a child of it, was ended by a signal.
    #[error(
        "awsm was ended by signal {signal} while it compiled; it has {memory_bytes_max} bytes of memory (`compile_memory_bytes_max`):\n{message}"
    )]
    Killed {
        /// Which.
        signal: i32,
        /// What it may use.
        memory_bytes_max: u64,
        /// What it said.
        message: String,
    },
}

impl CompileError {
    /// The same, where the compiler's advice to its own user is replaced by that to the server's.
    #[must_use]
    pub fn advising(self, compilers: &str, servers: &str) -> CompileError {
        match self {
            CompileError::Failed { status, message } => {
                CompileError::Failed { status, message: message.replace(compilers, servers) }
            }
            other => other,
        }
    }
}
