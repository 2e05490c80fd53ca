//! Why there are no replacements.

use std::path::PathBuf;
use std::{fmt, io};

/// Why there are no replacements.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A file cannot be read or written.
    File(PathBuf, io::Error),
    /// cargo does not know the application's packages.
    Metadata(String),
    /// A package in a version that is not supported.
    Version {
        /// Its name.
        name: &'static str,
        /// The version that is locked.
        version: String,
        /// Which are supported.
        supported: &'static str,
    },
    /// The original does not have what was to be changed in it.
    Changed {
        /// The file.
        file: PathBuf,
        /// What is not there.
        missing: &'static str,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::File(path, error) => write!(f, "{}: {error}", path.display()),
            Error::Metadata(why) => write!(f, "cargo metadata: {why}"),
            Error::Version { name, version, supported } => {
                write!(f, "{name} {version} is locked, and {supported} are supported: `cargo update -p {name} --precise VERSION`")
            }
            Error::Changed { file, missing } => {
                write!(f, "{}: `{missing}` is not there, so this version is not supported", file.display())
            }
        }
    }
}

impl std::error::Error for Error {}
