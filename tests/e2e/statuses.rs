//! How requests by gRPC ended, in the access log, the metrics and the spans: their status of HTTP is 200, and gRPC's comes last.

use crate::collector::{Collector, Span};
use crate::grpc::{call, callee};
use crate::http::{connect, run, speak_http2};
use crate::{LISTENERS, entry, eventually};
use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;
use serde_json::{Value, json};
use sledge_tests::admin::Admin;
use sledge_tests::programs::sledge_command;
use sledge_tests::server::Server;
use std::time::Duration;

/// The kind of a span (`SpanKind` in opentelemetry's trace.proto).
const SERVER: i32 = 2;

/// Paths, time limits, and the status that comes of each.
const CALLS: [(&str, Option<&str>, &str); 11] = [
    ("/t.Callee/Echo", None, "OK"),
    ("/t.Callee/Chat", None, "OK"),
    ("/t.Callee/None", None, "NOT_FOUND"),
    ("/t.Callee/Only", None, "PERMISSION_DENIED"),
    ("/t.Callee/Silent", None, "UNKNOWN"),
    ("/t.Callee/Trap", None, "INTERNAL"),
    ("/t.Callee/Late", Some("50m"), "DEADLINE_EXCEEDED"),
    ("/t.Callee/Torn", None, "INTERNAL"),
    ("/t.Callee/Tired", Some("100m"), "DEADLINE_EXCEEDED"),
    ("/t.Callee/Large", None, "OK"),
    ("/t.None/M", None, "UNIMPLEMENTED"),
];

fn start(folder: &std::path::Path, listeners: &Value, more: &Value) -> Server {
    let mut config = json!({
        "listen": "127.0.0.1:0", "admin": folder.join("admin.sock"), "listeners": listeners, "workers": 1, "kv": "memory",
        "functions": [callee(&json!({})), entry("echo", "echo.wat")],
    });
    more.as_object().expect("an object").iter().for_each(|(key, value)| config[key] = value.clone());
    let file = folder.join("sledge.json");
    std::fs::write(&file, config.to_string()).expect("write the configuration");
    Server::start_with(sledge_command(&["serve", "--log-format", "json", "--config"]).arg(&file))
}

/// Lines of the access log.
fn lines(server: &Server) -> Vec<Value> {
    let lines = server.log().lines().filter_map(|line| serde_json::from_str(line).ok()).collect::<Vec<Value>>();
    lines.into_iter().filter(|line| line.get("took_us").is_some()).collect()
}

#[test]
fn the_status_of_a_request_by_grpc_is_logged_counted_and_traced() {
    for listeners in LISTENERS {
        let (folder, collector) = (tempfile::tempdir().expect("a folder"), Collector::start());
        let telemetry = json!({ "endpoint": format!("http://{}", collector.address) });
        let server = start(folder.path(), &json!(listeners), &json!({ "access_log": true, "telemetry": telemetry }));
        let metrics = || Admin::new(folder.path().join("admin.sock")).get("/metrics").text();
        run(async {
            let sender = speak_http2(connect(&server).await).await;
            for (path, timeout, _) in CALLS {
                call(&sender, path, timeout, "").await;
            }
            // A client that leaves before there is a reply has no line, as with HTTP.
            let request = Request::post("http://test/t.Callee/Late").header("content-type", "application/grpc");
            let request = request.body(Full::<Bytes>::from("")).expect("a request");
            // No other is under way.
            while !metrics().contains("\nsledge_requests_under_way 0\n") {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            let mut sender = sender.clone();
            let mut reply = Box::pin(sender.send_request(request));
            while !metrics().contains("\nsledge_requests_under_way 1\n") {
                assert!(tokio::time::timeout(Duration::from_millis(20), &mut reply).await.is_err(), "it is answered");
            }
        });
        assert_eq!(server.client().post("/echo", "x").status, 200);
        eventually("all are logged", || lines(&server).len() == CALLS.len() + 1);
        let lines = lines(&server);
        for (path, _, status) in CALLS {
            let line = lines.iter().find(|line| line["path"] == path).unwrap_or_else(|| panic!("{path}: {lines:#?}"));
            assert_eq!((&line["status"], &line["grpc_status"]), (&json!(200), &json!(status)), "{listeners}: {line}");
        }
        let line = |path: &str| lines.iter().find(|line| line["path"] == path).expect(path);
        assert_eq!(line("/t.Callee/Large")["bytes"].as_u64(), Some(2 << 20), "what went out");
        assert_eq!(line("/t.Callee/Torn")["bytes"].as_u64(), Some(4));
        assert!(line("/echo").get("grpc_status").is_none_or(Value::is_null));

        // Not of the client that left.
        let is_of = |span: &Span, path: &str| {
            span.kind == SERVER && span.get("url.path") == path && span.get("rpc.status_code") != "CANCELLED"
        };
        let spans = collector.wait_for(|spans| CALLS.iter().all(|(path, ..)| spans.iter().any(|span| is_of(span, path))));
        for (path, _, status) in CALLS {
            let span = spans.iter().find(|span| is_of(span, path)).expect(path);
            let found = ["rpc.system.name", "rpc.method", "rpc.status_code"].map(|key| span.get(key).to_owned());
            assert_eq!(found, ["grpc", &path[1..], status], "{span:?}");
            // What a client did wrong is none of the server's errors.
            let is_error = !["OK", "NOT_FOUND", "PERMISSION_DENIED"].contains(&status);
            assert_eq!(span.error.is_some(), is_error, "{span:?}");
        }

        let counted = [
            ("OK", 3),
            ("CANCELLED", 1),
            ("UNKNOWN", 1),
            ("NOT_FOUND", 1),
            ("PERMISSION_DENIED", 1),
            ("DEADLINE_EXCEEDED", 2),
            ("INTERNAL", 2),
        ];
        let sample = |status: &str, count: u64| {
            format!("sledge_grpc_requests_total{{function=\"callee\",tenant=\"default\",grpc_status=\"{status}\"}} {count}\n")
        };
        eventually("all are counted", || counted.iter().all(|(status, count)| metrics().contains(&sample(status, *count))));
        let text = metrics();
        let samples: Vec<&str> = text.lines().filter(|line| line.starts_with("sledge_grpc_requests_total")).collect();
        assert_eq!(samples.len(), counted.len(), "{samples:#?}");
        server.stop();
    }
}
