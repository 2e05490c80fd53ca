//! Calls by gRPC of functions of the same server within transactions: what they do is a part of the caller's commit.

use crate::kv::ask;
use crate::transactions::on_every_store;
use crate::{assert_failure, entry_with};
use serde_json::{Value, json};
use sledge_tests::server::Server;

/// A server with functions that call `t.Store`, in transactions and in none, and the function that offers it.
fn serve(kv: &Value) -> Server {
    let edges = json!({ "t.Store": { "function": "store" }, "t.Far": { "url": "http://127.0.0.1:9" } });
    let function = |name: &str, more: Value| {
        let mut entry = entry_with(name, "rpc_lines.c", &json!({ "edges": edges, "deadline_ms": 60_000 }));
        more.as_object().expect("an object").iter().for_each(|(key, value)| entry[key] = value.clone());
        entry
    };
    let functions = [
        function("t", json!({ "isolation": "serializable" })),
        function("plain", json!({})),
        function("store", json!({ "isolation": "serializable", "route": "/t.Store/*" })),
    ];
    Server::start(json!({ "kv": kv["kv"], "workers": 2, "functions": functions }))
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
