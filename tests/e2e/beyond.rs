//! What a component hears that wants more of the host at once than an invocation may have.

use crate::assert_failure;
use crate::encoded::{self, WASI3};
use serde_json::json;
use sledge_tests::server::Server;
use wit_component::StringEncoding;

const WORLD: &str =
    "import wasi:http/types@V; import wasi:clocks/monotonic-clock@V; import wasi:cli/stdin@V; export wasi:http/handler@V;";

/// What it does without end is said by the last byte of its path.
const CORE: &str = r#"(module
  (import "wasi:http/types@V" "[method]request.get-path-with-query" (func $path (param i32 i32)))
  (import "wasi:http/types@V" "[constructor]fields" (func $fields (result i32)))
  (import "wasi:clocks/monotonic-clock@V" "[async-lower]wait-for" (func $wait (param i64) (result i32)))
  (import "wasi:cli/stdin@V" "read-via-stream" (func $stream (param i32)))
  (memory (export "memory") 1)
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (i32.const 1024))
  (func (export "wasi:http/handler@V#handle") (param $request i32) (result i32)
    (local $verb i32) (local $count i32)
    (call $path (local.get $request) (i32.const 16))
    (local.set $verb (i32.load8_u (i32.sub (i32.add (i32.load (i32.const 20)) (i32.load (i32.const 24))) (i32.const 1))))
    (local.set $count (i32.const 100000))
    (loop $more
      (if (i32.eq (local.get $verb) (i32.const 99)) ;; c: calls
        (then (drop (call $wait (i64.const 60000000000)))))
      (if (i32.eq (local.get $verb) (i32.const 115)) ;; s: streams
        (then (call $stream (i32.const 32))))
      (if (i32.eq (local.get $verb) (i32.const 102)) ;; f: resources
        (then (drop (call $fields))))
      (local.set $count (i32.sub (local.get $count) (i32.const 1)))
      (br_if $more (local.get $count)))
    unreachable)
  (func (export "cabi_post_wasi:http/handler@V#handle") (param i32)))"#;

#[test]
fn the_limit_is_named() {
    let artifact = encoded::artifact("beyond", WASI3, WORLD, CORE, StringEncoding::UTF8);
    let web = json!({ "name": "web", "path": artifact, "deadline_ms": 60_000 });
    let server = Server::start(json!({ "workers": 1, "functions": [web] }));
    for (query, words) in [
        ("c", "more than 4,096 calls to the host at once"),
        ("s", "more than 16,384 streams and futures with an end that the host has at once"),
        ("f", "more than 65,536 resources of the host at once"),
    ] {
        assert_failure(&server.client().post(&format!("/web?{query}"), ""), 500, "trap", "component", Some("web"));
        server.wait_for_log(words);
    }
    server.stop();
}
