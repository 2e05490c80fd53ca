//! Connect: what it says in HTTP's words and in JSON (<https://connectrpc.com/docs/protocol>).
//!
//! A unary call is an ordinary request whose body is the message, a stream has messages in envelopes, which look like gRPC's frames. Errors are JSON.

use std::fmt::Write as _;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use bytes::Bytes;
use hyper::StatusCode;
use hyper::header::{HeaderMap, HeaderName};
use prost::Message;
use serde_json::{Map, Value, json};

use super::{GRPC_MESSAGE, GRPC_STATUS, Status};

/// How a call ended, with what there is to say about that: a `google.rpc.Status`.
pub const GRPC_DETAILS: HeaderName = HeaderName::from_static("grpc-status-details-bin");
/// The flag of the envelope that ends a stream.
pub const END: u8 = 2;
/// Digits of a `connect-timeout-ms`.
const TIMEOUT_DIGITS_MAX: usize = 10;
/// What stands in front of the name of a message's type.
const TYPE_PREFIX: &str = "type.googleapis.com/";

/// The codes of gRPC by their numbers: names, and the statuses of HTTP.
const CODES: [(&str, u16); 17] = [
    ("ok", 200),
    ("canceled", 499),
    ("unknown", 500),
    ("invalid_argument", 400),
    ("deadline_exceeded", 504),
    ("not_found", 404),
    ("already_exists", 409),
    ("permission_denied", 403),
    ("resource_exhausted", 429),
    ("failed_precondition", 400),
    ("aborted", 409),
    ("out_of_range", 400),
    ("unimplemented", 501),
    ("internal", 500),
    ("unavailable", 503),
    ("data_loss", 500),
    ("unauthenticated", 401),
];
const UNKNOWN: usize = 2;

/// `google.rpc.Status`.
#[derive(Clone, PartialEq, Message)]
struct RichStatus {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
    #[prost(message, repeated, tag = "3")]
    details: Vec<Detail>,
}

/// `google.protobuf.Any`.
#[derive(Clone, PartialEq, Message)]
struct Detail {
    #[prost(string, tag = "1")]
    type_url: String,
    #[prost(bytes = "bytes", tag = "2")]
    value: Bytes,
}

/// How a call failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// What the client gets of it.
    pub json: Value,
    /// The status of a reply that has nothing else.
    pub status: StatusCode,
}

impl Error {
    fn new(code: usize, message: &str) -> Error {
        let (name, status) = CODES.get(code).unwrap_or(&CODES[UNKNOWN]);
        let mut json = json!({ "code": name });
        if !message.is_empty() {
            json["message"] = message.into();
        }
        Error { json, status: StatusCode::from_u16(*status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR) }
    }

    /// What trailers say; none where the call went well. They are taken out of the fields.
    pub fn take(fields: &mut HeaderMap) -> Option<Error> {
        let status = fields.remove(GRPC_STATUS);
        let message = fields.remove(GRPC_MESSAGE).map(|message| decoded(message.as_bytes())).unwrap_or_default();
        let details = fields.remove(GRPC_DETAILS);
        let Some(status) = status else {
            return Some(Error::new(13, "the reply has ended without a grpc-status"));
        };
        let code = status.to_str().ok().and_then(|status| status.parse().ok()).unwrap_or(UNKNOWN);
        if code == 0 {
            return None;
        }
        let mut error = Error::new(code, &message);
        let details = details.map(|details| self::details(details.as_bytes())).unwrap_or_default();
        if !details.is_empty() {
            error.json["details"] = details.into();
        }
        Some(error)
    }
}

impl From<&Status> for Error {
    fn from(status: &Status) -> Error {
        Error::new(status.code as usize, &status.message)
    }
}

/// The details of a status, in base64, as Connect has them.
fn details(text: &[u8]) -> Vec<Value> {
    let text = text.trim_ascii_end();
    let text = text.strip_suffix(b"==").or(text.strip_suffix(b"=")).unwrap_or(text);
    let status = STANDARD_NO_PAD.decode(text).ok().and_then(|bytes| RichStatus::decode(&*bytes).ok());
    let detail = |Detail { type_url, value }: Detail| json!({ "type": type_url.strip_prefix(TYPE_PREFIX).unwrap_or(&type_url), "value": STANDARD_NO_PAD.encode(value) });
    status.map(|status| status.details.into_iter().map(detail).collect()).unwrap_or_default()
}

/// The message that a stream ends with.
#[must_use]
pub fn end(error: Option<&Error>, metadata: &HeaderMap) -> Vec<u8> {
    let mut end = Map::new();
    if let Some(error) = error {
        end.insert("error".to_owned(), error.json.clone());
    }
    let mut fields = Map::new();
    for name in metadata.keys() {
        let values = metadata.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
        fields.insert(name.as_str().to_owned(), values.collect());
    }
    if !fields.is_empty() {
        end.insert("metadata".to_owned(), fields.into());
    }
    Value::from(end).to_string().into_bytes()
}

/// A `grpc-message`, as it was meant.
fn decoded(text: &[u8]) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    percents(text, &mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Takes `%XX` for a byte; what is malformed stays.
fn percents(text: &[u8], bytes: &mut Vec<u8>) {
    let digit = |byte: Option<&u8>| byte.and_then(|byte| char::from(*byte).to_digit(16));
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        match (byte, digit(text.get(at + 1)), digit(text.get(at + 2))) {
            (b'%', Some(high), Some(low)) => {
                // Two digits.
                bytes.push((high << 4 | low) as u8);
                at += 3;
            }
            _ => {
                bytes.push(byte);
                at += 1;
            }
        }
    }
}

/// A `connect-timeout-ms`; none where it is malformed.
#[must_use]
pub fn timeout(text: &[u8]) -> Option<Duration> {
    if text.is_empty() || text.len() > TIMEOUT_DIGITS_MAX || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok().map(Duration::from_millis)
}

/// What a GET request asks for, in its query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// Whether it is of this protocol.
    pub is_connect: bool,
    /// The format of the message, and of the reply.
    pub encoding: String,
    /// How the message is compressed.
    pub compression: String,
    /// The message.
    pub message: Vec<u8>,
}

impl Query {
    /// Reads a query; none where it has no message that can be read.
    #[must_use]
    pub fn read(text: &str) -> Option<Query> {
        let (mut query, mut message, mut is_base64) = (Query::default(), None, false);
        for (name, value) in text.split('&').filter_map(|pair| pair.split_once('=')) {
            match name {
                "connect" => query.is_connect = value == "v1",
                "encoding" => query.encoding = String::from_utf8(parameter(value)).ok()?,
                "compression" => query.compression = String::from_utf8(parameter(value)).ok()?,
                "base64" => is_base64 = value == "1",
                "message" => message = Some(parameter(value)),
                _ => {}
            }
        }
        let message = message?;
        query.message = if is_base64 {
            let end = message.iter().rposition(|byte| *byte != b'=').map_or(0, |last| last + 1);
            URL_SAFE_NO_PAD.decode(&message[..end]).ok()?
        } else {
            message
        };
        Some(query)
    }
}

fn parameter(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    percents(text.replace('+', " ").as_bytes(), &mut bytes);
    bytes
}

/// The name of a trailer among the headers of a unary reply.
#[must_use]
pub fn trailer_name(name: &HeaderName) -> Option<HeaderName> {
    let mut text = String::from("trailer-");
    let _ = write!(text, "{name}");
    HeaderName::from_bytes(text.as_bytes()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grpc::Code;
    use hyper::header::HeaderValue;

    fn fields(fields: &[(&'static str, &'static str)]) -> HeaderMap {
        fields.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn trailers_become_errors() {
        assert_eq!(Error::take(&mut fields(&[("grpc-status", "0"), ("grpc-message", "")])), None);
        let mut all = fields(&[
            ("grpc-status", "9"),
            ("grpc-message", "not%20now%2C %C3%A4 5%"),
            ("grpc-status-details-bin", "CAkaJgoddHlwZS5nb29nbGVhcGlzLmNvbS9zaG9wLlRleHQSBQoDd2h5"),
            ("x-a", "b"),
        ]);
        let error = Error::take(&mut all).unwrap();
        let details = json!([{ "type": "shop.Text", "value": "CgN3aHk" }]);
        let expected = json!({ "code": "failed_precondition", "message": "not now, \u{e4} 5%", "details": details });
        assert_eq!((error.json, error.status.as_u16(), all.len()), (expected, 400, 1));
        for (status, name) in [("17", "unknown"), ("x", "unknown"), ("-1", "unknown"), ("16", "unauthenticated")] {
            assert_eq!(Error::take(&mut fields(&[("grpc-status", status)])).unwrap().json, json!({ "code": name }), "{status}");
        }
        let none = Error::take(&mut HeaderMap::new()).unwrap();
        assert_eq!((none.json["code"].as_str(), none.status.as_u16()), (Some("internal"), 500));
        let broken = fields(&[("grpc-status", "5"), ("grpc-status-details-bin", "!")]);
        assert_eq!(Error::take(&mut broken.clone()).unwrap().json, json!({ "code": "not_found" }));
    }

    #[test]
    fn a_stream_ends_with_its_error_and_its_trailers() {
        assert_eq!(end(None, &HeaderMap::new()), b"{}");
        let error = Error::from(&Status::new(Code::Unavailable, "gone"));
        let mut metadata = fields(&[("x-a", "b")]);
        metadata.append("x-a", HeaderValue::from_static("c"));
        let found: Value = serde_json::from_slice(&end(Some(&error), &metadata)).unwrap();
        let expected = json!({ "error": { "code": "unavailable", "message": "gone" }, "metadata": { "x-a": ["b", "c"] } });
        assert_eq!(found, expected);
    }

    #[test]
    fn times_are_up_to_ten_digits() {
        assert_eq!(timeout(b"0"), Some(Duration::ZERO));
        assert_eq!(timeout(b"9999999999"), Some(Duration::from_millis(9_999_999_999)));
        for wrong in ["", "-1", "+1", "1.5", "1s", " 1", "12345678901"] {
            assert_eq!(timeout(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn messages_in_queries_are_read() {
        let query = Query::read("connect=v1&encoding=json&message=%7B%22a%22%3A+1%7D").unwrap();
        assert_eq!((query.is_connect, &*query.encoding, &*query.message), (true, "json", &b"{\"a\": 1}"[..]));
        for message in ["-_8", "-_8=", "-_8%3D"] {
            let query = Query::read(&format!("base64=1&message={message}&encoding=proto&compression=gzip&x")).unwrap();
            assert_eq!((query.is_connect, &*query.message, &*query.compression), (false, &[0xfb, 0xff][..], "gzip"), "{message}");
        }
        assert_eq!(Query::read("message=").unwrap().message, b"");
        for wrong in ["", "encoding=json", "base64=1&message=!", "message=a&encoding=%ff"] {
            assert_eq!(Query::read(wrong), None, "{wrong}");
        }
    }
}
