//! Why .proto files do not become WIT.

use std::fmt;

/// A place in a .proto file. Lines and columns count from 1; a file that is built in has none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file, as imports name it.
    pub file: String,
    /// Line and column.
    pub position: Option<(u32, u32)>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = super::text::printable(&self.file);
        match self.position {
            Some((line, column)) => write!(f, "{file}:{line}:{column}"),
            None => f.write_str(&file),
        }
    }
}

/// Why .proto files do not become WIT. Messages are safe to show on a terminal.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProtoError {
    /// A file cannot be read, or is not Protobuf; in protox's words, with the place.
    #[error("{0}")]
    Read(String),
    /// Something has no image in WIT.
    #[error("{place}: {message}")]
    Unsupported {
        /// Where it stands.
        place: Place,
        /// What it is, its name, and why it has none.
        message: String,
    },
    /// There is no service of that name.
    #[error("no service {name:?} in these files or what they import; {offer}")]
    Service {
        /// The name.
        name: String,
        /// The services that there are.
        offer: String,
    },
    /// A name that was given is none of WIT.
    #[error("{what} {name:?}: {reason}")]
    Name {
        /// What it names.
        what: &'static str,
        /// The name.
        name: String,
        /// Why it is none.
        reason: String,
    },
    /// What was written is not accepted: larger than components may be, or a bug of `awsm`.
    #[error("the WIT of these files is not valid; if it is not for their size, this is a bug of awsm: {0}")]
    Invalid(String),
}
