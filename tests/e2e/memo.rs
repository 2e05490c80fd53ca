//! `memo`: equal requests are answered from a table, where nothing can have changed; `sledge explain-effects`.

use crate::deploy::{command, saying};
use crate::kv::{Redis, ask, server};
use crate::transactions::on_every_store;
use crate::{assert_failure, entry_with, eventually};
use serde_json::{Value, json};
use sledge_tests::http::{Client, Raw, Reply, TIME_MAX, post_bytes};
use sledge_tests::process;
use sledge_tests::programs::sledge_command;
use sledge_tests::server::Server;
use std::cell::RefCell;
use std::fs;
use std::thread;
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
    match reply.header("cache-status") {
        Some("sledge; hit" | "sledge; hit; detail=replayed") => true,
        None => false,
        Some(other) => panic!("{other}"),
    }
}

/// A function that carries out lines, with and without transactions, and one that writes.
fn writes(more: &Value) -> [Value; 3] {
    let mut serializable = more.clone();
    serializable["isolation"] = json!("serializable");
    [
        function("plain", "transaction.c", more),
        function("t", "transaction.c", &serializable),
        entry_with("writer", "transaction.c", &json!({})),
    ]
}

fn has_metric(server: &Server, line: &str) -> bool {
    server.admin().get("/metrics").text().contains(line)
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

    for line in [
        r#"sledge_memo_events_total{function="echo",tenant="default",event="hit"} 4"#,
        r#"sledge_memo_refusals_total{function="random",tenant="default",reason="entropy"} 4"#,
    ] {
        eventually(line, || has_metric(&server, line));
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
    on_every_store(|kv| {
        let server = server(kv, &writes(&json!({})));
        let client = server.client();
        for path in ["/plain", "/t"] {
            assert_eq!(ask(&client, "/writer", "set a one\nset b x"), ["set", "set"]);
            assert_eq!(hits(&client, path, "get a", &[], 3), [false, false, true], "{kv} {path}");
            assert_eq!(ask(&client, "/writer", "set b y"), ["set"]);
            assert_eq!(hits(&client, path, "get a", &[], 1), [true], "{kv} {path}: it reads another key");
            assert_eq!(ask(&client, "/writer", "set a two"), ["set"]);
            let reply = client.post(path, "get a");
            assert!(!is_hit(&reply) && reply.text() == "stored two\n", "{kv} {path}: {reply:?}");
            assert_eq!(hits(&client, path, "get a", &[], 1), [true], "{kv} {path}: it was kept at once");
            assert_eq!(ask(&client, "/writer", "delete a"), ["delete"]);
            let reply = client.post(path, "get a");
            assert!(!is_hit(&reply) && reply.text() == "error 44\n", "{kv} {path}: {reply:?}");
            let list = format!("list {}", &path[1..]);
            assert_eq!(hits(&client, path, &list, &[], 3), [false, false, true], "{kv}");
            assert_eq!(ask(&client, "/writer", &format!("set {}y 1", &path[1..])), ["set"]);
            assert_eq!(ask(&client, path, &list), [format!("keys {}y", &path[1..])], "{kv}");
        }
        assert_eq!(hits(&client, "/plain", "set c 1", &[], 3), [false; 3], "{kv}: it writes outside of a transaction");
        server.stop();
    });
}

#[test]
fn what_a_run_has_written_is_written_again_with_its_answer() {
    on_every_store(|kv| {
        let server = server(kv, &writes(&json!({})));
        let client = server.client();
        let written = |key: &str| ask(&client, "/writer", &format!("get {key}"));
        assert_eq!(ask(&client, "/writer", "set a one"), ["set"]);
        let lines = "get a\nset c 1";
        assert_eq!(hits(&client, "/t", lines, &[], 3), [false, false, true], "{kv}");
        assert_eq!(ask(&client, "/writer", "delete c"), ["delete"]);
        let reply = client.post("/t", lines);
        assert_eq!(reply.header("cache-status"), Some("sledge; hit; detail=replayed"));
        assert_eq!((&*reply.text(), written("c")), ("stored one\nset\n", vec!["stored 1".to_owned()]), "{kv}");
        // What it has read is not there any more.
        assert_eq!(ask(&client, "/writer", "delete c\nset a two"), ["delete", "set"]);
        let reply = client.post("/t", lines);
        assert!(!is_hit(&reply) && reply.text() == "stored two\nset\n" && written("c") == ["stored 1"], "{kv}: {reply:?}");
        // A sum that is not asked for is no read.
        assert_eq!(hits(&client, "/t", "add n 5", &[], 4), [false, false, true, true], "{kv}");
        assert_eq!(written("n"), ["stored 20"], "{kv}");
        // It fails as a run does.
        assert_eq!(ask(&client, "/writer", "set n x"), ["set"]);
        let failed = |body: &str| {
            let reply = client.post("/t", body);
            (reply.status, reply.json()["code"].clone())
        };
        assert_eq!(failed("add n 5"), failed("add n 5\nbody"), "{kv}");
        // What it changes it has read: the next one reads something else.
        assert_eq!(hits(&client, "/t", "swap k 1", &[], 4), [false; 4], "{kv}");
        assert_eq!(written("k"), ["stored 1"], "{kv}");
        let explained = command(&server, &["explain-effects", "t"]).text();
        assert!(explained.contains("updated            4 runs"), "{explained}");
        let replayed = r#"sledge_memo_events_total{function="t",tenant="default",event="replayed"} 4"#;
        eventually("they are counted", || has_metric(&server, replayed));
        server.stop();
    });
}

/// Requests at the same time, each of which adds one: from the table or not, each does so once.
#[test]
fn writes_that_are_made_again_at_the_same_time_are_made_once_each() {
    on_every_store(|kv| {
        let server = server(kv, &writes(&json!({ "deadline_ms": 60_000 })));
        let address = server.address;
        let ask_often = || hits(&Client::new(address, TIME_MAX), "/t", "add n 1", &[], 25);
        let answered: usize = thread::scope(|scope| {
            let clients: Vec<_> = (0..4).map(|_| scope.spawn(ask_often)).collect();
            let answers = clients.into_iter().flat_map(|client| client.join().expect("all are answered"));
            answers.filter(|hit| *hit).count()
        });
        assert!(answered > 0, "{kv}");
        assert_eq!(ask(&server.client(), "/writer", "get n"), ["stored 100"], "{kv}");
        server.stop();
    });
}

#[test]
fn a_store_that_was_emptied_confirms_nothing_that_was_read_before() {
    let redis = Redis::start();
    let server = server(&json!({ "kv": redis.url() }), &writes(&json!({})));
    let client = server.client();
    for path in ["/plain", "/t"] {
        assert_eq!(ask(&client, "/writer", "set a one"), ["set"]);
        assert_eq!(hits(&client, path, "get a", &[], 3), [false, false, true]);
        redis.ask("FLUSHALL");
        let reply = client.post(path, "get a");
        assert!(!is_hit(&reply) && reply.text() == "error 44\n", "{path}: {reply:?}");
        assert_eq!(ask(&client, "/writer", "set a one"), ["set"]);
        assert_eq!(hits(&client, path, "get a", &[], 2), [false, true], "{path}: the same value, and another version");
    }
    assert_eq!(hits(&client, "/t", "get a\nset c 1", &[], 3), [false, false, true]);
    redis.ask("FLUSHALL");
    let reply = client.post("/t", "get a\nset c 1");
    assert!(!is_hit(&reply) && reply.text() == "error 44\nset\n", "{reply:?}");
    server.stop();
}

#[test]
fn a_request_that_waits_for_the_store_to_confirm_its_answer_ends_with_its_deadline_and_its_client() {
    let redis = Redis::start();
    let mut functions = writes(&json!({ "deadline_ms": 4_000 })).to_vec();
    functions.push(function("one", "transaction.c", &json!({ "deadline_ms": 600_000, "concurrency_max": 1, "queue_max": 0 })));
    let server = server(&json!({ "kv": redis.url() }), &functions);
    let client = server.client();
    assert_eq!(ask(&client, "/writer", "set a one"), ["set"]);
    for (path, lines) in [("/plain", "get a"), ("/t", "set b 1"), ("/one", "get a")] {
        assert_eq!(hits(&client, path, lines, &[], 3), [false, false, true], "{path}");
    }
    redis.pause();
    assert_failure(&client.post("/plain", "get a"), 504, "deadline", "deadline_exceeded", Some("plain"));
    // What is made again, and what a run makes.
    for lines in ["set b 1", "set b 2"] {
        let reply = client.post("/t", lines);
        assert_eq!(
            (reply.status, reply.json()["code"].as_str()),
            (500, Some("outcome_unknown")),
            "the store may make it: {lines}"
        );
    }
    // It has its function's place while it waits, and no longer than its client.
    let gone = RefCell::new(Vec::new());
    eventually("its place is taken", || {
        let mut raw = Raw::connect(server.address);
        raw.send(post_bytes("/one", b"get a", ""));
        gone.borrow_mut().push(raw);
        client.post("/one", "body").status != 200
    });
    drop(gone);
    eventually("its place is free", || client.post("/one", "body").status == 200);
    redis.go_on();
    eventually("it is answered again", || client.post("/one", "get a").status == 200);
    assert!(!has_metric(&server, r#"sledge_memo_events_total{function="one",tenant="default",event="stale"}"#), "it has run");
    server.stop();
}

#[test]
fn what_a_function_calls_is_a_part_of_its_run() {
    on_every_store(|kv| {
        let mut functions = writes(&json!({ "deadline_ms": 60_000 })).to_vec();
        functions.push(entry_with("random", "random.wat", &json!({})));
        functions.push(entry_with("kept", "counts.wat", &json!({ "instance": "application" })));
        let server = server(kv, &functions);
        let client = server.client();
        assert_eq!(ask(&client, "/writer", "set a one"), ["set"]);
        for path in ["/plain", "/t"] {
            // Through one that is a function of its own, and through one that is answered from its own table.
            for lines in ["invoke writer get a", "invoke plain get a"] {
                assert_eq!(hits(&client, path, lines, &[], 3), [false, false, true], "{kv} {path} {lines}");
                assert_eq!(ask(&client, "/writer", "set a two"), ["set"]);
                assert_eq!(ask(&client, path, lines), ["stored two;"], "{kv} {path} {lines}");
                assert_eq!(ask(&client, "/writer", "set a one"), ["set"]);
            }
            for lines in ["send writer body", "invoke random x", "invoke kept +", "invoke nothing x"] {
                assert_eq!(hits(&client, path, lines, &[], 3), [false; 3], "{kv} {path} {lines}");
            }
        }
        // In a transaction what it calls writes with it; else that is made where nothing says when.
        assert_eq!(hits(&client, "/t", "invoke writer set c 3", &[], 3), [false, false, true], "{kv}");
        assert_eq!(ask(&client, "/writer", "delete c"), ["delete"]);
        assert_eq!(hits(&client, "/t", "invoke writer set c 3", &[], 1), [true], "{kv}");
        assert_eq!(ask(&client, "/writer", "get c"), ["stored 3"], "{kv}");
        assert_eq!(hits(&client, "/plain", "invoke writer set c 3", &[], 3), [false; 3], "{kv}");
        server.stop();
    });
}

#[test]
fn a_function_is_called_again_when_it_was_deployed() {
    let folder = tempfile::tempdir().expect("a folder");
    let functions = [function("f", "caller.c", &json!({}))];
    let server = Server::start(json!({ "state_dir": folder.path().join("state"), "functions": functions }));
    let client = server.client();
    let deploy = |text: &str| {
        let file = folder.path().join(format!("{text}.wasm"));
        fs::write(&file, saying(text)).expect("write the module");
        let done = command(&server, &["deploy", file.to_str().expect("a path"), "--name", "g"]);
        assert_eq!(done.code(), 0, "{}", done.stderr);
    };
    for (text, first) in [("one", [false, false, true]), ("two", [false, true, true])] {
        deploy(text);
        for expected in first {
            let reply = client.post("/f", "invoke g x");
            assert_eq!((reply.text(), is_hit(&reply)), (format!("3 {text}\n"), expected));
        }
    }
    assert_eq!(command(&server, &["rollback", "g"]).code(), 0);
    let reply = client.post("/f", "invoke g x");
    assert!(!is_hit(&reply) && reply.text() == "3 one\n", "{reply:?}");
    server.stop();
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
