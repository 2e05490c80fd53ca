//! Web pages of other origins, and what the server lets them do.

use crate::http::{ask as ask_http2, connect, run, speak_http2};
use crate::{entry, entry_with};
use hyper::Method;
use serde_json::{Value, json};
use sledge_tests::http::{Raw, Reply};
use sledge_tests::server::Server;

const SHOP: &str = "https://shop.example";

/// A function at the route `/head` with that `cors`, which answers OPTIONS, too; and others.
fn server(cors: &Value) -> Server {
    let methods = json!(["GET", "POST", "OPTIONS"]);
    let head = entry_with("head", "head.c", &json!({ "methods": methods, "cors": cors }));
    let traps = entry_with("traps", "traps.wat", &json!({ "cors": cors }));
    Server::start(json!({ "workers": 1, "functions": [head, traps, entry("echo", "echo.wat")] }))
}

/// The reply to a request with these lines in its head.
fn ask(server: &Server, start: &str, lines: &[(&str, &str)], body: &str) -> Reply {
    let mut raw = Raw::connect(server.address);
    let lines: String = lines.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    raw.send(format!("{start} HTTP/1.1\r\nhost: here\r\ncontent-length: {}\r\n{lines}\r\n{body}", body.len()));
    raw.reply().expect("a reply")
}

/// What a reply says of CORS, without the common beginning of the names; and `vary`.
fn says(reply: &Reply) -> Vec<(String, String)> {
    let ours = |(name, value): &(String, String)| {
        let name = name.strip_prefix("access-control-").or_else(|| (name == "vary").then_some("vary"))?;
        Some((name.to_owned(), value.clone()))
    };
    let mut said: Vec<_> = reply.headers.iter().filter_map(ours).collect();
    said.sort();
    said
}

#[track_caller]
fn assert_says(reply: &Reply, expected: &[(&str, &str)]) {
    let expected: Vec<_> = expected.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    assert_eq!(says(reply), expected, "{reply:?}");
}

fn preflight(server: &Server, path: &str, origin: &str) -> Reply {
    let wanted = [("origin", origin), ("access-control-request-method", "POST"), ("access-control-request-headers", "x-a, x-b")];
    ask(server, &format!("OPTIONS {path}"), &wanted, "")
}

const ASKED: (&str, &str) = ("vary", "access-control-request-method, access-control-request-headers");

#[test]
fn a_preflight_is_answered_by_the_server() {
    let cors = json!({ "origins": ["https://other.example", SHOP], "headers": ["X-A", "content-type"], "exposed_headers": ["x-b"],
                       "credentials": true, "max_age_s": 60, "methods": ["POST", "HEAD"] });
    let server = server(&cors);
    let expected = [
        ("allow-credentials", "true"),
        ("allow-headers", "X-A, content-type"),
        ("allow-methods", "POST, HEAD"),
        ("allow-origin", SHOP),
        ("max-age", "60"),
        ASKED,
        ("vary", "origin"),
    ];
    for path in ["/head", "/traps"] {
        let reply = preflight(&server, path, SHOP);
        assert_eq!((reply.status, reply.body.len()), (204, 0), "{reply:?}");
        assert_says(&reply, &expected);
    }
    for stranger in ["https://evil.example", "null", "http://shop.example", "https://shop.example.evil.example"] {
        let reply = preflight(&server, "/head", stranger);
        assert_eq!(reply.status, 204);
        assert_says(&reply, &[("vary", "origin")]);
    }
    // The function has seen none of them, and sees what is no preflight.
    let metrics = server.admin().get("/metrics").text();
    assert!(!metrics.contains("sledge_requests_total{function=\"head\""), "{metrics}");
    assert_eq!(ask(&server, "OPTIONS /head", &[("origin", SHOP)], "method").text(), "OPTIONS\n");
    // Other functions are none of its concern.
    assert_says(&preflight(&server, "/echo", SHOP), &[]);
    server.stop();
}

#[test]
fn replies_say_which_page_may_see_them() {
    let server = server(&json!({ "origins": [SHOP], "exposed_headers": ["x-a", "x-b"], "credentials": true }));
    let page = [("origin", SHOP)];
    let allowed = [("allow-credentials", "true"), ("allow-origin", SHOP), ("expose-headers", "x-a, x-b"), ("vary", "origin")];
    assert_says(&ask(&server, "POST /head", &page, "method"), &allowed);
    // Failures, too: a page sees what went wrong.
    for (start, body, status) in [("POST /traps", "u", 500), ("PUT /head", "", 405)] {
        let reply = ask(&server, start, &page, body);
        assert_eq!(reply.status, status, "{reply:?}");
        assert_says(&reply, &allowed);
    }
    // What the function says itself does not count, and is not said twice.
    let own = "set access-control-allow-origin *\nset access-control-allow-credentials maybe\nset vary Origin, accept";
    let reply = ask(&server, "POST /head", &page, own);
    assert_says(&reply, &[allowed[0], allowed[1], allowed[2], ("vary", "Origin, accept")]);
    for other in [&[("origin", "https://evil.example")][..], &[]] {
        assert_says(&ask(&server, "POST /head", other, "set access-control-allow-origin *"), &[("vary", "origin")]);
    }
    run(async {
        let client = speak_http2(connect(&server).await).await;
        let reply = ask_http2(&client, Method::POST, "/head", "method").await;
        assert_eq!(
            (&reply.headers["vary"], reply.headers.get("access-control-allow-origin")),
            (&"origin".parse().unwrap(), None)
        );
    });
    server.stop();
}

#[test]
fn all_origins_get_the_same() {
    let server = server(&json!({ "origins": ["*"], "headers": ["*"], "exposed_headers": ["*"] }));
    for page in [&[("origin", SHOP)][..], &[("origin", "null")], &[]] {
        assert_says(&ask(&server, "POST /head", page, "method"), &[("allow-origin", "*"), ("expose-headers", "*")]);
    }
    let expected = [
        ("allow-headers", "x-a, x-b"),
        ("allow-methods", "GET, HEAD, POST, OPTIONS"),
        ("allow-origin", "*"),
        ("max-age", "7200"),
        ASKED,
    ];
    assert_says(&preflight(&server, "/head", SHOP), &expected);
    server.stop();
}

#[test]
fn a_function_without_cors_says_what_it_wants() {
    let server = Server::start(json!({ "functions": [entry("head", "head.c")] }));
    let reply = ask(&server, "POST /head", &[("origin", SHOP)], "set access-control-allow-origin https://own.example");
    assert_says(&reply, &[("allow-origin", "https://own.example")]);
    let reply = preflight(&server, "/head", SHOP);
    assert_eq!(reply.status, 204);
    assert_says(&reply, &[]);
    server.stop();
}
