//! `wasi:http`: messages that are made, and requests that go nowhere.

use wasip2::http::outgoing_handler::handle;
use wasip2::http::types::{
    ErrorCode, Fields, HeaderError, Method, OutgoingBody, OutgoingRequest, OutgoingResponse, RequestOptions, Scheme,
    http_error_code,
};
use wasip2::io::streams::StreamError;

use crate::say;

fn said<T>(result: Result<T, HeaderError>) -> Result<T, HeaderError> {
    result
}

fn bytes(values: &[&str]) -> Vec<Vec<u8>> {
    values.iter().map(|value| value.as_bytes().to_vec()).collect()
}

fn entries(fields: &Fields) -> Vec<(String, String)> {
    let mut entries: Vec<_> =
        fields.entries().into_iter().map(|(name, value)| (name, String::from_utf8_lossy(&value).into_owned())).collect();
    entries.sort();
    entries
}

pub(crate) fn all() {
    fields();
    forbidden();
    requests();
    responses();
    bodies();
    options();
    sending();
}

fn fields() {
    let fields = Fields::new();
    say("entries of none", entries(&fields));
    say("get of none", fields.get("x"));
    say("has of none", fields.has("x"));
    say("append", said(fields.append("X-One", b"1")));
    say("append in other letters", said(fields.append("x-ONE", b"2")));
    say("get", fields.get("x-one"));
    say("has", fields.has("X-one"));
    say("set", said(fields.set("x-two", &bytes(&["a", "b"]))));
    say("set fewer", said(fields.set("X-TWO", &bytes(&["c"]))));
    say("set none", said(fields.set("x-three", &[])));
    say("entries", entries(&fields));
    let copy = fields.clone();
    say("delete", said(fields.delete("X-one")));
    say("delete of nothing", said(fields.delete("x-one")));
    say("entries after that", entries(&fields));
    say("entries of the copy", entries(&copy));
    for name in ["", " ", "a b", "a:b", "grün", "x\n", "x\0", "(x)", "a_b", "!#$%&'*+-.^`|~"] {
        say(&format!("append {name:?}"), said(fields.append(name, b"v")));
        say(&format!("set {name:?}"), said(fields.set(name, &bytes(&["v"]))));
        say(&format!("has {name:?}"), fields.has(name));
        say(&format!("get {name:?}"), fields.get(name).len());
        say(&format!("delete {name:?}"), said(fields.delete(name)));
    }
    for value in ["", " ", "a b", "tab\tin", "line\nfeed", "return\r", "zero\0", "grün", "\u{7f}"] {
        say(&format!("append of {value:?}"), said(fields.append("v", value.as_bytes())));
    }
    say("append of bytes above ASCII", said(fields.append("v", &[0xff, 0x80])));
    let list = |pairs: &[(&str, &str)]| {
        let pairs: Vec<_> = pairs.iter().map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec())).collect();
        Fields::from_list(&pairs).map(|fields| entries(&fields))
    };
    say("from-list", list(&[("A", "1"), ("b", "2"), ("a", "3")]));
    say("from-list of none", list(&[]));
    say("from-list with a bad name", list(&[("a b", "1")]));
    say("from-list with a bad value", list(&[("a", "1\n")]));
    say("from-list with what is forbidden", list(&[("connection", "close")]));
    let request = OutgoingRequest::new(copy);
    let headers = request.headers();
    say("entries of a message", entries(&headers));
    say("append to a message", said(headers.append("x", b"1")));
    say("set of a message", said(headers.set("x", &bytes(&["1"]))));
    say("delete of a message", said(headers.delete("x-one")));
    say("append to a copy of it", said(headers.clone().append("x", b"1")));
}

fn forbidden() {
    let names = [
        "connection",
        "Connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "host",
        "http2-settings",
        "content-length",
        "date",
        "expect",
        "cookie",
        "authorization",
    ];
    for name in names {
        let fields = Fields::new();
        say(&format!("append {name}"), said(fields.append(name, b"1")));
        say(&format!("set {name}"), said(fields.set(name, &bytes(&["1"]))));
        say(&format!("delete {name}"), said(fields.delete(name)));
    }
}

fn requests() {
    let request = OutgoingRequest::new(Fields::new());
    say("method", request.method());
    say("path-with-query", request.path_with_query());
    say("scheme", request.scheme());
    say("authority", request.authority());
    for method in [
        Method::Post,
        Method::Connect,
        Method::Other("BREW".to_owned()),
        Method::Other("a b".to_owned()),
        Method::Other(String::new()),
        Method::Other("GET".to_owned()),
    ] {
        say(&format!("set-method {method:?}"), request.set_method(&method));
        say("method", request.method());
    }
    for path in [
        Some("/"),
        Some("/a?b=c"),
        Some("a"),
        Some(""),
        Some("*"),
        Some("/a b"),
        Some("/grün"),
        Some("/a\nb"),
        Some("?q"),
        Some("/#f"),
        Some("//x"),
        None,
    ] {
        say(&format!("set-path-with-query {path:?}"), request.set_path_with_query(path));
        say("path-with-query", request.path_with_query());
    }
    for scheme in [
        Some(Scheme::Http),
        Some(Scheme::Https),
        Some(Scheme::Other("ftp".to_owned())),
        Some(Scheme::Other("a b".to_owned())),
        Some(Scheme::Other(String::new())),
        None,
    ] {
        say(&format!("set-scheme {scheme:?}"), request.set_scheme(scheme.as_ref()));
        say("scheme", request.scheme());
    }
    for authority in [
        Some("example.org"),
        Some("example.org:8080"),
        Some("127.0.0.1"),
        Some("[::1]:80"),
        Some("[::1]"),
        Some("user@example.org"),
        Some("example.org:"),
        Some("example.org:99999"),
        Some("a b"),
        Some(""),
        Some("a/b"),
        Some("a\n"),
        Some("grün"),
        None,
    ] {
        say(&format!("set-authority {authority:?}"), request.set_authority(authority));
        say("authority", request.authority());
    }
}

fn responses() {
    let response = OutgoingResponse::new(Fields::new());
    say("status-code", response.status_code());
    for status in [0, 99, 100, 204, 404, 599, 600, 999, 1000, u16::MAX] {
        say(&format!("set-status-code {status}"), response.set_status_code(status));
        say("status-code", response.status_code());
    }
    say("headers of a response", entries(&response.headers()));
    say("body of a response", response.body().is_ok());
    say("body of a response again", response.body().is_ok());
}

fn length(value: &str) -> Fields {
    Fields::from_list(&[("content-length".to_owned(), value.as_bytes().to_vec())]).expect("fields")
}

fn code(error: StreamError) -> String {
    match error {
        StreamError::Closed => "closed".to_owned(),
        StreamError::LastOperationFailed(error) => format!("{:?}", http_error_code(&error)),
    }
}

fn bodies() {
    let request = OutgoingRequest::new(Fields::new());
    let body = request.body().expect("a body");
    say("body again", request.body().is_ok());
    let stream = body.write().expect("a stream");
    say("write again", body.write().is_ok());
    say("check-write gives room", stream.check_write().is_ok_and(|bytes| bytes > 0));
    say("ready to write", stream.subscribe().ready());
    say("write to a body", stream.write(b"hello").map_err(code));
    drop(stream);
    say("finish", OutgoingBody::finish(body, None));
    for (value, written) in [("3", "abc"), ("5", "abc"), ("2", "abc"), ("0", ""), ("1", "")] {
        let request = OutgoingRequest::new(length(value));
        let body = request.body().expect("a body");
        let stream = body.write().expect("a stream");
        say(
            &format!("write {written:?} where content-length is {value}"),
            stream.blocking_write_and_flush(written.as_bytes()).map_err(code),
        );
        drop(stream);
        say("finish", OutgoingBody::finish(body, None));
    }
    let response = OutgoingResponse::new(Fields::new());
    let body = response.body().expect("a body");
    let trailers = Fields::from_list(&[("x-sum".to_owned(), b"1".to_vec())]).expect("fields");
    say("finish with trailers", OutgoingBody::finish(body, Some(trailers)));
}

fn options() {
    let options = RequestOptions::new();
    say("connect-timeout", options.connect_timeout());
    say("first-byte-timeout", options.first_byte_timeout());
    say("between-bytes-timeout", options.between_bytes_timeout());
    for time in [Some(0), Some(1), Some(5_000_000_000), Some(u64::MAX), None] {
        say(&format!("set-connect-timeout {time:?}"), options.set_connect_timeout(time));
        say("connect-timeout", options.connect_timeout());
        say(&format!("set-first-byte-timeout {time:?}"), options.set_first_byte_timeout(time));
        say("first-byte-timeout", options.first_byte_timeout());
        say(&format!("set-between-bytes-timeout {time:?}"), options.set_between_bytes_timeout(time));
        say("between-bytes-timeout", options.between_bytes_timeout());
    }
}

fn send(scheme: Option<Scheme>, authority: Option<&str>, path: Option<&str>) -> Result<u16, ErrorCode> {
    let request = OutgoingRequest::new(Fields::new());
    let _ = (request.set_scheme(scheme.as_ref()), request.set_authority(authority), request.set_path_with_query(path));
    let future = handle(request, None)?;
    loop {
        match future.get() {
            Some(Ok(response)) => return response.map(|response| response.status()),
            Some(Err(())) => panic!("it was taken"),
            None => future.subscribe().block(),
        }
    }
}

fn sending() {
    say("handle without an authority", send(Some(Scheme::Http), None, Some("/")));
    say("handle with another scheme", send(Some(Scheme::Other("ftp".to_owned())), Some("127.0.0.1:1"), Some("/")));
}
