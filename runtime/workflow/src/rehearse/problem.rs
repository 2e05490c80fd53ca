//! What is wrong with a test file, where, and what to do.

use std::fmt::{self, Display, Formatter};

/// One mistake in a test file. Its `Display` is one line: `4:9: cases[0].expect.outptu: there is no such key here; did you mean "output"?`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Problem {
    /// The line in the file, from 1.
    pub line: usize,
    /// The column in that line in characters, from 1.
    pub column: usize,
    /// Where in the document: `cases[0].mocks.Charge[1]`; empty for the document itself.
    pub path: String,
    /// What is wrong.
    pub message: String,
    /// What to do about it, when that is known.
    pub help: Option<String>,
}

impl Display for Problem {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}: ", self.line, self.column)?;
        if !self.path.is_empty() {
            write!(out, "{}: ", self.path)?;
        }
        out.write_str(&self.message)?;
        match &self.help {
            Some(help) => write!(out, "; {help}"),
            None => Ok(()),
        }
    }
}
