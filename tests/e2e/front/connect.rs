//! Connect: unary calls and streams, in bytes and in JSON, and GET.

use super::{Application, config, framed, packed, shop, text};
use crate::LISTENERS;
use serde_json::{Value, json};
use sledge_tests::http::{Client, Raw, Reply};

const PROTO: &str = "application/proto";
const JSON: &str = "application/json";
const PROTO_STREAM: &str = "application/connect+proto";
const JSON_STREAM: &str = "application/connect+json";

fn post(client: &Client, path: &str, ty: &str, body: &[u8], more: &[(&str, &str)]) -> Reply {
    let headers = [&[("content-type", ty), ("connect-protocol-version", "1")], more].concat();
    client.try_post(path, body, &headers).expect("a reply")
}

fn get(client: &Client, query: &str) -> Reply {
    client.try_request("GET", &format!("/shop.Echo/{query}"), b"", &[]).expect("a reply")
}

/// The envelopes of a stream, the last one as JSON.
fn envelopes(reply: &Reply) -> (Vec<Vec<u8>>, Value) {
    assert_eq!(reply.status, 200, "{reply:?}");
    let (mut rest, mut messages) = (&reply.body[..], Vec::new());
    loop {
        let (head, behind) = rest.split_at(5);
        let (message, behind) = behind.split_at(u32::from_be_bytes(head[1..].try_into().expect("four bytes")) as usize);
        rest = behind;
        match head[0] {
            0 => messages.push(message.to_vec()),
            flags => {
                assert!(flags == 2 && rest.is_empty(), "{flags} {rest:?}");
                return (messages, serde_json::from_slice(message).expect("JSON"));
            }
        }
    }
}

/// An error of a unary call: status, code and message.
#[track_caller]
fn failed(reply: &Reply) -> (u16, String, String) {
    assert_eq!(reply.header("content-type"), Some(JSON), "{reply:?}");
    let json = reply.json();
    let part = |name: &str| json[name].as_str().unwrap_or_default().to_owned();
    (reply.status, part("code"), part("message"))
}

fn failure(status: u16, code: &str, message: &str) -> (u16, String, String) {
    (status, code.to_owned(), message.to_owned())
}

#[test]
fn unary_calls_are_requests_whose_bodies_are_messages() {
    for listeners in LISTENERS {
        let mut config = config(&[shop(&json!({}))]);
        config["listeners"] = listeners.into();
        let application = Application::new(&config);
        let server = application.start();
        let client = server.client();
        let message = text(1, "hello");
        let reply = post(&client, "/shop.Echo/Unary", PROTO, &message, &[("x-in", "7"), ("x-in-bin", "AAE")]);
        assert_eq!((reply.status, reply.header("content-type"), &reply.body), (200, Some(PROTO), &message));
        assert_eq!(
            ["x-out", "x-out-bin", "trailer-x-behind"].map(|name| reply.header(name)),
            [Some("7"), Some("AAE"), Some("7")]
        );
        assert!(reply.header("grpc-status").is_none() && reply.header("trailer-grpc-status").is_none(), "{reply:?}");
        let empty = post(&client, "/shop.Echo/Unary", PROTO, b"", &[]);
        assert_eq!((empty.status, empty.body.len()), (200, 0));
        let large = text(1, &"x".repeat(100)).repeat(10_000);
        assert!(post(&client, "/shop.Echo/Unary", PROTO, &large, &[]).body == large);

        let said = json!({ "text": "hi", "count": "-5", "raw": "AAE=", "at": "2026-01-02T03:04:05Z", "inner": { "value": 3 }, "colour": "BLUE" });
        for ty in [JSON, "application/json; charset=utf-8"] {
            let reply = post(&client, "/shop.Echo/Unary", ty, said.to_string().as_bytes(), &[]);
            assert_eq!((reply.status, reply.header("content-type"), reply.json()), (200, Some(JSON), said.clone()));
        }
        // Names as in the .proto file, numbers in place of texts, and fields that the message does not have.
        let other = br#"{ "count": 7, "colour": 1, "nothing": [{}], "[shop.note]": "n" }"#;
        let reply = post(&client, "/shop.Echo/Unary", JSON, other, &[]);
        assert_eq!(reply.json(), json!({ "count": "7", "colour": "BLUE", "[shop.note]": "n" }));

        // The function sees plain gRPC.
        let more = [("connect-timeout-ms", "20000"), ("accept-encoding", "gzip"), ("connect-accept-encoding", "gzip")];
        let seen = post(&client, "/shop.Echo/Head", JSON, b"{}", &more);
        let headers = ["x-type", "x-te", "x-timeout", "x-connect", "x-encoding"].map(|name| seen.header(name));
        assert_eq!(headers, [Some("application/grpc+proto"), Some("trailers"), Some("20000000u"), None, None]);
        // So do the server's own services.
        let health = post(&client, "/grpc.health.v1.Health/Check", JSON, br#"{ "service": "shop.Echo" }"#, &[]);
        assert_eq!((health.status, health.json()), (200, json!({ "status": "SERVING" })));
        let unknown = post(&client, "/grpc.health.v1.Health/Check", JSON, br#"{ "service": "x" }"#, &[]);
        assert_eq!(failed(&unknown), failure(404, "not_found", "unknown service `x`"));
        server.stop();
    }
}

#[test]
fn what_fails_is_an_error_in_json() {
    let application = Application::new(&config(&[shop(&json!({ "message_bytes_max": 1_000 }))]));
    let server = application.start();
    let client = server.client();
    let reply = post(&client, "/shop.Echo/Fail", PROTO, b"", &[("x-in", "7")]);
    let details = json!([{ "type": "shop.Text", "value": "CgN3aHk" }]);
    let expected = json!({ "code": "failed_precondition", "message": "not now, \u{e4}", "details": details });
    assert_eq!((reply.status, reply.json()), (400, expected));
    assert_eq!(["x-out", "trailer-x-behind"].map(|name| reply.header(name)), [Some("7"), Some("7")]);
    let call = |method: &str, ty: &str, body: &[u8], more: &[(&str, &str)]| {
        failed(&post(&client, &format!("/shop.Echo/{method}"), ty, body, more))
    };
    assert_eq!(call("Trap", PROTO, b"", &[]), failure(500, "internal", "function `shop.echo` trapped: unreachable"));
    assert_eq!(call("Nothing", PROTO, b"", &[]), failure(501, "unimplemented", ""));
    for wrong in [&b""[..], b"{", b"[]", br#"{"count": "x"}"#, b"{} {}", b"\xff"] {
        let (status, code, message) = call("Unary", JSON, wrong, &[]);
        assert!(status == 400 && code == "invalid_argument" && !message.is_empty(), "{wrong:?}");
    }
    for (name, value) in
        [("connect-protocol-version", "2"), ("connect-timeout-ms", "soon"), ("connect-timeout-ms", "12345678901")]
    {
        let headers = [("content-type", PROTO), (name, value)];
        let reply = client.try_post("/shop.Echo/Unary", b"", &headers).expect("a reply");
        assert_eq!(failed(&reply).1, "invalid_argument", "{name}: {value}");
    }
    assert_eq!(call("Unary", PROTO, b"", &[("connect-timeout-ms", "0")]).1, "deadline_exceeded");
    let unknown = failure(501, "unimplemented", "unknown compression `br`; known: gzip, identity");
    assert_eq!(call("Unary", PROTO, b"x", &[("content-encoding", "br")]), unknown);
    let large = failure(429, "resource_exhausted", "a message of more than 1000 bytes");
    assert_eq!(call("Unary", PROTO, &[0; 1_001], &[]), large);
    // Few bytes that become many.
    let bomb = packed(&vec![0; 50 << 20]);
    let reply = post(&client, "/shop.Echo/Unary", PROTO, &bomb[..900], &[("content-encoding", "gzip")]);
    assert_eq!(failed(&reply), failure(429, "resource_exhausted", "a message of 1001 bytes; at most 1000 are taken"));
    assert_eq!(call("Unary", PROTO, b"no gzip", &[("content-encoding", "gzip")]).1, "invalid_argument");
    let message = text(1, &"x".repeat(100)).repeat(9);
    let reply = post(&client, "/shop.Echo/Unary", PROTO, &packed(&message), &[("content-encoding", "gzip")]);
    assert!(reply.status == 200 && reply.body == message, "{reply:?}");
    for path in ["/shop.Ledger/Book", "/shop.Nothing/M"] {
        assert_eq!(post(&client, path, PROTO, b"", &[]).status, 404, "{path}");
    }
    server.stop();
}

#[test]
fn methods_without_effects_are_called_with_get() {
    let application = Application::new(&config(&[shop(&json!({}))]));
    let server = application.start();
    let client = server.client();
    let json = "connect=v1&encoding=json&message=%7B%22text%22%3A%22hi%22%7D";
    let reply = get(&client, &format!("Unary?{json}"));
    assert_eq!((reply.status, reply.header("content-type"), reply.json()), (200, Some(JSON), json!({ "text": "hi" })));
    for query in ["connect=v1&encoding=proto&base64=1&message=CgJoaQ", "encoding=proto&base64=1&message=CgJoaQ%3D%3D"] {
        let reply = get(&client, &format!("Unary?{query}"));
        assert_eq!((reply.status, reply.header("content-type"), &reply.body), (200, Some(PROTO), &text(1, "hi")), "{query}");
    }
    assert_eq!(failed(&get(&client, "Unary?connect=v1&encoding=json&message=x")).1, "invalid_argument");
    assert_eq!(failed(&get(&client, "Unary?connect=v1&encoding=json&message=x&compression=br")).1, "unimplemented");
    // Others may not, and what is no message is none.
    for wrong in
        [format!("Head?{json}"), format!("Chat?{json}"), "Unary?connect=v1&encoding=xml&message=".to_owned(), "Unary".to_owned()]
    {
        assert_eq!(get(&client, &wrong).status, 405, "{wrong}");
    }
    let verb = client.try_request("DELETE", "/shop.Echo/Unary", b"x", &[("content-type", PROTO)]).expect("a reply");
    assert_eq!((verb.status, verb.header("allow")), (405, Some("POST")));
    server.stop();
}

#[test]
fn streams_are_envelopes_of_which_the_last_says_how_it_ended() {
    let application = Application::new(&config(&[shop(&json!({ "message_bytes_max": 1_000 }))]));
    let server = application.start();
    let client = server.client();
    let [one, two] = [text(1, "one"), text(1, "two")];
    let call = |ty: &str, body: &[u8], more: &[(&str, &str)]| envelopes(&post(&client, "/shop.Echo/Chat", ty, body, more));
    let reply = post(&client, "/shop.Echo/Chat", PROTO_STREAM, &[framed(0, &one), framed(0, &two)].concat(), &[("x-in", "7")]);
    assert_eq!((reply.header("content-type"), reply.header("x-out")), (Some(PROTO_STREAM), Some("7")));
    let end = json!({ "metadata": { "x-behind": ["7"] } });
    assert_eq!(envelopes(&reply), (vec![one.clone(), two.clone()], end.clone()));
    assert_eq!(call(PROTO_STREAM, b"", &[]), (vec![], end.clone()));
    let (messages, _) = call(JSON_STREAM, &[framed(0, br#"{"text":"one"}"#), framed(0, br#"{ "text": "two" }"#)].concat(), &[]);
    assert_eq!(messages, [br#"{"text":"one"}"#, br#"{"text":"two"}"#]);
    let gzip = [("connect-content-encoding", "gzip")];
    let (messages, _) = call(PROTO_STREAM, &[framed(1, &packed(&one)), framed(0, &two)].concat(), &gzip);
    assert_eq!(messages, [one.clone(), two]);

    let bomb = packed(&vec![0; 50 << 20]);
    for (ty, body, more, code) in [
        (JSON_STREAM, framed(0, b"{"), &[][..], "invalid_argument"),
        (PROTO_STREAM, framed(1, &packed(&one)), &[], "internal"),
        (PROTO_STREAM, framed(2, b"{}"), &[], "invalid_argument"),
        (PROTO_STREAM, framed(0, &one).slice(..7), &[], "invalid_argument"),
        (PROTO_STREAM, framed(0, &[0; 1_001]), &[], "resource_exhausted"),
        (PROTO_STREAM, framed(1, &bomb[..900]), &gzip, "resource_exhausted"),
        (PROTO_STREAM, framed(0, &one), &[("connect-content-encoding", "br")], "unimplemented"),
        (PROTO_STREAM, framed(0, &one), &[("connect-timeout-ms", "x")], "invalid_argument"),
        (PROTO_STREAM, framed(0, &one), &[("connect-timeout-ms", "0")], "deadline_exceeded"),
    ] {
        let (messages, end) = call(ty, &body, more);
        assert_eq!((messages.len(), end["error"]["code"].as_str()), (0, Some(code)), "{end}");
    }
    // What is no stream is not called so, nor the other way.
    for (method, ty) in [("Unary", PROTO_STREAM), ("Chat", PROTO), ("Chat", JSON)] {
        let reply = post(&client, &format!("/shop.Echo/{method}"), ty, b"", &[]);
        assert!(!reply.header("content-type").is_some_and(|ty| ty.contains("connect") || ty == PROTO), "{reply:?}");
    }
    // Each message comes when it is there.
    let mut raw = Raw::connect(server.address);
    raw.send(format!(
        "POST /shop.Echo/Chat HTTP/1.1\r\nhost: test\r\ncontent-type: {JSON_STREAM}\r\ntransfer-encoding: chunked\r\n\r\n"
    ));
    let said = framed(0, br#"{"text":"one"}"#);
    raw.send([format!("{:x}\r\n", said.len()).as_bytes(), &said, b"\r\n"].concat());
    assert_eq!(raw.head().expect("a head").status, 200);
    let heard = [format!("{:X}\r\n", said.len()).as_bytes(), &said, b"\r\n"].concat();
    assert_eq!(raw.bytes(heard.len()), heard);
    drop(raw);
    server.stop();
}
