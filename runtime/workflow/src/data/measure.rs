//! How large a value is: the bytes of its compact JSON, and how deep it is nested.
//!
//! A single walk that stops where a limit is exceeded. It recurses no deeper than the limit of depth.

use std::fmt::{self, Write};

use serde_json::{Number, Value};

use super::error::DataError;
use super::limits::{VALUE_DEPTH_MAX, WORK_FACTOR};
use super::scope::Limits;

/// Which limit a value exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Excess {
    Bytes,
    Depth,
}

/// The bytes of the JSON of a value. An error if these are more than `bytes_max`, or the value is nested deeper than `depth_max`.
pub(crate) fn json_bytes(value: &Value, bytes_max: usize, depth_max: usize) -> Result<usize, Excess> {
    let mut left = bytes_max;
    walk(value, &mut left, depth_max)?;
    Ok(bytes_max - left)
}

fn walk(value: &Value, left: &mut usize, depth_left: usize) -> Result<(), Excess> {
    match value {
        Value::Null | Value::Bool(true) => take(left, 4),
        Value::Bool(false) => take(left, 5),
        Value::Number(number) => take(left, number_bytes(number)),
        Value::String(text) => take(left, string_bytes(text)),
        Value::Array(items) => {
            let depth_left = depth_left.checked_sub(1).ok_or(Excess::Depth)?;
            // Brackets, and a comma between each two.
            take(left, 2 + items.len().saturating_sub(1))?;
            items.iter().try_for_each(|item| walk(item, left, depth_left))
        }
        Value::Object(members) => {
            let depth_left = depth_left.checked_sub(1).ok_or(Excess::Depth)?;
            // Braces, colons and commas.
            take(left, 2 + members.len() + members.len().saturating_sub(1))?;
            members.iter().try_for_each(|(name, member)| {
                take(left, string_bytes(name))?;
                walk(member, left, depth_left)
            })
        }
    }
}

fn take(left: &mut usize, bytes: usize) -> Result<(), Excess> {
    *left = left.checked_sub(bytes).ok_or(Excess::Bytes)?;
    Ok(())
}

/// The bytes of a string in JSON, quotes included.
pub(crate) fn string_bytes(text: &str) -> usize {
    let escapes: usize = text
        .bytes()
        .map(|byte| match byte {
            b'"' | b'\\' | 0x08 | b'\t' | b'\n' | 0x0c | b'\r' => 1,
            0..0x20 => 5,
            _ => 0,
        })
        .sum();
    text.len() + escapes + 2
}

fn number_bytes(number: &Number) -> usize {
    if let Some(integer) = number.as_u64() {
        return digits(integer);
    }
    if let Some(integer) = number.as_i64() {
        return 1 + digits(integer.unsigned_abs());
    }
    let mut count = Count(0);
    // Counting cannot fail.
    let _ = write!(count, "{number}");
    count.0
}

fn digits(integer: u64) -> usize {
    integer.checked_ilog10().map_or(1, |log| log as usize + 1)
}

struct Count(usize);

impl Write for Count {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 += text.len();
        Ok(())
    }
}

/// What the evaluation of one template or expression may still build and visit.
#[derive(Debug)]
pub(crate) struct Meter {
    output_bytes_max: usize,
    left: usize,
    /// Nodes that its paths may still visit.
    pub(crate) visits_left: usize,
}

impl Meter {
    pub(crate) fn new(limits: Limits) -> Meter {
        let Limits { output_bytes_max, visits_max } = limits;
        Meter { output_bytes_max, left: output_bytes_max.saturating_mul(WORK_FACTOR), visits_left: visits_max }
    }

    /// A value of so many bytes of JSON is built.
    pub(crate) fn charge(&mut self, bytes: usize) -> Result<(), DataError> {
        if bytes > self.output_bytes_max {
            return Err(self.exceeded());
        }
        self.left = self.left.checked_sub(bytes).ok_or_else(|| self.exceeded())?;
        Ok(())
    }

    /// A copy of this value is built.
    pub(crate) fn charge_value(&mut self, value: &Value) -> Result<(), DataError> {
        let bytes_max = self.output_bytes_max.min(self.left);
        match json_bytes(value, bytes_max, VALUE_DEPTH_MAX) {
            Ok(bytes) => self.charge(bytes),
            Err(excess) => Err(excess.error(self.output_bytes_max)),
        }
    }

    fn exceeded(&self) -> DataError {
        Excess::Bytes.error(self.output_bytes_max)
    }
}

impl Excess {
    /// As the error of a step whose values may have so many bytes.
    pub(crate) fn error(self, bytes_max: usize) -> DataError {
        match self {
            Excess::Bytes => DataError::limit(format!(
                "The state makes a value that exceeds the maximum of {bytes_max} bytes. Pass on less data."
            )),
            Excess::Depth => DataError::limit(format!(
                "The state makes a value that is nested deeper than {VALUE_DEPTH_MAX} levels. Flatten the data."
            )),
        }
    }
}
