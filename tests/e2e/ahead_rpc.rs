//! Calls by gRPC of functions of the same server within transactions: what they do is a part of the caller's commit, and with `speculation` of the caller they begin with it.

use crate::kv::ask;
use crate::transactions::on_every_store;
use crate::{assert_failure, entry_with};
use serde_json::{Value, json};
use sledge_tests::http::{Client, TIME_MAX};
use sledge_tests::server::Server;
use std::time::{Duration, Instant};

/// A server with functions that call `t.Store`, in transactions with and without speculation and in none, and the function that offers it.
fn serve(kv: &Value) -> Server {
    let edges = json!({ "t.Store": { "function": "store" }, "t.Far": { "url": "http://127.0.0.1:9" } });
    let function = |name: &str, more: Value| {
        let mut entry = entry_with(name, "rpc_lines.c", &json!({ "edges": edges, "deadline_ms": 60_000 }));
        more.as_object().expect("an object").iter().for_each(|(key, value)| entry[key] = value.clone());
        entry
    };
    let functions = [
        function("ahead", json!({ "isolation": "serializable", "speculation": "calls" })),
        function("t", json!({ "isolation": "serializable" })),
        function("plain", json!({})),
        function("store", json!({ "isolation": "serializable", "route": "/t.Store/*" })),
    ];
    Server::start(json!({ "kv": kv["kv"], "workers": 2, "functions": functions }))
}

/// How many runs that were begun ahead came to that.
fn runs(server: &Server, result: &str) -> u64 {
    let metrics = server.admin().get("/metrics").text();
    let name = format!("sledge_speculative_runs_total{{tenant=\"default\",result=\"{result}\"}} ");
    metrics.lines().find_map(|line| line.strip_prefix(&name)?.parse().ok()).unwrap_or(0)
}

#[test]
fn a_call_by_grpc_of_a_function_is_a_part_of_its_callers_transaction() {
    on_every_store(|kv| {
        let server = serve(kv);
        let client = server.client();
        let lines = "set a 1\nrpc t.Store/M next a;set b 5\nget a\nget b";
        assert_eq!(ask(&client, "/t", lines), ["set", "rpc 0 next 2;set;", "2", "5"], "{kv}");
        assert_eq!(ask(&client, "/plain", "get a\nget b"), ["2", "5"]);
        // What the caller does not come to commit is not there. What has failed has written nothing, and what has answered with a status has ended well.
        assert_eq!(client.post("/t", "rpc t.Store/M set a 7\ntrap").status, 500);
        let lines = "rpc t.Store/M set b 8;trap\nrpc t.Store/M set c 9;status 5";
        assert_eq!(ask(&client, "/t", lines), ["rpc 13 ", "rpc 5 set;"], "{kv}");
        assert_eq!(ask(&client, "/plain", "get a\nget b\nget c"), ["2", "5", "9"], "{kv}");
        // A request that goes on, and one to another server, cannot be taken back.
        for (lines, function) in [("set a 8\nopen t.Store/M get a", "begin"), ("set a 8\nrpc t.Far/M get a", "begin")] {
            let reply = client.post("/t", lines);
            assert_failure(&reply, 500, "effect_refused", function, Some("t"));
        }
        assert_eq!(ask(&client, "/plain", "get a"), ["2"]);
        server.stop();
    });
}

fn took(client: &Client, path: &str, lines: &str, expected: &[&str]) -> Duration {
    let began = Instant::now();
    assert_eq!(ask(client, path, lines), expected, "{path}");
    began.elapsed()
}

#[test]
fn calls_by_grpc_begin_with_their_caller() {
    on_every_store(|kv| {
        let server = serve(kv);
        let client = server.client();
        ask(&client, "/plain", "set n 0");
        let lines = (0..3).map(|call| format!("rpc t.Store/M{call} pause 1000;set u{call} 1")).collect::<Vec<_>>().join("\n");
        let told = ["rpc 0 paused;set;"; 3];
        let plain = took(&client, "/t", &lines, &told);
        assert!(plain >= Duration::from_secs(3), "{kv}: {plain:?}");
        // Where the machine is busy nothing is begun ahead for a while.
        crate::fastest_below("calls at the same time", Duration::from_secs(2), || took(&client, "/ahead", &lines, &told));
        assert!(runs(&server, "adopted") >= 2, "{kv}");
        // What a callee has read that its caller writes before the call, it reads again.
        let (mut round, end) = (0, Instant::now() + TIME_MAX);
        while round < 6 || runs(&server, "squashed") == 0 {
            assert!(Instant::now() < end, "{kv}: none is squashed");
            round += 1;
            let told = ask(&client, "/ahead", "next n\npause 20\nrpc t.Store/Other next n");
            assert_eq!(
                told,
                [format!("next {}", 2 * round - 1), "paused".to_owned(), format!("rpc 0 next {};", 2 * round)],
                "{kv}"
            );
        }
        assert_eq!(ask(&client, "/plain", "get n\nget u0\nget u2"), [(2 * round).to_string().as_str(), "1", "1"], "{kv}");
        server.stop();
    });
}
