//! The place of a column in the order of its execution's program.

use std::fmt;
use std::sync::Arc;

/// A path of numbers: `2.1` stands behind `2` and before `2.2` and `3`. What the numbers count is the driver's business.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Dewey(Arc<[u64]>);

impl Dewey {
    /// That path.
    #[must_use]
    pub fn new(steps: &[u64]) -> Dewey {
        Dewey(steps.into())
    }

    /// Its numbers, from the outermost.
    #[must_use]
    pub fn steps(&self) -> &[u64] {
        &self.0
    }
}

impl fmt::Display for Dewey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, step) in self.0.iter().enumerate() {
            write!(f, "{}{step}", if index == 0 { "" } else { "." })?;
        }
        Ok(())
    }
}

impl fmt::Debug for Dewey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
