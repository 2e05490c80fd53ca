//! `memo`: equal requests are answered from a table, where nothing can have changed; `sledge explain-effects`.

use crate::deploy::{command, saying};
use crate::kv::{ask, server};
use crate::{entry_with, eventually};
use serde_json::{Value, json};
use sledge_tests::http::{Client, Reply};
use sledge_tests::process;
use sledge_tests::programs::sledge_command;
use sledge_tests::server::Server;
use std::fs;
use std::time::Duration;

fn function(name: &str, file: &str, more: &Value) -> Value {
    let mut entry = entry_with(name, file, &json!({ "memo": "auto" }));
    for (key, value) in more.as_object().expect("an object") {
        entry[key] = value.clone();
    }
    entry
}

fn is_hit(reply: &Reply) -> bool {
    assert_eq!(reply.status, 200, "{reply:?}");
    reply.header("cache-status") == Some("sledge; hit")
}

/// Which of so many equal requests are answered from the table.
fn hits(client: &Client, path: &str, body: &str, headers: &[(&str, &str)], count: usize) -> Vec<bool> {
    (0..count).map(|_| is_hit(&client.try_post(path, body.as_bytes(), headers).expect("a reply"))).collect()
}

#[test]
fn equal_requests_are_answered_from_the_table_and_what_was_not_read_does_not_matter() {
    let server = Server::start(json!({
        "workers": 1,
        "functions": [
            function("echo", "echo.wat", &json!({})),
            function("head", "head.c", &json!({})),
            function("random", "random.wat", &json!({})),
            function("off", "echo.wat", &json!({ "memo": "off" })),
            function("observe", "echo.wat", &json!({ "memo": "observe" })),
        ],
    }));
    let client = server.client();
    assert_eq!(hits(&client, "/echo", "hello", &[], 4), [false, false, true, true]);
    assert_eq!(client.post("/echo", "hello").text(), "hello");
    assert_eq!(hits(&client, "/echo", "hellO", &[], 1), [false]);
    assert_eq!(hits(&client, "/echo", "hello", &[("x-a", "1")], 1), [true], "it reads no header");
    for path in ["/random", "/off", "/observe"] {
        assert_eq!(hits(&client, path, "hello", &[], 4), [false; 4], "{path}");
    }
    // One header is read: others do not matter, and none is not an empty one.
    let lines = "header x-a\nset x-reply yes";
    assert_eq!(hits(&client, "/head", lines, &[("x-a", "1"), ("x-b", "1")], 3), [false, false, true]);
    let reply = client.try_post("/head", lines.as_bytes(), &[("x-a", "1"), ("x-b", "2")]).expect("a reply");
    assert!(is_hit(&reply) && reply.text() == "1\n0\n" && reply.header("x-reply") == Some("yes"), "{reply:?}");
    let reply = client.try_post("/head", lines.as_bytes(), &[("x-a", "2")]).expect("a reply");
    assert!(!is_hit(&reply) && reply.text() == "2\n0\n", "{reply:?}");
    assert_eq!(hits(&client, "/head", lines, &[], 3), [false, false, true]);
    assert_eq!(hits(&client, "/head", lines, &[("x-a", "")], 1), [false]);

    let admin = server.admin();
    let metrics = admin.get("/metrics").text();
    for line in [
        r#"sledge_memo_events_total{function="echo",tenant="default",event="hit"} 4"#,
        r#"sledge_memo_refusals_total{function="random",tenant="default",reason="entropy"} 4"#,
    ] {
        assert!(metrics.contains(line), "{line} is missing in:\n{metrics}");
    }
    let explained = |name: &str| command(&server, &["explain-effects", name]);
    let text = explained("random").text();
    assert!(text.contains("verdict              not deterministic") && text.contains("entropy            4 runs"), "{text}");
    let text = explained("head").text();
    assert!(text.contains("verdict              deterministic\n") && text.contains("header x-a"), "{text}");
    let text = explained("observe").text();
    assert!(text.contains("memo                 observe") && text.contains("runs                 4, 4 of them"), "{text}");
    let done = explained("off");
    assert!(done.code() == 1 && done.stderr.contains("set `memo = \"observe\"`"), "{}", done.stderr);
    server.stop();
}

#[test]
fn an_answer_is_not_older_than_the_store() {
    let folder = tempfile::tempdir().expect("a folder");
    for kv in [json!("memory"), json!(folder.path().join("kv.redb"))] {
        let functions = [
            function("plain", "transaction.c", &json!({})),
            function("t", "transaction.c", &json!({ "isolation": "serializable" })),
            entry_with("writer", "transaction.c", &json!({})),
        ];
        let server = server(&json!({ "kv": kv }), &functions);
        let client = server.client();
        for path in ["/plain", "/t"] {
            assert_eq!(ask(&client, "/writer", "set a one\nset b x"), ["set", "set"]);
            assert_eq!(hits(&client, path, "get a", &[], 3), [false, false, true], "{path}");
            assert_eq!(ask(&client, "/writer", "set b y"), ["set"]);
            assert_eq!(hits(&client, path, "get a", &[], 1), [true], "{path}: it reads another key");
            assert_eq!(ask(&client, "/writer", "set a two"), ["set"]);
            let reply = client.post(path, "get a");
            assert!(!is_hit(&reply) && reply.text() == "stored two\n", "{path}: {reply:?}");
            assert_eq!(hits(&client, path, "get a", &[], 1), [true], "{path}: it was kept at once");
            assert_eq!(ask(&client, "/writer", "delete a"), ["delete"]);
            let reply = client.post(path, "get a");
            assert!(!is_hit(&reply) && reply.text() == "error 44\n", "{path}: {reply:?}");
            assert_eq!(hits(&client, path, "set c 1", &[], 3), [false; 3], "{path}: it writes");
        }
        // Lists have versions in a transaction.
        assert_eq!(hits(&client, "/plain", "list x", &[], 3), [false; 3]);
        assert_eq!(hits(&client, "/t", "list x", &[], 3), [false, false, true]);
        assert_eq!(ask(&client, "/writer", "set xy 1"), ["set"]);
        assert_eq!(ask(&client, "/t", "list x"), ["keys xy"]);
        server.stop();
    }
}

#[test]
fn a_deployment_begins_with_an_empty_table() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(json!({ "state_dir": folder.path().join("state"), "functions": [] }));
    let client = server.client();
    let deploy = |text: &str| {
        let file = folder.path().join(format!("{text}.wasm"));
        fs::write(&file, saying(text)).expect("write the module");
        let done = command(&server, &["deploy", file.to_str().expect("a path"), "--name", "f", "--set", "memo=auto"]);
        assert_eq!(done.code(), 0, "{}", done.stderr);
    };
    for text in ["one", "two"] {
        deploy(text);
        for expected in [false, false, true] {
            let reply = client.post("/f", "");
            assert_eq!((reply.text().as_str(), is_hit(&reply)), (text, expected));
        }
    }
    assert_eq!(command(&server, &["rollback", "f"]).code(), 0);
    let reply = client.post("/f", "");
    assert!(reply.text() == "one" && !is_hit(&reply), "{reply:?}");
    server.stop();
}

#[test]
fn a_function_that_is_not_as_pure_as_said_is_found_out() {
    let functions = json!([function("f", "random.wat", &json!({ "pure": true }))]);
    let server = Server::start(json!({ "workers": 1, "ready_when_degraded": true, "functions": functions }));
    let (client, admin) = (server.client(), server.admin());
    let first = hits(&client, "/f", "", &[], 70);
    assert!(first[2..65].iter().all(|hit| *hit), "{first:?}");
    eventually("the problem is listed", || {
        admin.get("/status").json()["problems"][0]["subject"]
            .as_str()
            .is_some_and(|subject| subject.starts_with("memo f version"))
    });
    assert_eq!(hits(&client, "/f", "", &[], 5), [false; 5]);
    let log = server.stop_for_log();
    assert!(log.contains("`pure = true` does not hold"), "{log}");
}

#[test]
fn wrong_settings_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let check = |more: &Value| {
        let config = json!({ "functions": [entry_with("f", "echo.wat", more)] });
        let file = folder.path().join("sledge.json");
        fs::write(&file, config.to_string()).expect("write the configuration");
        let done = process::run(sledge_command(&["config", "check"]).arg(&file), b"", Duration::from_secs(60));
        (done.code(), done.stderr)
    };
    assert_eq!(check(&json!({ "memo": "auto", "pure": true, "memo_bytes_max": 65_536 })).0, 0);
    for (more, words) in [
        (json!({ "pure": true }), "functions[0].pure: says which runs"),
        (json!({ "memo": "auto", "body": "stream" }), "functions[0].memo: requests are compared with their whole bodies"),
        (json!({ "memo": "observe", "instance": "request" }), "functions[0].memo: what an instance keeps"),
        (json!({ "memo": "auto", "memo_bytes_max": 1 }), "functions[0].memo_bytes_max: 1 is out of range"),
        (json!({ "memo": "on" }), "expected one of `off`, `observe`, `auto`"),
    ] {
        let (code, stderr) = check(&more);
        assert!(code == 1 && stderr.contains(words), "{more}: {stderr}");
    }
}
