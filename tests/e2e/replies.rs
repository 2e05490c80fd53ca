//! What a client gets: replies, traps, limits.

use crate::{assert_failure, entry, entry_with};
use serde_json::json;
use sledge_tests::server::Server;

#[test]
fn a_request_is_answered_with_what_the_function_writes() {
    let server = Server::start(json!({ "functions": [entry("echo", "echo.wat")] }));
    let client = server.client();
    let large: Vec<u8> = (0..1_000_003u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    for body in [b"".as_slice(), b"x", b"\0\xff\r\n", &large] {
        let reply = client.post("/echo", body);
        assert_eq!(reply.status, 200);
        assert!(reply.body == body, "{} bytes came back as {}", body.len(), reply.body.len());
    }
    server.stop();
}

/// 64 KiB at a time: a long reply has several buffers.
#[test]
fn a_long_reply_in_many_writes_comes_as_it_was_written() {
    let functions = json!([entry("pieces", "../../../examples/echo/echo.c"), entry("caller", "caller.c")]);
    let server = Server::start(json!({ "functions": functions }));
    let client = server.client();
    for bytes in [65_536, 65_537, 131_073, 1_000_003, 3 << 20] {
        let body: Vec<u8> = (0..bytes).map(|i: u32| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let reply = client.post("/pieces", &body);
        assert_eq!((reply.status, reply.header("content-length")), (200, Some(bytes.to_string().as_str())));
        assert!(reply.body == body, "{bytes} bytes came back as {}", reply.body.len());
    }
    // A function that calls gets them as one.
    assert_eq!(client.post("/caller", "large pieces 900000").text(), "900000 \n");
    server.stop();
}

#[test]
fn arguments_environment_and_content_type_come_from_the_configuration() {
    let more = json!({ "args": ["one", "two words"], "env": { "TEST_A": "1", "TEST_B": "b=c" }, "content_type": "text/plain; charset=utf-8" });
    let server = Server::start(json!({ "functions": [entry_with("args", "args.c", &more)] }));
    let reply = server.client().post("/args", "");
    assert_eq!(reply.text(), "arg args\narg one\narg two words\nenv TEST_A=1\nenv TEST_B=b=c\n");
    assert_eq!((reply.status, reply.header("content-type")), (200, Some("text/plain; charset=utf-8")));
    server.stop();
}

#[test]
fn a_trap_is_a_500_that_names_it_and_harms_no_other_request() {
    let server = Server::start(json!({ "workers": 1, "functions": [entry("traps", "traps.wat"), entry("echo", "echo.wat")] }));
    let client = server.client();
    let cases = [
        ("u", "unreachable"),
        ("m", "memory_out_of_bounds"),
        ("d", "integer_divide_by_zero"),
        ("o", "integer_overflow"),
        ("c", "invalid_conversion_to_integer"),
        ("e", "undefined_element"),
        ("n", "uninitialized_element"),
        ("s", "indirect_call_type_mismatch"),
        ("t", "table_out_of_bounds"),
        ("r", "stack_exhausted"),
    ];
    for round in 0..3 {
        for (body, reason) in cases {
            assert_failure(&client.post("/traps", body), 500, "trap", reason, Some("traps"));
            assert_eq!(client.post("/echo", reason).text(), reason, "round {round}");
            let fine = client.post("/traps", "-");
            assert_eq!((fine.status, fine.text().as_str()), (200, "ok"), "round {round}");
        }
    }
    server.stop();
}

/// What a trap was, for the operator: in the log, with the functions' names, and not in the reply.
#[test]
fn a_trap_is_logged_with_a_backtrace() {
    let artifact = sledge_tests::programs::function_with("traps.wat", &["-O0"]);
    let server = Server::start(json!({ "functions": [{ "name": "traps", "path": artifact }] }));
    let reply = server.client().post("/traps", "u");
    assert!(!reply.text().contains("innermost"), "{}", reply.text());
    let log = stopped_log(server);
    for name in ["unreachable", "innermost", "middle", "outer"] {
        assert!(log.contains(name), "{name} is missing in:\n{log}");
    }
}

#[test]
fn an_exit_status_other_than_zero_is_a_500() {
    let five = entry_with("five", "exit.c", &json!({ "args": ["5"] }));
    let server = Server::start(json!({ "functions": [five, entry("fine", "exit.c")] }));
    let client = server.client();
    assert_failure(&client.post("/five", "x"), 500, "exit", "status_5", Some("five"));
    let reply = client.post("/fine", "some text");
    assert_eq!((reply.status, reply.text().as_str()), (200, "SOME TEXT"));
    assert!(stopped_log(server).contains("to the log"), "what a function writes on standard error is logged");
}

#[test]
fn a_reactor_is_initialised_and_its_status_counts() {
    let server = Server::start(json!({ "functions": [entry("reactor", "reactor.wat")] }));
    let client = server.client();
    for _ in 0..3 {
        let reply = client.post("/reactor", "0");
        assert_eq!((reply.status, reply.text().as_str()), (200, "A"));
    }
    assert_failure(&client.post("/reactor", "7"), 500, "exit", "status_7", Some("reactor"));
    server.stop();
}

#[test]
fn memory_ends_at_its_limit() {
    let grow = entry_with("grow", "grow.wat", &json!({ "memory_bytes_max": 40 * 65536 }));
    let server = Server::start(json!({ "functions": [grow] }));
    let client = server.client();
    for _ in 0..3 {
        let reply = client.post("/grow", "r");
        assert_eq!((reply.status, reply.body.as_slice()), (200, 40u32.to_le_bytes().as_slice()));
        assert_failure(&client.post("/grow", "t"), 500, "trap", "memory_limit", Some("grow"));
    }
    server.stop();
}

#[test]
fn the_stack_limit_is_configurable() {
    let small = entry_with("small", "traps.wat", &json!({ "stack_bytes": 65536 }));
    let large = entry_with("large", "traps.wat", &json!({ "stack_bytes": 64 << 20 }));
    let server = Server::start(json!({ "functions": [small, large] }));
    let client = server.client();
    for name in ["small", "large", "small"] {
        assert_failure(&client.post(&format!("/{name}"), "r"), 500, "trap", "stack_exhausted", Some(name));
    }
    server.stop();
}

#[test]
fn too_large_a_reply_is_a_500() {
    let server = Server::start(json!({ "reply_bytes_max": 1000, "functions": [entry("echo", "echo.wat")] }));
    let client = server.client();
    assert_eq!(client.post("/echo", [1; 1000]).body, [1; 1000]);
    assert_failure(&client.post("/echo", [1; 1001]), 500, "reply_too_large", "reply_bytes_max", Some("echo"));
    assert_eq!(client.post("/echo", "fine").text(), "fine");
    server.stop();
}

/// Stops a server and returns all that it has logged.
pub(crate) fn stopped_log(mut server: Server) -> String {
    server.signal(rustix::process::Signal::TERM);
    let status = server.wait(sledge_tests::http::TIME_MAX);
    assert!(status.success(), "{status}");
    server.whole_log()
}
