//! What is wrong with a definition, where, and what to do.

use std::fmt::{self, Display, Formatter};

use super::limits::SHOWN_BYTES_MAX;

/// One mistake in a definition. Its `Display` is one line: `12:7: States.A.Next: there is no state "B"; did you mean "C"?`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Mistake {
    /// The line in the definition's text, from 1.
    pub line: usize,
    /// The column in that line in characters, from 1.
    pub column: usize,
    /// Where in the document: `States.A.Branches[0].States.B.Next`; empty for the document itself.
    pub path: String,
    /// The innermost state that holds the mistake, if it lies in one.
    pub state: Option<String>,
    /// What is wrong.
    pub message: String,
    /// What to do about it, when that is known.
    pub help: Option<String>,
}

impl Display for Mistake {
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

/// Text of a definition as a message repeats it: escaped, and cut at a limit.
pub(crate) fn shown(text: &str) -> String {
    let escaped = text.escape_debug().to_string();
    if escaped.len() <= SHOWN_BYTES_MAX {
        return escaped;
    }
    let end = (0..=SHOWN_BYTES_MAX).rev().find(|&at| escaped.is_char_boundary(at)).unwrap_or(0);
    format!("{}...", escaped.get(..end).unwrap_or_default())
}

/// Finds the known name that a given one was most likely meant to be. The work of one definition is bounded: the measure costs the product of both lengths.
#[derive(Debug)]
pub(crate) struct Suggestions {
    left: usize,
}

/// Products of lengths that are compared for one definition: some milliseconds.
const SUGGESTION_WORK_MAX: usize = 5_000_000;

impl Suggestions {
    pub(crate) const fn new() -> Self {
        Self { left: SUGGESTION_WORK_MAX }
    }

    /// The nearest name, if one is near and there is work left.
    pub(crate) fn nearest<'k>(&mut self, given: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
        let folded = given.to_lowercase();
        let length = folded.chars().count();
        let mut best: Option<(usize, &str)> = None;
        for name in known {
            let name_length = name.chars().count();
            let allowed = 1 + name_length / 4;
            if length.abs_diff(name_length) > allowed {
                continue;
            }
            let Some(left) = self.left.checked_sub(length.saturating_mul(name_length)) else {
                self.left = 0;
                break;
            };
            self.left = left;
            let distance = strsim::damerau_levenshtein(&folded, &name.to_lowercase());
            if distance <= allowed && best.is_none_or(|least| (distance, name) < least) {
                best = Some((distance, name));
            }
        }
        best.map(|(_, name)| name)
    }

    /// `did you mean "X"?`, if there is a name like the given one.
    pub(crate) fn did_you_mean<'k>(&mut self, given: &str, known: impl IntoIterator<Item = &'k str>) -> Option<String> {
        self.nearest(given, known).map(|name| format!("did you mean \"{}\"?", shown(name)))
    }
}
