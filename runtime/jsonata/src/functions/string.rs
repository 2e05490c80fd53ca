//! Functions on strings, and values as strings.

use super::{Arguments, Builtin};
use crate::error::{Error, Result};
use crate::evaluate::Interpreter;
use crate::evaluate::path::check_nesting;
use crate::number;
use crate::text::{Text, TextBuilder};
use crate::value::Value;

/// Characters of a value that an error quotes.
const QUOTED_MAX: usize = 100;
/// Characters of padding that are written at once.
const PAD_CHUNK: usize = 1024;

impl<'a> Interpreter<'a> {
    pub(super) fn string_function(&self, builtin: Builtin, arguments: &mut Arguments<'a>) -> Result<Value<'a>> {
        if builtin == Builtin::String {
            let (value, is_pretty) = (arguments.take(0), matches!(arguments.take(1), Value::Bool(true)));
            return match value {
                Value::Undefined | Value::Text(_) => Ok(value),
                value => {
                    let mut result = TextBuilder::new(&self.meter)?;
                    self.write_string(&value, is_pretty, &mut result)?;
                    Ok(Value::Text(result.text()))
                }
            };
        }
        let Some(text) = arguments.text(0) else {
            return Ok(Value::Undefined);
        };
        let string = text.as_str();
        self.meter.step_bytes(string.len())?;
        match builtin {
            Builtin::Length => Ok(Value::Number(string.chars().count() as f64)),
            Builtin::Lowercase => self.string_value(string.to_lowercase()),
            Builtin::Uppercase => self.string_value(string.to_uppercase()),
            Builtin::Trim => {
                let words = string.split([' ', '\t', '\n', '\r']).filter(|word| !word.is_empty());
                let mut trimmed = TextBuilder::new(&self.meter)?;
                for (index, word) in words.enumerate() {
                    if index > 0 {
                        trimmed.push(" ")?;
                    }
                    trimmed.push(word)?;
                }
                Ok(Value::Text(trimmed.text()))
            }
            Builtin::Substring => self.substring(string, arguments.number(1), arguments.number(2)),
            _ => {
                let Some(separator) = arguments.text(1) else {
                    return Ok(Value::Text(text));
                };
                match string.split_once(separator.as_str()) {
                    Some((before, _)) if builtin == Builtin::SubstringBefore => self.string_value(String::from(before)),
                    Some((_, after)) => self.string_value(String::from(after)),
                    None => Ok(Value::Text(text)),
                }
            }
        }
    }

    fn substring(&self, text: &str, start: Option<f64>, length: Option<f64>) -> Result<Value<'a>> {
        let count = text.chars().count() as f64;
        let start = start.unwrap_or(0.0);
        let start = if count + start < 0.0 { 0.0 } else { start };
        if length.is_some_and(|length| length <= 0.0) {
            return Ok(Value::Text(Text::Borrowed("")));
        }
        let absolute = |index: f64| if index < 0.0 { (count + index.trunc()).max(0.0) } else { index.trunc() };
        let end = length.map_or(count, |length| if start >= 0.0 { start + length } else { count + start + length });
        let (first, end) = (absolute(start) as usize, absolute(end) as usize);
        let taken: String = text.chars().skip(first).take(end.saturating_sub(first)).collect();
        self.string_value(taken)
    }

    pub(super) fn pad(&self, arguments: &mut Arguments<'a>) -> Result<Value<'a>> {
        let (Some(text), width, filler) = (arguments.text(0), arguments.number(1), arguments.text(2)) else {
            return Ok(Value::Undefined);
        };
        let filler = filler.filter(|filler| !filler.as_str().is_empty()).unwrap_or(Text::Borrowed(" "));
        let width = width.unwrap_or(0.0).trunc();
        self.meter.step_bytes(text.as_str().len())?;
        let missing = width.abs() - text.as_str().chars().count() as f64;
        if missing <= 0.0 {
            return Ok(Value::Text(text));
        }
        let mut padded = TextBuilder::new(&self.meter)?;
        if width > 0.0 {
            padded.push(text.as_str())?;
        }
        // Ends at the limits, however large the number.
        let count = filler.as_str().chars().count();
        let repeats = (PAD_CHUNK / count).max(1);
        let chunk = filler.as_str().repeat(repeats);
        let mut left = missing as usize;
        while left >= repeats * count {
            padded.push(&chunk)?;
            left -= repeats * count;
        }
        let rest: String = chunk.chars().take(left).collect();
        padded.push(&rest)?;
        if width < 0.0 {
            padded.push(text.as_str())?;
        }
        Ok(Value::Text(padded.text()))
    }

    pub(super) fn join(&self, arguments: &mut Arguments<'a>) -> Result<Value<'a>> {
        let (Value::Array(array), separator) = (arguments.take(0), arguments.text(1)) else {
            return Ok(Value::Undefined);
        };
        let mut joined = TextBuilder::new(&self.meter)?;
        for (index, item) in array.iter().enumerate() {
            if let Some(separator) = separator.as_ref().filter(|_| index > 0) {
                joined.push(separator.as_str())?;
            }
            joined.push(item.as_text().unwrap_or_default())?;
        }
        Ok(Value::Text(joined.text()))
    }

    /// A value for an error.
    pub(crate) fn quoted(&self, value: &Value<'a>) -> String {
        let quote = || -> Result<String> {
            let mut text = TextBuilder::new(&self.meter)?;
            self.write_json(value, None, 0, &mut text)?;
            Ok(text.text().as_str().chars().take(QUOTED_MAX).collect())
        };
        match value {
            Value::Undefined => String::from("undefined"),
            Value::Function(_) => String::from("a function"),
            _ => quote().unwrap_or_else(|_| String::from("a value that is too large to show")),
        }
    }

    /// Writes a value as `$string` gives it: strings as they are, others in JSON.
    pub(crate) fn write_string(&self, value: &Value<'a>, is_pretty: bool, result: &mut TextBuilder<'a>) -> Result<()> {
        match value {
            Value::Undefined | Value::Function(_) => Ok(()),
            Value::Text(text) => result.push(text.as_str()),
            Value::Number(number) if !number.is_finite() => Err(Error::new("D3001")),
            Value::Array(array) if array.flags().is_wrapper => {
                self.write_json(&array.get(0).unwrap_or_default(), is_pretty.then_some(0), 0, result)
            }
            value => self.write_json(value, is_pretty.then_some(0), 0, result),
        }
    }

    /// Writes JSON, by lines with so many indents if there are any.
    fn write_json(&self, value: &Value<'a>, indents: Option<usize>, nesting: u32, result: &mut TextBuilder<'a>) -> Result<()> {
        check_nesting(nesting)?;
        match value {
            Value::Undefined | Value::Null => result.push("null"),
            Value::Bool(bool) => result.push(if *bool { "true" } else { "false" }),
            Value::Number(number) if number.is_nan() => result.push("null"),
            Value::Number(number) if !number.is_finite() => Err(Error::new("D1001").with_value(number::to_text(*number))),
            Value::Number(number) => result.push(&number::to_text(number::to_precision(*number))),
            Value::Text(text) => write_quoted(text.as_str(), result),
            Value::Function(_) => result.push("\"\""),
            Value::Array(_) | Value::Tuples(_) => {
                result.push("[")?;
                let inner = indents.map(|indents| indents + 1);
                let mut is_empty = true;
                for item in self.items(value) {
                    begin_item(is_empty, inner, result)?;
                    is_empty = false;
                    self.write_json(&item, inner, nesting + 1, result)?;
                }
                end_items(is_empty, indents, result)?;
                result.push("]")
            }
            Value::Object(object) => {
                result.push("{")?;
                let inner = indents.map(|indents| indents + 1);
                let mut is_empty = true;
                for (key, value) in object.iter().filter(|(_, value)| !value.is_undefined()) {
                    begin_item(is_empty, inner, result)?;
                    is_empty = false;
                    write_quoted(key.as_str(), result)?;
                    result.push(if inner.is_some() { ": " } else { ":" })?;
                    self.write_json(&value, inner, nesting + 1, result)?;
                }
                end_items(is_empty, indents, result)?;
                result.push("}")
            }
        }
    }
}

fn begin_item(is_first: bool, indents: Option<usize>, result: &mut TextBuilder<'_>) -> Result<()> {
    if !is_first {
        result.push(",")?;
    }
    new_line(indents, result)
}

fn end_items(is_empty: bool, indents: Option<usize>, result: &mut TextBuilder<'_>) -> Result<()> {
    if is_empty { Ok(()) } else { new_line(indents, result) }
}

fn new_line(indents: Option<usize>, result: &mut TextBuilder<'_>) -> Result<()> {
    match indents {
        Some(indents) => result.push(&format!("\n{}", "  ".repeat(indents))),
        None => Ok(()),
    }
}

fn write_quoted(text: &str, result: &mut TextBuilder<'_>) -> Result<()> {
    result.push("\"")?;
    let mut start = 0;
    for (at, byte) in text.bytes().enumerate() {
        let escape = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            8 => "\\b",
            12 => "\\f",
            0..32 => {
                result.push(text.get(start..at).unwrap_or_default())?;
                result.push(&format!("\\u{byte:04x}"))?;
                start = at + 1;
                continue;
            }
            _ => continue,
        };
        result.push(text.get(start..at).unwrap_or_default())?;
        result.push(escape)?;
        start = at + 1;
    }
    result.push(text.get(start..).unwrap_or_default())?;
    result.push("\"")
}
