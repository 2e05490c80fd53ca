//! Datasets: what the `ItemReader` of a Map reads from a store, and what its `ResultWriter` writes there.
//!
//! ```text
//!   bytes of a value --read(Format)--> items --> the Map's iterations --> Results --written--> files: SUCCEEDED_0.json, FAILED_0.json, manifest.json
//! ```
//!
//! - [`format`]: how items and results are written, as `ReaderConfig` and `WriterConfig` say it; `csv`: text to rows; [`items`]: items with their limits;
//!   [`results`]: the files of a Map run; [`limits`]: every limit.
//!
//! Invariants: no I/O: the caller reads and writes. No text makes this code panic, recurse without bound, or make more than the limits allow.
//!
//! Source: AWS Step Functions Developer Guide, "ItemReader (Map)" and "ResultWriter (Map)".

mod csv;
pub mod format;
pub mod items;
pub mod limits;
pub mod results;

pub use self::format::{Delimiter, Format, OutputType, Transformation, WriterConfig};
pub use self::items::{Items, read};
pub use self::results::{Written, written};

use crate::data::Excess;

impl From<Excess> for DatasetError {
    fn from(excess: Excess) -> DatasetError {
        match excess {
            Excess::Bytes => DatasetError::TooLarge,
            Excess::Depth => DatasetError::TooDeep,
        }
    }
}

/// The bucket of a store where the definition names none.
pub const BUCKET: &str = "default";

/// What is wrong with a dataset.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DatasetError {
    /// The text is not UTF-8.
    #[error("the value is not UTF-8 text")]
    NotText,
    /// A value of the kind `JSON` is none.
    #[error("the value is not valid JSON: {0}")]
    NotJson(String),
    /// A line of the kind `JSONL` is not JSON.
    #[error("line {line} is not valid JSON: {message}")]
    Line {
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        message: String,
    },
    /// A row of the kind `CSV` is malformed.
    #[error("line {line}: {message}")]
    Row {
        /// The line at which the row begins, from 1.
        line: usize,
        /// What is wrong with it.
        message: &'static str,
    },
    /// The items together are too large.
    #[error("the items have more than {} bytes of JSON; set MaxItems, or read fewer keys", limits::ITEMS_BYTES_MAX)]
    TooLarge,
    /// An item is nested too deeply.
    #[error("an item is nested more than {} levels deep", crate::data::limits::VALUE_DEPTH_MAX)]
    TooDeep,
    /// There are too many items.
    #[error("there are more than {} items; set MaxItems, or read fewer keys", limits::READ_ITEMS_MAX)]
    TooMany,
    /// One result does not fit into a file.
    #[error("the result of the iteration {index} has more than {bytes_max} bytes, the most of one key of the store")]
    ResultTooLarge {
        /// The iteration.
        index: u64,
        /// The limit.
        bytes_max: usize,
    },
    /// What the machine has handed over is not in its form.
    #[error("the task's input is not that of a ResultWriter")]
    NotResults,
}
