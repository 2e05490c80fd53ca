//! For how long an instance is used: for a call, for the calls of one request, or by all.

use crate::{LISTENERS, entry, entry_with};
use serde_json::{Value, json};
use sledge_tests::http::TIME_MAX;
use sledge_tests::process;
use sledge_tests::programs::sledge_command;
use sledge_tests::server::Server;
use std::{fs, thread};

/// The function that counts in its memory.
fn counts(instance: &str) -> Value {
    entry_with("counts", "counts.wat", &json!({ "instance": instance, "deadline_ms": 20_000 }))
}

fn start(listeners: &str, functions: &Value) -> Server {
    Server::start(json!({ "listeners": listeners, "workers": 1, "functions": functions }))
}

/// What the calls that one request makes come to.
#[track_caller]
fn ask(server: &Server, path: &str, text: &str) -> Vec<String> {
    let reply = server.client().post(path, text);
    assert_eq!(reply.status, 200, "{reply:?}");
    reply.text().lines().map(str::to_owned).collect()
}

/// What `start` sends for `s+`.
const NAP: u64 = u64::from_le_bytes(*b"s+\0\0\0\0\0\0");
const THREE: &str = "invoke counts +\ninvoke counts +\ninvoke counts +";

#[test]
fn each_call_has_an_instance_of_its_own_unless_its_function_says_otherwise() {
    for settings in [json!({}), json!({ "instance": "call" })] {
        let functions = json!([entry("caller", "caller.c"), entry_with("counts", "counts.wat", &settings)]);
        let server = start(LISTENERS[0], &functions);
        assert_eq!(ask(&server, "/caller", THREE), ["1 1"; 3], "{settings}");
        server.stop();
    }
}

#[test]
fn calls_of_one_request_share_an_instance_and_no_other_request_sees_it() {
    for listeners in LISTENERS {
        let server = start(listeners, &json!([entry("caller", "caller.c"), counts("request")]));
        for _ in 0..5 {
            assert_eq!(ask(&server, "/caller", THREE), ["1 1", "1 2", "1 3"], "{listeners}");
            assert_eq!(server.client().post("/counts", "+").text(), "1", "{listeners}");
        }
        // Requests at the same time.
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..20 {
                        assert_eq!(ask(&server, "/caller", THREE), ["1 1", "1 2", "1 3"], "{listeners}");
                    }
                });
            }
        });
        server.stop();
    }
}

/// Whether they call it themselves or functions that they call do.
#[test]
fn the_instance_is_that_of_the_outermost_request() {
    let server = start(LISTENERS[0], &json!([entry("caller", "caller.c"), entry("between", "caller.c"), counts("request")]));
    let text = "invoke between invoke counts +\ninvoke counts +\ninvoke between invoke counts +";
    assert_eq!(ask(&server, "/caller", text).concat(), ["4 1 1", "1 2", "4 1 3"].concat());
    server.stop();
}

#[test]
fn what_does_not_end_in_good_order_leaves_nothing_to_the_next_call() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("f"), "x").expect("a file");
    let mut function = counts("request");
    function["dirs"] = json!([{ "host": folder.path(), "guest": "/d" }]);
    // Long enough for those that do not wait.
    function["deadline_ms"] = json!(2_000);
    let server = start(LISTENERS[0], &json!([entry_with("caller", "caller.c", &json!({ "deadline_ms": 20_000 })), function]));
    let text = |between: &str| format!("invoke counts ++\n{between}\ninvoke counts +");
    let waits = format!("invoke counts +{}", "s".repeat(100));
    for (between, said, then) in [
        // A trap, and a deadline that passes.
        ("invoke counts +x", "error 12", "1 1"),
        (waits.as_str(), "error 73", "1 1"),
        // An exit leaves the stack as it was.
        ("invoke counts +e", "1 3", "1 1"),
        // The next call would hold a descriptor for a file that is closed.
        ("invoke counts +o", "1 3", "1 1"),
        ("invoke counts +", "1 3", "1 4"),
    ] {
        assert_eq!(ask(&server, "/caller", &text(between)), ["1 2", said, then], "{between}");
    }
    server.stop();
}

#[test]
fn calls_at_the_same_time_have_instances_of_their_own() {
    let server = start(LISTENERS[0], &json!([entry("caller", "caller.c"), counts("request")]));
    let text = format!("invoke counts +\nstart counts {NAP}\nstart counts {NAP}\ntake 0\ntake 1");
    let got = ask(&server, "/caller", &text);
    let mut of_two = got[3..].to_vec();
    of_two.sort();
    assert_eq!(
        (&got[..3], of_two),
        (&["1 1", "call 0", "call 1"].map(str::to_owned)[..], vec!["1 1".to_owned(), "1 2".to_owned()])
    );
    server.stop();
}

#[test]
fn a_function_may_keep_its_instance_for_all_requests() {
    for listeners in LISTENERS {
        let server = start(listeners, &json!([entry("caller", "caller.c"), counts("application")]));
        let post = |text: &str| {
            let reply = server.client().post("/counts", text);
            (reply.status, reply.text())
        };
        assert_eq!(ask(&server, "/caller", THREE), ["1 1", "1 2", "1 3"], "{listeners}");
        assert_eq!((post("+"), post("")), ((200, "4".to_owned()), (200, "4".to_owned())), "{listeners}");
        // One at a time: none counts beside another.
        let text = format!("{0}{0}{0}take 0\ntake 1\ntake 2", format_args!("start counts {NAP}\n"));
        assert_eq!(ask(&server, "/caller", &text)[3..], ["1 5", "1 6", "1 7"], "{listeners}");
        // A call that fails takes the state with it.
        assert_eq!((post("x").0, post("+")), (500, (200, "1".to_owned())), "{listeners}");
        server.stop();
    }
}

#[test]
fn what_cannot_keep_an_instance_says_so() {
    let settings = |file: &str, more: &Value| {
        let mut function = entry_with("f", file, more);
        function["route"] = json!("/f");
        json!({ "listen": "127.0.0.1:0", "functions": [function] })
    };
    for (file, more, said) in [
        (
            "echo.wat",
            json!({ "instance": "request" }),
            "`instance` must be \"call\": a command runs from its start for each call",
        ),
        ("counts.wat", json!({ "instance": "application", "concurrency_max": 2 }), "concurrency_max: must be 1 or left out"),
        (
            "counts.wat",
            json!({ "instance": "forever" }),
            "unknown variant `forever`, expected one of `call`, `request`, `application`",
        ),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let config = folder.path().join("sledge.json");
        fs::write(&config, settings(file, &more).to_string()).expect("a file");
        let done = process::run(sledge_command(&["serve", "--config"]).arg(&config), b"", TIME_MAX);
        assert_ne!(done.code(), 0, "{said}");
        assert!(done.stderr.contains(said), "{}", done.stderr);
    }
}
