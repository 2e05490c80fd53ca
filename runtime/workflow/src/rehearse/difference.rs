//! Differences of two JSON values, each told by its path: `$.items[2].price: expected 3, found 4`.

use std::fmt::{self, Display, Write};

use serde_json::{Number, Value};

use super::limits::{DIFFERENCES_MAX, VALUE_CHARS_MAX};

/// The differences, at most [`DIFFERENCES_MAX`], and whether there are more as the last line. Numbers of the same value are equal: `3` and `3.0`.
/// The order of an object's members does not matter. Recurses as deep as the expected value is nested.
pub(super) fn differences(expected: &Value, found: &Value) -> Vec<String> {
    let mut out = Vec::new();
    compare("$", expected, found, &mut out);
    if out.len() > DIFFERENCES_MAX {
        out.truncate(DIFFERENCES_MAX);
        out.push("there are more differences".to_owned());
    }
    out
}

fn compare(path: &str, expected: &Value, found: &Value, out: &mut Vec<String>) {
    if out.len() > DIFFERENCES_MAX {
        return;
    }
    match (expected, found) {
        (Value::Object(expected), Value::Object(found)) => {
            for (key, expected) in expected {
                match found.get(key) {
                    Some(found) => compare(&member(path, key), expected, found, out),
                    None => out.push(format!("{}: expected {}, found nothing", member(path, key), shown(expected))),
                }
            }
            let unexpected = found.iter().filter(|(key, _)| !expected.contains_key(*key)).take(DIFFERENCES_MAX + 1);
            out.extend(unexpected.map(|(key, found)| format!("{}: expected nothing, found {}", member(path, key), shown(found))));
        }
        (Value::Array(expected), Value::Array(found)) => {
            if expected.len() != found.len() {
                out.push(format!("{path}: expected {}, found {}", elements(expected.len()), elements(found.len())));
            }
            for (index, (expected, found)) in expected.iter().zip(found).enumerate() {
                compare(&format!("{path}[{index}]"), expected, found, out);
            }
        }
        (Value::Number(left), Value::Number(right)) if equal(left, right) => {}
        _ if expected == found => {}
        _ => out.push(format!("{path}: expected {}, found {}", shown(expected), shown(found))),
    }
}

fn elements(count: usize) -> String {
    format!("{count} element{}", if count == 1 { "" } else { "s" })
}

fn equal(left: &Number, right: &Number) -> bool {
    left == right || (left.is_f64() || right.is_f64()) && left.as_f64() == right.as_f64()
}

fn member(path: &str, key: &str) -> String {
    let plain = key.starts_with(|c: char| c.is_alphabetic() || c == '_') && key.chars().all(|c| c.is_alphanumeric() || c == '_');
    if plain {
        format!("{path}.{}", cut(key, VALUE_CHARS_MAX))
    } else {
        format!("{path}[\"{}\"]", cut(&key.escape_debug().to_string(), VALUE_CHARS_MAX))
    }
}

/// A value as compact JSON, cut.
pub(super) fn shown(value: &Value) -> String {
    written(value, VALUE_CHARS_MAX)
}

/// The first characters of a text.
pub(super) fn cut(text: &str, chars_max: usize) -> String {
    written(&text, chars_max)
}

/// The first characters of what a value is displayed as. What comes after them is not made.
pub(super) fn written(value: &impl Display, chars_max: usize) -> String {
    let mut first = First { text: String::new(), left: chars_max };
    // Fails when the limit is reached.
    match write!(first, "{value}") {
        Ok(()) => first.text,
        Err(_) => format!("{}...", first.text),
    }
}

/// The beginning of a text that is being written.
struct First {
    text: String,
    left: usize,
}

impl Write for First {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for c in text.chars() {
            self.left = self.left.checked_sub(1).ok_or(fmt::Error)?;
            self.text.push(c);
        }
        Ok(())
    }
}
