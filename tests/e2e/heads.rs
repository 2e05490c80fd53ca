//! What a function learns of a request beside its body, and what it says about its reply.

use crate::http::{ask as ask_http2, connect, run, speak_http2};
use crate::{entry, entry_with};
use hyper::Method;
use serde_json::json;
use sledge_tests::http::{Raw, Reply};
use sledge_tests::server::Server;

fn server() -> Server {
    let head = entry_with("head", "head.c", &json!({ "methods": ["POST", "PUT", "GET"], "route": "/head" }));
    Server::start(json!({ "workers": 1, "functions": [head, entry("caller", "caller.c")] }))
}

fn ask(server: &Server, head: &str, body: &str) -> Reply {
    let mut raw = Raw::connect(server.address);
    raw.send(format!("{head}content-length: {}\r\n\r\n{body}", body.len()));
    raw.reply().expect("a reply")
}

fn lines(reply: &Reply) -> Vec<String> {
    reply.text().lines().map(str::to_owned).collect()
}

#[test]
fn what_a_request_says_can_be_read() {
    let server = server();
    let head = "PUT /head?a=b%20c&d HTTP/1.1\r\nhost: here\r\nX-One: 1\r\nx-two: 2\r\nx-one: again\r\n";
    let reply = ask(&server, head, "method\ntarget\nheader x-ONE\nheader x-three\nheader bad name\nheader {\nheaders\nfault");
    let expected = ["PUT", "/head?a=b%20c&d", "1, again", "error 44", "error 44", "error 28"];
    let lines = lines(&reply);
    assert_eq!(lines[..6], expected, "{lines:?}");
    for header in ["host=here ", "x-one=1 ", "x-one=again ", "x-two=2 ", "content-length="] {
        assert!(lines[6].contains(header), "{header}: {lines:?}");
    }
    assert_eq!(lines[7], "-21 -21");
    // A function that another function called has none.
    let called = server.client().post("/caller", "invoke head method\ninvoke head status 404");
    assert_eq!(called.text(), "9 error 58\n\n2 0\n\n");
    server.stop();
}

#[test]
fn status_and_headers_of_a_reply_are_the_functions() {
    let server = server();
    let head = "POST /head HTTP/1.1\r\nhost: a\r\n";
    let reply = ask(&server, head, "status 418\nset content-type text/tea\nset x-a 1\nset x-a 2\nadd x-b 1\nadd x-b 2");
    assert_eq!((reply.status, lines(&reply)), (418, vec!["0".to_owned(); 6]));
    assert_eq!((reply.header("content-type"), reply.header("x-a")), (Some("text/tea"), Some("2")));
    let refused = "status 99\nstatus 600\nstatus 101\nset content-length 3\nset Connection close\nset transfer-encoding chunked\nset a{ x\nset x \u{7f}";
    let reply = ask(&server, head, refused);
    assert_eq!(
        (reply.status, lines(&reply)),
        (200, ["-28", "-28", "-28", "-58", "-58", "-58", "-28", "-28"].map(str::to_owned).to_vec())
    );
    let many = ask(&server, head, &format!("many x {}\nmany x 1", "v".repeat(1_000)));
    assert_eq!(lines(&many), ["16 -1", "41 -1"]);
    // Of such a reply there is no body.
    let empty = ask(&server, head, "status 204");
    assert_eq!((empty.status, empty.body.len()), (204, 0));
    assert_eq!(lines(&ask(&server, head, "method")), ["POST"], "the next request has nothing of it");
    server.stop();
}

/// A cookie each, which no comma could separate (RFC 9110, 5.3).
#[test]
fn a_header_that_a_reply_repeats_keeps_all_its_values() {
    let server = server();
    let cookies = ["a=1", "b=2; Expires=Thu, 01 Jan 2099 00:00:00 GMT", "a=1"];
    let lines = cookies.map(|cookie| format!("add set-cookie {cookie}")).join("\n");
    let reply = ask(&server, "POST /head HTTP/1.1\r\nhost: a\r\n", &lines);
    let values: Vec<_> = reply.headers.iter().filter(|(name, _)| name == "set-cookie").map(|(_, value)| value).collect();
    assert_eq!(values, cookies);
    run(async {
        let sender = speak_http2(connect(&server).await).await;
        let reply = ask_http2(&sender, Method::POST, "/head", lines).await;
        let values: Vec<_> = reply.headers.get_all("set-cookie").iter().collect();
        assert_eq!(values, cookies);
    });
    server.stop();
}
