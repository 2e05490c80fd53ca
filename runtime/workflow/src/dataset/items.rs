//! Items that are read: counted and measured while they come, so that no text becomes more than the limits allow.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::DatasetError;
use super::csv::Rows;
use super::format::Format;
use super::limits::{HEADER_BYTES_MAX, ITEMS_BYTES_MAX, READ_ITEMS_MAX};
use crate::data::json_bytes;
use crate::data::limits::VALUE_DEPTH_MAX;

/// Items that were read so far.
#[derive(Debug)]
pub struct Items {
    values: Vec<Value>,
    /// So many are wanted: `MaxItems`.
    wanted: usize,
    bytes_left: usize,
}

impl Items {
    /// None yet. Of so many at most are the first ones taken; zero, as in Step Functions, does not limit.
    #[must_use]
    pub fn new(items_max: Option<u64>) -> Items {
        let wanted = items_max.filter(|most| *most > 0).map_or(usize::MAX, |most| usize::try_from(most).unwrap_or(usize::MAX));
        Items { values: Vec::new(), wanted, bytes_left: ITEMS_BYTES_MAX }
    }

    /// How many more are wanted.
    #[must_use]
    pub fn missing(&self) -> usize {
        self.wanted.saturating_sub(self.values.len())
    }

    /// Takes one more.
    ///
    /// # Errors
    /// There are too many, or they are too large, or nested too deeply.
    pub fn push(&mut self, item: Value) -> Result<(), DatasetError> {
        if self.values.len() >= READ_ITEMS_MAX {
            return Err(DatasetError::TooMany);
        }
        let bytes = json_bytes(&item, self.bytes_left, VALUE_DEPTH_MAX)?;
        // With a comma.
        self.bytes_left = self.bytes_left.saturating_sub(bytes + 1);
        self.values.push(item);
        Ok(())
    }

    /// All of them, as an array.
    #[must_use]
    pub fn into_value(self) -> Value {
        Value::Array(self.values)
    }
}

/// The items that a value of a store holds: an array; with [`Format::Json`] whatever the JSON is.
///
/// # Errors
/// The value is not in that format, or there are too many items, or they are too large.
pub fn read(bytes: &[u8], format: &Format, items_max: Option<u64>) -> Result<Value, DatasetError> {
    if *format == Format::Json {
        let value = serde_json::from_slice(bytes).map_err(|error| DatasetError::NotJson(error.to_string()))?;
        json_bytes(&value, ITEMS_BYTES_MAX, VALUE_DEPTH_MAX)?;
        return Ok(value);
    }
    // `kv:set` has written a text as JSON, a function as it is.
    let quoted: Option<String> = serde_json::from_slice(bytes).ok();
    let text = match &quoted {
        Some(text) => text.as_str(),
        None => std::str::from_utf8(bytes).map_err(|_| DatasetError::NotText)?,
    };
    let mut items = Items::new(items_max);
    match format {
        Format::Csv { delimiter, headers } => rows(text, delimiter.byte(), headers.as_deref(), &mut items)?,
        Format::Json | Format::Jsonl => lines(text, &mut items)?,
    }
    Ok(items.into_value())
}

fn lines(text: &str, items: &mut Items) -> Result<(), DatasetError> {
    for (line, text) in (1..).zip(text.lines()) {
        if items.missing() == 0 {
            break;
        }
        if text.trim().is_empty() {
            continue;
        }
        let item = serde_json::from_str(text).map_err(|error| DatasetError::Line { line, message: error.to_string() })?;
        items.push(item)?;
    }
    Ok(())
}

/// As in Step Functions: a row with fewer columns has empty texts for the others, what is behind the last column of the header is left out.
fn rows(text: &str, delimiter: u8, headers: Option<&[Arc<str>]>, items: &mut Items) -> Result<(), DatasetError> {
    let mut rows = Rows::new(text, delimiter);
    let columns: Vec<String> = match headers {
        Some(given) => given.iter().map(ToString::to_string).collect(),
        None => rows.next()?.map(|(_, row)| row).unwrap_or_default(),
    };
    if columns.iter().map(String::len).sum::<usize>() > HEADER_BYTES_MAX {
        return Err(DatasetError::Row { line: 1, message: "the names of the columns have more than 10 KiB" });
    }
    while items.missing() > 0 {
        let Some((_, row)) = rows.next()? else { break };
        let mut fields = row.into_iter();
        let members = columns.iter().map(|column| (column.clone(), Value::from(fields.next().unwrap_or_default())));
        items.push(Value::Object(members.collect::<Map<_, _>>()))?;
    }
    Ok(())
}
