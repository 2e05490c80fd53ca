//! `wasi:http`: messages that are made, and requests that go nowhere.

use wasip3::http::client;
use wasip3::http::types::{ErrorCode, Fields, HeaderError, Method, Request, RequestOptions, Response, Scheme};
use wasip3::{wit_future, wit_stream};

use crate::say;

fn bytes(values: &[&str]) -> Vec<Vec<u8>> {
    values.iter().map(|value| value.as_bytes().to_vec()).collect()
}

fn entries(fields: &Fields) -> Vec<(String, String)> {
    let mut entries: Vec<_> =
        fields.copy_all().into_iter().map(|(name, value)| (name, String::from_utf8_lossy(&value).into_owned())).collect();
    entries.sort();
    entries
}

pub(crate) async fn all() {
    fields();
    request();
    response();
    options();
    bodies().await;
    say("send without an authority", send(Some(Scheme::Http), None).await);
    say("send with another scheme", send(Some(Scheme::Other("ftp".to_owned())), Some("127.0.0.1:1")).await);
}

fn fields() {
    let fields = Fields::new();
    say("append", fields.append("X-One", b"1"));
    say("append in other letters", fields.append("x-ONE", b"2"));
    say("get", fields.get("x-one"));
    say("has", fields.has("X-one"));
    say("set", fields.set("x-two", &bytes(&["a", "b"])));
    say("set fewer", fields.set("X-TWO", &bytes(&["c"])));
    say("set none", fields.set("x-three", &[]));
    say("copy-all", entries(&fields));
    let copy = fields.clone();
    say("get-and-delete", fields.get_and_delete("X-one"));
    say("get-and-delete of nothing", fields.get_and_delete("X-one"));
    say("delete", fields.delete("x-two"));
    say("delete of nothing", fields.delete("x-two"));
    say("copy-all after that", entries(&fields));
    say("copy-all of the copy", entries(&copy));
    for name in ["", "a b", "a:b", "grün", "x\n", "(x)", "a_b", "!#$%&'*+-.^`|~"] {
        say(&format!("append {name:?}"), fields.append(name, b"v"));
        say(&format!("set {name:?}"), fields.set(name, &bytes(&["v"])));
        say(&format!("has {name:?}"), fields.has(name));
        say(&format!("get {name:?}"), fields.get(name).len());
        say(&format!("delete {name:?}"), fields.delete(name));
    }
    for value in ["", " ", "a b", "tab\tin", "line\nfeed", "return\r", "zero\0", "grün", "\u{7f}"] {
        say(&format!("append of {value:?}"), fields.append("v", value.as_bytes()));
    }
    let list = |pairs: &[(&str, &str)]| {
        let pairs: Vec<_> = pairs.iter().map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec())).collect();
        Fields::from_list(&pairs).map(|fields| entries(&fields))
    };
    say("from-list", list(&[("A", "1"), ("b", "2"), ("a", "3")]));
    say("from-list with a bad name", list(&[("a b", "1")]));
    say("from-list with a bad value", list(&[("a", "1\n")]));
    let forbidden = [
        "connection",
        "keep-alive",
        "proxy-authenticate",
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
    ];
    for name in forbidden {
        say(&format!("append {name}"), Fields::new().append(name, b"1"));
        say(&format!("set {name}"), Fields::new().set(name, &bytes(&["1"])));
        say(&format!("delete {name}"), Fields::new().delete(name));
        say(&format!("from-list {name}"), list(&[(name, "1")]));
    }
}

fn new_request(headers: Fields, options: Option<RequestOptions>) -> Request {
    Request::new(headers, None, wit_future::new(|| Ok(None)).1, options).0
}

fn request() {
    let request = new_request(Fields::from_list(&[("x".to_owned(), b"1".to_vec())]).expect("fields"), None);
    say("get-method", request.get_method());
    say("get-path-with-query", request.get_path_with_query());
    say("get-scheme", request.get_scheme());
    say("get-authority", request.get_authority());
    say("get-options", request.get_options().is_some());
    let headers = request.get_headers();
    say("get-headers", entries(&headers));
    let immutable = |result: Result<(), HeaderError>| matches!(result, Err(HeaderError::Immutable));
    say("append to a message is refused", immutable(headers.append("y", b"1")));
    say("set of a message is refused", immutable(headers.set("y", &bytes(&["1"]))));
    say("delete of a message is refused", immutable(headers.delete("x")));
    say("append to a copy of it", headers.clone().append("y", b"1"));
    for method in [
        Method::Post,
        Method::Connect,
        Method::Other("BREW".to_owned()),
        Method::Other("a b".to_owned()),
        Method::Other(String::new()),
    ] {
        say(&format!("set-method {method:?}"), request.set_method(&method));
        say("get-method", request.get_method());
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
        None,
    ] {
        say(&format!("set-path-with-query {path:?}"), request.set_path_with_query(path));
        say("get-path-with-query", request.get_path_with_query());
    }
    for scheme in [
        Some(Scheme::Http),
        Some(Scheme::Other("ftp".to_owned())),
        Some(Scheme::Other("a b".to_owned())),
        Some(Scheme::Other(String::new())),
        None,
    ] {
        say(&format!("set-scheme {scheme:?}"), request.set_scheme(scheme.as_ref()));
        say("get-scheme", request.get_scheme());
    }
    for authority in [
        Some("example.org"),
        Some("example.org:8080"),
        Some("[::1]:80"),
        Some("user@example.org"),
        Some("example.org:"),
        Some("example.org:99999"),
        Some("a b"),
        Some(""),
        Some("a/b"),
        Some("a\n"),
        Some("a:1:2"),
        None,
    ] {
        say(&format!("set-authority {authority:?}"), request.set_authority(authority));
        say("get-authority", request.get_authority());
    }
}

fn response() {
    let response = Response::new(Fields::new(), None, wit_future::new(|| Ok(None)).1).0;
    say("get-status-code", response.get_status_code());
    for status in [0, 99, 100, 204, 404, 599, 600, 999, 1000, u16::MAX] {
        say(&format!("set-status-code {status}"), response.set_status_code(status));
        say("get-status-code", response.get_status_code());
    }
    say("get-headers of a response", entries(&response.get_headers()));
}

fn options() {
    let options = RequestOptions::new();
    for time in [None, Some(0), Some(5_000_000_000), Some(u64::MAX)] {
        say(&format!("set-connect-timeout {time:?}"), options.set_connect_timeout(time));
        say("get-connect-timeout", options.get_connect_timeout());
        say(&format!("set-first-byte-timeout {time:?}"), options.set_first_byte_timeout(time));
        say("get-first-byte-timeout", options.get_first_byte_timeout());
        say(&format!("set-between-bytes-timeout {time:?}"), options.set_between_bytes_timeout(time));
        say("get-between-bytes-timeout", options.get_between_bytes_timeout());
    }
    let _ = options.set_connect_timeout(Some(7));
    let copy = options.clone();
    let request = new_request(Fields::new(), Some(options));
    let given = request.get_options().expect("options");
    say("get-options", given.get_connect_timeout());
    say("set-connect-timeout of a message", given.set_connect_timeout(None));
    say("set-connect-timeout of a copy", copy.set_connect_timeout(None));
    say("set-connect-timeout of a copy of a message's", given.clone().set_connect_timeout(None));
}

async fn bodies() {
    let (mut writer, reader) = wit_stream::new();
    let (trailers_writer, trailers_reader) = wit_future::new(|| Ok(None));
    let (response, _sent) = Response::new(Fields::new(), Some(reader), trailers_reader);
    let (body, trailers) = Response::consume_body(response, wit_future::new(|| Ok(())).1);
    let trailer = Fields::from_list(&[("x-sum".to_owned(), b"1".to_vec())]).expect("fields");
    let (left, read, came) = futures::join!(
        async {
            let left = writer.write_all(b"contents".to_vec()).await.len();
            drop(writer);
            let _ = trailers_writer.write(Ok(Some(trailer))).await;
            left
        },
        async { String::from_utf8(body.collect().await) },
        async { trailers.await.map(|trailers| trailers.map(|trailers| entries(&trailers))) }
    );
    say("consume-body of a response that was made", (left, read, came));
    let (request, sent) = Request::new(Fields::new(), None, wit_future::new(|| Ok(None)).1, None);
    let (body, trailers) = Request::consume_body(request, wit_future::new(|| Ok(())).1);
    say("consume-body of a request without a body", (body.collect().await, trailers.await.map(|trailers| trailers.is_some())));
    say("what became of it", sent.await);
}

async fn send(scheme: Option<Scheme>, authority: Option<&str>) -> Result<u16, ErrorCode> {
    let request = new_request(Fields::new(), None);
    let _ = (request.set_scheme(scheme.as_ref()), request.set_authority(authority), request.set_path_with_query(Some("/")));
    client::send(request).await.map(|response| response.get_status_code())
}
