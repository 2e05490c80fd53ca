//! What is wrong with a schedule, where, and what to write.

use super::limits::{EXPRESSION_BYTES_MAX, ZONE_BYTES_MAX};
use crate::definition::shown;

/// Why a schedule is refused. Its `Display` is one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// The expression is of no known form, or names times that do not exist.
    #[error("schedule \"{}\", column {column}: {message}; {help}", shown(expression))]
    Expression {
        /// The expression.
        expression: String,
        /// Where it goes wrong, in characters, from 1.
        column: usize,
        /// What is wrong.
        message: String,
        /// What to write.
        help: String,
    },
    /// The expression is longer than [`EXPRESSION_BYTES_MAX`].
    #[error(
        "the schedule has {bytes} bytes: at most {EXPRESSION_BYTES_MAX} are allowed; write ranges and steps in place of long lists"
    )]
    TooLong {
        /// Its bytes.
        bytes: usize,
    },
    /// The time zone is not one of IANA's, or longer than [`ZONE_BYTES_MAX`].
    #[error("there is no time zone \"{}\"; {help}", shown(zone.get(..ZONE_BYTES_MAX).unwrap_or(zone)))]
    Zone {
        /// The name that was given.
        zone: String,
        /// What to write.
        help: String,
    },
}

/// A mistake at a byte of the expression.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) at: usize,
    pub(super) message: String,
    pub(super) help: String,
}

impl Fault {
    pub(super) fn new(at: usize, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { at, message: message.into(), help: help.into() }
    }

    pub(super) fn of(self, expression: &str) -> ScheduleError {
        let column = expression.get(..self.at).unwrap_or(expression).chars().count().saturating_add(1);
        ScheduleError::Expression { expression: expression.to_owned(), column, message: self.message, help: self.help }
    }
}
