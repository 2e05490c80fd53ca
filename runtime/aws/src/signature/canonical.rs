//! The canonical request: what the client hashed and signed.
//!
//! Paths are normalised and encoded once more, as every service but S3 does. Queries are decoded and encoded again, so that the client's way of encoding does not
//! matter.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode, percent_encode};

use super::refusal::Refusal;
use crate::limits::SIGNED_BYTES_MAX;
use crate::message::Message;

/// What is encoded: all but the unreserved characters of RFC 3986.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The canonical request.
pub(super) fn request(message: &Message<'_>, signed: &[&str], body_hash: &str) -> Result<Vec<u8>, Refusal> {
    let mut text = Vec::with_capacity(1_024);
    for line in [message.method.as_str(), &path(message.path), &query(message.query.unwrap_or_default())] {
        text.extend_from_slice(line.as_bytes());
        text.push(b'\n');
    }
    let start = text.len();
    for name in signed {
        text.extend_from_slice(name.as_bytes());
        text.push(b':');
        header(message, name, &mut text);
        text.push(b'\n');
        if text.len() - start > SIGNED_BYTES_MAX {
            return Err(Refusal::incomplete(format!("The signed headers have more than {SIGNED_BYTES_MAX} bytes. ")));
        }
    }
    text.push(b'\n');
    text.extend_from_slice(signed.join(";").as_bytes());
    text.push(b'\n');
    text.extend_from_slice(body_hash.as_bytes());
    Ok(text)
}

/// The values of a header, separated by commas, without spaces around them and with single ones inside.
fn header(message: &Message<'_>, name: &str, text: &mut Vec<u8>) {
    let mut first = true;
    let mut push = |value: &[u8]| {
        if !std::mem::take(&mut first) {
            text.push(b',');
        }
        for (place, word) in value.split(|byte| *byte == b' ').filter(|word| !word.is_empty()).enumerate() {
            if place > 0 {
                text.push(b' ');
            }
            text.extend_from_slice(word);
        }
    };
    let values = message.headers.get_all(name);
    if name == "host" && values.iter().next().is_none() {
        push(message.authority.unwrap_or_default().as_bytes());
    }
    values.iter().for_each(|value| push(value.as_bytes()));
}

/// The path without `.`, `..` and empty segments, encoded.
fn path(path: &str) -> String {
    let mut segments = Vec::new();
    let mut folder = false;
    for segment in path.split('/') {
        folder = matches!(segment, "" | "." | "..");
        match segment {
            "" | "." => {}
            ".." => {
                segments.pop();
            }
            _ => segments.push(segment),
        }
    }
    let mut text = String::with_capacity(path.len() + 1);
    for segment in &segments {
        text.push('/');
        text.extend(percent_encode(segment.as_bytes(), ENCODED));
    }
    if folder || segments.is_empty() {
        text.push('/');
    }
    text
}

/// The parameters in the order of their names and values.
fn query(query: &str) -> String {
    let part = |part: &str| {
        let spaced = if part.contains('+') { Cow::Owned(part.replace('+', " ")) } else { Cow::Borrowed(part) };
        percent_encode(&Cow::from(percent_decode(spaced.as_bytes())), ENCODED).to_string()
    };
    let mut pairs = query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(name, value)| (part(name), part(value)))
        .collect::<Vec<_>>();
    pairs.sort_unstable();
    pairs.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_normalised_and_encoded_once_more() {
        for (given, expected) in [
            ("", "/"),
            ("/", "/"),
            ("//", "/"),
            ("/./", "/"),
            ("/a/../..", "/"),
            ("/a//b/./c/", "/a/b/c/"),
            ("/a/b/..", "/a/"),
            ("/a%20b", "/a%2520b"),
            ("/~a:b", "/~a%3Ab"),
        ] {
            assert_eq!(path(given), expected, "{given}");
        }
    }

    #[test]
    fn queries_are_sorted_and_encoded_alike() {
        assert_eq!(query("b=2&a=%7e&a=1&c"), "a=1&a=~&b=2&c=");
        assert_eq!(query("a=x+y&&b=%2F%"), "a=x%20y&b=%2F%25");
    }
}
