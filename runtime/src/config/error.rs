//! What can be wrong with a configuration, said so that it can be put right.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why a configuration is refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file could not be read.
    #[error("{}: cannot read the configuration: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// It is neither TOML nor JSON.
    #[error("{}: not valid {format}: {message}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// The format it was read as.
        format: &'static str,
        /// What the parser says, with line and column.
        message: String,
    },
    /// Keys or values are wrong: every problem that was found, one a line.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Problems(Vec<Problem>),
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file, or none where the value came from the command line.
    pub file: Option<PathBuf>,
    /// The key, as `functions[1].deadline_ms`; empty for the whole file.
    pub key: String,
    /// What was given, what was expected, what to do.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{}: ", file.display())?;
        }
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.message)
    }
}
