//! Other functions of the same tenant, without the network.

use std::fmt;

use crate::sys;

/// A call that was begun. A call that is not waited for ends with the caller.
#[derive(Debug)]
#[must_use = "a call that is not waited for ends with the caller"]
pub struct Pending(u32);

/// Why a call has no reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// This tenant has no such function.
    NotFound,
    /// Too many functions wait for each other: 16 in all, 4 times the same.
    TooDeep,
    /// Too many requests: it was not begun.
    Busy,
    /// Its deadline passed.
    Timeout,
    /// It trapped, exited, or exceeded a limit.
    Failed,
    /// Something is wrong with it that an operator has to put right: it is not served until then.
    Quarantined,
    /// The input is larger than 4 MiB, or too many calls are begun at once.
    TooLarge,
    /// More than 64 calls are waited for.
    TooMany,
    /// Another of WASI's error numbers.
    Other(i32),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Error::NotFound => "this tenant has no such function",
            Error::TooDeep => "too many functions wait for each other",
            Error::Busy => "the function is busy",
            Error::Timeout => "the function's deadline passed",
            Error::Failed => "the function failed",
            Error::Quarantined => "the function is quarantined",
            Error::TooLarge => "the input is larger than 4 MiB",
            Error::TooMany => "more than 64 calls are waited for",
            Error::Other(number) => return write!(f, "a call of a function: error {number}"),
        })
    }
}

impl std::error::Error for Error {}

const NUMBERS: [(i32, Error); 8] = [
    (sys::E2BIG, Error::TooLarge),
    (sys::EAGAIN, Error::Busy),
    (sys::ECHILD, Error::Failed),
    (sys::ELOOP, Error::TooDeep),
    (sys::EMFILE, Error::TooMany),
    (sys::ENOENT, Error::NotFound),
    (sys::ENOTRECOVERABLE, Error::Quarantined),
    (sys::ETIMEDOUT, Error::Timeout),
];

impl From<i32> for Error {
    fn from(number: i32) -> Error {
        NUMBERS.iter().find(|(known, _)| *known == number).map_or(Error::Other(number), |(_, error)| *error)
    }
}

#[cfg(not(target_family = "wasm"))]
impl Error {
    pub(crate) fn number(self) -> i32 {
        match self {
            Error::Other(number) => number,
            error => NUMBERS.iter().find(|(_, known)| *known == error).map_or(sys::ECHILD, |(number, _)| *number),
        }
    }
}

/// Calls a function and waits for its reply.
///
/// # Errors
/// When there is none.
pub fn invoke(name: &str, input: impl AsRef<[u8]>) -> Result<Vec<u8>, Error> {
    Ok(sys::call_invoke(name, input.as_ref())?)
}

/// Begins a call, and does not wait.
///
/// # Errors
/// When it is too large, or one of too many.
pub fn start(name: &str, input: impl AsRef<[u8]>) -> Result<Pending, Error> {
    Ok(Pending(sys::call_start(name, input.as_ref())?))
}

/// Starts a call whose reply is not wanted, and which may outlive the caller. The caller does not learn whether it even starts.
///
/// # Errors
/// As for [`start`].
pub fn send(name: &str, input: impl AsRef<[u8]>) -> Result<(), Error> {
    Ok(sys::call_send(name, input.as_ref())?)
}

impl Pending {
    /// Waits for the reply.
    ///
    /// # Errors
    /// When there is none.
    pub fn wait(self) -> Result<Vec<u8>, Error> {
        Ok(sys::call_wait(self.0)?)
    }
}
