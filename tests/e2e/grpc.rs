//! gRPC: calls of functions by functions and of other servers (`sledge:rpc`), and what the front says to clients that speak it.

use crate::http::{certificate, connect, run, speak_http2};
use crate::{LISTENERS, entry, entry_with, eventually, fastest_below};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http2::SendRequest;
use hyper::{HeaderMap, Request, StatusCode};
use rustix::process::Signal;
use serde_json::{Value, json};
use sledge_tests::http::Client;
use sledge_tests::server::Server;
use std::fs;
use std::time::{Duration, Instant};

/// The function that has the methods of `t.Callee`, and serves them to clients, too.
pub(crate) fn callee(more: &Value) -> Value {
    let mut callee = entry_with("callee", "rpc.c", &json!({ "route": "/t.Callee/*", "deadline_ms": 20_000, "body": "stream" }));
    more.as_object().expect("an object").iter().for_each(|(key, value)| callee[key] = value.clone());
    callee
}

/// The function that calls, whose calls of `t.Callee` go there.
fn caller(edge: &Value) -> Value {
    let edges = json!({ "t.Callee": edge, "t.Gone": { "function": "gone" } });
    entry_with("caller", "rpc.c", &json!({ "edges": edges, "deadline_ms": 20_000 }))
}

fn local() -> Value {
    json!({ "function": "callee" })
}

fn start(functions: &[Value]) -> Server {
    Server::start(json!({ "workers": 1, "kv": "memory", "functions": functions }))
}

#[track_caller]
fn lines(client: &Client, text: &str) -> Vec<String> {
    let reply = client.post("/caller", text);
    assert_eq!(reply.status, 200, "{reply:?}");
    reply.text().lines().map(str::to_owned).collect()
}

/// What calls come to, wherever the callee is; `name` is what its failures are said of.
fn answers(client: &Client) {
    let ask = |text: &str| lines(client, text);
    let text = "call t.Callee/Echo hello\ncall t.Callee/Echo\ncall t.Callee/None\ncall t.Callee/Only\ncall t.Callee/Echo on";
    assert_eq!(ask(text), ["0 |5 hello|yes 7", "0 |0 |yes 7", "5 no such thing|0 | ", "7 |0 | ", "0 |2 on|yes 7"]);
    assert_eq!(ask("call t.Callee/Silent"), ["13 the reply has ended without a grpc-status|1 x| "]);
    assert_eq!(ask("call t.Callee/Http"), ["14 HTTP status 503|0 | "]);
    assert_eq!(ask("call t.Callee/Trap"), ["13 function `callee` trapped: unreachable|0 | "]);
    assert_eq!(ask("call t.Callee/Exit"), ["13 function `callee`: status_3|0 | "]);
    assert_eq!(ask("call t.Callee/Torn"), ["13 function `callee` trapped: unreachable|4 torn| "]);
    assert_eq!(ask("call t.Callee/Large"), [format!("0 |{} {}| 7", 16 << 17, "x".repeat(40))]);
    assert_eq!(ask("call t.Other/M\ncall t.Callee/\ncall"), ["refused -44", "refused -28", "refused -28"]);
    assert_eq!(ask("stat t.Callee/Echo x"), ["0 6 4 58"]);
    assert_eq!(ask("chat t.Callee/Chat 3"), ["yes 1a 1b 1c -6 0 64 0 |0 |yes 7"]);
    for (method, head, behind) in [("Chat", "yes", " 7"), ("Duplex", "", "")] {
        let got = ask(&format!("flood t.Callee/{method} 1000000")).concat();
        assert!(got.starts_with("1000000 waited ") && got.contains(&format!("+1000000 0 |0 |{head}{behind}")), "{got}");
    }
    assert_eq!(ask("chat t.Callee/Duplex 2"), [" 1a 1b -6 0 64 0 |0 | waited"]);
    assert_eq!(ask("call t.Callee/Burst")[0].split('|').next_back(), Some(" waited"));
    assert_eq!(ask("flood t.Callee/None 30000000")[0].split(' ').nth(1), Some("64"), "the callee reads nothing");
}

#[test]
fn a_call_of_a_function_has_a_reply_or_says_why_not() {
    let server = start(&[callee(&json!({})), caller(&local())]);
    let client = server.client();
    answers(&client);
    assert_eq!(lines(&client, "call t.Gone/M"), ["12 function `gone`: no_such_route|0 | "]);
    let head = lines(&client, "call t.Callee/Head x").concat();
    assert!(head.starts_with("0 |"), "{head}");
    server.stop();
}

#[test]
fn a_call_of_one_message_has_its_reply_at_once_unless_it_waits_or_is_large() {
    let server = start(&[callee(&json!({})), caller(&local())]);
    let client = server.client();
    let ask = |text: &str| lines(&client, text);
    let text = "whole t.Callee/Echo hello\nwhole t.Callee/Echo\nwhole t.Callee/None\nwhole t.Callee/Only\nwhole t.Callee/Trap";
    let at_once = [
        "at once 0 |5 hello|yes 7",
        "at once 0 |0 |yes 7",
        "at once 5 no such thing|0 | ",
        "at once 7 |0 | ",
        "at once 13 function `callee` trapped: unreachable|0 | ",
    ];
    // Where the machine stops for a while within a quantum, the callee gets a turn of its own.
    let soon = |text: &str, at_once: &[&str]| {
        let got = (0..50).map(|_| ask(text)).find(|got| got == at_once);
        assert!(got.is_some(), "{:?} in place of {at_once:?}", ask(text));
    };
    soon(text, &at_once);
    soon("whole t.Callee/Whole hi", &["at once 0 |24 /t.Callee/Whole seven hi|yes 7"]);
    assert_eq!(ask("call t.Callee/Whole\nwhole t.Callee/Echo x")[0], "0 |22 /t.Callee/Whole seven |yes 7");
    assert_eq!(ask("whole t.Callee/Nap"), ["later 0 |0 | 7"]);
    assert_eq!(ask("whole t.Callee/Torn"), ["later 13 function `callee` trapped: unreachable|4 torn| "]);
    assert_eq!(ask("whole t.Callee/Large"), [format!("later 0 |{} {}| 7", 16 << 17, "x".repeat(40))]);
    let long = "y".repeat(1_000);
    assert_eq!(ask(&format!("whole t.Callee/Echo {long}")), [format!("later 0 |1000 {}|yes 7", &long[..40])]);
    assert_eq!(ask("whole t.Other/M\nwhole t.Callee/"), ["refused -44", "refused -28"]);
    assert_eq!(ask("whole t.Gone/M"), ["at once 12 function `gone`: no_such_route|0 | "]);
    server.stop();
}

#[test]
fn a_call_of_another_server_has_a_reply_or_says_why_not() {
    let server = start(&[callee(&json!({}))]);
    let url = format!("http://{}", server.address);
    let calling = start(&[caller(&json!({ "url": url }))]);
    let client = calling.client();
    answers(&client);
    assert_eq!(lines(&client, "within 1500 t.Callee/Late"), ["4 the call has taken longer than it may|0 | "]);
    eventually("what is late is ended there, too", || {
        has_ended(&server, "callee", "cancelled") || has_ended(&server, "callee", "deadline")
    });
    server.stop();
    let gone = lines(&client, "call t.Callee/Echo x").concat();
    assert!(gone.starts_with("14 ") && gone.ends_with("|0 | "), "{gone}");
    calling.stop();
}

#[test]
fn a_server_is_called_over_tls_where_its_url_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let (files, ..) = certificate(folder.path());
    let mut config = json!({ "workers": 1, "kv": "memory", "functions": [callee(&json!({}))] });
    files.as_object().expect("an object").iter().for_each(|(key, value)| config[key] = value.clone());
    let server = Server::start(config);
    let caller = caller(&json!({ "url": format!("https://localhost:{}", server.address.port()) }));
    let with = |ca: &Value| {
        let mut config = json!({ "workers": 1, "kv": "memory", "functions": [caller] });
        if !ca.is_null() {
            config["http_ca_file"] = ca.clone();
        }
        Server::start(config)
    };
    let trusting = with(&files["tls_certificate_file"]);
    assert_eq!(lines(&trusting.client(), "call t.Callee/Echo x\nchat t.Callee/Chat 2")[0], "0 |1 x|yes 7");
    trusting.stop();
    let other = with(&Value::Null);
    let refused = lines(&other.client(), "call t.Callee/Echo x").concat();
    assert!(refused.starts_with("14 ") && refused.contains("certificate"), "{refused}");
    other.stop();
    server.stop();
}

#[test]
fn calls_overlap() {
    let function = local();
    for edge in ["local", "remote"] {
        let server = start(&[callee(&json!({}))]);
        let url = json!({ "url": format!("http://{}", server.address) });
        let calling = start(&[callee(&json!({})), caller(if edge == "local" { &function } else { &url })]);
        // One after the other they would take 800 ms.
        let took = fastest_below(edge, Duration::from_millis(750), || {
            let begin = Instant::now();
            let got = lines(&calling.client(), "both t.Callee/Nap\nboth t.Callee/Nap");
            assert_eq!(got, ["0 0 |0 | 7", "0 |0 | 7", "0 0 |0 | 7", "0 |0 | 7"], "{edge}");
            begin.elapsed()
        });
        assert!(took >= Duration::from_millis(400), "{edge}: {took:?}");
        calling.stop();
        server.stop();
    }
}

fn has_ended(server: &Server, function: &str, outcome: &str) -> bool {
    let sample = format!("sledge_requests_total{{function=\"{function}\",tenant=\"default\",outcome=\"{outcome}\"}} 1\n");
    server.admin().get("/metrics").text().contains(&sample)
}

#[test]
fn a_call_that_is_closed_is_cancelled() {
    let server = start(&[callee(&json!({})), caller(&local())]);
    assert_eq!(lines(&server.client(), "drop t.Callee/Late"), ["closed 0"]);
    eventually("the callee ends", || has_ended(&server, "callee", "cancelled"));
    server.stop();
}

#[test]
fn a_call_has_the_time_that_it_says_and_no_more_than_its_caller() {
    let short = entry_with("caller", "rpc.c", &json!({ "edges": { "t.Callee": local() }, "deadline_ms": 2_000 }));
    for (caller, text, outcome) in [
        (caller(&local()), "within 1500 t.Callee/Late", "4 function `callee`: deadline_exceeded|0 | "),
        (caller(&local()), "within 1500 t.Callee/Tired", "4 function `callee`: deadline_exceeded|5 tired| "),
        (short, "within 10000 t.Callee/Late", "504"),
    ] {
        let server = start(&[callee(&json!({})), caller]);
        let begin = Instant::now();
        let reply = server.client().post("/caller", text);
        let got = if reply.status == 200 { reply.text() } else { reply.status.to_string() };
        assert_eq!(got.trim_end_matches('\n'), outcome, "{text}");
        assert!(begin.elapsed() < Duration::from_secs(18), "{text}");
        eventually("the callee ends", || has_ended(&server, "callee", "deadline"));
        server.stop();
    }
    let server = start(&[callee(&json!({})), caller(&local())]);
    assert_eq!(lines(&server.client(), "within 5000 t.Callee/Echo"), ["0 |0 |yes 7"]);
    server.stop();
}

#[test]
fn a_callee_that_takes_no_more_says_so() {
    let server = start(&[callee(&json!({ "concurrency_max": 1, "queue_max": 0 })), caller(&local())]);
    assert_eq!(lines(&server.client(), "both t.Callee/Nap")[1], "0 |0 | 7");
    let got = lines(&server.client(), "both t.Callee/Nap").concat();
    assert!(got.contains("8 function `callee`: queue_max|0 | "), "{got}");
    server.stop();
}

#[test]
fn a_function_has_so_many_calls_open_and_so_deep() {
    let server = start(&[callee(&json!({})), caller(&local())]);
    assert_eq!(lines(&server.client(), "many t.Callee/Echo x"), ["253 -33"]);
    server.stop();
    // Itself: its own edges lead back to it.
    let own = entry_with("caller", "rpc.c", &json!({ "route": "/caller", "edges": { "t.Deep": { "function": "caller" } } }));
    let server = start(&[own]);
    let text = |calls: usize| format!("{}x", "deep t.Deep/M ".repeat(calls));
    assert_eq!(lines(&server.client(), &text(3)), ["nothing to do"]);
    assert_eq!(lines(&server.client(), &text(4)), ["refused -32"]);
    server.stop();
}

#[test]
fn a_function_without_edges_calls_nothing_and_edges_change_while_it_is_served() {
    let plain = entry("caller", "rpc.c");
    let server = start(&[callee(&json!({})), plain]);
    let client = server.client();
    assert_eq!(lines(&client, "call t.Callee/Echo x"), ["refused -58"]);
    let file = server.folder().join("sledge.json");
    let mut config: Value = serde_json::from_slice(&fs::read(&file).expect("the configuration")).expect("JSON");
    let other = start(&[callee(&json!({}))]);
    for edge in [local(), json!({ "url": format!("http://{}", other.address) })] {
        config["functions"] = json!([callee(&json!({})), caller(&edge)]);
        fs::write(&file, config.to_string()).expect("write the configuration");
        server.signal(Signal::HUP);
        eventually("it has its edge", || lines(&server.client(), "call t.Callee/Echo x") == ["0 |1 x|yes 7"]);
    }
    eventually("the other server is asked", || {
        lines(&server.client(), "call t.Callee/Echo x");
        other.admin().get("/metrics").text().contains("sledge_requests_total{function=\"callee\"")
    });
    other.stop();
    server.stop();
}

/// What a client that speaks gRPC gets: fields, the body, and what came behind it.
pub(crate) async fn call(
    sender: &SendRequest<Full<Bytes>>,
    path: &str,
    timeout: Option<&str>,
    body: &str,
) -> (HeaderMap, Bytes, HeaderMap) {
    let mut request =
        Request::post(format!("http://test{path}")).header("content-type", "application/grpc+proto").header("te", "trailers");
    if let Some(timeout) = timeout {
        request = request.header("grpc-timeout", timeout);
    }
    let request = request.body(Full::from(body.to_owned())).expect("a request");
    let response = sender.clone().send_request(request).await.expect("a head");
    assert_eq!(response.status(), StatusCode::OK, "{path}");
    let (head, body) = response.into_parts();
    let body = body.collect().await.expect("all of it");
    let trailers = body.trailers().cloned().unwrap_or_default();
    (head.headers, body.to_bytes(), trailers)
}

#[test]
fn clients_that_speak_grpc_are_told_of_failures_in_its_words() {
    for listeners in LISTENERS {
        let busy = entry_with("busy", "rpc.c", &json!({ "route": "/t.Busy/*", "concurrency_max": 1, "queue_max": 0 }));
        let late = entry_with("late", "wait.wat", &json!({ "deadline_ms": 100, "route": "/t.Late/M" }));
        let whole = entry_with("whole", "echo.wat", &json!({ "route": "/t.Whole/M" }));
        let functions = json!([callee(&json!({})), busy, late, whole]);
        let config =
            json!({ "listeners": listeners, "workers": 1, "kv": "memory", "body_bytes_max": 100_000, "functions": functions });
        let server = Server::start(config);
        run(async {
            let sender = speak_http2(connect(&server).await).await;
            let (head, body, trailers) = call(&sender, "/t.Callee/Echo", None, "hello").await;
            assert_eq!(
                (&head["content-type"], &body[..], &trailers["grpc-status"]),
                (&"application/grpc".parse().unwrap(), &b"hello"[..], &"0".parse().unwrap())
            );
            let large = "x".repeat(200_000);
            for (path, timeout, body, status, message) in [
                ("/t.None/M", None, "", "12", "no_such_route"),
                ("/t.Callee/Trap", None, "", "13", "function `callee` trapped: unreachable"),
                ("/t.Callee/Exit", None, "", "13", "function `callee`: status_3"),
                ("/t.Callee/Late", Some("50m"), "", "4", "function `callee`: deadline_exceeded"),
                ("/t.Callee/Late", Some("0n"), "", "4", "function `callee`: deadline_exceeded"),
                ("/t.Callee/Echo", Some("5"), "", "13", "function `callee`: grpc_timeout_malformed"),
                ("/t.Callee/Echo", Some("123456789n"), "", "13", "function `callee`: grpc_timeout_malformed"),
                ("/t.Whole/M", None, &large, "8", "function `whole`: body_bytes_max"),
            ] {
                let (head, got, trailers) = call(&sender, path, timeout, body).await;
                assert_eq!(
                    (head["grpc-status"].to_str().unwrap(), head["grpc-message"].to_str().unwrap()),
                    (status, message),
                    "{path} {timeout:?}"
                );
                assert_eq!(
                    (&head["content-type"], head.contains_key("content-length")),
                    (&"application/grpc".parse().unwrap(), false),
                    "{path}"
                );
                assert!(got.is_empty() && trailers.is_empty(), "{path} {timeout:?}");
            }
            // What fails after its head is out says so behind what it wrote.
            for (path, timeout, body, status) in
                [("/t.Callee/Torn", None, "torn", "13"), ("/t.Callee/Tired", Some("2S"), "tired", "4")]
            {
                let (head, got, trailers) = call(&sender, path, timeout, "").await;
                assert_eq!(
                    (head.contains_key("grpc-status"), &got[..], &trailers["grpc-status"]),
                    (false, body.as_bytes(), &status.parse().unwrap()),
                    "{path}"
                );
            }
            // Others are told as before.
            let request = Request::post("http://test/t.None/M").body(Full::from("")).expect("a request");
            assert_eq!(sender.clone().send_request(request).await.expect("a head").status(), StatusCode::NOT_FOUND);
        });
        let client = server.client();
        let reply = client.try_post("/t.None/M", b"", &[("content-type", "application/grpc")]).expect("a reply");
        assert_eq!(reply.status, 404, "HTTP/1.1 carries no gRPC");
        server.stop();
    }
}
