//! Requests as JSON: kept until a function is called with them, and made by tasks.
//!
//! `{"Method": "POST", "Path": "/a?b=c", "Headers": {"content-type": "text/plain"}, "Body": "..."}`; a body that is no text is `BodyBase64`, several values of a header are a list, and a request that
//! came over TLS has `"Scheme": "https"`. The function gets the body byte for byte, and what it may ask of a request besides.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use hyper::header::{CONNECTION, HeaderMap, HeaderName, HeaderValue, TE, TRAILER, TRANSFER_ENCODING, UPGRADE};
use hyper::http::request::Parts;
use hyper::{Method, Uri};
use serde_json::{Map, Value, json};
use sledge_workflow::machine::Failure;

use super::failure::failed;
use crate::host::{Body, RequestHead};
use crate::invoke::Input;
use crate::invoke::function::Function;

/// The schemes of requests: the second one over TLS, the first one where none is named.
const HTTP: &str = "http";
const HTTPS: &str = "https";

/// What belongs to a connection, and not to the request.
const OF_CONNECTION: [HeaderName; 6] =
    [CONNECTION, HeaderName::from_static("keep-alive"), TE, TRAILER, TRANSFER_ENCODING, UPGRADE];

/// A request as JSON. Values of headers that are no text are left out. `is_secure`: whether it came over TLS.
#[must_use]
pub fn kept(head: &Parts, body: &Bytes, is_secure: bool) -> Value {
    let mut headers = Map::new();
    for name in head.headers.keys().filter(|name| !OF_CONNECTION.contains(name)) {
        let values: Vec<Value> =
            head.headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).map(Value::from).collect();
        let value = if values.len() == 1 { values.into_iter().next() } else { Some(Value::Array(values)) };
        headers.insert(name.as_str().to_owned(), value.unwrap_or_default());
    }
    let path = head.uri.path_and_query().map_or("/", |target| target.as_str());
    let mut request = json!({ "Method": head.method.as_str(), "Path": path, "Headers": headers });
    if is_secure {
        request["Scheme"] = HTTPS.into();
    }
    match std::str::from_utf8(body) {
        Ok(text) => request["Body"] = text.into(),
        Err(_) => request["BodyBase64"] = BASE64_STANDARD.encode(body).into(),
    }
    request
}

/// Whether two requests as JSON ask for the same, whatever their headers say.
#[must_use]
pub fn is_same(one: &Value, other: &Value) -> bool {
    ["Method", "Path", "Body", "BodyBase64"].iter().all(|key| one.get(key) == other.get(key))
}

/// What a function is given with such a request.
pub(super) fn input(request: &Value, function: &Function) -> Result<Input, Failure> {
    let mut body = Body::default();
    match (&request["Body"], &request["BodyBase64"]) {
        (Value::Null, Value::Null) => {}
        (Value::String(text), Value::Null) => body.push(Bytes::copy_from_slice(text.as_bytes())),
        (Value::Null, Value::String(coded)) => {
            let decoded = BASE64_STANDARD.decode(coded).map_err(|error| malformed(format!("BodyBase64: {error}")))?;
            body.push(decoded.into());
        }
        (Value::String(_), _) => return Err(malformed("it has both Body and BodyBase64".to_owned())),
        // What is no text is sent as JSON.
        (json, _) => body.push(json.to_string().into()),
    }
    let head = if function.reads_head { Some(Box::new(head(request)?)) } else { None };
    Ok(Input { head, body })
}

fn head(request: &Value) -> Result<RequestHead, Failure> {
    let text = |key: &str, default: &'static str| match &request[key] {
        Value::Null => Ok(default.to_owned()),
        Value::String(text) => Ok(text.clone()),
        _ => Err(malformed(format!("{key} is to be a text"))),
    };
    let method = Method::from_bytes(text("Method", "POST")?.as_bytes()).map_err(|error| malformed(format!("Method: {error}")))?;
    let path = text("Path", "/")?;
    let target: Uri = path.parse().map_err(|error| malformed(format!("Path: {error}")))?;
    if !path.starts_with('/') {
        return Err(malformed("Path begins with /".to_owned()));
    }
    let mut headers = HeaderMap::new();
    let rows = match &request["Headers"] {
        Value::Null => None,
        Value::Object(rows) => Some(rows),
        _ => return Err(malformed("Headers is to be an object".to_owned())),
    };
    for (name, value) in rows.into_iter().flatten() {
        let values = if let Value::Array(values) = value { values.as_slice() } else { std::slice::from_ref(value) };
        for value in values {
            let parsed = HeaderName::from_bytes(name.as_bytes())
                .ok()
                .zip(value.as_str().and_then(|text| HeaderValue::from_str(text).ok()));
            let (name, value) = parsed.ok_or_else(|| malformed(format!("the header {name:?} cannot be sent")))?;
            // Fails at 32,768 headers, which no JSON within a state's limit has to have.
            headers.try_append(name, value).map_err(|error| malformed(format!("Headers: {error}")))?;
        }
    }
    let is_secure = match text("Scheme", HTTP)?.as_str() {
        HTTP => false,
        HTTPS => true,
        _ => return Err(malformed("Scheme is http or https".to_owned())),
    };
    Ok(RequestHead { method, target, headers, is_secure })
}

fn malformed(what: String) -> Failure {
    failed("States.Runtime", format!("the request that the function is to be called with is malformed: {what}"))
}

#[cfg(test)]
mod tests {
    use hyper::Request;

    use super::*;
    use crate::config::FunctionConfig;
    use crate::invoke::by_hand;
    use crate::invoke::function::Home;

    fn parts(path: &str, headers: &[(&str, &str)]) -> Parts {
        let mut request = Request::post(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    #[test]
    fn a_request_is_as_it_was_when_its_time_comes() {
        let head = parts("/a/b?c=%20d", &[("x-a", "1"), ("x-b", "2"), ("x-a", "3"), ("connection", "close"), ("te", "trailers")]);
        for body in [&b""[..], b"{\"a\": 1}  ", "gr\u{fc}n\0".as_bytes(), b"\xff\x00\xfe"] {
            let body = Bytes::copy_from_slice(body);
            let is_secure = body.is_empty();
            let request = kept(&head, &body, is_secure);
            let written: Value = serde_json::from_str(&request.to_string()).unwrap();
            let mut function = Function::new(by_hand::loaded(&FunctionConfig::new("f", "f.wasm")), Home::alone());
            assert_eq!(input(&written, &function).unwrap().body.into_bytes(), body);
            function.reads_head = true;
            let Input { head: Some(head), .. } = input(&written, &function).unwrap() else { panic!("it has a head") };
            assert_eq!((head.method.as_str(), head.target.to_string().as_str()), ("POST", "/a/b?c=%20d"));
            assert_eq!(head.headers.get_all("x-a").iter().collect::<Vec<_>>(), ["1", "3"]);
            assert_eq!(head.is_secure, is_secure);
            assert_eq!((head.headers.len(), &head.headers["x-b"]), (3, &HeaderValue::from_static("2")));
            assert!(is_same(&request, &written));
        }
        let other = kept(&parts("/a/b?c=%20d", &[("date", "now")]), &Bytes::from_static(b"x"), false);
        assert!(is_same(&other, &kept(&head, &Bytes::from_static(b"x"), true)), "whatever the headers say");
        assert!(!is_same(&other, &kept(&head, &Bytes::from_static(b"y"), false)));
    }

    #[test]
    fn what_is_malformed_fails_and_says_what() {
        let mut function = Function::new(by_hand::loaded(&FunctionConfig::new("f", "f.wasm")), Home::alone());
        function.reads_head = true;
        for (request, part) in [
            (json!({ "Body": "a", "BodyBase64": "YQ==" }), "both"),
            (json!({ "BodyBase64": "%" }), "BodyBase64"),
            (json!({ "Method": "A B" }), "Method"),
            (json!({ "Method": 1 }), "Method"),
            (json!({ "Scheme": "ftp" }), "Scheme"),
            (json!({ "Path": "a b" }), "Path"),
            (json!({ "Path": "http://host/" }), "Path"),
            (json!({ "Headers": [] }), "Headers"),
            (json!({ "Headers": { "a b": "c" } }), "a b"),
            (json!({ "Headers": { "a": "c\nd" } }), "\"a\""),
            (json!({ "Headers": { "a": 1 } }), "\"a\""),
        ] {
            let failure = input(&request, &function).unwrap_err();
            assert!(failure.cause.as_deref().is_some_and(|cause| cause.contains(part)), "{request}: {failure:?}");
        }
        assert_eq!(input(&json!({}), &function).unwrap().head.unwrap().method, Method::POST);
        assert_eq!(&*input(&json!({ "Body": { "a": 1 } }), &function).unwrap().body.into_bytes(), b"{\"a\":1}");
    }
}
