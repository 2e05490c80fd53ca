//! Tasks that are requests to other servers: `http://...`, `https://...` and `arn:aws:states:::http:invoke`, to the hosts in the workflow's `http_hosts`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::header::{CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, StatusCode, Uri};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value, json};
use sledge_workflow::definition::Resource;
use sledge_workflow::machine::Failure;

use super::failure::failed;
use crate::upstream::{self, Upstream};

/// Bytes of a response that are taken, as of a function's reply.
const RESPONSE_BYTES_MAX: usize = 1 << 20;
/// The most time of a request, as in Step Functions; a task's `TimeoutSeconds` may be less.
const TIME_MAX: Duration = Duration::from_secs(60);
/// Headers that a task may give.
const HEADERS_MAX: usize = 100;
/// Bytes of an error response that are told as the cause.
const CAUSE_BYTES_MAX: usize = 32 << 10;
/// By what servers know a request that may be made again.
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// Headers that the connection has, and no task.
const REFUSED: [HeaderName; 6] = [
    HOST,
    hyper::header::CONTENT_LENGTH,
    hyper::header::TRANSFER_ENCODING,
    hyper::header::CONNECTION,
    hyper::header::UPGRADE,
    hyper::header::TE,
];

/// What a task asks another server.
struct Asked {
    request: Request<Bytes>,
    /// Whether the output is the response with its status and headers, and not its body alone.
    is_described: bool,
}

/// Makes the request of a task. `name` is the same each time that it is made.
pub(super) async fn carry_out(
    upstream: Option<&Arc<Upstream>>,
    resource: &Resource,
    input: &Value,
    name: Option<&str>,
    deadline: Instant,
) -> Result<Value, Failure> {
    let Some(upstream) = upstream else {
        return Err(failed("States.Runtime", "the workflow has no http_hosts: name the servers there that it may ask"));
    };
    let Asked { mut request, is_described } = read(resource, input)?;
    if !upstream.allows(&request) {
        let host = request.uri().authority().map(ToString::to_string).unwrap_or_default();
        return Err(failed("States.Runtime", format!("{host} is not in the workflow's http_hosts")));
    }
    if let Some(name) = name.and_then(|name| HeaderValue::try_from(name).ok()) {
        request.headers_mut().entry(IDEMPOTENCY_KEY).or_insert(name);
    }
    let answered = async {
        let response = Arc::clone(upstream).send(request).await.map_err(|failure| connection(&failure))?;
        let (head, body) = response.into_parts();
        let body = Limited::new(body, RESPONSE_BYTES_MAX).collect().await.map_err(|error| {
            let is_large = error.is::<LengthLimitError>() || error.source().is_some_and(|source| source.is::<LengthLimitError>());
            let why = if is_large { format!("the response has more than {RESPONSE_BYTES_MAX} bytes") } else { error.to_string() };
            failed("States.Http.Socket", why)
        })?;
        Ok((head, body.to_bytes()))
    };
    let deadline = deadline.min(Instant::now() + TIME_MAX);
    let (head, body) = match tokio::time::timeout_at(deadline.into(), answered).await {
        Ok(answered) => answered?,
        Err(_) => return Err(failed("States.Timeout", "the server did not answer in time")),
    };
    output(head.status, &head.headers, &body, is_described)
}

/// What a response is as the task's output. From 400 on it is an error.
fn output(status: StatusCode, headers: &HeaderMap, body: &Bytes, is_described: bool) -> Result<Value, Failure> {
    let text = || String::from_utf8_lossy(body).into_owned();
    if status.as_u16() >= 400 {
        let mut cause = text();
        cause.truncate(cause.floor_char_boundary(CAUSE_BYTES_MAX));
        return Err(failed(&format!("States.Http.StatusCode.{}", status.as_u16()), cause));
    }
    let document = match serde_json::from_slice(body) {
        Ok(document) => document,
        Err(_) if body.is_empty() => Value::Null,
        Err(_) => Value::String(text()),
    };
    if !is_described {
        return Ok(document);
    }
    let mut told: Map<String, Value> = Map::new();
    for name in headers.keys() {
        let values = headers.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
        told.insert(name.to_string(), json!(values.collect::<Vec<_>>()));
    }
    Ok(json!({
        "Headers": told,
        "ResponseBody": document,
        "StatusCode": status.as_u16(),
        "StatusText": status.canonical_reason().unwrap_or_default(),
    }))
}

/// Why there is no response.
fn connection(failure: &upstream::Failure) -> Failure {
    failed("States.Http.Socket", failure.to_string())
}

fn read(resource: &Resource, input: &Value) -> Result<Asked, Failure> {
    match resource {
        Resource::Http { url } => {
            let request = Request::post(&**url).header(CONTENT_TYPE, "application/json").body(Bytes::from(input.to_string()));
            Ok(Asked { request: request.map_err(|error| malformed(&error.to_string()))?, is_described: false })
        }
        _ => invoke(input),
    }
}

/// `arn:aws:states:::http:invoke`: `{ApiEndpoint, Method, Headers, QueryParameters, RequestBody}`.
fn invoke(input: &Value) -> Result<Asked, Failure> {
    let text = |key: &str| input[key].as_str().ok_or_else(|| malformed(&format!("{key} is to be a text")));
    let method = Method::from_bytes(text("Method")?.as_bytes()).map_err(|_| malformed("Method is no method of HTTP"))?;
    let mut uri = text("ApiEndpoint")?.to_owned();
    for (key, value) in members(input, "QueryParameters")? {
        let values = if let Value::Array(values) = value { &**values } else { std::slice::from_ref(value) };
        for value in values {
            uri.push(if uri.contains('?') { '&' } else { '?' });
            let value = plain(value)
                .ok_or_else(|| malformed("a query parameter is a text, a number, a truth value, or a list of these"))?;
            uri.extend(utf8_percent_encode(key, NON_ALPHANUMERIC));
            uri.push('=');
            uri.extend(utf8_percent_encode(&value, NON_ALPHANUMERIC));
        }
    }
    let uri: Uri = uri.parse().map_err(|_| malformed("ApiEndpoint is no address"))?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) || uri.host().is_none() {
        return Err(malformed("ApiEndpoint begins with http://HOST or https://HOST"));
    }
    let mut headers = HeaderMap::new();
    for (name, value) in members(input, "Headers")? {
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| malformed(&format!("{name:?} is no name of a header")))?;
        let value = plain(value).and_then(|value| HeaderValue::try_from(value).ok());
        let value = value.ok_or_else(|| malformed(&format!("the value of {name} is no value of a header")))?;
        if REFUSED.contains(&name) || headers.len() >= HEADERS_MAX {
            return Err(malformed(&format!("the header {name} cannot be given")));
        }
        headers.insert(name, value);
    }
    let body = match &input["RequestBody"] {
        Value::Null => Bytes::new(),
        Value::String(text) if headers.contains_key(CONTENT_TYPE) => Bytes::from(text.clone()),
        document => {
            headers.entry(CONTENT_TYPE).or_insert(HeaderValue::from_static("application/json"));
            Bytes::from(document.to_string())
        }
    };
    let mut request = Request::new(body);
    (*request.method_mut(), *request.uri_mut(), *request.headers_mut()) = (method, uri, headers);
    Ok(Asked { request, is_described: true })
}

/// Members of an object in the input; none where it is not there.
fn members<'a>(input: &'a Value, key: &str) -> Result<impl Iterator<Item = (&'a String, &'a Value)>, Failure> {
    match &input[key] {
        Value::Null => Ok(None.into_iter().flatten()),
        Value::Object(members) => Ok(Some(members).into_iter().flatten()),
        _ => Err(malformed(&format!("{key} is to be an object"))),
    }
}

/// A value as it stands in a query or a header.
fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        _ => None,
    }
}

fn malformed(what: &str) -> Failure {
    failed("States.Runtime", what)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(input: &Value) -> Request<Bytes> {
        invoke(input).unwrap_or_else(|failure| panic!("{failure:?}")).request
    }

    #[test]
    fn a_request_is_made_of_its_parts() {
        let request = asked(&json!({
            "ApiEndpoint": "https://example.org/a?b=1", "Method": "PUT", "Headers": { "X-Id": 7 },
            "QueryParameters": { "q": "a&b ü", "n": [1, true] }, "RequestBody": { "x": 1 },
        }));
        assert_eq!(request.method(), Method::PUT);
        assert_eq!(request.uri(), "https://example.org/a?b=1&q=a%26b%20%C3%BC&n=1&n=true");
        assert_eq!(
            (&request.headers()["x-id"], &request.headers()[CONTENT_TYPE]),
            (&"7".parse().unwrap(), &"application/json".parse().unwrap())
        );
        assert_eq!(request.body(), r#"{"x":1}"#);
        let form = json!({ "ApiEndpoint": "http://h", "Method": "POST", "Headers": { "Content-Type": "text/plain" }, "RequestBody": "a=b" });
        assert_eq!((asked(&form).body(), asked(&form).headers().len()), (&Bytes::from("a=b"), 1));
        assert!(asked(&json!({ "ApiEndpoint": "http://h", "Method": "GET" })).body().is_empty());
    }

    #[test]
    fn what_is_wrong_with_a_request_is_said() {
        let good = json!({ "ApiEndpoint": "http://h/", "Method": "GET" });
        let with = |key: &str, value: Value| {
            let mut input = good.clone();
            input[key] = value;
            invoke(&input).err().and_then(|failure| failure.cause).map(|cause| cause.to_string()).unwrap_or_default()
        };
        assert_eq!(with("ApiEndpoint", json!("ftp://h")), "ApiEndpoint begins with http://HOST or https://HOST");
        assert_eq!(with("ApiEndpoint", json!("h h")), "ApiEndpoint is no address");
        assert_eq!(with("Method", json!("G T")), "Method is no method of HTTP");
        assert_eq!(with("Method", json!(1)), "Method is to be a text");
        assert_eq!(with("Headers", json!({ "Host": "x" })), "the header host cannot be given");
        assert_eq!(with("Headers", json!({ "a": "b\nc" })), "the value of a is no value of a header");
        assert_eq!(with("Headers", json!([1])), "Headers is to be an object");
        assert!(with("QueryParameters", json!({ "a": {} })).starts_with("a query parameter is a text"));
    }

    #[test]
    fn a_response_is_an_output_or_an_error() {
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/json"))]);
        let of = |status: u16, body: &'static str, is_described| {
            output(StatusCode::from_u16(status).unwrap(), &headers, &Bytes::from(body), is_described)
        };
        assert_eq!(of(200, "{\"a\":1}", false), Ok(json!({ "a": 1 })));
        assert_eq!((of(204, "", false), of(200, "text", false)), (Ok(Value::Null), Ok(json!("text"))));
        let described = json!({ "Headers": { "content-type": ["application/json"] }, "ResponseBody": 1, "StatusCode": 201, "StatusText": "Created" });
        assert_eq!(of(201, "1", true), Ok(described));
        assert_eq!(of(404, "gone", true), Err(failed("States.Http.StatusCode.404", "gone")));
    }
}
