//! Intrinsic functions on strings and JSON texts.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use md5::Md5;
use serde_json::Value;
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha384, Sha512};

use crate::data::error::kind;
use crate::data::limits::INTRINSIC_TEXT_CHARS_MAX;

/// An argument that must be a string.
fn string<'v>(value: &'v Value, what: &str) -> Result<&'v str, String> {
    value.as_str().ok_or_else(|| format!("{what} must be a string, but it is {}", kind(value)))
}

/// A string that is short enough for codes and hashes.
fn short_string<'v>(value: &'v Value, what: &str) -> Result<&'v str, String> {
    let text = string(value, what)?;
    if text.chars().count() > INTRINSIC_TEXT_CHARS_MAX {
        return Err(format!("{what} must have {INTRINSIC_TEXT_CHARS_MAX} characters at most"));
    }
    Ok(text)
}

/// The value of a JSON text; of a blank text null.
pub(super) fn to_json(text: &Value) -> Result<Value, String> {
    let text = string(text, "the argument")?;
    if text.trim().is_empty() {
        return Ok(Value::Null);
    }
    let value: Value = serde_json::from_str(text).map_err(|error| format!("the argument is not valid JSON: {error}"))?;
    // There is no negative zero among integers.
    Ok(if value.as_f64() == Some(0.0) && text.trim() == "-0" { Value::from(0) } else { value })
}

pub(super) fn base64_encode(text: &Value) -> Result<Value, String> {
    Ok(Value::String(STANDARD.encode(short_string(text, "the argument")?)))
}

pub(super) fn base64_decode(text: &Value) -> Result<Value, String> {
    let bytes = STANDARD
        .decode(short_string(text, "the argument")?)
        .map_err(|error| format!("the argument is not valid Base64: {error}"))?;
    String::from_utf8(bytes).map(Value::String).map_err(|_| "the argument does not decode to text in UTF-8".into())
}

/// The hash of a string, in lower-case hexadecimal digits.
pub(super) fn hash(data: &Value, algorithm: &Value) -> Result<Value, String> {
    let data = short_string(data, "the data")?;
    let algorithm = string(algorithm, "the algorithm")?;
    Ok(Value::String(match algorithm {
        "MD5" => hex(&Md5::digest(data)),
        "SHA-1" => hex(&Sha1::digest(data)),
        "SHA-256" => hex(&Sha256::digest(data)),
        "SHA-384" => hex(&Sha384::digest(data)),
        "SHA-512" => hex(&Sha512::digest(data)),
        _ => return Err("the algorithm must be MD5, SHA-1, SHA-256, SHA-384 or SHA-512".into()),
    }))
}

fn hex(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from_digit(u32::from(value), 16).unwrap_or_default();
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 0xf)]).collect()
}

/// The parts of a text between delimiters: each character of `delimiters` is one. Parts that are empty are left out.
pub(super) fn split(text: &Value, delimiters: &Value) -> Result<Value, String> {
    let text = string(text, "the first argument")?;
    let delimiters: Vec<char> = string(delimiters, "the delimiters")?.chars().collect();
    if delimiters.len() > INTRINSIC_TEXT_CHARS_MAX {
        return Err(format!("the delimiters must have {INTRINSIC_TEXT_CHARS_MAX} characters at most"));
    }
    let delimiters: std::collections::HashSet<char> = delimiters.into_iter().collect();
    Ok(text.split(|letter| delimiters.contains(&letter)).filter(|part| !part.is_empty()).map(Value::from).collect())
}

/// The members of both objects; of two with the same name the second. Nothing within members is merged.
pub(super) fn merge(first: Value, second: &Value, deep: &Value) -> Result<Value, String> {
    match deep {
        Value::Bool(false) => {}
        Value::Bool(true) => return Err("deep merging is not supported: the third argument must be false".into()),
        _ => return Err(format!("the third argument must be false, but it is {}", kind(deep))),
    }
    match (first, second) {
        (Value::Object(mut first), Value::Object(second)) => {
            first.extend(second.iter().map(|(name, member)| (name.clone(), member.clone())));
            Ok(Value::Object(first))
        }
        (Value::Object(_), other) => Err(format!("the second argument must be an object, but it is {}", kind(other))),
        (other, _) => Err(format!("the first argument must be an object, but it is {}", kind(&other))),
    }
}
