//! Regular expressions of ECMAScript, in an engine whose steps and memory are counted.
//!
//! An engine that backtracks is what the language asks for (back-references, look-around), and takes exponential time on some patterns: here, such a search ends at the limit
//! of steps as any other evaluation does. Strings are sequences of code points, so `.` takes a whole character where ECMAScript without its flag `u` takes half a surrogate pair.
//!
//! * `pattern`: patterns into trees; `class`: sets of characters; `program`: trees into instructions; `search`: runs instructions.

mod class;
mod pattern;
mod program;
mod search;

use std::rc::Rc;

use crate::error::Result;
use crate::meter::Meter;
use program::Program;

/// A compiled regular expression.
pub(crate) struct Regex {
    program: Program,
}

/// Where a regular expression matches, in bytes: the whole match first, then its groups.
pub(crate) struct Match {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) groups: Vec<Option<(usize, usize)>>,
}

impl Regex {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// `S0303` for a malformed pattern, `U1001` for one that is nested too deeply.
    pub(crate) fn new(pattern: &str, ignores_case: bool, is_multiline: bool) -> Result<Regex> {
        let tree = pattern::parse(pattern)?;
        Ok(Regex { program: program::compile(&tree, ignores_case, is_multiline) })
    }

    /// The first match that starts at a byte or after it.
    pub(crate) fn find<'a>(&self, text: &str, from: usize, meter: &Rc<Meter<'a>>) -> Result<Option<Match>> {
        search::find(&self.program, text, from, meter)
    }
}
