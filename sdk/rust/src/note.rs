//! What a function says about itself.

use std::fmt::Display;

use crate::sys;

/// How important a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "everybody knows them")]
pub enum Level {
    Trace,
    Debug,
    Info,
    Warn,
    Error,
}

/// A message for the server's log, of at most 4 KiB; an invocation may log 64 KiB. What is written to standard error goes there, too.
pub fn log(level: Level, message: impl Display) {
    sys::log(level, &message.to_string());
}

/// From here on the function is in that part of its work. The last one is in the request's record; where the function's configuration has `phases`,
/// the time for which it ran in each is, too, and an id that is none of them changes nothing.
pub fn phase(id: u32) {
    sys::phase(id);
}
