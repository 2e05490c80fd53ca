//! What goes wrong while a step moves data: an error name of the Amazon States Language, and a cause for people.

use std::fmt;
use std::io;

use serde_json::Value;

use super::limits::CAUSE_DOCUMENT_BYTES_MAX;

/// A name that `Retry` and `Catch` match. Source: the specification's appendix of error names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorName {
    /// `States.Runtime`: a path leads nowhere, or a limit was reached. `States.ALL` does not match it.
    Runtime,
    /// `States.ParameterPathFailure`: a path in a payload template leads nowhere.
    ParameterPathFailure,
    /// `States.ResultPathMatchFailure`: a ResultPath does not fit the input.
    ResultPathMatchFailure,
    /// `States.IntrinsicFailure`: an intrinsic function failed.
    IntrinsicFailure,
    /// `States.DataLimitExceeded`: a value is larger than a state may pass on. `States.ALL` does not match it.
    DataLimitExceeded,
}

impl ErrorName {
    /// The name as definitions write it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            ErrorName::Runtime => "States.Runtime",
            ErrorName::ParameterPathFailure => "States.ParameterPathFailure",
            ErrorName::ResultPathMatchFailure => "States.ResultPathMatchFailure",
            ErrorName::IntrinsicFailure => "States.IntrinsicFailure",
            ErrorName::DataLimitExceeded => "States.DataLimitExceeded",
        }
    }
}

impl fmt::Display for ErrorName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a step could not move its data. The caller puts the name of the state in front of the cause.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{error}: {cause}")]
pub struct DataError {
    /// What `Retry` and `Catch` match.
    pub error: ErrorName,
    /// What happened, where, and to which data, in sentences.
    pub cause: String,
}

impl DataError {
    pub(crate) fn new(error: ErrorName, cause: impl Into<String>) -> DataError {
        DataError { error, cause: cause.into() }
    }

    /// A value that is larger or more deeply nested than a state may pass on.
    pub(crate) fn limit(cause: impl Into<String>) -> DataError {
        DataError::new(ErrorName::DataLimitExceeded, cause)
    }
}

/// A document as JSON, at most [`CAUSE_DOCUMENT_BYTES_MAX`] bytes of it.
pub(crate) fn excerpt(value: &Value) -> String {
    let mut writer = Excerpt { text: Vec::new(), is_cut: false };
    // It fails where the excerpt is full: then what is there is enough.
    let _ = serde_json::to_writer(&mut writer, value);
    let mut text = String::from_utf8_lossy(&writer.text).into_owned();
    if writer.is_cut {
        // A character that was cut in two.
        while text.ends_with(char::REPLACEMENT_CHARACTER) {
            text.pop();
        }
        text.push_str("...");
    }
    text
}

struct Excerpt {
    text: Vec<u8>,
    is_cut: bool,
}

impl io::Write for Excerpt {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = CAUSE_DOCUMENT_BYTES_MAX.saturating_sub(self.text.len());
        let taken = bytes.len().min(room);
        self.text.extend(bytes.iter().take(taken));
        if taken < bytes.len() {
            self.is_cut = true;
            return Err(io::Error::other("enough of the document is written"));
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What a value is, as causes name it.
pub(crate) const fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
