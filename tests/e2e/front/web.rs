//! gRPC-Web: over HTTP/1.1 and HTTP/2, as bytes and as text, and what web pages of other origins may do.

use super::{Application, config, connect, framed, shop, text};
use crate::http::run;
use crate::{LISTENERS, entry_with};
use http_body_util::BodyExt as _;
use http_body_util::channel::Channel;
use hyper::{Request, Version};
use serde_json::json;
use sledge_tests::http::{Client, Raw, Reply};
use sledge_tests::server::Server;

const WEB: &str = "application/grpc-web+proto";
const TEXT: &str = "application/grpc-web-text+proto";

/// What a client gets: the reply, its messages, and its trailers line by line.
struct Got {
    reply: Reply,
    messages: Vec<Vec<u8>>,
    trailers: Vec<String>,
}

fn got(reply: Reply) -> Got {
    assert_eq!(reply.status, 200, "{reply:?}");
    let ty = reply.header("content-type").expect("a type");
    let body = if ty == TEXT { decoded(&reply.text()) } else { reply.body.clone() };
    let (mut rest, mut messages, mut trailers) = (&body[..], Vec::new(), Vec::new());
    while let Some((head, behind)) = rest.split_at_checked(5) {
        let length = u32::from_be_bytes(head[1..].try_into().expect("four bytes")) as usize;
        let (message, behind) = behind.split_at(length);
        match head[0] {
            0x80 => {
                assert!(behind.is_empty(), "trailers are the last");
                let lines = String::from_utf8(message.to_vec()).expect("text");
                trailers = lines.split_terminator("\r\n").map(str::to_owned).collect();
                trailers.sort();
            }
            _ => messages.push(message.to_vec()),
        }
        rest = behind;
    }
    assert!(rest.is_empty(), "{rest:?}");
    Got { reply, messages, trailers }
}

/// Base64 of which each piece may be padded.
fn decoded(text: &str) -> Vec<u8> {
    let digit = |c: u8| match c {
        b'A'..=b'Z' => c - b'A',
        b'a'..=b'z' => c - b'a' + 26,
        b'0'..=b'9' => c - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => 0,
    };
    let mut bytes = Vec::new();
    for group in text.as_bytes().chunks(4) {
        let number = group.iter().fold(0_u32, |number, c| number << 6 | u32::from(digit(*c)));
        let padding = group.iter().filter(|c| **c == b'=').count();
        bytes.extend_from_slice(&number.to_be_bytes()[1..4 - padding]);
    }
    bytes
}

fn encoded(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let number = group.iter().chain(&[0, 0]).take(3).fold(0, |number, byte| number << 8 | usize::from(*byte));
        for at in 0..4 {
            text.push(if at > group.len() { '=' } else { char::from(DIGITS[number >> (18 - 6 * at) & 63]) });
        }
    }
    text
}

fn post(client: &Client, path: &str, ty: &str, body: &[u8], more: &[(&str, &str)]) -> Reply {
    let headers = [&[("content-type", ty), ("x-grpc-web", "1")], more].concat();
    client.try_post(path, body, &headers).expect("a reply")
}

fn start(application: &Application) -> (Server, Client) {
    let server = application.start();
    let client = server.client();
    (server, client)
}

#[test]
fn calls_are_made_by_browsers_as_bytes_and_as_text() {
    for listeners in LISTENERS {
        let mut config = config(&[shop(&json!({}))]);
        config["listeners"] = listeners.into();
        let (server, client) = start(&Application::new(&config));
        let message = text(1, "hello");
        let large = text(1, &"x".repeat(100)).repeat(3_000);
        for ty in [WEB, TEXT] {
            let say =
                |message: &[u8]| if ty == WEB { framed(0, message).to_vec() } else { encoded(&framed(0, message)).into_bytes() };
            let call = |method: &str, message: &[u8]| got(post(&client, &format!("/shop.Echo/{method}"), ty, &say(message), &[]));
            for message in [&message, &large, &Vec::new()] {
                for method in ["Unary", "Chat"] {
                    let got = call(method, message);
                    assert_eq!(got.reply.header("content-type"), Some(ty));
                    assert!(got.messages == [&message[..]], "{ty} {method} {}", message.len());
                    assert_eq!(got.trailers, ["grpc-status: 0", "x-behind: 7"]);
                }
            }
            let failed = call("Fail", b"");
            assert_eq!(
                failed.trailers[..2],
                [
                    "grpc-message: not%20now%2C %C3%A4",
                    "grpc-status-details-bin: CAkaJgoddHlwZS5nb29nbGVhcGlzLmNvbS9zaG9wLlRleHQSBQoDd2h5"
                ]
            );
            assert_eq!(failed.trailers[2..], ["grpc-status: 9", "x-behind: 7"]);
            // The function sees nothing of all that.
            let seen = call("Head", &message).reply;
            assert_eq!((seen.header("x-type"), seen.header("x-te")), (Some("application/grpc+proto"), Some("trailers")));
            // What the server fails by itself is in the head.
            let trapped = call("Trap", &message).reply;
            assert_eq!(
                (trapped.header("grpc-status"), trapped.header("grpc-message"), trapped.body.len()),
                (Some("13"), Some("function `shop.echo` trapped: unreachable"), 0)
            );
            let late = post(&client, "/shop.Echo/Unary", ty, &say(&message), &[("grpc-timeout", "soon")]);
            assert_eq!(late.header("grpc-status"), Some("13"), "{late:?}");
            // The server's own services, too.
            let health = got(post(&client, "/grpc.health.v1.Health/Check", ty, &say(b""), &[]));
            assert_eq!((health.messages, health.trailers), (vec![vec![8, 1]], vec!["grpc-status: 0".to_owned()]));
        }
        let broken = post(&client, "/shop.Echo/Unary", TEXT, b"AAAA=", &[]);
        assert_eq!(broken.header("grpc-status"), Some("13"), "{broken:?}");
        for path in ["/shop.Ledger/Book", "/shop.Nothing/M", "/grpc.health.v1.Health/Other"] {
            let unknown = post(&client, path, WEB, &framed(0, b""), &[]);
            assert_eq!((unknown.status, unknown.header("grpc-status")), (200, Some("12")), "{path}");
        }
        server.stop();
    }
}

#[test]
fn streams_come_piece_by_piece_in_every_version() {
    let (server, _) = start(&Application::new(&config(&[shop(&json!({}))])));
    // Without an end of the request: the reply comes meanwhile.
    for (ty, said, heard) in [(WEB, framed(0, b"abc"), framed(0, b"abc")), (TEXT, "AAAAAANhYmM=".into(), "AAAAAANhYmM=".into())] {
        let mut raw = Raw::connect(server.address);
        let head =
            format!("POST /shop.Echo/Chat HTTP/1.1\r\nhost: test\r\ncontent-type: {ty}\r\ntransfer-encoding: chunked\r\n\r\n");
        raw.send(head);
        let mut reply = None;
        let mut came = Vec::new();
        for count in 1..=2 {
            raw.send(format!("{:x}\r\n", said.len()));
            raw.send(&said);
            raw.send("\r\n");
            let reply = reply.get_or_insert_with(|| raw.head().expect("a head"));
            assert_eq!((reply.status, reply.header("content-type"), reply.header("trailer")), (200, Some(ty), None));
            // The next message is sent when this one is back: two that are there at once may come as one piece.
            while came.windows(heard.len()).filter(|window| *window == &heard[..]).count() < count {
                came.extend(raw.bytes(1));
            }
        }
        raw.send("0\r\n\r\n");
        while !came.ends_with(b"\r\n0\r\n\r\n") {
            came.extend(raw.bytes(1));
        }
        run(async {
            let connection = connect(server.address).await;
            let (mut requests, body) = Channel::new(4);
            requests.send_data(said.clone()).await.expect("sent");
            let request = Request::post("http://test/shop.Echo/Chat").header("content-type", ty).body(body).expect("a request");
            let response = connection.clone().send_request(request).await.expect("a head");
            assert_eq!(response.version(), Version::HTTP_2);
            let mut replies = response.into_body();
            let first = replies.frame().await.expect("more").expect("more").into_data().expect("a message");
            assert_eq!(first, heard);
            drop(requests);
            let rest = replies.collect().await.expect("the rest");
            assert!(rest.trailers().is_none_or(|trailers| trailers.is_empty()), "they are in the body");
            let rest = rest.to_bytes();
            let rest = if ty == WEB { rest.to_vec() } else { decoded(std::str::from_utf8(&rest).expect("text")) };
            assert_eq!(rest[0], 0x80, "{rest:?}");
        });
    }
    server.stop();
}

#[test]
fn other_functions_get_what_comes() {
    let mut config = config(&[shop(&json!({}))]);
    config["functions"] = json!([entry_with("plain", "rpc.c", &json!({ "route": "/t.Callee/*" }))]);
    let (server, client) = start(&Application::new(&config));
    let reply = post(&client, "/t.Callee/Head", WEB, b"", &[]);
    assert!(String::from_utf8_lossy(&reply.body).contains(WEB), "{reply:?}");
    server.stop();
}

#[test]
fn pages_of_other_origins_may_call_where_the_application_says_so() {
    let page = "https://shop.example";
    let ask = |client: &Client, path: &str, origin: &str| {
        let headers = [
            ("origin", origin),
            ("access-control-request-method", "POST"),
            ("access-control-request-headers", "content-type,x-a"),
        ];
        client.try_request("OPTIONS", path, b"", &headers).expect("a reply")
    };
    for (origins, allowed, refused) in [
        (json!([page]), vec![page], vec!["https://other.example", "null"]),
        (json!(["*"]), vec![page, "null"], vec![]),
        (json!([]), vec![], vec![page]),
    ] {
        let (server, client) = start(&Application::new(&config(&[shop(&json!({ "cors_origins": origins }))])));
        for origin in allowed {
            let reply = ask(&client, "/shop.Echo/Unary", origin);
            assert_eq!((reply.status, reply.header("access-control-allow-origin")), (204, Some(origin)));
            assert_eq!(reply.header("access-control-allow-headers"), Some("content-type,x-a"));
            assert!(reply.header("access-control-allow-methods").is_some_and(|methods| methods.contains("POST")));
            assert!(reply.header("vary").is_some_and(|vary| vary.contains("origin")));
            assert_eq!(ask(&client, "/shop.Ledger/Book", origin).header("access-control-allow-origin"), None);
            for method in ["Unary", "Trap"] {
                let reply =
                    post(&client, &format!("/shop.Echo/{method}"), WEB, &framed(0, b""), &[("origin", origin), ("x-in", "7")]);
                assert_eq!(reply.header("access-control-allow-origin"), Some(origin));
                let exposed = reply.header("access-control-expose-headers").expect("headers");
                let name = if method == "Unary" { "x-out" } else { "grpc-status" };
                assert!(reply.header(name).is_some() && exposed.split(", ").any(|exposed| exposed == name), "{exposed}");
            }
        }
        for origin in refused {
            let reply = ask(&client, "/shop.Echo/Unary", origin);
            assert_eq!((reply.status, reply.header("access-control-allow-origin")), (204, None), "{origin}");
            let reply = post(&client, "/shop.Echo/Unary", WEB, &framed(0, b""), &[("origin", origin)]);
            assert_eq!((reply.status, reply.header("access-control-allow-origin")), (200, None), "{origin}");
        }
        server.stop();
    }
}
