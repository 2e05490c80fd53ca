//! `wasi:http/handler` of WASI 0.3 that is lifted as synchronous, as bindings without async make it: the call returns the response.

use crate::assert_failure;
use crate::encoded::{self, WASI3};
use serde_json::json;
use sledge_tests::canonical::{Encoding, data};
use sledge_tests::http::Reply;
use sledge_tests::server::Server;
use std::path::PathBuf;
use wit_component::StringEncoding;

const WORLD: &str = "import wasi:http/types@V; import wasi:clocks/monotonic-clock@V; export wasi:http/handler@V;";

/// What it answers is said by the last byte of its path; `UNIT` stands for how many bytes a character has, and `TEXT` for some. The result is at 256: a `result<response, error-code>`, whose payload is at 264.
const CORE: &str = r#"(module
  (import "wasi:http/types@V" "[method]request.get-path-with-query" (func $path (param i32 i32)))
  (import "wasi:http/types@V" "[static]request.consume-body" (func $consume (param i32 i32 i32)))
  (import "wasi:http/types@V" "[future-new-0][static]request.consume-body" (func $outcome (result i64)))
  (import "wasi:http/types@V" "[constructor]fields" (func $fields (result i32)))
  (import "wasi:http/types@V" "[static]response.new" (func $response (param i32 i32 i32 i32 i32)))
  (import "wasi:http/types@V" "[resource-drop]request" (func $drop (param i32)))
  (import "wasi:clocks/monotonic-clock@V" "wait-for" (func $wait (param i64)))
  (memory (export "memory") 1)
  (data (i32.const 512) "TEXT")
  (global $free (mut i32) (i32.const 1024))
  (global $is_taken (mut i32) (i32.const 0))
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
    (global.get $free)
    (global.set $free (i32.add (global.get $free) (i32.and (i32.add (local.get 3) (i32.const 7)) (i32.const -8)))))
  (func (export "wasi:http/handler@V#handle") (param $request i32) (result i32)
    (local $verb i32)
    (call $path (local.get $request) (i32.const 16))
    (local.set $verb
      (i32.load8_u
        (i32.add
          (i32.load (i32.const 20))
          (i32.mul (i32.sub (i32.load (i32.const 24)) (i32.const 1)) (i32.const UNIT)))))
    (if (i32.eq (local.get $verb) (i32.const 101)) ;; e: an error
      (then
        (call $drop (local.get $request))
        (i32.store8 (i32.const 256) (i32.const 1))
        (i32.store8 (i32.const 264) (i32.const 38))
        (i32.store8 (i32.const 272) (i32.const 1))
        (i32.store (i32.const 276) (i32.const 512))
        (i32.store (i32.const 280) (i32.const 8))
        (return (i32.const 256))))
    (if (i32.eq (local.get $verb) (i32.const 98)) ;; b: neither
      (then (i32.store8 (i32.const 256) (i32.const 2)) (return (i32.const 256))))
    (if (i32.eq (local.get $verb) (i32.const 117)) (then (return (i32.const 257)))) ;; u: not aligned
    (if (i32.eq (local.get $verb) (i32.const 111)) (then (return (i32.const 0x7ffffff8)))) ;; o: out of bounds
    (if (i32.eq (local.get $verb) (i32.const 119)) (then (call $wait (i64.const 20000000)))) ;; w: waits
    (if (i32.eq (local.get $verb) (i32.const 112)) (then (global.set $is_taken (i32.const 1)))) ;; p: post-return traps
    ;; The body goes back as it comes.
    (call $consume (local.get $request) (i32.wrap_i64 (call $outcome)) (i32.const 32))
    (call $response (call $fields) (i32.const 1) (i32.load (i32.const 32)) (i32.load (i32.const 36)) (i32.const 40))
    (i32.store (i32.const 264) (i32.load (i32.const 40)))
    (i32.const 256))
  (func (export "cabi_post_wasi:http/handler@V#handle") (param i32)
    (if (i32.or (i32.ne (local.get 0) (i32.const 256)) (global.get $is_taken)) (then unreachable))))"#;

/// The artifact of one that passes the streams of its request on, where its query is `x`.
pub(crate) fn passing(name: &str) -> PathBuf {
    let core = CORE.replace("UNIT", "1").replace("TEXT", "");
    encoded::artifact(name, WASI3, WORLD, &core, StringEncoding::UTF8)
}

#[test]
fn a_handler_that_is_lifted_as_synchronous_answers() {
    answers("lifted", "1", Encoding::Utf8, StringEncoding::UTF8);
}

#[test]
fn a_handler_that_is_lifted_as_synchronous_answers_in_its_encoding() {
    answers("lifted-utf16", "2", Encoding::Utf16, StringEncoding::UTF16);
}

fn answers(name: &str, unit: &str, encoding: Encoding, option: StringEncoding) {
    let core = CORE.replace("UNIT", unit).replace("TEXT", &data(&encoding.encode("as asked").0));
    let artifact = encoded::artifact(name, WASI3, WORLD, &core, option);
    let web = json!({ "name": "web", "path": artifact, "deadline_ms": 20_000 });
    let server = Server::start(json!({ "workers": 1, "functions": [web] }));
    let ask = |query: &str, body: &str| -> Reply { server.client().post(&format!("/web?{query}"), body) };
    assert_eq!((ask("x", "sent").status, ask("x", "sent").text().as_str()), (200, "sent"));
    let large = "large ".repeat(300_000);
    assert_eq!(ask("x", &large).text(), large);
    assert_eq!(ask("w", "later").text(), "later", "it waits in a call");
    assert_eq!(ask("e", "").status, 500);
    server.wait_for_log("wasi:http: the component answered with internal-error: as asked");
    assert_failure(&ask("b", ""), 500, "trap", "component", Some("web"));
    server.wait_for_log("trap: `handle` of the component: invalid variant discriminant, in the result");
    for (query, why) in [("u", "component"), ("o", "memory_out_of_bounds"), ("p", "unreachable")] {
        assert_failure(&ask(query, ""), 500, "trap", why, Some("web"));
    }
    server.stop();
}

/// Returns, as a task, what the last byte of its path says.
const RETURNING: &str = r#"(module
  (import "wasi:http/types@V" "[method]request.get-path-with-query" (func $path (param i32 i32)))
  (import "[export]wasi:http/handler@V" "[task-return]handle" (func $return (param i32 i32 i32 i64 i32 i32 i32 i32)))
  (memory (export "memory") 1)
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (i32.const 1024))
  (func $is (param i32) (result i32) (i32.eq (local.get 0) (i32.load8_u
    (i32.sub (i32.add (i32.load (i32.const 20)) (i32.load (i32.const 24))) (i32.const 1)))))
  (func $error (param $case i32) (param $first i32) (param $second i64) (param $third i32)
    (call $return (i32.const 1) (local.get $case) (local.get $first) (local.get $second) (local.get $third) (i32.const 0) (i32.const 0) (i32.const 0)))
  (func (export "[async-lift]wasi:http/handler@V#handle") (param $request i32) (result i32)
    (call $path (local.get $request) (i32.const 16))
    ;; r: neither of a result's cases; c: no error; o, p, q: a text, a number, or the text of a size, that is there in no way; h: no handle; e: an error
    (if (call $is (i32.const 114)) (then
      (call $return (i32.const 2) (i32.const 0) (i32.const 0) (i64.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0))))
    (if (call $is (i32.const 99)) (then (call $error (i32.const 39) (i32.const 0) (i64.const 0) (i32.const 0))))
    (if (call $is (i32.const 111)) (then (call $error (i32.const 1) (i32.const 2) (i64.const 0) (i32.const 0))))
    (if (call $is (i32.const 112)) (then (call $error (i32.const 17) (i32.const 7) (i64.const 0) (i32.const 0))))
    (if (call $is (i32.const 113)) (then (call $error (i32.const 22) (i32.const 1) (i64.const 2) (i32.const 0))))
    (if (call $is (i32.const 104)) (then
      (call $return (i32.const 0) (i32.const 77) (i32.const 0) (i64.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0))))
    (if (call $is (i32.const 101)) (then (call $error (i32.const 22) (i32.const 1) (i64.const 1) (i32.const 0))))
    (i32.const 0))
  (func (export "[callback][async-lift]wasi:http/handler@V#handle") (param i32 i32 i32) (result i32) unreachable))"#;

#[test]
fn what_is_no_response_is_a_trap() {
    let artifact = encoded::artifact("returning", WASI3, WORLD, RETURNING, StringEncoding::UTF8);
    let web = json!({ "name": "web", "path": artifact, "deadline_ms": 20_000 });
    let server = Server::start(json!({ "workers": 1, "functions": [web] }));
    let told = "trap: `handle` of the component: invalid variant discriminant, in the result";
    for (index, verb) in ["r", "c", "o", "p", "q"].into_iter().enumerate() {
        assert_failure(&server.client().post(&format!("/web?{verb}"), ""), 500, "trap", "component", Some("web"));
        server.wait_for_log(&format!("{told} function=\"web\" version=1 request={}", index + 1));
    }
    assert_failure(&server.client().post("/web?h", ""), 500, "trap", "component", Some("web"));
    server.wait_for_log("trap: `handle` of the component: unknown handle index 77, in the result");
    assert_eq!(server.client().post("/web?e", "").status, 500);
    server.wait_for_log("wasi:http: the component answered with HTTP-request-header-size");
    server.stop();
}
