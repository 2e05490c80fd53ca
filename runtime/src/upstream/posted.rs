//! Requests to other servers as JSON: kept until they are sent.
//!
//! `{"Function": "f", "Method": "POST", "ApiEndpoint": "https://...", "Headers": {"content-type": "text/plain"}, "Body": "..."}`. A body that is no text, or has control characters, is `BodyBase64`; several values of a header are a
//! list, and one that is no text is `{"Base64": "..."}`. Read back, the request is the same to the byte.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, Uri};
use serde_json::{Map, Value, json};

/// Bytes of such JSON: as much as the input of an execution may have.
pub const POSTED_BYTES_MAX: usize = 256 << 10;

/// A request of that function as JSON.
#[must_use]
pub fn write(function: &str, request: &Request<Bytes>) -> Value {
    let value = |value: &HeaderValue| match value.to_str() {
        Ok(text) => Value::from(text),
        Err(_) => json!({ "Base64": BASE64_STANDARD.encode(value) }),
    };
    let mut headers = Map::new();
    for name in request.headers().keys() {
        let mut values: Vec<Value> = request.headers().get_all(name).iter().map(value).collect();
        let values = if values.len() == 1 { values.swap_remove(0) } else { Value::Array(values) };
        headers.insert(name.as_str().to_owned(), values);
    }
    let uri = request.uri().to_string();
    let mut posted = json!({ "Function": function, "Method": request.method().as_str(), "ApiEndpoint": uri, "Headers": headers });
    match std::str::from_utf8(request.body()) {
        Ok("") => {}
        // Control characters take up six bytes each in JSON.
        Ok(text) if !text.contains(|c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t')) => posted["Body"] = text.into(),
        Ok(_) | Err(_) => posted["BodyBase64"] = BASE64_STANDARD.encode(request.body()).into(),
    }
    posted
}

/// The function whose request it is.
#[must_use]
pub fn function(posted: &Value) -> Option<&str> {
    posted["Function"].as_str()
}

/// The request.
///
/// # Errors
/// What is wrong with it.
pub fn read(posted: &Value) -> Result<Request<Bytes>, String> {
    let text = |key: &str| posted[key].as_str().ok_or_else(|| format!("{key} is to be a text"));
    let method = Method::from_bytes(text("Method")?.as_bytes()).map_err(|error| format!("Method: {error}"))?;
    let uri: Uri = text("ApiEndpoint")?.parse().map_err(|error| format!("ApiEndpoint: {error}"))?;
    let mut headers = HeaderMap::new();
    for (name, values) in posted["Headers"].as_object().into_iter().flatten() {
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|error| format!("the header {name:?}: {error}"))?;
        let values = if let Value::Array(values) = values { values.as_slice() } else { std::slice::from_ref(values) };
        for value in values {
            let value = header(value).ok_or_else(|| format!("the value of the header {name} cannot be sent"))?;
            headers.try_append(&name, value).map_err(|error| format!("Headers: {error}"))?;
        }
    }
    let body = match (&posted["Body"], &posted["BodyBase64"]) {
        (Value::Null, Value::Null) => Bytes::new(),
        (Value::String(text), Value::Null) => Bytes::copy_from_slice(text.as_bytes()),
        (Value::Null, Value::String(coded)) => {
            BASE64_STANDARD.decode(coded).map_err(|error| format!("BodyBase64: {error}"))?.into()
        }
        _ => return Err("it has either Body or BodyBase64, a text".to_owned()),
    };
    let mut request = Request::new(body);
    (*request.method_mut(), *request.uri_mut(), *request.headers_mut()) = (method, uri, headers);
    Ok(request)
}

fn header(value: &Value) -> Option<HeaderValue> {
    match value {
        Value::String(text) => HeaderValue::from_str(text).ok(),
        other => HeaderValue::from_bytes(&BASE64_STANDARD.decode(other["Base64"].as_str()?).ok()?).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_as_it_was_written() {
        for body in [&b""[..], b"{\"a\": 1}  ", "gr\u{fc}n\0".as_bytes(), b"\xff\x00\xfe"] {
            let mut request = Request::new(Bytes::copy_from_slice(body));
            *request.method_mut() = Method::PATCH;
            *request.uri_mut() = Uri::from_static("https://h.example:8443/a/b?c=%20d");
            for (name, value) in [("x-a", &b"1"[..]), ("x-b", b"2"), ("x-a", b"3"), ("x-c", b"gr\xfcn")] {
                request.headers_mut().append(name, HeaderValue::from_bytes(value).unwrap());
            }
            let written: Value = serde_json::from_str(&write("f", &request).to_string()).unwrap();
            let again = read(&written).unwrap();
            assert_eq!((again.method(), again.uri(), again.headers()), (request.method(), request.uri(), request.headers()));
            assert_eq!((again.body(), function(&written)), (request.body(), Some("f")));
        }
    }

    #[test]
    fn what_is_malformed_is_said() {
        let good = json!({ "Method": "GET", "ApiEndpoint": "http://h/" });
        assert!(read(&good).is_ok());
        for (key, value, part) in [
            ("Method", json!("A B"), "Method"),
            ("Method", json!(1), "Method"),
            ("ApiEndpoint", json!("h h"), "ApiEndpoint"),
            ("Headers", json!({ "a b": "c" }), "a b"),
            ("Headers", json!({ "a": "c\nd" }), "header a"),
            ("Headers", json!({ "a": [{ "Base64": "%" }] }), "header a"),
            ("Body", json!({}), "Body"),
            ("BodyBase64", json!("%"), "BodyBase64"),
        ] {
            let mut bad = good.clone();
            bad[key] = value;
            let why = read(&bad).unwrap_err();
            assert!(why.contains(part), "{bad}: {why}");
        }
        assert_eq!(function(&good), None);
    }
}
