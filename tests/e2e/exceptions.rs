//! Functions that throw: C++, and what is left of exceptions between requests.

use crate::replies::stopped_log;
use crate::snapshot::refused;
use crate::{assert_failure, entry_with};
use serde_json::json;
use sledge_tests::programs;
use sledge_tests::server::Server;

/// C++ whose exceptions are WebAssembly's, in the finished form and in the one before it.
#[test]
fn exceptions_of_cpp_are_caught_and_one_that_is_not_is_a_500() {
    let source = programs::tests_folder().join("e2e/functions/throws.cpp");
    let source = source.to_str().expect("a path in UTF-8");
    let finished = ["--", source, "-nostdlib++", "-fwasm-exceptions", "-mllvm", "-wasm-use-legacy-eh=false"];
    let legacy = ["--legacy-exceptions", "--", source, "-nostdlib++", "-fwasm-exceptions", "-mllvm", "-wasm-use-legacy-eh=true"];
    for options in [&finished[..], &legacy[..]] {
        let artifact = programs::function_with("throws.c", options);
        let server = Server::start(json!({ "workers": 1, "functions": [{ "name": "throws", "path": artifact }] }));
        let client = server.client();
        for _ in 0..3 {
            for (body, reply) in [
                ("typed", "~3 ~2 ~1 error 43 ~9 \n"),
                ("rethrown", "~3 ~2 first 43 ~7 second 0 ~9 \n"),
                ("virtual", "sum 200000 \n"),
                ("nested", "nested 2 \n"),
            ] {
                let got = client.post("/throws", body);
                assert_eq!((got.status, got.text().as_str()), (200, reply), "{body}, {options:?}");
            }
            assert_failure(&client.post("/throws", "uncaught"), 500, "trap", "uncaught_exception", Some("throws"));
        }
        let log = stopped_log(server);
        assert!(log.contains("dig(int) at wasm offset"), "where it was thrown is missing in:\n{log}");
    }
}

#[test]
fn an_exception_that_initialisation_keeps_is_in_no_snapshot() {
    let message = refused("kept-exception.wat", &json!({}));
    assert!(message.contains("left an exception in a global") && message.contains("snapshot = \"off\""), "{message}");
    let more = json!({ "snapshot": "off" });
    let server = Server::start(json!({ "workers": 1, "functions": [entry_with("kept", "kept-exception.wat", &more)] }));
    for _ in 0..3 {
        let reply = server.client().post("/kept", "");
        assert_eq!((reply.status, reply.text().as_str()), (200, "kep"));
    }
    server.stop();
}
