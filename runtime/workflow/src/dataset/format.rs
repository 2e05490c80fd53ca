//! How items and results are written: `ReaderConfig` and `WriterConfig`, as a definition gives them and as a task hands them to its executor.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// How the items in a value are written: `InputType` and what belongs to it. In JSON it has the members of `ReaderConfig`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "InputType")]
pub enum Format {
    /// One JSON value: an array, or something in which `ItemsPath` or `ItemsPointer` finds one.
    #[default]
    #[serde(rename = "JSON")]
    Json,
    /// One JSON value on each line.
    #[serde(rename = "JSONL")]
    Jsonl,
    /// Rows of text (RFC 4180): each becomes an object of texts by column.
    #[serde(rename = "CSV")]
    Csv {
        /// What stands between columns.
        #[serde(rename = "CSVDelimiter", default)]
        delimiter: Delimiter,
        /// The names of the columns; none if they are in the first row.
        #[serde(rename = "CSVHeaders", default, skip_serializing_if = "Option::is_none")]
        headers: Option<Vec<Arc<str>>>,
    },
}

/// What stands between the columns of CSV.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
#[allow(missing_docs, reason = "the names are Step Functions' own")]
pub enum Delimiter {
    #[default]
    Comma,
    Pipe,
    Semicolon,
    Space,
    Tab,
}

impl Delimiter {
    /// All of them, with the names that a definition gives them.
    pub const ALL: [(&'static str, Delimiter); 5] = [
        ("COMMA", Delimiter::Comma),
        ("PIPE", Delimiter::Pipe),
        ("SEMICOLON", Delimiter::Semicolon),
        ("SPACE", Delimiter::Space),
        ("TAB", Delimiter::Tab),
    ];

    pub(super) const fn byte(self) -> u8 {
        match self {
            Delimiter::Comma => b',',
            Delimiter::Pipe => b'|',
            Delimiter::Semicolon => b';',
            Delimiter::Space => b' ',
            Delimiter::Tab => b'\t',
        }
    }
}

/// `WriterConfig` of a `ResultWriter`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct WriterConfig {
    /// What is written of a result.
    pub transformation: Transformation,
    /// How it is written.
    pub output_type: OutputType,
}

/// What a `ResultWriter` writes of the result of an iteration that has succeeded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Transformation {
    /// Its number, input, output and status.
    #[default]
    None,
    /// Its output.
    Compact,
    /// Its output; of an array the elements.
    Flatten,
}

/// How a `ResultWriter` writes results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum OutputType {
    /// An array.
    #[default]
    Json,
    /// One value on each line.
    Jsonl,
}
