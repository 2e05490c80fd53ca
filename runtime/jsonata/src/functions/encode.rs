//! Base 64 and URLs.

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use super::{Arguments, Builtin};
use crate::error::{Error, Result};
use crate::evaluate::Interpreter;
use crate::value::Value;

const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent).with_decode_allow_trailing_bits(true),
);

/// What a URL keeps that a component of it does not.
const RESERVED: &str = ";/?:@&=+$,#";

impl<'a> Interpreter<'a> {
    /// Bytes are characters of the same number, as in jsonata-js; characters beyond them are encoded as UTF-8.
    pub(super) fn base64(&self, builtin: Builtin, arguments: &mut Arguments<'a>) -> Result<Value<'a>> {
        let Some(text) = arguments.text(0) else {
            return Ok(Value::Undefined);
        };
        let text = text.as_str();
        self.meter.step_bytes(text.len())?;
        if builtin == Builtin::Base64Encode {
            let latin: Option<Vec<u8>> = text.chars().map(|char| u8::try_from(u32::from(char)).ok()).collect();
            return self.string_value(BASE64.encode(latin.as_deref().unwrap_or(text.as_bytes())));
        }
        let digits: String = text
            .chars()
            .filter(|char| char.is_ascii_alphanumeric() || matches!(char, '+' | '/' | '-' | '_'))
            .map(|char| match char {
                '-' => '+',
                '_' => '/',
                char => char,
            })
            .collect();
        // A single digit at the end is less than a byte.
        let whole = digits.get(..digits.len() - usize::from(digits.len() % 4 == 1)).unwrap_or_default();
        let bytes = BASE64.decode(whole).unwrap_or_default();
        self.string_value(bytes.iter().map(|&byte| char::from(byte)).collect())
    }

    pub(super) fn url(&self, builtin: Builtin, arguments: &mut Arguments<'a>) -> Result<Value<'a>> {
        let Some(text) = arguments.text(0) else {
            return Ok(Value::Undefined);
        };
        let text = text.as_str();
        self.meter.step_bytes(text.len())?;
        let reserved = if matches!(builtin, Builtin::EncodeUrl | Builtin::DecodeUrl) { RESERVED } else { "" };
        let result = match builtin {
            Builtin::EncodeUrl | Builtin::EncodeUrlComponent => Some(encode(text, reserved)),
            _ => decode(text, reserved),
        };
        match result {
            Some(result) => self.string_value(result),
            None => Err(Error::new("D3140").with_value(text)),
        }
    }
}

fn encode(text: &str, reserved: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for char in text.chars() {
        if char.is_ascii_alphanumeric() || "-_.!~*'()".contains(char) || reserved.contains(char) {
            encoded.push(char);
            continue;
        }
        for byte in char.encode_utf8(&mut [0; 4]).bytes() {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

fn decode(text: &str, reserved: &str) -> Option<String> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            decoded.push(byte);
            continue;
        }
        let digits = after.get(..2)?;
        let digit = |index: usize| char::from(*digits.get(index)?).to_digit(16);
        let value = (digit(0)? * 16 + digit(1)?) as u8;
        rest = after.get(2..)?;
        if value.is_ascii() && reserved.contains(char::from(value)) {
            decoded.push(b'%');
            decoded.extend_from_slice(digits);
        } else {
            decoded.push(value);
        }
    }
    String::from_utf8(decoded).ok()
}
